/* Marks: against a plain array, for sets of one word, of several and of several levels. */
#include "models/net/net.h"
#include "sim/corun/number_set.h"
#include "tests/support/seed.h"

#include <stdbool.h>
#include <string.h>

enum { LARGEST = 300000, CHANGES = 3000 };

static uint32_t next_of(const bool *in, uint32_t n, uint32_t from) {
  while (from < n && !in[from]) from++;
  return from < n ? from : SN_NONE;
}

static void as_an_array(uint32_t n, uint64_t seed) {
  static bool in[LARGEST];
  sn__number_set set;
  sn_arena *arena = sn_arena_new();
  assert_true(sn__number_set_new(&set, n, arena));
  memset(in, 0, sizeof in);
  uint32_t near = prng_below(&seed, n);
  for (uint32_t i = 0; i < CHANGES; i++) {
    uint32_t at = prng_chance(&seed, 50) ? prng_below(&seed, n) : (near + prng_below(&seed, 70)) % n;
    in[at] = prng_chance(&seed, 40);
    if (in[at])
      sn__number_set_put(&set, at);
    else
      sn__number_set_remove(&set, at);
    uint32_t from = i % 10 == 0 ? prng_below(&seed, n) : (near + prng_below(&seed, 70)) % n;
    if (sn__number_set_next(&set, from) != next_of(in, n, from))
      fail_msg("seed %llu, %u numbers, from %u: %u", (unsigned long long)seed, n, from,
               sn__number_set_next(&set, from));
  }
  sn__number_set_clear(&set);
  assert_int_equal(sn__number_set_next(&set, 0), SN_NONE);
  sn_arena_free(arena);
}

static void all_sizes(void **state) {
  (void)state;
  static const uint32_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, LARGEST};
  uint64_t first = first_seed(700);
  for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) as_an_array(sizes[i], first + i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
