/* Training state; see the header. */
#include "exec/kernel/state.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a norm that are 1 at first: gammas, of which a BN has as many running variances. */
static uint32_t ones_of(const sn_layer *layer) {
  bool norm = layer->op == SN_BN || layer->op == SN_GROUP_NORM || layer->op == SN_LAYER_NORM ||
              layer->op == SN_RMS_NORM || layer->op == SN_SCALE;
  return norm ? layer->out.c : 0;
}

static void start_layer(sn_state *s, uint32_t index, const sn_hyper *hyper) {
  const sn_layer *layer = &s->net->layers[index];
  float *p = s->parameters + s->parameter_offset[index];
  float *running_variance = s->statistics + s->statistics_offset[index] + layer->out.c;
  for (uint32_t c = 0; c < ones_of(layer); c++) {
    p[c] = 1;
    if (layer->op == SN_BN) running_variance[c] = 1;
  }
  if (layer->parameters > 0 && ones_of(layer) == 0) sn_init_draw(s->net, index, hyper->init, hyper->seed, p);
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

sn_state *sn_state_new(const sn_net *net, const sn_hyper *hyper, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_state *s = arena ? sn_arena_alloc(arena, 1, sizeof *s) : NULL;
  if (s) *s = (sn_state){.net = net, .arena = arena};
  if (!s || !allocate(s, hyper->optimizer, arena)) {
    sn_arena_free(arena);
    sn_fail_memory(err);
    return NULL;
  }
  for (uint32_t i = 0; i < net->n_layers; i++) start_layer(s, i, hyper);
  s->fresh = true;
  return s;
}

void sn_state_free(sn_state *state) {
  if (state) sn_arena_free(state->arena);
}

double sn_relative_difference(const float *a, const float *b, uint64_t count) {
  double largest = 0, difference = 0;
  for (uint64_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs((double)a[i]));
    difference = fmax(difference, fabs((double)a[i] - b[i]));
  }
  return difference > 0 ? difference / largest : 0;
}

uint64_t sn_digest(uint64_t digest, const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < count; i += sizeof digest) {
    uint64_t word = 0;
    memcpy(&word, b + i, count - i < sizeof word ? count - i : sizeof word);
    digest = sn_fnv_add(digest, word);
  }
  return digest;
}
