/* Parsing and printing of counts, bytes and times; see the header. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

sn_status sn_parse_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out, sn_err *err) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || *end)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is not a whole number from %" PRIu64 " to %" PRIu64, what, text,
                   low, high);
  if (errno || value < low || value > high)
    return sn_fail(err, SN_BAD_USAGE, "%s: %.80s is out of range (%" PRIu64 " to %" PRIu64 ")", what, text, low, high);
  *out = value;
  return SN_OK;
}

/* Factor of a unit of bytes; 0 where it is none. */
static double byte_factor(const char *unit) {
  static const struct {
    const char *name;
    double factor;
  } units[] = {
      {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50},
      {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},
  };
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcasecmp(unit, units[i].name) == 0) return units[i].factor;
  return 0;
}

/* Bytes of "12" or "12.5" at the start of `text`; strtod() alone would read hexadecimal, "inf" and exponents too. */
static size_t number_length(const char *text) {
  static const char digits[] = "0123456789";
  size_t whole = strspn(text, digits);
  size_t part = text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;
  return whole && part ? whole + 1 + part : whole;
}

/* What is wrong with a size that begins with a number of `length` bytes, and what was probably meant. */
static sn_status fail_size(const char *text, size_t length, const char *unit, const char *what, sn_err *err) {
  int digits = length < 20 ? (int)length : 20;
  char letter = (char)toupper((unsigned char)unit[0]), whole = letter == 'K' ? 'k' : letter;
  bool factor = length > 0 && letter && strchr("KMGTP", letter) && (!unit[1] || strcasecmp(unit + 1, "i") == 0);
  if (factor && !unit[1])
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%.80s\" leaves open which: %.*s%ciB (powers of 1024) or %.*s%cB (of 1000)?", what, text,
                   digits, text, letter, digits, text, whole);
  if (factor)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is not a size (did you mean %.*s%ciB?)", what, text, digits, text,
                   letter);
  enum { OF_BYTES = 7 }; /* digits with which no other unit is meant: JSON's bytes, copied */
  if (length >= OF_BYTES && !*unit && strcspn(text, ".") >= OF_BYTES)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" has no unit: %.*sB?", what, text, digits, text);
  if (length > 0 && !*unit)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" has no unit: %.*sGiB, %.*sMiB, %.*sGB?", what, text, digits, text,
                   digits, text, digits, text);
  return sn_fail(err, SN_BAD_USAGE,
                 "%s: \"%.80s\" is not a size; write a number and its unit, for instance 8GiB, 512MiB or 12GB", what,
                 text);
}

sn_status sn_parse_bytes(const char *text, const char *what, uint64_t low, uint64_t *out, sn_err *err) {
  size_t length = number_length(text);
  const char *unit = text + length;
  while (*unit == ' ') unit++;
  double factor = strcmp(text, "0") == 0 ? 1 : byte_factor(unit);
  if (length == 0 || factor == 0) return fail_size(text, length, unit, what, err);
  double bytes = strtod(text, NULL) * factor;
  if (!(bytes >= (double)low) || bytes > 0x1p53)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is out of range (%" PRIu64 "B to 8PiB)", what, text, low);
  *out = (uint64_t)llround(bytes);
  return SN_OK;
}

char *sn_print_bytes(uint64_t bytes, char *text) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  int unit = 0;
  for (; value >= (unit == 0 ? 1024 : 1023.995) && unit < 6; unit++) value /= 1024; /* as it will be rounded */
  snprintf(text, SN_UNIT_TEXT, unit == 0 ? "%.0f %s" : "%.2f %s", value, names[unit]);
  return text;
}

char *sn_print_digits(double value, int digits, char *text) {
  enum { MOST_DECIMALS = 9 };
  char rounded[SN_UNIT_TEXT];
  if (!isfinite(value) || value == 0) {
    snprintf(text, SN_UNIT_TEXT, isfinite(value) ? "0" : "-");
    return text;
  }
  snprintf(rounded, sizeof rounded, "%.*e", digits - 1, value);
  int decimals = digits - 1 - (int)strtol(strchr(rounded, 'e') + 1, NULL, 10);
  decimals = decimals < 0 ? 0 : decimals > MOST_DECIMALS ? MOST_DECIMALS : decimals;
  snprintf(text, SN_UNIT_TEXT, "%.*f", decimals, strtod(rounded, NULL));
  return text;
}

char *sn_print_time(int64_t ns, char *text) {
  static const char *const names[] = {"ns", "us", "ms", "s"};
  double value = (double)ns;
  int unit = 0;
  char digits[SN_UNIT_TEXT];
  for (; fabs(value) >= (unit == 0 ? 1000 : 999.5) && unit < 3; unit++) value /= 1000;
  snprintf(text, SN_UNIT_TEXT, "%.24s %s", sn_print_digits(value, 3, digits), names[unit]);
  return text;
}

char *sn_print_count(uint64_t count, char *text) {
  static const char *const names[] = {"", " k", " M", " G", " T", " P"};
  double value = (double)count;
  int unit = 0;
  for (; value >= (unit == 0 ? 1000 : 999.995) && unit < 5; unit++) value /= 1000;
  snprintf(text, SN_UNIT_TEXT, unit == 0 ? "%.0f%s" : "%.2f%s", value, names[unit]);
  return text;
}

char *sn_print_real(double value, char *text) {
  bool same = !isfinite(value);
  if (same) snprintf(text, SN_UNIT_TEXT, "null");
  for (int precision = 15; !same && precision <= 17; precision++) {
    snprintf(text, SN_UNIT_TEXT, "%.*g", precision, value);
    same = strtod(text, NULL) == value;
  }
  return text;
}
