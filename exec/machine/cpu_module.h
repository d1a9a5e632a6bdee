/* CPU module: what the program (exec/machine/cpu_kernels.c) and the module with the CPU's kernels (exec/cpu/) agree on.
 * The functions are those of exec/machine/cpu_kernels.h. */
#ifndef SN_EXEC_MACHINE_CPU_MODULE_H
#define SN_EXEC_MACHINE_CPU_MODULE_H

#include "exec/kernel/call.h"
#include "exec/machine/module.h"

#include <stdint.h>

typedef struct sn__cpu sn__cpu; /* the module's */

typedef struct sn_cpu_table {
  sn_module_head head;
  sn__cpu *(*make_bare)(const sn_net *net, unsigned threads, bool lasting, sn_err *err);
  sn_status (*prepare)(sn__cpu *made, uint32_t layer, sn_err *err);
  sn__cpu *(*share)(const sn__cpu *made, sn_err *err);
  sn_status (*try_threads)(unsigned count, sn_err *err);
  void (*free)(sn__cpu *made);
  uint64_t (*scratch)(const sn__cpu *made, uint32_t layer, sn_pass pass, sn_step_part part);
  uint32_t (*layout)(const sn__cpu *made, uint32_t value);
  sn_status (*turn)(const sn__cpu *made, uint32_t layer, float *weights, bool back, sn_err *err);
  sn_status (*run)(sn__cpu *made, const sn_call *call, sn_err *err);
  const char *(*layouts)(const sn__cpu *made);
  unsigned (*threads)(const sn__cpu *made);
  const char *(*version)(const sn__cpu *made);
} sn_cpu_table;

#define SN_CPU_TABLE "sn_cpu_module"

#endif
