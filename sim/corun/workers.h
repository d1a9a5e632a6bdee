/* Workers: what no schedule of KxP is faster than, before it is made and while it is. Of the many that `manual` tries
 * nearly all are known to be too slow by that before they are through.
 *
 * K operations at once slow each other (sim/device/cores.h), each of them by 1 + h times the shares u of the others; h
 * is the same for all, as all have P threads. So w T, w = 1 - (1 - 1/K) / (1 + h u), is the part of a schedule's time
 * that an operation takes by itself at least, whatever runs beside it: with b = h u and B the sum of b over k <= K of
 * them that run at the same time, what they do in a moment is the sum of
 *
 *   w_i / (1 + B - b_i) <= 1
 *
 * Proof: w is least for k = K. For B given, each summand is a function of b_i that is concave below some b and convex
 * above it, so that the sum is largest where K - 1 of them are some e and one is d >= e. Times all denominators, with D
 * = 1 + d, 1 - sum is then
 *
 *   (K-1) [(D-1) (K D - K + 2) e + (K D (D-1) + K - 2) e^2 + (K-2) D K e^3] / K >= 0
 *
 * Two workers can do with more. With x = 1 + b of one and y of the other, both at most X, w x = c^2 / 2 + (x - c) X
 * below some c, (x - c) c from it on, is as good for any c from 1 to X: w(x) / y + w(y) / x <= 1 is (X - y) (x - c) <=
 * 0 for x < c <= y, (x - c) (y - c) >= 0 above c, and (X - c) (x + y - 2 c) <= 0 <= (x - c) (y - c) below it. Alone w
 * is at most 1 where c - c^2 / (2 X) <= 1, and then it is not below 0. c = 1 is the w above; of a few c the one is
 * taken that says most.
 *
 * Of a path one operation runs at a time, alone or beside others. With weight 1 for those of the path and v = h u / (1
 * + h u) for all others, what is done in a moment is again at most 1: beside an operation of the path at most 1 / (1 +
 * B) + sum of b_i / ((1 + b_i) (1 + B - b_i)), B the sum of the others' b, and (1 + b_i) (1 + B - b_i) >= 1 + B. So a
 * schedule takes the times of a path's operations, and v T of each other one.
 */
#ifndef SN_SIM_CORUN_WORKERS_H
#define SN_SIM_CORUN_WORKERS_H

#include "sim/corun/problem.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__workers {
  const sn__problem *problem;
  int64_t *tail_ns;   /* per operation: (1 - v) T of the operations of the longest path that begins with it */
  int64_t *work_ns;   /* per class: w T */
  int64_t *beside_ns; /* per class: v T */
  double *slowing;    /* per class: x = 1 + h u */
  uint32_t *n_ops;    /* per class */
  uint32_t threads;   /* of those looked at */
  int64_t left_work_ns, left_beside_ns; /* of all operations that have not started */
} sn__workers;

/* False: out of memory; to be cleared in any case. The problem must outlive it. */
bool sn__workers_init(sn__workers *workers, const sn__problem *problem);
void sn__workers_clear(sn__workers *workers);

/* Looks at K workers of P threads from now on, of whom no operation has started; returns what no schedule of them is
 * faster than, for what all operations do. O(classes). */
int64_t sn__workers_work(sn__workers *workers, uint32_t k, uint32_t threads);

/* The same for what the longest path takes, of the workers looked at; to be known before sn__workers_start().
 * O(operations + edges). */
int64_t sn__workers_path(sn__workers *workers);

/* An operation starts: the schedule will end no earlier than this. O(1). */
int64_t sn__workers_start(sn__workers *workers, uint32_t op, int64_t now_ns);

#endif
