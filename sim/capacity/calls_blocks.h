/* What calls are made of (internal to sim/capacity): blocks of a network's model (models/net/modules.h) with what a plan
 * runs again of them, and lines as they are written. */
#ifndef SN_SIM_CAPACITY_CALLS_BLOCKS_H
#define SN_SIM_CAPACITY_CALLS_BLOCKS_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/graph/iteration.h"
#include "sim/plan/plan.h"
#include "sim/schedule/units.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__block {
  const char *path;      /* the route's */
  uint32_t steps, rerun; /* forward steps; of these in units that run again */
  uint32_t region;       /* the backward step ahead of which the first of them does; SN_NONE: none does */
} sn__block;

typedef struct sn__blocks {
  const sn_route *route;
  bool adapted; /* set by who asks: the model is wrapped in peft's, as its adapters are */
  sn_units units;
  uint32_t *region; /* by unit: the backward step ahead of which it runs again; SN_NONE: it does not */
  bool *is_other;   /* by unit: it runs again, and no step of it is of a chosen block */
  uint32_t n_rerun; /* units */
  uint32_t count, chosen;
  sn__block *all; /* in the order of forward steps */
} sn__blocks;

static inline bool sn__block_is_chosen(const sn__block *b) {
  return 2 * b->rerun > b->steps;
}

/* Of a plan of the route; NULL: nothing runs again. Free with sn__blocks_clear(), after an error too. */
sn_status sn__blocks_find(const sn_route *route, const sn_plan *plan, sn__blocks *blocks, sn_err *err);
void sn__blocks_clear(sn__blocks *blocks);

/* ---- lines ---- */

enum { SN__CALLS_PATH = 256 }; /* the longest path of a module that is written whole */

typedef struct sn__text {
  const char **lines;
  uint32_t count, room;
  sn_arena *arena;
  bool failed; /* no memory for a line */
} sn__text;

/* A line more. */
__attribute__((format(printf, 2, 3))) void sn__text_add(sn__text *t, const char *format, ...);
/* "for block in ..:" over the blocks that are chosen, or those that are not. */
void sn__text_add_loop(sn__text *t, const sn__blocks *b, bool chosen);
/* A pipeline: the network in its stages, and their schedule. What its micro-batches take is `x`. Blocks that are chosen run
 * again; NULL: none does. */
void sn__calls_add_pipeline(sn__text *t, const sn_net *net, sn_iteration iteration, const sn__blocks *again);
/* Of sn_iteration_keeps_masters(): copies of parameters that gradients are added to, which the optimizer is to have. Behind
 * an update's backward: that update, written back. */
void sn__calls_add_masters(sn__text *t, sn_iteration iteration);
void sn__calls_add_masters_update(sn__text *t, sn_iteration iteration);
/* How several GPUs share the model, and what an update of several batches has to say. SN_NO_MEMORY. */
sn_status sn__calls_add_mesh(sn__text *t, sn_iteration iteration, const sn__blocks *blocks, sn_err *err);

#endif
