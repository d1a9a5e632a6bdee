/* Weights before the first iteration; see the header. */
#include "exec/kernel/init.h"

#include "base/checked.h"
#include "exec/data/random.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *const names[SN_INITS] = {"small-end", "he", "pytorch"};
static const float end_share = 0.1f, table_deviation = 0.02f, first_slope = 0.25f;

sn_status sn_init_parse(const char *text, sn_init *init, sn_err *err) {
  for (int i = 0; i < SN_INITS; i++)
    if (strcmp(text, names[i]) == 0) {
      *init = (sn_init)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "--init: \"%.40s\" is none of: small-end, he, pytorch", text);
}

/* How many products an output is the sum of. Of a DECONV on the average, since its windows overlap by their stride;
 * PyTorch takes the other side of its weights. */
static uint64_t fan_in(const sn_net *net, const sn_layer *layer, sn_init init) {
  sn_shape x = sn_layer_input_shape(net, layer, 0);
  const sn_attr *a = layer->attr;
  uint64_t window = (uint64_t)(a->kernel_d > 0 ? a->kernel_d : 1) * a->kernel_h * a->kernel_w;
  uint64_t apart = (uint64_t)(a->stride_d > 0 ? a->stride_d : 1) * a->stride_h * a->stride_w;
  if (layer->op == SN_DECONV && init == SN_INIT_PYTORCH) return a->channels / a->groups * window;
  if (layer->op == SN_DECONV) return sn_ceil_div(x.c / a->groups * window, apart);
  if (layer->op == SN_CONV) return x.c / a->groups * window;
  return (uint64_t)x.c * (a->positions ? 1 : (uint64_t)x.h * x.w);
}

/* Whether nothing with weights lies between a layer and a SOFTMAX. */
static bool is_end(const sn_net *net, const sn_layer *layer) {
  sn_op op;
  do {
    layer = &net->layers[net->values[layer->first_output].consumer];
    op = layer->op;
  } while (op == SN_POOL || op == SN_ACT || op == SN_DROPOUT);
  return op == SN_SOFTMAX;
}

static void draw_normal(uint64_t key, float deviation, float *p, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) p[i] = deviation * sn__random_normal(key, i);
}

static void draw_even(uint64_t key, float limit, float *p, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) p[i] = limit * ((float)(sn__random(key, i) >> 40) * 0x1p-23f - 1);
}

/* Of an adapter's two factors the second, whose product with the first is 0 at first. */
static bool is_second_factor(const sn_net *net, const sn_layer *layer) {
  return layer->tuning == SN_TUNED_ALWAYS && net->layers[sn_layer_source(net, layer, 0)].tuning == SN_TUNED_ALWAYS;
}

void sn_init_draw(const sn_net *net, uint32_t index, sn_init init, uint64_t seed, float *p) {
  const sn_layer *layer = &net->layers[index];
  uint64_t key = sn__random_key(seed, index), biases = layer->attr->bias ? layer->attr->channels : 0,
           weights = layer->parameters - biases;
  if (layer->op == SN_EMBEDDING || layer->op == SN_POSITION || layer->op == SN_TOKEN || layer->op == SN_ATTENTION) {
    draw_normal(key, table_deviation, p, layer->parameters);
    return;
  }
  if (sn_layer_is_prelu(layer)) {
    for (uint64_t i = 0; i < layer->parameters; i++) p[i] = first_slope;
    return;
  }
  double inputs = (double)fan_in(net, layer, init);
  if (is_second_factor(net, layer)) {
    memset(p, 0, layer->parameters * sizeof *p);
    return;
  }
  if (init == SN_INIT_PYTORCH || layer->tuning == SN_TUNED_ALWAYS) {
    draw_even(key, (float)(1 / sqrt(inputs)), p, layer->parameters);
    return;
  }
  float share = init == SN_INIT_SMALL_END && is_end(net, layer) ? end_share : 1;
  draw_normal(key, share * (float)sqrt(2 / inputs), p, weights);
  memset(p + weights, 0, biases * sizeof *p);
}
