/* Batches that a recording holds for; see record.h. */
#include "base/checked.h"
#include "models/net/net.h"
#include "models/record/record.h"

#include <inttypes.h>

static bool has_size(sn_record_size size, uint32_t batch, uint64_t *bytes) {
  int64_t grown, all;
  if (__builtin_mul_overflow(size.b, (int64_t)batch, &grown)) return false;
  if (__builtin_add_overflow(size.a, grown, &all) || all < 0) return false;
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
    if (!has_size(sn_record_size_of(record, s), batch, &bytes) || !sn_add(sum, bytes, &sum) || sum > SN_MAX_NET_BYTES)
      return sn_fail(err, SN_BAD_USAGE,
                     "--batch %" PRIu32 ": %s would need more than 2^52 bytes; choose a smaller batch", batch,
                     record->name);
  return SN_OK;
}
