/* What of a recording is alive at most, counted event by event: an oracle for the plans of its network, which are made of
 * spans (models/record/lives.h). */
#ifndef SN_TESTS_RECORD_PEAK_H
#define SN_TESTS_RECORD_PEAK_H

#include "models/record/record.h"

#include <stdlib.h>

/* A storage is alive while Python, a handle or a ghost has it. */
typedef struct record_meter {
  const sn_record *record;
  uint32_t batch;
  uint32_t *holders; /* per storage */
  uint32_t *kept;    /* per handle: its storage */
  uint32_t *same;    /* per storage: whose bytes it has; itself, unless it is a sum in place */
  uint64_t live, peak;
} record_meter;

static inline uint32_t record_meter_whose(const record_meter *m, uint32_t storage) {
  while (m->same[storage] != storage) storage = m->same[storage];
  return storage;
}

static inline void record_meter_hold(record_meter *m, uint32_t storage) {
  uint32_t s = record_meter_whose(m, storage);
  if (m->holders[s]++ == 0) m->live += sn_record_bytes(m->record, s, m->batch);
  if (m->live > m->peak) m->peak = m->live;
}

static inline void record_meter_let_go(record_meter *m, uint32_t storage) {
  uint32_t s = record_meter_whose(m, storage);
  if (m->holders[s] == 0) abort(); /* what the reader does not let through */
  if (--m->holders[s] == 0) m->live -= sn_record_bytes(m->record, s, m->batch);
}

static inline void record_meter_follow(record_meter *m, const sn_record_event *e, bool in_place) {
  if (e->kind == SN_RECORD_OP) {
    const sn_record_op *op = &m->record->ops[e->id];
    const uint32_t *made = &m->record->refs[op->first_ref + op->n_reads];
    if (in_place && op->adds_in_place) m->same[made[0]] = record_meter_whose(m, op->summand);
    for (uint32_t i = 0; i < op->n_makes; i++) record_meter_hold(m, made[i]);
  }
  if (e->kind == SN_RECORD_KEPT) m->kept[e->id] = e->other;
  if (e->kind == SN_RECORD_BIRTH) record_meter_hold(m, e->id);
  if (e->kind == SN_RECORD_KEPT || e->kind == SN_RECORD_GHOST) record_meter_hold(m, e->other);
  if (e->kind == SN_RECORD_LET_GO) record_meter_let_go(m, e->id);
  if (e->kind == SN_RECORD_DROPPED) record_meter_let_go(m, m->kept[e->id]);
  if (e->kind == SN_RECORD_GHOST_END) record_meter_let_go(m, e->other);
}

/* Bytes, from an event on; `in_place`: sums of gradients as PyTorch adds them. */
static inline uint64_t record_peak_from(const sn_record *record, uint32_t first, uint32_t batch, bool in_place) {
  record_meter m = {.record = record,
                    .batch = batch,
                    .holders = calloc((size_t)record->n_storages + 1, sizeof(uint32_t)),
                    .kept = calloc((size_t)record->handles + 1, sizeof(uint32_t)),
                    .same = calloc((size_t)record->n_storages + 1, sizeof(uint32_t))};
  if (!m.holders || !m.kept || !m.same) abort();
  for (uint32_t s = 0; s < record->n_storages; s++) m.same[s] = s;
  for (uint32_t i = 0; i < record->n_events; i++) {
    if (i == first) m.peak = m.live;
    record_meter_follow(&m, &record->events[i], in_place);
  }
  free(m.holders);
  free(m.kept);
  free(m.same);
  return m.peak;
}

/* Of all iterations. */
static inline uint64_t record_peak(const sn_record *record, uint32_t batch, bool in_place) {
  return record_peak_from(record, 0, batch, in_place);
}

#endif
