/* Orders of a route (internal to sim/graph/). */
#ifndef SN_SIM_GRAPH_ROUTE_ORDER_H
#define SN_SIM_GRAPH_ROUTE_ORDER_H

#include "sim/graph/route.h"

/* Puts the steps of a route that was made in SN_ORDER_ROUTE into another order of its dialect. */
sn_status sn__route_put_in_order(sn_route *route, sn_order order, sn_err *err);

/* order[i] is the step that SN_ORDER_BFS has at place i; room for all. */
sn_status sn__route_bfs_order(sn_route *route, uint32_t *order, sn_err *err);

#endif
