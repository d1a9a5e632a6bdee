/* DeepSpeed's ZeRO, stages 1 and 2: one rank's route (parallel.md, section 4; Rajbhandari et al., SC 2020, section 5).
 * Stage 3 is fsdp's (sim/graph/mesh.h).
 *
 *   backward   where the last gradient of a group is made: they are reduced, to the rank whose part they are. Stage 1
 *              keeps them whole until the update, 2 its part alone; whole they stay until the next group's are made,
 *              as DeepSpeed fills one buffer while it reduces the other (overlap_comm)
 *   update     of a rank's part of the states, and of weights in four bytes where "bf16-master" has them
 *   its end    parameters, which every rank has all of, are gathered
 *
 * Model states only: the buffers in which DeepSpeed reduces and gathers (reduce_bucket_size, allgather_bucket_size, 5e8
 * elements each unless configured) are not there, and groups are blocks, not buckets. What an update changes are no
 * tensors of the route, so one number of its last step, as the norm of all gradients that DeepSpeed makes, orders the
 * gathers behind it. */
#include "sim/parallel/fsdp.h"

#include "base/checked.h"
#include "sim/graph/precision.h"
#include "sim/parallel/edit.h"
#include "sim/parallel/groups.h"

#include <stdlib.h>

typedef struct maker {
  sn__edit e;
  sn__groups g;
  const sn_route *whole;
  const sn_mesh *mesh;
  bool accumulates;
  uint32_t ranks, width; /* bytes of an element of gradients, and of parameters as they are gathered */
  uint32_t *made;        /* per parameter: step of the whole in which its gradient is whole; SN_NONE */
  uint32_t *ready;       /* per group: the last of these; SN_NONE: nothing of it is trained */
  uint32_t *shards;      /* per group: tensor of its part of the gradients; SN_NONE */
  uint32_t norm;
  uint32_t reduced; /* of stage 2: the group whose gradients are, beside the backward of the next; SN_NONE */
} maker;

/* Of a group's gradients. */
static uint64_t bytes_of(const maker *m, uint32_t group) {
  const sn__group *g = &m->g.groups[group];
  uint64_t elements = 0;
  for (uint32_t p = g->first_parameter; p < g->first_parameter + g->n_parameters; p++)
    if (m->made[p] != SN_NONE) elements += m->g.parameters[p].cut.rows * m->g.parameters[p].cut.each;
  return elements * m->width;
}

static uint32_t layer_of(const maker *m, uint32_t group) {
  return m->g.parameters[m->g.groups[group].first_parameter].layer;
}

static void find_ready(maker *m, uint32_t group) {
  const sn__group *g = &m->g.groups[group];
  uint32_t *ready = &m->ready[group];
  *ready = SN_NONE;
  for (uint32_t p = g->first_parameter; p < g->first_parameter + g->n_parameters; p++)
    if (m->made[p] != SN_NONE && (*ready == SN_NONE || m->made[p] > *ready)) *ready = m->made[p];
}

static void begin(maker *m, uint32_t group, sn_pass pass, sn_kernel kernel, sn_transfer_kind kind, uint64_t bytes) {
  uint32_t transfer = sn__edit_transfer(
      &m->e, (sn_transfer){.kind = kind, .axis = SN_MESH_DP, .group = group, .ranks = m->ranks, .bytes = bytes});
  sn__edit_step(&m->e, layer_of(m, group), pass, kernel, transfer);
}

static void make_shard(maker *m, uint32_t group) {
  uint64_t part = (bytes_of(m, group) / m->width + m->ranks - 1) / m->ranks * m->width;
  m->shards[group] = sn__edit_tensor(&m->e, layer_of(m, group), group, SN_SHARD, part);
}

/* What the micro-batches before have left of stage 2's is there from the first step on. */
static void sum_up(maker *m) {
  bool begun = false;
  for (uint32_t g = 0; g <= m->g.count; g++) {
    if (m->ready[g] == SN_NONE) continue;
    if (!begun) begin(m, g, SN_FORWARD, SN_PACK, SN_REDUCE_SCATTER, 0);
    begun = true;
    make_shard(m, g);
    sn__edit_access(&m->e, m->shards[g], SN_WRITE);
  }
}

/* Beside the latest step. */
static void let_go(maker *m, uint32_t group) {
  if (group == SN_NONE) return;
  const sn__group *g = &m->g.groups[group];
  for (uint32_t p = g->first_parameter; p < g->first_parameter + g->n_parameters; p++)
    if (m->made[p] != SN_NONE) sn__edit_hold(&m->e, m->g.parameters[p].gradient);
}

/* Gradients of several micro-batches are added beside the graph in stage 1, which has no part apart. */
static void reduce(maker *m, uint32_t group) {
  const sn__group *g = &m->g.groups[group];
  bool apart = m->mesh->zero > 1, there = m->shards[group] != SN_NONE;
  let_go(m, m->reduced);
  m->reduced = apart ? group : SN_NONE;
  begin(m, group, SN_BACKWARD, SN_TRANSFER, SN_REDUCE_SCATTER, bytes_of(m, group));
  for (uint32_t p = g->first_parameter; p < g->first_parameter + g->n_parameters; p++)
    if (m->made[p] != SN_NONE)
      sn__edit_access(&m->e, m->g.parameters[p].gradient, apart || m->accumulates ? SN_READ : SN_MODIFY);
  if (apart && !there) make_shard(m, group);
  if (apart) sn__edit_access(&m->e, m->shards[group], there ? SN_MODIFY : SN_WRITE);
}

static void copy_backward(maker *m, uint32_t step) {
  sn__edit_copy(&m->e, step);
  for (uint32_t g = 0; g <= m->g.count; g++)
    if (m->ready[g] == step) reduce(m, g);
}

static void gather_all(maker *m) {
  for (uint32_t g = 0; g <= m->g.count; g++) {
    if (m->ready[g] == SN_NONE) continue;
    begin(m, g, SN_UPDATE, SN_TRANSFER, SN_ALL_GATHER, bytes_of(m, g));
    sn__edit_access(&m->e, m->norm, SN_READ);
  }
}

/* The last one reads all parts of gradients, which live until then. */
static void copy_update(maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  bool last = step + 1 == m->whole->n_steps, apart = m->mesh->zero > 1;
  sn__edit_copy_bare(&m->e, step);
  sn__edit_share(&m->e, m->ranks);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    if (!apart || m->whole->tensors[access.tensor].role != SN_PARAMETER_GRADIENT) sn__edit_take(&m->e, access);
  }
  sn__edit_access(&m->e, m->shards[m->g.of[s->layer]], SN_READ);
  for (uint32_t g = 0; g <= m->g.count && last; g++) sn__edit_access(&m->e, m->shards[g], SN_READ);
  if (!last) return;
  m->norm = sn__edit_tensor(&m->e, s->layer, SN_PORT_REDUCE, SN_SCRATCH, sizeof(float));
  sn__edit_access(&m->e, m->norm, SN_WRITE);
  gather_all(m);
}

static void write(maker *m) {
  const sn_route *w = m->whole;
  if (m->accumulates && m->mesh->zero > 1) sum_up(m);
  for (uint32_t s = 0; s < w->n_steps && m->e.err->code == SN_OK; s++) {
    if (s >= w->first_update)
      copy_update(m, s);
    else if (w->steps[s].pass == SN_BACKWARD)
      copy_backward(m, s);
    else
      sn__edit_copy(&m->e, s);
  }
}

static sn_status prepare(maker *m, sn_iteration iteration, sn_err *err) {
  if (sn__groups_find(m->whole, iteration, &m->g, err) != SN_OK) return err->code;
  size_t groups = (size_t)m->g.count + 1, parameters = (size_t)m->g.n_parameters + 1;
  m->made = calloc(parameters, sizeof *m->made);
  m->ready = calloc(groups, sizeof *m->ready);
  m->shards = calloc(groups, sizeof *m->shards);
  if (!m->made || !m->ready || !m->shards) return sn_fail_memory(err);
  for (size_t g = 0; g < groups; g++) m->shards[g] = SN_NONE;
  if (sn__edit_begin(&m->e, m->whole, err) != SN_OK) return err->code;
  if (sn__groups_find_made(&m->g, m->whole, m->made, err) != SN_OK) return err->code;
  for (uint32_t g = 0; g < groups; g++) find_ready(m, g);
  return SN_OK;
}

sn_route *sn__zero(const sn_route *whole, sn_iteration iteration, sn_err *err) {
  maker m = {.whole = whole,
             .mesh = &iteration.mesh,
             .accumulates = sn_iteration_accumulates(iteration),
             .ranks = sn_mesh_size(&iteration.mesh, SN_MESH_DP),
             .width = sn_precision_parameter_bytes(iteration.precision),
             .reduced = SN_NONE};
  sn_status status = prepare(&m, iteration, err);
  if (status == SN_OK) write(&m);
  if (status == SN_OK && err->code == SN_OK)
    sn__groups_shrink_temporaries(&m.g, &iteration.mesh, &m.e, m.ranks, m.width, sn_iteration_kept_bytes(iteration));
  if (status == SN_OK) status = sn__groups_hand_over(&m.g, m.mesh, m.e.route, err);
  sn_route *route = sn__edit_end(&m.e, status);
  free(m.made);
  free(m.ready);
  free(m.shards);
  sn__groups_clear(&m.g);
  return route;
}
