# Shared by scripts/* and .ci/run: messages, installing what is missing, building. POSIX sh; sourced, not run. The
# caller sets `root`, the repository's folder.
# shellcheck shell=sh disable=SC2154

say() {
  printf '%s\n' "$*" >&2
}

die() {
  say "error: $*"
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Packages that must be installed: filled by need(), emptied by install_missing().
missing=""

# need PACKAGE COMMAND...: PACKAGE is missing unless COMMAND succeeds.
need() {
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}

c_headers_work() {
  printf '#include <stdio.h>\n' | cc -E -
}

need_to_build() {
  need gcc has cc
  need libc6-dev c_headers_work
  need cmake has cmake
  need ninja-build has ninja
  need pkg-config has pkg-config
  need libcjson-dev pkg-config --exists libcjson
  need libdnnl-dev test -e /usr/include/dnnl.h
  need libsqlite3-dev pkg-config --exists sqlite3
  need zlib1g-dev pkg-config --exists zlib
  need gnuplot-nox has gnuplot
}

need_to_test() {
  need libcmocka-dev pkg-config --exists cmocka
  need coinor-libcbc-dev test -e /usr/include/coin/Cbc_C_Interface.h
  need sqlite3 has sqlite3
  need python3 has python3
  need clang-format-14 has clang-format-14
  need zsh has zsh
  need fish has fish
  need groff-base has groff
  need libopenmpi-dev has mpicc
  need openmpi-bin has mpirun
}

fuzzer_library() {
  ls /usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a
}

# A browser is large, so only CI insists on one; the test of the report is skipped without.
need_for_ci() {
  need python3-venv python3 -c "import ensurepip"
  need chromium has chromium
  need clang-14 has clang-14
  need clang-tidy-14 has clang-tidy-14
  need libclang-rt-14-dev fuzzer_library
}

# Installs what need() found missing, without questions; does nothing when all is there.
install_missing() {
  packages=$missing
  missing=""
  [ -n "$packages" ] || return 0
  has apt-get || die "these Debian packages are missing:$packages
  There is no apt-get here to install them with; install their equivalents by hand and run this again."
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    has sudo || die "run this as root, or first install as root: apt-get install$packages"
    as_root=sudo
  fi
  say "installing:$packages"
  # shellcheck disable=SC2086 # both are lists of words
  {
    $as_root apt-get -q update >&2 || say "warning: apt-get update failed; trying with the package lists there are"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $packages >&2 ||
      die "apt-get could not install:$packages (see above)"
  }
}

# build FOLDER OPTION...: configures and builds. $SNSIM_CMAKE_ARGS, a list of words, is added to the options;
# $SNSIM_TARGET is what is built, all unless it is set.
build() {
  folder=$1
  shift
  [ -e "$folder/CMakeCache.txt" ] || set -- -G Ninja "$@"
  # shellcheck disable=SC2086
  cmake -S "$root" -B "$folder" "$@" ${SNSIM_CMAKE_ARGS:-} >&2 && cmake --build "$folder" --target "${SNSIM_TARGET:-all}" >&2
}
