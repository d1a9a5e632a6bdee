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
 *
 * adam8bit and adamw8bit are bitsandbytes' (Dettmers et al., ICLR 2022; its version 0.50): the moments of a tensor of
 * 4,096 elements and more are numbers of one byte, an index into a table of 256 floats, with a float for each block of
 * 256, the largest of them; smaller tensors keep floats. They are simulated only.
 */
#ifndef SN_SIM_GRAPH_OPTIMIZER_H
#define SN_SIM_GRAPH_OPTIMIZER_H

#include "base/err.h"
#include "models/net.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_optimizer {
  SN_OPTIMIZER_MOMENTUM,
  SN_OPTIMIZER_SGD,
  SN_OPTIMIZER_ADAM,
  SN_OPTIMIZER_ADAMW,
  SN_OPTIMIZER_ADAM8BIT,
  SN_OPTIMIZER_ADAMW8BIT,
  SN_OPTIMIZERS
} sn_optimizer;

enum { SN_OPTIMIZER_STATES = 2 }; /* the most that one keeps */

#define SN_ADAM_BETA1   0.9
#define SN_ADAM_BETA2   0.999
#define SN_ADAM_EPSILON 1e-8

/* "momentum", "sgd", "adam", "adamw", "adam8bit", "adamw8bit"; parsing an unknown name is SN_BAD_USAGE, with all of
 * them. */
const char *sn_optimizer_name(sn_optimizer optimizer);
sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err);

/* How many numbers it keeps of each parameter, and what they are called: "momentum (SGD)"; "" for none. */
uint32_t sn_optimizer_states(sn_optimizer optimizer);
const char *sn_optimizer_state_name(sn_optimizer optimizer);

/* They are of one byte, which nothing here executes. */
bool sn_optimizer_is_8bit(sn_optimizer optimizer);

/* It updates all parameters at once, with a temporary as large as they are and counters of steps on the GPU (PyTorch's
 * foreach); else each tensor for itself, in place. */
bool sn_optimizer_at_once(sn_optimizer optimizer);

/* Bytes that an update of a parameter of so many bytes reads and writes, in one kernel. */
uint32_t sn_optimizer_moved_bytes(sn_optimizer optimizer, uint32_t parameter_bytes);

/* The parameter tensors of a layer, 0 to 2, and the bytes of each: weights and bias, gamma and beta. Each has a
 * gradient and an optimizer state of its own. */
enum { SN_PARAMETER_TENSORS = 2 };
uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]);

/* What is kept of a parameter tensor of so many elements: the bytes of each storage, 0 to 4, in the order in which they
 * are made. Two of 8 bits come with one float a block each. */
enum { SN_OPTIMIZER_PIECES = 4 };
uint32_t sn_optimizer_pieces(sn_optimizer optimizer, uint64_t elements, uint32_t parameter_bytes,
                             uint64_t bytes[SN_OPTIMIZER_PIECES]);

/* What stands for the 256 numbers of one byte, signed and unsigned ones: there once, if any tensor is kept so. */
enum { SN_OPTIMIZER_TABLES = 2, SN_OPTIMIZER_TABLE_BYTES = 1024 };

/* All that is kept of what is trained (`freeze`: sim/graph/freeze.h), without counters. O(layers). */
uint64_t sn_optimizer_state_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze,
                                  uint32_t parameter_bytes);

/* Bytes of PyTorch's step counters: a float for every parameter tensor (weights, bias, gamma and beta are one each) of
 * Adam and AdamW that is trained (`freeze`: sim/graph/freeze.h). Elsewhere there is one counter for all, on the host.
 */
uint64_t sn_optimizer_counter_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze);

#endif
