/* Changed loop: PyTorch's training loop as it was asked about, with something changed: how it is planned and played, and how it
 * is told (internal to sim/capacity/answer_changes.c).
 *
 *   sn__loop way = sn__loop_as_asked(&ways);
 *   way.strategy.recompute = SN_RECOMPUTE_UNITS, way.parts = 2;
 *   sn__loop_play(&ways, &way, &result);
 *   sn__loop_tell(&ways, &way, &result, &change);       "checkpoint all 12 blocks, 2 batches of 256, gradients added"
 */
#ifndef SN_SIM_CAPACITY_CHANGED_LOOP_H
#define SN_SIM_CAPACITY_CHANGED_LOOP_H

#include "sim/ask/simulate.h"
#include "sim/capacity/answer.h"
#include "sim/capacity/calls.h"
#include "sim/stages/staged.h"

typedef struct sn__loop {
  sn_strategy strategy;
  sn_iteration iteration; /* of the whole batch */
  uint32_t batch;         /* the one asked for, or another, */
  uint32_t parts;         /* in so many, which divide it */
  uint32_t rank;          /* of adapters that are put in (models/build/lora.h); 0: none but the network's own */
  bool nf4;               /* the weights behind adapters have 4 bits, which they had not */
} sn__loop;

typedef struct sn__loop_changes {
  const sn_asked *asked;
  sn_strategy stands;   /* the strategy as it was asked about */
  sn_staged *planner;   /* of the question as it stands */
  uint32_t blocks;      /* units of the network (sim/schedule/units.h) */
  uint32_t block_units; /* that make a block of the user's model, which checkpoints wrap as a whole */
  sn_arena *arena;      /* of the answer */
  sn_err *err;
} sn__loop_changes;

sn__loop sn__loop_as_asked(const sn__loop_changes *ways);

/* The result of a strategy that was asked about; NULL: it was not, or nobody has its result. */
const sn_result *sn__loop_known(const sn__loop_changes *ways, sn_strategy strategy);

/* Plans, checks and plays, unless that is known. */
sn_status sn__loop_play(const sn__loop_changes *ways, const sn__loop *way, sn_result *result);

/* What it is called: "checkpoint all 12 blocks, kept in host memory"; NULL: no memory. */
const char *sn__loop_what(const sn__loop_changes *ways, const sn__loop *way);

/* What it is called, its result, the options and the lines of Python that make it. */
sn_status sn__loop_tell(const sn__loop_changes *ways, const sn__loop *way, const sn_result *result,
                        sn_answer_change *change);

/* The lines alone. */
sn_status sn__loop_add_calls(const sn__loop_changes *ways, const sn__loop *way, sn_answer_change *change);

/* Lines of any question, kept in the arena. */
sn_status sn__loop_keep_calls(const sn_asked *asked, const sn_calls_wish *wish, sn_arena *arena,
                              sn_answer_change *change, sn_err *err);

/* As the loop stands, of any runtime. */
sn_status sn__loop_tell_none(sn_strategy strategy, sn_iteration iteration, uint32_t batch, const sn_result *result,
                             sn_arena *arena, sn_answer_change *change, sn_err *err);

#endif
