/* `snsim threads`: how many threads every kind of operation wants on a device made of cores, what profiling costs that
 * finds it, and how well it predicts (sim/corun/times.h). */
#include "sim/corun/times.h"

#include "cli/capacity/capacity.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/frame/times.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "models/op/op.h"
#include "plots/plot.h"
#include "plots/threads.h"
#include "sim/ask/corun_plans.h"
#include "sim/policy/interval.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_ROOM = 256, CURVES = 7 };

/* A line of the answer: all instances of a kind. */
typedef struct row {
  const sn_time_kind *kind;
  uint32_t shapes, samples; /* the most of any class */
  int64_t ns, all_cores_ns; /* sums over the instances: with n_k threads, with all cores */
  double accuracy;          /* mean over the instances */
} row;

typedef struct answer {
  const sn_args *args;
  const sn_net *net;
  const sn_device *device;
  const sn_calibration *measured; /* of its cores; NULL: times are its law's */
  const sn_times *times;
  row *rows; /* times->n_kinds, the longest first */
} answer;

/* ---- summing up ---- */

static void add_class(row *r, const sn_time_class *c, const sn_times *times) {
  r->shapes++;
  if (c->samples > r->samples) r->samples = c->samples;
  r->ns += c->instances * c->ns[r->kind->threads];
  r->all_cores_ns += c->instances * c->ns[times->cores];
  r->accuracy += c->accuracy * c->instances / r->kind->instances;
}

static int compare(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static sn_status sum_up(answer *a, sn_err *err) {
  const sn_times *t = a->times;
  a->rows = calloc((size_t)t->n_kinds + 1, sizeof *a->rows);
  if (!a->rows) return sn_fail_memory(err);
  for (uint32_t i = 0; i < t->n_kinds; i++) a->rows[i].kind = &t->kinds[i];
  for (uint32_t i = 0; i < t->n_classes; i++) add_class(&a->rows[t->classes[i].kind], &t->classes[i], t);
  qsort(a->rows, t->n_kinds, sizeof *a->rows, compare);
  return SN_OK;
}

/* What all cores lose against n_k threads, in percent. */
static double loss_percent(int64_t all_cores_ns, int64_t ns) {
  return 100 * ((double)all_cores_ns / (double)ns - 1);
}

/* "forward", "filter", "data", "backward", "update" */
static const char *part_name(const sn_time_kind *kind) {
  return kind->part == SN_STEP_WHOLE ? sn_pass_name(kind->pass) : sn_step_part_name(kind->part);
}

static void name_of(const sn_time_kind *kind, char *text, size_t room) {
  snprintf(text, room, "%s %s", sn_op_table[kind->op]->name, part_name(kind));
}

/* ---- as a table ---- */

static void print_head(const answer *a, FILE *out) {
  const sn_cores *cores = &a->device->cores;
  const sn_times *t = a->times;
  char name[NAME_ROOM], interval[SN_INTERVAL_NAME];
  snprintf(name, sizeof name, "%s", a->args->net);
  fputs(sn_table_clean(name), out);
  sn_capacity_print_batch(a->net, "", out);
  fputs(", on ", out);
  sn_table_print_clean(out, a->device->name);
  fprintf(out, ": %" PRIu32 " cores", cores->count);
  if (cores->tile > 1) fprintf(out, ", %" PRIu32 " a tile", cores->tile);
  if (a->measured) fprintf(out, "; times of %" PRIu32 " of %" PRIu32 " operations measured", t->measured_ops, t->n_ops);
  fprintf(out,
          "\n%" PRIu32 " operations of %" PRIu32 " shapes; profiled at interval %s in %" PRIu32
          " training steps%s, untried counts predicted with %.1f %% accuracy\n\n",
          t->n_ops, t->n_classes, sn_interval_name(a->args->options.corun.interval, interval), t->profile_steps,
          cores->tile > 1 ? " (threads packed and spread)" : "", 100 * t->accuracy);
}

static void put_row(sn_table *table, const row *r) {
  char name[NAME_ROOM];
  name_of(r->kind, name, sizeof name);
  sn_table_cell(table, "%s", name);
  sn_table_cell(table, "%" PRIu32, r->kind->threads);
  sn_table_cell(table, "%" PRIu32, r->kind->instances);
  sn_table_cell(table, "%" PRIu32, r->shapes);
  sn_table_figure(table, true, (double)r->ns / 1e6);
  sn_table_figure(table, true, (double)r->all_cores_ns / 1e6);
  sn_table_cell(table, "%.1f", loss_percent(r->all_cores_ns, r->ns));
  sn_table_cell(table, "%" PRIu32, r->samples);
  sn_table_cell(table, "%.1f", 100 * r->accuracy);
}

static void put_sum(sn_table *table, const answer *a) {
  int64_t ns = 0, all_cores_ns = 0;
  uint32_t samples = 0;
  for (uint32_t i = 0; i < a->times->n_kinds; i++) {
    ns += a->rows[i].ns;
    all_cores_ns += a->rows[i].all_cores_ns;
    if (a->rows[i].samples > samples) samples = a->rows[i].samples;
  }
  sn_table_cell(table, "all");
  sn_table_cell(table, "-");
  sn_table_cell(table, "%" PRIu32, a->times->n_ops);
  sn_table_cell(table, "%" PRIu32, a->times->n_classes);
  sn_table_figure(table, true, (double)ns / 1e6);
  sn_table_figure(table, true, (double)all_cores_ns / 1e6);
  sn_table_cell(table, "%.1f", loss_percent(all_cores_ns, ns));
  sn_table_cell(table, "%" PRIu32, samples);
  sn_table_cell(table, "%.1f", 100 * a->times->accuracy);
}

static sn_status print_table(const answer *a, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "operation", SN_TABLE_TEXT},
      {"", "threads", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "instances", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "shapes", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(2)},
      {"", "ms", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"all cores", "ms", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "loss %", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "samples", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
      {"accuracy", "%", SN_TABLE_NUMBER | SN_TABLE_GAP},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  print_head(a, out->stream);
  for (uint32_t i = 0; i < a->times->n_kinds; i++) put_row(table, &a->rows[i]);
  put_sum(table, a);
  sn_out_table(out, table, err);
  sn_table_free(table);
  if (!a->measured) sn_times_print_unmeasured(out->stream);
  return err->code;
}

/* ---- as JSON ---- */

static sn_status put_json_row(const row *r, const sn_times *times, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "op", sn_op_table[r->kind->op]->name);
  sn_json_put_text(&o, "pass", sn_pass_name(r->kind->pass));
  sn_json_put_text(&o, "part", sn_step_part_name(r->kind->part));
  sn_json_put_count(&o, "threads", r->kind->threads);
  sn_json_put_count(&o, "instances", r->kind->instances);
  sn_json_put_count(&o, "shapes", r->shapes);
  sn_json_put_time(&o, "ns", r->ns);
  sn_json_put_time(&o, "all_cores_ns", r->all_cores_ns);
  sn_json_put_time(&o, "largest_one_thread_ns", times->classes[r->kind->largest].ns[1]);
  sn_json_put_count(&o, "samples", r->samples);
  sn_json_put_real(&o, "accuracy", r->accuracy);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status print_json(const answer *a, FILE *out, sn_err *err) {
  char interval[SN_INTERVAL_NAME];
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", a->args->net);
  sn_json_put_text(&o, "net_name", a->net->name);
  sn_json_put_count(&o, "batch", a->net->batch);
  sn_json_put_count(&o, "image_height", sn_layer_rows(&a->net->layers[0]));
  sn_json_put_count(&o, "image_width", a->net->layers[0].out.w);
  sn_json_put_text(&o, "gpu", a->device->name);
  sn_json_put_text(&o, "optimizer", sn_optimizer_name(a->args->options.iteration.optimizer));
  sn_json_put_count(&o, "cores", a->device->cores.count);
  sn_json_put_count(&o, "tile", a->device->cores.tile);
  sn_json_put_text(&o, "interval", sn_interval_name(a->args->options.corun.interval, interval));
  sn_json_put_count(&o, "operations", a->times->n_ops);
  sn_json_put_count(&o, "measured_ops", a->times->measured_ops);
  sn_json_put_count(&o, "shapes", a->times->n_classes);
  sn_json_put_count(&o, "profile_steps", a->times->profile_steps);
  sn_json_put_real(&o, "accuracy", a->times->accuracy);
  if (sn_json_end(&o, "", true, ",\n\"kinds\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < a->times->n_kinds && err->code == SN_OK; i++)
    put_json_row(&a->rows[i], a->times, i ? ",\n" : "\n", out, err);
  fputs("\n]}\n", out);
  return err->code;
}

/* ---- as a picture ---- */

/* The largest instance of each of the kinds that take longest. */
static sn_status draw(const answer *a, sn_err *err) {
  char title[NAME_ROOM], names[CURVES][64];
  sn_threads_curve curves[CURVES];
  unsigned n = 0;
  snprintf(title, sizeof title, "%.120s, batch %" PRIu32 ", on %.63s: the largest operation of each kind", a->args->net,
           a->net->batch, a->device->name);
  for (; n < a->times->n_kinds && n < CURVES; n++) {
    const sn_time_class *c = &a->times->classes[a->rows[n].kind->largest];
    name_of(a->rows[n].kind, names[n], sizeof names[n]);
    curves[n] = (sn_threads_curve){.name = names[n], .ns = c->ns, .best = c->best};
  }
  const sn_threads_chart chart = {
      .title = title, .cores = a->times->cores, .threads = a->times->max_threads, .curves = curves, .n_curves = n};
  if (sn_plot_threads(&chart, a->args->output, err) == SN_OK) sn_out_say("%s written", a->args->output);
  return err->code;
}

/* ---- the command ---- */

static sn_status print(const answer *a, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, NULL, a->args->color, err) != SN_OK) return err->code;
  if (a->args->json)
    print_json(a, out.stream, err);
  else
    print_table(a, &out, err);
  return sn_out_close(&out, err);
}

/* The interval that nobody asked for is no larger than the cores. */
static uint32_t interval_of(const answer *a) {
  uint32_t asked = a->args->options.corun.interval, cores = a->device->cores.count;
  return asked == SN_INTERVAL_DEFAULT && a->measured && asked > cores ? cores : asked;
}

static sn_status ask(answer *a, sn_err *err) {
  sn_route *route = sn_route_new(a->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err);
  sn_times *times =
      route ? sn_times_new(route, a->device, a->args->options.iteration.optimizer, interval_of(a), a->measured, err)
            : NULL;
  a->times = times;
  if (times && sum_up(a, err) == SN_OK && print(a, err) == SN_OK && a->args->output) draw(a, err);
  free(a->rows);
  sn_times_free(times);
  sn_route_free(route);
  return err->code;
}

/* The device, with the cores that were measured of it. */
static sn_status open_device(answer *a, sn_question *q, sn_err *err) {
  if (sn_question_open(a->args, q, err) != SN_OK) return err->code;
  const sn_calibration *c = q->calibration;
  if (c && c->cores.count > 0) {
    q->device = sn_corun_device(&q->device, c);
    a->measured = c;
  } else if (c) {
    sn_fail(err, SN_BAD_USAGE,
            "%s was measured without teams of its cores; snsim calibrate --backend cpu --threads 1,2,.. measures those "
            "of a machine with several processors",
            q->device.name);
  }
  return err->code;
}

sn_status sn_cli_threads(const sn_args *args, sn_err *err) {
  static const char example[] = "for instance: snsim threads --net inception_v3 --batch 16 --gpu knl7250";
  if (!args->net) return sn_fail(err, SN_BAD_USAGE, "--net is missing; %s", example);
  if (!args->batch) return sn_fail(err, SN_BAD_USAGE, "--batch is missing; %s", example);
  if (!args->profile) return sn_fail(err, SN_BAD_USAGE, "--gpu is missing: a device made of cores; %s", example);
  if (args->output && sn_plot_check_path(args->output, err) != SN_OK) return err->code;
  sn_question q;
  answer a = {.args = args, .device = &q.device};
  if (open_device(&a, &q, err) == SN_OK) a.net = q.net = sn_question_net(args, err);
  if (a.net && a.net->recorded)
    sn_fail(err, SN_BAD_INPUT, "a recording does not say how its operations use several cores");
  if (a.net && err->code == SN_OK) ask(&a, err);
  sn_question_free(&q);
  return err->code;
}
