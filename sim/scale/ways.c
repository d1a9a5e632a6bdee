/* How GPUs may share an iteration; see the header. Mesh by mesh, and of each batch by batch until nothing fits. */
#include "sim/scale/ways.h"

#include "base/arena.h"
#include "models/zoo/zoo.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"
#include "sim/scale/worlds.h"
#include "sim/stages/stages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 33, FIRST_ROOM = 64 };

typedef struct search {
  const sn_ways_wish *wish;
  sn_ways *ways;
  sn_way *all;
  uint32_t room;
  sn_net *nets[BATCHES]; /* of 1, 2, 4 ..; the last that is there is the net's own batch */
  uint32_t n_nets;
  uint32_t accumulate; /* of what is being tried */
  sn_err *err;
  sn_err refused; /* why a mesh could not be asked about, the first */
} search;

/* ---- one way ---- */

static sn_way *add(search *s, const sn_mesh *mesh, sn_strategy strategy, uint32_t batch) {
  if (s->ways->n_all == s->room) {
    uint32_t room = s->room ? 2 * s->room : FIRST_ROOM;
    sn_way *grown = realloc(s->all, room * sizeof *grown);
    if (!grown) return sn_fail_memory(s->err), NULL;
    s->all = grown;
    s->room = room;
  }
  sn_way *w = &s->all[s->ways->n_all++];
  *w = (sn_way){.mesh = *mesh, .strategy = strategy, .batch = batch, .accumulate = s->accumulate};
  return w;
}

/* Of a pipeline what its stages take together; its runs live as long as the ways. */
static sn_status play_stages(search *s, const sn_net *net, const sn_options *options, sn_strategy strategy,
                             sn_result *result) {
  sn_run **grown = realloc(s->ways->runs, (s->ways->n_runs + 1) * sizeof(sn_run *));
  if (!grown) return sn_fail_memory(s->err);
  s->ways->runs = grown;
  sn_run *run = sn_stages_simulate(s->wish->spec, net, s->wish->device, &strategy, 1, options, s->err);
  if (!run) return s->err->code;
  s->ways->runs[s->ways->n_runs++] = run;
  *result = run->results[0];
  return SN_OK;
}

/* Whether a larger batch is worth trying. The planner is of the way, of a pipeline of its first stage, which has the most
 * in flight. */
static bool play(search *s, sn_planner *planner, const sn_net *net, const sn_options *options, sn_strategy strategy) {
  uint64_t memory = s->wish->device->memory_bytes, bound;
  const sn_mesh *mesh = &options->iteration.mesh;
  const uint32_t batch = net->batch;
  if (sn_planner_bound(planner, strategy, &bound, s->err) != SN_OK) return false;
  if (bound > memory && batch > 1) return false;
  sn_way *w = add(s, mesh, strategy, batch);
  if (!w) return false;
  w->device_bytes = bound;
  if (bound > memory) return false;
  sn_result *result = sn_arena_alloc(s->ways->arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(s->err), false;
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1)
    play_stages(s, net, options, strategy, result);
  else
    sn_planner_result(planner, strategy, memory, s->ways->arena, result, s->err);
  if (s->err->code != SN_OK) return false;
  if (!result->fits && batch > 1) return s->ways->n_all--, false;
  w->result = result;
  w->fits = result->fits;
  w->device_bytes = result->fits ? result->peak_device_bytes : result->least_device_bytes;
  w->images_per_second = result->images_per_second;
  return result->fits;
}

/* ---- one mesh ---- */

/* What a network cannot be cut into is no error of the question. */
static bool is_refusal(sn_status status) {
  return status == SN_BAD_INPUT || status == SN_BAD_USAGE;
}

static void note_refused(search *s) {
  if (!is_refusal(s->err->code)) return;
  if (s->refused.code == SN_OK) s->refused = *s->err;
  *s->err = (sn_err)SN_ERR_INIT;
}

/* Batches an update; 0: the batch does not divide what is held. */
static uint32_t batches_of(const search *s, const sn_mesh *mesh, uint32_t batch, const sn_options *options) {
  uint64_t held = s->wish->global_batch, once = (uint64_t)sn_mesh_copies(mesh) * batch;
  if (held == 0) return sn_iteration_batches(options->iteration);
  return held % once == 0 && held / once <= SN_ITERATION_BATCHES ? (uint32_t)(held / once) : 0;
}

/* Of a pipeline its first stage's. */
static sn_options planned(sn_options options) {
  if (sn_mesh_size(&options.iteration.mesh, SN_MESH_PP) > 1) {
    options.iteration.mesh.micros = options.iteration.accumulate;
    options.iteration.accumulate = 1;
  }
  return options;
}

static sn_status try_batches(search *s, const sn_mesh *mesh, const sn_options *options) {
  bool goes_on[SN_WAYS_STRATEGIES] = {false};
  uint32_t left = s->wish->n_strategies, before = s->ways->n_all;
  bool even = false;
  memset(goes_on, true, sizeof goes_on);
  for (uint32_t b = 0; b < s->n_nets && left > 0 && s->err->code == SN_OK; b++) {
    sn_options own = *options;
    own.iteration.accumulate = s->accumulate = batches_of(s, mesh, s->nets[b]->batch, options);
    even = even || s->accumulate > 0;
    if (s->accumulate < sn_mesh_size(mesh, SN_MESH_PP)) continue; /* 0 too: it is uneven */
    const sn_options of_planner = planned(own);                   /* which outlive it */
    sn_planner *planner = sn_planner_new(s->nets[b], s->wish->device, &of_planner, s->err);
    left = 0;
    for (uint32_t i = 0; planner && i < s->wish->n_strategies && s->err->code == SN_OK; i++) {
      if (goes_on[i]) goes_on[i] = play(s, planner, s->nets[b], &own, s->wish->strategies[i]);
      left += goes_on[i];
    }
    sn_planner_free(planner);
  }
  s->ways->uneven += !even;
  if (is_refusal(s->err->code)) s->ways->n_all = before;
  s->ways->meshes += s->ways->n_all > before && s->err->code == SN_OK;
  note_refused(s);
  return s->err->code;
}

/* What has no calls in PyTorch is no advice. */
static const char *refuses(sn_iteration iteration) {
  const char *refused = sn_shard_refuses(iteration);
  if (refused || !sn_iteration_keeps_masters(iteration)) return refused;
  return "bf16-master is tried with fsdp, as PyTorch has it there alone; ask snsim --parallel about tp and pp without";
}

static sn_status try_mesh(search *s, const sn_mesh *mesh) {
  sn_options options = *s->wish->options;
  options.iteration.mesh = *mesh;
  if (sn_mesh_is_one(mesh)) options.cluster = (sn_cluster){0};
  const char *refused = refuses(options.iteration);
  if (!refused) return try_batches(s, mesh, &options);
  if (s->refused.code == SN_OK) sn_fail(&s->refused, SN_BAD_USAGE, "%s", refused);
  return SN_OK;
}

/* DDP's gradients stand beside its buckets, or in them: both are asked about, but for pipelines, whose gradients are
 * added over micro-batches. */
static sn_status try_sizes(search *s, uint32_t pp, uint32_t tp, uint32_t fsdp, uint32_t dp) {
  sn_mesh mesh = {0};
  if (sn_mesh_resize(&mesh, SN_MESH_PP, pp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_TP, tp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_FSDP, fsdp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_DP, dp, &mesh, s->err) != SN_OK || try_mesh(s, &mesh) != SN_OK)
    return s->err->code;
  if (dp == 1 || fsdp > 1 || pp > 1) return SN_OK;
  mesh.view = true;
  return sn_mesh_resize(&mesh, SN_MESH_DP, dp, &mesh, s->err) == SN_OK ? try_mesh(s, &mesh) : s->err->code;
}

/* No more than micro-batches an update, of the smallest batch. */
static uint32_t most_stages(const search *s) {
  if (s->wish->global_batch == 0) return sn_iteration_batches(s->wish->options->iteration);
  return s->wish->global_batch < SN_ITERATION_BATCHES ? s->wish->global_batch : SN_ITERATION_BATCHES;
}

static sn_status try_meshes(search *s) {
  const sn_mesh one = {0};
  sn_mesh world;
  sn_cluster cluster;
  bool assumed;
  uint32_t gpus = s->wish->gpus;
  if (sn_mesh_resize(&one, SN_MESH_DP, gpus, &world, s->err) != SN_OK ||
      sn_mesh_cluster(&world, &s->wish->options->cluster, s->wish->device, &cluster, &assumed, s->err) != SN_OK)
    return s->err->code;
  for (uint32_t tp = 1; tp <= gpus && tp <= cluster.gpus_per_node; tp++) {
    if (gpus % tp != 0 || cluster.gpus_per_node % tp != 0) continue;
    for (uint32_t dp = 1; dp <= gpus / tp && s->err->code == SN_OK; dp++)
      if (gpus / tp % dp == 0) try_sizes(s, 1, tp, gpus / tp / dp, dp);
    for (uint32_t pp = 2; pp <= gpus / tp && pp <= most_stages(s) && s->err->code == SN_OK; pp++)
      if (gpus / tp % pp == 0) try_sizes(s, pp, tp, 1, gpus / tp / pp);
  }
  if (s->err->code != SN_OK || s->ways->meshes > 0) return s->err->code;
  if (s->ways->uneven == 0) return *s->err = s->refused, s->err->code;
  return sn_fail(s->err, SN_BAD_USAGE,
                 "--global-batch %" PRIu32 " is no multiple of the batches that %" PRIu32 " GPUs take at once; %" PRIu32
                 " is one",
                 s->wish->global_batch, gpus, gpus);
}

/* ---- ranking ---- */

static int compare(const void *a, const void *b) {
  const sn_way *x = a, *y = b;
  if (x->fits != y->fits) return x->fits ? -1 : 1;
  if (x->fits && x->images_per_second != y->images_per_second)
    return x->images_per_second > y->images_per_second ? -1 : 1;
  if (x->device_bytes != y->device_bytes) return x->device_bytes < y->device_bytes ? -1 : 1;
  int text = strcmp(x->mesh.text, y->mesh.text);
  return text ? text : (x->batch > y->batch) - (x->batch < y->batch);
}

static bool same_kind(const sn_way *a, const sn_way *b) {
  return strcmp(a->mesh.text, b->mesh.text) == 0 && sn_strategy_same(a->strategy, b->strategy);
}

/* Behind sorting: whoever needs less than all that are faster is on the front. */
static void mark(search *s) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < s->ways->n_all; i++) {
    sn_way *w = &s->all[i];
    w->on_front = w->fits && w->device_bytes < least;
    if (w->on_front) least = w->device_bytes;
    w->best = true;
    for (uint32_t k = 0; k < i && w->best; k++) w->best = !same_kind(&s->all[k], w);
  }
}

static sn_status hand_over(search *s) {
  size_t bytes = s->ways->n_all * sizeof *s->all;
  sn_way *kept = sn_arena_alloc(s->ways->arena, (size_t)s->ways->n_all + 1, sizeof *kept);
  if (!kept) return sn_fail_memory(s->err);
  if (bytes > 0) qsort(s->all, s->ways->n_all, sizeof *s->all, compare);
  mark(s);
  if (bytes > 0) memcpy(kept, s->all, bytes);
  s->ways->all = kept;
  return SN_OK;
}

/* 1, 2, 4 .. and the net's own. */
static sn_status load_nets(search *s) {
  uint64_t most = s->wish->net->batch;
  for (uint64_t batch = 1;; batch *= 2) {
    uint32_t value = (uint32_t)(batch < most ? batch : most);
    sn_net *net = sn_net_load(s->wish->spec, value, s->wish->image, s->err);
    if (!net) return s->err->code;
    s->nets[s->n_nets++] = net;
    if (value == most) return SN_OK;
  }
}

sn_ways *sn_ways_find(const sn_ways_wish *wish, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_ways *ways = arena ? sn_arena_alloc(arena, 1, sizeof *ways) : NULL;
  search s = {.wish = wish, .ways = ways, .err = err, .refused = SN_ERR_INIT};
  if (!ways) {
    sn_fail_memory(err);
  } else {
    *ways = (sn_ways){.arena = arena};
    if (load_nets(&s) == SN_OK && try_meshes(&s) == SN_OK) hand_over(&s);
  }
  for (uint32_t i = 0; i < s.n_nets; i++) sn_net_free(s.nets[i]);
  free(s.all);
  if (err->code == SN_OK) return ways;
  sn_ways_free(ways);
  return NULL;
}

void sn_ways_free(sn_ways *ways) {
  if (!ways) return;
  for (uint32_t i = 0; i < ways->n_runs; i++) sn_run_free(ways->runs[i]);
  free(ways->runs);
  sn_arena_free(ways->arena);
}
