/* Parts of reading a device profile that sim/device/device.c leaves to others. */
#ifndef SN_SIM_DEVICE_DEVICE_INTERNAL_H
#define SN_SIM_DEVICE_DEVICE_INTERNAL_H

#include "base/json.h"
#include "sim/device/device.h"

/* The object "cores" of a profile; SN_BAD_INPUT. */
sn_status sn__cores_read(const sn_json *doc, const cJSON *object, sn_cores *cores, sn_err *err);

/* "manycore" or "manycore:..." */
bool sn__is_manycore(const char *name);
/* A machine of so many cores, by estimates: "manycore:cores=N,slots=S,tile=T". SN_BAD_USAGE. */
sn_status sn__manycore(const char *name, sn_device *device, sn_err *err);

#endif
