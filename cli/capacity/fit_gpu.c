/* `snsim fit --which gpu`: every known GPU, and one of the user's own, ranked for one network and batch by speed, or by what
 * an epoch costs. The strategies asked for compete on each: the fastest that fits stands for it, or where none does the one
 * that lacks the least. */
#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/capacity/fit.h"
#include "cli/frame/report.h"
#include "cli/options/table.h"
#include "sim/ask/corun_plans.h"
#include "sim/capacity/bands.h"
#include "sim/capacity/fit.h"
#include "sim/stages/stages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
  sn_device device; /* memory_bytes without the margin */
  uint64_t margin_bytes;
  bool fits, host_missing; /* no device would do: the host's memory is too small */
  bool changed;            /* it fits, but not PyTorch's loop as it stands, of which the answer is */
  char strategy[SN_STRATEGY_TEXT];
  const char *dialect, *placement; /* of its plan, as the next two */
  uint64_t pool_bytes, largest_load_bytes;
  uint64_t device_bytes;    /* taken, or where it does not fit the least that would do */
  uint64_t host_bytes;      /* taken of the host, likewise */
  double images_per_second; /* 0 where it does not fit */
  const sn_band *band;      /* of its time; NULL: no measurement of this kind or one like it, or it does not fit */
  sn_epoch_taken epoch;
  sn_ranked rank; /* first 0: none, as it does not fit, has no price or nothing is known of the kind */
  uint32_t index; /* in the list of GPUs: the order of equals */
} candidate;

typedef struct ranking {
  const sn_question *question;
  candidate *all;
  uint32_t count;
  uint32_t lacking;    /* GPUs left out for want of the precision */
  const sn_band *most; /* the widest band of the kind, of any card; NULL: no measurement of this kind */
  sn_planner *planner; /* turned from GPU to GPU; NULL: none was asked about */
} ranking;

/* What is left of the memory to plan with; below 0: what is missing. */
static int64_t headroom(const candidate *c) {
  return (int64_t)c->device.memory_bytes - (int64_t)c->device_bytes;
}

/* By what an epoch costs, where all fit and have a price, else by speed. */
static int compare(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->fits != y->fits) return x->fits ? -1 : 1;
  if ((x->epoch.cost > 0) != (y->epoch.cost > 0)) return x->epoch.cost > 0 ? -1 : 1;
  if (x->epoch.cost != y->epoch.cost) return x->epoch.cost < y->epoch.cost ? -1 : 1;
  if (x->images_per_second != y->images_per_second) return x->images_per_second > y->images_per_second ? -1 : 1;
  if (headroom(x) != headroom(y)) return headroom(x) > headroom(y) ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- ranks ---- */

static bool is_ranked(const ranking *r, const candidate *c) {
  return r->most && c->fits && (!r->question->epoch.prices || c->epoch.cost > 0);
}

/* Of a card whose band nobody measured it is no narrower than the widest that somebody did. */
static void rank_all(ranking *r, sn_ranked *rows) {
  uint32_t count = 0;
  for (; count < r->count && is_ranked(r, &r->all[count]); count++) {
    const candidate *c = &r->all[count];
    double value = r->question->epoch.prices ? c->epoch.cost : 1 / c->images_per_second;
    rows[count] = (sn_ranked){.value = value, .within = sn_band_share(c->band ? c->band : r->most)};
  }
  sn_band_rank(rows, count);
  for (uint32_t i = 0; i < count; i++) r->all[i].rank = rows[i];
}

static sn_status sort(ranking *r, sn_err *err) {
  const sn_question *q = r->question;
  sn_ranked *rows = calloc((size_t)r->count + 1, sizeof *rows);
  sn_timed any = sn_timed_of(q->net, &q->device, &q->options, sn_strategy_shown(0)); /* PyTorch's loop as it stands */
  if (!rows) return sn_fail_memory(err);
  any.card = NULL;
  r->most = sn_question_asks_pytorch(q) ? sn_band_find(&any) : NULL;
  qsort(r->all, r->count, sizeof *r->all, compare);
  rank_all(r, rows);
  free(rows);
  return SN_OK;
}

/* ---- finding out ---- */

static void take_plan(candidate *c, const sn_result *result) {
  c->dialect = result->dialect;
  c->placement = result->placement;
  c->pool_bytes = result->pool_bytes;
  c->largest_load_bytes = result->largest_load_bytes;
}

static sn_status find_least(const sn_question *q, candidate *c, sn_err *err) {
  sn_memory *memory = sn_fit_memory(q->net, &c->device, q->strategies, q->n_strategies, &q->options, err);
  if (!memory) return err->code;
  const sn_memory_answer *best = sn_memory_best(memory);
  sn_strategy_name(best->strategy, c->strategy);
  c->device_bytes = best->memory_bytes ? best->memory_bytes : best->result->peak_device_bytes;
  c->host_missing = best->memory_bytes == 0;
  c->host_bytes = best->result->host_bytes;
  take_plan(c, best->result);
  sn_memory_free(memory);
  return SN_OK;
}

static sn_pace pace_of(const candidate *c) {
  return (sn_pace){.per_second = c->images_per_second, .within = sn_band_share(c->band)};
}

static void take_time(const sn_question *q, candidate *c) {
  sn_strategy strategy;
  sn_err unknown = SN_ERR_INIT;
  if (sn_strategy_parse(c->strategy, &strategy, &unknown) == SN_OK) {
    const sn_timed timed = sn_timed_of(q->net, &c->device, &q->options, strategy);
    c->band = sn_band_find(&timed);
  }
  if (q->epoch.samples) c->epoch = sn_epoch_take(&q->epoch, c->device.name, pace_of(c));
}

static sn_run *simulate(ranking *r, const sn_device *device, sn_err *err) {
  const sn_question *q = r->question;
  if (sn_mesh_size(&q->options.iteration.mesh, SN_MESH_PP) > 1)
    return sn_stages_simulate(q->args->net, q->net, device, q->strategies, q->n_strategies, &q->options, err);
  if (r->planner)
    sn_planner_turn(r->planner, device, &q->options, err);
  else
    r->planner = sn_planner_new(q->net, device, &q->options, err);
  return err->code == SN_OK ? sn_planner_run(r->planner, q->args->net, q->strategies, q->n_strategies, err) : NULL;
}

static sn_status ask(ranking *r, candidate *c, sn_err *err) {
  const sn_question *q = r->question;
  if (sn_question_adapt(q->args, &c->device, &c->margin_bytes, err) != SN_OK) return err->code;
  sn_run *run = simulate(r, &c->device, err);
  if (!run) return err->code;
  const sn_result *best = sn_run_best(run);
  c->fits = best != NULL;
  c->changed = best && q->args->n_strategies == 0 && sn_question_asks_pytorch(q) && !run->results[0].fits;
  if (best) {
    snprintf(c->strategy, sizeof c->strategy, "%s", best->strategy);
    c->device_bytes = best->peak_device_bytes;
    c->host_bytes = best->host_bytes;
    take_plan(c, best);
    c->images_per_second = best->images_per_second;
    take_time(q, c);
  }
  sn_run_free(run);
  return c->fits ? SN_OK : find_least(q, c, err);
}

static sn_status add(ranking *r, const sn_device *device, sn_err *err) {
  if (sn_device_check_precision(device, r->question->args->options.iteration.precision, err) != SN_OK) return err->code;
  candidate *c = &r->all[r->count];
  *c = (candidate){.device = *device, .index = r->count};
  r->count++;
  return ask(r, c, err);
}

static bool asks_corun(const sn_question *q) {
  bool corun = false;
  for (uint32_t i = 0; i < q->n_strategies; i++) corun = corun || sn_strategy_is_corun(q->strategies[i]);
  return corun;
}

/* What is made of cores is ranked where co-running is asked for, which nothing else can. */
static bool suits(const sn_question *q, const sn_device *device) {
  return (device->cores.count > 0) == asks_corun(q);
}

static sn_status rank(ranking *r, sn_err *err) {
  sn_device device;
  const sn_question *q = r->question;
  for (uint32_t i = 0; i < sn_device_count(); i++) {
    if (sn_device_known(i, &device, err) != SN_OK) return err->code;
    bool asked = q->args->profile && strcmp(device.name, q->args->gpu) == 0;
    sn_err reason = SN_ERR_INIT;
    if (!asked && suits(q, &device) &&
        sn_device_check_precision(&device, q->args->options.iteration.precision, &reason) != SN_OK) {
      r->lacking++;
      continue;
    }
    if ((asked || suits(q, &device)) && add(r, &device, err) != SN_OK) return err->code;
  }
  if (!sn_device_is_known(q->args->gpu)) {
    if (q->calibration)
      device = asks_corun(q) ? sn_corun_device(&q->calibration->profile, q->calibration) : q->calibration->profile;
    else if (sn_device_load(q->args->gpu, &device, err) != SN_OK)
      return err->code;
    if (add(r, &device, err) != SN_OK) return err->code;
  }
  return sort(r, err);
}

/* ---- telling ---- */

/* A recording's operations have their own types. */
static void print_precision(const sn_question *q, FILE *out) {
  if (q->net->recorded) return;
  if (q->options.iteration.precision == SN_FP32)
    fputs("float32 without TF32: no tensor cores (--precision tf32; tf32-conv is PyTorch as it starts)\n", out);
  else if (!sn_args_gave(q->args, "precision"))
    fputs("as PyTorch starts: convolutions in TF32 where there are tensor cores for it (--precision fp32: without)\n",
          out);
}

static void print_heading(const sn_question *q, FILE *out) {
  char text[SN_UNIT_TEXT];
  sn_capacity_print_net("GPUs for", q->args->net, q->net->name, out);
  sn_capacity_print_batch(q->net, "", out);
  const sn_mesh *mesh = &q->options.iteration.mesh;
  if (!sn_mesh_is_one(mesh)) fprintf(out, ", %" PRIu32 " of a kind with %s", sn_mesh_world(mesh), mesh->text);
  if (q->epoch.samples) fprintf(out, ", an epoch of %" PRIu64 " %s", q->epoch.samples, sn_capacity_unit(q));
  fputs(q->epoch.prices ? ", cheapest first\n" : ", fastest first\n", out);
  print_precision(q, out);
  sn_capacity_print_switches(q, out);
  fprintf(out, ", workspace %s", sn_workspace_name(q->options.workspace));
  if (q->args->margin.percent > 0)
    fprintf(out, "; %g%% of each kept free (--margin)", q->args->margin.percent);
  else if (q->args->margin.bytes)
    fprintf(out, "; %s of each kept free (--margin)", sn_print_bytes(q->args->margin.bytes, text));
  fputs("\n\n", out);
}

static bool lacks_price(const ranking *r) {
  bool any = false;
  for (uint32_t i = 0; i < r->count; i++) any = any || r->all[i].epoch.an_hour <= 0;
  return any && r->question->epoch.prices;
}

static void print_bands(const ranking *r, FILE *out) {
  if (lacks_price(r)) sn_table_printf(out, "no price: not in %s\n", r->question->epoch.file);
  if (!r->most) {
    fputs("times: no measurement of this kind: the order is that of formulas (docs/truth.md)\n", out);
    return;
  }
  fprintf(out, "rank: cards of one range are alike, as their bands overlap (none counts as %.0f %%)\n",
          r->most->nine_of_ten);
  fputs("within: nine of ten times were (docs/truth.md); in brackets: those of a card left out, as there is no "
        "measurement on this one; none: no measurement of this kind\n",
        out);
}

static void print_notes(const ranking *r, FILE *out) {
  bool nominal = false, changed = false, host = false, misfit = !r->all[r->count - 1].fits;
  for (uint32_t i = 0; i < r->count; i++) {
    nominal = nominal || r->all[i].device.memory_nominal;
    changed = changed || r->all[i].changed;
    host = host || (r->all[i].changed && r->all[i].host_bytes);
  }
  fputs("\ntaken: by the plan of the fastest strategy; cache and workspaces take what there is\n", out);
  if (changed)
    fputs("changed: not as it stands, but by that strategy; --net .. --gpu .. alone has more changes\n", out);
  if (host) fputs("host: RAM that the machine has to have for it (--host-memory limits it)\n", out);
  if (misfit) fputs("where it does not fit: the least with which a strategy runs; headroom: what is missing\n", out);
  if (r->lacking > 0)
    fprintf(out, "left out: %" PRIu32 " GPUs whose tensor cores do not do %s, or that have none\n", r->lacking,
            sn_precision_name(r->question->options.iteration.precision));
  if (!sn_mesh_is_one(&r->question->options.iteration.mesh))
    fputs("links: those of the known cluster of such GPUs (snsim list clusters); of all others PCIe is assumed,\n"
          "also where they have NVLink: their own are a cluster's file, asked with --cluster\n",
          out);
  if (nominal) fputs("* of the nominal size: what CUDA reports is not known\n", out);
  print_bands(r, out);
}

enum { GPU, RANK, FITS, SPEED, WITHIN, EPOCH, COST, USABLE, TAKEN, HEADROOM, HOST, STRATEGY, COLUMNS };

static void rank_cell(sn_table *table, sn_ranked rank) {
  if (rank.first == rank.last)
    sn_table_cell(table, rank.first ? "%" PRIu32 : "-", rank.first);
  else
    sn_table_cell(table, "%" PRIu32 "-%" PRIu32, rank.first, rank.last);
}

static void band_cell(sn_table *table, const candidate *c) {
  if (!c->band)
    sn_table_cell(table, c->fits ? "none" : "-");
  else
    sn_table_cell(table, sn_band_is_of_another(c->band) ? "(%.0f %%)" : "%.0f %%", c->band->nine_of_ten);
}

/* Two digits, as the answer has: these are of different cards. */
static void time_cells(sn_table *table, const ranking *r, const candidate *c) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", c->fits ? sn_print_digits(c->images_per_second, 2, text) : "-");
  band_cell(table, c);
  sn_table_cell(table, "%s", c->epoch.seconds > 0 ? sn_epoch_time(c->epoch.seconds, 2, text) : "-");
  if (r->question->epoch.prices && c->fits && c->epoch.an_hour <= 0)
    sn_table_cell(table, "no price");
  else
    sn_table_cell(table, "%s", c->epoch.cost > 0 ? sn_print_digits(c->epoch.cost, 2, text) : "-");
}

static void memory_cells(sn_table *table, const candidate *c) {
  sn_table_cell(table, "%.1f%s", (double)(c->device.memory_bytes + c->margin_bytes) / SN_MIB,
                c->device.memory_nominal ? "*" : "");
  sn_table_cell(table, "%.1f", (double)c->device_bytes / SN_MIB);
  sn_table_cell(table, "%.1f", (double)headroom(c) / SN_MIB);
  sn_table_cell(table, c->host_bytes ? "%.1f" : "-", (double)c->host_bytes / SN_MIB);
}

/* What nobody asked about, or no card has, needs no column. */
static void hide_columns(const ranking *r, sn_table *table) {
  bool host = false;
  for (uint32_t i = 0; i < r->count; i++) host = host || r->all[i].host_bytes;
  if (!host) sn_table_hide(table, HOST);
  if (!r->most) sn_table_hide(table, RANK), sn_table_hide(table, WITHIN);
  if (!r->question->epoch.samples) sn_table_hide(table, EPOCH);
  if (!r->question->epoch.prices) sn_table_hide(table, COST);
}

static sn_status print_table(const ranking *r, const sn_out *out, sn_err *err) {
  const sn_prices *prices = r->question->epoch.prices;
  const sn_table_column columns[COLUMNS] = {
      [GPU] = {"", "gpu", SN_TABLE_TEXT},
      [RANK] = {"", "rank", SN_TABLE_TEXT},
      [FITS] = {"", "fits", SN_TABLE_TEXT},
      [SPEED] = {sn_capacity_unit(r->question), "/s", SN_TABLE_NUMBER},
      [WITHIN] = {"", "within", SN_TABLE_NUMBER},
      [EPOCH] = {"an", "epoch", SN_TABLE_NUMBER | SN_TABLE_GAP},
      [COST] = {"costs", prices ? prices->currency : "", SN_TABLE_NUMBER},
      [USABLE] = {"usable", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
      [TAKEN] = {"taken", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(2)},
      [HEADROOM] = {"headroom", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(4)},
      [HOST] = {"host", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(3)},
      [STRATEGY] = {"", "strategy", SN_TABLE_TEXT | SN_TABLE_GAP},
  };
  sn_table *table = sn_table_new(columns, COLUMNS);
  for (uint32_t i = 0; i < r->count; i++) {
    const candidate *c = &r->all[i];
    sn_table_cell(table, "%s", c->device.name);
    rank_cell(table, c->rank);
    sn_table_cell(table, c->changed ? "changed" : c->fits ? "yes" : "no");
    time_cells(table, r, c);
    memory_cells(table, c);
    sn_table_cell(table, "%s", c->strategy);
    if (!c->fits) sn_table_dim(table);
  }
  hide_columns(r, table);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  print_notes(r, out->stream);
  return status;
}

static void put_place(sn_json_object *o, const char *key, uint32_t place) {
  if (place)
    sn_json_put_count(o, key, place);
  else
    sn_json_put_null(o, key);
}

static void put_time(sn_json_object *o, const ranking *r, const candidate *c) {
  if (c->fits)
    sn_json_put_real(o, "images_per_second", c->images_per_second);
  else
    sn_json_put_null(o, "images_per_second");
  put_place(o, "rank_first", c->rank.first);
  put_place(o, "rank_last", c->rank.last);
  sn_json_put_text(o, "times", sn_times_from_name(c->device.times_from));
  sn_epoch_put(o, &r->question->epoch, c->device.name, pace_of(c));
}

static sn_status write_candidate(const ranking *r, const candidate *c, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "gpu", c->device.name);
  sn_json_put_bool(&o, "fits", c->fits);
  sn_json_put_text(&o, "strategy", c->strategy);
  sn_json_put_text(&o, "dialect", c->dialect);
  sn_json_put_text(&o, "placement", c->placement);
  sn_json_put_count(&o, "pool_bytes", c->pool_bytes);
  sn_json_put_count(&o, "largest_load_bytes", c->largest_load_bytes);
  sn_json_put_count(&o, "memory_bytes", c->device.memory_bytes + c->margin_bytes);
  sn_json_put_bool(&o, "memory_nominal", c->device.memory_nominal);
  sn_json_put_count(&o, "margin_bytes", c->margin_bytes);
  sn_json_put_count(&o, "device_bytes", c->device_bytes);
  sn_json_put_time(&o, "headroom_bytes", headroom(c));
  sn_json_put_count(&o, "host_bytes", c->host_bytes);
  put_time(&o, r, c);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_json(const ranking *r, FILE *out, sn_err *err) {
  const sn_question *q = r->question;
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", q->args->net);
  sn_json_put_count(&o, "batch", q->net->batch);
  sn_json_put_text(&o, "which", "gpu");
  sn_json_put_text(&o, "ranked_by", q->epoch.prices ? "cost" : "speed");
  if (q->epoch.samples) sn_json_put_count(&o, "samples", q->epoch.samples);
  if (q->epoch.prices) sn_json_put_text(&o, "currency", q->epoch.prices->currency);
  sn_json_put_text(&o, "workspace", sn_workspace_name(q->options.workspace));
  sn_json_put_text(&o, "external", sn_external_name(q->options.external));
  sn_json_put_text(&o, "allocator", sn_allocator_name(q->options.allocator));
  sn_json_put_text(&o, "optimizer", sn_optimizer_name(q->options.iteration.optimizer));
  sn_json_put_count(&o, "accumulate", sn_iteration_batches(q->options.iteration));
  sn_json_put_bool(&o, "inference", q->options.iteration.inference);
  if (q->options.iteration.precision != SN_FP32)
    sn_json_put_text(&o, "precision", sn_iteration_precision_name(q->options.iteration));
  if (*q->args->freeze) sn_json_put_text(&o, "freeze", q->args->freeze);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, ",\"results\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < r->count; i++)
    if (write_candidate(r, &r->all[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

static sn_status print(const ranking *r, sn_err *err) {
  sn_out out;
  const sn_args *args = r->question->args;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json) {
    write_json(r, out.stream, err);
  } else {
    sn_prose prose;
    const sn_out *p = sn_prose_open(&prose, &out);
    print_heading(r->question, p->stream);
    print_table(r, p, err);
    sn_prose_close(&prose);
  }
  return sn_out_close(&out, err);
}

/* The first of those that do not fit lacks the least: its largest batch is the nearest that can be had. */
static sn_status fail_no_fit(const ranking *r, sn_err *err) {
  const sn_question *q = r->question;
  const candidate *c = &r->all[0];
  char missing[SN_UNIT_TEXT], batch[40] = "";
  uint32_t largest = 0;
  sn_question nearest = *q;
  nearest.device = c->device;
  sn_strategy strategy;
  if (sn_strategy_parse(c->strategy, &strategy, err) != SN_OK ||
      sn_question_largest_batch(&nearest, strategy, &largest, err) != SN_OK)
    return err->code;
  if (largest) snprintf(batch, sizeof batch, ", or --batch %" PRIu32, largest);
  if (c->host_missing) return sn_capacity_fail_host(&nearest, strategy, c->host_bytes, err);
  if (headroom(c) >= 0) /* the device would do */
    return sn_fail(err, SN_NO_FIT, "the pool of --pool is too small with every strategy asked for; try a larger one%s",
                   batch);
  return sn_fail(err, SN_NO_FIT, "no GPU is large enough: on %s, the nearest, %s are missing with %s; try %s%s",
                 c->device.name, sn_print_bytes((uint64_t)-headroom(c), missing), c->strategy,
                 q->args->n_strategies ? "another --strategy" : "a --gpu FILE of your own", batch);
}

static sn_status answer(ranking *r, sn_err *err) {
  sn_out_progress("trying every GPU ...");
  rank(r, err);
  sn_out_progress(NULL);
  if (err->code != SN_OK || print(r, err) != SN_OK) return err->code;
  return r->all[0].fits ? SN_OK : fail_no_fit(r, err);
}

sn_status sn_cli_fit_gpu(const sn_args *args, sn_err *err) {
  sn_question q;
  if (sn_question_load(args, &q, err) != SN_OK) return err->code;
  q.options.calibration = NULL; /* of one GPU: its times would stand beside formulas */
  ranking r = {.question = &q, .all = calloc(sn_device_count() + 1, sizeof *r.all)};
  if (r.all)
    answer(&r, err);
  else
    sn_fail_memory(err);
  sn_planner_free(r.planner);
  free(r.all);
  sn_question_free(&q);
  return err->code;
}
