/* Caching map: where PyTorch's caching allocator has what a plan asks for, in the steady iteration
 * (sim/play/caching_replay.h). Segments lie one on the other, in the order of their addresses: which those are no one
 * knows but the driver, and expandable ones have most of theirs for nothing.
 *
 *   sn_caching_map map;
 *   sn_caching_map_make(plan, &load, &map, &err);     map.replayed.fits?
 *   map.taken[i]                                      what instruction i got; of 0 bytes: nothing
 *   sn_caching_map_clear(&map);
 */
#ifndef SN_SIM_PLAY_CACHING_MAP_H
#define SN_SIM_PLAY_CACHING_MAP_H

#include "sim/play/caching_replay.h"

/* Extents in the order of their addresses. */
typedef struct sn_extents {
  sn_extent *all;
  uint32_t n, room;
} sn_extents;

typedef struct sn_caching_map {
  sn_extent *taken;    /* per instruction: the block of an ALLOC, the workspace of a COMPUTE; of the last micro-batch */
  sn_extents stays;    /* what is there all the time: parameters, states, accumulated gradients, what libraries keep */
  sn_extents segments; /* at the iteration's end; of expandable ones what is mapped in one piece */
  uint64_t end_bytes; /* of all of it: what is reserved then, and where segments went back meanwhile what was in them */
  sn_caching_replayed replayed;
} sn_caching_map;

/* Of `load` the observer is the map's. To be cleared in any case. Errors as of sn_caching_replay(). */
sn_status sn_caching_map_make(const sn_plan *plan, const sn_caching_load *load, sn_caching_map *map, sn_err *err);
void sn_caching_map_clear(sn_caching_map *map);

#endif
