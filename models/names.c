/* Sorted list of names by (hash, text, index); see the header. The hash is 64-bit FNV-1a: names that collide only cost
 * string comparisons, and nothing of the order reaches a result. */
#include "models/names.h"

#include "models/net.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(const char *text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return h;
}

static int compare_text(const sn__name *a, const sn__name *b) {
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return strcmp(a->text, b->text);
}

static int compare(const void *left, const void *right) {
  const sn__name *a = left, *b = right;
  int order = compare_text(a, b);
  return order ? order : (a->index > b->index) - (a->index < b->index);
}

sn_status sn__names_init(sn__names *names, uint32_t room, sn_err *err) {
  *names = (sn__names){.items = calloc((size_t)room + 1, sizeof *names->items)};
  return names->items ? SN_OK : sn_fail_memory(err);
}

void sn__names_free(sn__names *names) {
  free(names->items);
  *names = (sn__names){0};
}

void sn__names_add(sn__names *names, const char *text, uint32_t index) {
  names->items[names->count++] = (sn__name){hash(text), text, index};
}

void sn__names_sort(sn__names *names) {
  qsort(names->items, names->count, sizeof *names->items, compare);
}

uint32_t sn__names_find(const sn__names *names, const char *text) {
  sn__name wanted = {hash(text), text, 0};
  uint32_t low = 0, high = names->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (compare_text(&names->items[middle], &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < names->count && compare_text(&names->items[low], &wanted) == 0;
  return found ? names->items[low].index : SN_NONE;
}

bool sn__names_repeated(const sn__names *names, uint32_t i) {
  return compare_text(&names->items[i - 1], &names->items[i]) == 0;
}
