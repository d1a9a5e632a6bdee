/* Editing a route; see the header. */
#include "sim/parallel/edit.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/record/record_net.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more of *items; false after an error. */
static bool grow(sn__edit *e, void *items, uint32_t count, uint32_t *room, size_t size) {
  void **at = items;
  if (e->err->code != SN_OK) return false;
  if (count < *room) return true;
  uint32_t more = *room < UINT32_MAX / 2 ? 2 * *room + 64 : 0;
  void *grown = more > 0 ? realloc(*at, (size_t)more * size) : NULL;
  if (!grown) return sn_fail_memory(e->err), false;
  memset((char *)grown + (size_t)*room * size, 0, (size_t)(more - *room) * size);
  *at = grown;
  *room = more;
  return true;
}

sn_status sn__edit_begin_bare(sn__edit *e, const sn_route *whole, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  *e = (sn__edit){.whole = whole, .err = err};
  e->route = arena ? sn_arena_alloc(arena, 1, sizeof *e->route) : NULL;
  if (!e->route) {
    if (arena) sn_arena_free(arena);
    return sn_fail_memory(err);
  }
  *e->route = *whole;
  e->route->arena = arena;
  e->route->under = NULL;
  e->route->shares_whole = false;
  e->route->holding = NULL;
  e->route->turns = NULL;
  e->route->n_turns = 0;
  e->mixed = whole->micros > 0;
  e->route->n_steps = e->route->n_accesses = e->route->n_tensors = e->route->n_transfers = 0;
  e->route->tensor_bytes = 0;
  e->moved = sn_arena_alloc(arena, (size_t)whole->n_steps + 1, sizeof *e->moved);
  if (!e->moved) return sn_fail_memory(err);
  for (uint32_t t = 0; t < whole->n_transfers; t++) sn__edit_transfer(e, whole->transfers[t]);
  return err->code;
}

sn_status sn__edit_begin(sn__edit *e, const sn_route *whole, sn_err *err) {
  if (sn__edit_begin_bare(e, whole, err) != SN_OK) return err->code;
  for (uint32_t t = 0; t < whole->n_tensors; t++) {
    const sn_tensor *tensor = &whole->tensors[t];
    sn__edit_tensor(e, tensor->layer, tensor->port, tensor->role, tensor->bytes);
  }
  for (uint32_t i = 0; i < whole->n_transfers; i++) sn__edit_transfer(e, whole->transfers[i]);
  return err->code;
}

uint32_t sn__edit_tensor(sn__edit *e, uint32_t layer, uint32_t port, sn_role role, uint64_t bytes) {
  sn_route *r = e->route;
  if (!grow(e, &e->tensors, r->n_tensors, &e->tensors_room, sizeof *e->tensors) ||
      !grow(e, &e->stamp, r->n_tensors, &e->stamp_room, sizeof *e->stamp))
    return SN_NONE;
  e->tensors[r->n_tensors] = (sn_tensor){.layer = layer, .port = port, .role = role, .bytes = bytes};
  if (!sn_add(r->tensor_bytes, bytes, &r->tensor_bytes) || r->tensor_bytes > SN_MAX_NET_BYTES)
    sn_fail(e->err, SN_BAD_INPUT, "network %s: its tensors on one of the GPUs are too large to add up", r->name);
  return r->n_tensors++;
}

uint32_t sn__edit_transfer(sn__edit *e, sn_transfer transfer) {
  sn_route *r = e->route;
  if (!grow(e, &e->transfers, r->n_transfers, &e->transfers_room, sizeof *e->transfers)) return SN_NONE;
  e->transfers[r->n_transfers] = transfer;
  return r->n_transfers++;
}

/* What a step of its own costs where steps say that themselves: what it copies, by one kernel. */
static sn_step_work work_of(const sn__edit *e, uint32_t transfer) {
  const sn_transfer *t = &e->transfers[transfer];
  return (sn_step_work){.called = sn_transfer_kind_name(t->kind), .bytes = 2 * (double)t->bytes, .launches = 1};
}

static bool add_step(sn__edit *e, sn_step step) {
  sn_route *r = e->route;
  if (!grow(e, &e->steps, r->n_steps, &e->steps_room, sizeof *e->steps)) return false;
  if (e->whole->work && !grow(e, &e->work, r->n_steps, &e->work_room, sizeof *e->work)) return false;
  step.first_access = r->n_accesses;
  step.n_accesses = 0;
  e->steps[r->n_steps++] = step;
  return true;
}

void sn__edit_step(sn__edit *e, uint32_t layer, sn_pass pass, sn_kernel kernel, uint32_t transfer) {
  const sn_step step = {.layer = layer, .pass = pass, .kernel = kernel, .sum = transfer};
  if (add_step(e, step) && e->work) e->work[e->route->n_steps - 1] = work_of(e, transfer);
}

void sn__edit_take(sn__edit *e, sn_access access) {
  sn_route *r = e->route;
  if (e->err->code != SN_OK || e->stamp[access.tensor] == r->n_steps) return;
  if (!grow(e, &e->accesses, r->n_accesses, &e->accesses_room, sizeof *e->accesses)) return;
  e->stamp[access.tensor] = r->n_steps;
  e->accesses[r->n_accesses++] = access;
  e->steps[r->n_steps - 1].n_accesses++;
}

void sn__edit_copy_bare(sn__edit *e, uint32_t step) {
  if (!add_step(e, e->whole->steps[step])) return;
  e->moved[step] = e->route->n_steps - 1;
  if (e->work) e->work[e->route->n_steps - 1] = e->whole->work[step];
}

void sn__edit_copy(sn__edit *e, uint32_t step) {
  const sn_step *s = &e->whole->steps[step];
  sn__edit_copy_bare(e, step);
  for (uint32_t i = 0; i < s->n_accesses; i++) sn__edit_take(e, e->whole->accesses[s->first_access + i]);
}

void sn__edit_share(sn__edit *e, uint32_t parts) {
  if (e->err->code != SN_OK) return;
  uint32_t latest = e->route->n_steps - 1, share = e->steps[latest].share;
  e->steps[latest].share = (share > 1 ? share : 1) * parts;
  if (!e->work) return;
  e->work[latest].flops /= parts;
  e->work[latest].bytes /= parts;
}

void sn__edit_access(sn__edit *e, uint32_t tensor, sn_access_mode mode) {
  if (tensor != SN_NONE) sn__edit_take(e, (sn_access){.tensor = tensor, .mode = mode});
}

void sn__edit_hold(sn__edit *e, uint32_t tensor) {
  if (tensor != SN_NONE) sn__edit_take(e, (sn_access){.tensor = tensor, .mode = SN_READ, .held = true});
}

/* ---- steps that run again ---- */

static bool append(sn__edit *e, sn_access access) {
  if (!grow(e, &e->accesses, e->route->n_accesses, &e->accesses_room, sizeof *e->accesses)) return false;
  e->accesses[e->route->n_accesses++] = access;
  return true;
}

/* As they run first. */
static sn_step *copy_steps(sn__edit *e) {
  sn_step *steps = sn_arena_alloc(e->route->arena, e->route->n_steps, sizeof *steps);
  if (!steps) return sn_fail_memory(e->err), NULL;
  memcpy(steps, e->steps, e->route->n_steps * sizeof *steps);
  return steps;
}

void sn__edit_again(sn__edit *e, uint32_t step, uint32_t without, const uint32_t held[2]) {
  const sn_step *from = &e->steps[step];
  if (e->err->code == SN_OK && !e->route->steps_again) e->route->steps_again = copy_steps(e);
  if (e->err->code != SN_OK) return;
  sn_step *to = (sn_step *)&e->route->steps_again[step];
  to->first_access = e->route->n_accesses;
  for (uint32_t i = 0; i < from->n_accesses; i++) {
    sn_access access = e->accesses[from->first_access + i];
    if (access.tensor != without && !append(e, access)) return;
  }
  for (int i = 0; i < 2; i++)
    if (held[i] != SN_NONE && !append(e, (sn_access){.tensor = held[i], .mode = SN_READ, .held = true})) return;
  to->n_accesses = e->route->n_accesses - to->first_access;
}

/* ---- the end ---- */

static bool adopt(sn__edit *e, void *items) {
  void **at = items;
  if (!*at) return true;
  if (!sn_arena_adopt(e->route->arena, *at)) return false;
  return true;
}

/* Steps by layer, which have other numbers now. */
static const uint32_t *move_all(const sn__edit *e, const uint32_t *steps) {
  uint32_t *moved = sn_arena_alloc(e->route->arena, e->route->n_layers, sizeof *moved);
  for (uint32_t l = 0; moved && l < e->route->n_layers; l++)
    moved[l] = steps[l] == SN_NONE ? SN_NONE : e->moved[steps[l]];
  return moved;
}

/* Blocks of a recording, in steps. */
static const sn_record_region *move_regions(const sn__edit *e) {
  uint32_t n = e->whole->n_regions;
  sn_record_region *regions = sn_arena_alloc(e->route->arena, n, sizeof *regions);
  for (uint32_t r = 0; regions && r < n; r++) {
    regions[r] = e->whole->regions[r];
    regions[r].first = e->moved[regions[r].first];
    regions[r].end = e->moved[regions[r].end - 1] + 1;
    regions[r].again_end = e->moved[regions[r].again_end - 1] + 1;
  }
  return regions;
}

/* A step that runs again touches what it did; what is put in for it is there. */
static bool copy_again(sn__edit *e, sn_step *to, uint32_t step) {
  const sn_step *from = &e->whole->steps_again[step];
  *to = *from;
  to->first_access = e->route->n_accesses;
  for (uint32_t i = 0; i < from->n_accesses; i++)
    if (!append(e, e->whole->accesses[from->first_access + i])) return false;
  return true;
}

/* Those of the whole that touch something else then, where schedules say what runs again. */
static sn_status move_others(sn__edit *e) {
  const sn_route *w = e->whole;
  sn_step *steps = copy_steps(e);
  for (uint32_t s = 0; s < w->n_steps && e->err->code == SN_OK; s++)
    if (w->steps_again[s].first_access != w->steps[s].first_access) copy_again(e, &steps[e->moved[s]], s);
  e->route->steps_again = steps;
  return e->err->code;
}

static sn_status move_again(sn__edit *e) {
  const sn_route *w = e->whole;
  sn_route *r = e->route;
  sn_again *again = sn_arena_alloc(r->arena, w->n_again, sizeof *again);
  sn_step *steps = sn_arena_alloc(r->arena, r->n_steps, sizeof *steps);
  if (!again || !steps) return sn_fail_memory(e->err);
  for (uint32_t i = 0; i < w->n_again; i++) {
    uint32_t step = e->moved[w->again[i].step], at = w->again[i].at_step;
    again[i] = (sn_again){step, at < w->n_steps ? e->moved[at] : r->n_steps};
    if (!copy_again(e, &steps[step], w->again[i].step)) return e->err->code;
  }
  r->again = again;
  r->steps_again = steps;
  return SN_OK;
}

/* Of one pass the first step that is not of the pass before: what is put in has the pass that it is for. */
static uint32_t first_of(const sn__edit *e, sn_pass pass) {
  uint32_t s = 0;
  while (s < e->route->n_steps && e->steps[s].pass < pass) s++;
  return s;
}

/* A stage's steps, as they are numbered now. */
static bool move_runs(sn__edit *e) {
  const sn_route *w = e->whole;
  if (!w->runs) return true;
  size_t n = (size_t)w->micros * w->n_runs;
  uint32_t *runs = sn_arena_alloc(e->route->arena, n, sizeof *runs);
  for (size_t i = 0; runs && i < n; i++) runs[i] = e->moved[w->runs[i]];
  e->route->runs = runs;
  return runs != NULL;
}

static sn_status hand_over(sn__edit *e) {
  sn_route *r = e->route;
  if (!move_runs(e)) return sn_fail_memory(e->err);
  if (e->whole->steps_again && (e->whole->n_again > 0 ? move_again : move_others)(e) != SN_OK) return e->err->code;
  r->steps = e->steps;
  r->accesses = e->accesses;
  r->tensors = e->tensors;
  r->transfers = e->transfers;
  r->work = e->work;
  r->moved = e->moved;
  r->forward_step = move_all(e, e->whole->forward_step);
  r->backward_step = move_all(e, e->whole->backward_step);
  if (e->whole->regions) r->regions = move_regions(e);
  r->first_update = first_of(e, SN_UPDATE);
  r->first_backward = e->mixed ? r->first_update : first_of(e, SN_BACKWARD);
  bool moved = r->forward_step && r->backward_step && (!e->whole->regions || r->regions);
  return moved ? SN_OK : sn_fail_memory(e->err);
}

sn_route *sn__edit_end(sn__edit *e, sn_status status) {
  if (!e->route) return NULL;
  if (status == SN_OK) status = e->err->code;
  if (status == SN_OK) status = hand_over(e);
  void *const parts[] = {&e->steps, &e->accesses, &e->tensors, &e->transfers, &e->work};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!adopt(e, parts[i])) {
      free(*(void **)parts[i]);
      status = sn_fail_memory(e->err);
    }
  free(e->stamp);
  if (status == SN_OK) return e->route;
  sn_arena_free(e->route->arena);
  return NULL;
}
