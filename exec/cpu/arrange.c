/* CPU kernels of RESHAPE, TRANSPOSE and SLICE, in loops of ours. Values are plain. A line is a row of the output, or a
 * column where rows are of one number, as those of sequences are: its numbers are as far apart everywhere. Threads
 * share lines, and every number is copied by one of them. */
#include "exec/cpu/cpu.h"

#include <string.h>

typedef struct lines {
  sn__move move;
  uint64_t count, length;
  int64_t apart; /* in the input */
} lines;

static lines lines_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape out = layer->out;
  const sn__move move = sn__move_of(layer, sn__call_input(call, 0));
  const bool columns = out.w == 1;
  const uint64_t length = columns ? out.h : out.w;
  return (lines){move, sn__count(out) / length, length, (int64_t)move.stride[columns ? 2 : 3]};
}

static void take(const lines *l, const float *x, float *y) {
#pragma omp parallel for schedule(static) if (l->count * l->length >= SN__WORTH_THREADS)
  for (uint64_t line = 0; line < l->count; line++) {
    const float *from = x + sn__moved(&l->move, line * l->length);
    float *to = y + line * l->length;
    for (uint64_t i = 0; i < l->length; i++) to[i] = from[(int64_t)i * l->apart];
  }
}

static void put_back(const lines *l, const float *dy, float *dx) {
#pragma omp parallel for schedule(static) if (l->count * l->length >= SN__WORTH_THREADS)
  for (uint64_t line = 0; line < l->count; line++) {
    const float *from = dy + line * l->length;
    float *to = dx + sn__moved(&l->move, line * l->length);
    for (uint64_t i = 0; i < l->length; i++) to[(int64_t)i * l->apart] = from[i];
  }
}

void sn__cpu_arrange_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const lines l = lines_of(call);
  if (call->y[0] != call->x[0]) take(&l, call->x[0], call->y[0]);
}

void sn__cpu_arrange_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const lines l = lines_of(call);
  if (!call->dx[0] || call->dx[0] == call->dy[0]) return;
  if (sn__call_layer(call)->op == SN_SLICE) memset(call->dx[0], 0, sn__count(sn__call_input(call, 0)) * sizeof(float));
  put_back(&l, call->dy[0], call->dx[0]);
}
