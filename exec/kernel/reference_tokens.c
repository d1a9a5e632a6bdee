/* Reference kernels of what makes and shortens sequences: EMBEDDING, POSITION, TOKEN, TAKE; and ROTARY. A sequence's
 * channels lie a column of positions apart. A table's gradient is the sum over all that took the row; nobody needs one
 * with respect to tokens.
 *
 *   POSITION   row p of the table at position p; of a table of fewer rows the sequence's parts have a row each
 *   ROTARY     of a head's d channels i and i + d/2 are turned by the angle p 10000^(-2i/d) (Su et al., 2021) */
#include "exec/kernel/reference_internal.h"

#include <math.h>
#include <string.h>

static const float *row_of_token(const sn_call *call, const float *table, uint64_t position) {
  const int64_t *tokens = (const int64_t *)(const void *)call->x[0];
  return table + (uint64_t)tokens[position] * sn__call_layer(call)->out.c;
}

void sn__reference_embedding_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t p = 0; p < sn__plane(s); p++) {
      const float *row = row_of_token(call, call->parameters, n * sn__plane(s) + p);
      for (uint32_t c = 0; c < s.c; c++) call->y[0][sn__at(s, n, c, 0, p)] = row[c];
    }
}

/* The sum over all positions at which a row of the table was taken. */
static double table_gradient(const sn_call *call, const float *row, uint32_t c) {
  sn_shape s = sn__call_layer(call)->out;
  double sum = 0;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t p = 0; p < sn__plane(s); p++)
      if (row_of_token(call, call->gradients, n * sn__plane(s) + p) == row) sum += call->dy[0][sn__at(s, n, c, 0, p)];
  return sum;
}

void sn__reference_embedding_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint64_t r = 0; r < layer->attr->rows; r++)
    for (uint32_t c = 0; c < layer->out.c; c++) {
      float *row = call->gradients + r * layer->out.c;
      row[c] = (float)table_gradient(call, row, c);
    }
}

void sn__reference_position_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++)
      for (uint64_t p = 0; p < sn__plane(s); p++) {
        uint64_t at = sn__at(s, n, c, 0, p);
        call->y[0][at] = call->x[0][at] + call->parameters[sn__position_row(layer, p) * s.c + c];
      }
}

void sn__reference_position_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  for (uint64_t r = 0; r < layer->attr->rows; r++)
    for (uint32_t c = 0; c < s.c; c++) {
      double sum = 0;
      for (uint32_t n = 0; n < s.n; n++)
        for (uint64_t p = 0; p < sn__plane(s); p++)
          if (sn__position_row(layer, p) == r) sum += call->dy[0][sn__at(s, n, c, 0, p)];
      call->gradients[r * s.c + c] = (float)sum;
    }
  if (call->dx[0] != call->dy[0]) memcpy(call->dx[0], call->dy[0], sn__count(s) * sizeof(float));
}

void sn__reference_token_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out, in = sn__call_input(call, 0);
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++) {
      call->y[0][sn__at(s, n, c, 0, 0)] = call->parameters[c];
      for (uint64_t p = 0; p < sn__plane(in); p++)
        call->y[0][sn__at(s, n, c, p + 1, 0)] = call->x[0][sn__at(in, n, c, 0, p)];
    }
}

void sn__reference_token_backward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out, in = sn__call_input(call, 0);
  for (uint32_t c = 0; c < s.c; c++) {
    double sum = 0;
    for (uint32_t n = 0; n < s.n; n++) {
      sum += call->dy[0][sn__at(s, n, c, 0, 0)];
      for (uint64_t p = 0; p < sn__plane(in); p++)
        call->dx[0][sn__at(in, n, c, 0, p)] = call->dy[0][sn__at(s, n, c, p + 1, 0)];
    }
    call->gradients[c] = (float)sum;
  }
}

void sn__reference_take_forward(const sn_call *call) {
  sn_shape in = sn__call_input(call, 0);
  for (uint64_t i = 0; i < (uint64_t)in.n * in.c; i++) call->y[0][i] = call->x[0][i * sn__plane(in)];
}

void sn__reference_take_backward(const sn_call *call) {
  sn_shape in = sn__call_input(call, 0);
  memset(call->dx[0], 0, sn__count(in) * sizeof(float));
  for (uint64_t i = 0; i < (uint64_t)in.n * in.c; i++) call->dx[0][i * sn__plane(in)] = call->dy[0][i];
}

/* Turned by the angle times `sense`. */
static void turn(const sn_call *call, const float *from, float *to, double sense) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  uint32_t d = s.c / sn__rotary_heads(layer), half = d / 2;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++)
      for (uint64_t p = 0; p < sn__plane(s) && c % d < half; p++) {
        double angle = sense * sn__rotary_angle(c % d, d, p), x = from[sn__at(s, n, c, 0, p)],
               other = from[sn__at(s, n, c + half, 0, p)];
        to[sn__at(s, n, c, 0, p)] = (float)(x * cos(angle) - other * sin(angle));
        to[sn__at(s, n, c + half, 0, p)] = (float)(other * cos(angle) + x * sin(angle));
      }
}

void sn__reference_rotary_forward(const sn_call *call) {
  turn(call, call->x[0], call->y[0], 1);
}

void sn__reference_rotary_backward(const sn_call *call) {
  turn(call, call->dy[0], call->dx[0], -1);
}
