/* Margin: usable memory of a device that is not planned with, as a size or a share of what there is.
 *
 *   sn_margin margin;
 *   sn_margin_parse("5%", "--margin", &margin, &err);
 *   sn_margin_take(margin, &device, &kept_bytes, &err);   device.memory_bytes is without it from now on */
#ifndef SN_SIM_DEVICE_MARGIN_H
#define SN_SIM_DEVICE_MARGIN_H

#include "sim/device/external.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: none. */
typedef struct sn_margin {
  double percent; /* of the usable memory; 0: `bytes` of it */
  uint64_t bytes;
} sn_margin;

/* "5%", or a size with a unit; `what` names it in errors. SN_BAD_USAGE. */
sn_status sn_margin_parse(const char *text, const char *what, sn_margin *margin, sn_err *err);

/* Takes it off what the device has; *bytes: how many. SN_BAD_USAGE where nothing would be left. */
sn_status sn_margin_take(sn_margin margin, sn_device *device, uint64_t *bytes, sn_err *err);

/* The memory of which `bytes` are left without the margin. */
uint64_t sn_margin_around(sn_margin margin, uint64_t bytes);

#endif
