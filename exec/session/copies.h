/* Copies: how fast a machine copies between its pool and the external pool. Measured by plans that do nothing else. */
#ifndef SN_EXEC_SESSION_COPIES_H
#define SN_EXEC_SESSION_COPIES_H

#include "base/err.h"
#include "exec/machine/machine.h"
#include "sim/graph/pass.h"

#include <stdint.h>

typedef struct sn_copy_rates {
  double out, in;                        /* bytes/s of one direction, alone */
  double together;                       /* bytes/s of both at once, their sum */
  int64_t out_latency_ns, in_latency_ns; /* a copy of one block, alone */
} sn_copy_rates;

/* SN_BAD_INPUT where the route has fewer than two tensors. */
sn_status sn_copies_measure(const sn_machine *machine, const sn_route *route, sn_copy_rates *rates, sn_err *err);

#endif
