/* Calls of several GPUs: fully_shard, DistributedDataParallel, parallelize_module; see sim/capacity/calls.h. */
#include "sim/capacity/calls_blocks.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In what gradients are reduced and parameters gathered, where it is not their own width. */
static void add_policy(sn__text *t, const sn_mesh *mesh) {
  if (mesh->reduce_narrow) {
    sn__text_add(t, "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)");
    return;
  }
  sn__text_add(t, "policy = MixedPrecisionPolicy(");
  sn__text_add(t, "    param_dtype=torch.bfloat16, reduce_dtype=torch.float32)");
}

/* Ahead of its own, the parameters of so many blocks. */
static void add_prefetch(sn__text *t, const sn_mesh *mesh, const sn__blocks *groups) {
  if (mesh->prefetch < 2 || groups->count == 0) return;
  sn__text_add(t, "for i, block in enumerate(blocks):");
  sn__text_add(t, "    block.set_modules_to_forward_prefetch(blocks[i + 1:][:%" PRIu32 "])", mesh->prefetch);
  sn__text_add(t, "    block.set_modules_to_backward_prefetch(blocks[:i][::-1][:%" PRIu32 "])", mesh->prefetch);
}

/* Of all axes that have several GPUs, the slowest first; none where one axis is all. */
static void add_device_mesh(sn__text *t, const sn_mesh *mesh) {
  static const struct {
    sn_mesh_axis axis;
    const char *name;
  } axes[] = {{SN_MESH_PP, "\"pp\""}, {SN_MESH_DP, "\"dp\""}, {SN_MESH_FSDP, "\"fsdp\""}, {SN_MESH_TP, "\"tp\""}};
  char sizes[64] = "", names[64] = "";
  uint32_t count = 0;
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
    uint32_t size = sn_mesh_size(mesh, axes[i].axis);
    if (size == 1) continue;
    size_t at = strlen(sizes), beside = strlen(names);
    snprintf(sizes + at, sizeof sizes - at, "%s%" PRIu32, count ? ", " : "", size);
    snprintf(names + beside, sizeof names - beside, "%s%s", count++ ? ", " : "", axes[i].name);
  }
  if (count == 1 && sn_mesh_size(mesh, SN_MESH_TP) == 1) return;
  sn__text_add(t, "from torch.distributed.device_mesh import init_device_mesh");
  const char *more = count > 2 ? "" : "mesh = init_device_mesh(", *in = count > 2 ? "    " : "";
  if (count > 2) sn__text_add(t, "mesh = init_device_mesh(");
  sn__text_add(t, "%s%s\"cuda\", (%s%s), mesh_dim_names=(%s%s))", more, in, sizes, count == 1 ? "," : "", names,
               count == 1 ? "," : "");
}

/* "model.layers.*.mlp.up_proj" of each layer's: parallelize_module's own way to name them all. */
static void write_pattern(const char *path, char *to, size_t room) {
  size_t used = 0;
  for (bool begins = true; *path && used + 1 < room; begins = path[-1] == '.') {
    size_t part = strcspn(path, "."), digits = strspn(path, "0123456789");
    bool number = begins && digits > 0 && digits == part;
    to[used++] = number ? '*' : *path;
    path += number ? part : 1;
  }
  to[used] = '\0';
}

/* What a norm makes is added to others: they are tensors of a rank. */
static bool is_added(const sn_net *net, const sn_layer *layer) {
  uint32_t reader = net->values[layer->first_output].consumer;
  return (layer->op == SN_RMS_NORM || layer->op == SN_LAYER_NORM) && reader != SN_NONE &&
         net->layers[reader].op == SN_JOIN;
}

/* How tp lays out a layer's product or norm, by names that add_styles() gives; NULL: it has nothing that is divided. */
static const char *style_of(const sn_net *net, const sn_mesh *mesh, uint32_t layer, uint32_t head) {
  static const char *const styles[] = {
      [SN_BY_OUTPUTS] = "ColwiseParallel()", [SN_BY_INPUTS] = "rows", [SN_BY_WORDS] = "words"};
  const sn_layer *l = &net->layers[layer];
  if (layer == head) return "head";
  bool norm = l->op == SN_RMS_NORM || l->op == SN_LAYER_NORM;
  if (norm && mesh->sequence_whole) return NULL;
  if (norm) return is_added(net, l) ? "added" : "SequenceParallel()";
  return l->parameters > 0 ? styles[sn_division_of(net, l)] : NULL;
}

static void add_styles(sn__text *t, const sn_mesh *mesh) {
  sn__text_add(t, "from torch.distributed.tensor import Replicate, Shard");
  sn__text_add(t, "from torch.distributed.tensor.parallel import *");
  const char *logits = mesh->loss_whole ? "output_layouts=Replicate()" : "use_local_output=False";
  if (mesh->sequence_whole) {
    sn__text_add(t, "words = RowwiseParallel(input_layouts=Replicate())");
    sn__text_add(t, "rows = RowwiseParallel()");
    sn__text_add(t, "head = ColwiseParallel(%s)", logits);
    return;
  }
  sn__text_add(t, "words = RowwiseParallel(");
  sn__text_add(t, "    input_layouts=Replicate(), output_layouts=Shard(1))");
  sn__text_add(t, "rows = RowwiseParallel(output_layouts=Shard(1))");
  sn__text_add(t, "head = ColwiseParallel(");
  sn__text_add(t, "    input_layouts=Shard(1), %s)", logits);
}

/* What the plan leaves to write. */
static void add_rest_of_plan(sn__text *t, const sn_mesh *mesh) {
  if (mesh->sequence_whole) {
    sn__text_add(t, "# and where columns begin PrepareModuleInput: Replicate() to Replicate(),");
    sn__text_add(t, "#   or the gradient of each product is summed over ranks for itself");
    if (sn_mesh_size(mesh, SN_MESH_DP) == 1 || sn_mesh_size(mesh, SN_MESH_FSDP) > 1)
      sn__text_add(t, "# norms stay plain tensors: an optimizer's group of their own");
  } else {
    sn__text_add(t, "# and where columns begin PrepareModuleInput: Shard(1) to Replicate()");
  }
  if (!mesh->loss_whole) sn__text_add(t, "# with loss_parallel(): around the loss and its backward");
}

/* The last product that is divided by outputs. */
static uint32_t head_of(const sn_net *net) {
  uint32_t head = SN_NONE;
  for (uint32_t l = 0; l < net->n_layers; l++)
    if (net->layers[l].op == SN_FC && sn_division_of(net, &net->layers[l]) == SN_BY_OUTPUTS) head = l;
  return head;
}

/* Ahead of the plan, where a norm is. */
static void add_style_of_added(sn__text *t, const sn_net *net, const sn_mesh *mesh) {
  bool added = false;
  for (uint32_t l = 0; l < net->n_layers; l++) added = added || is_added(net, &net->layers[l]);
  if (added && !mesh->sequence_whole) sn__text_add(t, "added = SequenceParallel(use_local_output=True)");
}

/* Each has weights of its own behind the plan. */
static void tie_again(sn__text *t, const sn_route *route, uint32_t head) {
  uint32_t table = head == SN_NONE ? 0 : route->layers[head].attr->weights_of;
  if (table == 0 || !sn_route_module(route, head) || !sn_route_module(route, table)) return;
  sn__text_add(t, "model.%s.weight = model.%s.weight", sn_route_module(route, head), sn_route_module(route, table));
}

/* The plan of parallelize_module, a line for all modules of a name. What lies between a norm and the products that read
 * it is whole: that is for the modules that have those products to say, which the network does not know. */
static void add_tensor_parallel(sn__text *t, const sn_route *route, const sn_mesh *mesh) {
  char pattern[SN__CALLS_PATH], line[2 * SN__CALLS_PATH];
  add_styles(t, mesh);
  add_style_of_added(t, route->net, mesh);
  sn__text_add(t, "parallelize_module(model, mesh[\"tp\"], {");
  uint32_t first = t->count, head = head_of(route->net);
  for (uint32_t l = 0; l < route->net->n_layers; l++) {
    const char *path = sn_route_module(route, l), *style = style_of(route->net, mesh, l, head);
    bool known = !path || !style;
    if (known) continue;
    write_pattern(path, pattern, sizeof pattern);
    snprintf(line, sizeof line, "    \"%s\": %s,", pattern, style);
    for (uint32_t i = first; i < t->count && !known; i++) known = strcmp(t->lines[i], line) == 0;
    if (!known) sn__text_add(t, "%s", line);
  }
  sn__text_add(t, "})");
  tie_again(t, route, head);
  add_rest_of_plan(t, mesh);
}

/* The axes that shards lie on, where there are others. */
static const char *shards_mesh(const sn_mesh *mesh) {
  bool replicas = sn_mesh_size(mesh, SN_MESH_DP) > 1;
  bool others = sn_mesh_size(mesh, SN_MESH_TP) > 1 || sn_mesh_size(mesh, SN_MESH_PP) > 1;
  if (others) return replicas ? ", mesh=mesh[\"dp\", \"fsdp\"]" : ", mesh=mesh[\"fsdp\"]";
  return replicas ? ", mesh=mesh" : "";
}

/* What blocks and the rest are told alike, ", mesh=mesh, mp_policy=policy", and of blocks when they are gathered again. */
static void write_how(const sn_mesh *mesh, bool master, bool last, char *all, char *block, size_t room) {
  bool stays = mesh->reshard == SN_RESHARD_NO || last;
  snprintf(all, room, "%s%s", shards_mesh(mesh), master ? ", mp_policy=policy" : "");
  if (stays)
    snprintf(block, room, "%s, reshard_after_forward=False", all);
  else if (mesh->reshard > SN_RESHARD_YES)
    snprintf(block, room, "%s, reshard_after_forward=%" PRIu32, all, mesh->reshard);
  else
    snprintf(block, room, "%s", all);
}

static void add_fully_shard(sn__text *t, const sn_mesh *mesh, bool master, const sn__blocks *groups) {
  char all[80], block[120];
  sn__text_add(t, "from torch.distributed.fsdp import fully_shard%s", master ? ", MixedPrecisionPolicy" : "");
  if (master) add_policy(t, mesh);
  bool ahead = mesh->prefetch > 1 && groups->count > 0;
  if (ahead) sn__text_add(t, "blocks = []");
  for (int last = 0; last < 2; last++) {
    if (groups->count == groups->chosen && !last) continue;
    if (groups->chosen == 0 && last) continue;
    write_how(mesh, master, last, all, block, sizeof all);
    sn__text_add_loop(t, groups, last);
    sn__text_add(t, "    fully_shard(block%s)", block);
    if (ahead) sn__text_add(t, "    blocks.append(block)");
  }
  write_how(mesh, master, false, all, block, sizeof all);
  add_prefetch(t, mesh, groups);
  sn__text_add(t, "fully_shard(model%s)", all);
}

/* What DistributedDataParallel is told beside the module: ", gradient_as_bucket_view=True, device_mesh=mesh["dp"]". */
static void write_replicas(const sn_mesh *mesh, char *to, size_t room) {
  char bucket[40] = "";
  uint64_t bytes = mesh->bucket_bytes;
  bool others = sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_DP);
  if (bytes != 0 && bytes != SN_MESH_BUCKET) snprintf(bucket, sizeof bucket, ", bucket_cap_mb=%" PRIu64, bytes >> 20);
  snprintf(to, room, "%s%s%s", mesh->view ? ", gradient_as_bucket_view=True" : "", bucket,
           others ? ", device_mesh=mesh[\"dp\"]" : "");
}

static void add_ddp(sn__text *t, const sn_mesh *mesh) {
  char how[120];
  write_replicas(mesh, how, sizeof how);
  sn__text_add(t, "from torch.nn.parallel import DistributedDataParallel");
  if (!mesh->view) sn__text_add(t, "model = DistributedDataParallel(model%s)", how);
  if (!mesh->view) return;
  sn__text_add(t, "model = DistributedDataParallel(");
  sn__text_add(t, "    model%s)", how);
}

/* The model's optimizer is handed over, and steps by it. */
static void add_zero(sn__text *t, const sn_iteration *iteration) {
  uint32_t batches = sn_iteration_batches(*iteration);
  sn__text_add(t, "import deepspeed");
  sn__text_add(t, "config = {\"zero_optimization\": {\"stage\": %" PRIu32 "},", iteration->mesh.zero);
  if (iteration->precision == SN_BF16) sn__text_add(t, "          \"bf16\": {\"enabled\": True},");
  if (batches > 1) sn__text_add(t, "          \"gradient_accumulation_steps\": %" PRIu32 ",", batches);
  sn__text_add(t, "          \"train_micro_batch_size_per_gpu\": batch}");
  sn__text_add(t, "model, optimizer, _, _ = deepspeed.initialize(");
  sn__text_add(t, "    model=model, optimizer=optimizer, config=config)");
  sn__text_add(t, "# model.backward(loss); model.step()");
}

/* Groups of parameters as blocks; the last is chosen where it is told otherwise than the others. */
static sn_status find_groups(const sn__blocks *blocks, const sn_mesh *mesh, sn__blocks *groups, sn_err *err) {
  const sn_route *route = blocks->route;
  uint32_t count = route->n_groups ? route->n_groups - 1 : 0; /* without the root */
  *groups = (sn__blocks){.route = route, .adapted = blocks->adapted, .count = count};
  groups->all = calloc((size_t)count + 1, sizeof *groups->all);
  if (!groups->all) return sn_fail_memory(err);
  for (uint32_t i = 0; i < count; i++) groups->all[i] = (sn__block){.path = route->groups[i].name, .steps = 1};
  if (mesh->keep_last && mesh->reshard != SN_RESHARD_NO && count > 0) groups->all[count - 1].rerun = groups->chosen = 1;
  return SN_OK;
}

/* Behind the backward that makes a gradient whole, of an update's last batch. */
static void add_reduction(sn__text *t, const sn_iteration *iteration) {
  const sn_mesh *mesh = &iteration->mesh;
  const uint32_t batches = sn_iteration_batches(*iteration);
  const bool tensors = sn_mesh_size(mesh, SN_MESH_TP) > 1;
  if (batches > 1) sn__text_add(t, "        if next(seen) %% %" PRIu32 ": return", batches);
  sn__text_add(t, "        works.append(dist.all_reduce(");
  sn__text_add(t, "            m.grad%s, dist.ReduceOp.AVG, async_op=True%s))", tensors ? ".to_local()" : "",
               sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_DP) ? ", group=dp" : "");
}

/* A schedule of stages divides .grad by its micro-batches at the end, and finds none. */
void sn__calls_add_masters(sn__text *t, sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  const uint32_t batches = sn_iteration_batches(iteration);
  const bool reduced = sn_mesh_size(mesh, SN_MESH_DP) > 1, staged = sn_mesh_size(mesh, SN_MESH_PP) > 1;
  const bool counts = reduced && batches > 1, others = sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_DP);
  if (reduced) sn__text_add(t, "import torch.distributed as dist%s", counts ? "; from itertools import count" : "");
  if (reduced && others) sn__text_add(t, "dp = mesh[\"dp\"].get_group()");
  if (reduced) sn__text_add(t, "works = []");
  sn__text_add(t, "params = [p for p in model.parameters() if p.requires_grad]");
  sn__text_add(t, "masters = [p.detach().float() for p in params]");
  sn__text_add(t, "for p, m in zip(params, masters):");
  sn__text_add(t, "    m.grad = torch.zeros_like(m)");
  sn__text_add(t, "    def add(p, m=m%s):", counts ? ", seen=count(1)" : "");
  if (staged)
    sn__text_add(t, "        m.grad.add_(p.grad, alpha=1 / %" PRIu32 ")", batches);
  else
    sn__text_add(t, "        m.grad += p.grad");
  sn__text_add(t, "        p.grad = None");
  if (reduced) add_reduction(t, &iteration);
  sn__text_add(t, "    p.register_post_accumulate_grad_hook(add)");
}

void sn__calls_add_masters_update(sn__text *t, sn_iteration iteration) {
  sn__text_add(t, "# behind an update's backward:");
  if (sn_mesh_size(&iteration.mesh, SN_MESH_DP) > 1) {
    sn__text_add(t, "for work in works: work.wait()");
    sn__text_add(t, "works.clear()");
  }
  sn__text_add(t, "optimizer.step(); optimizer.zero_grad(set_to_none=False)");
  sn__text_add(t, "with torch.no_grad(): torch._foreach_copy_(params, masters)");
}

sn_status sn__calls_add_mesh(sn__text *t, sn_iteration iteration, const sn__blocks *blocks, sn_err *err) {
  const sn_mesh *mesh = &iteration.mesh;
  bool sharded = sn_mesh_size(mesh, SN_MESH_FSDP) > 1, several = sn_iteration_accumulates(iteration);
  bool replicated = sn_mesh_size(mesh, SN_MESH_DP) > 1 && !sharded && mesh->zero == 0 &&
                    !sn_iteration_keeps_masters(iteration); /* which reduces itself */
  sn__blocks groups = {0};
  add_device_mesh(t, mesh);
  if (sn_mesh_size(mesh, SN_MESH_TP) > 1) add_tensor_parallel(t, blocks->route, mesh);
  if (replicated) add_ddp(t, mesh);
  if (mesh->zero > 0) add_zero(t, &iteration);
  if (sharded && find_groups(blocks, mesh, &groups, err) == SN_OK) add_fully_shard(t, mesh, iteration.master, &groups);
  if (several && replicated) sn__text_add(t, "# all batches of an update but the last: with model.no_sync():");
  if (several && sharded && !mesh->sync_each)
    sn__text_add(t, "# model.set_requires_gradient_sync(False), but for an update's last batch");
  sn__blocks_clear(&groups);
  return err->code;
}

/* ---- pipelines ---- */

/* The modules with which the second part and those behind it begin, in lines of 80 columns. */
static void add_begins(sn__text *t, const sn_net *net, const sn_mesh *mesh) {
  char line[SN__CALLS_PATH + 80] = "begins = [";
  sn_mesh_parts at = sn_mesh_parts_of(net, mesh);
  for (uint32_t l = 0, last = 0; l < net->n_layers; l++) {
    uint32_t part = sn_mesh_part_next(&at);
    if (part == last) continue;
    const char *block = net->modules ? net->modules[l].block ? net->modules[l].block : net->modules[l].path : NULL;
    size_t used = strlen(line);
    if (used + strlen(block ? block : net->layers[l].name) + 6 > 66) {
      sn__text_add(t, "%s", line);
      used = (size_t)snprintf(line, sizeof line, "   ");
    }
    snprintf(line + used, sizeof line - used, "%s\"%s\"%s", used > 10 || used == 3 ? " " : "",
             block ? block : net->layers[l].name, part + 1 < at.parts ? "," : "]");
    last = part;
  }
  sn__text_add(t, "%s", line);
}

/* The paths of the modules that blocks are children of, as a tuple of Python; "" where the network has no blocks. */
static void write_parents(const sn_net *net, char *to, size_t room) {
  char parent[SN__CALLS_PATH];
  size_t used = (size_t)snprintf(to, room, "(");
  for (uint32_t l = 0; l < net->n_layers; l++) {
    const char *block = net->modules ? net->modules[l].block : NULL, *dot = block ? strrchr(block, '.') : NULL;
    if (!block) continue;
    int written = snprintf(parent, sizeof parent, "\"%.*s\", ", dot ? (int)(dot - block) : 0, block);
    bool fits = written > 0 && (size_t)written < sizeof parent && used + (size_t)written < room;
    if (!fits || strstr(to, parent)) continue;
    memcpy(to + used, parent, (size_t)written + 1);
    used += (size_t)written;
  }
  if (used == 1) *to = '\0';
  if (used > 1) memcpy(to + used - 1, ")", 2);
}

/* fully_shard() of each block of each part, and of the part. What was traced in two bytes computes in them. */
static void add_sharded_stages(sn__text *t, const sn_net *net, sn_iteration iteration) {
  char all[80], block[120], parents[SN__CALLS_PATH];
  const sn_mesh *mesh = &iteration.mesh;
  write_how(mesh, iteration.master, false, all, block, sizeof all);
  write_parents(net, parents, sizeof parents);
  sn__text_add(t, "from torch.distributed.fsdp import fully_shard%s", iteration.master ? ", MixedPrecisionPolicy" : "");
  if (iteration.master) add_policy(t, mesh);
  sn__text_add(t, "for stage in stages:");
  sn__text_add(t, "    part = stage.submod");
  if (iteration.master) sn__text_add(t, "    for p in part.parameters(): p.data = p.data.float()");
  if (*parents) {
    sn__text_add(t, "    for name, block in list(part.named_modules()):");
    sn__text_add(t, "        if name.rpartition(\".\")[0] in %s:", parents);
    sn__text_add(t, "            fully_shard(");
    sn__text_add(t, "                block%s)", block);
  } else {
    sn__text_add(t, "    for layer in list(part.modules()):");
    sn__text_add(t, "        own = list(layer.parameters(recurse=False))");
    sn__text_add(t, "        if own and layer is not part:");
    sn__text_add(t, "            fully_shard(");
    sn__text_add(t, "                layer%s)", block);
  }
  sn__text_add(t, "    fully_shard(part%s)", all);
}

/* A stage of a trace asks its module for the trace. Halves of backward call none of the reducer's hooks. */
static void add_replicated_stages(sn__text *t, const sn_mesh *mesh) {
  char how[120];
  if (mesh->schedule == SN_SCHEDULE_ZB_H1) {
    sn__text_add(t, "# dp: by this schedule DistributedDataParallel reduces the first stage's");
    sn__text_add(t, "#   gradients alone (PyTorch 2.15): reduce the others' behind schedule.step");
    return;
  }
  write_replicas(mesh, how, sizeof how);
  sn__text_add(t, "from torch.nn.parallel import DistributedDataParallel");
  sn__text_add(t, "for stage in stages:");
  sn__text_add(t, "    part = stage.submod");
  sn__text_add(t, "    stage.submod = DistributedDataParallel(");
  sn__text_add(t, "        part%s)", how);
  sn__text_add(t, "    stage.submod.graph = part.graph  # which the stage reads");
}

/* How other axes share what the stages of a rank have. */
static void add_shared_stages(sn__text *t, const sn_net *net, sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  if (sn_mesh_size(mesh, SN_MESH_TP) > 1) {
    sn__text_add(t, "# tp: parallelize_module takes no module of a trace, and a model that it has");
    sn__text_add(t, "#   divided is not traced (PyTorch 2.15): divide stages made by hand");
  }
  if (sn_mesh_size(mesh, SN_MESH_FSDP) > 1)
    add_sharded_stages(t, net, iteration);
  else if (sn_mesh_size(mesh, SN_MESH_DP) > 1 && !sn_iteration_keeps_masters(iteration))
    add_replicated_stages(t, mesh);
}

/* The number at the end of a block's path, behind its parent's; UINT32_MAX: there is none. */
static uint32_t number_of(const char *path, size_t *parent) {
  const char *dot = strrchr(path, '.'), *end = dot ? dot + 1 : path;
  *parent = (size_t)(end - path);
  bool digits = *end && strspn(end, "0123456789") == strlen(end) && strlen(end) < 9;
  return digits ? (uint32_t)strtoul(end, NULL, 10) : UINT32_MAX;
}

/* Names of blocks that run again: those that are numbered one behind the other in one line. */
static void add_names_again(sn__text *t, const sn__blocks *b) {
  for (uint32_t i = 0, next; i < b->count; i = next) {
    size_t parent, other;
    const char *path = b->all[i].path;
    const uint32_t first = number_of(path, &parent);
    uint32_t end = first;
    next = i + 1;
    if (!sn__block_is_chosen(&b->all[i])) continue;
    while (first != UINT32_MAX && next < b->count && sn__block_is_chosen(&b->all[next]) &&
           number_of(b->all[next].path, &other) == end + 1 && other == parent &&
           strncmp(path, b->all[next].path, parent) == 0)
      end++, next++;
    if (end > first)
      sn__text_add(t, "again += [f\"%.*s{i}\" for i in range(%" PRIu32 ", %" PRIu32 ")]", (int)parent, path, first,
                   end + 1);
    else
      sn__text_add(t, "again += [\"%s\"]", path);
  }
}

/* A trace of the model has no checkpoints left, so they are made of its parts. */
static void add_checkpointed_stages(sn__text *t, const sn__blocks *b) {
  if (b->chosen == 0) {
    sn__text_add(t, "# checkpoint what runs again within stage.submod: a trace keeps no checkpoints");
    return;
  }
  sn__text_add(t, "from functools import partial; from torch.utils.checkpoint import checkpoint");
  sn__text_add(t, "again = []");
  add_names_again(t, b);
  sn__text_add(t, "for stage in stages:");
  sn__text_add(t, "    for name, block in stage.submod.named_modules():");
  sn__text_add(t, "        if name in again: block.forward = partial(");
  sn__text_add(t, "            checkpoint, block.forward, use_reentrant=False)");
}

static void add_build(sn__text *t, const sn_mesh *mesh) {
  const uint32_t chunks = sn_mesh_chunks(mesh), stages = sn_mesh_size(mesh, SN_MESH_PP);
  const bool shared = sn_mesh_world(mesh) > stages;
  const char *group = shared ? ", mesh[\"pp\"].get_group()" : "";
  if (shared) sn__text_add(t, "rank = mesh.get_local_rank(\"pp\")");
  if (chunks > 1) {
    sn__text_add(t, "stages = [pipe.build_stage(rank + %" PRIu32 " * i, device%s)", stages, group);
    sn__text_add(t, "          for i in range(%" PRIu32 ")]", chunks);
  } else {
    sn__text_add(t, "stages = [pipe.build_stage(rank, device%s)]", group);
  }
}

void sn__calls_add_pipeline(sn__text *t, const sn_net *net, sn_iteration iteration, const sn__blocks *again) {
  const sn_mesh *mesh = &iteration.mesh;
  uint32_t chunks = sn_mesh_chunks(mesh);
  const char *schedule = chunks > 1                            ? "ScheduleInterleaved1F1B"
                         : mesh->schedule == SN_SCHEDULE_GPIPE ? "ScheduleGPipe"
                         : mesh->schedule == SN_SCHEDULE_ZB_H1 ? "ScheduleInterleavedZeroBubble"
                                                               : "Schedule1F1B";
  bool all = chunks > 1 || mesh->schedule == SN_SCHEDULE_ZB_H1;
  if (sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_PP)) add_device_mesh(t, mesh);
  sn__text_add(t, "from torch.distributed.pipelining import pipeline, SplitPoint");
  sn__text_add(t, "from torch.distributed.pipelining import %s", schedule);
  add_begins(t, net, mesh);
  if (!net->modules) sn__text_add(t, "# the network's own names: write your model's");
  sn__text_add(t, "split = {path: SplitPoint.BEGINNING for path in begins}");
  sn__text_add(t, "pipe = pipeline(model, mb_args=(x,), split_spec=split)");
  add_build(t, mesh);
  if (again) add_checkpointed_stages(t, again);
  add_shared_stages(t, net, iteration);
  sn__text_add(t, "model = torch.nn.ModuleList([s.submod for s in stages])");
  sn__text_add(t, "schedule = %s(", schedule);
  sn__text_add(t, "    %s, n_microbatches=%" PRIu32 ", loss_fn=loss)", all ? "stages" : "stages[0]",
               sn_iteration_batches(iteration));
  sn__text_add(t, "# then schedule.step(.., return_outputs=False)");
}
