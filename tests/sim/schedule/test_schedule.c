/* Schedule: AlexNet's recomputations by hand, what stays and what is dropped, and that no execution of any net misses
 * what it reads. */
#include "tests/support/pipeline.h"

#include "models/build/build.h"
#include "models/op/op.h"
#include "sim/graph/route.h"

#include <stdio.h>
#include <stdlib.h>

static sn_schedule *make_schedule(const sn_route *route, sn_recompute recompute) {
  sn_err err = SN_ERR_INIT;
  sn_schedule *schedule = sn_schedule_new(route, recompute, &err);
  must(&err);
  assert_non_null(schedule);
  return schedule;
}

/* The re-runs in front of each backward step: "step: layer layer | ...". */
static char *print_reruns(const sn_schedule *s) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  uint32_t at = SN_NONE;
  for (uint32_t e = 0; e < s->n_executions; e++) {
    const sn_execution *x = &s->executions[e];
    if (!x->rerun) continue;
    const char *layer = s->route->layers[s->route->steps[x->step].layer].name;
    if (x->at_step != at) fprintf(out, "%s%u:", at == SN_NONE ? "" : " | ", x->at_step + 1);
    at = x->at_step;
    fprintf(out, " %s", layer);
  }
  fclose(out);
  return text;
}

static void check_reruns(sn_recompute recompute, uint32_t count, const char *expected) {
  sn_net *net = load_net("alexnet", 1);
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_schedule *s = make_schedule(route, recompute);
  char *text = print_reruns(s);
  assert_string_equal(text, expected);
  assert_int_equal(s->reruns, count);
  assert_int_equal(s->n_executions, route->n_steps + count);
  free(text);
  sn_schedule_free(s);
  sn_route_free(route);
  sn_net_free(net);
}

/* Backward step 47-i is that of layer i. Each step finds what the one before it read (a step's x is the next one's y)
 * and re-runs the rest from the nearest CONV or FC:
 *   25 fc3   needs drop2: relu7 drop2 from fc2        38 conv3 needs pool2: relu2 lrn2 pool2 from conv2
 *   26 drop2 reads its mask only, so drop2 goes       39 pool2 needs lrn2 (pool2 was kept): relu2 lrn2
 *   27 relu7 needs relu7 again                        40 lrn2  needs relu2 (lrn2 was kept): relu2
 *   28 fc2   needs drop1: relu6 drop1 from fc1        41 relu2 has relu2 and conv2
 *   30 relu6 needs relu6 again                        42 conv2 needs pool1: relu1 lrn1 pool1 from conv1
 *   31 fc1   needs pool5: relu5 pool5 from conv5      43 pool1 needs lrn1: relu1 lrn1
 *   32 pool5 needs relu5                              44 lrn1  needs relu1
 *   34, 36   need relu4 and relu3, one each                                                        23 in all */
static void memory_centric_alexnet(void **state) {
  (void)state;
  check_reruns(SN_RECOMPUTE_MEMORY, 23,
               "25: relu7 drop2 | 27: relu7 | 28: relu6 drop1 | 30: relu6 | 31: relu5 pool5 | 32: relu5 | 34: relu4 | "
               "36: relu3 | 38: relu2 lrn2 pool2 | 39: relu2 lrn2 | 40: relu2 | 42: relu1 lrn1 pool1 | "
               "43: relu1 lrn1 | 44: relu1");
}

/* Each of the 7 + 2 + 3 + 2 dropped layers once. */
static void speed_centric_alexnet(void **state) {
  (void)state;
  check_reruns(SN_RECOMPUTE_SPEED, 14,
               "25: relu7 drop2 | 28: relu6 drop1 | 31: relu5 pool5 | 34: relu4 | 36: relu3 | 38: relu2 lrn2 pool2 | "
               "42: relu1 lrn1 pool1");
}

/* Elements an image: l_peak is lrn1's (and relu1's) 3 x 290400 = 871200. Behind conv1 pool1's backward would need
 * 290400 x 3 + 69984 and the gradients 69984 + 290400, 1301568 in all: memory-centric. Behind conv2 it is
 * 186624 x 3 + 43264 + 43264 + 186624 = 833024: speed-centric, and so are the smaller ones. */
static void cost_aware_alexnet(void **state) {
  (void)state;
  check_reruns(SN_RECOMPUTE_COST, 17,
               "25: relu7 drop2 | 28: relu6 drop1 | 31: relu5 pool5 | 34: relu4 | 36: relu3 | 38: relu2 lrn2 pool2 | "
               "42: relu1 lrn1 pool1 | 43: relu1 lrn1 | 44: relu1");
  sn_net *net = load_net("alexnet", 10);
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  assert_int_equal(sn_schedule_layer_peak(route), 10 * 4 * 871200);
  sn_route_free(route);
  sn_net_free(net);
}

/* All tensors up to c2 have one size s. l_peak is 3s (c2: x, dy, dx). Behind c1, a and b together with c1's output are
 * 3s, which alone would not be too much, but b's backward reads and writes 2s of gradients beside them: memory-centric.
 */
static void gradients_count(void **state) {
  (void)state;
  static const char text[] = "{\"snsim_net\":1,\"name\":\"g\",\"input\":[4,8,8],\"layers\":["
                             "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                             "{\"name\":\"a\",\"op\":\"ACT\"},"
                             "{\"name\":\"b\",\"op\":\"BN\"},"
                             "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                             "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":4},"
                             "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  sn_net *net = load_net(text, 1);
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  assert_int_equal(sn_schedule_layer_peak(route), 3 * 4 * 8 * 8 * 4);
  sn_schedule *s = make_schedule(route, SN_RECOMPUTE_COST);
  char *reruns = print_reruns(s);
  assert_string_equal(reruns, "9: a b | 10: a");
  free(reruns);
  sn_schedule_free(s);
  s = make_schedule(route, SN_RECOMPUTE_LAYERS); /* batch norm stays: c2 finds b, b needs a */
  reruns = print_reruns(s);
  assert_string_equal(reruns, "10: a");
  free(reruns);
  sn_schedule_free(s);
  sn_route_free(route);
  sn_net_free(net);
}

/* mxnet: relu, lrn and pool are dropped and re-run once each; drop1 and drop2 stay, so fc2 and fc3 find their inputs.
 */
static void layers_of_alexnet(void **state) {
  (void)state;
  check_reruns(SN_RECOMPUTE_LAYERS, 12,
               "27: relu7 | 30: relu6 | 31: relu5 pool5 | 34: relu4 | 36: relu3 | 38: relu2 lrn2 pool2 | "
               "42: relu1 lrn1 pool1");
}

static void no_recomputation(void **state) {
  (void)state;
  check_reruns(SN_RECOMPUTE_NONE, 0, "");
}

/* Extra forwards of the paper's table 1: speed / memory / cost. */
static void resnets(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t extra[3];
  } rows[] = {{"resnet50", {84, 118, 85}}, {"resnet101", {169, 237, 170}}};
  static const sn_recompute kinds[] = {SN_RECOMPUTE_SPEED, SN_RECOMPUTE_MEMORY, SN_RECOMPUTE_COST};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_net *net = load_net(rows[i].net, 2);
    sn_err err = SN_ERR_INIT;
    sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
    for (int k = 0; k < 3; k++) {
      sn_schedule *s = make_schedule(route, kinds[k]);
      assert_int_equal(s->reruns, rows[i].extra[k]);
      sn_schedule_free(s);
    }
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* ---- when a tensor may go ---- */

static bool last_use_of(const sn_schedule *s, uint32_t execution, uint32_t tensor) {
  const sn_execution *x = &s->executions[execution];
  const sn_step *step = &s->route->steps[x->step];
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (s->route->accesses[step->first_access + i].tensor == tensor) return s->last_use[x->first_last_use + i];
  fail_msg("execution %u does not touch tensor %u", execution, tensor);
  return false;
}

static uint32_t find_execution(const sn_schedule *s, uint32_t at_step, const char *layer, bool rerun) {
  for (uint32_t e = 0; e < s->n_executions; e++) {
    const sn_execution *x = &s->executions[e];
    if (x->at_step + 1 != at_step || x->rerun != rerun) continue;
    if (strcmp(s->route->layers[s->route->steps[x->step].layer].name, layer) == 0) return e;
  }
  fail_msg("%s does not run at step %u", layer, at_step);
  return 0;
}

typedef struct use {
  uint32_t at_step;
  const char *layer;
  bool rerun;
  const char *tensor;
  bool last;
} use;

static void check_uses(sn_recompute recompute, const use *uses, size_t count) {
  sn_net *net = load_net("alexnet", 1);
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_schedule *s = make_schedule(route, recompute);
  for (size_t i = 0; i < count; i++) {
    const use *u = &uses[i];
    uint32_t execution = find_execution(s, u->at_step, u->layer, u->rerun);
    if (last_use_of(s, execution, find_tensor(route, u->tensor)) != u->last)
      fail_msg("step %u, %s%s: %s %s", u->at_step, u->layer, u->rerun ? " again" : "", u->tensor,
               u->last ? "must go" : "must stay");
  }
  sn_schedule_free(s);
  sn_route_free(route);
  sn_net_free(net);
}

static void plain_liveness(void **state) {
  (void)state;
  static const use uses[] = {
      {2, "relu1", false, "conv1.y", false},  {45, "relu1", false, "conv1.y", true},
      {43, "pool1", false, "pool1.y", true},  {46, "conv1", false, "pool1.dx", true},
      {46, "conv1", false, "conv1.dx", true}, /* nobody reads the gradient of the input batch */
      {19, "fc2", false, "drop1.y", false},   {28, "fc2", false, "drop1.y", true},
      {24, "softmax", false, "fc3.y", true},  {25, "fc3", false, "softmax.y", true},
  };
  check_uses(SN_RECOMPUTE_NONE, uses, sizeof uses / sizeof uses[0]);
}

/* Dropped after the last forward use; made again, an intermediate goes as soon as the chain has read it (memory), or
 * stays till its backward steps have (speed); what a step read stays for the next one. */
static void drops_and_keeps(void **state) {
  (void)state;
  static const use memory[] = {
      {2, "relu1", false, "conv1.y", false}, /* a checkpoint */
      {3, "lrn1", false, "relu1.y", true},    {4, "pool1", false, "lrn1.y", true},
      {5, "conv2", false, "pool1.y", true},   {42, "relu1", true, "relu1.y", false},
      {42, "lrn1", true, "relu1.y", true},    {42, "pool1", true, "lrn1.y", true},
      {42, "conv2", false, "pool1.y", false}, /* the y of the next step */
      {43, "lrn1", true, "relu1.y", true},    {43, "pool1", false, "pool1.y", true},
      {43, "pool1", false, "lrn1.y", false},  {44, "lrn1", false, "lrn1.y", true},
      {44, "lrn1", false, "relu1.y", false},  {45, "relu1", false, "relu1.y", true},
      {45, "relu1", false, "conv1.y", true},
  };
  static const use speed[] = {
      {3, "lrn1", false, "relu1.y", true},   {42, "lrn1", true, "relu1.y", false},
      {42, "pool1", true, "lrn1.y", false},  {43, "pool1", false, "lrn1.y", false},
      {44, "lrn1", false, "relu1.y", false}, {45, "relu1", false, "relu1.y", true},
      {26, "drop2", false, "fc3.dx", true},  {25, "fc3", false, "drop2.y", true},
      {27, "relu7", false, "relu7.y", true},
  };
  check_uses(SN_RECOMPUTE_MEMORY, memory, sizeof memory / sizeof memory[0]);
  check_uses(SN_RECOMPUTE_SPEED, speed, sizeof speed / sizeof speed[0]);
}

/* Follows a schedule as a device would: everything read is there, nothing is made that is there already, and at the end
 * nothing is left. */
static void follow(const sn_schedule *s) {
  bool *here = calloc(s->route->n_tensors, sizeof *here);
  uint32_t next = 0, count = 0;
  for (uint32_t e = 0; e < s->n_executions; e++) {
    const sn_execution *x = &s->executions[e];
    const sn_step *step = &s->route->steps[x->step];
    if (!x->rerun) assert_int_equal(x->step, next++);
    assert_int_equal(x->at_step, x->rerun ? next : x->step);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = s->route->accesses[step->first_access + i];
      assert_int_equal(here[access.tensor], access.mode != SN_WRITE);
      count += !here[access.tensor];
      here[access.tensor] = true;
    }
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = s->route->accesses[step->first_access + i];
      if (!s->last_use[x->first_last_use + i]) continue;
      here[access.tensor] = false;
      count--;
    }
  }
  assert_int_equal(next, s->route->n_steps);
  assert_int_equal(count, 0);
  free(here);
}

static void every_read_is_there(void **state) {
  (void)state;
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t k = 0; k < count; k++) {
    sn_net *net = load_net(entries[k].name, 1);
    sn_err err = SN_ERR_INIT;
    sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
    for (int recompute = SN_RECOMPUTE_NONE; recompute < SN_RECOMPUTES; recompute++) {
      sn_schedule *s = make_schedule(route, (sn_recompute)recompute);
      follow(s);
      sn_schedule_free(s);
    }
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* ---- a segment without end ---- */

static sn_net *chain(uint32_t depth) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("chain", 1, 1, 1, 1, &err);
  uint32_t x = SN_DATA_LAYER;
  for (uint32_t i = 0; i < depth; i++) x = sn_build_relu(b, x, "r%u", i);
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  return net;
}

/* n dropped layers from the input on: SOFTMAX needs the last (n re-runs), and each layer its x and y. All that is there
 * for the backward of layer i is its own y: i-1 re-runs bring x. n + (n-1) + ... + 1 in all. */
static void quadratic_chain(void **state) {
  (void)state;
  sn_net *net = chain(100);
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_schedule *s = make_schedule(route, SN_RECOMPUTE_MEMORY);
  assert_int_equal(s->reruns, 100 * 101 / 2);
  follow(s);
  sn_schedule_free(s);
  s = make_schedule(route, SN_RECOMPUTE_SPEED);
  assert_int_equal(s->reruns, 100);
  follow(s);
  sn_schedule_free(s);
  sn_route_free(route);
  sn_net_free(net);
}

static void refusal_of_endless_work(void **state) {
  (void)state;
  sn_net *net = chain(6000); /* 6000 x 6001 / 2 re-runs are more than 2^24 */
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  assert_null(sn_schedule_new(route, SN_RECOMPUTE_MEMORY, &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "network chain: recomputation needs more than 16777216 forwards"));
  assert_non_null(strstr(err.text, "use recompute=speed or none"));
  sn_schedule *s = make_schedule(route, SN_RECOMPUTE_SPEED);
  assert_int_equal(s->reruns, 6000);
  sn_schedule_free(s);
  sn_route_free(route);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_centric_alexnet),
      cmocka_unit_test(speed_centric_alexnet),
      cmocka_unit_test(cost_aware_alexnet),
      cmocka_unit_test(layers_of_alexnet),
      cmocka_unit_test(gradients_count),
      cmocka_unit_test(no_recomputation),
      cmocka_unit_test(resnets),
      cmocka_unit_test(plain_liveness),
      cmocka_unit_test(drops_and_keeps),
      cmocka_unit_test(every_read_is_there),
      cmocka_unit_test(quadratic_chain),
      cmocka_unit_test(refusal_of_endless_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
