/* How few GPUs do; see the header. Sizes first grow twofold, then the gap is halved; rows are sorted last. */
#include "sim/scale/worlds.h"

#include "base/arena.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"
#include "sim/stages/staged.h"

#include <stdlib.h>
#include <string.h>

/* Sizes: at most 11 within a node of 1,024, 16 times twice as many nodes, and 15 halvings each of two gaps. */
enum { SIZES = 64 };

typedef struct search {
  const sn_worlds_wish *wish;
  sn_worlds *worlds;
  sn_world *all;
  uint32_t each; /* GPUs of a node */
  uint32_t most; /* in all */
  uint32_t room;
  sn_err *err;
} search;

static sn_mesh_axis axis_of(const search *s) {
  return (sn_mesh_axis)(s->wish->scheme->sought - 1);
}

/* Of the axes whose sizes are known. */
static uint32_t others_of(const search *s) {
  sn_mesh known = *s->wish->scheme;
  known.size[axis_of(s)] = 1;
  return sn_mesh_world(&known);
}

/* ---- one size ---- */

static sn_world *add(search *s, const sn_mesh *mesh, sn_strategy strategy) {
  uint32_t world = sn_mesh_world(mesh);
  sn_world *w = &s->all[s->worlds->n_all++];
  *w = (sn_world){
      .world = world, .nodes = (world + s->each - 1) / s->each, .mesh = *mesh, .strategy = strategy, .refused = ""};
  return w;
}

static sn_status play(search *s, sn_staged *planner, sn_world *w) {
  sn_arena *arena = s->worlds->arena;
  sn_result *result = sn_arena_alloc(arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(s->err);
  if (sn_staged_result(planner, w->strategy, s->wish->device->memory_bytes, arena, result, s->err) != SN_OK)
    return s->err->code;
  w->result = result;
  w->images_per_second = result->images_per_second;
  return SN_OK;
}

static bool is_tried(const search *s, uint32_t world) {
  for (uint32_t i = 0; i < s->worlds->n_all; i++)
    if (s->all[i].world == world) return true;
  return false;
}

/* Whether a size that was tried is enough, as it was asked, or in any way. */
static bool is_enough(const search *s, uint32_t world, bool lean) {
  for (uint32_t i = 0; i < s->worlds->n_all; i++) {
    const sn_world *w = &s->all[i];
    if (w->world == world && (lean || !w->lean) && w->result && w->result->fits) return true;
  }
  return false;
}

static sn_status play_all(search *s, const sn_mesh *mesh, const sn_options *options) {
  const sn_worlds_wish *wish = s->wish;
  sn_staged *planner = sn_staged_new(NULL, wish->net, wish->device, options, s->err);
  for (uint32_t i = 0; planner && i < wish->n_strategies && s->err->code == SN_OK; i++)
    play(s, planner, add(s, mesh, wish->strategies[i]));
  if (planner && s->err->code == SN_OK && wish->lean && !is_enough(s, sn_mesh_world(mesh), false)) {
    sn_strategy lean = wish->strategies[0];
    lean.recompute = SN_RECOMPUTE_UNITS;
    sn_world *w = add(s, mesh, lean);
    w->lean = true;
    play(s, planner, w);
  }
  sn_staged_free(planner);
  return s->err->code;
}

/* Stages whose number the micro-batches of an update are no multiple of (sim/parallel/pipeline.h). */
static bool is_uneven(sn_iteration iteration) {
  uint32_t stages = sn_mesh_size(&iteration.mesh, SN_MESH_PP);
  return sn_mesh_chunks(&iteration.mesh) > 1 && sn_iteration_batches(iteration) % stages != 0;
}

/* What cannot be asked of one GPU alone, or of a number of stages, is a row that says so. */
static sn_status try_size(search *s, uint32_t world) {
  sn_options options = *s->wish->options;
  sn_mesh *mesh = &options.iteration.mesh;
  if (is_tried(s, world)) return SN_OK;
  if (sn_mesh_resize(s->wish->scheme, axis_of(s), world / others_of(s), mesh, s->err) != SN_OK) return s->err->code;
  if (sn_mesh_is_one(mesh)) options.cluster = (sn_cluster){0};
  const char *refused = sn_shard_refuses(options.iteration);
  const bool uneven = !refused && is_uneven(options.iteration);
  if (uneven)
    refused = "interleaved has rounds of as many micro-batches as stages; --accumulate is no multiple of them";
  if (!refused) return play_all(s, mesh, &options);
  if (!uneven && world > others_of(s)) return sn_fail(s->err, SN_BAD_USAGE, "%s", refused);
  add(s, mesh, s->wish->strategies[0])->refused = refused;
  return SN_OK;
}

/* ---- which sizes ---- */

static bool is_world(const search *s, uint32_t world) {
  uint32_t others = others_of(s);
  bool whole = world <= s->each || world % s->each == 0;
  return world >= others && world % others == 0 && whole;
}

/* The next size behind one that is too small: twice as many, a whole node in between. */
static uint32_t larger(const search *s, uint32_t world) {
  return world < s->each && 2 * world > s->each ? s->each : 2 * world;
}

/* Two sizes between which the answer lies; high 0: no size was enough. */
typedef struct gap {
  uint32_t low, high;
} gap;

static void narrow(gap *g, uint32_t world, bool enough) {
  if (enough && g->high == 0)
    g->high = world;
  else if (!enough)
    g->low = world;
}

/* Whole nodes between the largest that is too small and the smallest that does. */
static sn_status halve(search *s, gap g, bool lean) {
  while (g.low >= s->each && g.high / s->each > g.low / s->each + 1) {
    uint32_t middle = (g.low / s->each + g.high / s->each) / 2 * s->each;
    if (!is_world(s, middle)) break;
    if (try_size(s, middle) != SN_OK) return s->err->code;
    if (is_enough(s, middle, lean))
      g.high = middle;
    else
      g.low = middle;
  }
  return s->err->code;
}

static sn_status try_sizes(search *s) {
  gap asked = {0, 0}, lean = {0, 0};
  for (uint32_t world = 1; world <= s->most && asked.high == 0; world = larger(s, world)) {
    if (!is_world(s, world)) continue;
    if (try_size(s, world) != SN_OK) return s->err->code;
    narrow(&asked, world, is_enough(s, world, false));
    if (lean.high == 0) narrow(&lean, world, is_enough(s, world, true));
  }
  if (halve(s, asked, false) != SN_OK) return s->err->code;
  return s->wish->lean ? halve(s, lean, true) : SN_OK;
}

/* ---- what was found ---- */

static int compare(const void *a, const void *b) {
  const sn_world *x = a, *y = b;
  if (x->world != y->world) return x->world < y->world ? -1 : 1;
  return x->lean - y->lean;
}

/* What a row needs beyond what there is; where it is not known what the plan takes. */
static uint64_t need_of(const sn_world *w) {
  return w->result->least_device_bytes ? w->result->least_device_bytes : w->result->peak_device_bytes;
}

static bool is_better(const sn_world *w, const sn_world *than) {
  return !than || (w->world == than->world && w->images_per_second > than->images_per_second);
}

static bool is_nearer(const sn_world *w, const sn_world *than) {
  return !than || w->world > than->world || (w->world == than->world && need_of(w) < need_of(than));
}

static void choose(search *s) {
  sn_worlds *found = s->worlds;
  for (uint32_t i = 0; i < found->n_all; i++) {
    const sn_world *w = &s->all[i];
    if (!w->result) continue;
    if (w->result->fits && !w->lean && is_better(w, found->least)) found->least = w;
    bool fewer = !found->least && !found->leanest; /* sizes stand in their order */
    if (w->result->fits && w->lean && fewer) found->leanest = w;
  }
  for (uint32_t i = 0; i < found->n_all; i++) {
    const sn_world *w = &s->all[i];
    bool smaller = !found->least || w->world < found->least->world;
    if (w->result && !w->lean && smaller && is_nearer(w, found->below)) found->below = w;
  }
}

static sn_status find_binding(search *s) {
  const sn_world *below = s->worlds->below;
  if (!below) return SN_OK;
  sn_options options = *s->wish->options;
  options.iteration.mesh = below->mesh;
  if (sn_mesh_is_one(&below->mesh)) options.cluster = (sn_cluster){0};
  uint64_t memory = s->wish->device->memory_bytes;
  sn_staged *planner = sn_staged_new(NULL, s->wish->net, s->wish->device, &options, s->err);
  if (planner) sn_staged_binding(planner, below->strategy, memory, s->worlds->arena, &s->worlds->binding, s->err);
  sn_staged_free(planner);
  return s->err->code;
}

/* A stable order of equals: strategies as they were asked for. */
static sn_status sort(search *s) {
  sn_worlds *found = s->worlds;
  for (uint32_t i = 1; i < found->n_all; i++) {
    sn_world w = s->all[i];
    uint32_t at = i;
    for (; at > 0 && compare(&s->all[at - 1], &w) > 0; at--) s->all[at] = s->all[at - 1];
    s->all[at] = w;
  }
  return SN_OK;
}

/* A stage has a block at least, of each of its parts. */
static void limit_stages(search *s) {
  const sn_mesh *scheme = s->wish->scheme;
  if (axis_of(s) != SN_MESH_PP) return;
  uint64_t most = (uint64_t)others_of(s) * (sn_mesh_parts_of(s->wish->net, scheme).blocks / sn_mesh_chunks(scheme));
  if (s->most > most) s->most = (uint32_t)most;
}

static sn_status open(search *s) {
  sn_mesh two;
  sn_cluster cluster;
  bool assumed;
  sn_worlds *found = s->worlds;
  s->room = SIZES * (s->wish->n_strategies + 1);
  s->all = sn_arena_alloc(found->arena, s->room, sizeof *s->all);
  if (!s->all) return sn_fail_memory(s->err);
  found->all = s->all;
  limit_stages(s);
  sn_status status = sn_mesh_resize(s->wish->scheme, axis_of(s), 1, &two, s->err);
  if (status == SN_OK)
    status = sn_mesh_cluster(&two, &s->wish->options->cluster, s->wish->device, &cluster, &assumed, s->err);
  if (status == SN_OK && cluster.gpus_per_node > 0) s->each = cluster.gpus_per_node;
  return status;
}

sn_worlds *sn_worlds_find(const sn_worlds_wish *wish, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_worlds *worlds = arena ? sn_arena_alloc(arena, 1, sizeof *worlds) : NULL;
  search s = {.wish = wish, .worlds = worlds, .each = 1, .most = wish->most, .err = err};
  if (!worlds) {
    sn_fail_memory(err);
  } else {
    *worlds = (sn_worlds){.arena = arena};
    if (open(&s) == SN_OK && try_sizes(&s) == SN_OK && sort(&s) == SN_OK) choose(&s);
    if (err->code == SN_OK && find_binding(&s) == SN_OK) return worlds;
  }
  sn_arena_free(arena);
  return NULL;
}

void sn_worlds_free(sn_worlds *worlds) {
  if (worlds) sn_arena_free(worlds->arena);
}
