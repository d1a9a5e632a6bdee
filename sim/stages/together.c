/* Stages together; see the header. */
#include "sim/stages/together.h"

#include "sim/ask/result.h"
#include "sim/cluster/collective.h"
#include "sim/parallel/rounds.h"
#include "sim/parallel/times.h"

#include <stdlib.h>

sn_status sn__together_open(sn__together *m, const sn_net *net, const sn_device *device, const sn_options *options,
                            bool matches, sn_err *err) {
  const sn_mesh *mesh = &options->iteration.mesh;
  bool assumed;
  *m = (sn__together){.net = net,
                      .device = device,
                      .options = options,
                      .stages = sn_mesh_size(mesh, SN_MESH_PP),
                      .chunks = sn_mesh_chunks(mesh),
                      .micros = sn_iteration_batches(options->iteration)};
  if (sn_mesh_cluster(mesh, &options->cluster, device, &m->cluster, &assumed, err) != SN_OK) return err->code;
  m->pipeline = sn_pipeline_new(sn_pipeline_kind_of(mesh), m->stages, m->micros, m->chunks, err);
  m->match = m->pipeline && matches ? sn_match_new(m->stages, err) : NULL;
  const size_t parts = (size_t)m->stages * m->chunks;
  m->hops_ns = calloc(m->stages + 2 * parts, sizeof *m->hops_ns);
  if (err->code == SN_OK && !m->hops_ns) sn_fail_memory(err);
  if (err->code != SN_OK) return err->code;
  m->forward_hop_ns = m->hops_ns + m->stages;
  m->backward_hop_ns = m->forward_hop_ns + parts;
  return err->code;
}

void sn__together_close(sn__together *m) {
  sn_match_free(m->match);
  sn_pipeline_free(m->pipeline);
  free(m->hops_ns);
}

/* ---- what they send ---- */

/* What crosses an end of a part are transfers side by side, of one micro-batch. */
static bool is_same_hop(const sn_transfer *a, const sn_transfer *b) {
  return a->kind == b->kind && a->micro == b->micro;
}

static int64_t time_of(const sn__together *m, const sn_transfer *t, bool forward) {
  const uint32_t to = forward ? t->from + 1 : t->from - 1, stages = m->stages;
  const bool leaves = m->cluster.nodes > 1 &&
                      sn_mesh_hop_leaves(&m->options->iteration.mesh, &m->cluster, t->from % stages, to % stages);
  return sn_collective_ns(&m->cluster, SN_COLLECTIVE_SEND, t->bytes, (sn_group){.ranks = 2, .nodes = leaves ? 2 : 1});
}

static void time_hops(sn__together *m, const sn_route *route, uint32_t stage) {
  const sn_rounds rounds = sn_rounds_of(route);
  uint32_t before = SN_NONE;
  int64_t hop = 0;
  m->hops_ns[stage] = 0;
  for (uint32_t s = 0; s < route->first_update; s++) {
    const sn_step *step = &route->steps[s];
    const sn_transfer *t = step->kernel == SN_TRANSFER ? &route->transfers[step->sum] : NULL;
    if (!t || t->axis != SN_MESH_PP) {
      before = SN_NONE;
      continue;
    }
    const bool forward = step->pass == SN_FORWARD;
    int64_t ns = time_of(m, t, forward), *longest = &(forward ? m->forward_hop_ns : m->backward_hop_ns)[t->from];
    hop = before != SN_NONE && is_same_hop(&route->transfers[before], t) ? hop + ns : ns;
    if (hop > *longest) *longest = hop;
    m->hops_ns[stage] += s >= rounds.first && s < rounds.end ? (1 + (int64_t)rounds.again) * ns : ns;
    before = step->sum;
  }
}

sn_status sn__together_add(sn__together *m, uint32_t stage, const sn_route *route, sn_err *err) {
  time_hops(m, route, stage);
  return m->match ? sn_match_add_route(m->match, route, err) : SN_OK;
}

sn_status sn__together_judge(sn__together *m, sn_err *err) {
  if (m->match) sn_match_judge(m->match, NULL, err);
  sn_match_free(m->match);
  m->match = NULL;
  return err->code;
}

/* ---- time ---- */

/* What a micro-batch takes in each part: chunks share what their stage takes. */
static void find_times(const sn__together *m, const sn_result *const *of, int64_t *forward, int64_t *backward,
                       int64_t *weights, int64_t *first) {
  for (uint32_t p = 0; p < m->stages * m->chunks; p++) {
    const sn_shared_row *s = &of[p % m->stages]->shared;
    forward[p] = s->forward_ns / m->micros / m->chunks;
    backward[p] = s->backward_ns / m->micros / m->chunks;
    weights[p] = s->weights_ns / m->micros / m->chunks;
    first[p] = s->first_ns;
  }
}

/* And its work, without waiting for anybody. */
static uint32_t find_slowest(const sn__together *m, const sn_result *const *of, int64_t *work) {
  uint32_t slowest = 0;
  *work = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    const sn_shared_row *row = &of[s]->shared;
    int64_t busy = row->first_ns + row->forward_ns + row->backward_ns + row->weights_ns;
    if (busy > *work) *work = busy, slowest = s;
  }
  return slowest;
}

/* Each stage's reductions and update begin where its last micro-batch's backward ends. */
static int64_t find_end(const sn__together *m, const sn_result *const *of, const int64_t *ends) {
  int64_t end = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    int64_t own = ends[s] + of[s]->shared.update_ns;
    if (own > end) end = own;
  }
  return end;
}

/* How long all micro-batches take, with hops or where links take no time, and the iteration. */
static sn_status play_hops(const sn__together *m, const sn_result *const *of, bool hops, int64_t *time,
                           int64_t *iteration, sn_err *err) {
  size_t parts = (size_t)m->stages * m->chunks;
  int64_t *ns = calloc(4 * parts + 3 * (size_t)m->stages + 1, sizeof *ns);
  if (!ns) return sn_fail_memory(err);
  find_times(m, of, ns, ns + parts, ns + 2 * parts, ns + 3 * parts);
  const sn_pipeline_times times = {.forward_ns = ns,
                                   .backward_ns = ns + parts,
                                   .weights_ns = ns + 2 * parts,
                                   .first_ns = ns + 3 * parts,
                                   .forward_hop_ns = hops ? m->forward_hop_ns : NULL,
                                   .backward_hop_ns = hops ? m->backward_hop_ns : NULL};
  sn_pipeline_played played = {.busy_ns = ns + 4 * parts,
                               .idle_ns = ns + 4 * parts + m->stages,
                               .end_ns = ns + 4 * parts + 2 * (size_t)m->stages};
  if (sn_pipeline_play(m->pipeline, &times, &played, err) == SN_OK) {
    *time = played.time_ns;
    *iteration = find_end(m, of, played.end_ns);
  }
  free(ns);
  return err->code;
}

/* What stages wait for each other if links took no time is the bubble; what they wait longer as links do, nothing hides. */
static sn_status play(const sn__together *m, const sn_result *const *of, sn_result *r, sn_err *err) {
  int64_t work, time = 0, at_once = 0, ignored;
  if (play_hops(m, of, false, &at_once, &ignored, err) != SN_OK ||
      play_hops(m, of, true, &time, &r->iteration_ns, err) != SN_OK)
    return err->code;
  uint32_t slowest = find_slowest(m, of, &work);
  const sn_shared_row *row = &of[slowest]->shared;
  r->shared.bubble_ns = at_once > work ? at_once - work : 0;
  r->shared.transfer_ns = row->transfer_ns + m->hops_ns[slowest];
  r->shared.exposed_ns = row->exposed_ns + time - at_once;
  r->images_per_second =
      (double)m->micros * m->net->batch * sn_mesh_copies(&m->options->iteration.mesh) / ((double)r->iteration_ns / 1e9);
  sn_iteration iteration = m->options->iteration;
  iteration.accumulate = m->micros;
  sn_result_judge_shared(m->net, m->device, iteration, r);
  r->shared.communicator_bytes = m->cluster.communicator_bytes;
  return SN_OK;
}

sn_status sn__together_join(const sn__together *m, const sn_result *const *of, sn_result *r, sn_err *err) {
  bool fits = true;
  uint32_t fullest = 0;
  uint64_t least = 0;
  for (uint32_t s = 0; s < m->stages; s++) {
    fits = fits && of[s]->fits;
    if (of[s]->least_device_bytes > least) least = of[s]->least_device_bytes, fullest = s;
    if (s == 0 || of[s]->peak_device_bytes > r->peak_device_bytes) *r = *of[s];
  }
  r->fits = fits;
  r->least_device_bytes = least;
  r->shared.stage = fullest;
  return play(m, of, r, err);
}
