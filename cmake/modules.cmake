# Modules (exec/module.h): parts of snsim in shared objects of their own, loaded at run time, so that the program needs none of
# their libraries. Where those are missing the module is not built, and all else is the same.
file(RELATIVE_PATH module_dir "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/snsim")
target_compile_definitions(sn_exec PRIVATE SN_MODULE_DIR="${module_dir}")

# sn_module(TARGET SOURCE...): with copies of its own of the layers below; only the table can be seen from outside.
function(sn_module name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so C_VISIBILITY_PRESET hidden)
  target_link_libraries(${name} PRIVATE sn_options sn_sim sn_models sn_base ${CMAKE_DL_LIBS} m)
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)
endfunction()

# Beside the program that loads it; installed, it still finds the libraries that it was linked with.
function(sn_install_module name component)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/snsim" COMPONENT ${component})
  set_property(GLOBAL APPEND PROPERTY snsim_modules ${name})
endfunction()

# sn_uses_modules(PROGRAM): is built with those modules that snsim finds beside itself.
function(sn_uses_modules program)
  get_property(modules GLOBAL PROPERTY snsim_modules)
  if(modules)
    add_dependencies(${program} ${modules})
  endif()
endfunction()

# The CPU's kernels. find_package(dnnl) would ask for OpenCL headers, so look for the files themselves. Debian's oneDNN runs
# on gcc's OpenMP; another compiler's would be a second one in the same process, with threads of its own.
find_path(DNNL_INCLUDE dnnl.h)
find_library(DNNL_LIBRARY dnnl)
find_package(OpenMP COMPONENTS C)
if(DNNL_INCLUDE AND DNNL_LIBRARY AND OpenMP_C_FOUND AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  file(GLOB cpu_sources CONFIGURE_DEPENDS exec/cpu/*.c)
  sn_module(snsim_cpu ${cpu_sources})
  target_include_directories(snsim_cpu SYSTEM PRIVATE "${DNNL_INCLUDE}")
  target_link_libraries(snsim_cpu PRIVATE OpenMP::OpenMP_C "${DNNL_LIBRARY}")
  sn_install_module(snsim_cpu cpu)
else()
  message(STATUS "no CPU module: it needs oneDNN (libdnnl-dev), OpenMP and gcc; snsim cannot train on the CPU without it")
endif()

# MPI, for sweeps over several machines.
find_package(MPI QUIET COMPONENTS C)
if(MPI_C_FOUND AND NOT SNSIM_SANITIZE STREQUAL fuzzer)
  sn_module(snsim_mpi cli/sweep/mpi_module.c)
  target_link_libraries(snsim_mpi PRIVATE MPI::MPI_C)
  sn_install_module(snsim_mpi mpi)
else()
  message(STATUS "no MPI (libopenmpi-dev): snsim sweep will run on one machine only")
endif()

# CUDA. The tests build this module a second time against a GPU in software (tests/fake_cuda), with or without the toolkit.
file(GLOB cuda_sources CONFIGURE_DEPENDS exec/cuda/*.c exec/call.c)
find_package(CUDAToolkit 12 QUIET)
if(CUDAToolkit_FOUND)
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(CUDNN_INCLUDE)
    file(STRINGS "${CUDNN_INCLUDE}/cudnn_version.h" cudnn_version REGEX "define CUDNN_MAJOR +(9|[1-9][0-9])")
  endif()
endif()
if(CUDAToolkit_FOUND AND TARGET CUDA::cublas AND cudnn_version AND CUDNN_LIBRARY)
  message(STATUS "CUDA module: CUDA ${CUDAToolkit_VERSION}, cuDNN in ${CUDNN_LIBRARY}")
  sn_module(snsim_cuda ${cuda_sources})
  target_include_directories(snsim_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} "${CUDNN_INCLUDE}")
  target_link_libraries(snsim_cuda PRIVATE CUDA::cudart CUDA::cublas "${CUDNN_LIBRARY}")
  sn_install_module(snsim_cuda cuda) # in no Debian package: its libraries are NVIDIA's
else()
  message(STATUS "no CUDA module: it needs the CUDA toolkit (12 or newer) and cuDNN 9; see docs/cuda.md")
endif()
