/* DTR by its definitions (sim/dtr/dtr.h), without a thought for speed: regions are the sets that DTR's simulator
 * keeps, classes are looked up by going along all storages, the pool is moved item by item. For programs of up to
 * NAIVE_MOST storages. What happens is written down as it happens. */
#ifndef SN_TESTS_DTR_NAIVE_H
#define SN_TESTS_DTR_NAIVE_H

#include "sim/dtr/dtr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NAIVE_MOST = 128, NAIVE_TENSORS = 256, NAIVE_EVENTS = 1 << 16, NAIVE_CLASSES = 1 << 15 };

/* Operations run and storages evicted, in their order: 3 x number, + 1 for again, + 2 for evicted. */
typedef struct naive_events {
  uint32_t n, list[NAIVE_EVENTS];
} naive_events;

static inline void naive_note(naive_events *e, uint32_t event) {
  if (e->n < NAIVE_EVENTS) e->list[e->n++] = event;
}

/* What is evicted and can be reached, and what is there behind it. */
typedef struct naive_region {
  bool in[NAIVE_MOST], fringe[NAIVE_MOST];
} naive_region;

typedef struct naive {
  const sn_dtr_program *p;
  const sn_dtr_question *q;
  sn_dtr_answer a;
  naive_events *events;
  uint64_t usage;
  int64_t clock, cost[NAIVE_MOST], access[NAIVE_MOST], value[NAIVE_CLASSES];
  uint32_t asked, locks[NAIVE_MOST], references[NAIVE_MOST], pool[NAIVE_MOST], n_pool, n_classes;
  uint32_t class[NAIVE_MOST]; /* 0: none */
  bool there[NAIVE_MOST], pinned[NAIVE_MOST], defined[NAIVE_TENSORS];
  naive_region below[NAIVE_MOST], above[NAIVE_MOST];
} naive;

static inline uint32_t naive_storage(const naive *n, uint32_t t) {
  return n->p->tensors[t].storage;
}

/* Whether an operation asked for by now reads storage `from` and makes a tensor of `to`. */
static inline bool naive_leads(const naive *n, uint32_t from, uint32_t to) {
  const sn_dtr_program *p = n->p;
  for (uint32_t o = 0; o <= n->asked && o < p->n_ops; o++) {
    bool reads = false, makes = false;
    for (uint32_t a = p->ops[o].first_arg; a < p->ops[o + 1].first_arg; a++)
      reads |= naive_storage(n, p->args[a]) == from;
    for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++) makes |= naive_storage(n, t) == to;
    if (reads && makes) return true;
  }
  return false;
}

/* A storage that some operation has been asked to make. */
static inline bool naive_is(const naive *n, uint32_t s) {
  return n->p->tensors[n->p->storages[s].root].op <= n->asked;
}

static inline void naive_reach(const naive *n, uint32_t base, uint32_t s, bool down, naive_region *r) {
  for (uint32_t u = 0; u < n->p->n_storages; u++) {
    if (u == s || !naive_is(n, u) || !(down ? naive_leads(n, s, u) : naive_leads(n, u, s))) continue;
    if (n->there[u]) {
      if (u != base) r->fringe[u] = true;
    } else if (!r->in[u]) {
      r->in[u] = true;
      naive_reach(n, base, u, down, r);
    }
  }
}

static inline void naive_rebuild(naive *n, uint32_t s, bool down) {
  naive_region *r = down ? &n->below[s] : &n->above[s];
  memset(r, 0, sizeof *r);
  naive_reach(n, s, s, down, r);
}

static inline void naive_absorb(naive_region *to, const naive_region *from, uint32_t s, uint32_t base) {
  to->fringe[s] = false;
  to->in[s] = true;
  for (uint32_t u = 0; u < NAIVE_MOST; u++) {
    to->in[u] |= from->in[u];
    to->fringe[u] |= from->fringe[u] && u != base;
  }
}

static inline int64_t naive_sum(const naive *n, const naive_region *r) {
  int64_t sum = 0;
  for (uint32_t u = 0; u < n->p->n_storages; u++) sum += r->in[u] ? n->cost[u] : 0;
  return sum;
}

static inline int64_t naive_classes(const naive *n, uint32_t s) {
  static uint32_t seen[NAIVE_CLASSES], number;
  int64_t sum = 0;
  number++;
  for (uint32_t u = 0; u < n->p->n_storages; u++) {
    if (u == s || !naive_is(n, u) || n->there[u] || !(naive_leads(n, s, u) || naive_leads(n, u, s))) continue;
    if (seen[n->class[u]] != number) sum += n->value[n->class[u]];
    seen[n->class[u]] = number;
  }
  return sum;
}

/* A double holds numbers as small as these exactly, so that there is one rounding. */
static inline double naive_score(naive *n, uint32_t s) {
  int64_t bytes = (int64_t)n->p->storages[s].bytes, stale = n->clock - n->access[s], c = n->cost[s];
  n->a.evaluations++;
  switch (n->q->heuristic) {
  case SN_DTR_LRU:
    return (double)n->access[s];
  case SN_DTR_SIZE:
    return bytes ? 1 / (double)bytes : INFINITY;
  case SN_DTR_MSPS:
    return bytes ? (double)(c + naive_sum(n, &n->above[s])) / (double)bytes : INFINITY;
  case SN_DTR_FULL:
    c += naive_sum(n, &n->above[s]) + naive_sum(n, &n->below[s]);
    break;
  case SN_DTR_EQ:
    c += naive_classes(n, s);
    break;
  default:
    break;
  }
  return bytes * stale > 0 ? (double)c / (double)(bytes * stale) : INFINITY;
}

static inline void naive_leave(naive *n, uint32_t s) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->n_pool; i++)
    if (n->pool[i] != s) n->pool[kept++] = n->pool[i];
  n->n_pool = kept;
}

static inline void naive_join(naive *n, uint32_t s) {
  for (uint32_t i = 0; i < n->n_pool; i++)
    if (n->pool[i] == s) return;
  n->pool[n->n_pool++] = s;
}

static inline void naive_evict(naive *n, uint32_t s) {
  naive_leave(n, s);
  n->there[s] = false;
  n->usage -= n->p->storages[s].bytes;
  for (uint32_t t = 0; t < n->p->n_tensors; t++)
    if (naive_storage(n, t) == s) n->defined[t] = false;
  for (uint32_t u = 0; u < n->p->n_storages; u++) {
    if (n->above[s].fringe[u]) naive_absorb(&n->below[u], &n->below[s], s, u);
    if (n->below[s].fringe[u]) naive_absorb(&n->above[u], &n->above[s], s, u);
  }
  assert_true(n->n_classes + 1 < NAIVE_CLASSES);
  n->class[s] = ++n->n_classes;
  n->value[n->class[s]] = n->cost[s];
  for (uint32_t u = 0; u < n->p->n_storages; u++) {
    uint32_t old = n->class[u], new = n->class[s];
    if (u == s || !naive_is(n, u) || n->there[u] || old == new) continue;
    if (!naive_leads(n, s, u) && !naive_leads(n, u, s)) continue;
    n->value[new] += n->value[old];
    for (uint32_t v = 0; v < n->p->n_storages; v++)
      if (n->class[v] == old) n->class[v] = new;
  }
}

static inline bool naive_free(naive *n, uint64_t bytes) {
  while (n->usage + bytes > n->q->budget_bytes) {
    double best = INFINITY, score = 1;
    uint32_t victim = 0;
    if (n->n_pool == 0) return false;
    for (uint32_t i = 0; i < n->n_pool && score != 0; i++) {
      score = naive_score(n, n->pool[i]);
      if (score <= best) best = score, victim = n->pool[i];
    }
    naive_evict(n, victim);
    n->a.evictions++;
    naive_note(n->events, 3 * victim + 2);
  }
  return true;
}

static inline void naive_lock(naive *n, uint32_t s) {
  if (n->locks[s]++ == 0) naive_leave(n, s);
}

/* What is new looks around, and so do those that see it. */
static inline void naive_look(naive *n, const bool *is_new) {
  for (uint32_t s = 0; s < n->p->n_storages; s++)
    if (is_new[s]) naive_rebuild(n, s, true), naive_rebuild(n, s, false);
  for (uint32_t s = 0; s < n->p->n_storages; s++)
    for (uint32_t u = 0; is_new[s] && u < n->p->n_storages; u++) {
      if (n->above[s].fringe[u]) naive_rebuild(n, u, true);
      if (n->below[s].fringe[u]) naive_rebuild(n, u, false);
    }
}

static inline void naive_run(naive *n, uint32_t t, bool again) {
  const sn_dtr_program *p = n->p;
  uint32_t o = p->tensors[t].op, order[NAIVE_TENSORS], count = 0;
  bool is_new[NAIVE_MOST] = {false};
  n->clock += (int64_t)p->ops[o].cost_ns;
  n->usage += p->ops[o].bytes;
  if (n->usage > n->a.peak_bytes) n->a.peak_bytes = n->usage;
  if (again) n->a.remade_ns += p->ops[o].cost_ns;
  for (uint32_t u = p->ops[o].first_tensor; u < p->ops[o + 1].first_tensor; u++)
    if (u != t) order[count++] = u;
  order[count++] = t;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t s = naive_storage(n, order[i]);
    if (n->defined[order[i]] && p->storages[s].root == order[i]) n->usage -= p->storages[s].bytes;
    n->defined[order[i]] = true;
    if (n->there[s]) continue;
    n->there[s] = is_new[s] = true;
    naive_join(n, s);
    n->value[n->class[s]] -= n->cost[s];
    n->class[s] = 0;
  }
  naive_look(n, is_new);
  naive_note(n->events, 3 * o + again);
}

static inline sn_dtr_status naive_make(naive *n, uint32_t t, bool again) {
  const sn_dtr_program *p = n->p;
  uint32_t o = p->tensors[t].op, first = p->ops[o].first_arg, end = p->ops[o + 1].first_arg;
  bool was[NAIVE_TENSORS];
  for (uint32_t a = first; a < end; a++) n->access[naive_storage(n, p->args[a])] = n->clock;
  for (uint32_t a = first; a < end; a++) was[a - first] = n->defined[p->args[a]];
  for (uint32_t a = first; a < end; a++)
    if (was[a - first]) naive_lock(n, naive_storage(n, p->args[a]));
  for (uint32_t a = first; a < end; a++) {
    if (was[a - first]) continue;
    sn_dtr_status status = n->defined[p->args[a]] ? SN_DTR_OK : naive_make(n, p->args[a], true);
    if (status != SN_DTR_OK) return status;
    naive_lock(n, naive_storage(n, p->args[a]));
  }
  if (!naive_free(n, p->ops[o].bytes)) return SN_DTR_OUT_OF_MEMORY;
  naive_run(n, t, again);
  for (uint32_t a = first; a < end; a++)
    if (--n->locks[naive_storage(n, p->args[a])] == 0) naive_join(n, naive_storage(n, p->args[a]));
  return n->a.remade_ns > n->q->remake_limit_ns ? SN_DTR_THRASH : SN_DTR_OK;
}

static inline sn_dtr_status naive_first(naive *n, uint32_t o) {
  const sn_dtr_program *p = n->p;
  n->asked = o;
  for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++) {
    uint32_t s = naive_storage(n, t);
    bool counted = false;
    for (uint32_t u = p->ops[o].first_tensor; u < t; u++) counted |= naive_storage(n, u) == s;
    if (!counted) n->cost[s] += (int64_t)p->ops[o].cost_ns;
    n->references[s]++;
    if (p->storages[s].root == t) n->value[n->class[s] = ++n->n_classes] = 0;
  }
  sn_dtr_status status = naive_make(n, p->ops[o].first_tensor, false);
  for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++)
    n->access[naive_storage(n, t)] = n->clock;
  return status;
}

static inline sn_dtr_status naive_act(naive *n, sn_dtr_action action) {
  if (action.kind == SN_DTR_RUN) return naive_first(n, action.item);
  uint32_t s = naive_storage(n, action.item);
  sn_dtr_status status = SN_DTR_OK;
  if (action.kind == SN_DTR_HOLD) n->references[s]++;
  if (action.kind == SN_DTR_RELEASE && --n->references[s] == 0 && n->there[s] && !n->pinned[s]) naive_evict(n, s);
  if (action.kind != SN_DTR_PIN) return status;
  if (!n->defined[action.item]) status = naive_make(n, action.item, true);
  if (status == SN_DTR_OK && !n->pinned[s]) naive_lock(n, s);
  n->pinned[s] |= status == SN_DTR_OK;
  return status;
}

/* Into a naive and events of the caller, which are large. */
static inline void naive_play(naive *n, const sn_dtr_program *p, const sn_dtr_question *q, naive_events *events) {
  memset(n, 0, sizeof *n);
  events->n = 0;
  n->p = p;
  n->q = q;
  n->events = events;
  n->clock = 1;
  for (uint32_t a = 0; a < p->n_actions && n->a.status == SN_DTR_OK; a++) n->a.status = naive_act(n, p->actions[a]);
  n->a.clock_ns = (uint64_t)n->clock;
}

#endif
