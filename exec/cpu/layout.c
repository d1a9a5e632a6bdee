/* CPU kernels: which values of a net lie blocked (exec/cpu/cpu.h). Convolutions on blocked values are about twice as
 * fast as on plain ones, and nothing else minds.
 *
 * Values that an operator only copies, adds or maps element by element are one group and lie alike; CONV, DECONV, POOL
 * and FC stand between groups and take either side as it is. A group is blocked where the block divides the channels of
 * all its values, the input batch is not among them, and a CONV or DECONV has kernels of oneDNN's made for it then.
 * O(values), and three questions to oneDNN a convolution. Chosen by net and processor alone, whatever the threads. */
#include "exec/cpu/cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Channels that a vector register holds. */
static uint32_t block_here(void) {
  dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return 16;
  return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 ? 8 : 1;
}

uint32_t sn__input_layout(const sn__cpu *k, uint32_t layer, uint32_t i) {
  return k->layouts[k->net->inputs[k->net->layers[layer].first_input + i]];
}

uint32_t sn__output_layout(const sn__cpu *k, uint32_t layer) {
  return k->layouts[k->net->layers[layer].first_output];
}

/* What a group is, at the value that stands for it. */
typedef struct group {
  uint32_t parent; /* a value of the same group; its own: it stands for it */
  bool divides, wanted;
} group;

static uint32_t find(group *groups, uint32_t value) {
  while (groups[value].parent != value) value = groups[value].parent = groups[groups[value].parent].parent;
  return value;
}

static void unite(group *groups, uint32_t a, uint32_t b) {
  a = find(groups, a), b = find(groups, b);
  groups[b].parent = a;
  groups[a].divides = groups[a].divides && groups[b].divides;
}

/* Whether all values of an operator lie alike. */
static bool keeps_layout(sn_op op) {
  static const bool keeps[SN_OP_COUNT] = {
      [SN_ACT] = true,  [SN_BN] = true,     [SN_LRN] = true, [SN_DROPOUT] = true, [SN_JOIN] = true,
      [SN_FORK] = true, [SN_CONCAT] = true, [SN_MUL] = true, [SN_SCALE] = true};
  return keeps[op];
}

static bool takes_either(sn_op op) {
  return op == SN_CONV || op == SN_DECONV || op == SN_POOL || op == SN_FC;
}

/* Values of a layer: its inputs, then its outputs. */
static uint32_t value_of(const sn_net *net, const sn_layer *layer, uint32_t i) {
  return i < layer->n_inputs ? net->inputs[layer->first_input + i] : layer->first_output + i - layer->n_inputs;
}

static void join_groups(const sn_net *net, group *groups) {
  for (uint32_t i = 1; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    for (uint32_t v = 0; v < layer->n_inputs + layer->n_outputs; v++) {
      if (keeps_layout(layer->op)) unite(groups, value_of(net, layer, 0), value_of(net, layer, v));
      if (!keeps_layout(layer->op) && !takes_either(layer->op))
        groups[find(groups, value_of(net, layer, v))].divides = false;
    }
  }
}

/* What a convolution would have. */
static sn_status ask_for(const sn__cpu *k, group *groups, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  group *x = &groups[find(groups, value_of(k->net, layer, 0))];
  group *y = &groups[find(groups, layer->first_output)];
  bool native = false;
  if (!x->divides && !y->divides) return SN_OK;
  if (sn__conv_is_native(k, index, x->divides ? k->block : 1, y->divides ? k->block : 1, &native, err))
    return err->code;
  x->wanted = x->wanted || native;
  y->wanted = y->wanted || native;
  return SN_OK;
}

static void name_layouts(sn__cpu *k) {
  uint32_t blocked = 0;
  for (uint32_t v = 0; v < k->net->n_values; v++) blocked += k->layouts[v] > 1;
  if (blocked > 0)
    snprintf(k->named, sizeof k->named, "nChw%" PRIu32 "c: %" PRIu32 " of %" PRIu32 " values", k->block, blocked,
             k->net->n_values);
  else
    snprintf(k->named, sizeof k->named, "plain");
}

sn_status sn__layouts_choose(sn__cpu *k, sn_err *err) {
  const sn_net *net = k->net;
  group *groups = malloc(net->n_values * sizeof *groups);
  k->layouts = malloc(net->n_values * sizeof *k->layouts);
  k->block = block_here();
  if (!groups || !k->layouts) {
    free(groups);
    return sn_fail_memory(err);
  }
  for (uint32_t v = 0; v < net->n_values; v++) {
    uint32_t maker = net->values[v].producer;
    bool divides = k->block > 1 && net->layers[maker].op != SN_DATA && net->layers[maker].out.c % k->block == 0;
    groups[v] = (group){v, divides, false};
  }
  join_groups(net, groups);
  for (uint32_t i = 1; i < net->n_layers && err->code == SN_OK; i++)
    if (net->layers[i].op == SN_CONV || net->layers[i].op == SN_DECONV) ask_for(k, groups, i, err);
  for (uint32_t v = 0; v < net->n_values; v++) {
    const group *g = &groups[find(groups, v)];
    k->layouts[v] = g->divides && g->wanted ? k->block : 1;
  }
  free(groups);
  name_layouts(k);
  return err->code;
}
