/* A CPU module that computes nothing and dies as libraries do: SN_DIES says how ("segv", "abort", "exit"), SN_DIES_AT
 * in which run of a kernel. */
#include "base/build_id.h"
#include "exec/machine/cpu_module.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sn__cpu {
  unsigned long runs, last;
};

static void die(const char *how) {
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "abort") == 0) {
    fputs("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n", stderr);
    abort();
  }
  fputs("\nlibgomp: Thread creation failed: Resource temporarily unavailable\n", stderr);
  exit(1);
}

static sn__cpu *make(const sn_net *net, unsigned threads, bool lasting, sn_err *err) {
  const char *at = getenv("SN_DIES_AT");
  sn__cpu *k = calloc(1, sizeof *k);
  (void)net, (void)threads, (void)lasting;
  if (k)
    k->last = at ? strtoul(at, NULL, 10) : 0;
  else
    sn_fail_memory(err);
  return k;
}

static sn_status turn(const sn__cpu *k, uint32_t layer, float *weights, bool back, sn_err *err) {
  (void)k, (void)layer, (void)weights, (void)back, (void)err;
  return SN_OK;
}

static void free_kernels(sn__cpu *k) {
  free(k);
}

static sn_status prepare(sn__cpu *k, uint32_t layer, sn_err *err) {
  (void)k, (void)layer, (void)err;
  return SN_OK;
}

static sn__cpu *share(const sn__cpu *k, sn_err *err) {
  sn__cpu *other = malloc(sizeof *other);
  if (other)
    *other = *k;
  else
    sn_fail_memory(err);
  return other;
}

static sn_status try_threads(unsigned count, sn_err *err) {
  (void)count, (void)err;
  return SN_OK;
}

static uint64_t scratch(const sn__cpu *k, uint32_t layer, sn_pass pass, sn_step_part part) {
  (void)k, (void)layer, (void)pass, (void)part;
  return 0;
}

static sn_status run(sn__cpu *k, const sn_call *call, sn_err *err) {
  const char *how = getenv("SN_DIES");
  (void)err;
  for (uint32_t i = 0; call->pass == SN_FORWARD && i < call->net->layers[call->layer].n_outputs; i++)
    memset(call->y[i], 0, call->net->layers[call->layer].out.n * sizeof(float));
  if (++k->runs == k->last) die(how ? how : "exit");
  return SN_OK;
}

static uint32_t layout(const sn__cpu *k, uint32_t value) {
  (void)k, (void)value;
  return 1;
}

static const char *layouts(const sn__cpu *k) {
  (void)k;
  return "plain";
}

static unsigned threads_of(const sn__cpu *k) {
  (void)k;
  return 1;
}

static const char *version(const sn__cpu *k) {
  (void)k;
  return "none";
}

extern SN_MODULE_TABLE const sn_cpu_table sn_cpu_module;
const sn_cpu_table sn_cpu_module = {.head = {sn_build_id},
                                    .make_bare = make,
                                    .prepare = prepare,
                                    .share = share,
                                    .try_threads = try_threads,
                                    .free = free_kernels,
                                    .scratch = scratch,
                                    .layout = layout,
                                    .turn = turn,
                                    .run = run,
                                    .layouts = layouts,
                                    .threads = threads_of,
                                    .version = version};
