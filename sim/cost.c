/* Cost of every step; see the header. Operators other than CONV and FC are bound by memory: what counts is how often
 * each tensor is read or written. */
#include "sim/cost.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SGD with momentum reads weight, gradient and momentum and writes weight and momentum. */
enum { UPDATE_TRANSFERS = 5 };

typedef struct conv_list {
  const sn_conv_choice *choices;
  uint32_t count;
} conv_list;

typedef struct layer_cost {
  int64_t ns[SN_PASSES]; /* CONV: all but the convolution kernels */
  uint64_t scratch[SN_PASSES];
  const conv_list *conv; /* SN_CONV_KERNELS lists, or NULL */
} layer_cost;

struct sn_costs {
  layer_cost *layers;
  sn_arena *arena;
};

/* How many bytes move and how many kernels run, forward and backward. */
typedef struct traffic {
  double bytes[2], flops[2], launches[2];
} traffic;

static double elements(sn_shape s) {
  return (double)s.n * s.c * s.h * s.w;
}

static traffic fc_traffic(const sn_layer *layer, double x, double y) {
  double weights = 4 * (double)layer->parameters, flops = 2 * (double)layer->macs;
  return (traffic){.bytes = {x + y + weights, 2 * (x + y + weights)}, .flops = {flops, 2 * flops}, .launches = {2, 3}};
}

/* x, y: bytes of one input and one output. Biases are added and reduced by kernels of their own. */
static traffic traffic_of(const sn_layer *layer, double x, double y) {
  double in = layer->n_inputs, out = layer->n_outputs, mask = (double)layer->mask_bytes;
  switch (layer->op) {
  case SN_CONV:
    return layer->attr.bias ? (traffic){.bytes = {2 * y, y}, .launches = {1, 1}} : (traffic){0};
  case SN_FC:
    return fc_traffic(layer, x, y);
  case SN_POOL:
  case SN_LRN:
  case SN_ACT:
    return (traffic){.bytes = {x + y, 2 * (x + y)}, .launches = {1, 1}};
  case SN_BN: /* statistics first, then the normalisation: x is read twice, in backward x and dy are */
    return (traffic){.bytes = {2 * x + y, 3 * x + 2 * y}, .launches = {1, 1}};
  case SN_DROPOUT:
    return (traffic){.bytes = {x + y + mask, x + y + mask}, .launches = {1, 1}};
  case SN_SOFTMAX:
    return (traffic){.bytes = {x + y, x + y}, .launches = {2, 1}};
  case SN_JOIN: /* backward copies dy for every input but the first */
    return (traffic){.bytes = {in * x + y, 2 * (in - 1) * x}, .launches = {1, in - 1}};
  case SN_FORK: /* a copy per branch; backward adds each branch but the first to the first */
    return (traffic){.bytes = {2 * out * x, 3 * (out - 1) * x}, .launches = {out, out - 1}};
  case SN_CONCAT:
    return (traffic){.bytes = {2 * y, 2 * y}, .launches = {in, in}};
  case SN_DATA:
  case SN_OP_COUNT:
    break;
  }
  return (traffic){0};
}

static int64_t roofline(const sn_device *d, double flops, double bytes, double launches) {
  double seconds = fmax(flops / (d->flops * d->gemm_efficiency), bytes / (d->memory_bandwidth * d->memory_efficiency));
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + llround(launches) * d->launch_ns;
}

static bool add_conv(sn_costs *costs, const sn_layer *layer, sn_shape input, const sn_device *device,
                     layer_cost *cost) {
  conv_list *lists = sn_arena_alloc(costs->arena, SN_CONV_KERNELS, sizeof *lists);
  if (!lists) return false;
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    sn_conv_choice choices[SN_CONV_ALGOS];
    uint32_t count = sn_conv_choices(layer, input, kernel, device, choices);
    sn_conv_choice *copy = sn_arena_alloc(costs->arena, count, sizeof *copy);
    if (!copy) return false;
    memcpy(copy, choices, count * sizeof *copy);
    lists[kernel] = (conv_list){.choices = copy, .count = count};
  }
  cost->conv = lists;
  return true;
}

static bool add_layer(sn_costs *costs, const sn_net *net, uint32_t index, const sn_device *device) {
  const sn_layer *layer = &net->layers[index];
  layer_cost *cost = &costs->layers[index];
  if (layer->op == SN_DATA) return true;
  sn_shape input = sn_layer_input_shape(net, layer, 0);
  traffic t = traffic_of(layer, 4 * elements(input), 4 * elements(layer->out));
  for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++)
    cost->ns[pass] = roofline(device, t.flops[pass], t.bytes[pass], t.launches[pass]);
  if (layer->parameters > 0)
    cost->ns[SN_UPDATE] = roofline(device, 0, 4.0 * UPDATE_TRANSFERS * (double)layer->parameters, 1);
  return layer->op != SN_CONV || add_conv(costs, layer, input, device, cost);
}

/* The slowest an iteration can be, in seconds. */
static double slowest(const sn_costs *costs, uint32_t n_layers) {
  double ns = 0;
  for (uint32_t i = 0; i < n_layers; i++) {
    const layer_cost *cost = &costs->layers[i];
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) ns += (double)cost->ns[pass];
    for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv; k++)
      ns += (double)cost->conv[k].choices[cost->conv[k].count - 1].ns;
  }
  return ns / 1e9;
}

sn_costs *sn_costs_new(const sn_net *net, const sn_device *device, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_costs *costs = arena ? sn_arena_alloc(arena, 1, sizeof *costs) : NULL;
  if (costs) {
    costs->arena = arena;
    costs->layers = sn_arena_alloc(arena, net->n_layers, sizeof *costs->layers);
  }
  bool good = costs && costs->layers;
  for (uint32_t i = 0; good && i < net->n_layers; i++) good = add_layer(costs, net, i, device);
  if (!good)
    sn_fail_memory(err);
  else if (slowest(costs, net->n_layers) >= SN_MAX_OP_SECONDS)
    sn_fail(err, SN_BAD_INPUT,
            "network %s at batch %u: an iteration on %s would take more than %.0f days; choose a smaller batch",
            net->name, net->batch, device->name, SN_MAX_OP_SECONDS / 86400);
  else
    return costs;
  sn_arena_free(arena);
  return NULL;
}

void sn_costs_free(sn_costs *costs) {
  if (costs) sn_arena_free(costs->arena);
}

const sn_conv_choice *sn_costs_conv(const sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, uint32_t *count) {
  const conv_list *list = &costs->layers[layer].conv[kernel];
  *count = list->count;
  return list->choices;
}

void sn_costs_set_scratch(sn_costs *costs, uint32_t layer, sn_pass pass, uint64_t bytes) {
  costs->layers[layer].scratch[pass] = bytes;
}

uint64_t sn_costs_scratch(const sn_costs *costs, uint32_t layer, sn_pass pass) {
  return costs->layers[layer].scratch[pass];
}

static int64_t kernel_ns(const layer_cost *cost, sn_conv_kernel kernel, uint8_t algo) {
  const conv_list *list = &cost->conv[kernel];
  for (uint32_t i = 0; i < list->count; i++)
    if (list->choices[i].algo == algo) return list->choices[i].ns;
  return list->choices[list->count - 1].ns;
}

int64_t sn_costs_step(const sn_costs *costs, uint32_t layer, sn_pass pass, const uint8_t algo[2]) {
  const layer_cost *cost = &costs->layers[layer];
  int64_t ns = cost->ns[pass];
  if (cost->conv && pass == SN_FORWARD) ns += kernel_ns(cost, SN_CONV_FORWARD, algo[0]);
  if (cost->conv && pass == SN_BACKWARD)
    ns += kernel_ns(cost, SN_CONV_BACKWARD_DATA, algo[0]) + kernel_ns(cost, SN_CONV_BACKWARD_FILTER, algo[1]);
  return ns;
}
