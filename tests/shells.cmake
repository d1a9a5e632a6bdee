# What meets the user's shell and system: completions, the manual page, what is installed. A test whose shell or tool is
# missing is skipped.
function(sn_shell_test name script)
  sn_test(${name} cli "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_SOURCE_DIR}/shells/${script}.py" ${ARGN})
  set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
endfunction()

foreach(shell bash zsh fish)
  sn_shell_test(completions_${shell} completions ${shell})
endforeach()
sn_shell_test(manual manual)
if(NOT SNSIM_SANITIZE) # a build that nobody installs
  sn_shell_test(install_files install files)
  sn_shell_test(install_deb install deb)
endif()
