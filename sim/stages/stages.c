/* Stages of a pipeline; see the header. */
#include "sim/stages/stages.h"

#include "base/arena.h"
#include "sim/ask/result.h"
#include "sim/cluster/collective.h"
#include "sim/device/device.h"
#include "sim/parallel/pipeline.h"
#include "sim/parallel/times.h"
#include "sim/stages/match.h"

#include <stdlib.h>

typedef struct maker {
  const char *spec;
  const sn_net *net;
  const sn_device *device;
  const sn_strategy *strategies;
  uint32_t n_strategies;
  const sn_options *options;
  const sn_mesh *mesh;
  uint32_t stages, chunks, micros;
  sn_pipeline *pipeline;
  sn_match *match;
  sn_planner *first; /* of stage 0: what all stages share is made once */
  sn_options first_options;
  sn_cluster cluster;
  sn_run *run, **of; /* of: one a stage */
  sn_err *err;
} maker;

/* That what stages send is what their neighbours receive, whatever the strategy: the first one's route says it. */
static sn_status note_route(const maker *m, sn_planner *planner) {
  const sn_route *route = sn_planner_route(planner, m->strategies[0], m->err);
  return route ? sn_match_add_route(m->match, route, m->err) : m->err->code;
}

/* The least with which stages so far run by every strategy. A pipeline's is its most: of a stage that takes no more as it
 * is nobody needs to know it. */
static uint64_t least_so_far(const maker *m, uint32_t stage) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < m->n_strategies; i++) {
    uint64_t most = 0;
    for (uint32_t s = 0; s < stage; s++)
      if (m->of[s]->results[i].least_device_bytes > most) most = m->of[s]->results[i].least_device_bytes;
    if (most < least) least = most;
  }
  return least;
}

sn_options sn_stages_options(const sn_options *options, uint32_t stage) {
  sn_options own = *options;
  own.iteration.accumulate = 1;
  own.iteration.mesh.stage = stage;
  own.iteration.mesh.micros = sn_iteration_batches(options->iteration);
  return own;
}

/* The stage's own question. */
static sn_run *ask(maker *m, uint32_t stage) {
  sn_options own, *options = stage == 0 ? &m->first_options : &own;
  *options = sn_stages_options(m->options, stage);
  options->least_of_interest = least_so_far(m, stage);
  sn_planner *planner = sn_planner_new_stage(m->first, m->net, m->device, options, m->err);
  sn_run *run = planner ? sn_planner_run(planner, m->spec, m->strategies, m->n_strategies, m->err) : NULL;
  if (run) note_route(m, planner);
  if (stage == 0)
    m->first = planner;
  else
    sn_planner_free(planner);
  if (run && run->n_results == m->n_strategies) return run;
  if (run) sn_fail(m->err, SN_BAD_INPUT, "stage %u: %s", stage, run->failures[0].reason);
  sn_run_free(run);
  return NULL;
}

/* ---- time ---- */

/* What a micro-batch takes in each part: chunks share what their stage takes. */
static void find_times(const maker *m, uint32_t strategy, int64_t *forward, int64_t *backward, int64_t *weights,
                       int64_t *first) {
  for (uint32_t p = 0; p < m->stages * m->chunks; p++) {
    const sn_shared_row *s = &m->of[p % m->stages]->results[strategy].shared;
    forward[p] = s->forward_ns / m->micros / m->chunks;
    backward[p] = s->backward_ns / m->micros / m->chunks;
    weights[p] = s->weights_ns / m->micros / m->chunks;
    first[p] = s->first_ns;
  }
}

static int64_t hop_ns(const maker *m, uint32_t strategy) {
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    const sn_shared_row *row = &m->of[s]->results[strategy].shared;
    bytes = row->hop_bytes > bytes ? row->hop_bytes : bytes;
  }
  uint32_t nodes = sn_mesh_nodes(m->mesh, SN_MESH_PP, &m->cluster);
  const sn_group two = {.ranks = 2, .nodes = nodes > 1 && m->cluster.nodes > 1 ? 2 : 1};
  return sn_collective_ns(&m->cluster, SN_COLLECTIVE_SEND, bytes, two);
}

/* The slowest stage, and its work without waiting for anybody. */
static const sn_shared_row *find_slowest(const maker *m, uint32_t strategy, int64_t *work) {
  const sn_shared_row *slowest = NULL;
  *work = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    const sn_shared_row *row = &m->of[s]->results[strategy].shared;
    int64_t busy = row->first_ns + row->forward_ns + row->backward_ns + row->weights_ns;
    if (!slowest || busy > *work) *work = busy, slowest = row;
  }
  return slowest;
}

/* Each stage's reductions and update begin where its last micro-batch's backward ends. */
static int64_t find_end(const maker *m, uint32_t strategy, const int64_t *ends) {
  int64_t end = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    int64_t own = ends[s] + m->of[s]->results[strategy].shared.update_ns;
    if (own > end) end = own;
  }
  return end;
}

static sn_status play(const maker *m, uint32_t strategy, sn_result *r) {
  size_t parts = (size_t)m->stages * m->chunks;
  int64_t *ns = calloc(4 * parts + 3 * (size_t)m->stages + 1, sizeof *ns), work;
  if (!ns) return sn_fail_memory(m->err);
  find_times(m, strategy, ns, ns + parts, ns + 2 * parts, ns + 3 * parts);
  const sn_pipeline_times times = {.forward_ns = ns,
                                   .backward_ns = ns + parts,
                                   .weights_ns = ns + 2 * parts,
                                   .first_ns = ns + 3 * parts,
                                   .hop_ns = hop_ns(m, strategy)};
  sn_pipeline_played played = {.busy_ns = ns + 4 * parts,
                               .idle_ns = ns + 4 * parts + m->stages,
                               .end_ns = ns + 4 * parts + 2 * (size_t)m->stages};
  if (sn_pipeline_play(m->pipeline, &times, &played, m->err) == SN_OK) {
    const sn_shared_row *slowest = find_slowest(m, strategy, &work);
    r->iteration_ns = find_end(m, strategy, played.end_ns);
    r->shared.bubble_ns = played.time_ns > work ? played.time_ns - work : 0;
    r->shared.transfer_ns = slowest->transfer_ns;
    r->shared.exposed_ns = slowest->exposed_ns; /* waiting for other stages is the bubble's */
    r->images_per_second =
        (double)m->micros * m->net->batch * sn_mesh_copies(m->mesh) / ((double)r->iteration_ns / 1e9);
    sn_iteration iteration = m->options->iteration;
    iteration.accumulate = m->micros;
    sn_result_judge_shared(m->net, m->device, iteration, r);
    r->shared.communicator_bytes = m->cluster.communicator_bytes;
  }
  free(ns);
  return m->err->code;
}

/* ---- together ---- */

/* What its fullest GPU takes. */
static sn_status join(maker *m, uint32_t strategy) {
  sn_result *r = &((sn_result *)m->run->results)[strategy];
  bool fits = true;
  for (uint32_t s = 0; s < m->stages; s++) {
    const sn_result *own = &m->of[s]->results[strategy];
    fits = fits && own->fits;
    if (s == 0 || own->peak_device_bytes > r->peak_device_bytes) *r = *own;
  }
  r->fits = fits;
  return play(m, strategy, r);
}

static sn_status make(maker *m) {
  sn_arena *arena = sn_arena_new();
  m->run = arena ? sn_arena_alloc(arena, 1, sizeof *m->run) : NULL;
  m->of = m->run ? sn_arena_alloc(arena, m->stages, sizeof(sn_run *)) : NULL;
  sn_result *results = m->of ? sn_arena_alloc(arena, m->n_strategies, sizeof *results) : NULL;
  if (!results) {
    if (arena) sn_arena_free(arena);
    m->run = NULL;
    return sn_fail_memory(m->err);
  }
  for (uint32_t s = 0; s < m->stages && m->err->code == SN_OK; s++) m->of[s] = ask(m, s);
  if (m->err->code == SN_OK) sn_match_judge(m->match, NULL, m->err);
  if (m->of[0]) *m->run = *m->of[0];
  m->run->arena = arena;
  m->run->results = results;
  m->run->stages = m->of;
  m->run->n_stages = m->stages;
  m->run->conditions.accumulate = m->micros;
  for (uint32_t i = 0; i < m->n_strategies && m->err->code == SN_OK; i++) join(m, i);
  return m->err->code;
}

sn_run *sn_stages_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                           uint32_t n_strategies, const sn_options *options, sn_err *err) {
  const sn_mesh *mesh = &options->iteration.mesh;
  bool assumed;
  maker m = {spec, net, device, strategies, n_strategies, options, mesh, .err = err};
  m.stages = sn_mesh_size(mesh, SN_MESH_PP);
  m.chunks = sn_mesh_chunks(mesh);
  m.micros = sn_iteration_batches(options->iteration);
  if (m.stages <= 1) return sn_simulate(spec, net, device, strategies, n_strategies, options, err);
  if (sn_mesh_cluster(mesh, &options->cluster, device, &m.cluster, &assumed, err) != SN_OK) return NULL;
  m.pipeline = sn_pipeline_new(sn_pipeline_kind_of(mesh), m.stages, m.micros, m.chunks, err);
  m.match = m.pipeline ? sn_match_new(m.stages, err) : NULL;
  if (m.match) make(&m);
  sn_planner_free(m.first);
  sn_match_free(m.match);
  sn_pipeline_free(m.pipeline);
  if (err->code == SN_OK) return m.run;
  sn_run_free(m.run);
  return NULL;
}
