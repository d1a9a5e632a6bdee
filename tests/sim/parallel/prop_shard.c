/* Properties of plans of one of several GPUs, over random networks, meshes and strategies: the checker accepts them, an
 * oracle with memory of its own finds what every step expects with the lanes at any pace, bytes are what the checker
 * counts, written and read they come back to the byte, and a plan whose wait is lost is rejected or does no harm. */
#include "sim/make/make.h"
#include "sim/parallel/shard.h"
#include "sim/plan/check.h"
#include "sim/plan/lower.h"
#include "sim/plan/read.h"
#include "sim/schedule/schedule.h"
#include "tests/sim/plan/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { OWN_CASES = 300, PACES = 6 };

typedef struct world {
  uint64_t seed, dice;
  sn_net *net;
  sn_iteration iteration;
  sn_strategy strategy;
  sn_device device;
  sn_route *route;
  sn_schedule *schedule;
  sn_costs *costs;
  sn_plan *plan;
} world;

static void fail_world(const world *w, const char *what) {
  char name[SN_STRATEGY_TEXT];
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %u layers, --parallel %s, accumulate %u, %s: %s", w->seed,
           w->net ? w->net->n_layers : 0, w->iteration.mesh.text, w->iteration.accumulate,
           sn_strategy_name(w->strategy, name), what);
}

static sn_mesh random_mesh(uint64_t *dice, sn_err *err) {
  static const char *const reshards[] = {"yes", "no", "2"}, *const schedules[] = {"zb-h1", "1f1b", "gpipe",
                                                                                  "interleaved:2", "interleaved:4"};
  char text[120];
  uint32_t ranks = prng_from(dice, 2, 9);
  sn_mesh mesh;
  if (prng_chance(dice, 25))
    snprintf(text, sizeof text, "pp=%u,dp=%u,schedule=%s", prng_from(dice, 2, 4), prng_chance(dice, 30) ? 2 : 1,
             schedules[prng_below(dice, 5)]);
  else if (prng_chance(dice, 35))
    snprintf(text, sizeof text, "pp=%u,dp=%u,schedule=%s,fsdp=%u,reshard=%s,keep-last=%s,prefetch=%u,reduce=%s",
             prng_from(dice, 2, 4), prng_chance(dice, 30) ? 2 : 1, schedules[prng_from(dice, 1, 4)], ranks,
             reshards[prng_below(dice, 2)], prng_chance(dice, 30) ? "yes" : "no", prng_from(dice, 1, 3),
             prng_chance(dice, 50) ? "bf16" : "fp32");
  else if (prng_chance(dice, 20))
    snprintf(text, sizeof text, "dp=%u,zero=%u", ranks, prng_from(dice, 1, 2));
  else if (prng_chance(dice, 25))
    snprintf(text, sizeof text, "dp=%u,view=%s,bucket=1MiB", ranks, prng_chance(dice, 50) ? "yes" : "no");
  else
    snprintf(text, sizeof text, "dp=%u,fsdp=%u,reshard=%s,keep-last=%s,prefetch=%u,reduce=%s,sync=%s",
             prng_chance(dice, 30) ? 2 : 1, ranks, reshards[prng_below(dice, ranks % 2 ? 2 : 3)],
             prng_chance(dice, 30) ? "yes" : "no", prng_from(dice, 1, 3), prng_chance(dice, 50) ? "bf16" : "fp32",
             prng_chance(dice, 50) ? "each" : "last");
  sn_mesh_parse(text, &mesh, err);
  return mesh;
}

static sn_strategy random_strategy(uint64_t *dice) {
  sn_strategy s = {.liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH};
  if (prng_chance(dice, 50)) s.recompute = SN_RECOMPUTE_UNITS;
  if (prng_chance(dice, 30)) s.offload = SN_OFFLOAD_SAVED;
  return s;
}

/* Of a pipeline: of which stage it is, and for how many micro-batches. */
static void choose_stage(world *w) {
  sn_mesh *mesh = &w->iteration.mesh;
  uint32_t stages = sn_mesh_size(mesh, SN_MESH_PP);
  if (stages == 1) return;
  mesh->stage = prng_below(&w->dice, stages);
  mesh->micros = sn_mesh_chunks(mesh) > 1 ? stages * prng_from(&w->dice, 1, 3) : prng_from(&w->dice, 1, 6);
  w->iteration.accumulate = 1;
  w->strategy.offload = SN_OFFLOAD_NONE;
  if (mesh->schedule == SN_SCHEDULE_ZB_H1) w->strategy.recompute = SN_RECOMPUTE_NONE;
}

static void close_world(world *w) {
  sn_plan_free(w->plan);
  sn_schedule_free(w->schedule);
  sn_route_free(w->route);
  sn_costs_free(w->costs);
  sn_net_free(w->net);
}

/* False: no pipeline goes through the network, which has too few layers or values that skip stages; or what a selective
 * checkpoint keeps is changed in place. */
static bool open_world(world *w, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  *w = (world){.seed = seed, .dice = seed, .device = load_gpu("h100")};
  w->net = prng_chance(&w->dice, 60) ? random_net_new_today(&w->dice, &err) : random_net_new(&w->dice, &err);
  w->iteration = (sn_iteration){.optimizer = (sn_optimizer)prng_below(&w->dice, SN_OPTIMIZER_ADAM8BIT),
                                .accumulate = prng_chance(&w->dice, 30) ? 3 : 1,
                                .precision = prng_chance(&w->dice, 40) ? SN_BF16 : SN_FP32};
  w->iteration.mesh = random_mesh(&w->dice, &err);
  w->iteration.master = w->iteration.precision == SN_BF16 && sn_mesh_size(&w->iteration.mesh, SN_MESH_FSDP) > 1 &&
                        prng_chance(&w->dice, 50);
  if (w->iteration.precision == SN_BF16 && w->iteration.mesh.zero > 0) w->iteration.master = true;
  w->strategy = random_strategy(&w->dice);
  choose_stage(w);
  bool selects = w->strategy.recompute == SN_RECOMPUTE_UNITS && sn_mesh_size(&w->iteration.mesh, SN_MESH_PP) == 1;
  if (selects && prng_chance(&w->dice, 50)) w->strategy = parse_strategy("pytorch+recompute=selective");
  if (w->net) w->costs = sn_costs_new_in(w->net, &w->device, w->iteration, &err);
  if (w->costs) w->route = sn_schedule_route(w->net, w->strategy, w->iteration, w->costs, &err);
  if (w->route) w->schedule = sn_schedule_new(w->route, w->strategy.recompute, &err);
  if (w->schedule) w->plan = sn_lower(w->schedule, w->strategy, SN_WORKSPACE_NONE, w->costs, UINT64_C(1) << 50, &err);
  bool may_not = sn_mesh_size(&w->iteration.mesh, SN_MESH_PP) > 1 || w->strategy.recompute == SN_RECOMPUTE_SELECTIVE;
  if (may_not && err.code == SN_BAD_INPUT) {
    close_world(w);
    return false;
  }
  if (err.code != SN_OK) fail_world(w, err.text);
  return true;
}

static void check_plan(world *w) {
  sn_err err = SN_ERR_INIT;
  sn_check_report report = {.use = oracle_array(w->route->n_steps, sizeof(sn_step_use))};
  if (sn_check(w->plan, &report, &err) != SN_OK) fail_world(w, err.text);
  for (uint32_t s = 0; s < w->route->n_steps; s++)
    if (report.use[s].tensor_bytes != w->plan->use[s].tensor_bytes) fail_world(w, "the checker counts other bytes");
  if (report.high_water != w->plan->pool_bytes) fail_world(w, "the pool is of another size");
  free(report.use);
}

static char *written(const world *w, const sn_plan *plan, size_t *bytes) {
  char name[SN_STRATEGY_TEXT], *text = NULL;
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  options.iteration = w->iteration;
  FILE *out = open_memstream(&text, bytes);
  assert_non_null(out);
  sn_plan_write(plan, sn_strategy_name(w->strategy, name), &w->device, &options, out, &err);
  fclose(out);
  must(&err);
  return text;
}

/* As a file of the stage's own question. */
static void comes_back(const world *w) {
  sn_err err = SN_ERR_INIT;
  sn_plan_head head;
  size_t bytes, again_bytes;
  char *text = written(w, w->plan, &bytes);
  sn_json_lists *file = sn_plan_parse("p.json", text, bytes, &err);
  if (!file || sn_plan_read_head(file, &head, &err) != SN_OK) fail_world(w, err.text);
  const sn_mesh *mesh = &head.options.iteration.mesh;
  if (mesh->stage != w->iteration.mesh.stage || mesh->micros != w->route->micros ||
      strcmp(mesh->text, w->iteration.mesh.text) != 0)
    fail_world(w, "it is read as another GPU's");
  sn_plan *plan = sn_plan_read(file, w->plan->route, &err);
  if (!plan) fail_world(w, err.text);
  plan->pool_limit = w->plan->pool_limit; /* the device's */
  char *again = written(w, plan, &again_bytes);
  if (bytes != again_bytes || memcmp(text, again, bytes) != 0) fail_world(w, "it changes in a file");
  free(text);
  free(again);
  sn_plan_free(plan);
  sn_json_lists_free(file);
}

/* All paces of dice: the strict ones know three lanes. */
static bool runs(world *w, const sn_plan *plan, oracle *o) {
  if (!oracle_load(o, plan)) return false;
  for (uint32_t i = 0; i < PACES; i++)
    if (!oracle_run(o, ORACLE_ADVERSARIES, prng_chance(&w->dice, 50), &w->dice)) return false;
  return true;
}

static void plans_are_right(void **state) {
  (void)state;
  uint64_t first = first_seed(20261129), transfers = 0, reruns = 0, copies = 0, staged = 0, shards = 0;
  for (uint32_t n = 0, cases = case_count(OWN_CASES); n < cases; n++) {
    world w;
    oracle o;
    if (!open_world(&w, first + n)) continue;
    check_plan(&w);
    comes_back(&w);
    if (!runs(&w, w.plan, &o)) fail_world(&w, o.fault);
    oracle_free(&o);
    for (uint32_t s = 0; s < w.route->n_steps; s++) transfers += w.route->steps[s].kernel == SN_TRANSFER;
    reruns += w.plan->counts.recomputed_layers;
    copies += w.plan->counts.offload_bytes > 0;
    staged += w.route->micros > 0;
    shards += w.route->micros > 0 && sn_mesh_size(&w.iteration.mesh, SN_MESH_FSDP) > 1;
    close_world(&w);
  }
  print_message("%" PRIu64 " transfers, %" PRIu64 " layers run again, %" PRIu64 " plans copy, %" PRIu64
                " are of stages, %" PRIu64 " of them sharded\n",
                transfers, reruns, copies, staged, shards);
  assert_true(transfers > 0);
}

/* A wait is lost: where the checker takes it, the oracle finds nothing wrong at any pace that it tries. */
static void lost_waits_are_found(void **state) {
  (void)state;
  uint64_t first = first_seed(29112026), rejected = 0, harmless = 0;
  for (uint32_t n = 0, cases = case_count(OWN_CASES); n < cases; n++) {
    world w;
    if (!open_world(&w, first + n)) continue;
    for (uint32_t i = 0, found = 0; i < w.plan->n_instrs && found < 12; i++) {
      sn_plan damaged = *w.plan;
      sn_err err = SN_ERR_INIT;
      oracle o;
      if (w.plan->instrs[i].kind != SN_WAIT || !prng_chance(&w.dice, 30)) continue;
      damaged.instrs = oracle_array(w.plan->n_instrs, sizeof *damaged.instrs);
      memcpy(damaged.instrs, w.plan->instrs, i * sizeof *damaged.instrs);
      memcpy(damaged.instrs + i, w.plan->instrs + i + 1, (w.plan->n_instrs - i - 1) * sizeof *damaged.instrs);
      damaged.n_instrs--;
      found++;
      bool taken = sn_check(&damaged, NULL, &err) == SN_OK;
      *(taken ? &harmless : &rejected) += 1;
      if (taken && !runs(&w, &damaged, &o)) fail_world(&w, o.fault);
      if (taken) oracle_free(&o);
      free(damaged.instrs);
    }
    close_world(&w);
  }
  print_message("%" PRIu64 " rejected, %" PRIu64 " harmless\n", rejected, harmless);
  assert_true(rejected > 0);
}

/* Memory falls as shards do, and more ranks never keep more. */
static void shards_shrink(void **state) {
  (void)state;
  uint64_t first = first_seed(1129);
  for (uint32_t n = 0, cases = case_count(OWN_CASES); n < cases; n++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = first + n, before = UINT64_MAX;
    sn_net *net = random_net_new_today(&dice, &err);
    must(&err);
    for (uint32_t ranks = 1; ranks <= 64; ranks *= 2) {
      uint64_t kept = 0;
      for (uint32_t l = 0; l < net->n_layers; l++) {
        sn_cut cuts[SN_PARAMETER_TENSORS];
        uint32_t count = sn_cuts_of(net, &net->layers[l], 1, cuts);
        for (uint32_t i = 0; i < count; i++) {
          assert_true(sn_cut_padded(cuts[i], ranks) >= cuts[i].rows * cuts[i].each);
          assert_int_equal(sn_cut_padded(cuts[i], ranks), ranks * sn_cut_shard(cuts[i], ranks));
          kept += sn_cut_shard(cuts[i], ranks);
        }
      }
      assert_true(kept <= before);
      before = kept;
    }
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_right), cmocka_unit_test(lost_waits_are_found),
                                     cmocka_unit_test(shards_shrink)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
