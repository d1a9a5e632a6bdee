/* Selective checkpoints: live bytes at the peak as PyTorch 2.15's memory tracker counts them with torchtitan's policy in
 * create_selective_checkpoint_contexts() (bench/pytorch_parallel.py --recompute selective), which steps run again, and
 * what is refused. */
#include "sim/graph/route.h"
#include "sim/schedule/schedule.h"
#include "tests/support/live_of.h"

#include <stdio.h>

typedef struct row {
  const char *net, *parallel;
  uint32_t batch, tokens;
  sn_optimizer optimizer;
  uint64_t bytes;
} row;

static sn_net *net_of(const char *spec, uint32_t batch, uint32_t tokens) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, tokens, &err);
  must(&err);
  return net;
}

static void measured(void **state) {
  static const row rows[] = {
      {"llm:4,512,8,8,1408,1024", "", 16, 512, SN_OPTIMIZER_ADAMW, 1041227940},
      {"llm:4,512,8,4,1408,1024", "", 16, 512, SN_OPTIMIZER_MOMENTUM, 952080392},
      {"llm:4,512,8,8,1408,1024", "fsdp=8", 16, 512, SN_OPTIMIZER_ADAMW, 925191076},
      {"llm:4,512,8,8,1408,1024", "fsdp=8,keep-last=yes", 16, 512, SN_OPTIMIZER_ADAMW, 925191076},
      {"llm:3,1024,16,16,2816,1000", "dp=4", 4, 512, SN_OPTIMIZER_SGD, 709898248},
      {"vit_b_16", "", 16, 224, SN_OPTIMIZER_MOMENTUM, 1462399272}, /* whose first product has its bias apart */
      {"vit_b_16", "fsdp=4", 16, 224, SN_OPTIMIZER_MOMENTUM, 1008486232},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = net_of(rows[i].net, rows[i].batch, rows[i].tokens);
    sn_iteration iteration = {.optimizer = rows[i].optimizer, .accumulate = 1};
    if (*rows[i].parallel) sn_mesh_parse(rows[i].parallel, &iteration.mesh, &err);
    must(&err);
    sn_live live = live_of(rows[i].net, net, "pytorch-1.7+recompute=selective", iteration);
    if (sn_live_total(&live) != rows[i].bytes)
      fail_msg("%s, %s: %llu bytes, not %llu", rows[i].net, rows[i].parallel, (unsigned long long)sn_live_total(&live),
               (unsigned long long)rows[i].bytes);
    sn_net_free(net);
  }
}

/* How often a forward step of the layer runs. */
static uint32_t runs_of(const sn_schedule *schedule, const char *layer) {
  uint32_t runs = 0;
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_step *step = &schedule->route->steps[schedule->executions[e].step];
    runs += step->pass == SN_FORWARD && strcmp(schedule->route->layers[step->layer].name, layer) == 0;
  }
  return runs;
}

/* Each second product of a block from the first on stays, and attention; norms, sums and what is pointwise run again. */
static void each_second_product_stays(void **state) {
  static const char *const once[] = {"tok_embeddings",          "output",
                                     "layers.1.attention.wq",   "layers.1.attention.wv",
                                     "layers.1.attention.sdpa", "layers.1.feed_forward.w1",
                                     "layers.1.feed_forward.w2"};
  static const char *const twice[] = {"layers.1.attention_norm",  "layers.1.attention.wk",
                                      "layers.1.attention.wo",    "layers.1.feed_forward.silu",
                                      "layers.1.feed_forward.w3", "layers.1.feed_forward.mul"};
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = net_of("llm:3,64,4,4,192,200", 2, 32);
  sn_strategy strategy = parse_strategy("pytorch+recompute=selective");
  sn_route *route = sn_schedule_route(net, strategy, (sn_iteration){0}, NULL, &err);
  sn_schedule *schedule = sn_schedule_new(route, strategy.recompute, &err);
  must(&err);
  for (size_t i = 0; i < sizeof once / sizeof *once; i++) assert_int_equal(runs_of(schedule, once[i]), 1);
  for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) assert_int_equal(runs_of(schedule, twice[i]), 2);
  sn_schedule_free(schedule);
  sn_route_free(route);
  sn_net_free(net);
}

static void refused(const char *parallel, sn_precision precision, const char *why) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {.precision = precision};
  if (*parallel) sn_mesh_parse(parallel, &iteration.mesh, &err);
  must(&err);
  const char *said = sn_strategy_refuses(parse_strategy("pytorch+recompute=selective"), iteration);
  assert_non_null(said);
  if (!strstr(said, why)) fail_msg("\"%s\" says nothing of \"%s\"", said, why);
}

static void refusals(void **state) {
  (void)state;
  sn_strategy strategy;
  sn_err err = SN_ERR_INIT;
  refused("", SN_AMP_BF16, "recompute=units");
  refused("pp=2", SN_FP32, "stages of a pipeline run units again whole");
  assert_null(sn_strategy_refuses(parse_strategy("pytorch+recompute=selective"), (sn_iteration){.precision = SN_BF16}));
  assert_int_equal(sn_strategy_parse("pytorch+offload+recompute=selective", &strategy, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "pytorch+offload+recompute=units"));
}

/* A kept product that the layer behind it changes, as torch.nn.ReLU(inplace=True) does, would not be what was made. */
static void what_is_kept_is_not_changed(void **state) {
  (void)state;
  static const char begin[] = "{\"snsim_net\":1,\"name\":\"t\",\"input\":[8,4,4],\"layers\":[{\"repeat\":3,\"layers\":["
                              "{\"name\":\"up\",\"op\":\"FC\",\"channels\":32,\"positions\":true,\"bias\":false},"
                              "{\"name\":\"act\",\"op\":\"ACT\"";
  static const char end[] = "},{\"name\":\"down\",\"op\":\"FC\",\"channels\":8,\"positions\":true,\"bias\":false},"
                            "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"down\",\"@in\"]}]},"
                            "{\"name\":\"f\",\"op\":\"FC\",\"channels\":3},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}";
  static const char *const modes[] = {"", ",\"mode\":\"silu\""}; /* which is not in place */
  for (int i = 0; i < 2; i++) {
    sn_err err = SN_ERR_INIT;
    char text[800];
    snprintf(text, sizeof text, "%s%s%s", begin, modes[i], end);
    sn_net *net = sn_net_from_json("t.json", text, strlen(text), 2, &err);
    must(&err);
    sn_strategy strategy = parse_strategy("pytorch+recompute=selective");
    sn_route *route = sn_schedule_route(net, strategy, (sn_iteration){0}, NULL, &err);
    sn_schedule *schedule = route ? sn_schedule_new(route, strategy.recompute, &err) : NULL;
    if (i == 1) must(&err);
    if (i == 0 && !strstr(err.text, "keeps what up.1 makes, and act.1 changes that in place"))
      fail_msg("it says: %s", err.text);
    sn_schedule_free(schedule);
    sn_route_free(route);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measured),
      cmocka_unit_test(each_second_product_stays),
      cmocka_unit_test(refusals),
      cmocka_unit_test(what_is_kept_is_not_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
