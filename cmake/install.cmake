# What is installed beside the program: the manual page and the shells' completions, printed by the program itself from
# its tables, the device files, the Python package; and the Debian packages (cpack -G DEB in the build folder): snsim, and where they were built
# snsim-cpu and snsim-mpi with the modules that need oneDNN and MPI's libraries.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME snsim)

# A Python wheel (pyproject.toml) has the program among its scripts, and the modules where that looks for them. Where there is no
# static cJSON, as in Debian, the library goes along.
if(SKBUILD)
  install(TARGETS snsim DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT snsim_python)
  get_property(modules GLOBAL PROPERTY snsim_modules)
  get_target_property(cjson PkgConfig::CJSON INTERFACE_LINK_LIBRARIES)
  if(cjson MATCHES "\\.so$")
    get_filename_component(cjson "${cjson}" REALPATH)
    install(FILES "${cjson}" DESTINATION "${SKBUILD_DATA_DIR}/lib/snsim" RENAME libcjson.so.1 COMPONENT snsim_python)
    set_target_properties(snsim ${modules} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/snsim;$ORIGIN")
  endif()
  foreach(module IN LISTS modules)
    install(TARGETS ${module} LIBRARY DESTINATION "${SKBUILD_DATA_DIR}/lib/snsim" COMPONENT snsim_python)
  endforeach()
  return()
endif()

if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "cross-compiling without an emulator: no manual page and no completions are made")
else()
  set(made_dir "${PROJECT_BINARY_DIR}/made")
  file(MAKE_DIRECTORY "${made_dir}")
  add_custom_command(
    OUTPUT "${made_dir}/snsim.1" "${made_dir}/snsim.bash" "${made_dir}/_snsim" "${made_dir}/snsim.fish"
    COMMAND snsim help --man -o "${made_dir}/snsim.1"
    COMMAND snsim completions bash -o "${made_dir}/snsim.bash"
    COMMAND snsim completions zsh -o "${made_dir}/_snsim"
    COMMAND snsim completions fish -o "${made_dir}/snsim.fish"
    DEPENDS snsim
    COMMENT "Making the manual page and the completions"
    VERBATIM)
  add_custom_target(snsim_texts ALL DEPENDS "${made_dir}/snsim.1")
  install(FILES "${made_dir}/snsim.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${made_dir}/snsim.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME snsim)
  install(FILES "${made_dir}/_snsim" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${made_dir}/snsim.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(TARGETS snsim)
# The recorder, which `snsim record` runs in the user's own Python; pip installs it there (pyproject.toml).
install(DIRECTORY python/snsim DESTINATION "${CMAKE_INSTALL_DATADIR}/snsim/python" PATTERN "__pycache__" EXCLUDE)
install(FILES ${device_files} DESTINATION "${CMAKE_INSTALL_DATADIR}/snsim/devices")
install(FILES ${cluster_files} DESTINATION "${CMAKE_INSTALL_DATADIR}/snsim/clusters")
install(FILES README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME snsim)
set(CPACK_PACKAGE_CONTACT "The snsim developers <snsim@localhost>" CACHE STRING "Maintainer of the package: Name <address>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "memory simulator and capacity planner for neural-network training")
set(CPACK_PACKAGE_DESCRIPTION
    "snsim answers before anyone buys GPU hours: will this network train on
this GPU, how large may batch or network become, which memory strategy
(liveness analysis, offload, tensor cache, recomputation) makes it fit,
and what does that cost in time and traffic?
.
It plans one training iteration, proves the plan safe, simulates it on a
model of the GPU, keeps the runs in a database and draws them. It can run
the very same plan on the CPU. No GPU is needed.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL snsim)
set(CPACK_DEBIAN_SNSIM_PACKAGE_NAME snsim)
set(snsim_recommends "gnuplot-nox | gnuplot")
set(CPACK_COMPONENT_SNSIM_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
if(TARGET snsim_cpu)
  list(APPEND CPACK_COMPONENTS_ALL cpu)
  string(APPEND snsim_recommends ", snsim-cpu")
  set(CPACK_DEBIAN_CPU_PACKAGE_NAME snsim-cpu)
  set(CPACK_DEBIAN_CPU_PACKAGE_DEPENDS "snsim (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_CPU_DESCRIPTION "Lets snsim train on the CPU, with the kernels of oneDNN: snsim run, validate and
calibrate. Simulating needs none of it.")
endif()
set(CPACK_DEBIAN_SNSIM_PACKAGE_RECOMMENDS "${snsim_recommends}")
if(TARGET snsim_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_SNSIM_PACKAGE_SUGGESTS snsim-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME snsim-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "snsim (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_MPI_DESCRIPTION "Lets snsim sweep over many machines: under mpirun, rank 0 hands out the points and
stores them, the other ranks compute.")
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  message(STATUS "no dpkg-shlibdeps (dpkg-dev): a Debian package made here names no libraries it depends on")
endif()
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian.cmake")
include(CPack)
