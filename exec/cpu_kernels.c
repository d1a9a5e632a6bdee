/* CPU kernels, the program's side: loads the module (exec/cpu_module.h) and hands everything on to it. */
#include "exec/cpu_kernels.h"

#include "exec/cpu_module.h"

#include <stdlib.h>

struct sn_cpu_kernels {
  const sn_cpu_table *module;
  sn__cpu *made;
};

static const sn_module cpu_module = {
    .name = "CPU",
    .file = "snsim_cpu.so",
    .table = SN_CPU_TABLE,
    .variable = "SNSIM_CPU_MODULE",
    .absent = "install the package snsim-cpu, or build snsim with gcc where oneDNN is (Debian: libdnnl-dev). Only "
              "training on the CPU needs it",
    .needs = "oneDNN 2.6 and gcc's OpenMP where the loader finds them (Debian: apt-get install libdnnl2 libgomp1)",
};

/* Idle OpenMP threads spin, which costs far more than it gains where processors are shared. OpenMP reads its policy
 * when the module is loaded. */
static const sn_cpu_table *load(sn_err *err) {
  setenv("OMP_WAIT_POLICY", "passive", 0);
  return sn_module_load(&cpu_module, err);
}

sn_cpu_kernels *sn_cpu_kernels_new(const sn_net *net, unsigned threads, sn_err *err) {
  sn_cpu_kernels *k = calloc(1, sizeof *k);
  if (!k) {
    sn_fail_memory(err);
    return NULL;
  }
  k->module = load(err);
  if (k->module) k->made = k->module->make(net, threads, err);
  if (k->made) return k;
  free(k);
  return NULL;
}

void sn_cpu_kernels_free(sn_cpu_kernels *k) {
  if (!k) return;
  k->module->free(k->made);
  free(k);
}

uint64_t sn_cpu_kernels_scratch(const sn_cpu_kernels *k, uint32_t layer, sn_pass pass) {
  return k->module->scratch(k->made, layer, pass);
}

sn_status sn_cpu_kernels_run(sn_cpu_kernels *k, const sn_call *call, sn_err *err) {
  return k->module->run(k->made, call, err);
}

unsigned sn_cpu_kernels_threads(const sn_cpu_kernels *k) {
  return k->module->threads(k->made);
}

const char *sn_cpu_kernels_version(const sn_cpu_kernels *k) {
  return k->module->version(k->made);
}
