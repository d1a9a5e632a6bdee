/* Networks from recordings; see the header. */
#include "models/record/record_net.h"

#include "base/arena.h"
#include "models/build/build_internal.h"
#include "models/net/globs.h"
#include "models/net/names.h"
#include "models/record/kinds.h"
#include "models/record/lives.h"
#include "models/record/owners.h"
#include "models/zoo/zoo_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, OPTIMIZER = 1 }; /* layers ahead of those of operations; behind them, where there are updates */

typedef struct maker {
  const sn_record *record;
  sn_arena *arena;
  sn_net *net;
  struct sn_recorded *recorded;
  sn_layer *layers;
  sn_named_module *modules;
  uint32_t *layer;
  const char *units; /* globs of blocks; NULL: those that a list has several of */
  uint32_t *block;   /* per call: the outermost block's call that it is in, or is; SN_NONE */
  sn_err *err;
} maker;

/* ---- the iteration ---- */

/* The last iteration, from its first operation on: what dies before that is of the one before. */
static void find_iteration(const sn_record *record, struct sn_recorded *w) {
  uint32_t e = record->n_events, ops = record->n_ops;
  w->end_event = e;
  while (e > 0 && record->events[e - 1].kind != SN_RECORD_ITERATION) {
    e--;
    ops -= record->events[e].kind == SN_RECORD_OP;
  }
  while (e < w->end_event && record->events[e].kind != SN_RECORD_OP && record->events[e].kind != SN_RECORD_BIRTH) e++;
  w->first_event = e;
  w->first_op = ops;
  w->n_ops = record->n_ops - ops;
}

static void find_phases(const sn_record *record, struct sn_recorded *w) {
  bool within = false;
  w->n_forward = w->n_ops;
  for (uint32_t i = 0; i < w->n_ops; i++) {
    bool backward = record->ops[w->first_op + i].phase == SN_RECORD_BACKWARD;
    bool update = record->ops[w->first_op + i].phase == SN_RECORD_UPDATE;
    if (backward && w->backwards == 0) w->n_forward = i;
    w->backwards += backward && !within;
    within = backward || (within && update && w->backwards == 0);
    if (backward) w->n_backward = i + 1 - w->n_forward;
  }
}

/* ---- blocks ---- */

/* "features.3" is number 3 of "features", and "3" of the model itself: the length of the list's path. False: no number. */
static bool is_numbered(const char *path, size_t *list) {
  size_t length = strlen(path), end = length;
  while (end > 0 && isdigit((unsigned char)path[end - 1])) end--;
  *list = end > 0 ? end - 1 : 0;
  return end < length && (end == 0 || path[end - 1] == '.');
}

static bool is_container(const sn_record_module *module) {
  return strcmp(module->class_name, "Sequential") == 0 || strcmp(module->class_name, "ModuleList") == 0;
}

/* By list, then by class. */
static int compare_members(const void *a, const void *b) {
  const sn_record_module *x = *(const sn_record_module *const *)a, *y = *(const sn_record_module *const *)b;
  size_t n = 0, m = 0;
  is_numbered(x->path, &n);
  is_numbered(y->path, &m);
  int by_list = n != m ? (n < m ? -1 : 1) : strncmp(x->path, y->path, n);
  if (by_list != 0) return by_list;
  int by_class = strcmp(x->class_name, y->class_name);
  return by_class != 0 ? by_class : (x > y) - (x < y);
}

static bool same_members(const sn_record_module *x, const sn_record_module *y) {
  size_t n = 0, m = 0;
  is_numbered(x->path, &n);
  is_numbered(y->path, &m);
  return n == m && strncmp(x->path, y->path, n) == 0 && strcmp(x->class_name, y->class_name) == 0;
}

/* Of a module: whether it has modules of its own, and whether one of these has. */
enum { HAS_MODULES = 1, HAS_DEEPER = 2 };

/* Whether it may be one of a list's several: a module that holds others, no list itself; or (plain) a Sequential of layers
 * alone. What is numbered in no list is one of several models. */
static bool may_be_block(const sn_record *record, uint32_t module, const uint8_t *holds, bool plain) {
  const sn_record_module *m = &record->modules[module];
  size_t list;
  if (!(holds[module] & HAS_MODULES) || !is_numbered(m->path, &list)) return false;
  if (list == 0 && *record->modules[1].path) return false;
  return plain ? is_container(m) && !(holds[module] & HAS_DEEPER) : !is_container(m);
}

/* Per module: whether a list has several of its class. */
static bool find_repeated(const sn_record *record, const uint8_t *holds, bool plain, const sn_record_module **members,
                          bool *repeated) {
  uint32_t n = 0;
  bool some = false;
  for (uint32_t m = 1; m < record->n_modules; m++)
    if (may_be_block(record, m, holds, plain)) members[n++] = &record->modules[m];
  qsort(members, n, sizeof(const sn_record_module *), compare_members);
  for (uint32_t i = 1; i < n; i++)
    if (same_members(members[i - 1], members[i]))
      some = repeated[members[i - 1] - record->modules] = repeated[members[i] - record->modules] = true;
  return some;
}

/* A call stands behind the one that it is within. */
static void find_holders(const sn_record *record, uint8_t *holds) {
  for (uint32_t c = record->n_calls; c-- > 1;) {
    uint8_t *outer = &holds[record->calls[record->calls[c].parent].module];
    bool deeper = holds[record->calls[c].module] & HAS_MODULES;
    *outer = (uint8_t)(*outer | HAS_MODULES | (deeper ? HAS_DEEPER : 0));
  }
}

/* A block holds modules of its own: an activation of a Sequential is none. Sequentials of layers are blocks where there are
 * no others: elsewhere they are what stands between blocks. */
static sn_status find_blocks(maker *m) {
  const sn_record *record = m->record;
  const sn_record_module **members = calloc((size_t)record->n_modules + 1, sizeof(const sn_record_module *));
  bool *repeated = calloc((size_t)record->n_modules + 1, sizeof *repeated);
  uint8_t *holds = calloc((size_t)record->n_modules + 1, sizeof *holds);
  m->block = sn_arena_alloc(m->arena, record->n_calls, sizeof *m->block);
  bool good = members && repeated && holds && m->block;
  if (good) {
    find_holders(record, holds);
    if (!find_repeated(record, holds, false, members, repeated)) find_repeated(record, holds, true, members, repeated);
  }
  for (uint32_t c = 0; c < record->n_calls && good; c++) {
    uint32_t outer = c > 0 ? m->block[record->calls[c].parent] : SN_NONE, module = record->calls[c].module;
    bool block = m->units ? sn_globs_match(m->units, record->modules[module].path) : repeated[module];
    m->block[c] = outer != SN_NONE ? outer : block && c > 0 ? c : SN_NONE;
  }
  free(members);
  free(repeated);
  free(holds);
  return good ? SN_OK : sn_fail_memory(m->err);
}

static sn_status check_units(const maker *m) {
  bool some = !m->units;
  for (uint32_t c = 0; c < m->record->n_calls; c++) some = some || m->block[c] != SN_NONE;
  return some ? SN_OK
              : sn_fail(m->err, SN_BAD_USAGE,
                        "--units %.200s: %s has no module of such a path; they are as "
                        "model.named_modules() has them, \"layer1.0\"",
                        m->units, m->record->name);
}

/* Calls of blocks in the forward pass. One that keeps nothing is not worth running again. */
static sn_status find_regions(maker *m) {
  struct sn_recorded *w = m->recorded;
  uint32_t op = 0, call = SN_NONE, n = 0;
  sn_record_region *regions = sn_arena_alloc(m->arena, m->record->n_calls, sizeof *regions);
  if (!regions) return sn_fail_memory(m->err);
  for (uint32_t e = w->first_event; e < w->end_event && op < w->n_forward; e++) {
    const sn_record_event *event = &m->record->events[e];
    op += event->kind == SN_RECORD_OP;
    if (event->kind == SN_RECORD_ENTER && m->block[event->id] == event->id && n < m->record->n_calls) {
      call = event->id;
      regions[n] = (sn_record_region){.first = op, .first_event = e};
    }
    if (event->kind == SN_RECORD_KEPT && call != SN_NONE) regions[n].again_end = op;
    if (event->kind != SN_RECORD_LEAVE || event->id != call) continue;
    regions[n].end = op;
    regions[n].end_event = e + 1;
    n += regions[n].again_end > regions[n].first;
    call = SN_NONE;
  }
  w->regions = regions;
  w->n_regions = n;
  return SN_OK;
}

/* ---- layers ---- */

static const char *module_path(const sn_record *record, uint32_t call) {
  return record->modules[record->calls[call].module].path;
}

static bool name_layer(maker *m, uint32_t index, const sn_record_op *op) {
  const char *path = module_path(m->record, op->call);
  const char *kernel = m->record->kernels[op->kernel].called;
  m->layers[index].name = sn_arena_print(m->arena, "%s%s%s", path, *path ? ":" : "", kernel);
  uint32_t block = m->block[op->call];
  m->modules[index] = (sn_named_module){.path = path, .block = block == SN_NONE ? NULL : module_path(m->record, block)};
  return m->layers[index].name != NULL;
}

/* An operation of a module that does it twice, or that is called twice, gets a number. */
static sn_status number_names(maker *m, uint32_t n_layers) {
  sn__names names;
  if (sn__names_init(&names, n_layers, m->err) != SN_OK) return m->err->code;
  for (uint32_t i = 0; i < n_layers; i++) sn__names_add(&names, m->layers[i].name, i);
  sn__names_sort(&names);
  bool good = true;
  for (uint32_t i = 1, times = 1; i < n_layers && good; i++) {
    times = sn__names_repeated(&names, i) ? times + 1 : 1;
    sn_layer *layer = &m->layers[names.items[i].index];
    if (times > 1) layer->name = sn_arena_print(m->arena, "%s#%u", layer->name, times);
    good = layer->name != NULL;
  }
  sn__names_free(&names);
  return good ? SN_OK : sn_fail_memory(m->err);
}

static sn_layer plain_layer(void) {
  static const sn_attr nothing;
  return (sn_layer){.attr = &nothing, .op = SN_RECORDED, .out = {1, 1, 1, 1}};
}

/* An operation of backward belongs to the last one of forward with its node; one that has none to that before it. */
static sn_status assign_backward(maker *m) {
  const struct sn_recorded *w = m->recorded;
  int32_t most = 0;
  for (uint32_t i = 0; i < w->n_ops; i++) {
    int32_t node = m->record->ops[w->first_op + i].node;
    if (node > most && (uint32_t)node < SN_RECORD_MOST_EVENTS * 64) most = node;
  }
  uint32_t *made_by = malloc(((size_t)most + 1) * sizeof *made_by);
  if (!made_by) return sn_fail_memory(m->err);
  memset(made_by, 0xff, ((size_t)most + 1) * sizeof *made_by);
  uint32_t last = 0;
  for (uint32_t i = 0; i < w->n_ops; i++) {
    const sn_record_op *op = &m->record->ops[w->first_op + i];
    bool known = op->node >= 0 && op->node <= most;
    if (op->phase == SN_RECORD_FORWARD && known) made_by[op->node] = m->layer[i];
    if (op->phase == SN_RECORD_BACKWARD) m->layer[i] = known && made_by[op->node] != SN_NONE ? made_by[op->node] : last;
    last = m->layer[i];
  }
  free(made_by);
  return SN_OK;
}

/* A layer an operation of forward, and one for all updates. */
static uint32_t count_layers(const maker *m) {
  uint32_t forward = 0;
  for (uint32_t i = 0; i < m->recorded->n_ops; i++)
    forward += m->record->ops[m->recorded->first_op + i].phase == SN_RECORD_FORWARD;
  return DATA + forward + OPTIMIZER;
}

static sn_status make_layers(maker *m, uint32_t *n_layers) {
  const struct sn_recorded *w = m->recorded;
  uint32_t n = 1, room = count_layers(m), optimizer = SN_NONE;
  m->layers = sn_arena_alloc(m->arena, room, sizeof *m->layers);
  m->modules = sn_arena_alloc(m->arena, room, sizeof *m->modules);
  m->layer = sn_arena_alloc(m->arena, w->n_ops, sizeof *m->layer);
  if (!m->layers || !m->modules || !m->layer) return sn_fail_memory(m->err);
  m->layers[0] = plain_layer();
  m->layers[0].op = SN_DATA;
  m->layers[0].name = "data";
  m->layers[0].n_outputs = 1;
  m->modules[0].path = "data";
  for (uint32_t i = 0; i < w->n_ops; i++) {
    const sn_record_op *op = &m->record->ops[w->first_op + i];
    if (op->phase == SN_RECORD_BACKWARD) continue;
    bool first = op->phase == SN_RECORD_FORWARD || optimizer == SN_NONE;
    m->layer[i] = first ? n : optimizer;
    if (!first) continue;
    m->layers[n] = plain_layer();
    if (op->phase == SN_RECORD_UPDATE) {
      m->layers[n].name = m->modules[n].path = "optimizer";
      optimizer = n;
    } else if (!name_layer(m, n, op)) {
      return sn_fail_memory(m->err);
    }
    n++;
  }
  *n_layers = n;
  sn_status status = number_names(m, n);
  return status == SN_OK ? assign_backward(m) : status;
}

/* ---- the network ---- */

/* What depends on the batch. */
static void set_batch(sn_net *net, sn_layer *layers, uint32_t batch) {
  const struct sn_recorded *w = net->recorded;
  net->batch = batch;
  net->macs = net->data_bytes = 0;
  layers[0].out = (sn_shape){batch, 1, 1, 1};
  for (uint32_t i = 0; i < w->n_ops; i++) {
    const sn_record_op *op = &w->record->ops[w->first_op + i];
    if (op->phase != SN_RECORD_FORWARD) continue;
    double flops = sn_record_amount(w->record->works[op->work].flops, batch);
    layers[w->layer[i]].macs = flops > 0 ? (uint64_t)(flops / 2) : 0;
    net->macs += layers[w->layer[i]].macs;
  }
  for (uint32_t s = 0; s < w->record->n_storages; s++)
    if (w->record->storages[s].role == SN_RECORD_GIVEN) net->data_bytes += sn_record_bytes(w->record, s, batch);
}

static bool make_data(sn_net *net, sn_arena *arena) {
  sn_value *value = sn_arena_alloc(arena, 1, sizeof *value);
  uint32_t *inputs = sn_arena_alloc(arena, 1, sizeof *inputs);
  if (!value || !inputs) return false;
  *value = (sn_value){.producer = 0, .consumer = SN_NONE, .dtype = SN_F32, .bytes = net->data_bytes};
  net->n_values = 1;
  net->values = value;
  net->inputs = inputs;
  return true;
}

static bool has_sums_in_place(const sn_record *record) {
  for (uint32_t i = 0; i < record->n_ops; i++)
    if (record->ops[i].adds_in_place) return true;
  return false;
}

/* Once where both are the same. */
static bool find_lives(struct sn_recorded *w, sn_arena *arena) {
  w->lives[0] = sn_record_lives_find(w, false, arena);
  w->lives[1] = has_sums_in_place(w->record) ? sn_record_lives_find(w, true, arena) : w->lives[0];
  return w->lives[0] && w->lives[1];
}

static sn_status make(maker *m, uint32_t batch) {
  sn_net *net = m->net;
  struct sn_recorded *w = m->recorded;
  w->record = m->record;
  w->chosen = m->units != NULL;
  if (m->units && sn_globs_check_text("--units", m->units, m->err) != SN_OK) return m->err->code;
  find_iteration(m->record, w);
  find_phases(m->record, w);
  if (w->n_ops == 0) return sn_fail(m->err, SN_BAD_INPUT, "%s: its last iteration has no operation", m->record->name);
  if (w->n_ops >= SN_MAX_LAYERS)
    return sn_fail(m->err, SN_BAD_INPUT, "%s: an iteration of more than %u operations", m->record->name, SN_MAX_LAYERS);
  if (find_blocks(m) != SN_OK || check_units(m) != SN_OK || find_regions(m) != SN_OK ||
      make_layers(m, &net->n_layers) != SN_OK)
    return m->err->code;
  w->layer = m->layer;
  if (!find_lives(w, m->arena)) return sn_fail_memory(m->err);
  if (!(w->owners = sn_record_owners_find(w, m->arena))) return sn_fail_memory(m->err);
  if (w->backwards == 1 && !sn__record_find_kinds(w, m->layers, m->arena)) return sn_fail_memory(m->err);
  net->name = m->record->name;
  net->layers = m->layers;
  net->modules = m->modules;
  net->recorded = w;
  net->arena = m->arena;
  for (uint32_t p = 0; p < m->record->n_parameters; p++)
    if (m->record->parameters[p].trained) net->parameters += m->record->parameters[p].elements;
  set_batch(net, m->layers, batch);
  return make_data(net, m->arena) ? SN_OK : sn_fail_memory(m->err);
}

/* A file's globs, or what stands in memory. */
typedef struct source {
  const char *units, *bytes;
  size_t size;
} source;

static sn_net *make_net(const char *path, source from, uint32_t batch, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  maker m = {.arena = arena, .units = from.units, .err = err};
  if (arena) {
    m.net = sn_arena_alloc(arena, 1, sizeof *m.net);
    m.recorded = sn_arena_alloc(arena, 1, sizeof *m.recorded);
  }
  if (!m.net || !m.recorded) sn_fail_memory(err);
  if (err->code == SN_OK)
    m.record = from.bytes ? sn_record_parse(path, from.bytes, from.size, arena, err) : sn_record_load(path, arena, err);
  if (m.record && batch == 0) batch = m.record->batches[0];
  if (m.record && sn_record_check_batch(m.record, batch, err) == SN_OK && make(&m, batch) == SN_OK) return m.net;
  if (arena) sn_arena_free(arena);
  return NULL;
}

sn_net *sn__net_from_recording(const char *path, const char *units, uint32_t batch, sn_err *err) {
  return make_net(path, (source){.units = units}, batch, err);
}

sn_net *sn__net_from_recorded(const char *name, const char *bytes, size_t size, uint32_t batch, sn_err *err) {
  return make_net(name, (source){.bytes = bytes, .size = size}, batch, err);
}

sn_net *sn__record_rebatch(const sn_net *net, uint32_t batch, sn_err *err) {
  if (sn_record_check_batch(net->recorded->record, batch, err) != SN_OK) return NULL;
  sn_arena *arena = sn_arena_new();
  sn_net *other = arena ? sn_arena_alloc(arena, 1, sizeof *other) : NULL;
  sn_layer *layers = other ? sn_arena_alloc(arena, net->n_layers, sizeof *layers) : NULL;
  if (layers) {
    *other = *net;
    memcpy(layers, net->layers, net->n_layers * sizeof *layers);
    other->layers = layers;
    other->arena = arena;
    set_batch(other, layers, batch);
    if (make_data(other, arena)) return other;
  }
  if (arena) sn_arena_free(arena);
  return sn_fail_memory(err), NULL;
}
