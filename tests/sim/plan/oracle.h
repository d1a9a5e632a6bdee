/* Oracle: runs a plan on a toy memory and looks at every byte range that is read, as the judge over planner and
 * checker. It shares no code and no reasoning with them: no clocks, no versions, only memory.
 *
 *   load   goes through the list once in serial order, as a back end's host does: resolves addresses and external
 * slots, and turns the list into one queue of operations a lane, each with the blocks it reads and writes run    lets
 * the lanes advance in some order. An operation begins and ends; two that are under way at once must not touch one
 * block where one of them writes it; whoever reads a block must find the tag it expects
 *
 * A block is 1 KiB of the pool or of the external pool. Its tag names the access of the route (tensor and step) that
 * made its content; a re-run forward makes the tag of its step again; workspaces write garbage. The expected tag of a
 * step's read is that of the last access before it in the route that writes the tensor, whatever the plan does.
 *
 * Poison: the words of plan.h taken at their hardest. A released tensor's bytes "may be re-used" and an allocated one's
 * lane "is the first to write there": with poison both overwrite the tensor with garbage at their place in their lane.
 * Loading always runs the list serially with poison on.
 */
#ifndef SN_TESTS_ORACLE_H
#define SN_TESTS_ORACLE_H

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/plan.h"
#include "tests/support/prng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE_GARBAGE 0u
#define ORACLE_NOTHING UINT32_MAX /* not read, or not written */

typedef enum oracle_kind { ORACLE_WORK, ORACLE_POISON, ORACLE_SIGNAL, ORACLE_WAIT } oracle_kind;

typedef struct oracle_range {
  uint32_t begin, end;     /* blocks; those of the external pool follow those of the pool */
  uint32_t expected, made; /* tags */
} oracle_range;

typedef struct oracle_item {
  oracle_kind kind;
  uint32_t fence, first_range, n_ranges;
} oracle_item;

/* A tensor, in serial order. */
typedef struct oracle_place {
  bool resident, outside;
  uint64_t offset, room; /* as allocated */
  uint64_t slot;         /* in the external pool */
  uint32_t tag, outside_tag;
} oracle_place;

/* What the addresses say: the shadow of the planner's meter. */
typedef struct oracle_meter {
  sn_step_use *use; /* per step */
  uint64_t bytes, peak, high_water;
  uint32_t tensors;
  uint64_t reserved, reserved_peak;
} oracle_meter;

typedef struct oracle {
  const sn_plan *plan;
  uint32_t device_blocks, n_blocks;
  uint32_t *memory;   /* per block: its tag */
  bool *owned;        /* per block of the pool: a live tensor's */
  uint32_t *expected; /* per access of the route */
  oracle_item *items; /* per instruction */
  oracle_range *ranges;
  uint32_t n_ranges;
  uint32_t *queue[SN_LANES], count[SN_LANES]; /* per lane: its instructions */
  bool *passed;                               /* per fence, while running */
  oracle_place *places;
  oracle_meter meter;
  uint32_t wasted; /* copies out of what the external pool holds already */
  uint32_t at;     /* instruction */
  char fault[240];
} oracle;

static inline bool oracle_fault(oracle *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool oracle_fault(oracle *o, const char *format, ...) {
  const sn_instr *i = &o->plan->instrs[o->at];
  int n = snprintf(o->fault, sizeof o->fault, "instruction %u (%s %u on %s): ", o->at,
                   sn_instr_kind_name((sn_instr_kind)i->kind), i->id, sn_lane_name((sn_lane)i->lane));
  va_list args;
  va_start(args, format);
  vsnprintf(o->fault + n, sizeof o->fault - (size_t)n, format, args);
  va_end(args);
  return false;
}

static inline void *oracle_array(size_t count, size_t size) {
  void *items = calloc(count + 1, size);
  if (!items) abort();
  return items;
}

static inline void oracle_free(oracle *o) {
  free(o->memory);
  free(o->owned);
  free(o->expected);
  free(o->items);
  free(o->ranges);
  for (sn_lane lane = 0; lane < SN_LANES; lane++) free(o->queue[lane]);
  free(o->passed);
  free(o->places);
  free(o->meter.use);
}

/* What is made by an access of the route: its number, but for what several GPUs gather: that is the same numbers again
 * each time, so that a forward step that runs again may read what was gathered since. */
static inline uint32_t oracle_made(const sn_route *r, uint32_t access) {
  uint32_t tensor = r->accesses[access].tensor;
  sn_role role = r->tensors[tensor].role;
  return role == SN_GATHERED || role == SN_UNSHARDED ? r->n_accesses + tensor + 1 : access + 1;
}

/* What each access of the route must find, and how many ranges the plan's instructions can have at most. */
static inline void oracle_expect(oracle *o) {
  const sn_route *r = o->plan->route;
  uint32_t *writer = oracle_array(r->n_tensors, sizeof *writer);
  for (uint32_t a = 0; a < r->n_accesses; a++) { /* the accesses stand in the order of the steps */
    uint32_t tensor = r->accesses[a].tensor;
    o->expected[a] = r->accesses[a].mode == SN_WRITE ? ORACLE_NOTHING : writer[tensor];
    if (r->accesses[a].mode != SN_READ) writer[tensor] = oracle_made(r, a);
  }
  free(writer);
}

static inline size_t oracle_count_ranges(const sn_plan *plan) {
  size_t ranges = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    ranges += instr->kind == SN_COMPUTE ? plan->route->steps[instr->id].n_accesses + 1 : 2;
  }
  return ranges;
}

static inline void oracle_init(oracle *o, const sn_plan *plan) {
  const sn_route *r = plan->route;
  *o = (oracle){.plan = plan};
  o->device_blocks = (uint32_t)sn_ceil_div(plan->pool_bytes, SN_POOL_BLOCK);
  o->n_blocks = o->device_blocks + (uint32_t)sn_ceil_div(plan->external_bytes, SN_POOL_BLOCK);
  o->memory = oracle_array(o->n_blocks, sizeof *o->memory);
  o->owned = oracle_array(o->device_blocks, sizeof *o->owned);
  o->expected = oracle_array(r->n_accesses, sizeof *o->expected);
  o->items = oracle_array(plan->n_instrs, sizeof *o->items);
  o->ranges = oracle_array(oracle_count_ranges(plan), sizeof *o->ranges);
  for (sn_lane lane = 0; lane < SN_LANES; lane++) o->queue[lane] = oracle_array(plan->n_instrs, sizeof(uint32_t));
  o->passed = oracle_array(plan->n_fences, sizeof *o->passed);
  o->places = oracle_array(r->n_tensors, sizeof *o->places);
  o->meter.use = oracle_array(r->n_steps, sizeof *o->meter.use);
  oracle_expect(o);
}

/* The blocks of [offset, offset + bytes), of the pool or the external pool. */
static inline bool oracle_add_range(oracle *o, bool external, uint64_t offset, uint64_t bytes, uint32_t expected,
                                    uint32_t made) {
  uint64_t base = external ? o->device_blocks : 0, limit = external ? o->n_blocks : o->device_blocks;
  uint64_t begin = base + offset / SN_POOL_BLOCK, end = base + sn_ceil_div(offset + bytes, SN_POOL_BLOCK);
  if (offset % SN_POOL_BLOCK) return oracle_fault(o, "offset %llu is within a block", (unsigned long long)offset);
  if (offset + bytes < bytes || end > limit) return oracle_fault(o, "outside of its pool");
  oracle_item *item = &o->items[o->at];
  if (item->n_ranges == 0) item->first_range = o->n_ranges;
  item->n_ranges++;
  o->ranges[o->n_ranges++] =
      (oracle_range){.begin = (uint32_t)begin, .end = (uint32_t)end, .expected = expected, .made = made};
  return true;
}

static inline void oracle_meter_step(oracle *o, uint32_t step) {
  oracle_meter *m = &o->meter;
  sn_step_use *use = &m->use[step];
  use->tensor_bytes = sn_max(use->tensor_bytes, m->bytes);
  if (m->tensors > use->live_tensors) use->live_tensors = m->tensors;
  m->peak = sn_max(m->peak, m->bytes);
  m->reserved_peak = sn_max(m->reserved_peak, m->reserved);
}

/* The blocks of the range that the last item got must be free; `owner` tells whether they are taken now. */
static inline bool oracle_take(oracle *o, bool owner) {
  const oracle_range *range = &o->ranges[o->n_ranges - 1];
  for (uint32_t b = range->begin; b < range->end; b++) {
    if (o->owned[b]) return oracle_fault(o, "block %u is a live tensor's", b);
    o->owned[b] = owner;
  }
  o->meter.high_water = sn_max(o->meter.high_water, range->end * SN_POOL_BLOCK);
  return true;
}

static inline bool oracle_load_alloc(oracle *o, const sn_instr *i) {
  oracle_place *p = &o->places[i->id];
  uint64_t bytes = o->plan->route->tensors[i->id].bytes;
  if (p->resident) return oracle_fault(o, "is allocated already");
  if (i->bytes < bytes) return oracle_fault(o, "is too small for its %llu bytes", (unsigned long long)bytes);
  p->resident = true;
  p->offset = i->offset;
  p->room = i->bytes;
  p->tag = ORACLE_GARBAGE;
  if (!oracle_add_range(o, false, i->offset, i->bytes, ORACLE_NOTHING, ORACLE_GARBAGE) || !oracle_take(o, true))
    return false;
  o->meter.bytes += bytes;
  o->meter.tensors++;
  o->meter.reserved += i->bytes;
  oracle_meter_step(o, i->step);
  return true;
}

static inline bool oracle_load_release(oracle *o, const sn_instr *i) {
  oracle_place *p = &o->places[i->id];
  if (!p->resident) return oracle_fault(o, "is not allocated");
  p->resident = false;
  if (!oracle_add_range(o, false, p->offset, p->room, ORACLE_NOTHING, ORACLE_GARBAGE)) return false;
  const oracle_range *range = &o->ranges[o->n_ranges - 1];
  for (uint32_t b = range->begin; b < range->end; b++) o->owned[b] = false;
  o->meter.bytes -= o->plan->route->tensors[i->id].bytes;
  o->meter.tensors--;
  o->meter.reserved -= p->room;
  return true;
}

static inline bool oracle_load_access(oracle *o, uint32_t index) {
  sn_access access = o->plan->route->accesses[index];
  oracle_place *p = &o->places[access.tensor];
  uint32_t made = access.mode == SN_READ ? ORACLE_NOTHING : oracle_made(o->plan->route, index);
  if (!p->resident) return oracle_fault(o, "tensor %u is not on the device", access.tensor);
  if (made != ORACLE_NOTHING) p->tag = made;
  return oracle_add_range(o, false, p->offset, o->plan->route->tensors[access.tensor].bytes, o->expected[index], made);
}

static inline bool oracle_load_compute(oracle *o, const sn_instr *i) {
  const sn_step *step = &o->plan->route->steps[i->id];
  for (uint32_t a = 0; a < step->n_accesses; a++)
    if (!oracle_load_access(o, step->first_access + a)) return false;
  if (i->bytes == 0) return true;
  sn_step_use *use = &o->meter.use[i->step];
  use->workspace_bytes = sn_max(use->workspace_bytes, i->bytes);
  o->meter.reserved_peak = sn_max(o->meter.reserved_peak, o->meter.reserved + i->bytes);
  return oracle_add_range(o, false, i->offset, i->bytes, ORACLE_NOTHING, ORACLE_GARBAGE) && oracle_take(o, false);
}

static inline bool oracle_load_copy(oracle *o, const sn_instr *i) {
  oracle_place *p = &o->places[i->id];
  uint64_t bytes = o->plan->route->tensors[i->id].bytes;
  bool in = i->kind == SN_COPY_IN;
  if (!p->resident) return oracle_fault(o, "is not on the device");
  if (i->bytes != bytes) return oracle_fault(o, "copies a part");
  if (p->outside ? p->slot != i->offset : in) return oracle_fault(o, "has no external copy there");
  o->wasted += !in && p->outside && p->outside_tag == p->tag;
  p->outside = true;
  p->slot = i->offset;
  *(in ? &p->tag : &p->outside_tag) = in ? p->outside_tag : p->tag;
  if (p->tag == ORACLE_GARBAGE) return oracle_fault(o, "copies garbage");
  uint32_t expected_outside = in ? p->tag : ORACLE_NOTHING, expected_inside = in ? ORACLE_NOTHING : p->tag;
  return oracle_add_range(o, true, p->slot, bytes, expected_outside, expected_inside) &&
         oracle_add_range(o, false, p->offset, bytes, expected_inside, expected_outside);
}

static inline bool oracle_load_instr(oracle *o, const sn_instr *i) {
  oracle_item *item = &o->items[o->at];
  o->queue[i->lane][o->count[i->lane]++] = o->at;
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
    item->kind = ORACLE_POISON;
    return oracle_load_alloc(o, i);
  case SN_RELEASE:
    item->kind = ORACLE_POISON;
    return oracle_load_release(o, i);
  case SN_COMPUTE:
    return oracle_load_compute(o, i);
  case SN_COPY_OUT:
  case SN_COPY_IN:
    return oracle_load_copy(o, i);
  case SN_SIGNAL:
  case SN_WAIT:
    item->kind = i->kind == SN_SIGNAL ? ORACLE_SIGNAL : ORACLE_WAIT;
    item->fence = i->id;
    return true;
  case SN_INSTR_KINDS:
    break;
  }
  return oracle_fault(o, "is of no known kind");
}

/* Whoever reads must find what he expects. */
static inline bool oracle_reads(oracle *o, const oracle_item *item) {
  for (uint32_t r = item->first_range; r < item->first_range + item->n_ranges; r++) {
    const oracle_range *range = &o->ranges[r];
    if (range->expected == ORACLE_NOTHING) continue;
    for (uint32_t b = range->begin; b < range->end; b++)
      if (o->memory[b] != range->expected)
        return oracle_fault(o, "block %u: expects tag %u, finds %u", b, range->expected, o->memory[b]);
  }
  return true;
}

static inline void oracle_writes(oracle *o, const oracle_item *item) {
  for (uint32_t r = item->first_range; r < item->first_range + item->n_ranges; r++) {
    const oracle_range *range = &o->ranges[r];
    if (range->made == ORACLE_NOTHING) continue;
    for (uint32_t b = range->begin; b < range->end; b++) o->memory[b] = range->made;
  }
}

/* Loads a plan and runs it in serial order. False: o->fault says what is wrong. Free it in either case. */
static inline bool oracle_load(oracle *o, const sn_plan *plan) {
  oracle_init(o, plan);
  for (o->at = 0; o->at < plan->n_instrs; o->at++) {
    const sn_instr *i = &plan->instrs[o->at];
    oracle_meter_step(o, i->step);
    if (!oracle_load_instr(o, i) || !oracle_reads(o, &o->items[o->at])) return false;
    oracle_writes(o, &o->items[o->at]);
    if (o->items[o->at].kind == ORACLE_SIGNAL) o->passed[i->id] = true;
    if (o->items[o->at].kind == ORACLE_WAIT && !o->passed[i->id]) return oracle_fault(o, "waits in vain");
  }
  return true;
}

/* Who advances next. The first ORACLE_ADVERSARIES paces are strict: of the lanes that can advance always the one that
 * stands first in one of the 6 orders, so the first is rushed and the last is starved; 6 of them let operations end as
 * soon as possible, 6 keep all open until nothing else can begin. All further paces are throws of dice. */
enum { ORACLE_ORDERS = 6, ORACLE_ADVERSARIES = 2 * ORACLE_ORDERS };

typedef struct oracle_runner {
  oracle *o;
  uint64_t *dice;
  bool poison, strict, keep_open;
  uint32_t weight[SN_LANES];
  uint32_t at[SN_LANES]; /* in the lane's queue */
  bool running[SN_LANES];
} oracle_runner;

static inline void oracle_throw_weights(oracle_runner *r) {
  r->keep_open = prng_chance(r->dice, 40);
  for (sn_lane lane = 0; lane < SN_LANES; lane++) r->weight[lane] = 1u << 3 * prng_below(r->dice, 4);
}

static inline void oracle_set_pace(oracle_runner *r, uint32_t pace) {
  static const uint32_t orders[ORACLE_ORDERS][SN_LANES] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                                           {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
  r->strict = pace < ORACLE_ADVERSARIES;
  r->keep_open = pace >= ORACLE_ORDERS;
  if (r->strict)
    memcpy(r->weight, orders[pace % ORACLE_ORDERS], sizeof r->weight);
  else
    oracle_throw_weights(r);
}

static inline const oracle_item *oracle_next(const oracle_runner *r, sn_lane lane) {
  const oracle *o = r->o;
  return r->at[lane] < o->count[lane] ? &o->items[o->queue[lane][r->at[lane]]] : NULL;
}

/* Fences take no time; passing one as early as possible only allows more. */
static inline void oracle_pass_fences(oracle_runner *r) {
  for (bool again = true; again;) {
    again = false;
    for (sn_lane lane = 0; lane < SN_LANES; lane++) {
      const oracle_item *item;
      while (!r->running[lane] && (item = oracle_next(r, lane))) {
        if (item->kind == ORACLE_SIGNAL) r->o->passed[item->fence] = again = true;
        bool passes = item->kind == ORACLE_SIGNAL || (item->kind == ORACLE_WAIT && r->o->passed[item->fence]) ||
                      (item->kind == ORACLE_POISON && !r->poison);
        if (!passes) break;
        r->at[lane]++;
      }
    }
  }
}

static inline bool oracle_can_advance(const oracle_runner *r, sn_lane lane) {
  const oracle_item *item = oracle_next(r, lane);
  return r->running[lane] || (item && item->kind != ORACLE_WAIT);
}

/* SN_LANES: nobody can. */
static inline sn_lane oracle_pick(oracle_runner *r) {
  uint32_t weight[SN_LANES], sum = 0;
  bool begins = false;
  for (sn_lane lane = 0; lane < SN_LANES; lane++) {
    weight[lane] = oracle_can_advance(r, lane) ? r->weight[lane] : 0;
    begins |= weight[lane] > 0 && !r->running[lane];
  }
  for (sn_lane lane = 0; lane < SN_LANES; lane++) {
    if (r->running[lane] && r->keep_open && begins) weight[lane] = 0;
    sum += weight[lane];
  }
  if (sum == 0) return SN_LANES;
  sn_lane pick = 0;
  if (r->strict) {
    for (sn_lane lane = 1; lane < SN_LANES; lane++) pick = weight[lane] > weight[pick] ? lane : pick;
    return pick;
  }
  uint32_t throw = prng_below(r->dice, sum);
  while (throw >= weight[pick]) throw -= weight[pick++];
  if (prng_below(r->dice, 64) == 0) oracle_throw_weights(r);
  return pick;
}

static inline bool oracle_conflict(const oracle_range *a, const oracle_range *b) {
  return a->begin < b->end && b->begin < a->end && (a->made != ORACLE_NOTHING || b->made != ORACLE_NOTHING);
}

static inline bool oracle_begin(oracle_runner *r, sn_lane lane) {
  oracle *o = r->o;
  const oracle_item *item = oracle_next(r, lane);
  o->at = o->queue[lane][r->at[lane]];
  for (sn_lane l = 0; l < SN_LANES; l++) {
    if (!r->running[l]) continue;
    const oracle_item *other = oracle_next(r, l);
    for (uint32_t a = item->first_range; a < item->first_range + item->n_ranges; a++)
      for (uint32_t b = other->first_range; b < other->first_range + other->n_ranges; b++)
        if (oracle_conflict(&o->ranges[a], &o->ranges[b]))
          return oracle_fault(o, "runs beside instruction %u, both on block %u", o->queue[l][r->at[l]],
                              o->ranges[a].begin > o->ranges[b].begin ? o->ranges[a].begin : o->ranges[b].begin);
  }
  r->running[lane] = true;
  return oracle_reads(o, item);
}

/* Runs a loaded plan once. False: o->fault says what went wrong. */
static inline bool oracle_run(oracle *o, uint32_t pace, bool poison, uint64_t *dice) {
  oracle_runner r = {.o = o, .dice = dice, .poison = poison};
  memset(o->memory, 0, o->n_blocks * sizeof *o->memory);
  memset(o->passed, 0, o->plan->n_fences * sizeof *o->passed);
  oracle_set_pace(&r, pace);
  oracle_pass_fences(&r);
  for (sn_lane lane = oracle_pick(&r); lane < SN_LANES; lane = oracle_pick(&r)) {
    if (!r.running[lane]) {
      if (!oracle_begin(&r, lane)) return false;
    } else {
      oracle_writes(o, oracle_next(&r, lane));
      r.running[lane] = false;
      r.at[lane]++;
      oracle_pass_fences(&r);
    }
  }
  for (sn_lane lane = 0; lane < SN_LANES; lane++) {
    if (r.at[lane] == o->count[lane]) continue;
    o->at = o->queue[lane][r.at[lane]];
    return oracle_fault(o, "waits for ever");
  }
  return true;
}

#endif
