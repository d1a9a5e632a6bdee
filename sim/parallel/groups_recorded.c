/* Groups of a recording. Its blocks are paths of modules, and a parameter is in the block whose path its name begins
 * with; which step is in which block, where the model begins and ends and whose input needs a gradient follows from the
 * calls that were recorded. The rest stands in the header. */
#include "sim/parallel/groups.h"

#include "models/record/lives.h"
#include "models/record/owners.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct finder {
  const sn_route *route;
  const struct sn_recorded *w;
  const sn_record *record;
  sn__groups *g;
  const char **own;     /* paths of modules that have parameters, in the order of strcmp() */
  const char **names;   /* of groups, each a pointer into g->groups, in that order too */
  uint32_t *by_name;    /* the group of each */
  uint32_t *of_call;    /* per call: the group in whose block it is; g->count: none */
  bool *in_model;       /* per call: within a call of the model, not of a loss */
  bool *traced;         /* per storage: what is made of a trained parameter */
  uint32_t *entered_by; /* per group: the call of its block; 0: none yet */
  sn_err *err;
} finder;

static const sn_record_op *op_of(const finder *f, uint32_t step) {
  return &f->record->ops[f->w->first_op + step];
}

static const char *path_of(const finder *f, uint32_t call) {
  return f->record->modules[f->record->calls[call].module].path;
}

/* ---- names ---- */

/* Of two paths of which the first ends behind `length` bytes. */
static int compare_path(const char *path, size_t length, const char *other) {
  int order = strncmp(path, other, length);
  return order != 0 ? order : other[length] == '\0' ? 0 : -1;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Where a path stands among sorted ones; SN_NONE. */
static uint32_t find_path(const char *const *paths, uint32_t n, const char *path, size_t length) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare_path(path, length, paths[middle]);
    if (order == 0) return middle;
    *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
  }
  return SN_NONE;
}

/* Of "layer1.0.conv1.weight" the length of "layer1.0.conv1"; SN_NONE behind the first part. */
static size_t length_above(const char *name, size_t length) {
  while (length > 0 && name[length - 1] != '.') length--;
  return length > 0 ? length - 1 : SIZE_MAX;
}

/* The group in whose block a path is. */
static uint32_t group_of_path(const finder *f, const char *path) {
  for (size_t length = strlen(path); length != SIZE_MAX; length = length_above(path, length)) {
    uint32_t at = find_path(f->names, f->g->count, path, length);
    if (at != SN_NONE) return f->by_name[at];
  }
  return f->g->count;
}

static sn_status find_own(finder *f, sn_arena *arena) {
  for (uint32_t p = 0; p < f->record->n_parameters; p++) {
    const char *name = f->record->parameters[p].name;
    size_t length = length_above(name, strlen(name));
    f->own[p] = sn_arena_print(arena, "%.*s", length == SIZE_MAX ? 0 : (int)length, name);
    if (!f->own[p]) return sn_fail_memory(f->err);
  }
  qsort(f->own, f->record->n_parameters, sizeof(const char *), compare_texts);
  return SN_OK;
}

static bool has_blocks(const finder *f) {
  for (uint32_t s = 0; s < f->w->n_forward; s++)
    if (sn_route_block(f->route, f->route->steps[s].layer)) return true;
  return false;
}

/* Blocks, or modules that have parameters, as forward comes to them; the model itself is none. */
static void name_groups(finder *f) {
  bool blocks = has_blocks(f);
  sn__groups *g = f->g;
  const char *last = NULL;
  g->count = 0;
  for (uint32_t s = 0; s < f->w->n_forward; s++) {
    uint32_t layer = f->route->steps[s].layer;
    const char *name = blocks ? sn_route_block(f->route, layer) : sn_route_module(f->route, layer);
    if (!name || !*name || name == last) continue;
    last = name;
    if (!blocks && find_path(f->own, f->record->n_parameters, name, strlen(name)) == SN_NONE) continue;
    f->names[g->count++] = name;
  }
}

/* Each name once, the first one of it. */
static void sort_names(finder *f) {
  sn__groups *g = f->g;
  uint32_t n = 0, all = g->count;
  for (uint32_t i = 0; i < all; i++) g->groups[i].name = f->names[i];
  qsort(f->names, all, sizeof(const char *), compare_texts);
  for (uint32_t i = 0; i < all; i++)
    if (n == 0 || strcmp(f->names[n - 1], f->names[i]) != 0) f->names[n++] = f->names[i];
  memset(f->by_name, 0xff, ((size_t)n + 1) * sizeof *f->by_name);
  g->count = 0;
  for (uint32_t i = 0; i < all; i++) {
    const char *name = g->groups[i].name;
    uint32_t *group = &f->by_name[find_path(f->names, n, name, strlen(name))];
    if (*group != SN_NONE) continue;
    *group = g->count;
    g->groups[g->count++] = (sn__group){.name = name, .forward = SN_NONE, .backward = SN_NONE};
  }
  g->groups[g->count] = (sn__group){.name = "root", .forward = SN_NONE, .backward = SN_NONE};
}

/* ---- calls ---- */

/* A loss is a module of nobody: its path is "?". Parents stand ahead. */
static void find_calls(finder *f) {
  f->of_call[0] = f->g->count;
  for (uint32_t c = 1; c < f->record->n_calls; c++) {
    uint32_t parent = f->record->calls[c].parent;
    f->in_model[c] = parent > 0 ? f->in_model[parent] : strcmp(path_of(f, c), "?") != 0;
    f->of_call[c] = f->of_call[parent];
    if (f->of_call[parent] == f->g->count && f->in_model[c] && *path_of(f, c)) {
      uint32_t at = find_path(f->names, f->g->count, path_of(f, c), strlen(path_of(f, c)));
      if (at != SN_NONE) f->of_call[c] = f->by_name[at];
    }
  }
}

/* One that is called a second time is gathered a second time. */
static sn_status enter(finder *f, const sn_record_event *event) {
  uint32_t group = f->of_call[event->id], parent = f->record->calls[event->id].parent;
  if (group == f->g->count || f->of_call[parent] == group) return SN_OK;
  if (f->entered_by[group])
    return sn_fail(f->err, SN_BAD_INPUT,
                   "%s: block %.200s is called several times in an iteration, which is not simulated on several GPUs; "
                   "--units names other blocks",
                   f->record->name, f->g->groups[group].name);
  f->entered_by[group] = event->id;
  const uint32_t *arguments = &f->record->arguments[event->other];
  for (uint32_t i = 1; i <= arguments[0]; i++)
    f->g->groups[group].input_trained = f->g->groups[group].input_trained || f->traced[arguments[i]];
  return SN_OK;
}

static void trace(finder *f, const sn_record_op *op) {
  const uint32_t *refs = &f->record->refs[op->first_ref];
  bool traced = false;
  for (uint32_t i = 0; i < op->n_reads && !traced; i++) traced = f->traced[refs[i]];
  for (uint32_t i = op->n_reads; i < op->n_reads + op->n_makes + op->n_changes && traced && op->node >= 0; i++)
    f->traced[refs[i]] = true;
}

/* Whose input needs a gradient: what of it was made of a parameter that is trained. */
static sn_status find_inputs(finder *f) {
  uint32_t op = 0;
  for (uint32_t p = 0; p < f->record->n_parameters; p++)
    if (f->record->parameters[p].trained) f->traced[f->record->parameters[p].storage] = true;
  for (uint32_t e = f->w->first_event; e < f->w->end_event && op < f->w->n_forward; e++) {
    const sn_record_event *event = &f->record->events[e];
    if (event->kind == SN_RECORD_ENTER && enter(f, event) != SN_OK) return f->err->code;
    if (event->kind == SN_RECORD_OP) trace(f, op_of(f, op++));
  }
  return SN_OK;
}

/* ---- steps ---- */

static void note_step(sn__group *group, uint32_t step, bool forward) {
  uint32_t *first = forward ? &group->forward : &group->backward;
  if (*first == SN_NONE) *first = step;
  *(forward ? &group->forward_end : &group->backward_end) = step;
}

static void find_steps(finder *f) {
  sn__groups *g = f->g;
  const sn_route *r = f->route;
  bool *outside = calloc((size_t)r->n_layers + 1, sizeof *outside); /* per layer: it is none of the model's */
  if (!outside) {
    sn_fail_memory(f->err);
    return;
  }
  for (uint32_t l = 0; l < r->n_layers; l++) g->of[l] = g->count;
  g->model = g->model_end = g->model_backward = SN_NONE;
  for (uint32_t s = 0; s < r->first_update; s++) {
    uint32_t layer = r->steps[s].layer;
    bool forward = s < r->first_backward;
    if (forward) g->of[layer] = f->of_call[op_of(f, s)->call];
    if (forward) outside[layer] = !f->in_model[op_of(f, s)->call];
    if (forward && !outside[layer]) g->model_end = s;
    if (forward && !outside[layer] && g->model == SN_NONE) g->model = s;
    if (!forward && !outside[layer] && g->model_backward == SN_NONE) g->model_backward = s;
    g->of_step[s] = g->of[layer];
    note_step(&g->groups[g->of[layer]], s, forward);
  }
  if (g->model == SN_NONE) g->model = 0, g->model_end = r->first_backward - 1;
  if (g->model_backward == SN_NONE) g->model_backward = r->first_backward;
  free(outside);
}

/* ---- parameters ---- */

/* The tensor of a parameter's gradient of this iteration. */
static sn_status find_gradient(finder *f, const sn_record_parameter *p, uint32_t *tensor) {
  const sn_record_life *lives = f->w->lives[!f->route->dialect->sums_apart];
  *tensor = SN_NONE;
  for (uint32_t i = 0; i < p->n_gradients && p->trained; i++) {
    uint32_t s = p->gradients[i];
    if (lives[s].stay == SN_RECORD_RESIDENT)
      return sn_fail(f->err, SN_BAD_INPUT,
                     "%s: its loop keeps gradients from step to step, zero_grad(set_to_none=False), which is not "
                     "simulated on several GPUs; record it with zero_grad()",
                     f->record->name);
    if (lives[s].stay == SN_RECORD_MADE || lives[lives[s].same].stay == SN_RECORD_MADE)
      *tensor = f->route->of_storage[s];
  }
  return SN_OK;
}

static sn_status add_parameter(finder *f, uint32_t index, uint32_t group) {
  const sn_record_parameter *p = &f->record->parameters[index];
  uint32_t width = f->w->owners->width[index], gradient;
  if (width == 0 && p->elements > 0)
    return sn_fail(f->err, SN_BAD_INPUT,
                   "%s: parameter %.200s lies in a storage with what is no parameter, and is not shared",
                   f->record->name, p->name);
  if (p->elements == 0) return SN_OK;
  if (find_gradient(f, p, &gradient) != SN_OK) return f->err->code;
  sn_cut cut = {p->rows, p->elements / p->rows * width};
  if (gradient != SN_NONE) f->g->gradient_of[gradient] = group;
  f->g->parameters[f->g->n_parameters++] = (sn__parameter){SN_NONE, index, cut, gradient};
  return SN_OK;
}

static sn_status add_parameters(finder *f) {
  const uint32_t n = f->record->n_parameters;
  uint32_t *group_of = malloc(((size_t)n + 1) * sizeof *group_of);
  if (!group_of) return sn_fail_memory(f->err);
  for (uint32_t p = 0; p < n; p++) group_of[p] = group_of_path(f, f->record->parameters[p].name);
  uint32_t *order = malloc(((size_t)n + 1) * sizeof *order), *first = calloc((size_t)f->g->count + 3, sizeof *first);
  if (order && first) {
    for (uint32_t p = 0; p < n; p++) first[group_of[p] + 2]++;
    for (uint32_t g = 0; g <= f->g->count; g++) first[g + 2] += first[g + 1];
    for (uint32_t p = 0; p < n; p++) order[first[group_of[p] + 1]++] = p;
  } else {
    sn_fail_memory(f->err);
  }
  for (uint32_t g = 0; g <= f->g->count && f->err->code == SN_OK; g++) {
    f->g->groups[g].first_parameter = f->g->n_parameters;
    for (uint32_t i = first[g]; i < first[g + 1] && f->err->code == SN_OK; i++) add_parameter(f, order[i], g);
    f->g->groups[g].n_parameters = f->g->n_parameters - f->g->groups[g].first_parameter;
  }
  free(group_of);
  free(order);
  free(first);
  return f->err->code;
}

/* Per step the parameters that it reads; a parameter's layer is that of the first. */
static sn_status find_reads(finder *f) {
  sn__groups *g = f->g;
  const sn_route *r = f->route;
  uint32_t *head = malloc(((size_t)f->record->n_storages + 1) * sizeof *head);
  uint32_t *next = malloc(((size_t)g->n_parameters + 1) * sizeof *next), room = 0;
  if (head) memset(head, 0xff, ((size_t)f->record->n_storages + 1) * sizeof *head);
  for (uint32_t p = g->n_parameters; head && next && p-- > 0;) {
    uint32_t storage = f->record->parameters[g->parameters[p].port].storage;
    next[p] = head[storage];
    head[storage] = p;
  }
  for (uint32_t s = 0; head && next && s < r->first_update && f->err->code == SN_OK; s++) {
    const sn_record_op *op = op_of(f, s);
    g->first_read[s] = g->n_reads;
    for (uint32_t i = 0; i < op->n_reads; i++)
      for (uint32_t p = head[f->record->refs[op->first_ref + i]]; p != SN_NONE; p = next[p]) {
        if (g->n_reads == room) {
          room = 2 * room + 64;
          uint32_t *grown = room < UINT32_MAX / 8 ? realloc(g->reads, room * sizeof *grown) : NULL;
          if (!grown) return free(head), free(next), sn_fail_memory(f->err);
          g->reads = grown;
        }
        g->reads[g->n_reads++] = p;
        if (g->parameters[p].layer == SN_NONE) g->parameters[p].layer = r->steps[s].layer;
      }
    g->first_read[s + 1] = g->n_reads;
  }
  if (!head || !next) sn_fail_memory(f->err);
  free(head);
  free(next);
  return f->err->code;
}

/* Of parameters that nobody reads: the group's first. */
static void find_layers(finder *f) {
  for (uint32_t i = 0; i <= f->g->count; i++) {
    const sn__group *group = &f->g->groups[i];
    uint32_t step = group->forward == SN_NONE ? f->g->model : group->forward;
    for (uint32_t p = group->first_parameter; p < group->first_parameter + group->n_parameters; p++)
      if (f->g->parameters[p].layer == SN_NONE) f->g->parameters[p].layer = f->route->steps[step].layer;
  }
}

/* ---- all ---- */

static bool allocate(finder *f) {
  const sn_record *record = f->record;
  sn__groups *g = f->g;
  size_t most = (size_t)f->w->n_forward + 1;
  g->groups = calloc(most + 1, sizeof *g->groups);
  g->parameters = calloc((size_t)record->n_parameters + 1, sizeof *g->parameters);
  g->of = malloc(((size_t)f->route->n_layers + 1) * sizeof *g->of);
  g->of_step = calloc((size_t)f->route->n_steps + 1, sizeof *g->of_step);
  g->first_read = calloc((size_t)f->route->n_steps + 2, sizeof *g->first_read);
  g->gradient_of = malloc(((size_t)f->route->n_tensors + 1) * sizeof *g->gradient_of);
  f->own = calloc((size_t)record->n_parameters + 1, sizeof(const char *));
  f->names = calloc(most, sizeof(const char *));
  f->by_name = calloc(most + 1, sizeof *f->by_name);
  f->of_call = calloc((size_t)record->n_calls + 1, sizeof *f->of_call);
  f->in_model = calloc((size_t)record->n_calls + 1, sizeof *f->in_model);
  f->traced = calloc((size_t)record->n_storages + 1, sizeof *f->traced);
  f->entered_by = calloc(most + 1, sizeof *f->entered_by);
  if (g->gradient_of) memset(g->gradient_of, 0xff, ((size_t)f->route->n_tensors + 1) * sizeof *g->gradient_of);
  return g->groups && g->parameters && g->of && g->of_step && g->first_read && g->gradient_of && f->own && f->names &&
         f->by_name && f->of_call && f->in_model && f->traced && f->entered_by;
}

static sn_status find(finder *f, sn_arena *arena) {
  if (!arena || !allocate(f)) return sn_fail_memory(f->err);
  if (find_own(f, arena) != SN_OK) return f->err->code;
  name_groups(f);
  sort_names(f);
  find_calls(f);
  if (find_inputs(f) != SN_OK) return f->err->code;
  find_steps(f);
  if (f->err->code != SN_OK || add_parameters(f) != SN_OK || find_reads(f) != SN_OK) return f->err->code;
  find_layers(f);
  return SN_OK;
}

sn_status sn__groups_find_recorded(const sn_route *route, sn__groups *groups, sn_err *err) {
  finder f = {
      .route = route, .w = route->net->recorded, .record = route->net->recorded->record, .g = groups, .err = err};
  sn_arena *arena = sn_arena_new();
  sn_status status = find(&f, arena);
  void *const parts[] = {f.own, f.names, f.by_name, f.of_call, f.in_model, f.traced, f.entered_by};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  if (arena) sn_arena_free(arena);
  return status;
}
