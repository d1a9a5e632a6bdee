/* Property: regions (sim/plan/regions.h) against a pool of a few thousand bytes of which each is kept by itself. */
#include "sim/plan/regions.h"

#include "tests/support/seed.h"

#include <string.h>

enum { BYTES = 4096, ROUNDS = 20, CLAIMS = 20000 };

/* Per byte: who has it, by which claim, and when it was last touched. */
typedef struct cell {
  uint32_t owner, claim;
  sn__moment touched;
  bool taken; /* ever */
} cell;

static sn__claim expect(const cell *cells, uint32_t begin, uint32_t end, const uint32_t known[SN_LANES]) {
  for (uint32_t b = begin; b < end; b++) {
    if (!cells[b].taken) continue;
    if (cells[b].owner != SN_NONE) return SN__CLAIM_LIVE;
    if (cells[b].touched.clock > known[cells[b].touched.lane]) return SN__CLAIM_UNORDERED;
  }
  return SN__CLAIM_GOOD;
}

/* The lowest live region of the range is the one that is named. */
static bool is_owner(const cell *cells, uint32_t begin, uint32_t end, uint32_t owner) {
  for (uint32_t b = begin; b < end; b++)
    if (cells[b].taken && cells[b].owner != SN_NONE) return cells[b].owner == owner;
  return false;
}

static void claim(sn__regions *r, cell *cells, uint32_t number, uint64_t *seed) {
  uint32_t begin = (uint32_t)prng_below(seed, BYTES), most = prng_below(seed, 4) ? 12 : 400;
  uint32_t end = begin + 1 + (uint32_t)prng_below(seed, most), known[SN_LANES], which = 0;
  const sn__moment touched = {number, (uint8_t)prng_below(seed, SN_LANES)};
  if (end > BYTES) end = BYTES;
  for (int l = 0; l < SN_LANES; l++) known[l] = prng_below(seed, 40) ? number : number - number / 8;
  uint32_t owner = prng_below(seed, 4) ? number : SN_NONE;
  sn__claim expected = expect(cells, begin, end, known);
  assert_int_equal(sn__regions_claim(r, begin, end, owner, known, touched, &which), expected);
  if (expected == SN__CLAIM_LIVE) assert_true(is_owner(cells, begin, end, which));
  if (expected != SN__CLAIM_GOOD) return;
  for (uint32_t b = begin; b < end; b++)
    cells[b] = (cell){.owner = owner, .claim = which, .touched = touched, .taken = true};
}

static void release(sn__regions *r, cell *cells, uint32_t number, uint64_t *seed) {
  uint32_t at = (uint32_t)prng_below(seed, BYTES), owner = cells[at].owner, claim = cells[at].claim;
  if (!cells[at].taken || owner == SN_NONE) return;
  const sn__moment touched = {number, (uint8_t)prng_below(seed, SN_LANES)};
  sn__regions_release(r, claim, touched);
  for (uint32_t b = 0; b < BYTES; b++) {
    if (!cells[b].taken || cells[b].claim != claim) continue;
    cells[b].owner = SN_NONE;
    cells[b].touched = touched;
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
