/* Sorted list of names by (hash, text, index); see the header. The hash is 64-bit FNV-1a: names that collide only cost
 * string comparisons, and nothing of the order reaches a result. Hashes are spread evenly, so a bucket for each range
 * of them holds about one name: sorting is O(n) and a look-up O(1), but for names that somebody has made to collide. */
#include "models/net/names.h"

#include "base/fnv.h"
#include "models/net/net.h"

#include <stdlib.h>
#include <string.h>

static int compare_text(const sn__name *a, const sn__name *b) {
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return strcmp(a->text, b->text);
}

static int compare(const void *left, const void *right) {
  const sn__name *a = left, *b = right;
  int order = compare_text(a, b);
  return order ? order : (a->index > b->index) - (a->index < b->index);
}

static uint32_t bucket_of(const sn__names *names, uint64_t key) {
  return (uint32_t)(key >> names->shift);
}

/* A power of two of buckets, as many as names or up to twice as many. */
sn_status sn__names_init(sn__names *names, uint32_t room, sn_err *err) {
  uint32_t bits = 1;
  while (bits < 31 && UINT32_C(1) << bits < room) bits++;
  *names = (sn__names){.items = calloc((size_t)room + 1, sizeof *names->items),
                       .sorted = calloc((size_t)room + 1, sizeof *names->sorted),
                       .first = calloc(((size_t)1 << bits) + 1, sizeof *names->first),
                       .shift = 64 - bits};
  if (names->items && names->sorted && names->first) return SN_OK;
  sn__names_free(names);
  return sn_fail_memory(err);
}

void sn__names_free(sn__names *names) {
  free(names->items);
  free(names->sorted);
  free(names->first);
  *names = (sn__names){0};
}

void sn__names_add(sn__names *names, const char *text, uint32_t index) {
  names->items[names->count++] = (sn__name){sn_fnv_text(text), text, index};
}

/* Counts what is in each bucket, then puts each name behind those of its bucket that are there already. */
static void fill_buckets(sn__names *names) {
  uint32_t buckets = UINT32_C(1) << (64 - names->shift);
  for (uint32_t i = 0; i < names->count; i++) names->first[bucket_of(names, names->items[i].key)]++;
  for (uint32_t b = 0, sum = 0; b <= buckets; b++) {
    sum += names->first[b];
    names->first[b] = sum;
  }
  for (uint32_t i = names->count; i-- > 0;)
    names->sorted[--names->first[bucket_of(names, names->items[i].key)]] = names->items[i];
}

void sn__names_sort(sn__names *names) {
  fill_buckets(names);
  for (uint32_t b = 0; b < UINT32_C(1) << (64 - names->shift); b++) {
    uint32_t first = names->first[b], count = names->first[b + 1] - first;
    if (count > 1) qsort(&names->sorted[first], count, sizeof *names->sorted, compare);
  }
  free(names->items);
  names->items = names->sorted;
  names->sorted = NULL;
}

uint32_t sn__names_find(const sn__names *names, const char *text) {
  sn__name wanted = {sn_fnv_text(text), text, 0};
  uint32_t bucket = bucket_of(names, wanted.key), low = names->first[bucket], end = names->first[bucket + 1];
  for (uint32_t high = end; low < high;) {
    uint32_t middle = low + (high - low) / 2;
    if (compare_text(&names->items[middle], &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < end && compare_text(&names->items[low], &wanted) == 0;
  return found ? names->items[low].index : SN_NONE;
}

bool sn__names_repeated(const sn__names *names, uint32_t i) {
  return compare_text(&names->items[i - 1], &names->items[i]) == 0;
}
