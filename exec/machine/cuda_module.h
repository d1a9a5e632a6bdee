/* CUDA module: what the program (exec/machine/cuda_machine.c) and the module (exec/cuda/) agree on. The ops of a
 * machine that the module opens are called in the module. */
#ifndef SN_EXEC_MACHINE_CUDA_MODULE_H
#define SN_EXEC_MACHINE_CUDA_MODULE_H

#include "exec/machine/machine.h"
#include "exec/machine/module.h"

typedef struct sn_cuda_table {
  sn_module_head head;
  /* Whether its version of CUDA finds a driver that is new enough, and a device. */
  sn_status (*probe)(sn_err *err);
  sn_status (*open)(const sn_route *route, const sn_machine_options *options, sn_machine *machine, sn_err *err);
} sn_cuda_table;

#define SN_CUDA_TABLE "sn_cuda_module"

#endif
