/* Views; see the header. A value that no step makes is a view of its maker's input; a gradient that is handed on is one
 * of the gradient of what its reader makes. From one to the next numbers move (sn__move); of several moves the last is
 * the tensor's own. */
#include "exec/kernel/view.h"

#include "exec/kernel/kernel_internal.h"
#include "sim/graph/route.h"

#include <string.h>

/* Where a view begins: a value, or what a gradient is part of (sn_part.of). */
typedef struct start {
  const sn_route *route;
  bool gradient;
  uint32_t value; /* SN_NONE: a gradient that lies alone */
} start;

/* From a value to what it is a view of, if it is one. */
static bool step_up(start *at, sn__move *move) {
  const sn_net *net = at->route->net;
  const uint32_t maker = net->values[at->value].producer;
  const sn_layer *layer = &net->layers[maker];
  if (layer->op == SN_DATA || at->route->forward_step[maker] != SN_NONE) return false;
  const sn_shape in = sn_layer_input_shape(net, layer, 0);
  *move = sn__move_of(layer, in);
  at->value = net->inputs[layer->first_input];
  return true;
}

/* The first of a CONCAT's channels that are its i-th input's. */
static uint32_t first_channel(const sn_net *net, const sn_layer *layer, uint32_t i) {
  uint32_t channel = 0;
  while (i-- > 0) channel += sn_layer_input_shape(net, layer, i).c;
  return channel;
}

/* From number i of a layer's input to where in its output it went. */
static sn__move move_down(const sn_net *net, const sn_layer *layer, uint32_t input) {
  const sn_shape in = sn_layer_input_shape(net, layer, input), out = layer->out;
  sn__move move = sn__move_alike(in), whole = sn__move_alike(out);
  if (layer->op == SN_TOKEN) {
    move = (sn__move){(sn_shape){in.n, in.c, (uint32_t)sn__plane(in), 1}, 1, {sn__image(out), sn__plane(out), 1, 0}};
  } else if (layer->op == SN_CONCAT) {
    memcpy(move.stride, whole.stride, sizeof move.stride);
    move.first = first_channel(net, layer, input) * sn__plane(out);
  } else if (layer->op == SN_TRANSPOSE) {
    for (int axis = 0; axis < SN_SIDES; axis++) move.stride[1 + layer->attr->axes[axis]] = whole.stride[1 + axis];
    move.stride[0] = whole.stride[0];
  }
  return move;
}

/* From a gradient to that which it is handed on from, if it is. */
static bool step_down(start *at, sn__move *move) {
  const sn_net *net = at->route->net;
  if (at->value == SN_NONE) return false;
  const sn_value *value = &net->values[at->value];
  const sn_layer *layer = &net->layers[value->consumer];
  *move = move_down(net, layer, value->consumer_input);
  at->value = at->route->part[layer->first_output].of;
  return true;
}

static bool next(start *at, sn__move *move) {
  return at->gradient ? step_down(at, move) : step_up(at, move);
}

typedef struct view {
  start from;
  uint32_t moves; /* that change something */
  sn__move move;  /* the only one */
  uint64_t run;   /* so many numbers stay together, from each multiple of that on */
} view;

/* Numbers from each multiple of so many on that stay together. */
static uint64_t run_of(const sn__move *m) {
  const uint32_t sides[] = {m->shape.n, m->shape.c, m->shape.h, m->shape.w};
  uint64_t run = 1;
  for (int axis = 3; axis >= 0; axis--) {
    if (sides[axis] > 1 && m->stride[axis] != run) break;
    run *= sides[axis];
  }
  return run;
}

/* `count`: of its numbers. */
static view view_of(start from, uint64_t count) {
  view v = {.from = from, .run = count};
  sn__move move;
  while (next(&from, &move)) {
    const uint64_t run = run_of(&move);
    if (move.first == 0 && run == sn__count(move.shape)) continue;
    v.run = v.moves++ == 0 ? run : 1;
    v.move = move;
  }
  return v;
}

static uint64_t place_of(const view *v, uint64_t i) {
  sn__move move;
  if (v->moves == 0) return i;
  if (v->moves == 1) return sn__moved(&v->move, i);
  for (start at = v->from; next(&at, &move);) i = sn__moved(&move, i);
  return i;
}

static uint64_t count_of(const sn_route *route, uint32_t value) {
  return route->net->values[value].bytes / sizeof(float);
}

static view view_of_value(const sn_route *route, uint32_t value) {
  return view_of((start){route, false, value}, count_of(route, value));
}

static view view_of_gradient(const sn_route *route, uint32_t value, uint32_t of) {
  return view_of((start){route, true, of}, count_of(route, value));
}

static void gather(const view *v, uint64_t count, const float *storage, float *to) {
  for (uint64_t i = 0; i < count; i += v->run) memcpy(to + i, storage + place_of(v, i), v->run * sizeof *to);
}

void sn_call_gather(const sn_route *route, uint32_t value, const float *storage, float *to) {
  const view v = view_of_gradient(route, value, route->part[value].of);
  gather(&v, count_of(route, value), storage, to);
}

void sn_call_gather_input(const sn_route *route, uint32_t value, const float *storage, float *to) {
  const view v = view_of_value(route, value);
  gather(&v, count_of(route, value), storage, to);
}

uint64_t sn_call_gathered_bytes(const sn_route *route, const sn_step *step) {
  const sn_layer *layer = &route->layers[step->layer];
  if (!sn__call_is_backward(step) || layer->n_outputs == 0) return 0;
  const uint32_t value = layer->first_output;
  if (route->gradient[value] == SN_NONE) return 0;
  return view_of_gradient(route, value, route->part[value].of).moves == 0 ? 0 : route->net->values[value].bytes;
}

uint64_t sn_call_gathered_input_bytes(const sn_route *route, const sn_step *step, uint32_t i) {
  const uint32_t value = route->net->inputs[route->layers[step->layer].first_input + i];
  const bool runs = step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT;
  if (!runs || step->pass == SN_UPDATE || !sn__call_reads(route, step, route->output[value])) return 0;
  return view_of_value(route, value).moves == 0 ? 0 : route->net->values[value].bytes;
}

static uint64_t common(uint64_t a, uint64_t b) {
  while (b > 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void sn_call_sum(const sn_route *route, const sn_step *step, unsigned char *const *place) {
  const sn_sum *sum = &route->sums[step->sum];
  const uint32_t value = route->net->inputs[route->layers[step->layer].first_input];
  const sn_summand parts[3] = {sum->earlier, sum->later, sum->to};
  view views[3];
  float *storage[3];
  uint64_t run = count_of(route, value);
  for (int i = 0; i < 3; i++) {
    views[i] = view_of_gradient(route, value, parts[i].part.of);
    storage[i] = (float *)(void *)place[parts[i].tensor];
    run = common(run, views[i].run);
  }
  for (uint64_t at = 0; at < count_of(route, value); at += run) {
    const float *x = storage[0] + place_of(&views[0], at), *y = storage[1] + place_of(&views[1], at);
    float *z = storage[2] + place_of(&views[2], at);
    for (uint64_t i = 0; i < run; i++) z[i] = x[i] + y[i];
  }
}
