/* Sharing: which tensors lie in the same memory, as MXNet 1.2.1 decides before it runs anything (planning, part C). One
 * walk over the steps; a region counts the uses that are still to come.
 *
 *   a step's permits       what it makes lies in what it reads, where this is the last use of those bytes, they are as
 *                          many, and somebody will read the result; a FLATTEN's always, whoever else reads them
 *   what else it makes     the largest first: in a region from the box (sim/share/box.h), or a new one
 *   what it reads          one use less; a region without further uses goes into the box
 *   what nobody reads      into the box at once
 *
 * What the route does not count as tensors is given: parameters, their gradients, the batch, its gradient, labels.
 * O(accesses log tensors) but for what sim/share/box.h says of colours.
 */
#ifndef SN_SIM_SHARE_SHARING_H
#define SN_SIM_SHARE_SHARING_H

#include "base/err.h"
#include "sim/graph/pass.h"
#include "sim/share/colour.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_sharing_rules {
  bool in_place;        /* permits are used */
  uint32_t match_range; /* how many times larger or smaller what a region is used for next may be; 0: it is not used */
  const sn_colouring *colouring; /* of the same steps */
} sn_sharing_rules;

typedef struct sn_sharing {
  const sn_route *route;
  uint32_t n_steps; /* the first of the route */
  uint32_t n_regions;
  uint64_t bytes;         /* of all regions */
  uint32_t *region;       /* per tensor; SN_NONE: no step makes it */
  uint64_t *region_bytes; /* per region */
} sn_sharing;

/* Of the route's first n_steps steps, which change no tensor in place; a tensor that only later steps read counts as
 * read by nobody. The route must outlive it. */
sn_sharing *sn_sharing_new(const sn_route *route, uint32_t n_steps, const sn_sharing_rules *rules, sn_err *err);
void sn_sharing_free(sn_sharing *sharing);

#endif
