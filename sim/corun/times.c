/* Times of operations; see the header. Classes are found in a hash table by their text, which holds indices of classes
 * and is as large as twice the operations, so that it never fills. */
#include "sim/corun/times.h"

#include "base/arena.h"
#include "sim/corun/climb.h"
#include "sim/corun/kinds.h"
#include "sim/corun/measured.h"
#include "sim/device/device.h"
#include "sim/device/scaling.h"
#include "sim/graph/route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { KEY = SN_SHAPE_TEXT + 16 };
static_assert((int)SN_TIMING_PARTS == (int)SN_STEP_PARTS, "timings are of the parts of steps");

typedef struct maker {
  const sn_route *route;
  const sn_device *device;
  sn_optimizer optimizer;
  uint32_t interval;
  const sn_calibration *calibration; /* NULL: none */
  sn_times *times;
  sn_time_class *classes;
  sn_time_kind *kinds;
  uint32_t *class_of;
  const char **keys; /* per class */
  uint32_t room;     /* for classes and their keys */
  uint32_t *table;   /* class + 1; 0: free */
  uint32_t slots;
} maker;

static uint32_t hash(const char *text) {
  uint32_t digest = 2166136261u;
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) digest = (digest ^ *c) * 16777619u;
  return digest;
}

/* Where the class of this key stands in the table, or would. */
static uint32_t slot_of(const maker *m, const char *key) {
  uint32_t slot = hash(key) % m->slots;
  while (m->table[slot] > 0 && strcmp(m->keys[m->table[slot] - 1], key) != 0) slot = (slot + 1) % m->slots;
  return slot;
}

static uint32_t find_kind(maker *m, sn_op op, sn_pass pass, sn_step_part part) {
  uint32_t i = 0;
  while (i < m->times->n_kinds && (m->kinds[i].op != op || m->kinds[i].pass != pass || m->kinds[i].part != part)) i++;
  if (i == m->times->n_kinds) {
    m->kinds[i] = (sn_time_kind){.op = op, .pass = pass, .part = part, .largest = SN_NONE};
    m->times->n_kinds++;
  }
  return i;
}

/* All there is to know of an operation of this layer and part. */
static bool find_times(maker *m, const sn_step *step, sn_step_part part, const char *shape, sn_time_class *c) {
  const sn_cores *cores = &m->device->cores;
  uint32_t most = m->times->max_threads;
  int64_t *ns = sn_arena_alloc(m->times->arena, 3 * ((size_t)most + 1), sizeof *ns);
  uint16_t *share = sn_arena_alloc(m->times->arena, (size_t)most + 1, sizeof *share);
  if (!ns || !share) return false;
  int64_t *predicted = ns + most + 1, *spread_ns = predicted + most + 1;
  sn_scaling law =
      sn_scaling_of(cores, m->route->net, step->layer, step->pass, sn_step_part_kernel(part), m->optimizer);
  for (uint32_t p = 1; p <= most; p++) {
    ns[p] = sn_scaling_ns(cores, &law, p);
    share[p] = (uint16_t)sn_scaling_share(cores, &law, p);
  }
  const sn__measured_op op = {shape, m->route->layers[step->layer].op, step->pass, part};
  bool measured =
      m->calibration && sn__measured_times(m->calibration, &op, most, (sn__measured_ns){ns, spread_ns, share});
  sn_climb climb = sn_climb_up(ns, cores->count, m->interval);
  sn_climb_predict(&climb, ns, most, predicted);
  *c = (sn_time_class){.layer = step->layer,
                       .best = climb.best,
                       .samples = climb.n_samples,
                       .measured = measured,
                       .accuracy = sn_climb_accuracy(&climb, ns, predicted),
                       .ns = ns,
                       .predicted = predicted,
                       .spread_ns = spread_ns,
                       .share = share};
  return true;
}

/* Room for one more class. */
static bool grow(maker *m) {
  uint32_t used = m->times->n_classes, room = m->room > 0 ? 2 * m->room : 64;
  if (used < m->room) return true;
  sn_time_class *classes = sn_arena_alloc(m->times->arena, room, sizeof *classes);
  const char **keys = sn_arena_alloc(m->times->arena, room, sizeof *keys);
  if (!classes || !keys) return false;
  if (m->classes && m->keys) {
    memcpy(classes, m->classes, used * sizeof *classes);
    memcpy(keys, m->keys, used * sizeof *keys);
  }
  m->times->classes = m->classes = classes;
  m->keys = keys;
  m->room = room;
  return true;
}

/* The class of an operation, made where there is none yet; SN_NONE: out of memory. */
static uint32_t find_class(maker *m, const sn_step *step, sn_step_part part) {
  char key[KEY], shape[SN_SHAPE_TEXT];
  const sn_layer *layer = &m->route->layers[step->layer];
  sn_timing_shape(m->route->net, layer, step->pass, m->optimizer, shape, sizeof shape);
  snprintf(key, sizeof key, "%d %d %s", (int)step->pass, (int)part, shape);
  uint32_t slot = slot_of(m, key), index = m->times->n_classes;
  if (m->table[slot] > 0) return m->table[slot] - 1;
  if (!grow(m)) return SN_NONE;
  m->keys[index] = sn_arena_text(m->times->arena, key);
  if (!m->keys[index] || !find_times(m, step, part, shape, &m->classes[index])) return SN_NONE;
  m->classes[index].kind = find_kind(m, layer->op, step->pass, part);
  m->table[slot] = ++m->times->n_classes;
  return index;
}

static bool add_operations(maker *m) {
  for (uint32_t i = 0; i < m->route->n_steps; i++) {
    sn_step_part parts[2];
    uint32_t n = sn_step_parts(m->route, i, parts);
    for (uint32_t part = 0; part < SN_STEP_PARTS; part++) m->class_of[SN_STEP_PARTS * i + part] = SN_NONE;
    for (uint32_t p = 0; p < n; p++) {
      uint32_t c = find_class(m, &m->route->steps[i], parts[p]);
      if (c == SN_NONE) return false;
      assert(m->classes);
      m->class_of[SN_STEP_PARTS * i + parts[p]] = c;
      m->classes[c].instances++;
      m->times->n_ops++;
    }
  }
  return true;
}

/* n_k, steps and accuracy of all. */
static bool sum_up(maker *m) {
  sn_times *t = m->times;
  double accuracy = 0;
  for (uint32_t i = 0; i < t->n_classes; i++) {
    const sn_time_class *c = &m->classes[i];
    sn_time_kind *kind = &m->kinds[c->kind];
    kind->instances += c->instances;
    if (kind->largest == SN_NONE || c->ns[1] > m->classes[kind->largest].ns[1]) kind->largest = i;
    kind->threads = m->classes[kind->largest].best;
    if (c->measured) t->measured_ops += c->instances;
    accuracy += c->accuracy * c->instances;
    if (c->samples > t->profile_steps) t->profile_steps = c->samples;
  }
  if (m->device->cores.tile > 1) t->profile_steps *= 2;
  t->accuracy = t->n_ops > 0 ? accuracy / t->n_ops : 1;
  return t->measured_ops == 0 || sn__kinds_choose(t, m->route, m->kinds, m->device->cores.resize_ns, m->interval);
}

static bool begin(maker *m) {
  const sn_cores *cores = &m->device->cores;
  size_t kinds = (size_t)SN_OP_COUNT * SN_PASSES * SN_STEP_PARTS;
  sn_arena *arena = sn_arena_new();
  m->times = arena ? sn_arena_alloc(arena, 1, sizeof *m->times) : NULL;
  if (!m->times) {
    sn_arena_free(arena);
    return false;
  }
  *m->times = (sn_times){.cores = cores->count, .max_threads = 2 * cores->count, .arena = arena};
  m->slots = 4 * m->route->n_steps + 1;
  m->times->kinds = m->kinds = sn_arena_alloc(arena, kinds, sizeof *m->kinds);
  m->times->class_of = m->class_of =
      sn_arena_alloc(arena, (size_t)SN_STEP_PARTS * m->route->n_steps, sizeof *m->class_of);
  m->table = sn_arena_alloc(arena, m->slots, sizeof *m->table);
  return m->kinds && m->class_of && m->table;
}

static sn_status check(const sn_device *device, uint32_t interval, sn_err *err) {
  if (device->cores.count == 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s is not made of cores, and operations run side by side on cores only: choose knl7250, "
                   "manycore:cores=N,slots=S,tile=T or a profile with \"cores\" (docs/devices.md)",
                   device->name);
  if (interval > device->cores.count && interval != SN_INTERVAL_DEFAULT) /* which goes with any device */
    return sn_fail(err, SN_BAD_USAGE,
                   "--interval %u is larger than the %u cores of %s: choose one from 1 to %u, or geometric", interval,
                   device->cores.count, device->name, device->cores.count);
  return SN_OK;
}

sn_times *sn_times_new(const sn_route *route, const sn_device *device, sn_optimizer optimizer, uint32_t interval,
                       const sn_calibration *calibration, sn_err *err) {
  maker m = {
      .route = route, .device = device, .optimizer = optimizer, .interval = interval, .calibration = calibration};
  if (check(device, interval, err) != SN_OK) return NULL;
  if (begin(&m) && add_operations(&m) && sum_up(&m)) return m.times;
  sn_times_free(m.times);
  sn_fail_memory(err);
  return NULL;
}

void sn_times_free(sn_times *times) {
  if (times) sn_arena_free(times->arena);
}
