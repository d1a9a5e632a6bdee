/* Rows and ways; see the header. */
#include "sim/schedule/memory_rows.h"

#include "base/checked.h"

#include <assert.h>

enum { BLOCK = 16 }; /* units of memory; in so many neither row nor way change by much */

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

uint32_t sn__choice_left(const sn_rows *rows, const sn_row_choice *w, uint32_t m) {
  return (uint32_t)sn_min((uint64_t)m + w->freed - w->bytes, rows->columns - 1);
}

/* The least memory with which a way is possible, as far as the rows tell; the columns: with none that there is. */
static uint32_t way_least(const sn_rows *rows, const sn_row_choice *w) {
  uint32_t then = w->bytes + sn__row_least(rows, w->then), again = w->queue + sn__row_least(rows, w->again);
  uint64_t least = sn_max(w->queue + w->least, again);
  if (sn__row_is_empty(rows, w->then) || sn__row_is_empty(rows, w->again)) return rows->columns;
  return (uint32_t)sn_min(sn_max(least, then > w->freed ? then - w->freed : 0), rows->columns);
}

/* The time it takes with at least that. */
static int64_t way_ns(const sn_rows *rows, const sn_row_choice *w, uint32_t m) {
  return w->ns + w->then->ns[sn__choice_left(rows, w, m)] + w->again->ns[m - w->queue];
}

static void note_best(const sn_rows *rows, sn_row *row) {
  if (row->from < rows->columns) row->best_ns = row->ns[rows->columns - 1];
}

/* What is still to be filled in of a row: from `low` up to `high` something is there. */
typedef struct gap {
  int64_t *ns;
  uint32_t low, high;
} gap;

/* ns[m] = min(ns[m], what the way takes with m). */
static void improve_block(const sn_rows *rows, int64_t *ns, const sn_row_choice *w, uint32_t from, uint32_t end) {
  uint32_t gain = w->freed > w->bytes ? w->freed - w->bytes : 0, m = from;
  const int64_t *then = w->then->ns, *again = w->again->ns;
  for (; m < end && m + gain < rows->columns; m++)
    ns[m] = lesser(ns[m], w->ns + then[m + w->freed - w->bytes] + again[m - w->queue]);
  for (; m < end; m++) ns[m] = lesser(ns[m], way_ns(rows, w, m)); /* what is behind has all there is */
}

/* ns[m] = min(ns[m], what the way takes with m), block by block, where that is within the bound and anything is to be
 * gained: nothing where there is already what the way takes at the end of the block, or at best. */
static void improve(const sn_rows *rows, gap *g, const sn_row_choice *w, int64_t bound) {
  uint32_t from = way_least(rows, w), end;
  if (from >= g->high) return;
  int64_t best = w->ns + w->then->best_ns + w->again->best_ns;
  if (best > bound) return;
  for (; from < g->high; from = end) {
    end = (uint32_t)sn_min(from + BLOCK, g->high);
    if (from >= g->low && g->ns[from] <= best) return;
    int64_t ns = way_ns(rows, w, end - 1);
    if (ns > bound || (from >= g->low && g->ns[from] <= ns)) continue;
    while (g->low > from) g->ns[--g->low] = SN_ROW_NEVER;
    improve_block(rows, g->ns, w, from, end);
  }
}

void sn__row_fill(const sn_rows *rows, sn_row *row, const sn_row_choice *ways, uint32_t n_ways, int64_t bound) {
  gap g = {row->ns, row->from, row->from};
  for (uint32_t i = 0; i < n_ways; i++)
    if (rows->only_least)
      row->least = (uint32_t)sn_min(row->least, way_least(rows, &ways[i]));
    else
      improve(rows, &g, &ways[i], bound);
  while (g.low < g.high && g.ns[g.low] > bound) g.low++;
  row->from = g.low;
  note_best(rows, row);
}

void sn__row_fill_lesser(const sn_rows *rows, sn_row *row, const sn_row *a, const sn_row *b) {
  row->least = (uint32_t)sn_min(a->least, b->least);
  for (uint32_t from = (uint32_t)sn_min(a->from, b->from); row->from > from; row->from--)
    row->ns[row->from - 1] = lesser(sn__row_ns(a, row->from - 1), sn__row_ns(b, row->from - 1));
  note_best(rows, row);
}

const sn_row_choice *sn__row_way(const sn_rows *rows, const sn_row *row, const sn_row_choice *ways, uint32_t n_ways,
                                 uint32_t m) {
  uint32_t i = 0;
  while (i < n_ways && (m < way_least(rows, &ways[i]) || way_ns(rows, &ways[i], m) != row->ns[m])) i++;
  assert(m >= row->from && i < n_ways);
  return &ways[i];
}
