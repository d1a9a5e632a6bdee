/* Kinds of operations; see the header. */
#include "models/record/kinds.h"

#include "models/record/lives.h"

#include <stdlib.h>
#include <string.h>

typedef struct finder {
  const sn_record *record;
  const sn_record_op *ops; /* of the iteration */
  const struct sn_recorded *w;
  uint32_t *part_of;    /* per operation, as in sn_recorded */
  bool *aside;          /* per storage, the same */
  bool *changed;        /* per storage: other than by parts of what has made it */
  uint32_t *touched;    /* per storage: the last of the forward pass so far that has to do with it; SN_NONE: none */
  bool *differentiated; /* per layer: it has a backward */
} finder;

static bool is_made(const finder *f, uint32_t storage) {
  return f->w->lives[0][storage].stay == SN_RECORD_MADE && f->record->storages[storage].on_gpu;
}

/* ---- parts ---- */

static uint32_t whole_of(const finder *f, uint32_t op) {
  return f->part_of[op] != SN_NONE ? f->part_of[op] : op;
}

/* The operation that it is a part of; SN_NONE: of none. */
static uint32_t find_whole(const finder *f, const sn_record_op *op) {
  const uint32_t *refs = &f->record->refs[op->first_ref], changes = refs[op->n_reads + op->n_makes];
  bool state = f->record->kernels[op->kernel].flags & SN_RECORD_CHANGES_STATE;
  if (op->phase != SN_RECORD_FORWARD || op->n_makes > 0 || op->n_changes != 1 || state) return SN_NONE;
  for (uint32_t i = 0; i < op->n_reads; i++)
    if (refs[i] != changes && is_made(f, refs[i])) return SN_NONE;
  if (!is_made(f, changes) || f->touched[changes] == SN_NONE) return SN_NONE;
  uint32_t whole = whole_of(f, f->touched[changes]);
  const sn_record_op *maker = &f->ops[whole];
  bool made = maker->n_makes > 0 && f->record->refs[maker->first_ref + maker->n_reads] == changes;
  return made && maker->phase == SN_RECORD_FORWARD ? whole : SN_NONE;
}

static void find_parts(finder *f) {
  for (uint32_t i = 0; i < f->w->n_ops; i++) {
    const sn_record_op *op = &f->ops[i];
    const uint32_t *refs = &f->record->refs[op->first_ref], *changes = refs + op->n_reads + op->n_makes;
    f->part_of[i] = i < f->w->n_forward ? find_whole(f, op) : SN_NONE;
    for (uint32_t k = 0; k < op->n_changes && f->part_of[i] == SN_NONE; k++) f->changed[changes[k]] = true;
    for (uint32_t k = 0; i < f->w->n_forward && k < (uint32_t)op->n_reads + op->n_makes + op->n_changes; k++)
      f->touched[refs[k]] = i;
  }
}

/* ---- masks and statistics ---- */

static bool is_aside(const finder *f, uint32_t storage, uint32_t result, uint32_t op) {
  const sn_record_life *life = &f->w->lives[0][storage];
  uint32_t batch = f->record->batches[0];
  return is_made(f, storage) && !f->changed[storage] && !life->at_end && f->touched[storage] == op &&
         sn_record_bytes(f->record, storage, batch) < sn_record_bytes(f->record, result, batch);
}

/* Whether it makes any. */
static bool find_aside(finder *f, uint32_t i) {
  const sn_record_op *op = &f->ops[i];
  const uint32_t *makes = &f->record->refs[op->first_ref + op->n_reads];
  bool any = false;
  for (uint32_t k = 1; k < op->n_makes; k++) any |= f->aside[makes[k]] = is_aside(f, makes[k], makes[0], i);
  return any;
}

/* ---- operations ---- */

/* The only one among some that the iteration makes and that is not aside; SN_NONE: there is none, or several. */
static uint32_t only_made(const finder *f, const uint32_t *refs, uint32_t count) {
  uint32_t only = SN_NONE;
  for (uint32_t i = 0; i < count; i++) {
    bool tensor = is_made(f, refs[i]) && !f->aside[refs[i]];
    if (tensor && only != SN_NONE && only != refs[i]) return SN_NONE;
    if (tensor) only = refs[i];
  }
  return only;
}

static bool is_cheap(const finder *f, const sn_record_op *op) {
  const uint32_t *refs = &f->record->refs[op->first_ref];
  uint32_t from = only_made(f, refs, op->n_reads), to = only_made(f, refs + op->n_reads, op->n_makes);
  bool state = f->record->kernels[op->kernel].flags & SN_RECORD_CHANGES_STATE;
  return op->n_changes == 0 && from != SN_NONE && to != SN_NONE && !state && !f->changed[from] && !f->changed[to];
}

static void name_kinds(finder *f, sn_layer *layers) {
  for (uint32_t i = 0; i < f->w->n_ops; i++) f->differentiated[f->w->layer[i]] |= f->ops[i].phase == SN_RECORD_BACKWARD;
  for (uint32_t i = 0; i < f->w->n_forward; i++) {
    sn_layer *layer = &layers[f->w->layer[i]];
    bool masked = find_aside(f, i);
    const sn_record_size *flops = &f->record->works[f->ops[i].work].flops;
    if (flops->a != 0 || flops->b != 0)
      layer->op = SN_RECORDED_HEAVY;
    else if (i > 0 && f->differentiated[f->w->layer[i]] && is_cheap(f, &f->ops[i]))
      layer->op = masked ? SN_RECORDED_MASKED : SN_RECORDED_CHEAP;
  }
}

bool sn__record_find_kinds(struct sn_recorded *w, sn_layer *layers, sn_arena *arena) {
  size_t storages = (size_t)w->record->n_storages + 1, ops = (size_t)w->n_ops + 2;
  finder f = {.record = w->record,
              .ops = &w->record->ops[w->first_op],
              .w = w,
              .part_of = sn_arena_alloc(arena, ops, sizeof *f.part_of),
              .aside = sn_arena_alloc(arena, storages, sizeof *f.aside),
              .changed = calloc(storages, sizeof *f.changed),
              .touched = malloc(storages * sizeof *f.touched),
              .differentiated = calloc(ops, sizeof *f.differentiated)};
  bool good = f.part_of && f.aside && f.changed && f.touched && f.differentiated;
  if (good) {
    memset(f.touched, 0xff, storages * sizeof *f.touched);
    find_parts(&f);
    name_kinds(&f, layers);
    w->part_of = f.part_of;
    w->aside = f.aside;
  }
  free(f.changed);
  free(f.touched);
  free(f.differentiated);
  return good;
}
