/* Fake cuDNN's arithmetic; see math.h. Written apart from exec/reference*.c on purpose: the tests compare the two. */
#include "tests/fake_cuda/math.h"

#include <math.h>

static int64_t at(shape s, int n, int c, int h, int w) {
  return (((int64_t)n * s.c + c) * s.h + h) * s.w + w;
}

/* Where a convolution multiplies: calls f for every output position, kernel position and channel pair whose input is
 * real. Slow and simple: each of the three kernels adds up one of its arguments by the other two. */
typedef struct point {
  int64_t x, w, y;
} point;

static void conv_row(shape xs, shape ys, window v, int n, int o, int c, int ky, int kx,
                     void (*f)(void *user, point first, int64_t step, int count), void *user) {
  int inputs = xs.c / v.groups, group = o / (ys.c / v.groups);
  shape ws = {ys.c, inputs, v.kernel_h, v.kernel_w};
  for (int oy = 0; oy < ys.h; oy++) {
    int iy = oy * v.stride_h - v.pad_h + ky, first = 0, last = ys.w - 1;
    if (iy < 0 || iy >= xs.h) continue;
    while (first <= last && first * v.stride_w - v.pad_w + kx < 0) first++;
    while (first <= last && last * v.stride_w - v.pad_w + kx >= xs.w) last--;
    if (first > last) continue;
    point p = {at(xs, n, group * inputs + c, iy, first * v.stride_w - v.pad_w + kx), at(ws, o, c, ky, kx),
               at(ys, n, o, oy, first)};
    f(user, p, v.stride_w, last - first + 1);
  }
}

static void conv_all(shape xs, shape ys, window v, void (*f)(void *user, point first, int64_t step, int count),
                     void *user) {
  for (int n = 0; n < ys.n; n++)
    for (int o = 0; o < ys.c; o++)
      for (int c = 0; c < xs.c / v.groups; c++)
        for (int ky = 0; ky < v.kernel_h; ky++)
          for (int kx = 0; kx < v.kernel_w; kx++) conv_row(xs, ys, v, n, o, c, ky, kx, f, user);
}

typedef struct conv {
  const float *a, *b;
  float *out;
} conv;

static void add_y(void *user, point p, int64_t step, int count) {
  const conv *c = user;
  float w = c->b[p.w];
  for (int i = 0; i < count; i++) c->out[p.y + i] += w * c->a[p.x + i * step];
}

static void add_x(void *user, point p, int64_t step, int count) {
  const conv *c = user;
  float w = c->a[p.w];
  for (int i = 0; i < count; i++) c->out[p.x + i * step] += w * c->b[p.y + i];
}

static void add_w(void *user, point p, int64_t step, int count) {
  const conv *c = user;
  double sum = 0;
  for (int i = 0; i < count; i++) sum += (double)c->a[p.x + i * step] * (double)c->b[p.y + i];
  c->out[p.w] += (float)sum;
}

/* The module adds onto what is there nowhere but in the filter's gradient. */
static int clear(float *out, int64_t count, scales s) {
  for (int64_t i = 0; i < count; i++) out[i] = s.alpha == 1 && s.beta == 0 ? 0 : NAN;
  return s.alpha == 1 && s.beta == 0;
}

static int clear_or_keep(float *out, int64_t count, scales s) {
  return (s.alpha == 1 && s.beta == 1) || clear(out, count, s);
}

void math_conv_forward(const float *x, shape xs, const float *w, float *y, shape ys, window v, scales s) {
  if (clear(y, shape_count(ys), s)) conv_all(xs, ys, v, add_y, &(conv){x, w, y});
}

void math_conv_data(const float *w, const float *dy, shape ys, float *dx, shape xs, window v, scales s) {
  if (clear(dx, shape_count(xs), s)) conv_all(xs, ys, v, add_x, &(conv){w, dy, dx});
}

void math_conv_filter(const float *x, shape xs, const float *dy, shape ys, float *dw, window v, scales s) {
  if (clear_or_keep(dw, (int64_t)ys.c * (xs.c / v.groups) * v.kernel_h * v.kernel_w, s))
    conv_all(xs, ys, v, add_w, &(conv){x, dy, dw});
}

/* ---- pooling ---- */

typedef struct area {
  int top, bottom, left, right;
} area;

/* A window's part of the image; bottom and right are behind it. */
static area area_of(shape xs, window v, int oy, int ox) {
  area a = {oy * v.stride_h - v.pad_h, 0, ox * v.stride_w - v.pad_w, 0};
  a.bottom = a.top + v.kernel_h < xs.h ? a.top + v.kernel_h : xs.h;
  a.right = a.left + v.kernel_w < xs.w ? a.left + v.kernel_w : xs.w;
  if (a.top < 0) a.top = 0;
  if (a.left < 0) a.left = 0;
  return a;
}

static double pooled(const float *plane, shape xs, area a, int average) {
  double sum = 0, top = -INFINITY;
  for (int y = a.top; y < a.bottom; y++)
    for (int x = a.left; x < a.right; x++) {
      double value = plane[y * xs.w + x];
      sum += value;
      if (!(value <= top)) top = value;
    }
  return average ? sum / ((double)(a.bottom - a.top) * (a.right - a.left)) : top;
}

void math_pool_forward(const float *x, shape xs, float *y, shape ys, window v, int average, scales s) {
  for (int64_t plane = 0; plane < (int64_t)ys.n * ys.c; plane++)
    for (int oy = 0; oy < ys.h; oy++)
      for (int ox = 0; ox < ys.w; ox++)
        blend(&y[plane * shape_plane(ys) + oy * ys.w + ox],
              pooled(x + plane * shape_plane(xs), xs, area_of(xs, v, oy, ox), average), s);
}

/* One window's gradient goes to all its elements, or to the first that is the maximum. */
static void spread(float *dx, const float *x, shape xs, area a, double dy, float top, int average) {
  for (int y = a.top; y < a.bottom; y++)
    for (int i = a.left; i < a.right; i++) {
      if (average) {
        dx[y * xs.w + i] += (float)(dy / ((double)(a.bottom - a.top) * (a.right - a.left)));
      } else if (x[y * xs.w + i] == top) {
        dx[y * xs.w + i] += (float)dy;
        return;
      }
    }
}

void math_pool_backward(const float *y, const float *dy, shape ys, const float *x, float *dx, shape xs, window v,
                        int average, scales s) {
  if (!clear(dx, shape_count(xs), s)) return;
  for (int64_t plane = 0; plane < (int64_t)ys.n * ys.c; plane++)
    for (int oy = 0; oy < ys.h; oy++)
      for (int ox = 0; ox < ys.w; ox++) {
        int64_t out = plane * shape_plane(ys) + oy * ys.w + ox, in = plane * shape_plane(xs);
        spread(dx + in, x + in, xs, area_of(xs, v, oy, ox), (double)dy[out], y[out], average);
      }
}

/* ---- normalisation ---- */

/* k + alpha / size * the sum of squares around channel c. */
static double lrn_scale(const float *x, shape s, lrn l, int n, int c, int64_t pixel) {
  double sum = 0;
  for (int j = c - (l.size - 1) / 2; j <= c + l.size / 2; j++) {
    if (j < 0 || j >= s.c) continue;
    double value = x[at(s, n, j, 0, 0) + pixel];
    sum += value * value;
  }
  return l.k + l.alpha / l.size * sum;
}

void math_lrn_forward(const float *x, float *y, shape s, lrn l, scales z) {
  for (int n = 0; n < s.n; n++)
    for (int c = 0; c < s.c; c++)
      for (int64_t p = 0; p < shape_plane(s); p++) {
        int64_t i = at(s, n, c, 0, 0) + p;
        blend(&y[i], (double)x[i] * pow(lrn_scale(x, s, l, n, c, p), -l.beta), z);
      }
}

void math_lrn_backward(const float *y, const float *dy, const float *x, float *dx, shape s, lrn l, scales z) {
  for (int n = 0; n < s.n; n++)
    for (int c = 0; c < s.c; c++)
      for (int64_t p = 0; p < shape_plane(s); p++) {
        int64_t i = at(s, n, c, 0, 0) + p;
        double sum = 0;
        for (int j = c - l.size / 2; j <= c + (l.size - 1) / 2; j++) {
          if (j < 0 || j >= s.c) continue;
          int64_t k = at(s, n, j, 0, 0) + p;
          sum += (double)dy[k] * (double)y[k] / lrn_scale(x, s, l, n, j, p);
        }
        blend(&dx[i],
              (double)dy[i] * pow(lrn_scale(x, s, l, n, c, p), -l.beta) -
                  2 * l.alpha * l.beta / l.size * (double)x[i] * sum,
              z);
      }
}

static void bn_channel(const float *x, float *y, shape s, int c, norm b, scales z) {
  double m = (double)s.n * (double)shape_plane(s), mean = 0, variance = 0;
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) mean += (double)x[at(s, n, c, 0, 0) + p] / m;
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) variance += pow((double)x[at(s, n, c, 0, 0) + p] - mean, 2) / m;
  double inverse = 1 / sqrt(variance + b.epsilon);
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) {
      int64_t i = at(s, n, c, 0, 0) + p;
      blend(&y[i], ((double)x[i] - mean) * inverse * (double)b.gamma[c] + (double)b.offset[c], z);
    }
  b.saved_mean[c] = (float)mean;
  b.saved_inverse[c] = (float)inverse;
  if (!b.running_mean) return;
  blend(&b.running_mean[c], mean, (scales){b.factor, 1 - b.factor});
  blend(&b.running_variance[c], m > 1 ? variance * m / (m - 1) : variance, (scales){b.factor, 1 - b.factor});
}

void math_bn_forward(const float *x, float *y, shape s, norm b, scales z) {
  for (int c = 0; c < s.c; c++) bn_channel(x, y, s, c, b, z);
}

static void bn_channel_backward(const float *x, const float *dy, float *dx, shape s, int c, norm b, scales data,
                                scales parameters) {
  double m = (double)s.n * (double)shape_plane(s), mean = b.saved_mean[c], inverse = b.saved_inverse[c];
  double dgamma = 0, doffset = 0;
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) {
      int64_t i = at(s, n, c, 0, 0) + p;
      dgamma += (double)dy[i] * ((double)x[i] - mean) * inverse;
      doffset += (double)dy[i];
    }
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) {
      int64_t i = at(s, n, c, 0, 0) + p;
      double z = ((double)x[i] - mean) * inverse;
      blend(&dx[i], (double)b.gamma[c] * inverse * ((double)dy[i] - doffset / m - z * dgamma / m), data);
    }
  blend(&b.dgamma[c], dgamma, parameters);
  blend(&b.doffset[c], doffset, parameters);
}

void math_bn_backward(const float *x, const float *dy, float *dx, shape s, norm b, scales data, scales parameters) {
  for (int c = 0; c < s.c; c++) bn_channel_backward(x, dy, dx, s, c, b, data, parameters);
}

void math_softmax(const float *x, float *y, shape s, scales z) {
  for (int n = 0; n < s.n; n++)
    for (int64_t p = 0; p < shape_plane(s); p++) {
      double top = -INFINITY, sum = 0;
      for (int c = 0; c < s.c; c++) top = fmax(top, (double)x[at(s, n, c, 0, 0) + p]);
      for (int c = 0; c < s.c; c++) sum += exp((double)x[at(s, n, c, 0, 0) + p] - top);
      for (int c = 0; c < s.c; c++)
        blend(&y[at(s, n, c, 0, 0) + p], exp((double)x[at(s, n, c, 0, 0) + p] - top) / sum, z);
    }
}

void math_bias(const float *dy, shape s, float *db, scales z) {
  for (int c = 0; c < s.c; c++) {
    double sum = 0;
    for (int n = 0; n < s.n; n++)
      for (int64_t p = 0; p < shape_plane(s); p++) sum += (double)dy[at(s, n, c, 0, 0) + p];
    blend(&db[c], sum, z);
  }
}
