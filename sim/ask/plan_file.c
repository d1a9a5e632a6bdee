/* Plan files; see the header. */
#include "sim/ask/plan_file.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "models/record/checkpoint.h"
#include "models/zoo/zoo.h"
#include "sim/ask/caching_need.h"
#include "sim/ask/corun_plans.h"
#include "sim/ask/result.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"
#include "sim/play/device_model.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/units.h"

#include <stdlib.h>
#include <string.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

/* Of the text, which it takes over; NULL: none was read. */
static sn_plan_file *file_of(sn_json_lists *text, sn_err *err) {
  sn_plan_file *file = text ? calloc(1, sizeof *file) : NULL;
  if (text && !file) sn_fail_memory(err);
  if (file && sn_plan_read_head(text, &file->head, err) == SN_OK) {
    file->text = text;
    return file;
  }
  free(file);
  sn_json_lists_free(text);
  return NULL;
}

sn_plan_file *sn_plan_file_load(const char *path, sn_err *err) {
  return file_of(sn_plan_load(path, err), err);
}

sn_plan_file *sn_plan_file_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  return file_of(sn_plan_parse(name, text, bytes, err), err);
}

void sn_plan_file_free(sn_plan_file *file) {
  if (!file) return;
  sn_plan_free(file->plan);
  sn_route_free(file->route);
  sn_costs_free(file->costs);
  sn_net_free(file->net);
  sn_json_lists_free(file->text);
  free(file);
}

/* ---- what it is a plan of ---- */

static sn_status fail_head(const sn_plan_file *file, const char *key, const char *text, sn_err *err) {
  const sn_json *doc = sn_json_lists_head(file->text);
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(sn_json_root(doc), key);
  return sn_json_fail(doc, item, err, "%s", text);
}

/* The network in the images that the plan is for. */
static sn_net *load_net(const sn_plan_file *file, const char *spec, sn_err *err) {
  const sn_plan_head *head = &file->head;
  sn_net *net = sn_net_load(spec, head->batch, 0, err);
  if (!net || head->image_height == 0 || head->image_width == 0) return net;
  uint32_t image = sn_net_image(net, head->image_height, head->image_width);
  if (image == sn_net_image(net, sn_layer_rows(&net->layers[0]), net->layers[0].out.w)) return net;
  sn_net_free(net);
  return sn_net_load(spec, head->batch, image, err);
}

static sn_status find_net(sn_plan_file *file, const char *given, sn_err *err) {
  sn_err why = SN_ERR_INIT;
  if (given) {
    char *adapted = sn_net_adapt_like(given, file->head.net);
    file->net = adapted ? load_net(file, adapted, err) : NULL;
    if (!adapted) sn_fail_memory(err);
    free(adapted);
    if (!file->net || strcmp(file->net->name, file->head.net) == 0) return err->code;
    char text[200];
    snprintf(text, sizeof text, "the plan is of another network than --net, which calls itself \"%.100s\"",
             file->net->name);
    return fail_head(file, "net", text, err);
  }
  if (sn_net_is_file(file->head.net))
    return fail_head(file, "net", "the network is a file, which --net FILE names", err);
  file->net = load_net(file, file->head.net, &why);
  if (file->net) return SN_OK;
  if (why.code == SN_NO_MEMORY) return sn_fail(err, why.code, "%s", why.text);
  sn_err_prefix(&why, "--net FILE names the file of a network that is not snsim's own");
  return fail_head(file, "net", why.text, err);
}

/* The graph and its costs, as sn_simulate() has them. */
static sn_status open_graph(sn_plan_file *file, const sn_device *device, sn_err *err) {
  const sn_plan_head *head = &file->head;
  bool eager = sn_dialect_of(head->strategy.dialect)->eager;
  const char *refused = sn_strategy_refuses(head->strategy, head->options.iteration);
  if (refused) return fail_head(file, "strategy", refused, err);
  refused = sn_shard_refuses(head->options.iteration);
  if (refused) return fail_head(file, "parallel", refused, err);
  sn_err unfit = SN_ERR_INIT;
  if (sn_net_check_training(file->net, head->options.iteration.inference, &unfit) != SN_OK)
    return fail_head(file, "net", unfit.text, err);
  if (sn_freeze_check(head->options.iteration.freeze, file->net, &unfit) != SN_OK)
    return fail_head(file, "freeze", unfit.text, err);
  sn_precision precision = head->options.iteration.precision;
  if (sn_device_check_precision(device, precision, err) != SN_OK) return err->code;
  sn_costs *model = sn_costs_new_in(file->net, device, head->options.iteration, err);
  if (!model) return err->code;
  sn_costs_set_optimizer(model, file->net, device, head->options.iteration.optimizer);
  file->costs = eager ? sn_caching_costs(file->net, model, precision, head->options.workspace, err) : model;
  if (eager) sn_costs_free(model);
  if (!file->costs) return err->code;
  file->route = sn_schedule_route(file->net, head->strategy, head->options.iteration, file->costs, &unfit);
  if (file->route) return SN_OK;
  return unfit.code == SN_NO_MEMORY ? sn_fail_memory(err) : fail_head(file, "parallel", unfit.text, err);
}

/* ---- blocks of a recording that run again ---- */

/* The checkpoints of a plan, the last block first: a step that runs again right behind one of an earlier block is of the
 * same checkpoint. */
typedef struct spans {
  sn_record_span *items;
  uint32_t count;
  bool within; /* no other step has run since the last one that runs again */
  uint32_t step;
} spans;

/* The block that a forward step is in; route->n_regions: none. */
static uint32_t region_of(const sn_route *route, uint64_t step) {
  uint32_t r = 0;
  while (r < route->n_regions && route->regions[r].end <= step) r++;
  return r < route->n_regions && route->regions[r].first <= step ? r : route->n_regions;
}

static void note_instr(const sn_route *route, const cJSON *item, spans *s) {
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(item, "do");
  const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, "step");
  if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "compute") != 0 || !cJSON_IsNumber(number)) return;
  bool again = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "recompute"));
  bool known = number->valuedouble >= 1 && number->valuedouble <= route->n_steps;
  uint32_t step = known ? (uint32_t)number->valuedouble - 1 : 0, r = known ? region_of(route, step) : route->n_regions;
  if (again && r < route->n_regions) {
    bool same = s->within && step > s->step;
    if (!same && s->count < route->n_regions) s->items[s->count++].first = r;
    if (s->count > 0) s->items[s->count - 1].end = r + 1;
  }
  s->within = again;
  s->step = step;
}

static int compare_spans(const void *a, const void *b) {
  const sn_record_span *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* The route that the plan is of. Where its checkpoints cannot be, the one without: the plan is not right then. */
static const sn_route *find_route(sn_plan_file *file, sn_err *err) {
  const sn_route *route = file->route;
  const sn_json *element;
  bool apart = true, selective = file->head.strategy.recompute == SN_RECOMPUTE_SELECTIVE;
  if (selective && !route->regions) return sn_selective_route(route, err);
  if (!route->regions || !route->dialect->eager) return route;
  spans s = {.items = calloc((size_t)route->n_regions + 1, sizeof *s.items)};
  if (!s.items) return sn_fail_memory(err), NULL;
  sn_json_lists_begin(file->text, "instructions");
  while ((element = sn_json_lists_next(file->text, err))) note_instr(route, sn_json_root(element), &s);
  qsort(s.items, s.count, sizeof *s.items, compare_spans);
  for (uint32_t i = 0; i < s.count; i++) s.items[i].selective = selective;
  for (uint32_t i = 1; i < s.count; i++) apart = apart && s.items[i - 1].end <= s.items[i].first;
  if (err->code == SN_OK && s.count > 0 && apart) route = sn_shard_under(route, s.items, s.count, err);
  free(s.items);
  return err->code == SN_OK ? route : NULL;
}

sn_status sn_plan_file_read(sn_plan_file *file, const char *net, const sn_device *device, sn_err *err) {
  if (find_net(file, net, err) != SN_OK || open_graph(file, device, err) != SN_OK) return err->code;
  const sn_route *route = find_route(file, err);
  file->plan = route ? sn_plan_read(file->text, route, err) : NULL;
  return err->code;
}

sn_status sn_plan_file_prove(sn_plan_file *file, sn_err *err) {
  return sn_plan_check_read(file->text, file->plan, &file->report, err);
}

sn_status sn_plan_file_check(sn_plan_file *file, const char *net, const sn_device *device, sn_err *err) {
  return sn_plan_file_read(file, net, device, err) == SN_OK ? sn_plan_file_prove(file, err) : err->code;
}

/* ---- playing ---- */

/* What its kernels may write to beside tensors: its own workspace, or of SINGA's the scratch of its layer. */
static uint64_t workspace_of(const sn_plan_file *file, const sn_instr *i) {
  const sn_step *step = &file->route->steps[i->id];
  uint64_t bytes = i->bytes;
  for (uint32_t a = step->first_access; a < step->first_access + step->n_accesses; a++) {
    const sn_tensor *tensor = &file->route->tensors[file->route->accesses[a].tensor];
    if (tensor->role == SN_SCRATCH) bytes += tensor->bytes;
  }
  return bytes;
}

/* The named algorithm where the device has it with that workspace, else the fastest for which that is enough. */
static uint8_t algorithm(const sn_plan_file *file, const sn_instr *i, sn_conv_kernel kernel, uint8_t named) {
  uint32_t count, best = 0;
  uint64_t workspace = workspace_of(file, i);
  const sn_conv_choice *choices = sn_costs_conv(file->costs, file->route->steps[i->id].layer, kernel, &count);
  while (best + 1 < count && choices[best].workspace > workspace) best++;
  for (uint32_t c = best; c < count; c++)
    if ((uint8_t)choices[c].algo == named) return named;
  return count > 0 ? (uint8_t)choices[best].algo : SN_NO_ALGO;
}

static void choose_algorithms(sn_plan_file *file) {
  for (uint32_t n = 0; n < file->plan->n_instrs; n++) {
    sn_instr *i = &file->plan->instrs[n];
    if (i->kind != SN_COMPUTE) continue;
    const sn_step *step = &file->route->steps[i->id];
    bool convolves = sn_op_of(&file->net->layers[step->layer])->convolves && !sn_step_follows(step);
    bool forward = step->pass == SN_FORWARD, backward = step->pass == SN_BACKWARD;
    bool whole = !file->route->dialect->by_kernel; /* as in lowering */
    bool data = whole || step->kernel == SN_DATA_GRADIENT, filter = whole || step->kernel == SN_FILTER_GRADIENT;
    uint8_t named[2] = {i->algo[0], i->algo[1]};
    i->algo[0] = i->algo[1] = SN_NO_ALGO;
    if (convolves && forward) i->algo[0] = algorithm(file, i, SN_CONV_FORWARD, named[0]);
    if (convolves && backward && data) i->algo[0] = algorithm(file, i, SN_CONV_BACKWARD_DATA, named[0]);
    if (convolves && backward && filter) i->algo[1] = algorithm(file, i, SN_CONV_BACKWARD_FILTER, named[1]);
  }
}

static sn_status add_caching(const sn_plan_file *file, const sn_device *device, sn_result *r, sn_err *err) {
  sn_caching_need need;
  sn_caching_need_of(file->plan, device, &file->head.options, device->memory_bytes, &need, &r->least_device_bytes, err);
  r->context_bytes = need.context_bytes;
  r->allocated_bytes = need.allocated_bytes;
  r->reserved_bytes = need.reserved_bytes;
  r->peak_device_bytes = need.device_bytes;
  r->pool_fragmentation = need.fragmentation;
  r->fits = need.fits && sn_plan_fits_outside(file->plan);
  return err->code;
}

static sn_status fill_result(sn_plan_file *file, const sn_device *device, const sn_trace *trace, sn_arena *arena,
                             sn_result *r, sn_err *err) {
  const sn_plan_head *head = &file->head;
  bool eager = sn_dialect_of(head->strategy.dialect)->eager;
  sn_result_source source = {.plan = file->plan,
                             .use = file->plan->use,
                             .trace = trace,
                             .persistent = sn_persistent_of(file->net, head->strategy.dialect, head->options.iteration),
                             .context_bytes = sn_device_context(device, file->net, eager),
                             .iteration = head->options.iteration,
                             .external = head->options.external,
                             .want_steps = true};
  uint64_t fixed = source.context_bytes + sn_persistent_total(&source.persistent);
  file->plan->pool_limit = device->memory_bytes > fixed ? device->memory_bytes - fixed : 0;
  if (head->options.pool_bytes > 0) file->plan->pool_limit = sn_min(file->plan->pool_limit, head->options.pool_bytes);
  file->plan->external_limit = head->options.external == SN_EXTERNAL_HOST ? sn_device_host_share(device) : 0;
  sn_status status = sn_result_fill(&source, head->strategy, arena, r, err);
  if (r->shared.world > 0) sn_result_judge_shared(file->net, device, head->options.iteration, r);
  r->least_device_bytes = r->peak_device_bytes; /* the addresses are what they are */
  bool caching = eager && head->options.allocator == SN_ALLOCATOR_POOL;
  caching |= head->options.allocator == SN_ALLOCATOR_PYTORCH || head->options.allocator == SN_ALLOCATOR_EXPANDABLE;
  return status == SN_OK && caching ? add_caching(file, device, r, err) : status;
}

/* The times of operations by their threads, where they run side by side on teams of cores, which the device must have.
 */
static sn_status find_times(const sn_plan_file *file, const sn_device *device, sn_corun_plans *corun, sn_err *err) {
  const sn_plan *plan = file->plan;
  const sn_corun_question question = {.device = device, .options = &file->head.options, .costs = file->costs};
  if (!sn_plan_is_corun(plan)) return SN_OK;
  if (!sn_corun_plans_times(corun, &question, file->route, err)) return err->code;
  if (plan->cores > device->cores.count || plan->slots > device->cores.slots)
    return sn_fail(err, SN_BAD_USAGE, "the plan has teams within %u cores with %u slots each, and %s has %u with %u",
                   plan->cores, plan->slots, device->name, device->cores.count, device->cores.slots);
  return SN_OK;
}

static sn_status play_in(sn_plan_file *file, const sn_device *device, const sn_times *times, sn_arena *arena,
                         sn_result *result, sn_timeline **timeline, sn_err *err) {
  const sn_options *o = &file->head.options;
  sn_device_model model = {.device = device,
                           .costs = file->costs,
                           .external = o->external,
                           .allocator = o->allocator,
                           .shared_link = o->shared_link,
                           .pageable = sn_strategy_is_pageable(file->head.strategy),
                           .times = times};
  sn_trace trace;
  choose_algorithms(file);
  sn_status status = sn_device_model_play(&model, file->plan, sn_iteration_batches(o->iteration), &trace, err);
  if (status == SN_OK) status = fill_result(file, device, &trace, arena, result, err);
  if (status == SN_OK) *timeline = sn_timeline_new(file->plan, &trace, err);
  sn_trace_clear(&trace);
  return err->code;
}

static sn_status play(sn_plan_file *file, const sn_device *device, sn_arena *arena, sn_result *result,
                      sn_timeline **timeline, sn_err *err) {
  sn_corun_plans corun = {0};
  if (find_times(file, device, &corun, err) == SN_OK) play_in(file, device, corun.times, arena, result, timeline, err);
  sn_corun_plans_clear(&corun);
  return err->code;
}

/* The device as one of several: with what its communicators take, its transfers as long as the cluster's links have it. */
static sn_status share_device(const sn_plan_file *file, sn_device *device, sn_err *err) {
  const sn_mesh *mesh = file->route->mesh;
  sn_cluster cluster;
  bool assumed;
  if (!mesh) return SN_OK;
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1)
    return sn_fail(err, SN_BAD_USAGE,
                   "a stage of a pipeline is played with the others; ask for all: snsim --net .. "
                   "--parallel %s",
                   mesh->text);
  if (sn_mesh_cluster(mesh, &file->head.options.cluster, device, &cluster, &assumed, err) != SN_OK) return err->code;
  device->communicator_bytes = cluster.communicator_bytes;
  device->host_shares = sn_mesh_node_gpus(mesh, &cluster);
  return sn_transfers_cost(file->route, &cluster, file->costs, err);
}

sn_run *sn_plan_file_play(sn_plan_file *file, const sn_device *on, sn_timeline **timeline, sn_err *err) {
  sn_device shared = *on, *device = &shared;
  *timeline = NULL;
  if (share_device(file, device, err) != SN_OK) return NULL;
  sn_arena *arena = sn_arena_new();
  sn_run *run = arena ? sn_arena_alloc(arena, 1, sizeof *run) : NULL;
  sn_result *result = arena ? sn_arena_alloc(arena, 1, sizeof *result) : NULL;
  if (!run || !result) {
    sn_fail_memory(err);
  } else if (play(file, device, arena, result, timeline, err) == SN_OK) {
    if (sn_result_begin_run(file->net->name, file->net, file->route, device, &file->head.options, arena, run, err) ==
        SN_OK) {
      run->results = result;
      run->n_results = 1;
      return run;
    }
  }
  sn_timeline_free(*timeline);
  *timeline = NULL;
  sn_arena_free(arena);
  return NULL;
}
