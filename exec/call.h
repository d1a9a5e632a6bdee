/* Call: one execution of one step, with everything a kernel needs: where its tensors lie in the pool, its parameters,
 * and which run this is. The same for the reference kernels (exec/reference.h) and the fast ones (exec/cpu_kernels.h).
 *
 * Shapes are the net's (NCHW, float32). Which pointers are set depends on the operator table (models/op.h):
 *
 *   forward    x (n_inputs), y (n_outputs)
 *   backward   x and y where the operator's backward reads them, dy (n_outputs), dx (n_inputs)
 *   update     gradients in, parameters and momentum changed
 *
 * Where the gradient rule is in place, dx[0] == dy[0]; SOFTMAX has no dy and dx[0] == y[0]; a JOIN's dx[0] == dy[0]; a
 * FORK's dx[0] == dy[0], its dy[1..] are added into it. x of the first layer is the input batch.
 */
#ifndef SN_EXEC_CALL_H
#define SN_EXEC_CALL_H

#include "models/net.h"
#include "sim/graph/route.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_hyper {
  uint64_t seed;
  float learning_rate, momentum, weight_decay;
} sn_hyper;

typedef struct sn_call {
  const sn_net *net;
  uint32_t layer;
  sn_pass pass;
  bool rerun;         /* a recomputation: the same dropout mask again, running statistics left alone */
  uint64_t iteration; /* from 0 */
  const sn_hyper *hyper;
  float **x, **y, **dy, **dx; /* n_inputs, n_outputs, n_outputs, n_inputs pointers; NULL where not needed */
  float *parameters;          /* weights, then bias; BN: gamma, then beta. NULL: none */
  float *gradients, *momentum;
  float *statistics; /* BN: running mean, running variance, saved mean, saved 1/sqrt(variance + eps), c floats each */
  const int32_t *labels; /* SOFTMAX: one class an image */
  double *loss;          /* SOFTMAX forward writes the batch's mean cross-entropy here */
  void *workspace;       /* in the pool, at the planned address */
  uint64_t workspace_bytes;
} sn_call;

#define SN_BN_EPSILON  1e-5f
#define SN_BN_MOMENTUM 0.1f

/* Points x, y, dy and dx to where the layer's input and output values and their gradients lie. `place`: per tensor of
 * the route, NULL where it is nowhere; `data`: the input batch; `room`: 4 x sn_call_widest() pointers, the call's until
 * it is filled for another. */
uint32_t sn_call_widest(const sn_net *net);
void sn_call_fill(sn_call *call, const sn_route *route, unsigned char *const *place, float *data, float **room);

/* Dropout's mask bit of element `index`: keyed by (seed, layer, iteration), so that forward, a re-run and backward see
 * the same mask and none needs to be stored. True: the element is kept. */
bool sn_dropout_keeps(const sn_call *call, uint64_t index);

#endif
