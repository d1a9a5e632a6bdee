/* Training state; see the header. Layer i draws its weights from stream i of the seed. */
#include "exec/state.h"

#include "base/arena.h"
#include "exec/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
  uint64_t key = sn__random_key(seed, index);
  for (uint64_t i = 0; i < weights; i++) p[i] = scale * sn__random_normal(key, i);
}

static bool allocate(sn_state *s, sn_optimizer optimizer, sn_arena *arena) {
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
  s->parameters = sn_arena_alloc(arena, parameters, sizeof(float));
  s->gradients = sn_arena_alloc(arena, parameters, sizeof(float));
  s->statistics = sn_arena_alloc(arena, s->n_statistics, sizeof(float));
  bool good = s->parameters && s->gradients && s->statistics;
  for (uint32_t i = 0; i < sn_optimizer_states(optimizer) && good; i++)
    good = (s->states[i] = sn_arena_alloc(arena, parameters, sizeof(float)));
  return good;
}

sn_state *sn_state_new(const sn_net *net, sn_optimizer optimizer, uint64_t seed, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_state *s = arena ? sn_arena_alloc(arena, 1, sizeof *s) : NULL;
  if (s) *s = (sn_state){.net = net, .arena = arena};
  if (!s || !allocate(s, optimizer, arena)) {
    sn_arena_free(arena);
    sn_fail_memory(err);
    return NULL;
  }
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].parameters > 0) draw_parameters(s, i, seed);
  s->fresh = true;
  return s;
}

void sn_state_free(sn_state *state) {
  if (state) sn_arena_free(state->arena);
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
