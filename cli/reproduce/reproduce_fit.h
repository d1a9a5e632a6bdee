/* Inside `snsim reproduce`: the largest size of a network that fits a device, for several strategies at once.
 *
 * For tables 4 and 5; the search is that of sim/capacity/fit.h.
 */
#ifndef SN_CLI_REPRODUCE_REPRODUCE_FIT_H
#define SN_CLI_REPRODUCE_REPRODUCE_FIT_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

/* A network that grows with `size` (a batch, a number of units). */
typedef struct sn_family {
  const char *spec; /* as sn_net_load() takes it; of `deep` ones the size is appended: "resnet:n1=6,n2=32,n4=6,n3=" */
  uint32_t batch;   /* of deep ones; 0: the size is the batch */
} sn_family;

/* Sets largest[i] to the largest size with which strategies[i] fits the device, 0 where not even 1 does, by checked
 * plans; also where some smaller sizes do not fit. */
sn_status sn_largest_that_fits(const sn_family *family, const sn_device *device, const sn_strategy *strategies,
                               uint32_t n_strategies, uint32_t *largest, sn_err *err);

#endif
