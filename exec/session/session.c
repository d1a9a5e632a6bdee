/* Session; see the header. */
#include "exec/session/session_internal.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/units.h"
#include "exec/machine/outside.h"
#include "models/op/op.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

enum { MOST_RESULTS = 128 };

/* The graph that the machine is opened for. */
static sn__graph *own_graph(sn_session *s) {
  return &s->graphs[s->dialect];
}

/* All back ends know SuperNeurons' graph, which trains all layers. */
static sn_dialect_id dialect_of(const sn_session *s) {
  const bool narrow = s->net->adapted || *sn_iteration_freeze(s->iteration);
  return narrow ? SN_DIALECT_PYTORCH : SN_DIALECT_SUPERNEURONS;
}

/* What this session asks for and a machine cannot do. */
static sn_status check_machine(const sn_session *s, sn_err *err) {
  const sn_external external = s->options.external;
  const bool cpu = s->options.backend == SN_EXEC_CPU;
  if (external != SN_EXTERNAL_HOST && external != SN_EXTERNAL_DISK)
    return sn_fail(err, SN_BAD_USAGE, "--external %s: memory of another GPU is simulated only; use snsim simulate",
                   sn_external_name(external));
  if (!cpu && external == SN_EXTERNAL_DISK)
    return sn_fail(err, SN_BAD_USAGE,
                   "--external disk: tensors go to a disk on the CPU only; use --backend cpu, or snsim simulate");
  if (!cpu && sn_iteration_accumulates(s->iteration))
    return sn_fail(
        err, SN_BAD_USAGE,
        "--accumulate: gradients of several batches are added up on the CPU only; use --backend cpu, or snsim "
        "simulate");
  if (!cpu && s->dialect != SN_DIALECT_SUPERNEURONS)
    return sn_fail(err, SN_BAD_USAGE,
                   "frozen layers and adapters are trained on the CPU only; use --backend cpu, or snsim simulate");
  if (s->net->recorded)
    return sn_fail(err, SN_BAD_USAGE,
                   "%.80s: a recording's operations are PyTorch's, which executes them; use snsim simulate",
                   s->net->name);
  for (uint32_t i = 0; i < s->net->n_layers; i++) {
    const sn_op_def *op = sn_op_of(&s->net->layers[i]);
    const char *why = op->simulated_only ? op->simulated_only(s->net->layers[i].attr) : NULL;
    if (why)
      return sn_fail(err, SN_BAD_USAGE, "layer \"%s\": %s, %s, are simulated only; use snsim simulate",
                     s->net->layers[i].name, op->name, why);
    if (s->net->layers[i].nf4)
      return sn_fail(err, SN_BAD_USAGE,
                     "weights of 4 bits (nf4) are simulated only; leave nf4 out, or use snsim simulate");
  }
  return SN_OK;
}

static sn_status open_machine(sn_session *s, sn_err *err) {
  const sn_route *route = own_graph(s)->route;
  if (check_machine(s, err) != SN_OK) return err->code;
  if (s->options.external == SN_EXTERNAL_DISK) s->options.machine.folder = sn_outside_folder();
  if (s->options.backend == SN_EXEC_CUDA) return sn_machine_open_cuda(route, &s->options.machine, &s->machine, err);
  return sn_machine_open_cpu(route, &s->options.machine, &s->machine, err);
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
  sn__graph *g = own_graph(s);
  g->route = sn_schedule_route(s->net, (sn_strategy){.dialect = s->dialect}, s->iteration, NULL, err);
  if (!g->route || open_machine(s, err) != SN_OK) return err->code;
  if (s->options.calibration) s->calibration = s->options.calibration(s->options.user, &s->machine.info, err);
  if (err->code != SN_OK) return err->code;
  s->profile = s->calibration ? &s->calibration->profile : s->options.profile;
  if (s->profile)
    s->device = *s->profile;
  else if (sn_device_known(0, &s->device, err) != SN_OK)
    return err->code;
  s->by_cores = s->device;
  s->by_cores.cores = s->machine.info.cores;
  s->teams_measured =
      s->calibration && s->calibration->cores.count > 0 && s->calibration->cores.count == s->by_cores.cores.count;
  if (s->teams_measured) s->by_cores.cores = s->calibration->cores;
  if (!s->profile) snprintf(s->by_cores.name, sizeof s->by_cores.name, "this machine");
  s->room = SN_MAX_NET_BYTES;
  assert(s->machine.ops);
  if (s->machine.ops->room && s->machine.ops->room(s->machine.self, &s->room, err) != SN_OK) return err->code;
  g->costs = sn__session_costs(s, g->route, err);
  return g->costs ? open_run(s, err) : err->code;
}

static sn_status check_optimizer(sn_optimizer optimizer, sn_err *err) {
  if (sn_optimizer_runs(optimizer)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--optimizer %s is simulated only: no kernel here updates so; momentum, sgd, adam and adamw run",
                 sn_optimizer_name(optimizer));
}

/* Labels and targets lie in the same place. */
static sn_status check_losses(const sn_net *net, sn_err *err) {
  const sn_layer *first = NULL;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    if (layer->op != SN_SOFTMAX) continue;
    if (!first) first = layer;
    if (layer->attr->loss != first->attr->loss)
      return sn_fail(
          err, SN_BAD_USAGE,
          "layers \"%.80s\" and \"%.80s\": losses of two kinds, %s and %s, are simulated only; one kind runs",
          first->name, layer->name, sn_loss_names()[first->attr->loss], sn_loss_names()[layer->attr->loss]);
  }
  return SN_OK;
}

/* Kernels know no other parameters that several layers have. */
static sn_status check_shared(const sn_net *net, sn_err *err) {
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    if (layer->attr->weights_of == 0 || ((layer->op == SN_FC || layer->op == SN_EMBEDDING) && !layer->attr->bias))
      continue;
    return sn_fail(err, SN_BAD_USAGE,
                   "layer \"%.80s\": parameters of another layer are simulated only, but those of an EMBEDDING or FC "
                   "without bias, which run",
                   layer->name);
  }
  return SN_OK;
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
  s->iteration = (sn_iteration){.optimizer = options->machine.hyper.optimizer,
                                .accumulate = options->machine.accumulate,
                                .freeze = options->freeze};
  s->dialect = dialect_of(s);
  s->load = sn_host_load_now();
  if (check_optimizer(s->iteration.optimizer, err) == SN_OK && check_losses(net, err) == SN_OK &&
      check_shared(net, err) == SN_OK && open_parts(s, err) == SN_OK)
    return s;
  sn_session_close(s);
  return NULL;
}

void sn_session_close(sn_session *s) {
  if (!s) return;
  sn_batches_free(s->batches);
  sn_weights_close(s->weights);
  sn_corun_plans_clear(&s->corun); /* which look at the graphs */
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

/* ---- what cannot be trained ---- */

/* Host memory that training by the plan takes beyond what is taken already: two batches are there at a time, and what
 * later results are compared with stays. */
static uint64_t host_bytes(const sn_session *s, const sn_plan *plan) {
  sn_persistent p = sn_persistent_of(s->net, s->dialect, s->iteration);
  uint64_t batch = p.input_batch + p.labels, bytes = sn_persistent_total(&p) - batch;
  if (s->options.external == SN_EXTERNAL_HOST) bytes += plan->external_bytes;
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
  const char *folder = s->options.machine.folder;
  if (folder && sn_outside_check(folder, plan->external_bytes, err) != SN_OK) return err->code;
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
  if (status == SN_OK && s->options.predict) status = sn__session_predict(s, strategy, plan, &trace, err);
  if (status == SN_OK) status = sn__session_measure(s, strategy, plan, &trace, err);
  bool whole = status == SN_OK && s->results[s->n_results - 1].digest != 0;
  if (whole && sn_plan_is_corun(plan) && s->options.machine.check) status = sn__session_prove(s, plan, &trace, err);
  if (s->n_results == before + s->options.predict) s->n_results = before; /* a prediction alone is not kept */
  sn_trace_clear(&trace);
  return status;
}

static sn_status check_results(const sn_session *s, sn_err *err) {
  if (s->n_results + 2 <= MOST_RESULTS && s->n_failures < MOST_RESULTS) return SN_OK;
  return sn_fail(err, SN_BUG, "a session has room for %d results", MOST_RESULTS);
}

/* The plan, which it takes over, or why there is none. */
static void add(sn_session *s, const char *name, sn_strategy strategy, sn_plan *plan, sn_err *err) {
  if (plan) check_room(s, plan, err);
  if (plan && err->code == SN_OK)
    execute(s, strategy, plan, err);
  else if (is_its_own(err->code))
    leave_out(s, name, err);
  sn_plan_free(plan);
}

sn_status sn_session_add(sn_session *s, sn_strategy strategy, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  if (check_results(s, err) != SN_OK) return err->code;
  sn_strategy_name(strategy, name);
  add(s, name, strategy, sn__session_plan(s, strategy, err), err);
  if (err->code != SN_OK) sn_err_prefix(err, "strategy %s", name);
  return err->code;
}

sn_status sn_session_add_plan(sn_session *s, const char *name, sn_strategy strategy, const sn_plan *plan, sn_err *err) {
  uint32_t first = s->n_results;
  if (check_results(s, err) != SN_OK) return err->code;
  const char *called = sn_arena_text(s->arena, name);
  if (!called) return sn_fail_memory(err);
  add(s, name, strategy, sn__session_adopt(s, strategy, plan, err), err);
  for (uint32_t i = first; i < s->n_results; i++) s->results[i].strategy = called;
  if (err->code != SN_OK) sn_err_prefix(err, "plan %s", name);
  return err->code;
}

void sn_session_mix(sn_session *s, const sn_mix *mix) {
  s->options.corun.mix = mix;
}

/* ---- the run ---- */

static const char *describe(const sn_session *s) {
  char text[2 * SN_MACHINE_TEXT + 4];
  snprintf(text, sizeof text, "%s; %s", s->machine.info.device, s->machine.info.libraries);
  return sn_arena_text(s->arena, text);
}

static sn_status fill_head(const sn_session *s, sn_run *run, sn_err *err) {
  const sn_session_options *o = &s->options;
  const sn_options asked = {.workspace = o->workspace,
                            .external = o->external,
                            .iteration = s->iteration,
                            .shared_link = s->calibration && s->calibration->shared_link,
                            .pool_bytes = o->pool_bytes};
  *run = (sn_run){.name = "",
                  .answer = "",
                  .created = "",
                  .version = SNSIM_VERSION,
                  .net = sn_arena_text(s->arena, s->spec),
                  .net_name = sn_arena_text(s->arena, s->net->name),
                  .batch = s->net->batch,
                  .image_height = sn_layer_rows(&s->net->layers[0]),
                  .image_width = s->net->layers[0].out.w,
                  .image_depth = s->net->layers[0].planes,
                  .gpu = sn_arena_text(s->arena, s->profile ? s->profile->name : sn_exec_backend_name(o->backend)),
                  .memory_bytes = s->machine.info.memory_bytes,
                  .conditions = sn_conditions_of(&asked, NULL),
                  .costs = s->calibration ? "measured" : "model",
                  .device = describe(s),
                  .data = sn_arena_text(s->arena, sn_batches_name(s->batches)),
                  .iterations = o->iterations,
                  .warmup = o->warmup,
                  .processors = s->load.processors,
                  .load = s->load.average,
                  .layers = s->net->n_layers,
                  .n_steps = s->graphs[s->dialect].route->first_update,
                  .parameters = s->net->parameters,
                  .macs = s->net->macs,
                  .results = s->results,
                  .failures = s->failures,
                  .arena = s->arena};
  run->conditions.freeze = sn_arena_text(s->arena, run->conditions.freeze);
  run->conditions.parallel = run->conditions.cluster = ""; /* which what was asked had room for */
  return run->net && run->gpu && run->device && run->data && run->conditions.freeze ? SN_OK : sn_fail_memory(err);
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
         results * (steps + peak + sn__session_most_recorded(net) * 40 + sizeof(sn_err) + 4096) + 65536;
}

const sn_calibration *sn_session_calibration(const sn_session *s) {
  return s->calibration;
}

const sn_route *sn_session_route(const sn_session *s) {
  return s->graphs[s->dialect].route;
}

sn_machine *sn_session_machine(sn_session *s) {
  return &s->machine;
}