/* Dialect: how one framework turns a network into an iteration. One row of data per framework; the route
 * (sim/graph/route.h) is made from it, and nothing behind the route knows which dialect made it.
 *
 *   superneurons   [SN], reference section 1: a FORK copies, so every value has one reader; ACT, LRN and SOFTMAX write
 *                  their gradient in place, a JOIN passes its own on, a FORK sums into the gradient of its first branch
 *   explicit       MXNet's graph (planning, part C): a value has many readers, the gradients of all of them are summed
 * by a step of its own; every operator makes new tensors, and a permit says which of its operands' bytes it may take
 * instead of new ones
 *
 * A permit is only used where the operand's bytes are used for the last time (sim/plan/lower.c).
 */
#ifndef SN_SIM_GRAPH_DIALECT_H
#define SN_SIM_GRAPH_DIALECT_H

#include "base/err.h"
#include "models/net.h"

#include <stdbool.h>
#include <stdint.h>

/* An operand of a backward step; x is the first input. */
typedef enum sn_operand { SN_NOTHING, SN_X, SN_Y, SN_DY, SN_KEPT } sn_operand; /* SN_KEPT: what forward saved for it */

/* Where the gradients with respect to the inputs go. */
typedef enum sn_gradient_rule {
  SN_GRAD_NONE,       /* DATA: no backward */
  SN_GRAD_NEW,        /* a new tensor per input */
  SN_GRAD_IN_PLACE,   /* written over dy */
  SN_GRAD_ON_OUTPUT,  /* written over the layer's own output (SOFTMAX with loss: there is no dy) */
  SN_GRAD_SHARE,      /* input 0 takes dy as it is, every other input a new copy (JOIN) */
  SN_GRAD_ACCUMULATE, /* summed into the gradient of branch 0 (FORK) */
  SN_GRAD_SUM         /* a new tensor, the sum of all branches' gradients, the last reader's first (FORK) */
} sn_gradient_rule;

/* What a forward step makes for its backward step alone. */
typedef enum sn_saving {
  SN_SAVES_NOTHING,   /* or keeps it outside the graph: sn_persistent.auxiliary */
  SN_SAVES_CHANNELS,  /* mean and variance: two tensors, a float a channel */
  SN_SAVES_AS_OUTPUT, /* a mask, a norm: as large as the output */
} sn_saving;

/* Bytes that may be taken over where sizes agree, or-ed; the order in which they are tried is that of the bits. */
typedef enum sn_taking {
  SN_TAKES_NOTHING = 0,
  SN_Y_TAKES_X = 1 << 0,   /* forward: JOIN any of its inputs, the first that can be taken */
  SN_DX_TAKES_DY = 1 << 1, /* backward: the first dx; FORK's sum its first summand */
  SN_DX_TAKES_X = 1 << 2,
  SN_DX_TAKES_Y = 1 << 3,
} sn_taking;

enum { SN_MOST_OPERANDS = 3 };

typedef struct sn_op_rule {
  uint8_t reads[SN_MOST_OPERANDS]; /* sn_operand, in the order in which backward reads them; SN_NOTHING ends */
  uint8_t gradient;                /* sn_gradient_rule */
  uint8_t saves;                   /* sn_saving */
  uint8_t takes;                   /* sn_taking */
} sn_op_rule;

typedef enum sn_dialect_id { SN_DIALECT_SUPERNEURONS, SN_DIALECT_EXPLICIT, SN_DIALECTS } sn_dialect_id;

typedef struct sn_dialect {
  const char *name;
  const char *summary;
  bool fork_copies;   /* false: all readers of a value read one tensor, a FORK has no forward step */
  bool data_gradient; /* the gradient with respect to the input batch is a tensor */
  bool flattens;      /* ahead of each FC a step of its own makes its input flat, and one its gradient square again */
  sn_op_rule rules[SN_OP_COUNT];
} sn_dialect;

const sn_dialect *sn_dialect_of(sn_dialect_id id);

/* SN_BAD_USAGE, with all names, where there is none of that name. */
sn_status sn_dialect_parse(const char *text, sn_dialect_id *id, sn_err *err);

/* How many tensors a layer saves for its backward step, and the bytes of one. */
uint32_t sn_saving_count(sn_saving saving);
uint64_t sn_saving_bytes(sn_saving saving, const sn_layer *layer, uint64_t output_bytes);

#endif
