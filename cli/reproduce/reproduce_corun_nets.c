/* Whole networks on a Xeon Phi 7250, of "Runtime Concurrency Control and Operation Scheduling for High Performance
 * Neural Network Training": threads of all operations alike (table I), how well climbing predicts (V), times by kind of
 * operation (VI), what each strategy gains (figure 3), how many operations run at once (4). */
#include "cli/reproduce/reproduce.h"
#include "models/zoo/zoo.h"
#include "sim/corun/schedule.h"
#include "sim/device/scaling.h"
#include "sim/policy/interval.h"
#include "sim/schedule/ops.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { RESNET, DCGAN, INCEPTION, NETS };

/* A step of the paper's DCGAN is three passes of ours. */
static const struct {
  const char *name, *spec;
  uint32_t batch, passes;
  sn_optimizer optimizer;
} nets[NETS] = {
    {"ResNet-50", "resnet_cifar:n=8", 64, 1, SN_OPTIMIZER_MOMENTUM},
    {"DCGAN", "dcgan", 64, 3, SN_OPTIMIZER_ADAM},
    {"Inception-v3", "inception_v3", 16, 1, SN_OPTIMIZER_MOMENTUM},
};

/* A network on the paper's machine. */
typedef struct subject {
  sn_device device;
  int which; /* nets[which] */
  sn_net *net;
  sn_route *route;
  sn_schedule *schedule;
  sn_ops *ops;
  sn_times *times; /* at the default interval */
} subject;

static sn_status open_subject(subject *s, int which, const char *device, sn_err *err) {
  *s = (subject){.which = which};
  if (sn_device_load(device, &s->device, err) != SN_OK) return err->code;
  s->net = sn_net_load(nets[which].spec, nets[which].batch, 0, err);
  s->route = s->net ? sn_route_new(s->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  s->schedule = s->route ? sn_schedule_new(s->route, SN_RECOMPUTE_NONE, err) : NULL;
  s->ops = s->schedule ? sn_ops_new(s->schedule, err) : NULL;
  if (s->ops) s->times = sn_times_new(s->route, &s->device, nets[which].optimizer, SN_INTERVAL_DEFAULT, NULL, err);
  return err->code;
}

static void close_subject(subject *s) {
  sn_times_free(s->times);
  sn_ops_free(s->ops);
  sn_schedule_free(s->schedule);
  sn_route_free(s->route);
  sn_net_free(s->net);
}

/* Asks of every network from `first` on; what it finds goes into rows. */
typedef void ask(const subject *s, sn_paper_rows *rows, sn_err *err);

static sn_status ask_all(const sn_experiment *experiment, int count, ask *question, sn_paper_rows *rows, sn_err *err) {
  for (int which = 0; which < count && err->code == SN_OK; which++) {
    subject s;
    if (open_subject(&s, which, experiment->gpu, err) == SN_OK) question(&s, rows, err);
    close_subject(&s);
  }
  return err->code;
}

/* A step of the paper, in ms, by a policy that may take any memory, as the paper's do; 0 after an error. */
static double step_ms(const subject *s, const char *policy, sn_corun_facts *facts, sn_err *err) {
  sn_policy p;
  if (err->code != SN_OK || sn_policy_parse(policy, &p, err) != SN_OK) return 0;
  sn_timetable *t = sn_corun_schedule(s->ops, s->times, &s->device.cores, p, SN_BUDGET_ANY, facts, err);
  double ms = t ? nets[s->which].passes * (double)t->end_ns / 1e6 : 0;
  sn_timetable_free(t);
  return ms;
}

/* ---- table I ---- */

enum { CONFIGURATIONS = 9 };

static const struct {
  const char *name;
  double paper[2]; /* ResNet-50, DCGAN */
} configurations[CONFIGURATIONS] = {
    {"1x34", {1414, 484}}, {"1x68", {1382, 524}}, {"1x136", {2257, 1045}},
    {"2x34", {1088, 411}}, {"2x68", {1213, 501}}, {"2x136", {4017, 1238}},
    {"4x34", {1169, 434}}, {"4x68", {3048, 565}}, {"4x136", {4782, 1469}},
};

static void ask_table1(const subject *s, sn_paper_rows *rows, sn_err *err) {
  for (int i = 0; i < CONFIGURATIONS; i++)
    sn_paper_put(rows, nets[s->which].name, configurations[i].name, SN_MS, configurations[i].paper[s->which],
                 step_ms(s, configurations[i].name, NULL, err), err);
}

/* How far off, max(r, 1/r), the first `of` of every `period` rows are. */
static void put_distance(sn_paper_rows *rows, const char *name, uint32_t of, uint32_t period, sn_err *err) {
  double sum = 0, worst = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < rows->count; i++) {
    if (i % period >= of) continue;
    double off = fabs(log(rows->rows[i].ours / rows->rows[i].paper));
    sum += off;
    worst = fmax(worst, off);
    n++;
  }
  sn_paper_put(rows, name, "geometric mean", SN_TIMES_OFF, NAN, exp(sum / n), err);
  sn_paper_put(rows, name, "worst", SN_TIMES_OFF, NAN, exp(worst), err);
}

sn_status sn_corun_table1(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  ask_all(experiment, INCEPTION, ask_table1, rows, err);
  if (err->code == SN_OK) put_distance(rows, "all 18", 1, 1, err);
  return err->code;
}

/* ---- table V ---- */

enum { INTERVALS = 5 };

static const uint32_t intervals[INTERVALS] = {2, 4, 8, 16, SN_INTERVAL_GEOMETRIC};
static const double accuracies[NETS][INTERVALS] = {
    {98.13, 95.45, 83.42, 31.12, NAN}, {97.16, 94.43, 51.54, 10.14, NAN}, {97.91, 94.22, 73.21, 21.21, NAN}};

/* What the best counts found take longer than the best of all, in percent, the mean over operations. */
static double loss_of_found(const sn_times *times) {
  double sum = 0;
  for (uint32_t i = 0; i < times->n_classes; i++) {
    const sn_time_class *c = &times->classes[i];
    int64_t least = c->ns[1];
    for (uint32_t p = 2; p <= times->cores; p++)
      if (c->ns[p] < least) least = c->ns[p];
    sum += c->instances * ((double)c->ns[c->best] / (double)least - 1);
  }
  return 100 * sum / times->n_ops;
}

static void ask_interval(const subject *s, int i, sn_paper_rows *rows, sn_err *err) {
  char name[SN_INTERVAL_NAME], series[SN_PAPER_TEXT];
  sn_times *times = sn_times_new(s->route, &s->device, nets[s->which].optimizer, intervals[i], NULL, err);
  if (!times) return;
  snprintf(series, sizeof series, "interval %s", sn_interval_name(intervals[i], name));
  const char *net = nets[s->which].name;
  sn_paper_put(rows, net, series, SN_ACCURACY_PERCENT, accuracies[s->which][i], 100 * times->accuracy, err);
  sn_paper_put(rows, net, "  loss of the best found", SN_SHARE_PERCENT, NAN, loss_of_found(times), err);
  sn_paper_put(rows, net, "  profiling", SN_STEPS, NAN, times->profile_steps, err);
  sn_times_free(times);
}

static void ask_table5(const subject *s, sn_paper_rows *rows, sn_err *err) {
  for (int i = 0; i < INTERVALS && err->code == SN_OK; i++) ask_interval(s, i, rows, err);
}

sn_status sn_corun_table5(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  return ask_all(experiment, NETS, ask_table5, rows, err);
}

/* ---- table VI ---- */

/* What TensorFlow calls them, by what they compute. */
static const struct {
  sn_law_kind kind;
  const char *name;
  double all[NETS], s12[NETS]; /* NAN: not among the first ten */
} operations[] = {
    {SN_LAW_FILTER, "Conv2DBackpropFilter", {158, 133, 479}, {146, 110, 475}},
    {SN_LAW_DATA, "Conv2DBackpropInput", {76, 164, 397}, {76, 144, 393}},
    {SN_LAW_FORWARD, "Conv2D", {49, 9, 326}, {49, 8, 319}},
    {SN_LAW_FC, "MatMul", {NAN, 5, NAN}, {NAN, 5, NAN}},
    {SN_LAW_UPDATE, "update (ApplyAdam)", {NAN, 84, NAN}, {NAN, 72, NAN}},
};

/* All operations of a law's kind, with all cores or with n_k, one after another. */
static double sum_ms(const subject *s, sn_law_kind kind, bool all) {
  static const sn_kernel kernels[SN_STEP_PARTS] = {SN_WHOLE, SN_FILTER_GRADIENT, SN_DATA_GRADIENT};
  double ns = 0;
  for (uint32_t i = 0; i < s->times->n_classes; i++) {
    const sn_time_class *c = &s->times->classes[i];
    const sn_time_kind *k = &s->times->kinds[c->kind];
    if (sn_scaling_kind(k->op, k->pass, kernels[k->part]) == kind)
      ns += (double)c->instances * (double)c->ns[all ? s->times->cores : k->threads];
  }
  return nets[s->which].passes * ns / 1e6;
}

static void ask_table6(const subject *s, sn_paper_rows *rows, sn_err *err) {
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    char series[SN_PAPER_TEXT];
    snprintf(series, sizeof series, "%s, 68", operations[i].name);
    sn_paper_put(rows, nets[s->which].name, series, SN_MS, operations[i].all[s->which],
                 sum_ms(s, operations[i].kind, true), err);
    snprintf(series, sizeof series, "%s, s12", operations[i].name);
    sn_paper_put(rows, nets[s->which].name, series, SN_MS, operations[i].s12[s->which],
                 sum_ms(s, operations[i].kind, false), err);
  }
}

sn_status sn_corun_table6(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  return ask_all(experiment, NETS, ask_table6, rows, err);
}

/* ---- figures 3 and 4 ---- */

enum { GAINS = 6, PARTS = 3 }; /* of a network; those of one strategy alone */

static const struct {
  const char *name, *policy, *before;
  double paper[NETS];
} gains[GAINS] = {
    {"s12 / 1x68", "s12", "1x68", {1.02, 1.12, 1.02}},
    {"s123 / s12", "s123", "s12", {1.35, 1.15, 1.07}},
    {"s1234 / s123", "s1234", "s123", {1.08, 1.04, 1.07}},
    {"s1234 / 1x68", "s1234", "1x68", {1.49, 1.34, 1.17}},
    {"s1234 / manual", "s1234", "manual", {1.08, 1.07, 0.98}},
    {"path / s1234 (ours)", "path", "s1234", {NAN, NAN, NAN}},
};

static void ask_figure3(const subject *s, sn_paper_rows *rows, sn_err *err) {
  for (int i = 0; i < GAINS; i++) {
    double ms = step_ms(s, gains[i].policy, NULL, err), before = step_ms(s, gains[i].before, NULL, err);
    sn_paper_put(rows, nets[s->which].name, gains[i].name, SN_RATIO, gains[i].paper[s->which], before / ms, err);
  }
}

sn_status sn_corun_figure3(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  if (ask_all(experiment, NETS, ask_figure3, rows, err) == SN_OK)
    put_distance(rows, "all nine parts", PARTS, GAINS, err);
  return err->code;
}

static void ask_figure4(const subject *s, sn_paper_rows *rows, sn_err *err) {
  static const struct {
    const char *policy;
    double paper[NETS];
  } policies[] = {{"s123", {1.61, 1.62, 1.52}}, {"s1234", {1.89, 2.04, 1.74}}, {"path", {NAN, NAN, NAN}}};
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    sn_corun_facts facts = {0};
    step_ms(s, policies[i].policy, &facts, err);
    sn_paper_put(rows, nets[s->which].name, policies[i].policy, SN_OPS_AT_ONCE, policies[i].paper[s->which],
                 facts.average_corun, err);
  }
}

sn_status sn_corun_figure4(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  return ask_all(experiment, NETS, ask_figure4, rows, err);
}
