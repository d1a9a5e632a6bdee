/* Shards of a pipeline's stage: what its schedule does between steps (see pipeline_actions.h). Each chunk is a model of its
 * own, with its groups and root.
 *
 *   unshard   gathers all groups of a chunk, the root first; the chunk's next entry begins with unpacking them
 *   reshard   its parameters go
 *   reduce    group by group, the last one first and the root last: parameters go; pack, reduce */
#include "sim/parallel/fsdp_maker.h"
#include "sim/parallel/pipeline_actions.h"

static uint32_t end_of_turn(const sn__fsdp_maker *m, uint32_t turn) {
  const sn_route *w = m->whole;
  return turn + 1 < w->n_turns ? w->turns[turn + 1].step : w->first_update;
}

/* A root's chunk is that of its first parameter. */
static void find_chunks_of(sn__fsdp_maker *m, uint32_t first, uint32_t end, uint32_t chunk) {
  for (uint32_t s = first; s < end; s++) {
    const uint32_t layer = m->whole->steps[s].layer;
    if (m->whole->steps[s].pass != SN_FORWARD || sn__groups_crosses(m->whole, s)) continue;
    const uint32_t group = m->g.of[layer];
    if (group < m->g.count || m->whole->layers[layer].parameters > 0) m->states[group].chunk = chunk;
  }
}

void sn__fsdp_find_chunks(sn__fsdp_maker *m) {
  const sn_turn *turns = m->whole->turns;
  for (uint32_t i = 0; i < m->whole->n_turns; i++)
    if (turns[i].kind == SN__COMPUTE) find_chunks_of(m, turns[i].step, end_of_turn(m, i), turns[i].chunk);
}

static bool is_of(const sn__fsdp_maker *m, uint32_t group, uint32_t chunk) {
  return m->g.groups[group].n_parameters > 0 && m->states[group].chunk == chunk;
}

/* A chunk's groups, the root first, as modules() has them. */
static void do_all(sn__fsdp_maker *m, uint32_t chunk, void (*what)(sn__fsdp_maker *m, uint32_t group)) {
  if (is_of(m, m->g.count, chunk)) what(m, m->g.count);
  for (uint32_t g = 0; g < m->g.count; g++)
    if (is_of(m, g, chunk)) what(m, g);
}

static void enter(sn__fsdp_maker *m, uint32_t first, uint32_t end, uint32_t chunk) {
  m->chunk = chunk;
  m->asks = false;
  if (first == end) return;
  m->pass = m->whole->steps[first].pass;
  do_all(m, chunk, sn__fsdp_unpack);
  sn__groups_enter(&m->g, m->whole, first, end);
  if (m->pass == SN_FORWARD)
    sn__fsdp_find_forward(m, first, end);
  else
    sn__fsdp_find_backward(m, first, end);
}

/* With the latest step what the whole's last backward step is the last to hold. */
static void hold_last(sn__fsdp_maker *m) {
  const sn_step *s = &m->whole->steps[m->whole->first_update - 1];
  bool sends = sn__groups_crosses(m->whole, m->whole->first_update - 1);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    if (access.held || sends) sn__edit_hold(&m->e, access.tensor);
  }
}

static void reduce(sn__fsdp_maker *m, uint32_t chunk) {
  for (uint32_t g = m->g.count; g-- > 0;)
    if (is_of(m, g, chunk)) sn__fsdp_behind_backward(m, g);
  if (is_of(m, m->g.count, chunk)) sn__fsdp_behind_backward(m, m->g.count);
  m->kept = SN_NONE;
  for (uint32_t g = 0; g <= m->g.count; g++)
    if (is_of(m, g, chunk)) sn__edit_hold(&m->e, m->states[g].reduced);
}

/* Who computes waits for what is reduced, as he does of a stage's last chunk with the update. */
static void await(sn__fsdp_maker *m, uint32_t chunk) {
  uint32_t first = 0;
  while (first <= m->g.count && !is_of(m, first, chunk)) first++;
  if (first > m->g.count) return;
  const sn_transfer none = {.kind = SN_REDUCE_SCATTER, .axis = SN_MESH_FSDP, .group = first, .ranks = m->ranks};
  sn__edit_step(&m->e, m->g.parameters[m->g.groups[first].first_parameter].layer, SN_BACKWARD, SN_PACK,
                sn__edit_transfer(&m->e, none));
  for (uint32_t g = first; g <= m->g.count; g++)
    if (is_of(m, g, chunk)) sn__edit_access(&m->e, m->states[g].shard, SN_READ);
}

static void take(sn__fsdp_maker *m, const sn_turn *turn, uint32_t end) {
  const sn_route *w = m->whole;
  if (turn->step < w->first_update) m->pass = w->steps[turn->step].pass;
  if (turn->kind == SN__COMPUTE) enter(m, turn->step, end, turn->chunk);
  if (turn->kind == SN__ASK) m->asks = true;
  if (turn->kind == SN__UNSHARD) do_all(m, turn->chunk, sn__fsdp_gather);
  if (turn->kind == SN__RESHARD) do_all(m, turn->chunk, sn__fsdp_let_go);
  if (turn->kind != SN__REDUCE) return;
  reduce(m, turn->chunk);
  turn->step == w->first_update ? hold_last(m) : await(m, turn->chunk);
}

void sn__fsdp_take_turns(sn__fsdp_maker *m, uint32_t step) {
  const sn_route *w = m->whole;
  for (; m->turn < w->n_turns && w->turns[m->turn].step == step; m->turn++)
    take(m, &w->turns[m->turn], end_of_turn(m, m->turn));
}
