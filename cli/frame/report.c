/* A run in words and tables; see the header. What the columns mean is said in `snsim help simulate`. The columns of
 * free length stand at the two ends: a long layer name makes a line longer, but does not push the numbers about. */
#include "cli/frame/report.h"

#include "base/units.h"
#include "cli/frame/answer.h"
#include "cli/frame/gpus.h"
#include "cli/frame/live.h"
#include "cli/frame/row_groups.h"
#include "cli/frame/times.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/ask/explain.h"

#include <inttypes.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0
#define MS  1e6

enum { EXPLAINED_ROWS = 25 }; /* per strategy; the rest is summed up */

/* Of a measured run, and of one that an older snsim stored, only what the plans take is known; else no least is that no
 * memory is enough. */
static uint64_t needed(const sn_run *run, const sn_result *r) {
  bool known = false;
  for (uint32_t i = 0; i < run->n_results; i++) known = known || run->results[i].least_device_bytes;
  if (!known) return r->peak_device_bytes;
  return r->least_device_bytes ? r->least_device_bytes : UINT64_MAX;
}

const sn_result *sn_report_smallest(const sn_run *run) {
  const sn_result *best = NULL;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (!best || needed(run, r) < needed(run, best) ||
        (needed(run, r) == needed(run, best) && r->iteration_ns < best->iteration_ns))
      best = r;
  }
  return best;
}

void sn_report_seen(const sn_device *d, FILE *out) {
  char least[SN_UNIT_TEXT], most[SN_UNIT_TEXT];
  if (!d->library_context_seen[0]) return;
  sn_print_bytes(d->library_context_seen[0], least);
  sn_print_bytes(d->library_context_seen[1], most);
  bool one = strcmp(least, most) == 0;
  fprintf(out, one ? "; %s seen" : "; %s to %s seen", least, most);
}

static void print_net(const sn_run *run, FILE *out) {
  char title[512];
  fputs(sn_table_clean(sn_net_title(run->net, run->net_name, title, sizeof title)), out);
}

/* Of the compute time of all results, what measured costs gave. */
static double known_share(const sn_run *run) {
  double known = 0, all = 0;
  for (uint32_t i = 0; i < run->n_results; i++) {
    known += (double)run->results[i].known_ns;
    all += (double)run->results[i].compute_ns;
  }
  return all > 0 ? known / all : 0;
}

/* Of tokens; a file's network where its batch has one column, but for recordings, which do not tell. */
bool sn_report_is_of_sequences(const sn_run *run) {
  if (sn_net_is_recording(run->net)) return false;
  return sn_net_is_sequence(run->net) || (sn_net_is_file(run->net) && run->image_width == 1);
}

const char *sn_report_unit(bool sequences) {
  return sequences ? "sequences" : "images";
}

const char *sn_report_run_unit(const sn_run *run) {
  if (sn_net_is_recording(run->net)) return "samples";
  return sn_report_unit(sn_report_is_of_sequences(run));
}

static void print_batch(const sn_run *run, FILE *f) {
  fprintf(f, ", batch %" PRIu32, run->batch);
  if (sn_net_is_recording(run->net)) return;
  fputs(" of ", f);
  if (sn_report_is_of_sequences(run)) {
    fprintf(f, "%" PRIu32 " tokens", run->image_height);
    return;
  }
  if (run->image_depth) fprintf(f, "%" PRIu32 "x", run->image_depth);
  fprintf(f, "%" PRIu32 "x%" PRIu32, run->image_height, run->image_width);
}

void sn_report_disk(double bandwidth, FILE *out) {
  if (bandwidth > 0) fprintf(out, " of %.4g GB/s", bandwidth / 1e9);
}

/* Of a question's head: ", frozen: conv*, host 40 us, run and not trained, on rtx4090" */
static void print_end(const sn_run *run, FILE *f) {
  char gpus[SN_RUN_GPUS];
  if (*run->conditions.freeze) sn_table_printf(f, ", frozen: %s", run->conditions.freeze);
  if (*run->conditions.host_us) sn_table_printf(f, ", host %s us", run->conditions.host_us);
  if (run->conditions.inference) fputs(", run and not trained", f);
  fputs(", on ", f);
  sn_table_print_clean(f, sn_run_gpus(run, gpus));
}

/* "vit_b_16, batch 512 of 224x224, amp-bf16, on rtx4090: " */
static void print_subject(const sn_run *run, const char *gpu_why, const sn_out *out) {
  FILE *f = out->stream;
  if (out->color) fputs("\033[1m", f);
  print_net(run, f);
  print_batch(run, f);
  if (run->conditions.accumulate > 1) fprintf(f, ", %" PRIu32 " such batches an update", run->conditions.accumulate);
  if (strcmp(run->conditions.precision, "fp32") != 0) sn_table_printf(f, ", %s", run->conditions.precision);
  print_end(run, f);
  if (out->color) fputs("\033[0m", f);
  if (*gpu_why) fprintf(f, " (%s)", gpu_why);
  fputs(": ", f);
}

static void print_setting(const sn_run *run, const struct sn_cluster *cluster, FILE *f) {
  char text[SN_UNIT_TEXT];
  fprintf(f, "%s usable%s; ", sn_print_bytes(run->memory_bytes, text),
          run->memory_nominal ? " (of the nominal size: what CUDA reports is not known)" : "");
  fprintf(f, "%" PRIu32 " layers, %" PRIu32 " steps, %s parameters", run->layers, run->n_steps,
          sn_print_count(run->parameters, text));
  fprintf(f, ", %s multiply-adds forward\n", sn_print_count(run->macs, text));
  sn_table_printf(f, "workspace %s, external memory %s", run->conditions.workspace, run->conditions.external);
  sn_report_disk(run->disk_bandwidth, f);
  sn_table_printf(f, "%s, allocator %s", run->conditions.shared_link ? " over a shared link" : "",
                  run->conditions.allocator);
  if (strcmp(run->conditions.optimizer, "momentum") != 0 && !run->conditions.inference)
    sn_table_printf(f, ", optimizer %s", run->conditions.optimizer);
  if (run->conditions.pool_limit_bytes) sn_live_print_size(f, "pool of at most", run->conditions.pool_limit_bytes);
  if (run->host_memory_bytes) sn_live_print_size(f, "host memory of at most", run->host_memory_bytes);
  if (strcmp(run->costs, "measured") == 0) fprintf(f, ", %.0f %% of the compute time measured", 100 * known_share(run));
  fputs("\n", f);
  sn_live_print_residents(run, f);
  sn_gpus_print(run, cluster, f);
  if (run->conditions.inference)
    fputs("nothing is kept for a backward pass, so there is nothing to offload or to recompute\n", f);
  fputs("\n", f);
}

/* Two decimals; what would round to nothing says so. */
static const char *gib(uint64_t bytes, char *text) {
  double value = (double)bytes / GIB;
  if (bytes == 0)
    snprintf(text, SN_UNIT_TEXT, "-");
  else
    snprintf(text, SN_UNIT_TEXT, value < 0.005 ? "<0.01" : "%.2f", value);
  return text;
}

static double share(uint64_t part, uint64_t whole) {
  return whole ? (double)part / (double)whole : 0;
}

static void memory_cells(sn_table *table, const sn_result *r) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", r->strategy);
  sn_table_cell(table, r->fits ? "yes" : "no");
  sn_table_cell(table, "%.3f", (double)r->peak_tensor_bytes / MIB);
  sn_table_cell(table, r->peak_fork_bytes ? "%.0f%%" : "-", 100 * share(r->peak_fork_bytes, r->peak_tensor_bytes));
  sn_table_cell(table, "%" PRIu32, r->live_tensors_at_peak);
  sn_table_cell(table, "%s", gib(r->peak_device_bytes, text));
  sn_table_cell(table, "%s", gib(r->workspace_peak_bytes, text));
  sn_table_cell(table, "%.1f", 100 * r->pool_fragmentation);
}

static void traffic_cells(sn_table *table, const sn_result *r) {
  char out[SN_UNIT_TEXT], in[SN_UNIT_TEXT];
  if (r->offload_bytes || r->prefetch_bytes)
    sn_table_cell(table, "%s/%s", gib(r->offload_bytes, out), gib(r->prefetch_bytes, in));
  else
    sn_table_cell(table, "-");
  sn_table_cell(table, "%s", gib(r->host_bytes, out));
  if (r->cache_hits || r->cache_misses || r->evictions)
    sn_table_cell(table, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, r->cache_hits, r->cache_misses, r->evictions);
  else
    sn_table_cell(table, "-");
  if (r->recomputed_layers)
    sn_table_cell(table, "%" PRIu32, r->recomputed_layers);
  else
    sn_table_cell(table, "-");
}

/* How much faster than the first row, how many operations run at once, and how near that is to the time that no
 * schedule can beat. */
static void corun_cells(sn_table *table, const sn_result *r, const sn_result *first) {
  bool corun = r->fits && !sn_corun_row_is_empty(&r->corun);
  sn_table_cell(table, r->fits && first->fits ? "%.2f" : "-", (double)first->iteration_ns / (double)r->iteration_ns);
  sn_table_cell(table, corun ? "%.2f" : "-", r->corun.average_corun);
  sn_table_cell(table, corun ? "%.0f" : "-", 100 * (double)sn_corun_row_bound(&r->corun) / (double)r->iteration_ns);
}

static void time_cells(sn_table *table, const sn_run *run, const sn_result *r) {
  sn_table_figure(table, r->fits, (double)r->iteration_ns / MS);
  corun_cells(table, r, &run->results[0]);
  sn_table_figure(table, r->fits && r->stall_ns, (double)r->stall_ns / MS);
  sn_table_figure(table, r->fits && r->allocation_ns, (double)r->allocation_ns / MS);
  sn_table_figure(table, r->fits, r->images_per_second);
  sn_table_figure(table, r->fits && r->shared.world > 0, sn_gpus_tokens(run, r));
  sn_table_figure(table, r->fits && r->shared.world > 0, 100 * r->shared.flops_share);
  if (r->pool_step)
    sn_table_cell(table, "%" PRIu32 " %s %s (%s)", r->pool_step, r->pool_layer, r->pool_pass, r->pool_cause);
  else
    sn_table_cell(table, "-");
  if (!r->fits) sn_table_dim(table);
}

enum {
  STRATEGY,
  FITS,
  PEAK,
  FORKS,
  LIVE,
  DEVICE,
  WORK,
  FRAG,
  TRAFFIC,
  HOST,
  CACHE,
  EXTRA,
  ITER,
  SPEEDUP,
  CORUN,
  BOUND,
  STALL,
  ALLOC,
  IMAGES,
  TOKENS,
  MFU,
  STEP,
  COLUMNS
};

static const sn_table_column result_columns[COLUMNS] = {
    [STRATEGY] = {"", "strategy", SN_TABLE_TEXT},
    [FITS] = {"", "fits", SN_TABLE_TEXT},
    [PEAK] = {"peak", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
    [FORKS] = {"FORK", "copies", SN_TABLE_NUMBER | SN_TABLE_SPARE(5)},
    [LIVE] = {"", "live", SN_TABLE_NUMBER | SN_TABLE_SPARE(4)},
    [DEVICE] = {"device", "GiB", SN_TABLE_NUMBER},
    [WORK] = {"work", "GiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(9)},
    [FRAG] = {"frag", "%", SN_TABLE_NUMBER | SN_TABLE_SPARE(2)},
    [TRAFFIC] = {"out/in", "GiB", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(8)},
    [HOST] = {"host", "GiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(10)},
    [CACHE] = {"cache", "hit/mis/ev", SN_TABLE_NUMBER | SN_TABLE_SPARE(3)},
    [EXTRA] = {"extra", "fwd", SN_TABLE_NUMBER | SN_TABLE_SPARE(7)},
    [ITER] = {"iter", "ms", SN_TABLE_NUMBER | SN_TABLE_GAP},
    [SPEEDUP] = {"speed-", "up", SN_TABLE_NUMBER},
    [CORUN] = {"ops at", "once", SN_TABLE_NUMBER},
    [BOUND] = {"bound", "%", SN_TABLE_NUMBER},
    [STALL] = {"stall", "ms", SN_TABLE_NUMBER | SN_TABLE_SPARE(6)},
    [ALLOC] = {"alloc", "ms", SN_TABLE_NUMBER},
    [IMAGES] = {"images", "/s", SN_TABLE_NUMBER},
    [TOKENS] = {"tokens", "/s a GPU", SN_TABLE_NUMBER},
    [MFU] = {"MFU", "%", SN_TABLE_NUMBER},
    [STEP] = {"pool set", "at step", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
};

static bool has_forks(const sn_run *run) {
  bool any = false;
  for (uint32_t i = 0; i < run->n_results; i++) any = any || run->results[i].peak_fork_bytes;
  return any;
}

static bool uses_host(const sn_run *run) {
  bool any = false;
  for (uint32_t i = 0; i < run->n_results; i++) any = any || run->results[i].host_bytes;
  return any;
}

static bool has_corun(const sn_run *run) {
  bool any = false;
  for (uint32_t i = 0; i < run->n_results; i++) any = any || !sn_corun_row_is_empty(&run->results[i].corun);
  return any;
}

/* What no strategy has needs no column. */
static void hide_columns(const sn_run *run, sn_table *table) {
  bool allocates = false;
  for (uint32_t i = 0; i < run->n_results; i++) allocates = allocates || run->results[i].allocation_ns;
  if (!allocates) sn_table_hide(table, ALLOC);
  bool shared = run->n_results > 0 && run->results[0].shared.world > 0;
  if (!shared) sn_table_hide(table, MFU);
  if (!shared || !sn_report_is_of_sequences(run)) sn_table_hide(table, TOKENS);
  if (!has_forks(run)) sn_table_hide(table, FORKS);
  if (!uses_host(run)) sn_table_hide(table, HOST);
  for (uint32_t column = SPEEDUP; column <= BOUND && !has_corun(run); column++) sn_table_hide(table, column);
}

static sn_status print_results(const sn_run *run, const sn_out *out, sn_err *err) {
  sn_table_column columns[COLUMNS];
  memcpy(columns, result_columns, sizeof columns);
  columns[IMAGES].top = sn_report_run_unit(run);
  sn_table *table = sn_table_new(columns, COLUMNS);
  for (uint32_t i = 0; i < run->n_results; i++) {
    memory_cells(table, &run->results[i]);
    traffic_cells(table, &run->results[i]);
    time_cells(table, run, &run->results[i]);
  }
  hide_columns(run, table);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* GPUs of a node share its host's memory; how many do is not in the run. */
static bool lacks_host(const sn_run *run, const sn_result *r) {
  if (run->host_memory_bytes == 0 || r->host_bytes == 0) return false;
  bool shares = r->shared.world > 1 && !r->fits && r->peak_device_bytes <= run->memory_bytes;
  return shares || r->host_bytes > run->host_memory_bytes;
}

/* A strategy whose row looks as if it fitted. */
static void print_host_limited(const sn_run *run, FILE *out) {
  uint32_t told = 0;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (!lacks_host(run, r)) continue;
    sn_table_printf(out, "%s%s", told++ ? ", " : "\nneeds more host memory than there is: ", r->strategy);
  }
  if (told) fputs("\n", out);
}

/* "needs the least: liveness+cache and 3 more, 1.83 GiB" */
static void print_least(const sn_run *run, FILE *out) {
  uint64_t bytes = sn_report_smallest(run)->least_device_bytes;
  const sn_result *first = NULL;
  uint32_t equal = 0;
  char text[SN_UNIT_TEXT];
  for (uint32_t i = 0; i < run->n_results; i++) {
    if (run->results[i].least_device_bytes != bytes) continue;
    if (!first) first = &run->results[i];
    equal++;
  }
  if (bytes == 0 || !first) return;
  sn_table_printf(out, "needs the least: %s", first->strategy);
  if (equal > 1) fprintf(out, " and %" PRIu32 " more", equal - 1);
  fprintf(out, ", %s\n", sn_print_bytes(bytes, text));
}

static void print_summary(const sn_run *run, const char *fastest_is, FILE *out) {
  const sn_result *fastest = sn_run_best(run);
  char speed[SN_UNIT_TEXT];
  if (run->n_results < 2) return;
  if (fastest)
    sn_table_printf(out, "\n%s %s, %s %s/s\n", fastest_is, fastest->strategy,
                    sn_print_digits(fastest->images_per_second, 3, speed), sn_report_run_unit(run));
  else
    fputs("\nnone fits\n", out);
  print_least(run, out);
}

static sn_status print_steps(const sn_result *r, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "step", SN_TABLE_NUMBER},
      {"", "layer", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "op", SN_TABLE_TEXT},
      {"", "pass", SN_TABLE_TEXT},
      {"tensors", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "live", SN_TABLE_NUMBER},
      {"workspace", "MiB", SN_TABLE_NUMBER},
      {"device", "MiB", SN_TABLE_NUMBER},
      {"begin", "ms", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"takes", "ms", SN_TABLE_NUMBER},
  };
  sn_table_printf(out->stream, "\n%s: steps\n", r->strategy);
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < r->n_steps; i++) {
    const sn_step_row *s = &r->steps[i];
    sn_table_cell(table, "%" PRIu32, s->step);
    sn_table_cell(table, "%s", s->layer);
    sn_table_cell(table, "%s", s->op);
    sn_table_cell(table, "%s", s->pass);
    sn_table_cell(table, "%.3f", (double)s->tensor_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, s->live_tensors);
    sn_table_cell(table, s->workspace_bytes ? "%.3f" : "-", (double)s->workspace_bytes / MIB);
    sn_table_cell(table, "%.3f", (double)s->device_bytes / MIB);
    sn_table_figure(table, true, (double)s->begin_ns / MS);
    sn_table_figure(table, true, (double)(s->end_ns - s->begin_ns) / MS);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* What sets the pool, of what it consists there, and what would lower it. */
static void print_pool(const sn_run *run, const sn_result *r, FILE *out) {
  char advice[200];
  if (r->pool_step == 0) return;
  if (sn_live_total(&r->live) > 0) {
    sn_live_print_parts(&r->live, out);
    return;
  }
  fprintf(out, "the pool of %.3f MiB is set at step %" PRIu32 ", ", (double)r->pool_bytes / MIB, r->pool_step);
  sn_table_print_clean(out, r->pool_layer);
  sn_table_printf(out, " %s (%s):\ntensors %.3f MiB", r->pool_pass, r->pool_cause, (double)r->pool_tensor_bytes / MIB);
  if (r->pool_workspace_bytes) fprintf(out, ", workspace %.3f MiB", (double)r->pool_workspace_bytes / MIB);
  if (r->pool_hole_bytes) fprintf(out, ", holes %.3f MiB", (double)r->pool_hole_bytes / MIB);
  fprintf(out, "\nwhat would lower it: %s\n", sn_explain_pool(run, r, advice, sizeof advice));
}

static sn_status print_peak(const sn_run *run, const sn_result *r, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "MiB", SN_TABLE_NUMBER},
      {"", "tensor", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "made by", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
      {"since", "step", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(3)},
      {"", "steps", SN_TABLE_NUMBER | SN_TABLE_SPARE(2)},
      {"next", "use", SN_TABLE_NUMBER | SN_TABLE_SPARE(4)},
      {"", "what would remove it", SN_TABLE_TEXT | SN_TABLE_GAP},
  };
  sn_table_printf(out->stream, "\n%s: the peak of %.3f MiB at step %" PRIu32 ", ", r->strategy,
                  (double)r->peak_tensor_bytes / MIB, r->peak_step);
  sn_table_print_clean(out->stream, r->peak_layer);
  sn_table_printf(out->stream, " %s: %" PRIu32 " tensors\n", r->peak_pass, r->n_peak);
  if (r->peak_fork_bytes)
    fprintf(out->stream, "of which FORK copies: %.3f MiB (%.0f %%)\n", (double)r->peak_fork_bytes / MIB,
            100 * share(r->peak_fork_bytes, r->peak_tensor_bytes));
  sn_row_groups *alike = sn_row_groups_new(r->peak, r->n_peak, err);
  if (!alike) return err->code;
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < alike->n_groups && i < EXPLAINED_ROWS; i++) {
    const sn_row_groups_group *g = &alike->groups[i];
    const sn_peak_row *p = g->first;
    sn_table_cell(table, "%.3f", (double)g->bytes / MIB);
    sn_table_cell(table, "%s", g->tensor);
    sn_table_cell(table, "%s", g->producer);
    sn_table_cell(table, "%" PRIu32, p->since_step);
    sn_table_cell(table, "%" PRIu32, r->peak_step - p->since_step + 1);
    sn_table_cell(table, "%" PRIu32, p->next_step);
    sn_table_cell(table, "%s", p->advice);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  sn_row_groups_print_rest(alike, EXPLAINED_ROWS, out->stream);
  sn_row_groups_free(alike);
  print_pool(run, r, out->stream);
  return status;
}

void sn_report_failures(const sn_run *run, const char *what, FILE *out) {
  if (run->n_failures > 0) fputs("\n", out);
  for (uint32_t i = 0; i < run->n_failures; i++) {
    sn_table_printf(out, "%s: %s: ", run->failures[i].strategy, what);
    sn_table_print_clean(out, run->failures[i].reason);
    fputs("\n", out);
  }
}

/* "vit_b_16, batch 512 of 224x224, PyTorch, amp-bf16, adamw, on rtx4090 (23.5 GiB)" */
static void print_question(const sn_run *run, const sn_answer *answer, sn_report_wish wish, const sn_out *out) {
  FILE *f = out->stream;
  if (out->color) fputs("\033[1m", f);
  print_net(run, f);
  print_batch(run, f);
  if (run->conditions.accumulate > 1) fprintf(f, ", %" PRIu32 " such batches an update", run->conditions.accumulate);
  fprintf(f, ", %s", sn_runtime_title(answer->runtime));
  if (strcmp(run->conditions.precision, "fp32") != 0) sn_table_printf(f, ", %s", run->conditions.precision);
  if (answer->fp32_loss) fputs(", loss in float32", f);
  if (answer->eager_attention) fputs(", eager attention", f);
  if (sn_net_is_recording(run->net))
    fputs(", as recorded", f);
  else if (!run->conditions.inference)
    sn_table_printf(f, ", %s", run->conditions.optimizer);
  print_end(run, f);
  fprintf(f, " (%.1f GiB", (double)run->memory_bytes / GIB);
  if (wish.margin_bytes) fprintf(f, " and %.1f kept free", (double)wish.margin_bytes / GIB);
  fprintf(f, "%s%s)", *wish.gpu_why ? ", " : "", wish.gpu_why);
  fputs(out->color ? "\033[0m\n\n" : "\n\n", f);
}

static sn_status print_answer(const sn_run *run, sn_report_wish wish, const sn_out *out, sn_err *err) {
  sn_answer *answer = sn_answer_read(run->answer, err);
  if (!answer) return err->code;
  answer->gpus = sn_run_world(run);
  print_question(run, answer, wish, out);
  char epoch[SN_EPOCH_TEXT];
  sn_epoch_line(&wish.epoch, run->gpu, sn_answer_pace(answer, run, sn_run_world(run)), sn_report_run_unit(run), epoch);
  if (sn_answer_print(answer, sn_report_run_unit(run), epoch, out, err) == SN_OK) fputs("\n", out->stream);
  sn_answer_free(answer);
  return err->code;
}

/* The run without PyTorch's row, whose answer stands above, where SuperNeurons' combinations follow. */
static sn_run without_answered(const sn_run *run) {
  sn_run rest = *run;
  bool both = *run->answer && run->n_results > 1 && strcmp(run->results[0].strategy, "pytorch") == 0 &&
              strcmp(run->results[1].strategy, "baseline") == 0;
  if (both) rest.results++, rest.n_results--;
  return rest;
}

/* PyTorch's row in words, and what stands over those of SuperNeurons. */
static void print_between(const sn_run *run, const sn_run *rest, FILE *out) {
  sn_run pytorch = *run;
  pytorch.n_results = 1;
  sn_live_print_resident(run, &run->results[0], out);
  sn_live_print(&pytorch, out);
  fprintf(out, "\nin SuperNeurons' runtime (2018), %" PRIu32 " combinations: snsim help superneurons\n",
          rest->n_results);
}

static sn_status print_rows(const sn_run *run, const sn_run *rest, sn_report_wish wish, const sn_out *out,
                            sn_err *err) {
  bool both = rest->n_results < run->n_results;
  if (both)
    print_between(run, rest, out->stream);
  else
    print_subject(run, wish.gpu_why, out);
  print_setting(rest, wish.cluster, out->stream);
  if (print_results(rest, out, err) != SN_OK) return err->code;
  sn_times_print_run(rest, out->stream);
  sn_report_failures(run, "not planned", out->stream);
  print_host_limited(rest, out->stream);
  sn_live_print(rest, out->stream);
  print_summary(rest, both ? "in SuperNeurons' runtime the fastest that fits is" : "fastest that fits:", out->stream);
  return SN_OK;
}

static sn_status print_run(const sn_run *run, sn_report_wish wish, const sn_out *out, sn_err *err) {
  const sn_run rest = without_answered(run);
  if (*run->answer && print_answer(run, wish, out, err) != SN_OK) return err->code;
  if (print_rows(run, &rest, wish, out, err) != SN_OK) return err->code;
  if (!*run->answer)
    sn_epoch_print(&wish.epoch, run->gpu, sn_answer_pace(NULL, run, sn_run_world(run)), sn_report_run_unit(run),
                   out->stream);
  for (uint32_t i = 0; wish.explain && i < run->n_results; i++)
    if (print_peak(run, &run->results[i], out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; wish.steps && i < run->n_results; i++)
    if (print_steps(&run->results[i], out, err) != SN_OK) return err->code;
  return SN_OK;
}

sn_status sn_report_run(const sn_run *run, sn_report_wish wish, const sn_out *out, sn_err *err) {
  sn_prose prose;
  if (!wish.gpu_why) wish.gpu_why = "";
  print_run(run, wish, sn_prose_open(&prose, out), err);
  sn_prose_close(&prose);
  return err->code;
}
