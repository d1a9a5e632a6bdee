/* CUDA module: what the program and the module that it loads at run time agree on.
 *
 * The module (exec/cuda/) is a shared object of its own, linked with the CUDA runtime, cuDNN and cuBLAS, with its own
 * copies of the layers below. It exports one function, SN_CUDA_ENTRY. Structures of the headers cross the border, so
 * both must be of the same build: `abi` and `version` are compared before anything else is looked at. The ops of a
 * machine that the module opens are called in the module; it stays loaded until the program ends.
 */
#ifndef SN_EXEC_CUDA_MODULE_H
#define SN_EXEC_CUDA_MODULE_H

#include "exec/machine.h"

#include <stdint.h>

/* The sizes of what crosses the border, so that a changed structure is a changed number. */
#define SN_CUDA_ABI                                                                                                    \
  ((uint64_t)sizeof(sn_machine_ops) << 48 ^ (uint64_t)sizeof(sn_machine_options) << 40 ^                               \
   (uint64_t)sizeof(sn_machine) << 28 ^ (uint64_t)sizeof(sn_backend_ops) << 20 ^ (uint64_t)sizeof(sn_plan) << 12 ^     \
   (uint64_t)sizeof(sn_route) << 4 ^ (uint64_t)sizeof(sn_layer))

typedef struct sn_cuda_module {
  uint64_t abi;        /* SN_CUDA_ABI */
  const char *version; /* SNSIM_VERSION */
  sn_status (*open)(const sn_route *route, const sn_machine_options *options, sn_machine *machine, sn_err *err);
} sn_cuda_module;

#define SN_CUDA_ENTRY "sn_cuda_module_get"
typedef const sn_cuda_module *(*sn_cuda_entry)(void);

#endif
