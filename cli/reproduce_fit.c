/* The largest size that fits; see the header. Sizes that were probed stay in a list until the end: every strategy
 * begins with the same powers of two. */
#include "cli/reproduce_fit.h"

#include "models/zoo.h"
#include "sim/check.h"
#include "sim/cost.h"
#include "sim/lower.h"
#include "sim/result.h"
#include "sim/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 24 };

/* Everything about one size that does not depend on the strategy. */
typedef struct sized {
  uint32_t size;
  sn_net *net;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedules[SN_RECOMPUTES];
  uint64_t pool_bytes; /* on offer */
  struct sized *next;
} sized;

typedef struct search {
  const sn_family *family;
  const sn_device *device;
  sized *all;
  sn_err *err;
} search;

static void free_sized(sized *s) {
  for (int i = 0; i < SN_RECOMPUTES; i++) sn_schedule_free(s->schedules[i]);
  sn_costs_free(s->costs);
  sn_route_free(s->route);
  sn_net_free(s->net);
  free(s);
}

static sn_net *load(const sn_family *family, uint32_t size, sn_err *err) {
  char spec[128];
  if (!family->batch) return sn_net_load(family->spec, size, 0, err);
  snprintf(spec, sizeof spec, "%s%" PRIu32, family->spec, size);
  return sn_net_load(spec, family->batch, 0, err);
}

static sn_status fill_sized(const search *q, sized *s) {
  s->net = load(q->family, s->size, q->err);
  s->route = s->net ? sn_route_new(s->net, q->err) : NULL;
  s->costs = s->route ? sn_costs_new(s->net, q->device, q->err) : NULL;
  if (!s->costs) return q->err->code;
  sn_persistent persistent = sn_persistent_of(s->net);
  uint64_t fixed = q->device->context_bytes + sn_persistent_total(&persistent);
  s->pool_bytes = q->device->memory_bytes > fixed ? q->device->memory_bytes - fixed : 0;
  return SN_OK;
}

/* NULL after an error. */
static sized *get_sized(search *q, uint32_t size) {
  for (sized *s = q->all; s; s = s->next)
    if (s->size == size) return s;
  sized *s = calloc(1, sizeof *s);
  if (!s) {
    sn_fail_memory(q->err);
    return NULL;
  }
  s->size = size;
  s->next = q->all;
  q->all = s;
  return fill_sized(q, s) == SN_OK ? s : NULL;
}

static sn_status probe(search *q, sn_strategy strategy, uint32_t size, bool *fits) {
  sized *s = get_sized(q, size);
  if (!s) return q->err->code;
  sn_schedule **schedule = &s->schedules[strategy.recompute];
  if (!*schedule) *schedule = sn_schedule_new(s->route, strategy.recompute, q->err);
  if (!*schedule) return q->err->code;
  sn_plan *plan = sn_lower(*schedule, strategy, SN_WORKSPACE_DYNAMIC, s->costs, s->pool_bytes, q->err);
  sn_status status = plan ? sn_check(plan, NULL, q->err) : q->err->code;
  *fits = plan && plan->pool_bytes <= s->pool_bytes;
  sn_plan_free(plan);
  return status;
}

static sn_status search_one(search *q, sn_strategy strategy, uint32_t *largest) {
  uint32_t low = 0, high = 1;
  bool fits;
  for (; high < MOST; low = high, high *= 2) {
    if (probe(q, strategy, high, &fits) != SN_OK) return q->err->code;
    if (!fits) break;
  }
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (probe(q, strategy, middle, &fits) != SN_OK) return q->err->code;
    *(fits ? &low : &high) = middle;
  }
  *largest = low;
  return SN_OK;
}

sn_status sn_largest_that_fits(const sn_family *family, const sn_device *device, const sn_strategy *strategies,
                               uint32_t n_strategies, uint32_t *largest, sn_err *err) {
  search q = {.family = family, .device = device, .err = err};
  for (uint32_t i = 0; i < n_strategies && err->code == SN_OK; i++) search_one(&q, strategies[i], &largest[i]);
  while (q.all) {
    sized *next = q.all->next;
    free_sized(q.all);
    q.all = next;
  }
  return err->code;
}
