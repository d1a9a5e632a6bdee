/* Answers; see the header. */
#include "sim/ask/answers.h"

#include "sim/ask/question.h"
#include "sim/ask/simulate.h"
#include "sim/graph/route.h"

#include <string.h>

void sn_answers_add(sn_answers *answers, const sn_answer *answer) {
  if (answers->count < sizeof answers->kept / sizeof *answers->kept) answers->kept[answers->count++] = *answer;
}

/* All but recomputation and, where `or_none` is said, that the one keeps what the other caches. Published systems are
 * placed as they were. */
static bool is_like(sn_strategy a, sn_strategy b, bool or_none) {
  if (sn_strategy_is_system(a) != sn_strategy_is_system(b)) return false;
  a.recompute = b.recompute;
  if (or_none && a.offload == SN_OFFLOAD_NONE && b.offload == SN_OFFLOAD_CACHE) a.offload = b.offload;
  return sn_strategy_same(a, b);
}

const sn_answer *sn_answers_find(const sn_answers *answers, const sn_answer *wanted) {
  for (uint32_t i = 0; i < answers->count; i++) {
    const sn_answer *a = &answers->kept[i];
    if (a->least_of_interest == wanted->least_of_interest && is_like(a->strategy, wanted->strategy, a->roomy) &&
        sn_schedule_same(a->schedule, wanted->schedule))
      return a;
  }
  return NULL;
}

/* ---- alike whatever the batch ---- */

static bool recomputes_chains(sn_strategy s) {
  return s.recompute == SN_RECOMPUTE_SPEED || s.recompute == SN_RECOMPUTE_MEMORY || s.recompute == SN_RECOMPUTE_COST;
}

/* For cost every chain of layers is run again as for speed or as for memory, which of the two bytes say: where these
 * two are the same in all, any choice is. What they run again bytes have no say in (sn_schedule_is_sizeless()). */
sn_status sn_planner_alike(sn_planner *planner, sn_strategy a, sn_strategy b, bool *alike, sn_err *err) {
  sn__question *q = &planner->q;
  q->err = err;
  *alike = recomputes_chains(a) && recomputes_chains(b) && is_like(a, b, false);
  if (!*alike) return SN_OK;
  a.recompute = SN_RECOMPUTE_SPEED;
  b.recompute = SN_RECOMPUTE_MEMORY;
  const sn_schedule *speed = sn__question_schedule(q, a), *memory = speed ? sn__question_schedule(q, b) : NULL;
  *alike = memory && sn_schedule_same(speed, memory);
  return err->code;
}

/* ---- copies ---- */

/* Each read of a tensor that is there. */
static uint64_t count_hits(const sn_schedule *schedule) {
  const sn_route *route = schedule->route;
  uint64_t hits = 0;
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_step *step = sn_route_run(route, schedule->executions[e].step, schedule->executions[e].rerun);
    for (uint32_t i = 0; i < step->n_accesses; i++) hits += route->accesses[step->first_access + i].mode != SN_WRITE;
  }
  return hits;
}

sn_status sn_answer_copy(const sn_answer *twin, sn_answer *wanted, sn_iteration iteration, sn_arena *arena,
                         sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  sn_result *r = wanted->result;
  *r = *twin->result;
  r->strategy = sn_arena_text(arena, sn_strategy_name(wanted->strategy, name));
  if (wanted->strategy.offload != twin->strategy.offload) {
    r->cache_hits = sn_iteration_batches(iteration) * count_hits(wanted->schedule);
    if (strcmp(r->placement, "packed") == 0 && r->workspace_peak_bytes > 0) r->pool_bare_bytes = 0; /* not known */
  }
  return r->strategy ? SN_OK : sn_fail_memory(err);
}
