/* How GPUs may share an iteration; see the header. Mesh by mesh, and of each batch by batch until nothing fits. */
#include "sim/scale/ways.h"

#include "base/arena.h"
#include "models/zoo/zoo.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"
#include "sim/scale/side_by_side.h"
#include "sim/scale/worlds.h"
#include "sim/stages/stages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 33, FIRST_ROOM = 64 };

typedef struct search {
  const sn_ways_wish *wish;
  sn_net *nets[BATCHES]; /* of 1, 2, 4 ..; the last that is there is the net's own batch */
  uint32_t n_nets;
  struct trial *trials; /* a mesh each, which have nothing to do with each other */
  uint32_t n_trials, room;
  sn_ways *ways;
  sn_err *err;
} search;

/* What is found out about a mesh. */
typedef struct trial {
  const search *of;
  sn_mesh mesh;
  sn_way *all;
  uint32_t n_all, room;
  sn_run **runs;
  uint32_t n_runs;
  sn_arena *arena;
  bool even;           /* some batch divides what is held */
  uint32_t accumulate; /* of what is being tried */
  sn_err err;
} trial;

/* ---- one way ---- */

static sn_way *add(trial *t, const sn_mesh *mesh, sn_strategy strategy, uint32_t batch) {
  if (t->n_all == t->room) {
    uint32_t room = t->room ? 2 * t->room : FIRST_ROOM;
    sn_way *grown = realloc(t->all, room * sizeof *grown);
    if (!grown) return sn_fail_memory(&t->err), NULL;
    t->all = grown;
    t->room = room;
  }
  sn_way *w = &t->all[t->n_all++];
  *w = (sn_way){.mesh = *mesh, .strategy = strategy, .batch = batch, .accumulate = t->accumulate};
  return w;
}

/* Whether it is worth a plan: what no plan goes below is no more than there is. */
static bool note_bound(trial *t, const sn_mesh *mesh, sn_strategy strategy, uint32_t batch, uint64_t bound) {
  if (bound <= t->of->wish->device->memory_bytes) return true;
  sn_way *w = batch == 1 ? add(t, mesh, strategy, batch) : NULL;
  if (w) w->device_bytes = bound;
  return false;
}

/* Whether a larger batch is worth trying. */
static bool note_result(trial *t, const sn_mesh *mesh, sn_strategy strategy, uint32_t batch, const sn_result *result) {
  sn_way *w = result->fits || batch == 1 ? add(t, mesh, strategy, batch) : NULL;
  if (!w) return false;
  w->result = result;
  w->fits = result->fits;
  w->device_bytes = result->fits ? result->peak_device_bytes : result->least_device_bytes;
  w->images_per_second = result->images_per_second;
  return result->fits;
}

static bool play(trial *t, sn_planner *planner, const sn_net *net, const sn_mesh *mesh, sn_strategy strategy) {
  uint64_t memory = t->of->wish->device->memory_bytes, bound;
  if (sn_planner_bound(planner, strategy, &bound, &t->err) != SN_OK ||
      !note_bound(t, mesh, strategy, net->batch, bound))
    return false;
  sn_result *result = sn_arena_alloc(t->arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(&t->err), false;
  if (sn_planner_result(planner, strategy, memory, t->arena, result, &t->err) != SN_OK) return false;
  return note_result(t, mesh, strategy, net->batch, result);
}

/* What stages take together by some strategies; the run lives as long as the ways. */
static const sn_result *play_stages(trial *t, const sn_net *net, const sn_options *options,
                                    const sn_strategy *strategies, uint32_t n) {
  sn_run **grown = realloc(t->runs, (t->n_runs + 1) * sizeof(sn_run *));
  if (!grown) return sn_fail_memory(&t->err), NULL;
  t->runs = grown;
  sn_run *run =
      sn_stages_brief(t->of->wish->spec, net, t->of->wish->device, strategies, n, options, net->batch > 1, &t->err);
  if (run) t->runs[t->n_runs++] = run;
  return run ? run->results : NULL;
}

/* All strategies of a pipeline that go on. The planner is of its first stage, which has the most in flight. */
static sn_status play_pipeline(trial *t, sn_planner *planner, const sn_net *net, const sn_options *options,
                               bool *goes_on) {
  const sn_mesh *mesh = &options->iteration.mesh;
  sn_strategy played[SN_WAYS_STRATEGIES];
  uint64_t bounds[SN_WAYS_STRATEGIES];
  uint32_t n = 0, next = 0;
  for (uint32_t i = 0; i < t->of->wish->n_strategies; i++) {
    if (!goes_on[i]) continue;
    if (sn_planner_bound(planner, t->of->wish->strategies[i], &bounds[i], &t->err) != SN_OK) return t->err.code;
    if (bounds[i] <= t->of->wish->device->memory_bytes) played[n++] = t->of->wish->strategies[i];
  }
  const sn_result *results = n > 0 ? play_stages(t, net, options, played, n) : NULL;
  for (uint32_t i = 0; i < t->of->wish->n_strategies && t->err.code == SN_OK; i++) {
    sn_strategy strategy = t->of->wish->strategies[i];
    goes_on[i] = goes_on[i] && note_bound(t, mesh, strategy, net->batch, bounds[i]) && results &&
                 note_result(t, mesh, strategy, net->batch, &results[next++]);
  }
  return t->err.code;
}

/* ---- one mesh ---- */

/* What a network cannot be cut into is no error of the question. */
static bool is_refusal(sn_status status) {
  return status == SN_BAD_INPUT || status == SN_BAD_USAGE;
}

/* Batches an update; 0: the batch does not divide what is held. */
static uint32_t batches_of(const search *s, const sn_mesh *mesh, uint32_t batch, const sn_options *options) {
  uint64_t held = s->wish->global_batch, once = (uint64_t)sn_mesh_copies(mesh) * batch;
  if (held == 0) return sn_iteration_batches(options->iteration);
  return held % once == 0 && held / once <= SN_ITERATION_BATCHES ? (uint32_t)(held / once) : 0;
}

/* Of a pipeline its first stage's: of two micro-batches, the second of which adds its gradients, its steps are as large as
 * of all. */
static sn_options planned(sn_options options) {
  const uint32_t micros = options.iteration.accumulate;
  if (sn_mesh_size(&options.iteration.mesh, SN_MESH_PP) > 1) {
    options.iteration.mesh.micros = micros < 2 ? micros : 2;
    options.iteration.mesh.idle = micros - options.iteration.mesh.micros;
    options.iteration.accumulate = 1;
  }
  return options;
}

static void try_batches(trial *t, const sn_options *options) {
  const search *s = t->of;
  const sn_mesh *mesh = &options->iteration.mesh;
  const bool staged = sn_mesh_size(mesh, SN_MESH_PP) > 1;
  bool goes_on[SN_WAYS_STRATEGIES] = {false};
  uint32_t left = s->wish->n_strategies;
  memset(goes_on, true, sizeof goes_on);
  for (uint32_t b = 0; b < s->n_nets && left > 0 && t->err.code == SN_OK; b++) {
    sn_options own = *options;
    own.iteration.accumulate = t->accumulate = batches_of(s, mesh, s->nets[b]->batch, options);
    t->even = t->even || t->accumulate > 0;
    if (t->accumulate < sn_mesh_size(mesh, SN_MESH_PP)) continue; /* 0 too: it is uneven */
    const sn_options of_planner = planned(own);                   /* which outlive it */
    sn_planner *planner = sn_planner_new(s->nets[b], s->wish->device, &of_planner, &t->err);
    if (planner && staged) play_pipeline(t, planner, s->nets[b], &own, goes_on);
    left = 0;
    for (uint32_t i = 0; planner && i < s->wish->n_strategies && t->err.code == SN_OK; i++) {
      if (goes_on[i] && !staged) goes_on[i] = play(t, planner, s->nets[b], mesh, s->wish->strategies[i]);
      left += goes_on[i];
    }
    sn_planner_free(planner);
  }
}

static void try_mesh(void *user, uint32_t number) {
  const search *s = user;
  trial *t = &s->trials[number];
  sn_options options = *s->wish->options;
  options.planned = NULL; /* who watches is of one thread */
  options.iteration.mesh = t->mesh;
  if (sn_mesh_is_one(&t->mesh)) options.cluster = (sn_cluster){0};
  const char *refused = sn_shard_refuses(options.iteration);
  t->even = refused != NULL;
  t->arena = refused ? NULL : sn_arena_new();
  if (refused)
    sn_fail(&t->err, SN_BAD_USAGE, "%s", refused);
  else if (t->arena)
    try_batches(t, &options);
  else
    sn_fail_memory(&t->err);
}

/* ---- all meshes ---- */

static sn_status add_mesh(search *s, const sn_mesh *mesh) {
  if (s->n_trials == s->room) {
    uint32_t room = s->room ? 2 * s->room : FIRST_ROOM;
    trial *grown = realloc(s->trials, room * sizeof *grown);
    if (!grown) return sn_fail_memory(s->err);
    s->trials = grown;
    s->room = room;
  }
  s->trials[s->n_trials++] = (trial){.of = s, .mesh = *mesh, .err = SN_ERR_INIT};
  return SN_OK;
}

/* DDP's gradients stand beside its buckets, or in them: both are asked about, but for pipelines, whose gradients are
 * added over micro-batches, and gradients in four bytes, which are buckets. Shards of stages are gathered for each micro-batch, or once an update. */
static sn_status add_sizes(search *s, uint32_t pp, uint32_t tp, uint32_t fsdp, uint32_t dp) {
  sn_mesh mesh = {0};
  if (sn_mesh_resize(&mesh, SN_MESH_PP, pp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_TP, tp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_FSDP, fsdp, &mesh, s->err) != SN_OK ||
      sn_mesh_resize(&mesh, SN_MESH_DP, dp, &mesh, s->err) != SN_OK || add_mesh(s, &mesh) != SN_OK)
    return s->err->code;
  bool stages = pp > 1 && fsdp > 1, masters = s->wish->options->iteration.master;
  if (!stages && (dp == 1 || fsdp > 1 || pp > 1 || masters)) return SN_OK;
  mesh.view = !stages;
  mesh.reshard = stages ? SN_RESHARD_NO : mesh.reshard;
  return sn_mesh_resize(&mesh, SN_MESH_DP, dp, &mesh, s->err) == SN_OK ? add_mesh(s, &mesh) : s->err->code;
}

/* No more than micro-batches an update, of the smallest batch. */
static uint32_t most_stages(const search *s) {
  if (s->wish->global_batch == 0) return sn_iteration_batches(s->wish->options->iteration);
  return s->wish->global_batch < SN_ITERATION_BATCHES ? s->wish->global_batch : SN_ITERATION_BATCHES;
}

static sn_status list_meshes(search *s) {
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
      if (gpus / tp % dp == 0) add_sizes(s, 1, tp, gpus / tp / dp, dp);
    for (uint32_t pp = 2; pp <= gpus / tp && pp <= most_stages(s) && s->err->code == SN_OK; pp++)
      for (uint32_t shards = 0; shards < 2 && gpus / tp % pp == 0 && s->err->code == SN_OK; shards++) {
        uint32_t left = gpus / tp / pp;
        if (shards == 0 || left > 1) add_sizes(s, pp, tp, shards ? left : 1, shards ? 1 : left);
      }
  }
  return s->err->code;
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

/* Whoever needs less than all that are faster is on the front. */
static void rank(sn_ways *ways, sn_way *all) {
  uint64_t least = UINT64_MAX;
  if (ways->n_all > 0) qsort(all, ways->n_all, sizeof *all, compare);
  for (uint32_t i = 0; i < ways->n_all; i++) {
    sn_way *w = &all[i];
    w->on_front = w->fits && w->device_bytes < least;
    if (w->on_front) least = w->device_bytes;
    w->best = true;
    for (uint32_t k = 0; k < i && w->best; k++) w->best = !same_kind(&all[k], w);
  }
  ways->all = all;
}

/* ---- what all are ---- */

/* What was found out about a mesh becomes the ways'; why it could not be asked about, if nobody could before. */
static sn_status collect(search *s, trial *t, sn_way *all, sn_err *refused) {
  sn_ways *w = s->ways;
  for (uint32_t i = 0; i < t->n_runs; i++) w->runs[w->n_runs++] = t->runs[i];
  if (t->arena) w->arenas[w->n_arenas++] = t->arena;
  t->n_runs = 0;
  t->arena = NULL;
  w->uneven += !t->even;
  if (t->err.code != SN_OK && !is_refusal(t->err.code)) return *s->err = t->err, t->err.code;
  if (t->err.code != SN_OK && refused->code == SN_OK) *refused = t->err;
  if (t->err.code != SN_OK || t->n_all == 0) return SN_OK;
  memcpy(all + w->n_all, t->all, t->n_all * sizeof *all);
  w->n_all += t->n_all;
  w->meshes++;
  return SN_OK;
}

/* Rooms for what all meshes have. */
static sn_way *make_rooms(search *s) {
  size_t ways = 1, runs = 1;
  for (uint32_t i = 0; i < s->n_trials; i++) {
    ways += s->trials[i].n_all;
    runs += s->trials[i].n_runs;
  }
  s->ways->runs = sn_arena_alloc(s->ways->arena, runs, sizeof(sn_run *));
  s->ways->arenas = sn_arena_alloc(s->ways->arena, (size_t)s->n_trials + 1, sizeof(sn_arena *));
  sn_way *all = sn_arena_alloc(s->ways->arena, ways, sizeof *all);
  if (!s->ways->runs || !s->ways->arenas || !all) return sn_fail_memory(s->err), NULL;
  return all;
}

static sn_status try_meshes(search *s) {
  uint32_t gpus = s->wish->gpus;
  sn_err refused = SN_ERR_INIT;
  if (list_meshes(s) != SN_OK) return s->err->code;
  sn_side_by_side(s->n_trials, s->wish->threads, try_mesh, s);
  sn_way *all = make_rooms(s);
  for (uint32_t i = 0; all && i < s->n_trials && s->err->code == SN_OK; i++) collect(s, &s->trials[i], all, &refused);
  if (!all || s->err->code != SN_OK) return s->err->code;
  rank(s->ways, all);
  if (s->ways->meshes > 0) return SN_OK;
  if (s->ways->uneven == 0) return *s->err = refused, refused.code;
  return sn_fail(s->err, SN_BAD_USAGE,
                 "--global-batch %" PRIu32 " is no multiple of the batches that %" PRIu32 " GPUs take at once; %" PRIu32
                 " is one",
                 s->wish->global_batch, gpus, gpus);
}

/* ---- the search ---- */

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

static void close(search *s) {
  for (uint32_t i = 0; i < s->n_trials; i++) {
    trial *t = &s->trials[i];
    for (uint32_t r = 0; r < t->n_runs; r++) sn_run_free(t->runs[r]);
    free(t->runs);
    free(t->all);
    if (t->arena) sn_arena_free(t->arena);
  }
  for (uint32_t i = 0; i < s->n_nets; i++) sn_net_free(s->nets[i]);
  free(s->trials);
}

sn_ways *sn_ways_find(const sn_ways_wish *wish, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_ways *ways = arena ? sn_arena_alloc(arena, 1, sizeof *ways) : NULL;
  search s = {.wish = wish, .ways = ways, .err = err};
  if (!ways) {
    sn_fail_memory(err);
  } else {
    *ways = (sn_ways){.arena = arena};
    if (load_nets(&s) == SN_OK) try_meshes(&s);
  }
  close(&s);
  if (err->code == SN_OK) return ways;
  sn_ways_free(ways);
  return NULL;
}

void sn_ways_free(sn_ways *ways) {
  if (!ways) return;
  for (uint32_t i = 0; i < ways->n_runs; i++) sn_run_free(ways->runs[i]);
  for (uint32_t i = 0; i < ways->n_arenas; i++) sn_arena_free(ways->arenas[i]);
  sn_arena_free(ways->arena);
}
