/* The time of a collective: published rows of nccl-tests, latencies and rates by hand, which link is the slowest. */
#include "sim/cluster/collective.h"
#include "sim/device/conv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

/* 2 nodes of 4 GPUs, as much of a bus in all as is given. */
static sn_cluster pair(double gb_per_s) {
  return (sn_cluster){.gpus_per_node = 4,
                      .nodes = 2,
                      .fabric = SN_FABRIC_NVLINK,
                      .node = {450e9, 370e9},
                      .nics = 4,
                      .net = {50e9, gb_per_s * 1e9 / 4}};
}

static double us_of(const sn_cluster *c, sn_collective kind, uint64_t bytes, uint32_t ranks, uint32_t nodes) {
  return (double)sn_collective_ns(c, kind, bytes, (sn_group){ranks, nodes}) / 1e3;
}

/* all_reduce_perf of 8 ranks on 2 nodes of 4 H100, in place: NVIDIA/nccl issue 1411, whose busbw ends at 161.7, and as
 * held out, with nothing of it in the model, NVIDIA/nccl-tests issue 252, of 4 NICs of which 24 GB/s are expected. */
typedef struct row {
  uint64_t bytes;
  double us;
} row;

static const row rows_1411[] = {{2097152, 88.53},  {4194304, 101.5},  {8388608, 158.1},    {16777216, 242.9},
                                {33554432, 434.0}, {67108864, 824.7}, {134217728, 1490.6}, {268435456, 2946.6}};
static const row rows_252[] = {
    {536870912, 9676.9}, {1073741824, 19265}, {2147483648, 39357}, {4294967296, 79688}, {8589934592, 158561}};

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void compare(const row *rows, size_t count, double bus, double worst, double median) {
  sn_cluster c = pair(bus);
  double errors[8];
  for (size_t i = 0; i < count; i++) {
    double us = us_of(&c, SN_COLLECTIVE_ALL_REDUCE, rows[i].bytes, 8, 2);
    errors[i] = fabs(us / rows[i].us - 1);
    print_message("%10llu bytes: %9.1f us, published %9.1f, %+5.1f %%\n", (unsigned long long)rows[i].bytes, us,
                  rows[i].us, 100 * (us / rows[i].us - 1));
    assert_true(errors[i] <= worst);
  }
  qsort(errors, count, sizeof errors[0], by_value);
  assert_true((errors[count / 2] + errors[(count - 1) / 2]) / 2 <= median);
}

/* 12.1 % at 4 MiB is the worst. */
static void published(void **state) {
  (void)state;
  compare(rows_1411, sizeof rows_1411 / sizeof rows_1411[0], 161.7, 0.122, 0.03);
  compare(rows_252, sizeof rows_252 / sizeof rows_252[0], 96, 0.02, 0.02);
}

static sn_cluster load(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_cluster c;
  if (sn_cluster_load(name, &c, &err) != SN_OK) fail_msg("%s", err.text);
  return c;
}

static void is_near(double us, double expected) {
  if (fabs(us - expected) > 0.0011) fail_msg("%.3f us, not %.3f", us, expected);
}

/* By hand, where LL is the slower and where it is the faster. */
static void formula(void **state) {
  (void)state;
  const uint64_t much = 1000000000;
  sn_cluster h = load("h100x8"), g = load("rtx4090x8");
  is_near(us_of(&h, SN_COLLECTIVE_ALL_GATHER, much, 8, 1), 8.4 + 7 * 3.4 + 875e6 / 370e3);
  is_near(us_of(&h, SN_COLLECTIVE_REDUCE_SCATTER, much, 8, 1), 8.4 + 7 * 3.4 + 875e6 / 370e3);
  is_near(us_of(&h, SN_COLLECTIVE_ALL_REDUCE, much, 8, 1), 8.4 + 14 * 3.4 + 1750e6 / 370e3);
  is_near(us_of(&h, SN_COLLECTIVE_SEND, much, 2, 1), 3.4 + 1e9 / 370e3);
  is_near(us_of(&h, SN_COLLECTIVE_ALL_GATHER, 1000, 8, 1), 3.6 + 7 * 0.47 + 875 / 92.5e3);
  is_near(us_of(&g, SN_COLLECTIVE_ALL_GATHER, much, 8, 1), 8.4 + 7 * 5.7 + 875e6 / 25.9e3);
  is_near(us_of(&g, SN_COLLECTIVE_ALL_GATHER, 1000, 8, 1), 3.6 + 7 * 1.0 + 875 / 6.475e3);
  is_near(us_of(&g, SN_COLLECTIVE_SEND, 0, 2, 1), 5.7);
  is_near(us_of(&h, SN_COLLECTIVE_ALL_REDUCE, 0, 16, 2), 3.6 + 28 * 0.47 * 1.8 + 2 * 2.7);
  is_near(us_of(&h, SN_COLLECTIVE_SEND, much, 2, 2), 9.6 + 1e9 / 47e3);
}

/* A node's NICs are shared by the groups that speak at once. */
static void slowest_link(void **state) {
  (void)state;
  sn_cluster h = load("h100x8"), a = load("dgx_a100");
  assert_true(sn_collective_bus(&h, (sn_group){8, 1}) == 370e9);
  assert_true(sn_collective_bus(&h, (sn_group){16, 2}) == 370e9); /* 8 NICs carry 376 */
  assert_true(sn_collective_bus(&h, (sn_group){8, 2}) == 188e9);
  assert_true(sn_collective_bus(&h, (sn_group){4, 4}) == 47e9);
  assert_true(sn_collective_bus(&h, (sn_group){12, 5}) == 94e9); /* the node with fewest, at least */
  assert_true(sn_collective_bus(&a, (sn_group){16, 2}) == 192e9);
  h.nics = 2;
  assert_true(sn_collective_bus(&h, (sn_group){16, 2}) == 94e9);
  assert_true(sn_collective_bus(&h, (sn_group){2, 2}) == 11.75e9);
  h.nics = 32; /* a GPU has one */
  assert_true(sn_collective_bus(&h, (sn_group){2, 2}) == 47e9);
}

static void bounds(void **state) {
  (void)state;
  sn_cluster h = load("h100x8");
  for (sn_collective kind = 0; kind < SN_COLLECTIVES; kind++) {
    assert_int_equal(sn_collective_ns(&h, kind, UINT64_MAX, (sn_group){1, 1}), 0);
    assert_true(sn_collective_ns(&h, kind, 0, (sn_group){2, 1}) > 0);
    h.node.bus = 1e6; /* the slowest a file may have */
    assert_true(sn_collective_ns(&h, kind, UINT64_MAX, (sn_group){2, 1}) == (int64_t)(SN_MAX_OP_SECONDS * 1e9));
  }
  assert_string_equal(sn_collective_name(SN_COLLECTIVE_ALL_GATHER), "all-gather");
  assert_string_equal(sn_collective_name(SN_COLLECTIVE_SEND), "send");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(formula),
                                     cmocka_unit_test(slowest_link), cmocka_unit_test(bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
