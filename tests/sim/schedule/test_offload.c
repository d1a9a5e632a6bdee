/* Offload: which tensors leave, when, and when they come back; AlexNet and a small branching net by hand. */
#include "sim/schedule/offload.h"

#include "sim/graph/route.h"
#include "tests/support/pipeline.h"

/* Steps count from 1 here. */
typedef struct swap {
  const char *tensor;
  uint32_t release, fetch;
} swap;

typedef struct setting {
  const char *net;
  sn_recompute recompute;
  sn_offload offload;
} setting;

static void check_order(const sn_swaps *s) {
  for (uint32_t i = 1; i < s->count; i++) {
    assert_true(s->by_release[i - 1].release_step <= s->by_release[i].release_step);
    assert_true(s->by_fetch[i - 1].fetch_step <= s->by_fetch[i].fetch_step);
  }
}

static const sn_swap *find(const sn_swap *swaps, uint32_t count, uint32_t tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (swaps[i].tensor == tensor) return &swaps[i];
  return NULL;
}

/* The swaps are exactly the expected ones, in both lists and in the flags. */
static void check_swaps(setting at, const swap *expected, size_t count) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(at.net, 2);
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_schedule *schedule = sn_schedule_new(route, at.recompute, &err);
  sn_swaps swaps;
  sn_swaps_make(schedule, at.offload, &swaps, &err);
  must(&err);
  uint32_t flags = 0;
  for (uint32_t t = 0; swaps.copy_step && t < route->n_tensors; t++) flags += swaps.copy_step[t] != SN_NONE;
  assert_int_equal(flags, swaps.count);
  for (size_t i = 0; i < count; i++) {
    uint32_t tensor = find_tensor(route, expected[i].tensor);
    const sn_swap *release = find(swaps.by_release, swaps.count, tensor);
    const sn_swap *fetch = find(swaps.by_fetch, swaps.count, tensor);
    if (!release || !fetch || swaps.copy_step[tensor] == SN_NONE) fail_msg("%s stays", expected[i].tensor);
    if (release->release_step + 1 != expected[i].release || fetch->fetch_step + 1 != expected[i].fetch)
      fail_msg("%s: released at %u, fetched at %u", expected[i].tensor, release->release_step + 1,
               fetch->fetch_step + 1);
  }
  assert_int_equal(swaps.count, count);
  check_order(&swaps);
  sn_swaps_clear(&swaps);
  sn_schedule_free(schedule);
  sn_route_free(route);
  sn_net_free(net);
}

/* Forward: conv1 1, conv2 5, conv3 9, conv4 11, conv5 13, fc1 16. Backward is 47 minus that: CONV at 34, 36, 38,
 * 42, 46. A CONV output is read by its own ReLU's backward: relu5 at 33 comes before any CONV backward, so conv5's
 * output returns with the backward pass, at 24; relu4 at 35 is behind conv5's backward, at 34; and so on. */
static void alexnet(void **state) {
  (void)state;
  static const swap swaps[] = {
      {"conv1.y", 5, 42}, {"conv2.y", 9, 38}, {"conv3.y", 11, 36}, {"conv4.y", 13, 34}, {"conv5.y", 16, 24}};
  check_swaps((setting){"alexnet", SN_RECOMPUTE_NONE, SN_OFFLOAD_CONV}, swaps, 5);
}

/* With recomputation they are needed one CONV earlier, as roots: conv1's output for pool1, which conv2's backward at 42
 * reads. Only conv5 stays as it is: fc1's backward at 31 needs pool5, and that, too, is before any CONV backward. */
static void alexnet_recomputed(void **state) {
  (void)state;
  static const swap swaps[] = {
      {"conv1.y", 5, 38}, {"conv2.y", 9, 36}, {"conv3.y", 11, 34}, {"conv4.y", 13, 24}, {"conv5.y", 16, 24}};
  check_swaps((setting){"alexnet", SN_RECOMPUTE_SPEED, SN_OFFLOAD_CONV}, swaps, 5);
  check_swaps((setting){"alexnet", SN_RECOMPUTE_MEMORY, SN_OFFLOAD_CONV}, swaps, 5);
  check_swaps((setting){"alexnet", SN_RECOMPUTE_COST, SN_OFFLOAD_CONV}, swaps, 5);
}

/*                       .-> c2 -> a2 --.
 *   c1 -> a1 -> fork ---|              +-> join -> cat(join, c4) -> g -> fc -> softmax
 *    1     2     3      '-> c3 --------'            .
 *                        c4 is the third branch ----'
 * Forward: c1 1, a1 2, fork 3, c2 4, a2 5, c3 6, join 7, c4 8, cat 9, g 10, fc 11, softmax 12; N = 12, backward of i is
 * 25-i: fc 14, g 15, cat 16, c4 17, join 18, c3 19, a2 20, c2 21, fork 22, a1 23, c1 24. */
static const char branching[] = "{\"snsim_net\":1,\"name\":\"branching\",\"input\":[2,8,8],\"layers\":["
                                "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"a1\",\"op\":\"ACT\"},"
                                "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"a2\",\"op\":\"ACT\"},"
                                "{\"name\":\"c3\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"input\":\"a1\"},"
                                "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"a2\",\"c3\"]},"
                                "{\"name\":\"c4\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"input\":\"a1\"},"
                                "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"join\",\"c4\"]},"
                                "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                                "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                                "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* c3 and c4 feed JOIN and CONCAT, which read nothing in backward: no copy is worth it. c1's output is read by a1 only
 * (2) and c2's by a2 (5); they go at the next CONV behind that. */
static void branches(void **state) {
  (void)state;
  static const swap swaps[] = {{"c1.y", 4, 21}, {"c2.y", 6, 19}};
  check_swaps((setting){branching, SN_RECOMPUTE_NONE, SN_OFFLOAD_CONV}, swaps, 2);
}

/* FORK's branches are the x of c2 (21), c3 (19) and c4 (17); CONCAT's output that of g (15). JOIN's output is read by
 * CONCAT only. Each branch goes behind its own reader's forward: c2 4, c3 6, c4 8 (then fc at 11); CONCAT's behind g.
 * The branch for c4 is needed at 17, the first CONV backward, so it comes with the backward pass, at 13. */
static void branches_with_joints(void **state) {
  (void)state;
  static const swap swaps[] = {{"c1.y", 4, 21},       {"c2.y", 6, 19},        {"a1/fork.y0", 6, 19},
                               {"a1/fork.y1", 8, 17}, {"a1/fork.y2", 11, 13}, {"cat.y", 11, 13}};
  check_swaps((setting){branching, SN_RECOMPUTE_NONE, SN_OFFLOAD_CHECKPOINTS}, swaps, 6);
}

/* Behind the last CONV and FC nothing would ever be released. */
static void never_released(void **state) {
  (void)state;
  static const char net[] = "{\"snsim_net\":1,\"name\":\"short\",\"input\":[2,8,8],\"layers\":["
                            "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3},"
                            "{\"name\":\"a1\",\"op\":\"ACT\"},"
                            "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3},"
                            "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  static const swap swaps[] = {{"c1.y", 3, 8}}; /* backward: softmax 6, g 7, c2 8, a1 9, c1 10 */
  check_swaps((setting){net, SN_RECOMPUTE_NONE, SN_OFFLOAD_CONV}, swaps, 1);
}

/* vdnn-conv: what conv2 to conv5 read (conv1 reads the input batch), gone before the next step, back one CONV ahead. */
static void conv_inputs(void **state) {
  (void)state;
  static const swap linear[] = {{"pool1.y", 6, 38}, {"pool2.y", 10, 36}, {"relu3.y", 12, 34}, {"relu4.y", 14, 24}};
  static const swap branched[] = {{"a1/fork.y0", 5, 19}, {"a1/fork.y1", 7, 17}, {"a1/fork.y2", 9, 13}};
  check_swaps((setting){"alexnet", SN_RECOMPUTE_NONE, SN_OFFLOAD_CONV_INPUTS}, linear, 4);
  check_swaps((setting){branching, SN_RECOMPUTE_NONE, SN_OFFLOAD_CONV_INPUTS}, branched, 3);
}

/* vdnn-all: what the layers up to pool5 read; fc1 reads pool5's output, the classifier stays. Back one step ahead of
 * the reader's backward. */
static void all_inputs(void **state) {
  (void)state;
  static const swap swaps[] = {{"conv1.y", 3, 44},  {"relu1.y", 4, 43},  {"lrn1.y", 5, 42},   {"pool1.y", 6, 41},
                               {"conv2.y", 7, 40},  {"relu2.y", 8, 39},  {"lrn2.y", 9, 38},   {"pool2.y", 10, 37},
                               {"conv3.y", 11, 36}, {"relu3.y", 12, 35}, {"conv4.y", 13, 34}, {"relu4.y", 14, 33},
                               {"conv5.y", 15, 32}, {"relu5.y", 16, 31}};
  check_swaps((setting){"alexnet", SN_RECOMPUTE_NONE, SN_OFFLOAD_INPUTS}, swaps, 14);
}

/* tensorflow: of 46 steps more than 34.5 without use. conv2's output is read at 6 and at 41, 35 steps later; relu2's at
 * 7 and 40, 33. */
static void long_lived(void **state) {
  (void)state;
  static const swap swaps[] = {
      {"conv1.y", 5, 42}, {"relu1.y", 5, 42}, {"lrn1.y", 5, 42}, {"pool1.y", 9, 38}, {"conv2.y", 9, 38}};
  check_swaps((setting){"alexnet", SN_RECOMPUTE_NONE, SN_OFFLOAD_LONG_LIVED}, swaps, 5);
}

static void none_and_cache(void **state) {
  (void)state;
  check_swaps((setting){"alexnet", SN_RECOMPUTE_COST, SN_OFFLOAD_NONE}, NULL, 0);
  check_swaps((setting){"alexnet", SN_RECOMPUTE_COST, SN_OFFLOAD_CACHE}, NULL, 0);
  check_swaps((setting){"alexnet", SN_RECOMPUTE_COST, SN_OFFLOAD_NARROW_CACHE}, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(alexnet),        cmocka_unit_test(alexnet_recomputed),
      cmocka_unit_test(branches),       cmocka_unit_test(branches_with_joints),
      cmocka_unit_test(never_released), cmocka_unit_test(none_and_cache),
      cmocka_unit_test(conv_inputs),    cmocka_unit_test(all_inputs),
      cmocka_unit_test(long_lived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
