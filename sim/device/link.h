/* Link: how long a copy between the device and the external pool takes, one direction. */
#ifndef SN_SIM_DEVICE_LINK_H
#define SN_SIM_DEVICE_LINK_H

#include "sim/device/device.h"

#include <math.h>
#include <stdint.h>

typedef struct sn_link {
  double bytes_per_s; /* 0: not known, copies take no time but the latency */
  int64_t latency_ns; /* per copy */
} sn_link;

static inline sn_link sn_link_of(const sn_device *device, sn_external external) {
  return (sn_link){device->link_bandwidth[external], device->link_latency_ns};
}

/* What times with a disk go by, in bytes/s; 0: it is none. */
static inline double sn_disk_bandwidth_of(const sn_device *device, sn_external external) {
  return external == SN_EXTERNAL_DISK ? sn_link_of(device, external).bytes_per_s : 0;
}

/* At most what the engine takes (SN_ENGINE_MAX_NS), and the latency. */
static inline int64_t sn_link_ns(sn_link link, uint64_t bytes) {
  double ns = link.bytes_per_s > 0 ? (double)bytes / link.bytes_per_s * 1e9 : 0;
  return link.latency_ns + llround(fmin(ns, 1e15));
}

#endif
