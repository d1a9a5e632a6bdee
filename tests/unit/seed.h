/* The seed of a property test: SN_SEED, or the test's own, printed so that a failure can be repeated. */
#ifndef SN_TESTS_SEED_H
#define SN_TESTS_SEED_H

#include "tests/unit/prng.h"

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

#endif
