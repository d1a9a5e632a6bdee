/* Fuzz target: a cluster, JSON. Whatever the bytes, there is a cluster or an error that says where; a cluster has what
 * times of collectives divide by, and they have an end. */
#include "tests/fuzz/fuzz.h"

#include "sim/cluster/collective.h"
#include "sim/device/conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void check_link(const sn_cluster_link *link) {
  require(isfinite(link->line) && link->bus > 0 && link->bus <= link->line);
}

static void check_cluster(const sn_cluster *c) {
  require(c->name[0] != '\0' && memchr(c->name, '\0', sizeof c->name) != NULL);
  require(memchr(c->description, '\0', sizeof c->description) != NULL);
  require(c->gpu[0] != '\0' && memchr(c->gpu, '\0', sizeof c->gpu) != NULL);
  require(c->gpus_per_node >= 1 && c->nodes >= 1 && sn_cluster_gpus(c) / c->nodes == c->gpus_per_node);
  check_link(&c->node);
  require(c->nics > 0 || c->nodes == 1);
  if (c->nics > 0) check_link(&c->net);
}

static void check_times(const sn_cluster *c) {
  uint32_t gpus = sn_cluster_gpus(c);
  sn_group all = {gpus, sn_cluster_nodes_of(c, gpus, 1)};
  require(all.nodes == c->nodes);
  for (sn_collective kind = 0; kind < SN_COLLECTIVES; kind++) {
    sn_group group = kind == SN_COLLECTIVE_SEND ? (sn_group){gpus > 1 ? 2 : 1, 1} : all;
    int64_t ns = sn_collective_ns(c, kind, UINT64_MAX, group);
    require(ns >= 0 && (double)ns <= SN_MAX_OP_SECONDS * 1e9 && sn_collective_ns(c, kind, 0, group) <= ns);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_cluster cluster;
  sn_status status = sn_cluster_parse("fuzz.json", (const char *)data, size, &cluster, &err);
  require(status == err.code);
  require(status == SN_OK || strncmp(err.text, "fuzz.json:", 10) == 0);
  if (status != SN_OK) return 0;
  check_cluster(&cluster);
  check_times(&cluster);
  return 0;
}
