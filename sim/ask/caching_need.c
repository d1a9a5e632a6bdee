/* What PyTorch's allocator makes of a plan; see the header. */
#include "sim/ask/caching_need.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "models/record/record_net.h"
#include "sim/device/device.h"
#include "sim/graph/resident.h"
#include "sim/graph/route.h"
#include "sim/play/caching_map.h"

#include <stdlib.h>

/* ---- what is there beside the plan ---- */

typedef struct blocks {
  const sn_route *route;
  uint64_t context_bytes;
  const sn_options *options;
  uint64_t *before;
  sn_caching_made *made;
  uint32_t n_before, n_made;
  sn_optimizer optimizer;
  uint32_t step; /* that makes what is shown */
} blocks;

enum {
  MOST_BEFORE = 3 * SN_PARAMETER_TENSORS + 5,
  MOST_MADE = SN_PARAMETER_TENSORS * (SN_OPTIMIZER_PIECES + 1)
}; /* blocks of a layer: parameters, gradients, weights in four bytes, buffers; states */

/* Of a later batch, gradients that backward makes are the replay's to add up; those in four bytes are there before. */
static void add_before(void *self, sn_resident_tensor t) {
  blocks *b = self;
  bool replayed = t.role == SN_RESIDENT_GRADIENT && b->route->dialect->declared &&
                  !sn_iteration_keeps_masters(b->options->iteration);
  if (t.role != SN_RESIDENT_STATE && t.role != SN_RESIDENT_COUNTER && !replayed) b->before[b->n_before++] = t.bytes;
}

static void add_made(void *self, sn_resident_tensor t) {
  blocks *b = self;
  if (t.role == SN_RESIDENT_COUNTER && !sn_optimizer_counts_there(b->optimizer)) return;
  b->made[b->n_made++] = (sn_caching_made){b->step, t.bytes};
}

static sn_resident_walk walk_of(blocks *b, sn_resident_visit *visit) {
  return (sn_resident_walk){.net = b->route->net,
                            .dialect = b->route->dialect,
                            .iteration = b->options->iteration,
                            .visit = visit,
                            .self = b};
}

/* A step of what was recorded, in the route. */
static uint32_t moved(const sn_route *route, uint32_t step) {
  return route->moved && step < route->whole->n_steps ? route->moved[step] : step;
}

static void add_recorded_state(void *self, sn_resident_tensor t) {
  blocks *b = self;
  if (t.role == SN_RESIDENT_STATE) b->made[b->n_made++] = (sn_caching_made){moved(b->route, t.step), t.bytes};
}

static int by_step(const void *a, const void *b) {
  const sn_caching_made *x = a, *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The same of a recording: with its first product, and as it uses them. */
static void add_recorded(blocks *b, const sn_device *device) {
  const struct sn_recorded *w = b->route->net->recorded;
  sn_resident_walk walk = walk_of(b, add_recorded_state);
  for (uint32_t i = 0; i < w->n_ops; i++)
    if (w->record->kernels[w->record->ops[w->first_op + i].kernel].flags & SN_RECORD_PRODUCT) {
      b->made[b->n_made++] = (sn_caching_made){moved(b->route, i), device->blas_workspace_bytes};
      break;
    }
  sn_resident_walk_all(&walk);
  qsort(b->made, b->n_made, sizeof *b->made, by_step);
}

/* The workspace of cuBLAS with the first FC; what the optimizer keeps of a parameter with its first update. */
static void add_state(blocks *b, const sn_device *device) {
  const sn_route *r = b->route;
  if (r->net->recorded) {
    add_recorded(b, device);
    return;
  }
  for (uint32_t s = 0; s < r->first_backward; s++)
    if (r->layers[r->steps[s].layer].op == SN_FC) {
      b->made[b->n_made++] = (sn_caching_made){s, device->blas_workspace_bytes};
      break;
    }
  sn_resident_walk walk = walk_of(b, add_made);
  for (b->step = 0; b->step < r->n_steps; b->step++) {
    const sn_step *step = &r->steps[b->step];
    for (uint32_t n = 0; n < SN_PARAMETER_TENSORS && step->pass == SN_UPDATE; n++)
      if (step->kernel == SN_WHOLE || (step->kernel == SN_SCALE_MOMENTUM && step->parameter == n))
        sn_resident_walk_states(&walk, step->layer, n);
  }
}

static void count_block(void *self, sn_resident_tensor t) {
  (void)t;
  ++((blocks *)self)->n_before;
}

/* How many there may be: of layers, or of what a recording has. */
static void count_blocks(blocks *b, size_t *before, size_t *made) {
  *before = MOST_BEFORE * (size_t)b->route->n_layers;
  *made = MOST_MADE * (size_t)b->route->n_layers + SN_OPTIMIZER_TABLES;
  if (!b->route->net->recorded) return;
  sn_resident_walk walk = walk_of(b, count_block);
  sn_resident_walk_all(&walk);
  *before = *made = b->n_before;
  b->n_before = 0;
}

static sn_status make_blocks(blocks *b, const sn_route *route, const sn_device *device, const sn_options *options,
                             sn_err *err) {
  size_t before, made;
  *b = (blocks){.route = route,
                .context_bytes = sn_device_context(device, route->net, true),
                .options = options,
                .optimizer = sn_optimizer_on(options->iteration.optimizer, route->net)};
  count_blocks(b, &before, &made);
  b->before = malloc((before + 2) * sizeof *b->before);
  b->made = malloc((made + 1) * sizeof *b->made); /* and the workspace of cuBLAS */
  if (!b->before || !b->made) return sn_fail_memory(err);
  sn_resident_walk walk = walk_of(b, add_before);
  sn_resident_walk_all(&walk);
  add_state(b, device);
  return SN_OK;
}

static void clear_blocks(blocks *b) {
  free(b->before);
  free(b->made);
}

/* ---- replays ---- */

/* What is added to gradients in four bytes goes with its batch. */
static sn_caching_load load_of(const blocks *b, uint64_t limit) {
  const sn_iteration iteration = b->options->iteration;
  return (sn_caching_load){.limit_bytes = limit,
                           .before = b->before,
                           .n_before = b->n_before,
                           .made = b->made,
                           .n_made = b->n_made,
                           .accumulate = sn_iteration_keeps_masters(iteration) ? 1 : sn_iteration_batches(iteration),
                           .workspaces = b->route->dialect->eager ? SN_CACHING_LEFT_OUT : SN_CACHING_NEEDED,
                           .options = {.expandable_segments = b->options->allocator == SN_ALLOCATOR_EXPANDABLE,
                                       .beside_bytes = b->context_bytes}};
}

static sn_status replay(const sn_plan *plan, const blocks *b, uint64_t limit, sn_caching_replayed *r, sn_err *err) {
  const sn_caching_load load = load_of(b, limit);
  return sn_caching_replay(plan, &load, r, err);
}

/* What the driver gives comes in 2 MiB. */
static sn_status replay_least(const sn_plan *plan, const blocks *b, uint64_t limit, sn_caching_replayed *unlimited,
                              uint64_t *least, sn_err *err) {
  const sn_caching_load load = load_of(b, limit);
  return sn_caching_least(plan, &load, 2 << 20, unlimited, least, err);
}

/* Whether a replay goes the same way where as much is there as it reserves without a limit. */
static bool is_unlimited(const blocks *b, const sn_caching_replayed *unlimited, uint64_t limit) {
  bool addresses_same = b->options->allocator != SN_ALLOCATOR_EXPANDABLE;
  return unlimited->fits && addresses_same && unlimited->figures.reserved_peak <= limit;
}

static void fill_need(const sn_caching_replayed *r, sn_caching_need *need) {
  need->allocated_bytes = r->figures.allocated_peak;
  need->reserved_bytes = r->figures.reserved_peak;
  need->device_bytes = need->context_bytes + r->figures.reserved_peak;
  need->fragmentation = r->fragmentation;
  need->segments = r->figures.segments;
  need->retries = r->figures.retries;
}

static bool has_workspaces(const sn_plan *plan) {
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++)
    if (i->kind == SN_COMPUTE && i->bytes > 0) return true;
  return false;
}

static sn_status replay_with(const sn_plan *plan, const blocks *b, uint64_t limit, sn_caching_replayed *r,
                             sn_err *err) {
  sn_caching_load load = load_of(b, limit);
  load.workspaces = SN_CACHING_OPTIONAL;
  return sn_caching_replay(plan, &load, r, err);
}

/* With all workspaces: what they leave behind may serve where a new segment was asked for without them, so that less is
 * reserved in all. Nothing (fits is false) where there are none, or where they are needed in any case. */
static sn_status replay_whole(const sn_plan *plan, const blocks *b, sn_caching_replayed *whole, sn_err *err) {
  *whole = (sn_caching_replayed){0};
  if (!b->route->dialect->eager || !has_workspaces(plan)) return SN_OK;
  return replay_with(plan, b, SN_CACHING_NO_LIMIT, whole, err);
}

/* With workspaces as far as there is room for them, where they are not in `r` yet; where they cut up what is free so
 * that less than all has room, without. */
static sn_status add_workspaces(const sn_plan *plan, const blocks *b, uint64_t limit, const sn_caching_replayed *whole,
                                sn_caching_replayed *r, sn_err *err) {
  sn_caching_replayed with = {0};
  if (!whole->fits) return SN_OK;
  if (is_unlimited(b, whole, limit) || limit == SN_CACHING_NO_LIMIT)
    with = *whole;
  else
    replay_with(plan, b, limit, &with, err);
  if (err->code == SN_OK && with.fits) *r = with;
  return err->code;
}

/* The less of two ways to run: without workspaces, and with all of them. */
static uint64_t least_of(const blocks *b, uint64_t without, const sn_caching_replayed *whole) {
  return is_unlimited(b, whole, without) ? whole->figures.reserved_peak : without;
}

static uint64_t less_context(uint64_t memory_bytes, uint64_t context) {
  return memory_bytes > context ? memory_bytes - context : 0;
}

sn_status sn_caching_need_of(const sn_plan *plan, const sn_device *device, const sn_options *options,
                             uint64_t memory_bytes, sn_caching_need *need, uint64_t *least_bytes, sn_err *err) {
  blocks b;
  sn_caching_replayed unlimited = {0}, r = {0}, whole = {0};
  uint64_t context = sn_device_context(device, plan->route->net, true), least = 0;
  uint64_t limit = less_context(memory_bytes, context);
  sn_status status = make_blocks(&b, plan->route, device, options, err);
  if (status == SN_OK) status = replay_whole(plan, &b, &whole, err);
  if (status == SN_OK && least_bytes) status = replay_least(plan, &b, limit, &unlimited, &least, err);
  if (is_unlimited(&b, &unlimited, limit))
    r = unlimited;
  else if (status == SN_OK)
    status = replay(plan, &b, limit, &r, err);
  if (is_unlimited(&b, &whole, limit)) r = whole;
  *need = (sn_caching_need){.fits = r.fits, .context_bytes = context, .failed_step = r.fits ? SN_NONE : r.failed_step};
  if (!r.fits && least_bytes)
    r = unlimited;
  else if (status == SN_OK && !r.fits)
    status = replay(plan, &b, SN_CACHING_NO_LIMIT, &r, err);
  if (status == SN_OK) status = add_workspaces(plan, &b, need->fits ? limit : SN_CACHING_NO_LIMIT, &whole, &r, err);
  fill_need(&r, need);
  if (least_bytes) *least_bytes = context + least_of(&b, least, &whole);
  clear_blocks(&b);
  return status;
}

sn_status sn_caching_need_least(const sn_plan *plan, const sn_device *device, const sn_options *options,
                                uint64_t *memory_bytes, sn_err *err) {
  blocks b;
  sn_caching_replayed unlimited, whole = {0};
  uint64_t least = 0;
  sn_status status = make_blocks(&b, plan->route, device, options, err);
  if (status == SN_OK) status = replay_whole(plan, &b, &whole, err);
  if (status == SN_OK) status = replay_least(plan, &b, SN_CACHING_NO_LIMIT, &unlimited, &least, err);
  *memory_bytes = sn_device_context(device, plan->route->net, true) + least_of(&b, least, &whole);
  clear_blocks(&b);
  return status;
}

sn_status sn_caching_need_show(const sn_plan *plan, const sn_device *device, const sn_options *options,
                               uint64_t memory_bytes, sn_timeline *timeline, sn_err *err) {
  blocks b;
  sn_caching_map map = {0};
  uint64_t context = sn_device_context(device, plan->route->net, true);
  uint64_t limit = less_context(memory_bytes, context);
  sn_caching_workspaces most = plan->route->dialect->eager ? SN_CACHING_OPTIONAL : SN_CACHING_NEEDED;
  const struct {
    uint64_t limit;
    sn_caching_workspaces workspaces;
  } ways[] = {{limit, most}, {limit, SN_CACHING_LEFT_OUT}, {SN_CACHING_NO_LIMIT, most}};
  sn_status status = make_blocks(&b, plan->route, device, options, err);
  for (size_t i = 0; i < sizeof ways / sizeof *ways && status == SN_OK && !map.replayed.fits; i++) {
    if (ways[i].workspaces == SN_CACHING_LEFT_OUT && most == SN_CACHING_NEEDED) continue;
    sn_caching_load load = load_of(&b, ways[i].limit);
    load.workspaces = ways[i].workspaces;
    sn_caching_map_clear(&map);
    status = sn_caching_map_make(plan, &load, &map, err);
  }
  if (status == SN_OK && map.replayed.fits) status = sn_timeline_serve(timeline, &map, err);
  sn_caching_map_clear(&map);
  clear_blocks(&b);
  return status;
}

/* ---- costs ---- */

/* Of a dense 3x3 convolution of stride 1 over images, in four bytes: the planes and the filter of Winograd's F(4x4,
 * 3x3), 36 floats for each tile of 4x4 pixels of the output and channel, and for each filter. Others have none; nor
 * have two bytes, where tensor cores multiply. */
static uint64_t library_workspace(const sn_net *net, const sn_layer *layer, sn_precision precision) {
  enum { TILE = 4, TILE_BYTES = 36 * sizeof(float) };
  const sn_attr *a = layer->attr;
  bool has = a->kernel_h == 3 && a->kernel_w == 3 && a->stride_h == 1 && a->stride_w == 1 && a->groups == 1 &&
             layer->planes == 0 && sn_precision_is_wide(precision);
  uint64_t c = sn_layer_input_shape(net, layer, 0).c, k = layer->out.c;
  uint64_t tiles = layer->out.n * sn_ceil_div(layer->out.h, TILE) * sn_ceil_div(layer->out.w, TILE);
  return has ? TILE_BYTES * (tiles * (c + k) + k * c) : 0;
}

/* A choice that nobody but --workspace none makes. */
static sn_costs *costs_without_workspaces(const sn_net *net, const sn_costs *model, sn_err *err) {
  sn_costs *costs = sn_costs_copy(model, net, err);
  for (uint32_t i = 0; costs && i < net->n_layers; i++)
    if (sn_costs_convolves(costs, i)) sn_costs_keep_smallest(costs, i);
  return costs;
}

sn_costs *sn_caching_costs(const sn_net *net, const sn_costs *model, sn_precision precision, sn_workspace workspace,
                           sn_err *err) {
  if (workspace == SN_WORKSPACE_NONE) return costs_without_workspaces(net, model, err);
  uint64_t *workspaces = calloc((size_t)net->n_layers + 1, sizeof *workspaces);
  if (!workspaces) return sn_fail_memory(err), NULL;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_op_of(&net->layers[i])->convolves) workspaces[i] = library_workspace(net, &net->layers[i], precision);
  sn_costs *costs = sn_costs_copy_fastest(model, net, workspaces, err);
  free(workspaces);
  return costs;
}

/* need_of()'s `fits` alone, with no replay more than that takes. */
static sn_status find_fit(const sn_plan *plan, const sn_caching_server *s, bool *fits) {
  blocks b;
  sn_caching_replayed r = {0}, whole = {0};
  uint64_t context = sn_device_context(s->device, plan->route->net, true);
  uint64_t limit = less_context(s->memory_bytes, context);
  sn_status status = make_blocks(&b, plan->route, s->device, s->options, s->err);
  if (status == SN_OK) status = replay(plan, &b, limit, &r, s->err);
  if (status == SN_OK && !r.fits) status = replay_whole(plan, &b, &whole, s->err);
  *fits = r.fits || is_unlimited(&b, &whole, limit);
  clear_blocks(&b);
  return status;
}

sn_status sn_caching_serve(void *server, const sn_plan *plan, bool *fits, uint64_t *least_bytes) {
  const sn_caching_server *s = server;
  sn_caching_need need = {0};
  if (!least_bytes && plan->pool_limit > 0) return find_fit(plan, s, fits);
  sn_status status = sn_caching_need_of(plan, s->device, s->options, s->memory_bytes, &need, least_bytes, s->err);
  *fits = need.fits && plan->pool_limit > 0; /* of no pool at all the least is asked */
  return status;
}
