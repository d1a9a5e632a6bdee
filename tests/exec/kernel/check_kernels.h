/* Runs a net by the CPU kernels, a step at a time, and holds each against the reference. For tests of kernels; a build
 * without the CPU module skips them. */
#ifndef SN_TESTS_CHECK_KERNELS_H
#define SN_TESTS_CHECK_KERNELS_H

#include "exec/machine/cpu_kernels.h"

#include "tests/exec/kernel/compare_kernels.h"
#include "tests/exec/kernel/op_net.h"
#include "tests/exec/kernel/plain_kernels.h"
#include "tests/support/sanitized.h"

static inline uint64_t scratch(void *self, uint32_t layer, sn_pass pass) {
  return sn_cpu_kernels_scratch(self, layer, pass, SN_STEP_WHOLE);
}

static inline sn_cpu_kernels *new_kernels(const sn_net *net, unsigned threads) {
  sn_err err = SN_ERR_INIT;
  sn_cpu_kernels *k = sn_cpu_kernels_new(net, threads, false, &err);
  if (!k && strstr(err.text, "there is no CPU module")) skip(); /* this build */
  if (!k) fail_msg("%s", err.text);
  return k;
}

static inline net_kernels table_of(sn_cpu_kernels *k) {
  return (net_kernels){k, plain_run, scratch};
}

/* One iteration of a net against the reference; frees the net. Says how near to the limit each operator came. */
static inline void check_net(sn_net *net, uint32_t threads, uint64_t seed, uint64_t most_macs, bool report) {
  sn_cpu_kernels *k = new_kernels(net, threads);
  compare c = compare_open(net, table_of(k), seed);
  uint32_t compared = compare_all(&c, most_macs);
  if (report) {
    print_message("%s: %u of %u steps; error / allowed:", net->name, compared, c.fast.route->n_steps);
    for (int op = 0; op < SN_OP_COUNT; op++)
      if (c.worst[op] > 0) print_message(" %s %.2f", sn_op_table[op]->name, c.worst[op]);
    print_message("\n");
  }
  compare_close(&c);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static inline void check_operator(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs) {
  check_net(op_net(op, attr, data, inputs), 1, 5, UINT64_MAX, false);
  check_net(op_net(op, attr, data, inputs), 2, 6, UINT64_MAX, false);
}

static inline void check_deep_operator(sn_op op, sn_attr attr, sn_shape data, uint32_t planes, uint32_t inputs) {
  check_net(volumes_net(op, attr, data, planes, inputs), 1, 5, UINT64_MAX, false);
  check_net(volumes_net(op, attr, data, planes, inputs), 2, 6, UINT64_MAX, false);
}

#endif
