/* Memcost: what an iteration's tensors take in MXNet, by how much of its memory planning is used: the five rows of its
 * note on memory (planning, part C). The route is that of the dialect `explicit` in order `post`, in a precision that
 * it has.
 */
#ifndef SN_SIM_ASK_MEMCOST_H
#define SN_SIM_ASK_MEMCOST_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/device/external.h"
#include "sim/graph/precision.h"

#include <stdint.h>

enum { SN_MEMCOST_MATCH_RANGE = 16 }; /* MXNet's */

typedef enum sn_memcost_option {
  SN_MEMCOST_NONE,     /* every tensor for itself */
  SN_MEMCOST_IN_PLACE, /* results lie in operands where that is permitted */
  SN_MEMCOST_SHARING,  /* memory is used again when nobody needs it any more */
  SN_MEMCOST_BOTH,
  SN_MEMCOST_FORWARD_ONLY, /* both, without a backward pass: what backward reads is let go at once */
  SN_MEMCOST_OPTIONS
} sn_memcost_option;

typedef struct sn_memcost_row {
  uint64_t bytes; /* of all regions */
  uint32_t regions;
  int64_t critical_ns; /* if as many steps as can run side by side (sim/share/critical.h) */
  int64_t unshared_ns; /* the same if each tensor had its own memory */
} sn_memcost_row;

typedef struct sn_memcost {
  uint32_t forward, backward, sums; /* steps; sums are no backward ones */
  sn_memcost_row rows[SN_MEMCOST_OPTIONS];
} sn_memcost;

/* `colours`: from 1, or SN_COLOURS_ANCESTORS (sim/share/colour.h). Times are of `device`, which has the precision
 * (sn_device_check_precision()); SN_BAD_USAGE for one of autocast. */
sn_status sn_memcost_of(const sn_net *net, const sn_device *device, sn_precision precision, uint32_t match_range,
                        uint32_t colours, sn_memcost *memcost, sn_err *err);

/* "none", "inplace", "sharing", "both", "forward_only" */
const char *sn_memcost_option_name(sn_memcost_option option);

#endif
