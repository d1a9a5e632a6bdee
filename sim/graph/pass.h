/* Passes, kernels and orders: the words that are said of steps, and the names of what a route is made of, for all that
 * speak of them without looking inside (sim/graph/route.h).
 */
#ifndef SN_SIM_GRAPH_PASS_H
#define SN_SIM_GRAPH_PASS_H

#include "base/err.h"

typedef struct sn_route sn_route;
typedef struct sn_step sn_step;
typedef struct sn_tensor sn_tensor;

typedef enum sn_pass { SN_FORWARD, SN_BACKWARD, SN_UPDATE, SN_PASSES } sn_pass;

const char *sn_pass_name(sn_pass pass);

/* What of its layer's pass a step is. */
typedef enum sn_kernel {
  SN_WHOLE,   /* all that the layer does in this pass */
  SN_FLATTEN, /* another shape of the same bytes, ahead of an FC and back; its permit holds whoever else reads */
  SN_FILTER_GRADIENT, /* backward of a CONV or FC without the gradient with respect to its input, which nobody needs or
                       * another kernel makes */
  SN_SUM,             /* adds two gradients where they meet, see sn_sum; its layer is the FORK */
  SN_CAST,            /* backward: a gradient in the width of what it is of (sim/graph/precision.h) */
  SN_SHARED_SUM,      /* backward: adds a layer's own gradient of a parameter that several have to what is there */
  /* of one of several GPUs (sim/parallel/), see sn_transfer: */
  SN_TRANSFER, /* a collective, a send or a receive */
  SN_UNPACK,   /* parameters out of what was gathered (PyTorch's copy-out) */
  SN_PACK,     /* gradients into what is reduced (copy-in) */
  /* by_kernel only; SN_WHOLE is then what is left of the layer's pass: */
  SN_ADD_ROW,         /* forward: an FC's bias */
  SN_DATA_GRADIENT,   /* backward of a CONV or FC: with respect to its input */
  SN_BIAS_GRADIENT,   /* and to its bias */
  SN_DECAY_WEIGHT,    /* update, four kernels a parameter: decay into the gradient, */
  SN_SCALE_MOMENTUM,  /* momentum times its factor, */
  SN_ADD_GRADIENT,    /* gradient to momentum, */
  SN_ADD_TO_PARAMETER /* momentum to the parameter */
} sn_kernel;

typedef enum sn_transfer_kind {
  SN_ALL_GATHER,
  SN_REDUCE_SCATTER,
  SN_ALL_REDUCE,
  SN_SEND,
  SN_RECEIVE,
  SN_TRANSFER_KINDS
} sn_transfer_kind;

typedef enum sn_access_mode {
  SN_READ,  /* needs the value */
  SN_WRITE, /* makes the value; what was there before does not matter */
  SN_MODIFY /* needs the value and changes it in place */
} sn_access_mode;

typedef enum sn_order { SN_ORDER_ROUTE, SN_ORDER_POST, SN_ORDER_SERIAL, SN_ORDER_BFS, SN_ORDERS } sn_order;

/* "route", "post", "serial", "bfs"; parsing an unknown name is SN_BAD_USAGE. */
const char *sn_order_name(sn_order order);
sn_status sn_order_parse(const char *text, sn_order *order, sn_err *err);

#endif
