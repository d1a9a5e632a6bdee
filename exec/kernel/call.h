/* Call: one execution of one step, with everything a kernel needs: where its tensors lie in the pool, its parameters,
 * and which run this is. The same for the reference kernels (exec/kernel/reference.h) and the fast ones
 * (exec/machine/cpu_kernels.h).
 *
 * Shapes are the net's (NCHW, float32). Which pointers are set depends on the operator table (models/op/op.h):
 *
 *   forward    x (n_inputs), y (n_outputs)
 *   backward   x and y where the operator's backward reads them, dy (n_outputs), dx (n_inputs)
 *   update     gradients in, parameters and what the optimizer keeps changed
 *
 * What may lie at one address: whatever the route's dialect has in place. y may be any x of an ACT, DROPOUT, SOFTMAX or
 * JOIN; dx any dy of an ACT, LRN, DROPOUT, JOIN or FORK, the x of an FC or POOL, the y of a SOFTMAX. Of x and y in a
 * backward only those hold their values that the dialect's rule reads; dx is NULL where nobody needs it. x of the first
 * layer is the input batch.
 *
 * A sum (SN_SUM) has a call of its own, sn_call_sum().
 */
#ifndef SN_EXEC_KERNEL_CALL_H
#define SN_EXEC_KERNEL_CALL_H

#include "exec/kernel/init.h"
#include "models/net/net.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/pass.h"
#include "sim/policy/part.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_hyper {
  uint64_t seed;
  float learning_rate, momentum, weight_decay;
  sn_optimizer optimizer;
  sn_init init;
} sn_hyper;

typedef struct sn_call {
  const sn_net *net;
  uint32_t layer;
  sn_pass pass;
  sn_step_part part;  /* of a backward: FILTER makes gradients of parameters only, DATA dx only */
  bool rerun;         /* a recomputation: the same dropout mask again, running statistics left alone */
  uint64_t iteration; /* from 0: of a forward or backward the batches before it, of an update the updates */
  const sn_hyper *hyper;
  float **x, **y, **dy, **dx; /* n_inputs, n_outputs, n_outputs, n_inputs pointers; NULL where not needed */
  void *saved[3];             /* what forward saves for backward in the dialect's graph; NULL: nothing, or nowhere */
  uint64_t saved_bytes;       /* of the last of them */
  float *parameters;          /* weights, then bias; BN: gamma, then beta. NULL: none */
  float *gradients;           /* NULL: none, or they are frozen (the reference kernels make them all) */
  float *states[SN_OPTIMIZER_STATES]; /* what the optimizer keeps, each like the parameters: momentum or the gradients'
                                       * moment; the moment of their squares. NULL: not kept */
  float *statistics; /* BN: running mean, running variance, saved mean, saved 1/sqrt(variance + eps), c floats each */
  float ceiling;     /* BN: what is cut off above, besides what is below 0, of y forward and of dy by y backward
                      * (exec/kernel/rectify.h); 0: nothing. The reference kernels cut nothing */
  const int32_t
      *labels;     /* SOFTMAX: one class an image, or a position, image by image; of SN_LOSS_MSE targets, floats */
  double *loss;    /* SOFTMAX forward writes the batch's mean cross-entropy, or mean square, here */
  void *workspace; /* in the pool, at the planned address */
  uint64_t workspace_bytes;
} sn_call;

#define SN_BN_EPSILON  1e-5f
#define SN_BN_MOMENTUM 0.1f

/* Points x, y, dy and dx to where the layer's input and output values and their gradients lie. `place`: per tensor of
 * the route, NULL where it is nowhere; `data`: the input batch; `room`: 4 x sn_call_widest() pointers, the call's until
 * it is filled for another. */
uint32_t sn_call_widest(const sn_net *net);
void sn_call_fill(sn_call *call, const sn_route *route, unsigned char *const *place, float *data, float **room);

/* Of a backward: x[0] and y[0] become NULL where the step does not read them, so that no kernel takes what lies there
 * for their values. */
void sn_call_hide_unread(sn_call *call, const sn_route *route, const sn_step *step);

/* The layer whose parameters a layer uses: mostly its own. */
uint32_t sn_call_owner(const sn_net *net, uint32_t layer);

/* Whether a layer uses parameters, its own or another's, that are trained: frozen ones (sim/graph/freeze.h), of eager
 * dialects alone, have no gradients. */
bool sn_call_trains(const sn_route *route, uint32_t layer);

/* Per layer: whether another one's backward has made the gradients of the parameters that it uses, so that its own are
 * added to them. To be freed; NULL: no memory. */
bool *sn_call_find_adders(const sn_route *route);

/* Bytes of the gradients that such a layer's backward makes before they are added; else 0. */
uint64_t sn_call_own_bytes(const sn_route *route, const sn_step *step, const bool *adds);

/* Bytes that the gradients of a step's layer so far take while those of another batch are made: where several batches
 * make an update and the graph has no tensors for gradients of parameters; else 0. */
uint64_t sn_call_aside_bytes(const sn_route *route, const sn_step *step, uint32_t batches, const bool *adds);

/* Dropout's mask bit of element `index`: keyed by (seed, layer, iteration), so that forward, a re-run and backward see
 * the same mask and none needs to be stored. True: the element is kept. */
bool sn_dropout_keeps(const sn_call *call, uint64_t index);

#endif
