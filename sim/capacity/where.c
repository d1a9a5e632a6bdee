/* Where the memory is; see the header. One walk along the plan up to the fullest moment says what is there; each tensor
 * is put to a group by the unit of the layer that it is of. */
#include "sim/capacity/where.h"

#include "models/record/record_net.h"
#include "sim/ask/result.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/plan/cursor.h"
#include "sim/schedule/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE = 44 }; /* characters of a name */

/* Groups by kind; those of stages and sizes have a key of their own. */
typedef enum kind {
  ATTENTIONS,
  MLPS,
  STAGE,    /* units of blocks with the same parent: key is its path */
  SIZE,     /* units whose outputs have so many rows and columns */
  OUTSIDE,  /* a network that has no unit */
  BETWEEN,  /* what of a recording is in no block */
  RESIDUAL, /* what attentions and MLPs add up */
  TAIL,     /* what lies behind the last unit */
  COPIES,   /* of weights, by autocast */
  RESIDENT, /* parameters and states of the optimizer */
  GRADIENTS,
  PASSING, /* gradients of values, and what one step makes and drops */
  BATCH,
  KINDS
} kind;

/* The first characters of a path. */
typedef struct path {
  const char *text;
  size_t length;
} path;

typedef struct group {
  kind kind;
  path stage;                /* of a STAGE; else empty */
  uint32_t rows, columns;    /* of a SIZE */
  uint32_t units, last_unit; /* how many of them, and the one counted last */
  bool *counted;             /* by unit, one more for the tail */
  bool wide;                 /* some of its numbers have four bytes */
  uint64_t bytes;
} group;

typedef struct search {
  const sn_net *net;
  const sn_plan *plan;
  const sn_route *route, *laid; /* laid: that units are steps of; of a pipeline's stage the whole's, of one batch */
  const sn_options *options;
  sn_strategy strategy;
  uint32_t peak;
  sn_units units;
  group *of_unit; /* what a unit's tensors are put to, without bytes; one more for the tail */
  bool *here;     /* by tensor: it is on the device at the peak */
  group *groups;
  uint32_t count, room;
  sn_err *err;
} search;

/* ---- units ---- */

static const sn_layer *layer_at(const search *s, uint32_t step) {
  return &s->laid->layers[s->laid->steps[step].layer];
}

static bool is_path(path p, const char *text) {
  return strlen(text) == p.length && strncmp(p.text, text, p.length) == 0;
}

/* As texts, in alphabetical order. */
static int compare_paths(path a, path b) {
  size_t both = a.length < b.length ? a.length : b.length;
  int order = both > 0 ? strncmp(a.text, b.text, both) : 0;
  return order ? order : (int)(a.length > b.length) - (int)(a.length < b.length);
}

/* The path of the module whose children a layer's block is one of; empty where that is the model, or all its features. Of
 * a recording the block's own where that is the model, and features are a list like any other. */
static path stage_of(const sn_route *route, uint32_t layer) {
  const char *block = sn_route_block(route, layer), *dot = block ? strrchr(block, '.') : NULL;
  path stage = {dot ? block : "", dot ? (size_t)(dot - block) : 0};
  if (route->work && block && !dot) return (path){block, strlen(block)}; /* a block that is no member of anything */
  return !route->work && is_path(stage, "features") ? (path){"", 0} : stage;
}

/* Blocks that the module has, which stand one behind the other; *last is the last of them. A loop of several passes has
 * them again. */
static uint32_t count_blocks(const sn_route *route, path stage, const char **last_block) {
  const char *first = "", *last = "";
  uint32_t count = 0;
  for (uint32_t i = 0; i < route->n_layers; i++) {
    const char *block = sn_route_block(route, i);
    if (route->layers[i].op == SN_FORK || !block || compare_paths(stage_of(route, i), stage) != 0) continue;
    if (strcmp(block, last) == 0) continue;
    if (strcmp(block, first) == 0) break;
    if (count++ == 0) first = block;
    last = block;
  }
  *last_block = last;
  return count;
}

static bool is_convolution(sn_op op) {
  return op == SN_CONV || op == SN_DECONV;
}

static group describe_unit(const search *s, uint32_t first, uint32_t end) {
  bool attends = false, multiplies = false, convolves = false, routes = false;
  for (uint32_t step = first; step < end; step++) {
    sn_op op = layer_at(s, step)->op;
    attends = attends || op == SN_ATTENTION || op == SN_PROBABILITIES;
    multiplies = multiplies || op == SN_FC || op == SN_MATMUL;
    routes = routes || op == SN_EXPERTS; /* whose router has a softmax, too */
    convolves = convolves || is_convolution(op);
  }
  if (routes) return (group){.kind = MLPS};
  if (attends || (multiplies && !convolves)) return (group){.kind = attends ? ATTENTIONS : MLPS};
  const sn_layer *last = layer_at(s, end - 1);
  return (group){.kind = SIZE, .rows = sn_layer_rows(last), .columns = last->out.w};
}

/* What lies behind the last unit may be blocks all the same, where two values go on from one to the next. */
static void cut_tail(search *s) {
  sn_units *u = &s->units;
  if (s->net->recorded && u->count == 0) return; /* a loop of several passes, or a model without blocks */
  for (uint32_t step = u->first[u->count]; step + 1 < s->laid->first_backward; step++)
    if (layer_at(s, step)->op == SN_JOIN && !sn_layer_adds_adapter(s->net, layer_at(s, step)))
      u->first[++u->count] = step + 1;
}

static void describe_units(search *s) {
  for (uint32_t u = 0; u < s->units.count; u++)
    s->of_unit[u] = sn_units_stays(&s->units, u) ? (group){.kind = BETWEEN}
                                                 : describe_unit(s, s->units.first[u], s->units.first[u + 1]);
  bool chosen = s->net->recorded && s->net->recorded->chosen; /* what is behind the last is any part of the model */
  s->of_unit[s->units.count] = (group){.kind = s->units.count == 0 ? OUTSIDE : chosen ? BETWEEN : TAIL};
}

/* ---- groups ---- */

static group *find_group(search *s, const group *like) {
  for (uint32_t i = 0; i < s->count; i++) {
    group *g = &s->groups[i];
    if (g->kind == like->kind && g->rows == like->rows && g->columns == like->columns &&
        compare_paths(g->stage, like->stage) == 0)
      return g;
  }
  if (s->count == s->room) {
    uint32_t room = 2 * s->room + KINDS;
    group *grown = realloc(s->groups, room * sizeof *grown);
    if (!grown) return sn_fail_memory(s->err), NULL;
    s->groups = grown;
    s->room = room;
  }
  s->groups[s->count] = *like;
  s->groups[s->count].counted = calloc((size_t)s->units.count + 1, sizeof(bool));
  if (!s->groups[s->count].counted) return sn_fail_memory(s->err), NULL;
  return &s->groups[s->count++];
}

static void put(search *s, const group *like, uint32_t unit, uint64_t bytes, bool wide) {
  group *g = bytes > 0 ? find_group(s, like) : NULL;
  if (!g) return;
  g->bytes += bytes;
  g->wide = g->wide || wide;
  if (unit == SN_NONE || g->counted[unit]) return;
  g->counted[unit] = true;
  g->units++;
  g->last_unit = unit;
}

static void put_kind(search *s, kind k, uint64_t bytes, bool wide) {
  const group like = {.kind = k};
  put(s, &like, SN_NONE, bytes, wide);
}

/* Four bytes an element. */
static bool is_wide(const sn_layer *layer, uint64_t bytes) {
  sn_shape out = layer->out;
  return bytes >= UINT64_C(4) * out.n * out.c * out.h * out.w;
}

/* What forward has left there for backward, or for who reads it next. */
static void put_kept(search *s, uint32_t tensor) {
  const sn_tensor *t = &s->route->tensors[tensor];
  const sn_layer *layer = &s->route->layers[t->layer];
  uint32_t step = s->laid->forward_step[t->layer];
  uint32_t unit = step == SN_NONE ? s->units.count : sn_units_of(&s->units, s->laid, step);
  kind k = s->of_unit[unit].kind;
  bool by_block = k == SIZE || ((k == OUTSIDE || k == TAIL) && s->net->recorded); /* of a later pass */
  const group staged = {.kind = STAGE, .stage = by_block ? stage_of(s->route, t->layer) : (path){"", 0}};
  bool sequence = k == ATTENTIONS || k == MLPS;
  if (staged.stage.length > 0)
    put(s, &staged, unit, t->bytes, false);
  else if (sequence && layer->op == SN_JOIN && t->role == SN_VALUE)
    put_kind(s, RESIDUAL, t->bytes, is_wide(layer, t->bytes));
  else
    put(s, &s->of_unit[unit], unit, t->bytes, false);
}

static void put_tensor(search *s, uint32_t tensor) {
  const sn_tensor *t = &s->route->tensors[tensor];
  if (t->role == SN_PARAMETER_GRADIENT || t->role == SN_SHARD || t->role == SN_SUMMED)
    put_kind(s, GRADIENTS, t->bytes, false);
  else if (sn_tensor_is_weight_cast(t))
    put_kind(s, COPIES, t->bytes, false);
  else if (t->role == SN_VALUE || t->role == SN_SAVED || t->role == SN_CARRIED)
    put_kept(s, tensor);
  else
    put_kind(s, PASSING, t->bytes, false);
}

/* ---- the moment ---- */

static void walk_to_peak(search *s) {
  sn_cursor c = {.plan = s->plan};
  for (const sn_instr *i; !sn_cursor_is_fullest(&c, s->peak) && (i = sn_cursor_next(&c));)
    if (sn_instr_moves(i)) s->here[i->id] = i->kind == SN_ALLOC;
}

static void put_all(search *s) {
  const sn_iteration iteration = s->options->iteration;
  const sn_persistent p = sn_persistent_of(s->net, s->strategy.dialect, iteration);
  put_kind(s, RESIDENT, p.parameters + p.auxiliary + p.optimizer_state, false);
  put_kind(s, GRADIENTS, p.parameter_gradients, false);
  put_kind(s, BATCH, p.input_batch + p.labels, false);
  for (uint32_t t = 0; t < s->route->n_tensors; t++)
    if (s->here[t]) put_tensor(s, t);
}

static const char *moment_of(const search *s, sn_arena *arena) {
  const sn_step *step = &s->route->steps[s->peak];
  const char *module = sn_route_module(s->route, step->layer);
  if (!*module) module = s->route->layers[step->layer].name; /* of a recording, outside of all modules */
  if (step->pass == SN_UPDATE) return "in the update";
  if (step->pass == SN_FORWARD) return sn_arena_print(arena, "in forward of %s", module);
  if (s->route->micros > 0) return sn_arena_print(arena, "in backward of %s", module); /* between others' forward */
  uint32_t far = s->peak - s->route->first_backward, all = s->route->first_update - s->route->first_backward;
  return far <= all / 20 ? "when backward begins" : sn_arena_print(arena, "in backward of %s", module);
}

/* ---- in words ---- */

static const char *resident_name(const search *s, sn_arena *arena) {
  const char *state = sn_optimizer_state_name(s->options->iteration.optimizer), *open = strchr(state, '(');
  if (s->net->recorded) return "parameters and optimizer";
  if (s->options->iteration.inference || !open) return "parameters";
  if (sn_iteration_keeps_masters(s->options->iteration))
    return sn_arena_print(arena, "weights, also fp32, and %.*s", (int)strcspn(open + 1, ")"), open + 1);
  return sn_arena_print(arena, "parameters and %.*s", (int)strcspn(open + 1, ")"), open + 1);
}

/* A single unit is told by its first and last layer, where that is short. */
static const char *range_name(const search *s, uint32_t unit, const char *kept, sn_arena *arena) {
  const sn_step *steps = s->laid->steps;
  const char *first = sn_route_module(s->route, steps[s->units.first[unit]].layer),
             *last = sn_route_module(s->route, steps[s->units.first[unit + 1] - 1].layer);
  return sn_arena_print(arena, "%s%s .. %s", kept, first, last);
}

static const char *kept_name(const search *s, const group *g, sn_arena *arena) {
  const char *plural = g->units == 1 ? "" : "s", *kept = s->options->iteration.inference ? "" : "kept by ";
  const char *range = g->kind == SIZE && g->units == 1 ? range_name(s, g->last_unit, kept, arena) : NULL;
  if (range && strlen(range) <= RANGE) return range;
  if (g->kind == SIZE)
    return sn_arena_print(arena, "%s%" PRIu32 " block%s to %" PRIu32 "x%" PRIu32, kept, g->units, plural, g->rows,
                          g->columns);
  if (g->kind == ATTENTIONS) return sn_arena_print(arena, "%s%" PRIu32 " attention%s", kept, g->units, plural);
  if (g->kind == MLPS) return sn_arena_print(arena, "%s%" PRIu32 " MLP%s", kept, g->units, plural);
  const char *last;
  uint32_t all = count_blocks(s->route, g->stage, &last), blocks = s->route->micros > 0 ? g->units : all;
  if (s->net->recorded && blocks == 1) return sn_arena_print(arena, "%s%s", kept, last);
  return sn_arena_print(arena, "%s%.*s, %" PRIu32 " block%s", kept, (int)g->stage.length, g->stage.text, blocks,
                        blocks == 1 ? "" : "s");
}

static const char *name_of(const search *s, const group *g, sn_arena *arena) {
  static const char *const names[KINDS] = {
      [OUTSIDE] = "kept by all layers",        [TAIL] = "logits and loss",         [COPIES] = "weights in two bytes",
      [GRADIENTS] = "gradients of parameters", [PASSING] = "what this step makes", [BATCH] = "input and labels",
      [BETWEEN] = "kept outside of blocks"};
  if (g->kind == RESIDENT) return resident_name(s, arena);
  if (g->kind == RESIDUAL)
    return g->wide && !sn_precision_is_wide(s->options->iteration.precision) ? "residual stream, fp32"
                                                                             : "residual stream";
  return names[g->kind] ? names[g->kind] : kept_name(s, g, arena);
}

static bool predicts_positions(const search *s) {
  for (uint32_t i = 0; i < s->route->n_layers; i++)
    if (s->route->layers[i].op == SN_SOFTMAX && s->route->layers[i].attr->positions) return true;
  return false;
}

static const char *advice_of(const search *s, const group *g) {
  const sn_iteration iteration = s->options->iteration;
  bool several = s->net->recorded && s->net->recorded->backwards > 1; /* whose blocks are not planned */
  bool checkpoints = s->strategy.recompute == SN_RECOMPUTE_NONE && !iteration.inference && !several &&
                     iteration.mesh.schedule != SN_SCHEDULE_ZB_H1;
  switch (g->kind) {
  case ATTENTIONS:
  case MLPS:
  case STAGE:
  case SIZE:
  case RESIDUAL:
    return checkpoints ? "checkpoint" : "";
  case TAIL:
    return predicts_positions(s) && !iteration.inference ? "loss in parts" : "";
  case RESIDENT:
    if (iteration.inference || sn_optimizer_states(iteration.optimizer) < 2 ||
        sn_optimizer_is_8bit(iteration.optimizer) || !sn_mesh_is_one(&iteration.mesh)) /* which have none */
      return "";
    return iteration.optimizer == SN_OPTIMIZER_ADAM ? "8-bit Adam" : "8-bit AdamW";
  default:
    return "";
  }
}

/* Largest first; groups of the same size by kind, then as they came, which is the order of their first tensor. */
static int compare_groups(const void *a, const void *b) {
  const group *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  int stages = compare_paths(x->stage, y->stage);
  return stages ? stages : (int)(x->rows < y->rows) - (int)(x->rows > y->rows);
}

/* Groups that have a row of their own; what is less than a hundredth of all is of the rest. */
static uint32_t count_told(const search *s, uint64_t total) {
  uint32_t large = 0;
  while (large < s->count && s->groups[large].bytes >= total / 100) large++;
  return large == s->count && large <= SN_WHERE_GROUPS ? large : large < SN_WHERE_GROUPS ? large : SN_WHERE_GROUPS - 1;
}

static sn_status tell(search *s, sn_where *where) {
  sn_where_group *told = sn_arena_alloc(where->arena, SN_WHERE_GROUPS, sizeof *told);
  if (!told) return sn_fail_memory(s->err);
  qsort(s->groups, s->count, sizeof *s->groups, compare_groups);
  *where = (sn_where){.step = s->peak + 1,
                      .n_steps = s->route->n_steps,
                      .moment = moment_of(s, where->arena),
                      .groups = told,
                      .arena = where->arena};
  for (uint32_t i = 0; i < s->count; i++) where->total_bytes += s->groups[i].bytes;
  uint32_t own = count_told(s, where->total_bytes);
  for (uint32_t i = 0; i < own; i++) {
    const group *g = &s->groups[i];
    told[i] = (sn_where_group){name_of(s, g, where->arena), g->bytes, advice_of(s, g)};
    if (!told[i].name) return sn_fail_memory(s->err);
  }
  where->n_groups = own;
  if (own == s->count) return where->moment ? SN_OK : sn_fail_memory(s->err);
  told[own] = (sn_where_group){.name = "the rest", .advice = ""};
  for (uint32_t i = own; i < s->count; i++) told[own].bytes += s->groups[i].bytes;
  where->n_groups++;
  return where->moment ? SN_OK : sn_fail_memory(s->err);
}

static sn_status find(search *s, sn_where *where) {
  s->peak = sn_result_peak(s->plan, s->plan->use);
  if (sn_units_find_kind(s->route, SN_UNITS_CUT, &s->units, s->err) != SN_OK) return s->err->code;
  cut_tail(s);
  s->here = calloc((size_t)s->route->n_tensors + 1, sizeof *s->here);
  s->of_unit = calloc((size_t)s->units.count + 1, sizeof *s->of_unit);
  if (!s->here || !s->of_unit) return sn_fail_memory(s->err);
  describe_units(s);
  walk_to_peak(s);
  put_all(s);
  return s->err->code == SN_OK ? tell(s, where) : s->err->code;
}

static sn_status find_in_plan(const sn_asked *asked, sn_strategy strategy, const sn_plan *plan, sn_where *where,
                              sn_err *err) {
  search s = {.net = asked->net,
              .plan = plan,
              .route = plan->route,
              .options = asked->options,
              .strategy = strategy,
              .err = err};
  for (s.laid = s.route; s.laid->micros > 0;) s.laid = s.laid->whole;
  sn_status status = s.route->dialect->eager ? find(&s, where)
                                             : sn_fail(err, SN_BAD_USAGE, "where memory is, is told of PyTorch alone");
  sn_units_clear(&s.units);
  free(s.here);
  free(s.of_unit);
  for (uint32_t i = 0; i < s.count; i++) free(s.groups[i].counted);
  free(s.groups);
  return status;
}

sn_where *sn_where_find(const sn_asked *asked, sn_strategy strategy, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_where *where = arena ? sn_arena_alloc(arena, 1, sizeof *where) : NULL;
  if (!where) {
    sn_arena_free(arena);
    return sn_fail_memory(err), NULL;
  }
  *where = (sn_where){.arena = arena};
  sn_planner *planner = sn_planner_new(asked->net, asked->device, asked->options, err);
  sn_plan *plan = planner ? sn_planner_plan(planner, strategy, asked->device->memory_bytes, true, err) : NULL;
  if (plan) find_in_plan(asked, strategy, plan, where, err);
  sn_plan_free(plan);
  sn_planner_free(planner);
  if (err->code == SN_OK) return where;
  sn_where_free(where);
  return NULL;
}

void sn_where_free(sn_where *where) {
  if (where) sn_arena_free(where->arena);
}
