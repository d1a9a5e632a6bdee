/* Cost of every step; see the header. Operators other than CONV, DECONV and FC are bound by memory: what counts is how
 * often each tensor is read or written. */
#include "sim/device/cost.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "sim/device/device_internal.h"
#include "sim/device/product.h"
#include "sim/device/same_costs.h"
#include "sim/device/scaling.h"
#include "sim/graph/route.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `all` there are, and those of them worth choosing, sorted: a measured time may bring one back. */
typedef struct conv_list {
  sn_conv_choice *all, *choices;
  uint32_t n_all, count;
} conv_list;

typedef struct layer_cost {
  int64_t ns[SN_PASSES];                      /* CONV, DECONV: all but the convolution kernels */
  int64_t launch_ns[SN_PASSES];               /* of that launches, but for an update's */
  int64_t rank_ns[SN_PASSES];                 /* tp: what a rank's products take beyond its share of the time */
  int64_t adds_ns, adds_launch_ns;            /* eager: of gradients to those of earlier micro-batches */
  int64_t eager_less_ns;                      /* of an ACT's backward: what PyTorch's does not move */
  int64_t data_ns;                            /* an FC's DATA in its backward; 0: half of it */
  int64_t cast_inputs_ns, cast_parameters_ns; /* SN_CAST: of the gradient for one input, of those for all parameters */
  uint32_t sums; /* that its backward is made of: of a FORK one for each reader but the first */
  bool measured[SN_PASSES];
  uint64_t scratch[SN_PASSES];
  conv_list *conv; /* SN_CONV_KERNELS lists, or NULL */
} layer_cost;

struct sn_costs {
  layer_cost **layers; /* layers that are alike have the same, unless: */
  bool separate;
  const sn_device *device; /* outlives them */
  sn_optimizer optimizer;
  sn_precision precision;
  uint32_t kept_bytes;           /* of an element of what updates read and write */
  uint32_t batches, ranks;       /* micro-batches an update; of tp */
  bool masters;                  /* sn_iteration_keeps_masters() */
  bool inference, measured;      /* measured: something is */
  int64_t host_ns;               /* of PyTorch's host for an operation */
  char layouts[SN_LAYOUTS_TEXT]; /* empty: plain */
  const int64_t *transfers;      /* of a route; NULL: none */
  sn_arena *arena;
};

static double elements(sn_shape s) {
  return (double)s.n * s.c * s.h * s.w;
}

/* x, y: bytes of one input and one output, weight: of an element of the weights. */
static sn_traffic traffic_of(const sn_layer *layer, double x, double y, double weight) {
  const sn_op_def *op = sn_op_of(layer);
  return op->traffic ? op->traffic(layer, x, y, weight) : (sn_traffic){0};
}

static void sort_list(conv_list *list) {
  memcpy(list->choices, list->all, list->n_all * sizeof *list->all);
  list->count = sn_conv_sort(list->choices, list->n_all);
}

static bool set_list(sn_costs *costs, conv_list *list, const sn_conv_choice *choices, uint32_t count) {
  sn_conv_choice *room = sn_arena_alloc(costs->arena, (size_t)2 * count, sizeof *room);
  if (!room) return false;
  memcpy(room, choices, count * sizeof *room);
  for (uint32_t i = 0; i < count; i++) costs->measured |= choices[i].measured;
  *list = (conv_list){.all = room, .choices = room + count, .n_all = count};
  sort_list(list);
  return true;
}

static bool add_conv(sn_costs *costs, const sn_layer *layer, sn_shape input, const sn_device *device,
                     const sn_arithmetic *how, layer_cost *cost) {
  cost->conv = sn_arena_alloc(costs->arena, SN_CONV_KERNELS, sizeof *cost->conv);
  if (!cost->conv) return false;
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    sn_conv_choice choices[SN_CONV_ALGOS];
    uint32_t count = sn_conv_choices(layer, input, kernel, device, how, choices);
    if (!set_list(costs, &cost->conv[kernel], choices, count)) return false;
  }
  return true;
}

/* T of all cores. */
static int64_t law_ns(const sn_net *net, uint32_t index, const sn_device *device, sn_pass pass, sn_kernel part,
                      sn_optimizer optimizer) {
  sn_scaling scaling = sn_scaling_of(&device->cores, net, index, pass, part, optimizer);
  return sn_scaling_ns(&device->cores, &scaling, device->cores.count);
}

static bool add_conv_on_cores(sn_costs *costs, const sn_net *net, uint32_t index, const sn_device *device) {
  static const sn_kernel parts[SN_CONV_KERNELS] = {SN_WHOLE, SN_DATA_GRADIENT, SN_FILTER_GRADIENT};
  layer_cost *cost = costs->layers[index];
  cost->conv = sn_arena_alloc(costs->arena, SN_CONV_KERNELS, sizeof *cost->conv);
  if (!cost->conv) return false;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) {
    sn_pass pass = k == SN_CONV_FORWARD ? SN_FORWARD : SN_BACKWARD;
    int64_t ns = law_ns(net, index, device, pass, parts[k], SN_OPTIMIZER_MOMENTUM);
    sn_conv_choice only = {.algo = SN_IMPLICIT_GEMM, .ns = ns};
    if (!set_list(costs, &cost->conv[k], &only, 1)) return false;
  }
  return true;
}

static bool add_layer_on_cores(sn_costs *costs, const sn_net *net, uint32_t index, const sn_device *device) {
  layer_cost *cost = costs->layers[index];
  sn_op op = net->layers[index].op;
  if (sn_op_table[op]->convolves) return add_conv_on_cores(costs, net, index, device);
  cost->ns[SN_FORWARD] = law_ns(net, index, device, SN_FORWARD, SN_WHOLE, SN_OPTIMIZER_MOMENTUM);
  if (!sn_op_splits(op)) {
    cost->ns[SN_BACKWARD] = law_ns(net, index, device, SN_BACKWARD, SN_WHOLE, SN_OPTIMIZER_MOMENTUM);
    return true;
  }
  cost->data_ns = law_ns(net, index, device, SN_BACKWARD, SN_DATA_GRADIENT, SN_OPTIMIZER_MOMENTUM);
  cost->ns[SN_BACKWARD] =
      cost->data_ns + law_ns(net, index, device, SN_BACKWARD, SN_FILTER_GRADIENT, SN_OPTIMIZER_MOMENTUM);
  return true;
}

/* Bytes of an element. */
static double width_of(const uint8_t *widths, uint32_t value) {
  return widths ? widths[value] : 4;
}

/* Whether tensor cores do it. They want channels in groups of eight at least. */
static bool is_product(const sn_layer *layer, sn_shape input, sn_precision precision) {
  if (sn_op_of(layer)->convolves) return !sn_conv_is_direct(input.c, layer->attr->groups);
  if (precision == SN_TF32_CONV) return false;
  const sn_op_def *op = sn_op_of(layer);
  return op->autocast == SN_AUTOCAST_NARROW || (op->weighs && !sn_precision_is_amp(precision));
}

/* What copies into another width move: operands forward, which is returned, and gradients back. */
static double add_casts(layer_cost *cost, const sn_net *net, const sn_layer *layer, const sn_widths *w,
                        const sn_device *device) {
  double forward = 0, most = 0, parameters = sn_precision_casts_weights(w->precision, layer) ? 6 : 0;
  for (uint32_t i = 0; i < layer->n_inputs && w->made; i++) {
    uint32_t value = net->inputs[layer->first_input + i];
    double count = (double)net->values[value].bytes / 4;
    if (w->taken[value] != w->made[value]) forward += count * (w->taken[value] + w->made[value]);
    most = fmax(most, count * (w->gradient[value] + w->made[value]));
  }
  parameters *= (double)layer->parameters;
  cost->cast_inputs_ns = sn__moved_ns(device, most);
  cost->cast_parameters_ns = sn__moved_ns(device, parameters);
  return forward + parameters;
}

/* Lists of its own instead of those of another layer. */
static bool copy_lists(sn_costs *costs, layer_cost *cost) {
  const conv_list *lists = cost->conv;
  cost->conv = sn_arena_alloc(costs->arena, SN_CONV_KERNELS, sizeof *cost->conv);
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv; k++) {
    const conv_list *list = &lists[k];
    sn_conv_choice *room = sn_arena_alloc(costs->arena, (size_t)list->n_all + list->count, sizeof *room);
    if (!room) return false;
    memcpy(room, list->all, list->n_all * sizeof *room);
    memcpy(room + list->n_all, list->choices, list->count * sizeof *room);
    cost->conv[k] = (conv_list){room, room + list->n_all, list->n_all, list->count};
  }
  return cost->conv != NULL;
}

/* The same, of the fastest of each. */
static bool copy_fastest(sn_costs *costs, layer_cost *cost, uint64_t workspace) {
  const conv_list *lists = cost->conv;
  cost->conv = sn_arena_alloc(costs->arena, SN_CONV_KERNELS, sizeof *cost->conv);
  sn_conv_choice *room = sn_arena_alloc(costs->arena, (size_t)2 * SN_CONV_KERNELS, sizeof *room);
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv && room; k++, room += 2) {
    room[0] = lists[k].choices[0];
    room[0].workspace = workspace;
    room[1] = room[0];
    cost->conv[k] = (conv_list){room, room + 1, 1, 1};
  }
  return cost->conv && room;
}

/* Launches are not divided, and products have a rank's own shapes. `sizes`: bytes of input, output, a weight. */
static void add_rank(const sn_costs *costs, layer_cost *cost, const sn_net *net, const sn_layer *layer,
                     const sn_arithmetic *how, const sn_traffic *whole, const double sizes[3]) {
  const uint32_t ranks = costs->ranks;
  const sn_product_part part = {ranks, ranks > 1 ? sn_division_of(net, layer) : SN_UNDIVIDED};
  const double x = part.split == SN_BY_OUTPUTS ? 1 : ranks, y = part.split == SN_BY_INPUTS ? 1 : ranks;
  sn_traffic t = traffic_of(layer, sizes[0] / x, sizes[1] / y, sizes[2] / ranks);
  for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++) {
    const sn_step step = {.share = ranks};
    cost->launch_ns[pass] = llround(whole->launches[pass]) * costs->device->launch_ns;
    if (ranks <= 1 || (layer->op != SN_FC && layer->op != SN_ATTENTION)) continue;
    t.flops[pass] = whole->flops[pass] / ranks;
    if (layer->op == SN_ATTENTION) t.bytes[pass] = whole->bytes[pass] / ranks;
    cost->rank_ns[pass] = sn__pass_ns(costs->device, layer, pass, part, how, &t) -
                          sn_step_share(&step, cost->ns[pass], cost->launch_ns[pass]);
  }
}

static bool add_layer(sn_costs *costs, const sn_net *net, uint32_t index, const sn_widths *w, const sn_device *device,
                      sn__same_costs *twins) {
  const sn_layer *layer = &net->layers[index];
  const bool last = sn_conv_lies_last(net, layer);
  bool alone = layer->op == SN_DATA || device->cores.count > 0 || w->made /* values of several widths */ || last;
  uint32_t twin = alone ? 0 : sn__same_costs_find(twins, net, index);
  layer_cost *cost = twin > 0 ? costs->layers[twin] : sn_arena_alloc(costs->arena, 1, sizeof *cost);
  costs->layers[index] = cost;
  if (cost) cost->sums = layer->n_outputs > 2 ? layer->n_outputs - 1 : 1;
  if (!cost || twin > 0 || layer->op == SN_DATA) return cost != NULL;
  if (device->cores.count > 0) return add_layer_on_cores(costs, net, index, device);
  sn_shape input = sn_layer_input_shape(net, layer, 0);
  double x = width_of(w->taken, net->inputs[layer->first_input]), y = width_of(w->made, layer->first_output);
  double weight = sn_precision_casts_weights(w->precision, layer) ? 2 : sn_precision_parameter_bytes(w->precision);
  if (layer->nf4) weight = 0.5 + 2 * weight; /* read, written in full width, and read again */
  sn_arithmetic how = sn_device_arithmetic(device, w->precision, is_product(layer, input, w->precision), (x + y) / 2);
  how.channels_last = last;
  const double sizes[] = {x * elements(input), y * elements(layer->out), weight};
  sn_traffic t = traffic_of(layer, sizes[0], sizes[1], sizes[2]);
  if (layer->op == SN_BN && costs->inference) t.bytes[SN_FORWARD] -= x * elements(input); /* not for statistics */
  double casts = add_casts(cost, net, layer, w, device);
  const double blocks = costs->inference ? 0 : layer->out.c;
  for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++)
    cost->ns[pass] = layer->op == SN_BN ? sn__norm_ns(device, t.bytes[pass], x, t.launches[pass], blocks)
                                        : sn__pass_ns(device, layer, pass, (sn_product_part){0}, &how, &t);
  add_rank(costs, cost, net, layer, &how, &t, sizes);
  cost->adds_ns = sn__adds_ns(device, layer, w->precision, costs->batches, costs->masters);
  cost->adds_launch_ns = sn__adds_launch_ns(device, layer, costs->batches, costs->masters);
  if (layer->op == SN_ACT) cost->eager_less_ns = cost->ns[SN_BACKWARD] - sn__eager_act_ns(device, layer, &t);
  if (layer->op == SN_LAYER_NORM) cost->ns[SN_BACKWARD] += sn__columns_ns(device, layer, x * elements(input), x);
  if (casts > 0) cost->ns[SN_FORWARD] += sn__moved_ns(device, casts);
  if (layer->op == SN_FORK) cost->ns[SN_BACKWARD] -= cost->ns[SN_BACKWARD] % cost->sums; /* of whole ns */
  return !sn_op_of(layer)->convolves || add_conv(costs, layer, input, device, &how, cost);
}

void sn_costs_set_optimizer(sn_costs *costs, const sn_net *net, const sn_device *device, sn_optimizer optimizer) {
  costs->optimizer = optimizer;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    if (net->layers[i].parameters == 0) continue;
    costs->layers[i]->ns[SN_UPDATE] =
        device->cores.count > 0
            ? law_ns(net, i, device, SN_UPDATE, SN_WHOLE, optimizer)
            : sn__moved_ns(device, sn__update_bytes(&net->layers[i], optimizer, costs->kept_bytes, costs->masters));
  }
}

void sn_costs_set_layouts(sn_costs *costs, const char *layouts) {
  snprintf(costs->layouts, sizeof costs->layouts, "%s", layouts);
}

const char *sn_costs_layouts(const sn_costs *costs) {
  return costs->layouts[0] ? costs->layouts : "plain";
}

sn_optimizer sn_costs_optimizer(const sn_costs *costs) {
  return costs->optimizer;
}

/* The slowest an iteration can be, in seconds. */
static double slowest(const sn_costs *costs, uint32_t n_layers) {
  double ns = 0;
  for (uint32_t i = 0; i < n_layers; i++) {
    const layer_cost *cost = costs->layers[i];
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) ns += (double)cost->ns[pass];
    for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv; k++)
      ns += (double)cost->conv[k].choices[cost->conv[k].count - 1].ns;
  }
  return ns / 1e9;
}

sn_costs *sn_costs_new_in(const sn_net *net, const sn_device *device, sn_iteration iteration, sn_err *err) {
  sn_widths widths;
  if (sn_widths_make(&widths, net, iteration.precision, true, err) != SN_OK) return sn_widths_clear(&widths), NULL;
  sn_arena *arena = sn_arena_new();
  sn_costs *costs = arena ? sn_arena_alloc(arena, 1, sizeof *costs) : NULL;
  if (costs) {
    costs->arena = arena;
    costs->precision = iteration.precision;
    costs->kept_bytes = sn_iteration_kept_bytes(iteration);
    costs->inference = iteration.inference;
    costs->batches = sn_iteration_micros(iteration);
    costs->masters = sn_iteration_keeps_masters(iteration);
    costs->ranks = sn_mesh_size(&iteration.mesh, SN_MESH_TP);
    costs->device = device;
    costs->host_ns = sn_host_ns(device, sn_iteration_host_us(iteration));
    costs->layers = sn_arena_alloc(arena, net->n_layers, sizeof(layer_cost *));
  }
  bool good = costs && costs->layers;
  sn__same_costs twins = {.divided = costs && costs->ranks > 1};
  const uint32_t n_own = net->recorded ? 1 : net->n_layers; /* what a recording's steps cost is the route's */
  for (uint32_t i = 0; good && i < n_own; i++) good = add_layer(costs, net, i, &widths, device, &twins);
  for (uint32_t i = n_own; good && i < net->n_layers; i++) costs->layers[i] = costs->layers[0];
  sn_widths_clear(&widths);
  if (good) sn_costs_set_optimizer(costs, net, device, SN_OPTIMIZER_MOMENTUM);
  if (good && slowest(costs, net->n_layers) < SN_MAX_OP_SECONDS) return costs;
  if (!good) sn_fail_memory(err);
  if (good)
    sn_fail(err, SN_BAD_INPUT,
            "network %s at batch %u: an iteration on %s would take more than %.0f days; choose a smaller batch",
            net->name, net->batch, device->name, SN_MAX_OP_SECONDS / 86400);
  sn_arena_free(arena);
  return NULL;
}

/* Every layer its own. `workspaces`: see sn_costs_copy_fastest(); NULL: all algorithms there are. */
static bool separate(sn_costs *costs, const sn_net *net, const uint64_t *workspaces) {
  const uint32_t n_own = net->recorded ? 1 : net->n_layers; /* what a recording's steps cost is the route's */
  layer_cost *own = sn_arena_alloc(costs->arena, n_own, sizeof *own);
  bool good = own != NULL;
  for (uint32_t i = n_own; i < net->n_layers; i++) costs->layers[i] = own;
  for (uint32_t i = 0; i < n_own && good; i++) {
    own[i] = *costs->layers[i];
    costs->layers[i] = &own[i];
    if (own[i].conv) good = workspaces ? copy_fastest(costs, &own[i], workspaces[i]) : copy_lists(costs, &own[i]);
  }
  costs->separate = good;
  return good;
}

static sn_costs *copy_all(const sn_costs *costs, const sn_net *net, const uint64_t *workspaces, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_costs *copy = arena ? sn_arena_alloc(arena, 1, sizeof *copy) : NULL;
  layer_cost **layers = copy ? sn_arena_alloc(arena, net->n_layers, sizeof(layer_cost *)) : NULL;
  bool good = layers != NULL;
  if (good) {
    *copy = *costs;
    copy->arena = arena;
    copy->layers = layers;
    memcpy(layers, costs->layers, net->n_layers * sizeof(layer_cost *));
    good = separate(copy, net, workspaces);
  }
  if (good) return copy;
  sn_arena_free(arena);
  return sn_fail_memory(err), NULL;
}

sn_costs *sn_costs_new(const sn_net *net, const sn_device *device, sn_err *err) {
  sn_costs *costs = sn_costs_new_in(net, device, (sn_iteration){0}, err);
  if (!costs || separate(costs, net, NULL)) return costs;
  sn_costs_free(costs);
  return sn_fail_memory(err), NULL;
}

sn_costs *sn_costs_copy(const sn_costs *costs, const sn_net *net, sn_err *err) {
  return copy_all(costs, net, NULL, err);
}

sn_costs *sn_costs_copy_fastest(const sn_costs *costs, const sn_net *net, const uint64_t *workspaces, sn_err *err) {
  return copy_all(costs, net, workspaces, err);
}

void sn_costs_free(sn_costs *costs) {
  if (costs) sn_arena_free(costs->arena);
}

const sn_conv_choice *sn_costs_conv(const sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, uint32_t *count) {
  const conv_list *list = &costs->layers[layer]->conv[kernel];
  *count = list->count;
  return list->choices;
}

bool sn_costs_convolves(const sn_costs *costs, uint32_t layer) {
  return costs->layers[layer]->conv != NULL;
}

uint64_t sn_costs_largest_workspace(const sn_costs *costs, uint32_t layer) {
  uint64_t most = 0;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++)
    most = sn_max(most, costs->layers[layer]->conv[k].choices[0].workspace);
  return most;
}

/* To be changed. */
static layer_cost *own(sn_costs *costs, uint32_t layer) {
  assert(costs->separate);
  return costs->layers[layer];
}

sn_status sn_costs_set_conv(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, const sn_conv_choice *choices,
                            uint32_t count, sn_err *err) {
  assert(count > 0 && count <= SN_CONV_ALGOS);
  return set_list(costs, &own(costs, layer)->conv[kernel], choices, count) ? SN_OK : sn_fail_memory(err);
}

void sn_costs_keep_smallest(sn_costs *costs, uint32_t layer) {
  layer_cost *cost = own(costs, layer);
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv; k++) {
    conv_list *list = &cost->conv[k];
    list->all[0] = list->choices[list->count - 1];
    list->n_all = 1;
    sort_list(list);
  }
}

void sn_costs_set_scratch(sn_costs *costs, uint32_t layer, sn_pass pass, uint64_t bytes) {
  own(costs, layer)->scratch[pass] = bytes;
}

uint64_t sn_costs_scratch(const sn_costs *costs, uint32_t layer, sn_pass pass) {
  return costs->layers[layer]->scratch[pass];
}

static bool belongs(sn_conv_kernel kernel, sn_pass pass) {
  return pass != SN_UPDATE && (kernel == SN_CONV_FORWARD) == (pass == SN_FORWARD);
}

static int64_t scale(int64_t ns, double factor) {
  return llround(fmin((double)ns * factor, SN_MAX_OP_SECONDS * 1e9));
}

void sn_costs_scale(sn_costs *costs, uint32_t layer, sn_pass pass, double step, double algorithms) {
  layer_cost *cost = own(costs, layer);
  if (!cost->measured[pass]) cost->ns[pass] = scale(cost->ns[pass], step);
  cost->rank_ns[pass] = scale(cost->rank_ns[pass], step);
  if (!cost->measured[pass] && pass == SN_BACKWARD) {
    cost->data_ns = scale(cost->data_ns, step);
    cost->eager_less_ns = 0; /* the factor has it */
  }
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS && cost->conv; k++) {
    if (!belongs(k, pass)) continue;
    for (uint32_t i = 0; i < cost->conv[k].n_all; i++) {
      sn_conv_choice *choice = &cost->conv[k].all[i];
      if (!choice->measured) choice->ns = scale(choice->ns, algorithms);
    }
    sort_list(&cost->conv[k]);
  }
}

void sn_costs_set_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo,
                            uint64_t workspace, int64_t ns) {
  conv_list *list = &own(costs, layer)->conv[kernel];
  costs->measured = true;
  for (uint32_t i = 0; i < list->n_all; i++)
    if (list->all[i].algo == algo)
      list->all[i] = (sn_conv_choice){.algo = algo, .workspace = workspace, .ns = ns, .measured = true};
  sort_list(list);
}

void sn_costs_guess_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo, int64_t ns) {
  conv_list *list = &own(costs, layer)->conv[kernel];
  for (uint32_t i = 0; i < list->n_all; i++)
    if (list->all[i].algo == algo && !list->all[i].measured) list->all[i].ns = ns;
  sort_list(list);
}

void sn_costs_drop_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo) {
  conv_list *list = &own(costs, layer)->conv[kernel];
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->n_all; i++) kept += list->all[i].algo != algo;
  if (kept == 0 || kept == list->n_all) return;
  kept = 0;
  for (uint32_t i = 0; i < list->n_all; i++)
    if (list->all[i].algo != algo) list->all[kept++] = list->all[i];
  list->n_all = kept;
  sort_list(list);
}

void sn_costs_set_step(sn_costs *costs, uint32_t layer, sn_pass pass, int64_t ns, bool whole) {
  layer_cost *cost = own(costs, layer);
  cost->ns[pass] = ns;
  cost->measured[pass] = costs->measured = true;
  cost->rank_ns[pass] = 0;
  if (pass == SN_BACKWARD) cost->data_ns = cost->eager_less_ns = 0;
  for (sn_conv_kernel k = 0; whole && k < SN_CONV_KERNELS && cost->conv; k++) {
    if (!belongs(k, pass)) continue;
    for (uint32_t i = 0; i < cost->conv[k].count; i++) {
      cost->conv[k].choices[i].ns = 0;
      cost->conv[k].choices[i].measured = true;
    }
  }
}

sn_work sn_costs_work(const sn_net *net, uint32_t index, sn_pass pass, sn_optimizer optimizer) {
  const sn_layer *layer = &net->layers[index];
  double x = 4 * elements(sn_layer_input_shape(net, layer, 0)), y = 4 * elements(layer->out);
  if (pass == SN_UPDATE) return (sn_work){.bytes = sn__update_bytes(layer, optimizer, sizeof(float), false)};
  sn_traffic t = traffic_of(layer, x, y, 4);
  sn_work work = {t.flops[pass], t.bytes[pass]};
  if (!sn_op_of(layer)->convolves) return work;
  double kernels = pass == SN_FORWARD ? 1 : 2;
  work.flops += kernels * 2 * (double)layer->macs;
  work.bytes += kernels * (x + y + 4 * (double)layer->parameters);
  return work;
}

static const sn_conv_choice *choice_of(const layer_cost *cost, sn_conv_kernel kernel, uint8_t algo) {
  const conv_list *list = &cost->conv[kernel];
  for (uint32_t i = 0; i < list->count; i++)
    if (list->choices[i].algo == algo) return &list->choices[i];
  return &list->choices[list->count - 1];
}

/* The sum over the step and its algorithms; `known`: only of what was measured. */
static int64_t add_up(const layer_cost *cost, sn_pass pass, const uint8_t algo[2], bool known) {
  int64_t ns = known && !cost->measured[pass] ? 0 : cost->ns[pass];
  if (!cost->conv) return ns;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) {
    if (!belongs(k, pass)) continue;
    const sn_conv_choice *choice = choice_of(cost, k, algo[k == SN_CONV_BACKWARD_FILTER]);
    if (!known || choice->measured) ns += choice->ns;
  }
  return ns;
}

int64_t sn_costs_step(const sn_costs *costs, uint32_t layer, sn_pass pass, const uint8_t algo[2]) {
  return add_up(costs->layers[layer], pass, algo, false);
}

sn_status sn_costs_set_transfers(sn_costs *costs, const int64_t *ns, uint32_t count, sn_err *err) {
  int64_t *copy = sn_arena_alloc(costs->arena, count, sizeof *copy);
  if (!copy) return sn_fail_memory(err);
  memcpy(copy, ns, count * sizeof *copy);
  costs->transfers = copy;
  return SN_OK;
}

/* What one of several GPUs does beside its layers' steps: a copy reads and writes all that is transferred. */
static int64_t beside_ns(const sn_costs *costs, const sn_route *route, const sn_step *step) {
  double bytes = (double)route->transfers[step->sum].bytes;
  if (step->kernel != SN_TRANSFER) return bytes > 0 ? sn__moved_ns(costs->device, 2 * bytes) : 0;
  return costs->transfers ? costs->transfers[step->sum] : 0;
}

int64_t sn_costs_of(const sn_costs *costs, const sn_route *route, const sn_step *step, const uint8_t algo[2]) {
  if (sn_step_moves(step)) return beside_ns(costs, route, step);
  if (route->work) return sn__work_ns(costs->device, &route->work[step - route->steps]);
  if (step->kernel == SN_SHARED_SUM) /* what was measured of the layer's backward has it */
    return costs->measured ? 0 : sn__shared_sum_ns(costs->device, route, step);
  const layer_cost *cost = costs->layers[step->layer];
  bool half = route->dialect->eager &&
              (step->kernel == SN_DATA_GRADIENT || (step->put_off && step->kernel == SN_FILTER_GRADIENT));
  bool part = step->kernel == SN_SUM || half; /* half: of a backward in two (zb-h1) */
  int64_t ns = part ? sn_costs_kernel(costs, step, algo, false) : sn_costs_step(costs, step->layer, step->pass, algo);
  if (route->dialect->eager && step->pass == SN_BACKWARD) ns -= cost->eager_less_ns;
  bool makes = step->pass == SN_BACKWARD && (step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT);
  makes = makes && route->dialect->eager && route->weight_gradient[step->layer] != SN_NONE;
  const int64_t rank_ns = step->share > 1 && step->kernel != SN_SUM ? cost->rank_ns[step->pass] : 0;
  ns = sn_step_share(step, ns, cost->launch_ns[step->pass]) + (half ? rank_ns / 2 : rank_ns);
  return ns + (makes ? sn_step_share(step, cost->adds_ns, cost->adds_launch_ns) : 0);
}

int64_t sn_costs_host_ns(const sn_costs *costs, const sn_route *route, const sn_step *step) {
  if (costs->measured || step->kernel == SN_TRANSFER) return 0;
  if (route->work) return route->work[step - route->steps].launches * costs->host_ns;
  return route->dialect->eager && step->pass != SN_UPDATE ? costs->host_ns : 0;
}

int64_t sn_costs_step_known(const sn_costs *costs, uint32_t layer, sn_pass pass, const uint8_t algo[2]) {
  return costs->measured ? add_up(costs->layers[layer], pass, algo, true) : 0;
}

static int64_t algorithm_ns(const layer_cost *cost, sn_conv_kernel kernel, uint8_t algo, bool known) {
  const sn_conv_choice *choice = choice_of(cost, kernel, algo);
  return known && !choice->measured ? 0 : choice->ns;
}

/* DATA's part of an FC's backward. */
static int64_t data_of(const layer_cost *cost, int64_t ns) {
  if (cost->data_ns == 0) return ns / 2;
  return cost->data_ns < ns ? cost->data_ns : ns;
}

int64_t sn_costs_kernel(const sn_costs *costs, const sn_step *step, const uint8_t algo[2], bool known) {
  const layer_cost *cost = costs->layers[step->layer];
  if (known && !costs->measured) return 0;
  int64_t ns = known && !cost->measured[step->pass] ? 0 : cost->ns[step->pass];
  switch (step->kernel) {
  case SN_WHOLE:
    return add_up(cost, step->pass, algo, known);
  case SN_SUM:
    return ns / cost->sums;
  case SN_DATA_GRADIENT:
    return cost->conv ? algorithm_ns(cost, SN_CONV_BACKWARD_DATA, algo[0], known) : data_of(cost, ns);
  case SN_FILTER_GRADIENT:
    return cost->conv ? algorithm_ns(cost, SN_CONV_BACKWARD_FILTER, algo[1], known) : ns - data_of(cost, ns);
  case SN_BIAS_GRADIENT:
    return cost->conv ? ns : 0;
  case SN_ADD_TO_PARAMETER:
    return step->parameter == 0 ? ns : 0;
  case SN_CAST:
    if (known || step->parameter == 1) return 0;
    return step->parameter == SN_NONE ? cost->cast_inputs_ns : cost->cast_parameters_ns;
  case SN_SHARED_SUM: /* sn_costs_of() */
  case SN_TRANSFER:
  case SN_UNPACK: /* what they move is their route's to say */
  case SN_PACK:
  case SN_ADD_ROW:
  case SN_FLATTEN:
  case SN_DECAY_WEIGHT:
  case SN_SCALE_MOMENTUM:
  case SN_ADD_GRADIENT:
    break;
  }
  return 0;
}
