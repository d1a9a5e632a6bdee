/* Shelf; see the header. */
#include "sim/memory/shelf.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 64, LOOK = 16 }; /* spots in a run; looked at together */

struct sn__run {
  uint32_t n;
  uint32_t first_lower, last_lower, first_upper, last_upper; /* of its spots */
  uint64_t reach;                                            /* highest end */
  uint64_t gap; /* none between them is larger, for who conflicts with all of them */
  sn__spot spots[RUN];
  int32_t lower[RUN], upper[RUN]; /* of the spots, side by side */
};

/* A full run becomes two half full ones, so every run but the first has cost RUN / 2 blocks. */
bool sn__shelf_init(sn__shelf *shelf, uint32_t blocks) {
  uint32_t room = blocks / (RUN / 2) + 2;
  *shelf =
      (sn__shelf){.room = room, .runs = malloc(room * sizeof *shelf->runs), .sorted = calloc(room, sizeof(uint32_t))};
  for (uint32_t i = 0; shelf->sorted && i < room; i++) shelf->sorted[i] = i;
  return shelf->runs && shelf->sorted;
}

void sn__shelf_clear(sn__shelf *shelf) {
  free(shelf->runs);
  free(shelf->sorted);
  *shelf = (sn__shelf){0};
}

void sn__shelf_empty(sn__shelf *shelf) {
  shelf->n_runs = 0;
}

const sn__spot *sn__shelf_run(const sn__shelf *shelf, uint32_t index, uint32_t *count, uint64_t *reach) {
  const sn__run *run = &shelf->runs[shelf->sorted[index]];
  *count = run->n;
  *reach = run->reach;
  return run->spots;
}

/* But for the gap. */
static void note_extent(sn__run *run, const sn__spot *spot) {
  run->reach = sn_max(run->reach, spot->end);
  if (spot->lower < run->first_lower) run->first_lower = spot->lower;
  if (spot->lower > run->last_lower) run->last_lower = spot->lower;
  if (spot->upper < run->first_upper) run->first_upper = spot->upper;
  if (spot->upper > run->last_upper) run->last_upper = spot->upper;
}

static void note_run(sn__run *run) {
  run->gap = 0;
  run->reach = run->spots[0].offset;
  run->first_lower = run->first_upper = UINT32_MAX;
  run->last_lower = run->last_upper = 0;
  for (uint32_t i = 0; i < run->n; i++) {
    if (run->spots[i].offset > run->reach) run->gap = sn_max(run->gap, run->spots[i].offset - run->reach);
    note_extent(run, &run->spots[i]);
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
static uint64_t find_living(const sn__run *run, uint32_t first, int32_t lower, int32_t upper) {
  uint8_t lives[LOOK];
  look(&run->lower[first], &run->upper[first], lower, upper, lives);
  uint64_t living = bits_of(lives) | bits_of(lives + LOOK / 2) << LOOK / 2;
  return run->n - first < LOOK ? living & ((UINT64_C(1) << (run->n - first)) - 1) : living;
}

/* Goes on over one run from the lowest offset that is free so far; true where that is the answer. */
static bool find_in_run(const sn__run *run, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t *offset) {
  for (uint32_t first = 0; first < run->n; first += LOOK) {
    uint64_t living = find_living(run, first, (int32_t)lower, (int32_t)upper);
    for (; living > 0; living &= living - 1) {
      const sn__spot *spot = &run->spots[first + (uint32_t)__builtin_ctzll(living)];
      if (spot->offset > *offset && spot->offset - *offset >= bytes) return true;
      *offset = sn_max(*offset, spot->end);
    }
  }
  return false;
}

uint64_t sn__shelf_find(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from) {
  uint64_t offset = from;
  uint32_t r = 0;
  for (; r < shelf->n_runs; r++) {
    const sn__run *run = &shelf->runs[shelf->sorted[r]];
    uint64_t bottom = run->spots[0].offset;
    shelf->looks++;
    if (run->reach <= offset) continue;
    if (bottom > offset && bottom - offset >= bytes) break;
    if (run->first_lower >= upper || lower >= run->last_upper) continue;
    if (run->last_lower < upper && lower < run->first_upper && run->gap < bytes) {
      offset = run->reach;
      continue;
    }
    shelf->looks += run->n;
    if (find_in_run(run, lower, upper, bytes, &offset)) break;
  }
  shelf->near = r;
  return offset;
}

uint64_t sn__shelf_fit(sn__shelf *shelf, uint64_t bytes) {
  uint64_t offset = 0;
  for (uint32_t r = 0; r < shelf->n_runs; r++) {
    const sn__run *run = &shelf->runs[shelf->sorted[r]];
    uint64_t bottom = run->spots[0].offset;
    shelf->looks++;
    if (bottom > offset && bottom - offset >= bytes) break;
    offset = run->reach;
    if (run->gap < bytes) continue;
    shelf->looks += run->n;
    for (uint32_t i = 1; i < run->n; i++)
      if (run->spots[i].offset - run->spots[i - 1].end >= bytes) return run->spots[i - 1].end;
  }
  return offset;
}

/* The last run that begins at or below `offset`, as an index into `sorted`; 0 where none does. */
static uint32_t run_at(const sn__shelf *shelf, uint64_t offset) {
  uint32_t first = 0;
  for (uint32_t n = shelf->n_runs, half = n / 2; half > 0; n -= half, half = n / 2)
    first += shelf->runs[shelf->sorted[first + half]].spots[0].offset <= offset ? half : 0;
  return first;
}

/* What stands in `sorted` behind the runs in use are those that are free. */
static void add_run(sn__shelf *shelf, uint32_t at) {
  uint32_t fresh = shelf->sorted[shelf->n_runs];
  memmove(&shelf->sorted[at + 1], &shelf->sorted[at], (shelf->n_runs++ - at) * sizeof *shelf->sorted);
  sn__run *run = &shelf->runs[fresh];
  shelf->sorted[at] = fresh;
  run->n = 0;
  memset(run->lower, 0, sizeof run->lower); /* of spots behind the last too, which are looked at with it */
  memset(run->upper, 0, sizeof run->upper);
}

static void split_run(sn__shelf *shelf, uint32_t at) {
  add_run(shelf, at + 1);
  sn__run *low = &shelf->runs[shelf->sorted[at]], *high = &shelf->runs[shelf->sorted[at + 1]];
  high->n = RUN / 2;
  low->n = RUN - RUN / 2;
  memcpy(high->spots, low->spots + low->n, high->n * sizeof *high->spots);
  memcpy(high->lower, low->lower + low->n, high->n * sizeof *high->lower);
  memcpy(high->upper, low->upper + low->n, high->n * sizeof *high->upper);
  note_run(low);
  note_run(high);
}

/* How many of a run's spots begin at or below `offset`. Without a branch, which would go either way. */
static uint32_t spots_to(const sn__run *run, uint64_t offset) {
  uint32_t first = 0;
  for (uint32_t n = run->n, half = n / 2; half > 0; n -= half, half = n / 2)
    first += run->spots[first + half].offset <= offset ? half : 0;
  return first + (run->n > 0 && run->spots[first].offset <= offset);
}

static uint64_t bottom_of(const sn__shelf *shelf, uint32_t at) {
  return shelf->runs[shelf->sorted[at]].spots[0].offset;
}

/* What run_at() says, looked for from where the last search ended: what was found goes there mostly. */
static uint32_t run_near(const sn__shelf *shelf, uint64_t offset) {
  uint32_t last = shelf->n_runs - 1, at = shelf->near < last ? shelf->near : last;
  while (at > 0 && bottom_of(shelf, at) > offset) at--;
  while (at < last && bottom_of(shelf, at + 1) <= offset) at++;
  return at;
}

/* Spots from `from` on to where those from `to` on were. */
static void shift(sn__run *run, uint32_t from, uint32_t to) {
  uint32_t count = run->n - from;
  memmove(&run->spots[to], &run->spots[from], count * sizeof *run->spots);
  memmove(&run->lower[to], &run->lower[from], count * sizeof *run->lower);
  memmove(&run->upper[to], &run->upper[from], count * sizeof *run->upper);
}

void sn__shelf_put(sn__shelf *shelf, sn__spot spot) {
  uint32_t at = 0;
  if (shelf->n_runs == 0)
    add_run(shelf, 0);
  else
    at = run_near(shelf, spot.offset);
  if (shelf->runs[shelf->sorted[at]].n == RUN) {
    split_run(shelf, at);
    if (shelf->runs[shelf->sorted[at + 1]].spots[0].offset <= spot.offset) at++;
  }
  shelf->near = at;
  sn__run *run = &shelf->runs[shelf->sorted[at]];
  bool last = run->n == 0 || run->spots[run->n - 1].offset <= spot.offset;
  uint32_t i = last ? run->n : spots_to(run, spot.offset);
  if (!last) shift(run, i, i + 1);
  run->n++;
  run->spots[i] = spot;
  run->lower[i] = (int32_t)spot.lower;
  run->upper[i] = (int32_t)spot.upper;
  if (run->n == 1) {
    note_run(run);
    return;
  }
  /* A gap is new in front of the last and behind the first; between others they only become smaller. */
  if (i + 1 == run->n && spot.offset > run->reach) run->gap = sn_max(run->gap, spot.offset - run->reach);
  if (i == 0 && run->spots[1].offset > spot.end) run->gap = sn_max(run->gap, run->spots[1].offset - spot.end);
  note_extent(run, &spot);
}

/* Extents of what is left may stay as wide as they were. */
void sn__shelf_take(sn__shelf *shelf, uint64_t offset) {
  uint32_t at = run_at(shelf, offset), index = shelf->sorted[at];
  sn__run *run = &shelf->runs[index];
  uint32_t i = spots_to(run, offset) - 1;
  uint64_t end = run->spots[i].end;
  shift(run, i + 1, i);
  run->n--;
  if (run->n > 0 && end == run->reach) run->reach = run->spots[run->n - 1].end;
  if (i > 0 && i < run->n) run->gap = sn_max(run->gap, run->spots[i].offset - run->spots[i - 1].end);
  if (run->n > 0) return;
  memmove(&shelf->sorted[at], &shelf->sorted[at + 1], (--shelf->n_runs - at) * sizeof *shelf->sorted);
  shelf->sorted[shelf->n_runs] = index;
}
