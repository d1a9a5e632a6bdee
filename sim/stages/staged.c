/* Staged; see the header. */
#include "sim/stages/staged.h"

#include "sim/stages/stages.h"
#include "sim/stages/together.h"

#include <stdlib.h>

struct sn_staged {
  const sn_net *net;
  const sn_device *device;
  const sn_options *whole;
  uint32_t count;
  sn_options *options; /* a stage's own */
  sn_planner **planners;
};

/* Made when it is asked: of the others too, what all share is the first one's. */
static sn_planner *stage_of(sn_staged *s, uint32_t i, sn_err *err) {
  if (s->planners[i]) return s->planners[i];
  if (i > 0 && !stage_of(s, 0, err)) return NULL;
  s->options[i] = sn_stages_options(s->whole, i);
  return s->planners[i] = sn_planner_new_stage(i > 0 ? s->planners[0] : NULL, s->net, s->device, &s->options[i], err);
}

sn_staged *sn_staged_new(sn_staged *like, const sn_net *net, const sn_device *device, const sn_options *options,
                         sn_err *err) {
  sn_staged *s = calloc(1, sizeof *s);
  if (!s) return sn_fail_memory(err), NULL;
  *s = (sn_staged){
      .net = net, .device = device, .whole = options, .count = sn_mesh_size(&options->iteration.mesh, SN_MESH_PP)};
  s->planners = calloc(s->count, sizeof(sn_planner *));
  s->options = calloc(s->count, sizeof *s->options);
  if (!s->planners || !s->options)
    sn_fail_memory(err);
  else if (s->count == 1)
    s->planners[0] =
        like ? sn_planner_new_like(like->planners[0], net, err) : sn_planner_new(net, device, options, err);
  if (err->code == SN_OK) return s;
  sn_staged_free(s);
  return NULL;
}

void sn_staged_free(sn_staged *s) {
  if (!s) return;
  for (uint32_t i = s->count; s->planners && i-- > 0;) sn_planner_free(s->planners[i]); /* the first outlives others */
  free(s->planners);
  free(s->options);
  free(s);
}

uint32_t sn_staged_count(const sn_staged *s) {
  return s->count;
}

/* ---- memory ---- */

/* Together with another stage's. */
static void add_need(sn_need *all, sn_need own) {
  all->fits = all->fits && own.fits;
  all->guessed = all->guessed || own.guessed;
  if (own.slack_bytes < all->slack_bytes) all->slack_bytes = own.slack_bytes;
  if (own.device_bytes > all->device_bytes) all->device_bytes = own.device_bytes;
  if (own.host_bytes > all->host_bytes) all->host_bytes = own.host_bytes;
}

sn_status sn_staged_fits(sn_staged *s, sn_strategy strategy, uint64_t memory, sn_need *need, sn_err *err) {
  *need = (sn_need){.fits = true, .slack_bytes = INT64_MAX};
  for (uint32_t i = 0; i < s->count && need->slack_bytes >= 0; i++) {
    sn_need own;
    sn_planner *planner = stage_of(s, i, err);
    if (!planner || sn_planner_fits(planner, strategy, memory, &own, err) != SN_OK) return err->code;
    add_need(need, own);
  }
  return SN_OK;
}

typedef sn_status bytes_of(sn_planner *planner, sn_strategy strategy, uint64_t *bytes, sn_err *err);

/* The most of a stage; 0, no memory is enough, where that is so of any. */
static sn_status most_of(sn_staged *s, bytes_of *ask, sn_strategy strategy, uint64_t *memory, sn_err *err) {
  *memory = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    uint64_t own;
    sn_planner *planner = stage_of(s, i, err);
    if (!planner || ask(planner, strategy, &own, err) != SN_OK) return err->code;
    *memory = own > *memory || own == 0 ? own : *memory;
    if (own == 0) return SN_OK;
  }
  return SN_OK;
}

sn_status sn_staged_least(sn_staged *s, sn_strategy strategy, uint64_t *memory, sn_err *err) {
  return most_of(s, sn_planner_least, strategy, memory, err);
}

sn_status sn_staged_bound(sn_staged *s, sn_strategy strategy, uint64_t *memory, sn_err *err) {
  return most_of(s, sn_planner_bound, strategy, memory, err);
}

/* Of those that do not fit, where there are any, the one whose tensors lack most. */
static sn_status find_fullest(sn_staged *s, sn_strategy strategy, uint64_t memory, uint32_t *stage, sn_err *err) {
  sn_need fullest = {.fits = true, .slack_bytes = INT64_MAX};
  *stage = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    sn_need own;
    sn_planner *planner = stage_of(s, i, err);
    if (!planner || sn_planner_fits(planner, strategy, memory, &own, err) != SN_OK) return err->code;
    bool more = own.fits == fullest.fits ? own.slack_bytes < fullest.slack_bytes : fullest.fits;
    if (more) *stage = i, fullest = own;
  }
  return SN_OK;
}

sn_status sn_staged_binding(sn_staged *s, sn_strategy strategy, uint64_t memory, sn_arena *arena, sn_binding *binding,
                            sn_err *err) {
  uint32_t stage = 0;
  if (s->count > 1 && find_fullest(s, strategy, memory, &stage, err) != SN_OK) return err->code;
  sn_planner *planner = stage_of(s, stage, err);
  if (!planner || sn_planner_binding(planner, strategy, memory, arena, binding, err) != SN_OK) return err->code;
  if (s->count == 1) return SN_OK;
  binding->stage = stage;
  binding->stages = s->count;
  return SN_OK;
}

sn_status sn_staged_alike(sn_staged *s, sn_strategy a, sn_strategy b, bool *alike, sn_err *err) {
  *alike = true;
  for (uint32_t i = 0; i < s->count && *alike; i++) {
    sn_planner *planner = stage_of(s, i, err);
    if (!planner || sn_planner_alike(planner, a, b, alike, err) != SN_OK) return err->code;
  }
  return SN_OK;
}

/* ---- played ---- */

/* Of stages that take no more than those before them as they are nobody needs to know the least. */
static sn_status play_stages(sn_staged *s, sn__together *all, sn_strategy strategy, uint64_t memory, sn_arena *arena,
                             sn_result *results, sn_err *err) {
  uint64_t least = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    sn_planner *planner = stage_of(s, i, err);
    s->options[i].least_of_interest = &least;
    if (planner) sn_planner_result(planner, strategy, memory, arena, &results[i], err);
    s->options[i].least_of_interest = NULL;
    if (err->code != SN_OK) return err->code;
    if (results[i].least_device_bytes > least) least = results[i].least_device_bytes;
    const sn_route *route = sn_planner_route(planner, strategy, err);
    if (!route || sn__together_add(all, i, route, err) != SN_OK) return err->code;
  }
  return sn__together_judge(all, err);
}

static sn_status play(sn_staged *s, sn__together *all, sn_strategy strategy, uint64_t memory, sn_arena *arena,
                      sn_result *result, sn_err *err) {
  sn_result *results = sn_arena_alloc(arena, s->count, sizeof *results);
  const sn_result **of = sn_arena_alloc(arena, s->count, sizeof(const sn_result *));
  if (!results || !of) return sn_fail_memory(err);
  for (uint32_t i = 0; i < s->count; i++) of[i] = &results[i];
  if (play_stages(s, all, strategy, memory, arena, results, err) != SN_OK) return err->code;
  return sn__together_join(all, of, result, err);
}

sn_status sn_staged_result(sn_staged *s, sn_strategy strategy, uint64_t memory, sn_arena *arena, sn_result *result,
                           sn_err *err) {
  sn__together all;
  if (s->count == 1) return sn_planner_result(s->planners[0], strategy, memory, arena, result, err);
  if (sn__together_open(&all, s->net, s->device, s->whole, true, err) == SN_OK)
    play(s, &all, strategy, memory, arena, result, err);
  sn__together_close(&all);
  return err->code;
}
