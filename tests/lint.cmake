# Lints: each tests/lint/<name>.py checks the repository and, with --self-test, that it catches what it must catch.
set(lints includes tree lengths words headers format)
if(NOT SNSIM_SANITIZE)
  list(APPEND lints symbols binaries) # sanitizers add symbols and libraries of their own
endif()
foreach(name IN LISTS lints)
  foreach(mode "" --self-test)
    string(REPLACE -- _ suffix "${mode}")
    sn_test(lint_${name}${suffix} lint "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_SOURCE_DIR}/lint/${name}.py" ${mode})
    set_property(TEST lint_${name}${suffix} PROPERTY SKIP_RETURN_CODE 77)
    set_property(TEST lint_${name}${suffix} APPEND PROPERTY ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  endforeach()
endforeach()
