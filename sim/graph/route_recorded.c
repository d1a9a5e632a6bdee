/* The route of a recording (models/record/record_net.h): a step for each operation, a tensor for each storage that the
 * iteration makes; what the dialects' rules are made of elsewhere was recorded here.
 *
 *   reads READ, makes WRITE, changes MODIFY
 *   a handle or a ghost has it longer than the last operation that uses it: READ there, backward may need it again
 *   Python has it longer: it is held there, in dialects that are eager; others' runtimes let go of what nobody needs
 *   parts, masks and statistics (models/record/kinds.h): in dialects that are not eager a part touches nothing, as it
 *     is done by what it is a part of, and masks and statistics are resident
 *
 * What the iteration before has left, and this one lets go, is there from the first step on: that makes it.
 *
 * With blocks under checkpoints it is the same of what would have been recorded then (models/record/checkpoint.h). */
#include "sim/graph/route_internal.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/record/checkpoint.h"
#include "models/record/lives.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A route that was asked for, with blocks under checkpoints. */
typedef struct under {
  sn_route *route;
  sn_record_span *spans;
  uint32_t n_spans;
  struct under *next;
} under;

/* What the recording would be is the same for every batch, and kept of the blocks that were asked for last. */
struct sn_under_list {
  under *first;
  struct sn_under_list *like; /* of the route whose recording's are used; NULL: its own */
  sn_arena *arena;            /* of the three that follow */
  struct sn_recorded *made;
  sn_record_span *spans;
  uint32_t n_spans;
};

typedef struct maker {
  const struct sn_recorded *w;
  const sn_record *record;
  const sn_record_life *lives;
  const sn_net *net;
  sn_route *route;
  sn_step *steps, *steps_again;
  sn_again *again;
  sn_step_work *work;
  sn_access *accesses;
  sn_tensor *tensors;
  uint32_t *tensor;               /* per storage: its tensor; SN_NONE: it has none */
  uint32_t *place, *step;         /* per tensor: its access in the last step, from 1, that has one */
  uint32_t *first_end;            /* per step: its ends are ends[first_end[step] .. first_end[step + 1] - 1] */
  uint32_t *ends;                 /* storages */
  uint32_t *first_birth, *births; /* the same of what is made ahead of a step or by it */
} maker;

/* ---- tensors ---- */

static bool is_tensor(const maker *m, uint32_t storage) {
  const sn_record_life *life = &m->lives[storage];
  if (!m->route->dialect->eager && m->w->aside && m->w->aside[storage]) return false;
  bool here = life->stay == SN_RECORD_MADE || life->stay == SN_RECORD_CARRIED;
  return here && sn_record_bytes(m->record, storage, m->net->batch) > 0;
}

static sn_role role_of(const maker *m, const sn_record_life *life) {
  if (life->phase == SN_RECORD_FORWARD) return SN_VALUE;
  if (life->phase == SN_RECORD_UPDATE) return SN_SCRATCH;
  bool outlives = life->at_end || life->held >= m->w->n_forward + m->w->n_backward;
  return outlives || life->stay == SN_RECORD_CARRIED ? SN_PARAMETER_GRADIENT : SN_GRADIENT;
}

static sn_status make_tensors(maker *m, sn_err *err) {
  uint32_t *n = &m->route->n_tensors, known = m->net->recorded->record->n_storages; /* behind those: of steps again */
  for (uint32_t s = 0; s < m->record->n_storages; s++) {
    m->tensor[s] = SN_NONE;
    if (!is_tensor(m, s)) continue;
    if (s >= known && m->route->tensors_again == 0) m->route->tensors_again = *n;
    uint64_t bytes = sn_record_bytes(m->record, s, m->net->batch);
    m->tensors[*n] =
        (sn_tensor){.layer = m->w->layer[m->lives[s].made], .role = role_of(m, &m->lives[s]), .bytes = bytes};
    if (s < known)
      m->route->tensor_bytes += bytes; /* of all storages within SN_MAX_NET_BYTES: sn_record_check_batch() */
    m->tensor[s] = (*n)++;
  }
  if (*n > 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%s: nothing that was recorded lies on a GPU; record it with the model on cuda",
                 m->record->name);
}

/* Several that a step makes of one role are told apart by port; again from 0 where it runs again. */
static void number_ports(maker *m) {
  uint32_t *count = m->place; /* per layer and role, for a moment */
  size_t bytes = (size_t)m->net->n_layers * SN_ROLES * sizeof *count;
  memset(count, 0, bytes);
  for (uint32_t t = 0; t < m->route->n_tensors; t++) {
    if (t > 0 && t == m->route->tensors_again) memset(count, 0, bytes);
    m->tensors[t].port = count[m->tensors[t].layer * SN_ROLES + m->tensors[t].role]++;
  }
  memset(count, 0, bytes);
}

/* ---- when nobody has them any longer ---- */

static uint32_t last_of(const sn_record_life *life) {
  return life->kept != SN_NONE && life->kept > life->held ? life->kept : life->held;
}

/* Counts become places: first[k + 1] was how many there are of k. */
static void sum_up(uint32_t *first, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) first[k + 1] += first[k];
}

/* Places that were filled from their first on are where they were. */
static void step_back(uint32_t *first, uint32_t n) {
  for (uint32_t k = n; k > 0; k--) first[k] = first[k - 1];
  first[0] = 0;
}

static void sort_births(maker *m) {
  for (int fill = 0; fill < 2; fill++) {
    for (uint32_t s = 0; s < m->record->n_storages; s++) {
      if (m->tensor[s] == SN_NONE || m->lives[s].stay != SN_RECORD_MADE) continue;
      uint32_t at = m->lives[s].made;
      if (fill) m->births[m->first_birth[at]] = s;
      m->first_birth[fill ? at : at + 1]++;
    }
    if (!fill) sum_up(m->first_birth, m->w->n_ops);
  }
  step_back(m->first_birth, m->w->n_ops);
}

/* Storages by the step at which Python lets go, and by that at which the last handle or ghost does. */
static void sort_ends(maker *m) {
  uint32_t n = m->w->n_ops;
  for (int fill = 0; fill < 2; fill++) {
    for (uint32_t s = 0; s < m->record->n_storages; s++) {
      if (m->tensor[s] == SN_NONE) continue;
      const sn_record_life *life = &m->lives[s];
      uint32_t at[2] = {life->held, life->kept != SN_NONE && life->kept != life->held ? life->kept : SN_NONE};
      for (int i = 0; i < 2; i++) {
        if (at[i] == SN_NONE) continue;
        if (fill) m->ends[m->first_end[at[i]]] = s;
        m->first_end[fill ? at[i] : at[i] + 1]++;
      }
    }
    if (!fill) sum_up(m->first_end, n);
  }
  step_back(m->first_end, n);
}

/* ---- steps ---- */

static uint32_t whose(const maker *m, uint32_t storage) {
  while (m->lives[storage].same != storage) storage = m->lives[storage].same;
  return storage;
}

/* A tensor stands once in a step: what it makes it need not read, and what it changes it reads. */
static void access(maker *m, uint32_t step, uint32_t storage, sn_access_mode mode) {
  uint32_t t = m->tensor[whose(m, storage)];
  if (t == SN_NONE) return;
  if (m->place[t] == 0 || m->step[t] != step) {
    m->step[t] = step;
    m->place[t] = ++m->route->n_accesses;
    m->accesses[m->place[t] - 1] = (sn_access){.tensor = t, .mode = mode};
    return;
  }
  sn_access *known = &m->accesses[m->place[t] - 1];
  if (known->mode == SN_READ) known->mode = mode;
}

/* Where nothing else of the step touches it. */
static void hold(maker *m, uint32_t step, uint32_t storage) {
  uint32_t before = m->route->n_accesses;
  access(m, step, storage, SN_READ);
  if (m->route->n_accesses > before) m->accesses[before].held = true;
}

static void access_ends(maker *m, uint32_t step) {
  bool eager = m->route->dialect->eager, forward = step < m->w->n_forward;
  for (uint32_t i = m->first_end[step]; i < m->first_end[step + 1]; i++) {
    const sn_record_life *life = &m->lives[m->ends[i]];
    if (life->kept == step && (eager || !forward))
      access(m, step, m->ends[i], SN_READ);
    else if (eager && last_of(life) >= step)
      hold(m, step, m->ends[i]);
  }
}

static bool runs_again(const maker *m, uint32_t step) {
  return m->w->again && m->w->again[step] != SN_NONE;
}

static sn_pass pass_of(const maker *m, uint32_t step) {
  if (m->w->backwards != 1 || runs_again(m, step)) return SN_FORWARD;
  if (step < m->w->n_forward) return SN_FORWARD;
  return step < m->w->n_forward + m->w->n_backward ? SN_BACKWARD : SN_UPDATE;
}

static void carry_over(maker *m) {
  for (uint32_t s = 0; s < m->record->n_storages; s++)
    if (m->tensor[s] != SN_NONE && m->lives[s].stay == SN_RECORD_CARRIED) access(m, 0, s, SN_WRITE);
}

/* Born outside an operation, ahead of this step: the batch of an iteration. */
static void be_born(maker *m, uint32_t index, const uint32_t *makes, uint32_t n_makes) {
  for (uint32_t k = m->first_birth[index]; k < m->first_birth[index + 1]; k++) {
    bool by_operation = false;
    for (uint32_t i = 0; i < n_makes; i++) by_operation = by_operation || makes[i] == m->births[k];
    if (!by_operation) access(m, index, m->births[k], SN_WRITE);
  }
}

/* Whether it makes anything, of some bytes, behind its result. */
static bool keeps_more(const maker *m, const sn_record_op *op) {
  const uint32_t *makes = &m->record->refs[op->first_ref + op->n_reads];
  for (uint32_t i = 1; i < op->n_makes; i++) {
    const sn_record_size size = sn_record_size_of(m->record, makes[i]);
    if (size.a > 0 || size.b > 0) return true;
  }
  return false;
}

static double bytes_of(const maker *m, const sn_record_op *op, const sn_record_traffic *t) {
  const sn_record_work *work = &m->record->works[op->work];
  const double read = sn_record_amount(work->read, m->net->batch);
  const double written = sn_record_amount(work->written, m->net->batch);
  const double once = t->read * read + t->written * written;
  return t->keeping > 1 && keeps_more(m, op) ? t->keeping * once : once;
}

/* What its second result, the gradient of its factors or statistics, has of elements. Those of a batch norm have four
 * bytes, of autocast too. */
static uint32_t columns_of(const maker *m, const sn_record_op *op) {
  const sn_record_kernel *kernel = &m->record->kernels[op->kernel];
  const bool batch_norm = kernel->traffic.kernel == SN_RECORD_BATCH_NORM;
  if (op->n_makes < 2 || !(batch_norm || kernel->traffic.kernel == SN_RECORD_BY_COLUMNS)) return 0;
  if (batch_norm && kernel->flags & SN_RECORD_CHANNELS_LAST) return 0;
  uint32_t factors = m->record->refs[op->first_ref + op->n_reads + 1];
  uint64_t bytes = sn_record_bytes(m->record, factors, m->net->batch);
  return (uint32_t)sn_min(bytes / (op->narrow && !batch_norm ? 2 : 4), SN_MAX_DIM);
}

/* NULL: it is none. What else multiplies, a recurrent kernel, may have two operands that would fit together. */
static const sn_record_product *product_of(const maker *m, const sn_record_op *op) {
  const sn_record_work *work = &m->record->works[op->work];
  if (work->shape == SN_NONE || !(m->record->kernels[op->kernel].flags & SN_RECORD_PRODUCT)) return NULL;
  const sn_record_product *p = &m->record->products[work->shape];
  const uint32_t batch = m->net->batch;
  double terms = sn_record_amount(p->count, batch) * sn_record_amount(p->terms, batch);
  double flops = 2 * sn_record_amount(p->rows, batch) * sn_record_amount(p->columns, batch) * terms;
  return flops == sn_record_amount(work->flops, batch) ? p : NULL;
}

static int launches_of(const maker *m, const sn_record_traffic *traffic) {
  return traffic->kernel == SN_RECORD_BY_IMAGE ? (int)sn_min(m->net->batch, INT_MAX) : traffic->launches;
}

static sn_step_work work_of(const maker *m, const sn_record_op *op) {
  const sn_record_kernel *kernel = &m->record->kernels[op->kernel];
  const sn_record_work *work = &m->record->works[op->work];
  const bool shaped = work->shape != SN_NONE, convolves = kernel->flags & SN_RECORD_CONVOLUTION;
  return (sn_step_work){.called = kernel->called,
                        .flops = sn_record_amount(work->flops, m->net->batch),
                        .bytes = bytes_of(m, op, &kernel->traffic),
                        .launches = launches_of(m, &kernel->traffic),
                        .conv = shaped && convolves ? &m->record->convs[work->shape] : NULL,
                        .product = product_of(m, op),
                        .batch = m->net->batch,
                        .columns = columns_of(m, op),
                        .narrow = op->narrow,
                        .fp16 = op->fp16,
                        .norm = kernel->traffic.kernel == SN_RECORD_BATCH_NORM,
                        .channels_last = kernel->flags & SN_RECORD_CHANNELS_LAST};
}

static void access_operands(maker *m, uint32_t index, const sn_record_op *op) {
  const uint32_t *refs = &m->record->refs[op->first_ref], *makes = refs + op->n_reads, *changes = makes + op->n_makes;
  for (uint32_t i = 0; i < op->n_reads; i++) access(m, index, refs[i], SN_READ);
  for (uint32_t i = 0; i < op->n_makes; i++)
    access(m, index, makes[i], whose(m, makes[i]) == makes[i] ? SN_WRITE : SN_MODIFY);
  for (uint32_t i = 0; i < op->n_changes; i++) access(m, index, changes[i], SN_MODIFY);
}

static bool is_part(const maker *m, uint32_t index) {
  return !m->route->dialect->eager && m->w->part_of && m->w->part_of[index] != SN_NONE;
}

/* Of a dialect that is not eager, where a step is an operation each. */
static void add_to_whole(maker *m, uint32_t index) {
  sn_step_work *part = &m->work[index], *whole = &m->work[m->w->part_of[index]];
  whole->flops += part->flops;
  whole->bytes += part->bytes;
  whole->launches += part->launches;
  part->flops = part->bytes = 0;
  part->launches = 0;
}

static void make_step(maker *m, uint32_t index) {
  const sn_record_op *op = &m->record->ops[m->w->first_op + index];
  uint32_t first = m->route->n_accesses;
  if (index == 0) carry_over(m);
  be_born(m, index, &m->record->refs[op->first_ref + op->n_reads], op->n_makes);
  if (!is_part(m, index)) access_operands(m, index, op);
  access_ends(m, index);
  const sn_step step = {.layer = m->w->layer[index],
                        .pass = pass_of(m, index),
                        .kernel = SN_WHOLE,
                        .sum = SN_NONE,
                        .first_access = first,
                        .n_accesses = m->route->n_accesses - first};
  if (runs_again(m, index)) {
    m->steps_again[m->w->again[index]] = step;
    m->again[m->route->n_again++] = (sn_again){m->w->again[index], m->route->n_steps};
  } else {
    m->work[m->route->n_steps] = work_of(m, op);
    if (is_part(m, index)) add_to_whole(m, index);
    m->steps[m->route->n_steps++] = step;
  }
}

/* ---- the route ---- */

static uint32_t *of_none(sn_arena *arena, size_t count) {
  uint32_t *items = sn_arena_alloc(arena, count, sizeof *items);
  if (items) memset(items, 0xff, count * sizeof *items);
  return items;
}

static bool allocate(maker *m, sn_arena *arena) {
  size_t steps = m->w->n_ops, storages = (size_t)m->record->n_storages + 1, layers = m->net->n_layers;
  size_t refs = 0, tensors = 1;
  for (uint32_t s = 0; s < m->record->n_storages; s++) tensors += is_tensor(m, s);
  for (uint32_t i = 0; i < m->w->n_ops; i++) {
    const sn_record_op *op = &m->record->ops[m->w->first_op + i];
    refs += (size_t)op->n_reads + op->n_makes + op->n_changes;
  }
  m->steps = sn_arena_alloc(arena, steps, sizeof *m->steps);
  m->steps_again = sn_arena_alloc(arena, m->w->n_again > 0 ? steps : 0, sizeof *m->steps_again);
  m->again = sn_arena_alloc(arena, m->w->n_again, sizeof *m->again);
  m->work = sn_arena_alloc(arena, steps, sizeof *m->work);
  m->accesses = malloc((refs + 3 * tensors) * sizeof *m->accesses);
  m->tensors = sn_arena_alloc(arena, tensors, sizeof *m->tensors);
  m->tensor = calloc(storages, sizeof *m->tensor);
  m->place = calloc(sn_max(tensors, layers * SN_ROLES), sizeof *m->place);
  m->step = calloc(tensors, sizeof *m->step);
  m->first_end = calloc(steps + 2, sizeof *m->first_end);
  m->ends = calloc(2 * tensors, sizeof *m->ends);
  m->first_birth = calloc(steps + 2, sizeof *m->first_birth);
  m->births = calloc(tensors, sizeof *m->births);
  return m->steps && m->steps_again && m->again && m->work && m->accesses && m->tensors && m->tensor && m->place &&
         m->step && m->first_end && m->ends && m->first_birth && m->births;
}

/* Those there are, of the room that there was. */
static const sn_access *keep_accesses(maker *m, sn_arena *arena) {
  void *less = realloc(m->accesses, ((size_t)m->route->n_accesses + 1) * sizeof *m->accesses);
  if (less) m->accesses = less;
  const sn_access *kept = sn_arena_adopt(arena, m->accesses) ? m->accesses : NULL;
  if (kept) m->accesses = NULL;
  return kept;
}

static const uint32_t *find_storages(const maker *m, sn_arena *arena) {
  uint32_t *tensor = sn_arena_alloc(arena, m->record->n_storages, sizeof *tensor);
  for (uint32_t s = 0; s < m->record->n_storages && tensor; s++) tensor[s] = m->tensor[whose(m, s)];
  return tensor;
}

static bool hand_over(maker *m, sn_arena *arena) {
  sn_route *r = m->route;
  uint32_t *forward = of_none(arena, m->net->n_layers), *backward = of_none(arena, m->net->n_layers);
  for (uint32_t s = 0; s < r->n_steps && forward && backward; s++) {
    if (s < r->first_backward) forward[m->steps[s].layer] = s;
    if (s >= r->first_backward && s < r->first_update) backward[m->steps[s].layer] = s;
  }
  r->forward_step = forward;
  r->backward_step = backward;
  r->steps = m->steps;
  r->again = m->again;
  r->steps_again = r->n_again > 0 ? m->steps_again : NULL;
  r->work = m->work;
  r->accesses = keep_accesses(m, arena);
  r->tensors = m->tensors;
  r->output = of_none(arena, m->net->n_values);
  r->gradient = of_none(arena, m->net->n_values);
  r->part = sn_arena_alloc(arena, m->net->n_values, sizeof *r->part);
  r->saved = of_none(arena, m->net->n_layers);
  r->weight_gradient = of_none(arena, m->net->n_layers);
  r->permits = sn_arena_alloc(arena, 1, sizeof *r->permits);
  r->sums = sn_arena_alloc(arena, 1, sizeof *r->sums);
  r->under = sn_arena_alloc(arena, 1, sizeof *r->under);
  r->of_storage = find_storages(m, arena);
  r->arena = arena;
  return forward && backward && r->accesses && r->output && r->gradient && r->part && r->saved && r->weight_gradient &&
         r->permits && r->sums && r->under && r->of_storage;
}

static sn_status fill(maker *m, sn_arena *arena, sn_err *err) {
  sn_route *r = m->route;
  if (!allocate(m, arena)) return sn_fail_memory(err);
  if (make_tensors(m, err) != SN_OK) return err->code;
  number_ports(m);
  sort_ends(m);
  sort_births(m);
  r->name = m->net->name;
  r->batch = m->net->batch;
  r->n_layers = m->net->n_layers;
  r->layers = m->net->layers;
  r->modules = m->net->modules;
  r->regions = m->w->regions;
  r->n_regions = m->w->n_regions;
  r->net = m->net;
  const struct sn_recorded *plain = m->net->recorded;
  bool one = plain->backwards == 1;
  r->first_backward = one ? plain->n_forward : plain->n_ops;
  r->first_update = one ? plain->n_forward + plain->n_backward : plain->n_ops;
  for (uint32_t k = 0; k < m->w->n_ops; k++) make_step(m, k);
  return hand_over(m, arena) ? SN_OK : sn_fail_memory(err);
}

/* Of what was recorded, or would have been. */
static sn_route *make_route(const sn_net *net, const struct sn_recorded *w, const sn_dialect *dialect, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_route *route = arena ? sn_arena_alloc(arena, 1, sizeof *route) : NULL;
  maker m = {.w = w, .record = w->record, .lives = w->lives[!dialect->sums_apart], .net = net, .route = route};
  sn_status status = SN_OK;
  if (!route) status = sn_fail_memory(err);
  if (status == SN_OK) route->dialect = dialect;
  if (status == SN_OK) status = fill(&m, arena, err);
  void *const parts[] = {m.accesses, m.tensor, m.place, m.step, m.first_end, m.ends, m.first_birth, m.births};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  if (status == SN_OK) return route;
  if (arena) sn_arena_free(arena);
  return NULL;
}

sn_route *sn__route_of_recording(const sn_net *net, sn_dialect_id dialect, sn_err *err) {
  const sn_dialect *d = sn_dialect_of(dialect);
  if (d->eager || dialect == SN_DIALECT_SUPERNEURONS) return make_route(net, net->recorded, d, err);
  sn_fail(err, SN_BAD_USAGE,
          "a recording is of PyTorch's graph, which has no dialect %s; pytorch and superneurons plan it", d->name);
  return NULL;
}

/* ---- of another batch ---- */

static maker maker_of(sn_route *route, const sn_net *net) {
  const struct sn_recorded *w = net->recorded;
  return (maker){
      .w = w, .record = w->record, .lives = w->lives[!route->dialect->sums_apart], .net = net, .route = route};
}

/* False where one batch has a tensor that the other has not. */
static bool resize_tensors(const maker *m, const maker *known, sn_tensor *tensors) {
  uint32_t n = 0;
  m->route->tensor_bytes = 0;
  for (uint32_t s = 0; s < m->record->n_storages; s++) {
    bool here = is_tensor(m, s);
    if (here != is_tensor(known, s)) return false;
    if (!here) continue;
    if (n == m->route->n_tensors) return false;
    tensors[n] = known->route->tensors[n];
    tensors[n].bytes = sn_record_bytes(m->record, s, m->net->batch);
    m->route->tensor_bytes += tensors[n++].bytes;
  }
  return n == m->route->n_tensors;
}

static void resize_work(maker *m) {
  for (uint32_t k = 0; k < m->w->n_ops; k++) {
    m->work[k] = work_of(m, &m->record->ops[m->w->first_op + k]);
    if (is_part(m, k)) add_to_whole(m, k);
  }
}

sn_route *sn__route_of_recording_resized(const sn_route *known, const sn_net *net, sn_err *err) {
  if (known->net->recorded != net->recorded || known->n_again > 0) return NULL;
  sn_arena *arena = sn_arena_new();
  sn_route *route = arena ? sn_arena_alloc(arena, 1, sizeof *route) : NULL, before = *known;
  sn_tensor *tensors = route ? sn_arena_alloc(arena, known->n_tensors, sizeof *tensors) : NULL;
  sn_step_work *work = tensors ? sn_arena_alloc(arena, known->n_steps, sizeof *work) : NULL;
  struct sn_under_list *none = work ? sn_arena_alloc(arena, 1, sizeof *none) : NULL;
  if (!none) {
    if (arena) sn_arena_free(arena);
    return sn_fail_memory(err), NULL;
  }
  *route = before;
  route->batch = net->batch;
  route->layers = net->layers;
  route->net = net;
  route->tensors = tensors;
  route->work = work;
  route->under = none;
  route->arena = arena;
  maker m = maker_of(route, net), of_known = maker_of(&before, known->net);
  m.work = work;
  if (resize_tensors(&m, &of_known, tensors)) return resize_work(&m), route;
  sn_arena_free(arena);
  return NULL;
}

/* ---- under checkpoints ---- */

static void free_under(under *u) {
  sn_route_free(u->route);
  free(u->spans);
  free(u);
}

static void forget_made(struct sn_under_list *list) {
  if (list->arena) sn_arena_free(list->arena);
  list->arena = NULL;
  list->made = NULL;
}

void sn__route_free_under(const sn_route *route) {
  if (!route->under) return;
  for (under *u = route->under->first, *next; u; u = next) {
    next = u->next;
    free_under(u);
  }
  forget_made(route->under);
}

void sn_route_under_like(const sn_route *route, const sn_route *known) {
  if (route->under && known->under) route->under->like = known->under->like ? known->under->like : known->under;
}

static bool is_of(const sn_record_span *known, uint32_t n_known, const sn_record_span *spans, uint32_t n_spans) {
  return n_known == n_spans && memcmp(known, spans, n_spans * sizeof *spans) == 0;
}

/* The recording as it would have been; NULL where memory is out. */
static const struct sn_recorded *find_made(const sn_route *route, const sn_record_span *spans, uint32_t n_spans) {
  struct sn_under_list *list = route->under->like ? route->under->like : route->under;
  const int in_place = !route->dialect->sums_apart;
  if (list->made && is_of(list->spans, list->n_spans, spans, n_spans)) return list->made;
  forget_made(list);
  list->arena = sn_arena_new();
  list->spans = list->arena ? sn_arena_alloc(list->arena, n_spans, sizeof *spans) : NULL;
  if (!list->spans) return NULL;
  memcpy(list->spans, spans, n_spans * sizeof *spans);
  list->n_spans = n_spans;
  struct sn_recorded *made = sn_record_checkpoint(route->net->recorded, spans, n_spans, list->arena);
  if (!made || !(made->lives[in_place] = sn_record_lives_find(made, in_place, list->arena))) return NULL;
  return list->made = made;
}

static sn_route *make_under(const sn_route *route, const sn_record_span *spans, uint32_t n_spans, sn_err *err) {
  const struct sn_recorded *made = find_made(route, spans, n_spans);
  if (made) return make_route(route->net, made, route->dialect, err);
  sn_fail_memory(err);
  return NULL;
}

const sn_route *sn_route_under(const sn_route *route, const sn_record_span *spans, uint32_t n_spans, sn_err *err) {
  size_t bytes = n_spans * sizeof *spans;
  for (const under *u = route->under->first; u; u = u->next)
    if (is_of(u->spans, u->n_spans, spans, n_spans)) return u->route;
  under *made = calloc(1, sizeof *made);
  if (made) made->spans = malloc(bytes + 1);
  if (!made || !made->spans) {
    free(made);
    return sn_fail_memory(err), NULL;
  }
  memcpy(made->spans, spans, bytes);
  made->n_spans = n_spans;
  made->route = make_under(route, spans, n_spans, err);
  if (!made->route) {
    free_under(made);
    return NULL;
  }
  made->next = route->under->first;
  route->under->first = made;
  return made->route;
}
