/* Training state; see the header. Random numbers are counter-based (splitmix64 of seed, stream and index), so that each
 * element can be drawn alone and in any order. */
#include "exec/state.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

/* A key for a stream of numbers, and number `index` of it. */
static uint64_t key_of(uint64_t seed, uint64_t stream) {
  return mix(mix(seed + golden) + (stream + 1) * golden);
}

static uint64_t draw(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * golden);
}

/* Mean 0, variance 1, nearly normal: the sum of four 16-bit uniform numbers (a fraction of the cost of an exact one).
 */
static float draw_normal(uint64_t key, uint64_t index) {
  uint64_t bits = draw(key, index);
  int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (float)(sum - 131070) * (1.7320508f / 65536);
}

static uint64_t fan_in(const sn_net *net, const sn_layer *layer) {
  sn_shape x = sn_layer_input_shape(net, layer, 0);
  const sn_attr *a = &layer->attr;
  if (layer->op == SN_CONV) return (uint64_t)x.c / a->groups * a->kernel_h * a->kernel_w;
  return (uint64_t)x.c * x.h * x.w;
}

static void draw_parameters(sn_state *s, uint32_t index, uint64_t seed) {
  const sn_layer *layer = &s->net->layers[index];
  float *p = s->parameters + s->parameter_offset[index];
  if (layer->op == SN_BN) {
    for (uint64_t i = 0; i < layer->parameters / 2; i++) p[i] = 1;
    return;
  }
  uint64_t weights = layer->parameters - (layer->attr.bias ? layer->attr.channels : 0);
  float scale = (float)sqrt(2.0 / (double)fan_in(s->net, layer));
  uint64_t key = key_of(seed, index);
  for (uint64_t i = 0; i < weights; i++) p[i] = scale * draw_normal(key, i);
}

static bool allocate(sn_state *s, sn_arena *arena) {
  const sn_net *net = s->net;
  uint64_t *parameter_offset = sn_arena_alloc(arena, net->n_layers, sizeof *parameter_offset);
  uint64_t *statistics_offset = sn_arena_alloc(arena, net->n_layers, sizeof *statistics_offset);
  if (!parameter_offset || !statistics_offset) return false;
  uint64_t parameters = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    parameter_offset[i] = parameters;
    statistics_offset[i] = s->n_statistics;
    parameters += net->layers[i].parameters;
    s->n_statistics += net->layers[i].statistics_bytes / sizeof(float);
  }
  s->parameter_offset = parameter_offset;
  s->statistics_offset = statistics_offset;
  s->n_data = net->data_bytes / sizeof(float);
  s->parameters = sn_arena_alloc(arena, parameters, sizeof(float));
  s->gradients = sn_arena_alloc(arena, parameters, sizeof(float));
  s->momentum = sn_arena_alloc(arena, parameters, sizeof(float));
  s->statistics = sn_arena_alloc(arena, s->n_statistics, sizeof(float));
  s->data = sn_arena_alloc(arena, s->n_data, sizeof(float));
  s->labels = sn_arena_alloc(arena, net->batch, sizeof(int32_t));
  return s->parameters && s->gradients && s->momentum && s->statistics && s->data && s->labels;
}

sn_state *sn_state_new(const sn_net *net, uint64_t seed, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_state *s = arena ? sn_arena_alloc(arena, 1, sizeof *s) : NULL;
  if (s) *s = (sn_state){.net = net, .arena = arena};
  if (!s || !allocate(s, arena)) {
    sn_arena_free(arena);
    sn_fail_memory(err);
    return NULL;
  }
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].parameters > 0) draw_parameters(s, i, seed);
  return s;
}

void sn_state_free(sn_state *state) {
  if (state) sn_arena_free(state->arena);
}

/* Streams beyond the layers' numbers. */
enum { STREAM_PIXELS = 1 << 30, STREAM_LABELS };

void sn_state_draw_batch(sn_state *s, uint64_t seed, uint64_t iteration, uint32_t classes) {
  uint64_t pixels = key_of(key_of(seed, STREAM_PIXELS), iteration),
           labels = key_of(key_of(seed, STREAM_LABELS), iteration);
  for (uint64_t i = 0; i < s->n_data; i++) s->data[i] = draw_normal(pixels, i);
  for (uint32_t i = 0; i < s->net->batch; i++) s->labels[i] = (int32_t)(draw(labels, i) % (classes ? classes : 1));
}

uint32_t sn_state_classes(const sn_net *net) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_SOFTMAX) return net->layers[i].out.c;
  return 1;
}

uint64_t sn_digest(uint64_t digest, const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < count; i += sizeof digest) {
    uint64_t word = 0;
    memcpy(&word, b + i, count - i < sizeof word ? count - i : sizeof word);
    digest = (digest ^ word) * UINT64_C(1099511628211);
  }
  return digest;
}
