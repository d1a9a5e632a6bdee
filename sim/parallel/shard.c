/* One GPU's part of an iteration; see the header. */
#include "sim/parallel/shard.h"

#include "models/net/modules.h"
#include "models/op/op.h"
#include "sim/graph/precision.h"
#include "sim/parallel/fsdp.h"

#include <stdio.h>

const char *sn_shard_refuses(sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  sn_optimizer kind = sn_optimizer_kind(iteration.optimizer);
  bool sharded = sn_mesh_size(mesh, SN_MESH_FSDP) > 1;
  if (iteration.master && !sharded)
    return "bf16-master keeps shards in four bytes, and there are none; add --parallel fsdp=8, or ask for bf16";
  if (sn_mesh_is_one(mesh)) return NULL;
  if (sn_mesh_size(mesh, SN_MESH_TP) > 1) return "tensor parallel (tp) is not simulated yet; ask for fsdp or dp";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && sharded)
    return "pipelines (pp) of shards (fsdp) are not simulated yet; ask for pp with dp, or for fsdp";
  if (mesh->zero > 0) return "DeepSpeed's zero is not simulated yet; fsdp=N is its stage 3";
  if (iteration.inference) return "fsdp and dp are of training; leave --inference or --parallel out";
  bool plain = kind == SN_OPTIMIZER_SGD || kind == SN_OPTIMIZER_MOMENTUM || kind == SN_OPTIMIZER_ADAM ||
               kind == SN_OPTIMIZER_ADAMW;
  if (!plain) return "of several GPUs optimizers are sgd, momentum, adam and adamw";
  return sn_optimizer_is_loop(iteration.optimizer) ? "of several GPUs optimizers are impl=foreach and impl=fused"
                                                   : NULL;
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

/* The part by a scheme, which takes the whole over. */
static sn_route *part_by(scheme *make, sn_route *whole, sn_iteration iteration, sn_err *err) {
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
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1) route = part_by(sn__stage, route, iteration, err);
  if (route && sn_mesh_size(mesh, SN_MESH_FSDP) > 1) return part_by(sn__fsdp, route, iteration, err);
  if (route && sn_mesh_size(mesh, SN_MESH_DP) > 1) return part_by(sn__ddp, route, iteration, err);
  return route;
}
