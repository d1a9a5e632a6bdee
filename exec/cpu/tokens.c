/* CPU kernels of what makes and shortens sequences, in loops of ours: EMBEDDING, POSITION, TOKEN, TAKE. Values are
 * plain; a sequence's channels lie a column of positions apart. Threads share channels, so that every sum is one
 * thread's. The gradient with respect to tokens, which nobody needs, is not computed. */
#include "exec/cpu/cpu.h"

#include <string.h>

/* Channels of one image, counted through all images: the plane that each has. */
static uint64_t planes_of(sn_shape s) {
  return (uint64_t)s.n * s.c;
}

void sn__cpu_embedding_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const int64_t *tokens = (const int64_t *)(const void *)call->x[0];
  const uint64_t plane = sn__plane(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes_of(s); i++)
    for (uint64_t p = 0; p < plane; p++)
      call->y[0][i * plane + p] = call->parameters[(uint64_t)tokens[i / s.c * plane + p] * s.c + i % s.c];
}

void sn__cpu_embedding_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const int64_t *tokens = (const int64_t *)(const void *)call->x[0];
  const uint64_t plane = sn__plane(s);
  memset(call->gradients, 0, (uint64_t)sn__call_layer(call)->attr->rows * s.c * sizeof(float));
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c++)
    for (uint64_t i = 0; i < s.n * plane; i++)
      call->gradients[(uint64_t)tokens[i] * s.c + c] += call->dy[0][(i / plane * s.c + c) * plane + i % plane];
}

void sn__cpu_position_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape s = layer->out;
  const uint64_t plane = sn__plane(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes_of(s); i++)
    for (uint64_t p = 0; p < plane; p++)
      call->y[0][i * plane + p] =
          call->x[0][i * plane + p] + call->parameters[sn__position_row(layer, p) * s.c + i % s.c];
}

static void position_gradients(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape s = layer->out;
  const uint64_t plane = sn__plane(s);
  memset(call->gradients, 0, layer->parameters * sizeof(float));
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c++)
    for (uint64_t n = 0; n < s.n; n++)
      for (uint64_t p = 0; p < plane; p++)
        call->gradients[sn__position_row(layer, p) * s.c + c] += call->dy[0][(n * s.c + c) * plane + p];
}

void sn__cpu_position_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const uint64_t count = sn__count(sn__call_layer(call)->out);
  if (call->gradients) position_gradients(call);
  if (call->dx[0] && call->dx[0] != call->dy[0]) memcpy(call->dx[0], call->dy[0], count * sizeof(float));
}

void sn__cpu_token_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t plane = sn__plane(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes_of(s); i++) {
    call->y[0][i * plane] = call->parameters[i % s.c];
    memcpy(call->y[0] + i * plane + 1, call->x[0] + i * (plane - 1), (plane - 1) * sizeof(float));
  }
}

void sn__cpu_token_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t plane = sn__plane(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c++) {
    double sum = 0;
    for (uint64_t n = 0; n < s.n; n++) {
      const uint64_t i = n * s.c + c;
      sum += call->dy[0][i * plane];
      if (call->dx[0]) memcpy(call->dx[0] + i * (plane - 1), call->dy[0] + i * plane + 1, (plane - 1) * sizeof(float));
    }
    if (call->gradients) call->gradients[c] = (float)sum;
  }
}

void sn__cpu_take_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0);
  for (uint64_t i = 0; i < planes_of(in); i++) call->y[0][i] = call->x[0][i * sn__plane(in)];
}

void sn__cpu_take_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape in = sn__call_input(call, 0);
  if (!call->dx[0]) return;
  memset(call->dx[0], 0, sn__count(in) * sizeof(float));
  for (uint64_t i = 0; i < planes_of(in); i++) call->dx[0][i * sn__plane(in)] = call->dy[0][i];
}
