/* Twins; see the header. */
#include "sim/device/same_costs.h"

#include "sim/graph/mesh.h"

#include <string.h>

static uint32_t class_of(const sn_layer *layer, sn_shape input) {
  uint64_t mixed = layer->macs + layer->parameters * 3 + input.c * UINT64_C(5) + layer->out.c * UINT64_C(7) +
                   layer->out.h * UINT64_C(11) + (uint64_t)layer->op * 13;
  return (uint32_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static bool is_same_shape(sn_shape a, sn_shape b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}

/* Byte by byte: what differs in padding alone only is no twin. */
static bool is_same_attr(const sn_attr *a, const sn_attr *b) {
  const void *one = a, *other = b;
  return one == other || memcmp(one, other, sizeof *a) == 0;
}

static bool have_same_inputs(const sn_net *net, const sn_layer *a, const sn_layer *b) {
  if (a->n_inputs != b->n_inputs) return false;
  for (uint32_t i = 0; i < a->n_inputs; i++)
    if (!is_same_shape(sn_layer_input_shape(net, a, i), sn_layer_input_shape(net, b, i))) return false;
  return true;
}

static bool are_twins(const sn_net *net, const sn_layer *a, const sn_layer *b) {
  return a->op == b->op && a->n_outputs == b->n_outputs && a->parameters == b->parameters && a->macs == b->macs &&
         a->mask_bytes == b->mask_bytes && a->statistics_bytes == b->statistics_bytes &&
         is_same_shape(a->out, b->out) && have_same_inputs(net, a, b) && is_same_attr(a->attr, b->attr);
}

uint32_t sn__same_costs_find(sn__same_costs *twins, const sn_net *net, uint32_t layer) {
  const sn_layer *l = &net->layers[layer];
  uint32_t *latest = &twins->latest[class_of(l, sn_layer_input_shape(net, l, 0))];
  const sn_layer *before = &net->layers[*latest];
  uint32_t twin = *latest > 0 && are_twins(net, l, before) ? *latest : 0;
  if (twin > 0 && twins->divided && sn_division_of(net, l) != sn_division_of(net, before)) twin = 0;
  *latest = layer;
  return twin;
}
