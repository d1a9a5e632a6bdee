/* The CUDA machine in tests, on the fake GPU (tests/fake_cuda/fake_cuda.h) or on a real one.
 *
 *   fake_cuda *fake = cuda_fake();            sn_machine_open_cuda() opens the fake from now on
 *   fake = cuda_fake_chunks();                or one on which batches of more than SNSIM_CHUNK_ELEMENTS are cut
 *   cuda_real();                              or a module of this build; skips the test where it or a GPU is missing
 *
 *   cuda_lab lab = cuda_lab_open(net, "liveness", SN_WORKSPACE_NONE, UINT64_MAX);      a machine and a plan
 *   cuda_lab_start(&lab);
 *   uint64_t digest = cuda_lab_play(&lab, lab.plan);
 *   cuda_agrees(&lab, iterations, cuda_elements(1e-5));   with the reference kernels, from the same start
 *   cuda_lab_close(&lab);
 *
 *   sn_run *run = cuda_train(net, pool_bytes, NULL);   every strategy in turn
 */
#ifndef SN_TESTS_CUDA_FIXTURE_H
#define SN_TESTS_CUDA_FIXTURE_H

#include "exec/kernel/reference.h"
#include "exec/machine/cuda_module.h"
#include "exec/session/calibrate.h"
#include "models/zoo/zoo.h"
#include "sim/plan/lower.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/net_runner.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static inline fake_cuda *cuda_fake_of(const char *module) {
  fake_cuda_entry entry;
  assert_int_equal(setenv("SNSIM_CUDA_MODULE", module, 1), 0);
  void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void *symbol = dlsym(library, "fake_cuda_state");
  assert_non_null(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  fake_cuda *fake = entry();
  assert_int_equal(fake->live, 0);
  *fake = (fake_cuda)FAKE_CUDA_INIT;
  return fake;
}

static inline fake_cuda *cuda_fake(void) {
  return cuda_fake_of(SNSIM_FAKE_CUDA);
}

static inline fake_cuda *cuda_fake_chunks(void) {
  fake_cuda *fake = cuda_fake_of(SNSIM_FAKE_CUDA_CHUNKS);
  fake->most_elements = SNSIM_CHUNK_ELEMENTS;
  return fake;
}

/* Where the sources are: a program that was carried to another machine is told by the environment. */
static inline const char *cuda_sources(void) {
  const char *told = getenv("SNSIM_SOURCE_DIR");
  return told ? told : SNSIM_SOURCE_DIR;
}

static inline sn_net *cuda_net(const char *name, uint32_t batch, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", name[0] == '/' ? cuda_sources() : "", name);
  sn_net *net = sn_net_load(path, batch, image, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

/* Deterministic, with the pool of the given size on offer. */
static inline sn_session_options cuda_options(uint64_t pool_bytes) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.backend = SN_EXEC_CUDA;
  options.machine.deterministic = true;
  options.pool_bytes = pool_bytes;
  return options;
}

/* Fails the test with the error's text, and what the fake has to say. */
static inline void cuda_must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s", err->text);
}

/* Opens the machine and closes it again. */
static inline sn_status cuda_try(sn_err *err) {
  sn_machine machine;
  sn_machine_options options = {.hyper.seed = 1};
  sn_net *net = cuda_net("lenet", 1, 0);
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err);
  cuda_must(err);
  if (sn_machine_open_cuda(route, &options, &machine, err) == SN_OK) machine.ops->close(machine.self);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

/* The module named by SNSIM_CUDA_MODULE, else one above the program's folder, as in a build tree. */
static inline void cuda_real(void) {
  static const char *const names[] = {"snsim_cuda13.so", "snsim_cuda12.so"};
  char folder[PATH_MAX] = "", path[PATH_MAX + 40];
  sn_err err = SN_ERR_INIT;
  bool told = getenv("SNSIM_CUDA_MODULE") != NULL;
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length > 0) *strrchr(folder, '/') = '\0';
  for (int i = 0; i < (told ? 1 : 2); i++) {
    snprintf(path, sizeof path, "%s/../%s", folder, names[i]);
    if (!told && access(path, F_OK) != 0) continue;
    if (!told) setenv("SNSIM_CUDA_MODULE", path, 1);
    err = (sn_err)SN_ERR_INIT;
    if (cuda_try(&err) == SN_OK) return;
    if (!told) unsetenv("SNSIM_CUDA_MODULE");
  }
  print_message("skipped: %s\n", err.code == SN_OK ? "this build has no CUDA module" : err.text);
  skip();
}

/* ---- every strategy ---- */

enum { CUDA_STRATEGIES = SN_STRATEGY_DEFAULTS + 1 };

static inline sn_strategy cuda_strategy(uint32_t i) {
  sn_strategy checkpoints = {.liveness = true, .offload = SN_OFFLOAD_CHECKPOINTS, .recompute = SN_RECOMPUTE_COST};
  return i < SN_STRATEGY_DEFAULTS ? sn_strategy_default(i) : checkpoints;
}

/* Predicted and measured results; on the fake each strategy meets another order of the device's work. */
static inline sn_run *cuda_train(const sn_net *net, uint64_t pool_bytes, fake_cuda *fake) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = cuda_options(pool_bytes);
  options.predict = true;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  for (uint32_t i = 0; session && i < CUDA_STRATEGIES && err.code == SN_OK; i++) {
    if (fake) fake->seed = i;
    sn_session_add(session, cuda_strategy(i), &err);
  }
  cuda_must(&err);
  sn_run *run = sn_session_take(session);
  sn_session_close(session);
  return run;
}

/* What was executed is what was planned. */
static inline void cuda_check_counts(const sn_result *planned, const sn_result *m) {
  assert_string_equal(planned->strategy, m->strategy);
  assert_string_equal(m->source, "cuda");
  assert_int_equal(m->iterations, 3);
  assert_int_equal(m->reserved_pool_bytes, planned->pool_bytes);
  assert_int_equal(m->pool_bytes, planned->pool_bytes);
  assert_int_equal(m->offload_bytes, planned->offload_bytes);
  assert_int_equal(m->prefetch_bytes, planned->prefetch_bytes);
  assert_true(m->iteration_ns > 0 && m->compute_ns > 0 && m->compute_ns <= m->iteration_ns);
}

/* All results are the baseline's to the bit. */
static inline void cuda_check_run(const sn_net *net, const sn_run *run) {
  uint64_t moved = 0, again = 0;
  assert_int_equal(run->n_results, 2 * CUDA_STRATEGIES);
  for (uint32_t i = 0; i < CUDA_STRATEGIES; i++) {
    const sn_result *m = &run->results[2 * i + 1];
    cuda_check_counts(m - 1, m);
    if (m->digest != run->results[1].digest || m->digest == 0 || !isfinite(m->loss))
      fail_msg("%s under %s: loss %.9g, baseline %.9g", net->name, m->strategy, m->loss, run->results[1].loss);
    if (cuda_strategy(i).offload == SN_OFFLOAD_CACHE) moved += m->offload_bytes;
    again += m->recomputed_layers;
  }
  assert_true(moved > 0 && again > 0); /* the cache had to work, and so had recomputation */
}

/* ---- one machine and one plan ---- */

typedef struct cuda_lab {
  sn_net *net;
  sn_route *route;
  sn_machine machine;
  sn_machine_options options;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_plan *plan;
  sn_trace trace;
  sn_state *state;
  sn_batches *batches;
} cuda_lab;

/* Instead of the plan that there is, by what the machine offers now. */
static inline void cuda_lab_plan(cuda_lab *lab, const char *strategy_text, sn_workspace workspace,
                                 uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_strategy strategy;
  sn_device_load("k40c", &device, &err);
  sn_strategy_parse(strategy_text, &strategy, &err);
  sn_trace_clear(&lab->trace);
  sn_plan_free(lab->plan);
  sn_schedule_free(lab->schedule);
  sn_costs_free(lab->costs);
  lab->costs = sn_costs_new(lab->net, &device, &err);
  cuda_must(&err);
  lab->machine.ops->offer(lab->machine.self, lab->costs, &err);
  cuda_must(&err);
  lab->schedule = sn_schedule_new(lab->route, strategy.recompute, &err);
  lab->plan = sn_lower(lab->schedule, strategy, workspace, lab->costs, pool_bytes, &err);
  cuda_must(&err);
  sn_trace_init(&lab->trace, lab->plan, &err);
  cuda_must(&err);
}

/* The net is the lab's from now on. */
static inline cuda_lab cuda_lab_open_by(sn_optimizer optimizer, sn_net *net, const char *strategy_text,
                                        sn_workspace workspace, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = {.net = net, .options = cuda_options(0).machine};
  lab.options.hyper.optimizer = optimizer;
  lab.route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  cuda_must(&err);
  sn_machine_open_cuda(lab.route, &lab.options, &lab.machine, &err);
  cuda_must(&err);
  cuda_lab_plan(&lab, strategy_text, workspace, pool_bytes);
  lab.batches = sn_batches_synthetic(net, 3, &err);
  cuda_must(&err);
  return lab;
}

static inline cuda_lab cuda_lab_open(sn_net *net, const char *strategy, sn_workspace workspace, uint64_t pool_bytes) {
  return cuda_lab_open_by(SN_OPTIMIZER_MOMENTUM, net, strategy, workspace, pool_bytes);
}

/* Every algorithm has run once: a library may offer some that do not, which no plan takes then. */
static inline cuda_lab cuda_lab_open_proven(sn_net *net, const char *strategy, sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = cuda_lab_open(net, strategy, workspace, UINT64_MAX);
  sn_timed_algorithms timed = {calloc(sn_calibrate_room(net) + (size_t)1, sizeof *timed.list), 0};
  assert_non_null(timed.list);
  lab.machine.ops->time_algorithms(lab.machine.self, &timed, NULL, NULL, &err);
  free(timed.list);
  cuda_must(&err);
  cuda_lab_plan(&lab, strategy, workspace, UINT64_MAX);
  return lab;
}

static inline void cuda_lab_close(cuda_lab *lab) {
  lab->machine.ops->close(lab->machine.self);
  sn_trace_clear(&lab->trace);
  sn_batches_free(lab->batches);
  sn_state_free(lab->state);
  sn_plan_free(lab->plan);
  sn_schedule_free(lab->schedule);
  sn_costs_free(lab->costs);
  sn_route_free(lab->route);
  sn_net_free(lab->net);
}

/* A pool in which liveness alone does not fit, so that the cache has to evict. The net is the lab's, and gone. */
static inline uint64_t cuda_tight_pool(sn_net *net) {
  cuda_lab lab = cuda_lab_open(net, "liveness", SN_WORKSPACE_NONE, UINT64_MAX);
  uint64_t bytes = lab.plan->pool_bytes / 5 * 4;
  cuda_lab_close(&lab);
  return bytes;
}

/* Parameters and batches from the beginning. */
static inline void cuda_lab_start(cuda_lab *lab) {
  sn_err err = SN_ERR_INIT;
  sn_state_free(lab->state);
  lab->state = sn_state_new(lab->net, &(sn_hyper){.seed = 5, .optimizer = lab->options.hyper.optimizer}, &err);
  sn_batches_rewind(lab->batches, &err);
  cuda_must(&err);
  lab->machine.ops->start(lab->machine.self, lab->state, &err);
  cuda_must(&err);
}

static inline const sn_batch *cuda_lab_feed(cuda_lab *lab) {
  sn_err err = SN_ERR_INIT;
  const sn_batch *batch = sn_batches_next(lab->batches, &err);
  cuda_must(&err);
  lab->machine.ops->feed(lab->machine.self, batch, &err);
  cuda_must(&err);
  return batch;
}

/* One iteration from the start; what it did to loss and parameters, or 0 where the device failed. */
static inline uint64_t cuda_lab_play(cuda_lab *lab, const sn_plan *plan) {
  sn_err err = SN_ERR_INIT, broken = SN_ERR_INIT;
  sn_outcome outcome;
  const sn_machine_ops *ops = lab->machine.ops;
  cuda_lab_start(lab);
  cuda_lab_feed(lab);
  if (sn_play(plan, ops->backend(lab->machine.self), &lab->trace, &broken) != SN_OK) return 0;
  ops->outcome(lab->machine.self, &outcome);
  ops->fetch(lab->machine.self, &err);
  cuda_must(&err);
  uint64_t digest = sn_digest(SN_DIGEST_START, &outcome.loss, sizeof outcome.loss);
  return sn_digest(digest, lab->state->parameters, lab->net->parameters * sizeof(float));
}

/* ---- the reference ---- */

static inline sn_status cuda_run_reference(void *self, const sn_call *call, sn_err *err) {
  (void)self;
  return sn_reference_run(call, err);
}

static inline void cuda_take(float *to, const float *from, uint64_t count) {
  if (count > 0) memcpy(to, from, count * sizeof *to);
}

static inline void cuda_take_batch(const net_runner *r, const sn_batch *batch) {
  cuda_take(r->output[r->net->layers[0].first_output], batch->data, r->net->data_bytes / sizeof(float));
  memcpy(r->labels, batch->labels, r->net->batch * sizeof *r->labels);
}

/* Starts where `state` is; net_runner_close() ends it. */
static inline net_runner cuda_reference(const sn_net *net, const sn_state *state, const sn_hyper *hyper) {
  net_runner r = net_runner_open(net, (net_kernels){.run = cuda_run_reference}, 1);
  r.hyper = *hyper;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    uint64_t at = state->parameter_offset[i], count = net->layers[i].parameters;
    cuda_take(r.layers[i].parameters, state->parameters + at, count);
    if (state->states[0]) cuda_take(r.layers[i].states[0], state->states[0] + at, count);
    cuda_take(r.layers[i].statistics, state->statistics + state->statistics_offset[i],
              net->layers[i].statistics_bytes / sizeof(float));
  }
  return r;
}

/* How far from the reference is too far: each element, relative to the largest of its kind in the layer, or the whole
 * kind by Euclidean norms. Elements suit a device that adds in our order. On a real one a pre-activation next to 0 may
 * come out on the other side: then a ReLU passes another gradient, a few elements are wholly different, and nothing is
 * wrong. */
typedef struct cuda_tolerance {
  double limit;
  bool norms;
} cuda_tolerance;

static inline cuda_tolerance cuda_elements(double limit) {
  return (cuda_tolerance){limit, false};
}

static inline cuda_tolerance cuda_norms(double limit) {
  return (cuda_tolerance){limit, true};
}

static inline void cuda_compare_norms(const sn_layer *layer, const char *what, const float *is, const float *should,
                                      uint64_t count, double limit) {
  double norm = 0, distance = 0;
  for (uint64_t i = 0; i < count; i++) {
    norm += (double)should[i] * (double)should[i];
    distance += ((double)is[i] - (double)should[i]) * ((double)is[i] - (double)should[i]);
  }
  if (!(sqrt(distance) <= limit * sqrt(norm) + 1e-12))
    fail_msg("layer %s: %s is off by %.3g of its norm %.3g", layer->name, what, sqrt(distance / norm), sqrt(norm));
}

/* Of one kind for one layer: weights and bias together, so that sums which cancel to almost nothing, as those of a bias
 * before a BN, count by the size of the rest. */
static inline void cuda_compare_data(const sn_layer *layer, const char *what, const float *is, const float *should,
                                     uint64_t count, cuda_tolerance tolerance) {
  double largest = 0;
  if (tolerance.norms) {
    cuda_compare_norms(layer, what, is, should, count, tolerance.limit);
    return;
  }
  for (uint64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)should[i]));
  for (uint64_t i = 0; i < count; i++)
    if (!(fabs((double)is[i] - (double)should[i]) <= tolerance.limit * largest + 1e-12))
      fail_msg("layer %s: %s[%llu] is %.9g, by the reference %.9g; the largest is %g", layer->name, what,
               (unsigned long long)i, (double)is[i], (double)should[i], largest);
}

/* All that a training changes. */
static inline void cuda_compare(const net_runner *r, const sn_state *state, cuda_tolerance tolerance) {
  for (uint32_t i = 0; i < r->net->n_layers; i++) {
    const sn_layer *layer = &r->net->layers[i];
    const net_state *s = &r->layers[i];
    const float *statistics = state->statistics + state->statistics_offset[i];
    uint64_t at = state->parameter_offset[i], count = layer->parameters, channels = layer->out.c;
    cuda_compare_data(layer, "gradient", state->gradients + at, s->gradients, count, tolerance);
    if (state->states[0]) cuda_compare_data(layer, "momentum", state->states[0] + at, s->states[0], count, tolerance);
    cuda_compare_data(layer, "parameter", state->parameters + at, s->parameters, count, tolerance);
    for (uint64_t k = 0; layer->op == SN_BN && k < 4; k++)
      cuda_compare_data(layer, "statistics", statistics + k * channels, s->statistics + k * channels, channels,
                        tolerance);
  }
}

/* ---- both together ---- */

typedef struct cuda_pair {
  cuda_lab *lab;
  net_runner reference;
  cuda_tolerance tolerance;
} cuda_pair;

/* Images whose label is the most likely class, by the last SOFTMAX of the route. */
static inline uint32_t cuda_reference_correct(const net_runner *r) {
  uint32_t last = 0, correct = 0;
  for (uint32_t i = 0; i < r->route->first_backward; i++)
    if (r->net->layers[r->route->steps[i].layer].op == SN_SOFTMAX) last = r->route->steps[i].layer;
  sn_shape s = r->net->layers[last].out;
  const float *x = r->output[r->net->inputs[r->net->layers[last].first_input]];
  for (uint32_t n = 0; n < s.n; n++, x += s.c) {
    uint32_t top = 0;
    for (uint32_t c = 1; c < s.c; c++)
      if (x[c] > x[top]) top = c;
    correct += top == (uint32_t)r->labels[n];
  }
  return correct;
}

/* After an iteration of the machine: the same of the reference, and what both have come to. */
static inline sn_status cuda_agree_after(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err) {
  cuda_pair *p = user;
  sn_outcome outcome;
  (void)trace;
  p->lab->machine.ops->outcome(p->lab->machine.self, &outcome);
  if (p->lab->machine.ops->fetch(p->lab->machine.self, err) != SN_OK) return err->code;
  p->reference.iteration = iteration;
  net_runner_iterate(&p->reference);
  if (!(fabs(outcome.loss - p->reference.loss) <= p->tolerance.limit * p->reference.loss))
    fail_msg("loss %.9g, by the reference %.9g", outcome.loss, p->reference.loss);
  assert_int_equal(outcome.correct, cuda_reference_correct(&p->reference));
  cuda_compare(&p->reference, p->lab->state, p->tolerance);
  cuda_take_batch(&p->reference, cuda_lab_feed(p->lab));
  return SN_OK;
}

/* Some iterations of the lab's plan and of the reference from the same start. */
static inline void cuda_agrees(cuda_lab *lab, uint64_t iterations, cuda_tolerance tolerance) {
  sn_err err = SN_ERR_INIT;
  uint64_t done;
  cuda_lab_start(lab);
  cuda_pair pair = {lab, cuda_reference(lab->net, lab->state, &lab->options.hyper), tolerance};
  cuda_take_batch(&pair.reference, cuda_lab_feed(lab));
  sn_play_options options = {.iterations = iterations, .after = cuda_agree_after, .user = &pair};
  sn_play_many(lab->plan, lab->machine.ops->backend(lab->machine.self), &options, &lab->trace, &done, &err);
  cuda_must(&err);
  assert_int_equal(done, iterations);
  net_runner_close(&pair.reference);
}

#endif
