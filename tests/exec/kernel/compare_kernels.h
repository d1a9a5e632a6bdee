/* Compares fast kernels with the reference ones, step by step: both get the same inputs at every step, so that a
 * difference is the step's own, and what they write must agree.
 *
 *   compare c = compare_open(net, kernels, seed);
 *   compare_all(&c, UINT64_MAX);
 *   compare_close(&c);
 *
 * How far two results may be apart: a sum of K products in float32 is off by rounding at each of K additions, each at
 * most half a unit (2^-24) of the partial sum. The errors have random signs, so together they are about sqrt(K) and not
 * K times that (Higham, Accuracy and Stability of Numerical Algorithms, 2.6). So
 *
 *   |fast - reference| <= 8 * 2^-24 * sqrt(K) * size
 *
 * where size, for the partial sums, is the tensor's largest result or sqrt(K) times the largest product, whichever is
 * more: sums that cancel, as all those behind a BN do, are as exact as their terms and not as their result. A single
 * wrong, missing or doubled term is far above this.
 */
#ifndef SN_TESTS_COMPARE_KERNELS_H
#define SN_TESTS_COMPARE_KERNELS_H

#include "exec/kernel/reference.h"
#include "tests/support/net_runner.h"

#include <float.h>

typedef struct compare {
  net_runner fast, reference;
  double worst[SN_OP_COUNT]; /* error in units of what is allowed: at most 1 */
} compare;

static inline sn_status run_reference(void *self, const sn_call *call, sn_err *err) {
  (void)self;
  return sn_reference_run(call, err);
}

static inline compare compare_open(const sn_net *net, net_kernels kernels, uint64_t seed) {
  return (compare){.fast = net_runner_open(net, kernels, seed),
                   .reference = net_runner_open(net, (net_kernels){.run = run_reference}, seed)};
}

static inline void compare_close(compare *c) {
  net_runner_close(&c->fast);
  net_runner_close(&c->reference);
}

/* A tensor of the route: where it lies and how many elements it has. */
static inline float *compare_tensor(const net_runner *r, uint32_t tensor, uint64_t *count) {
  const sn_tensor *t = &r->route->tensors[tensor];
  const sn_layer *layer = &r->net->layers[t->layer];
  *count = t->bytes / sizeof(float);
  if (t->role == SN_VALUE) return r->output[layer->first_output + t->port];
  return r->gradient[r->net->inputs[layer->first_input + t->port]];
}

static inline double compare_largest(const float *data, uint64_t count) {
  float largest = 0;
  for (uint64_t i = 0; i < count; i++)
    if (!(fabsf(data[i]) <= largest)) largest = fabsf(data[i]);
  return largest;
}

typedef enum compare_part { COMPARE_TENSOR, COMPARE_WEIGHTS, COMPARE_BIASES } compare_part;

/* What a sum is made of: K products, each at most this large (0: no larger than the result). */
typedef struct compare_sum {
  double terms, product;
} compare_sum;

static inline double compare_pixels(sn_shape s) {
  return (double)s.n * s.h * s.w;
}

static inline double compare_window(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  return fmax(1, a->kernel_d) * a->kernel_h * a->kernel_w;
}

/* CONV, DECONV, which sums no more, and FC, which is a CONV whose window is the image. */
static inline compare_sum compare_linear(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  sn_shape in = sn_layer_input_shape(call->net, layer, 0), out = layer->out;
  bool conv = layer->op != SN_FC;
  double image = layer->attr->positions ? 1 : (double)in.h * in.w;
  double window = conv ? compare_window(layer) : image;
  double groups = conv ? layer->attr->groups : 1;
  double x = compare_largest(call->x[0], (uint64_t)in.n * in.c * in.h * in.w);
  double w = compare_largest(call->parameters, layer->parameters);
  if (call->pass == SN_FORWARD) return (compare_sum){window * in.c / groups + 1, x * w};
  double dy = compare_largest(call->dy[0], (uint64_t)out.n * out.c * out.h * out.w);
  if (part == COMPARE_TENSOR) return (compare_sum){window * out.c / groups, dy * w};
  if (part == COMPARE_BIASES) return (compare_sum){compare_pixels(out), dy};
  return (compare_sum){compare_pixels(layer->op == SN_DECONV ? in : out), dy * x};
}

static inline compare_sum compare_bn(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  uint64_t count = call->net->values[layer->first_output].bytes / sizeof(float), channels = layer->out.c;
  double inverse = compare_largest(call->statistics + 3 * channels, channels);
  double gamma = compare_largest(call->parameters, channels), x = compare_largest(call->x[0], count);
  if (call->pass == SN_FORWARD) return (compare_sum){compare_pixels(layer->out), x * inverse * gamma};
  double dy = compare_largest(call->dy[0], count);
  double size = part == COMPARE_TENSOR ? inverse * gamma : part == COMPARE_WEIGHTS ? x * inverse : 1;
  return (compare_sum){compare_pixels(layer->out), dy * size};
}

/* An average, or the gradients of all windows that share an element. */
static inline compare_sum compare_pool(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  sn_shape in = sn_layer_input_shape(call->net, layer, 0), out = layer->out;
  bool whole = layer->attr->global || layer->attr->adaptive_h;
  double window = whole ? (double)in.h * in.w : compare_window(layer);
  if (call->pass == SN_FORWARD) return (compare_sum){window, 0};
  return (compare_sum){window, compare_largest(call->dy[0], (uint64_t)out.n * out.c * out.h * out.w)};
}

/* JOIN adds its inputs, FORK the gradients of its branches. */
static inline compare_sum compare_addition(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  bool forward = call->pass == SN_FORWARD;
  uint64_t count = call->net->values[layer->first_output].bytes / sizeof(float);
  double term = 0;
  for (uint32_t i = 0; i < (forward ? layer->n_inputs : layer->n_outputs); i++)
    term = fmax(term, compare_largest(forward ? call->x[i] : call->dy[i], count));
  return (compare_sum){layer->n_inputs + layer->n_outputs, term};
}

/* MUL and SCALE: a factor's gradient is a sum over what it multiplies. */
static inline compare_sum compare_product(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  uint64_t count = call->net->values[layer->first_output].bytes / sizeof(float);
  if (call->pass == SN_FORWARD) return (compare_sum){1, 0};
  return (compare_sum){(double)count, compare_largest(call->dy[0], count) * compare_largest(call->x[0], count)};
}

/* Exponentials of tanh and sigmoid are good to a few units. Their derivatives, 1 - y y and y (1 - y), are differences
 * of numbers near 1 where y is, as exact as these; oneDNN takes them from y as float32 has it, the reference from x. */
static inline compare_sum compare_act(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  if (part != COMPARE_TENSOR) return compare_product(call); /* PReLU's slopes */
  if (sn_layer_is_prelu(layer)) return (compare_sum){1, 0};
  if (layer->attr->act < SN_ACT_TANH) return (compare_sum){1, 0};
  if (call->pass == SN_FORWARD) return (compare_sum){8, 0};
  return (compare_sum){8, compare_largest(call->dy[0], call->net->values[layer->first_output].bytes / sizeof(float))};
}

/* The numbers that a norm brings to mean 0 and deviation 1 together: how many times how many, and how far apart one's
 * are. */
typedef struct compare_runs {
  uint64_t runs, length, stride;
} compare_runs;

/* GROUP_NORM: a group's channels and pixels; LAYER_NORM and RMS_NORM: the channels of a position. */
static inline compare_runs compare_runs_of(const sn_layer *layer) {
  uint64_t plane = (uint64_t)layer->out.h * layer->out.w, groups = layer->attr->groups;
  if (layer->op != SN_GROUP_NORM) return (compare_runs){layer->out.n * plane, layer->out.c, plane};
  return (compare_runs){layer->out.n * groups, layer->out.c / groups * plane, 1};
}

/* The largest x over its run's deviation. Means are kept as float32 has them, so z, (x - mean) / deviation, is off by
 * so many units: two numbers that hardly differ, far from zero, lose digits in any norm. */
static inline double compare_over_deviation(const sn_call *call) {
  compare_runs r = compare_runs_of(&call->net->layers[call->layer]);
  double worst = 0;
  for (uint64_t i = 0; i < r.runs; i++) {
    const float *x = call->x[0] + i / r.stride * r.stride * r.length + i % r.stride;
    double sum = 0, squares = 0, largest = 0;
    for (uint64_t k = 0; k < r.length; k++) sum += (double)x[k * r.stride];
    for (uint64_t k = 0; k < r.length; k++) {
      squares += pow((double)x[k * r.stride] - sum / (double)r.length, 2);
      largest = fmax(largest, fabs((double)x[k * r.stride]));
    }
    worst = fmax(worst, largest / sqrt(squares / (double)r.length + (double)SN_BN_EPSILON));
  }
  return worst;
}

/* A norm over each image's own numbers: backward a difference of terms as large as dy times gamma over the deviation,
 * which cancel where a run is short; gradients of its parameters are sums over positions, of dy and of dy z. */
static inline compare_sum compare_norm(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  compare_runs r = compare_runs_of(layer);
  double terms = 8.0 * (double)r.length, of_z = 1 + compare_over_deviation(call) / terms;
  double gamma = compare_largest(call->parameters, layer->out.c);
  if (call->pass == SN_FORWARD) return (compare_sum){terms, gamma * of_z / sqrt(terms)};
  double dy = compare_largest(call->dy[0], r.runs * r.length);
  if (part != COMPARE_TENSOR) return (compare_sum){compare_pixels(layer->out) * 8, dy * of_z};
  const float *inverses = call->statistics + (layer->op == SN_RMS_NORM ? 0 : r.runs);
  return (compare_sum){terms, dy * gamma * compare_largest(inverses, r.runs) * of_z};
}

/* Sums as long as a side of a matrix. */
static inline compare_sum compare_matmul(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  double factor[2], terms = layer->out.h + (double)layer->out.w, dy = 1;
  for (uint32_t i = 0; i < 2; i++) {
    sn_shape s = sn_layer_input_shape(call->net, layer, i);
    factor[i] = compare_largest(call->x[i], (uint64_t)s.n * s.c * s.h * s.w);
    terms += s.h + (double)s.w;
  }
  if (call->pass == SN_FORWARD) return (compare_sum){terms, factor[0] * factor[1]};
  dy = compare_largest(call->dy[0], call->net->values[layer->first_output].bytes / sizeof(float));
  return (compare_sum){terms, dy * fmax(factor[0], factor[1])};
}

/* Means of four; backward, a pixel takes part in as many as there are more rows and columns, and in some beside. */
static inline compare_sum compare_resize(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  sn_shape in = sn_layer_input_shape(call->net, layer, 0), out = layer->out;
  double shared = (2.0 * out.h / in.h + 2) * (2.0 * out.w / in.w + 2);
  if (call->pass == SN_FORWARD) return (compare_sum){8, 0};
  return (compare_sum){shared, compare_largest(call->dy[0], (uint64_t)out.n * out.c * out.h * out.w)};
}

/* Sums over channels or over positions, of products and behind a softmax of such sums; a table's gradients are sums
 * over all queries and keys of what is off by as much. */
static inline compare_sum compare_attention(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  double terms = 8.0 * (layer->out.h * (double)layer->out.w + layer->out.c), largest = 1;
  for (uint32_t i = 0; i < layer->n_inputs; i++)
    largest = fmax(largest, compare_largest(call->x[i], sn_layer_input(call->net, layer, i)->bytes / sizeof(float)));
  if (call->pass == SN_FORWARD) return (compare_sum){terms, 0};
  double dy = compare_largest(call->dy[0], call->net->values[layer->first_output].bytes / sizeof(float));
  const double pairs = (double)layer->out.n * layer->out.h * layer->out.w * layer->out.h * layer->out.w;
  return (compare_sum){terms, dy * largest / 8 * (part == COMPARE_WEIGHTS ? sqrt(pairs) : 1)};
}

/* Rows copied or added; backward sums over positions, which may cancel. */
static inline compare_sum compare_lookup(const sn_call *call) {
  const sn_layer *layer = &call->net->layers[call->layer];
  if (call->pass == SN_FORWARD) return (compare_sum){1, 0};
  uint64_t count = call->net->values[layer->first_output].bytes / sizeof(float);
  return (compare_sum){compare_pixels(layer->out), compare_largest(call->dy[0], count)};
}

static inline compare_sum compare_sum_of(const sn_call *call, compare_part part) {
  const sn_layer *layer = &call->net->layers[call->layer];
  const sn_attr *a = layer->attr;
  sn_shape in = sn_layer_input_shape(call->net, layer, 0);
  if (call->pass == SN_UPDATE) return (compare_sum){3, 0};
  switch (layer->op) {
  case SN_CONV:
  case SN_DECONV:
  case SN_FC:
    return compare_linear(call, part);
  case SN_BN:
    return compare_bn(call, part);
  case SN_POOL:
    return compare_pool(call);
  case SN_LRN:
    return (compare_sum){8.0 * a->lrn_size, 0}; /* and a power of the sum */
  case SN_SOFTMAX:
    return (compare_sum){8.0 * in.c, 0}; /* and exponentials */
  case SN_ACT:
    return compare_act(call, part);
  case SN_MUL:
  case SN_SCALE:
    return compare_product(call);
  case SN_LAYER_NORM:
  case SN_RMS_NORM:
  case SN_GROUP_NORM:
    return compare_norm(call, part);
  case SN_ATTENTION:
    return compare_attention(call, part);
  case SN_MATMUL:
    return compare_matmul(call);
  case SN_RESIZE:
    return compare_resize(call);
  case SN_PROBABILITIES: /* exponentials; backward a difference of what is as large as dy */
    return (compare_sum){
        8.0 * (in.c + in.h + in.w),
        call->pass == SN_BACKWARD
            ? compare_largest(call->dy[0], call->net->values[layer->first_output].bytes / sizeof(float)) / 8
            : 0};
  case SN_EMBEDDING: /* gradients of rows and of a TOKEN are sums over positions */
  case SN_POSITION:
  case SN_TOKEN:
    return compare_lookup(call);
  case SN_JOIN:
  case SN_FORK:
    return compare_addition(call);
  default:
    return (compare_sum){1, 0};
  }
}

static inline void compare_data(compare *c, const sn_call *call, const char *what, compare_sum sum, const float *fast,
                                const float *reference, uint64_t count) {
  const sn_layer *layer = &call->net->layers[call->layer];
  double size = fmax(compare_largest(reference, count), sqrt(sum.terms) * sum.product);
  double allowed = 8 * 0x1p-24 * sqrt(sum.terms) * size + (double)FLT_MIN;
  for (uint64_t i = 0; i < count; i++) {
    double error = fabs((double)fast[i] - reference[i]);
    if (!(error <= allowed))
      fail_msg("%s: %s %s (%ux%ux%ux%u) %s, %s[%llu]: %.9g, reference %.9g, allowed difference %g", call->net->name,
               sn_op_of(layer)->name, layer->name, layer->out.n, layer->out.c, layer->out.h, layer->out.w,
               sn_pass_name(call->pass), what, (unsigned long long)i, (double)fast[i], (double)reference[i], allowed);
    if (error > c->worst[layer->op] * allowed) c->worst[layer->op] = error / allowed;
  }
}

/* Weights and biases, or gamma and beta, are sums of different sizes. */
static inline void compare_parameters(compare *c, const sn_call *call, const char *what, const float *fast,
                                      const float *reference) {
  const sn_layer *layer = &call->net->layers[call->layer];
  uint64_t tail = sn_op_of(layer)->shifts || layer->attr->bias ? layer->out.c : 0, head = layer->parameters - tail;
  compare_data(c, call, what, compare_sum_of(call, COMPARE_WEIGHTS), fast, reference, head);
  compare_data(c, call, what, compare_sum_of(call, COMPARE_BIASES), fast + head, reference + head, tail);
}

/* Means are sums of x; variances and their inverse roots are as large as they are. */
static inline void compare_statistics(compare *c, const sn_call *fast, const sn_call *reference) {
  const sn_layer *layer = &fast->net->layers[fast->layer];
  uint64_t channels = layer->out.c, count = fast->net->values[layer->first_output].bytes / sizeof(float);
  double x = compare_largest(fast->x[0], count);
  for (uint64_t i = 0; i < 4; i++) {
    compare_sum sum = {compare_pixels(layer->out), i % 2 ? 0 : x};
    compare_data(c, fast, "statistics", sum, fast->statistics + i * channels, reference->statistics + i * channels,
                 channels);
  }
}

static inline void compare_state(compare *c, const sn_call *fast, const sn_call *reference) {
  const sn_layer *layer = &fast->net->layers[fast->layer];
  if (fast->pass == SN_FORWARD && layer->op == SN_SOFTMAX) {
    float losses[] = {(float)*fast->loss, (float)*reference->loss};
    compare_data(c, fast, "loss", (compare_sum){8.0 * layer->out.c, 1}, losses, losses + 1, 1);
  }
  if (fast->pass == SN_FORWARD && layer->op == SN_BN) compare_statistics(c, fast, reference);
  if (fast->pass == SN_BACKWARD && layer->parameters)
    compare_parameters(c, fast, "gradient", fast->gradients, reference->gradients);
  if (fast->pass == SN_UPDATE) {
    for (uint32_t k = 0; k < sn_optimizer_states(fast->hyper->optimizer); k++)
      compare_parameters(c, fast, "optimizer state", fast->states[k], reference->states[k]);
    compare_parameters(c, fast, "parameter", fast->parameters, reference->parameters);
  }
}

/* Copies what the step reads from the fast kernels' side to the reference's. */
static inline void compare_share(compare *c, uint32_t step, const sn_call *fast, const sn_call *reference) {
  const sn_step *s = &c->fast.route->steps[step];
  const sn_layer *layer = &fast->net->layers[fast->layer];
  for (uint32_t i = s->first_access; i < s->first_access + s->n_accesses; i++) {
    uint64_t count;
    const float *from = compare_tensor(&c->fast, c->fast.route->accesses[i].tensor, &count);
    float *to = compare_tensor(&c->reference, c->fast.route->accesses[i].tensor, &count);
    if (c->fast.route->accesses[i].mode != SN_WRITE) memcpy(to, from, count * sizeof *to);
  }
  if (layer->parameters == 0) return;
  memcpy(reference->parameters, fast->parameters, layer->parameters * sizeof(float));
  memcpy(reference->gradients, fast->gradients, layer->parameters * sizeof(float));
  for (int k = 0; k < SN_OPTIMIZER_STATES; k++)
    memcpy(reference->states[k], fast->states[k], layer->parameters * sizeof(float));
  if (layer->statistics_bytes) memcpy(reference->statistics, fast->statistics, layer->statistics_bytes);
}

/* Whether a step makes the gradient with respect to the input batch, or a FORK of it, by a convolution's backward,
 * which no machine computes - an FC of each position is one -, or an EMBEDDING's, or as a sum of such. */
static inline bool compare_nobody_needs(const net_runner *r, const sn_step *step) {
  const sn_layer *layer = &r->net->layers[step->layer];
  uint32_t of = step->layer;
  bool skips =
      sn_op_of(layer)->convolves || layer->op == SN_EMBEDDING || (layer->op == SN_FC && layer->attr->positions);
  if (step->pass != SN_BACKWARD || !(skips || layer->op == SN_FORK)) return false;
  do of = sn_layer_input(r->net, &r->net->layers[of], 0)->producer;
  while (r->net->layers[of].op == SN_FORK);
  return of == 0;
}

/* Runs a step on both sides and compares everything it writes. */
static inline void compare_step(compare *c, uint32_t step) {
  sn_call fast = net_runner_call(&c->fast, step), reference = net_runner_call(&c->reference, step);
  const sn_step *s = &c->fast.route->steps[step];
  compare_share(c, step, &fast, &reference);
  net_runner_run(&c->reference, &reference);
  sn_call inputs = fast; /* not yet written over in place */
  inputs.statistics = reference.statistics;
  compare_sum sum = compare_sum_of(&inputs, COMPARE_TENSOR);
  net_runner_run(&c->fast, &fast);
  for (uint32_t i = s->first_access; i < s->first_access + s->n_accesses; i++) {
    uint64_t count;
    const float *a = compare_tensor(&c->fast, c->fast.route->accesses[i].tensor, &count);
    const float *b = compare_tensor(&c->reference, c->fast.route->accesses[i].tensor, &count);
    bool written = c->fast.route->accesses[i].mode != SN_READ;
    if (written && !compare_nobody_needs(&c->fast, s)) compare_data(c, &fast, "tensor", sum, a, b, count);
  }
  compare_state(c, &fast, &reference);
}

static inline bool compare_same_shape(const sn_net *net, uint32_t a, uint32_t b) {
  const sn_layer *first = &net->layers[a], *second = &net->layers[b];
  sn_shape in = sn_layer_input_shape(net, first, 0), other = sn_layer_input_shape(net, second, 0);
  return first->op == second->op && memcmp(first->attr, second->attr, sizeof *first->attr) == 0 &&
         first->n_inputs == second->n_inputs && first->n_outputs == second->n_outputs &&
         memcmp(&in, &other, sizeof in) == 0 && memcmp(&first->out, &second->out, sizeof first->out) == 0;
}

/* An earlier layer is the same in all sizes. */
static inline bool compare_seen(const sn_net *net, uint32_t layer) {
  uint32_t i = 1;
  while (i < layer && !compare_same_shape(net, i, layer)) i++;
  return i < layer;
}

/* One iteration. Every step runs; compared are those of layers of at most `most_macs` multiply-adds, and one of several
 * layers that are the same in all sizes. Returns how many steps were compared. */
static inline uint32_t compare_all(compare *c, uint64_t most_macs) {
  uint32_t compared = 0;
  for (uint32_t step = 0; step < c->fast.route->n_steps; step++) {
    uint32_t index = c->fast.route->steps[step].layer;
    bool wanted = c->fast.net->layers[index].macs <= most_macs && !compare_seen(c->fast.net, index);
    if (wanted)
      compare_step(c, step);
    else
      net_runner_step(&c->fast, step);
    compared += wanted;
  }
  c->fast.iteration++;
  c->reference.iteration++;
  return compared;
}

#endif
