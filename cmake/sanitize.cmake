# SNSIM_SANITIZE: one of the sanitizer builds, for every target of ours (through sn_options).
set(sn_fuzzer_link "") # what a fuzz target links beyond that
if(SNSIM_SANITIZE STREQUAL "fuzzer")
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SNSIM_SANITIZE=fuzzer needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  set(sn_sanitizers fuzzer-no-link,address,undefined)
  set(sn_fuzzer_link -fsanitize=fuzzer)
elseif(SNSIM_SANITIZE MATCHES "^(|address,undefined|thread)$")
  set(sn_sanitizers "${SNSIM_SANITIZE}")
else()
  message(FATAL_ERROR "SNSIM_SANITIZE=${SNSIM_SANITIZE}: unknown; use address,undefined or thread or fuzzer")
endif()

if(sn_sanitizers)
  # the first report ends the program, so that a test sees it
  set(sn_sanitize_flags -fsanitize=${sn_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_compile_options(sn_options INTERFACE ${sn_sanitize_flags})
  target_link_options(sn_options INTERFACE ${sn_sanitize_flags})
endif()
