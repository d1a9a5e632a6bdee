/* External memory: where tensors go that leave the device; and the device's name, for all that need no more of it. */
#ifndef SN_SIM_DEVICE_EXTERNAL_H
#define SN_SIM_DEVICE_EXTERNAL_H

#include "base/err.h"

typedef struct sn_device sn_device;
typedef struct sn_arithmetic sn_arithmetic;

/* Where tensors go that leave the device ([SN] 3.3.2); a disk is of the host. */
typedef enum sn_external {
  SN_EXTERNAL_HOST,
  SN_EXTERNAL_PEER,
  SN_EXTERNAL_REMOTE,
  SN_EXTERNAL_DISK,
  SN_EXTERNAL_COUNT
} sn_external;

/* "host", "peer", "remote", "disk" */
const char *sn_external_name(sn_external external);
sn_status sn_external_parse(const char *text, sn_external *external, sn_err *err);

#endif
