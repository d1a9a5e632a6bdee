/* Figures of [SN] that are no lists of printed numbers; see cli/reproduce/reproduce.h. */
#include "cli/reproduce/reproduce.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sn_status add(sn_paper_rows *rows, const char *subject, const char *series, sn_quantity quantity, double paper,
                     double ours, sn_err *err) {
  sn_paper_row row = {.quantity = quantity, .paper = paper, .ours = ours};
  snprintf(row.subject, sizeof row.subject, "%s", subject);
  snprintf(row.series, sizeof row.series, "%s", series);
  return sn_paper_add(rows, &row, err);
}

/* ---- figure 8: shares of layer types ---- */

typedef struct shares {
  double of[SN_OP_COUNT], all;
} shares;

static void add_share(shares *sum, sn_op op, double value) {
  sum->of[op] += value;
  sum->all += value;
}

/* A tensor counts for the layer that makes it. */
static sn_status share_memory(const sn_paper_cell *cell, shares *sum, sn_err *err) {
  sn_net *net = sn_net_load(cell->net, cell->batch, 0, err);
  sn_route *route = net ? sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  for (uint32_t t = 0; route && t < route->n_tensors; t++)
    add_share(sum, net->layers[route->tensors[t].layer].op, (double)route->tensors[t].bytes);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

/* Both passes, without waits: nothing moves. */
static sn_status share_time(const sn_paper_cell *cell, shares *sum, sn_err *err) {
  sn_run *run = sn_cell_run(cell, err);
  const sn_result *r = run ? &run->results[0] : NULL;
  for (uint32_t s = 0; r && s < r->n_steps; s++)
    add_share(sum, sn_op_by_name(r->steps[s].op), (double)(r->steps[s].end_ns - r->steps[s].begin_ns));
  sn_run_free(run);
  return err->code;
}

static sn_status add_shares(sn_paper_rows *rows, const char *net, const char *what, const shares *sum, sn_err *err) {
  char subject[SN_PAPER_TEXT];
  snprintf(subject, sizeof subject, "%.40s, %s", net, what);
  for (sn_op op = SN_CONV; op < SN_OP_COUNT; op++)
    if (sum->of[op] > 0)
      add(rows, subject, sn_op_table[op]->name, SN_SHARE_PERCENT, NAN, 100 * sum->of[op] / sum->all, err);
  return err->code;
}

/* The networks and batches of figure 2. */
sn_status sn_shares_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  (void)experiment;
  uint32_t count;
  const sn_paper_cell *cells = sn_paper_cells(&count);
  for (uint32_t i = 0; i < count && err->code == SN_OK; i++) {
    shares bytes = {0}, time = {0};
    if (strcmp(cells[i].experiment, "fig2") != 0 || cells[i].quantity != SN_TENSORS_GIB) continue;
    if (share_memory(&cells[i], &bytes, err) != SN_OK || share_time(&cells[i], &time, err) != SN_OK) return err->code;
    add_shares(rows, cells[i].net, "memory", &bytes, err);
    add_shares(rows, cells[i].net, "time", &time, err);
  }
  return err->code;
}

/* ---- figure 12: workspaces ---- */

enum { WORKSPACE_RUNS = 4 };

typedef struct workspace_runs {
  char series[WORKSPACE_RUNS][SN_PAPER_TEXT];
  sn_run *runs[WORKSPACE_RUNS];
  uint32_t count;
} workspace_runs;

static void add_run(workspace_runs *w, const sn_paper_cell *cell, const char *what, sn_err *err) {
  snprintf(w->series[w->count], SN_PAPER_TEXT, "batch %" PRIu32 ", %s", cell->batch, what);
  w->runs[w->count++] = sn_cell_run(cell, err);
}

/* As it was measured with 3 GiB, and with memory enough for the fastest algorithms. */
static sn_status make_runs(const sn_experiment *experiment, workspace_runs *w, sn_err *err) {
  uint32_t count;
  const sn_paper_cell *cells = sn_paper_cells(&count);
  for (uint32_t i = 0; i < count && err->code == SN_OK && w->count + 2 <= WORKSPACE_RUNS; i++) {
    if (strcmp(cells[i].experiment, experiment->name) != 0 || cells[i].how & SN_HOW_NO_WORKSPACE) continue;
    sn_paper_cell most = cells[i];
    most.how = SN_HOW_ENDLESS | SN_HOW_MOST;
    add_run(w, &cells[i], "given", err);
    if (err->code == SN_OK) add_run(w, &most, "fastest", err);
  }
  return err->code;
}

/* All runs are of one network, so step is step. */
static sn_status add_workspaces(const workspace_runs *w, sn_paper_rows *rows, sn_err *err) {
  char subject[SN_PAPER_TEXT];
  const sn_result *first = w->runs[0] ? &w->runs[0]->results[0] : NULL;
  for (uint32_t s = 0; first && s < first->n_steps; s++) {
    const sn_step_row *step = &first->steps[s];
    if (strcmp(step->op, "CONV") != 0) continue;
    snprintf(subject, sizeof subject, "%.40s %s", step->layer, step->pass);
    for (uint32_t i = 0; i < w->count; i++) {
      double bytes = (double)w->runs[i]->results[0].steps[s].workspace_bytes;
      add(rows, subject, w->series[i], SN_WORKSPACE_MIB, NAN, bytes / 1048576, err);
    }
  }
  return err->code;
}

sn_status sn_workspaces_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  workspace_runs w = {.count = 0};
  if (sn_cells_measure(experiment, rows, err) == SN_OK && make_runs(experiment, &w, err) == SN_OK)
    add_workspaces(&w, rows, err);
  for (uint32_t i = 0; i < w.count; i++) sn_run_free(w.runs[i]);
  return err->code;
}

/* ---- figure 13: memory at the largest batches ---- */

/* All tensors of one image, GiB: every functional tensor grows with the batch alone. */
static sn_status image_gib(const char *spec, double *gib, sn_err *err) {
  sn_net *net = sn_net_load(spec, 1, 0, err);
  sn_route *route = net ? sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  *gib = route ? (double)route->tensor_bytes / 1073741824 : 0;
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

sn_status sn_models_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  (void)experiment;
  static const sn_experiment table5 = {.name = "table5"};
  double gib = 0, caffe = 0, most = 0;
  sn_cells_measure(&table5, rows, err);
  for (uint32_t i = 0; i < rows->count && err->code == SN_OK; i++) {
    sn_paper_row *row = &rows->rows[i];
    if (image_gib(row->subject, &gib, err) != SN_OK) return err->code;
    row->quantity = SN_TENSORS_GIB;
    row->ours *= gib;
    row->paper *= gib;
    if (strcmp(row->series, "caffe") == 0) caffe = row->ours;
    if (strcmp(row->series, "superneurons-paper") == 0) most = fmax(most, row->ours / caffe);
  }
  return add(rows, "largest of all nets", "superneurons-paper / caffe", SN_RATIO, 19.8, most, err);
}
