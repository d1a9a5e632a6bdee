/* Route: the steps of one training iteration in execution order, with the functional tensors each touches.
 *
 * Order is algorithm 1 of [SN]: depth first from DATA, a layer is entered only when all its inputs have been produced,
 * branches in declaration order. With N layers (DATA excluded) forward of the i-th layer is step i, its backward step
 * 2N+1-i; then one update step per layer that has parameters, in forward order. O(layers + values), explicit stack.
 *
 * Functional tensors are layer outputs and gradients with respect to layer inputs (reference, section 1). A gradient
 * written in place is the same tensor passed on, touched by several layers' steps.
 */
#ifndef SN_SIM_GRAPH_ROUTE_H
#define SN_SIM_GRAPH_ROUTE_H

#include "base/err.h"
#include "models/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sn_pass { SN_FORWARD, SN_BACKWARD, SN_UPDATE, SN_PASSES } sn_pass;

typedef enum sn_tensor_kind { SN_OUTPUT, SN_GRADIENT, SN_TENSOR_KINDS } sn_tensor_kind;

typedef struct sn_tensor {
  uint32_t layer; /* whose output, or whose backward makes the gradient */
  uint32_t port;  /* which output, or which input the gradient is for */
  sn_tensor_kind kind;
  uint64_t bytes;
} sn_tensor;

typedef enum sn_access_mode {
  SN_READ,  /* needs the value */
  SN_WRITE, /* makes the value; what was there before does not matter */
  SN_MODIFY /* needs the value and changes it in place */
} sn_access_mode;

typedef struct sn_access {
  uint32_t tensor;
  sn_access_mode mode;
} sn_access;

typedef struct sn_step {
  uint32_t layer;
  sn_pass pass;
  uint32_t first_access, n_accesses; /* route->accesses[first_access ..]; a tensor stands at most once in a step */
} sn_step;

typedef struct sn_route {
  const sn_net *net; /* looked at; must outlive the route */
  uint32_t n_layers; /* N: DATA excluded */
  uint32_t n_steps;  /* 2N + updates; steps[0] is step 1 */
  uint32_t n_tensors, n_accesses;
  const sn_step *steps;
  const sn_access *accesses;
  const sn_tensor *tensors;
  const uint32_t *output;       /* per value of the net: the tensor that holds it; SN_NONE for DATA's */
  const uint32_t *gradient;     /* per value: the tensor that holds the gradient with respect to it */
  const uint32_t *forward_step; /* per layer of the net: index of its forward step; SN_NONE for DATA */
  uint64_t tensor_bytes;        /* all functional tensors */
  struct sn_arena *arena;
} sn_route;

/* SN_BAD_INPUT where the sum of all tensors is beyond SN_MAX_NET_BYTES. */
sn_route *sn_route_new(const sn_net *net, sn_err *err);
void sn_route_free(sn_route *route);

static inline uint32_t sn_route_backward_step(const sn_route *route, uint32_t layer) {
  return 2 * route->n_layers - 1 - route->forward_step[layer];
}

enum { SN_TENSOR_NAME = 160 };

/* "conv1.y", "relu1/fork.y1", "pool1.dx", "add1.dx1": cut to fit `room`; returns text. */
char *sn_tensor_name(const sn_route *route, uint32_t tensor, char *text, size_t room);

const char *sn_pass_name(sn_pass pass);
const char *sn_tensor_kind_name(sn_tensor_kind kind);

#endif
