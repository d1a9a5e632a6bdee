/* The CUDA machine: loads the CUDA module (exec/cuda_module.h) and opens the machine in it, so that the same program
 * runs with and without CUDA. */
#include "exec/cuda_module.h"

static const sn_module cuda_module = {
    .name = "CUDA",
    .file = "snsim_cuda.so",
    .table = SN_CUDA_TABLE,
    .variable = "SNSIM_CUDA_MODULE",
    .absent =
        "this build was made without CUDA, or the module was not installed. Build where the CUDA toolkit and cuDNN 9 "
        "are (docs/cuda.md), or use --backend cpu",
    .needs = "the CUDA runtime, cuDNN 9 and cuBLAS where the loader finds them (ldconfig, LD_LIBRARY_PATH)",
};

sn_status sn_machine_open_cuda(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                               sn_err *err) {
  const sn_cuda_table *module = sn_module_load(&cuda_module, err);
  return module ? module->open(route, options, machine, err) : err->code;
}
