"""What is installed is all there, where it belongs, and works: by cmake --install, and as a Debian package.

    install.py files|deb        SNSIM_BUILD_DIR names the build folder; exit 77: nothing here to look into packages with"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ["SNSIM_BUILD_DIR"]
SOURCE = os.environ["SNSIM_SOURCE_DIR"]
COMMON = {
    "bin/snsim",
    "share/bash-completion/completions/snsim",
    "share/fish/vendor_completions.d/snsim.fish",
    "share/doc/snsim/README.md",
} | {f"share/snsim/devices/{name}" for name in os.listdir(os.path.join(SOURCE, "sim", "device", "profiles"))} \
  | {f"share/snsim/clusters/{name}" for name in os.listdir(os.path.join(SOURCE, "sim", "cluster", "profiles"))} \
  | {f"share/snsim/python/snsim/{name}" for name in os.listdir(os.path.join(SOURCE, "python", "snsim")) if name != "__pycache__"}
INSTALLED = COMMON | {"share/man/man1/snsim.1", "share/zsh/site-functions/_snsim", "share/doc/snsim/CHANGELOG.md"}
PACKAGED = COMMON | {"share/man/man1/snsim.1.gz", "share/zsh/vendor-completions/_snsim",
                     "share/doc/snsim/changelog.gz"}
MODULE = re.compile(r"lib(64)?(/[^/]+)?/snsim/snsim_\w+\.so")  # built where their libraries are; in packages of their own


def output(*command, **more):
    return subprocess.run(command, check=True, text=True, timeout=300, stdout=subprocess.PIPE, **more).stdout


def files_below(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def compare(folder, want):
    """What differs below `folder`, and whether the program there works without anything else of the build."""
    got = files_below(folder)
    got -= set(filter(MODULE.fullmatch, got)) - want
    wrong = [f"missing: {name}" for name in sorted(want - got)] + [f"too much: {name}" for name in sorted(got - want)]
    for name in got:
        if os.stat(os.path.join(folder, name)).st_mode & 0o777 != (0o755 if name == "bin/snsim" else 0o644):
            wrong.append(f"{name}: has unusual rights")
    program = os.path.join(folder, "bin", "snsim")
    if "lenet" not in output(program, "--net", "lenet", "--batch", "8", "--no-db"):
        wrong.append("the program does not run")
    python = os.path.join(folder, "python")
    with open(python, "w") as script:
        script.write('#!/bin/sh\ntest -f "${PYTHONPATH%%:*}/snsim/record.py"\n')
    os.chmod(python, 0o755)
    if subprocess.run([program, "record", "a.py:make"], env={**os.environ, "SNSIM_PYTHON": python}, check=False).returncode:
        wrong.append("the recorder is not found")
    with open(os.path.join(folder, "share/bash-completion/completions/snsim")) as script:
        if script.read() != output(program, "completions", "bash"):
            wrong.append("the completions are another program's")
    return wrong


def install(folder):
    output("cmake", "--install", BUILD, "--prefix", "/usr", env={**os.environ, "DESTDIR": folder})
    return compare(os.path.join(folder, "usr"), INSTALLED)


def package(folder):
    output("cpack", "-G", "DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", folder, cwd=folder)
    (name,) = [n for n in os.listdir(folder) if n.endswith(".deb") and n.startswith("snsim_")]
    deb = os.path.join(folder, name)
    control = output("dpkg-deb", "-f", deb)
    needed = ["Package: snsim\n", "Section: science\n", "Recommends: gnuplot", "Description: memory simulator"]
    if shutil.which("dpkg-shlibdeps"):
        needed += ["libc6 (>=", "libsqlite3-0 (>=", "libcjson1 (>="]
    wrong = [f"no {text!r} in\n{control}" for text in needed if text not in control]
    root = os.path.join(folder, "root")
    output("dpkg-deb", "-x", deb, root)
    wrong += [f"{n}: belongs into a package of its own" for n in files_below(root) if n.endswith(".so")]
    return wrong + compare(os.path.join(root, "usr"), PACKAGED)


def main():
    if sys.argv[1] == "deb" and not shutil.which("dpkg-deb"):
        print("no dpkg-deb")
        sys.exit(77)
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        wrong = install(folder) if sys.argv[1] == "files" else package(folder)
    print("\n".join(wrong) or "all there")
    sys.exit(1 if wrong else 0)


main()
