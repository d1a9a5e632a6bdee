/* Interval of a climb; see the header. */
#include "sim/policy/interval.h"

#include "base/units.h"
#include "sim/device/cores.h"

#include <stdio.h>
#include <string.h>

static const char geometric[] = "geometric";

sn_status sn_interval_parse(const char *text, uint32_t *interval, sn_err *err) {
  uint64_t number;
  sn_err why = SN_ERR_INIT;
  if (strcmp(text, geometric) == 0) {
    *interval = SN_INTERVAL_GEOMETRIC;
    return SN_OK;
  }
  if (sn_parse_count(text, "--interval", 1, SN_MAX_CORES, &number, &why) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE,
                   "--interval: \"%.40s\" is neither a number of threads from 1 to %d nor %s: 4 profiles 1, 5, 9, .. "
                   "threads",
                   text, SN_MAX_CORES, geometric);
  *interval = (uint32_t)number;
  return SN_OK;
}

char *sn_interval_name(uint32_t interval, char *text) {
  if (interval == SN_INTERVAL_GEOMETRIC)
    snprintf(text, SN_INTERVAL_NAME, "%s", geometric);
  else
    snprintf(text, SN_INTERVAL_NAME, "%u", interval);
  return text;
}
