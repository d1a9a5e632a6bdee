/* Team times; see the header. */
#include "exec/session/team_times.h"

#include "exec/session/calibrate.h"
#include "sim/device/scaling.h"
#include "sim/graph/route.h"
#include "sim/policy/part.h"

#include <math.h>
#include <stdlib.h>

enum {
  FORWARD,
  BACKWARD, /* whole, filter, data */
  UPDATE = BACKWARD + SN_STEP_PARTS,
  PLACES,     /* operations that a layer may have */
  ROUNDS = 3, /* times that an operation is played with each count of threads */
  KEPT_SAMPLES = 48,
  KEPT_RUNS = 512,
  MOST_COUNTS = SN_TEAM_COUNTS + 3
};

typedef struct samples {
  uint32_t count;
  int64_t ns[KEPT_SAMPLES];
} samples;

/* An iteration of operations one after another. */
typedef struct serial_run {
  uint32_t pass; /* of the mix */
  int64_t ns;    /* from the begin of the first to the end of the last */
} serial_run;

typedef struct run_of_one {
  int64_t begin_ns, end_ns;
  size_t place;
  double overlap_ns, worked_ns; /* others ran at the same time; that times their shares */
} run_of_one;

struct sn__team_times {
  const sn_net *net;
  uint32_t cores, counts[MOST_COUNTS], n_counts;
  sn_mix mix;         /* that is played */
  uint32_t n_mixes;   /* so far */
  samples *samples;   /* [count][layer x PLACES + ..] */
  int64_t *ns;        /* the same: medians, when all are there; 0: not measured */
  int64_t *spread_ns; /* the same: between the quartiles */
  size_t *order;      /* places of operations, as they run one after another */
  uint32_t n_order, n_runs;
  serial_run runs[KEPT_RUNS];
  bool paired;                       /* what is played is 2xH */
  run_of_one *ops;                   /* of an iteration of it */
  sn__team_run *beside;              /* those of them that ran beside others */
  double interference[KEPT_SAMPLES]; /* of iterations */
  uint32_t n_interference;
};

static size_t places(const sn__team_times *t) {
  return (size_t)t->net->n_layers * PLACES;
}

static size_t place_of(uint32_t layer, sn_pass pass, sn_step_part part) {
  size_t first = (size_t)layer * PLACES;
  if (pass == SN_BACKWARD) return first + BACKWARD + part;
  return first + (pass == SN_UPDATE ? UPDATE : FORWARD);
}

static int compare_counts(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* With those that are always measured, ascending, each once; how many. */
static uint32_t complete(uint32_t cores, const uint32_t *counts, uint32_t n, uint32_t all[MOST_COUNTS]) {
  uint32_t n_all = 3, kept = 0;
  all[0] = 1;
  all[1] = cores / 2;
  all[2] = cores;
  for (uint32_t i = 0; i < n && i < SN_TEAM_COUNTS; i++) all[n_all++] = counts[i];
  qsort(all, n_all, sizeof *all, compare_counts);
  for (uint32_t i = 0; i < n_all; i++)
    if (i == 0 || all[i] != all[i - 1]) all[kept++] = all[i];
  return kept;
}

uint32_t sn__team_times_plans(uint32_t cores, const uint32_t *counts, uint32_t n_counts) {
  uint32_t all[MOST_COUNTS];
  return ROUNDS * (1 + complete(cores, counts, n_counts, all)) + 1; /* 1xC, mixes, 2xH */
}

sn__team_times *sn__team_times_new(const sn_net *net, uint32_t cores, const uint32_t *counts, uint32_t n_counts,
                                   sn_err *err) {
  sn__team_times *t = calloc(1, sizeof *t);
  if (t) {
    t->net = net;
    t->cores = cores;
    t->n_counts = complete(cores, counts, n_counts, t->counts);
    size_t all = places(t);
    t->samples = calloc(t->n_counts * all, sizeof *t->samples);
    t->ns = calloc(t->n_counts * all, sizeof *t->ns);
    t->spread_ns = calloc(t->n_counts * all, sizeof *t->spread_ns);
    t->order = calloc(all, sizeof *t->order);
    t->ops = calloc(all, sizeof *t->ops);
    t->beside = calloc(all, sizeof *t->beside);
  }
  if (t && t->samples && t->ns && t->spread_ns && t->order && t->ops && t->beside) return t;
  sn__team_times_free(t);
  sn_fail_memory(err);
  return NULL;
}

void sn__team_times_free(sn__team_times *t) {
  if (!t) return;
  free(t->samples);
  free(t->ns);
  free(t->spread_ns);
  free(t->order);
  free(t->ops);
  free(t->beside);
  free(t);
}

/* ---- side by side ---- */

/* While others ran beside it the operation was slower by 1 + beta share. */
static double beta_of(const sn__team_run *r) {
  double lost = (r->ns - r->alone_ns) / r->overlap_ns; /* of the time side by side */
  double most = r->share * SN_MAX_INTERFERENCE;
  if (lost <= 0 || r->share <= 0) return 0;
  return lost >= most / (1 + most) ? SN_MAX_INTERFERENCE : lost / (1 - lost) / r->share;
}

static double weight_of(const sn__team_run *r) {
  return r->alone_ns * r->overlap_ns / r->ns;
}

static int compare_beta(const void *a, const void *b) {
  double x = ((const sn__team_run *)a)->beta, y = ((const sn__team_run *)b)->beta;
  return (x > y) - (x < y);
}

double sn__team_interference(sn__team_run *runs, uint32_t n) {
  double all = 0, below = 0;
  uint32_t i = 0;
  for (uint32_t r = 0; r < n; r++) {
    runs[r].beta = beta_of(&runs[r]);
    all += weight_of(&runs[r]);
  }
  qsort(runs, n, sizeof *runs, compare_beta);
  for (; i + 1 < n && below + weight_of(&runs[i]) < all / 2; i++) below += weight_of(&runs[i]);
  return runs[i].beta;
}

/* Where those of a count of threads begin. */
static size_t first_of(const sn__team_times *t, uint32_t count) {
  uint32_t i = 0;
  while (t->counts[i] != count) i++;
  return i * places(t);
}

/* u of an operation on half of the cores, times what the law makes of their number. */
static double share_of(const sn__team_times *t, size_t place) {
  uint32_t half = t->cores / 2;
  double one = (double)t->ns[first_of(t, 1) + place], on_half = (double)t->ns[first_of(t, half) + place];
  double share = on_half > 0 ? fmin(1, one / (half * on_half)) : 0;
  return share * fmin(1, 2.0 * half / t->cores);
}

static int compare_begin(const void *a, const void *b) {
  const run_of_one *x = a, *y = b;
  if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

/* Two operations ran side by side for a while. */
static void note_pair(const sn__team_times *t, run_of_one *x, run_of_one *y) {
  double ns = (double)((x->end_ns < y->end_ns ? x->end_ns : y->end_ns) - y->begin_ns);
  x->overlap_ns += ns;
  y->overlap_ns += ns;
  x->worked_ns += ns * share_of(t, y->place);
  y->worked_ns += ns * share_of(t, x->place);
}

/* The interference that this iteration shows; below 0: nothing ran side by side. */
static double interference_of(sn__team_times *t, uint32_t n_ops) {
  const int64_t *half = t->ns + first_of(t, t->cores / 2);
  run_of_one *r = t->ops;
  uint32_t n = 0;
  qsort(r, n_ops, sizeof *r, compare_begin);
  for (uint32_t i = 0; i < n_ops; i++)
    for (uint32_t j = i + 1; j < n_ops && r[j].begin_ns < r[i].end_ns; j++) note_pair(t, &r[i], &r[j]);
  for (uint32_t i = 0; i < n_ops; i++) {
    if (r[i].overlap_ns <= 0) continue;
    t->beside[n++] = (sn__team_run){.ns = (double)(r[i].end_ns - r[i].begin_ns),
                                    .alone_ns = (double)half[r[i].place],
                                    .overlap_ns = r[i].overlap_ns,
                                    .share = r[i].worked_ns / r[i].overlap_ns};
  }
  return n > 0 ? sn__team_interference(t->beside, n) : -1;
}

/* ---- playing ---- */

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int compare_real(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts them. n > 0. */
static int64_t median_ns(int64_t *ns, uint32_t n) {
  qsort(ns, n, sizeof *ns, compare_ns);
  return n % 2 ? ns[n / 2] : ns[n / 2 - 1] + (ns[n / 2] - ns[n / 2 - 1]) / 2;
}

static void visit_pair(sn__team_times *t, const sn_plan *plan, const sn_trace *trace) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE || n == places(t)) continue;
    const sn_step *step = &plan->route->steps[instr->id];
    t->ops[n++] = (run_of_one){.begin_ns = trace->spans[i].begin_ns,
                               .end_ns = trace->spans[i].end_ns,
                               .place = place_of(step->layer, step->pass, (sn_step_part)instr->part)};
  }
  double beta = interference_of(t, n);
  if (beta >= 0 && t->n_interference < KEPT_SAMPLES) t->interference[t->n_interference++] = beta;
}

/* With all cores an operation counts behind others that have all of them, with fewer behind one on another team. */
static bool counts_here(const sn__team_times *t, uint32_t threads) {
  return (threads == t->cores) == (t->mix.pass < t->n_counts);
}

/* All operations of a mix are on one lane, so one after another, in every mix in the same order. */
static void visit_mix(sn__team_times *t, const sn_plan *plan, const sn_trace *trace) {
  int64_t begin_ns = 0, end_ns = 0;
  t->n_order = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE || t->n_order == places(t)) continue;
    const sn_step *step = &plan->route->steps[instr->id];
    uint32_t count = plan->teams[instr->team].count;
    size_t place = place_of(step->layer, step->pass, (sn_step_part)instr->part);
    samples *s = &t->samples[first_of(t, count) + place];
    if (t->n_order == 0) begin_ns = trace->spans[i].begin_ns;
    end_ns = trace->spans[i].end_ns;
    t->order[t->n_order++] = place;
    if (counts_here(t, count) && s->count < KEPT_SAMPLES) s->ns[s->count++] = end_ns - trace->spans[i].begin_ns;
  }
  if (t->n_runs < KEPT_RUNS) t->runs[t->n_runs++] = (serial_run){t->mix.pass, end_ns - begin_ns};
}

void sn__team_times_visit(sn__team_times *t, const sn_plan *plan, const sn_trace *trace) {
  if (t->paired)
    visit_pair(t, plan, trace);
  else
    visit_mix(t, plan, trace);
}

static void find_medians(sn__team_times *t) {
  for (size_t i = 0; i < t->n_counts * places(t); i++) {
    samples *s = &t->samples[i];
    if (s->count == 0) continue;
    int64_t median = median_ns(s->ns, s->count);
    uint32_t quarter = (s->count - 1) / 4;
    t->ns[i] = median > 0 ? median : 1;
    t->spread_ns[i] = s->ns[s->count - 1 - quarter] - s->ns[quarter];
  }
}

const sn_mix *sn__team_times_next_mix(sn__team_times *t) {
  uint32_t n = t->n_counts, i = t->n_mixes++;
  t->mix = (sn_mix){t->counts, n, i < ROUNDS ? n - 1 : n + i - ROUNDS};
  if (i < ROUNDS * (n + 1)) return &t->mix;
  find_medians(t);
  t->paired = true;
  return NULL;
}

/* A mix goes one after another, whatever the policy. */
static sn_strategy workers(uint32_t k, uint32_t threads) {
  return (sn_strategy){.liveness = SN_LIVENESS_FULL, .corun = {SN_POLICY_WORKERS, k, threads}};
}

sn_status sn__team_times_measure(sn__team_times *t, sn_session *session, sn_err *err) {
  const sn_mix *mix = NULL;
  while (err->code == SN_OK && (mix = sn__team_times_next_mix(t))) {
    sn_session_mix(session, mix);
    sn_session_add(session, workers(1, t->cores), err);
  }
  sn_session_mix(session, NULL);
  return err->code == SN_OK ? sn_session_add(session, workers(2, t->cores / 2), err) : err->code;
}

/* ---- what was found ---- */

/* Sorts them. 0 where there are none. */
static double median_of(double *of_iterations, uint32_t n) {
  if (n == 0) return 0;
  qsort(of_iterations, n, sizeof *of_iterations, compare_real);
  return of_iterations[n / 2];
}

double sn__team_times_interference(sn__team_times *t) {
  return median_of(t->interference, t->n_interference);
}

/* What an iteration took beyond its operations' times. */
static int64_t lost_ns(const sn__team_times *t, const serial_run *run) {
  const sn_mix mix = {t->counts, t->n_counts, run->pass};
  int64_t ns = run->ns;
  for (uint32_t op = 0; op < t->n_order; op++) ns -= t->ns[first_of(t, sn_mix_threads(&mix, op)) + t->order[op]];
  return ns;
}

/* The median over iterations of mixes, or of those on all cores. */
static double median_lost_ns(const sn__team_times *t, bool mixed) {
  double lost[KEPT_RUNS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n_runs; i++)
    if ((t->runs[i].pass >= t->n_counts) == mixed) lost[n++] = (double)lost_ns(t, &t->runs[i]);
  return median_of(lost, n);
}

double sn__team_times_resize_ns(const sn__team_times *t) {
  if (t->n_order < 2) return 0;
  double ns = (median_lost_ns(t, true) - median_lost_ns(t, false)) / (t->n_order - 1); /* each changes the team */
  return fmin(fmax(0, ns), SN_MAX_RESIZE_NS);
}

uint32_t sn__team_times_most(const sn__team_times *t) {
  return t->n_counts * (uint32_t)places(t);
}

/* The timing of an operation on a team, but for its shape. */
static sn_timing timing_of(const sn__team_times *t, const sn_cores *cores, sn_optimizer optimizer, uint32_t count,
                           size_t place) {
  uint32_t layer = (uint32_t)(place / PLACES), at = (uint32_t)(place % PLACES);
  sn_pass pass = at == FORWARD ? SN_FORWARD : at == UPDATE ? SN_UPDATE : SN_BACKWARD;
  sn_step_part part = pass == SN_BACKWARD ? (sn_step_part)(at - BACKWARD) : SN_STEP_WHOLE;
  sn_scaling law = sn_scaling_of(cores, t->net, layer, pass, sn_step_part_kernel(part), optimizer);
  return (sn_timing){.op = t->net->layers[layer].op,
                     .pass = pass,
                     .kernel = SN_CONV_KERNELS,
                     .algo = SN_CONV_ALGOS,
                     .ns = t->ns[count * places(t) + place],
                     .spread_ns = t->spread_ns[count * places(t) + place],
                     .formula_ns = sn_scaling_ns(cores, &law, t->counts[count]),
                     .samples = t->samples[count * places(t) + place].count,
                     .part = part,
                     .threads = t->counts[count]};
}

sn_status sn__team_times_each(const sn__team_times *t, const sn_cores *cores, sn_optimizer optimizer,
                              sn_status (*add)(void *user, sn_timing timing), void *user) {
  sn_status status = SN_OK;
  for (uint32_t count = 0; count < t->n_counts; count++)
    for (size_t place = 0; place < places(t) && status == SN_OK; place++) {
      char shape[SN_SHAPE_TEXT];
      if (t->ns[count * places(t) + place] == 0) continue;
      sn_timing timing = timing_of(t, cores, optimizer, count, place);
      const sn_layer *layer = &t->net->layers[place / PLACES];
      timing.shape = sn_timing_shape(t->net, layer, (sn_pass)timing.pass, optimizer, shape, sizeof shape);
      status = add(user, timing);
    }
  return status;
}
