/* Answers about pipelines (sim/stages/stages.h), some or all of whose plans have one round for many, are those of plans of
 * all micro-batches, to the byte and the nanosecond: random networks, meshes, micro-batches and memories. */
#include "sim/stages/stages.h"
#include "sim/stages/together.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { OWN_CASES = 200 };

typedef struct question {
  const char *net;
  uint32_t batch, n_strategies;
  sn_strategy strategies[2];
  sn_device device;
  sn_options options;
  uint64_t seed;
} question;

/* Links may be slow enough for shards to be what is waited for. */
static sn_device throw_cluster(question *q, uint64_t *dice, sn_err *err) {
  static const char *const clusters[] = {"h100x8", "rtx4090x8"};
  sn_cluster *cluster = &q->options.cluster;
  sn_cluster_load(clusters[prng_below(dice, 2)], cluster, err);
  uint32_t slower = prng_chance(dice, 50) ? prng_from(dice, 2, 40) : 1;
  cluster->gpus_per_node *= cluster->nics > 0 ? 1 : 16; /* no network is known: 128 GPUs, the most, are one node */
  cluster->node.line /= slower;
  cluster->node.bus /= slower;
  return load_gpu(cluster->gpu);
}

/* More than a round more than are run: some of them idle. */
static void throw(question * q, uint64_t *dice, sn_err *err) {
  static const struct {
    const char *net;
    uint32_t batch;
    bool divides;
  } nets[] = {{"llm:8,64,4,4,160,100", 1, true},
              {"llm:8,512,8,2,1408,3000", 2, true},
              {"llm:9,320,4,4,800,40000", 1, true},
              {"tv_resnet18", 2, false},
              {"vit_b_16", 1, false},
              {"bert_base", 1, false}};
  static const char *const optimizers[] = {"adamw", "sgd", "momentum"};
  uint32_t n = prng_below(dice, sizeof nets / sizeof *nets), stages = prng_from(dice, 2, 8);
  bool doubles = stages % 2 == 0 && stages != 6; /* whole nodes of 8 */
  static const char *const divided[] = {"", "", ",tp=2", ",tp=2,sequence=whole"};
  char mesh[80];
  static const char *const shards[] = {"",
                                       "",
                                       ",fsdp=2",
                                       ",fsdp=2,reshard=no",
                                       ",fsdp=4,prefetch=2",
                                       ",fsdp=2,keep-last=yes",
                                       ",fsdp=2,reduce=bf16",
                                       ",fsdp=2,schedule=interleaved:2"};
  const char *units =
      stages == 4 && n < 2 && prng_chance(dice, 50) ? ",stages=1,3,3,1" : ""; /* the second is fullest */
  uint32_t of_shards =
      prng_below(dice, sizeof shards / sizeof *shards - (units[0] ? 1 : 0)); /* the last has more parts */
  snprintf(mesh, sizeof mesh, "pp=%u%s%s%s%s", stages, doubles && prng_chance(dice, 50) ? ",dp=2" : "",
           doubles && nets[n].divides ? divided[prng_below(dice, 4)] : "", doubles ? shards[of_shards] : "", units);
  q->net = nets[n].net;
  q->batch = nets[n].batch;
  q->n_strategies = 2;
  q->options = (sn_options)SN_OPTIONS_INIT;
  q->options.iteration.accumulate = prng_from(dice, stages, 6 * stages + 20);
  static const sn_precision precisions[] = {SN_BF16, SN_FP32, SN_AMP_BF16};
  q->options.iteration.precision = precisions[prng_below(dice, sizeof precisions / sizeof *precisions)];
  sn_optimizer_parse(optimizers[prng_below(dice, 3)], &q->options.iteration.optimizer, err);
  sn_mesh_parse(mesh, &q->options.iteration.mesh, err);
  if (sn_mesh_chunks(&q->options.iteration.mesh) > 1)
    q->options.iteration.accumulate -= q->options.iteration.accumulate % stages;
  q->options.iteration.master = q->options.iteration.precision == SN_BF16 &&
                                sn_mesh_size(&q->options.iteration.mesh, SN_MESH_FSDP) > 1 && prng_chance(dice, 50);
  q->strategies[0] = parse_strategy("pytorch");
  q->strategies[1] = parse_strategy("pytorch+recompute=units");
  q->device = throw_cluster(q, dice, err);
}

static void fail_question(const question *q, const char *what, uint64_t found, uint64_t expected) {
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, batch %u, --parallel %s, accumulate %u: %s is %" PRIu64
           ", not %" PRIu64,
           q->seed, q->net, q->batch, q->options.iteration.mesh.text, q->options.iteration.accumulate, what, found,
           expected);
}

static void must_be(const question *q, const char *what, uint64_t found, uint64_t expected) {
  if (found != expected) fail_question(q, what, found, expected);
}

static void compare(const question *q, const sn_result *found, const sn_result *all) {
  const sn_shared_row *a = &found->shared, *b = &all->shared;
  must_be(q, "fits", found->fits, all->fits);
  must_be(q, "peak_device_bytes", found->peak_device_bytes, all->peak_device_bytes);
  if (!all->fits) must_be(q, "least_device_bytes", found->least_device_bytes, all->least_device_bytes);
  must_be(q, "iteration_ns", (uint64_t)found->iteration_ns, (uint64_t)all->iteration_ns);
  must_be(q, "exposed_ns", (uint64_t)a->exposed_ns, (uint64_t)b->exposed_ns);
  must_be(q, "bubble_ns", (uint64_t)a->bubble_ns, (uint64_t)b->bubble_ns);
  if (found->images_per_second != all->images_per_second || a->flops_share != b->flops_share)
    fail_question(q, "images/s, rounded,", (uint64_t)found->images_per_second, (uint64_t)all->images_per_second);
}

/* ---- all micro-batches ---- */

typedef struct reference {
  sn_run *of[8]; /* stages */
  uint32_t stages;
  sn_result results[2]; /* of the pipeline, by strategy */
} reference;

static void ask_stage(const question *q, const sn_net *net, uint32_t stage, sn__together *all, reference *r,
                      sn_err *err) {
  const sn_options options = sn_stages_options(&q->options, stage);
  sn_planner *planner = sn_planner_new_stage(NULL, net, &q->device, &options, err);
  r->of[stage] = planner ? sn_planner_run(planner, q->net, q->strategies, q->n_strategies, err) : NULL;
  const sn_route *route = r->of[stage] ? sn_planner_route(planner, q->strategies[0], err) : NULL;
  if (route) sn__together_add(all, stage, route, err);
  sn_planner_free(planner);
}

/* Each stage for itself, of all its micro-batches. False: it has fewer blocks than stages. */
static bool ask_all(const question *q, const sn_net *net, reference *r) {
  sn_err err = SN_ERR_INIT;
  sn__together all;
  *r = (reference){.stages = sn_mesh_size(&q->options.iteration.mesh, SN_MESH_PP)};
  sn__together_open(&all, net, &q->device, &q->options, true, &err);
  for (uint32_t s = 0; s < r->stages && err.code == SN_OK; s++) ask_stage(q, net, s, &all, r, &err);
  if (err.code == SN_OK) sn__together_judge(&all, &err);
  for (uint32_t i = 0; i < q->n_strategies && err.code == SN_OK; i++) {
    const sn_result *own[8] = {NULL};
    for (uint32_t s = 0; s < r->stages; s++) own[s] = &r->of[s]->results[i];
    sn__together_join(&all, own, &r->results[i], &err);
  }
  sn__together_close(&all);
  if (err.code == SN_BAD_INPUT) return false;
  must(&err);
  return true;
}

static void reference_free(reference *r) {
  for (uint32_t s = 0; s < r->stages; s++) sn_run_free(r->of[s]);
}

/* ---- the answer of a question, in full ---- */

static bool is_same_text(const char *a, const char *b) {
  return !a || !b ? a == b : strcmp(a, b) == 0;
}

static bool is_same_real(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

static bool is_same_count(uint64_t a, uint64_t b) {
  return a == b;
}

static bool is_same_time(int64_t a, int64_t b) {
  return a == b;
}

#define SAME(a, b)                                                                                                     \
  _Generic((a), const char *: is_same_text, double: is_same_real, int64_t: is_same_time, default: is_same_count)(a, b)

/* Whatever is told of a pipeline. */
static void compare_fields(const question *q, const sn_result *found, const sn_result *all) {
#define COMPARE(range, member, name, column)                                                                           \
  if (!SAME(found->member, all->member)) fail_question(q, name, 0, 1);
  SN_RESULT_FIELDS(COMPARE)
#undef COMPARE
  must_be(q, "the fullest stage", found->shared.stage, all->shared.stage);
}

/* Whatever is told of a stage. */
static void compare_stages(const question *q, const sn_result *found, const sn_result *all) {
  const sn_shared_row *a = &found->shared, *b = &all->shared;
  must_be(q, "a stage fits", found->fits, all->fits);
  must_be(q, "a stage's peak_device_bytes", found->peak_device_bytes, all->peak_device_bytes);
  must_be(q, "a stage's reserved_bytes", found->reserved_bytes, all->reserved_bytes);
  must_be(q, "a stage's communicators", a->communicator_bytes, b->communicator_bytes);
  must_be(q, "a stage's forward_ns", (uint64_t)a->forward_ns, (uint64_t)b->forward_ns);
  must_be(q, "a stage's backward_ns", (uint64_t)a->backward_ns, (uint64_t)b->backward_ns);
  must_be(q, "a stage's update_ns", (uint64_t)a->update_ns, (uint64_t)b->update_ns);
  must_be(q, "a stage's live", sn_live_total(&found->live), sn_live_total(&all->live));
  must_be(q, "a stage's parameters", found->live.parameters, all->live.parameters);
  must_be(q, "a stage's buffers", found->live.buffers, all->live.buffers);
  must_be(q, "a stage's gradients", found->live.gradients, all->live.gradients);
  must_be(q, "a stage's optimizer", found->live.optimizer, all->live.optimizer);
  must_be(q, "a stage's activations", found->live.activations, all->live.activations);
  must_be(q, "a stage's shards of gradients", a->sharded_gradients, b->sharded_gradients);
  must_be(q, "a stage's whole parameters", a->unsharded_parameters, b->unsharded_parameters);
  must_be(q, "a stage's whole gradients", a->unsharded_gradients, b->unsharded_gradients);
  must_be(q, "a stage's gathered", a->gather_buffers, b->gather_buffers);
  must_be(q, "a stage's buckets", a->buckets, b->buckets);
}

static void compare_full(const question *q, const sn_net *net, const reference *all) {
  sn_err err = SN_ERR_INIT;
  sn_run *run = sn_stages_simulate(q->net, net, &q->device, q->strategies, q->n_strategies, &q->options, &err);
  must(&err);
  for (uint32_t i = 0; i < q->n_strategies; i++) {
    compare_fields(q, &run->results[i], &all->results[i]);
    for (uint32_t s = 0; s < all->stages; s++) compare_stages(q, &run->stages[s]->results[i], &all->of[s]->results[i]);
  }
  sn_run_free(run);
}

/* ---- in brief ---- */

/* Plans of a brief answer are of fewer micro-batches; how many of them. */
static uint32_t count_shorter(const sn_run *brief, const reference *all) {
  uint32_t shorter = 0;
  for (uint32_t s = 0; s < all->stages; s++)
    shorter += brief->stages[s]->results[0].instructions < all->of[s]->results[0].instructions;
  return shorter;
}

static sn_run *ask_brief(const question *q, const sn_net *net, bool only_fits) {
  sn_err err = SN_ERR_INIT;
  sn_run *run = sn_stages_brief(q->net, net, &q->device, q->strategies, q->n_strategies, &q->options, only_fits, &err);
  must(&err);
  return run;
}

/* With all memory, and with little more or less than is needed. */
static uint32_t compare_all(question *q, const sn_net *net, uint64_t memory, uint64_t *needed) {
  reference all;
  uint32_t shorter = 0;
  q->device.memory_bytes = memory;
  if (ask_all(q, net, &all)) {
    compare_full(q, net, &all);
    sn_run *brief = ask_brief(q, net, false), *alone = ask_brief(q, net, true);
    for (uint32_t i = 0; i < q->n_strategies; i++) {
      compare(q, &brief->results[i], &all.results[i]);
      must_be(q, "fits alone", alone->results[i].fits, all.results[i].fits);
    }
    shorter = count_shorter(brief, &all);
    *needed = all.results[0].peak_device_bytes;
    sn_run_free(brief);
    sn_run_free(alone);
  }
  reference_free(&all);
  return shorter;
}

static void brief_answers_are_those_of_all(void **state) {
  (void)state;
  uint64_t seed = first_seed(2901), needed = 0;
  uint32_t cases = case_count(OWN_CASES), shorter = 0;
  for (uint32_t i = 0; i < cases; i++) {
    sn_err err = SN_ERR_INIT;
    question q = {.seed = seed + i};
    uint64_t dice = q.seed;
    throw(&q, &dice, &err);
    must(&err);
    sn_net *net = sn_net_load(q.net, q.batch, strncmp(q.net, "llm", 3) == 0 ? 128 : 0, &err);
    must(&err);
    uint32_t more = compare_all(&q, net, UINT64_C(1) << 40, &needed);
    shorter += more;
    if (more > 0) compare_all(&q, net, needed / 100 * prng_from(&dice, 85, 101), &needed);
    sn_net_free(net);
  }
  assert_true(shorter >= cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(brief_answers_are_those_of_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
