/* Route of a network that differs in nothing but sizes from one whose route is known: what happens is the same, only
 * tensors are larger or smaller.
 *
 *   sn_route *route = sn_route_resize(known, net, &err);       NULL: to be made by sn_route_new_for(), or an error
 *
 * A fraction of the time of making it: O(tensors), the rest is that of the known route.
 */
#ifndef SN_SIM_GRAPH_ROUTE_RESIZE_H
#define SN_SIM_GRAPH_ROUTE_RESIZE_H

#include "base/err.h"
#include "sim/graph/route.h"

/* `net` is sn_net_rebatch()'s of the known route's. The route looks at both, which must outlive it. NULL without an
 * error where bytes have a say in what a route is: of dialects that let a step take the bytes of an operand, or that
 * save more than values and their gradients; or where it would be too large. Of a recording, in any dialect, where both
 * batches have the same tensors. SN_NO_MEMORY. */
sn_route *sn_route_resize(const sn_route *known, const sn_net *net, sn_err *err);

#endif
