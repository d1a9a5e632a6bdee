/* The reference kernels by operator; exec/kernel/reference.c chooses. Internal to exec/. */
#ifndef SN_EXEC_KERNEL_REFERENCE_INTERNAL_H
#define SN_EXEC_KERNEL_REFERENCE_INTERNAL_H

#include "base/err.h"
#include "exec/kernel/kernel_internal.h"

/* Offset of an element in an NCHW tensor. */
static inline uint64_t sn__at(sn_shape s, uint64_t n, uint64_t c, uint64_t h, uint64_t w) {
  return ((n * s.c + c) * s.h + h) * s.w + w;
}

/* The windows along one side that cover input position `in`: from .. to - 1. */
static inline sn__span sn__covering(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t out) {
  int64_t last = (int64_t)in + pad, first = last - kernel + 1;
  int64_t to = last / stride + 1;
  return (sn__span){.from = first > 0 ? (first + stride - 1) / stride : 0, .to = to < out ? to : out};
}

void sn__reference_conv_forward(const sn_call *call);
void sn__reference_conv_backward(const sn_call *call);
void sn__reference_deconv_forward(const sn_call *call);
void sn__reference_deconv_backward(const sn_call *call);
void sn__reference_fc_forward(const sn_call *call);
void sn__reference_fc_backward(const sn_call *call);
void sn__reference_pool_forward(const sn_call *call);
void sn__reference_pool_backward(const sn_call *call);
void sn__reference_act_forward(const sn_call *call);
void sn__reference_act_backward(const sn_call *call);
void sn__reference_lrn_forward(const sn_call *call);
sn_status sn__reference_lrn_backward(const sn_call *call, sn_err *err);
void sn__reference_bn_forward(const sn_call *call);
void sn__reference_bn_backward(const sn_call *call);
void sn__reference_dropout_forward(const sn_call *call);
void sn__reference_dropout_backward(const sn_call *call);
void sn__reference_softmax_forward(const sn_call *call);
void sn__reference_softmax_backward(const sn_call *call);
void sn__reference_join_forward(const sn_call *call);
void sn__reference_join_backward(const sn_call *call);
void sn__reference_fork_forward(const sn_call *call);
void sn__reference_fork_backward(const sn_call *call);
void sn__reference_concat_forward(const sn_call *call);
void sn__reference_concat_backward(const sn_call *call);
void sn__reference_mul_forward(const sn_call *call);
void sn__reference_mul_backward(const sn_call *call);
void sn__reference_scale_forward(const sn_call *call);
void sn__reference_scale_backward(const sn_call *call);
void sn__reference_fc_positions_forward(const sn_call *call);
void sn__reference_fc_positions_backward(const sn_call *call);
void sn__reference_row_norm_forward(const sn_call *call);
sn_status sn__reference_row_norm_backward(const sn_call *call, sn_err *err);
void sn__reference_embedding_forward(const sn_call *call);
void sn__reference_embedding_backward(const sn_call *call);
void sn__reference_position_forward(const sn_call *call);
void sn__reference_position_backward(const sn_call *call);
void sn__reference_token_forward(const sn_call *call);
void sn__reference_token_backward(const sn_call *call);
void sn__reference_take_forward(const sn_call *call);
void sn__reference_take_backward(const sn_call *call);
void sn__reference_rotary_forward(const sn_call *call);
void sn__reference_rotary_backward(const sn_call *call);
void sn__reference_arrange_forward(const sn_call *call); /* RESHAPE, TRANSPOSE, SLICE */
void sn__reference_arrange_backward(const sn_call *call);
void sn__reference_pad_forward(const sn_call *call);
void sn__reference_pad_backward(const sn_call *call);
void sn__reference_resize_forward(const sn_call *call);
sn_status sn__reference_resize_backward(const sn_call *call, sn_err *err);
void sn__reference_matmul_forward(const sn_call *call);
void sn__reference_matmul_backward(const sn_call *call);
void sn__reference_probabilities_forward(const sn_call *call);
void sn__reference_probabilities_backward(const sn_call *call);
void sn__reference_group_norm_forward(const sn_call *call);
sn_status sn__reference_group_norm_backward(const sn_call *call, sn_err *err);
sn_status sn__reference_attention(const sn_call *call, sn_err *err); /* forward or backward */

#endif
