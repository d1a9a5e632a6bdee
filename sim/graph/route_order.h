/* Orders of a route (internal to sim/graph/). */
#ifndef SN_SIM_GRAPH_ROUTE_ORDER_H
#define SN_SIM_GRAPH_ROUTE_ORDER_H

#include "sim/graph/route.h"

/* Puts the steps of a route in SN_ORDER_ROUTE into SN_ORDER_POST. SN_BAD_USAGE where steps change tensors in place:
 * then what a step reads does not say all that must come before it. */
sn_status sn__route_post_order(sn_route *route, sn_err *err);

#endif
