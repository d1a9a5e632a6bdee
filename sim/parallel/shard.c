/* One GPU's part of an iteration; see the header. */
#include "sim/parallel/shard.h"

#include "models/net/modules.h"
#include "models/op/op.h"
#include "sim/graph/precision.h"
#include "sim/parallel/fsdp.h"

#include <stdio.h>

const char *sn_shard_refuses(sn_dialect_id dialect, sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  sn_optimizer kind = sn_optimizer_kind(iteration.optimizer);
  if (sn_mesh_is_one(mesh))
    return iteration.master
               ? "bf16-master keeps shards in four bytes, and one GPU has none; ask with --parallel fsdp=8, or for bf16"
               : NULL;
  if (dialect != SN_DIALECT_PYTORCH) return "several GPUs are PyTorch's: ask for pytorch, or pytorch+recompute=units";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1) return "pipelines (pp) are not simulated yet; ask for fsdp or dp";
  if (iteration.inference) return "fsdp, dp and tp are of training; leave --inference or --parallel out";
  bool plain = kind == SN_OPTIMIZER_SGD || kind == SN_OPTIMIZER_MOMENTUM || kind == SN_OPTIMIZER_ADAM ||
               kind == SN_OPTIMIZER_ADAMW;
  if (!plain) return "of several GPUs optimizers are sgd, momentum, adam and adamw";
  if (sn_optimizer_is_loop(iteration.optimizer)) return "of several GPUs optimizers are impl=foreach and impl=fused";
  if (iteration.master && sn_mesh_size(mesh, SN_MESH_FSDP) == 1)
    return "bf16-master is of shards: ask with fsdp=8, or for bf16";
  return NULL;
}

/* Weights of 4 bits are bytes of another kind, which fully_shard() refuses. */
static sn_status check(const sn_route *whole, sn_err *err) {
  for (uint32_t l = 0; l < whole->n_layers; l++)
    if (sn_precision_dequantized_bytes(SN_FP32, &whole->layers[l]) > 0)
      return sn_fail(err, SN_BAD_INPUT, "layer %s has weights of 4 bits, which are not shared; ask without --quantize",
                     whole->layers[l].name);
  if (whole->net->recorded)
    return sn_fail(err, SN_BAD_INPUT,
                   "%s is a recording, which is not simulated on several GPUs yet; ask about a "
                   "network by name",
                   whole->name);
  return SN_OK;
}

typedef sn_route *scheme(const sn_route *whole, sn_iteration iteration, sn_err *err);

/* What a scheme makes of a route, which that then owns; NULL after an error. */
static sn_route *apply(scheme *make, sn_route *whole, sn_iteration iteration, sn_err *err) {
  sn_route *route = make(whole, iteration, err);
  if (route)
    route->whole = whole;
  else
    sn_route_free(whole);
  return route;
}

sn_route *sn_shard(sn_route *whole, sn_iteration iteration, sn_err *err) {
  const sn_mesh *mesh = &iteration.mesh;
  sn_route *route = whole;
  if (sn_mesh_is_one(mesh)) return whole;
  if (check(whole, err) != SN_OK) {
    sn_route_free(whole);
    return NULL;
  }
  if (sn_mesh_size(mesh, SN_MESH_TP) > 1) route = apply(sn__tp, route, iteration, err);
  if (route && sn_mesh_size(mesh, SN_MESH_FSDP) > 1) return apply(sn__fsdp, route, iteration, err);
  return route && sn_mesh_size(mesh, SN_MESH_DP) > 1 ? apply(sn__ddp, route, iteration, err) : route;
}
