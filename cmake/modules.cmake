# Modules (exec/machine/module.h): parts of snsim in shared objects of their own, loaded at run time, so that the program needs none of
# their libraries. Where those are missing the module is not built, and all else is the same.
file(RELATIVE_PATH module_dir "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/snsim")
if(SKBUILD)
  set(module_dir "../lib/snsim") # of a wheel (cmake/install.cmake)
endif()
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
  if(SNSIM_SANITIZE AND TARGET snsim_cpu)
    # LeakSanitizer crashes over the thread-local data of libraries that come later: have them from the beginning
    target_link_options(${program} PRIVATE -Wl,--no-as-needed)
    target_link_libraries(${program} PRIVATE "${DNNL_LIBRARY}")
  endif()
endfunction()

# The CPU's kernels. find_package(dnnl) would ask for OpenCL headers, so look for the files themselves. Debian's oneDNN runs
# on gcc's OpenMP; another compiler's would be a second one in the same process, with threads of its own.
find_path(DNNL_INCLUDE dnnl.h)
find_library(DNNL_LIBRARY dnnl)
find_package(OpenMP COMPONENTS C)
if(DNNL_INCLUDE AND DNNL_LIBRARY AND OpenMP_C_FOUND AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  file(GLOB cpu_sources CONFIGURE_DEPENDS exec/cpu/*.c)
  # -O3 unrolls loops over rows of constant width and keeps their sums in registers; what comparisons raise nobody asks
  set_source_files_properties(exec/cpu/batch_norm.c PROPERTIES COMPILE_OPTIONS "-O3;-fno-trapping-math")
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

# CUDA: one module for each major version that is found, since a library of one does not load with the driver or the
# libraries of another; the program takes the newest that works (exec/machine/cuda_machine.c). A root is a toolkit's folder, or
# the folder `nvidia` of a Python environment. The tests build the module once more against a GPU in software
# (tests/fake_cuda), with or without a toolkit.
set(SNSIM_CUDA_ROOTS "" CACHE STRING "Folders of further CUDA toolkits with cuDNN 9: a module is built for each major version")
file(GLOB cuda_sources CONFIGURE_DEPENDS exec/cuda/*.c exec/kernel/call.c)

# A header or library below a root, or where CMake looks; sets NAME in the caller.
macro(sn_find_cuda kind name root)
  cmake_language(CALL find_${kind} ${name} NAMES ${ARGN} HINTS "${root}" NO_CACHE
    PATH_SUFFIXES include lib lib64 cu13/include cu13/lib cuda_runtime/include cuda_runtime/lib cublas/include cublas/lib
      cudnn/include cudnn/lib)
endmacro()

# sn_cuda_module(ROOT): snsim_cuda<major>, unless it is there already or something is missing.
function(sn_cuda_module root)
  sn_find_cuda(path runtime "${root}" cuda_runtime_api.h)
  sn_find_cuda(path blas "${root}" cublas_v2.h)
  sn_find_cuda(path dnn "${root}" cudnn.h)
  if(NOT runtime OR NOT blas OR NOT dnn)
    return()
  endif()
  file(STRINGS "${runtime}/cuda_runtime_api.h" version REGEX "define CUDART_VERSION +[0-9]+")
  file(STRINGS "${dnn}/cudnn_version.h" dnn_major REGEX "define CUDNN_MAJOR +(9|[1-9][0-9])")
  string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9].*" "\\1" major "${version}")
  sn_find_cuda(library cudart "${root}" libcudart.so.${major})
  sn_find_cuda(library cublas "${root}" libcublas.so.${major})
  sn_find_cuda(library cudnn "${root}" libcudnn.so.9)
  if(major LESS 12 OR NOT dnn_major OR NOT cudart OR NOT cublas OR NOT cudnn OR TARGET snsim_cuda${major})
    return()
  endif()
  message(STATUS "CUDA module: CUDA ${major} in ${cudart}, cuDNN in ${cudnn}")
  sn_module(snsim_cuda${major} ${cuda_sources})
  target_include_directories(snsim_cuda${major} SYSTEM PRIVATE "${runtime}" "${blas}" "${dnn}")
  target_link_libraries(snsim_cuda${major} PRIVATE "${cudart}" "${cublas}" "${cudnn}")
  sn_install_module(snsim_cuda${major} cuda) # in no Debian package: its libraries are NVIDIA's
  set(snsim_cuda_modules ${snsim_cuda_modules} snsim_cuda${major} PARENT_SCOPE)
  set(snsim_cuda_includes "${runtime}" "${blas}" "${dnn}" PARENT_SCOPE)
endfunction()

set(snsim_cuda_modules "")
find_package(CUDAToolkit 12 QUIET)
foreach(root IN LISTS CUDAToolkit_INCLUDE_DIRS SNSIM_CUDA_ROOTS)
  string(REGEX REPLACE "/include$" "" root "${root}")
  sn_cuda_module("${root}")
endforeach()
if(NOT snsim_cuda_modules)
  message(STATUS "no CUDA module: it needs the CUDA toolkit (12 or newer) and cuDNN 9; see docs/cuda.md")
endif()
