/* Benchmark of operations side by side on this machine's cores: what is predicted of an iteration beside what it takes.
 *
 *   OMP_WAIT_POLICY=passive build/bench/bench_corun_cpu [net batch]...
 *                                                         default: resnet_cifar:n=3 64 inception_v3 4 dcgan 64
 *
 * Each network is calibrated with teams of one processor, half of them and all; then it is trained by one strategy
 * after another in ROUNDS rounds, each of which begins with another one, so that what the machine does meanwhile meets
 * all of them. Prints
 *
 *   - the counts of threads of kinds that are not on all cores, or would not be by the best of their largest instance;
 *   - of each strategy: the policy that made the plan, operations on fewer than all cores and changes of the team, time
 *     of an iteration predicted and measured (the median of all that count), and over that of liveness (the median of
 *     rounds, and their least and largest);
 *   - what steps of liveness took, by operator and pass, beside their timings.
 *
 * Two processors: less than three minutes. A figure only counts on a machine with nothing else to do: the load before
 * and the time stolen by other guests of the host are printed.
 */
#include "exec/machine/host.h"
#include "exec/machine/processors.h"
#include "exec/session/calibrate.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/ask/corun_plans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALIBRATING = 4, MEASURING = 3, ROUNDS = 4, STRATEGIES = 5, MOST_SAMPLES = ROUNDS * MEASURING };

static const char *const names[STRATEGIES] = {"liveness", "liveness+corun=s12", "liveness+corun=s123",
                                              "liveness+corun=path", "liveness+corun=best"};

typedef struct series {
  uint32_t n;
  double ms[MOST_SAMPLES];
} series;

typedef struct row {
  sn_strategy strategy;
  series all, of_round, over_liveness; /* the last by rounds */
  double predicted_ms;
  char policy[SN_POLICY_NAME];
  uint32_t fewer, changes; /* operations on fewer than all cores; of the team */
} row;

typedef struct bench {
  const sn_net *net;
  uint32_t cores;
  row rows[STRATEGIES], *at; /* at: that is trained now */
  double steps_ms[SN_OP_COUNT][SN_PASSES];
  uint32_t n_steps; /* iterations that steps_ms is of */
} bench;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts it. */
static double median(series *s) {
  if (s->n == 0) return 0;
  qsort(s->ms, s->n, sizeof *s->ms, compare);
  return s->n % 2 ? s->ms[s->n / 2] : (s->ms[s->n / 2 - 1] + s->ms[s->n / 2]) / 2;
}

static void put(series *s, double ms) {
  if (s->n < MOST_SAMPLES) s->ms[s->n++] = ms;
}

/* Percent of the processors' time that other guests had since `before`, which is then now. */
static double stolen(uint64_t before[2]) {
  uint64_t ticks[8] = {0}, all = 0;
  FILE *f = fopen("/proc/stat", "re");
  bool good =
      f && fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                  &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) == 8;
  if (f) fclose(f);
  for (int i = 0; i < 8; i++) all += ticks[i];
  double percent = good && all > before[1] ? 100.0 * (double)(ticks[7] - before[0]) / (double)(all - before[1]) : 0;
  before[0] = ticks[7];
  before[1] = all;
  return percent;
}

/* The session takes it over. */
static sn_calibration *hand_over(void *user, const sn_machine_info *info, sn_err *err) {
  (void)info, (void)err;
  sn_calibration **place = user, *c = *place;
  *place = NULL;
  return c;
}

/* ---- counts ---- */

static void print_kind(const sn_times *t, uint32_t kind) {
  const sn_time_kind *k = &t->kinds[kind];
  uint32_t best = t->classes[k->largest].best, count = k->threads < t->cores ? k->threads : best;
  double all_ms = 0, ms = 0, doubt = 0;
  if (count == t->cores) return;
  for (uint32_t i = 0; i < t->n_classes; i++) {
    const sn_time_class *c = &t->classes[i];
    if (c->kind != kind) continue;
    all_ms += c->instances * (double)c->ns[t->cores] / 1e6;
    ms += c->instances * (double)c->ns[count] / 1e6;
    doubt += c->instances * (double)(c->spread_ns[count] + c->spread_ns[t->cores]) / 2e6;
  }
  printf("  %-10s %-8s %-6s %4" PRIu32 " operations: %8.2f ms on all cores, %8.2f on %" PRIu32
         ", doubt %7.2f; largest instance: %" PRIu32 ", taken: %" PRIu32 "\n",
         sn_op_table[k->op]->name, sn_pass_name(k->pass), sn_step_part_name(k->part), k->instances, all_ms, ms, count,
         doubt, best, k->threads);
}

static void print_counts(const sn_net *net, const sn_calibration *c, sn_err *err) {
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err);
  const sn_device device = sn_corun_device(&c->profile, c);
  sn_times *t = route ? sn_times_new(route, &device, SN_OPTIMIZER_MOMENTUM, SN_INTERVAL_DEFAULT, c, err) : NULL;
  printf("interference %.2f, another team takes %.1f us; kinds that are not on all cores, or would not be:\n",
         c->cores.neighbour, c->cores.resize_ns / 1e3);
  for (uint32_t k = 0; t && k < t->n_kinds; k++) print_kind(t, k);
  sn_times_free(t);
  sn_route_free(route);
}

/* ---- training ---- */

static void note_teams(bench *b, const sn_plan *plan) {
  const sn_instr *before[SN_LANES] = {NULL};
  b->at->fewer = b->at->changes = 0;
  for (uint32_t i = 0; i < plan->n_instrs && sn_plan_is_corun(plan); i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    b->at->fewer += plan->teams[instr->team].count < b->cores;
    b->at->changes += before[instr->lane] && before[instr->lane]->team != instr->team;
    before[instr->lane] = instr;
  }
}

static void note_steps(bench *b, const sn_plan *plan, const sn_trace *trace) {
  b->n_steps++;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[plan->instrs[i].id];
    double ms = (double)(trace->spans[i].end_ns - trace->spans[i].begin_ns) / 1e6;
    b->steps_ms[b->net->layers[step->layer].op][step->pass] += ms;
  }
}

static sn_status visit(void *user, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  bench *b = user;
  (void)err;
  if (iteration == 0) note_teams(b, plan);
  if (iteration > 0) put(&b->at->of_round, (double)trace->end_ns / 1e6);
  if (iteration > 0 && !sn_plan_is_corun(plan)) note_steps(b, plan, trace);
  return SN_OK;
}

static void train_round(bench *b, sn_session *session, uint32_t round, sn_err *err) {
  for (uint32_t i = 0; i < STRATEGIES && err->code == SN_OK; i++) {
    row *r = b->at = &b->rows[(round + i) % STRATEGIES];
    r->of_round.n = 0;
    if (sn_session_add(session, r->strategy, err) != SN_OK) return;
    const sn_run *run = sn_session_run(session);
    const sn_result *predicted = &run->results[run->n_results - 2];
    r->predicted_ms = (double)predicted->iteration_ns / 1e6;
    snprintf(r->policy, sizeof r->policy, "%s", predicted->corun.policy ? predicted->corun.policy : "-");
    for (uint32_t k = 0; k < r->of_round.n; k++) put(&r->all, r->of_round.ms[k]);
  }
  double liveness = median(&b->rows[0].of_round);
  for (uint32_t i = 0; i < STRATEGIES && liveness > 0; i++)
    put(&b->rows[i].over_liveness, median(&b->rows[i].of_round) / liveness);
}

/* ---- what was found ---- */

static void print_rows(bench *b) {
  printf("%-20s %-6s %5s %7s %10s %9s %18s %7s %11s %12s\n", "", "policy", "fewer", "changes", "predicted", "measured",
         "min..max", "error %", "/ liveness", "in rounds");
  for (uint32_t i = 0; i < STRATEGIES; i++) {
    row *r = &b->rows[i];
    char span[40], rounds[40];
    double measured = median(&r->all), over = median(&r->over_liveness);
    if (r->all.n == 0) continue;
    snprintf(span, sizeof span, "%.1f..%.1f", r->all.ms[0], r->all.ms[r->all.n - 1]);
    snprintf(rounds, sizeof rounds, "%.2f..%.2f", r->over_liveness.ms[0], r->over_liveness.ms[r->over_liveness.n - 1]);
    printf("%-20s %-6s %5" PRIu32 " %7" PRIu32 " %10.2f %9.2f %18s %+7.1f %11.3f %12s\n", names[i], r->policy, r->fewer,
           r->changes, r->predicted_ms, measured, span, 100 * (r->predicted_ms / measured - 1), over, rounds);
  }
}

/* What the timings of whole steps say, by operator and pass. */
static void print_steps(const bench *b, const sn_calibration *c) {
  double timed_ms[SN_OP_COUNT][SN_PASSES] = {{0}};
  for (uint32_t layer = 1; layer < b->net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      char shape[SN_SHAPE_TEXT];
      sn_timing_shape(b->net, &b->net->layers[layer], pass, SN_OPTIMIZER_MOMENTUM, shape, sizeof shape);
      for (uint32_t i = 0; i < c->n_timings; i++) {
        const sn_timing *t = &c->timings[i];
        if (t->threads == 0 && t->pass == pass && strcmp(t->shape, shape) == 0)
          timed_ms[b->net->layers[layer].op][pass] += (double)t->ns / 1e6;
      }
    }
  printf("steps of liveness, ms timed and measured:");
  for (uint32_t op = 0; op < SN_OP_COUNT; op++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      if (timed_ms[op][pass] > 0)
        printf(" %s %s %.2f %.2f;", sn_op_table[op]->name, sn_pass_name(pass), timed_ms[op][pass],
               b->steps_ms[op][pass] / b->n_steps);
  printf("\n\n");
}

static sn_status measure(const char *name, uint32_t batch, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  sn_net *net = sn_net_load(name, batch, 0, err);
  if (!net) return err->code;
  bench b = {.net = net, .cores = sn_processors_count()};
  const uint32_t counts[] = {1, b.cores};
  uint64_t ticks[2] = {0};
  double load = sn_host_load_now().average;
  for (int i = 0; i < STRATEGIES; i++) sn_strategy_parse(names[i], &b.rows[i].strategy, err);
  stolen(ticks);
  options.iterations = CALIBRATING;
  sn_calibration *c =
      sn_calibrate("cpu", name, net, &options, &(sn_calibrate_wish){.teams = counts, .n_teams = 2}, err);
  printf("%s, batch %" PRIu32 ", load %.1f, stolen while calibrating %.1f %%\n", name, batch, load, stolen(ticks));
  if (c) print_counts(net, c, err);
  options.iterations = MEASURING;
  options.predict = true;
  options.compare = false;
  options.calibration = hand_over;
  options.visit = visit;
  options.visitor = &b;
  options.user = &c;
  sn_session *session = c ? sn_session_open(name, net, &options, err) : NULL;
  for (uint32_t round = 0; session && round < ROUNDS && err->code == SN_OK; round++)
    train_round(&b, session, round, err);
  if (err->code == SN_OK) {
    print_rows(&b);
    printf("stolen meanwhile %.1f %%; ", stolen(ticks));
    print_steps(&b, sn_session_calibration(session));
  }
  sn_session_close(session);
  sn_calibration_free(c);
  sn_net_free(net);
  return err->code;
}

int main(int argc, char **argv) {
  static const char *const own[] = {"resnet_cifar:n=3", "64", "inception_v3", "4", "dcgan", "64"};
  const char *const *nets = argc > 1 ? (const char *const *)argv + 1 : own;
  int n = argc > 1 ? argc - 1 : (int)(sizeof own / sizeof *own);
  sn_err err = SN_ERR_INIT;
  for (int i = 0; i + 1 < n && err.code == SN_OK; i += 2)
    measure(nets[i], (uint32_t)strtoul(nets[i + 1], NULL, 10), &err);
  if (err.code != SN_OK) fprintf(stderr, "bench_corun_cpu: %s\n", err.text);
  return err.code == SN_OK ? 0 : 1;
}
