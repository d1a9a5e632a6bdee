/* recompute=optimal: the schedule that takes least time within so many bytes, by dynamic programming over stages
 * (sim/schedule/stages.h). After Beaumont et al., "Optimal checkpointing for heterogeneous chains" (rotor); unlike it, a
 * kept output of a stage also serves as what that stage's own backward reads.
 *
 *   sn_optimal *o = sn_optimal_new(stages, bytes, &err);      answers for every memory up to `bytes`
 *   sn_optimal_ns(o, bytes);                                  INT64_MAX: not possible
 *   sn_schedule *schedule = sn_optimal_schedule(o, bytes, &err);
 *
 * With m bytes beside a_{s-1}, which is there:
 *
 *   T(s, m)      first pass from stage s on, and back
 *   R(s, t, m)   stages s to t once more, and back; a_t is there too, and counted where t's backward reads it, as are
 *                the gradients that have come to it
 *   Q(s, t, m)   the same where a_t has been dropped; B(s, t, m) is the lesser of both
 *
 *   T(n, m) = f_n + b_n              R(s, s, m) = remake_s + b_s              Q(s, s, m) = f_s + b_s
 *
 *   T(s, m) = min  f_s + T(s+1, m - kept) + again + b_s
 *             min_k  f_s + .. + f_{k-1} + T(k, m - a_{k-1}) + B(s, k-1, m)
 *
 *   R(s, t, m), Q(s, t, m): the same with R(.., t, ..), Q(.., t, ..) for T
 *
 *   R(s, t, m) also  b_t + Q(s, t-1, m)  where t needs nothing of what is before it, as a DROPOUT
 *
 *   Q(s, t, m) also  f_s + .. + f_t + R(s, t, m)
 *
 * for each way of keeping (sn_keeping_kind), and k from s + 1; each only where the loads of what runs stay within m.
 * A kept stage gives a_{s-1} back as soon as it has run where neither its backward nor that of s-1 reads it.
 * Where tensors may be sent out, S(s, l, m) is T with copies on their way that end l levels after stage s begins; what
 * they have still to copy is q, which is there and goes off m while stage s runs, and while it comes back:
 *
 *   S(s, l, m) = min  f_s + S(s+1, l', m - kept) + again + b_s          f_s + S(s+1, l' + kept, m) + again + b_s
 *                min_k  f_s + .. + f_{k-1} + S(k, l', m - a_{k-1}) + B(s, k-1, m - q)         or with l' + a_{k-1}, m
 *                level + S(s, l-1, m)                                   waits for the copies
 *
 * where l' is what is left of l once the stages have run. The way back is taken to be the way out with time running
 * backwards, and not to be faster: so q is what is being fetched, too.
 *
 * Bytes are counted in 1/SN_OPTIMAL_UNITS of the memory, or finer where stages are few, down to the blocks of the pool;
 * sizes are rounded up, so that what is found is possible, if perhaps not the best. O(stages^3 x units) where memory is
 * short; an answer that loses little time is found among few of the rows. Of more than SN_OPTIMAL_STAGES stages
 * neighbours are joined, those with least bytes first.
 */
#ifndef SN_SIM_SCHEDULE_SCHEDULE_OPTIMAL_H
#define SN_SIM_SCHEDULE_SCHEDULE_OPTIMAL_H

#include "sim/schedule/schedule.h"
#include "sim/schedule/send.h"
#include "sim/schedule/stages.h"

enum {
  SN_OPTIMAL_UNITS = 500,
  SN_OPTIMAL_MOST_UNITS = 50000,
  SN_OPTIMAL_WORK = 100000000, /* stages^3 x units up to which there are more */
  SN_OPTIMAL_STAGES = 160,
  SN_OPTIMAL_LEVELS = 32 /* of copies that are still to be done */
};

typedef struct sn_optimal sn_optimal;

/* `stages` must outlive it. Answers are looked for when they are asked for, and what was found is kept. */
sn_optimal *sn_optimal_new(const sn_stages *stages, uint64_t bytes, sn_err *err);
void sn_optimal_free(sn_optimal *optimal);

/* Compute time of forward and backward within `bytes`, at most those of sn_optimal_new(); INT64_MAX: not possible. */
int64_t sn_optimal_ns(sn_optimal *optimal, uint64_t bytes);
/* The least memory for which there is a schedule; UINT64_MAX: for none. */
uint64_t sn_optimal_least(sn_optimal *optimal);
/* For bytes with which it is possible. */
sn_schedule *sn_optimal_schedule(sn_optimal *optimal, uint64_t bytes, sn_err *err);

/* The same where what the first pass keeps may be sent out over a link: its kept stages, and outputs of what it drops.
 * The schedule has its swaps, within how->bytes. */
sn_optimal *sn_optimal_new_sending(const sn_stages *stages, uint64_t bytes, sn_link link, sn_err *err);
sn_schedule *sn_optimal_schedule_sending(sn_optimal *optimal, uint64_t bytes, const sn_sending *how, sn_err *err);

#endif
