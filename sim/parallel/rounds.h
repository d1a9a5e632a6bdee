/* Rounds: steps of a pipeline's stage that stand for more of the same. Under 1f1b a stage that is warm has for each
 * micro-batch a forward and a backward, of one whose forward is over:
 *
 *   3 in flight    F F F B F B F B F B F B | F B | F B | B B
 *                   warm                   a round, and another like it; cool
 *
 * Of a mesh with idle micro-batches the round comes `again` times more before the other one: what it does then it does
 * for other micro-batches, each of those in flight being where the one before it was. Of shards (fsdp) what a backward
 * gathers is the same tensor in every round: the next forward finds it there, and lets it go. Who goes through a plan of
 * such a route obeys the round again, or counts what it takes:
 *
 *   sim/play/caching_replay.c   asks PyTorch's allocator for all of them
 *   sim/play/device_model.c     puts the host as far ahead
 *   sim/ask/result.c            adds the time, and says where rounds are not alike
 *   sim/stages/match.c          sends and receives as often
 *   sim/stages/together.c       adds the time of that
 */
#ifndef SN_SIM_PARALLEL_ROUNDS_H
#define SN_SIM_PARALLEL_ROUNDS_H

#include "sim/graph/route.h"

typedef struct sn_rounds {
  uint32_t warm;       /* step: from here on forwards are in rounds; the first of them whose backward is in this one */
  uint32_t first, end; /* steps of the round */
  uint32_t again;      /* 0: there is none */
} sn_rounds;

/* Of a stage's route, whatever lies upon it; others have none. */
sn_rounds sn_rounds_of(const sn_route *route);

/* How many micro-batches of an update are to run so that a round can stand for the others, which are idle: two for each
 * that is in flight, and three; all where that is not fewer, and of other schedules. The stage is mesh->stage. */
uint32_t sn_rounds_running(const sn_mesh *mesh, uint32_t micros);

#endif
