/* Calibration; see the header. Timings are looked up by bisection. */
#include "sim/device/calibration.h"

#include "base/arena.h"
#include "models/net/rectifier.h"
#include "models/op/op.h"
#include "sim/device/device.h"
#include "sim/device/neighbours.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sn_calibration_free(sn_calibration *c) {
  if (c) sn_arena_free(c->arena);
}

/* A BN and the ReLU that it makes with it (exec/kernel/rectify.h): other work than of those that stand alone. */
static bool is_rectified(const sn_net *net, const sn_layer *layer) {
  if (layer->op == SN_BN) return sn_rectifier_of(net, layer) != NULL;
  if (layer->op != SN_ACT) return false;
  return sn_rectifier_of(net, &net->layers[sn_layer_input(net, layer, 0)->producer]) == layer;
}

char *sn_shape_text(const sn_net *net, const sn_layer *layer, char *text, size_t room) {
  sn_shape in = layer->n_inputs > 0 ? sn_layer_input_shape(net, layer, 0) : layer->out, out = layer->out;
  char attributes[2 * SN_SHAPE_TEXT] = "", count[32] = ""; /* no network's attributes are longer */
  uint32_t many = layer->n_inputs > layer->n_outputs ? layer->n_inputs : layer->n_outputs;
  if (many > 1) snprintf(count, sizeof count, " of %u", many);
  if (sn_op_of(layer)->describe) sn_op_of(layer)->describe(layer->attr, attributes, sizeof attributes);
  snprintf(text, room, "%s %ux%ux%ux%u to %ux%ux%u%s%s%s", sn_op_of(layer)->name, in.n, in.c, in.h, in.w, out.c, out.h,
           out.w, attributes, count, is_rectified(net, layer) ? " rectified" : "");
  return text;
}

char *sn_timing_shape(const sn_net *net, const sn_layer *layer, sn_pass pass, sn_optimizer optimizer, char *text,
                      size_t room) {
  sn_shape_text(net, layer, text, room);
  size_t used = strlen(text);
  optimizer = sn_optimizer_kind(optimizer);
  if (pass == SN_UPDATE && optimizer != SN_OPTIMIZER_MOMENTUM)
    snprintf(text + used, room - used, " %s", sn_optimizer_name(optimizer));
  return text;
}

int sn_timing_compare(const void *a, const void *b) {
  const sn_timing *x = a, *y = b;
  int order = strcmp(x->shape, y->shape);
  if (order != 0) return order;
  if (x->pass != y->pass) return x->pass < y->pass ? -1 : 1;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  if (x->algo != y->algo) return x->algo < y->algo ? -1 : 1;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  return x->threads < y->threads ? -1 : x->threads > y->threads;
}

static const sn_timing *find(const sn_calibration *c, const char *shape, sn_pass pass, uint32_t kernel, uint32_t algo) {
  sn_timing key = {.shape = shape, .pass = pass, .kernel = kernel, .algo = algo};
  return c->n_timings ? bsearch(&key, c->timings, c->n_timings, sizeof key, sn_timing_compare) : NULL;
}

uint32_t sn_calibration_teams(const sn_calibration *c, const char *shape, sn_pass pass, uint32_t part,
                              const sn_timing **first) {
  sn_timing key = {
      .shape = shape, .pass = pass, .kernel = SN_CONV_KERNELS, .algo = SN_CONV_ALGOS, .part = part, .threads = 1};
  uint32_t low = 0, high = c->n_timings;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (sn_timing_compare(&c->timings[middle], &key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  while (high < c->n_timings) {
    key.threads = c->timings[high].threads;
    if (sn_timing_compare(&c->timings[high], &key) != 0) break;
    high++;
  }
  *first = high > low ? &c->timings[low] : NULL;
  return high - low;
}

void sn_calibration_set_cores(sn_calibration *c, uint32_t count, double interference, double resize_ns) {
  c->cores = sn_cores_estimate(count, 1, 1);
  c->cores.neighbour = interference;
  c->cores.resize_ns = resize_ns;
  c->cores.pinned = true;
}

static double ratio(double measured, double formula) {
  return measured > 0 && formula > 0 ? measured / formula : 1;
}

static void fit_team_factors(sn_calibration *c) {
  double measured[SN_OP_COUNT][SN_PASSES][SN_TIMING_PARTS] = {{{0}}};
  double formula[SN_OP_COUNT][SN_PASSES][SN_TIMING_PARTS] = {{{0}}};
  for (uint32_t i = 0; i < c->n_timings; i++) {
    const sn_timing *t = &c->timings[i];
    if (t->threads == 0) continue;
    measured[t->op][t->pass][t->part] += (double)t->ns;
    formula[t->op][t->pass][t->part] += (double)t->formula_ns;
  }
  for (uint32_t op = 0; op < SN_OP_COUNT; op++)
    for (uint32_t pass = 0; pass < SN_PASSES; pass++)
      for (uint32_t part = 0; part < SN_TIMING_PARTS; part++)
        c->team_factor[op][pass][part] = ratio(measured[op][pass][part], formula[op][pass][part]);
}

static void fit_factors(sn_calibration *c) {
  enum { ALGORITHMS = SN_OP_COUNT, SUMS };
  double measured[SUMS][SN_PASSES] = {{0}}, formula[SUMS][SN_PASSES] = {{0}};
  for (uint32_t i = 0; i < c->n_timings; i++) {
    const sn_timing *t = &c->timings[i];
    uint32_t sum = t->kernel == SN_CONV_KERNELS ? t->op : ALGORITHMS;
    if (t->samples == 0 || t->threads > 0) continue;
    measured[sum][t->pass] += (double)t->ns;
    formula[sum][t->pass] += (double)t->formula_ns;
  }
  for (uint32_t pass = 0; pass < SN_PASSES; pass++) {
    for (uint32_t op = 0; op < SN_OP_COUNT; op++) c->factor[op][pass] = ratio(measured[op][pass], formula[op][pass]);
    c->algorithm_factor[pass] = ratio(measured[ALGORITHMS][pass], formula[ALGORITHMS][pass]);
  }
}

sn_status sn_calibration_fit(sn_calibration *c, sn_err *err) {
  fit_factors(c);
  fit_team_factors(c);
  return sn_neighbours_find(c, err);
}

/* Times of the algorithms that were measured; how many. Of the others what their neighbours say. */
static uint32_t apply_algorithms(const sn_calibration *c, sn_op op, const char *shape, uint32_t layer, sn_pass pass,
                                 sn_costs *costs) {
  sn_neighbour place;
  bool placed = sn_calibration_by_algorithm(c) && sn_neighbours_place(c, op, pass, shape, &place);
  uint32_t known = 0;
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    if ((kernel == SN_CONV_FORWARD) != (pass == SN_FORWARD)) continue;
    for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS; algo++) {
      const sn_timing *t = find(c, shape, pass, kernel, algo);
      double ns = !t && placed ? sn_neighbours_time(c, place, kernel, algo) : 0;
      if (ns > 0) sn_costs_guess_algorithm(costs, layer, kernel, algo, llround(ns));
      if (!t) continue;
      if (t->samples == 0) {
        sn_costs_drop_algorithm(costs, layer, kernel, algo);
        continue;
      }
      sn_costs_set_algorithm(costs, layer, kernel, algo, t->workspace_bytes, t->ns);
      known++;
    }
  }
  return known;
}

bool sn_calibration_by_algorithm(const sn_calibration *c) {
  for (uint32_t i = 0; i < c->n_timings; i++)
    if (c->timings[i].kernel != SN_CONV_KERNELS) return true;
  return false;
}

/* What the formulas' time of a step is multiplied by. */
static double scale_of(const sn_calibration *c, sn_op op, const char *shape, uint32_t index, sn_pass pass,
                       const sn_costs *costs) {
  static const uint8_t only[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
  sn_neighbour place;
  bool placed = sn_neighbours_place(c, op, pass, shape, &place);
  double ns = placed ? sn_neighbours_time(c, place, SN_CONV_KERNELS, SN_CONV_ALGOS) : 0;
  int64_t formula = ns > 0 ? sn_costs_step(costs, index, pass, only) : 0;
  return formula > 0 ? ns / (double)formula : c->factor[op][pass];
}

/* A device no algorithm of which was timed by itself has one for each convolution, whose time is the step's. */
static void scale_step(const sn_calibration *c, sn_op op, const char *shape, uint32_t index, sn_pass pass,
                       bool by_algorithm, sn_costs *costs) {
  double step = by_algorithm ? c->factor[op][pass] : scale_of(c, op, shape, index, pass, costs);
  sn_costs_scale(costs, index, pass, step, by_algorithm ? c->algorithm_factor[pass] : step);
}

static void apply_step(const sn_calibration *c, const sn_layer *layer, const char *shape, uint32_t index, sn_pass pass,
                       bool choice, sn_costs *costs) {
  bool convolves = sn_op_of(layer)->convolves && pass != SN_UPDATE, by_algorithm = choice && convolves;
  const sn_timing *step = find(c, shape, pass, SN_CONV_KERNELS, SN_CONV_ALGOS);
  if (by_algorithm || !step) scale_step(c, layer->op, shape, index, pass, by_algorithm, costs);
  uint32_t algorithms = convolves ? apply_algorithms(c, layer->op, shape, index, pass, costs) : 0;
  if (!step) return;
  sn_costs_set_step(costs, index, pass, step->ns, convolves && algorithms == 0);
  sn_costs_set_scratch(costs, index, pass, step->workspace_bytes);
}

void sn_calibration_apply(const sn_calibration *c, const sn_net *net, sn_costs *costs) {
  bool choice = sn_calibration_by_algorithm(c);
  for (uint32_t i = 1; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    if (!choice) sn_costs_keep_smallest(costs, i);
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      char shape[SN_SHAPE_TEXT];
      if (pass == SN_UPDATE && layer->parameters == 0) continue;
      sn_timing_shape(net, layer, pass, sn_costs_optimizer(costs), shape, sizeof shape);
      apply_step(c, layer, shape, i, pass, choice, costs);
    }
  }
}
