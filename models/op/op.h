/* Operators: one definition each, everything the rest of the program needs to know of it but two things: what a dialect
 * keeps of it (a row of each table of sim/graph/dialect.c) and its kernels (exec/). A new operator is a name in models/net/net.h, a
 * definition in one of the families below, and these two.
 *
 *   models/op/flow.c        DATA, RECORDED, GIVEN, FORK, JOIN, CONCAT, MUL, SOFTMAX: where values begin, part, meet and end
 *   models/op/pointwise.c   ACT, DROPOUT
 *   models/op/window.c      CONV, DECONV, POOL
 *   models/op/product.c     FC, EXPERTS, MATMUL
 *   models/op/norm.c        LRN, BN, SCALE, LAYER_NORM, RMS_NORM, GROUP_NORM
 *   models/op/sequence.c    EMBEDDING, POSITION, TOKEN, TAKE, ATTENTION, ROTARY, PROBABILITIES
 *   models/op/arrange.c     RESHAPE, TRANSPOSE, SLICE, PAD, RESIZE, EXPAND
 *
 * By name they are told apart where it is about one of them: its gradient's own rules (sim/graph/route.c), widths of a
 * form (sim/graph/precision.c), the kind of a part of the picture (plots/parts.c), what files of weights call it (exec/).
 *
 * A definition's functions know shapes and attributes, no file format and no device: models/json/ reads and writes
 * attributes by `keys`, sim/device/cost.h turns `traffic` into time.
 */
#ifndef SN_MODELS_OP_OP_H
#define SN_MODELS_OP_OP_H

#include "base/err.h"
#include "models/net/net.h"

#include <stddef.h>

/* ---- attributes in a network file ---- */

typedef enum sn_key_kind {
  SN_KEY_SIZE,   /* a whole number up to SN_MAX_DIM: uint32_t */
  SN_KEY_EXTENT, /* 3 or [height, width], where planes have one [depth, height, width]: two uint32_t, and one */
  SN_KEY_FLAG,   /* true or false: bool; with `words` one of two */
  SN_KEY_NUMBER, /* double */
  SN_KEY_WORD,   /* one of `words`, the first unless given: an enum */
  SN_KEY_SIDES,  /* [channels, height, width]: uint32_t[SN_SIDES] */
  SN_KEY_AXES,   /* ["height", "channels", "width"]: sn_side[SN_SIDES] */
  SN_KEY_CHOICE, /* true, false or not given: sn_inplace */
  SN_KEY_OWNER   /* "weights_of": a layer's name, which who reads the network resolves */
} sn_key_kind;

/* One attribute: its name in a network file, and where it is in sn_attr. */
typedef struct sn_key {
  const char *name; /* NULL ends a list */
  sn_key_kind kind;
  uint16_t at;    /* offset in sn_attr; of an EXTENT that of its height, behind which its width stands */
  uint16_t depth; /* [EXTENT] of its depth; 0: planes have none */
  uint32_t least; /* [SIZE, EXTENT] */
  bool required;
  bool always;                       /* written where it has its usual value, too */
  bool by_each;                      /* [EXTENT] a depth of 0 is not 1: two numbers, of each plane by itself */
  double usual;                      /* where it is not given */
  const char *const *(*words)(void); /* [WORD, FLAG] NULL at the end */
} sn_key;

#define SN_AT(member) .at = offsetof(sn_attr, member)
#define SN_WEIGHTS_OF                                                                                                  \
  { .name = "weights_of", .kind = SN_KEY_OWNER }
enum { SN_MOST_KEYS = 13 };

/* A layer of a network file, for sn_op_def.settle. */
typedef struct sn_described {
  const struct sn_op_def *op;
  uint64_t given; /* bit i: the layer has keys[i] */
  bool volumes;   /* it is of a network of volumes, where a size may have a depth */
  bool good;      /* nothing of it was wrong, up to the first key that a layer of these attributes does not have */
  bool unsure;    /* it has keys that no one knows, so that one that is missing is not worth a word */
  void (*wrong)(void *whom, const char *text);
  void *whom;
} sn_described;

bool sn_is_given(const sn_described *d, const char *key);
/* Says what is wrong with the layer. */
void sn_say_wrong(const sn_described *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- definitions ---- */

/* What autocast does with the operands of an operator (docs/pytorch.md). */
typedef enum sn_autocast {
  SN_AUTOCAST_FOLLOWS,      /* nothing: out is as wide as in */
  SN_AUTOCAST_NARROW,       /* two bytes */
  SN_AUTOCAST_WIDE,         /* four bytes */
  SN_AUTOCAST_WIDEST,       /* the widest of the operands' */
  SN_AUTOCAST_PROMOTES,     /* nothing; out is as wide as the widest */
  SN_AUTOCAST_PROMOTES_WIDE /* nothing; out has four bytes, as a parameter that is an operand */
} sn_autocast;

/* How many bytes move, how many operations are done and how many kernels run: forward, backward. */
typedef struct sn_traffic {
  double bytes[2], flops[2], launches[2];
} sn_traffic;

typedef struct sn_op_def {
  const char *name; /* "CONV": in tables, plans and network files */
  const char *const
      *called; /* how other frameworks' names for it begin where ours do not, NULL at the end; NULL: none */

  bool inner;          /* never declared: DATA and FORK, which the builder adds */
  bool checkpoint;     /* never dropped for recomputation */
  bool many_inputs;    /* takes two or more inputs, all others one (DATA none) */
  bool one_will_do;    /* [of many] or one: CONCAT, ATTENTION */
  bool offload_paper;  /* its output is offloaded and its backward fetches the one before: CONV, as one DECONV, and a
                         recording's products, convolutions and attention */
  bool offload_joints; /* also with offload=checkpoints: JOIN, FORK, CONCAT */
  bool ends_offload;   /* its forward start releases what was offloaded before it: CONV, FC ([SN] 3.3.1), DECONV */
  bool convolves;      /* by convolution algorithms, with workspaces: CONV, DECONV */
  bool weighs;         /* multiplies its input by its parameters, a product of matrices: CONV, DECONV, FC, EXPERTS */
  bool shifts;         /* two parameters a channel, the second half added: norms */
  bool volumes;        /* its inputs may be volumes, not only images */
  sn_autocast autocast;
  /* Why there are no kernels of a layer of these attributes, behind its name; it says NULL, or is: there are. */
  const char *(*simulated_only)(const sn_attr *a);

  sn_key keys[SN_MOST_KEYS]; /* its attributes, in the order in which they are written */
  /* Where keys depend on each other: sets what `keys` cannot say, and says what is wrong. NULL: they do not. */
  void (*settle)(sn_attr *a, const sn_described *d);
  /* Whether a layer of these attributes has this key: asked of those that stand before it alone where it is read, of all
   * where it is written. NULL: every one. */
  bool (*has)(const sn_attr *a, const sn_key *key);

  /* Output shape. SN_BAD_INPUT with the reason ("kernel 11x11 is larger than its padded input 5x5"). NULL: the first
   * input's. */
  sn_status (*shape)(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err);
  uint32_t (*planes)(const sn_attr *a); /* of the output, 0 of an image; NULL: those of its input */
  /* Adds parameters, macs, mask_bytes and statistics_bytes. NULL: it has none. SN_BAD_INPUT on overflow. */
  sn_status (*measure)(sn_layer *layer, sn_shape input, sn_err *err);
  /* The last two sides, rows and columns, of its first parameter of so many elements; NULL: it is a vector. */
  void (*sides)(const sn_layer *layer, uint64_t elements, uint64_t sides[2]);
  /* The first side of that parameter, by which several GPUs share it. NULL: its rows, where it has no more than two. */
  uint64_t (*first_side)(const sn_layer *layer, uint64_t elements);
  /* Beside convolution kernels. x, y: bytes of one input and one output; weight: of an element of the weights. Biases
   * are added and reduced by kernels of their own. NULL: nothing runs. */
  sn_traffic (*traffic)(const sn_layer *layer, double x, double y, double weight);
  /* What tells measured times of one shape apart, " 3x3 s1x1 p1x1 g1 bias". NULL: nothing. */
  void (*describe)(const sn_attr *a, char *text, size_t room);
} sn_op_def;

extern const sn_op_def *const sn_op_table[SN_OP_COUNT];

static inline const sn_op_def *sn_op_of(const sn_layer *layer) {
  return sn_op_table[layer->op];
}

/* SN_OP_COUNT where the name is unknown (case ignored). */
sn_op sn_op_by_name(const char *name);

/* Of planes, strides and the like 0 is 1. */
static inline uint32_t sn_or_one(uint32_t size) {
  return size > 0 ? size : 1;
}

/* Names of an ACT's modes in network files, by sn_act_mode; of a SOFTMAX's losses, by sn_loss; of the axes of an image,
 * by sn_side. NULL at the end. */
const char *const *sn_act_names(void);
const char *const *sn_loss_names(void);
const char *const *sn_side_names(void);

/* Ahead of sn_op_shape(): sets the planes of its input among an operator's attributes. `planes` has those of every
 * input, 0 of an image. SN_BAD_INPUT where it takes no volumes, or not these together. */
sn_status sn_op_take_planes(sn_op op, sn_attr *attr, const sn_shape *inputs, const uint32_t *planes, uint32_t n_inputs,
                            sn_err *err);
/* Behind it: planes of the output, 0 of an image. */
uint32_t sn_op_planes(sn_op op, const sn_attr *attr);

/* Output shape of an operator from its attributes and input shapes. SN_BAD_INPUT with the reason, without the layer's
 * name: the caller adds it. */
sn_status sn_op_shape(sn_op op, const sn_attr *attr, const sn_shape *inputs, uint32_t n_inputs, sn_shape *out,
                      sn_err *err);

/* Fills parameters, macs, mask_bytes and statistics_bytes of a layer whose op, attr and out are set. Overflow is
 * SN_BAD_INPUT. */
sn_status sn_op_measure(sn_layer *layer, sn_shape input, sn_err *err);

/* Of an ATTENTION that was measured: a number for each query, key that it sees, and head. */
uint64_t sn_attention_scores(const sn_layer *layer);

/* Bytes of one tensor of this shape (float32); SN_BAD_INPUT where a dimension or the product is beyond the limits. */
sn_status sn_shape_bytes(sn_shape shape, uint64_t *bytes, sn_err *err);

#endif
