/* The rules of the tensor cache ([SN] algorithm 2; sim/plan/emit.h), read off a finished plan:
 *
 *   who    only the least recently used tensor is evicted that the next compute does not touch
 *   when   only where what is asked for next found no hole below the limit
 *   pack   where nothing is left to evict and the holes still are too small, the device is emptied, and what the next
 *          compute touches comes in anew
 *   last   only then may the pool grow beyond the limit
 *
 * The limit is the pool on offer or, once that was not enough, what the pool has grown to. A release in front of a
 * compute is an eviction where the tensor's next alloc is a copy-in's, and a discard where nothing has used it since
 * its alloc; all others are last uses.
 */
#ifndef SN_TESTS_LRU_H
#define SN_TESTS_LRU_H

#include "base/checked.h"
#include "sim/plan/plan.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct lru_tensor {
  bool resident, locked; /* locked: the next compute touches it */
  bool used;             /* since its alloc */
  bool returns;          /* its next alloc is a copy-in's */
  uint64_t offset, bytes, touched;
} lru_tensor;

typedef struct lru {
  const sn_plan *plan;
  lru_tensor *tensors;
  bool *eviction; /* per instruction */
  bool *taken;    /* per block below the limit */
  uint64_t n_blocks, limit, clock;
  uint64_t reads, evictions;
  uint32_t compute; /* the next one */
  uint32_t victim;  /* the last one evicted for what is asked for next; SN_NONE */
  bool emptying, packed;
  const char *fault; /* or NULL */
} lru;

static inline void lru_find_evictions(lru *c) {
  for (uint32_t i = c->plan->n_instrs; i-- > 0;) {
    const sn_instr *instr = &c->plan->instrs[i];
    if (instr->kind == SN_ALLOC) c->tensors[instr->id].returns = instr->lane == SN_LANE_IN;
    if (instr->kind != SN_RELEASE) continue;
    c->eviction[i] = c->tensors[instr->id].returns;
    c->tensors[instr->id].returns = false;
  }
}

static inline void lru_mark(lru *c, const lru_tensor *t, bool taken) {
  for (uint64_t b = t->offset / SN_POOL_BLOCK; b < (t->offset + t->bytes) / SN_POOL_BLOCK && b < c->n_blocks; b++)
    c->taken[b] = taken;
}

static inline bool lru_fits(const lru *c, uint64_t bytes) {
  uint64_t hole = 0, end = c->limit / SN_POOL_BLOCK;
  for (uint64_t b = 0; b < end; b++) {
    hole = c->taken[b] ? 0 : hole + SN_POOL_BLOCK;
    if (hole >= bytes) return true;
  }
  return false;
}

/* Are there tensors on the device, unlocked ones or any? */
static inline bool lru_holds(const lru *c, bool unlocked_only) {
  for (uint32_t t = 0; t < c->plan->route->n_tensors; t++)
    if (c->tensors[t].resident && !(unlocked_only && c->tensors[t].locked)) return true;
  return false;
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

static inline const sn_step *lru_step(const lru *c) {
  return &c->plan->route->steps[c->plan->instrs[c->compute].id];
}

/* What is asked for next: the first tensor of the next compute that is missing, or its workspace. */
static inline uint64_t lru_wanted(const lru *c) {
  bool reads;
  const sn_step *step = lru_step(c);
  for (uint32_t n = 0; n < step->n_accesses; n++) {
    uint32_t tensor = lru_access(c, step, n, &reads);
    if (!c->tensors[tensor].resident) return c->plan->route->tensors[tensor].bytes;
  }
  return c->plan->instrs[c->compute].bytes;
}

static inline void lru_next_compute(lru *c, uint32_t from) {
  bool reads;
  while (from < c->plan->n_instrs && c->plan->instrs[from].kind != SN_COMPUTE) from++;
  c->compute = from;
  c->emptying = c->packed = false;
  if (from == c->plan->n_instrs) return;
  const sn_step *step = lru_step(c);
  for (uint32_t n = 0; n < step->n_accesses; n++) c->tensors[lru_access(c, step, n, &reads)].locked = true;
}

static inline void lru_evict(lru *c, uint32_t victim) {
  const lru_tensor *v = &c->tensors[victim];
  if (v->locked && !c->emptying) {
    c->emptying = true;
    if (c->packed) c->fault = "empties the device twice for one compute";
    if (lru_holds(c, true)) c->fault = "evicts what the next compute needs where it could evict others";
    if (lru_fits(c, lru_wanted(c))) c->fault = "empties the device where there is room";
    c->victim = SN_NONE;
  }
  if (c->emptying) return;
  for (uint32_t t = 0; t < c->plan->route->n_tensors; t++) {
    const lru_tensor *other = &c->tensors[t];
    if (other->resident && !other->locked && other->touched < v->touched)
      c->fault = "evicts not the least recently used";
  }
  c->victim = victim;
}

/* Bytes are taken at [offset, offset + bytes), by a tensor or as workspace. */
static inline void lru_take(lru *c, uint64_t offset, uint64_t bytes) {
  if (c->emptying && lru_holds(c, false)) c->fault = "does not empty the device";
  c->packed |= c->emptying;
  c->emptying = false;
  if (c->victim != SN_NONE) {
    lru_mark(c, &c->tensors[c->victim], true);
    if (lru_fits(c, bytes)) c->fault = "evicts where there is room";
    lru_mark(c, &c->tensors[c->victim], false);
  }
  c->packed |= offset + bytes > c->limit && !lru_holds(c, false); /* there was nothing to empty */
  if (offset + bytes > c->limit && !c->packed) c->fault = "grows where it could evict";
  c->limit = sn_max(c->limit, offset + bytes);
  c->victim = SN_NONE;
}

static inline void lru_alloc(lru *c, const sn_instr *i) {
  lru_tensor *tensor = &c->tensors[i->id];
  lru_take(c, i->offset, i->bytes);
  tensor->resident = true;
  tensor->used = false;
  tensor->offset = i->offset;
  tensor->bytes = i->bytes;
  lru_mark(c, tensor, true);
}

static inline void lru_release(lru *c, const sn_instr *i, bool eviction) {
  lru_tensor *tensor = &c->tensors[i->id];
  if (eviction || !tensor->used) lru_evict(c, i->id);
  c->evictions += eviction;
  tensor->resident = false;
  lru_mark(c, tensor, false);
}

static inline void lru_compute(lru *c, const sn_instr *i) {
  bool reads;
  const sn_step *step = lru_step(c);
  if (i->bytes > 0) lru_take(c, i->offset, i->bytes);
  for (uint32_t n = 0; n < step->n_accesses; n++) {
    lru_tensor *tensor = &c->tensors[lru_access(c, step, n, &reads)];
    tensor->locked = false;
    tensor->used = true;
    tensor->touched = ++c->clock;
    c->reads += reads;
  }
  lru_next_compute(c, c->compute + 1);
}

static inline void lru_follow(lru *c) {
  lru_find_evictions(c);
  lru_next_compute(c, 0);
  for (uint32_t i = 0; i < c->plan->n_instrs && !c->fault; i++) {
    const sn_instr *instr = &c->plan->instrs[i];
    if (instr->kind == SN_ALLOC) lru_alloc(c, instr);
    if (instr->kind == SN_RELEASE) lru_release(c, instr, c->eviction[i]);
    if (instr->kind == SN_COPY_IN) c->tensors[instr->id].used = true;
    if (instr->kind == SN_COMPUTE) lru_compute(c, instr);
  }
  const sn_plan_counts *counts = &c->plan->counts;
  if (!c->fault && (counts->cache_hits + counts->cache_misses != c->reads || counts->evictions != c->evictions))
    c->fault = "miscounts hits, misses or evictions";
}

/* What is wrong with the plan of a cache that was offered `capacity` bytes, or NULL. */
static inline const char *lru_fault(const sn_plan *plan, uint64_t capacity) {
  lru c = {.plan = plan, .limit = capacity, .victim = SN_NONE};
  c.n_blocks = sn_max(capacity, plan->pool_bytes) / SN_POOL_BLOCK;
  c.tensors = calloc((size_t)plan->route->n_tensors + 1, sizeof *c.tensors);
  c.eviction = calloc((size_t)plan->n_instrs + 1, sizeof *c.eviction);
  c.taken = calloc(c.n_blocks + 1, sizeof *c.taken);
  if (!c.tensors || !c.eviction || !c.taken) abort();
  lru_follow(&c);
  free(c.tensors);
  free(c.eviction);
  free(c.taken);
  return c.fault;
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
