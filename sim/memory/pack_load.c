/* Pack's times and loads; see pack_internal.h. O(n log n), and O(n) where times lie as close as those of plans do. */
#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t rank_of(const uint64_t *times, uint32_t n, uint64_t time) {
  uint32_t low = 0, high = n - 1;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (times[middle] < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Times that lie so close that they can stand for their ranks, as those of plans do; how many, or 0. */
static uint32_t take_times(sn__packer *p) {
  uint64_t last = 0;
  for (uint32_t b = 0; b < p->count; b++)
    if (sn__pack_is_active(&p->blocks[b])) last = sn_max(last, p->blocks[b].upper);
  if (last >= 4 * (uint64_t)p->active) return 0;
  for (uint32_t b = 0; b < p->count; b++) {
    p->lower[b] = (uint32_t)sn_min(p->blocks[b].lower, last);
    p->upper[b] = (uint32_t)sn_min(p->blocks[b].upper, last);
  }
  return (uint32_t)last + 1;
}

/* The number of different times; their ranks in `lower` and `upper`. */
static uint32_t rank_times(sn__packer *p, uint64_t *times) {
  uint32_t n = 0, different = 0;
  for (uint32_t b = 0; b < p->count; b++) {
    if (!sn__pack_is_active(&p->blocks[b])) continue;
    times[n++] = p->blocks[b].lower;
    times[n++] = p->blocks[b].upper;
  }
  qsort(times, n, sizeof *times, compare_times);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || times[i] != times[i - 1]) times[different++] = times[i];
  for (uint32_t b = 0; b < p->count; b++) {
    if (!sn__pack_is_active(&p->blocks[b])) continue;
    p->lower[b] = rank_of(times, different, p->blocks[b].lower);
    p->upper[b] = rank_of(times, different, p->blocks[b].upper);
  }
  return different;
}

/* Largest of load[lower, upper); the tree's leaves are tree[n ..]. The first and the last node of a level are looked at
 * also where a level above has them: all they stand for is within, and a branch would be taken every other time. */
static uint64_t largest_load(const uint64_t *tree, uint32_t n, uint32_t lower, uint32_t upper) {
  uint64_t most = 0;
  for (uint32_t l = n + lower, u = n + upper; l < u; l = (l + 1) / 2, u /= 2)
    most = sn_max(most, sn_max(tree[l], tree[u - 1]));
  return most;
}

/* `tree` has room for 2n. Sums wrap where a block ends, which takes away what it added. */
static void find_loads(sn__packer *p, uint64_t *tree, uint32_t n) {
  uint64_t *load = tree + n;
  memset(load, 0, n * sizeof *load);
  for (uint32_t b = 0; b < p->count; b++) {
    if (!sn__pack_is_active(&p->blocks[b])) continue;
    load[p->lower[b]] += p->blocks[b].bytes;
    load[p->upper[b]] -= p->blocks[b].bytes;
  }
  for (uint32_t t = 1; t < n; t++) load[t] += load[t - 1];
  for (uint32_t i = n; i-- > 1;) tree[i] = sn_max(tree[2 * (size_t)i], tree[2 * (size_t)i + 1]);
  for (uint32_t b = 0; b < p->count; b++)
    if (sn__pack_is_active(&p->blocks[b])) p->most[b] = largest_load(tree, n, p->lower[b], p->upper[b]);
}

bool sn__pack_measure(sn__packer *p, uint64_t *bound) {
  *bound = 0;
  if (p->active == 0) return true;
  uint32_t n = take_times(p);
  uint64_t *times = n > 0 ? NULL : calloc(2 * (size_t)p->active, sizeof *times);
  if (times) n = rank_times(p, times);
  uint64_t *tree = n > 0 ? malloc(2 * (size_t)n * sizeof *tree) : NULL;
  if (tree) find_loads(p, tree, n);
  for (uint32_t b = 0; tree && b < p->count; b++)
    if (sn__pack_is_active(&p->blocks[b])) *bound = sn_max(*bound, p->most[b]);
  bool good = tree != NULL;
  free(times);
  free(tree);
  return good;
}
