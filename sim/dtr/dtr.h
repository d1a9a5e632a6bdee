/* DTR: dynamic tensor rematerialization (Kirisame et al., ICLR 2021) at work on a program (sim/dtr/dtr_program.h).
 * Where an operation's results do not fit into the budget, the storage with the least score is evicted, and made again
 * by the operations it came from as soon as somebody reads it.
 *
 *   sn_dtr_question q = {.heuristic = SN_DTR_EQ, .budget_bytes = 4 << 20, .remake_limit_ns = UINT64_MAX};
 *   sn_dtr_answer a;
 *   sn_dtr_play(program, &q, &a, &err);
 *
 * The rules are those of DTR's own simulator, so that its figures come out to the byte:
 *   - The clock begins at 1 and goes on by the cost of each operation. To make a tensor, its arguments are accessed
 *     now; those that are there are locked, in order; the others are made and locked, in order. Then storages are
 *     evicted until the results of the operation, all of them, fit. Results that are there already take their bytes
 *     twice while it runs. Its other results come along. What is new joins the pool of what can be evicted, at its end:
 *     the other results, then the tensor; the arguments are unlocked in order and join it again.
 *   - The pool is scanned in its order for the least score, the last of several; a score of 0 ends the scan. Views go
 *     with their storage, and are made again by operations of their own.
 *   - c is the cost of all operations that have made a tensor of the storage, stale the time since its last access.
 * What is to be 0 below the line makes a score infinite.
 *
 *       lru    last access                     local  c / (bytes x stale)
 *       size   1 / bytes                       msps   (c + evicted ancestors) / bytes
 *       dtr    (c + what is evicted and can be reached over parents alone + over children alone) / (bytes x stale)
 *       eq     (c + the values of the different classes of evicted neighbours) / (bytes x stale)
 *
 *   - Classes of eq: evicting makes one with value c and merges it with those of all evicted neighbours, values
 *     adding up; what is made again takes its c out of its class. Classes are never divided. A result on its way to be
 *     made for the first time counts as evicted, with a class of value 0.
 *
 *   - What can be reached is kept as DTR's simulator keeps it: made anew for what is made and all that reach it, added
 *     to where something is evicted. So results on their way to be made for the first time count below a storage only
 *     where it was looked at anew since they were asked for, or took over from one that was.
 *
 * Scores are exact quotients of whole numbers, rounded once to double, as Python divides.
 *
 * Time: O(pool) an eviction, and for msps and dtr a walk over the evicted storages around what was evicted or made, and
 * one for every 64 storages of the pool whose sum that changes. Memory: 132 bytes a storage, 28 an operation, 4 an
 * argument, 1 a tensor.
 */
#ifndef SN_SIM_DTR_DTR_H
#define SN_SIM_DTR_DTR_H

#include "base/err.h"
#include "sim/dtr/dtr_program.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_dtr_heuristic {
  SN_DTR_LRU,
  SN_DTR_SIZE,
  SN_DTR_LOCAL,
  SN_DTR_MSPS,
  SN_DTR_FULL, /* "dtr" */
  SN_DTR_EQ,
  SN_DTR_HEURISTICS
} sn_dtr_heuristic;

/* "lru", "size", "local", "msps", "dtr", "eq"; parsing an unknown name is SN_BAD_USAGE. */
const char *sn_dtr_heuristic_name(sn_dtr_heuristic heuristic);
sn_status sn_dtr_heuristic_parse(const char *text, sn_dtr_heuristic *heuristic, sn_err *err);

typedef enum sn_dtr_status {
  SN_DTR_OK,
  SN_DTR_OUT_OF_MEMORY, /* nothing left to evict */
  SN_DTR_THRASH,        /* what was made again took longer than allowed */
  SN_DTR_STATUSES
} sn_dtr_status;

/* "ok", "out_of_memory", "thrash" */
const char *sn_dtr_status_name(sn_dtr_status status);

/* What is told as it happens; each may be NULL. */
typedef struct sn_dtr_watch {
  void *who;
  void (*ran)(void *who, uint32_t op, bool again); /* an operation runs, to make what is not there */
  void (*evicted)(void *who, uint32_t storage);    /* chosen by the heuristic */
} sn_dtr_watch;

typedef struct sn_dtr_question {
  sn_dtr_heuristic heuristic;
  uint64_t budget_bytes;    /* UINT64_MAX: no limit */
  uint64_t remake_limit_ns; /* thrash above it; the program's own cost is DTR's */
  bool frees_pinned;        /* pinned storages too go with their last reference */
  sn_dtr_watch watch;
} sn_dtr_question;

/* Of what happened until the end, or until it could not go on. */
typedef struct sn_dtr_answer {
  sn_dtr_status status;
  uint64_t peak_bytes, clock_ns, remade_ns;
  uint64_t evictions;   /* for want of memory; what goes with its last reference is not among them */
  uint64_t evaluations; /* of scores */
} sn_dtr_answer;

/* Plays a closed program. SN_NO_MEMORY of the host is its only error. */
sn_status sn_dtr_play(const sn_dtr_program *program, const sn_dtr_question *question, sn_dtr_answer *answer,
                      sn_err *err);

/* The peak without a limit, every storage going with its last reference, pinned or not: what DTR's ratios are shares
 * of. */
sn_status sn_dtr_baseline(const sn_dtr_program *program, uint64_t *bytes, sn_err *err);

#endif
