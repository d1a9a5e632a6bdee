/* Optimizers: what they keep and move, in bytes and in the time of an update; measured updates are of one optimizer. */
#include "base/arena.h"
#include "sim/ask/result.h"
#include "sim/ask/simulate.h"
#include "sim/device/calibration.h"
#include "tests/support/pipeline.h"

#include <math.h>

static void names(void **state) {
  (void)state;
  for (sn_optimizer o = 0; o < SN_OPTIMIZERS; o++) {
    sn_err err = SN_ERR_INIT;
    sn_optimizer read = SN_OPTIMIZERS;
    assert_int_equal(sn_optimizer_parse(sn_optimizer_name(o), &read, &err), SN_OK);
    assert_int_equal(read, o);
  }
  sn_err err = SN_ERR_INIT;
  sn_optimizer kept = SN_OPTIMIZER_ADAM;
  assert_int_equal(sn_optimizer_parse("paged_adamw_8bit", &kept, &err), SN_OK);
  assert_int_equal(kept, SN_OPTIMIZER_ADAMW8BIT);
  assert_int_equal(sn_optimizer_parse("adamw_torch_fused", &kept, &err), SN_OK);
  assert_int_equal(kept, SN_OPTIMIZER_ADAMW_FUSED);
  assert_int_equal(sn_optimizer_parse("AdamW", &kept, &err), SN_OK);
  assert_int_equal(kept, SN_OPTIMIZER_ADAMW);
  kept = SN_OPTIMIZER_ADAM;
  assert_int_equal(sn_optimizer_parse("Adan", &kept, &err), SN_BAD_USAGE);
  assert_string_equal(err.text, "--optimizer: \"Adan\" is none of: momentum, sgd, adam, adamw, adam8bit, adamw8bit, "
                                "rmsprop, adagrad, adafactor, lion");
  assert_int_equal(kept, SN_OPTIMIZER_ADAM);
}

/* AlexNet: 8 layers with weights and bias. PyTorch's Adam: 244,403,360 B of parameters twice, and 16 counters. */
static void bytes_that_stay(void **state) {
  (void)state;
  static const uint64_t times[] = {1, 0, 2, 2}, counters[] = {0, 0, 64, 64};
  sn_net *net = load_net("alexnet", 2);
  for (sn_optimizer o = 0; o <= SN_OPTIMIZER_ADAMW; o++) {
    sn_persistent p = sn_persistent_of(net, SN_DIALECT_SUPERNEURONS, (sn_iteration){.optimizer = o});
    assert_int_equal(p.parameters, 4 * net->parameters);
    assert_int_equal(p.parameter_gradients, p.parameters);
    assert_int_equal(p.optimizer_state, times[o] * p.parameters);
    assert_int_equal(sn_persistent_of(net, SN_DIALECT_PYTORCH, (sn_iteration){.optimizer = o}).optimizer_state,
                     p.optimizer_state + counters[o]);
  }
  sn_net_free(net);
}

/* What bitsandbytes 0.50.2 makes for torchvision's networks (init_state() of its AdamW8bit, all storages), and what
 * PyTorch's MemTracker counts at the peak of training with it (bench/pytorch_memory.py --optimizer adamw8bit). */
static void bytes_of_8_bits(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint64_t bytes, live; /* live: of 16 images */
  } cases[] = {{"tv_resnet50", 52237800, 0},
               {"tv_alexnet", 124125976, 669466080},
               {"vit_b_16", 176582008, 0},
               {"tv_mobilenet_v2", 7559736, 0},
               {"tv_resnet18", 23809640, 454673360}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_net(cases[i].net, 16);
    sn_device gpu = load_gpu("h200");
    sn_strategy s = parse_strategy("pytorch");
    sn_options options = SN_OPTIONS_INIT;
    options.iteration.optimizer = i % 2 ? SN_OPTIMIZER_ADAMW8BIT : SN_OPTIMIZER_ADAM8BIT;
    for (sn_dialect_id d = 0; d < SN_DIALECTS; d++)
      assert_int_equal(sn_persistent_of(net, d, options.iteration).optimizer_state, cases[i].bytes);
    sn_run *run = cases[i].live > 0 ? sn_simulate(net->name, net, &gpu, &s, 1, &options, &err) : NULL;
    must(&err);
    if (run) assert_int_equal(sn_live_total(&run->results[0].live), cases[i].live);
    sn_run_free(run);
    sn_net_free(net);
  }
}

/* A block that is not full has its float too; 4,095 elements are too few; no tables without a tensor of 8 bits. */
static void pieces(void **state) {
  (void)state;
  static const struct {
    uint64_t elements;
    uint32_t width, count;
    uint64_t bytes[SN_OPTIMIZER_PIECES];
  } cases[] = {{4095, 4, 2, {16380, 16380}},
               {4095, 2, 2, {16380, 16380}},
               {4096, 4, 4, {4096, 4096, 64, 64}},
               {4097, 2, 4, {4097, 4097, 68, 68}}};
  const sn_parameter five = {5000, 0, 0};
  uint64_t bytes[SN_OPTIMIZER_PIECES];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(sn_optimizer_pieces(SN_OPTIMIZER_ADAM8BIT, &(const sn_parameter){cases[i].elements, 0, 0},
                                         cases[i].width, bytes),
                     cases[i].count);
    for (uint32_t k = 0; k < cases[i].count; k++) assert_int_equal(bytes[k], cases[i].bytes[k]);
  }
  assert_int_equal(sn_optimizer_pieces(SN_OPTIMIZER_MOMENTUM, &five, 2, bytes), 1);
  assert_int_equal(bytes[0], 10000);
  assert_int_equal(sn_optimizer_pieces(SN_OPTIMIZER_SGD, &five, 4, bytes), 0);
  sn_net *net = load_net("lenet", 2); /* weights of 500, 25,000, 400,000 and 5,000 elements, and 580 of biases */
  uint64_t blocks = 98 + 1563 + 20;
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_ADAM8BIT};
  assert_int_equal(sn_persistent_of(net, SN_DIALECT_PYTORCH, iteration).optimizer_state,
                   2 * (UINT64_C(4) * (500 + 580) + 430000 + 4 * blocks) + 2048);
  iteration.freeze = "conv2,fc*";
  assert_int_equal(sn_persistent_of(net, SN_DIALECT_PYTORCH, iteration).optimizer_state, UINT64_C(2) * 4 * 520);
  sn_net_free(net);
}

/* Live bytes at the peak as PyTorch's MemTracker counts them on fake tensors (PyTorch 2.15; lion by lion-pytorch's
 * loop): of AlexNet and 16 images, of which the update is the peak, to the byte. Of one whose temporaries all tensors
 * have at once the loss and its gradient, 8 bytes, are still live here. */
static void peaks_by_implementation(void **state) {
  (void)state;
  static const struct {
    const char *optimizer;
    uint64_t live;
  } cases[] = {
      {"sgd:impl=fused", 545340104},         {"momentum", 789743464},
      {"momentum:impl=loop", 789743464},     {"adam", 1231650792},
      {"adamw:impl=foreach", 1231650792},    {"adam:impl=fused", 1034146888},
      {"adamw:impl=fused", 1034146888},      {"adam:impl=loop", 1289238336},
      {"adamw,impl=loop", 1289238336},       {"rmsprop", 987247432},
      {"rmsprop:impl=loop", 893855392},      {"adagrad", 1231650792},
      {"adagrad:impl=fused", 789743528},     {"adagrad:impl=loop", 893855392},
      {"adafactor:impl=foreach", 750160724}, {"lion", 1044833888},
  };
  sn_net *net = load_net("tv_alexnet", 16);
  sn_device gpu = load_gpu("h200");
  sn_strategy s = parse_strategy("pytorch");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    assert_int_equal(sn_optimizer_parse(cases[i].optimizer, &options.iteration.optimizer, &err), SN_OK);
    sn_run *run = sn_simulate(net->name, net, &gpu, &s, 1, &options, &err);
    must(&err);
    assert_int_equal(sn_live_total(&run->results[0].live), cases[i].live);
    sn_run_free(run);
  }
  sn_net_free(net);
}

/* A comma and a colon mean the same, and what there is none of is told with what there is. */
static void implementations_are_named(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_optimizer o;
  assert_int_equal(sn_optimizer_parse("AdamW,impl=fused", &o, &err), SN_OK);
  assert_int_equal(o, SN_OPTIMIZER_ADAMW_FUSED);
  assert_string_equal(sn_optimizer_name(o), "adamw:impl=fused");
  assert_int_equal(sn_optimizer_parse("rmsprop:impl=fused", &o, &err), SN_BAD_USAGE);
  assert_string_equal(err.text,
                      "--optimizer: \"rmsprop:impl=fused\": behind rmsprop: stands one of: impl=foreach, impl=loop");
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_optimizer_parse("lion,impl=fused", &o, &err), SN_BAD_USAGE);
  assert_string_equal(err.text, "--optimizer: lion has one implementation; write \"lion\"");
}

/* Hugging Face's Trainer asks for it; nobody's choice is changed. */
static void transformers_are_fused(void **state) {
  (void)state;
  static const char *const theirs[] = {"gpt2:layers=1", "bert_base", "llama:7b,layers=1", "t5_base",
                                       "gpt2:layers=1+lora=8"};
  sn_net *other = load_net("vit_b_16", 1);
  for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_net(theirs[i], 1), *larger = sn_net_rebatch(net, 2, &err);
    must(&err);
    assert_int_equal(sn_optimizer_on(SN_OPTIMIZER_ADAMW, net), SN_OPTIMIZER_ADAMW_FUSED);
    assert_int_equal(sn_optimizer_on(SN_OPTIMIZER_ADAM, larger), SN_OPTIMIZER_ADAM_FUSED);
    assert_int_equal(sn_optimizer_on(SN_OPTIMIZER_ADAMW_FOREACH, net), SN_OPTIMIZER_ADAMW_FOREACH);
    assert_int_equal(sn_optimizer_on(SN_OPTIMIZER_SGD, net), SN_OPTIMIZER_SGD);
    sn_net_free(larger);
    sn_net_free(net);
  }
  assert_int_equal(sn_optimizer_on(SN_OPTIMIZER_ADAMW, other), SN_OPTIMIZER_ADAMW);
  sn_net_free(other);
}

static void normalized_layers_have_two_tensors(void **state) {
  (void)state;
  sn_net *net = load_net("resnet18", 1);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    sn_op op = net->layers[i].op;
    expected += op == SN_BN || op == SN_FC ? 2 : op == SN_CONV;
  }
  const sn_iteration iteration = {.optimizer = SN_OPTIMIZER_ADAMW};
  uint64_t counters = sn_persistent_of(net, SN_DIALECT_PYTORCH, iteration).optimizer_state -
                      sn_persistent_of(net, SN_DIALECT_SUPERNEURONS, iteration).optimizer_state;
  assert_int_equal(counters, 4 * expected);
  sn_net_free(net);
}

/* A large layer's update takes as long as its bytes do; forward and backward know nothing of it. */
static void time_of_updates(void **state) {
  (void)state;
  static const double transfers[SN_OPTIMIZER_KINDS] = {5, 3, 7, 7, 4, 4, 5, 5, 5, 5}; /* of 8 bits: 3 and 4 bytes */
  static const uint8_t algo[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
  pipeline p = pipeline_open("alexnet", 2);
  uint32_t fc = 0;
  while (strcmp(p.net->layers[fc].name, "fc1") != 0) fc++;
  int64_t forward = sn_costs_step(p.costs, fc, SN_FORWARD, algo);
  assert_int_equal(sn_costs_optimizer(p.costs), SN_OPTIMIZER_MOMENTUM);
  for (uint32_t i = SN_OPTIMIZER_KINDS + 1; i-- > 0;) { /* momentum twice: first and last */
    sn_optimizer o = i % SN_OPTIMIZER_KINDS;
    sn_costs_set_optimizer(p.costs, p.net, &p.device, o);
    double bytes = 4 * transfers[o] * (double)p.net->layers[fc].parameters;
    int64_t ns = sn_costs_step(p.costs, fc, SN_UPDATE, algo);
    assert_true(sn_costs_work(p.net, fc, SN_UPDATE, o).bytes == bytes);
    double expected = bytes / (p.device.memory_bandwidth * p.device.memory_efficiency) * 1e9;
    assert_true(fabs((double)(ns - p.device.launch_ns) - expected) <= 1);
    assert_int_equal(sn_costs_step(p.costs, fc, SN_FORWARD, algo), forward);
  }
  pipeline_close(&p);
}

static int64_t iteration(const sn_net *net, const sn_device *gpu, sn_optimizer optimizer, uint64_t *device_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_strategy liveness = parse_strategy("liveness");
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.optimizer = optimizer;
  sn_run *run = sn_simulate("alexnet", net, gpu, &liveness, 1, &options, &err);
  must(&err);
  assert_string_equal(run->conditions.optimizer, sn_optimizer_name(optimizer));
  int64_t ns = run->results[0].iteration_ns;
  *device_bytes = run->results[0].peak_device_bytes;
  sn_run_free(run);
  return ns;
}

static void simulated(void **state) {
  (void)state;
  sn_net *net = load_net("alexnet", 16);
  sn_device gpu = load_gpu("k40c");
  uint64_t bytes[SN_OPTIMIZERS];
  int64_t ns[SN_OPTIMIZERS];
  for (sn_optimizer o = 0; o < SN_OPTIMIZERS; o++) ns[o] = iteration(net, &gpu, o, &bytes[o]);
  assert_int_equal(bytes[SN_OPTIMIZER_MOMENTUM] - bytes[SN_OPTIMIZER_SGD], 4 * net->parameters);
  assert_int_equal(bytes[SN_OPTIMIZER_ADAM] - bytes[SN_OPTIMIZER_MOMENTUM], 4 * net->parameters);
  assert_int_equal(bytes[SN_OPTIMIZER_ADAMW], bytes[SN_OPTIMIZER_ADAM]);
  assert_true(bytes[SN_OPTIMIZER_ADAM8BIT] < bytes[SN_OPTIMIZER_MOMENTUM]);
  assert_true(ns[SN_OPTIMIZER_ADAM8BIT] < ns[SN_OPTIMIZER_MOMENTUM]);
  assert_true(ns[SN_OPTIMIZER_SGD] < ns[SN_OPTIMIZER_MOMENTUM]);
  assert_true(ns[SN_OPTIMIZER_MOMENTUM] < ns[SN_OPTIMIZER_ADAM]);
  sn_net_free(net);
}

/* An update measured under Adam says nothing exact of one by momentum, whose formula gets its factor alone. */
static void measured_updates(void **state) {
  (void)state;
  static const uint8_t algo[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
  pipeline p = pipeline_open("lenet", 2);
  char shape[SN_SHAPE_TEXT], plain[SN_SHAPE_TEXT];
  uint32_t fc = p.net->n_layers - 2;
  const sn_layer *layer = &p.net->layers[fc];
  assert_int_equal(layer->op, SN_FC);
  sn_shape_text(p.net, layer, plain, sizeof plain);
  sn_timing_shape(p.net, layer, SN_UPDATE, SN_OPTIMIZER_MOMENTUM, shape, sizeof shape);
  assert_string_equal(shape, plain);
  sn_timing_shape(p.net, layer, SN_BACKWARD, SN_OPTIMIZER_ADAM, shape, sizeof shape);
  assert_string_equal(shape, plain);
  sn_timing_shape(p.net, layer, SN_UPDATE, SN_OPTIMIZER_ADAM, shape, sizeof shape);
  assert_string_equal(shape + strlen(plain), " adam");
  int64_t by_momentum = sn_costs_step(p.costs, fc, SN_UPDATE, algo);
  sn_costs_set_optimizer(p.costs, p.net, &p.device, SN_OPTIMIZER_ADAM);
  int64_t by_adam = sn_costs_step(p.costs, fc, SN_UPDATE, algo);
  sn_timing timing = {.shape = shape,
                      .op = SN_FC,
                      .pass = SN_UPDATE,
                      .kernel = SN_CONV_KERNELS,
                      .algo = SN_CONV_ALGOS,
                      .ns = 10 * by_adam,
                      .formula_ns = by_adam,
                      .samples = 1};
  sn_err err = SN_ERR_INIT;
  sn_calibration c = {.profile = p.device, .timings = &timing, .n_timings = 1, .arena = sn_arena_new()};
  sn_calibration_fit(&c, &err);
  must(&err);
  sn_calibration_apply(&c, p.net, p.costs);
  assert_int_equal(sn_costs_step(p.costs, fc, SN_UPDATE, algo), 10 * by_adam);
  assert_int_equal(sn_costs_step_known(p.costs, fc, SN_UPDATE, algo), 10 * by_adam);
  sn_costs *others = sn_costs_new(p.net, &p.device, &err);
  must(&err);
  sn_calibration_apply(&c, p.net, others);
  assert_int_equal(sn_costs_step(others, fc, SN_UPDATE, algo), 10 * by_momentum);
  assert_int_equal(sn_costs_step_known(others, fc, SN_UPDATE, algo), 0);
  sn_costs_free(others);
  sn_arena_free(c.arena);
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),
      cmocka_unit_test(bytes_that_stay),
      cmocka_unit_test(bytes_of_8_bits),
      cmocka_unit_test(pieces),
      cmocka_unit_test(peaks_by_implementation),
      cmocka_unit_test(implementations_are_named),
      cmocka_unit_test(transformers_are_fused),
      cmocka_unit_test(normalized_layers_have_two_tensors),
      cmocka_unit_test(time_of_updates),
      cmocka_unit_test(simulated),
      cmocka_unit_test(measured_updates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
