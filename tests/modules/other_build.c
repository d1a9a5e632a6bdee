/* A CUDA module of another build: the program must refuse it before it looks at anything else. */
#include "exec/machine/cuda_module.h"

extern SN_MODULE_TABLE const sn_cuda_table sn_cuda_module;
const sn_cuda_table sn_cuda_module = {{"0.0.1-0123456789abcdef"}, NULL, NULL};
