/* Times of transfers; see the header. */
#include "sim/parallel/times.h"

#include "base/checked.h"
#include "sim/cluster/collective.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of the cluster's words a transfer is. */
static sn_collective kind_of(sn_transfer_kind kind) {
  switch (kind) {
  case SN_ALL_GATHER:
    return SN_COLLECTIVE_ALL_GATHER;
  case SN_REDUCE_SCATTER:
    return SN_COLLECTIVE_REDUCE_SCATTER;
  case SN_ALL_REDUCE:
    return SN_COLLECTIVE_ALL_REDUCE;
  case SN_SEND:
  case SN_RECEIVE:
  case SN_TRANSFER_KINDS:
    break;
  }
  return SN_COLLECTIVE_SEND;
}

/* How many ranks apart the members of an axis are. */
static uint32_t stride_of(const sn_mesh *mesh, sn_mesh_axis axis) {
  uint32_t stride = 1;
  for (sn_mesh_axis before = 0; before < axis; before++) stride *= sn_mesh_size(mesh, before);
  return stride;
}

static uint32_t nodes_of(const sn_mesh *mesh, sn_mesh_axis axis, uint32_t ranks, const sn_cluster *cluster) {
  return sn_cluster_nodes_of(cluster, ranks, stride_of(mesh, axis));
}

bool sn_mesh_hop_leaves(const sn_mesh *mesh, const sn_cluster *cluster, uint32_t from, uint32_t to) {
  const uint64_t each = stride_of(mesh, SN_MESH_PP), width = cluster->gpus_per_node;
  assert(width > 0);
  for (uint64_t i = 0; i < each; i++)
    if ((from * each + i) / width != (to * each + i) / width) return true;
  return false;
}

uint32_t sn_mesh_node_gpus(const sn_mesh *mesh, const sn_cluster *cluster) {
  uint32_t world = sn_mesh_world(mesh);
  return world < cluster->gpus_per_node ? world : cluster->gpus_per_node;
}

/* ---- where it lies ---- */

/* Of what the line carries, what a ring reached where it was measured (sim/cluster/profiles/rtx4090x8.json). */
#define PCIE_SHARE 0.82

enum { NODE = 8, COMMUNICATOR = 1 << 30 }; /* assumed, as in all profiles */

static void assume(const sn_mesh *mesh, const sn_device *device, sn_cluster *cluster) {
  double line = device->link_bandwidth[SN_EXTERNAL_HOST];
  *cluster = (sn_cluster){.gpus_per_node = sn_mesh_world(mesh) > NODE ? sn_mesh_world(mesh) : NODE,
                          .nodes = 1,
                          .communicator_bytes = COMMUNICATOR,
                          .fabric = SN_FABRIC_PCIE,
                          .node = {line, PCIE_SHARE * line}};
  if (cluster->gpus_per_node > SN_CLUSTER_MOST_GPUS) cluster->gpus_per_node = SN_CLUSTER_MOST_GPUS;
  snprintf(cluster->gpu, sizeof cluster->gpu, "%s", device->name);
}

/* False: none is known, or an error. */
static bool find_known(const sn_device *device, sn_cluster *cluster, sn_err *err) {
  for (uint32_t i = 0; i < sn_cluster_count() && err->code == SN_OK; i++)
    if (sn_cluster_known(i, cluster, err) == SN_OK && strcmp(cluster->gpu, device->name) == 0) return true;
  return false;
}

/* Whole nodes, unless there is one; of a cluster that says several no more than those. */
static sn_status fill_nodes(const sn_mesh *mesh, sn_cluster *cluster, sn_err *err) {
  uint32_t world = sn_mesh_world(mesh), each = cluster->gpus_per_node;
  if (world <= each) return SN_OK;
  if (cluster->nodes == 1 && sn_cluster_set_nodes(cluster, (world + each - 1) / each, err) != SN_OK) return err->code;
  if (world % each != 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel: %" PRIu32 " GPUs do not fill nodes of %" PRIu32 "; %" PRIu32 " or %" PRIu32 " do",
                   world, each, world / each * each, (world / each + 1) * each);
  if (cluster->nodes >= world / each) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: %" PRIu32 " GPUs, and the %" PRIu32 " nodes of %s have %" PRIu32 "; add --nodes %" PRIu32
                 " where there are as many",
                 world, cluster->nodes, cluster->name, sn_cluster_gpus(cluster), world / each);
}

sn_status sn_mesh_cluster(const sn_mesh *mesh, const sn_cluster *asked, const sn_device *device, sn_cluster *cluster,
                          bool *assumed, sn_err *err) {
  *assumed = false;
  if (*asked->name) {
    sn_device gpu;
    *cluster = *asked;
    if (sn_device_load(cluster->gpu, &gpu, err) != SN_OK) return err->code;
    if (strcmp(gpu.name, device->name) != 0)
      return sn_fail(err, SN_BAD_USAGE, "--cluster %s has GPUs of the kind %s, and %s was asked for; leave --gpu out",
                     cluster->name, gpu.name, device->name);
  } else if (!find_known(device, cluster, err)) {
    if (err->code != SN_OK) return err->code;
    *assumed = true;
    assume(mesh, device, cluster);
  }
  return fill_nodes(mesh, cluster, err);
}

/* ---- times ---- */

void sn_transfers_time(const sn_route *route, const sn_cluster *cluster, int64_t *ns) {
  for (uint32_t i = 0; i < route->n_transfers; i++) {
    const sn_transfer *t = &route->transfers[i];
    ns[i] = 0; /* what stages send takes its time where they play together (sim/stages/) */
    if (t->axis == SN_MESH_PP) continue;
    uint32_t nodes = nodes_of(route->mesh, (sn_mesh_axis)t->axis, t->ranks, cluster);
    const sn_group group = {.ranks = t->ranks, .nodes = cluster->nodes < nodes ? cluster->nodes : nodes};
    ns[i] = sn_collective_ns(cluster, kind_of(t->kind), t->bytes, group);
  }
}

sn_status sn_transfers_cost(const sn_route *route, const sn_cluster *cluster, sn_costs *costs, sn_err *err) {
  int64_t *ns = calloc((size_t)route->n_transfers + 1, sizeof *ns);
  if (!ns) return sn_fail_memory(err);
  sn_transfers_time(route, cluster, ns);
  sn_costs_set_transfers(costs, ns, route->n_transfers, err);
  free(ns);
  return err->code;
}

bool sn_step_reduces_once(const sn_route *route, uint32_t step) {
  const sn_step *s = &route->steps[step];
  if (!sn_step_moves(s) || !route->mesh || route->mesh->sync_each || route->mesh->zero > 1) return false;
  const sn_transfer *t = &route->transfers[s->sum];
  bool reduces = t->kind == SN_REDUCE_SCATTER || t->kind == SN_ALL_REDUCE;
  return reduces && (t->axis == SN_MESH_FSDP || t->axis == SN_MESH_DP);
}

sn_traffic_sums sn_traffic_of(const sn_route *route, uint32_t batches) {
  sn_traffic_sums sums = {0};
  for (uint32_t s = 0; s < route->n_steps; s++) {
    if (route->steps[s].kernel != SN_TRANSFER) continue;
    const sn_transfer *t = &route->transfers[route->steps[s].sum];
    bool once = route->steps[s].pass == SN_UPDATE || sn_step_reduces_once(route, s);
    sums.bytes[t->kind] += (once ? 1 : batches) * t->bytes; /* of tensors, whose sum is within SN_MAX_NET_BYTES */
    sums.count[t->kind]++;
  }
  return sums;
}
