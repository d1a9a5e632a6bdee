/* Neighbours; see the header. */
#include "sim/device/neighbours.h"

#include "base/arena.h"
#include "models/op/op.h"
#include "sim/device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Chosen where eight calibrations of seven networks predicted each other (docs/calibration.md). */
static const double axis[SN_SHAPE_AXES] = {0.5, 1.4, 0.2, 1.5, 2}; /* how far a factor of two is */
static const double softening = 0.3;      /* a squared distance below which neighbours count the same */
static const double family_weight = 0.02; /* of the family as a whole */

/* What a shape's text says. */
typedef struct words {
  double images, channels, height, width, out_channels, out_height, out_width;
  double kernel, stride, groups, many; /* kernel and stride: height times width; many: inputs or outputs */
} words;

/* A product; what is stored may be anything, and 0 is taken as 1. */
static double product(unsigned a, unsigned b) {
  return fmax(1, a) * fmax(1, b);
}

/* The attributes of sn_shape_text(): a window, groups, words that are modes, and others that do not matter. */
static void read_attributes(const char *text, words *w, char mode[SN_SHAPE_MODE]) {
  unsigned a, b, c, d, skipped;
  size_t used = 0;
  for (int read = 0; *text == ' '; text += read) {
    if (sscanf(text, " %ux%u s%ux%u p%ux%u%n", &a, &b, &c, &d, &skipped, &skipped, &read) == 6)
      w->kernel = product(a, b), w->stride = product(c, d);
    else if (sscanf(text, " g%u%n", &a, &read) == 1)
      w->groups = product(a, 1);
    else if (sscanf(text, " of %u%n", &a, &read) == 1)
      w->many = product(a, 1);
    else if (sscanf(text, " size %u%n", &skipped, &read) != 1) {
      size_t n = 1 + strcspn(text + 1, " ");
      bool counts = strncmp(text, " bias", n) != 0 && used + n < SN_SHAPE_MODE;
      if (counts) memcpy(mode + used, text, n), used += n;
      read = (int)n;
    }
  }
  mode[used] = '\0';
  if (w->groups > 1 && used + sizeof " grouped" <= SN_SHAPE_MODE) memcpy(mode + used, " grouped", sizeof " grouped");
}

/* "CONV 4x64x56x56 to 64x56x56 3x3 s1x1 p1x1 g1 bias" */
static bool read_shape(const char *shape, words *w, char mode[SN_SHAPE_MODE]) {
  unsigned n, c, h, width, out_c, out_h, out_w;
  int read = 0;
  if (sscanf(shape, "%*s %ux%ux%ux%u to %ux%ux%u%n", &n, &c, &h, &width, &out_c, &out_h, &out_w, &read) != 7)
    return false;
  *w = (words){product(n, 1),
               product(c, 1),
               product(h, 1),
               product(width, 1),
               product(out_c, 1),
               product(out_h, 1),
               product(out_w, 1),
               1,
               1,
               1,
               1};
  read_attributes(shape + read, w, mode);
  return true;
}

/* Weights of a CONV, DECONV or FC, 0 of others. */
static double weights_of(uint32_t op, const words *w) {
  if (op == SN_FC) return w->channels * w->height * w->width * w->out_channels;
  return op == SN_CONV || op == SN_DECONV ? w->channels / w->groups * w->out_channels * w->kernel : 0;
}

static double roofline(const sn_device *device, uint32_t op, uint32_t pass, const words *w) {
  double weights = weights_of(op, w), kernels = pass == SN_BACKWARD && weights > 0 ? 2 : 1;
  double in = w->images * w->channels * w->height * w->width;
  double out = w->images * w->out_channels * w->out_height * w->out_width;
  double positions = op == SN_FC ? w->images : op == SN_DECONV ? in / w->channels : out / w->out_channels;
  double floats = in + out + weights, flops = 2 * weights * positions;
  if (weights == 0) floats += (w->many - 1) * fmin(in, out);
  if (pass == SN_UPDATE) floats = 5 * fmax(weights, 2 * w->channels), flops = 0;
  return kernels * (flops / device->flops + sizeof(float) * floats / device->memory_bandwidth) * 1e9 +
         (double)device->launch_ns;
}

static bool set_place(const sn_calibration *c, const char *shape, sn_neighbour *n) {
  words w;
  if (!read_shape(shape, &w, n->mode)) return false;
  double scale[SN_SHAPE_AXES] = {w.channels / w.groups, w.out_channels, w.images * w.out_height * w.out_width, w.kernel,
                                 sqrt(w.stride)};
  for (int i = 0; i < SN_SHAPE_AXES; i++) n->place[i] = axis[i] * log2(scale[i]);
  n->roofline_ns = roofline(&c->profile, n->op, n->pass, &w);
  return n->roofline_ns > 0 && isfinite(n->roofline_ns);
}

static double distance(const sn_neighbour *a, const sn_neighbour *b) {
  double sum = 0;
  for (int i = 0; i < SN_SHAPE_AXES; i++) sum += (a->place[i] - b->place[i]) * (a->place[i] - b->place[i]);
  return sum;
}

/* Time of `place`, as all but itself say. */
static double time_at(const sn_calibration *c, const sn_neighbour *place) {
  double weights = 0, sum = 0, ns = 0, roofline_ns = 0;
  for (uint32_t i = 0; i < c->n_neighbours; i++) {
    const sn_neighbour *n = &c->neighbours[i];
    if (n == place || n->op != place->op || n->pass != place->pass) continue;
    if (n->kernel != place->kernel || n->algo != place->algo) continue;
    if (strcmp(n->mode, place->mode) != 0) continue;
    ns += n->ns;
    roofline_ns += n->roofline_ns;
    double near = 1 / (distance(n, place) + softening), weight = near * near;
    weights += weight;
    sum += weight * n->log_ratio;
  }
  if (ns <= 0) return 0;
  return place->roofline_ns * exp((sum + family_weight * log(ns / roofline_ns)) / (weights + family_weight));
}

bool sn_neighbours_place(const sn_calibration *c, uint32_t op, uint32_t pass, const char *shape, sn_neighbour *place) {
  *place = (sn_neighbour){.op = op, .pass = pass};
  return set_place(c, shape, place);
}

double sn_neighbours_time(const sn_calibration *c, sn_neighbour place, uint32_t kernel, uint32_t algo) {
  place.kernel = kernel;
  place.algo = algo;
  return time_at(c, &place);
}

static void find_errors(sn_calibration *c, sn_neighbour *neighbours) {
  double sum = 0, weight = 0;
  for (uint32_t i = 0; i < c->n_neighbours; i++) {
    sn_neighbour *n = &neighbours[i];
    double ns = time_at(c, n);
    if (ns <= 0) continue;
    n->log_error = log(ns / n->ns);
    if (!n->counts) continue;
    sum += n->ns * fabs(n->log_error);
    weight += n->ns;
  }
  c->residual = weight > 0 ? exp(sum / weight) : 1;
}

/* A shape's algorithms for one kernel follow each other: of those only the fastest counts. */
static void count_fastest(sn_neighbour *neighbours, uint32_t first, uint32_t last) {
  uint32_t best = first;
  for (uint32_t i = first; i <= last; i++) {
    neighbours[i].counts = false;
    if (neighbours[i].ns < neighbours[best].ns) best = i;
  }
  neighbours[best].counts = true;
}

/* Where algorithms are timed by themselves, what is left of a step is no whole step. */
static bool is_remainder(const sn_timing *t, bool by_algorithm) {
  return by_algorithm && t->kernel == SN_CONV_KERNELS && t->pass != SN_UPDATE && sn_op_table[t->op]->convolves;
}

static bool same_kernel(const sn_timing *a, const sn_timing *b) {
  return a && a->kernel == b->kernel && a->kernel != SN_CONV_KERNELS && a->pass == b->pass &&
         strcmp(a->shape, b->shape) == 0;
}

sn_status sn_neighbours_find(sn_calibration *c, sn_err *err) {
  sn_neighbour *neighbours = sn_arena_alloc(c->arena, c->n_timings, sizeof *neighbours);
  const sn_timing *last = NULL;
  bool by_algorithm = sn_calibration_by_algorithm(c);
  uint32_t first = 0;
  if (!neighbours) return sn_fail_memory(err);
  c->neighbours = neighbours;
  c->n_neighbours = 0;
  for (uint32_t i = 0; i < c->n_timings; i++) {
    const sn_timing *t = &c->timings[i];
    sn_neighbour *n = &neighbours[c->n_neighbours];
    if (t->ns <= 0 || t->samples == 0 || t->threads > 0 || is_remainder(t, by_algorithm)) continue;
    *n = (sn_neighbour){.op = t->op, .pass = t->pass, .kernel = t->kernel, .algo = t->algo, .ns = (double)t->ns};
    if (!set_place(c, t->shape, n)) continue;
    n->log_ratio = log(n->ns / n->roofline_ns);
    if (!same_kernel(last, t)) first = c->n_neighbours;
    count_fastest(neighbours, first, c->n_neighbours++);
    last = t;
  }
  find_errors(c, neighbours);
  return SN_OK;
}
