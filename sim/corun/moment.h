/* Moment: one moment of a co-run schedule in the making: what runs on which cores, what is ready, what memory is taken.
 * Policies look at it and say what starts now (sim/corun/rules.h); sim/corun/schedule.c lets time pass.
 */
#ifndef SN_SIM_CORUN_MOMENT_H
#define SN_SIM_CORUN_MOMENT_H

#include "sim/corun/budget.h"
#include "sim/corun/problem.h"
#include "sim/corun/ranks.h"
#include "sim/device/pace.h"
#include "sim/schedule/timetable.h"

#include <stdbool.h>
#include <stdint.h>

/* A compute lane. */
typedef struct sn__seat {
  uint32_t op;
  sn_team team; /* of the operation that runs, or that ran last */
  int64_t predicted_end_ns;
  bool runs;
} sn__seat;

typedef struct sn__moment {
  const sn__problem *problem;
  sn__budget *budget;
  sn_pace pace; /* lanes by their number here */
  sn__seat seats[SN_COMPUTE_LANES];
  uint32_t n_running, n_second; /* all; on second slots */
  uint32_t n_were_ready;
  uint32_t orders;             /* bits by sn__order: which of the sets below are kept */
  sn__ranks ready[SN__ORDERS]; /* operations that are ready and do not sleep, by rank */
  uint32_t *age, *op_of_age;   /* ranks of SN__OLDEST */
  uint32_t *n_awaited;         /* per operation: predecessors that have not ended; once it has started, neither 0 */
  sn_timetable *timetable;     /* being written */
  uint32_t n_events;
  struct sn_arena *arena;
} sn__moment;

/* Problem and budget must outlive it. */
sn__moment *sn__moment_new(const sn__problem *problem, sn__budget *budget, sn_err *err);
void sn__moment_free(sn__moment *floor);

/* Nothing has started; `orders` are kept, `timetable` is written, `budget_bytes` are kept. */
void sn__moment_begin(sn__moment *floor, uint32_t orders, uint64_t budget_bytes, sn_timetable *timetable);

/* Starts an operation that is ready and may start, on the lowest lane that is free. */
void sn__moment_start(sn__moment *floor, uint32_t op, sn_team team);

/* Lets time pass to the next end, unless that is not before `cutoff_ns`, and ends that operation. False where there is
 * none. */
bool sn__moment_end_next(sn__moment *floor, int64_t cutoff_ns);

/* ---- for policies ---- */

/* The oldest of the operations that are ready, behind `op` (SN_NONE: of all), for which so many idle cores and so much
 * time may be enough; SN_NONE: there is none. Those that the budget is sure not to allow are left out. */
uint32_t sn__moment_next_small(const sn__moment *floor, uint32_t op, uint32_t idle, int64_t left_ns);

/* The budget allows to start an operation that is ready. */
bool sn__moment_allows(sn__moment *floor, uint32_t op);

/* The first that is ready and allowed, in one of the orders kept, and the one behind `op`; SN_NONE: there is none. */
uint32_t sn__moment_first_allowed(sn__moment *floor, sn__order order);
uint32_t sn__moment_next_allowed(sn__moment *floor, sn__order order, uint32_t op);

/* Idle cores that a team can have: the most that lie side by side, from the first of a tile on. */
uint32_t sn__moment_idle(const sn__moment *floor);

/* The first so many idle cores side by side, from the first of a tile on; there must be as many. */
sn_team sn__moment_place(const sn__moment *floor, uint32_t count);

/* How long the last to end of those that run is predicted to run yet; 0 where nothing runs or that time is over. */
int64_t sn__moment_left_ns(const sn__moment *floor);

#endif
