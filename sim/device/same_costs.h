/* Same costs (internal to sim/): layers that are alike in all that a cost depends on, so that it is found once.
 *
 * Networks repeat their blocks: of the 514 layers of inception_v4 134 are new, of a ResNet with 99,500 layers 61.
 * Only the latest layer of each of 256 classes is remembered: one that is forgotten costs time and nothing else.
 */
#ifndef SN_SIM_DEVICE_SAME_COSTS_H
#define SN_SIM_DEVICE_SAME_COSTS_H

#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed there are none: layer 0, DATA, is nobody's twin. */
typedef struct sn__same_costs {
  uint32_t latest[256];
  bool divided; /* by tp, on which costs depend then, too */
} sn__same_costs;

/* An earlier layer with the same operator, attributes and shapes, 0 where none is known; and remembers this one. */
uint32_t sn__same_costs_find(sn__same_costs *twins, const sn_net *net, uint32_t layer);

#endif
