/* Groups of parameters; see the header. */
#include "sim/parallel/groups.h"

#include "base/arena.h"
#include "models/op/op.h"
#include "models/record/record_net.h"
#include "sim/graph/freeze.h"

#include <stdlib.h>
#include <string.h>

static bool has_parameters(const sn_route *route, uint32_t layer) {
  return route->layers[layer].parameters > 0;
}

static bool has_blocks(const sn_route *route) {
  for (uint32_t l = 0; l < route->n_layers; l++)
    if (sn_route_block(route, l)) return true;
  return false;
}

/* The group that is named so, a new one where there is none. Blocks are few and come one after the other, so the latest
 * is looked at first. */
static uint32_t group_named(sn__groups *g, const char *name) {
  for (uint32_t i = g->count; i-- > 0;)
    if (g->groups[i].name == name || strcmp(g->groups[i].name, name) == 0) return i;
  g->groups[g->count] = (sn__group){.name = name, .forward = SN_NONE, .backward = SN_NONE};
  return g->count++;
}

/* Layers in the order in which they run; those that are in no block are the root's. */
static void name_groups(const sn_route *route, sn__groups *g) {
  bool blocks = has_blocks(route);
  memset(g->of, 0xff, route->n_layers * sizeof *g->of);
  for (uint32_t s = 0; s < route->first_backward; s++) {
    uint32_t layer = route->steps[s].layer;
    if (route->steps[s].pass != SN_FORWARD || sn__groups_crosses(route, s)) continue; /* of a stage of a pipeline */
    const char *name = blocks                         ? sn_route_block(route, layer)
                       : has_parameters(route, layer) ? sn_route_module(route, layer)
                                                      : NULL;
    if (name && g->of[layer] == SN_NONE) g->of[layer] = group_named(g, name);
  }
  for (uint32_t s = 0; s < route->first_update && route->micros > 0; s++) {
    uint32_t layer = route->steps[s].layer;
    if (!sn__groups_crosses(route, s) && g->of[layer] == SN_NONE) g->of[layer] = g->count;
  }
  for (uint32_t l = 0; l < route->n_layers && route->micros == 0; l++)
    if (g->of[l] == SN_NONE) g->of[l] = g->count;
}

static void add_parameters(const sn_route *route, uint32_t tp, sn__groups *g, uint32_t group) {
  sn_cut cuts[SN_PARAMETER_TENSORS];
  g->groups[group].first_parameter = g->n_parameters;
  for (uint32_t l = 0; l < route->n_layers; l++) {
    if (g->of[l] != group || !has_parameters(route, l)) continue;
    uint32_t count = sn_cuts_of(route->net, &route->layers[l], tp, cuts), gradient = route->weight_gradient[l];
    for (uint32_t n = 0; n < count; n++)
      g->parameters[g->n_parameters++] = (sn__parameter){l, n, cuts[n], gradient == SN_NONE ? SN_NONE : gradient + n};
  }
  g->groups[group].n_parameters = g->n_parameters - g->groups[group].first_parameter;
}

static void note_step(sn__group *group, uint32_t step, bool forward) {
  uint32_t *first = forward ? &group->forward : &group->backward;
  if (*first == SN_NONE) *first = step;
  *(forward ? &group->forward_end : &group->backward_end) = step;
}

bool sn__groups_crosses(const sn_route *route, uint32_t step) {
  const sn_step *s = &route->steps[step];
  return (s->kernel == SN_TRANSFER || s->kernel == SN_PACK) && route->transfers[s->sum].axis == SN_MESH_PP;
}

/* What adds gradients belongs to those who made them: a block's input is its own, whose output it is. */
void sn__groups_enter(sn__groups *g, const sn_route *route, uint32_t first, uint32_t end) {
  bool forward = first < end && route->steps[first].pass == SN_FORWARD;
  uint32_t group = g->count;
  for (uint32_t i = 0; i <= g->count; i++) *(forward ? &g->groups[i].forward : &g->groups[i].backward) = SN_NONE;
  for (uint32_t s = first; s < end; s++) {
    const sn_step *step = &route->steps[s];
    g->of_step[s] = g->count;
    if (sn__groups_crosses(route, s)) continue;
    if (forward || !sn_step_follows(step)) group = g->of[step->layer];
    note_step(&g->groups[group], s, forward);
    g->of_step[s] = group;
  }
}

/* What a stage receives requires a gradient. */
static void find_trained(const sn_route *route, sn__groups *g, sn_iteration iteration) {
  bool trained = route->micros > 0 && route->mesh->stage > 0;
  for (uint32_t s = 0; s < route->first_backward; s++) {
    const sn_step *step = &route->steps[s];
    if (step->pass != SN_FORWARD || sn__groups_crosses(route, s)) continue;
    sn__group *group = &g->groups[g->of[step->layer]];
    if (group->forward == SN_NONE) group->input_trained = trained;
    note_step(group, s, true);
    trained = trained ||
              (has_parameters(route, step->layer) && sn_freeze_trains(iteration.freeze, &route->layers[step->layer]));
  }
}

sn_status sn__groups_find(const sn_route *route, sn_iteration iteration, sn__groups *g, sn_err *err) {
  size_t layers = route->n_layers;
  *g = (sn__groups){0};
  if (route->net->recorded) return sn__groups_find_recorded(route, g, err);
  *g = (sn__groups){.groups = calloc(layers + 1, sizeof *g->groups),
                    .parameters = calloc(layers * SN_PARAMETER_TENSORS + 1, sizeof *g->parameters),
                    .of = malloc((layers + 1) * sizeof *g->of),
                    .of_step = calloc((size_t)route->n_steps + 1, sizeof *g->of_step)};
  if (!g->groups || !g->parameters || !g->of || !g->of_step) return sn_fail_memory(err);
  name_groups(route, g);
  g->groups[g->count] = (sn__group){.name = "root", .forward = SN_NONE, .backward = SN_NONE};
  for (uint32_t i = 0; i <= g->count; i++) add_parameters(route, sn_mesh_size(&iteration.mesh, SN_MESH_TP), g, i);
  find_trained(route, g, iteration);
  if (route->micros > 0) return SN_OK;
  sn__groups_enter(g, route, 0, route->first_backward);
  sn__groups_enter(g, route, route->first_backward, route->first_update);
  return SN_OK;
}

/* Shared parameters have their gradients added: the last step that changes one makes it whole. */
/* Of a recording the last step of the node that ran: what it has made arrives at parameters when it is over. */
static uint32_t end_of_node(const sn_route *whole, uint32_t step) {
  const struct sn_recorded *recorded = whole->net->recorded;
  if (!recorded) return step;
  const sn_record_op *ops = recorded->record->ops + recorded->first_op;
  while (ops[step].node >= 0 && step + 1 < whole->first_update && ops[step + 1].node == ops[step].node) step++;
  return step;
}

sn_status sn__groups_find_made(const sn__groups *g, const sn_route *whole, uint32_t *made, sn_err *err) {
  uint32_t *by_tensor = calloc((size_t)whole->n_tensors + 1, sizeof *by_tensor);
  if (!by_tensor) return sn_fail_memory(err);
  for (uint32_t s = 0; s < whole->first_update; s++)
    for (uint32_t i = 0; i < whole->steps[s].n_accesses; i++) {
      sn_access access = whole->accesses[whole->steps[s].first_access + i];
      if (access.mode != SN_READ) by_tensor[access.tensor] = s;
    }
  for (uint32_t p = 0; p < g->n_parameters; p++) {
    uint32_t gradient = g->parameters[p].gradient;
    made[p] = gradient == SN_NONE ? SN_NONE : end_of_node(whole, by_tensor[gradient]);
  }
  free(by_tensor);
  return SN_OK;
}

sn_status sn__groups_hand_over(const sn__groups *g, const sn_mesh *mesh, sn_route *route, sn_err *err) {
  sn_parameter_group *groups = sn_arena_alloc(route->arena, (size_t)g->count + 1, sizeof *groups);
  sn_mesh *copy = sn_arena_alloc(route->arena, 1, sizeof *copy);
  if (!groups || !copy) return sn_fail_memory(err);
  for (uint32_t i = 0; i <= g->count; i++) groups[i].name = g->groups[i].name;
  *copy = *mesh;
  route->groups = groups;
  route->n_groups = g->count + 1;
  route->mesh = copy;
  return SN_OK;
}

void sn__groups_shrink_temporaries(const sn__groups *g, const sn_mesh *mesh, sn__edit *e, uint32_t ranks,
                                   uint32_t e_bytes, uint32_t o_bytes) {
  const sn_route *w = e->whole;
  uint64_t all = 0, own = 0;
  for (uint32_t i = 0; i < g->n_parameters; i++) {
    const sn_layer *layer = &w->layers[g->parameters[i].layer];
    if (g->parameters[i].gradient == SN_NONE || sn_mesh_updates_apart(mesh, w->net, layer)) continue;
    all += g->parameters[i].cut.rows * g->parameters[i].cut.each;
    own += sn_cut_shard(g->parameters[i].cut, ranks);
  }
  for (uint32_t s = w->first_update; s < w->n_steps; s++)
    for (uint32_t i = 0; i < w->steps[s].n_accesses; i++) {
      uint32_t t = w->accesses[w->steps[s].first_access + i].tensor;
      if (w->tensors[t].role != SN_SCRATCH || all == 0) continue;
      e->tensors[t].bytes = w->tensors[t].bytes / (all * e_bytes) * (own * o_bytes);
    }
}

void sn__groups_clear(sn__groups *g) {
  free(g->groups);
  free(g->parameters);
  free(g->of);
  free(g->of_step);
  free(g->gradient_of);
  free(g->first_read);
  free(g->reads);
  *g = (sn__groups){0};
}
