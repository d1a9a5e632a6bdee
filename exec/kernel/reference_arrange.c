/* Reference kernels of what only moves numbers: RESHAPE, TRANSPOSE, SLICE. Backward a number's gradient goes where the
 * number was; what a SLICE leaves out has none. */
#include "exec/kernel/reference_internal.h"

#include <string.h>

/* Where in the input, (n, c, h, w), the output's number at (n, to[0], to[1], to[2]) comes from. */
static uint64_t origin(const sn_layer *layer, sn_shape in, uint32_t n, const uint32_t to[SN_SIDES]) {
  uint32_t from[SN_SIDES] = {to[0], to[1], to[2]};
  if (layer->op == SN_RESHAPE) return sn__at(layer->out, n, to[0], to[1], to[2]);
  for (int axis = 0; axis < SN_SIDES && layer->op == SN_TRANSPOSE; axis++) from[layer->attr->axes[axis]] = to[axis];
  if (layer->op == SN_SLICE) {
    const sn_attr *a = layer->attr;
    const uint32_t taken = a->turned ? a->count - 1 - to[a->axis] : to[a->axis];
    from[a->axis] = a->first + taken * (a->step > 1 ? a->step : 1);
  }
  return sn__at(in, n, from[0], from[1], from[2]);
}

static void move(const sn_call *call, const float *from, float *to) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape in = sn__call_input(call, 0), out = layer->out;
  for (uint32_t n = 0; n < out.n; n++)
    for (uint32_t c = 0; c < out.c; c++)
      for (uint32_t h = 0; h < out.h; h++)
        for (uint32_t w = 0; w < out.w; w++) {
          const uint64_t made = sn__at(out, n, c, h, w), given = origin(layer, in, n, (const uint32_t[]){c, h, w});
          if (call->pass == SN_FORWARD)
            to[made] = from[given];
          else
            to[given] = from[made];
        }
}

void sn__reference_arrange_forward(const sn_call *call) {
  move(call, call->x[0], call->y[0]);
}

void sn__reference_arrange_backward(const sn_call *call) {
  if (sn__call_layer(call)->op == SN_SLICE) memset(call->dx[0], 0, sn__count(sn__call_input(call, 0)) * sizeof(float));
  move(call, call->dy[0], call->dx[0]);
}
