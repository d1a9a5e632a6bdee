# Run by cpack on the installed files before they become packages: what Debian wants where, and packed how.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/snsim/usr")
if(EXISTS "${root}/share/zsh/site-functions")
  file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions") # Debian's zsh looks there
endif()
file(RENAME "${root}/share/doc/snsim/CHANGELOG.md" "${root}/share/doc/snsim/changelog")
file(GLOB packed "${root}/share/man/man1/*.1" "${root}/share/doc/snsim/changelog")
foreach(file IN LISTS packed)
  execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY) # -n: the same bytes whenever it is made
endforeach()
