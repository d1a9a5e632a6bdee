/* CPU kernels: updates, by optimizer (sim/graph/optimizer.h has the formulas). oneDNN has none. Every element is
 * computed from inputs alone, so results do not depend on the threads. */
#include "exec/cpu/cpu.h"

#include <math.h>

static void sgd(const sn_call *call, uint64_t count) {
  float rate = call->hyper->learning_rate, decay = call->hyper->weight_decay;
  float *w = call->parameters;
  const float *g = call->gradients;
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) w[i] -= rate * (g[i] + decay * w[i]);
}

static void momentum(const sn_call *call, uint64_t count) {
  float rate = call->hyper->learning_rate, share = call->hyper->momentum, decay = call->hyper->weight_decay;
  float *w = call->parameters, *v = call->states[0];
  const float *g = call->gradients;
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    v[i] = share * v[i] + g[i] + decay * w[i];
    w[i] -= rate * v[i];
  }
}

/* Adam decays by the gradient, AdamW by the weight: what the other would do is to add 0, or to multiply by 1. The
 * corrections of both moments are taken out of the loop: r M / (sqrt(S) + e) = step m / (sqrt(s) scale + e). */
static void adam(const sn_call *call, uint64_t count) {
  const sn_hyper *h = call->hyper;
  bool by_weight = sn_optimizer_kind(h->optimizer) == SN_OPTIMIZER_ADAMW;
  double t = (double)call->iteration + 1;
  float decay = by_weight ? 0 : h->weight_decay, keep = by_weight ? 1 - h->learning_rate * h->weight_decay : 1;
  float b1 = (float)SN_ADAM_BETA1, b2 = (float)SN_ADAM_BETA2, c1 = (float)(1 - SN_ADAM_BETA1),
        c2 = (float)(1 - SN_ADAM_BETA2), epsilon = (float)SN_ADAM_EPSILON;
  float step = (float)(h->learning_rate / (1 - pow(SN_ADAM_BETA1, t))),
        scale = (float)(1 / sqrt(1 - pow(SN_ADAM_BETA2, t)));
  float *w = call->parameters, *m = call->states[0], *s = call->states[1];
  const float *gradients = call->gradients;
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    float g = gradients[i] + decay * w[i];
    m[i] = b1 * m[i] + c1 * g;
    s[i] = b2 * s[i] + c2 * g * g;
    w[i] = keep * w[i] - step * m[i] / (sqrtf(s[i]) * scale + epsilon);
  }
}

void sn__cpu_update(const sn_call *call) {
  static void (*const updates[SN_OPTIMIZER_KINDS])(const sn_call *call,
                                                   uint64_t count) = {[SN_OPTIMIZER_MOMENTUM] = momentum,
                                                                      [SN_OPTIMIZER_SGD] = sgd,
                                                                      [SN_OPTIMIZER_ADAM] = adam,
                                                                      [SN_OPTIMIZER_ADAMW] = adam};
  updates[sn_optimizer_kind(call->hyper->optimizer)](call, sn__call_layer(call)->parameters);
}
