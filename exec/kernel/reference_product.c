/* Reference kernels of products of elements: MUL by a factor that may have one row, column or channel, and SCALE by a
 * parameter a channel. A factor's gradient is the sum over all that it multiplies. */
#include "exec/kernel/reference_internal.h"

/* The element of the factor that multiplies element (n, c, h, w). */
static uint64_t factor_at(sn_shape f, uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
  return sn__at(f, n, f.c == 1 ? 0 : c, f.h == 1 ? 0 : h, f.w == 1 ? 0 : w);
}

/* to = from * factor, element by element. */
static void multiply(sn_shape s, sn_shape f, const float *from, const float *factor, float *to) {
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++)
      for (uint32_t h = 0; h < s.h; h++)
        for (uint32_t w = 0; w < s.w; w++) {
          uint64_t at = sn__at(s, n, c, h, w);
          to[at] = (float)((double)from[at] * factor[factor_at(f, n, c, h, w)]);
        }
}

/* The sum of what element (fc, fh, fw) of image n's factor multiplies, times dy. */
static double factor_gradient(const sn_call *call, sn_shape f, uint32_t n, uint32_t fc, uint32_t fh, uint32_t fw) {
  sn_shape s = sn__call_layer(call)->out;
  double sum = 0;
  for (uint32_t c = f.c == 1 ? 0 : fc; c < (f.c == 1 ? s.c : fc + 1); c++)
    for (uint32_t h = f.h == 1 ? 0 : fh; h < (f.h == 1 ? s.h : fh + 1); h++)
      for (uint32_t w = f.w == 1 ? 0 : fw; w < (f.w == 1 ? s.w : fw + 1); w++) {
        uint64_t at = sn__at(s, n, c, h, w);
        sum += (double)call->dy[0][at] * call->x[0][at];
      }
  return sum;
}

void sn__reference_mul_forward(const sn_call *call) {
  multiply(sn__call_layer(call)->out, sn__call_input(call, 1), call->x[0], call->x[1], call->y[0]);
}

void sn__reference_mul_backward(const sn_call *call) {
  sn_shape f = sn__call_input(call, 1);
  for (uint32_t n = 0; n < f.n; n++)
    for (uint32_t c = 0; c < f.c; c++)
      for (uint32_t h = 0; h < f.h; h++)
        for (uint32_t w = 0; w < f.w; w++)
          call->dx[1][sn__at(f, n, c, h, w)] = (float)factor_gradient(call, f, n, c, h, w);
  multiply(sn__call_layer(call)->out, f, call->dy[0], call->x[1], call->dx[0]);
}

static void scale(const sn_call *call, const float *from, float *to) {
  sn_shape s = sn__call_layer(call)->out;
  for (uint64_t i = 0; i < sn__count(s); i++)
    to[i] = (float)((double)from[i] * call->parameters[i / sn__plane(s) % s.c]);
}

void sn__reference_scale_forward(const sn_call *call) {
  scale(call, call->x[0], call->y[0]);
}

void sn__reference_scale_backward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  for (uint32_t c = 0; c < s.c; c++) {
    double sum = 0;
    for (uint32_t n = 0; n < s.n; n++)
      for (uint64_t i = 0; i < sn__plane(s); i++)
        sum += (double)call->dy[0][sn__at(s, n, c, 0, i)] * call->x[0][sn__at(s, n, c, 0, i)];
    call->gradients[c] = (float)sum;
  }
  scale(call, call->dy[0], call->dx[0]);
}
