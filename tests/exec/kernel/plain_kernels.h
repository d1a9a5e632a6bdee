/* The CPU's kernels over plain tensors: what lies blocked for them (exec/machine/cpu_kernels.h) is turned ahead of
 * every call and turned back behind it, so that it can be compared with the reference's.
 */
#ifndef SN_TESTS_PLAIN_KERNELS_H
#define SN_TESTS_PLAIN_KERNELS_H

#include "exec/machine/cpu_kernels.h"
#include "tests/support/net_runner.h"

/* (n, c, h, w) to (n, c / block, h, w, block), or back. */
static inline void plain_turn(float *data, sn_shape s, uint32_t block, bool back) {
  uint64_t plane = (uint64_t)s.h * s.w, count = s.n * s.c * plane;
  float *copy = net_calloc(count, sizeof *copy);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t pixel = i % plane, channel = i / plane; /* of all images */
    uint64_t blocked = (channel / block * plane + pixel) * block + channel % block;
    copy[back ? i : blocked] = data[back ? blocked : i];
  }
  memcpy(data, copy, count * sizeof *copy);
  free(copy);
}

/* Tensors of a call by address: what is in place is turned once. */
typedef struct plain_turned {
  float *of[64];
  uint32_t count;
} plain_turned;

static inline void plain_turn_values(const sn_cpu_kernels *k, const sn_call *call, float *const *tensors, bool inputs,
                                     bool back, plain_turned *turned) {
  const sn_layer *layer = &call->net->layers[call->layer];
  for (uint32_t i = 0; i < (inputs ? layer->n_inputs : layer->n_outputs); i++) {
    uint32_t value = inputs ? call->net->inputs[layer->first_input + i] : layer->first_output + i, seen = 0;
    sn_shape shape = inputs ? sn_layer_input_shape(call->net, layer, i) : layer->out;
    uint32_t block = sn_cpu_kernels_layout(k, value);
    while (seen < turned->count && turned->of[seen] != tensors[i]) seen++;
    if (!tensors[i] || block == 1 || seen < turned->count) continue;
    plain_turn(tensors[i], shape, block, back);
    assert_true(turned->count < sizeof turned->of / sizeof turned->of[0]);
    turned->of[turned->count++] = tensors[i];
  }
}

static inline void plain_turn_call(const sn_cpu_kernels *k, const sn_call *call, bool back) {
  plain_turned turned = {.count = 0};
  if (call->pass == SN_UPDATE) return;
  plain_turn_values(k, call, call->x, true, back, &turned);
  plain_turn_values(k, call, call->y, false, back, &turned);
  if (call->pass == SN_FORWARD) return;
  plain_turn_values(k, call, call->dy, false, back, &turned);
  plain_turn_values(k, call, call->dx, true, back, &turned);
}

static inline sn_status plain_run(void *self, const sn_call *call, sn_err *err) {
  plain_turn_call(self, call, false);
  sn_status status = sn_cpu_kernels_run(self, call, err);
  plain_turn_call(self, call, true);
  return status;
}

#endif
