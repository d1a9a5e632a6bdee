/* What a property test draws. Its first seed: SN_SEED, or the test's own, printed so that a failure can be repeated.
 * How many cases: SN_PROP_NETS, or of its own number SN_PROP_PERCENT. */
#ifndef SN_TESTS_SEED_H
#define SN_TESTS_SEED_H

#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

static inline uint64_t first_seed(uint64_t own) {
  const char *given = getenv("SN_SEED");
  uint64_t seed = given ? strtoull(given, NULL, 10) : own;
  print_message("SN_SEED=%llu\n", (unsigned long long)seed);
  return seed;
}

/* What part of all cases: a tenth unless SN_PROP_PERCENT says otherwise; .ci/run asks for all of them once. */
static inline uint64_t case_percent(void) {
  const char *percent = getenv("SN_PROP_PERCENT");
  return percent ? strtoull(percent, NULL, 10) : 10;
}

/* At least one. */
static inline uint32_t case_count(uint32_t own) {
  const char *count = getenv("SN_PROP_NETS");
  uint64_t cases = count ? strtoull(count, NULL, 10) : own * case_percent() / 100;
  return cases < 1 ? 1 : cases < UINT32_MAX ? (uint32_t)cases : UINT32_MAX;
}

/* Of cases that are all tried but where a run is to end soon, below 25 %: how many then; and of a list one in how many. */
static inline uint32_t case_all(uint32_t own) {
  return case_percent() >= 25 ? own : case_count(own);
}
static inline uint32_t case_stride(void) {
  return case_percent() >= 25 ? 1 : case_percent() < 1 ? 100 : (uint32_t)(100 / case_percent());
}

#endif
