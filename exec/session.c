/* Session; see the header. */
#include "exec/session.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/units.h"
#include "exec/host.h"
#include "sim/ask/explain.h"
#include "sim/ask/result.h"
#include "sim/plan/make.h"
#include "sim/play/device_model.h"
#include "sim/play/meter.h"
#include "sim/play/recording.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

enum { MOST_RESULTS = 128 };

/* What all strategies of one dialect share, made when first asked for. */
typedef struct graph {
  sn_route *route;
  sn_costs *costs; /* with what the machine's kernels need for this route */
  sn_schedule *schedules[SN_RECOMPUTES];
} graph;

struct sn_session {
  const char *spec;
  const sn_net *net;
  sn_session_options options;
  sn_iteration iteration;
  sn_machine machine;
  sn_calibration *calibration; /* NULL: none */
  const sn_device *profile;    /* NULL: times are not known */
  sn_device device;            /* the profile, or any: with one algorithm a convolution all give the same plans */
  graph graphs[SN_DIALECTS];
  uint64_t room; /* the largest pool that the device can give */
  float *first;  /* gradients and parameters of the first measured result that is whole */
  sn_batches *batches;
  sn_host_load load;   /* when it was opened */
  bool has_batches;    /* their buffers are there */
  sn_weights *weights; /* NULL: drawn from the seed */
  bool saved;          /* weights and gradients, where they are wanted */
  sn_arena *arena;
  sn_run *run; /* what follows is its as well */
  sn_result *results;
  sn_failure *failures;
  uint32_t n_results, n_failures;
};

/* The graph that all back ends know; the machine is opened for it. */
static graph *own_graph(sn_session *s) {
  return &s->graphs[SN_DIALECT_SUPERNEURONS];
}

static sn_status open_machine(sn_session *s, sn_err *err) {
  const sn_route *route = own_graph(s)->route;
  if (s->options.backend == SN_EXEC_CUDA) return sn_machine_open_cuda(route, &s->options.machine, &s->machine, err);
  return sn_machine_open_cpu(route, &s->options.machine, &s->machine, err);
}

/* A gradient that is a view is gathered behind the scratch of the kernel that reads it, each in whole blocks. */
static void plan_gathering(const sn_route *route, sn_costs *costs) {
  for (uint32_t step = route->first_backward; step < route->first_update; step++) {
    uint64_t bytes = sn_call_gathered_bytes(route, &route->steps[step]);
    uint32_t layer = route->steps[step].layer;
    if (bytes == 0) continue;
    uint64_t scratch = sn_ceil_div(sn_costs_scratch(costs, layer, SN_BACKWARD), SN_POOL_BLOCK) * SN_POOL_BLOCK;
    sn_costs_set_scratch(costs, layer, SN_BACKWARD, scratch + bytes);
  }
}

static sn_costs *make_costs(const sn_session *s, const sn_route *route, sn_err *err) {
  sn_costs *costs = sn_costs_new(s->net, &s->device, err);
  if (!costs) return NULL;
  assert(s->machine.ops);
  sn_costs_set_optimizer(costs, s->net, &s->device, s->iteration.optimizer);
  if (s->machine.ops->offer(s->machine.self, costs, err) == SN_OK) {
    plan_gathering(route, costs);
    if (s->calibration) sn_calibration_apply(s->calibration, s->net, costs);
    return costs;
  }
  sn_costs_free(costs);
  return NULL;
}

static sn_batches *open_batches(const sn_session *s, sn_err *err) {
  uint64_t seed = s->options.machine.hyper.seed;
  return s->options.data ? sn_batches_open(s->options.data, s->net, seed, err)
                         : sn_batches_synthetic(s->net, seed, err);
}

static sn_status fill_head(const sn_session *s, sn_run *run, sn_err *err);

static sn_status open_run(sn_session *s, sn_err *err) {
  s->run = sn_arena_alloc(s->arena, 1, sizeof *s->run);
  s->results = sn_arena_alloc(s->arena, MOST_RESULTS, sizeof *s->results);
  s->failures = sn_arena_alloc(s->arena, MOST_RESULTS, sizeof *s->failures);
  if (!s->run || !s->results || !s->failures) return sn_fail_memory(err);
  return fill_head(s, s->run, err);
}

static sn_status open_parts(sn_session *s, sn_err *err) {
  s->arena = s->options.arena ? s->options.arena : sn_arena_new();
  if (!s->arena) return sn_fail_memory(err);
  s->batches = open_batches(s, err); /* first: what the user can mend comes before what the machine lacks */
  const char *load = s->options.files.load;
  if (s->batches && load) s->weights = sn_weights_open(load, s->net, err);
  if (err->code != SN_OK) return err->code;
  graph *g = own_graph(s);
  g->route = sn_schedule_route(s->net, (sn_strategy){0}, s->iteration, NULL, err);
  if (!g->route || open_machine(s, err) != SN_OK) return err->code;
  if (s->options.calibration) s->calibration = s->options.calibration(s->options.user, &s->machine.info, err);
  if (err->code != SN_OK) return err->code;
  s->profile = s->calibration ? &s->calibration->profile : s->options.profile;
  if (s->profile)
    s->device = *s->profile;
  else if (sn_device_known(0, &s->device, err) != SN_OK)
    return err->code;
  s->room = SN_MAX_NET_BYTES;
  assert(s->machine.ops);
  if (s->machine.ops->room && s->machine.ops->room(s->machine.self, &s->room, err) != SN_OK) return err->code;
  g->costs = make_costs(s, g->route, err);
  return g->costs ? open_run(s, err) : err->code;
}

sn_session *sn_session_open(const char *spec, const sn_net *net, const sn_session_options *options, sn_err *err) {
  sn_session *s = calloc(1, sizeof *s);
  if (!s) {
    sn_fail_memory(err);
    return NULL;
  }
  s->spec = spec;
  s->net = net;
  s->options = *options;
  s->iteration.optimizer = options->machine.hyper.optimizer;
  s->load = sn_host_load_now();
  if (open_parts(s, err) == SN_OK) return s;
  sn_session_close(s);
  return NULL;
}

void sn_session_close(sn_session *s) {
  if (!s) return;
  sn_batches_free(s->batches);
  sn_weights_close(s->weights);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) {
    for (int i = 0; i < SN_RECOMPUTES; i++) sn_schedule_free(s->graphs[d].schedules[i]);
    sn_costs_free(s->graphs[d].costs);
  }
  sn_calibration_free(s->calibration);
  free(s->first);
  if (s->machine.ops) s->machine.ops->close(s->machine.self);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) sn_route_free(s->graphs[d].route);
  if (s->arena != s->options.arena) sn_arena_free(s->arena);
  free(s);
}

/* The graph of a strategy's dialect; NULL after an error. */
static graph *open_graph(sn_session *s, sn_strategy strategy, sn_err *err) {
  graph *g = &s->graphs[strategy.dialect];
  bool simulated = sn_strategy_is_simulated(strategy);
  if (simulated || (strategy.dialect != SN_DIALECT_SUPERNEURONS && s->options.backend != SN_EXEC_CPU)) {
    sn_fail(err, SN_BAD_USAGE, "the graph of %s is %s", sn_dialect_of(strategy.dialect)->name,
            simulated ? "simulated only; use snsim simulate" : "executed on the CPU only; use --backend cpu");
    return NULL;
  }
  if (!g->route) g->route = sn_schedule_route(s->net, strategy, s->iteration, NULL, err);
  if (g->route && !g->costs) g->costs = make_costs(s, g->route, err);
  return g->costs ? g : NULL;
}

static sn_plan *make_plan(sn_session *s, sn_strategy strategy, sn_err *err) {
  graph *g = open_graph(s, strategy, err);
  if (!g) return NULL;
  sn_schedule **schedule = &g->schedules[strategy.recompute];
  uint64_t limit = s->options.pool_bytes ? sn_min(s->options.pool_bytes, s->room) : s->room;
  if (!*schedule) *schedule = sn_schedule_new(g->route, strategy.recompute, err);
  const sn_plan_wish wish = {.schedule = *schedule,
                             .costs = g->costs,
                             .strategy = strategy,
                             .workspace = s->options.workspace,
                             .placement = s->options.placement,
                             .pool_bytes = limit};
  return *schedule ? sn_plan_make(&wish, err) : NULL;
}

/* What a machine holds is laid out for its own graph; other graphs have other parts of it. */
static sn_persistent persistent_of(const sn_session *s, const sn_route *route) {
  for (sn_dialect_id d = SN_DIALECT_SUPERNEURONS + 1; d < SN_DIALECTS; d++)
    if (sn_dialect_of(d) == route->dialect) return sn_persistent_of(s->net, d, s->iteration);
  return s->machine.info.persistent;
}

static sn_result_source source_of(const sn_session *s, const sn_plan *plan, const sn_trace *trace) {
  return (sn_result_source){.plan = plan,
                            .use = plan->use,
                            .trace = trace,
                            .persistent = persistent_of(s, plan->route),
                            .context_bytes = s->profile ? s->profile->context_bytes : 0,
                            .want_steps = s->options.want_steps};
}

/* What the peak is made of, for pictures and pages. */
static sn_status explain(const sn_session *s, const sn_plan *plan, sn_strategy strategy, sn_result *r, sn_err *err) {
  if (!s->options.want_steps) return SN_OK;
  return sn_explain_peak(plan, strategy, r->peak_step - 1, s->arena, &r->peak, &r->n_peak, err);
}

/* ---- predicting ---- */

/* Without a profile sizes are predicted and times are not. */
static void forget_times(sn_trace *trace) {
  memset(trace->spans, 0, trace->n_spans * sizeof *trace->spans);
  *trace = (sn_trace){.n_spans = trace->n_spans, .spans = trace->spans};
}

static sn_status predict(sn_session *s, sn_strategy strategy, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn_result *r = &s->results[s->n_results];
  sn_device_model model = {.device = &s->device,
                           .costs = s->graphs[strategy.dialect].costs,
                           .shared_link = s->calibration && s->calibration->shared_link};
  sn_result_source source = source_of(s, plan, trace);
  if (sn_play(plan, sn_device_model_backend(&model), trace, err) != SN_OK) return err->code;
  if (!s->profile) forget_times(trace);
  if (sn_result_fill(&source, strategy, s->arena, r, err) != SN_OK || explain(s, plan, strategy, r, err) != SN_OK)
    return err->code;
  s->n_results++;
  return SN_OK;
}

/* ---- measuring ---- */

typedef struct timing {
  int64_t end_ns, compute_ns, stall_ns;
} timing;

typedef struct play {
  sn_session *session;
  const sn_plan *plan;
  sn_state *state;
  sn_meter meter;
  timing *timings;   /* per iteration */
  uint32_t *correct; /* per iteration */
  sn_trace shortest; /* the spans of the least disturbed iteration */
  sn_outcome outcome;
  uint64_t done, digest, used_bytes;
} play;

static sn_status feed_next(const sn_session *s, sn_err *err) {
  const sn_batch *batch = sn_batches_next(s->batches, err);
  return batch ? s->machine.ops->feed(s->machine.self, batch, err) : err->code;
}

static void keep_shortest(play *p, uint64_t iteration, const sn_trace *trace) {
  if (iteration > p->session->options.warmup && trace->end_ns >= p->shortest.end_ns) return;
  sn_span *spans = p->shortest.spans;
  memcpy(spans, trace->spans, trace->n_spans * sizeof *spans);
  p->shortest = *trace;
  p->shortest.spans = spans;
}

static sn_status after_iteration(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err) {
  play *p = user;
  const sn_session *s = p->session;
  const sn_session_options *o = &s->options;
  s->machine.ops->outcome(s->machine.self, &p->outcome);
  p->timings[iteration] = (timing){trace->end_ns, trace->busy_ns[SN_LANE_COMPUTE], trace->stall_ns[SN_LANE_COMPUTE]};
  p->correct[iteration] = p->outcome.correct;
  p->digest = sn_digest(p->digest, &p->outcome.loss, sizeof p->outcome.loss);
  p->done = iteration + 1;
  keep_shortest(p, iteration, trace);
  if (iteration == 0 && s->machine.ops->used_bytes(s->machine.self, &p->used_bytes, err) != SN_OK) return err->code;
  if (o->visit && o->visit(o->visitor, iteration, p->plan, trace, err) != SN_OK) return err->code;
  if (o->progress) o->progress(o->user, iteration, &p->outcome, trace->end_ns);
  return p->done < o->iterations ? feed_next(s, err) : SN_OK;
}

static bool is_stopped(void *user) {
  const sn_session_options *o = &((const play *)user)->session->options;
  return o->stop && o->stop(o->user);
}

static int compare(const void *a, const void *b) {
  const timing *x = a, *y = b;
  return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* Sorts those that count, the first of which it returns; *count: how many. */
static const timing *sort_timings(play *p, uint64_t *count) {
  uint64_t warmup = p->session->options.warmup, first = warmup < p->done ? warmup : p->done - 1;
  *count = p->done - first;
  qsort(p->timings + first, *count, sizeof *p->timings, compare);
  return p->timings + first;
}

/* Over the last tenth of the iterations. */
static double accuracy(const play *p) {
  uint64_t n = p->done / 10 ? p->done / 10 : 1, right = 0;
  for (uint64_t i = p->done - n; i < p->done; i++) right += p->correct[i];
  return (double)right / ((double)n * p->session->net->batch);
}

static uint64_t digest(const play *p) {
  size_t bytes = p->session->net->parameters * sizeof(float);
  uint64_t d = sn_digest(p->digest, p->state->gradients, bytes);
  for (int i = 0; i < SN_OPTIMIZER_STATES && p->state->states[i]; i++) d = sn_digest(d, p->state->states[i], bytes);
  return sn_digest(d, p->state->parameters, bytes);
}

/* What the results can be compared with later; or compares. */
static sn_status compare_with_first(const play *p, sn_result *r, sn_err *err) {
  sn_session *s = p->session;
  uint64_t n = s->net->parameters;
  if (!s->options.compare) return SN_OK;
  if (!s->first) {
    s->first = malloc((2 * n + 1) * sizeof *s->first);
    if (!s->first) return sn_fail_memory(err);
    memcpy(s->first, p->state->gradients, n * sizeof *s->first);
    memcpy(s->first + n, p->state->parameters, n * sizeof *s->first);
    return SN_OK;
  }
  for (uint32_t i = 0; i < s->net->n_layers; i++) {
    uint64_t at = p->state->parameter_offset[i], count = s->net->layers[i].parameters;
    r->difference = fmax(r->difference, sn_relative_difference(s->first + at, p->state->gradients + at, count));
    r->difference = fmax(r->difference, sn_relative_difference(s->first + n + at, p->state->parameters + at, count));
  }
  return SN_OK;
}

/* What is in use beside the planned parts is the context: kernels, the runtime's own memory. */
static void note_memory(const play *p, sn_result *r) {
  const sn_session *s = p->session;
  uint64_t kept = s->first ? 2 * s->net->parameters * sizeof *s->first : 0; /* to compare with: not the training's */
  uint64_t outside = s->options.backend == SN_EXEC_CPU ? p->plan->external_bytes + kept : 0;
  if (p->plan->route->dialect->eager)
    outside += s->net->parameters * sizeof *s->first; /* the last gradients, to look at */
  uint64_t known = sn_persistent_total(&r->persistent) + p->meter.touched_bytes;
  r->peak_device_bytes = p->used_bytes > outside ? p->used_bytes - outside : 0;
  r->context_bytes = r->peak_device_bytes > known ? r->peak_device_bytes - known : 0;
  r->pool_bytes = p->meter.touched_bytes;
  r->reserved_pool_bytes = p->plan->pool_bytes;
  r->offload_bytes = p->meter.copied_bytes[SN_LANE_OUT];
  r->prefetch_bytes = p->meter.copied_bytes[SN_LANE_IN];
}

static void note_times(play *p, sn_result *r) {
  uint64_t count;
  const timing *timings = sort_timings(p, &count), t = timings[count / 2];
  r->iteration_ns = t.end_ns;
  r->fastest_ns = timings[0].end_ns;
  r->slowest_ns = timings[count - 1].end_ns;
  r->compute_ns = t.compute_ns;
  r->stall_ns = t.stall_ns;
  r->images_per_second = p->session->net->batch / ((double)t.end_ns / 1e9);
  r->iterations = p->done;
  r->loss = p->outcome.loss;
  r->accuracy = accuracy(p);
}

/* The run's arena may be of a fixed size: of plans with very many re-runs nothing is recorded. */
static uint64_t most_recorded(const sn_net *net) {
  return 32 * (uint64_t)net->n_layers;
}

static sn_status note_result(play *p, sn_strategy strategy, sn_err *err) {
  sn_session *s = p->session;
  sn_result *r = &s->results[s->n_results];
  sn_result_source source = source_of(s, p->plan, &p->shortest);
  source.use = p->meter.use;
  if (sn_result_fill(&source, strategy, s->arena, r, err) != SN_OK) return err->code;
  r->source = sn_exec_backend_name(s->options.backend);
  r->fits = true;
  note_memory(p, r);
  note_times(p, r);
  if (s->options.want_steps && p->plan->n_instrs <= most_recorded(s->net))
    r->recording = sn_recording_write(p->plan, &p->shortest, s->arena, err);
  if (err->code != SN_OK || explain(s, p->plan, strategy, r, err) != SN_OK) return err->code;
  if (p->done == s->options.iterations) {
    if (s->machine.ops->fetch(s->machine.self, err) != SN_OK) return err->code;
    r->digest = digest(p);
    if (compare_with_first(p, r, err) != SN_OK) return err->code;
  }
  s->n_results++;
  if (s->saved || p->done < s->options.iterations) return SN_OK;
  s->saved = true;
  return sn_weight_files_save(&s->options.files, p->state, err);
}

static sn_status prepare(play *p, sn_err *err) {
  sn_session *s = p->session;
  s->has_batches = true;
  p->state = sn_state_new(s->net, &s->options.machine.hyper, err);
  if (p->state && s->weights) sn_weights_read(s->weights, p->state, err);
  p->timings = calloc(s->options.iterations, sizeof *p->timings);
  p->correct = calloc(s->options.iterations, sizeof *p->correct);
  if (!p->timings || !p->correct) sn_fail_memory(err);
  if (err->code != SN_OK || sn_trace_init(&p->shortest, p->plan, err) != SN_OK) return err->code;
  if (sn_batches_rewind(s->batches, err) != SN_OK || s->machine.ops->start(s->machine.self, p->state, err) != SN_OK)
    return err->code;
  return feed_next(s, err);
}

/* What whole iterations there were is kept also where a later one failed. */
static sn_status train(play *p, sn_strategy strategy, sn_trace *trace, sn_err *err) {
  const sn_session *s = p->session;
  sn_err failed = SN_ERR_INIT;
  sn_play_options options = {
      .iterations = s->options.iterations, .stop = is_stopped, .after = after_iteration, .user = p};
  uint64_t done;
  p->meter.inner = s->machine.ops->backend(s->machine.self);
  sn_play_many(p->plan, sn_meter_backend(&p->meter), &options, trace, &done, &failed);
  if (p->done > 0) note_result(p, strategy, err);
  if (failed.code != SN_OK) *err = failed;
  return err->code;
}

static sn_status measure(sn_session *s, sn_strategy strategy, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  play p = {.session = s, .plan = plan, .digest = SN_DIGEST_START};
  sn_status status = prepare(&p, err);
  if (status == SN_OK) status = train(&p, strategy, trace, err);
  sn_meter_clear(&p.meter);
  sn_trace_clear(&p.shortest);
  free(p.timings);
  free(p.correct);
  sn_state_free(p.state);
  return status;
}

/* ---- what cannot be trained ---- */

/* Host memory that training by the plan takes beyond what is taken already: two batches are there at a time, and what
 * later results are compared with stays. */
static uint64_t host_bytes(const sn_session *s, const sn_plan *plan) {
  sn_persistent p = sn_persistent_of(s->net, SN_DIALECT_SUPERNEURONS, s->iteration);
  uint64_t batch = p.input_batch + p.labels, bytes = sn_persistent_total(&p) - batch + plan->external_bytes;
  if (s->options.backend == SN_EXEC_CPU) bytes += plan->pool_bytes;
  if (s->options.compare && !s->first) bytes += 2 * p.parameters;
  return s->has_batches ? bytes : bytes + 2 * batch;
}

static sn_status check_room(const sn_session *s, const sn_plan *plan, sn_err *err) {
  char needed[SN_UNIT_TEXT], there[SN_UNIT_TEXT];
  const double mib = 1048576, pool = (double)plan->pool_bytes / mib;
  if (plan->pool_bytes > s->room)
    return sn_fail(err, SN_NO_FIT, "it needs a pool of %.3f MiB, and the device has %.3f MiB left for one", pool,
                   (double)s->room / mib);
  if (s->options.strict_pool && plan->pool_bytes > plan->pool_limit)
    return sn_fail(err, SN_NO_FIT, "it needs a pool of %.3f MiB, and --pool offers %.3f MiB", pool,
                   (double)plan->pool_limit / mib);
  sn_host_memory left = sn_host_memory_left();
  uint64_t bytes = host_bytes(s, plan);
  if (bytes <= left.bytes) return SN_OK;
  return sn_fail(err, SN_NO_FIT, "it needs %s of host memory, and %s has %s left; try a smaller --batch",
                 sn_print_bytes(bytes, needed), left.of, sn_print_bytes(left.bytes, there));
}

/* What a plan cannot be made of, another strategy's may be: but for lack of memory and bugs of ours. */
static bool is_its_own(sn_status status) {
  return status == SN_NO_FIT || status == SN_BAD_INPUT || status == SN_BAD_USAGE || status == SN_BAD_DEVICE;
}

static sn_status leave_out(sn_session *s, const char *name, sn_err *err) {
  sn_failure *failure = &s->failures[s->n_failures];
  *failure = (sn_failure){sn_arena_text(s->arena, name), sn_arena_text(s->arena, err->text)};
  err->code = SN_NO_FIT;
  if (failure->strategy && failure->reason) {
    s->n_failures++;
    return SN_NO_FIT;
  }
  *err = (sn_err)SN_ERR_INIT;
  return sn_fail_memory(err);
}

static sn_status execute(sn_session *s, sn_strategy strategy, const sn_plan *plan, sn_err *err) {
  sn_trace trace = {0};
  uint32_t before = s->n_results;
  sn_status status = sn_trace_init(&trace, plan, err);
  if (status == SN_OK && s->options.predict) status = predict(s, strategy, plan, &trace, err);
  if (status == SN_OK) status = measure(s, strategy, plan, &trace, err);
  if (s->n_results == before + s->options.predict) s->n_results = before; /* a prediction alone is not kept */
  sn_trace_clear(&trace);
  return status;
}

sn_status sn_session_add(sn_session *s, sn_strategy strategy, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  sn_strategy_name(strategy, name);
  if (s->n_results + 2 > MOST_RESULTS || s->n_failures == MOST_RESULTS)
    return sn_fail(err, SN_BUG, "a session has room for %d results", MOST_RESULTS);
  sn_plan *plan = make_plan(s, strategy, err);
  if (plan) check_room(s, plan, err);
  if (plan && err->code == SN_OK)
    execute(s, strategy, plan, err);
  else if (is_its_own(err->code))
    leave_out(s, name, err);
  if (err->code != SN_OK) sn_err_prefix(err, "strategy %s", name);
  sn_plan_free(plan);
  return err->code;
}

/* ---- the run ---- */

static const char *describe(const sn_session *s) {
  char text[2 * SN_MACHINE_TEXT + 4];
  snprintf(text, sizeof text, "%s; %s", s->machine.info.device, s->machine.info.libraries);
  return sn_arena_text(s->arena, text);
}

static sn_status fill_head(const sn_session *s, sn_run *run, sn_err *err) {
  const sn_session_options *o = &s->options;
  *run = (sn_run){.name = "",
                  .created = "",
                  .version = SNSIM_VERSION,
                  .net = sn_arena_text(s->arena, s->spec),
                  .net_name = sn_arena_text(s->arena, s->net->name),
                  .batch = s->net->batch,
                  .image_height = s->net->layers[0].out.h,
                  .image_width = s->net->layers[0].out.w,
                  .gpu = sn_arena_text(s->arena, s->profile ? s->profile->name : sn_exec_backend_name(o->backend)),
                  .memory_bytes = s->machine.info.memory_bytes,
                  .pool_limit_bytes = o->pool_bytes,
                  .workspace = sn_workspace_name(o->workspace),
                  .external = sn_external_name(SN_EXTERNAL_HOST),
                  .allocator = sn_allocator_name(SN_ALLOCATOR_POOL),
                  .optimizer = sn_optimizer_name(o->machine.hyper.optimizer),
                  .accumulate = 1,
                  .shared_link = s->calibration && s->calibration->shared_link,
                  .costs = s->calibration ? "measured" : "model",
                  .device = describe(s),
                  .data = sn_arena_text(s->arena, sn_batches_name(s->batches)),
                  .iterations = o->iterations,
                  .warmup = o->warmup,
                  .processors = s->load.processors,
                  .load = s->load.average,
                  .layers = s->net->n_layers,
                  .n_steps = s->graphs[SN_DIALECT_SUPERNEURONS].route->first_update,
                  .parameters = s->net->parameters,
                  .macs = s->net->macs,
                  .results = s->results,
                  .failures = s->failures,
                  .arena = s->arena};
  return run->net && run->gpu && run->device && run->data ? SN_OK : sn_fail_memory(err);
}

/* Kernels are loaded when they are first used, and stay: only when all strategies have run is the context what it is
 * for each. Read while there is no pool. A device lost by now leaves what the first iterations had. */
static void settle_context(sn_session *s) {
  sn_err lost = SN_ERR_INIT;
  uint64_t idle;
  if (!s->machine.ops->room || s->machine.ops->used_bytes(s->machine.self, &idle, &lost) != SN_OK) return;
  for (uint32_t i = 0; i < s->n_results; i++) {
    sn_result *r = &s->results[i];
    uint64_t persistent = sn_persistent_total(&r->persistent);
    if (r->iterations == 0) continue; /* predicted */
    r->context_bytes = idle > persistent ? idle - persistent : 0;
    r->peak_device_bytes = idle + r->reserved_pool_bytes;
  }
}

sn_run *sn_session_run(sn_session *s) {
  settle_context(s);
  s->run->n_results = s->n_results;
  s->run->n_failures = s->n_failures;
  return s->run;
}

sn_run *sn_session_take(sn_session *s) {
  s->arena = NULL; /* the run's now */
  return sn_session_run(s);
}

uint64_t sn_session_run_bytes(const sn_net *net, uint32_t results) {
  uint64_t names = 0, each = 64; /* what a row or text takes at most beyond itself; a recorded instruction 40 */
  for (uint32_t i = 0; i < net->n_layers; i++) names += strlen(net->layers[i].name) + each;
  uint64_t steps = 2 * (names + net->n_layers * sizeof(sn_step_row));
  uint64_t peak = 4 * (3 * names + net->n_layers * sizeof(sn_peak_row));
  return MOST_RESULTS * (sizeof(sn_result) + sizeof(sn_failure)) +
         results * (steps + peak + most_recorded(net) * 40 + sizeof(sn_err) + 4096) + 65536;
}

const sn_calibration *sn_session_calibration(const sn_session *s) {
  return s->calibration;
}

const sn_route *sn_session_route(const sn_session *s) {
  return s->graphs[SN_DIALECT_SUPERNEURONS].route;
}

sn_machine *sn_session_machine(sn_session *s) {
  return &s->machine;
}
