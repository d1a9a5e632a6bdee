/* Proved; see the header. */
#include "sim/make/proved.h"

#include "sim/make/make.h"
#include "sim/plan/lower.h"

#include <stdio.h>

void sn_proved_clear(sn_proved *proved) {
  for (int i = 0; i < SN_PROVED_KEPT; i++) sn_plan_free(proved->entries[i].plan);
  *proved = (sn_proved){0};
}

/* Whether its decisions and addresses do not depend on how large the pool is exactly. */
static bool is_free_of_pool(const sn_plan *plan, sn_strategy strategy, uint64_t pool_bytes) {
  bool roomy = plan->first_fit_bytes <= pool_bytes;
  if (sn_strategy_has_cache(strategy)) return roomy && plan->counts.evictions == 0;
  return roomy || plan->reserved_peak > pool_bytes;
}

static bool is_of(const sn_proved_entry *e, const sn_plan_wish *w) {
  return e->plan && e->schedule == w->schedule && sn_strategy_same(e->strategy, w->strategy);
}

const sn_plan *sn_proved_model(const sn_proved *proved, const sn_plan_wish *wish) {
  for (int i = 0; i < SN_PROVED_KEPT; i++)
    if (is_of(&proved->entries[i], wish)) return proved->entries[i].plan;
  return NULL;
}

static bool is_again(const sn_proved_entry *e, const sn_plan_wish *w) {
  return is_of(e, w) && is_free_of_pool(e->plan, w->strategy, w->pool_bytes) &&
         sn_lower_again(e->plan, w->workspace, w->costs, w->pool_bytes);
}

sn_plan *sn_proved_find(const sn_proved *proved, const sn_plan_wish *wish, sn_err *err) {
  const sn_proved_entry *found = NULL;
  for (int i = 0; i < SN_PROVED_KEPT && !found; i++)
    if (is_again(&proved->entries[i], wish)) found = &proved->entries[i];
  sn_plan *plan = found ? sn_plan_copy(found->plan, err) : NULL;
  if (!plan) return NULL;
  plan->pool_limit = wish->pool_bytes;
  plan->external_limit = wish->external_limit;
  snprintf(plan->layouts, sizeof plan->layouts, "%s", sn_costs_layouts(wish->costs));
  plan->roomy = plan->first_fit_bytes <= wish->pool_bytes;
  return plan;
}

sn_status sn_proved_keep(sn_proved *proved, const sn_plan_wish *wish, const sn_plan *plan, sn_err *err) {
  if (!is_free_of_pool(plan, wish->strategy, wish->pool_bytes)) return SN_OK;
  sn_plan *copy = sn_plan_copy(plan, err);
  if (!copy) return err->code;
  sn_proved_entry *e = &proved->entries[proved->next++ % SN_PROVED_KEPT];
  sn_plan_free(e->plan);
  *e = (sn_proved_entry){wish->schedule, wish->strategy, copy};
  return SN_OK;
}
