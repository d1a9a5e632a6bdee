/* Answers: what strategies of one question have in common, so that nothing is planned and played twice.
 *
 * Two strategies of one graph make the same plan, instruction by instruction,
 *   - where their schedules are the same, and all else but recomputation is: recomputation for cost where that is the
 *     one for speed;
 *   - where one has a cache, the other keeps everything, and first fit has room for all of it in the pool on offer:
 *     then the cache sends nothing out, and only counts what it has.
 */
#ifndef SN_SIM_ASK_ANSWERS_H
#define SN_SIM_ASK_ANSWERS_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/graph/iteration.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_answer {
  sn_strategy strategy;
  const sn_schedule *schedule;
  uint64_t least_of_interest; /* below which its least was not looked for */
  sn_result *result;
  bool roomy; /* the plan's */
} sn_answer;

/* Zeroed there is none. */
typedef struct sn_answers {
  sn_answer kept[32]; /* the first: what comes behind them shares nothing with another */
  uint32_t count;
} sn_answers;

void sn_answers_add(sn_answers *answers, const sn_answer *answer);

/* The first whose plan is that of `wanted`, which has a strategy and a schedule. NULL: there is none. O(schedule) for
 * each. */
const sn_answer *sn_answers_find(const sn_answers *answers, const sn_answer *wanted);

/* Fills `wanted->result`, without peak rows, but for the least memory where only one of them has a cache. SN_NO_MEMORY.
 */
sn_status sn_answer_copy(const sn_answer *twin, sn_answer *wanted, sn_iteration iteration, sn_arena *arena,
                         sn_err *err);

#endif
