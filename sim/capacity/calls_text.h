/* Lines of calls as they are written (internal to sim/capacity). */
#ifndef SN_SIM_CAPACITY_CALLS_TEXT_H
#define SN_SIM_CAPACITY_CALLS_TEXT_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/capacity/calls_blocks.h"
#include "sim/graph/iteration.h"

#include <stdbool.h>
#include <stdint.h>

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
/* How several GPUs share the model, and what an update of several batches has to say. SN_NO_MEMORY. */
sn_status sn__calls_add_mesh(sn__text *t, sn_iteration iteration, const sn__blocks *blocks, sn_err *err);

#endif
