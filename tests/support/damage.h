/* Damage: copies of a plan with one thing wrong, for the tests of the checker.
 *
 *   damage_kinds[]     damage that no plan survives: the checker must reject it
 *   damage_at_random   any small change: where the checker accepts it, the oracle must find nothing wrong
 *
 * Instructions that move take the step of where they go, so that it is not the numbering that gives them away.
 */
#ifndef SN_TESTS_DAMAGE_H
#define SN_TESTS_DAMAGE_H

#include "sim/graph/route.h"
#include "sim/plan/plan.h"
#include "tests/support/prng.h"

#include <stdlib.h>
#include <string.h>

enum { DAMAGE_ROOM = 16 }; /* instructions that damage may add */

/* A copy to be damaged; free its instrs. */
static inline sn_plan damage_copy(const sn_plan *plan) {
  sn_plan copy = *plan;
  copy.instrs = malloc(((size_t)plan->n_instrs + DAMAGE_ROOM) * sizeof *copy.instrs);
  if (!copy.instrs) abort();
  memcpy(copy.instrs, plan->instrs, plan->n_instrs * sizeof *copy.instrs);
  return copy;
}

static inline void damage_remove(sn_plan *plan, uint32_t index) {
  sn_instr *i = plan->instrs;
  memmove(i + index, i + index + 1, (plan->n_instrs - index - 1) * sizeof *i);
  plan->n_instrs--;
}

/* Puts an instruction in front of number `at`, or at the end. */
static inline void damage_insert(sn_plan *plan, uint32_t at, sn_instr added) {
  sn_instr *i = plan->instrs;
  added.step = i[at < plan->n_instrs ? at : at - 1].step;
  memmove(i + at + 1, i + at, (plan->n_instrs - at) * sizeof *i);
  i[at] = added;
  plan->n_instrs++;
}

static inline void damage_move(sn_plan *plan, uint32_t from, uint32_t to) {
  sn_instr *i = plan->instrs, moved = i[from];
  moved.step = i[to].step;
  if (from < to)
    memmove(i + from, i + from + 1, (to - from) * sizeof *i);
  else
    memmove(i + to + 1, i + to, (from - to) * sizeof *i);
  i[to] = moved;
}

static inline void damage_swap(sn_plan *plan, uint32_t a, uint32_t b) {
  sn_instr *i = plan->instrs, first = i[a];
  uint32_t step_a = i[a].step, step_b = i[b].step;
  i[a] = i[b];
  i[b] = first;
  i[a].step = step_a;
  i[b].step = step_b;
}

/* A random instruction of a kind (a compute: also a re-run or not); SN_NONE where there is none. */
static inline uint32_t damage_find(const sn_plan *plan, uint64_t *dice, sn_instr_kind kind, bool rerun) {
  uint32_t found = 0, pick = SN_NONE;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != kind || plan->instrs[i].rerun != rerun) continue;
    if (prng_below(dice, ++found) == 0) pick = i;
  }
  return pick;
}

static inline bool damage_uses(const sn_plan *plan, const sn_instr *i, uint32_t tensor) {
  if (i->kind == SN_COPY_IN || i->kind == SN_COPY_OUT) return i->id == tensor;
  if (i->kind != SN_COMPUTE) return false;
  const sn_step *step = &plan->route->steps[i->id];
  for (uint32_t a = 0; a < step->n_accesses; a++)
    if (plan->route->accesses[step->first_access + a].tensor == tensor) return true;
  return false;
}

static inline bool damage_lose(sn_plan *plan, uint32_t index) {
  if (index != SN_NONE) damage_remove(plan, index);
  return index != SN_NONE;
}

/* An alloc is moved onto a tensor that is live there. */
static inline bool damage_overlap(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_ALLOC, false), live = 0;
  sn_instr victim = {0};
  for (uint32_t i = at; at != SN_NONE && i-- > 0;) { /* allocs before it without a release in between */
    if (plan->instrs[i].kind != SN_ALLOC) continue;
    bool released = false;
    for (uint32_t k = i + 1; k < at && !released; k++)
      released = plan->instrs[k].kind == SN_RELEASE && plan->instrs[k].id == plan->instrs[i].id;
    if (!released && prng_below(dice, ++live) == 0) victim = plan->instrs[i];
  }
  if (live == 0) return false;
  uint32_t blocks = (uint32_t)(victim.bytes / SN_POOL_BLOCK);
  plan->instrs[at].offset = victim.offset + prng_below(dice, blocks) * SN_POOL_BLOCK;
  return true;
}

/* The last use of a tensor from instruction `from` on, going back to its alloc, or forward to its release; SN_NONE
 * where there is none. */
static inline uint32_t damage_find_use(const sn_plan *plan, uint32_t from, uint32_t tensor, bool forward) {
  sn_instr_kind end = forward ? SN_RELEASE : SN_ALLOC;
  for (uint32_t i = forward ? from + 1 : from - 1; i < plan->n_instrs; i = forward ? i + 1 : i - 1) {
    if (damage_uses(plan, &plan->instrs[i], tensor)) return i;
    if (plan->instrs[i].kind == end && plan->instrs[i].id == tensor) break;
  }
  return SN_NONE;
}

static inline bool damage_early_release(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_RELEASE, false), use = SN_NONE;
  if (at != SN_NONE) use = damage_find_use(plan, at, plan->instrs[at].id, false);
  if (use != SN_NONE) damage_move(plan, at, use);
  return use != SN_NONE;
}

/* Copies in and re-runs may be in vain: a cache that finds no room may empty the device before their tensor is used,
 * and have its value outside. Such ones are left alone. */
static inline bool damage_lose_needed(sn_plan *plan, uint32_t at, uint32_t tensor) {
  if (damage_find_use(plan, at, tensor, true) == SN_NONE) return false;
  return damage_lose(plan, at);
}

static inline bool damage_lost_copy_in(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_COPY_IN, false);
  return at != SN_NONE && damage_lose_needed(plan, at, plan->instrs[at].id);
}

static inline bool damage_lost_copy_out(sn_plan *plan, uint64_t *dice) {
  return damage_lose(plan, damage_find(plan, dice, SN_COPY_OUT, false));
}

static inline bool damage_lost_rerun(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_COMPUTE, true);
  if (at == SN_NONE) return false;
  const sn_step *step = &plan->route->steps[plan->instrs[at].id]; /* makes one tensor, its last access */
  return damage_lose_needed(plan, at, plan->route->accesses[step->first_access + step->n_accesses - 1].tensor);
}

static inline bool damage_lost_step(sn_plan *plan, uint64_t *dice) {
  return damage_lose(plan, damage_find(plan, dice, SN_COMPUTE, false));
}

static inline bool damage_lost_alloc(sn_plan *plan, uint64_t *dice) {
  return damage_lose(plan, damage_find(plan, dice, SN_ALLOC, false));
}

/* The signal of a random wait; SN_NONE where there is no wait. */
static inline uint32_t damage_signal_of(const sn_plan *plan, uint64_t *dice, uint32_t *wait) {
  *wait = damage_find(plan, dice, SN_WAIT, false);
  for (uint32_t i = 0; *wait != SN_NONE && i < *wait; i++)
    if (plan->instrs[i].kind == SN_SIGNAL && plan->instrs[i].id == plan->instrs[*wait].id) return i;
  return SN_NONE;
}

static inline bool damage_lost_signal(sn_plan *plan, uint64_t *dice) {
  uint32_t wait;
  return damage_lose(plan, damage_signal_of(plan, dice, &wait));
}

/* The wait stands where its signal stood, and the signal where the first wait for it stood. */
static inline bool damage_wait_first(sn_plan *plan, uint64_t *dice) {
  uint32_t wait, signal = damage_signal_of(plan, dice, &wait);
  if (signal == SN_NONE) return false;
  damage_swap(plan, signal, wait);
  return true;
}

/* Alloc, copy or workspace beyond the end of its pool, by one block at least. */
static inline bool damage_beyond(sn_plan *plan, uint64_t *dice) {
  static const sn_instr_kind kinds[] = {SN_ALLOC, SN_COPY_OUT, SN_COPY_IN, SN_COMPUTE};
  sn_instr_kind kind = kinds[prng_below(dice, 4)];
  uint32_t at = damage_find(plan, dice, kind, false);
  if (at == SN_NONE || plan->instrs[at].bytes == 0) return false;
  sn_instr *i = &plan->instrs[at];
  bool external = kind == SN_COPY_OUT || kind == SN_COPY_IN;
  uint64_t end = external ? plan->external_bytes : plan->pool_bytes,
           size = (i->bytes + SN_POOL_BLOCK - 1) / SN_POOL_BLOCK;
  i->offset = end - (size - prng_from(dice, 1, (uint32_t)size)) * SN_POOL_BLOCK;
  return true;
}

static inline bool damage_small_alloc(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_ALLOC, false);
  plan->instrs[at].bytes -= SN_POOL_BLOCK;
  return true;
}

/* Two steps in a row change places. */
static inline bool damage_steps_swapped(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_COMPUTE, false), other = at + 1;
  while (other < plan->n_instrs && (plan->instrs[other].kind != SN_COMPUTE || plan->instrs[other].rerun)) other++;
  if (other >= plan->n_instrs) return false;
  damage_swap(plan, at, other);
  return true;
}

/* A step runs twice; a forward step is re-run before it has run; a backward step is re-run. */
static inline bool damage_step_twice(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_COMPUTE, false);
  sn_instr again = plan->instrs[at];
  again.rerun = prng_chance(dice, 70);
  again.bytes = 0;
  bool behind = again.rerun && plan->route->steps[again.id].pass != SN_FORWARD;
  damage_insert(plan, at + behind, again);
  return true;
}

static inline bool damage_signal_twice(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_SIGNAL, false);
  if (at != SN_NONE) damage_insert(plan, at, plan->instrs[at]);
  return at != SN_NONE;
}

/* All copies of tensor `id` go to another place of the external pool. */
static inline void damage_move_slot(sn_plan *plan, uint32_t from, uint32_t id, uint64_t offset) {
  for (uint32_t i = from; i < plan->n_instrs; i++) {
    sn_instr *instr = &plan->instrs[i];
    if ((instr->kind == SN_COPY_OUT || instr->kind == SN_COPY_IN) && instr->id == id) instr->offset = offset;
  }
}

/* Two tensors share a place in the external pool. */
static inline bool damage_shared_slot(sn_plan *plan, uint64_t *dice) {
  uint32_t one = damage_find(plan, dice, SN_COPY_OUT, false), other = damage_find(plan, dice, SN_COPY_OUT, false);
  if (one == SN_NONE || plan->instrs[one].id == plan->instrs[other].id) return false;
  damage_move_slot(plan, 0, plan->instrs[one].id, plan->instrs[other].offset);
  return true;
}

/* A tensor is copied out a second time, to another place. */
static inline bool damage_second_slot(sn_plan *plan, uint64_t *dice) {
  uint32_t at = damage_find(plan, dice, SN_COPY_OUT, false);
  if (at == SN_NONE) return false;
  damage_insert(plan, at, plan->instrs[at]);
  damage_move_slot(plan, at + 1, plan->instrs[at].id, plan->external_bytes);
  plan->external_bytes += (plan->instrs[at].bytes + SN_POOL_BLOCK - 1) / SN_POOL_BLOCK * SN_POOL_BLOCK;
  return true;
}

typedef struct damage_kind {
  const char *name;
  bool (*apply)(sn_plan *plan, uint64_t *dice); /* false: the plan has nothing of the kind */
} damage_kind;

static const damage_kind damage_kinds[] = {
    {"alloc over a live tensor", damage_overlap},
    {"release before the last use", damage_early_release},
    {"lost copy-in", damage_lost_copy_in},
    {"lost copy-out", damage_lost_copy_out},
    {"lost re-run", damage_lost_rerun},
    {"lost step", damage_lost_step},
    {"lost alloc", damage_lost_alloc},
    {"lost signal", damage_lost_signal},
    {"wait before its signal", damage_wait_first},
    {"beyond the pool", damage_beyond},
    {"small alloc", damage_small_alloc},
    {"steps swapped", damage_steps_swapped},
    {"step twice", damage_step_twice},
    {"signal twice", damage_signal_twice},
    {"shared external place", damage_shared_slot},
    {"second external place", damage_second_slot},
};
enum { DAMAGE_KINDS = sizeof damage_kinds / sizeof damage_kinds[0] };

/* Where the external copy of a tensor is; a new place where it has none. */
static inline uint64_t damage_slot(sn_plan *plan, uint32_t tensor) {
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    if (plan->instrs[i].kind == SN_COPY_OUT && plan->instrs[i].id == tensor) return plan->instrs[i].offset;
  uint64_t bytes = plan->route->tensors[tensor].bytes, slot = plan->external_bytes;
  plan->external_bytes += (bytes + SN_POOL_BLOCK - 1) / SN_POOL_BLOCK * SN_POOL_BLOCK;
  return slot;
}

/* A random alloc, preferably of a tensor that is changed in place later. */
static inline uint32_t damage_find_changing(const sn_plan *plan, uint64_t *dice) {
  const sn_route *route = plan->route;
  uint32_t at = SN_NONE;
  for (uint32_t throws = 0; throws < 6; throws++) {
    at = damage_find(plan, dice, SN_ALLOC, false);
    for (uint32_t a = 0; a < route->n_accesses; a++)
      if (route->accesses[a].mode == SN_MODIFY && route->accesses[a].tensor == plan->instrs[at].id) return at;
  }
  return at;
}

/* A tensor is copied out and perhaps in again while it is resident. With all fences, and nothing changed in between,
 * that is right; some fences are left out. */
static inline void damage_round_trip(sn_plan *plan, uint64_t *dice) {
  uint32_t alloc = damage_find_changing(plan, dice), tensor = plan->instrs[alloc].id, end = alloc + 1;
  while (end < plan->n_instrs && (plan->instrs[end].kind != SN_RELEASE || plan->instrs[end].id != tensor)) end++;
  uint32_t out = prng_from(dice, alloc + 1, end), in = prng_from(dice, out, end), made = plan->n_fences;
  uint64_t slot = damage_slot(plan, tensor), bytes = plan->route->tensors[tensor].bytes;
  bool back = prng_chance(dice, 60);
  enum { COMPUTE_DONE, OUT_DONE, READY, IN_DONE, FENCES };
  const struct {
    uint32_t at;
    sn_instr_kind kind;
    sn_lane lane;
    uint32_t fence;
  } added[] = {/* last first */
               {end, SN_WAIT, SN_LANE_COMPUTE, OUT_DONE}, {in, SN_WAIT, SN_LANE_COMPUTE, IN_DONE},
               {in, SN_SIGNAL, SN_LANE_IN, IN_DONE},      {in, SN_COPY_IN, SN_LANE_IN, 0},
               {in, SN_WAIT, SN_LANE_IN, READY},          {in, SN_SIGNAL, SN_LANE_COMPUTE, READY},
               {in, SN_WAIT, SN_LANE_IN, OUT_DONE},       {out, SN_WAIT, SN_LANE_COMPUTE, OUT_DONE},
               {out, SN_SIGNAL, SN_LANE_OUT, OUT_DONE},   {out, SN_COPY_OUT, SN_LANE_OUT, 0},
               {out, SN_WAIT, SN_LANE_OUT, COMPUTE_DONE}, {out, SN_SIGNAL, SN_LANE_COMPUTE, COMPUTE_DONE}};
  plan->n_fences += FENCES;
  for (uint32_t i = 0; i < sizeof added / sizeof added[0]; i++) {
    sn_instr instr = {.kind = (uint8_t)added[i].kind, .lane = (uint8_t)added[i].lane, .id = made + added[i].fence};
    bool copies = instr.kind == SN_COPY_OUT || instr.kind == SN_COPY_IN;
    if (copies)
      instr = (sn_instr){.kind = instr.kind, .lane = instr.lane, .id = tensor, .offset = slot, .bytes = bytes};
    if ((i > 0 && i < 7 && !back) || (instr.kind == SN_WAIT && prng_chance(dice, 10))) continue;
    damage_insert(plan, added[i].at, instr);
  }
}

/* Any change; most of them are fatal, some do no harm. */
static inline void damage_at_random(sn_plan *plan, uint64_t *dice) {
  uint32_t kind = prng_below(dice, 9), at = prng_below(dice, plan->n_instrs);
  uint32_t near = at + prng_below(dice, 20);
  sn_instr *i = &plan->instrs[at];
  if (near >= plan->n_instrs) near = plan->n_instrs - 1;
  switch (kind) {
  case 0:
    damage_remove(plan, at);
    break;
  case 1:
    damage_swap(plan, at, near);
    break;
  case 2:
    damage_move(plan, at, near);
    break;
  case 3:
    damage_move(plan, near, at);
    break;
  case 4:
    i->lane = (uint8_t)((i->lane + prng_from(dice, 1, SN_CORUN_LANES - 1)) % SN_CORUN_LANES);
    break;
  case 5: /* another address, or another fence */
    i->offset += SN_POOL_BLOCK * prng_below(dice, 8);
    i->offset -= SN_POOL_BLOCK * prng_below(dice, 8);
    if (i->kind == SN_WAIT) i->id = prng_below(dice, plan->n_fences);
    break;
  case 6: /* fences move furthest without harm */
    at = damage_find(plan, dice, prng_chance(dice, 50) ? SN_WAIT : SN_SIGNAL, false);
    if (at != SN_NONE) damage_move(plan, at, at > 30 ? at - prng_below(dice, 30) : 0);
    break;
  default:
    damage_round_trip(plan, dice);
    break;
  }
}

#endif
