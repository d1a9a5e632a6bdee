/* Shelf; see the header. */
#include "base/checked.h"
#include "sim/memory/shelf_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = 16 }; /* spots looked at together */

/* A full run becomes two half full ones, so every run but the first has cost SN__RUN / 2 blocks. */
bool sn__shelf_init(sn__shelf *shelf, uint32_t blocks) {
  uint32_t room = blocks / (SN__RUN / 2) + 2;
  *shelf = (sn__shelf){
      .room = room, .runs = malloc(room * sizeof *shelf->runs), .pages = malloc(room * sizeof *shelf->pages)};
  for (uint32_t i = 0; shelf->runs && i < room; i++) shelf->runs[i].page = i;
  return shelf->runs && shelf->pages;
}

void sn__shelf_clear(sn__shelf *shelf) {
  free(shelf->runs);
  free(shelf->pages);
  *shelf = (sn__shelf){0};
}

void sn__shelf_empty(sn__shelf *shelf) {
  shelf->n_runs = 0;
}

const sn__spot *sn__shelf_run(const sn__shelf *shelf, uint32_t index, uint32_t *count, uint64_t *reach) {
  const sn__run *run = &shelf->runs[index];
  *count = run->n;
  *reach = run->reach;
  return sn__page_of(shelf, run)->spots;
}

/* But for the gap. */
static void note_extent(sn__run *run, const sn__spot *spot) {
  run->reach = sn_max(run->reach, spot->end);
  if (spot->lower < run->first_lower) run->first_lower = spot->lower;
  if (spot->lower > run->last_lower) run->last_lower = spot->lower;
  if (spot->upper < run->first_upper) run->first_upper = spot->upper;
  if (spot->upper > run->last_upper) run->last_upper = spot->upper;
}

static void note_run(sn__run *run, const sn__spot *spots) {
  run->gap = 0;
  run->bottom = run->reach = spots[0].offset;
  run->first_lower = run->first_upper = UINT32_MAX;
  run->last_lower = run->last_upper = 0;
  for (uint32_t i = 0; i < run->n; i++) {
    if (spots[i].offset > run->reach) run->gap = sn_max(run->gap, spots[i].offset - run->reach);
    note_extent(run, &spots[i]);
  }
}

/* Eight flags of a byte each as bits. */
static uint64_t bits_of(const uint8_t *flags) {
  uint64_t word;
  memcpy(&word, flags, sizeof word);
  if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) word = __builtin_bswap64(word);
  return word * UINT64_C(0x0102040810204080) >> 56;
}

/* Which of LOOK lives meet [lower, upper): written so that compilers take several at a time. */
static void look(const int32_t *restrict lowers, const int32_t *restrict uppers, int32_t lower, int32_t upper,
                 uint8_t *restrict lives) {
  for (int i = 0; i < LOOK; i++) lives[i] = (lowers[i] < upper) & (lower < uppers[i]);
}

/* A bit for each of LOOK of a run's spots, from `first` on, that lives in [lower, upper). */
static uint64_t find_living(const sn__page *page, uint32_t n, uint32_t first, int32_t lower, int32_t upper) {
  uint8_t lives[LOOK];
  look(&page->lower[first], &page->upper[first], lower, upper, lives);
  uint64_t living = bits_of(lives) | bits_of(lives + LOOK / 2) << LOOK / 2;
  return n - first < LOOK ? living & ((UINT64_C(1) << (n - first)) - 1) : living;
}

/* Goes on over one run from the lowest offset that is free so far; true where that is the answer. */
static bool find_in_page(const sn__page *page, uint32_t n, uint32_t lower, uint32_t upper, uint64_t bytes,
                         uint64_t *offset) {
  for (uint32_t first = 0; first < n; first += LOOK) {
    uint64_t living = find_living(page, n, first, (int32_t)lower, (int32_t)upper);
    for (; living > 0; living &= living - 1) {
      const sn__spot *spot = &page->spots[first + (uint32_t)__builtin_ctzll(living)];
      if (spot->offset > *offset && spot->offset - *offset >= bytes) return true;
      *offset = sn_max(*offset, spot->end);
    }
  }
  return false;
}

uint64_t sn__shelf_find(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from) {
  if (shelf->n_runs >= SN__MANY) return sn__shelf_find_by_sight(shelf, lower, upper, bytes, from);
  uint64_t offset = from;
  uint32_t r = 0;
  for (; r < shelf->n_runs; r++) {
    const sn__run *run = &shelf->runs[r];
    shelf->looks++;
    if (run->reach <= offset) continue;
    if (run->bottom > offset && run->bottom - offset >= bytes) break;
    if (run->first_lower >= upper || lower >= run->last_upper) continue;
    if (run->last_lower < upper && lower < run->first_upper && run->gap < bytes) {
      offset = run->reach;
      continue;
    }
    shelf->looks += run->n;
    if (find_in_page(sn__page_of(shelf, run), run->n, lower, upper, bytes, &offset)) break;
  }
  shelf->near = r;
  return offset;
}

uint64_t sn__shelf_fit(sn__shelf *shelf, uint64_t bytes) {
  uint64_t offset = 0;
  for (uint32_t r = 0; r < shelf->n_runs; r++) {
    const sn__run *run = &shelf->runs[r];
    shelf->looks++;
    if (run->bottom > offset && run->bottom - offset >= bytes) break;
    offset = run->reach;
    if (run->gap < bytes) continue;
    const sn__spot *spots = sn__page_of(shelf, run)->spots;
    shelf->looks += run->n;
    for (uint32_t i = 1; i < run->n; i++)
      if (spots[i].offset - spots[i - 1].end >= bytes) return spots[i - 1].end;
  }
  return offset;
}

/* The last run that begins at or below `offset`; 0 where none does. */
static uint32_t run_at(const sn__shelf *shelf, uint64_t offset) {
  uint32_t first = 0;
  for (uint32_t n = shelf->n_runs, half = n / 2; half > 0; n -= half, half = n / 2)
    first += shelf->runs[first + half].bottom <= offset ? half : 0;
  return first;
}

/* Runs behind those in use name the pages that are free. */
static void add_run(sn__shelf *shelf, uint32_t at) {
  uint32_t fresh = shelf->runs[shelf->n_runs].page;
  memmove(&shelf->runs[at + 1], &shelf->runs[at], (shelf->n_runs++ - at) * sizeof *shelf->runs);
  shelf->runs[at] = (sn__run){.page = fresh};
  sn__page *page = &shelf->pages[fresh];
  memset(page->lower, 0, sizeof page->lower); /* of spots behind the last too, which are looked at with it */
  memset(page->upper, 0, sizeof page->upper);
  sn__forget(&page->seen);
  sn__forget_groups(shelf, at);
}

static void split_run(sn__shelf *shelf, uint32_t at) {
  add_run(shelf, at + 1);
  sn__forget_run(shelf, at);
  sn__run *low = &shelf->runs[at], *high = &shelf->runs[at + 1];
  const sn__page *from = sn__page_of(shelf, low);
  sn__page *to = sn__page_of(shelf, high);
  high->n = SN__RUN / 2;
  low->n = SN__RUN - SN__RUN / 2;
  memcpy(to->spots, from->spots + low->n, high->n * sizeof *to->spots);
  memcpy(to->lower, from->lower + low->n, high->n * sizeof *to->lower);
  memcpy(to->upper, from->upper + low->n, high->n * sizeof *to->upper);
  note_run(low, from->spots);
  note_run(high, to->spots);
}

/* How many of a run's spots begin at or below `offset`. Without a branch, which would go either way. */
static uint32_t spots_to(const sn__spot *spots, uint32_t count, uint64_t offset) {
  uint32_t first = 0;
  for (uint32_t n = count, half = n / 2; half > 0; n -= half, half = n / 2)
    first += spots[first + half].offset <= offset ? half : 0;
  return first + (count > 0 && spots[first].offset <= offset);
}

/* What run_at() says, looked for from where the last search ended: what was found goes there mostly. */
static uint32_t run_near(const sn__shelf *shelf, uint64_t offset) {
  uint32_t last = shelf->n_runs - 1, at = shelf->near < last ? shelf->near : last;
  while (at > 0 && shelf->runs[at].bottom > offset) at--;
  while (at < last && shelf->runs[at + 1].bottom <= offset) at++;
  return at;
}

/* `count` spots from `from` on to where those from `to` on were. */
static void shift(sn__page *page, uint32_t count, uint32_t from, uint32_t to) {
  memmove(&page->spots[to], &page->spots[from], count * sizeof *page->spots);
  memmove(&page->lower[to], &page->lower[from], count * sizeof *page->lower);
  memmove(&page->upper[to], &page->upper[from], count * sizeof *page->upper);
}

void sn__shelf_put(sn__shelf *shelf, sn__spot spot) {
  uint32_t at = 0;
  if (shelf->n_runs == 0)
    add_run(shelf, 0);
  else
    at = run_near(shelf, spot.offset);
  if (shelf->runs[at].n == SN__RUN) {
    split_run(shelf, at);
    if (shelf->runs[at + 1].bottom <= spot.offset) at++;
  }
  shelf->near = at;
  sn__run *run = &shelf->runs[at];
  sn__page *page = sn__page_of(shelf, run);
  bool last = run->n == 0 || page->spots[run->n - 1].offset <= spot.offset;
  uint32_t i = last ? run->n : spots_to(page->spots, run->n, spot.offset);
  if (!last) shift(page, run->n - i, i, i + 1);
  run->n++;
  if (shelf->n_runs >= SN__GROUP) sn__forget_run(shelf, at);
  page->spots[i] = spot;
  page->lower[i] = (int32_t)spot.lower;
  page->upper[i] = (int32_t)spot.upper;
  if (run->n == 1) {
    note_run(run, page->spots);
    return;
  }
  /* A gap is new in front of the last and behind the first; between others they only become smaller. */
  if (i + 1 == run->n && spot.offset > run->reach) run->gap = sn_max(run->gap, spot.offset - run->reach);
  if (i == 0 && run->bottom > spot.end) run->gap = sn_max(run->gap, run->bottom - spot.end);
  if (i == 0) run->bottom = spot.offset;
  note_extent(run, &spot);
}

/* Extents of what is left may stay as wide as they were. */
void sn__shelf_take(sn__shelf *shelf, uint64_t offset) {
  uint32_t at = run_at(shelf, offset);
  sn__run *run = &shelf->runs[at];
  sn__page *page = sn__page_of(shelf, run);
  sn__spot *spots = page->spots;
  uint32_t i = spots_to(spots, run->n, offset) - 1, index = run->page;
  uint64_t end = spots[i].end;
  shift(page, run->n - i - 1, i + 1, i);
  run->n--;
  sn__forget_run(shelf, at);
  if (run->n > 0 && end == run->reach) run->reach = spots[run->n - 1].end;
  if (i > 0 && i < run->n) run->gap = sn_max(run->gap, spots[i].offset - spots[i - 1].end);
  if (i == 0 && run->n > 0) run->bottom = spots[0].offset;
  if (run->n > 0) return;
  memmove(run, run + 1, (--shelf->n_runs - at) * sizeof *run);
  shelf->runs[shelf->n_runs].page = index;
  sn__forget_groups(shelf, at);
}
