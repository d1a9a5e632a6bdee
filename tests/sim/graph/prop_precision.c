/* Precision: what it makes of networks whose figures are known, of steps by hand, and of random networks.
 *
 * The table is what MemTracker of PyTorch 2.15.0 says on fake tensors, 2026-11-22, by bench/pytorch_memory.py
 * --precision and bench/pytorch_transformers.py --precision. Where a network has BN or, in bf16, LAYER_NORM, a CPU's
 * kernels keep statistics of two bytes and a GPU's, which are ours, of four: `statistics` are the bytes between. */
#include "sim/ask/result.h"

#include "sim/graph/route.h"
#include "tests/support/live_of.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
  const char *net;
  uint32_t batch;
  sn_optimizer optimizer;
  sn_precision precision;
  uint64_t total;  /* PyTorch's */
  int64_t between; /* ours beyond that: statistics; seeds of fused attentions (+16 each); numbers of positions (-),
                      and a number of the loss where the peak is there (-4) */
} row;

static const row rows[] = {
    {"tv_resnet50", 128, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 5988777232, 106240}, /* frameworks, section 6 */
    {"tv_resnet50", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 982294928, 63232},
    {"tv_resnet50", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_FP16, 982294928, 63232},
    {"tv_resnet50", 16, SN_OPTIMIZER_MOMENTUM, SN_BF16, 817768604, 63232},
    {"tv_vgg16", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 2529998568, 0},
    {"tv_vgg16", 16, SN_OPTIMIZER_MOMENTUM, SN_BF16, 1497268468, 0},
    {"tv_r3d_18", 8, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 1083887400, 11008},    /* sums ahead of weights' casts */
    {"tv_inception_v3", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 1099936824, 0}, /* the same; a recording's */
    {"efficientnet_b0", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 774715760, 84032},
    {"efficientnet_b0", 16, SN_OPTIMIZER_MOMENTUM, SN_BF16, 733369356, 84032},
    {"vit_b_16", 16, SN_OPTIMIZER_MOMENTUM, SN_AMP_BF16, 1967912296, 12 * 16},
    {"vit_b_16", 16, SN_OPTIMIZER_MOMENTUM, SN_BF16, 1313236980, 302784},
    {"gpt2", 4, SN_OPTIMIZER_ADAMW, SN_AMP_BF16, 7482238040, 12 * 16 - 8192},
    {"gpt2", 4, SN_OPTIMIZER_ADAMW, SN_BF16, 5424869464, 401600},
    {"gpt2:loss=cross_entropy", 4, SN_OPTIMIZER_ADAMW, SN_AMP_BF16, 7070532700, 12 * 16 - 8192 - 4},
    {"gpt2:loss=cross_entropy", 4, SN_OPTIMIZER_ADAMW, SN_BF16, 4189753428, 401600},
};

static void live_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const row *r = &rows[i];
    sn_net *net = load_net(r->net, r->batch);
    sn_live live =
        live_of(net->name, net, "pytorch", (sn_iteration){.optimizer = r->optimizer, .precision = r->precision});
    int64_t off = (int64_t)(sn_live_total(&live) - r->total);
    if (off != r->between)
      fail_msg("%s, batch %u, %s: %" PRId64 " off, not %" PRId64, r->net, r->batch, sn_precision_name(r->precision),
               off, r->between);
    assert_true(llabs(off) < (int64_t)(r->total / 1000));
    sn_net_free(net);
  }
}

/* ---- steps ---- */

static const char small[] = "{\"snsim_net\":1,\"name\":\"small\",\"input\":[4,4,4],\"layers\":["
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"norm\",\"op\":\"LAYER_NORM\"},"
                            "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"norm\",\"conv\"]},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":8,\"bias\":false},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

static void print_step(const sn_route *r, uint32_t s, char *text, size_t room) {
  const sn_step *step = &r->steps[s];
  int used = snprintf(text, room, "%s %s %s", r->net->layers[step->layer].name, sn_pass_name(step->pass),
                      sn_step_op_name(r, step));
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access a = r->accesses[step->first_access + i];
    char name[SN_TENSOR_NAME];
    used += snprintf(text + used, room - (size_t)used, " %s:%c%" PRIu64, sn_tensor_name(r, a.tensor, name, sizeof name),
                     "rwm"[a.mode], r -> tensors[a.tensor].bytes);
  }
}

static void check_steps(sn_dialect_id dialect, sn_precision precision, const char *const *steps, size_t count) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(small, 1);
  sn_route *route = sn_route_new_for(net, dialect, SN_ORDER_ROUTE, (sn_iteration){.precision = precision}, NULL, &err);
  must(&err);
  assert_true(route->n_steps >= count);
  for (uint32_t s = 0; s < count; s++) {
    char text[500];
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, steps[s]);
  }
  sn_route_free(route);
  sn_net_free(net);
}

/* An image of 64 elements, batch 1. CONV makes two bytes an element, the norm takes and makes four, their sum is of
 * four, FC takes two. */
static void steps_of_amp(void **state) {
  (void)state;
  static const char *const steps[] = {
      "conv forward CONV conv.cast_x:w128 conv.cast_w:w288 conv.cast_b:w8 conv.y:w128",
      "norm forward LAYER_NORM conv.y:r128 norm.cast_x:w256 norm.y:w256 norm.saved0:w64 norm.saved1:w64",
      "join forward JOIN norm.y:r256 conv.y:r128 join.y:w256",
      "fc forward FC join.y:r256 fc.cast_x:w128 fc.cast_w:w1024 fc.y:w16",
      ("softmax forward SOFTMAX fc.y:r16 conv.cast_w:r288 conv.cast_b:r8 fc.cast_w:r1024 softmax.y:w16 "
       "softmax.saved:w8 "
       "softmax.cast_y:w32"),
      "softmax backward SOFTMAX softmax.y:r16 softmax.saved:r8 softmax.cast_y:r32 softmax.scratch:w16 softmax.dx:w16",
      "fc backward FC softmax.dx:r16 fc.cast_x:r128 fc.cast_dx:w128 fc.cast_w:r1024 fc.cast_dw:w1024",
      "fc backward CAST fc.cast_dx:r128 fc.dx:w256",
      "fc backward CAST fc.cast_dw:r1024 fc.dw:w2048",
      "join backward CAST fc.dx:r256 join.dx1:w128",
  };
  check_steps(SN_DIALECT_PYTORCH, SN_AMP_BF16, steps, sizeof steps / sizeof steps[0]);
}

static void loss_of_amp(sn_dialect_id dialect, bool inference, const char *const *steps, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(small, 1);
  sn_iteration iteration = {.precision = SN_AMP_FP16, .inference = inference};
  sn_route *route = sn_route_new_for(net, dialect, SN_ORDER_ROUTE, iteration, NULL, &err);
  must(&err);
  for (uint32_t i = 0; i < count; i++) {
    char text[500];
    print_step(route, 4 + i, text, sizeof text);
    assert_string_equal(text, steps[i]);
  }
  sn_route_free(route);
  sn_net_free(net);
}

/* PyTorch 1.7 asked for a log-softmax without naming its type, and so does who only wants probabilities: they have four
 * bytes. */
static void wide_losses_of_amp(void **state) {
  (void)state;
  static const char *const old[] = {
      ("softmax forward SOFTMAX fc.y:r16 softmax.cast_x:w32 conv.cast_w:r288 conv.cast_b:r8 fc.cast_w:r1024 "
       "softmax.y:w32 softmax.saved:w8"),
      "softmax backward SOFTMAX softmax.y:r32 softmax.scratch:w32 softmax.cast_dx:w32",
      "softmax backward CAST softmax.cast_dx:r32 softmax.dx:w16",
  };
  static const char *const only_run[] = {"softmax forward SOFTMAX fc.y:r16 softmax.cast_x:w32 conv.cast_w:r288 "
                                         "conv.cast_b:r8 fc.cast_w:r1024 softmax.y:w32"};
  loss_of_amp(SN_DIALECT_PYTORCH_1_7, false, old, 3);
  loss_of_amp(SN_DIALECT_PYTORCH, true, only_run, 1);
}

/* Two bytes an element of everything; in explicit the norm's mean and deviation of each of 16 positions are floats, and
 * the FC's input is made flat. */
static void steps_of_two_bytes(void **state) {
  (void)state;
  static const char *const superneurons[] = {
      "conv forward CONV conv.y:w128",
      "conv/fork forward FORK conv.y:r128 conv/fork.y0:w128 conv/fork.y1:w128",
      "norm forward LAYER_NORM conv/fork.y0:r128 norm.y:w128",
      "join forward JOIN norm.y:r128 conv/fork.y1:r128 join.y:w128",
      "fc forward FC join.y:r128 fc.y:w16",
      "softmax forward SOFTMAX fc.y:r16 softmax.y:w16",
      "softmax backward SOFTMAX fc.y:r16 softmax.y:m16",
      "fc backward FC join.y:r128 softmax.y:r16 fc.dx:w128",
      "join backward JOIN fc.dx:r128 join.dx1:w128",
      "norm backward LAYER_NORM conv/fork.y0:r128 fc.dx:r128 norm.dx:w128",
  };
  static const char *const explicit_graph[] = {
      "conv forward CONV conv.y:w128",
      "norm forward LAYER_NORM conv.y:r128 norm.y:w128 norm.saved0:w64 norm.saved1:w64",
      "join forward JOIN norm.y:r128 conv.y:r128 join.y:w128",
      "fc forward FLATTEN join.y:r128 fc.flat:w128",
      "fc forward FC fc.flat:r128 fc.y:w16",
      "softmax forward SOFTMAX fc.y:r16 softmax.y:w16",
      "softmax backward SOFTMAX softmax.y:r16 softmax.dx:w16",
      "fc backward FC softmax.dx:r16 fc.flat:r128 fc.dflat:w128",
      "fc backward FLATTEN fc.dflat:r128 fc.dx:w128",
      "join backward JOIN fc.dx:r128 join.dx0:w128 join.dx1:w128",
  };
  check_steps(SN_DIALECT_SUPERNEURONS, SN_BF16, superneurons, sizeof superneurons / sizeof superneurons[0]);
  check_steps(SN_DIALECT_EXPLICIT, SN_FP16, explicit_graph, sizeof explicit_graph / sizeof explicit_graph[0]);
}

/* Embeddings, RMSNorm, Linear, RMSNorm, Linear of torch.nn, 16 x 128 tokens, SGD with momentum: PyTorch 2.15's bytes on
 * fake tensors of a GPU. */
static void fused_norms(void **state) {
  (void)state;
  static const char text[] = "{\"snsim_net\":1,\"name\":\"norms\",\"tokens\":128,\"layers\":["
                             "{\"name\":\"e\",\"op\":\"EMBEDDING\",\"vocabulary\":100,\"channels\":256},"
                             "{\"name\":\"n1\",\"op\":\"RMS_NORM\",\"fused\":true},"
                             "{\"name\":\"f1\",\"op\":\"FC\",\"channels\":512,\"positions\":true},"
                             "{\"name\":\"n2\",\"op\":\"RMS_NORM\",\"fused\":true},"
                             "{\"name\":\"f2\",\"op\":\"FC\",\"channels\":100,\"positions\":true},"
                             "{\"name\":\"s\",\"op\":\"SOFTMAX\",\"positions\":true}]}";
  static const uint64_t totals[SN_PRECISION_COUNT] = {19524792, 19524792, 19524792, 9786972,
                                                      9786972,  17921208, 17921208};
  sn_net *net = load_net(text, 16);
  for (sn_precision p = 0; p < SN_PRECISION_COUNT; p++) {
    sn_live live = live_of("norms", net, "pytorch", (sn_iteration){.optimizer = SN_OPTIMIZER_MOMENTUM, .precision = p});
    assert_int_equal(sn_live_total(&live), totals[p]);
  }
  sn_net_free(net);
}

/* ---- what stays ---- */

/* Two images of 4 x 4 x 4. CONV has 4 * 4 * 9 + 4 = 148 parameters, BN 8, FC 64 * 8 + 8 = 520: 676. BN keeps running
 * statistics of two bytes and saved ones of four a channel, DROPOUT a byte an element, of whole images two an image;
 * three positions attend to three by two heads: 2 x 9 x 2 probabilities, twice, and which are dropped. */
static void resident_by_hand(void **state) {
  (void)state;
  static const char text[] = "{\"snsim_net\":1,\"name\":\"kept\",\"input\":[4,4,4],\"layers\":["
                             "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                             "{\"name\":\"bn\",\"op\":\"BN\"},"
                             "{\"name\":\"drop\",\"op\":\"DROPOUT\",\"ratio\":0.5},"
                             "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":8},"
                             "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  sn_net *net = load_net(text, 2);
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_ADAM, .precision = SN_BF16};
  sn_persistent p = sn_persistent_of(net, SN_DIALECT_SUPERNEURONS, iteration);
  assert_int_equal(p.parameters, 676 * 2);
  assert_int_equal(p.parameter_gradients, 676 * 2);
  assert_int_equal(p.optimizer_state, 2 * 676 * 2);
  assert_int_equal(p.auxiliary, 4 * (2 * 2 + 2 * 4) + 128);
  assert_int_equal(p.input_batch, 128 * 2);
  assert_int_equal(p.labels, 2 * 4);
  p = sn_persistent_of(net, SN_DIALECT_EXPLICIT, iteration);
  assert_int_equal(p.auxiliary, 4 * 2 * 2);
  sn_net_free(net);
  sn_layer layer = {.op = SN_DROPOUT, .mask_bytes = 2 * 4, .attr = &(sn_attr){.images = true}};
  assert_int_equal(sn_precision_beside_bytes(SN_FP16, &layer), 2 * 2);
  layer = (sn_layer){.op = SN_ATTENTION, .statistics_bytes = 36 * 9, .attr = &(sn_attr){.parts = true, .ratio = 0.1F}};
  assert_int_equal(sn_precision_beside_bytes(SN_BF16, &layer), 36 * (2 * 2 + 1));
  layer = (sn_layer){.op = SN_LAYER_NORM, .statistics_bytes = 96};
  assert_int_equal(sn_precision_beside_bytes(SN_BF16, &layer), 96);
}

/* ---- random networks ---- */

static void check_same_route(const sn_route *a, const sn_route *b) {
  assert_int_equal(a->n_steps, b->n_steps);
  assert_int_equal(a->n_tensors, b->n_tensors);
  assert_int_equal(a->n_accesses, b->n_accesses);
  assert_memory_equal(a->accesses, b->accesses, a->n_accesses * sizeof *a->accesses);
  for (uint32_t t = 0; t < a->n_tensors; t++) assert_int_equal(a->tensors[t].bytes, b->tensors[t].bytes);
}

static sn_route *route_in(const sn_net *net, sn_precision precision) {
  sn_err err = SN_ERR_INIT;
  sn_route *r =
      sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){.precision = precision}, NULL, &err);
  must(&err);
  return r;
}

/* Values of a layer in two widths: none is wider than in fp32. */
static void check_values(const sn_net *net, const sn_route *wide, const sn_route *narrow, bool half) {
  for (uint32_t v = 0; v < net->n_values; v++) {
    if (wide->output[v] == SN_NONE) continue;
    uint64_t before = wide->tensors[wide->output[v]].bytes, after = narrow->tensors[narrow->output[v]].bytes;
    assert_true(after == before || 2 * after == before);
    if (half) assert_int_equal(2 * after, before);
  }
}

/* sn_simulate() checks every plan; copies of weights are what AMP may need beyond fp32: half the parameters for good,
 * and their gradients on the way. */
static void check_precisions(const sn_net *net, sn_optimizer optimizer) {
  sn_route *wide = route_in(net, SN_FP32), *tf32 = route_in(net, SN_TF32);
  check_same_route(wide, tf32);
  sn_live most = live_of(net->name, net, "pytorch", (sn_iteration){.optimizer = optimizer});
  for (sn_precision p = SN_BF16; p < SN_PRECISION_COUNT; p++) {
    bool amp = sn_precision_is_amp(p);
    sn_route *narrow = route_in(net, p);
    check_values(net, wide, narrow, !amp);
    sn_live live = live_of(net->name, net, "pytorch", (sn_iteration){.optimizer = optimizer, .precision = p});
    assert_int_equal(live.parameters, amp ? most.parameters : most.parameters / 2);
    assert_int_equal(live.optimizer / 2, (amp ? most.optimizer : live.optimizer) / 2);
    sn_route_free(narrow);
  }
  sn_route_free(wide);
  sn_route_free(tf32);
}

/* Floats of statistics, bytes of masks, numbers of tokens. */
static bool stays(const sn_route *r, const sn_tensor *t) {
  const sn_layer *layer = &r->net->layers[t->layer];
  if (t->role == SN_VALUE && t->port < layer->n_outputs)
    return r->net->values[layer->first_output + t->port].dtype == SN_I64;
  if (t->role != SN_SAVED) return false;
  sn_saving saving = sn_dialect_rule(r->dialect, r->net, layer)->saves;
  bool statistics = saving == SN_SAVES_CHANNELS || saving == SN_SAVES_ROWS || saving == SN_SAVES_GROUPS;
  return statistics || saving == SN_SAVES_ATTENTION || saving == SN_SAVES_PADDED ||
         (saving == SN_SAVES_DROPPED && t->port == 2);
}

/* Of capped scores the softmax's own, in four bytes, and a copy for the product. */
static bool doubles(const sn_route *r, const sn_tensor *t) {
  const sn_layer *layer = &r->net->layers[t->layer];
  return t->role == SN_SAVED && sn_dialect_rule(r->dialect, r->net, layer)->saves == SN_SAVES_CAPPED && t->port == 1;
}

/* Of two bytes the steps are fp32's, and what does not stay is half as large. */
static void check_halves(const sn_net *net, sn_dialect_id dialect) {
  sn_err err = SN_ERR_INIT;
  sn_route *wide = sn_route_new(net, dialect, SN_ORDER_ROUTE, &err);
  sn_route *narrow = sn_route_new_for(net, dialect, SN_ORDER_ROUTE, (sn_iteration){.precision = SN_FP16}, NULL, &err);
  must(&err);
  assert_int_equal(narrow->n_steps, wide->n_steps);
  assert_int_equal(narrow->n_tensors, wide->n_tensors);
  assert_int_equal(narrow->n_accesses, wide->n_accesses);
  assert_memory_equal(narrow->accesses, wide->accesses, wide->n_accesses * sizeof *wide->accesses);
  for (uint32_t t = 0; t < wide->n_tensors; t++) {
    const sn_tensor *tensor = &wide->tensors[t];
    uint64_t halves = stays(wide, tensor) ? 2 : doubles(wide, tensor) ? 3 : 1;
    assert_int_equal(narrow->tensors[t].bytes * 2, tensor->bytes * halves);
  }
  sn_route_free(wide);
  sn_route_free(narrow);
}

/* Those that prop_plans and prop_dialects do not plan in two bytes; a plan is proved when it is made. */
static void check_plans(const sn_net *net) {
  static const char *const names[] = {"liveness+recompute=sqrt", "liveness+recompute=optimal",
                                      "liveness+offload+recompute=optimal", "liveness+recompute=dtr"};
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("a100_40");
  sn_options wide = SN_OPTIONS_INIT, narrow = wide;
  narrow.iteration.precision = SN_BF16;
  sn_planner *planners[] = {sn_planner_new(net, &gpu, &wide, &err), sn_planner_new(net, &gpu, &narrow, &err)};
  must(&err);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    sn_strategy strategy = parse_strategy(names[i]);
    sn_need all[2], half;
    for (int p = 0; p < 2; p++) sn_planner_need(planners[p], strategy, SN_MEMORY_ALL, &all[p], &err);
    must(&err);
    assert_true(all[0].fits && all[1].fits && all[1].device_bytes < all[0].device_bytes);
    uint64_t memory = gpu.context_bytes + (all[1].device_bytes - gpu.context_bytes) * 2 / 3;
    sn_planner_need(planners[1], strategy, memory, &half, &err);
    must(&err);
  }
  sn_planner_free(planners[0]);
  sn_planner_free(planners[1]);
}

static void random_networks(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261124);
  uint32_t nets = case_count(60);
  for (uint32_t n = 0; n < nets; n++, seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_net *net = n % 4 == 3 ? random_net_new_today(&dice, &err) : random_net_new(&dice, &err);
    must(&err);
    check_halves(net, SN_DIALECT_SUPERNEURONS);
    check_halves(net, SN_DIALECT_EXPLICIT);
    check_plans(net);
    check_precisions(net, n % 2 ? SN_OPTIMIZER_ADAM : SN_OPTIMIZER_MOMENTUM);
    sn_net_free(net);
  }
}

/* Tensor cores: what runs on them is faster, by the bytes where those are fewer; and an A100 trains faster than an RTX
 * 3090, whose float32 rate is nearly twice an A100's. */
static void times(void **state) {
  (void)state;
  static const sn_precision asked[] = {SN_FP32, SN_TF32, SN_AMP_BF16};
  static const char *const gpus[] = {"a100_40", "rtx3090"};
  sn_net *net = load_net("tv_resnet50", 64);
  int64_t ns[2][3];
  for (int g = 0; g < 2; g++)
    for (int p = 0; p < 3; p++) {
      sn_err err = SN_ERR_INIT;
      sn_device gpu = load_gpu(gpus[g]);
      sn_strategy s = parse_strategy("pytorch");
      sn_options options = SN_OPTIONS_INIT;
      options.iteration.precision = asked[p];
      sn_run *run = sn_simulate(net->name, net, &gpu, &s, 1, &options, &err);
      must(&err);
      ns[g][p] = run->results[0].iteration_ns;
      sn_run_free(run);
    }
  assert_true(ns[0][0] > ns[1][0]);
  assert_true(ns[0][1] < ns[0][0] && ns[1][1] <= ns[1][0]);
  for (int p = 1; p < 3; p++) assert_true(ns[0][p] < ns[1][p]);
  for (int g = 0; g < 2; g++) assert_true(ns[g][2] < ns[g][1]);
  sn_net_free(net);
}

static int64_t time_of(const char *spec, uint32_t batch, const char *gpu_name, sn_precision precision) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(spec, batch);
  sn_device gpu = load_gpu(gpu_name);
  sn_strategy s = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.precision = precision;
  sn_run *run = sn_simulate(net->name, net, &gpu, &s, 1, &options, &err);
  must(&err);
  int64_t ns = run->results[0].iteration_ns;
  sn_run_free(run);
  sn_net_free(net);
  return ns;
}

/* PyTorch as it starts: of a network of convolutions nearly TF32, of one without fp32 to the nanosecond, and that on
 * every GPU that has no TF32. */
static void as_pytorch_starts(void **state) {
  (void)state;
  int64_t wide = time_of("tv_vgg16", 8, "a100_40", SN_FP32), conv = time_of("tv_vgg16", 8, "a100_40", SN_TF32_CONV),
          all = time_of("tv_vgg16", 8, "a100_40", SN_TF32);
  assert_true(all <= conv && conv < wide);
  assert_true(time_of("gpt2", 8, "a100_40", SN_TF32_CONV) == time_of("gpt2", 8, "a100_40", SN_FP32));
  assert_true(time_of("tv_vgg16", 8, "v100_16", SN_TF32_CONV) == time_of("tv_vgg16", 8, "v100_16", SN_FP32));
}

/* Lanes and clock that a GPU has beyond those of an older one do not make its small batches slower than that one's. */
static void newer_is_no_slower(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"rtx4090", "v100_16"}, {"rtx4090", "t4"}, {"l40s", "v100_16"},
                                         {"l4", "t4"},           {"a10g", "t4"},    {"rtx5090", "rtx4090"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    for (uint32_t batch = 4; batch <= 64; batch *= 4)
      assert_true(time_of("tv_resnet50", batch, pairs[i][0], SN_AMP_FP16) <
                  time_of("tv_resnet50", batch, pairs[i][1], SN_AMP_FP16));
}

static void what_devices_have(void **state) {
  (void)state;
  static const struct {
    const char *gpu;
    sn_precision precision;
    bool has;
  } known[] = {{"k40c", SN_FP32, true},    {"k40c", SN_TF32, false},      {"v100_16", SN_AMP_FP16, true},
               {"v100_16", SN_BF16, true}, {"t4", SN_AMP_BF16, true},     {"a100_40", SN_TF32, true},
               {"mi250x", SN_TF32, false}, {"mi250x", SN_AMP_BF16, true}, {"b200", SN_FP16, true},
               {"knl7250", SN_FP16, false}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device gpu = load_gpu(known[i].gpu);
    sn_status status = sn_device_check_precision(&gpu, known[i].precision, &err);
    assert_int_equal(status, known[i].has ? SN_OK : SN_BAD_USAGE);
    if (!known[i].has) assert_non_null(strstr(err.text, "it has fp32"));
  }
}

/* Autocast is PyTorch's; SINGA and published systems have four bytes. */
static void who_has_what(void **state) {
  (void)state;
  sn_net *net = load_net("lenet", 2);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++)
    for (sn_precision p = SN_BF16; p < SN_PRECISION_COUNT; p++) {
      sn_err err = SN_ERR_INIT;
      bool has = sn_precision_is_amp(p) ? sn_dialect_of(d)->eager : d != SN_DIALECT_SINGA;
      sn_route *route = sn_route_new_for(net, d, SN_ORDER_ROUTE, (sn_iteration){.precision = p}, NULL, &err);
      assert_true((route != NULL) == has);
      if (!route) assert_int_equal(err.code, SN_BAD_USAGE);
      sn_route_free(route);
    }
  sn_net_free(net);
  const sn_iteration half = {.precision = SN_BF16}, amp = {.precision = SN_AMP_BF16};
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    assert_null(sn_strategy_refuses(sn_strategy_default(i), half));
    assert_non_null(strstr(sn_strategy_refuses(sn_strategy_default(i), amp), "autocast is PyTorch's"));
  }
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++)
    assert_non_null(strstr(sn_strategy_refuses(sn_strategy_system(i), half), "published systems"));
  assert_non_null(strstr(sn_strategy_refuses(parse_strategy("singa-bfs"), half), "published systems"));
  assert_non_null(strstr(sn_strategy_refuses(parse_strategy("liveness+corun=path"), half), "side by side"));
  assert_null(sn_strategy_refuses(parse_strategy("explicit+dynamic"), half));
  assert_null(sn_strategy_refuses(parse_strategy("pytorch"), amp));
}

static void names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_precision found;
  for (sn_precision p = 0; p < SN_PRECISION_COUNT; p++) {
    assert_int_equal(sn_precision_parse(sn_precision_name(p), &found, &err), SN_OK);
    assert_int_equal(found, p);
  }
  assert_int_equal(sn_precision_parse("amp-int8", &found, &err), SN_BAD_USAGE);
  err = (sn_err)SN_ERR_INIT;
  static const struct {
    const char *text;
    sn_precision precision;
  } others[] = {{"AMP", SN_AMP_BF16},      {"bf16-mixed", SN_AMP_BF16}, {"fp16 amp", SN_AMP_FP16},
                {"float16", SN_FP16},      {"half", SN_FP16},           {"mixed", SN_AMP_BF16},
                {"BF16", SN_BF16},         {"amp_bf16", SN_AMP_BF16},   {"torch.bfloat16", SN_BF16},
                {"16-mixed", SN_AMP_FP16}, {"float32", SN_FP32}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    assert_int_equal(sn_precision_parse(others[i].text, &found, &err), SN_OK);
    assert_int_equal(found, others[i].precision);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),
      cmocka_unit_test(live_bytes),
      cmocka_unit_test(steps_of_amp),
      cmocka_unit_test(wide_losses_of_amp),
      cmocka_unit_test(fused_norms),
      cmocka_unit_test(steps_of_two_bytes),
      cmocka_unit_test(resident_by_hand),
      cmocka_unit_test(who_has_what),
      cmocka_unit_test(random_networks),
      cmocka_unit_test(times),
      cmocka_unit_test(as_pytorch_starts),
      cmocka_unit_test(newer_is_no_slower),
      cmocka_unit_test(what_devices_have),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
