/* Session: training by a plan, and what is measured of it; see exec/session/session_internal.h. */
#include "exec/session/session_internal.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/check.h"
#include "sim/play/meter.h"
#include "sim/play/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct timing {
  int64_t end_ns, compute_ns, stall_ns;
} timing;

typedef struct play {
  sn_session *session;
  const sn_plan *plan;
  sn_state *state;
  sn_meter meter;
  timing *timings;    /* per iteration */
  uint32_t *correct;  /* per iteration */
  sn_trace shortest;  /* the spans of the least disturbed iteration */
  sn_outcome outcome; /* of the last iteration */
  sn_outcome sum;     /* of the one at hand, over its batches so far */
  uint64_t done, digest, used_bytes;
  bool quiet; /* nothing but the digest is wanted */
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

/* A lane of a co-run plan waits where it has no work: that is no stall. */
static timing timing_of(const sn_plan *plan, const sn_trace *trace) {
  timing t = {trace->end_ns, trace->busy_ns[SN_LANE_COMPUTE],
              sn_plan_is_corun(plan) ? 0 : trace->stall_ns[SN_LANE_COMPUTE]};
  for (uint32_t lane = SN_LANE_COMPUTE2; lane < sn_plan_lanes(plan); lane++) t.compute_ns += trace->busy_ns[lane];
  return t;
}

/* A batch is over, of which an iteration may have several. */
static void add_batch(play *p, uint64_t iteration, const sn_trace *trace) {
  sn_outcome outcome;
  timing of = timing_of(p->plan, trace), *t = &p->timings[iteration];
  p->session->machine.ops->outcome(p->session->machine.self, &outcome);
  *t = (timing){t->end_ns + of.end_ns, t->compute_ns + of.compute_ns, t->stall_ns + of.stall_ns};
  p->sum.loss += outcome.loss;
  p->sum.correct += outcome.correct;
  p->digest = sn_digest(p->digest, &outcome.loss, sizeof outcome.loss);
}

static void end_iteration(play *p, uint64_t iteration) {
  p->outcome = (sn_outcome){p->sum.loss / sn_iteration_batches(p->session->iteration), p->sum.correct};
  p->correct[iteration] = p->outcome.correct;
  p->sum = (sn_outcome){0};
  p->done = iteration + 1;
}

static sn_status after_batch(void *user, uint64_t index, const sn_trace *trace, sn_err *err) {
  play *p = user;
  const sn_session *s = p->session;
  const sn_session_options *o = &s->options;
  uint64_t batches = sn_iteration_batches(s->iteration), iteration = index / batches;
  add_batch(p, iteration, trace);
  if ((index + 1) % batches > 0) return feed_next(s, err);
  end_iteration(p, iteration);
  if (p->quiet) return p->done < o->iterations ? feed_next(s, err) : SN_OK;
  keep_shortest(p, iteration, trace);
  if (iteration == 0 && s->machine.ops->used_bytes(s->machine.self, &p->used_bytes, err) != SN_OK) return err->code;
  if (o->visit && o->visit(o->visitor, iteration, p->plan, trace, err) != SN_OK) return err->code;
  if (o->progress) o->progress(o->user, iteration, &p->outcome, p->timings[iteration].end_ns);
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

static bool has_classes(const sn_net *net) {
  bool any = false;
  for (uint32_t i = 0; i < net->n_layers; i++)
    any = any || (net->layers[i].op == SN_SOFTMAX && sn_loss_is_of_classes(net->layers[i].attr->loss));
  return any;
}

/* Over the last tenth of the iterations. */
static double accuracy(const play *p) {
  if (!has_classes(p->session->net)) return -1;
  uint64_t n = p->done / 10 ? p->done / 10 : 1, right = 0;
  for (uint64_t i = p->done - n; i < p->done; i++) right += p->correct[i];
  const uint64_t labels = p->session->net->label_bytes / sizeof(int32_t);
  return (double)right / ((double)n * sn_iteration_batches(p->session->iteration) * (double)labels);
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
  uint64_t next = r->persistent.input_batch + r->persistent.labels;         /* which is made ready meanwhile */
  uint64_t outside = s->options.backend == SN_EXEC_CPU ? kept + next : 0;
  if (s->options.backend == SN_EXEC_CPU && s->options.external == SN_EXTERNAL_HOST) outside += p->plan->external_bytes;
  if (p->plan->route->dialect->eager && !sn_iteration_accumulates(s->iteration))
    outside += sn_freeze_trained(s->iteration.freeze, s->net) * sizeof *s->first; /* the last gradients, to look at */
  uint64_t known = sn_persistent_total(&r->persistent) + p->meter.touched_bytes;
  r->peak_device_bytes = p->used_bytes > outside ? p->used_bytes - outside : 0;
  r->context_bytes = r->peak_device_bytes > known ? r->peak_device_bytes - known : 0;
  r->pool_bytes = p->meter.touched_bytes;
  r->reserved_pool_bytes = p->plan->pool_bytes;
  r->offload_bytes = sn_iteration_batches(s->iteration) * p->meter.copied_bytes[SN_LANE_OUT];
  r->prefetch_bytes = sn_iteration_batches(s->iteration) * p->meter.copied_bytes[SN_LANE_IN];
}

static void note_times(play *p, sn_result *r) {
  uint64_t count;
  const timing *timings = sort_timings(p, &count), t = timings[count / 2];
  r->iteration_ns = t.end_ns;
  r->fastest_ns = timings[0].end_ns;
  r->slowest_ns = timings[count - 1].end_ns;
  r->compute_ns = t.compute_ns;
  r->stall_ns = t.stall_ns;
  double images = (double)sn_iteration_batches(p->session->iteration) * p->session->net->batch;
  r->images_per_second = images / ((double)t.end_ns / 1e9);
  r->iterations = p->done;
  r->loss = p->outcome.loss;
  r->accuracy = accuracy(p);
}

/* The run's arena may be of a fixed size: of plans with very many re-runs nothing is recorded. */
uint64_t sn__session_most_recorded(const sn_net *net) {
  return 32 * (uint64_t)net->n_layers;
}

/* It came to its end, or was stopped: whoever wants files and stops does so behind a whole iteration. */
static bool leaves_weights(play *p) {
  const sn_weight_files *files = &p->session->options.files;
  return p->done == p->session->options.iterations || ((files->save || files->gradients) && is_stopped(p));
}

static sn_status note_result(play *p, sn_strategy strategy, sn_err *err) {
  sn_session *s = p->session;
  sn_result *r = &s->results[s->n_results];
  sn_result_source source = sn__session_source(s, p->plan, &p->shortest);
  source.use = p->meter.use;
  if (sn_result_fill(&source, strategy, s->arena, r, err) != SN_OK ||
      sn__session_tell(s, p->plan, strategy, r, err) != SN_OK)
    return err->code;
  r->source = sn_exec_backend_name(s->options.backend);
  r->fits = true;
  note_memory(p, r);
  note_times(p, r);
  if (s->options.want_steps && p->plan->n_instrs <= sn__session_most_recorded(s->net))
    r->recording = sn_recording_write(p->plan, &p->shortest, s->arena, err);
  if (err->code != SN_OK || sn__session_explain(s, p->plan, strategy, r, err) != SN_OK) return err->code;
  if (p->done == s->options.iterations) {
    if (s->machine.ops->fetch(s->machine.self, err) != SN_OK) return err->code;
    r->digest = digest(p);
    if (compare_with_first(p, r, err) != SN_OK) return err->code;
  }
  s->n_results++;
  if (s->saved || !leaves_weights(p)) return SN_OK;
  if (p->done < s->options.iterations && s->machine.ops->fetch(s->machine.self, err) != SN_OK) return err->code;
  s->saved = true;
  return sn_weight_files_save(&s->options.files, p->state, err);
}

static sn_status prepare(play *p, sn_err *err) {
  sn_session *s = p->session;
  s->has_batches = true;
  p->state = sn_state_new(s->net, &s->options.machine.hyper, err);
  if (p->state) p->state->freeze = s->iteration.freeze;
  if (p->state && s->weights) sn_weights_read(s->weights, p->state, err);
  p->timings = calloc(s->options.iterations, sizeof *p->timings);
  p->correct = calloc(s->options.iterations, sizeof *p->correct);
  if (!p->timings || !p->correct) sn_fail_memory(err);
  if (err->code != SN_OK || sn_trace_init(&p->shortest, p->plan, err) != SN_OK) return err->code;
  if (sn_batches_rewind(s->batches, err) != SN_OK || s->machine.ops->start(s->machine.self, p->state, err) != SN_OK)
    return err->code;
  return feed_next(s, err);
}

static sn_play_options play_options(play *p) {
  const sn_session *s = p->session;
  return (sn_play_options){.iterations = s->options.iterations * sn_iteration_batches(s->iteration),
                           .stop = is_stopped,
                           .after = after_batch,
                           .user = p};
}

/* What whole iterations there were is kept also where a later one failed. */
static sn_status train(play *p, sn_strategy strategy, sn_trace *trace, sn_err *err) {
  const sn_session *s = p->session;
  sn_err failed = SN_ERR_INIT;
  sn_play_options options = play_options(p);
  uint64_t done;
  p->meter.inner = s->machine.ops->backend(s->machine.self);
  sn_play_many(p->plan, sn_meter_backend(&p->meter), &options, trace, &done, &failed);
  if (p->done > 0) note_result(p, strategy, err);
  if (failed.code != SN_OK) *err = failed;
  return err->code;
}

static void clear(play *p) {
  sn_meter_clear(&p->meter);
  sn_trace_clear(&p->shortest);
  free(p->timings);
  free(p->correct);
  sn_state_free(p->state);
}

sn_status sn__session_measure(sn_session *s, sn_strategy strategy, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  play p = {.session = s, .plan = plan, .digest = SN_DIGEST_START};
  sn_status status = prepare(&p, err);
  if (status == SN_OK) status = train(&p, strategy, trace, err);
  clear(&p);
  return status;
}

/* Trains once more, and compares. */
static sn_status repeat(play *p, const sn_result *known, sn_trace *trace, sn_err *err) {
  const sn_machine *m = &p->session->machine;
  sn_play_options options = play_options(p);
  uint64_t done;
  if (prepare(p, err) != SN_OK) return err->code;
  sn_play_many(p->plan, m->ops->backend(m->self), &options, trace, &done, err);
  if (err->code != SN_OK || p->done < p->session->options.iterations || m->ops->fetch(m->self, err) != SN_OK)
    return err->code;
  if (digest(p) == known->digest) return SN_OK;
  return sn_fail(err, SN_BUG, "its operations give another result side by side than one after another");
}

sn_status sn__session_prove(sn_session *s, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  const sn_result *known = &s->results[s->n_results - 1];
  sn_plan serial = *plan;
  play p = {.session = s, .plan = &serial, .digest = SN_DIGEST_START, .quiet = true};
  serial.instrs = malloc((plan->n_instrs + (size_t)1) * sizeof *serial.instrs);
  if (!serial.instrs) return sn_fail_memory(err);
  memcpy(serial.instrs, plan->instrs, plan->n_instrs * sizeof *serial.instrs);
  for (uint32_t i = 0; i < plan->n_instrs; i++) serial.instrs[i].lane = SN_LANE_COMPUTE;
  if (sn_check(&serial, NULL, err) == SN_OK) repeat(&p, known, trace, err);
  clear(&p);
  free(serial.instrs);
  return err->code;
}
