/* Layers of a network by name. */
#ifndef SN_TESTS_NAMED_LAYER_H
#define SN_TESTS_NAMED_LAYER_H

#include "models/net/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static inline uint32_t find_layer(const sn_net *net, const char *name) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (strcmp(net->layers[i].name, name) == 0) return i;
  fail_msg("no layer \"%s\"", name);
  return 0;
}

static inline const sn_layer *named(const sn_net *net, const char *name) {
  return &net->layers[find_layer(net, name)];
}

static inline const char *source(const sn_net *net, const char *name, uint32_t input) {
  const sn_layer *layer = named(net, name);
  assert_true(input < layer->n_inputs);
  return net->layers[sn_layer_source(net, layer, input)].name;
}

#endif
