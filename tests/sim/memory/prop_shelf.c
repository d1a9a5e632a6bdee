/* The shelf's search against a plain one: run by run and spot by spot, as its headers say, without any sight. Every
 * place must be the same, and so must the looks that are counted, for they decide when a search for a packing ends.
 *
 *   SN_SEED        the first seed
 *   SN_PROP_NETS   how many shelves (default: 100)
 */
#include "sim/memory/shelf_internal.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST = 8000, TIMES = 2000, AHEAD = 40 };

typedef struct found {
  uint64_t offset, looks;
  uint32_t run;
} found;

static bool overlap(const sn__spot *s, uint32_t lower, uint32_t upper) {
  return s->lower < upper && lower < s->upper;
}

/* True where the place is in front of one of the spots. */
static bool scan(const sn__spot *spots, uint32_t n, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t *offset) {
  for (uint32_t i = 0; i < n; i++) {
    if (!overlap(&spots[i], lower, upper)) continue;
    if (spots[i].offset >= *offset + bytes) return true;
    if (spots[i].end > *offset) *offset = spots[i].end;
  }
  return false;
}

static found find_plainly(const sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from) {
  found f = {.offset = from};
  for (; f.run < shelf->n_runs; f.run++) {
    const sn__run *r = &shelf->runs[f.run];
    f.looks++;
    if (r->reach <= f.offset) continue;
    if (r->bottom >= f.offset + bytes) break;
    if (r->first_lower >= upper || lower >= r->last_upper) continue;
    if (r->last_lower < upper && lower < r->first_upper && r->gap < bytes) {
      f.offset = r->reach;
      continue;
    }
    f.looks += r->n;
    if (scan(shelf->pages[r->page].spots, r->n, lower, upper, bytes, &f.offset)) break;
  }
  return f;
}

/* As if there were no runs. */
static uint64_t find_among_all(const sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from) {
  uint64_t offset = from, reach;
  uint32_t n;
  for (uint32_t r = 0; r < shelf->n_runs; r++) {
    const sn__spot *spots = sn__shelf_run(shelf, r, &n, &reach);
    if (scan(spots, n, lower, upper, bytes, &offset)) break;
  }
  return offset;
}

static uint64_t find_both(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from,
                          uint64_t seed) {
  found plain = find_plainly(shelf, lower, upper, bytes, from);
  uint64_t looks = shelf->looks, offset = sn__shelf_find(shelf, lower, upper, bytes, from);
  if (offset != plain.offset || shelf->looks - looks != plain.looks || shelf->near != plain.run ||
      offset != find_among_all(shelf, lower, upper, bytes, from))
    fail_msg("seed %" PRIu64 ", %u runs: [%u, %u) of %" PRIu64 " bytes from %" PRIu64 ": %" PRIu64 " after %" PRIu64
             " looks, plainly %" PRIu64 " after %" PRIu64,
             seed, shelf->n_runs, lower, upper, bytes, from, offset, shelf->looks - looks, plain.offset, plain.looks);
  return offset;
}

/* ---- blocks ---- */

/* How the blocks of one shelf are thrown. */
typedef struct world {
  uint32_t life, bytes, nested, queries; /* longest life; largest; percent that wait around the middle; finds a put */
  bool apart;                            /* none shares an address, so that spots may be taken away */
} world;

static world throw_world(uint64_t *dice) {
  world w = {.life = prng_from(dice, 1, prng_chance(dice, 50) ? 5 : TIMES),
             .nested = prng_below(dice, 101),
             .queries = prng_below(dice, 4),
             .apart = prng_chance(dice, 25)};
  w.bytes = prng_from(dice, 1, prng_chance(dice, 50) ? 4 : 1000);
  return w;
}

/* Those that come one after the other mostly live side by side, as in the orders of a packing. */
static sn__spot throw_spot(const world *w, uint32_t k, uint64_t *dice) {
  sn__spot s = {.block = k};
  if (prng_chance(dice, w->nested)) {
    uint32_t away = prng_below(dice, TIMES / 2);
    s.lower = TIMES / 2 - away;
    s.upper = TIMES / 2 + 1 + away - prng_below(dice, away / 8 + 1);
  } else {
    uint32_t step = k / AHEAD % (TIMES / 2), at = step + prng_below(dice, 4);
    s.lower = prng_chance(dice, 50) ? TIMES / 2 - at % (TIMES / 2) : TIMES / 2 + at;
    s.upper = s.lower + prng_from(dice, 1, w->life);
  }
  s.end = prng_from(dice, 1, w->bytes);
  return s;
}

/* Few from anywhere, or so many from above that hardly a group is left, as it was. */
static void take_some(sn__shelf *shelf, uint64_t *dice) {
  bool many = prng_below(dice, 600) == 0;
  uint32_t times = many ? MOST : prng_below(dice, 3), least = many ? prng_from(dice, 1, SN__GROUP) : 1, n;
  uint64_t reach;
  for (; times > 0 && shelf->n_runs > least; times--) {
    uint32_t run = many ? shelf->n_runs - 1 : prng_below(dice, shelf->n_runs);
    const sn__spot *spots = sn__shelf_run(shelf, run, &n, &reach);
    sn__shelf_take(shelf, spots[prng_below(dice, n)].offset);
  }
}

static void fill(sn__shelf *shelf, const world *w, uint32_t count, uint64_t seed, uint64_t *dice) {
  for (uint32_t k = 0; k < count; k++) {
    sn__spot s = throw_spot(w, k, dice);
    uint64_t bytes = s.end;
    for (uint32_t q = 0; q < w->queries; q++) {
      sn__spot other = throw_spot(w, k, dice);
      uint64_t from = prng_chance(dice, 20) ? prng_below(dice, count * w->bytes) : 0;
      find_both(shelf, other.lower, other.upper, other.end, from, seed);
    }
    s.offset =
        w->apart ? find_both(shelf, 0, 2 * TIMES, bytes, 0, seed) : find_both(shelf, s.lower, s.upper, bytes, 0, seed);
    s.end = s.offset + bytes;
    sn__shelf_put(shelf, s);
    if (w->apart && prng_chance(dice, 20)) take_some(shelf, dice);
  }
}

static void finds_what_a_plain_search_finds(void **state) {
  (void)state;
  uint64_t seed = first_seed(1);
  for (uint32_t cases = case_count(100); cases > 0; cases--, seed++) {
    uint64_t dice = seed;
    sn__shelf shelf;
    assert_true(sn__shelf_init(&shelf, MOST));
    for (int times = 0; times < 2; times++) {
      world w = throw_world(&dice);
      sn__shelf_empty(&shelf);
      fill(&shelf, &w, prng_from(&dice, MOST / 4, MOST), seed, &dice);
    }
    sn__shelf_clear(&shelf);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_a_plain_search_finds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
