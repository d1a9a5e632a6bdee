/* Shapes and counts of operators with windows (models/op/op_window.c), on sequences (models/op/op_sequence.c) and of those
 * that multiply and rearrange (models/op/op_arrange.c), called by the table's (models/op/op.c), and what all use. */
#ifndef SN_MODELS_OP_OP_INTERNAL_H
#define SN_MODELS_OP_OP_INTERNAL_H

#include "models/op/op.h"

sn_status sn__check_range(const char *what, uint32_t value, uint32_t low, sn_err *err);
/* False where the product passes `limit`. */
bool sn__product_within(const uint64_t *factors, size_t count, uint64_t limit, uint64_t *product);
sn_status sn__fail_too_large(const char *what, sn_err *err);

/* Parameters and multiply-adds of a layer whose weights, so many along each axis, each of `positions` uses once. */
sn_status sn__set_weights(sn_layer *layer, const uint64_t *weights, size_t count, uint64_t positions, sn_err *err);

sn_status sn__conv_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__deconv_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__pool_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__conv_measure(sn_layer *layer, sn_shape in, sn_err *err);
sn_status sn__deconv_measure(sn_layer *layer, sn_shape in, sn_err *err);
/* Planes that windows and a POOL make of those of the input, which sn__conv_shape() and the like have passed. */
uint32_t sn__conv_planes(const sn_attr *a);
uint32_t sn__deconv_planes(const sn_attr *a);
uint32_t sn__pool_planes(const sn_attr *a);

sn_status sn__embedding_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__position_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__token_shape(sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__rotary_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__attention_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err);
/* `out` is set; every position is taken to see all keys, of which there are as many as positions, or its window's. */
sn_status sn__experts_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__experts_measure(sn_layer *layer, sn_shape in, sn_err *err);
sn_status sn__attention_measure(sn_layer *layer, sn_err *err);

sn_status sn__group_norm_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__matmul_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err);
sn_status sn__matmul_measure(sn_layer *layer, sn_shape first, sn_err *err);
sn_status sn__reshape_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__transpose_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__slice_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__pad_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);
sn_status sn__resize_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err);

#endif
