/* Dialect: how one framework turns a network into an iteration. One row of data per framework; the route
 * (sim/graph/route.h) is made from it, and nothing behind the route knows which dialect made it.
 *
 *   superneurons   [SN], reference section 1: a FORK copies, so every value has one reader; ACT, LRN and SOFTMAX write
 *                  their gradient in place, a JOIN passes its own on, a FORK sums into the gradient of its first branch
 *   explicit       MXNet's graph (planning, part C): a value has many readers, the gradients of all of them are summed
 *                  by a step of its own; every operator makes new tensors, and a permit says which of its operands'
 *                  bytes it may take instead of new ones
 *   pytorch        eager PyTorch 2 (frameworks, sections 1 to 3): readers share a storage, ReLU and additions are in
 *                  place where models are written so, backward runs in exactly the reverse order, two gradients that
 *                  meet are added at once, and the gradients of parameters are made by backward
 *   pytorch-1.7    the same with two rules of PyTorch 1.7: gradients that meet are added into a third tensor, and a
 *                  ReLU that is not in place keeps its input. Adding so is also what PyTorch's MemTracker observes
 *   singa          Apache SINGA's buffered graph (planning, part D): steps are single kernels, backward takes layers
 *                  from a stack, an update stands right behind the gradient it uses, and the workspace of a CONV is a
 *                  tensor. It is simulated only
 *
 * A permit is only used where the operand's bytes are used for the last time (sim/graph/route_take.c).
 */
#ifndef SN_SIM_GRAPH_DIALECT_H
#define SN_SIM_GRAPH_DIALECT_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>

/* An operand of a backward step; x is the first input. */
typedef enum sn_operand {
  SN_NOTHING,
  SN_X,
  SN_Y,
  SN_DY,
  SN_KEPT,  /* what forward saved for it */
  SN_ALL_X, /* all inputs */
} sn_operand;

/* Where the gradients with respect to the inputs go. */
typedef enum sn_gradient_rule {
  SN_GRAD_NONE,       /* DATA: no backward */
  SN_GRAD_NEW,        /* a new tensor per input */
  SN_GRAD_IN_PLACE,   /* written over dy */
  SN_GRAD_ON_OUTPUT,  /* written over the layer's own output (SOFTMAX with loss: there is no dy) */
  SN_GRAD_SHARE,      /* input 0 takes dy as it is, every other input a new copy (JOIN) */
  SN_GRAD_ACCUMULATE, /* summed into the gradient of branch 0 (FORK) */
  SN_GRAD_SUM,        /* a new tensor, the sum of all branches' gradients, the last reader's first (FORK) */
  SN_GRAD_PASS_ON,    /* input 0 takes dy as it is, or a view of it; the step makes the gradients of parameters */
  SN_GRAD_HAND_ON,    /* every input takes dy as it is; there is no step (JOIN, and what only looks at its input) */
  SN_GRAD_VIEWS,      /* every input takes its channels of dy, a view; there is no step (CONCAT) */
  SN_GRAD_MEET        /* added where they meet, a step for each but the first, right behind who made it (FORK) */
} sn_gradient_rule;

/* What a forward step makes for its backward step alone. */
typedef enum sn_saving {
  SN_SAVES_NOTHING,       /* or keeps it outside the graph: sn_persistent.auxiliary */
  SN_SAVES_CHANNELS,      /* mean and variance: two tensors, a float a channel */
  SN_SAVES_AS_OUTPUT,     /* a mask, a norm: as large as the output */
  SN_SAVES_MASK,          /* what is dropped: sn_layer.mask_bytes */
  SN_SAVES_INDICES,       /* one 64-bit index an element of the output */
  SN_SAVES_LOSS,          /* the loss and its gradient, a number each; a mean square's storage is larger */
  SN_SAVES_CAST_LOSS,     /* the same, and its input again in four bytes */
  SN_SAVES_ROWS,          /* mean and inverse deviation: two tensors, a float a position */
  SN_SAVES_GROUPS,        /* the same, a float a group of channels and image */
  SN_SAVES_ROOTS,         /* inverse root mean square, a float a position, of one that is one kernel; */
  SN_SAVES_RMS,           /* of one that is composed, the same and what it makes of the input */
  SN_SAVES_PLUS_ONE_RMS,  /* of Gemma's the roots, a float a channel, and what it makes of the input in four bytes */
  SN_SAVES_THREE_OUTPUTS, /* three tensors as large as the output */
  SN_SAVES_ATTENTION,     /* a fused one's: a float a query and head, and two 64-bit seeds */
  SN_SAVES_PADDED,   /* the same, in four bytes of queries padded to a multiple of 32, as the efficient kernel has */
  SN_SAVES_SEEDLESS, /* the same without seeds */
  SN_SAVES_PROBABILITIES, /* one in parts: its probabilities, */
  SN_SAVES_DROPPED,       /* with what is left of them and which: three tensors */
  SN_SAVES_CAPPED,        /* with the hyperbolic tangents of its scores, ahead of them: two tensors */
  SN_SAVES_LRN, /* LRN composed of simple operations: three tensors, the padded squares and two as the output */
} sn_saving;

/* Bytes that may be taken over where sizes agree, or-ed; the order in which they are tried is that of the bits. */
typedef enum sn_taking {
  SN_TAKES_NOTHING = 0,
  SN_Y_TAKES_X = 1 << 0,   /* forward: JOIN any of its inputs, the first that can be taken */
  SN_DX_TAKES_DY = 1 << 1, /* backward: the first dx; FORK's sum its first summand */
  SN_DX_TAKES_X = 1 << 2,
  SN_DX_TAKES_Y = 1 << 3,
  SN_Y_TAKES_IN_PLACE = 1 << 4, /* forward: of the first input, where models are written so: sn_layer_in_place() */
} sn_taking;

enum { SN_MOST_OPERANDS = 4 };

/* What a dialect has a rule for: operators, and forms of them that keep something else. A form without a rule follows
 * its operator's. */
typedef enum sn_form {
  SN_FORM_AVERAGE_POOL = SN_OP_COUNT,
  SN_FORM_GLOBAL_AVERAGE_POOL, /* a mean */
  SN_FORM_RELU6,               /* in place it keeps a copy of its input, and saves nothing */
  SN_FORM_ACT_APART,           /* a ReLU that is not in place, see sn_layer_in_place() */
  SN_FORM_LEAKY_APART,         /* a leaky ReLU that is not in place */
  SN_FORM_SMOOTH_ACT,          /* tanh, sigmoid and exp, whose derivatives are known from what they make */
  SN_FORM_CURVED_ACT,          /* GELU, SiLU and what else needs its input; in place it keeps a copy of that */
  SN_FORM_TIMES,               /* by a constant, which no tensor is kept for */
  SN_FORM_COMPOSED_GELU,       /* made of simple operations */
  SN_FORM_PACKED_ATTENTION,    /* of one input */
  SN_FORM_SEEDLESS_ATTENTION,  /* of a kernel for a CPU */
  SN_FORM_TURNED_FC,           /* it reads a copy of its input, which it keeps */
  SN_FORM_PARTS,               /* an attention in parts */
  SN_FORM_DROPPED_PARTS,       /* that drops probabilities */
  SN_FORM_CAPPED_PARTS,        /* that caps scores */
  SN_FORM_BROADCAST_MUL,       /* by a factor that is smaller */
  SN_FORM_FUSED_RMS,           /* an RMS_NORM of one kernel */
  SN_FORM_PLUS_ONE_RMS,        /* of factors that are 1 + its parameters */
  SN_FORM_CAST_LOSS,           /* a cross-entropy whose log-softmax has two bytes and whose likelihood takes four */
  SN_FORM_MSE,                 /* a loss that keeps its input and the targets, which are there anyway */
  SN_FORMS
} sn_form;

typedef struct sn_op_rule {
  uint8_t reads[SN_MOST_OPERANDS]; /* sn_operand, in the order in which backward reads them; SN_NOTHING ends */
  uint8_t gradient;                /* sn_gradient_rule */
  uint8_t saves;                   /* sn_saving */
  uint8_t takes;                   /* sn_taking */
  bool view;                       /* of the first input: there is no forward step */
  uint8_t scratch;                 /* tensors as large as the output that backward makes and drops itself */
} sn_op_rule;

/* All dialects, with the names of their rows, which people give and the database holds. */
#define SN_DIALECT_LIST(DIALECT)                                                                                       \
  DIALECT(SUPERNEURONS, "superneurons")                                                                                \
  DIALECT(EXPLICIT, "explicit")                                                                                        \
  DIALECT(PYTORCH, "pytorch")                                                                                          \
  DIALECT(PYTORCH_1_7, "pytorch-1.7")                                                                                  \
  DIALECT(SINGA, "singa")

typedef enum sn_dialect_id {
#define SN_DIALECT_ID(id, name) SN_DIALECT_##id,
  SN_DIALECT_LIST(SN_DIALECT_ID) SN_DIALECTS
#undef SN_DIALECT_ID
} sn_dialect_id;

typedef struct sn_dialect {
  const char *name;
  const char *summary;
  bool fork_copies;   /* false: all readers of a value read one tensor, a FORK has no forward step */
  bool data_gradient; /* the gradient with respect to the input batch is a tensor */
  bool flattens;      /* ahead of each FC a step of its own makes its input flat, and one its gradient square again */
  bool declared;      /* operations run as they are declared, and backward only where something before them is trained;
                       * the gradients of parameters are tensors that backward makes */
  bool eager;         /* PyTorch: declared, and backward in exactly the reverse order */
  bool by_kernel;     /* SINGA: declared, and a step is one kernel (sim/graph/route_kernels.c) */
  bool in_place;      /* permits are used in the graph itself (sn_route_take()) */
  bool sums_apart;    /* two gradients that meet are added into a third tensor */
  bool narrow_loss;   /* under autocast the log-softmax of a cross-entropy has the width of its input */
  sn_op_rule rules[SN_FORMS];
} sn_dialect;

const sn_dialect *sn_dialect_of(sn_dialect_id id);

/* SN_BAD_USAGE, with all names, where there is none of that name. */
sn_status sn_dialect_parse(const char *text, sn_dialect_id *id, sn_err *err);

const sn_op_rule *sn_dialect_rule(const sn_dialect *dialect, const sn_net *net, const sn_layer *layer);

/* How many tensors a layer saves for its backward step, and the bytes of one. */
uint32_t sn_saving_count(sn_saving saving);
uint64_t sn_saving_bytes(sn_saving saving, uint32_t index, const sn_layer *layer, uint64_t output_bytes);

/* An ACT or JOIN that the model writes over its first input: by its flag, or where it has none as torchvision and timm
 * do, behind CONV, DECONV, FC, BN and JOIN; tanh and sigmoid by their flag only. */
bool sn_layer_in_place(const sn_net *net, const sn_layer *layer);

#endif
