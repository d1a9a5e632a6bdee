/* Resident tensors; see the header. */
#include "sim/graph/resident.h"

#include "models/record/lives.h"
#include "models/record/owners.h"
#include "sim/graph/freeze.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/precision.h"

static void show(const sn_resident_walk *w, sn_resident_role role, uint32_t layer, uint32_t port, uint64_t bytes) {
  w->visit(w->self, (sn_resident_tensor){.role = role, .layer = layer, .port = port, .bytes = bytes});
}

static bool is_trained(const sn_resident_walk *w, uint32_t layer) {
  return !w->iteration.inference && sn_freeze_trains(w->iteration.freeze, &w->net->layers[layer]);
}

static bool is_sharded(const sn_resident_walk *w) {
  return sn_mesh_size(&w->iteration.mesh, SN_MESH_FSDP) > 1;
}

/* A rank keeps a part of a parameter. */
static bool is_cut(const sn_resident_walk *w) {
  return is_sharded(w) || sn_mesh_size(&w->iteration.mesh, SN_MESH_TP) > 1;
}

/* Of a parameter's states, and of a copy of it in four bytes that DeepSpeed always makes, a rank of ZeRO has one part of
 * so many, of all parameters side by side. */
static uint64_t zero_part(const sn_resident_walk *w, uint64_t elements) {
  uint32_t ranks = sn_mesh_size(&w->iteration.mesh, SN_MESH_DP);
  return (elements + ranks - 1) / ranks;
}

/* Where backward makes gradients as tensors, they stand only while several batches are added up; of shards, and of what
 * are views of DDP's buckets, as gradients in four bytes are, they are tensors then, too. */
static bool holds_gradient(const sn_resident_walk *w, uint32_t layer) {
  const sn_mesh *mesh = &w->iteration.mesh;
  bool view = mesh->view || (sn_iteration_keeps_masters(w->iteration) && sn_mesh_size(mesh, SN_MESH_DP) > 1);
  if (is_sharded(w) || view || mesh->zero > 1) return false;
  if (w->dialect->declared) return sn_iteration_adds_gradients(w->iteration) && is_trained(w, layer);
  return !w->iteration.inference;
}

static bool is_shared(const sn_net *net, uint32_t layer) {
  for (uint32_t l = layer + 1; l < net->n_layers; l++)
    if (net->layers[l].attr->weights_of == layer) return true;
  return false;
}

/* Gradients of tables that tp divides, and no head shares, are whole where nobody averages them (sim/parallel/tensor.c). */
static bool has_whole_gradient(const sn_resident_walk *w, uint32_t layer) {
  const sn_mesh *mesh = &w->iteration.mesh;
  bool alone = sn_mesh_world(mesh) == sn_mesh_size(mesh, SN_MESH_TP) && !sn_iteration_keeps_masters(w->iteration);
  return is_cut(w) && w->net->layers[layer].op == SN_EMBEDDING && alone && !is_shared(w->net, layer);
}

/* What a rank keeps of a layer's parameters; how many. */
static uint32_t find_shards(const sn_resident_walk *w, uint32_t layer, uint64_t elements[SN_PARAMETER_TENSORS]) {
  sn_cut cuts[SN_PARAMETER_TENSORS];
  uint32_t count = sn_cuts_of(w->net, &w->net->layers[layer], sn_mesh_size(&w->iteration.mesh, SN_MESH_TP), cuts);
  for (uint32_t n = 0; n < count; n++)
    elements[n] = sn_cut_shard(cuts[n], sn_mesh_size(&w->iteration.mesh, SN_MESH_FSDP));
  return count;
}

static uint32_t parameter_tensors(const sn_resident_walk *w, uint32_t layer, uint64_t bytes[SN_PARAMETER_TENSORS]) {
  if (!is_cut(w)) return sn_precision_parameter_tensors(w->iteration.precision, &w->net->layers[layer], bytes);
  uint32_t count = find_shards(w, layer, bytes);
  bool masters = sn_iteration_keeps_masters(w->iteration);
  uint32_t width =
      masters ? sn_precision_parameter_bytes(w->iteration.precision) : sn_iteration_kept_bytes(w->iteration);
  for (uint32_t n = 0; n < count; n++) bytes[n] *= width;
  return count;
}

/* Weights that updates change, in four bytes beside those that are computed with. */
static void show_masters(const sn_resident_walk *w, uint32_t layer) {
  uint64_t elements[SN_PARAMETER_TENSORS];
  bool zero = w->iteration.mesh.zero > 0;
  if (!is_trained(w, layer) || (!zero && !sn_iteration_keeps_masters(w->iteration))) return;
  uint32_t count = find_shards(w, layer, elements);
  for (uint32_t n = 0; n < count; n++)
    show(w, SN_RESIDENT_MASTER, layer, n, sizeof(float) * (zero ? zero_part(w, elements[n]) : elements[n]));
}

static void show_parameters(const sn_resident_walk *w, uint32_t layer) {
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t count = parameter_tensors(w, layer, bytes);
  bool gradient = count > 0 && holds_gradient(w, layer);
  for (uint32_t n = 0; n < count; n++) show(w, SN_RESIDENT_PARAMETER, layer, n, bytes[n]);
  if (has_whole_gradient(w, layer))
    sn_precision_parameter_tensors(w->iteration.precision, &w->net->layers[layer], bytes);
  if (sn_iteration_keeps_masters(w->iteration)) find_shards(w, layer, bytes);
  for (uint32_t n = 0; n < count && sn_iteration_keeps_masters(w->iteration); n++) bytes[n] *= sizeof(float);
  for (uint32_t n = 0; n < count && gradient; n++) show(w, SN_RESIDENT_GRADIENT, layer, n, bytes[n]);
  show_masters(w, layer);
}

/* Of batch norm running mean and variance, and a counter where the dialect is PyTorch's. Where forks copy, masks and
 * saved statistics are no tensors of the graph. */
static void show_buffers(const sn_resident_walk *w, uint32_t index) {
  const sn_layer *layer = &w->net->layers[index];
  bool beside = w->dialect->fork_copies && !w->iteration.inference;
  uint64_t floats = (uint64_t)layer->out.c * sizeof(float);
  if (layer->op != SN_BN) {
    uint64_t bytes = beside ? sn_precision_beside_bytes(w->iteration.precision, layer) : 0;
    if (bytes > 0) show(w, SN_RESIDENT_BUFFER, index, 0, bytes);
    return;
  }
  for (int i = 0; i < 2; i++)
    show(w, SN_RESIDENT_BUFFER, index, 0, sn_precision_of_parameters(w->iteration.precision, floats));
  for (int i = 0; i < 2 && beside; i++) show(w, SN_RESIDENT_BUFFER, index, 0, floats);
  if (w->dialect->eager) show(w, SN_RESIDENT_BUFFER, index, 0, sizeof(int64_t));
}

void sn_resident_walk_states(sn_resident_walk *w, uint32_t layer, uint32_t port) {
  sn_parameter parameters[SN_PARAMETER_TENSORS];
  uint64_t pieces[SN_OPTIMIZER_PIECES];
  sn_optimizer optimizer = sn_optimizer_on(w->iteration.optimizer, w->net);
  if (port >= sn_parameters_of(&w->net->layers[layer], parameters)) return;
  uint64_t shards[SN_PARAMETER_TENSORS];
  bool as_gradient = sn_optimizer_kind(optimizer) == SN_OPTIMIZER_MOMENTUM && has_whole_gradient(w, layer);
  if (is_cut(w) && !as_gradient && find_shards(w, layer, shards) > port)
    parameters[port] = (sn_parameter){.elements = shards[port]};
  uint32_t width = sn_iteration_kept_bytes(w->iteration);
  if (w->iteration.mesh.zero > 0)
    parameters[port] = (sn_parameter){.elements = zero_part(w, parameters[port].elements)};
  uint32_t count = sn_optimizer_pieces(optimizer, &parameters[port], width, pieces);
  bool narrow = count > SN_OPTIMIZER_STATES;
  for (int i = 0; i < SN_OPTIMIZER_TABLES && narrow && !w->tables; i++)
    show(w, SN_RESIDENT_STATE, SN_NONE, 0, SN_OPTIMIZER_TABLE_BYTES);
  w->tables = w->tables || narrow;
  if (sn_optimizer_counts(optimizer)) show(w, SN_RESIDENT_COUNTER, layer, port, sizeof(float));
  for (uint32_t k = 0; k < count; k++) show(w, SN_RESIDENT_STATE, layer, port, pieces[k]);
}

/* A value that stays: a gradient that is zeroed, or what the loop itself holds, as batches. */
static bool is_gradient(const struct sn_recorded *recorded, const sn_record_life *life, uint32_t storage) {
  bool told = sn_record_has_rows(recorded->record);
  return told ? recorded->owners->of[storage] != SN_NONE : life->phase == SN_RECORD_BACKWARD;
}

/* What a recording has before its iteration and behind it. */
static void show_recorded(const sn_resident_walk *w) {
  static const sn_resident_role roles[SN_RECORD_ROLES] = {[SN_RECORD_PARAMETER] = SN_RESIDENT_PARAMETER,
                                                          [SN_RECORD_BUFFER] = SN_RESIDENT_BUFFER,
                                                          [SN_RECORD_GIVEN] = SN_RESIDENT_INPUT,
                                                          [SN_RECORD_STATE] = SN_RESIDENT_STATE,
                                                          [SN_RECORD_VALUE] = SN_RESIDENT_BUFFER};
  const struct sn_recorded *recorded = w->net->recorded;
  const sn_record_life *lives = recorded->lives[!w->dialect->sums_apart];
  for (uint32_t s = 0; s < recorded->record->n_storages; s++) {
    const sn_record_storage *storage = &recorded->record->storages[s];
    uint64_t bytes = sn_record_bytes(recorded->record, s, w->net->batch);
    if (is_sharded(w)) bytes = sn_cut_recorded(recorded, s, bytes, sn_mesh_size(&w->iteration.mesh, SN_MESH_FSDP));
    bool aside = !w->dialect->eager && recorded->aside && recorded->aside[s];
    if ((lives[s].stay != SN_RECORD_RESIDENT && !aside) || bytes == 0) continue;
    sn_resident_role role = roles[storage->role];
    if (storage->role == SN_RECORD_VALUE && is_gradient(recorded, &lives[s], s)) role = SN_RESIDENT_GRADIENT;
    w->visit(w->self, (sn_resident_tensor){.role = role, .layer = SN_NONE, .bytes = bytes, .step = lives[s].first_use});
  }
}

void sn_resident_walk_all(sn_resident_walk *w) {
  if (w->net->recorded) {
    show_recorded(w);
    return;
  }
  bool beside = w->dialect->fork_copies && !w->iteration.inference;
  const sn_mesh *mesh = &w->iteration.mesh; /* of a stage of a pipeline its layers alone, and batches of an update */
  const uint32_t stages = sn_mesh_size(mesh, SN_MESH_PP);
  const uint32_t batches = (mesh->micros > 1 ? mesh->micros : 1) + mesh->idle;
  sn_mesh_parts parts = {0};
  if (stages > 1) parts = sn_mesh_parts_of(w->net, mesh);
  for (uint32_t i = 0; i < w->net->n_layers; i++) {
    if (stages > 1 && sn_mesh_part_next(&parts) % stages != mesh->stage) continue;
    if (w->net->layers[i].parameters > 0) show_parameters(w, i);
    if (beside || w->net->layers[i].op == SN_BN) show_buffers(w, i);
    if (is_trained(w, i))
      for (uint32_t n = 0; n < SN_PARAMETER_TENSORS; n++) sn_resident_walk_states(w, i, n);
  }
  if (mesh->stage == 0)
    show(w, SN_RESIDENT_INPUT, SN_NONE, 0, batches * sn_precision_data_bytes(w->iteration.precision, w->net));
  uint64_t labels = w->dialect->eager ? w->net->wide_label_bytes : w->net->label_bytes;
  bool last = mesh->stage + 1 == stages;
  if (!w->iteration.inference && last) show(w, SN_RESIDENT_LABELS, SN_NONE, 0, batches * labels);
}
