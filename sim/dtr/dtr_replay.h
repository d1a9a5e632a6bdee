/* DTR's logs replayed: what a training step takes and costs under budgets of memory, by heuristic (sim/dtr/dtr.h).
 *
 *   sn_dtr_budget half = {.ratio = 0.5};
 *   sn_dtr_replay *r = sn_dtr_replay_log("resnet32.log", &(sn_dtr_heuristic){SN_DTR_EQ}, 1, &half, 1, &err);
 *   r->rows[0].overhead
 *   sn_dtr_replay_free(r);
 *
 * A ratio is a share of the baseline, which is the step's peak without a limit. What was evicted may cost as much time
 * again as the step itself; above that it thrashes.
 */
#ifndef SN_SIM_DTR_DTR_REPLAY_H
#define SN_SIM_DTR_DTR_REPLAY_H

#include "base/err.h"
#include "sim/dtr/dtr.h"
#include "sim/dtr/dtr_program.h"

#include <stdint.h>

typedef struct sn_dtr_budget {
  double ratio; /* of the baseline; 0: `bytes` */
  uint64_t bytes;
} sn_dtr_budget;

/* "0.5", a share of up to 10 with its point, or "1"; else bytes, with a unit or without. SN_BAD_USAGE. */
sn_status sn_dtr_budget_parse(const char *text, const char *what, sn_dtr_budget *budget, sn_err *err);

/* The budgets of DTR's figures: 1.0, 0.9, .., 0.1. */
enum { SN_DTR_BUDGETS = 10 };
sn_dtr_budget sn_dtr_usual_budget(uint32_t index);

typedef struct sn_dtr_row {
  sn_dtr_heuristic heuristic;
  double ratio;
  uint64_t budget_bytes;
  sn_dtr_answer answer;
  double overhead; /* the clock at the end over the time of all operations */
} sn_dtr_row;

/* Rows by heuristic, then budget, as they were asked for. Of a heuristic with a budget that fails the least budget with
 * which the step ends is looked for as well, in hundredths of the baseline: by halving, below the least of those asked
 * for that end (the baseline itself where none does) and above the next that fails. No row: the baseline fails too. */
typedef struct sn_dtr_replay {
  uint32_t batch; /* of a recording; 0: a log has none */
  uint32_t operations, storages, n_rows, n_least;
  uint64_t baseline_bytes, cost_ns;
  sn_dtr_row *rows;
  sn_dtr_row *least; /* by heuristic */
} sn_dtr_replay;

/* SN_BAD_INPUT and SN_BAD_FILE as in sim/dtr/dtr_log.h. */
sn_dtr_replay *sn_dtr_replay_log(const char *path, const sn_dtr_heuristic *heuristics, uint32_t n_heuristics,
                                 const sn_dtr_budget *budgets, uint32_t n_budgets, sn_err *err);
/* The same of a program that is closed. */
sn_dtr_replay *sn_dtr_replay_program(const sn_dtr_program *program, const sn_dtr_heuristic *heuristics,
                                     uint32_t n_heuristics, const sn_dtr_budget *budgets, uint32_t n_budgets,
                                     sn_err *err);
void sn_dtr_replay_free(sn_dtr_replay *replay);

#endif
