/* Row; see the header. */
#include "sim/memory/row.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 64 };

struct sn__row_run {
  uint32_t n; /* not 0 where the run is in use */
  sn__row_item items[RUN];
};

void sn__row_clear(sn__row *row) {
  free(row->runs);
  free(row->sorted);
  *row = (sn__row){0};
}

static sn__row_run *run_of(const sn__row *row, uint32_t at) {
  return &row->runs[row->sorted[at]];
}

static bool is_before(const sn__row_item *item, uint64_t first, uint64_t second) {
  return item->first != first ? item->first < first : item->second < second;
}

/* The last run that begins before the pair, the first of all where none does, as an index into `sorted`. */
static uint32_t run_before(const sn__row *row, uint64_t first, uint64_t second) {
  uint32_t low = 0, high = row->n_runs;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(is_before(&run_of(row, middle)->items[0], first, second) ? &low : &high) = middle;
  }
  return low;
}

/* How many of a run's items are before the pair. */
static uint32_t items_before(const sn__row_run *run, uint64_t first, uint64_t second) {
  uint32_t low = 0;
  for (uint32_t n = run->n; n > 0;) {
    uint32_t half = n / 2;
    bool before = is_before(&run->items[low + half], first, second);
    low = before ? low + half + 1 : low;
    n = before ? n - half - 1 : half;
  }
  return low;
}

sn__row_place sn__row_find(const sn__row *row, uint64_t first, uint64_t second) {
  if (row->n_runs == 0) return (sn__row_place){0, 0};
  uint32_t at = run_before(row, first, second);
  uint32_t i = items_before(run_of(row, at), first, second);
  return i < run_of(row, at)->n ? (sn__row_place){at, i} : (sn__row_place){at + 1, 0};
}

const sn__row_item *sn__row_at(const sn__row *row, sn__row_place place) {
  return place.run < row->n_runs ? &run_of(row, place.run)->items[place.index] : NULL;
}

static bool grow(sn__row *row) {
  uint32_t room = row->room ? 2 * row->room : 4;
  sn__row_run *runs = realloc(row->runs, room * sizeof *runs);
  if (runs) row->runs = runs;
  uint32_t *sorted = runs ? realloc(row->sorted, room * sizeof *sorted) : NULL;
  if (!sorted) return false;
  row->sorted = sorted;
  for (uint32_t i = row->room; i < room; i++) sorted[i] = i;
  row->room = room;
  return true;
}

/* An empty run in front of the one at `at`. */
static bool add_run(sn__row *row, uint32_t at) {
  if (row->n_runs == row->room && !grow(row)) return false;
  uint32_t fresh = row->sorted[row->n_runs];
  memmove(&row->sorted[at + 1], &row->sorted[at], (row->n_runs++ - at) * sizeof *row->sorted);
  row->sorted[at] = fresh;
  row->runs[fresh].n = 0;
  return true;
}

/* Moves the upper half of a full run to a new one behind it. */
static bool divide(sn__row *row, uint32_t at) {
  if (!add_run(row, at + 1)) return false;
  sn__row_run *low = run_of(row, at), *high = run_of(row, at + 1);
  high->n = RUN / 2;
  low->n = RUN - RUN / 2;
  memcpy(high->items, low->items + low->n, high->n * sizeof *high->items);
  return true;
}

bool sn__row_put(sn__row *row, sn__row_item item) {
  if (row->n_runs == 0 && !add_run(row, 0)) return false;
  uint32_t at = run_before(row, item.first, item.second);
  if (run_of(row, at)->n == RUN) {
    if (!divide(row, at)) return false;
    at += is_before(&run_of(row, at + 1)->items[0], item.first, item.second);
  }
  sn__row_run *run = run_of(row, at);
  uint32_t i = items_before(run, item.first, item.second);
  memmove(&run->items[i + 1], &run->items[i], (run->n++ - i) * sizeof *run->items);
  run->items[i] = item;
  return true;
}

void sn__row_pull(sn__row *row, sn__row_place place) {
  sn__row_run *run = run_of(row, place.run);
  memmove(&run->items[place.index], &run->items[place.index + 1], (--run->n - place.index) * sizeof *run->items);
  if (run->n > 0) return;
  uint32_t emptied = row->sorted[place.run];
  memmove(&row->sorted[place.run], &row->sorted[place.run + 1], (--row->n_runs - place.run) * sizeof *row->sorted);
  row->sorted[row->n_runs] = emptied;
}

bool sn__row_copy(sn__row *copy, const sn__row *row) {
  *copy = (sn__row){0};
  if (row->n_runs == 0) return true;
  *copy = (sn__row){.runs = malloc(row->n_runs * sizeof *copy->runs),
                    .sorted = malloc(row->n_runs * sizeof *copy->sorted),
                    .n_runs = row->n_runs,
                    .room = row->n_runs};
  if (!copy->runs || !copy->sorted) {
    sn__row_clear(copy);
    return false;
  }
  for (uint32_t i = 0; i < row->n_runs; i++) {
    const sn__row_run *run = run_of(row, i);
    copy->sorted[i] = i;
    copy->runs[i].n = run->n;
    memcpy(copy->runs[i].items, run->items, run->n * sizeof *run->items);
  }
  return true;
}
