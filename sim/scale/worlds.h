/* Worlds: how few GPUs do for an iteration that they share by one scheme (sim/graph/mesh.h): fsdp, dp, or pp, whose
 * stages are no more than blocks.
 *
 *   1 GPU, 2, 4, 8 | 2 nodes, 4, 8 ..       until one fits; then between the last that does not and that one
 *
 *   sn_mesh_parse_sought("fsdp,prefetch=2", &scheme, &err);
 *   sn_worlds *worlds = sn_worlds_find(&wish, &err);
 *   worlds->least->world, worlds->below->result->least_device_bytes - device.memory_bytes
 *   sn_worlds_free(worlds);
 *
 * Each is planned, checked and played on the device as it is. Within a node sizes are powers of two, beyond it whole nodes;
 * other axes of the scheme have the sizes they were given, and worlds that these do not divide are left out. More GPUs
 * are taken to need no more memory each: what lies between two sizes is looked for by halving.
 */
#ifndef SN_SIM_SCALE_WORLDS_H
#define SN_SIM_SCALE_WORLDS_H

#include "base/err.h"
#include "sim/ask/simulate.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_WORLDS_MOST_GPUS = 1024 }; /* where nobody says how many nodes there are */

typedef struct sn_worlds_wish {
  const char *spec; /* of the net, for messages */
  const sn_net *net;
  const sn_device *device;
  const sn_options *options;     /* whose mesh is not looked at; its cluster is where the GPUs are */
  const sn_mesh *scheme;         /* with the axis whose size is looked for */
  const sn_strategy *strategies; /* of PyTorch; of those that fit the fastest counts */
  uint32_t n_strategies;
  bool lean;     /* where none of them fits blocks that run again are tried, too */
  uint32_t most; /* GPUs */
} sn_worlds_wish;

/* A world with a strategy. */
typedef struct sn_world {
  uint32_t world, nodes;
  sn_mesh mesh; /* of one GPU zeroed */
  sn_strategy strategy;
  bool lean;               /* nobody asked for this strategy */
  const sn_result *result; /* NULL: nobody can ask, for the reason of `refused` */
  const char *refused;
  double images_per_second; /* of all GPUs */
} sn_world;

typedef struct sn_worlds {
  uint32_t n_all;
  const sn_world *all;     /* tried: by world, then as strategies were asked for; the lean one behind them */
  const sn_world *least;   /* the fewest GPUs that do, the fastest strategy of these; NULL: none */
  const sn_world *leanest; /* the fewest with blocks that run again where these are fewer than `least`; NULL: none */
  const sn_world *below;   /* the next smaller than `least`, or where there is none the largest, that was planned: of
                              its asked strategies the one that lacks the least; NULL: none was */
  sn_binding binding;      /* what stops that one */
  struct sn_arena *arena;
} sn_worlds;

/* SN_BAD_USAGE and SN_BAD_INPUT: what cannot be asked about with any number of GPUs. That nothing fits is an answer. */
sn_worlds *sn_worlds_find(const sn_worlds_wish *wish, sn_err *err);
void sn_worlds_free(sn_worlds *worlds);

#endif
