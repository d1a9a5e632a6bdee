/* What a recording says by itself: batches that it holds for, and how many bytes are alive at most; see record.h. */
#include "base/checked.h"
#include "models/net/net.h"
#include "models/record/record.h"

#include <inttypes.h>
#include <stdlib.h>

static bool has_size(const sn_record_storage *storage, uint32_t batch, uint64_t *bytes) {
  int64_t grown, all;
  if (__builtin_mul_overflow(storage->bytes.b, (int64_t)batch, &grown)) return false;
  if (__builtin_add_overflow(storage->bytes.a, grown, &all) || all < 0) return false;
  *bytes = (uint64_t)all;
  return true;
}

sn_status sn_record_check_batch(const sn_record *record, uint32_t batch, sn_err *err) {
  uint64_t sum = 0, bytes;
  if (record->n_batches == 1 && batch != record->batches[0])
    return sn_fail(err, SN_BAD_USAGE,
                   "--batch %" PRIu32 ": %s was recorded at batch %" PRIu32 " alone; give --batch %" PRIu32
                   ", or record it at %" PRIu32,
                   batch, record->name, record->batches[0], record->batches[0], batch);
  for (uint32_t s = 0; s < record->n_storages; s++)
    if (!has_size(&record->storages[s], batch, &bytes) || !sn_add(sum, bytes, &sum) || sum > SN_MAX_NET_BYTES)
      return sn_fail(err, SN_BAD_USAGE,
                     "--batch %" PRIu32 ": %s would need more than 2^52 bytes; choose a smaller batch", batch,
                     record->name);
  return SN_OK;
}

/* A storage is alive while Python, a handle or a ghost has it. */
typedef struct meter {
  const sn_record *record;
  uint32_t batch;
  uint32_t *holders; /* per storage */
  uint32_t *kept;    /* per handle: its storage */
  uint32_t *same;    /* per storage: whose bytes it has; itself, unless it is a sum in place */
  uint64_t live, peak;
} meter;

static uint32_t whose(const meter *m, uint32_t storage) {
  while (m->same[storage] != storage) storage = m->same[storage];
  return storage;
}

static void hold(meter *m, uint32_t storage) {
  uint32_t s = whose(m, storage);
  if (m->holders[s]++ == 0) m->live += sn_record_bytes(&m->record->storages[s], m->batch);
  m->peak = sn_max(m->peak, m->live);
}

static void let_go(meter *m, uint32_t storage) {
  uint32_t s = whose(m, storage);
  if (m->holders[s] > 0 && --m->holders[s] == 0) m->live -= sn_record_bytes(&m->record->storages[s], m->batch);
}

static void run(meter *m, const sn_record_op *op, bool in_place) {
  const uint32_t *made = &m->record->refs[op->first_ref + op->n_reads];
  if (in_place && op->adds_in_place) m->same[made[0]] = whose(m, op->summand);
  for (uint32_t i = 0; i < op->n_makes; i++) hold(m, made[i]);
}

static void follow(meter *m, const sn_record_event *e, bool in_place) {
  switch ((sn_record_kind)e->kind) {
  case SN_RECORD_OP:
    run(m, &m->record->ops[e->id], in_place);
    break;
  case SN_RECORD_BIRTH:
    hold(m, e->id);
    break;
  case SN_RECORD_LET_GO:
    let_go(m, e->id);
    break;
  case SN_RECORD_KEPT:
    m->kept[e->id] = e->other;
    hold(m, e->other);
    break;
  case SN_RECORD_DROPPED:
    let_go(m, m->kept[e->id]);
    break;
  case SN_RECORD_GHOST:
    hold(m, e->other);
    break;
  case SN_RECORD_GHOST_END:
    let_go(m, e->other);
    break;
  case SN_RECORD_TAKEN:
  case SN_RECORD_ENTER:
  case SN_RECORD_LEAVE:
  case SN_RECORD_ITERATION:
    break;
  }
}

sn_status sn_record_peak(const sn_record *record, uint32_t batch, bool in_place, uint64_t *bytes, sn_err *err) {
  meter m = {.record = record,
             .batch = batch,
             .holders = calloc((size_t)record->n_storages + 1, sizeof(uint32_t)),
             .kept = calloc((size_t)record->handles + 1, sizeof(uint32_t)),
             .same = calloc((size_t)record->n_storages + 1, sizeof(uint32_t))};
  bool good = m.holders && m.kept && m.same;
  for (uint32_t s = 0; good && s < record->n_storages; s++) m.same[s] = s;
  for (uint32_t i = 0; good && i < record->n_events; i++) follow(&m, &record->events[i], in_place);
  *bytes = m.peak;
  free(m.holders);
  free(m.kept);
  free(m.same);
  return good ? SN_OK : sn_fail_memory(err);
}
