/* Quotient; see the header. Where both sides are whole numbers that a double holds, its division is right. Else long
 * division, bit by bit: 53 bits, one to round, and whether anything is left. */
#include "sim/memory/quotient.h"

#include <math.h>
#include <stdbool.h>

enum { BITS = 53 };

typedef struct wide {
  uint64_t high, low;
} wide;

static wide product(uint64_t a, uint64_t b) {
  uint64_t a1 = a >> 32, a0 = a & UINT32_MAX, b1 = b >> 32, b0 = b & UINT32_MAX;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), cross = a0 * b1 + (middle & UINT32_MAX);
  return (wide){a1 * b1 + (middle >> 32) + (cross >> 32), cross << 32 | (low & UINT32_MAX)};
}

static bool is_less(wide x, wide y) {
  return x.high != y.high ? x.high < y.high : x.low < y.low;
}

static wide twice(wide x) {
  return (wide){x.high << 1 | x.low >> 63, x.low << 1};
}

static wide less(wide x, wide y) {
  return (wide){x.high - y.high - (x.low < y.low), x.low - y.low};
}

/* n / d > 0, n below 2^63, d below 2^126. */
static double divide(wide n, wide d) {
  int exponent = 0; /* n / d = (shifted n / shifted d) x 2^exponent, from 1 to below 2 */
  for (; is_less(n, d); exponent--) n = twice(n);
  for (; !is_less(n, twice(d)); exponent++) d = twice(d);
  uint64_t bits = 0;
  for (int i = 0; i < BITS + 1; i++) {
    bool one = !is_less(n, d);
    bits = bits << 1 | one;
    if (one) n = less(n, d);
    n = twice(n);
  }
  bool half = bits & 1, odd = bits & 2, left = n.high | n.low;
  bits = (bits >> 1) + (half && (left || odd));
  return ldexp((double)bits, exponent - BITS + 1);
}

double sn_quotient(int64_t n, uint64_t a, uint64_t b) {
  uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  wide d = product(a, b);
  double sign = n < 0 ? -1 : 1;
  if (size == 0) return 0;
  if (size >> BITS == 0 && d.high == 0 && d.low >> BITS == 0) return sign * ((double)size / (double)d.low);
  return sign * divide((wide){0, size}, d);
}
