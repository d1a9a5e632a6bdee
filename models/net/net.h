/* Network: operators and the values that flow between them. Knows nothing of training order, gradients or devices.
 *
 *        value 0        value 1         value 2 --.            .--> value 5
 *  DATA ---------> CONV ---------> ACT            +--> JOIN ---+            (FORK: one input, one output per branch)
 *                                        value 3 --'
 *
 * A net is made once by sn_builder_finish() (models/build/build.h) and immutable from then on. Every value has exactly one
 * consumer: where the builder's user gave a layer's output to several, a FORK layer stands between (reference, section
 * 1). Only the output of SOFTMAX has no consumer. Layers are in declaration order; the order of training is the route's
 * (sim/graph/route.h). A value is a float32 tensor of images, channels, height and width; the batch may be 64-bit
 * numbers of tokens instead. A sequence is an image of one column: its positions are rows, the numbers of each position
 * its channels. A volume is an image whose planes lie one below the other: its height is planes times rows, and the
 * layer that makes it says how many planes there are. How a framework lays the axes out makes no difference to sizes.
 */
#ifndef SN_MODELS_NET_NET_H
#define SN_MODELS_NET_NET_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SN_NONE UINT32_MAX /* no layer, no value, no tensor */

/* What is always left to who has a network that cannot be taken as it is: the end of such a message. */
#define SN_RECORD_IT "record it: docs/record.md"

/* Limits that keep every later sum below 2^64, and bytes exact in any reader of JSON (2^53). */
#define SN_MAX_LAYERS    1250000u
#define SN_MAX_INPUTS    4000000u            /* of all declared layers together */
#define SN_MAX_DIM       16777216u           /* any of n, c, h, w */
#define SN_MAX_NET_BYTES (UINT64_C(1) << 52) /* all values, parameters and auxiliary state together */
#define SN_MAX_NET_MACS  (UINT64_C(1) << 60) /* multiply-adds of one forward */

/* All operators. models/op/op.h has the definition of each. */
#define SN_OPS(OP)                                                                                                     \
  OP(DATA) /* the input batch and its labels */                                                                        \
  OP(CONV)                                                                                                             \
  OP(FC)                                                                                                               \
  OP(POOL)                                                                                                             \
  OP(ACT) /* an element at a time: sn_act_mode */                                                                      \
  OP(LRN)                                                                                                              \
  OP(BN)                                                                                                               \
  OP(DROPOUT)                                                                                                          \
  OP(SOFTMAX)       /* with cross-entropy loss, or another one without a softmax: the end of a net */                  \
  OP(JOIN)          /* element-wise add of two or more */                                                              \
  OP(FORK)          /* one value to several consumers */                                                               \
  OP(CONCAT)        /* one or more along channels; of one it is a copy */                                              \
  OP(DECONV)        /* transposed convolution: a CONV whose forward and backward are swapped */                        \
  OP(MUL)           /* element-wise product of two, the second broadcast where it has one row, column or channel */    \
  OP(SCALE)         /* every channel times a parameter of its own */                                                   \
  OP(LAYER_NORM)    /* normalised over the channels of each position, then scaled and shifted */                       \
  OP(RMS_NORM)      /* divided by the root of the mean square of each position's channels, then scaled */              \
  OP(EMBEDDING)     /* a row of a table for each token of the batch */                                                 \
  OP(POSITION)      /* adds to each position a row of a table, the same for all images */                              \
  OP(TOKEN)         /* puts a learned position ahead of all others; they stand in one column then */                   \
  OP(TAKE)          /* the first position */                                                                           \
  OP(ATTENTION)     /* softmax(q k^T) v for every head: of queries, keys and values, or of one input of all three */   \
  OP(ROTARY)        /* pairs of channels turned by an angle that grows with the position */                            \
  OP(PROBABILITIES) /* exp(x) over its sum along an axis: a softmax that ends nothing */                               \
  OP(GROUP_NORM)    /* normalised over groups of channels of each image, then scaled and shifted by channel */         \
  OP(MATMUL)        /* a product of two matrices, rows by columns, for every channel of every image */                 \
  OP(RESHAPE)       /* an image's numbers in the same order, as another number of channels, rows and columns */        \
  OP(TRANSPOSE)     /* channels, rows and columns in another order */                                                  \
  OP(SLICE)         /* some channels, rows or columns, one behind the other */                                         \
  OP(PAD)           /* rows and columns of zeros around */                                                             \
  OP(RESIZE)        /* to another number of rows and columns */                                                        \
  OP(EXPERTS)       /* an FC of each position by weights that the data choose: `chosen` of `experts` sets of them */   \
  OP(GIVEN)    /* what comes with the batch beside it, or is computed of that: text beside images, a step's sines */   \
  OP(EXPAND)   /* the same numbers along sides of 1, as often as need be */                                            \
  OP(RECORDED) /* an operation of a recording (models/record/record.h), of which nothing else is known; */             \
  OP(RECORDED_HEAVY)  /* one that multiplies: products, convolutions, attention; */                                    \
  OP(RECORDED_CHEAP)  /* one that makes one tensor of one other: it is easily made again; */                           \
  OP(RECORDED_MASKED) /* and one beside whose tensor masks or statistics are kept: norms, dropout */

typedef enum sn_op {
#define SN_OP_NAME(name) SN_##name,
  SN_OPS(SN_OP_NAME) SN_OP_COUNT
#undef SN_OP_NAME
} sn_op;

typedef enum sn_pool_mode { SN_POOL_MAX, SN_POOL_AVERAGE } sn_pool_mode;
typedef enum sn_act_mode {
  SN_ACT_RELU,  /* max(x, 0) */
  SN_ACT_RELU6, /* that, but at most 6 */
  SN_ACT_LEAKY, /* x, below 0 slope x */
  SN_ACT_TANH,
  SN_ACT_SIGMOID,     /* 1 / (1 + exp(-x)) */
  SN_ACT_ELU,         /* x, below 0 exp(x) - 1 */
  SN_ACT_GELU,        /* x times the normal distribution's probability of less than x */
  SN_ACT_SILU,        /* x sigmoid(x), also called swish */
  SN_ACT_HARDSWISH,   /* x relu6(x + 3) / 6 */
  SN_ACT_HARDSIGMOID, /* relu6(x + 3) / 6 */
  SN_ACT_SOFTPLUS,    /* log(1 + exp(x)) */
  SN_ACT_MISH,        /* x tanh(softplus(x)) */
  SN_ACT_GELU_NEW,    /* GELU by a tanh, made of simple operations as GPT-2's authors wrote it */
  SN_ACT_TIMES,       /* slope x */
  SN_ACT_EXP,
  SN_ACT_SIN,
  SN_ACT_COS,
  SN_ACT_PRELU, /* x, below 0 times a parameter: one for all, or one a channel */
  SN_ACT_MODES
} sn_act_mode;

typedef enum sn_loss {
  SN_LOSS_CROSS_ENTROPY,      /* of classes, the channels */
  SN_LOSS_MSE,                /* the mean square of the difference to a target of the same shape */
  SN_LOSS_CROSS_ENTROPY_FP32, /* of classes, of inputs that eager dialects turn into float32 first, whatever the
                               * precision: the loss of Hugging Face's causal language models */
  SN_LOSSES
} sn_loss;

static inline bool sn_loss_is_of_classes(sn_loss loss) {
  return loss != SN_LOSS_MSE;
}

typedef enum sn_side { SN_SIDE_CHANNELS, SN_SIDE_HEIGHT, SN_SIDE_WIDTH, SN_SIDES } sn_side;

/* Whether the network's author has the output take the storage of the (first) input. Unset: as the dialect has it. */
typedef enum sn_inplace { SN_INPLACE_UNSET, SN_INPLACE_NO, SN_INPLACE_YES } sn_inplace;

/* Attributes; every operator reads only its own (in brackets). */
typedef struct sn_attr {
  uint32_t channels;               /* [CONV, DECONV, FC] output channels; [EXPERTS] those of one expert */
  uint32_t kernel_h, kernel_w;     /* [CONV, DECONV, POOL] */
  uint32_t stride_h, stride_w;     /* [CONV, DECONV, POOL] */
  uint32_t pad_h, pad_w;           /* [CONV, DECONV, POOL, PAD] on each side; of a DECONV's output */
  uint32_t output_pad_h;           /* [DECONV] rows of the output beyond the last window's, fewer than stride_h; [PAD]
                                    * rows behind, beside pad_h */
  uint32_t output_pad_w;           /* [DECONV, PAD] columns */
  uint32_t dilation_h, dilation_w; /* [CONV, DECONV, POOL: a maximum] from one row of the window to the next; 0: 1 */
  uint32_t kernel_d, stride_d, pad_d, output_pad_d, dilation_d; /* [as those above but PAD] along the planes of a
                                                                 * volume; 0, but of pads, is 1 */
  uint32_t planes;              /* of the volume that is its first input, set by the builder; 0: an image */
  uint32_t groups;              /* [CONV, DECONV, GROUP_NORM] >= 1 */
  bool bias;                    /* [CONV, DECONV, FC] */
  bool positions;               /* [FC, SOFTMAX] of each position, not of the whole image */
  bool router;                  /* [FC] chooses experts: transformers holds its weights in no torch.nn.Linear, so that
                                 * adapters and 4 bits pass it over */
  uint32_t weights_of;          /* [with parameters] the layer, as declared, whose parameters it takes; 0: its own */
  uint32_t rows;                /* [EMBEDDING, POSITION] of the table; [ATTENTION] of one with a number a head, which
                                 * is added to the scores by distance (below); 0: none */
  uint32_t window;              /* [ATTENTION] positions see those in the same square of so many rows and columns;
                                 * 0: all */
  uint32_t shift;               /* [ATTENTION] windows lie so many rows and columns further on; what of the last ones
                                 * is beyond the image is its first rows and columns, seen from there alone */
  uint32_t shape[SN_SIDES];     /* [RESHAPE] of the output, one of them 0: what is left; [GIVEN, EXPAND] of it;
                                 * [RESIZE] rows and columns, both 0: `scale` times as many */
  bool once;                    /* [GIVEN] the same for all images: what is made of it alone is of one image */
  uint32_t scale;               /* [RESIZE] */
  bool bilinear;                /* [RESIZE] not the nearest pixel's value but a mean of four */
  sn_side axes[SN_SIDES];       /* [TRANSPOSE] of the input, in the order of the output's */
  sn_side axis;                 /* [PROBABILITIES, SLICE] along it */
  uint32_t first, count;        /* [SLICE] along the axis */
  uint32_t step;                /* [SLICE] from one to the next; 0 is 1 */
  uint32_t experts, chosen;     /* [EXPERTS] sets of weights; how many of them a position goes through: its input has
                                 * as many parts, one behind the other, and its output, too */
  bool turned;                  /* [SLICE] the last one first; a copy, while others may be views. [FC] it reads what an
                                 * attention made, turned around: in four bytes a copy, which PyTorch keeps */
  bool apart;                   /* [FC with a bias] its input is not in order, so that PyTorch adds the bias apart */
  bool turn_first, turn_second; /* [MATMUL] an operand's rows are its columns */
  uint32_t heads, kv_heads;     /* [ATTENTION] of queries; of keys and values, which divides the former; [ROTARY]
                                 * of the channels, 0 is 1 */
  uint32_t keys;                /* [ATTENTION of three inputs] positions of keys and values; 0: as many as queries */
  bool causal;                  /* [ATTENTION] a position sees those up to itself */
  bool fused;        /* [RMS_NORM] one kernel, as nn.RMSNorm; else Hugging Face's simple operations. [ATTENTION
                                 * in parts] scale, mask and softmax are one kernel, in the width of the scores */
  bool plus_one;     /* [RMS_NORM, not fused] Gemma's: factors are 1 + its parameters, which back ends hold
                                 * as their sum, and multiply in four bytes */
  bool parts;        /* [ATTENTION] by a kernel for each product and the softmax, not by a single one */
  bool named;        /* [TOKEN] the model's Python has a name for what it makes until what the TAKE takes of is made */
  bool seedless;     /* [ATTENTION, not in parts] PyTorch's kernel for a CPU, which keeps no seeds */
  sn_pool_mode pool; /* [POOL] */
  bool ceil;         /* [POOL] output size rounds up */
  bool global;       /* [POOL] the window is the whole image; kernel, stride and pad are ignored */
  uint32_t adaptive_h, adaptive_w; /* [POOL] output size, the windows follow from it (below); both 0: not adaptive */
  uint32_t adaptive_d;             /* [POOL] planes of the output then; 0: those of the input */
  sn_act_mode act;                 /* [ACT] */
  uint32_t slopes;                 /* [ACT] of SN_ACT_PRELU: 1, or as many as there are channels */
  sn_loss loss;                    /* [SOFTMAX] */
  sn_inplace inplace;              /* [ACT, JOIN, DROPOUT] */
  uint32_t lrn_size;               /* [LRN] window across channels */
  double lrn_alpha, lrn_beta, lrn_k;
  double slope; /* [ACT] of SN_ACT_LEAKY, 0 or more, and SN_ACT_TIMES */
  double ratio; /* [DROPOUT, ATTENTION: of probabilities] share of elements dropped, 0 <= ratio < 1 */
  double cap;   /* [ATTENTION in parts that drops none] scores s are cap tanh(s / cap), ahead of what a table adds; 0:
                 * as they are */
  bool images;  /* [DROPOUT] drops whole images: stochastic depth */
} sn_attr;

/* Window i of an adaptive POOL that makes `out` of `in` positions covers floor(i in / out) to ceil((i + 1) in / out) -
 * 1, PyTorch's rule: where `out` divides `in` it is an ordinary POOL of kernel and stride in / out, else its windows
 * differ in size and overlap. */

/* The row of an ATTENTION's table for query i and key j. Within windows there is one for each distance of rows and
 * columns, (2 window - 1)^2: (row of i - row of j + window - 1) (2 window - 1) + column of i - column of j + window -
 * 1, as Swin Transformers have it. Else T5's buckets: causal `rows`, where j is not behind i; else half of the rows for
 * these and half for j behind i. Of n rows the first n / 2 are of distances 0 to n / 2 - 1, and the others grow with
 * the logarithm up to 128. */

typedef struct sn_shape {
  uint32_t n, c, h, w;
} sn_shape;

/* Whether a layer's parameters are trained. */
typedef enum sn_tuning {
  SN_TUNED,         /* yes, where nobody freezes them (sim/graph/freeze.h) */
  SN_TUNED_IF_SAID, /* of a network with adapters: only where somebody says what is frozen, and it is not this */
  SN_TUNED_NEVER,   /* behind an adapter */
  SN_TUNED_ALWAYS   /* an adapter's own */
} sn_tuning;

typedef struct sn_layer {
  const char *name;    /* unique in the net */
  const sn_attr *attr; /* layers that are alike have the same */
  sn_op op;
  sn_tuning tuning;
  bool nf4;                         /* its weights, which are not trained, have 4 bits: models/build/lora.h */
  uint32_t first_input, n_inputs;   /* net->inputs[first_input ..]: value ids */
  uint32_t first_output, n_outputs; /* net->values[first_output ..]: one, or one per branch of a FORK */
  sn_shape out;                     /* shape of each output */
  uint32_t planes;                  /* of the volume that each output is, among its rows; 0: an image */
  uint64_t parameters;              /* trainable elements */
  uint64_t macs;       /* multiply-adds of one forward, whole batch; CONV, DECONV, FC, EXPERTS, ATTENTION, MATMUL */
  uint64_t mask_bytes; /* DROPOUT: one byte an element, of whole images 4 an image */
  uint64_t statistics_bytes; /* BN: running and saved mean and variance, 4 x channels x 4 bytes; LAYER_NORM: the
                              * saved ones, 2 x positions x 4 bytes; RMS_NORM half of that; GROUP_NORM 2 x groups
                              * x images x 4 bytes; ATTENTION: what it saves beside its operands */
} sn_layer;

/* What the library that has the model calls a layer's module. */
typedef struct sn_named_module {
  const char *path;  /* as model.named_modules() has it */
  const char *block; /* of the smallest module that the model repeats and the layer is in, "layer1.0"; NULL: in none */
} sn_named_module;

typedef enum sn_dtype { SN_F32, SN_I64 } sn_dtype;

typedef struct sn_value {
  uint32_t producer;       /* layer */
  uint32_t consumer;       /* layer, SN_NONE for the output of SOFTMAX */
  uint32_t consumer_input; /* which input of the consumer */
  sn_dtype dtype;
  uint64_t bytes; /* n * c * h * w elements */
} sn_value;

typedef struct sn_net {
  const char *name;
  uint32_t batch;
  uint32_t n_layers, n_values; /* DATA and FORKs included; layers[0] is DATA */
  const sn_layer *layers;
  const sn_named_module *modules; /* by layer; NULL: of no library, layers' names are their paths */
  const sn_value *values;
  const uint32_t *inputs;     /* value ids, layer by layer */
  uint64_t parameters;        /* trainable elements in all */
  uint64_t macs;              /* multiply-adds of one forward of the whole batch */
  uint64_t data_bytes;        /* the input batch */
  const char *inference_only; /* why it cannot be trained as it is, and what to do; NULL: it can */
  bool transformers;          /* a module of Hugging Face's transformers: its users have that library's defaults */
  bool adapted;               /* it has adapters: not all that has parameters is SN_TUNED */
  uint64_t label_bytes;       /* one 4-byte label an image, or a position; of a SOFTMAX of SN_LOSS_MSE a target */
  uint64_t wide_label_bytes;  /* the same where labels have 8 bytes, as PyTorch's */
  const struct sn_recorded *recorded; /* models/record/record_net.h; NULL: it is described by its layers */
  struct sn_arena *arena;
} sn_net;

void sn_net_free(sn_net *net);

/* SN_BAD_INPUT with the reason where the network is to be trained and cannot be as it is. */
sn_status sn_net_check_training(const sn_net *net, bool inference, sn_err *err);

/* The same network for another batch, of at least 1: what making it anew with that batch gives, in a fraction of the
 * time, as long as nothing of it but its sizes is made of the batch. It looks at the names of `net`, which must outlive
 * it. SN_BAD_INPUT where it is too large; SN_NO_MEMORY. */
sn_net *sn_net_rebatch(const sn_net *net, uint32_t batch, sn_err *err);

/* The input value of a layer's i-th input, and the shape it has. */
static inline const sn_value *sn_layer_input(const sn_net *net, const sn_layer *layer, uint32_t i) {
  return &net->values[net->inputs[layer->first_input + i]];
}
static inline sn_shape sn_layer_input_shape(const sn_net *net, const sn_layer *layer, uint32_t i) {
  return net->layers[sn_layer_input(net, layer, i)->producer].out;
}
/* Rows of an output: of one plane where it is a volume. */
static inline uint32_t sn_layer_rows(const sn_layer *layer) {
  return layer->planes > 1 ? layer->out.h / layer->planes : layer->out.h;
}
/* An ACT that has parameters. */
static inline bool sn_layer_is_prelu(const sn_layer *layer) {
  return layer->op == SN_ACT && layer->attr->act == SN_ACT_PRELU;
}

/* The declared layer whose output the i-th input is, or a copy of whose output FORKs made. */
static inline uint32_t sn_layer_source(const sn_net *net, const sn_layer *layer, uint32_t i) {
  uint32_t source = sn_layer_input(net, layer, i)->producer;
  while (net->layers[source].op == SN_FORK) source = sn_layer_input(net, &net->layers[source], 0)->producer;
  return source;
}

/* A JOIN that adds what an adapter makes to what its product has made (models/build/lora.h). */
static inline bool sn_layer_adds_adapter(const sn_net *net, const sn_layer *layer) {
  if (layer->op != SN_JOIN) return false;
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    const sn_layer *scaled = &net->layers[sn_layer_source(net, layer, i)];
    if (scaled->op == SN_ACT && net->layers[sn_layer_source(net, scaled, 0)].tuning == SN_TUNED_ALWAYS) return true;
  }
  return false;
}

#endif
