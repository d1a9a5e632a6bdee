/* Property: regions (sim/plan/regions.h) against a pool of a few thousand bytes of which each is kept by itself. */
#include "sim/plan/regions.h"

#include "tests/unit/seed.h"

#include <string.h>

enum { BYTES = 4096, ROUNDS = 20, CLAIMS = 20000 };

/* Per byte: who has it, where that region began, and when it was last touched. */
typedef struct cell {
  uint32_t owner, begin;
  uint32_t touched[SN_LANES];
  bool taken; /* ever */
} cell;

static sn__claim expect(const cell *cells, uint32_t begin, uint32_t end, const uint32_t known[SN_LANES]) {
  for (uint32_t b = begin; b < end; b++) {
    if (!cells[b].taken) continue;
    if (cells[b].owner != SN_NONE) return SN__CLAIM_LIVE;
    for (int l = 0; l < SN_LANES; l++)
      if (cells[b].touched[l] > known[l]) return SN__CLAIM_UNORDERED;
  }
  return SN__CLAIM_GOOD;
}

static void claim(sn__regions *r, cell *cells, uint32_t number, uint64_t *seed) {
  uint32_t begin = (uint32_t)prng_below(seed, BYTES), most = prng_below(seed, 4) ? 12 : 400;
  uint32_t end = begin + 1 + (uint32_t)prng_below(seed, most), known[SN_LANES], touched[SN_LANES], other = 0;
  if (end > BYTES) end = BYTES;
  for (int l = 0; l < SN_LANES; l++) {
    touched[l] = number;
    known[l] = prng_below(seed, 40) ? number : number - number / 8;
  }
  uint32_t owner = prng_below(seed, 4) ? number : SN_NONE;
  sn__claim expected = expect(cells, begin, end, known);
  assert_int_equal(sn__regions_claim(r, begin, end, owner, known, touched, &other), expected);
  if (expected != SN__CLAIM_GOOD) return;
  for (uint32_t b = begin; b < end; b++) {
    cells[b] = (cell){.owner = owner, .begin = begin, .taken = true};
    memcpy(cells[b].touched, touched, sizeof touched);
  }
}

static void release(sn__regions *r, cell *cells, uint32_t number, uint64_t *seed) {
  uint32_t at = (uint32_t)prng_below(seed, BYTES), owner = cells[at].owner, begin = cells[at].begin;
  if (!cells[at].taken || owner == SN_NONE) return;
  uint32_t touched[SN_LANES] = {number, number, number};
  sn__regions_release(r, begin, touched);
  for (uint32_t b = begin; b < BYTES && cells[b].taken && cells[b].owner == owner; b++) {
    cells[b].owner = SN_NONE;
    memcpy(cells[b].touched, touched, sizeof touched);
  }
}

static void claims_and_releases(void **state) {
  (void)state;
  static cell cells[BYTES];
  uint64_t seed = first_seed(31);
  for (int round = 0; round < ROUNDS; round++) {
    sn__regions r = {0};
    memset(cells, 0, sizeof cells);
    for (uint32_t n = 1; n < CLAIMS; n++) {
      claim(&r, cells, n, &seed);
      for (int i = 0; i < round % 4; i++) release(&r, cells, n, &seed);
    }
    sn__regions_clear(&r);
    assert_null(r.runs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(claims_and_releases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
