# Fuzz targets: tests/fuzz/fuzz_<name>.c defines LLVMFuzzerTestOneInput (tests/fuzz/fuzz.h). With SNSIM_SANITIZE=fuzzer
# it is a libFuzzer program that .ci/run starts; in every other build it replays tests/fuzz/corpus/<name> as a test.
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  string(REGEX REPLACE "^fuzz_" "" corpus "${name}")
  if(sn_fuzzer_link)
    sn_test_program(${name} "${source}")
    target_link_options(${name} PRIVATE ${sn_fuzzer_link})
  else()
    sn_test_program(${name} "${source}" fuzz/replay.c)
    sn_test(${name} fuzz ${name} "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${corpus}")
  endif()
endforeach()
