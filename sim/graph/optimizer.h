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
 *   rmsprop    s = a s + (1-a) h^2;  w -= r h / (sqrt(s) + e)                        a = 0.99, no momentum, not centred
 *   adagrad    s += h^2;  w -= r h / (sqrt(s) + e)
 *   lion       w -= r d w;  w -= r sign(b1 m + (1-b1) g);  m = b2 m + (1-b2) g       Chen et al., NeurIPS 2023
 *   adafactor  of a matrix a number a row and a number a column in place of adam's s, no m; of a vector s
 *
 * rmsprop, adagrad and adafactor (Shazeer and Stern, ICML 2018) are torch.optim's, of its version 2.15 like all that is
 * said of implementations below; lion is the loop that PyPI's lion-pytorch 0.2 has, torch.optim has none.
 *
 * adam8bit and adamw8bit are bitsandbytes' (Dettmers et al., ICLR 2022; its version 0.50): the moments of a tensor of
 * 4,096 elements and more are numbers of one byte, an index into a table of 256 floats, with a float for each block of
 * 256, the largest of them; smaller tensors keep floats.
 *
 * Momentum, sgd, adam and adamw are executed (exec/), all others simulated only.
 *
 * Implementations. PyTorch has up to three of an optimizer, which differ in what they make beside and drop:
 *
 *   foreach    all tensors at once, with temporaries as large as all of them
 *   fused      one kernel, without temporaries; step counters lie on the GPU and not on the host
 *   loop       tensor after tensor, with temporaries as large as one; variables hold the last one's
 *
 * "adamw" alone is PyTorch's own choice on a GPU, foreach (of adafactor and lion the loop); for networks of Hugging
 * Face's transformers, whose Trainer asks for it, adam and adamw are fused. "adamw:impl=loop" names one.
 */
#ifndef SN_SIM_GRAPH_OPTIMIZER_H
#define SN_SIM_GRAPH_OPTIMIZER_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_optimizer {
  SN_OPTIMIZER_MOMENTUM,
  SN_OPTIMIZER_SGD,
  SN_OPTIMIZER_ADAM,
  SN_OPTIMIZER_ADAMW,
  SN_OPTIMIZER_ADAM8BIT,
  SN_OPTIMIZER_ADAMW8BIT,
  SN_OPTIMIZER_RMSPROP,
  SN_OPTIMIZER_ADAGRAD,
  SN_OPTIMIZER_ADAFACTOR,
  SN_OPTIMIZER_LION,
  SN_OPTIMIZER_KINDS, /* those above leave the implementation to PyTorch, those below name it */
  SN_OPTIMIZER_ADAMW_FUSED = SN_OPTIMIZER_KINDS,
  SN_OPTIMIZER_ADAM_FUSED,
  SN_OPTIMIZER_ADAMW_FOREACH,
  SN_OPTIMIZER_ADAMW_LOOP,
  SN_OPTIMIZER_ADAM_FOREACH,
  SN_OPTIMIZER_ADAM_LOOP,
  SN_OPTIMIZER_MOMENTUM_FOREACH,
  SN_OPTIMIZER_MOMENTUM_FUSED,
  SN_OPTIMIZER_MOMENTUM_LOOP,
  SN_OPTIMIZER_SGD_FOREACH,
  SN_OPTIMIZER_SGD_FUSED,
  SN_OPTIMIZER_SGD_LOOP,
  SN_OPTIMIZER_RMSPROP_FOREACH,
  SN_OPTIMIZER_RMSPROP_LOOP,
  SN_OPTIMIZER_ADAGRAD_FOREACH,
  SN_OPTIMIZER_ADAGRAD_FUSED,
  SN_OPTIMIZER_ADAGRAD_LOOP,
  SN_OPTIMIZER_ADAFACTOR_FOREACH,
  SN_OPTIMIZER_ADAFACTOR_LOOP,
  SN_OPTIMIZERS
} sn_optimizer;

enum { SN_OPTIMIZER_STATES = 2 }; /* the most that one keeps of a parameter */

#define SN_ADAM_BETA1   0.9
#define SN_ADAM_BETA2   0.999
#define SN_ADAM_EPSILON 1e-8

/* "adamw", "adamw:impl=fused"; read are also "adamw,impl=fused" and words such as "AdamW". Parsing an unknown one is
 * SN_BAD_USAGE, with all kinds, or with the implementations of the kind. */
const char *sn_optimizer_name(sn_optimizer optimizer);
sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err);

/* The kind, whoever implements it; and that with the implementation which a network's users have unless they say
 * another. Where that is PyTorch's own choice the optimizer itself. */
sn_optimizer sn_optimizer_kind(sn_optimizer optimizer);
sn_optimizer sn_optimizer_on(sn_optimizer optimizer, const sn_net *net);

/* How many numbers it keeps of each parameter, and what they are called: "momentum (SGD)"; "" for none. */
uint32_t sn_optimizer_states(sn_optimizer optimizer);
const char *sn_optimizer_state_name(sn_optimizer optimizer);

/* It goes tensor after tensor. */
bool sn_optimizer_is_loop(sn_optimizer optimizer);

/* Its numbers have one byte. */
bool sn_optimizer_is_8bit(sn_optimizer optimizer);

/* exec/ has kernels for it. */
bool sn_optimizer_runs(sn_optimizer optimizer);

/* It counts steps: a float for every parameter tensor that is trained. Of optimizers that have none there is one
 * counter for all, on the host. */
bool sn_optimizer_counts(sn_optimizer optimizer);
/* On the GPU. */
bool sn_optimizer_counts_there(sn_optimizer optimizer);

/* Bytes that an update of a parameter of so many bytes reads and writes, in one kernel. */
uint32_t sn_optimizer_moved_bytes(sn_optimizer optimizer, uint32_t parameter_bytes);

/* The parameter tensors of a layer, 0 to 2, and the bytes of each: weights and bias, gamma and beta. Each has a
 * gradient and an optimizer state of its own. */
enum { SN_PARAMETER_TENSORS = 2 };
uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]);

/* A parameter tensor as an optimizer sees it: `rows` x `columns` are its last two sides, of which it has `elements` /
 * rows / columns; both 0 for a vector. */
typedef struct sn_parameter {
  uint64_t elements, rows, columns;
} sn_parameter;
uint32_t sn_parameters_of(const sn_layer *layer, sn_parameter parameters[SN_PARAMETER_TENSORS]);

/* What is kept of a parameter tensor: the bytes of each storage, 0 to 4, in the order in which they are made. Two of 8
 * bits come with one float a block each. */
enum { SN_OPTIMIZER_PIECES = 4 };
uint32_t sn_optimizer_pieces(sn_optimizer optimizer, const sn_parameter *parameter, uint32_t parameter_bytes,
                             uint64_t bytes[SN_OPTIMIZER_PIECES]);

/* Bytes of temporaries that live while all tensors of what is trained are updated at once; 0: it goes one by one, or
 * needs none. O(layers). */
uint64_t sn_optimizer_at_once_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze,
                                    uint32_t parameter_bytes);

/* One by one: the temporaries of a layer's tensors at their fullest moment, 0 to 4. `held`: bytes that variables hold
 * of the tensor before, 0 ahead of the first; becomes what they hold of this layer's last. */
enum { SN_OPTIMIZER_TEMPORARIES = 4 };
uint32_t sn_optimizer_temporaries(sn_optimizer optimizer, const sn_layer *layer, uint32_t parameter_bytes,
                                  uint64_t *held, uint64_t bytes[SN_OPTIMIZER_TEMPORARIES]);

/* What stands for the 256 numbers of one byte, signed and unsigned ones: there once, if any tensor is kept so. */
enum { SN_OPTIMIZER_TABLES = 2, SN_OPTIMIZER_TABLE_BYTES = 1024 };

#endif
