/* Measured runs as tables; see the header. */
#include "cli/train/measured.h"

#include "base/units.h"
#include "cli/frame/report.h"
#include "cli/options/table.h"
#include "sim/policy/options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double MIB = 1048576.0;

static bool is_measured(const sn_result *r) {
  return strcmp(r->source, "sim") != 0;
}

bool sn_measured(const sn_run *run) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (is_measured(&run->results[i])) return true;
  return false;
}

bool sn_measured_next(const sn_run *run, uint32_t *at, sn_measured_pair *pair) {
  *pair = (sn_measured_pair){NULL, NULL};
  while (*at < run->n_results && !pair->measured) {
    const sn_result *r = &run->results[(*at)++];
    if (is_measured(r))
      pair->measured = r;
    else
      pair->predicted = r;
  }
  return pair->measured != NULL;
}

static const sn_result *first_measured(const sn_run *run) {
  uint32_t at = 0;
  sn_measured_pair pair;
  return sn_measured_next(run, &at, &pair) ? pair.measured : NULL;
}

bool sn_measured_equal(const sn_run *run, const sn_result *measured) {
  return measured->digest != 0 && measured->digest == first_measured(run)->digest;
}

static bool has_predictions(const sn_run *run) {
  uint32_t at = 0;
  sn_measured_pair pair;
  return sn_measured_next(run, &at, &pair) && pair.predicted;
}

/* Equal to the bit, or by how much not. */
static void add_verdict(sn_table *table, const sn_run *run, const sn_result *r) {
  if (r->digest == 0)
    sn_table_cell(table, "stopped after %" PRIu64, r->iterations);
  else if (!isfinite(r->loss))
    sn_table_cell(table, "diverged: the loss is no number");
  else if (sn_measured_equal(run, r))
    sn_table_cell(table, "same");
  else if (!sn_corun_row_is_empty(&r->corun) || !sn_corun_row_is_empty(&first_measured(run)->corun))
    sn_table_cell(table, "%.1g apart", r->difference); /* other numbers of threads */
  else
    sn_table_cell(table, "DIFFERS by %.1g", r->difference);
}

/* Printing knows two kinds of "no number"; the store knows one. */
static void add_accuracy(sn_table *table, double accuracy) {
  if (accuracy < 0)
    sn_table_cell(table, "-");
  else
    sn_table_cell(table, "%.1f", 100 * accuracy);
}

static void add_loss(sn_table *table, double loss) {
  if (isnan(loss))
    sn_table_cell(table, "nan");
  else
    sn_table_cell(table, "%.6f", loss);
}

/* Of the iterations that count. Older stores have only their median. */
static void add_spread(sn_table *table, const sn_result *r) {
  char fastest[SN_UNIT_TEXT], slowest[SN_UNIT_TEXT];
  if (r->slowest_ns > 0)
    sn_table_cell(table, "%s..%s", sn_print_digits((double)r->fastest_ns / 1e6, 3, fastest),
                  sn_print_digits((double)r->slowest_ns / 1e6, 3, slowest));
  else
    sn_table_cell(table, "-");
}

/* ---- measured alone ---- */

static sn_status print_measured(const sn_run *run, const sn_out *out, sn_err *err) {
  const sn_table_column columns[] = {{"", "strategy", SN_TABLE_TEXT},
                                     {"pool", "MiB", 0},
                                     {"", "used", SN_TABLE_SPARE(3)},
                                     {"device", "MiB", SN_TABLE_SPARE(7)},
                                     {"live", "tensors", SN_TABLE_SPARE(2)},
                                     {"out", "MiB", SN_TABLE_SPARE(4)},
                                     {"in", "MiB", SN_TABLE_SPARE(4)},
                                     {"extra", "fwd", SN_TABLE_SPARE(1)},
                                     {"iter", "ms", SN_TABLE_GAP},
                                     {"", "min..max", SN_TABLE_SPARE(6)},
                                     {"stall", "ms", SN_TABLE_SPARE(6)},
                                     {sn_report_run_unit(run), "/s", 0},
                                     {"", "loss", SN_TABLE_GAP},
                                     {"right", "%", SN_TABLE_SPARE(5)},
                                     {"", "result", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *r = pair.measured;
    sn_table_cell(table, "%s", r->strategy);
    sn_table_cell(table, "%.3f", (double)r->reserved_pool_bytes / MIB);
    sn_table_cell(table, "%.3f", (double)r->pool_bytes / MIB);
    sn_table_cell(table, "%.1f", (double)r->peak_device_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, r->max_live_tensors);
    sn_table_cell(table, "%.2f", (double)r->offload_bytes / MIB);
    sn_table_cell(table, "%.2f", (double)r->prefetch_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, r->recomputed_layers);
    sn_table_figure(table, true, (double)r->iteration_ns / 1e6);
    add_spread(table, r);
    sn_table_figure(table, true, (double)r->stall_ns / 1e6);
    sn_table_figure(table, true, r->images_per_second);
    add_loss(table, r->loss);
    add_accuracy(table, r->accuracy);
    add_verdict(table, run, r);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* ---- predicted beside measured ---- */

static double error_of(double predicted, double measured) {
  if (predicted == measured) return 0;
  return measured != 0 ? predicted / measured - 1 : INFINITY;
}

/* What was measured beside what was predicted: "=" where they are equal. */
static void add_bytes(sn_table *table, uint64_t predicted, uint64_t measured) {
  sn_table_cell(table, "%.2f", (double)predicted / MIB);
  if (predicted == measured)
    sn_table_cell(table, "=");
  else
    sn_table_cell(table, "%.2f", (double)measured / MIB);
}

static void add_copied(sn_table *table, uint64_t predicted, uint64_t measured, int64_t ns) {
  if (predicted == 0 && measured == 0) {
    for (int i = 0; i < 3; i++) sn_table_cell(table, "-");
    return;
  }
  add_bytes(table, predicted, measured);
  sn_table_cell(table, "%.1f", ns > 0 ? (double)measured / (double)ns : 0.0);
}

static void add_times(sn_table *table, const sn_result *p, const sn_result *m) {
  bool known = p->iteration_ns > 0;
  sn_table_figure(table, known, (double)p->iteration_ns / 1e6);
  sn_table_figure(table, true, (double)m->iteration_ns / 1e6);
  add_spread(table, m);
  if (known)
    sn_table_cell(table, "%+.1f", 100 * error_of((double)p->iteration_ns, (double)m->iteration_ns));
  else
    sn_table_cell(table, "-");
  sn_table_figure(table, known, (double)p->stall_ns / 1e6);
  sn_table_figure(table, true, (double)m->stall_ns / 1e6);
}

static void add_live(sn_table *table, uint32_t predicted, uint32_t measured) {
  sn_table_cell(table, "%" PRIu32, predicted);
  if (predicted == measured)
    sn_table_cell(table, "=");
  else
    sn_table_cell(table, "%" PRIu32, measured);
}

static sn_status print_bytes(const sn_run *run, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "strategy", SN_TABLE_TEXT},
                                            {"pool", "MiB", 0},
                                            {"", "seen", SN_TABLE_TEXT},
                                            {"", "live", SN_TABLE_SPARE(1)},
                                            {"", "seen", SN_TABLE_TEXT | SN_TABLE_SPARE(1)},
                                            {"device", "MiB", SN_TABLE_GAP | SN_TABLE_SPARE(3)},
                                            {"", "seen", SN_TABLE_SPARE(3)},
                                            {"out", "MiB", SN_TABLE_GAP | SN_TABLE_SPARE(2)},
                                            {"", "seen", SN_TABLE_TEXT | SN_TABLE_SPARE(2)},
                                            {"", "GB/s", SN_TABLE_SPARE(2)},
                                            {"in", "MiB", SN_TABLE_GAP | SN_TABLE_SPARE(2)},
                                            {"", "seen", SN_TABLE_TEXT | SN_TABLE_SPARE(2)},
                                            {"", "GB/s", SN_TABLE_SPARE(2)}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *p = pair.predicted, *m = pair.measured;
    if (!p) continue;
    sn_table_cell(table, "%s", m->strategy);
    add_bytes(table, p->pool_bytes, m->pool_bytes);
    add_live(table, p->max_live_tensors, m->max_live_tensors);
    sn_table_cell(table, "%.1f", (double)p->peak_device_bytes / MIB);
    sn_table_cell(table, "%.1f", (double)m->peak_device_bytes / MIB);
    add_copied(table, p->offload_bytes, m->offload_bytes, m->out_ns);
    add_copied(table, p->prefetch_bytes, m->prefetch_bytes, m->in_ns);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static sn_status print_times(const sn_run *run, const sn_out *out, sn_err *err) {
  const sn_table_column columns[] = {{"", "strategy", SN_TABLE_TEXT},
                                     {"iter", "ms", 0},
                                     {"", "seen", 0},
                                     {"", "min..max", SN_TABLE_SPARE(2)},
                                     {"", "err %", 0},
                                     {"stall", "ms", SN_TABLE_GAP | SN_TABLE_SPARE(3)},
                                     {"", "seen", SN_TABLE_SPARE(3)},
                                     {sn_report_run_unit(run), "/s", SN_TABLE_SPARE(4)},
                                     {"", "loss", SN_TABLE_GAP | SN_TABLE_SPARE(1)},
                                     {"", "result", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *p = pair.predicted, *m = pair.measured;
    if (!p) continue;
    sn_table_cell(table, "%s", m->strategy);
    add_times(table, p, m);
    sn_table_figure(table, true, m->images_per_second);
    add_loss(table, m->loss);
    add_verdict(table, run, m);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* Two tables, each of which a page is wide enough for. */
static sn_status print_pairs(const sn_run *run, const sn_out *out, sn_err *err) {
  if (print_bytes(run, out, err) != SN_OK) return err->code;
  fputc('\n', out->stream);
  return print_times(run, out, err);
}

/* ---- what differs most ---- */

typedef struct worst {
  double error; /* relative, with its sign */
  const char *strategy;
} worst;

static void note(worst *w, double error, const char *strategy) {
  if (w->strategy && fabs(error) <= fabs(w->error)) return;
  *w = (worst){error, strategy};
}

static void print_worst(const char *what, const worst *w, FILE *out) {
  if (!w->strategy) return;
  if (w->error == 0)
    fprintf(out, "  %-26s exact\n", what);
  else
    fprintf(out, "  %-26s %+.2f %%  (%s)\n", what, 100 * w->error, w->strategy);
}

/* Steps that take at least a hundredth of their batch: what is shorter is at the mercy of the clock. */
static void note_steps(worst *bytes, worst *time, const sn_run *run, const sn_result *p, const sn_result *m) {
  int64_t least_ns = m->iteration_ns / (100 * (int64_t)run->conditions.accumulate);
  for (uint32_t i = 0; p->steps && m->steps && i < m->n_steps && i < p->n_steps; i++) {
    const sn_step_row *a = &p->steps[i], *b = &m->steps[i];
    note(bytes, error_of((double)a->tensor_bytes, (double)b->tensor_bytes), m->strategy);
    int64_t predicted = a->end_ns - a->begin_ns, measured = b->end_ns - b->begin_ns;
    if (predicted > 0 && measured >= least_ns) note(time, error_of((double)predicted, (double)measured), m->strategy);
  }
}

/* What kernels and libraries hold beside the planned parts. */
static void print_context(const sn_run *run, FILE *out) {
  uint64_t least = UINT64_MAX, most = 0;
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    uint64_t bytes = pair.measured->context_bytes;
    least = bytes < least ? bytes : least;
    most = bytes > most ? bytes : most;
  }
  fprintf(out, "Context measured beside persistent bytes and pool: %.1f to %.1f MiB.\n", (double)least / MIB,
          (double)most / MIB);
}

static void print_errors(const sn_run *run, FILE *out) {
  worst pool = {0}, device = {0}, copies = {0}, live = {0}, bytes = {0}, iteration = {0}, step = {0};
  double known = 0, all = 0;
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *p = pair.predicted, *m = pair.measured;
    if (!p) continue;
    note(&pool, error_of((double)p->pool_bytes, (double)m->pool_bytes), m->strategy);
    note(&device, error_of((double)p->peak_device_bytes, (double)m->peak_device_bytes), m->strategy);
    note(&copies, error_of((double)p->offload_bytes, (double)m->offload_bytes), m->strategy);
    note(&copies, error_of((double)p->prefetch_bytes, (double)m->prefetch_bytes), m->strategy);
    note(&live, error_of(p->max_live_tensors, m->max_live_tensors), m->strategy);
    if (p->iteration_ns > 0) note(&iteration, error_of((double)p->iteration_ns, (double)m->iteration_ns), m->strategy);
    note_steps(&bytes, &step, run, p, m);
    known += (double)p->known_ns;
    all += (double)p->compute_ns;
  }
  fprintf(out, "\nLargest errors of the prediction, relative to what was measured:\n");
  print_worst("pool bytes", &pool, out);
  print_worst("device bytes", &device, out);
  print_worst("live tensors", &live, out);
  print_worst("bytes of a step", &bytes, out);
  print_worst("bytes copied", &copies, out);
  print_worst("iteration time", &iteration, out);
  print_worst("time of a step (over 1 %)", &step, out);
  print_context(run, out);
  if (all > 0)
    fprintf(out, "%.0f %% of the predicted compute time is from measured costs, the rest from formulas.\n",
            100 * known / all);
  else
    fprintf(out, "Times were not predicted: this machine is not calibrated. snsim calibrate does it.\n");
}

/* ---- steps ---- */

static sn_status print_steps(const sn_run *run, const sn_measured_pair *pair, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "step", 0},
                                            {"", "layer", SN_TABLE_TEXT | SN_TABLE_GAP},
                                            {"", "pass", SN_TABLE_TEXT},
                                            {"tensors MiB", "predicted", SN_TABLE_GAP},
                                            {"", "measured", 0},
                                            {"live", "plan", SN_TABLE_GAP},
                                            {"", "seen", 0},
                                            {"work", "MiB", SN_TABLE_GAP},
                                            {"time ms", "predicted", SN_TABLE_GAP},
                                            {"", "measured", 0}};
  const sn_result *p = pair->predicted, *m = pair->measured;
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  (void)run;
  for (uint32_t i = 0; m->steps && i < m->n_steps; i++) {
    const sn_step_row *b = &m->steps[i], *a = p && p->steps && i < p->n_steps ? &p->steps[i] : NULL;
    sn_table_cell(table, "%" PRIu32, b->step);
    sn_table_cell(table, "%s", b->layer);
    sn_table_cell(table, "%s", b->pass);
    sn_table_cell(table, a ? "%.3f" : "-", a ? (double)a->tensor_bytes / MIB : 0.0);
    sn_table_cell(table, "%.3f", (double)b->tensor_bytes / MIB);
    sn_table_cell(table, a ? "%" PRIu32 : "-", a ? a->live_tensors : 0);
    sn_table_cell(table, "%" PRIu32, b->live_tensors);
    sn_table_cell(table, "%.3f", (double)b->workspace_bytes / MIB);
    bool known = a && a->end_ns > a->begin_ns;
    sn_table_figure(table, known, known ? (double)(a->end_ns - a->begin_ns) / 1e6 : 0.0);
    sn_table_figure(table, true, (double)(b->end_ns - b->begin_ns) / 1e6);
  }
  fprintf(out->stream, "\n%s, steps of the iteration that took least\n\n", m->strategy);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* ---- what to know about the figures ---- */

/* The result whose iterations scatter most, where that is so much that its median means little; else NULL. */
static const sn_result *most_scattered(const sn_run *run) {
  const double limit = 0.5;
  const sn_result *shakiest = NULL;
  double most = limit;
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *r = pair.measured;
    double scatter = r->iteration_ns > 0 ? (double)(r->slowest_ns - r->fastest_ns) / (double)r->iteration_ns : 0;
    if (scatter > most) most = scatter, shakiest = r;
  }
  return shakiest;
}

/* As many processes as there are processors, or more, wanted to run before this one did. */
static bool was_busy(const sn_run *run) {
  return run->processors > 0 && run->load >= run->processors;
}

/* Why a pool is larger than another's though less is reserved in it at any time: its tensors came in another order. */
static void print_holes(const sn_run *run, FILE *out) {
  const uint64_t share = 20; /* less than one of so many parts is not worth a line */
  bool first = true;
  sn_measured_pair pair;
  for (uint32_t at = 0; sn_measured_next(run, &at, &pair);) {
    const sn_result *r = pair.measured;
    bool first_fit = strcmp(r->placement, sn_placement_name(SN_PLACEMENT_FIRST_FIT)) == 0;
    if (!first_fit || r->pool_step == 0 || r->pool_hole_bytes < r->reserved_pool_bytes / share) continue;
    if (first)
      fprintf(out, "\nFirst fit leaves holes, which make pools larger than what is ever reserved in them; --placement "
                   "packed leaves few:\n");
    first = false;
    sn_table_printf(out, "  %s: %.2f MiB for %.2f, by %.2f at step %" PRIu32 ", %s %s\n", r->strategy,
                    (double)r->reserved_pool_bytes / MIB, (double)r->largest_load_bytes / MIB,
                    (double)r->pool_hole_bytes / MIB, r->pool_step, r->pool_layer, r->pool_pass);
  }
}

/* Where the times come from by which operations were put side by side: once, as it is the same for all. */
static void print_corun_times(const sn_run *run, FILE *out) {
  uint32_t i = 0;
  while (i < run->n_results && (sn_corun_row_is_empty(&run->results[i].corun) || !*run->results[i].corun.interval))
    i++; /* of a plan from a file it is not known */
  if (i == run->n_results) return;
  const sn_corun_row *c = &run->results[i].corun;
  if (c->measured_ops > 0)
    fprintf(out,
            "\nSide by side: threads and order follow times that were measured of %" PRIu32 " of %" PRIu32
            " operations.\n",
            c->measured_ops, c->ops);
  else
    fprintf(out,
            "\nSide by side: threads and order follow estimates for %" PRIu32
            " cores; snsim calibrate --threads 1,%" PRIu32 " measures this machine's.\n",
            c->cores, c->cores);
}

static void print_warnings(const sn_run *run, FILE *out) {
  const sn_result *shakiest = most_scattered(run);
  char fastest[SN_UNIT_TEXT], slowest[SN_UNIT_TEXT];
  if (was_busy(run))
    fprintf(out,
            "\nThe machine was busy when measuring began: load %.1f on %" PRIu32
            " processor%s. Times are longer than it needs.\n",
            run->load, run->processors, run->processors == 1 ? "" : "s");
  if (shakiest)
    fprintf(out,
            "\nTimes scatter: %s took %s to %s ms an iteration. More --iterations or --warmup, or a quiet machine, "
            "make the median firmer.\n",
            shakiest->strategy, sn_print_digits((double)shakiest->fastest_ns / 1e6, 3, fastest),
            sn_print_digits((double)shakiest->slowest_ns / 1e6, 3, slowest));
}

static sn_status print_run(const sn_run *run, bool steps, const sn_out *out, sn_err *err) {
  sn_measured_pair pair;
  bool drawn = strcmp(run->data, "synthetic") == 0;
  sn_table_print_clean(out->stream, run->net);
  if (*run->conditions.freeze) sn_table_printf(out->stream, ", frozen: %s", run->conditions.freeze);
  fprintf(out->stream, ", batch %" PRIu32 ", ", run->batch);
  if (run->conditions.accumulate > 1)
    fprintf(out->stream, "%" PRIu32 " such batches an update, ", run->conditions.accumulate);
  fprintf(out->stream, "%" PRIu64 " iterations, ", run->iterations);
  if (strcmp(run->conditions.optimizer, "momentum") != 0)
    sn_table_printf(out->stream, "optimizer %s, ", run->conditions.optimizer);
  if (strcmp(run->conditions.external, "disk") == 0) fputs("external memory disk, ", out->stream);
  sn_table_print_clean(out->stream, run->data);
  fprintf(out->stream, "%s, on %s\n\n", drawn ? " data" : "", run->device);
  if (has_predictions(run)) {
    print_pairs(run, out, err);
    print_errors(run, out->stream);
  } else {
    print_measured(run, out, err);
  }
  sn_report_failures(run, "not trained", out->stream);
  print_holes(run, out->stream);
  print_corun_times(run, out->stream);
  print_warnings(run, out->stream);
  for (uint32_t at = 0; steps && err->code == SN_OK && sn_measured_next(run, &at, &pair);)
    print_steps(run, &pair, out, err);
  return err->code;
}

sn_status sn_measured_print(const sn_run *run, bool steps, const sn_out *out, sn_err *err) {
  sn_prose prose;
  print_run(run, steps, sn_prose_open(&prose, out), err);
  sn_prose_close(&prose);
  return err->code;
}
