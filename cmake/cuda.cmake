# The CUDA module: exec/cuda/ with the layers below it in one shared object, which the program loads at run time
# (exec/cuda_machine.c). Where the CUDA toolkit or cuDNN is missing there is none, and all else is the same. The tests build
# it a second time against a GPU in software (tests/fake_cuda), with or without the toolkit.
file(RELATIVE_PATH cuda_module_dir "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/snsim")
target_compile_definitions(sn_exec PRIVATE SN_CUDA_MODULE_DIR="${cuda_module_dir}")
target_link_libraries(sn_exec PRIVATE ${CMAKE_DL_LIBS})
file(GLOB cuda_sources CONFIGURE_DEPENDS exec/cuda/*.c exec/call.c)

# sn_cuda_module(TARGET SOURCE...): only the entry can be seen from outside.
function(sn_cuda_module name)
  add_library(${name} MODULE ${cuda_sources} ${ARGN})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden)
  target_link_libraries(${name} PRIVATE sn_options sn_sim sn_models sn_base ${CMAKE_DL_LIBS} m)
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)
endfunction()

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
  sn_cuda_module(snsim_cuda)
  target_include_directories(snsim_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} "${CUDNN_INCLUDE}")
  target_link_libraries(snsim_cuda PRIVATE CUDA::cudart CUDA::cublas "${CUDNN_LIBRARY}")
  # beside the program that loads it; installed, it still finds the libraries that it was linked with
  set_target_properties(snsim_cuda PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS snsim_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/snsim" COMPONENT cuda) # in no Debian package: its
                                                                           # libraries are NVIDIA's
else()
  message(STATUS "no CUDA module: it needs the CUDA toolkit (12 or newer) and cuDNN 9; see docs/cuda.md")
endif()
