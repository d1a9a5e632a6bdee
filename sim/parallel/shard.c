/* One GPU's part of an iteration; see the header. */
#include "sim/parallel/shard.h"

#include "models/net/modules.h"
#include "models/op/op.h"
#include "models/record/owners.h"
#include "sim/graph/precision.h"
#include "sim/parallel/fsdp.h"

#include <inttypes.h>

const char *sn_shard_refuses(sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  sn_optimizer kind = sn_optimizer_kind(iteration.optimizer);
  bool sharded = sn_mesh_size(mesh, SN_MESH_FSDP) > 1;
  if (iteration.master && iteration.inference)
    return "bf16-master keeps weights in four bytes for updates, and --inference has none; ask for bf16";
  if (sn_mesh_is_one(mesh)) return NULL;
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && sn_precision_is_amp(iteration.precision) &&
      (sharded || mesh->schedule == SN_SCHEDULE_ZB_H1))
    return "autocast of stages (pp) is of schedule=1f1b, gpipe and interleaved, without fsdp; ask for bf16, or for "
           "those";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && sharded && mesh->schedule == SN_SCHEDULE_ZB_H1)
    return "stages of shards (pp with fsdp) are of schedule=1f1b, gpipe and interleaved; by zb-h1 PyTorch 2.15 makes "
           "no gradients of blocks that are resharded, and reshard=no is not simulated of it yet";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && sharded && mesh->reshard > SN_RESHARD_YES)
    return "what stages (pp) keep resharded to fewer ranks is not simulated yet; ask for reshard=yes or reshard=no";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && sharded && mesh->sync_each)
    return "a pipeline (pp) reduces gradients behind its last micro-batch; leave sync=each out";
  if (mesh->zero > 0 && sn_iteration_kept_bytes(iteration) < sizeof(float))
    return "DeepSpeed's zero keeps weights in four bytes beside those of two; ask for bf16-master";
  if (mesh->zero > 0 && sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_DP))
    return "zero beside tp or pp is not simulated yet; ask for fsdp with tp";
  if (iteration.inference) return "fsdp, dp, tp and pp are of training; leave --inference or --parallel out";
  bool plain = kind == SN_OPTIMIZER_SGD || kind == SN_OPTIMIZER_MOMENTUM || kind == SN_OPTIMIZER_ADAM ||
               kind == SN_OPTIMIZER_ADAMW;
  if (!plain) return "of several GPUs optimizers are sgd, momentum, adam and adamw";
  return sn_optimizer_is_loop(iteration.optimizer) ? "of several GPUs optimizers are impl=foreach and impl=fused"
                                                   : NULL;
}

/* Recurrent networks': cuDNN takes them as one buffer, which has to be made where each is gathered by itself. */
static sn_status check_storages(const struct sn_recorded *w, sn_err *err) {
  for (uint32_t p = 0; p < w->record->n_parameters; p++)
    if (w->owners->next[p] != SN_NONE)
      return sn_fail(
          err, SN_BAD_INPUT,
          "%s: parameter %.200s shares a storage with others, as a recurrent network's do, which fsdp is not "
          "simulated with; ask for dp",
          w->record->name, w->record->parameters[p].name);
  return SN_OK;
}

static sn_status check_recording(const struct sn_recorded *w, const sn_mesh *mesh, sn_err *err) {
  const char *name = w->record->name;
  if (w->backwards == 0)
    return sn_fail(err, SN_BAD_INPUT, "%s: its loop does not train, and fsdp and dp are of training", name);
  if (sn_recorded_checkpoints(w))
    return sn_fail(err, SN_BAD_INPUT,
                   "%s: its loop runs blocks again itself, which is not simulated on several GPUs; record it without "
                   "checkpoints, and ask with --strategy pytorch+recompute=units",
                   name);
  if (w->backwards > 1)
    return sn_fail(err, SN_BAD_INPUT,
                   "%s: its loop goes backward %" PRIu32 " times, which is not simulated on several GPUs; record it "
                   "with one backward pass a step",
                   name, w->record->passes > 0 ? w->record->passes : w->backwards);
  if (mesh->zero > 0)
    return sn_fail(err, SN_BAD_INPUT,
                   "%s: zero=1 and zero=2 are not simulated of recordings; ask for fsdp=%" PRIu32 ", or for dp alone",
                   name, sn_mesh_size(mesh, SN_MESH_DP));
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1)
    return sn_fail(err, SN_BAD_INPUT, "%s: a recording is not cut into stages yet; ask for fsdp or dp", name);
  if (w->record->n_parameters == 0 || !sn_record_has_rows(w->record))
    return sn_fail(err, SN_BAD_INPUT,
                   "%s does not say how its parameters can be shared, as recordings of this version do; "
                   "record it again",
                   name);
  return sn_mesh_size(mesh, SN_MESH_FSDP) > 1 ? check_storages(w, err) : SN_OK;
}

/* Weights of 4 bits are bytes of another kind, which fully_shard() refuses. */
static sn_status check(const sn_route *whole, const sn_mesh *mesh, sn_err *err) {
  for (uint32_t l = 0; l < whole->n_layers; l++)
    if (sn_precision_dequantized_bytes(SN_FP32, &whole->layers[l]) > 0)
      return sn_fail(err, SN_BAD_INPUT, "layer %s has weights of 4 bits, which are not shared; ask without --quantize",
                     whole->layers[l].name);
  if (!whole->net->recorded) return SN_OK;
  return check_recording(whole->net->recorded, mesh, err);
}

typedef sn_route *scheme(const sn_route *whole, sn_iteration iteration, sn_err *err);

/* Of those whose ranks have other batches: fsdp has dp's replicas in it. */
static scheme *of_batches(const sn_mesh *mesh) {
  if (sn_mesh_size(mesh, SN_MESH_FSDP) > 1) return sn__fsdp;
  if (mesh->zero > 0) return sn__zero;
  return sn_mesh_size(mesh, SN_MESH_DP) > 1 ? sn__ddp : NULL;
}

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
  if (check(whole, mesh, err) != SN_OK) {
    sn_route_free(whole);
    return NULL;
  }
  if (sn_mesh_size(mesh, SN_MESH_TP) > 1) route = part_by(sn__tp, route, iteration, err);
  if (route && sn_mesh_size(mesh, SN_MESH_PP) > 1) route = part_by(sn__stage, route, iteration, err);
  return route && of_batches(mesh) ? part_by(of_batches(mesh), route, iteration, err) : route;
}

sn_route *sn_shard_stage(const sn_route *known, sn_iteration iteration, sn_err *err) {
  while (known->whole->micros > 0) known = known->whole; /* which dp lies upon */
  sn_route *route = sn__stage(known->whole, iteration, err);
  if (!route) return NULL;
  route->whole = known->whole;
  route->shares_whole = true;
  scheme *make = of_batches(&iteration.mesh);
  return make ? part_by(make, route, iteration, err) : route;
}

/* What PyTorch would have recorded under checkpoints is made once, and its part with it. */
const sn_route *sn_shard_under(const sn_route *route, const sn_record_span *spans, uint32_t n_spans, sn_err *err) {
  if (!route->whole) return sn_route_under(route, spans, n_spans, err);
  sn_route *under = (sn_route *)sn_route_under(route->whole, spans, n_spans, err);
  if (!under || under->of_rank) return under ? under->of_rank : NULL;
  under->of_rank = of_batches(route->mesh)(under, (sn_iteration){.mesh = *route->mesh}, err);
  if (under->of_rank) under->of_rank->whole = under;
  return under->of_rank;
}
