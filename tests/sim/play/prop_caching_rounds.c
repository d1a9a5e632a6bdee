/* What PyTorch's allocator is left with by a stage's plan in which one round stands for many (sim/parallel/rounds.h), or
 * some of those for others that repeat them (sim/play/caching_seen.h), is what a plan of all micro-batches leaves: random
 * networks, meshes, micro-batches and limits. */
#include "sim/ask/simulate.h"
#include "sim/parallel/rounds.h"
#include "sim/play/caching_replay.h"
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { OWN_CASES = 300 };

typedef struct question {
  const char *net;
  sn_device device;
  sn_strategy strategy;
  sn_options options;
  uint32_t stage;
  uint64_t before[3], seed;
} question;

static question throw(uint64_t seed, sn_err *err) {
  static const char *const nets[] = {"llm:8,64,4,4,160,100", "llm:6,512,8,2,1408,3000", "llm:8,1024,8,8,2816,1000"};
  static const char *const meshes[] = {"", "", ",fsdp=2", ",fsdp=2,reshard=no", ",tp=2"};
  static const char *const strategies[] = {"pytorch", "pytorch+recompute=units"};
  question q = {.seed = seed, .options = SN_OPTIONS_INIT};
  uint64_t dice = seed;
  char mesh[80];
  uint32_t stages = prng_chance(&dice, 50) ? 2 : 4;
  snprintf(mesh, sizeof mesh, "pp=%u%s", stages, meshes[prng_below(&dice, sizeof meshes / sizeof *meshes)]);
  sn_mesh_parse(mesh, &q.options.iteration.mesh, err);
  sn_cluster_load("h100x8", &q.options.cluster, err);
  q.device = load_gpu(q.options.cluster.gpu);
  q.net = nets[prng_below(&dice, sizeof nets / sizeof *nets)];
  q.strategy = parse_strategy(strategies[prng_below(&dice, 2)]);
  q.options.iteration.accumulate = prng_from(&dice, 3 * stages, 150);
  q.options.iteration.precision = prng_chance(&dice, 50) ? SN_BF16 : SN_FP32;
  q.stage = prng_below(&dice, stages);
  for (int i = 0; i < 3; i++) q.before[i] = prng_from(&dice, 1, 64) << prng_from(&dice, 9, 20);
  return q;
}

/* *limit: SN_CACHING_NO_LIMIT, or what is to be had. */
static sn_caching_replayed replay(const question *q, const sn_net *net, bool brief, uint64_t limit, uint32_t *instrs) {
  sn_err err = SN_ERR_INIT;
  sn_options options = sn_stages_options(&q->options, q->stage);
  sn_mesh *mesh = &options.iteration.mesh;
  const uint32_t all = mesh->micros;
  mesh->micros = brief ? sn_rounds_running(mesh, all) : all;
  mesh->idle = all - mesh->micros;
  sn_planner *planner = sn_planner_new_stage(NULL, net, &q->device, &options, &err);
  sn_plan *plan = planner ? sn_planner_plan(planner, q->strategy, UINT64_C(1) << 40, false, &err) : NULL;
  must(&err);
  const sn_caching_load load = {.limit_bytes = limit, .before = q->before, .n_before = 3};
  sn_caching_replayed r;
  sn_caching_replay(plan, &load, &r, &err);
  must(&err);
  assert_true(!brief || sn_caching_rounds_alike(plan));
  *instrs = plan->n_instrs;
  sn_plan_free(plan);
  sn_planner_free(planner);
  return r;
}

static void must_be(const question *q, const char *what, uint64_t found, uint64_t expected) {
  if (found != expected)
    fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, stage %u of --parallel %s, accumulate %u: %s is %" PRIu64
             ", not %" PRIu64,
             q->seed, q->net, q->stage, q->options.iteration.mesh.text, q->options.iteration.accumulate, what, found,
             expected);
}

static void compare(const question *q, const sn_caching_replayed *found, const sn_caching_replayed *all) {
  must_be(q, "fits", found->fits, all->fits);
  must_be(q, "failed_iteration", found->failed_iteration, all->failed_iteration);
  must_be(q, "failed_bytes", found->failed_bytes, all->failed_bytes);
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) {
    must_be(q, "an iteration's allocated", found->iterations[i].allocated_bytes, all->iterations[i].allocated_bytes);
    must_be(q, "an iteration's reserved", found->iterations[i].reserved_bytes, all->iterations[i].reserved_bytes);
  }
  must_be(q, "allocated_bytes", found->figures.allocated_bytes, all->figures.allocated_bytes);
  must_be(q, "reserved_bytes", found->figures.reserved_bytes, all->figures.reserved_bytes);
  must_be(q, "reserved_peak", found->figures.reserved_peak, all->figures.reserved_peak);
  must_be(q, "segments", found->figures.segments, all->figures.segments);
  must_be(q, "retries", found->figures.retries, all->figures.retries);
  must_be(q, "largest_split_bytes", found->largest_split_bytes, all->largest_split_bytes);
}

static void rounds_leave_what_all_leave(void **state) {
  (void)state;
  const uint64_t seed = first_seed(411);
  const uint32_t cases = case_count(OWN_CASES);
  uint32_t shorter = 0;
  for (uint32_t i = 0; i < cases; i++) {
    sn_err err = SN_ERR_INIT;
    const question q = throw(seed + i, &err);
    must(&err);
    sn_net *net = sn_net_load(q.net, 1, 128, &err);
    must(&err);
    uint32_t all_instrs, instrs;
    const sn_caching_replayed all = replay(&q, net, false, SN_CACHING_NO_LIMIT, &all_instrs);
    const sn_caching_replayed found = replay(&q, net, true, SN_CACHING_NO_LIMIT, &instrs);
    compare(&q, &found, &all);
    const uint64_t limit = all.figures.reserved_peak / 100 * (80 + q.seed % 20);
    const sn_caching_replayed tight = replay(&q, net, false, limit, &all_instrs),
                              found_tight = replay(&q, net, true, limit, &instrs);
    compare(&q, &found_tight, &tight);
    shorter += instrs < all_instrs;
    sn_net_free(net);
  }
  assert_true(2 * shorter >= cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_leave_what_all_leave)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
