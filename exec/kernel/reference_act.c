/* Reference kernels of ACT: the modes' definitions and derivatives (models/net/net.h), as PyTorch has them. Where a
 * derivative jumps, it is at the bend what it is below it; of modes with two bends 0, or what it is beyond, at both. */
#include "exec/kernel/reference_internal.h"

#include <math.h>

static const double sqrt_half = 0.70710678118654752440, sqrt_2_over_pi = 0.79788456080286535588, cubic = 0.044715;

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

/* log(1 + exp(x)) without overflow. */
static double softplus(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* How likely a normal number is less than x, and its density there. */
static double normal(double x) {
  return erfc(-x * sqrt_half) / 2;
}
static double normal_density(double x) {
  return exp(-x * x / 2) * sqrt_2_over_pi / 2;
}

static double gelu_new_inner(double x) {
  return tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
}

static double act(const sn_attr *a, double x) {
  switch (a->act) {
  case SN_ACT_RELU:
    return fmax(x, 0);
  case SN_ACT_RELU6:
    return fmin(fmax(x, 0), 6);
  case SN_ACT_LEAKY:
    return x > 0 ? x : a->slope * x;
  case SN_ACT_TANH:
    return tanh(x);
  case SN_ACT_SIGMOID:
    return sigmoid(x);
  case SN_ACT_ELU:
    return x > 0 ? x : expm1(x);
  case SN_ACT_GELU:
    return x * normal(x);
  case SN_ACT_SILU:
    return x * sigmoid(x);
  case SN_ACT_HARDSWISH:
    return x * fmin(fmax(x + 3, 0), 6) / 6;
  case SN_ACT_HARDSIGMOID:
    return fmin(fmax(x + 3, 0), 6) / 6;
  case SN_ACT_SOFTPLUS:
    return softplus(x);
  case SN_ACT_MISH:
    return x * tanh(softplus(x));
  case SN_ACT_GELU_NEW:
    return x / 2 * (1 + gelu_new_inner(x));
  case SN_ACT_TIMES:
    return a->slope * x;
  case SN_ACT_EXP:
    return exp(x);
  case SN_ACT_SIN:
    return sin(x);
  case SN_ACT_COS:
    return cos(x);
  case SN_ACT_PRELU: /* below */
  case SN_ACT_MODES:
    break;
  }
  return NAN;
}

static double gelu_new_derivative(double x) {
  double t = gelu_new_inner(x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt_2_over_pi * (1 + 3 * cubic * x * x);
}

static double mish_derivative(double x) {
  double t = tanh(softplus(x));
  return t + x * (1 - t * t) * sigmoid(x);
}

static double act_derivative(const sn_attr *a, double x) {
  double y = act(a, x);
  switch (a->act) {
  case SN_ACT_RELU:
    return x > 0;
  case SN_ACT_RELU6:
    return x > 0 && x < 6;
  case SN_ACT_LEAKY:
    return x > 0 ? 1 : a->slope;
  case SN_ACT_TANH:
    return 1 - y * y;
  case SN_ACT_SIGMOID:
    return y * (1 - y);
  case SN_ACT_ELU:
    return x > 0 ? 1 : y + 1;
  case SN_ACT_GELU:
    return normal(x) + x * normal_density(x);
  case SN_ACT_SILU:
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
  case SN_ACT_HARDSWISH:
    return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
  case SN_ACT_HARDSIGMOID:
    return x > -3 && x < 3 ? 1.0 / 6 : 0;
  case SN_ACT_SOFTPLUS:
    return sigmoid(x);
  case SN_ACT_MISH:
    return mish_derivative(x);
  case SN_ACT_GELU_NEW:
    return gelu_new_derivative(x);
  case SN_ACT_TIMES:
    return a->slope;
  case SN_ACT_EXP:
    return y;
  case SN_ACT_SIN:
    return cos(x);
  case SN_ACT_COS:
    return -sin(x);
  case SN_ACT_PRELU: /* below */
  case SN_ACT_MODES:
    break;
  }
  return NAN;
}

/* The slope, among an ACT's parameters, of element i. */
static uint64_t slope_of(const sn_layer *layer, uint64_t i) {
  return layer->attr->slopes == 1 ? 0 : i / sn__plane(layer->out) % layer->out.c;
}

/* x > 0 ? x : slope x, whose derivative by the slope is x where that is not above 0. */
static void prelu_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint64_t i = 0; i < sn__count(layer->out); i++) {
    const double x = call->x[0][i];
    call->y[0][i] = (float)(x > 0 ? x : call->parameters[slope_of(layer, i)] * x);
  }
}

static void prelu_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const uint64_t count = sn__count(layer->out);
  for (uint32_t s = 0; s < layer->attr->slopes; s++) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
      if (slope_of(layer, i) == s && !(call->x[0][i] > 0)) sum += (double)call->dy[0][i] * call->x[0][i];
    call->gradients[s] = (float)sum;
  }
  for (uint64_t i = 0; i < count; i++)
    call->dx[0][i] = (float)(call->dy[0][i] * (call->x[0][i] > 0 ? 1.0 : call->parameters[slope_of(layer, i)]));
}

void sn__reference_act_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  if (sn_layer_is_prelu(layer)) {
    prelu_forward(call);
    return;
  }
  uint64_t count = sn__count(layer->out);
  for (uint64_t i = 0; i < count; i++) call->y[0][i] = (float)act(layer->attr, call->x[0][i]);
}

void sn__reference_act_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  if (sn_layer_is_prelu(layer)) {
    prelu_backward(call);
    return;
  }
  uint64_t count = sn__count(layer->out);
  for (uint64_t i = 0; i < count; i++)
    call->dx[0][i] = (float)(call->dy[0][i] * act_derivative(layer->attr, call->x[0][i]));
}
