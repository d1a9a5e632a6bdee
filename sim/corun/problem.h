/* Problem: what all co-run schedules of one question share: operations with their times, the orders in which policies
 * look at those that are ready, and what no schedule can be faster than. O(operations log operations + edges + classes
 * x threads).
 */
#ifndef SN_SIM_CORUN_PROBLEM_H
#define SN_SIM_CORUN_PROBLEM_H

#include "base/err.h"
#include "sim/corun/times.h"
#include "sim/device/cores.h"
#include "sim/schedule/ops.h"

#include <stdbool.h>
#include <stdint.h>

/* Which of the operations that are ready comes first; of equals the serially first. */
typedef enum sn__order {
  SN__OLDEST,   /* ready for the longest time */
  SN__LARGEST,  /* takes the longest at n_k, its kind's number of threads */
  SN__SMALLEST, /* takes the shortest with one thread */
  SN__FARTHEST, /* has the longest path to the end, at best counts */
  SN__ORDERS
} sn__order;

/* The numbers of threads that s123 considers for a class, ascending: its three fastest, where one that differs by more
 * than 2 from n_k is n_k. */
enum { SN__CHOICES = 3 };
typedef struct sn__choice {
  uint32_t n, threads[SN__CHOICES];
  int64_t least_ns; /* predicted, of these numbers */
} sn__choice;

typedef struct sn__problem {
  const sn_ops *ops; /* looked at, as are the next two */
  const sn_times *times;
  const sn_cores *cores;
  const uint32_t *class_of;          /* per operation: times->classes[class_of[op]] */
  const uint32_t *rank[SN__ORDERS];  /* per operation; NULL: not asked for yet, and SN__OLDEST, not known before */
  const uint32_t *op_at[SN__ORDERS]; /* per rank */
  const sn__choice *choices;         /* per class */
  int64_t chain_ns;                  /* the longest path, each operation at the count that is fastest for it */
  int64_t area_ns;                   /* of all operations: threads x time, at the counts where that is least */
  int64_t slowest_ns;                /* all operations one after another, each at the count that is slowest for it */
  struct sn_arena *arena;
} sn__problem;

sn__problem *sn__problem_new(const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_err *err);
void sn__problem_free(sn__problem *problem);

/* Finds the ranks of an order, unless they are there. O(operations log operations). False: out of memory. */
bool sn__problem_rank(sn__problem *problem, sn__order order);

static inline const sn_time_class *sn__class(const sn__problem *problem, uint32_t op) {
  return &problem->times->classes[problem->class_of[op]];
}

/* n_k of an operation. */
static inline uint32_t sn__kind_threads(const sn__problem *problem, uint32_t op) {
  return problem->times->kinds[sn__class(problem, op)->kind].threads;
}

#endif
