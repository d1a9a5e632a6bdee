/* Cluster: which GPUs there are, how many to a node, and how fast they speak to each other.
 *
 *      node 0                        node 1
 *   [gpu gpu .. gpu]-- nics --net-- [gpu gpu .. gpu]      a link has two speeds: what the line carries one way, and
 *     `node` link                                        what nccl-tests measures as busbw, which times are made of
 *
 * Known clusters are JSON files in sim/cluster/profiles/, embedded in the binary; a user's own file has the same form
 * (docs/parallel.md). How long a collective takes on one is sim/cluster/collective.h's.
 *
 *   sn_cluster cluster;
 *   if (sn_cluster_load("h100x8", &cluster, &err) == SN_OK && sn_cluster_set_nodes(&cluster, 4, &err) == SN_OK)
 *     printf("%u of %s", sn_cluster_gpus(&cluster), cluster.gpu);
 *
 * Ranks are numbered node after node: rank r is on node r / gpus_per_node. In a mesh tp's ranks are neighbours; then
 * come fsdp, dp and pp. So a group is `ranks` members that are `stride` ranks apart, stride being the product of the
 * sizes before it.
 */
#ifndef SN_SIM_CLUSTER_CLUSTER_H
#define SN_SIM_CLUSTER_CLUSTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN_CLUSTER_NAME = 64, SN_CLUSTER_NOTE = 200, SN_CLUSTER_GPU = 256 };

/* More than anybody has; within them no count of GPUs overflows. */
enum { SN_CLUSTER_MOST_GPUS = 1024, SN_CLUSTER_MOST_NODES = 65536 };

/* What joins the GPUs of a node: JSON's word and people's */
#define SN_FABRIC_LIST(X)                                                                                              \
  X(SN_FABRIC_NVLINK, "nvlink", "NVLink")                                                                              \
  X(SN_FABRIC_PCIE, "pcie", "PCIe")

typedef enum sn_fabric {
#define SN_FABRIC_ENUM(kind, word, name) kind,
  SN_FABRIC_LIST(SN_FABRIC_ENUM)
#undef SN_FABRIC_ENUM
      SN_FABRICS
} sn_fabric;

const char *sn_fabric_word(sn_fabric kind); /* "nvlink" */
const char *sn_fabric_name(sn_fabric kind); /* "NVLink" */

/* Bytes/s one way: of a GPU within a node, of a NIC between nodes. */
typedef struct sn_cluster_link {
  double line; /* what the vendor says */
  double bus;  /* what a ring reaches: busbw of nccl-tests' all_gather_perf, 0 < bus <= line */
} sn_cluster_link;

typedef struct sn_cluster {
  char name[SN_CLUSTER_NAME];
  char description[SN_CLUSTER_NOTE];
  char gpu[SN_CLUSTER_GPU];    /* for sn_device_load(): the name of a known GPU, or the path of a file, which is read
                                  by whoever asks for the device */
  uint32_t gpus_per_node;      /* 1 .. SN_CLUSTER_MOST_GPUS */
  uint32_t nodes;              /* 1 .. SN_CLUSTER_MOST_NODES */
  uint64_t communicator_bytes; /* of each GPU, what NCCL takes for its communicators outside PyTorch's allocator: an
                                  assumption in every known profile */
  sn_fabric fabric;
  sn_cluster_link node;
  uint32_t nics;       /* of a node; 0: no network is known, and there is one node */
  sn_cluster_link net; /* of each NIC */
} sn_cluster;

/* Loads the known cluster `name`, in which case, blanks, '-' and '_' do not matter ("DGX A100"), or the file where `name`
 * holds a '/' or ends in ".json". SN_BAD_USAGE for an unknown name (the nearest offered), SN_BAD_INPUT with file, line
 * and member, SN_BAD_FILE where it cannot be read. */
sn_status sn_cluster_load(const char *name, sn_cluster *cluster, sn_err *err);

/* Reads the text of a cluster file; `name` is what errors call it. SN_BAD_INPUT with name, line and member,
 * SN_NO_MEMORY. */
sn_status sn_cluster_parse(const char *name, const char *text, size_t bytes, sn_cluster *cluster, sn_err *err);

/* Known clusters by number (below sn_cluster_count()), in alphabetical order of their names. */
uint32_t sn_cluster_count(void);
sn_status sn_cluster_known(uint32_t index, sn_cluster *cluster, sn_err *err);

/* The same cluster of so many nodes. SN_BAD_USAGE, and nothing changed, for none, for more than
 * SN_CLUSTER_MOST_NODES, and for several where no network is known. */
sn_status sn_cluster_set_nodes(sn_cluster *cluster, uint64_t nodes, sn_err *err);

/* All GPUs: the world. */
uint32_t sn_cluster_gpus(const sn_cluster *cluster);

/* On how many nodes the members of a group lie, of the group on most: `ranks` members, each `stride` ranks behind the
 * one before, both at least 1. 8 GPUs a node: 8 ranks, stride 1: 1 node; 8 ranks, stride 4: 4; 4 ranks, stride 8: 4;
 * 3 ranks, stride 1: 2, as ranks 6, 7 and 8 are a group where there is a second node. O(gpus_per_node). */
uint32_t sn_cluster_nodes_of(const sn_cluster *cluster, uint32_t ranks, uint32_t stride);

#endif
