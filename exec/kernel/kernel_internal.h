/* What the reference kernels and the CPU kernels share: shapes of a call's tensors, the input positions that a window
 * covers, the dropout generator. Internal to exec/. */
#ifndef SN_EXEC_KERNEL_KERNEL_INTERNAL_H
#define SN_EXEC_KERNEL_KERNEL_INTERNAL_H

#include "exec/data/random.h"
#include "exec/kernel/call.h"

static inline const sn_layer *sn__call_layer(const sn_call *call) {
  return &call->net->layers[call->layer];
}
static inline sn_shape sn__call_input(const sn_call *call, uint32_t i) {
  return sn_layer_input_shape(call->net, sn__call_layer(call), i);
}
static inline uint64_t sn__plane(sn_shape s) {
  return (uint64_t)s.h * s.w;
}
static inline uint64_t sn__image(sn_shape s) {
  return s.c * sn__plane(s);
}
static inline uint64_t sn__count(sn_shape s) {
  return s.n * sn__image(s);
}

/* Weights of a CONV, DECONV or FC without its bias, which follows them. */
static inline uint64_t sn__weights(const sn_layer *layer) {
  return layer->parameters - (layer->attr.bias ? layer->attr.channels : 0);
}

/* A window along one side: it starts at input position `start`, maybe in the padding, and covers from .. to - 1 of the
 * real positions. */
typedef struct sn__span {
  int64_t start, from, to;
} sn__span;

static inline sn__span sn__window(int64_t out, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t in) {
  sn__span s = {.start = out * stride - pad};
  s.from = s.start > 0 ? s.start : 0;
  s.to = s.start + kernel < in ? s.start + kernel : in;
  return s;
}

/* The windows of a POOL, global or not. Those of an adaptive one are ordinary ones where the output's size divides the
 * input's; where it does not, they differ in size and `uneven_h`, `uneven_w` hold the output's size (models/net.h). */
typedef struct sn__pooling {
  uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  uint32_t uneven_h, uneven_w; /* both 0: the windows are those above */
} sn__pooling;

static inline sn__pooling sn__pooling_of(const sn_attr *a, sn_shape in) {
  if (a->global) return (sn__pooling){in.h, in.w, 1, 1, 0, 0, 0, 0};
  if (!a->adaptive_h)
    return (sn__pooling){a->kernel_h, a->kernel_w, a->stride_h, a->stride_w, a->pad_h, a->pad_w, 0, 0};
  if (in.h % a->adaptive_h || in.w % a->adaptive_w)
    return (sn__pooling){.uneven_h = a->adaptive_h, .uneven_w = a->adaptive_w};
  uint32_t h = in.h / a->adaptive_h, w = in.w / a->adaptive_w;
  return (sn__pooling){h, w, h, w, 0, 0, 0, 0};
}

/* Window `out` of `outs` uneven ones along a side of `in` positions. */
static inline sn__span sn__uneven_window(int64_t out, uint32_t outs, uint32_t in) {
  int64_t from = out * in / outs, to = ((out + 1) * in + outs - 1) / outs;
  return (sn__span){from, from, to};
}

static inline sn__span sn__pool_rows(const sn__pooling *p, int64_t out, uint32_t in) {
  return p->uneven_h ? sn__uneven_window(out, p->uneven_h, in)
                     : sn__window(out, p->kernel_h, p->stride_h, p->pad_h, in);
}
static inline sn__span sn__pool_columns(const sn__pooling *p, int64_t out, uint32_t in) {
  return p->uneven_h ? sn__uneven_window(out, p->uneven_w, in)
                     : sn__window(out, p->kernel_w, p->stride_w, p->pad_w, in);
}

/* Dropout: element i of a mask is the i-th number (exec/data/random.h) from a start that seed, layer and iteration
 * give. */
typedef struct sn__mask {
  uint64_t start;
  uint64_t dropped; /* of 2^53 equally likely numbers */
} sn__mask;

static inline sn__mask sn__mask_of(const sn_call *call) {
  uint64_t start = sn__mix(call->hyper->seed + SN__GOLDEN);
  start = sn__mix((start ^ call->layer) + SN__GOLDEN);
  start = sn__mix((start ^ call->iteration) + SN__GOLDEN);
  return (sn__mask){start, (uint64_t)(sn__call_layer(call)->attr.ratio * 0x1p53)};
}

static inline bool sn__mask_keeps(sn__mask mask, uint64_t index) {
  return sn__mix(mask.start + (index + 1) * SN__GOLDEN) >> 11 >= mask.dropped;
}

#endif
