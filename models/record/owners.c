/* Whose storages are; see the header. What an update makes has the owner of what it is made of, which stands at the same
 * place of lists that are as long as the list of what is made. */
#include "models/record/owners.h"

#include "models/net/net.h"

#include <string.h>

enum { WIDEST = 8 }; /* bytes of an element */

typedef struct finder {
  const struct sn_recorded *w;
  const sn_record *record;
  uint32_t *of, *next, *width;
} finder;

bool sn_record_has_rows(const sn_record *record) {
  for (uint32_t p = 0; p < record->n_parameters; p++)
    if (record->parameters[p].rows == 0) return false;
  return true;
}

static uint64_t bytes_of(const finder *f, uint32_t storage) {
  const sn_record_size size = sn_record_size_of(f->record, storage);
  return size.b == 0 ? (uint64_t)size.a : 0;
}

/* Parameters of a storage one after the other, the first one first. */
static void chain(finder *f) {
  for (uint32_t p = f->record->n_parameters; p-- > 0;) {
    uint32_t storage = f->record->parameters[p].storage;
    f->next[p] = f->of[storage];
    f->of[storage] = p;
  }
}

static void find_widths(finder *f) {
  for (uint32_t p = 0; p < f->record->n_parameters; p++) {
    uint32_t first = f->of[f->record->parameters[p].storage];
    uint64_t elements = 0, bytes = bytes_of(f, f->record->parameters[p].storage);
    if (first != p) {
      f->width[p] = f->width[first];
      continue;
    }
    for (uint32_t q = first; q != SN_NONE && elements <= SN_MAX_NET_BYTES; q = f->next[q])
      elements += f->record->parameters[q].elements;
    bool whole = elements > 0 && bytes % elements == 0 && bytes / elements <= WIDEST;
    f->width[p] = whole ? (uint32_t)(bytes / elements) : 0;
  }
}

static void own(finder *f, const uint32_t *storages, uint32_t n, uint32_t parameter) {
  for (uint32_t i = 0; i < n; i++)
    if (f->of[storages[i]] == SN_NONE) f->of[storages[i]] = parameter;
}

/* Whose the i-th of `made` is that an operation makes; SN_NONE where nothing that it reads is as large and owned. */
static uint32_t owner_like(const finder *f, const sn_record_op *op, uint32_t i, uint32_t made) {
  const uint32_t *reads = &f->record->refs[op->first_ref];
  for (uint32_t k = i; k < op->n_reads; k += op->n_makes)
    if (f->of[reads[k]] != SN_NONE && bytes_of(f, reads[k]) == bytes_of(f, made)) return f->of[reads[k]];
  return SN_NONE;
}

static void follow(finder *f) {
  for (uint32_t i = f->w->n_forward + f->w->n_backward; i < f->w->n_ops; i++) {
    const sn_record_op *op = &f->record->ops[f->w->first_op + i];
    for (uint32_t k = 0; k < op->n_makes; k++) {
      uint32_t made = f->record->refs[op->first_ref + op->n_reads + k];
      if (f->of[made] == SN_NONE && bytes_of(f, made) > 0) f->of[made] = owner_like(f, op, k, made);
    }
  }
}

const sn_record_owners *sn_record_owners_find(const struct sn_recorded *w, sn_arena *arena) {
  const sn_record *record = w->record;
  finder f = {.w = w,
              .record = record,
              .of = sn_arena_alloc(arena, (size_t)record->n_storages + 1, sizeof *f.of),
              .next = sn_arena_alloc(arena, (size_t)record->n_parameters + 1, sizeof *f.next),
              .width = sn_arena_alloc(arena, (size_t)record->n_parameters + 1, sizeof *f.width)};
  sn_record_owners *owners = sn_arena_alloc(arena, 1, sizeof *owners);
  if (!f.of || !f.next || !f.width || !owners) return NULL;
  memset(f.of, 0xff, record->n_storages * sizeof *f.of);
  chain(&f);
  find_widths(&f);
  for (uint32_t p = 0; p < record->n_parameters; p++) {
    const sn_record_parameter *parameter = &record->parameters[p];
    own(&f, parameter->gradients, parameter->n_gradients, p);
    own(&f, parameter->states, parameter->n_states, p);
  }
  follow(&f);
  *owners = (sn_record_owners){f.of, f.next, f.width};
  return owners;
}
