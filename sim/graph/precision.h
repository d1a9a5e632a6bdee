/* Precision: in how many bytes an iteration holds what (frameworks, section 6).
 *
 *   fp32        four bytes everywhere
 *   tf32        the same; products of matrices and convolutions run on tensor cores, which round their operands
 *   tf32-conv   the same of convolutions alone, where the device has tensor cores for it: PyTorch as it starts
 *   bf16        two bytes everywhere: parameters, gradients, optimizer states, values (a model made .bfloat16())
 *   fp16        the same (.half())
 *   amp-bf16    PyTorch's autocast: parameters, their gradients and states have four bytes; what an operation takes and
 *   amp-fp16    makes is by its kind, below; weights are cast once an iteration, and the copies live until forward is
 *               over, or the backward of whoever keeps them. fp16 adds a loss scaler
 *
 *   kind (autocast's lists, of a GPU)                takes                  makes
 *   CONV, DECONV, FC, MATMUL, ATTENTION              2 bytes                2
 *   LAYER_, GROUP_ and RMS_NORM, PROBABILITIES,      4                      4
 *   RESIZE, softplus, exp
 *   SOFTMAX                                          what there is          the same, and a copy in 4
 *   CONCAT                                           its widest input's     the same
 *   TOKEN (beside a parameter)                       4                      4
 *   JOIN, MUL                                        what there is          the widest; in place, its own
 *   SCALE, POSITION, EMBEDDING, LRN                  what there is          4
 *   all others                                       what there is          the same
 *
 * A value that is taken in another width than it was made in is copied by its reader, which keeps the copy where it
 * would have kept the value; its gradient is made in the width in which backward works and copied back by a step of its
 * own (sim/graph/route_cast.c). Statistics of norms, indices, labels and tokens are what they are whatever the
 * precision. Hugging Face's RMS_NORM works in four bytes of bf16 and fp16 as well, in eager dialects: in others, and
 * where the layer says that it is fused, it is one kernel, which takes and makes two.
 *
 * Autocast is of eager dialects only; of bf16 and fp16 all have rules but SINGA's, which trains in four bytes.
 */
#ifndef SN_SIM_GRAPH_PRECISION_H
#define SN_SIM_GRAPH_PRECISION_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/graph/dialect.h"
#include "sim/graph/optimizer.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_precision {
  SN_FP32,
  SN_TF32,
  SN_TF32_CONV,
  SN_BF16,
  SN_FP16,
  SN_AMP_BF16,
  SN_AMP_FP16,
  SN_PRECISION_COUNT
} sn_precision;

/* "fp32", "tf32", ..; parsing an unknown name is SN_BAD_USAGE, with all of them. */
const char *sn_precision_name(sn_precision precision);
sn_status sn_precision_parse(const char *text, sn_precision *precision, sn_err *err);

static inline bool sn_precision_is_amp(sn_precision precision) {
  return precision == SN_AMP_BF16 || precision == SN_AMP_FP16;
}

/* Bytes are those of fp32. */
static inline bool sn_precision_is_wide(sn_precision precision) {
  return precision <= SN_TF32_CONV;
}

/* Bytes of a parameter, of its gradient and of an optimizer state's element. */
static inline uint32_t sn_precision_parameter_bytes(sn_precision precision) {
  return precision == SN_BF16 || precision == SN_FP16 ? 2 : 4;
}

/* The same for a number of bytes that is known for fp32. */
static inline uint64_t sn_precision_of_parameters(sn_precision precision, uint64_t fp32_bytes) {
  return fp32_bytes / 4 * sn_precision_parameter_bytes(precision);
}

/* The input batch, whose images have the width of parameters; tokens stay 64-bit numbers. */
uint64_t sn_precision_data_bytes(sn_precision precision, const sn_net *net);

/* sn_parameter_tensors() in this precision; weights of 4 bits take what they do in any. */
uint32_t sn_precision_parameter_tensors(sn_precision precision, const sn_layer *layer,
                                        uint64_t bytes[SN_PARAMETER_TENSORS]);

/* What a product makes of weights of 4 bits, in its own width; 0: it has none. */
uint64_t sn_precision_dequantized_bytes(sn_precision precision, const sn_layer *layer);

/* Weights and bias are cast ahead of it. */
bool sn_precision_casts_weights(sn_precision precision, const sn_layer *layer);

/* Bytes that a layer keeps for its backward beside the graph, where they are no tensors of it: masks and statistics.
 * Running statistics have the width of parameters; probabilities, and masks of whole images, that of values. */
uint64_t sn_precision_beside_bytes(sn_precision precision, const sn_layer *layer);

/* Bytes of an element, per value: as its maker makes it, as its reader takes it, and as its reader's backward makes the
 * gradient. All NULL where they are those of fp32. */
typedef struct sn_widths {
  sn_precision precision;
  bool eager, narrow_loss, wide_loss;
  uint8_t *made, *taken, *gradient;
} sn_widths;

/* Of an eager dialect or another. O(layers + values); to be cleared in every case. */
sn_status sn_widths_make(sn_widths *widths, const sn_net *net, sn_precision precision, bool eager, sn_err *err);
/* The same, of what a dialect trains or only runs. */
sn_status sn_widths_make_of(sn_widths *widths, const sn_net *net, sn_precision precision, const sn_dialect *dialect,
                            bool inference, sn_err *err);
void sn_widths_clear(sn_widths *widths);

/* A cross-entropy that copies its log-softmax into four bytes. PyTorch names the type of the softmax, that of the
 * logits, so that autocast leaves it alone; what is taken of it is in autocast's list of those in four bytes. */
bool sn_widths_casts_loss(const sn_widths *widths, const sn_net *net, const sn_layer *layer);

/* Bytes of a value where an element has so many; tokens have eight. */
static inline uint64_t sn_width_bytes(const sn_value *value, uint8_t width) {
  return value->dtype == SN_I64 ? value->bytes : value->bytes / 4 * width;
}

/* What sn_saving_bytes() says of fp32, of a layer in its widths. */
uint64_t sn_widths_saving_bytes(const sn_widths *widths, const sn_net *net, uint32_t layer, sn_saving saving,
                                uint32_t index, uint64_t fp32_bytes);

/* Bytes of a tensor as large as a layer's output that its backward makes and drops. */
uint64_t sn_widths_scratch_bytes(const sn_widths *widths, const sn_net *net, uint32_t layer);

#endif
