/* Optimizer: what an update step does with a parameter w and its gradient g, and what it keeps from one iteration to
 * the next. The update of a layer is one step of the route (sim/graph/route.h); which optimizer it is changes nothing
 * of the route, only the bytes that stay, the bytes that move, and the arithmetic (exec/).
 *
 *   decay: weight decay d;  rate: learning rate r;  iteration t from 1;  b1 = 0.9, b2 = 0.999, e = 1e-8
 *
 *   sgd        w -= r (g + d w)
 *   momentum   v = u v + g + d w;  w -= r v                                                     u: momentum
 *   adam       h = g + d w;  m = b1 m + (1-b1) h;  s = b2 s + (1-b2) h^2;  w -= r M / (sqrt(S) + e)
 *   adamw      w -= r d w;  then as adam, with h = g              M = m / (1 - b1^t), S = s / (1 - b2^t)
 *
 * Momentum is [SN]'s and the default. Adam is of Kingma and Ba 2015, AdamW of Loshchilov and Hutter 2019; both as in
 * PyTorch, which decays by the learning rate too.
 */
#ifndef SN_SIM_GRAPH_OPTIMIZER_H
#define SN_SIM_GRAPH_OPTIMIZER_H

#include "base/err.h"
#include "models/net.h"

#include <stdint.h>

typedef enum sn_optimizer {
  SN_OPTIMIZER_MOMENTUM,
  SN_OPTIMIZER_SGD,
  SN_OPTIMIZER_ADAM,
  SN_OPTIMIZER_ADAMW,
  SN_OPTIMIZERS
} sn_optimizer;

enum { SN_OPTIMIZER_STATES = 2 }; /* the most that one keeps */

#define SN_ADAM_BETA1   0.9
#define SN_ADAM_BETA2   0.999
#define SN_ADAM_EPSILON 1e-8

/* "momentum", "sgd", "adam", "adamw"; parsing an unknown name is SN_BAD_USAGE, with all of them. */
const char *sn_optimizer_name(sn_optimizer optimizer);
sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err);

/* How many arrays as large as the parameters it keeps, and what they are called: "momentum (SGD)"; "" for none. */
uint32_t sn_optimizer_states(sn_optimizer optimizer);
const char *sn_optimizer_state_name(sn_optimizer optimizer);

/* How often an update reads or writes as many bytes as there are parameters, in one kernel. */
uint32_t sn_optimizer_transfers(sn_optimizer optimizer);

/* The parameter tensors of a layer, 0 to 2, and the bytes of each: weights and bias, gamma and beta. Each has a
 * gradient and an optimizer state of its own. */
enum { SN_PARAMETER_TENSORS = 2 };
uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]);

/* Bytes of PyTorch's step counters: a float for every parameter tensor (weights, bias, gamma and beta are one each) of
 * Adam and AdamW that is trained (`freeze`: sim/graph/freeze.h). Elsewhere there is one counter for all, on the host.
 */
uint64_t sn_optimizer_counter_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze);

#endif
