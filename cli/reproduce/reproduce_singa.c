/* The memory of ResNet-50 that SINGA's documentation prints ("Model", benchmark), beside ours. Nothing is fitted but
 * what is printed as fitted: which algorithms cuDNN chose is not known, so that one number a batch, the sum of the
 * workspaces, is found anew from the four figures of the batch. */
#include "cli/reproduce/reproduce.h"

#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0
#define NET "tv_resnet50" /* its stride is on the 3x3 convolutions, as that of SINGA's example is */

enum { BATCHES = 2, CASES = 4, LAYER = 0 };

static const uint32_t batches[BATCHES] = {16, 32};

/* "Mem(MB)", which are MiB, of one GPU and of two processes with one each. */
static const struct {
  const char *name, *strategy;
  double paper[BATCHES], two_processes[BATCHES];
} cases[CASES] = {
    {"layer", "singa-layer", {4975, 10119}, {5439, 10547}},
    {"model, graph disabled", "singa-layer", {4995, 10109}, {5427, 10503}},
    {"model, graph, bfs", "singa-bfs", {3283, 6839}, {3389, 6935}},
    {"model, graph, serial", "singa-serial", {3265, 6845}, {3437, 7027}},
};

/* Memory of one case, in MiB. */
typedef struct memory {
  double context, given, tensors, workspaces;
} memory;

static double total(const memory *m) {
  return m->context + m->given + m->tensors + m->workspaces;
}

static bool is_workspace(const char *tensor) {
  static const char ending[] = ".scratch";
  size_t length = strlen(tensor), end = sizeof ending - 1;
  return length > end && strcmp(tensor + length - end, ending) == 0;
}

static memory split(const sn_result *r) {
  memory m = {.context = (double)r->context_bytes / MIB, .given = (double)sn_persistent_total(&r->persistent) / MIB};
  for (uint32_t i = 0; i < r->n_peak; i++)
    if (is_workspace(r->peak[i].tensor)) m.workspaces += (double)r->peak[i].bytes / MIB;
  m.tensors = (double)r->peak_device_bytes / MIB - m.context - m.given - m.workspaces;
  return m;
}

static sn_status simulate(uint32_t batch, memory *memories, sn_err *err) {
  sn_device device;
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy strategies[CASES];
  options.want_peak = true;
  for (int c = 0; c < CASES; c++)
    if (sn_strategy_parse(cases[c].strategy, &strategies[c], err) != SN_OK) return err->code;
  if (sn_device_load(SN_SINGA_CARD, &device, err) != SN_OK) return err->code;
  sn_net *net = sn_net_load(NET, batch, 0, err);
  sn_run *run = net ? sn_simulate(NET, net, &device, strategies, CASES, &options, err) : NULL;
  for (int c = 0; c < CASES && run; c++) memories[c] = split(&run->results[c]);
  sn_run_free(run);
  sn_net_free(net);
  return err->code;
}

/* ---- rows ---- */

static double reduction(double bytes, double of_layer) {
  return 100 * (1 - bytes / of_layer);
}

static void add_batch(sn_paper_rows *rows, int b, const memory *memories, sn_err *err) {
  char subject[SN_PAPER_TEXT];
  snprintf(subject, sizeof subject, "batch %" PRIu32, batches[b]);
  for (int c = 0; c < CASES; c++) {
    const memory *m = &memories[c];
    sn_paper_put(rows, subject, cases[c].name, SN_DEVICE_MIB, cases[c].paper[b], total(m), err);
    sn_paper_put(rows, subject, "  context", SN_PART_MIB, NAN, m->context, err);
    sn_paper_put(rows, subject, "  given", SN_PART_MIB, NAN, m->given, err);
    sn_paper_put(rows, subject, "  tensors", SN_PART_MIB, NAN, m->tensors, err);
    sn_paper_put(rows, subject, "  workspaces", SN_PART_MIB, NAN, m->workspaces, err);
  }
  snprintf(subject, sizeof subject, "batch %" PRIu32 ", less than layer", batches[b]);
  for (int c = LAYER + 2; c < CASES; c++)
    sn_paper_put(rows, subject, cases[c].name, SN_SHARE_PERCENT, reduction(cases[c].paper[b], cases[LAYER].paper[b]),
                 reduction(total(&memories[c]), total(&memories[LAYER])), err);
}

/* The sum of workspaces with the least sum of squares of relative errors. */
static double fit_workspaces(int b, const memory *memories) {
  double above = 0, below = 0;
  for (int c = 0; c < CASES; c++) {
    double paper = cases[c].paper[b], rest = total(&memories[c]) - memories[c].workspaces;
    above += (paper - rest) / (paper * paper);
    below += 1 / (paper * paper);
  }
  return above / below;
}

static void add_fitted(sn_paper_rows *rows, int b, const memory *memories, sn_err *err) {
  char subject[SN_PAPER_TEXT];
  double workspaces = fit_workspaces(b, memories);
  snprintf(subject, sizeof subject, "batch %" PRIu32 ", fitted", batches[b]);
  sn_paper_put(rows, subject, "sum of workspaces", SN_PART_MIB, NAN, workspaces, err);
  for (int c = 0; c < CASES; c++)
    sn_paper_put(rows, subject, cases[c].name, SN_DEVICE_MIB, cases[c].paper[b],
                 total(&memories[c]) - memories[c].workspaces + workspaces, err);
}

static void add_two_processes(sn_paper_rows *rows, int b, sn_err *err) {
  char subject[SN_PAPER_TEXT];
  snprintf(subject, sizeof subject, "batch %" PRIu32 ", two processes", batches[b]);
  for (int c = 0; c < CASES; c++)
    sn_paper_put(rows, subject, cases[c].name, SN_LISTED_MIB, cases[c].two_processes[b], NAN, err);
}

sn_status sn_singa_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  (void)experiment;
  memory memories[BATCHES][CASES] = {{{0}}};
  for (int b = 0; b < BATCHES; b++)
    if (simulate(batches[b], memories[b], err) != SN_OK) return err->code;
  for (int b = 0; b < BATCHES; b++) add_batch(rows, b, memories[b], err);
  for (int b = 0; b < BATCHES; b++) add_fitted(rows, b, memories[b], err);
  for (int b = 0; b < BATCHES; b++) add_two_processes(rows, b, err);
  return err->code;
}
