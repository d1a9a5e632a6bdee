/* Team times: how long every operation takes on teams of some of a machine's cores, how long it takes to go on with
 * another team, and how much two teams side by side slow each other. Part of calibrating (exec/session/calibrate.c).
 *
 * Operations run one after another in mixes (sim/policy/mix.h), each behind one on another team, so that they find the
 * caches as co-run plans leave them, and teams asleep; with all cores, on which most of a plan's operations are, behind
 * others on all of them. The time of an operation with so many threads is the median of at least three samples. What
 * another team takes is what a mix takes beyond these times, for each of its changes, more than operations that all run
 * on all cores: the team that is woken, and what an operation on all cores then does not find in its caches.
 *
 * Then `2xH`, H half of the cores, runs what it can on both halves at once; interference is the beta of the device's
 * law (sim/device/cores.h) with which operations side by side take as long as they took: a median over operations, and
 * over iterations.
 */
#ifndef SN_EXEC_SESSION_TEAM_TIMES_H
#define SN_EXEC_SESSION_TEAM_TIMES_H

#include "base/err.h"
#include "exec/session/session.h"
#include "models/net/net.h"
#include "sim/device/calibration.h"
#include "sim/policy/mix.h"

#include <stdint.h>

typedef struct sn__team_times sn__team_times;

/* For so many cores, at least SN_MIN_CORES. `counts` are ascending; 1, half of the cores and all of them are added. */
sn__team_times *sn__team_times_new(const sn_net *net, uint32_t cores, const uint32_t *counts, uint32_t n_counts,
                                   sn_err *err);
void sn__team_times_free(sn__team_times *times);

/* How many strategies sn__team_times_measure() adds to the session. */
uint32_t sn__team_times_plans(uint32_t cores, const uint32_t *counts, uint32_t n_counts);

/* Plays the plans. The session's visitor calls sn__team_times_visit() with every iteration that counts. */
sn_status sn__team_times_measure(sn__team_times *times, sn_session *session, sn_err *err);
void sn__team_times_visit(sn__team_times *times, const sn_plan *plan, const sn_trace *trace);

/* The next of the mixes, which is theirs until the one behind it; NULL behind the last, when the medians are found and
 * what is visited is 2xH. */
const sn_mix *sn__team_times_next_mix(sn__team_times *times);

/* 0 .. SN_MAX_INTERFERENCE */
double sn__team_times_interference(sn__team_times *times);

/* 0 .. SN_MAX_RESIZE_NS, known when all mixes were played */
double sn__team_times_resize_ns(const sn__team_times *times);

/* The most timings that there can be, and one after another of those that there are. */
uint32_t sn__team_times_most(const sn__team_times *times);
sn_status sn__team_times_each(const sn__team_times *times, const sn_cores *cores, sn_optimizer optimizer,
                              sn_status (*add)(void *user, sn_timing timing), void *user);

/* An operation that ran beside others for a while. */
typedef struct sn__team_run {
  double ns, alone_ns;
  double overlap_ns; /* of ns: something ran beside it */
  double share;      /* of the cores' time that the others worked meanwhile: u in the law, as much of it as their number
                        of threads counts; 0 .. 1 */
  double beta;       /* to be found */
} sn__team_run;

/* The interference that explains what these operations took: the median of their own, weighted by how long each would
 * have run beside others alone, so that one that lost its processor for a while counts no more than it should. Sorts
 * them. n > 0. */
double sn__team_interference(sn__team_run *runs, uint32_t n);

#endif
