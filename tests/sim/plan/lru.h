/* The rules of the tensor cache ([SN] algorithm 2; sim/plan/emit.h), followed by hand beside a finished plan. For every
 * compute, in its order:
 *
 *   last   what the compute before it used for the last time is released
 *   want   what it reads and misses, what it makes, its workspace: each at the lowest hole below the limit
 *   evict  where there is none, the least recently used tensors leave that it does not touch
 *   pack   where nothing is left to evict, none of this happens but for the evictions: the device is emptied, and all
 *          that the compute touches comes side by side, and only then beyond the limit
 *
 * The limit is the pool on offer or, once that was not enough, what the pool has grown to. Nothing else is allocated or
 * released, so nothing comes in that is not read. An eviction is a release whose tensor's next alloc is a copy-in's.
 */
#ifndef SN_TESTS_LRU_H
#define SN_TESTS_LRU_H

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct lru_tensor {
  bool resident, locked; /* locked: the next compute touches it */
  uint64_t offset, bytes, touched;
} lru_tensor;

typedef struct lru {
  const sn_plan *plan;
  lru_tensor *tensors, *tensors_before; /* per tensor; as they were before a trial */
  bool *taken, *taken_before;           /* per block */
  bool *eviction;                       /* per instruction */
  uint64_t n_blocks, limit, clock;
  uint64_t reads, misses, evictions;
  uint32_t at;       /* the instruction to come */
  bool trial;        /* nothing is compared with the plan */
  const char *fault; /* or NULL */
} lru;

static inline void lru_find_evictions(lru *c) {
  bool *returns = calloc((size_t)c->plan->route->n_tensors + 1, sizeof *returns);
  if (!returns) abort();
  for (uint32_t i = c->plan->n_instrs; i-- > 0;) {
    const sn_instr *instr = &c->plan->instrs[i];
    if (instr->kind == SN_ALLOC) returns[instr->id] = instr->lane == SN_LANE_IN;
    if (instr->kind != SN_RELEASE) continue;
    c->eviction[i] = returns[instr->id];
    returns[instr->id] = false;
  }
  free(returns);
}

/* The next instruction that is no copy and no fence; NULL at the end. */
static inline const sn_instr *lru_next(lru *c) {
  for (; c->at < c->plan->n_instrs; c->at++) {
    const sn_instr *instr = &c->plan->instrs[c->at];
    if (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE || instr->kind == SN_COMPUTE) return instr;
  }
  return NULL;
}

static inline const sn_instr *lru_compute(const lru *c) {
  uint32_t i = c->at;
  while (i < c->plan->n_instrs && c->plan->instrs[i].kind != SN_COMPUTE) i++;
  return i < c->plan->n_instrs ? &c->plan->instrs[i] : NULL;
}

/* The plan must do this next. */
static inline void lru_expect(lru *c, sn_instr_kind kind, uint32_t tensor, uint64_t offset, const char *fault) {
  const sn_instr *i = lru_next(c);
  if (c->trial || c->fault) return;
  if (!i || i->kind != kind || (tensor != SN_NONE && i->id != tensor) || i->offset != offset) c->fault = fault;
  c->at++;
}

static inline void lru_mark(lru *c, uint64_t offset, uint64_t bytes, bool taken) {
  for (uint64_t b = offset / SN_POOL_BLOCK; b < sn_ceil_div(offset + bytes, SN_POOL_BLOCK); b++) c->taken[b] = taken;
}

static inline bool lru_hole(const lru *c, uint64_t bytes, uint64_t limit, uint64_t *offset) {
  uint64_t hole = 0, end = sn_min(limit / SN_POOL_BLOCK, c->n_blocks);
  for (uint64_t b = 0; b < end; b++) {
    hole = c->taken[b] ? 0 : hole + SN_POOL_BLOCK;
    *offset = (b + 1) * SN_POOL_BLOCK - hole;
    if (hole >= bytes) return true;
  }
  return false;
}

/* The least recently used tensor on the device, unlocked or any; SN_NONE. */
static inline uint32_t lru_oldest(const lru *c, bool unlocked) {
  uint32_t oldest = SN_NONE;
  for (uint32_t t = 0; t < c->plan->route->n_tensors; t++) {
    const lru_tensor *tensor = &c->tensors[t];
    if (!tensor->resident || (unlocked && tensor->locked)) continue;
    if (oldest == SN_NONE || tensor->touched < c->tensors[oldest].touched) oldest = t;
  }
  return oldest;
}

static inline void lru_leave(lru *c, uint32_t tensor, const char *fault) {
  lru_tensor *t = &c->tensors[tensor];
  lru_expect(c, SN_RELEASE, tensor, t->offset, fault);
  t->resident = false;
  lru_mark(c, t->offset, t->bytes, false);
  c->evictions += !c->trial;
}

/* Takes the lowest hole, evicting for it what must be; false where that is not enough. */
static inline bool lru_take(lru *c, uint64_t bytes, uint64_t limit, uint64_t *offset) {
  while (!lru_hole(c, bytes, limit, offset)) {
    uint32_t victim = lru_oldest(c, true);
    if (victim == SN_NONE) return false;
    lru_leave(c, victim, "does not evict the least recently used, or where there is room");
  }
  if (!c->trial) c->limit = sn_max(c->limit, sn_ceil_div(*offset + bytes, SN_POOL_BLOCK) * SN_POOL_BLOCK);
  return true;
}

/* The step's accesses in the order in which they are seen to: first what it reads. */
static inline uint32_t lru_access(const lru *c, const sn_step *step, uint32_t number, bool *reads) {
  const sn_access *accesses = &c->plan->route->accesses[step->first_access];
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t a = 0; a < step->n_accesses; a++) {
      *reads = pass == 0;
      if ((accesses[a].mode == SN_WRITE) == (pass == 1) && number-- == 0) return accesses[a].tensor;
    }
  return SN_NONE;
}

/* All that a compute wants, below the limit; false where it does not fit. */
static inline bool lru_want(lru *c, const sn_instr *compute, uint64_t limit) {
  const sn_step *step = &c->plan->route->steps[compute->id];
  bool reads;
  uint64_t offset = 0;
  for (uint32_t n = 0; n < step->n_accesses; n++) {
    uint32_t tensor = lru_access(c, step, n, &reads);
    lru_tensor *t = &c->tensors[tensor];
    if (t->resident) continue;
    t->bytes = c->plan->route->tensors[tensor].bytes;
    if (!lru_take(c, t->bytes, limit, &t->offset)) return false;
    lru_expect(c, SN_ALLOC, tensor, t->offset, "does not bring in what is missing at the lowest hole");
    lru_mark(c, t->offset, t->bytes, true);
    t->resident = true;
    c->misses += reads && !c->trial;
  }
  if (compute->bytes > 0 && !lru_take(c, compute->bytes, limit, &offset)) return false;
  lru_expect(c, SN_COMPUTE, SN_NONE, offset, "does more than is wanted, or places a workspace elsewhere");
  return true;
}

/* Would all fit without emptying the device? Changes nothing. */
static inline bool lru_fits(lru *c, const sn_instr *compute) {
  size_t tensors = c->plan->route->n_tensors * sizeof *c->tensors, blocks = c->n_blocks * sizeof *c->taken;
  memcpy(c->tensors_before, c->tensors, tensors);
  memcpy(c->taken_before, c->taken, blocks);
  c->trial = true;
  bool fits = lru_want(c, compute, c->limit);
  c->trial = false;
  memcpy(c->tensors, c->tensors_before, tensors);
  memcpy(c->taken, c->taken_before, blocks);
  return fits;
}

/* Everything leaves, what is locked behind all others and in whatever order. */
static inline void lru_pack(lru *c) {
  static const char fault[] = "does not empty the device where nothing else helps";
  for (uint32_t t = lru_oldest(c, true); t != SN_NONE; t = lru_oldest(c, true)) lru_leave(c, t, fault);
  while (lru_oldest(c, false) != SN_NONE && !c->fault) {
    const sn_instr *i = lru_next(c);
    bool leaves = i && i->kind == SN_RELEASE && c->tensors[i->id].resident;
    if (!leaves) c->fault = fault;
    if (leaves) lru_leave(c, i->id, fault);
  }
}

static inline void lru_release_last_used(lru *c, uint64_t before) {
  for (const sn_instr *i = lru_next(c); i && i->kind == SN_RELEASE && !c->eviction[c->at]; c->at++, i = lru_next(c)) {
    lru_tensor *t = &c->tensors[i->id];
    if (t->touched <= before) c->fault = "drops what the compute has not used";
    t->resident = false;
    lru_mark(c, t->offset, t->bytes, false);
  }
}

static inline void lru_run(lru *c, const sn_instr *compute) {
  const sn_step *step = &c->plan->route->steps[compute->id];
  uint64_t before = c->clock;
  bool reads;
  for (uint32_t a = 0; a < step->n_accesses; a++) c->tensors[lru_access(c, step, a, &reads)].locked = true;
  bool fits = lru_fits(c, compute);
  if (!fits) lru_pack(c);
  if (!c->fault && !lru_want(c, compute, fits ? c->limit : UINT64_MAX)) c->fault = "has no room in its own pool";
  for (uint32_t a = 0; a < step->n_accesses; a++) {
    lru_tensor *t = &c->tensors[lru_access(c, step, a, &reads)];
    t->locked = false;
    t->touched = ++c->clock;
    c->reads += reads;
  }
  lru_release_last_used(c, before);
}

static inline void lru_follow(lru *c) {
  lru_find_evictions(c);
  for (const sn_instr *compute = lru_compute(c); compute && !c->fault; compute = lru_compute(c)) lru_run(c, compute);
  const sn_plan_counts *counts = &c->plan->counts;
  if (!c->fault && (counts->cache_hits + counts->cache_misses != c->reads || counts->cache_misses != c->misses ||
                    counts->evictions != c->evictions))
    c->fault = "miscounts hits, misses or evictions";
}

/* What is wrong with the plan of a cache that was offered `capacity` bytes, or NULL. */
static inline const char *lru_fault(const sn_plan *plan, uint64_t capacity) {
  lru c = {.plan = plan, .limit = capacity};
  size_t tensors = (size_t)plan->route->n_tensors + 1;
  c.n_blocks = sn_max(capacity, plan->pool_bytes) / SN_POOL_BLOCK;
  c.tensors = calloc(tensors, sizeof *c.tensors);
  c.tensors_before = calloc(tensors, sizeof *c.tensors);
  c.eviction = calloc((size_t)plan->n_instrs + 1, sizeof *c.eviction);
  c.taken = calloc(c.n_blocks + 1, sizeof *c.taken);
  c.taken_before = calloc(c.n_blocks + 1, sizeof *c.taken);
  if (!c.tensors || !c.tensors_before || !c.eviction || !c.taken || !c.taken_before) abort();
  lru_follow(&c);
  free(c.tensors);
  free(c.tensors_before);
  free(c.eviction);
  free(c.taken);
  free(c.taken_before);
  return c.fault;
}

/* Copies in that no step reads before the tensor is released or the plan ends; of any plan. */
static inline uint32_t lru_unread(const sn_plan *plan) {
  bool *fresh = calloc((size_t)plan->route->n_tensors + 1, sizeof *fresh);
  uint32_t unread = 0;
  if (!fresh) abort();
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_RELEASE) unread += fresh[instr->id];
    if (instr->kind == SN_RELEASE || instr->kind == SN_COPY_IN) fresh[instr->id] = instr->kind == SN_COPY_IN;
    if (instr->kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[instr->id];
    const sn_access *accesses = &plan->route->accesses[step->first_access];
    for (uint32_t a = 0; a < step->n_accesses; a++)
      if (accesses[a].mode != SN_WRITE) fresh[accesses[a].tensor] = false;
  }
  for (uint32_t t = 0; t < plan->route->n_tensors; t++) unread += fresh[t];
  free(fresh);
  return unread;
}

/* The pool that a cache needs at least, and no more: the largest sum, in whole blocks, of what one compute touches and,
 * where that does not shrink to what is left, its workspace. */
static inline uint64_t lru_need(const sn_plan *plan, bool workspaces) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[plan->instrs[i].id];
    uint64_t need = workspaces ? plan->instrs[i].bytes : 0;
    for (uint32_t a = 0; a < step->n_accesses; a++) {
      uint64_t bytes = plan->route->tensors[plan->route->accesses[step->first_access + a].tensor].bytes;
      need += sn_ceil_div(bytes, SN_POOL_BLOCK) * SN_POOL_BLOCK;
    }
    most = sn_max(most, need);
  }
  return most;
}

#endif
