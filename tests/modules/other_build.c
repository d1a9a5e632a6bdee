/* A CUDA module of another build: the program must refuse it before it looks at anything else. */
#include "exec/cuda_module.h"

__attribute__((visibility("default"))) const sn_cuda_module *sn_cuda_module_get(void);

const sn_cuda_module *sn_cuda_module_get(void) {
  static const sn_cuda_module module = {.abi = SN_CUDA_ABI + 1, .version = SNSIM_VERSION};
  return &module;
}
