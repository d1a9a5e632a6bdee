/* Fake cuDNN's arithmetic: plain loops in float64 over NCHW. Every result is alpha * computed + beta * what was there,
 * where beta 0 does not read; see blend(). */
#ifndef FAKE_MATH_H
#define FAKE_MATH_H

#include <stdint.h>

typedef struct shape {
  int n, c, h, w;
} shape;

static inline int64_t shape_plane(shape s) {
  return (int64_t)s.h * s.w;
}
static inline int64_t shape_image(shape s) {
  return s.c * shape_plane(s);
}
static inline int64_t shape_count(shape s) {
  return s.n * shape_image(s);
}

typedef struct scales {
  double alpha, beta;
} scales;

static inline void blend(float *to, double value, scales s) {
  *to = (float)(s.alpha * value + (s.beta == 0 ? 0 : s.beta * (double)*to));
}

/* Windows of convolutions and pooling. */
typedef struct window {
  int kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, groups;
} window;

/* w is outputs x inputs of a group x kernel. */
void math_conv_forward(const float *x, shape xs, const float *w, float *y, shape ys, window v, scales s);
void math_conv_data(const float *w, const float *dy, shape ys, float *dx, shape xs, window v, scales s);
void math_conv_filter(const float *x, shape xs, const float *dy, shape ys, float *dw, window v, scales s);

void math_pool_forward(const float *x, shape xs, float *y, shape ys, window v, int average, scales s);
void math_pool_backward(const float *y, const float *dy, shape ys, const float *x, float *dx, shape xs, window v,
                        int average, scales s);

typedef struct lrn {
  int size;
  double alpha, beta, k;
} lrn;

void math_lrn_forward(const float *x, float *y, shape s, lrn l, scales z);
void math_lrn_backward(const float *y, const float *dy, const float *x, float *dx, shape s, lrn l, scales z);

typedef struct norm {
  const float *gamma, *offset;
  float *running_mean, *running_variance; /* or NULL */
  float *saved_mean, *saved_inverse;
  float *dgamma, *doffset;
  double factor, epsilon;
} norm;

void math_bn_forward(const float *x, float *y, shape s, norm b, scales z);
void math_bn_backward(const float *x, const float *dy, float *dx, shape s, norm b, scales data, scales parameters);

void math_softmax(const float *x, float *y, shape s, scales z);
/* db[c] = sum over everything else. */
void math_bias(const float *dy, shape s, float *db, scales z);

#endif
