/* Ranges; see the header. */
#include "sim/sweep/range.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { ROOM = 64 };

/* Cut at its colons; false where it has not two of them. */
static bool cut(char *text, char *parts[3]) {
  for (int i = 0; i < 3; i++) {
    parts[i] = text;
    char *colon = text ? strchr(text, ':') : NULL;
    if ((colon == NULL) != (i == 2)) return false;
    if (colon) *colon++ = '\0';
    text = colon;
  }
  return true;
}

bool sn__is_range(const char *text, size_t length) {
  char copy[ROOM], *parts[3];
  if (length >= sizeof copy) return false;
  snprintf(copy, sizeof copy, "%.*s", (int)length, text);
  return cut(copy, parts);
}

sn_status sn__range_read(const char *what, const char *text, size_t length, uint64_t most, sn__range *range,
                         sn_err *err) {
  char copy[ROOM], *parts[3];
  sn_err why = SN_ERR_INIT;
  snprintf(copy, sizeof copy, "%.*s", (int)length, text);
  if (length >= sizeof copy || !cut(copy, parts))
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%.*s\" is neither a number nor a range LOW:HIGH:STEP (16:256:16) or LOW:HIGH:xFACTOR "
                   "(16:256:x2)",
                   what, (int)(length < 80 ? length : 80), text);
  range->grows = parts[2][0] == 'x';
  if (sn_parse_count(parts[0], "LOW", 1, most, &range->low, &why) == SN_OK &&
      sn_parse_count(parts[1], "HIGH", range->low, most, &range->high, &why) == SN_OK)
    sn_parse_count(parts[2] + range->grows, range->grows ? "FACTOR" : "STEP", range->grows ? 2 : 1, most, &range->step,
                   &why);
  return why.code == SN_OK ? SN_OK : sn_fail(err, SN_BAD_USAGE, "%s: \"%.*s\": %s", what, (int)length, text, why.text);
}
