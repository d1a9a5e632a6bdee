/* The CUDA machine: loads a CUDA module (exec/machine/cuda_module.h) and opens the machine in it, so that the same
 * program runs with and without CUDA.
 *
 * There may be a module for each major version of CUDA: one needs the libraries of its version and a driver that is new
 * enough. The newest that loads and finds a device is taken. Where none does, the module that came furthest says why: a
 * driver or a device that is missing is more telling than libraries of another version. */
#include "exec/machine/cuda_module.h"

#include <stdlib.h>

#define CUDA_MODULE(major)                                                                                             \
  {                                                                                                                    \
    .name = "CUDA", .file = "snsim_cuda" major ".so", .table = SN_CUDA_TABLE, .variable = "SNSIM_CUDA_MODULE",         \
    .absent = "this build was made without CUDA, or the module was not installed. Build where the CUDA toolkit and "   \
              "cuDNN 9 are (docs/cuda.md), or use --backend cpu",                                                      \
    .needs = "the runtime and cuBLAS of CUDA " major " and cuDNN 9 where the loader finds them (ldconfig, "            \
             "LD_LIBRARY_PATH)",                                                                                       \
  }

static const sn_module modules[] = {CUDA_MODULE("13"), CUDA_MODULE("12")};

/* How far a module came; the further, the more telling its error. */
typedef enum progress { ABSENT, FOUND, LOADED } progress;

static const sn_cuda_table *try_module(const sn_module *module, progress *came, sn_err *err) {
  *came = sn_module_is_there(module) ? FOUND : ABSENT;
  const sn_cuda_table *table = sn_module_load(module, err);
  if (!table) return NULL;
  *came = LOADED;
  return table->probe(err) == SN_OK ? table : NULL;
}

sn_status sn_machine_open_cuda(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                               sn_err *err) {
  size_t count = getenv("SNSIM_CUDA_MODULE") ? 1 : sizeof modules / sizeof modules[0];
  sn_err best = SN_ERR_INIT;
  progress furthest = ABSENT;
  for (size_t i = 0; i < count; i++) {
    sn_err failed = SN_ERR_INIT;
    progress came;
    const sn_cuda_table *table = try_module(&modules[i], &came, &failed);
    if (table) return table->open(route, options, machine, err);
    if (best.code == SN_OK || came > furthest) best = failed, furthest = came;
  }
  *err = best;
  return err->code;
}
