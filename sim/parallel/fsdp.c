/* Fully sharded data parallel: one rank's route (parallel.md, section 2; PyTorch 2.15,
 * torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
 *
 *   before a group's forward   gather, unpack                what was gathered stays until the next gather is issued
 *   behind it                  parameters go                 but the root's
 *   its output's gradient      gather, unpack, and the gather of the group ahead of it
 *   its input's gradient       parameters go; pack, reduce   what is reduced stays until the next group is here
 *   backward's end             the same of the root, and of groups whose input needs no gradient
 *
 * A stage of a pipeline goes through its micro-batches as its schedule has them (torch/distributed/pipelining/stage.py):
 *
 *   a forward              gathers what is not there; behind it parameters go as above
 *   a backward             gathers what is not there; nothing goes and nothing is reduced, gradients of all micro-batches
 *                          are added in the width in which they are reduced
 *   behind the last one    group by group, the last one first and the root last: parameters go; pack, reduce
 *
 * So a forward behind a backward finds its parameters there, and with reshard=no each group is gathered once.
 *
 * W ranks; e, r, o: bytes of an element as it is computed, reduced and kept. */
#include "sim/parallel/fsdp.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/net/modules.h"
#include "models/op/op.h"
#include "models/record/owners.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/precision.h"
#include "sim/parallel/fsdp_maker.h"

#include <stdlib.h>
#include <string.h>

static const sn__group *group_of(const sn__fsdp_maker *m, uint32_t group) {
  return &m->g.groups[group];
}

/* Padded elements of a group: of all its parameters, or of those that have gradients. */
static uint64_t padded_of(const sn__fsdp_maker *m, uint32_t group, bool trained) {
  const sn__group *g = group_of(m, group);
  uint64_t elements = 0;
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++)
    if (!trained || m->g.parameters[i].gradient != SN_NONE) elements += sn_cut_padded(m->g.parameters[i].cut, m->ranks);
  return elements;
}

static uint32_t layer_of(const sn__fsdp_maker *m, uint32_t group) {
  return m->g.parameters[group_of(m, group)->first_parameter].layer;
}

/* 0: there is none, as something went wrong. */
static uint64_t bytes_of(const sn__fsdp_maker *m, uint32_t tensor) {
  return tensor != SN_NONE ? m->e.tensors[tensor].bytes : 0;
}

static uint32_t transfer(sn__fsdp_maker *m, uint32_t group, sn_transfer_kind kind, sn_mesh_axis axis, uint64_t bytes) {
  uint32_t ranks = kind == SN_ALL_GATHER && m->states[group].small ? m->mesh->reshard : sn_mesh_size(m->mesh, axis);
  return sn__edit_transfer(
      &m->e, (sn_transfer){.kind = kind, .axis = (uint8_t)axis, .group = group, .ranks = ranks, .bytes = bytes});
}

/* ---- gathering ---- */

/* Into the compute's width first, where shards have another. */
void sn__fsdp_gather(sn__fsdp_maker *m, uint32_t group) {
  sn__group_state *s = &m->states[group];
  if (s->whole || s->in_flight || group_of(m, group)->n_parameters == 0) return;
  uint64_t elements = padded_of(m, group, false), bytes = elements * m->e_bytes;
  uint32_t among = s->small ? m->mesh->reshard : m->ranks;
  sn__edit_step(&m->e, layer_of(m, group), m->pass, SN_TRANSFER,
                transfer(m, group, SN_ALL_GATHER, SN_MESH_FSDP, bytes));
  if (m->e_bytes != m->o_bytes)
    sn__edit_access(
        &m->e, sn__edit_tensor(&m->e, layer_of(m, group), SN_PORT_GATHER, SN_SCRATCH, elements / among * m->e_bytes),
        SN_WRITE);
  if (s->gathered == SN_NONE) s->gathered = sn__edit_tensor(&m->e, layer_of(m, group), group, SN_GATHERED, bytes);
  sn__edit_access(&m->e, s->gathered, SN_WRITE);
  s->in_flight = true;
}

/* A storage a parameter. */
static void write_unsharded(sn__fsdp_maker *m, const sn__group *g) {
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++) {
    const sn__parameter *p = &m->g.parameters[i];
    if (m->unsharded[i] == SN_NONE)
      m->unsharded[i] =
          sn__edit_tensor(&m->e, p->layer, p->port, SN_UNSHARDED, sn_cut_padded(p->cut, m->ranks) * m->e_bytes);
    sn__edit_access(&m->e, m->unsharded[i], SN_WRITE);
    sn__edit_access(&m->e, m->copy[i], SN_READ);
    m->copy[i] = SN_NONE;
  }
}

void sn__fsdp_unpack(sn__fsdp_maker *m, uint32_t group) {
  sn__group_state *s = &m->states[group];
  if (!s->in_flight) return;
  sn__edit_hold(&m->e, m->held);
  m->held = SN_NONE;
  sn__edit_step(&m->e, layer_of(m, group), m->pass, SN_UNPACK,
                transfer(m, group, SN_ALL_GATHER, SN_MESH_FSDP, bytes_of(m, s->gathered)));
  sn__edit_access(&m->e, s->gathered, SN_READ);
  write_unsharded(m, group_of(m, group));
  s->in_flight = false;
  s->whole = true;
  s->small = false;
}

void sn__fsdp_let_go(sn__fsdp_maker *m, uint32_t group) {
  const sn__group *g = group_of(m, group);
  if (!m->states[group].whole) return;
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++)
    sn__edit_hold(&m->e, m->unsharded[i]);
  m->states[group].whole = false;
}

/* One after the other: a part of each stays, the whole goes. */
static void keep_parts(sn__fsdp_maker *m, uint32_t group) {
  const sn__group *g = group_of(m, group);
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++) {
    const sn__parameter *p = &m->g.parameters[i];
    uint64_t bytes = sn_cut_padded(p->cut, m->ranks) / m->mesh->reshard * m->e_bytes;
    m->copy[i] = sn__edit_tensor(&m->e, p->layer, p->port + SN_PORT_PART, SN_UNSHARDED, bytes);
    sn__edit_step(&m->e, p->layer, m->pass, SN_UNPACK, transfer(m, group, SN_ALL_GATHER, SN_MESH_FSDP, bytes));
    sn__edit_access(&m->e, m->unsharded[i], SN_READ);
    sn__edit_access(&m->e, m->copy[i], SN_WRITE);
  }
  m->states[group].whole = false;
  m->states[group].small = true;
}

static bool is_kept(const sn__fsdp_maker *m, uint32_t group) {
  if (group == m->g.count || m->mesh->reshard == SN_RESHARD_NO) return true;
  bool last = group + 1 == m->g.count || m->states[group + 1].chunk != m->states[group].chunk;
  return m->mesh->keep_last && last;
}

/* Micro-batches leave them in the same order. */
static void note_left(sn__fsdp_maker *m, uint32_t group) {
  for (uint32_t i = 0; i < m->n_order; i++)
    if (m->order[i] == group) return;
  m->order[m->n_order++] = group;
}

/* Of a pipeline's stage: whether it is of the chunk whose steps are written. Of others only the root can be another's. */
static bool is_here(const sn__fsdp_maker *m, uint32_t group) {
  return m->states[group].chunk == m->chunk;
}

/* Unpacked in forward, what was gathered stays until the next is. */
static void before_forward(sn__fsdp_maker *m, uint32_t group) {
  if (!is_here(m, group)) return;
  sn__fsdp_gather(m, group);
  bool fresh = m->states[group].in_flight;
  sn__fsdp_unpack(m, group);
  if (fresh) m->held = m->states[group].gathered;
  for (uint32_t k = 1; k <= m->mesh->prefetch && m->mesh->prefetch > 1 && group + k < m->g.count; k++)
    if (is_here(m, group + k)) sn__fsdp_gather(m, group + k);
}

static void behind_forward(sn__fsdp_maker *m, uint32_t group) {
  if (group_of(m, group)->n_parameters == 0 || !is_here(m, group)) return;
  note_left(m, group);
  if (is_kept(m, group)) return;
  if (m->mesh->reshard > SN_RESHARD_YES)
    keep_parts(m, group);
  else
    sn__fsdp_let_go(m, group);
}

/* ---- reducing ---- */

/* Who was left by forward ahead of it. */
static void gather_next(sn__fsdp_maker *m, uint32_t group) {
  for (uint32_t i = m->n_order; i-- > 1;)
    if (m->order[i] == group && is_here(m, m->order[i - 1])) sn__fsdp_gather(m, m->order[i - 1]);
}

static void before_backward(sn__fsdp_maker *m, uint32_t group) {
  if (group_of(m, group)->n_parameters == 0 || !is_here(m, group)) return;
  sn__fsdp_gather(m, group);
  sn__fsdp_unpack(m, group);
  if (m->mesh->prefetch <= 1 || group == m->g.count) {
    gather_next(m, group);
    return;
  }
  for (uint32_t k = 1; k <= m->mesh->prefetch && k <= group; k++)
    if (is_here(m, group - k)) sn__fsdp_gather(m, group - k);
}

/* Gradients side by side. */
static bool pack(sn__fsdp_maker *m, uint32_t group) {
  const sn__group *g = group_of(m, group);
  uint64_t bytes = padded_of(m, group, true) * m->r_bytes;
  if (bytes == 0) return false;
  sn__group_state *s = &m->states[group];
  s->bucket = sn__edit_tensor(&m->e, layer_of(m, group), group, SN_BUCKET, bytes);
  sn__edit_step(&m->e, layer_of(m, group), SN_BACKWARD, SN_PACK,
                transfer(m, group, SN_REDUCE_SCATTER, SN_MESH_FSDP, bytes));
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++) {
    if (m->g.parameters[i].gradient == SN_NONE) continue;
    sn__edit_access(&m->e, m->summed[i] != SN_NONE ? m->summed[i] : m->g.parameters[i].gradient, SN_READ);
  }
  sn__edit_access(&m->e, s->bucket, SN_WRITE);
  return true;
}

static uint32_t made_by_reducing(sn__fsdp_maker *m, uint32_t group, uint32_t port, sn_role role, uint32_t width) {
  uint64_t bytes = padded_of(m, group, true) / m->ranks * width;
  return sn__edit_tensor(&m->e, layer_of(m, group), port, role, bytes);
}

/* The latest step makes the shard of what was reduced, or adds to it. */
static void make_shard(sn__fsdp_maker *m, uint32_t group) {
  sn__group_state *s = &m->states[group];
  if (s->shard != SN_NONE) {
    sn__edit_access(&m->e, s->shard, SN_MODIFY);
    return;
  }
  s->shard = made_by_reducing(m, group, group, SN_SHARD, m->o_bytes);
  sn__edit_access(&m->e, s->shard, SN_WRITE);
}

/* What is reduced is the shard, where it is as wide and nothing is added to; else it is a tensor of its own. */
static void reduce(sn__fsdp_maker *m, uint32_t group) {
  sn__group_state *s = &m->states[group];
  uint64_t bytes = bytes_of(m, s->bucket);
  bool replicas = sn_mesh_size(m->mesh, SN_MESH_DP) > 1, apart = m->r_bytes != m->o_bytes || s->shard != SN_NONE;
  sn__edit_step(&m->e, layer_of(m, group), SN_BACKWARD, SN_TRANSFER,
                transfer(m, group, SN_REDUCE_SCATTER, SN_MESH_FSDP, bytes));
  sn__edit_access(&m->e, s->bucket, SN_READ);
  uint32_t out = apart ? made_by_reducing(m, group, SN_PORT_REDUCE, SN_SCRATCH, m->r_bytes) : SN_NONE;
  sn__edit_access(&m->e, out, SN_WRITE);
  if (replicas && !apart) make_shard(m, group);
  if (replicas) {
    sn__edit_step(&m->e, layer_of(m, group), SN_BACKWARD, SN_TRANSFER,
                  transfer(m, group, SN_ALL_REDUCE, SN_MESH_DP, bytes / m->ranks));
    sn__edit_access(&m->e, out, SN_MODIFY);
    if (!apart) sn__edit_access(&m->e, s->shard, SN_MODIFY);
  }
  if (apart || !replicas) make_shard(m, group);
  if (replicas) s->reduced = out; /* held to backward's end */
}

/* Its gradients are all made, or as good as that: none is needed of its input. */
void sn__fsdp_behind_backward(sn__fsdp_maker *m, uint32_t group) {
  sn__group_state *s = &m->states[group];
  if (s->done || group_of(m, group)->n_parameters == 0) return;
  s->done = true;
  sn__fsdp_let_go(m, group);
  sn__edit_hold(&m->e, m->kept);
  m->kept = SN_NONE;
  if (!pack(m, group)) return;
  reduce(m, group);
  m->kept = s->bucket;
}

static void end_backward(sn__fsdp_maker *m) {
  sn__fsdp_behind_backward(m, m->g.count);
  for (uint32_t g = 0; g < m->g.count; g++) sn__fsdp_behind_backward(m, g);
  for (uint32_t g = 0; g <= m->g.count; g++) sn__edit_hold(&m->e, m->states[g].reduced);
}

/* ---- where the model begins and ends ---- */

/* The model's forward is steps first .. end of the whole. Where the loss is in the model, its output is the loss:
 * transformers' models make their own. */
void sn__fsdp_find_forward(sn__fsdp_maker *m, uint32_t first, uint32_t end) {
  const sn_route *w = m->whole;
  bool inside = sn_module_library(w->net) == SN_LIBRARY_TRANSFORMERS && !m->staged;
  m->root_begin = first;
  m->root_end = end - 1;
  while (m->root_begin + 1 < end && sn__groups_crosses(w, m->root_begin)) m->root_begin++;
  while (!inside && m->root_end > m->root_begin &&
         (sn__groups_crosses(w, m->root_end) || w->layers[w->steps[m->root_end].layer].op == SN_SOFTMAX))
    m->root_end--;
}

void sn__fsdp_find_backward(sn__fsdp_maker *m, uint32_t first, uint32_t end) {
  const sn_route *w = m->whole;
  bool inside = sn_module_library(w->net) == SN_LIBRARY_TRANSFORMERS && !m->staged;
  m->root_backward = first;
  while (!inside && m->root_backward + 1 < end &&
         (sn__groups_crosses(w, m->root_backward) || w->layers[w->steps[m->root_backward].layer].op == SN_SOFTMAX))
    m->root_backward++;
}

static void find_root(sn__fsdp_maker *m) {
  const sn_route *w = m->whole;
  if (w->net->recorded) {
    m->root_begin = m->g.model;
    m->root_end = m->g.model_end;
    m->root_backward = m->g.model_backward;
  } else if (!m->staged) {
    sn__fsdp_find_forward(m, 0, w->first_backward);
    sn__fsdp_find_backward(m, w->first_backward, w->first_update);
  }
}

/* ---- steps ---- */

static uint32_t first_group(const sn__fsdp_maker *m) {
  for (uint32_t g = 0; g <= m->g.count; g++)
    if (group_of(m, g)->n_parameters > 0) return g;
  return SN_NONE;
}

/* What the micro-batches before have left is there from the first step on. */
static void sum_up(sn__fsdp_maker *m) {
  uint32_t first = first_group(m);
  if (first == SN_NONE) return;
  if (m->e.route->n_steps == 0) /* the root has nothing to gather */
    sn__edit_step(&m->e, layer_of(m, first), SN_FORWARD, SN_PACK, transfer(m, first, SN_ALL_GATHER, SN_MESH_FSDP, 0));
  for (uint32_t i = 0; i < m->g.n_parameters; i++) {
    const sn__parameter *p = &m->g.parameters[i];
    if (p->gradient == SN_NONE || m->mesh->sync_each) continue;
    uint64_t elements = m->whole->tensors[p->gradient].bytes / m->e_bytes; /* tp's of a table are more than its cut */
    m->summed[i] = sn__edit_tensor(&m->e, p->layer, p->port, SN_SUMMED, elements * m->r_bytes);
    sn__edit_access(&m->e, m->summed[i], SN_WRITE);
  }
  for (uint32_t g = 0; g <= m->g.count && m->mesh->sync_each; g++)
    if (group_of(m, g)->n_parameters > 0 && padded_of(m, g, true) > 0) make_shard(m, g);
}

/* The same of a recording, which says what a step reads. */
static void access_recorded(sn__fsdp_maker *m, uint32_t step) {
  for (uint32_t i = m->g.first_read[step]; i < m->g.first_read[step + 1]; i++) {
    const sn__parameter *p = &m->g.parameters[m->g.reads[i]];
    if (m->states[m->group_of[m->g.reads[i]]].whole) sn__edit_access(&m->e, m->unsharded[p - m->g.parameters], SN_READ);
  }
}

/* The parameters that a layer's step reads, and those that it adds gradients to. */
static void access_parameters(sn__fsdp_maker *m, uint32_t step, bool forward) {
  if (m->g.reads) {
    access_recorded(m, step);
    return;
  }
  uint32_t layer = m->whole->steps[step].layer;
  if (sn_step_moves(&m->whole->steps[step])) return;
  uint32_t owner = m->whole->layers[layer].attr->weights_of ? m->whole->layers[layer].attr->weights_of : layer;
  const sn__group *g = group_of(m, m->g.of[owner]);
  for (uint32_t i = g->first_parameter; i < g->first_parameter + g->n_parameters; i++) {
    if (m->g.parameters[i].layer != owner) continue;
    if (m->states[m->g.of[owner]].whole) sn__edit_access(&m->e, m->unsharded[i], SN_READ);
    if (!forward && !m->staged) sn__edit_access(&m->e, m->summed[i], SN_MODIFY);
  }
}

/* ---- gradients of a stage, which all micro-batches add to ---- */

static uint32_t widened_of(const sn__fsdp_maker *m, uint32_t tensor) {
  return m->widened ? m->widened[tensor] : SN_NONE;
}

/* A step of the whole; what adds to a gradient adds to the wide one. */
static void copy_adding(sn__fsdp_maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  sn__edit_copy_bare(&m->e, step);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    uint32_t p = widened_of(m, access.tensor);
    if (p != SN_NONE && access.mode != SN_WRITE) access.tensor = m->summed[p];
    sn__edit_take(&m->e, access);
  }
}

/* Autograd makes a gradient wide before it lets go of what its node was given, which of a table's is the gradient of all
 * words' vectors; and a micro-batch is over with its latest step. */
static void hold_given(sn__fsdp_maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  bool table = m->whole->layers[s->layer].op == SN_EMBEDDING;
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    bool given = table && m->whole->tensors[access.tensor].role == SN_GRADIENT;
    if (access.mode == SN_READ && (given || access.held)) sn__edit_hold(&m->e, access.tensor);
  }
}

/* What the first micro-batch has made is made wide, and goes. */
static void widen(sn__fsdp_maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    uint32_t p = widened_of(m, access.tensor);
    if (p == SN_NONE || access.mode != SN_WRITE) continue;
    const sn__parameter *parameter = &m->g.parameters[p];
    uint64_t bytes = m->whole->tensors[access.tensor].bytes / m->e_bytes * m->r_bytes;
    m->summed[p] = sn__edit_tensor(&m->e, parameter->layer, parameter->port, SN_SUMMED, bytes);
    sn__edit_step(&m->e, parameter->layer, SN_BACKWARD, SN_PACK,
                  transfer(m, m->group_of[p], SN_REDUCE_SCATTER, SN_MESH_FSDP, bytes));
    sn__edit_access(&m->e, access.tensor, SN_READ);
    sn__edit_access(&m->e, m->summed[p], SN_WRITE);
    hold_given(m, step);
  }
}

/* ---- steps ---- */

static void copy_forward(sn__fsdp_maker *m, uint32_t step) {
  m->pass = SN_FORWARD;
  uint32_t group = m->g.of_step[step];
  const sn__group *g = group_of(m, group);
  if (step == m->root_begin) before_forward(m, m->g.count);
  if (step == m->root_begin && sn_iteration_accumulates(m->iteration)) sum_up(m);
  if (group < m->g.count && g->forward == step) before_forward(m, group);
  sn__edit_copy(&m->e, step);
  access_parameters(m, step, true);
  if (group < m->g.count && g->forward_end == step) behind_forward(m, group);
  if (step != m->root_end) return;
  sn__edit_hold(&m->e, m->held);
  m->held = SN_NONE;
  behind_forward(m, m->g.count);
}

static void copy_backward(sn__fsdp_maker *m, uint32_t step) {
  uint32_t group = m->g.of_step[step];
  const sn__group *g = group_of(m, group);
  m->pass = SN_BACKWARD;
  if (step == m->root_backward) before_backward(m, m->g.count);
  if (group < m->g.count && g->backward == step) before_backward(m, group);
  copy_adding(m, step);
  access_parameters(m, step, false);
  widen(m, step);
  if (m->staged) return;
  if (group < m->g.count && g->backward_end == step && g->input_trained) sn__fsdp_behind_backward(m, group);
  if (step + 1 == m->whole->first_update) end_backward(m);
}

/* The shards of those whose gradients the step reads, or has, and a rank's part of the work. */
static void copy_recorded_update(sn__fsdp_maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  bool of_shards = false;
  sn__edit_copy_bare(&m->e, step);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    uint32_t group = m->g.gradient_of[access.tensor];
    of_shards = of_shards || group != SN_NONE;
    if (group == SN_NONE)
      sn__edit_take(&m->e, access);
    else
      sn__edit_access(&m->e, m->states[group].shard, SN_READ);
  }
  if (of_shards) sn__edit_share(&m->e, m->ranks);
}

/* The shard in place of the gradients, and a rank's part of the work; the last update reads all of them, which live until then. */
static void copy_update(sn__fsdp_maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  sn__edit_copy_bare(&m->e, step);
  sn__edit_share(&m->e, m->ranks);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    if (m->whole->tensors[access.tensor].role != SN_PARAMETER_GRADIENT)
      sn__edit_access(&m->e, access.tensor, access.mode);
  }
  sn__edit_access(&m->e, m->states[m->g.of[s->layer]].shard, SN_READ);
  bool last = step + 1 == m->whole->n_steps;
  for (uint32_t g = 0; g <= m->g.count && last; g++) sn__edit_access(&m->e, m->states[g].shard, SN_READ);
}

static bool is_forward(const sn__fsdp_maker *m, uint32_t step) {
  return m->staged ? m->whole->steps[step].pass == SN_FORWARD : step < m->whole->first_backward;
}

static void write(sn__fsdp_maker *m) {
  const sn_route *w = m->whole;
  for (uint32_t s = 0; s < w->n_steps && m->e.err->code == SN_OK; s++) {
    if (m->staged && s <= w->first_update) sn__fsdp_take_turns(m, s);
    if (m->asks && s < w->first_update)
      sn__edit_copy(&m->e, s);
    else if (s < w->first_update && is_forward(m, s))
      copy_forward(m, s);
    else if (s < w->first_update)
      copy_backward(m, s);
    else if (m->g.gradient_of)
      copy_recorded_update(m, s);
    else
      copy_update(m, s);
  }
}

/* ---- sizes ---- */

/* Of a recording also what the iteration before has left: gradients until zero_grad(). */
static void shrink_recorded(sn__fsdp_maker *m) {
  const struct sn_recorded *w = m->whole->net->recorded;
  for (uint32_t s = 0; s < w->record->n_storages; s++) {
    uint32_t t = m->whole->of_storage[s];
    if (t == SN_NONE || w->owners->of[s] == SN_NONE || m->g.gradient_of[t] != SN_NONE) continue;
    m->e.tensors[t].bytes = sn_cut_recorded(w, s, m->whole->tensors[t].bytes, m->ranks);
  }
}

/* Of a stage: which gradients are added wider than they are made. */
static sn_status find_widened(sn__fsdp_maker *m, sn_err *err) {
  const sn_route *w = m->whole;
  if (m->r_bytes == m->e_bytes) return SN_OK;
  m->widened = malloc(((size_t)w->n_tensors + 1) * sizeof *m->widened);
  if (!m->widened) return sn_fail_memory(err);
  memset(m->widened, 0xff, ((size_t)w->n_tensors + 1) * sizeof *m->widened);
  for (uint32_t p = 0; p < m->g.n_parameters; p++)
    if (m->g.parameters[p].gradient != SN_NONE) m->widened[m->g.parameters[p].gradient] = p;
  return SN_OK;
}

static sn_status prepare(sn__fsdp_maker *m, sn_err *err) {
  sn_precision precision = m->iteration.precision;
  if (sn__groups_find(m->whole, m->iteration, &m->g, err) != SN_OK) return err->code;
  size_t groups = (size_t)m->g.count + 1, parameters = (size_t)m->g.n_parameters + 1;
  bool recorded = m->whole->net->recorded; /* whose parameters are cut in bytes */
  m->e_bytes = recorded ? 1 : sn_precision_parameter_bytes(precision);
  m->o_bytes = recorded ? 1 : sn_iteration_kept_bytes(m->iteration);
  m->r_bytes = m->mesh->reduce_narrow ? m->e_bytes : m->o_bytes;
  m->states = calloc(groups, sizeof *m->states);
  m->order = calloc(groups, sizeof *m->order);
  m->unsharded = malloc(4 * parameters * sizeof *m->unsharded);
  if (!m->states || !m->order || !m->unsharded) return sn_fail_memory(err);
  memset(m->unsharded, 0xff, 4 * parameters * sizeof *m->unsharded);
  m->summed = m->unsharded + parameters;
  m->copy = m->summed + parameters;
  m->group_of = m->copy + parameters;
  for (uint32_t g = 0; g < groups; g++)
    for (uint32_t i = 0; i < m->g.groups[g].n_parameters; i++) m->group_of[m->g.groups[g].first_parameter + i] = g;
  for (size_t g = 0; g < groups; g++)
    m->states[g] = (sn__group_state){.gathered = SN_NONE, .bucket = SN_NONE, .shard = SN_NONE, .reduced = SN_NONE};
  find_root(m);
  if (m->staged) sn__fsdp_find_chunks(m);
  if (m->staged && find_widened(m, err) != SN_OK) return err->code;
  return sn__edit_begin(&m->e, m->whole, err);
}

sn_route *sn__fsdp(const sn_route *whole, sn_iteration iteration, sn_err *err) {
  sn__fsdp_maker m = {.whole = whole,
                      .iteration = iteration,
                      .mesh = &iteration.mesh,
                      .ranks = sn_mesh_size(&iteration.mesh, SN_MESH_FSDP),
                      .staged = whole->micros > 0,
                      .held = SN_NONE,
                      .kept = SN_NONE};
  sn_status status = prepare(&m, err);
  if (status == SN_OK) write(&m);
  bool good = status == SN_OK && err->code == SN_OK;
  if (good && whole->net->recorded) shrink_recorded(&m);
  if (good && !whole->net->recorded) sn__groups_shrink_temporaries(&m.g, m.mesh, &m.e, m.ranks, m.e_bytes, m.o_bytes);
  if (status == SN_OK) status = sn__groups_hand_over(&m.g, m.mesh, m.e.route, err);
  sn_route *route = sn__edit_end(&m.e, status);
  free(m.states);
  free(m.order);
  free(m.unsharded);
  free(m.widened);
  sn__groups_clear(&m.g);
  return route;
}
