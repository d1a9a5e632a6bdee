/* Margin; see the header. */
#include "sim/device/margin.h"

#include "base/units.h"
#include "sim/device/device.h"

#include <stdlib.h>
#include <string.h>

sn_status sn_margin_parse(const char *text, const char *what, sn_margin *margin, sn_err *err) {
  char *end;
  double percent = strtod(text, &end);
  *margin = (sn_margin){0};
  if (end == text || strcmp(end, "%") != 0) return sn_parse_bytes(text, what, 0, &margin->bytes, err);
  if (!(percent >= 0 && percent < 100))
    return sn_fail(err, SN_BAD_USAGE, "%s: a share is from 0%% to below 100%%, not %.40s", what, text);
  margin->percent = percent;
  return SN_OK;
}

sn_status sn_margin_take(sn_margin margin, sn_device *device, uint64_t *bytes, sn_err *err) {
  char kept[SN_UNIT_TEXT], memory[SN_UNIT_TEXT];
  *bytes = margin.percent > 0 ? (uint64_t)((double)device->memory_bytes * margin.percent / 100) : margin.bytes;
  if (*bytes >= device->memory_bytes)
    return sn_fail(err, SN_BAD_USAGE, "--margin: %s of the %s on %s leave nothing; choose less",
                   sn_print_bytes(*bytes, kept), sn_print_bytes(device->memory_bytes, memory), device->name);
  device->memory_bytes -= *bytes;
  return SN_OK;
}

uint64_t sn_margin_around(sn_margin margin, uint64_t bytes) {
  return margin.percent > 0 ? (uint64_t)((double)bytes / (1 - margin.percent / 100)) + 1 : bytes + margin.bytes;
}
