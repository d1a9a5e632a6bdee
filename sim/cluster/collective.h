/* How long a collective takes on a cluster: NCCL's ring, by the model that NCCL itself chooses algorithms by
 * (src/graph/tuning.cc), with the busbw that was measured in place of the one NCCL assumes.
 *
 *   t = base + steps in a node x step + steps between nodes x step + S k (n - 1) / (n bus)
 *
 *   S bytes, n ranks, k = 2 for all-reduce, else 1; k (n - 1) steps, k (nodes - 1) of them between nodes; bus is that of
 *   the slowest link crossed. A send is one step and S / bus.
 *
 * Two protocols, and the faster counts: `simple` reaches all of bus; LL, for small arrays, a quarter of it, with a
 * fraction of the latency. Published times are met within 12 %, half of them within 3 (docs/parallel.md). Left out: trees, LL128 and
 * NVLS (NVLink SHARP), which makes an all-reduce inside a node of H100 up to 1.3 times as fast; congestion.
 *
 *   sn_group group = {.ranks = 8, .nodes = sn_cluster_nodes_of(&cluster, 8, 1)};
 *   int64_t ns = sn_collective_ns(&cluster, SN_COLLECTIVE_ALL_GATHER, bytes, group);
 */
#ifndef SN_SIM_CLUSTER_COLLECTIVE_H
#define SN_SIM_CLUSTER_COLLECTIVE_H

#include "sim/cluster/cluster.h"

#define SN_COLLECTIVE_LIST(X)                                                                                          \
  X(SN_COLLECTIVE_ALL_GATHER, "all-gather")                                                                            \
  X(SN_COLLECTIVE_REDUCE_SCATTER, "reduce-scatter")                                                                    \
  X(SN_COLLECTIVE_ALL_REDUCE, "all-reduce")                                                                            \
  X(SN_COLLECTIVE_SEND, "send")

typedef enum sn_collective {
#define SN_COLLECTIVE_ENUM(kind, name) kind,
  SN_COLLECTIVE_LIST(SN_COLLECTIVE_ENUM)
#undef SN_COLLECTIVE_ENUM
      SN_COLLECTIVES
} sn_collective;

/* "all-gather", "reduce-scatter", "all-reduce", "send" */
const char *sn_collective_name(sn_collective kind);

/* Who takes part. 1 <= nodes <= ranks; a send has two ranks, on one node or on two. */
typedef struct sn_group {
  uint32_t ranks;
  uint32_t nodes; /* on so many nodes they lie: sn_cluster_nodes_of() */
} sn_group;

/* Bytes/s of the slowest link that a ring of the group crosses. Between nodes all groups of the mesh speak at once, so a
 * group has of a node's NICs the share that it has of the node's GPUs; a GPU has no more than one NIC. */
double sn_collective_bus(const sn_cluster *cluster, sn_group group);

/* The time in ns. `bytes`: of the whole array, what an all-gather makes, a reduce-scatter and an all-reduce take, a send
 * transfers. 0 for one rank; never less for more bytes; at most SN_MAX_OP_SECONDS (sim/device/conv.h), as of layers, so
 * that an iteration of such is refused as too long. A group on several nodes needs a cluster with a network, which every
 * cluster of several nodes has. O(1). */
int64_t sn_collective_ns(const sn_cluster *cluster, sn_collective kind, uint64_t bytes, sn_group group);

#endif
