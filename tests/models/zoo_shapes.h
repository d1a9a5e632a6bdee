/* Networks of the zoo, loaded and looked at by name. */
#ifndef SN_TESTS_ZOO_SHAPES_H
#define SN_TESTS_ZOO_SHAPES_H

#include "models/zoo/zoo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static inline sn_net *load(const char *spec, uint32_t batch, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, image, &err);
  if (!net) fail_msg("%s: %s", spec, err.text);
  return net;
}

static inline const sn_layer *find(const sn_net *net, const char *name) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (strcmp(net->layers[i].name, name) == 0) return &net->layers[i];
  fail_msg("%s: no layer \"%s\"", net->name, name);
  return NULL;
}

static inline uint32_t count(const sn_net *net, sn_op op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) n += net->layers[i].op == op;
  return n;
}

static inline void assert_shape(const sn_net *net, const char *layer, uint32_t c, uint32_t h, uint32_t w) {
  sn_shape s = find(net, layer)->out;
  if (s.c != c || s.h != h || s.w != w)
    fail_msg("%s, %s: %ux%ux%u instead of %ux%ux%u", net->name, layer, s.c, s.h, s.w, c, h, w);
}

#endif
