/* The time of a collective; see the header. The constants are NCCL's own, of src/graph/tuning.cc before it knew
 * NVLS (baseLat and hwLat of the ring): microseconds for a collective, for a step within a node by its fabric, and for
 * one between nodes. docs/parallel.md says why not those of newer versions. */
#include "sim/cluster/collective.h"

#include "sim/device/conv.h"

#include <assert.h>
#include <math.h>

/* One of NCCL's protocols. */
typedef struct protocol {
  double base_us;
  double step_us[SN_FABRICS]; /* within a node */
  double net_us;              /* between two */
  double far;                 /* steps within a node are so much longer where there are several */
  double bus;                 /* what of the bus it reaches */
} protocol;

static const protocol simple = {8.4, {[SN_FABRIC_NVLINK] = 3.4, [SN_FABRIC_PCIE] = 5.7}, 9.6, 1, 1};
/* Half of what it transfers are flags, and a write is of 8 bytes. */
static const protocol low_latency = {3.6, {[SN_FABRIC_NVLINK] = 0.47, [SN_FABRIC_PCIE] = 1.0}, 2.7, 1.8, 0.25};

const char *sn_collective_name(sn_collective kind) {
  static const char *const names[SN_COLLECTIVES] = {
#define NAME(kind, name) name,
      SN_COLLECTIVE_LIST(NAME)
#undef NAME
  };
  return names[kind];
}

double sn_collective_bus(const sn_cluster *cluster, sn_group group) {
  if (group.nodes <= 1) return cluster->node.bus;
  assert(cluster->nics > 0);
  double nics = fmin(cluster->nics, cluster->gpus_per_node) / cluster->gpus_per_node; /* of a GPU */
  uint32_t members = group.ranks / group.nodes;                                       /* of the node with fewest */
  return fmin(cluster->node.bus, nics * members * cluster->net.bus);
}

static double ring_us(const sn_cluster *cluster, const protocol *how, double times, double bytes, sn_group group) {
  double between = times * (group.nodes - 1), within = times * (group.ranks - 1) - between;
  double far = group.nodes > 1 ? how->far : 1, bus = how->bus * sn_collective_bus(cluster, group);
  return how->base_us + within * far * how->step_us[cluster->fabric] + between * how->net_us +
         bytes * times * (group.ranks - 1) / group.ranks / bus * 1e6;
}

static double send_us(const sn_cluster *cluster, double bytes, sn_group group) {
  double step = group.nodes > 1 ? simple.net_us : simple.step_us[cluster->fabric];
  return step + bytes / sn_collective_bus(cluster, group) * 1e6;
}

int64_t sn_collective_ns(const sn_cluster *cluster, sn_collective kind, uint64_t bytes, sn_group group) {
  double us, times = kind == SN_COLLECTIVE_ALL_REDUCE ? 2 : 1;
  assert(group.ranks >= 1 && group.nodes >= 1 && group.nodes <= group.ranks);
  assert(kind != SN_COLLECTIVE_SEND || group.ranks <= 2);
  if (group.ranks == 1) return 0;
  if (kind == SN_COLLECTIVE_SEND)
    us = send_us(cluster, (double)bytes, group);
  else
    us = fmin(ring_us(cluster, &simple, times, (double)bytes, group),
              ring_us(cluster, &low_latency, times, (double)bytes, group));
  return llround(fmin(us, SN_MAX_OP_SECONDS * 1e6) * 1e3);
}
