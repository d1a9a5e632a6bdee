/* Compare: two runs side by side; see the header. Peaks are merged by name: both lists are sorted by it, walked once,
 * and the merged list is sorted by the size of the change. */
#include "sim/capacity/compare.h"

#include <stdlib.h>
#include <string.h>

/* ---- strategies ---- */

static const sn_result *find(const sn_run *run, const sn_result *like) {
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (strcmp(r->strategy, like->strategy) == 0 && strcmp(r->source, like->source) == 0) return r;
  }
  return NULL;
}

sn_compare_pair *sn_compare_runs(const sn_run *before, const sn_run *after, sn_arena *arena, uint32_t *count,
                                 sn_err *err) {
  sn_compare_pair *pairs = sn_arena_alloc(arena, (size_t)before->n_results + after->n_results, sizeof *pairs);
  *count = 0;
  if (!pairs) sn_fail_memory(err);
  for (uint32_t i = 0; pairs && i < before->n_results; i++) {
    const sn_result *r = &before->results[i];
    pairs[(*count)++] = (sn_compare_pair){r->strategy, r->source, r, find(after, r)};
  }
  for (uint32_t i = 0; pairs && i < after->n_results; i++) {
    const sn_result *r = &after->results[i];
    if (!find(before, r)) pairs[(*count)++] = (sn_compare_pair){r->strategy, r->source, NULL, r};
  }
  return pairs;
}

bool sn_compare_has_peaks(const sn_compare_pair *pair) {
  return pair->before && pair->after && pair->before->peak && pair->after->peak;
}

static bool same_memory(const sn_result *a, const sn_result *b) {
  return strcmp(a->placement, b->placement) == 0 && a->fits == b->fits &&
         a->peak_device_bytes == b->peak_device_bytes && a->context_bytes == b->context_bytes &&
         a->pool_bytes == b->pool_bytes && a->peak_tensor_bytes == b->peak_tensor_bytes &&
         a->peak_step == b->peak_step && strcmp(a->peak_layer, b->peak_layer) == 0 &&
         a->live_tensors_at_peak == b->live_tensors_at_peak && a->max_live_tensors == b->max_live_tensors &&
         a->workspace_peak_bytes == b->workspace_peak_bytes;
}

static bool same_work(const sn_result *a, const sn_result *b) {
  return a->iteration_ns == b->iteration_ns && a->stall_ns == b->stall_ns && a->offload_bytes == b->offload_bytes &&
         a->prefetch_bytes == b->prefetch_bytes && a->cache_hits == b->cache_hits &&
         a->cache_misses == b->cache_misses && a->evictions == b->evictions &&
         a->recomputed_layers == b->recomputed_layers;
}

bool sn_compare_same(const sn_compare_pair *pair) {
  return pair->before && pair->after && same_memory(pair->before, pair->after) && same_work(pair->before, pair->after);
}

/* ---- tensors of the peaks ---- */

const char *sn_change_name(sn_change change) {
  static const char *const names[SN_CHANGES] = {"came", "went", "grew", "shrank", "stayed"};
  return names[change];
}

int64_t sn_peak_tensor_bytes(const sn_peak_tensor *tensor) {
  int64_t after = tensor->after ? (int64_t)tensor->after->bytes : 0;
  return after - (tensor->before ? (int64_t)tensor->before->bytes : 0);
}

static sn_change change_of(const sn_peak_tensor *tensor) {
  int64_t bytes = sn_peak_tensor_bytes(tensor);
  if (!tensor->before) return SN_CAME;
  if (!tensor->after) return SN_WENT;
  return bytes > 0 ? SN_GREW : bytes < 0 ? SN_SHRANK : SN_STAYED;
}

static int by_name(const void *a, const void *b) {
  const sn_peak_row *x = a, *y = b;
  return strcmp(x->tensor, y->tensor);
}

static const char *name_of(const sn_peak_tensor *t) {
  return t->after ? t->after->tensor : t->before->tensor;
}

static int by_change(const void *a, const void *b) {
  int64_t x = llabs(sn_peak_tensor_bytes(a)), y = llabs(sn_peak_tensor_bytes(b));
  return x != y ? (x < y ? 1 : -1) : strcmp(name_of(a), name_of(b));
}

/* A copy of a peak's rows, in the order of their names. */
static sn_peak_row *sort(const sn_result *r, sn_arena *arena) {
  sn_peak_row *rows = sn_arena_alloc(arena, r->n_peak, sizeof *rows);
  if (!rows) return NULL;
  if (r->n_peak) memcpy(rows, r->peak, r->n_peak * sizeof *rows);
  qsort(rows, r->n_peak, sizeof *rows, by_name);
  return rows;
}

static uint32_t merge(const sn_peak_row *before, uint32_t n_before, const sn_peak_row *after, uint32_t n_after,
                      sn_peak_tensor *tensors) {
  uint32_t i = 0, j = 0, count = 0;
  while (i < n_before || j < n_after) {
    int order = i == n_before ? 1 : j == n_after ? -1 : strcmp(before[i].tensor, after[j].tensor);
    sn_peak_tensor *t = &tensors[count++];
    t->before = order <= 0 ? &before[i++] : NULL;
    t->after = order >= 0 ? &after[j++] : NULL;
    t->change = change_of(t);
  }
  return count;
}

/* Sizes come from the store: a sum that overflows stays at its limit. */
static void add_bytes(int64_t *sum, int64_t bytes) {
  if (__builtin_add_overflow(*sum, bytes, sum)) *sum = bytes > 0 ? INT64_MAX : INT64_MIN;
}

sn_status sn_compare_peaks(const sn_result *before, const sn_result *after, sn_arena *arena, sn_peak_change *change,
                           sn_err *err) {
  *change = (sn_peak_change){0};
  const sn_peak_row *old = sort(before, arena), *new = sort(after, arena);
  sn_peak_tensor *tensors = sn_arena_alloc(arena, (size_t)before->n_peak + after->n_peak, sizeof *tensors);
  if (!old || !new || !tensors) return sn_fail_memory(err);
  change->n_tensors = merge(old, before->n_peak, new, after->n_peak, tensors);
  for (uint32_t i = 0; i < change->n_tensors; i++) {
    change->count[tensors[i].change]++;
    add_bytes(&change->bytes[tensors[i].change], sn_peak_tensor_bytes(&tensors[i]));
  }
  qsort(tensors, change->n_tensors, sizeof *tensors, by_change);
  change->tensors = tensors;
  return SN_OK;
}
