/* CPU kernels of PAD and RESIZE, in loops of ours. Values are plain. Threads share planes, so every number is one
 * thread's; where several of a RESIZE's gradients meet they do so row by row. */
#include "exec/cpu/cpu.h"

#include <string.h>

static const float *row_of(const float *tensor, sn_shape s, uint64_t plane, uint64_t row) {
  return tensor + (plane * s.h + row) * s.w;
}

static void pad_plane(const sn_call *call, sn_shape in, sn_shape out, uint64_t plane) {
  const sn_attr *a = sn__call_layer(call)->attr;
  float *y = call->y[0] + plane * sn__plane(out);
  memset(y, 0, sn__plane(out) * sizeof *y);
  for (uint64_t h = 0; h < in.h; h++)
    memcpy(y + (h + a->pad_h) * out.w + a->pad_w, row_of(call->x[0], in, plane, h), in.w * sizeof *y);
}

void sn__cpu_pad_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  const uint64_t planes = (uint64_t)in.n * in.c;
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint64_t plane = 0; plane < planes; plane++) pad_plane(call, in, out, plane);
}

static void cut_plane(const sn_call *call, sn_shape in, sn_shape out, uint64_t plane) {
  const sn_attr *a = sn__call_layer(call)->attr;
  float *dx = call->dx[0] + plane * sn__plane(in);
  for (uint64_t h = 0; h < in.h; h++)
    memcpy(dx + h * in.w, row_of(call->dy[0], out, plane, h + a->pad_h) + a->pad_w, in.w * sizeof *dx);
}

void sn__cpu_pad_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  const uint64_t planes = call->dx[0] ? (uint64_t)in.n * in.c : 0;
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint64_t plane = 0; plane < planes; plane++) cut_plane(call, in, out, plane);
}

static void resize_plane(const sn_call *call, sn_shape in, sn_shape out, uint64_t plane) {
  const bool bilinear = sn__call_layer(call)->attr->bilinear;
  for (uint32_t h = 0; h < out.h; h++) {
    const sn__mean rows = sn__resized(h, out.h, in.h, bilinear);
    const float *above = row_of(call->x[0], in, plane, rows.at[0]), *below = row_of(call->x[0], in, plane, rows.at[1]);
    const float upper = (float)rows.weight[0], lower = (float)rows.weight[1];
    float *y = call->y[0] + (plane * out.h + h) * out.w;
    for (uint32_t w = 0; w < out.w; w++) {
      const sn__mean columns = sn__resized(w, out.w, in.w, bilinear);
      const float left = (float)columns.weight[0], right = (float)columns.weight[1];
      y[w] = upper * (left * above[columns.at[0]] + right * above[columns.at[1]]) +
             lower * (left * below[columns.at[0]] + right * below[columns.at[1]]);
    }
  }
}

void sn__cpu_resize_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  const uint64_t planes = (uint64_t)in.n * in.c;
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint64_t plane = 0; plane < planes; plane++) resize_plane(call, in, out, plane);
}

static void share_plane(const sn_call *call, sn_shape in, sn_shape out, uint64_t plane) {
  const bool bilinear = sn__call_layer(call)->attr->bilinear;
  float *dx = call->dx[0] + plane * sn__plane(in);
  memset(dx, 0, sn__plane(in) * sizeof *dx);
  for (uint32_t h = 0; h < out.h; h++) {
    const sn__mean rows = sn__resized(h, out.h, in.h, bilinear);
    const float *dy = row_of(call->dy[0], out, plane, h);
    float *above = dx + rows.at[0] * in.w, *below = dx + rows.at[1] * in.w;
    for (uint32_t w = 0; w < out.w; w++) {
      const sn__mean columns = sn__resized(w, out.w, in.w, bilinear);
      for (int i = 0; i < 2; i++) {
        const float part = (float)columns.weight[i] * dy[w];
        above[columns.at[i]] += (float)rows.weight[0] * part;
        below[columns.at[i]] += (float)rows.weight[1] * part;
      }
    }
  }
}

void sn__cpu_resize_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  const uint64_t planes = call->dx[0] ? (uint64_t)in.n * in.c : 0;
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint64_t plane = 0; plane < planes; plane++) share_plane(call, in, out, plane);
}
