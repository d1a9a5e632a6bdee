/* Random clusters and groups: no more bytes, ranks or nodes make a collective faster, none is faster than its link, an
 * all-reduce is no slower than a reduce-scatter and an all-gather; and where ranks lie, counted one by one. */
#include "tests/support/seed.h"

#include "sim/cluster/collective.h"
#include "sim/device/conv.h"

static sn_cluster draw_cluster(uint64_t *dice) {
  sn_cluster c = {.fabric = prng_below(dice, SN_FABRICS)};
  c.gpus_per_node = prng_from(dice, 1, 16);
  c.nodes = prng_from(dice, 1, 40);
  c.node.bus = prng_from(dice, 1, 500) * 1e9;
  c.node.line = c.node.bus * 1.2;
  c.nics = prng_from(dice, 1, 16);
  c.net.bus = prng_from(dice, 1, 100) * 1e9;
  c.net.line = c.net.bus;
  return c;
}

/* As many nodes as a mesh might spread so many ranks over. */
static sn_group draw_group(uint64_t *dice, const sn_cluster *c) {
  uint32_t ranks = prng_from(dice, 1, sn_cluster_gpus(c));
  uint32_t least = (ranks + c->gpus_per_node - 1) / c->gpus_per_node, most = ranks < c->nodes ? ranks : c->nodes;
  return (sn_group){ranks, prng_from(dice, least, most)};
}

static void check_times(uint64_t *dice, const sn_cluster *c) {
  sn_group group = draw_group(dice, c);
  uint64_t less = prng_next(dice) >> prng_from(dice, 8, 60), more = less + (prng_next(dice) >> prng_from(dice, 8, 60));
  int64_t ns[SN_COLLECTIVES];
  for (sn_collective kind = 0; kind < SN_COLLECTIVES; kind++) {
    if (kind == SN_COLLECTIVE_SEND) group = (sn_group){2, group.nodes > 1 ? 2 : 1};
    ns[kind] = sn_collective_ns(c, kind, less, group);
    assert_true(ns[kind] >= 0 && (ns[kind] > 0) == (group.ranks > 1));
    assert_true(ns[kind] <= sn_collective_ns(c, kind, more, group));
    double share = kind == SN_COLLECTIVE_SEND ? 1 : (double)(group.ranks - 1) / group.ranks;
    double least =
        (double)less * share * (kind == SN_COLLECTIVE_ALL_REDUCE ? 2 : 1) / sn_collective_bus(c, group) * 1e9;
    assert_true((double)ns[kind] + 1 >= (least < SN_MAX_OP_SECONDS * 1e9 ? least : SN_MAX_OP_SECONDS * 1e9));
    if (kind == SN_COLLECTIVE_SEND || group.nodes < 2) continue;
    assert_true(sn_collective_ns(c, kind, less, (sn_group){group.ranks - 1, group.nodes - 1}) <= ns[kind] ||
                (group.ranks - 1) / (group.nodes - 1) < group.ranks / group.nodes);
  }
  assert_int_equal(ns[SN_COLLECTIVE_ALL_GATHER], ns[SN_COLLECTIVE_REDUCE_SCATTER]);
  assert_true(ns[SN_COLLECTIVE_ALL_REDUCE] <= 2 * ns[SN_COLLECTIVE_ALL_GATHER] + 1);
}

/* Every group that the cluster has room for, at least the first, member by member. */
static uint32_t count_nodes(const sn_cluster *c, uint32_t ranks, uint32_t stride) {
  uint32_t most = 0, groups = sn_cluster_gpus(c) / (ranks * stride);
  for (uint32_t k = 0; k < (groups < 1 ? 1 : groups); k++)
    for (uint32_t j = 0; j < stride; j++) {
      uint32_t nodes = 0, last = UINT32_MAX;
      for (uint32_t i = 0; i < ranks; i++) {
        uint32_t node = (k * ranks * stride + j + i * stride) / c->gpus_per_node;
        nodes += node != last;
        last = node;
      }
      if (nodes > most) most = nodes;
    }
  return most;
}

static void check_nodes(uint64_t *dice, const sn_cluster *c) {
  uint32_t ranks = prng_from(dice, 1, 24), stride = prng_from(dice, 1, 24);
  assert_int_equal(sn_cluster_nodes_of(c, ranks, stride), count_nodes(c, ranks, stride));
}

static void random_groups(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261129);
  for (uint32_t i = 0; i < case_count(100000); i++, seed++) {
    uint64_t dice = seed;
    sn_cluster c = draw_cluster(&dice);
    check_times(&dice, &c);
    check_nodes(&dice, &c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_groups)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
