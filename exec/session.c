/* Session; see the header. */
#include "exec/session.h"

#include "exec/cpu.h"
#include "exec/state.h"
#include "sim/check.h"
#include "sim/cost.h"
#include "sim/device.h"
#include "sim/lower.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct session {
  const sn_net *net;
  const sn_session_options *options;
  sn_measurement *measured;
  sn_route *route;
  sn_cpu_kernels *kernels;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_plan *plan;
  sn_state *state;
  sn_cpu cpu;
  int64_t *times; /* per iteration */
  sn_err *err;
} session;

/* The planner needs a device to choose algorithms by speed. There is nothing to choose here: without optional
 * workspaces every convolution has one algorithm, so any profile gives the same plan. */
static sn_costs *make_costs(const session *s) {
  sn_device any;
  if (sn_device_known(0, &any, s->err) != SN_OK) return NULL;
  sn_costs *costs = sn_costs_new(s->net, &any, s->err);
  for (uint32_t layer = 1; costs && layer < s->net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      sn_costs_set_scratch(costs, layer, pass, sn_cpu_kernels_scratch(s->kernels, layer, pass));
  return costs;
}

static sn_status make_plan(session *s, sn_strategy strategy) {
  uint64_t limit = s->options->pool_bytes ? s->options->pool_bytes : SN_MAX_NET_BYTES;
  s->route = sn_route_new(s->net, s->err);
  s->kernels = s->route ? sn_cpu_kernels_new(s->net, s->options->threads, s->err) : NULL;
  s->costs = s->kernels ? make_costs(s) : NULL;
  s->schedule = s->costs ? sn_schedule_new(s->route, strategy.recompute, s->err) : NULL;
  s->plan = s->schedule ? sn_lower(s->schedule, strategy, SN_WORKSPACE_NONE, s->costs, limit, s->err) : NULL;
  return s->plan ? sn_check(s->plan, NULL, s->err) : s->err->code;
}

static void note_plan(session *s) {
  const sn_plan *plan = s->plan;
  sn_measurement *m = s->measured;
  assert(plan);
  snprintf(m->device, sizeof m->device, "%s", sn_cpu_kernels_version(s->kernels));
  m->planned_pool_bytes = plan->pool_bytes;
  m->planned_external_bytes = plan->external_bytes;
  m->planned_out_bytes = plan->counts.offload_bytes;
  m->planned_in_bytes = plan->counts.prefetch_bytes;
  m->recomputed_layers = plan->counts.recomputed_layers;
  for (uint32_t step = 0; step < plan->route->n_steps; step++)
    if (plan->use[step].live_tensors > m->planned_live_tensors) m->planned_live_tensors = plan->use[step].live_tensors;
}

static sn_status after_iteration(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err) {
  session *s = user;
  sn_measurement *m = s->measured;
  (void)err;
  s->times[iteration] = trace->end_ns;
  m->loss = s->cpu.loss;
  m->last_ns = trace->end_ns;
  m->compute_ns = trace->busy_ns[SN_LANE_COMPUTE];
  m->stall_ns = trace->stall_ns[SN_LANE_COMPUTE];
  m->measured_out_bytes = s->cpu.copied_bytes[SN_LANE_OUT];
  m->measured_in_bytes = s->cpu.copied_bytes[SN_LANE_IN];
  m->digest = sn_digest(m->digest, &m->loss, sizeof m->loss);
  if (s->options->progress) s->options->progress(s->options->user, iteration, m->loss, trace->end_ns);
  sn_state_draw_batch(s->state, s->options->seed, iteration + 1, sn_state_classes(s->net));
  return SN_OK;
}

static bool is_stopped(void *user) {
  const sn_session_options *o = ((const session *)user)->options;
  return o->stop && o->stop(o->user);
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static void note_results(session *s) {
  sn_measurement *m = s->measured;
  const sn_state *state = s->state;
  size_t bytes = s->net->parameters * sizeof(float);
  m->touched_pool_bytes = s->cpu.touched_bytes;
  m->measured_live_tensors = s->cpu.max_live_tensors;
  m->digest = sn_digest(m->digest, state->gradients, bytes);
  m->digest = sn_digest(m->digest, state->momentum, bytes);
  m->digest = sn_digest(m->digest, state->parameters, bytes);
  uint64_t first = m->iterations > 1, n = m->iterations - first;
  if (n == 0) return;
  qsort(s->times + first, n, sizeof *s->times, compare);
  m->iteration_ns = s->times[first + n / 2];
  m->images_per_second = s->net->batch / ((double)m->iteration_ns / 1e9);
}

static sn_status train(session *s) {
  const sn_session_options *o = s->options;
  sn_trace trace = {0};
  s->state = sn_state_new(s->net, o->seed, s->err);
  s->times = calloc(o->iterations, sizeof *s->times);
  if (!s->times) sn_fail_memory(s->err);
  if (!s->state || !s->times || sn_trace_init(&trace, s->plan, s->err) != SN_OK) return s->err->code;
  sn_state_draw_batch(s->state, o->seed, 0, sn_state_classes(s->net));
  s->cpu = (sn_cpu){.route = s->route,
                    .kernels = s->kernels,
                    .state = s->state,
                    .hyper = {.seed = o->seed,
                              .learning_rate = o->learning_rate,
                              .momentum = o->momentum,
                              .weight_decay = o->weight_decay},
                    .check = o->check,
                    .jitter_us = o->jitter_us};
  sn_play_options play = {.iterations = o->iterations, .stop = is_stopped, .after = after_iteration, .user = s};
  sn_status status = sn_play_many(s->plan, sn_cpu_backend(&s->cpu), &play, &trace, &s->measured->iterations, s->err);
  if (status == SN_OK) note_results(s);
  sn_trace_clear(&trace);
  return status;
}

static void close_session(session *s) {
  free(s->times);
  sn_state_free(s->state);
  sn_plan_free(s->plan);
  sn_schedule_free(s->schedule);
  sn_costs_free(s->costs);
  sn_cpu_kernels_free(s->kernels);
  sn_route_free(s->route);
}

sn_status sn_session_run(const sn_net *net, sn_strategy strategy, const sn_session_options *options,
                         sn_measurement *measured, sn_err *err) {
  session s = {.net = net, .options = options, .measured = measured, .err = err};
  *measured = (sn_measurement){.digest = SN_DIGEST_START};
  sn_status status = make_plan(&s, strategy);
  if (status == SN_OK) {
    note_plan(&s);
    status = train(&s);
  }
  close_session(&s);
  return status;
}
