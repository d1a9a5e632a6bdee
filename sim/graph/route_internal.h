/* Making a route (internal to sim/graph/): route.c makes orders, steps and the rules that all dialects share;
 * route_check.c what a dialect can be asked for;
 * route_eager.c what only declared dialects have; route_kernels.c the steps of dialects that are by_kernel. */
#ifndef SN_SIM_GRAPH_ROUTE_INTERNAL_H
#define SN_SIM_GRAPH_ROUTE_INTERNAL_H

#include "sim/graph/route.h"

typedef struct sn__branch {
  uint32_t read_at, port; /* forward step of its reader */
} sn__branch;

/* Two gradients that have met while a step was made: its layer's `value` has a second reader's. */
typedef struct sn__meeting {
  uint32_t value; /* the FORK's input */
  sn_summand later;
  uint32_t fork; /* layer */
} sn__meeting;

/* A gradient that is to be copied into the width of the value that it is of. */
typedef struct sn__cast {
  uint32_t value, from;
} sn__cast;

typedef struct sn__route_maker {
  const sn_net *net;
  sn_route *route;
  sn_step *steps;
  sn_access *accesses;
  sn_permit *permits;
  sn_tensor *tensors;
  sn_sum *sums;
  sn_part *part; /* per value */
  uint32_t *forward_step, *backward_step, *weight_gradient;
  uint16_t *rules;      /* per layer: which of its dialect */
  uint32_t *order;      /* layers in route order */
  uint32_t *output;     /* per value: its tensor; SN_NONE for DATA's */
  uint32_t *gradient;   /* per value: the tensor that holds the gradient with respect to it */
  uint32_t *saved;      /* per layer: the first of what it saves */
  uint32_t *flat;       /* per layer: its input made flat; SN_NONE where it reads that as it is */
  uint32_t *stamp;      /* per tensor: the number, from 1, of the last step that touches it, */
  uint32_t *place;      /* and where among its accesses */
  sn__branch *branches; /* room for the outputs of one layer */
  /* declared only */
  bool *trained;         /* per value: something before it has parameters */
  uint32_t *holders;     /* per tensor: values whose gradient it holds, and which have not been used yet */
  sn__meeting *meetings; /* of the step at hand */
  uint32_t n_meetings;
  uint32_t temporary; /* of the updates; SN_NONE: none */
  uint32_t angles;    /* cosines, behind them sines; SN_NONE: none */
  uint32_t turned;    /* the layer with which these go */
  uint64_t held;      /* of the update before, by variables of the optimizer's loop */
  sn_iteration iteration;
  const uint64_t *workspace; /* per layer, by_kernel; NULL: none */
  uint32_t *scratch;         /* per layer: the tensor for that; SN_NONE: none */
  sn_widths widths;          /* as made by sn_widths_make() */
  uint32_t *cast;            /* per value: what its reader reads in its place; SN_NONE: the value itself */
  uint32_t *weight_cast;     /* per layer: the first copy of its parameters; SN_NONE: none */
  sn__cast *casts;           /* of the step at hand */
  uint32_t n_casts;
  uint32_t cast_gradient, n_cast_gradients; /* of the step at hand: the first, and how many */
  uint32_t own_gradient, n_own_gradients;   /* the same of those that are to be added to what is there */
  bool too_large;
} sn__route_maker;

uint32_t sn__route_add_tensor(sn__route_maker *b, uint32_t layer, uint32_t port, sn_role role, uint64_t bytes);
void sn__route_begin_step(sn__route_maker *b, uint32_t layer, sn_pass pass, sn_kernel kernel);
void sn__route_access(sn__route_maker *b, uint32_t tensor, sn_access_mode mode);
void sn__route_end_step(sn__route_maker *b);

static inline const sn_op_rule *sn__route_rule(const sn__route_maker *b, uint32_t layer) {
  return &b->route->dialect->rules[b->rules[layer]];
}
/* Of its own parameters or those that it shares. */
static inline bool sn__route_trains(const sn__route_maker *b, uint32_t layer) {
  return sn_freeze_trains_shared(b->iteration.freeze, b->net, &b->net->layers[layer]);
}
static inline uint32_t sn__route_input(const sn__route_maker *b, const sn_layer *layer, uint32_t i) {
  return b->net->inputs[layer->first_input + i];
}

/* Of a network with a recording; SN_BAD_USAGE for a dialect that is not PyTorch's graph. */
sn_route *sn__route_of_recording(const sn_net *net, sn_dialect_id dialect, sn_err *err);
/* sn_route_resize() of such a one. */
sn_route *sn__route_of_recording_resized(const sn_route *known, const sn_net *net, sn_err *err);
/* Frees what sn_route_under() has made of it. */
void sn__route_free_under(const sn_route *route);

/* SN_BAD_USAGE for an order, a precision, frozen layers or adapters that the dialect does not have. */
sn_status sn__route_check(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_iteration iteration,
                          sn_err *err);

bool sn__route_has_backward(const sn__route_maker *b, uint32_t layer);
void sn__route_access_operand(sn__route_maker *b, uint32_t layer, sn_operand operand);
/* New gradient tensors for the inputs from `first` on. */
void sn__route_new_gradients(sn__route_maker *b, uint32_t layer, uint32_t first);

/* ---- by_kernel; nothing where the dialect is not ---- */

/* The forward step at hand of an FC with bias makes the product alone; the next one adds the bias. */
void sn__route_split_product(sn__route_maker *b, uint32_t layer);
/* The forward step at hand, of a CONV, writes its workspace. */
void sn__route_make_workspace(sn__route_maker *b, uint32_t layer);
/* All backward steps, with the updates. */
sn_status sn__route_backward_kernels(sn__route_maker *b, sn_err *err);

/* ---- precision; nothing where it is fp32 ---- */

/* The forward step at hand makes copies of its operands; the last one is read by the copies of all weights. */
void sn__route_cast_forward(sn__route_maker *b, uint32_t layer);
/* Once widths are known: each layer's rule, which then is asked for often. */
void sn__route_find_rules(sn__route_maker *b);
/* What the backward step at hand makes in its own widths, and drops. */
void sn__route_make_scratch(sn__route_maker *b, uint32_t index);
/* What each product of PyTorch's makes of weights of 4 bits, and drops. */
void sn__route_dequantize(sn__route_maker *b, uint32_t layer);
/* The backward step at hand makes the gradients of its weights' copies, and reads those: false where there are none.
 * `data`: it makes a gradient with respect to its input. */
bool sn__route_cast_gradients(sn__route_maker *b, uint32_t layer, bool data);
/* As sn__route_arrive(), but where the gradient has to be copied first: that is left to sn__route_cast_back(). */
void sn__route_deliver(sn__route_maker *b, uint32_t value, uint32_t tensor, sn_part part);
/* Steps that copy the gradients which the layer's backward has made. */
void sn__route_cast_back(sn__route_maker *b, uint32_t layer);
/* What has met is added, a step each. */
void sn__route_add_meetings(sn__route_maker *b);
/* Bytes of a value in one of b->widths' arrays, or in fp32 where that is NULL. */
static inline uint64_t sn__route_bytes(const sn__route_maker *b, uint32_t value, const uint8_t *width) {
  const sn_value *v = &b->net->values[value];
  return width ? sn_width_bytes(v, width[value]) : v->bytes;
}

/* ---- declared dialects ---- */

/* Layers in the order in which they run, FORKs and DATA too. */
sn_status sn__route_eager_order(sn__route_maker *b, sn_err *err);
/* Cosines and sines of transformers' decoders: the step at hand makes them if it is the table's, and needs them last if
 * it is that of the layer with which they go. */
void sn__route_angles(sn__route_maker *b, uint32_t layer);
/* The forward step at hand holds what a named TOKEN ahead of it has made, if a TAKE reads what it makes itself. */
void sn__route_hold_named(sn__route_maker *b, uint32_t layer);
/* Which values need a gradient. */
void sn__route_find_trained(sn__route_maker *b);
/* The gradients of a layer's parameters, as tensors; nobody makes them yet. */
void sn__route_add_parameter_gradients(sn__route_maker *b, uint32_t layer);
/* The same, made by the step at hand; or its own, to be added to what other layers have made: sn__route_leave() does. */
void sn__route_parameter_gradients(sn__route_maker *b, uint32_t layer);
/* A layer's own gradient of a parameter, made by the step at hand; and a step that adds it to the gradient `to`. */
uint32_t sn__route_own_gradient(sn__route_maker *b, uint32_t layer, uint32_t port, uint32_t to);
void sn__route_add_own_gradient(sn__route_maker *b, uint32_t layer, uint32_t port, uint32_t own, uint32_t to);
/* `tensor` is the gradient with respect to `value`. */
void sn__route_arrive(sn__route_maker *b, uint32_t value, uint32_t tensor, sn_part part);
/* A layer's backward is over: it holds its dy no longer, and what has met meanwhile is added, a step each, as are its own
 * gradients of parameters that several layers have. */
void sn__route_leave(sn__route_maker *b, uint32_t layer);
/* JOIN and CONCAT: the inputs take dy, or their channels of it. */
void sn__route_hand_on(sn__route_maker *b, uint32_t layer);
/* What an update step touches: the gradients of its layer, the last one those of all layers; the losses, which the
 * first one is behind; and the optimizer's temporary, from the first to the last. */
void sn__route_eager_update(sn__route_maker *b, uint32_t layer);

#endif
