/* Reference kernels of PAD and RESIZE. The latter's pixels are means of up to four of the input's, which
 * kernel_internal.h says; backward, each of these gets its share. */
#include "exec/kernel/reference_internal.h"

#include <stdlib.h>
#include <string.h>

void sn__reference_pad_forward(const sn_call *call) {
  const sn_attr *a = sn__call_layer(call)->attr;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  for (uint64_t i = 0; i < sn__count(out); i++) call->y[0][i] = 0;
  for (uint32_t n = 0; n < in.n; n++)
    for (uint32_t c = 0; c < in.c; c++)
      for (uint32_t h = 0; h < in.h; h++)
        for (uint32_t w = 0; w < in.w; w++)
          call->y[0][sn__at(out, n, c, h + a->pad_h, w + a->pad_w)] = call->x[0][sn__at(in, n, c, h, w)];
}

void sn__reference_pad_backward(const sn_call *call) {
  const sn_attr *a = sn__call_layer(call)->attr;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  for (uint32_t n = 0; n < in.n; n++)
    for (uint32_t c = 0; c < in.c; c++)
      for (uint32_t h = 0; h < in.h; h++)
        for (uint32_t w = 0; w < in.w; w++)
          call->dx[0][sn__at(in, n, c, h, w)] = call->dy[0][sn__at(out, n, c, h + a->pad_h, w + a->pad_w)];
}

void sn__reference_resize_forward(const sn_call *call) {
  const bool bilinear = sn__call_layer(call)->attr->bilinear;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  for (uint64_t plane = 0; plane < (uint64_t)in.n * in.c; plane++)
    for (uint32_t h = 0; h < out.h; h++)
      for (uint32_t w = 0; w < out.w; w++) {
        const sn__mean rows = sn__resized(h, out.h, in.h, bilinear), columns = sn__resized(w, out.w, in.w, bilinear);
        const float *x = call->x[0] + plane * sn__plane(in);
        double sum = 0;
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 2; j++) sum += rows.weight[i] * columns.weight[j] * x[rows.at[i] * in.w + columns.at[j]];
        call->y[0][plane * sn__plane(out) + (uint64_t)h * out.w + w] = (float)sum;
      }
}

sn_status sn__reference_resize_backward(const sn_call *call, sn_err *err) {
  const bool bilinear = sn__call_layer(call)->attr->bilinear;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  double *sums = malloc(sn__plane(in) * sizeof *sums);
  if (!sums) return sn_fail_memory(err);
  for (uint64_t plane = 0; plane < (uint64_t)in.n * in.c; plane++) {
    const float *dy = call->dy[0] + plane * sn__plane(out);
    for (uint64_t i = 0; i < sn__plane(in); i++) sums[i] = 0;
    for (uint32_t h = 0; h < out.h; h++)
      for (uint32_t w = 0; w < out.w; w++) {
        const sn__mean rows = sn__resized(h, out.h, in.h, bilinear), columns = sn__resized(w, out.w, in.w, bilinear);
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 2; j++)
            sums[rows.at[i] * in.w + columns.at[j]] += rows.weight[i] * columns.weight[j] * dy[(uint64_t)h * out.w + w];
      }
    for (uint64_t i = 0; i < sn__plane(in); i++) call->dx[0][plane * sn__plane(in) + i] = (float)sums[i];
  }
  free(sums);
  return SN_OK;
}
