/* What sim/dtr/dtr.c (who is there, who is locked) and sim/dtr/dtr_score.c (who goes next) share. */
#ifndef SN_SIM_DTR_DTR_INTERNAL_H
#define SN_SIM_DTR_DTR_INTERNAL_H

#include "sim/dtr/dtr.h"

#define SN__DTR_NOWHERE UINT32_MAX

/* What walks look at comes first. */
typedef struct sn__dtr_item {
  bool there, made, pinned, kept, above_known, below_known; /* made: at least once */
  uint64_t seen;                                            /* by which walk */
  uint64_t from;                                            /* which of those that the walk began at lead here */
  int64_t cost;
  int64_t above, below; /* the cost of what is evicted beyond it, where it is known */
  uint64_t reaches;     /* results not made yet, by which walk */
  int64_t last_access;
  uint32_t expects; /* 1 + the operation whose results, not made yet, count as evicted below it */
  uint32_t locks, references;
  uint32_t place;          /* in the pool, or SN__DTR_NOWHERE */
  uint32_t class;          /* of eq, where it is evicted; else SN__DTR_NOWHERE */
  uint32_t next, previous; /* in the ring of its class */
} sn__dtr_item;

typedef struct sn__dtr_class {
  int64_t value;
  uint32_t first, members; /* members 0: it is free, and `first` the next free one */
  uint64_t seen;           /* by which walk */
} sn__dtr_class;

typedef struct sn__dtr {
  const sn_dtr_program *program;
  const sn_dtr_question *question;
  sn_dtr_answer *answer;
  sn__dtr_item *items; /* storages */
  bool *defined;       /* tensors */
  uint64_t usage, budget;
  int64_t clock;
  uint32_t op;    /* operations up to this one have been asked for */
  uint32_t *pool; /* what can be evicted, in the order of joining; gaps are SN__DTR_NOWHERE */
  uint32_t pool_end, pool_count;
  uint32_t *walk;                  /* room for all storages */
  uint64_t walk_number, *ops_seen; /* of operations: by which walk */
  sn__dtr_class *classes;
  uint32_t free_class;
  uint32_t expected; /* storages that the operation asked for last has not made yet, and what they cost */
  int64_t expected_cost;
} sn__dtr;

/* The pool's member to evict; there is one. */
uint32_t sn__dtr_choose(sn__dtr *d);

/* An operation was asked for: its results and edges are there from now on. */
void sn__dtr_scored_asked(sn__dtr *d, uint32_t op);
/* `storage` is evicted now, or made, for the first time or again; behind the change. */
void sn__dtr_scored_evicted(sn__dtr *d, uint32_t storage);
void sn__dtr_scored_made(sn__dtr *d, uint32_t storage, bool first);

#endif
