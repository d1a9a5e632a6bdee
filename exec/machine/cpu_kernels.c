/* CPU kernels, the program's side: loads the module (exec/machine/cpu_module.h) and hands everything on to it. */
#include "exec/machine/cpu_kernels.h"

#include "exec/machine/cpu_module.h"
#include "exec/machine/host.h"

#include <stdlib.h>

struct sn_cpu_kernels {
  const sn_cpu_table *module;
  sn__cpu *made;
  uint64_t made_bytes;
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

/* Takes what the module has made, NULL after an error. */
static sn_cpu_kernels *wrap(const sn_cpu_table *module, sn__cpu *made, sn_err *err) {
  sn_cpu_kernels *k = made ? calloc(1, sizeof *k) : NULL;
  if (k) {
    *k = (sn_cpu_kernels){.module = module, .made = made};
  } else if (made) {
    module->free(made);
    sn_fail_memory(err);
  }
  return k;
}

sn_cpu_kernels *sn_cpu_kernels_bare(const sn_net *net, unsigned threads, bool lasting, sn_err *err) {
  const sn_cpu_table *module = load(err);
  return module ? wrap(module, module->make_bare(net, threads, lasting, err), err) : NULL;
}

enum { OTHER_THREADS = 3 }; /* copies in and out, and who prepares batches */

static uint64_t own_bytes(void) {
  sn_err unread = SN_ERR_INIT;
  sn_resident now;
  return sn_resident_now(&now, &unread) == SN_OK ? now.own : 0;
}

/* The libraries are there already, so that what is more then is the kernels'. */
static sn_status prepare_all(sn_cpu_kernels *k, uint32_t n_layers, sn_err *err) {
  uint64_t before = own_bytes();
  for (uint32_t i = 0; i < n_layers; i++)
    if (sn_cpu_kernels_prepare(k, i, err) != SN_OK) return err->code;
  uint64_t after = own_bytes();
  k->made_bytes = after > before ? after - before : 0;
  return SN_OK;
}

sn_cpu_kernels *sn_cpu_kernels_new(const sn_net *net, unsigned threads, bool lasting, sn_err *err) {
  sn_cpu_kernels *k = sn_cpu_kernels_bare(net, threads, lasting, err);
  if (k && sn_cpu_kernels_try_threads(k, sn_cpu_kernels_threads(k) - 1 + OTHER_THREADS, err) == SN_OK &&
      prepare_all(k, net->n_layers, err) == SN_OK)
    return k;
  sn_cpu_kernels_free(k);
  return NULL;
}

uint64_t sn_cpu_kernels_made_bytes(const sn_cpu_kernels *k) {
  return k->made_bytes;
}

sn_status sn_cpu_kernels_prepare(sn_cpu_kernels *k, uint32_t layer, sn_err *err) {
  return k->module->prepare(k->made, layer, err);
}

sn_cpu_kernels *sn_cpu_kernels_share(const sn_cpu_kernels *k, sn_err *err) {
  return wrap(k->module, k->module->share(k->made, err), err);
}

sn_status sn_cpu_kernels_try_threads(const sn_cpu_kernels *k, unsigned count, sn_err *err) {
  return k->module->try_threads(count, err);
}

void sn_cpu_kernels_free(sn_cpu_kernels *k) {
  if (!k) return;
  k->module->free(k->made);
  free(k);
}

uint64_t sn_cpu_kernels_scratch(const sn_cpu_kernels *k, uint32_t layer, sn_pass pass, sn_step_part part) {
  return k->module->scratch(k->made, layer, pass, part);
}

uint32_t sn_cpu_kernels_layout(const sn_cpu_kernels *k, uint32_t value) {
  return k->module->layout(k->made, value);
}

sn_status sn_cpu_kernels_turn(const sn_cpu_kernels *k, uint32_t layer, float *weights, bool back, sn_err *err) {
  return k->module->turn(k->made, layer, weights, back, err);
}

sn_status sn_cpu_kernels_run(sn_cpu_kernels *k, const sn_call *call, sn_err *err) {
  return k->module->run(k->made, call, err);
}

const char *sn_cpu_kernels_layouts(const sn_cpu_kernels *k) {
  return k->module->layouts(k->made);
}

unsigned sn_cpu_kernels_threads(const sn_cpu_kernels *k) {
  return k->module->threads(k->made);
}

const char *sn_cpu_kernels_version(const sn_cpu_kernels *k) {
  return k->module->version(k->made);
}
