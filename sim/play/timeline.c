/* Timeline; see the header. One walk along the plan makes bars, rectangles and arrows; memory over time is the ends of
 * the rectangles, sorted. */
#include "sim/play/timeline.h"

#include "base/arena.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/plan/cursor.h"
#include "sim/play/caching_map.h"

#include <stdlib.h>
#include <string.h>

/* A tensor on the way through the plan: its open rectangle, who made its value, its copy in that nobody has used. */
typedef struct tensor_state {
  uint32_t rect, writer, fetched; /* rectangle, bar, bar; SN_NONE: none */
} tensor_state;

typedef struct walk {
  const sn_plan *plan;
  const sn_trace *trace;
  sn_timeline *made;
  sn_bar *bars;
  sn_rect *rects;
  sn_arrow *arrows;
  sn_timeline_step *steps;
  sn_timeline_column *columns;
  double *places;
  tensor_state *tensors;
  uint32_t *fence_bar;         /* per fence: the bar that ends before it passes */
  const char **layers;         /* names */
  uint32_t last_bar[SN_LANES]; /* that computes or copies */
  int64_t now[SN_LANES];       /* end of what the lane did last */
} walk;

/* ---- names ---- */

static sn_status copy_layers(walk *w, sn_arena *arena, sn_err *err) {
  const sn_route *route = w->plan->route;
  w->layers = sn_arena_alloc(arena, route->n_layers, sizeof *w->layers);
  if (!w->layers) return sn_fail_memory(err);
  for (uint32_t l = 0; l < route->n_layers; l++)
    if (!(w->layers[l] = sn_arena_text(arena, route->layers[l].name))) return sn_fail_memory(err);
  return SN_OK;
}

static sn_status copy_tensors(walk *w, sn_arena *arena, sn_err *err) {
  const sn_route *route = w->plan->route;
  sn_timeline_tensor *tensors = sn_arena_alloc(arena, route->n_tensors, sizeof *tensors);
  if (!tensors) return sn_fail_memory(err);
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    char name[SN_TENSOR_NAME];
    const sn_tensor *tensor = &route->tensors[t];
    tensors[t] = (sn_timeline_tensor){.name = sn_arena_text(arena, sn_tensor_name(route, t, name, sizeof name)),
                                      .layer = w->layers[tensor->layer],
                                      .kind = sn_role_name(tensor->role),
                                      .bytes = tensor->bytes};
    if (!tensors[t].name) return sn_fail_memory(err);
  }
  w->made->tensors = tensors;
  w->made->n_tensors = route->n_tensors;
  return SN_OK;
}

/* ---- steps ---- */

static const char *transfer_of(const sn_route *route, const sn_step *step) {
  return step->kernel == SN_TRANSFER ? sn_transfer_kind_words(route->transfers[step->sum].kind) : NULL;
}

/* What a recording calls operations is copied: it may be freed ahead of the timeline. */
static sn_status describe_steps(walk *w, sn_arena *arena, sn_err *err) {
  const sn_route *route = w->plan->route;
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_step *step = &route->steps[s];
    const sn_step_use *use = &w->plan->use[s];
    const char *op = sn_step_layer_op(route, step);
    if (route->work && !(op = sn_arena_text(arena, op))) return sn_fail_memory(err);
    w->steps[s] = (sn_timeline_step){.layer = w->layers[step->layer],
                                     .op = op,
                                     .pass = sn_pass_name(step->pass),
                                     .transfer = transfer_of(route, step),
                                     .tensor_bytes = use->tensor_bytes,
                                     .workspace_bytes = use->workspace_bytes,
                                     .live_tensors = use->live_tensors};
  }
  return SN_OK;
}

/* A column a step, one behind the other. */
static sn_status cut_steps(walk *w, sn_err *err) {
  const sn_plan *plan = w->plan;
  uint32_t i = 0;
  for (uint32_t s = 0; s < plan->route->n_steps; s++) {
    uint32_t first = i;
    while (i < plan->n_instrs && plan->instrs[i].step == s) i++;
    w->columns[s] = (sn_timeline_column){.first_instr = first, .n_instrs = i - first, .step = s};
  }
  w->made->n_columns = plan->route->n_steps;
  w->made->n_shown_columns = plan->route->first_update;
  return i == plan->n_instrs ? SN_OK : sn_fail(err, SN_BUG, "plan instruction %u goes back to an earlier step", i);
}

/* A column an operation: from behind what was given back last before it. */
static void cut_operations(walk *w) {
  uint32_t n = 0, first = 0;
  for (uint32_t i = 0; i < w->plan->n_instrs; i++) {
    const sn_instr *instr = &w->plan->instrs[i];
    if (instr->kind == SN_RELEASE && n > 0) first = i + 1;
    if (instr->kind == SN_RELEASE) w->made->n_shown_columns = n;
    if (instr->kind != SN_COMPUTE) continue;
    if (n > 0) w->columns[n - 1].n_instrs = first - w->columns[n - 1].first_instr;
    w->columns[n++] = (sn_timeline_column){.first_instr = first, .step = instr->step};
    if (instr->step < w->plan->route->first_update) w->made->n_shown_columns = n;
    first = i + 1;
  }
  if (n > 0) w->columns[n - 1].n_instrs = w->plan->n_instrs - w->columns[n - 1].first_instr;
  w->made->n_columns = n;
}

/* Notes a moment of a step, just before an instruction, if it is the fullest so far. */
static void note_moment(sn_timeline_step *step, uint64_t *most, uint32_t instr, uint64_t live) {
  if (step->fullest != SN_NONE && live <= *most) return;
  step->fullest = instr;
  *most = live;
}

/* Finds where each step is fullest, of the moments around its instructions. */
static sn_status find_fullest(const walk *w, sn_err *err) {
  const sn_plan *plan = w->plan;
  uint64_t *most = calloc((size_t)w->made->n_steps + 1, sizeof *most);
  if (!most) return sn_fail_memory(err);
  for (uint32_t s = 0; s < w->made->n_steps; s++) w->steps[s].fullest = SN_NONE;
  sn_cursor now = {.plan = plan}, ahead = now;
  for (const sn_instr *i; (i = sn_cursor_next(&now)); ahead = now) {
    note_moment(&w->steps[i->step], &most[i->step], ahead.at, ahead.tensor_bytes);
    note_moment(&w->steps[i->step], &most[i->step], now.at, now.tensor_bytes);
  }
  for (uint32_t c = 0; c < w->made->n_columns; c++) /* a step without instructions */
    note_moment(&w->steps[w->columns[c].step], &(uint64_t){UINT64_MAX}, w->columns[c].first_instr, 0);
  free(most);
  return SN_OK;
}

static sn_status cut_columns(walk *w, sn_err *err) {
  if (sn_plan_is_corun(w->plan))
    cut_operations(w);
  else if (cut_steps(w, err) != SN_OK)
    return err->code;
  return find_fullest(w, err);
}

/* What an instruction takes of its column. */
static double share_of(const sn_instr *i) {
  return i->kind == SN_COMPUTE ? 8 : i->kind == SN_ALLOC || i->kind == SN_RELEASE ? 1 : 0;
}

static void find_places(const walk *w) {
  const sn_instr *instrs = w->plan->instrs;
  for (uint32_t c = 0; c < w->made->n_columns; c++) {
    uint32_t first = w->columns[c].first_instr, end = first + w->columns[c].n_instrs;
    double whole = 0, before = 0;
    for (uint32_t i = first; i < end; i++) whole += share_of(&instrs[i]);
    for (uint32_t i = first; i < end; i++) {
      w->places[i] = c + 1.0 + (whole > 0 ? before / whole : 0);
      before += share_of(&instrs[i]);
    }
  }
  w->places[w->plan->n_instrs] = w->made->n_columns + 1.0;
}

/* ---- bars, rectangles, arrows ---- */

static uint64_t bytes_of(const walk *w, const sn_instr *i, sn_bar_kind kind) {
  if (kind == SN_BAR_STALL) return 0;
  return i->kind == SN_COMPUTE ? i->bytes : w->plan->route->tensors[i->id].bytes;
}

static sn_team team_of(const walk *w, const sn_instr *i, sn_bar_kind kind) {
  bool has = kind == SN_BAR_COMPUTE && sn_plan_is_corun(w->plan);
  return has ? w->plan->teams[i->team] : (sn_team){0, 0, SN_SLOT_FIRST};
}

static uint32_t add_bar_at(walk *w, uint32_t index, sn_bar_kind kind, uint32_t what, const char *name, sn_span at) {
  const sn_instr *i = &w->plan->instrs[index];
  w->bars[w->made->n_bars] = (sn_bar){.kind = (uint8_t)kind,
                                      .lane = i->lane,
                                      .rerun = i->rerun && kind == SN_BAR_COMPUTE,
                                      .part = kind == SN_BAR_COMPUTE ? i->part : (uint8_t)SN_STEP_WHOLE,
                                      .team = team_of(w, i, kind),
                                      .instr = index,
                                      .step = i->step + 1,
                                      .what = what,
                                      .name = name,
                                      .begin_ns = at.begin_ns,
                                      .end_ns = at.end_ns,
                                      .bytes = bytes_of(w, i, kind)};
  return w->made->n_bars++;
}

static uint32_t add_bar(walk *w, uint32_t index, sn_bar_kind kind, uint32_t what, const char *name) {
  return add_bar_at(w, index, kind, what, name, w->trace->spans[index]);
}

static void add_arrow(walk *w, uint32_t from, uint32_t to, uint32_t tensor) {
  if (from != SN_NONE) w->arrows[w->made->n_arrows++] = (sn_arrow){.from_bar = from, .to_bar = to, .tensor = tensor};
}

static uint32_t open_rect(walk *w, uint32_t index, uint32_t tensor, int64_t ns) {
  const sn_instr *i = &w->plan->instrs[index];
  w->rects[w->made->n_rects] = (sn_rect){.tensor = tensor,
                                         .from_instr = index,
                                         .to_instr = w->plan->n_instrs,
                                         .from_step = i->step + 1,
                                         .to_step = w->made->n_steps,
                                         .offset = i->offset,
                                         .bytes = i->bytes,
                                         .from_ns = ns,
                                         .to_ns = w->trace->end_ns};
  return w->made->n_rects++;
}

static void close_rect(walk *w, uint32_t rect, uint32_t index, uint32_t step, int64_t ns) {
  w->rects[rect].to_instr = index;
  w->rects[rect].to_step = step + 1;
  w->rects[rect].to_ns = ns;
}

static bool takes_time(const sn_span *span) {
  return span->begin_ns >= 0 && span->end_ns > span->begin_ns;
}

static void take_alloc(walk *w, uint32_t index) {
  const sn_instr *i = &w->plan->instrs[index];
  bool timed = takes_time(&w->trace->spans[index]);
  int64_t from = timed ? w->trace->spans[index].begin_ns : w->now[i->lane];
  if (timed) add_bar(w, index, SN_BAR_ALLOC, i->id, w->made->tensors[i->id].name);
  w->tensors[i->id] = (tensor_state){.rect = open_rect(w, index, i->id, from), .writer = SN_NONE, .fetched = SN_NONE};
}

static void take_release(walk *w, uint32_t index) {
  const sn_instr *i = &w->plan->instrs[index];
  bool timed = takes_time(&w->trace->spans[index]);
  if (timed) add_bar(w, index, SN_BAR_RELEASE, i->id, w->made->tensors[i->id].name);
  close_rect(w, w->tensors[i->id].rect, index, i->step, timed ? w->trace->spans[index].end_ns : w->now[i->lane]);
}

/* Time that the device's allocator takes for a workspace. */
static void add_workspace_bar(walk *w, uint32_t index, sn_bar_kind kind, int64_t begin_ns, int64_t end_ns) {
  const sn_step *step = &w->plan->route->steps[w->plan->instrs[index].id];
  if (end_ns > begin_ns) add_bar_at(w, index, kind, SN_NONE, w->layers[step->layer], (sn_span){begin_ns, end_ns});
}

static void take_compute(walk *w, uint32_t index) {
  const sn_instr *i = &w->plan->instrs[index];
  const sn_route *route = w->plan->route;
  const sn_step *step = sn_route_run(route, i->id, i->rerun);
  sn_span span = w->trace->spans[index], held = span; /* the workspace is held */
  if (i->bytes > 0) held.begin_ns -= w->trace->workspace_alloc_ns, held.end_ns += w->trace->workspace_free_ns;
  add_workspace_bar(w, index, SN_BAR_ALLOC, held.begin_ns, span.begin_ns);
  uint32_t bar = add_bar(w, index, SN_BAR_COMPUTE, i->id + 1, w->layers[step->layer]);
  w->last_bar[i->lane] = bar;
  for (uint32_t a = 0; a < step->n_accesses; a++) {
    sn_access access = route->accesses[step->first_access + a];
    if (sn_plan_is_corun(w->plan) && !sn_step_part_has(route, i->id, (sn_step_part)i->part, a)) continue;
    tensor_state *t = &w->tensors[access.tensor];
    add_arrow(w, t->fetched, bar, access.tensor);
    t->fetched = SN_NONE;
    if (access.mode != SN_READ) t->writer = bar;
  }
  add_workspace_bar(w, index, SN_BAR_RELEASE, span.end_ns, held.end_ns);
  if (held.end_ns > w->now[i->lane]) w->now[i->lane] = held.end_ns;
  if (i->bytes > 0) close_rect(w, open_rect(w, index, SN_NONE, held.begin_ns), index + 1, i->step, held.end_ns);
}

static void take_copy(walk *w, uint32_t index) {
  const sn_instr *i = &w->plan->instrs[index];
  tensor_state *t = &w->tensors[i->id];
  bool out = i->kind == SN_COPY_OUT;
  uint32_t bar = add_bar(w, index, out ? SN_BAR_COPY_OUT : SN_BAR_COPY_IN, i->id, w->made->tensors[i->id].name);
  w->last_bar[i->lane] = bar;
  if (out)
    add_arrow(w, t->writer, bar, i->id);
  else
    t->fetched = bar;
}

static void take_wait(walk *w, uint32_t index) {
  if (takes_time(&w->trace->spans[index]))
    add_bar(w, index, SN_BAR_STALL, w->fence_bar[w->plan->instrs[index].id], "wait");
}

static void take(walk *w, uint32_t index) {
  const sn_instr *i = &w->plan->instrs[index];
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
    take_alloc(w, index);
    break;
  case SN_RELEASE:
    take_release(w, index);
    break;
  case SN_COMPUTE:
    take_compute(w, index);
    break;
  case SN_COPY_OUT:
  case SN_COPY_IN:
    take_copy(w, index);
    break;
  case SN_SIGNAL:
    w->fence_bar[i->id] = w->last_bar[i->lane];
    break;
  case SN_WAIT:
    take_wait(w, index);
    break;
  case SN_INSTR_KINDS:
    break;
  }
  if (w->trace->spans[index].end_ns > w->now[i->lane]) w->now[i->lane] = w->trace->spans[index].end_ns;
}

/* ---- memory over time ---- */

/* A rectangle's beginning or end. */
typedef struct edge {
  int64_t ns;
  const sn_rect *rect;
  bool opens;
} edge;

static int compare_edges(const void *a, const void *b) {
  const edge *x = a, *y = b;
  return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void apply_edge(const walk *w, const edge *e, sn_level *level) {
  uint64_t *sum = e->rect->tensor == SN_NONE ? &level->workspace_bytes : &level->tensor_bytes;
  uint64_t bytes = e->rect->tensor == SN_NONE ? e->rect->bytes : w->made->tensors[e->rect->tensor].bytes;
  if (e->opens)
    *sum += bytes;
  else
    *sum -= bytes;
  if (e->rect->tensor == SN_NONE) return;
  level->live_tensors += e->opens ? 1u : -1u;
}

static void sum_levels(const walk *w, const edge *edges, uint32_t n, sn_level *levels) {
  sn_level level = {0};
  for (uint32_t i = 0; i < n; i++) {
    level.ns = edges[i].ns;
    apply_edge(w, &edges[i], &level);
    if (i + 1 == n || edges[i + 1].ns > edges[i].ns) levels[w->made->n_levels++] = level;
  }
}

static sn_status make_levels(walk *w, sn_err *err) {
  uint32_t n = 2 * w->made->n_rects;
  edge *edges = malloc(((size_t)n + 1) * sizeof *edges);
  sn_level *levels = sn_arena_alloc(w->made->arena, n, sizeof *levels);
  if (edges && levels) {
    for (size_t r = 0; r < w->made->n_rects; r++) {
      edges[2 * r] = (edge){w->rects[r].from_ns, &w->rects[r], true};
      edges[2 * r + 1] = (edge){w->rects[r].to_ns, &w->rects[r], false};
    }
    qsort(edges, n, sizeof *edges, compare_edges);
    sum_levels(w, edges, n, levels);
  }
  w->made->levels = levels;
  free(edges);
  return edges && levels ? SN_OK : sn_fail_memory(err);
}

/* ---- all of it ---- */

/* Room for the most there can be: an instruction makes at most one bar and one rectangle, a copy one arrow; with a
 * workspace there are two bars more. */
static sn_status make_room(walk *w, sn_err *err) {
  const sn_plan *plan = w->plan;
  sn_arena *arena = w->made->arena;
  uint32_t bars = 0, rects = 0, copies = 0, computes = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    bars += instr->kind == SN_COMPUTE && instr->bytes > 0 ? 3 : instr->kind != SN_SIGNAL;
    rects += instr->kind == SN_ALLOC || (instr->kind == SN_COMPUTE && instr->bytes > 0);
    copies += instr->kind == SN_COPY_OUT || instr->kind == SN_COPY_IN;
    computes += instr->kind == SN_COMPUTE;
  }
  uint32_t columns = sn_plan_is_corun(plan) ? computes : plan->route->n_steps;
  w->bars = sn_arena_alloc(arena, bars, sizeof *w->bars);
  w->rects = sn_arena_alloc(arena, rects, sizeof *w->rects);
  w->arrows = sn_arena_alloc(arena, copies, sizeof *w->arrows);
  w->steps = sn_arena_alloc(arena, plan->route->n_steps, sizeof *w->steps);
  w->columns = sn_arena_alloc(arena, columns, sizeof *w->columns);
  w->places = sn_arena_alloc(arena, (size_t)plan->n_instrs + 1, sizeof *w->places);
  w->tensors = malloc(((size_t)plan->route->n_tensors + 1) * sizeof *w->tensors);
  w->fence_bar = malloc(((size_t)plan->n_fences + 1) * sizeof *w->fence_bar);
  for (uint32_t t = 0; w->tensors && t < plan->route->n_tensors; t++)
    w->tensors[t] = (tensor_state){SN_NONE, SN_NONE, SN_NONE};
  bool good = w->bars && w->rects && w->arrows && w->steps && w->columns && w->places && w->tensors && w->fence_bar;
  return good ? SN_OK : sn_fail_memory(err);
}

static sn_status fill(walk *w, sn_err *err) {
  sn_timeline *t = w->made;
  t->net = sn_arena_text(t->arena, w->plan->route->name);
  if (!t->net) return sn_fail_memory(err);
  if (make_room(w, err) != SN_OK || copy_layers(w, t->arena, err) != SN_OK || copy_tensors(w, t->arena, err) != SN_OK)
    return err->code;
  if (describe_steps(w, t->arena, err) != SN_OK || cut_columns(w, err) != SN_OK) return err->code;
  find_places(w);
  for (sn_lane lane = 0; lane < SN_LANES; lane++) w->last_bar[lane] = SN_NONE;
  for (uint32_t i = 0; i < w->plan->n_instrs; i++) take(w, i);
  t->bars = w->bars;
  t->rects = w->rects;
  t->arrows = w->arrows;
  t->steps = w->steps;
  t->columns = w->columns;
  t->places = w->places;
  return make_levels(w, err);
}

static sn_timeline *begin(const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_timeline *t = arena ? sn_arena_alloc(arena, 1, sizeof *t) : NULL;
  if (!t) {
    sn_arena_free(arena);
    sn_fail_memory(err);
    return NULL;
  }
  *t = (sn_timeline){.batch = plan->route->batch,
                     .n_instrs = plan->n_instrs,
                     .n_steps = plan->route->n_steps,
                     .n_forward = plan->route->first_backward,
                     .n_trained = plan->route->first_update,
                     .pool_bytes = plan->pool_bytes,
                     .pool_limit = plan->pool_limit,
                     .external_bytes = plan->external_bytes,
                     .cores = plan->cores,
                     .slots = plan->slots,
                     .batch_ns = sn_trace_batch_ns(trace, plan),
                     .end_ns = trace->end_ns,
                     .allocation_ns = trace->allocation_ns,
                     .arena = arena};
  for (uint32_t lane = 0; lane < sn_plan_lanes(plan); lane++) {
    t->busy_ns[lane] = trace->busy_ns[lane];
    t->stall_ns[lane] = trace->stall_ns[lane];
  }
  return t;
}

sn_timeline *sn_timeline_new(const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  if (trace->n_spans != plan->n_instrs) {
    sn_fail(err, SN_BUG, "a trace of %u instructions is not that of a plan of %u", trace->n_spans, plan->n_instrs);
    return NULL;
  }
  sn_timeline *made = begin(plan, trace, err);
  if (!made) return NULL;
  walk w = {.plan = plan, .trace = trace, .made = made};
  sn_status status = fill(&w, err);
  free(w.tensors);
  free(w.fence_bar);
  if (status == SN_OK) return made;
  sn_timeline_free(made);
  return NULL;
}

static sn_extent *copy_extents(sn_arena *arena, const sn_extent *extents, uint32_t n) {
  sn_extent *copy = sn_arena_alloc(arena, n + 1, sizeof *copy);
  if (copy && n > 0) memcpy(copy, extents, n * sizeof *copy);
  return copy;
}

sn_status sn_timeline_serve(sn_timeline *t, const sn_caching_map *map, sn_err *err) {
  sn_extent *rects = sn_arena_alloc(t->arena, (size_t)t->n_rects + 1, sizeof *rects);
  sn_served served = {.rects = rects,
                      .stays = copy_extents(t->arena, map->stays.all, map->stays.n),
                      .segments = copy_extents(t->arena, map->segments.all, map->segments.n),
                      .n_stays = map->stays.n,
                      .n_segments = map->segments.n,
                      .end_bytes = map->end_bytes};
  if (!rects || !served.stays || !served.segments) return sn_fail_memory(err);
  for (uint32_t r = 0; r < t->n_rects; r++) rects[r] = map->taken[t->rects[r].from_instr];
  for (uint32_t s = 0; s < served.n_segments; s++) served.reserved_bytes += served.segments[s].bytes;
  t->served = served;
  return SN_OK;
}

void sn_timeline_free(sn_timeline *timeline) {
  if (timeline) sn_arena_free(timeline->arena);
}

uint32_t sn_timeline_lanes(const sn_timeline *t, sn_lane lanes[SN_LANES]) {
  static const sn_lane order[SN_LANES] = {
      SN_LANE_COMPUTE,      SN_LANE_COMPUTE2, SN_LANE_COMPUTE2 + 1, SN_LANE_COMPUTE2 + 2, SN_LANE_COMPUTE2 + 3,
      SN_LANE_COMPUTE2 + 4, SN_LANE_OUT,      SN_LANE_IN,           SN_LANE_TP,           SN_LANE_FSDP,
      SN_LANE_DP,           SN_LANE_SEND,     SN_LANE_RECEIVE};
  uint32_t n = 0;
  for (uint32_t i = 0; i < SN_LANES; i++)
    if ((!sn_timeline_is_corun(t) && order[i] < SN_PLAIN_LANES) || t->busy_ns[order[i]] > 0) lanes[n++] = order[i];
  return n;
}

double sn_timeline_divide(const sn_timeline *t) {
  uint32_t c = 0;
  while (c < t->n_columns && t->columns[c].step < t->n_forward) c++;
  return c + 1.0;
}

const char *sn_bar_part(const sn_bar *bar) {
  return bar->part == SN_STEP_FILTER ? " filter" : bar->part == SN_STEP_DATA ? " data" : "";
}

const char *sn_bar_kind_name(sn_bar_kind kind) {
  static const char *const names[SN_BAR_KINDS] = {"compute", "copy_out", "copy_in", "stall", "alloc", "release"};
  return names[kind];
}
