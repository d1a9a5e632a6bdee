/* Times of transfers: how long what a rank gathers, reduces and sends takes on a cluster (sim/cluster/collective.h). A
 * mesh lies on it with tp's ranks side by side, then fsdp's, dp's and pp's: the members of an axis are as many ranks
 * apart as the axes before it have together. */
#ifndef SN_SIM_PARALLEL_TIMES_H
#define SN_SIM_PARALLEL_TIMES_H

#include "base/err.h"
#include "sim/cluster/cluster.h"
#include "sim/device/cost.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"

/* The cluster that a mesh lies on: what was asked for (name "": nothing was), of one node with as many as the mesh takes.
 * Where nothing was asked for a known cluster of the device, else one node of such GPUs whose links are
 * those to the host, which *assumed says. SN_BAD_USAGE where the mesh does not fill whole nodes, takes more than a
 * cluster of several has, or the cluster's GPU is another. */
sn_status sn_mesh_cluster(const sn_mesh *mesh, const sn_cluster *asked, const sn_device *device, sn_cluster *cluster,
                          bool *assumed, sn_err *err);

/* Per transfer of a route (route->transfers), in ns. `ns` has room for route->n_transfers. O(transfers). */
void sn_transfers_time(const sn_route *route, const sn_cluster *cluster, int64_t *ns);

/* The same as part of the costs of its steps. */
sn_status sn_transfers_cost(const sn_route *route, const sn_cluster *cluster, sn_costs *costs, sn_err *err);

/* How many GPUs of a mesh a node has, who share its host's memory. */
uint32_t sn_mesh_node_gpus(const sn_mesh *mesh, const sn_cluster *cluster);

/* Whether some rank of a stage sends to another node what it sends to that of the other stage. */
bool sn_mesh_hop_leaves(const sn_mesh *mesh, const sn_cluster *cluster, uint32_t from, uint32_t to);

/* Of an update's batches the last alone does this step: it reduces gradients of all, or copies them for that. */
bool sn_step_reduces_once(const sn_route *route, uint32_t step);

/* What a rank of a route receives of gathers, gives to reductions, and sends; bytes of whole arrays, an iteration of so
 * many batches. */
typedef struct sn_traffic_sums {
  uint64_t bytes[SN_TRANSFER_KINDS];
  uint32_t count[SN_TRANSFER_KINDS];
} sn_traffic_sums;
sn_traffic_sums sn_traffic_of(const sn_route *route, uint32_t batches);

#endif
