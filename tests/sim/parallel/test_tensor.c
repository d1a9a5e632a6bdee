/* Tensor parallel: bytes of a rank at the peak as PyTorch 2.15's memory tracker counts them on real tensors
 * (bench/pytorch_parallel.py), what is refused, what
 * steps cost, and random networks on random meshes, whose plans the checker proves.
 *
 *   SN_SEED        seed of the first network; the others follow (default: 1)
 *   SN_PROP_NETS   how many networks (default 100) */
#include "sim/parallel/shard.h"
#include "sim/stages/stages.h"
#include "tests/support/live_of.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>

enum { CASES = 100 };

static sn_net *net_of(const char *spec, uint32_t batch, uint32_t tokens) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, tokens, &err);
  must(&err);
  return net;
}

static sn_iteration iteration_of(const char *parallel, sn_optimizer optimizer) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {.optimizer = optimizer};
  sn_mesh_parse(parallel, &iteration.mesh, &err);
  must(&err);
  return iteration;
}

typedef struct row {
  const char *net, *parallel;
  uint32_t batch, tokens;
  sn_optimizer optimizer;
  uint64_t bytes;
  uint32_t accumulate;
} row;

static void check_row(const row *asked, const char *strategy, sn_precision precision) {
  sn_net *net = net_of(asked->net, asked->batch, asked->tokens);
  sn_iteration iteration = iteration_of(asked->parallel, asked->optimizer);
  iteration.accumulate = asked->accumulate;
  iteration.precision = precision;
  sn_live live = live_of(asked->net, net, strategy, iteration);
  if (sn_live_total(&live) != asked->bytes)
    fail_msg("%s, %s: %llu bytes, not %llu", asked->net, asked->parallel, (unsigned long long)sn_live_total(&live),
             (unsigned long long)asked->bytes);
  sn_net_free(net);
}

static void check_rows(const row *rows, size_t count, const char *strategy) {
  for (size_t i = 0; i < count; i++) check_row(&rows[i], strategy, SN_FP32);
}

/* A loss, 8 bytes, is held until the update begins, which the tracked program drops; and that has the other
 * micro-batch's tokens and labels ready, 4096 bytes. Two whose fullest moment is in the backward of a norm have the root
 * of each position, 4 bytes, which the tracked norm has dropped by then. */
static void measured(void **state) {
  static const row rows[] = {
      {"llm:2,512,8,8,1408,2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW, 120448096, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4", 2, 512, SN_OPTIMIZER_ADAMW, 65507424, 1},
      {"llm:2,512,8,8,1408,2048", "tp=8", 2, 512, SN_OPTIMIZER_ADAMW, 38037088, 1},
      {"llm:3,512,8,8,1408,2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW, 163865732, 1},
      {"llm:3,512,8,8,1408,2048", "tp=4", 2, 512, SN_OPTIMIZER_ADAMW, 89319556, 1},
      {"llm:3,512,8,8,1408,2048", "tp=8", 2, 512, SN_OPTIMIZER_ADAMW, 52046468, 1},
      {"llm:3,256,8,8,704,512", "fsdp=2,tp=4", 2, 128, SN_OPTIMIZER_ADAMW, 12030080, 1},
      {"llm:3,256,8,8,704,512", "fsdp=4,tp=2", 2, 256, SN_OPTIMIZER_ADAMW, 28206464, 1},
      {"llm:2,256,8,2,704,4096", "fsdp=2,tp=2", 2, 64, SN_OPTIMIZER_ADAMW, 25935452, 1},
      {"llm:2,512,8,8,1408,2048", "tp=2,loss=whole", 2, 512, SN_OPTIMIZER_ADAMW, 128802908, 1},
      {"llm:4,256,8,4,704,256", "tp=4", 2, 256, SN_OPTIMIZER_ADAMW, 24960676, 1},
      {"llm:2,256,8,8,704,64", "tp=2", 1, 256, SN_OPTIMIZER_ADAMW, 17135708, 1},
      {"llm:2,256,8,8,704,512", "tp=8", 4, 256, SN_OPTIMIZER_SGD, 12828168, 1},
      {"llm:2,256,8,8,704,8192", "tp=2", 1, 16, SN_OPTIMIZER_ADAMW, 62219604 + 8, 1},
      {"llm:3,256,8,4,704,512", "fsdp=3,tp=2", 2, 64, SN_OPTIMIZER_MOMENTUM, 12980672, 1},
      {"llm:2,256,8,4,704,512", "fsdp=3,tp=4,prefetch=2", 2, 128, SN_OPTIMIZER_ADAMW, 7888556, 1},
      {"llm:2,256,8,4,704,512", "fsdp=3,tp=2,reshard=no", 2, 64, SN_OPTIMIZER_ADAMW, 11988148, 1},
      {"llm:2,256,8,8,704,512", "tp=2", 2, 128, SN_OPTIMIZER_ADAMW, 22854496 - 4096, 2},
      {"llm:2,256,8,8,704,512", "fsdp=2,tp=2", 2, 128, SN_OPTIMIZER_ADAMW, 20516444 - 4096, 2},
      {"llm:2,256,8,8,704,512", "fsdp=2,tp=2,sync=each", 2, 128, SN_OPTIMIZER_ADAMW, 18745436 - 4096, 2},
      {"llm:2,256,8,8,704,512", "tp=2", 2, 64, SN_OPTIMIZER_MOMENTUM, 12015616 + 8, 1},
      {"llm:2,512,8,8,1408,2048", "tp=2,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW, 130944096, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW, 81251424, 1},
      {"llm:2,512,8,8,1408,2048", "tp=8,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW, 58990684 + 4 * 1024, 1},
      {"llm:2,512,8,8,1408,2048", "tp=2,sequence=whole,loss=whole", 2, 512, SN_OPTIMIZER_ADAMW, 139298908, 1},
      {"llm:2,512,8,4,1408,2048", "tp=4,sequence=whole", 2, 510, SN_OPTIMIZER_ADAMW, 79461132, 1},
      {"llm:3,256,8,8,704,512", "fsdp=2,tp=4,sequence=whole", 2, 128, SN_OPTIMIZER_ADAMW, 14508672, 1},
      {"llm:3,256,8,4,704,512", "fsdp=3,tp=2,sequence=whole", 2, 64, SN_OPTIMIZER_MOMENTUM, 13571520, 1},
      {"llm:2,256,8,8,704,512", "tp=2,sequence=whole", 2, 64, SN_OPTIMIZER_MOMENTUM, 12487688, 1},
      {"llm:2,256,8,8,704,512", "tp=8,sequence=whole", 4, 256, SN_OPTIMIZER_SGD, 23853064 + 4 * 1024, 1},
      {"llm:2,256,8,8,704,8192", "tp=2,sequence=whole", 1, 16, SN_OPTIMIZER_ADAMW, 62214484 + 8, 1},
      {"llm:2,256,8,8,704,8192", "fsdp=2,tp=2,sequence=whole", 1, 16, SN_OPTIMIZER_ADAMW, 45791068, 1},
      {"llm:2,256,8,8,704,512", "tp=2,sequence=whole", 2, 128, SN_OPTIMIZER_ADAMW, 24167776 - 4096, 2},
  };
  (void)state;
  check_rows(rows, sizeof rows / sizeof *rows, "pytorch");
}

#define PHI   "phi3:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048"
#define GEMMA "gemma2:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048,head=64"

/* Transformers' models. Two buffers of 64 bytes are not counted here, and of one a loss is held. With few tokens a
 * table that the head shares has its gradients at once where they are added, and what its backward has read no longer.
 * With 1,024 positions labels of eight bytes, which their loss moves by one, are missing. */
static void measured_of_transformers(void **state) {
  static const row rows[] = {
      {"llama:layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", "tp=2", 1, 16, SN_OPTIMIZER_ADAMW_FOREACH,
       62219732 - 120, 1},
      {"llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", "tp=2", 1, 16, SN_OPTIMIZER_ADAMW_FOREACH,
       46420440 - 128, 1},
      {"llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", "tp=2", 1, 16, SN_OPTIMIZER_MOMENTUM,
       39009672 - 128, 1},
      {"llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", "tp=4", 2, 64, SN_OPTIMIZER_SGD, 20000904 - 128,
       1},
      {"llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", "fsdp=2,tp=2", 1, 16,
       SN_OPTIMIZER_ADAMW_FOREACH, 39499736 - 128, 1},
      {PHI, "tp=2", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 120718664 - 8416, 1},
      {PHI, "tp=4", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 65777992 - 8416, 1},
      {PHI, "tp=4,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 81521992 - 8416, 1},
      {GEMMA, "tp=2,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 176330096 - 8452, 1},
      {GEMMA, "tp=4,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 112498032 - 8452, 1},
  };
  (void)state;
  check_rows(rows, sizeof rows / sizeof *rows, "pytorch");
}

/* Around forward and loss. A likelihood of narrow logits takes four bytes: its cast is saved, and backward is as wide. What
 * is missing are weights' sums of losses. */
static void measured_under_autocast(void **state) {
  static const row rows[] = {
      {"llm:2,512,8,8,1408,2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW, 115336288 - 4, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4", 2, 512, SN_OPTIMIZER_ADAMW, 63475808 - 6, 1},
      {"llm:2,512,8,8,1408,2048", "tp=2,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW, 125832288 - 4, 1},
      {"llm:2,512,8,8,1408,2048", "tp=2,loss=whole", 2, 512, SN_OPTIMIZER_ADAMW, 117399648 - 4, 1},
      {"llm:3,256,8,4,704,512", "fsdp=2,tp=2", 2, 128, SN_OPTIMIZER_ADAMW, 20565632 - 4, 1},
      {"llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH,
       113509728 - 8416, 1},
      {PHI, "tp=4", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 55357768 - 8416, 1},
      {GEMMA, "tp=2,sequence=whole", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 166499696 - 8452, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i], "pytorch", SN_AMP_BF16);
}

/* A block runs again up to its last product's cast of its weights, with what its module's caller holds, and makes no
 * summand. */
static void measured_again_under_autocast(void **state) {
  static const row rows[] = {
      {"llm:2,512,8,8,1408,2048", "tp=4", 8, 512, SN_OPTIMIZER_ADAMW, 93433948 - 6, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4,sequence=whole", 8, 512, SN_OPTIMIZER_ADAMW, 127991900 - 6, 1},
      {"llm:3,256,8,4,704,512", "fsdp=2,tp=2", 8, 512, SN_OPTIMIZER_ADAMW, 61460096 - 4, 1},
      {PHI, "tp=4", 8, 512, SN_OPTIMIZER_ADAMW_FOREACH, 80724292 - 4336, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i], "pytorch+recompute=units", SN_AMP_BF16);
}

static sn_route *route_of(const sn_net *net, sn_iteration iteration, sn_err *err) {
  return sn_schedule_route(net, parse_strategy("pytorch"), iteration, NULL, err);
}

/* Blocks run again, up to what their backward needs. */
static void measured_again(void **state) {
  static const row rows[] = {
      {"llm:2,512,8,8,1408,2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW, 92086364, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4", 2, 512, SN_OPTIMIZER_ADAMW, 48822364, 1},
      {"llm:4,256,8,4,704,256", "tp=4", 2, 256, SN_OPTIMIZER_ADAMW, 16301220, 1},
      {"llm:4,256,8,4,704,256", "fsdp=2,tp=2", 2, 64, SN_OPTIMIZER_ADAMW, 18002084, 1},
      {"llm:4,256,8,8,704,256", "fsdp=2,tp=4", 4, 128, SN_OPTIMIZER_ADAMW, 13324964, 1},
      {PHI, "tp=2", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 90255684 - 4336, 1},
  };
  (void)state;
  check_rows(rows, sizeof rows / sizeof *rows, "pytorch+recompute=units");
}

/* Torchtitan's policy: what a block's last product has made, a summand of all positions, stays though nobody takes it.
 * Of transformers' models buffers of angles and labels are not here. */
static void measured_selective(void **state) {
  static const row rows[] = {
      {"llm:2,512,8,8,1408,2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW, 96948316, 1},
      {"llm:2,512,8,8,1408,2048", "tp=4", 2, 512, SN_OPTIMIZER_ADAMW, 53348444, 1},
      {"llm:4,256,8,4,704,256", "tp=4", 2, 256, SN_OPTIMIZER_ADAMW, 18650276, 1},
      {"llm:4,256,8,4,704,256", "fsdp=2,tp=2", 2, 64, SN_OPTIMIZER_ADAMW, 18610340, 1},
      {"llm:3,256,8,8,704,512", "tp=2,sequence=whole", 4, 256, SN_OPTIMIZER_MOMENTUM, 41016328, 1},
      {"llm:4,256,8,8,704,256", "fsdp=2,tp=4", 4, 128, SN_OPTIMIZER_SGD, 12996104, 1},
      {"llama:layers=3,hidden=512,heads=8,ffn=1408,vocabulary=2048", "tp=2", 2, 512, SN_OPTIMIZER_ADAMW,
       125686144 - 4304, 1},
      {PHI, "tp=4", 2, 512, SN_OPTIMIZER_ADAMW_FOREACH, 50075972 - 4320, 1},
  };
  (void)state;
  check_rows(rows, sizeof rows / sizeof *rows, "pytorch+recompute=selective");
}

static void refused(const char *spec, uint32_t batch, uint32_t size, const char *parallel, const char *why) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = net_of(spec, batch, size);
  sn_route *route = route_of(net, iteration_of(parallel, SN_OPTIMIZER_ADAMW), &err);
  assert_null(route);
  assert_int_equal(err.code, SN_BAD_INPUT);
  if (!strstr(err.text, why)) fail_msg("%s: \"%s\" says nothing of \"%s\"", spec, err.text, why);
  sn_net_free(net);
}

static void refusals(void **state) {
  (void)state;
  refused("llm:2,512,8,8,1408,2048", 2, 512, "tp=3",
          "tp=3 does not divide the 8 heads of layers.0.attention.sdpa; tp=2 divides all");
  refused("llm:2,512,8,2,1408,2048", 2, 512, "tp=4", "the 2 heads of keys and values of layers.0.attention.sdpa; tp=2");
  refused("llm:2,512,8,8,1406,2048", 2, 512, "tp=4", "the 1406 features of layers.0.feed_forward.w1; tp=2");
  refused("llm:2,512,8,8,1408,2047", 2, 512, "tp=4", "the 2047 words of tok_embeddings");
  refused("llm:2,512,8,8,1408,2048", 2, 510, "tp=4", "the 510 positions of tok_embeddings; tp=2");
  refused("llm:2,512,8,8,1406,2048", 2, 510, "tp=4,sequence=whole", "the 1406 features of");
  refused("tv_resnet18", 2, 0, "tp=2", "is a batch norm");
  refused("tv_vgg16", 2, 0, "tp=2", "has no attention");
  refused("gpt2:layers=1", 1, 64, "tp=2", "h.0.attn.sdpa has queries, keys and values side by side");
  refused("bert_base", 1, 64, "tp=2,sequence=whole", "is a product of neither a norm's output nor");
}

/* What a layer more keeps where the loss is the fullest moment. */
static uint64_t kept_by_a_layer(const char *mesh, const char *strategy) {
  uint64_t bytes[2];
  for (uint32_t i = 0; i < 2; i++) {
    char spec[80];
    snprintf(spec, sizeof spec, "megatron:layers=%u,hidden=512,heads=8,vocabulary=51200", 2 + i);
    sn_net *net = net_of(spec, 8, 512);
    sn_iteration iteration = iteration_of(mesh, SN_OPTIMIZER_SGD);
    iteration.precision = SN_BF16;
    bytes[i] = live_of(spec, net, strategy, iteration).activations;
    sn_net_free(net);
  }
  return bytes[1] - bytes[0];
}

/* Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", equations 2, 4 and 6: of s
 * positions, b sequences, h features, a heads, t ranks, s b h / t (34 + 5 a s / h) bytes a layer, and 34 with the core of
 * attention run again; without sequence parallelism s b h (10 + 24 / t + 5 a s / (h t)); and where layers run again what
 * they read, 2 s b h. Statistics of norms, which they leave out, are four floats a position. */
static void megatron_s_formulas(void **state) {
  (void)state;
  const char *split = "tp=4,gathered=again", *whole = "tp=4,sequence=whole";
  const uint64_t s = 512, b = 8, h = 512, a = 8, t = 4, statistics = 4 * sizeof(float) * s * b;
  assert_int_equal(kept_by_a_layer(split, "pytorch"), s * b * h / t * (34 + 5 * a * s / h) + statistics / t);
  assert_int_equal(kept_by_a_layer(split, "pytorch+recompute=attention"), s * b * h / t * 34 + statistics / t);
  assert_int_equal(kept_by_a_layer(whole, "pytorch"), s * b * h / t * (10 * t + 24 + 5 * a * s / h) + statistics);
  assert_int_equal(kept_by_a_layer(whole, "pytorch+recompute=attention"), s * b * h / t * (10 * t + 24) + statistics);
  assert_int_equal(kept_by_a_layer(whole, "pytorch+recompute=units"), 2 * s * b * h);
  assert_int_equal(kept_by_a_layer(split, "pytorch+recompute=units"), 2 * s * b * h / t);
}

static void keys(void **state) {
  sn_mesh mesh;
  sn_err err = SN_ERR_INIT;
  (void)state;
  assert_int_equal(sn_mesh_parse("loss=whole,tp=2,gathered=again", &mesh, &err), SN_OK);
  assert_true(mesh.loss_whole && mesh.gather_again);
  assert_string_equal(mesh.text, "tp=2,loss=whole,gathered=again");
  assert_int_equal(sn_mesh_parse("tp=2,loss=split,gathered=kept", &mesh, &err), SN_OK);
  assert_string_equal(mesh.text, "tp=2");
  assert_int_equal(sn_mesh_parse("fsdp=2,loss=whole", &mesh, &err), SN_BAD_USAGE);
  assert_int_equal(sn_mesh_parse("sequence=whole,tp=2,gathered=kept", &mesh, &err), SN_OK);
  assert_true(mesh.sequence_whole);
  assert_string_equal(mesh.text, "tp=2,sequence=whole");
  assert_int_equal(sn_mesh_parse("tp=2,sequence=split", &mesh, &err), SN_OK);
  assert_false(mesh.sequence_whole);
  assert_string_equal(mesh.text, "tp=2");
  assert_int_equal(sn_mesh_parse("tp=1,sequence=whole", &mesh, &err), SN_BAD_USAGE);
}

/* As JSON; to be freed. */
static char *plan_of(const sn_net *net, const char *parallel) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  sn_device gpu = load_gpu("h200");
  size_t size;
  char *text = NULL;
  options.iteration = iteration_of(parallel, SN_OPTIMIZER_ADAMW);
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  sn_simulate_write_plan(net, &gpu, parse_strategy("pytorch"), &options, out, &err);
  must(&err);
  fclose(out);
  return text;
}

static void one_rank(void **state) {
  (void)state;
  sn_net *net = net_of("llm:2,128,4,2,352,256", 2, 64);
  char *plain = plan_of(net, ""), *one = plan_of(net, "tp=1");
  assert_string_equal(plain, one);
  free(plain);
  free(one);
  sn_net_free(net);
}

/* Products take a rank's share; norms' updates and tables all, and with sequence=whole all between products. */
static void check_shares(const char *mesh, bool whole) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = net_of("llm:1,128,4,2,352,256", 2, 64);
  sn_route *route = route_of(net, iteration_of(mesh, SN_OPTIMIZER_ADAMW), &err);
  must(&err);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_step *step = &route->steps[s];
    sn_op op = route->layers[step->layer].op;
    bool between = op == SN_RMS_NORM || op == SN_JOIN || (op == SN_FORK && step->kernel == SN_SUM);
    bool all = op == SN_EMBEDDING ? step->pass != SN_UPDATE
                                  : (whole && between) || (op == SN_RMS_NORM && step->pass == SN_UPDATE);
    if (sn_step_moves(step))
      assert_int_equal(route->transfers[step->sum].axis, SN_MESH_TP);
    else
      assert_int_equal(step->share, all ? 1 : 2);
  }
  sn_route_free(route);
  sn_net_free(net);
}

static void shares(void **state) {
  (void)state;
  check_shares("tp=2", false);
  check_shares("tp=2,sequence=whole", true);
}

/* How many collectives of each kind a rank takes part in, and their bytes. */
static void count_collectives(const sn_net *net, const char *mesh, uint32_t count[], uint64_t bytes[]) {
  sn_err err = SN_ERR_INIT;
  sn_route *route = route_of(net, iteration_of(mesh, SN_OPTIMIZER_ADAMW), &err);
  must(&err);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    if (route->steps[s].kernel != SN_TRANSFER) continue;
    const sn_transfer *t = &route->transfers[route->steps[s].sum];
    count[t->kind]++;
    bytes[t->kind] += t->bytes;
  }
  sn_route_free(route);
}

/* Two layers: with sequence=whole sums alone, forward of the table's and of each row-wise product's output, backward of
 * each input of products by columns. Where it is split gathers and scatters in the place of each, of as many bytes, one
 * gather more for each row-wise product's gradient and the table's, and the norms' gradients. */
static void collectives(void **state) {
  (void)state;
  sn_net *net = net_of("llm:2,128,4,2,352,256", 2, 64);
  const uint64_t value = UINT64_C(2) * 64 * 128 * sizeof(float);
  uint32_t split[SN_TRANSFER_KINDS] = {0}, whole[SN_TRANSFER_KINDS] = {0};
  uint64_t split_bytes[SN_TRANSFER_KINDS] = {0}, whole_bytes[SN_TRANSFER_KINDS] = {0};
  count_collectives(net, "tp=2", split, split_bytes);
  count_collectives(net, "tp=2,sequence=whole", whole, whole_bytes);
  assert_int_equal(whole[SN_ALL_GATHER] + whole[SN_REDUCE_SCATTER], 0);
  assert_int_equal(whole[SN_ALL_REDUCE], 5 + 5);
  assert_int_equal(whole_bytes[SN_ALL_REDUCE], 10 * value);
  assert_int_equal(split[SN_ALL_GATHER], 5 + 5);
  assert_int_equal(split[SN_REDUCE_SCATTER], 5 + 5);
  assert_int_equal(split[SN_ALL_REDUCE], 5);
  assert_int_equal(split_bytes[SN_ALL_GATHER], 10 * value);
  assert_int_equal(split_bytes[SN_REDUCE_SCATTER], 10 * value);
  sn_net_free(net);
}

static int64_t cost_of(const sn_costs *costs, const sn_route *route, uint32_t step) {
  static const uint8_t none[2] = {0, 0};
  return sn_costs_of(costs, route, &route->steps[step], none);
}

/* A rank launches what one GPU does. What memory bounds takes an eighth of the rest; products are of a rank's own shape:
 * no faster than that, and where a rank has few features of them slower by more than a twentieth. */
static void ranks_times(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device device = load_gpu("a100_80");
  sn_net *net = net_of("llm:1,2048,16,16,8192,32000", 1, 2048);
  sn_iteration one = iteration_of("", SN_OPTIMIZER_ADAMW), eight = iteration_of("tp=8", SN_OPTIMIZER_ADAMW);
  one.precision = eight.precision = SN_BF16;
  sn_costs *whole = sn_costs_new_in(net, &device, one, &err), *rank = sn_costs_new_in(net, &device, eight, &err);
  must(&err);
  sn_route *route = route_of(net, eight, &err);
  must(&err);
  uint32_t slower = 0, products = 0;
  for (uint32_t s = 0; s < route->first_backward; s++) {
    if (sn_step_moves(&route->steps[s]) || route->steps[s].share != 8) continue;
    sn_op op = route->layers[route->steps[s].layer].op;
    int64_t all = sn_costs_step(whole, route->steps[s].layer, SN_FORWARD, (const uint8_t[2]){0, 0});
    int64_t launches = (op == SN_FC ? 2 : 1) * device.launch_ns;
    int64_t mine = cost_of(rank, route, s), ideal = launches + (all - launches) / 8;
    if (op == SN_JOIN || op == SN_MUL) assert_int_equal(mine, ideal);
    if (op != SN_FC) continue;
    assert_true(mine >= ideal - 1);
    slower += mine > ideal + ideal / 20;
    products++;
  }
  assert_int_equal(products, 8);
  assert_int_equal(slower, 6); /* all but what has 2,048 outputs on every rank: 256 to 4,000 a rank */
  sn_route_free(route);
  sn_costs_free(whole);
  sn_costs_free(rank);
  sn_net_free(net);
}

/* ---- weights in four bytes ---- */

static sn_run *run_masters(const char *mesh, bool master, uint32_t micros) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *net = net_of("llm:4,1024,8,8,2816,512", 2, 64);
  options.iteration = iteration_of(mesh, SN_OPTIMIZER_ADAMW_FUSED);
  options.iteration.accumulate = micros;
  options.iteration.precision = SN_BF16;
  options.iteration.master = master;
  sn_run *run = micros > 1 ? sn_stages_simulate("llm", net, &gpu, &pytorch, 1, &options, &err)
                           : sn_simulate("llm", net, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

/* Megatron's 18 bytes a parameter (Korthikanti et al., MLSys 2023): two, a gradient of four, and of the optimizer a
 * weight and two moments of four. A micro-batch's own gradients, of two, go as they are added. */
static void has_masters(const sn_result *plain, const sn_result *r, const char *mesh) {
  uint64_t elements = plain->live.parameters / 2, counters = plain->live.optimizer - 4 * elements;
  assert_int_equal(r->live.parameters, 2 * elements);
  assert_int_equal(r->live.optimizer, 12 * elements + counters);
  assert_true(r->live.gradients >= 4 * elements && r->live.gradients < 5 * elements);
  assert_true(r->allocated_bytes >= sn_live_total(&r->live));                  /* the allocator holds them too */
  if (!strstr(mesh, "dp")) assert_true(r->iteration_ns > plain->iteration_ns); /* DDP copies gradients twice */
}

static void masters_are_18_bytes(void **state) {
  (void)state;
  sn_run *plain, *masters;
  static const char *const alone[] = {"", "tp=2", "dp=2", "tp=2,dp=2"};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
    plain = run_masters(alone[i], false, 1);
    masters = run_masters(alone[i], true, 1);
    has_masters(&plain->results[0], &masters->results[0], alone[i]);
    assert_true(masters->results[0].allocated_bytes >= sn_live_total(&masters->results[0].live));
    sn_run_free(plain);
    sn_run_free(masters);
  }
  static const char *const meshes[] = {"tp=2,pp=2", "pp=4", "pp=2,schedule=zb-h1", "dp=2,pp=2"};
  for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
    plain = run_masters(meshes[i], false, 4);
    masters = run_masters(meshes[i], true, 4);
    for (uint32_t s = 0; s < plain->n_stages; s++)
      has_masters(&plain->stages[s]->results[0], &masters->stages[s]->results[0], meshes[i]);
    sn_run_free(plain);
    sn_run_free(masters);
  }
}

/* ---- random networks ---- */

/* One whose sizes eight ranks divide. */
static sn_net *random_llm(uint64_t *dice, char *spec, size_t room) {
  uint32_t heads = 8U << prng_below(dice, 2), width = heads * 8 * prng_from(dice, 1, 3),
           kv = heads >> prng_below(dice, 2);
  uint32_t layers = prng_from(dice, 1, 3), ffn = 8 * prng_from(dice, 4, 60), words = 8 * prng_from(dice, 4, 200);
  uint32_t batch = prng_from(dice, 1, 3), tokens = 8 * prng_from(dice, 2, 24);
  snprintf(spec, room, "llm:%u,%u,%u,%u,%u,%u", layers, width, heads, kv < 8 ? 8 : kv, ffn, words);
  return net_of(spec, batch, tokens);
}

static void random_networks(void **state) {
  static const char *const others[] = {
      "",        "",      ",loss=whole",  ",gathered=again",       ",sequence=whole", ",sequence=whole,loss=whole",
      ",fsdp=2", ",dp=2", ",fsdp=3,dp=2", ",fsdp=2,sequence=whole"};
  static const char *const strategies[] = {"pytorch", "pytorch+recompute=units"};
  uint64_t seed = first_seed(1);
  (void)state;
  for (uint32_t i = 0, n = case_count(CASES); i < n; i++, seed++) {
    uint64_t dice = seed, before = UINT64_MAX;
    char spec[80], parallel[64];
    sn_net *net = random_llm(&dice, spec, sizeof spec);
    const char *other = others[prng_below(&dice, sizeof others / sizeof *others)];
    const char *strategy = strategies[prng_below(&dice, 2)];
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2) {
      snprintf(parallel, sizeof parallel, "tp=%u%s", ranks, other);
      sn_live live = live_of(spec, net, strategy, iteration_of(parallel, SN_OPTIMIZER_ADAMW));
      if (sn_live_total(&live) >= before)
        fail_msg("seed %llu: %s, %s, %s: no fewer bytes than on half as many", (unsigned long long)seed, spec, parallel,
                 strategy);
      before = sn_live_total(&live);
    }
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measured),
      cmocka_unit_test(measured_again),
      cmocka_unit_test(measured_selective),
      cmocka_unit_test(measured_of_transformers),
      cmocka_unit_test(measured_under_autocast),
      cmocka_unit_test(measured_again_under_autocast),
      cmocka_unit_test(refusals),
      cmocka_unit_test(megatron_s_formulas),
      cmocka_unit_test(keys),
      cmocka_unit_test(one_rank),
      cmocka_unit_test(shares),
      cmocka_unit_test(collectives),
      cmocka_unit_test(ranks_times),
      cmocka_unit_test(masters_are_18_bytes),
      cmocka_unit_test(random_networks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
