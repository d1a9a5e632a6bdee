/* Calibrate; see the header. */
#include "exec/session/calibrate.h"

#include "base/arena.h"
#include "base/checked.h"
#include "exec/session/copies.h"
#include "exec/session/slowing.h"
#include "exec/session/team_times.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_SAMPLES = 64 /* per layer and pass */, PLAIN_PLANS = 2, COPYING_PLANS = 1 };

typedef struct samples {
  uint32_t count;
  int64_t ns[KEPT_SAMPLES];
} samples;

typedef struct calibrator {
  const sn_net *net;
  const sn_session_options *options;
  const sn_calibration *old;
  samples *samples;                 /* n_layers x SN_PASSES */
  uint8_t (*algo)[2];               /* the same: what the plans chose */
  uint64_t *workspace;              /* the same */
  const sn_timed_algorithms *timed; /* of machines that have a choice */
  const uint32_t *counts;           /* of threads, for teams */
  uint32_t n_counts;
  sn__team_times *teams; /* NULL: not asked for */
  sn__slowing *slowing;  /* NULL: copies have engines of their own */
  bool plain_done;       /* what is trained now copies */
  sn_calibration *made;
  sn_timing *timings;
  uint32_t n_timings;
  sn_err *err;
} calibrator;

static size_t slot(uint32_t layer, sn_pass pass) {
  return (size_t)layer * SN_PASSES + pass;
}

static sn_optimizer optimizer_of(const calibrator *c) {
  return c->options->machine.hyper.optimizer;
}

/* ---- collecting ---- */

static sn_status visit(void *user, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  calibrator *c = user;
  (void)err;
  if (iteration == 0 && c->options->iterations > 1) return SN_OK; /* it warms up */
  if (sn_plan_is_corun(plan)) {
    sn__team_times_visit(c->teams, plan, trace);
    return SN_OK;
  }
  if (c->slowing && c->plain_done) {
    sn__slowing_visit(c->slowing, plan, trace);
    return SN_OK;
  }
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[instr->id];
    size_t at = slot(step->layer, step->pass);
    samples *s = &c->samples[at];
    if (s->count > 0 && memcmp(c->algo[at], instr->algo, sizeof c->algo[at]) != 0) continue; /* another plan's choice */
    if (s->count < KEPT_SAMPLES) s->ns[s->count++] = trace->spans[i].end_ns - trace->spans[i].begin_ns;
    memcpy(c->algo[at], instr->algo, sizeof c->algo[at]);
    c->workspace[at] = sn_max(c->workspace[at], instr->bytes);
  }
  return SN_OK;
}

/* ---- what the device is like ---- */

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int64_t median(samples *s) {
  qsort(s->ns, s->count, sizeof *s->ns, compare_ns);
  return s->ns[s->count / 2];
}

/* Rates that the formulas start from: convolutions' arithmetic, and bytes a second of the steps that only move them.
 * What an operator does better or worse than that is a factor of its own (sn_calibration_fit). */
static void set_rates(calibrator *c) {
  double flops = 0, conv_ns = 0, bytes = 0, move_ns = 0;
  int64_t shortest = INT64_MAX;
  for (uint32_t layer = 1; layer < c->net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      samples *s = &c->samples[slot(layer, pass)];
      if (s->count == 0) continue;
      double ns = (double)median(s);
      sn_work work = sn_costs_work(c->net, layer, pass, optimizer_of(c));
      if (work.flops > 0)
        flops += work.flops, conv_ns += ns;
      else
        bytes += work.bytes, move_ns += ns;
      if (ns < (double)shortest) shortest = (int64_t)ns;
    }
  sn_device *p = &c->made->profile;
  p->flops = conv_ns > 0 && flops > 0 ? flops / conv_ns * 1e9 : 1e12;
  p->memory_bandwidth = move_ns > 0 && bytes > 0 ? bytes / move_ns * 1e9 : 1e11;
  p->memory_efficiency = p->gemm_efficiency = p->conv_efficiency = 1;
  p->launch_ns = shortest == INT64_MAX ? 0 : shortest;
}

static void set_link(calibrator *c, const sn_copy_rates *rates) {
  sn_calibration *m = c->made;
  m->out_bandwidth = rates->out;
  m->in_bandwidth = rates->in;
  m->together_bandwidth = rates->together;
  m->shared_link = rates->together < 0.75 * (rates->out + rates->in);
  sn_device_set_links(&m->profile, 2 / (1 / rates->out + 1 / rates->in));
  m->out_latency_ns = rates->out_latency_ns;
  m->in_latency_ns = rates->in_latency_ns;
  m->profile.link_latency_ns = (rates->out_latency_ns + rates->in_latency_ns) / 2;
}

/* Of an old calibration the speeds stay, where no copy met computation now. */
static sn_status set_speeds(calibrator *c, const sn_copy_rates *rates) {
  size_t slots = (size_t)c->net->n_layers * SN_PASSES;
  if (!c->slowing) return SN_OK;
  int64_t *step_ns = calloc(slots, sizeof *step_ns);
  if (!step_ns) return sn_fail_memory(c->err);
  for (size_t i = 0; i < slots; i++)
    if (c->samples[i].count > 0) step_ns[i] = median(&c->samples[i]);
  sn__slowing_speeds(c->slowing, step_ns, rates, &c->made->profile);
  free(step_ns);
  return SN_OK;
}

static sn_status set_profile(calibrator *c, const char *name, const sn_machine_info *info, uint64_t context_bytes) {
  sn_device *p = &c->made->profile;
  if (c->old)
    *p = c->old->profile;
  else
    set_rates(c);
  if (strlen(name) >= sizeof p->name)
    return sn_fail(c->err, SN_BAD_USAGE, "\"%.80s\": a device's name has at most %zu bytes", name, sizeof p->name - 1);
  memcpy(p->name, name, strlen(name) + 1);
  memcpy(p->description, info->device, strlen(info->device) + 1);
  p->memory_bytes = info->memory_bytes;
  uint32_t shapes = sn_kernel_shapes(c->net);
  p->kernel_bytes = shapes > 0 ? info->kernel_bytes / shapes : 0;
  uint64_t kernels = p->kernel_bytes * shapes;
  p->context_bytes = p->library_context_bytes = context_bytes > kernels ? context_bytes - kernels : 0;
  return SN_OK;
}

/* ---- timings ---- */

static sn_status add_timing(calibrator *c, sn_timing t) {
  t.shape = sn_arena_text(c->made->arena, t.shape);
  if (!t.shape) return sn_fail_memory(c->err);
  c->timings[c->n_timings++] = t;
  return SN_OK;
}

/* The formulas' time of an algorithm, 0 where the machine knows one that they do not offer. */
static int64_t formula_of(const sn_costs *formulas, const sn_timed_algorithm *a) {
  uint32_t count;
  const sn_conv_choice *choices = sn_costs_conv(formulas, a->layer, a->kernel, &count);
  for (uint32_t i = 0; i < count; i++)
    if (choices[i].algo == a->choice.algo) return choices[i].ns;
  return 0;
}

static sn_status add_algorithms(calibrator *c, const sn_costs *formulas) {
  for (uint32_t i = 0; i < c->timed->count; i++) {
    const sn_timed_algorithm *a = &c->timed->list[i];
    char shape[SN_SHAPE_TEXT];
    sn_timing t = {.shape = sn_shape_text(c->net, &c->net->layers[a->layer], shape, sizeof shape),
                   .op = c->net->layers[a->layer].op,
                   .pass = a->kernel == SN_CONV_FORWARD ? SN_FORWARD : SN_BACKWARD,
                   .kernel = a->kernel,
                   .algo = a->choice.algo,
                   .workspace_bytes = a->choice.workspace,
                   .ns = a->choice.ns,
                   .formula_ns = formula_of(formulas, a),
                   .samples = a->choice.measured};
    if (add_timing(c, t) != SN_OK) return c->err->code;
  }
  return SN_OK;
}

/* What of a step's time and of its formula is an algorithm's that was timed by itself. */
static void subtract_algorithms(const calibrator *c, const sn_costs *formulas, uint32_t layer, sn_pass pass,
                                sn_timing *t) {
  for (uint32_t i = 0; i < c->timed->count; i++) {
    const sn_timed_algorithm *a = &c->timed->list[i];
    bool belongs = a->layer == layer && pass != SN_UPDATE && (a->kernel == SN_CONV_FORWARD) == (pass == SN_FORWARD);
    if (!belongs || !a->choice.measured ||
        a->choice.algo != c->algo[slot(layer, pass)][a->kernel == SN_CONV_BACKWARD_FILTER])
      continue;
    t->ns = t->ns > a->choice.ns ? t->ns - a->choice.ns : 0;
    int64_t formula = formula_of(formulas, a);
    t->formula_ns = t->formula_ns > formula ? t->formula_ns - formula : 0;
    t->workspace_bytes = 0; /* it was the algorithm's */
  }
}

static sn_status add_steps(calibrator *c, const sn_costs *formulas) {
  for (uint32_t layer = 1; layer < c->net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      size_t at = slot(layer, pass);
      const sn_layer *made_of = &c->net->layers[layer];
      char shape[SN_SHAPE_TEXT];
      if (c->samples[at].count == 0) continue;
      sn_timing t = {.shape = sn_timing_shape(c->net, made_of, pass, optimizer_of(c), shape, sizeof shape),
                     .op = made_of->op,
                     .pass = pass,
                     .kernel = SN_CONV_KERNELS,
                     .algo = SN_CONV_ALGOS,
                     .workspace_bytes = c->workspace[at],
                     .ns = median(&c->samples[at]),
                     .formula_ns = sn_costs_step(formulas, layer, pass, c->algo[at]),
                     .samples = c->samples[at].count};
      subtract_algorithms(c, formulas, layer, pass, &t);
      if (add_timing(c, t) != SN_OK) return c->err->code;
    }
  return SN_OK;
}

/* Layers of one shape become one timing: the mean of their medians. */
static void join_equals(calibrator *c) {
  uint32_t kept = 0;
  qsort(c->timings, c->n_timings, sizeof *c->timings, sn_timing_compare);
  for (uint32_t i = 0; i < c->n_timings;) {
    sn_timing joined = c->timings[i];
    double sum = 0, spread = 0;
    uint32_t n = 0, samples_in_all = 0;
    for (; i < c->n_timings && sn_timing_compare(&joined, &c->timings[i]) == 0; i++, n++) {
      sum += (double)c->timings[i].ns;
      spread += (double)c->timings[i].spread_ns;
      samples_in_all += c->timings[i].samples;
      joined.workspace_bytes = sn_max(joined.workspace_bytes, c->timings[i].workspace_bytes);
    }
    joined.ns = llround(sum / n);
    joined.spread_ns = llround(spread / n);
    joined.samples = samples_in_all;
    c->timings[kept++] = joined;
  }
  c->n_timings = kept;
}

/* Old timings of what was not measured now. */
static sn_status add_old(calibrator *c) {
  uint32_t fresh = c->n_timings;
  for (uint32_t i = 0; c->old && i < c->old->n_timings; i++) {
    const sn_timing *t = &c->old->timings[i];
    bool again = bsearch(t, c->timings, fresh, sizeof *t, sn_timing_compare) != NULL;
    bool other_cores = t->threads > 0 && c->old->cores.count != c->made->cores.count;
    if (!again && !other_cores && add_timing(c, *t) != SN_OK) return c->err->code;
  }
  qsort(c->timings, c->n_timings, sizeof *c->timings, sn_timing_compare);
  return SN_OK;
}

static sn_status add_team_timing(void *user, sn_timing t) {
  return add_timing(user, t);
}

/* What was measured of teams now, or earlier. */
static sn_status add_teams(calibrator *c, const sn_machine *machine) {
  sn_calibration *m = c->made;
  if (!c->teams) {
    if (c->old) m->cores = c->old->cores;
    return SN_OK;
  }
  sn_calibration_set_cores(m, machine->info.cores.count, sn__team_times_interference(c->teams),
                           sn__team_times_resize_ns(c->teams));
  return sn__team_times_each(c->teams, &m->cores, optimizer_of(c), add_team_timing, c);
}

static sn_status make_timings(calibrator *c, const sn_machine *machine) {
  size_t most = (size_t)c->net->n_layers * SN_PASSES + c->timed->count + (c->old ? c->old->n_timings : 0);
  if (c->teams) most += sn__team_times_most(c->teams);
  sn_costs *formulas = sn_costs_new(c->net, &c->made->profile, c->err);
  if (formulas) sn_costs_set_optimizer(formulas, c->net, &c->made->profile, optimizer_of(c));
  c->timings = sn_arena_alloc(c->made->arena, most, sizeof *c->timings);
  if (!c->timings) sn_fail_memory(c->err);
  if (formulas && c->timings && machine->ops->offer(machine->self, formulas, c->err) == SN_OK &&
      add_algorithms(c, formulas) == SN_OK && add_steps(c, formulas) == SN_OK && add_teams(c, machine) == SN_OK) {
    join_equals(c);
    add_old(c);
  }
  c->made->timings = c->timings;
  c->made->n_timings = c->n_timings;
  sn_costs_free(formulas);
  return c->err->code;
}

/* ---- the whole ---- */

uint32_t sn_calibrate_plans(sn_exec_backend backend, const uint32_t *teams, uint32_t n_teams) {
  uint32_t whole = PLAIN_PLANS + (backend == SN_EXEC_CPU ? COPYING_PLANS : 0);
  return whole + (n_teams > 0 ? sn__team_times_plans(teams[n_teams - 1], teams, n_teams) : 0);
}

static sn_status train(calibrator *c, sn_session *session) {
  static const sn_strategy strategies[PLAIN_PLANS] = {{.liveness = SN_LIVENESS_NONE},
                                                      {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_COST}};
  for (int i = 0; i < PLAIN_PLANS; i++) {
    sn_status status = sn_session_add(session, strategies[i], c->err);
    bool others = i + 1 < PLAIN_PLANS; /* which take less */
    if (status == SN_NO_FIT && others) *c->err = (sn_err)SN_ERR_INIT;
    if (c->err->code != SN_OK) return c->err->code;
  }
  c->plain_done = true;
  const sn_strategy copying = {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CONV};
  if (c->slowing && sn_session_add(session, copying, c->err) != SN_OK) return c->err->code;
  return c->teams ? sn__team_times_measure(c->teams, session, c->err) : SN_OK;
}

/* Each thread of a team has a processor of its own. */
static sn_status open_teams(calibrator *c, const sn_machine *machine) {
  if (c->n_counts == 0) return SN_OK;
  uint32_t cores = machine->info.cores.count, most = c->counts[c->n_counts - 1];
  if (cores == 0)
    return sn_fail(c->err, SN_BAD_USAGE,
                   "counts of threads are measured on the processors of a CPU that has at least %d of them; give "
                   "--threads one number",
                   SN_MIN_CORES);
  if (most > cores)
    return sn_fail(c->err, SN_BAD_USAGE,
                   "--threads ..%u: each thread of a team has a processor of its own, and this machine has %u; choose "
                   "counts up to that",
                   most, cores);
  c->teams = sn__team_times_new(c->net, cores, c->counts, c->n_counts, c->err);
  return c->err->code;
}

static sn_status name_all(calibrator *c, const char *name, const sn_machine_info *info) {
  sn_calibration *m = c->made;
  m->name = sn_arena_text(m->arena, name);
  m->backend = sn_arena_text(m->arena, info->backend);
  m->hardware = sn_arena_text(m->arena, info->device);
  m->libraries = sn_arena_text(m->arena, info->libraries);
  m->created = "";
  return m->name && m->backend && m->hardware && m->libraries ? SN_OK : sn_fail_memory(c->err);
}

static sn_status measure(calibrator *c, const char *name, sn_session *session) {
  const sn_machine *machine = sn_session_machine(session);
  sn_copy_rates rates;
  if (open_teams(c, machine) != SN_OK || name_all(c, name, &machine->info) != SN_OK || train(c, session) != SN_OK)
    return c->err->code;
  if (sn_copies_measure(machine, sn_session_route(session), &rates, c->err) != SN_OK) return c->err->code;
  const sn_run *run = sn_session_run(session);
  uint32_t plans = sn_calibrate_plans(c->options->backend, NULL, 0);
  if (c->teams) plans += sn__team_times_plans(machine->info.cores.count, c->counts, c->n_counts);
  bool whole = run->n_results + run->n_failures == plans && run->n_results > 0 &&
               run->results[run->n_results - 1].iterations == run->iterations;
  if (!whole) return sn_fail(c->err, SN_BAD_DEVICE, "stopped before everything was measured; nothing is kept of it");
  if (set_profile(c, name, &machine->info, run->results[0].context_bytes) != SN_OK) return c->err->code;
  set_link(c, &rates);
  if (set_speeds(c, &rates) != SN_OK) return c->err->code;
  if (make_timings(c, machine) == SN_OK) sn_calibration_fit(c->made, c->err);
  return c->err->code;
}

static bool allocate(calibrator *c) {
  size_t slots = (size_t)c->net->n_layers * SN_PASSES;
  sn_arena *arena = sn_arena_new();
  c->made = arena ? sn_arena_alloc(arena, 1, sizeof *c->made) : NULL;
  if (!c->made) {
    sn_arena_free(arena);
    return false;
  }
  c->made->arena = arena;
  c->samples = calloc(slots, sizeof *c->samples);
  c->algo = calloc(slots, sizeof *c->algo);
  c->workspace = calloc(slots, sizeof *c->workspace);
  if (c->options->backend == SN_EXEC_CPU) c->slowing = sn__slowing_new(c->net, c->err);
  return c->samples && c->algo && c->workspace && c->err->code == SN_OK;
}

uint32_t sn_calibrate_room(const sn_net *net) {
  uint32_t layers = 0;
  for (uint32_t i = 1; i < net->n_layers; i++) layers += net->layers[i].op == SN_CONV;
  return layers * SN_CONV_KERNELS * SN_CONV_ALGOS;
}

sn_status sn_calibrate_algorithms(const char *spec, const sn_net *net, const sn_session_options *options,
                                  sn_timed_algorithms *timed, sn_err *err) {
  sn_session *session = sn_session_open(spec, net, options, err);
  const sn_machine *machine = session ? sn_session_machine(session) : NULL;
  if (machine && machine->ops->time_algorithms)
    machine->ops->time_algorithms(machine->self, timed, options->stop, options->user, err);
  sn_session_close(session);
  return err->code;
}

sn_calibration *sn_calibrate(const char *name, const char *spec, const sn_net *net, const sn_session_options *options,
                             const sn_calibrate_wish *wish, sn_err *err) {
  static const sn_timed_algorithms none = {0};
  calibrator c = {.net = net,
                  .options = options,
                  .timed = wish->timed ? wish->timed : &none,
                  .counts = wish->teams,
                  .n_counts = wish->n_teams,
                  .err = err};
  sn_session_options own = *options;
  own.visit = visit;
  own.visitor = &c;
  own.compare = false;
  own.algorithms = c.timed;
  if (c.timed->count > 0) own.workspace = SN_WORKSPACE_DYNAMIC; /* the fastest, which others train with */
  sn_session *session = NULL;
  if (net->adapted)
    sn_fail(err, SN_BAD_USAGE, "a calibration measures networks all of whose layers are trained; leave out +lora");
  else if (!allocate(&c))
    sn_fail_memory(err);
  else if ((session = sn_session_open(spec, net, &own, err))) {
    c.old = sn_session_calibration(session);
    measure(&c, name, session);
  }
  sn_session_close(session);
  sn__slowing_free(c.slowing);
  free(c.samples);
  free(c.algo);
  free(c.workspace);
  sn__team_times_free(c.teams);
  if (err->code == SN_OK) return c.made;
  sn_calibration_free(c.made);
  return NULL;
}
