/* Ways: how a given number of GPUs may share an iteration, and which ways are worth considering.
 *
 *   sn_ways_wish wish = {.spec = "llama:7b", .net = net, .device = &gpu, .options = &options, .gpus = 64,
 *                        .strategies = strategies, .n_strategies = 2};
 *   sn_ways *ways = sn_ways_find(&wish, &err);
 *   ways->all[0].mesh.text, ways->all[0].batch        fsdp=64, 4: the fastest that fits, as they are ranked
 *   sn_ways_free(ways);
 *
 * A way is a mesh of all GPUs (every tp, fsdp and dp whose product they are, and every tp, pp and dp where an update has
 * as many batches as stages; as far as they can be asked about: sn_shard_refuses()), a strategy, and how many images a rank gets at once: 1, 2, 4 .. and the net's own batch, as long as
 * they fit. A mesh whose shards and states, with the tensors of the largest step, are more than there is is not planned.
 * They are ranked by images/s of all GPUs. Ways of different batches do different numbers of images an update, unless that
 * number is held: then each accumulates as many batches as it takes, and what does not divide it is no way.
 *
 * The front of memory and time: no other way is as fast with less memory.
 */
#ifndef SN_SIM_SCALE_WAYS_H
#define SN_SIM_SCALE_WAYS_H

#include "base/err.h"
#include "sim/ask/simulate.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_WAYS_STRATEGIES = 64 }; /* at most */

typedef struct sn_ways_wish {
  const char *spec;  /* of the net, for other batches of it */
  uint32_t image;    /* 0: the network's own */
  const sn_net *net; /* whose batch is the most that is tried */
  const sn_device *device;
  const sn_options *options; /* whose mesh is not looked at */
  uint32_t gpus;
  uint32_t global_batch;         /* images an update of all GPUs; 0: as many as come out */
  const sn_strategy *strategies; /* of PyTorch */
  uint32_t n_strategies;
  uint32_t threads; /* that try meshes; 0 and 1: the caller's alone */
} sn_ways_wish;

typedef struct sn_way {
  sn_mesh mesh;
  sn_strategy strategy;
  uint32_t batch;      /* of a rank */
  uint32_t accumulate; /* of those an update */
  bool fits;
  uint64_t device_bytes;    /* the plan's; without one what no plan goes below */
  const sn_result *result;  /* NULL: it was not planned */
  double images_per_second; /* of all GPUs; 0: not planned */
  bool best;                /* of its mesh and strategy: the fastest that fits, else the one that needs the least */
  bool on_front;
} sn_way;

typedef struct sn_ways {
  uint32_t n_all;
  const sn_way *all; /* those that fit first, fastest first, of equals with less memory; then by what they need */
  uint32_t meshes;   /* that were asked about */
  uint32_t uneven;   /* that were not, as none of their batches divides the global one */
  /* whose the results are */
  struct sn_run **runs;
  struct sn_arena **arenas, *arena;
  uint32_t n_runs, n_arenas;
} sn_ways;

/* The same whatever the number of threads. SN_BAD_USAGE where no mesh of so many can be asked about, with the reason. That none fits is an answer. */
sn_ways *sn_ways_find(const sn_ways_wish *wish, sn_err *err);
void sn_ways_free(sn_ways *ways);

#endif
