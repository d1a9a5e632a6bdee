/* Alike; see the header. */
#include "cli/frame/row_groups.h"

#include "base/arena.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row, with its names without the number. */
typedef struct item {
  const char *tensor, *producer;
  const sn_peak_row *row;
} item;

/* The first part between two dots, or in front of one, that is a number; its length, 0: there is none. */
static size_t find_number(const char *name, size_t *at) {
  *at = 0;
  while (name[*at]) {
    size_t digits = strspn(name + *at, "0123456789"), length = strcspn(name + *at, ".");
    if (digits > 0 && digits == length && name[*at + length] == '.') return digits;
    *at += length + (name[*at + length] == '.');
  }
  return 0;
}

static const char *without_number(sn_arena *arena, const char *name) {
  size_t at, length = find_number(name, &at);
  return length ? sn_arena_print(arena, "%.*s*%s", (int)at, name, name + at + length) : name;
}

static int compare(const item *x, const item *y) {
  if (x->row->bytes != y->row->bytes) return x->row->bytes < y->row->bytes ? 1 : -1;
  int names = strcmp(x->tensor, y->tensor);
  if (names == 0) names = strcmp(x->producer, y->producer);
  return names ? names : strcmp(x->row->advice, y->row->advice);
}

static int by_kind(const void *a, const void *b) {
  const item *x = a, *y = b;
  int order = compare(x, y);
  return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int by_bytes(const void *a, const void *b) {
  const sn_row_groups_group *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->first > y->first) - (x->first < y->first);
}

static item *list_items(sn_arena *arena, const sn_peak_row *rows, uint32_t n) {
  item *items = sn_arena_alloc(arena, n, sizeof *items);
  for (uint32_t i = 0; items && i < n; i++) {
    items[i] = (item){without_number(arena, rows[i].tensor), without_number(arena, rows[i].producer), &rows[i]};
    if (!items[i].tensor || !items[i].producer) return NULL;
  }
  if (items) qsort(items, n, sizeof *items, by_kind);
  return items;
}

static bool add_group(sn_row_groups *alike, const item *items, uint32_t count) {
  sn_row_groups_group *g = &alike->groups[alike->n_groups++];
  const sn_peak_row *first = items->row;
  *g = (sn_row_groups_group){count, count * first->bytes, first->tensor, first->producer, first};
  if (count == 1) return true;
  g->tensor = sn_arena_print(alike->arena, "%" PRIu32 " x %s", count, items->tensor);
  g->producer = items->producer;
  return g->tensor != NULL;
}

static bool fill(sn_row_groups *alike, const sn_peak_row *rows, uint32_t n) {
  const item *items = list_items(alike->arena, rows, n);
  alike->groups = items ? sn_arena_alloc(alike->arena, n, sizeof *alike->groups) : NULL;
  if (!alike->groups) return false;
  for (uint32_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && compare(&items[from], &items[to]) == 0;) to++;
    if (!add_group(alike, &items[from], to - from)) return false;
  }
  qsort(alike->groups, alike->n_groups, sizeof *alike->groups, by_bytes);
  return true;
}

sn_row_groups *sn_row_groups_new(const sn_peak_row *rows, uint32_t n_rows, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_row_groups *alike = arena ? sn_arena_alloc(arena, 1, sizeof *alike) : NULL;
  if (alike) alike->arena = arena;
  if (alike && fill(alike, rows, n_rows)) return alike;
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn_row_groups_free(sn_row_groups *alike) {
  if (alike) sn_arena_free(alike->arena);
}

void sn_row_groups_print_rest(const sn_row_groups *alike, uint32_t shown, FILE *out) {
  char text[SN_UNIT_TEXT];
  uint64_t bytes = 0;
  uint32_t count = 0;
  for (uint32_t i = shown; i < alike->n_groups; i++) {
    bytes += alike->groups[i].bytes;
    count += alike->groups[i].count;
  }
  if (count > 0)
    fprintf(out, "and %" PRIu32 " smaller ones, %s in all; --json lists them\n", count, sn_print_bytes(bytes, text));
}
