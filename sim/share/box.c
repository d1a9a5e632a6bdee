/* A box as an ordered map; see the header. The key is the number of the size among all sizes, then that of the put. */
#include "sim/share/box.h"

#include "base/checked.h"
#include "base/ordered.h"
#include "models/net/net.h"

#include <stdlib.h>

typedef struct put {
  uint32_t region, step;
} put;

struct sn_box {
  sn_ordered free;
  const sn_colouring *colouring;
  uint64_t *sizes; /* ascending, each once */
  put *puts;
  uint32_t n_sizes, n_puts;
};

static int compare_sizes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void sort_sizes(sn_box *box, const uint64_t *sizes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) box->sizes[i] = sizes[i];
  qsort(box->sizes, count, sizeof *box->sizes, compare_sizes);
  for (uint32_t i = 0; i < count; i++)
    if (i == 0 || box->sizes[i] != box->sizes[box->n_sizes - 1]) box->sizes[box->n_sizes++] = box->sizes[i];
}

sn_box *sn_box_new(const uint64_t *sizes, uint32_t count, const sn_colouring *colouring, sn_err *err) {
  sn_box *box = calloc(1, sizeof *box);
  if (box) {
    box->colouring = colouring;
    box->sizes = calloc((size_t)count + 1, sizeof *box->sizes);
    box->puts = calloc((size_t)count + 1, sizeof *box->puts);
  }
  if (!box || !box->sizes || !box->puts) {
    sn_fail_memory(err);
    sn_box_free(box);
    return NULL;
  }
  sort_sizes(box, sizes, count);
  return box;
}

void sn_box_free(sn_box *box) {
  if (!box) return;
  sn_ordered_clear(&box->free);
  free(box->sizes);
  free(box->puts);
  free(box);
}

/* The number of the smallest size of at least `bytes`; n_sizes where all are smaller. */
static uint32_t rank_of(const sn_box *box, uint64_t bytes) {
  uint32_t low = 0, high = box->n_sizes;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (box->sizes[middle] < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint64_t key_of(uint32_t rank, uint32_t nth) {
  return (uint64_t)rank << 32 | nth;
}

sn_status sn_box_put(sn_box *box, uint32_t region, uint64_t bytes, uint32_t step, sn_err *err) {
  uint64_t key = key_of(rank_of(box, bytes), box->n_puts);
  box->puts[box->n_puts++] = (put){region, step};
  return sn_ordered_insert(&box->free, key, 0) == SN_ORDERED_NONE ? sn_fail_memory(err) : SN_OK;
}

static uint32_t take(sn_box *box, uint64_t key) {
  sn_ordered_remove(&box->free, key);
  return box->puts[(uint32_t)key].region;
}

static bool may_have(const sn_box *box, uint64_t key, uint32_t step) {
  return sn_colouring_allows(box->colouring, box->puts[(uint32_t)key].step, step);
}

static uint32_t take_larger(sn_box *box, uint32_t rank, uint64_t most, uint32_t step) {
  uint64_t key = key_of(rank, 0);
  for (uint32_t node; (node = sn_ordered_ceiling(&box->free, key)) != SN_ORDERED_NONE; key++) {
    key = box->free.nodes[node].key;
    if (box->sizes[key >> 32] > most) break;
    if (may_have(box, key, step)) return take(box, key);
  }
  return SN_NONE;
}

static uint32_t take_smaller(sn_box *box, uint32_t rank, uint64_t least, uint32_t step) {
  uint64_t key = key_of(rank, 0);
  for (uint32_t node; key > 0 && (node = sn_ordered_floor(&box->free, key - 1)) != SN_ORDERED_NONE;) {
    key = box->free.nodes[node].key;
    if (box->sizes[key >> 32] < least) break;
    if (may_have(box, key, step)) return take(box, key);
  }
  return SN_NONE;
}

uint32_t sn_box_take(sn_box *box, uint64_t bytes, uint32_t range, uint32_t step) {
  uint32_t rank = rank_of(box, bytes);
  uint64_t most;
  if (range == 0) return SN_NONE;
  if (!sn_mul(bytes, range, &most)) most = UINT64_MAX;
  uint32_t region = take_larger(box, rank, most, step);
  return region != SN_NONE ? region : take_smaller(box, rank, bytes / range, step);
}
