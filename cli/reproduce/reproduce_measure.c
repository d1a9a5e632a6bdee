/* Answers to what the paper's numbers are about; see cli/reproduce/reproduce.h. */
#include "cli/reproduce/reproduce.h"

#include "cli/reproduce/reproduce_fit.h"
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0

enum { MOST_SYSTEMS = 8, UNITS_BESIDES = 6 + 32 + 6 };

sn_status sn_paper_add(sn_paper_rows *rows, const sn_paper_row *row, sn_err *err) {
  if (rows->count == rows->room) {
    uint32_t room = rows->room ? 2 * rows->room : 64;
    sn_paper_row *more = realloc(rows->rows, room * sizeof *more);
    if (!more) return sn_fail_memory(err);
    rows->rows = more;
    rows->room = room;
  }
  rows->rows[rows->count++] = *row;
  return SN_OK;
}

void sn_paper_put(sn_paper_rows *rows, const char *subject, const char *series, sn_quantity quantity, double paper,
                  double ours, sn_err *err) {
  sn_paper_row row = {.quantity = quantity, .paper = paper, .ours = ours};
  snprintf(row.subject, sizeof row.subject, "%s", subject);
  snprintf(row.series, sizeof row.series, "%s", series);
  if (err->code == SN_OK) sn_paper_add(rows, &row, err);
}

static sn_status add_cell(sn_paper_rows *rows, const sn_paper_cell *cell, double ours, sn_err *err) {
  sn_paper_row row = {
      .quantity = cell->quantity, .paper = cell->paper == SN_NO_NUMBER ? NAN : cell->paper, .ours = ours};
  size_t name = strcspn(cell->net, ":");
  snprintf(row.series, sizeof row.series, "%s", cell->series);
  if (cell->batch)
    snprintf(row.subject, sizeof row.subject, "%.*s, batch %" PRIu32, (int)name, cell->net, cell->batch);
  else
    snprintf(row.subject, sizeof row.subject, "%s", cell->net);
  return sn_paper_add(rows, &row, err);
}

/* ---- one simulation ---- */

static sn_status load_card(unsigned how, sn_device *device, sn_err *err) {
  if (sn_device_load(SN_PAPER_CARD, device, err) != SN_OK) return err->code;
  if (how & SN_HOW_ENDLESS) device->memory_bytes = UINT64_C(1) << 50;
  if (how & SN_HOW_3GIB) {
    device->memory_bytes = UINT64_C(3) << 30;
    device->context_bytes = 0;
  }
  return SN_OK;
}

sn_run *sn_cell_run(const sn_paper_cell *cell, sn_err *err) {
  sn_device device;
  sn_strategy strategy;
  sn_options options = SN_OPTIONS_INIT;
  options.want_steps = true;
  options.placement = SN_PLACEMENT_FIRST_FIT; /* the paper's */
  if (cell->how & SN_HOW_CUDA) options.allocator = SN_ALLOCATOR_CUDA;
  if (cell->how & SN_HOW_NO_WORKSPACE) options.workspace = SN_WORKSPACE_NONE;
  if (cell->how & SN_HOW_MOST) options.workspace = SN_WORKSPACE_MAX;
  if (load_card(cell->how, &device, err) != SN_OK || sn_strategy_parse(cell->strategy, &strategy, err) != SN_OK)
    return NULL;
  sn_net *net = sn_net_load(cell->net, cell->batch, 0, err);
  sn_run *run = net ? sn_simulate(cell->net, net, &device, &strategy, 1, &options, err) : NULL;
  sn_net_free(net);
  return run;
}

/* Every CONV with a workspace of its own: the larger of its forward and backward step's. */
static uint64_t all_workspaces(const sn_result *r) {
  uint64_t sum = 0;
  for (uint32_t s = 0; s < r->n_steps / 2; s++) {
    uint64_t forward = r->steps[s].workspace_bytes, backward = r->steps[r->n_steps - 1 - s].workspace_bytes;
    sum += forward > backward ? forward : backward;
  }
  return sum;
}

static double quantity_of(sn_quantity quantity, const sn_result *r) {
  switch (quantity) {
  case SN_PEAK_MIB:
    return (double)r->peak_tensor_bytes / MIB;
  case SN_LIVE_TENSORS:
    return r->live_tensors_at_peak;
  case SN_EXTRA_FORWARDS:
    return r->recomputed_layers;
  case SN_IMAGES_PER_S:
    return r->images_per_second;
  case SN_TRAFFIC_GB:
    return (double)(r->offload_bytes + r->prefetch_bytes) / 1e9;
  case SN_TENSORS_GIB: /* of baseline: its peak */
    return (double)r->peak_tensor_bytes / GIB;
  case SN_NET_GIB:
    return (double)(r->peak_tensor_bytes + all_workspaces(r)) / GIB;
  default:
    return NAN;
  }
}

static sn_status simulate_cell(const sn_paper_cell *cell, sn_paper_rows *rows, sn_err *err) {
  if (cell->how & SN_HOW_NOT) return add_cell(rows, cell, NAN, err);
  if (cell->quantity == SN_RATIO) {
    const sn_paper_row *last = &rows->rows[rows->count - 1];
    return add_cell(rows, cell, last->ours / (last - 1)->ours, err);
  }
  sn_run *run = sn_cell_run(cell, err);
  if (run) add_cell(rows, cell, quantity_of(cell->quantity, &run->results[0]), err);
  sn_run_free(run);
  return err->code;
}

/* ---- capacity ---- */

/* The cells of one net stand together and are asked together: they share what does not depend on the strategy. */
static sn_status fit_cells(const sn_paper_cell *cells, uint32_t count, sn_paper_rows *rows, sn_err *err) {
  sn_device device;
  sn_strategy strategies[MOST_SYSTEMS];
  uint32_t largest[MOST_SYSTEMS] = {0};
  bool deep = cells[0].quantity == SN_DEEPEST;
  sn_family family = {.spec = cells[0].net, .batch = deep ? cells[0].batch : 0};
  for (uint32_t i = 0; i < count; i++)
    if (sn_strategy_parse(cells[i].strategy, &strategies[i], err) != SN_OK) return err->code;
  if (load_card(0, &device, err) != SN_OK ||
      sn_largest_that_fits(&family, &device, strategies, count, largest, err) != SN_OK)
    return err->code;
  for (uint32_t i = 0; i < count && err->code == SN_OK; i++) {
    double ours = deep ? 3.0 * (UNITS_BESIDES + largest[i]) + 2 : largest[i];
    add_cell(rows, &cells[i], largest[i] ? ours : NAN, err);
  }
  return err->code;
}

static bool is_capacity(const sn_paper_cell *cell) {
  return cell->quantity == SN_LARGEST_BATCH || cell->quantity == SN_DEEPEST;
}

sn_status sn_cells_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  uint32_t count;
  const sn_paper_cell *cells = sn_paper_cells(&count);
  for (uint32_t i = 0, n = 1; i < count && err->code == SN_OK; i += n, n = 1) {
    if (strcmp(cells[i].experiment, experiment->name) != 0) continue;
    if (!is_capacity(&cells[i])) {
      simulate_cell(&cells[i], rows, err);
      continue;
    }
    while (i + n < count && n < MOST_SYSTEMS && is_capacity(&cells[i + n]) &&
           strcmp(cells[i].net, cells[i + n].net) == 0)
      n++;
    fit_cells(&cells[i], n, rows, err);
  }
  return err->code;
}
