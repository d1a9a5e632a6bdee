/* Parsing and printing of counts, bytes and times; see the header. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

static const struct {
  const char *name;
  double factor;
} byte_units[] = {
    {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12},
};

sn_status sn_parse_bytes(const char *text, const char *what, uint64_t *out, sn_err *err) {
  char *unit;
  double value = strtod(text, &unit);
  bool number = isdigit((unsigned char)text[0]) && unit != text;
  while (*unit == ' ') unit++;
  for (size_t i = 0; number && i < sizeof byte_units / sizeof byte_units[0]; i++) {
    if (strcasecmp(unit, byte_units[i].name) != 0) continue;
    double bytes = value * byte_units[i].factor;
    if (!(bytes >= 1) || bytes > 9e15)
      return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is out of range (1 byte to 8 PiB)", what, text);
    *out = (uint64_t)llround(bytes);
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is not a size; write for instance 8GiB, 512MiB or 12GB", what, text);
}

char *sn_print_bytes(uint64_t bytes, char *text) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 6; unit++) value /= 1024;
  snprintf(text, SN_UNIT_TEXT, unit == 0 ? "%.0f %s" : "%.2f %s", value, names[unit]);
  return text;
}

char *sn_print_time(int64_t ns, char *text) {
  static const char *const names[] = {"ns", "us", "ms", "s"};
  double value = (double)ns;
  int unit = 0;
  for (; fabs(value) >= 1000 && unit < 3; unit++) value /= 1000;
  snprintf(text, SN_UNIT_TEXT, unit == 0 ? "%.0f %s" : "%.2f %s", value, names[unit]);
  return text;
}

char *sn_print_count(uint64_t count, char *text) {
  static const char *const names[] = {"", " k", " M", " G", " T", " P"};
  double value = (double)count;
  int unit = 0;
  for (; value >= 1000 && unit < 5; unit++) value /= 1000;
  snprintf(text, SN_UNIT_TEXT, unit == 0 ? "%.0f%s" : "%.2f%s", value, names[unit]);
  return text;
}
