/* `snsim calibrate`: measures this machine while it trains a network, stores what was measured and prints how well the
 * formulas do once they are fitted to it. */
#include "exec/session/calibrate.h"
#include "base/arena.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "cli/options/out.h"
#include "cli/options/table.h"
#include "cli/train/train.h"
#include "db/calibrations.h"
#include "exec/machine/processors.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/device/neighbours.h"
#include "sim/policy/part.h"

#include <inttypes.h>
#include <math.h>

static const double MIB = 1048576.0;

/* All timings of an operator's pass together; of algorithms the fastest. */
typedef struct line {
  uint32_t shapes;
  double ms, residual; /* the latter as in sn_calibration */
} line;

static line add_up(const sn_calibration *c, sn_op op, sn_pass pass) {
  line sum = {0, 0, 0};
  for (uint32_t i = 0; i < c->n_neighbours; i++) {
    const sn_neighbour *t = &c->neighbours[i];
    if (t->op != op || t->pass != pass || !t->counts) continue;
    sum.shapes += t->kernel != SN_CONV_BACKWARD_FILTER; /* which the data's is counted for */
    sum.ms += t->ns / 1e6;
    sum.residual += t->ns / 1e6 * fabs(t->log_error);
  }
  sum.residual = sum.ms > 0 ? exp(sum.residual / sum.ms) : 1;
  return sum;
}

static sn_status print_table(const sn_calibration *c, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "operator", SN_TABLE_TEXT}, {"", "pass", SN_TABLE_TEXT}, {"", "shapes", 0}, {"sum of", "ms", 0},
      {"measured", "/ formula", 0},    {"residual", "x", 0}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (sn_op op = 0; op < SN_OP_COUNT; op++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      line sum = add_up(c, op, pass);
      if (sum.shapes == 0) continue;
      sn_table_cell(table, "%s", sn_op_table[op]->name);
      sn_table_cell(table, "%s", sn_pass_name(pass));
      sn_table_cell(table, "%" PRIu32, sum.shapes);
      sn_table_figure(table, true, sum.ms);
      bool algorithms = sn_op_table[op]->convolves && pass != SN_UPDATE && sn_calibration_by_algorithm(c);
      sn_table_cell(table, "%.2f", algorithms ? c->algorithm_factor[pass] : c->factor[op][pass]);
      sn_table_cell(table, "%.2f", sum.residual);
    }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* Timings of operations on teams of cores. */
static uint32_t count_teams(const sn_calibration *c) {
  uint32_t teams = 0;
  for (uint32_t i = 0; i < c->n_timings; i++) teams += c->timings[i].threads > 0;
  return teams;
}

static void print_device(const sn_calibration *c, FILE *out) {
  const sn_device *p = &c->profile;
  fprintf(out, "%s: %s; %s\n\n", c->name, c->hardware, c->libraries);
  fprintf(out, "  memory           %.0f MiB, of which %.1f MiB are taken by libraries", (double)p->memory_bytes / MIB,
          (double)p->context_bytes / MIB);
  if (p->kernel_bytes > 0)
    fprintf(out, ", %.2f by kernels of each shape of CONV, DECONV or FC", (double)p->kernel_bytes / MIB);
  fputs("\n", out);
  fprintf(out, "  convolutions     %.3f TFLOP/s\n", p->flops / 1e12);
  fprintf(out, "  moving steps     %.1f GB/s\n", p->memory_bandwidth / 1e9);
  fprintf(out, "  shortest step    %.1f us\n", (double)p->launch_ns / 1e3);
  fprintf(
      out,
      "  copies           %.1f GB/s out, %.1f GB/s in, %.1f GB/s both together; one block in %.2f us out, %.2f us in\n",
      c->out_bandwidth / 1e9, c->in_bandwidth / 1e9, c->together_bandwidth / 1e9, (double)c->out_latency_ns / 1e3,
      (double)c->in_latency_ns / 1e3);
  if (p->compute_speed > 0)
    fprintf(out, "  both at once     computation at %.2f of its speed, copies at %.2f of theirs\n", p->compute_speed,
            p->copy_speed);
  uint32_t teams = count_teams(c);
  fprintf(out, "  timings          %" PRIu32 " steps of different shapes\n", c->n_timings - teams);
  if (c->cores.count > 0)
    fprintf(out,
            "  teams            %" PRIu32 " times of operations on some of %" PRIu32
            " cores; interference %.2f; another team takes %.1f us\n",
            teams, c->cores.count, c->cores.neighbour, c->cores.resize_ns / 1e3);
  fputs("\n", out);
}

static void put_fit(sn_json_object *o, const sn_calibration *c) {
  const sn_device *p = &c->profile;
  sn_json_put_text(o, "name", c->name);
  sn_json_put_text(o, "backend", c->backend);
  sn_json_put_text(o, "device", c->hardware);
  sn_json_put_text(o, "libraries", c->libraries);
  sn_json_put_count(o, "memory_bytes", p->memory_bytes);
  sn_json_put_count(o, "context_bytes", p->context_bytes);
  sn_json_put_count(o, "kernel_bytes", p->kernel_bytes);
  sn_json_put_real(o, "flops", p->flops);
  sn_json_put_real(o, "memory_bytes_per_s", p->memory_bandwidth);
  sn_json_put_count(o, "launch_ns", (uint64_t)p->launch_ns);
  sn_json_put_real(o, "out_bytes_per_s", c->out_bandwidth);
  sn_json_put_real(o, "in_bytes_per_s", c->in_bandwidth);
  sn_json_put_real(o, "together_bytes_per_s", c->together_bandwidth);
  sn_json_put_count(o, "out_latency_ns", (uint64_t)c->out_latency_ns);
  sn_json_put_count(o, "in_latency_ns", (uint64_t)c->in_latency_ns);
  sn_json_put_bool(o, "shared_link", c->shared_link);
  sn_json_put_real(o, "compute_speed", p->compute_speed);
  sn_json_put_real(o, "copy_speed", p->copy_speed);
  sn_json_put_real(o, "residual", c->residual);
  sn_json_put_count(o, "cores", c->cores.count);
  sn_json_put_real(o, "interference", c->cores.neighbour);
  sn_json_put_real(o, "resize_ns", c->cores.resize_ns);
}

static sn_status print_json(const sn_calibration *c, FILE *out, sn_err *err) {
  sn_json_object head = sn_json_begin();
  put_fit(&head, c);
  sn_json_end(&head, "", true, ",\"timings\":[", out, err);
  for (uint32_t i = 0; i < c->n_timings && err->code == SN_OK; i++) {
    const sn_timing *t = &c->timings[i];
    sn_json_object o = sn_json_begin();
    sn_json_put_text(&o, "shape", t->shape);
    sn_json_put_text(&o, "pass", sn_pass_name((sn_pass)t->pass));
    if (t->kernel < SN_CONV_KERNELS) sn_json_put_text(&o, "algorithm", sn_conv_algo_name((sn_conv_algo)t->algo));
    sn_json_put_text(&o, "part", sn_step_part_name((sn_step_part)t->part));
    sn_json_put_count(&o, "threads", t->threads);
    sn_json_put_count(&o, "workspace_bytes", t->workspace_bytes);
    sn_json_put_count(&o, "ns", (uint64_t)t->ns);
    sn_json_put_count(&o, "spread_ns", (uint64_t)t->spread_ns);
    sn_json_put_count(&o, "formula_ns", (uint64_t)t->formula_ns);
    sn_json_put_count(&o, "samples", t->samples);
    sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
  }
  fputs("\n]}\n", out);
  return err->code;
}

static sn_status print(const sn_args *args, const sn_calibration *c, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json) {
    print_json(c, out.stream, err);
  } else {
    print_device(c, out.stream);
    print_table(c, &out, err);
    fprintf(out.stream,
            "\nA shape that was not measured is predicted from those next to it: within a factor of %.2f, as the "
            "measured ones\n"
            "predict each other (weighted by time).\n",
            c->residual);
  }
  return sn_out_close(&out, err);
}

static sn_status put(sn_store *store, void *what, sn_err *err) {
  return sn_store_put_calibration(store, what, err);
}

static sn_status keep(const sn_args *args, sn_calibration *c, sn_err *err) {
  char path[SN_STORED_PATH], name[4 * SN_DEVICE_NAME], db[SN_ARGS_DB_ROOM];
  if (sn_stored_write(args, put, c, path, err) == SN_OK)
    sn_out_say("stored in %s; snsim --gpu %s%s simulates this machine, snsim validate%s compares", path,
               sn_out_quote(c->name, name, sizeof name), sn_args_db_option(args, db), db);
  else if (sn_stored_rescue(args, put, c, path))
    sn_out_say("what was measured is kept in %s; snsim --gpu %s --db %s simulates this machine", path,
               sn_out_quote(c->name, name, sizeof name), sn_out_quote(path, db, sizeof db));
  return err->code;
}

/* The name of a known GPU for a CPU's measurements would make every later answer for that GPU wrong. */
static sn_status check_name(const sn_args *args, sn_err *err) {
  sn_device known;
  sn_err unknown = SN_ERR_INIT;
  if (!args->profile || args->backend != SN_EXEC_CPU || sn_device_load(args->profile, &known, &unknown) != SN_OK)
    return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--gpu %.60s: that is a GPU, and the back end is the CPU; choose another name, or none",
                 args->profile);
}

/* Each thread of a team has a processor of its own. */
static sn_status check_teams(const sn_args *args, sn_err *err) {
  uint32_t processors = sn_processors_count(), most = processors < SN_MAX_CORES ? processors : SN_MAX_CORES;
  if (args->n_teams == 0) return SN_OK;
  if (args->backend != SN_EXEC_CPU)
    return sn_fail(err, SN_BAD_USAGE,
                   "--threads with several counts measures teams of a CPU's processors; use --backend cpu");
  if (args->threads > most)
    return sn_fail(err, SN_BAD_USAGE,
                   "--threads ..,%" PRIu32 ": each thread of a team has a processor of its own, and this machine has "
                   "%" PRIu32 "; choose counts up to %" PRIu32,
                   args->threads, processors, most);
  if (args->threads >= SN_MIN_CORES) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--threads with several counts measures teams, of at least %d processors; give one count, or more",
                 SN_MIN_CORES);
}

typedef struct work {
  const sn_args *args;
  const sn_net *net;
  sn_arena *shared;           /* by the processes */
  sn_timed_algorithms *timed; /* NULL: the back end has no choice */
} work;

/* ---- convolution algorithms ---- */

static void time_apart(sn_apart *self, void *user, sn_err *err) {
  const work *w = user;
  sn_session_options options = sn_train_options(w->args);
  sn_train_watch watch = {.args = w->args, .apart = self, .n_strategies = 1};
  sn_train_attach(&watch, &options);
  options.calibration = NULL; /* times alone are wanted */
  sn_apart_progress(self, "timing convolution algorithms");
  sn_calibrate_algorithms(w->args->net, w->net, &options, w->timed, err);
}

static bool share_list(work *w) {
  enum { ALIGNMENT = 64 };
  size_t room = (size_t)sn_calibrate_room(w->net) + 1;
  w->shared = sn_arena_shared(room * sizeof *w->timed->list + sizeof *w->timed + ALIGNMENT);
  w->timed = w->shared ? sn_arena_alloc(w->shared, 1, sizeof *w->timed) : NULL;
  if (w->timed) w->timed->list = sn_arena_alloc(w->shared, room, sizeof *w->timed->list);
  return w->timed && w->timed->list;
}

/* An algorithm may take the device down with it: the next process goes on behind it, until one ends well or finds
 * nothing more. */
static sn_status time_algorithms(work *w, sn_err *err) {
  uint32_t before;
  if (!share_list(w)) return sn_fail_memory(err);
  do {
    if (err->code != SN_OK) sn_out_say("left out, as the device did not survive it: %s", err->text);
    *err = (sn_err)SN_ERR_INIT;
    before = w->timed->count;
    sn_apart_run(time_apart, w, err);
  } while (err->code == SN_BAD_DEVICE && w->timed->count > before && !sn_train_interrupted());
  return err->code;
}

/* ---- the whole ---- */

/* In a process of its own; what it measured is stored and printed there as well. */
static void calibrate_apart(sn_apart *self, void *user, sn_err *err) {
  const work *w = user;
  const sn_calibrate_wish wish = {.timed = w->timed, .teams = w->args->teams, .n_teams = w->args->n_teams};
  sn_session_options options = sn_train_options(w->args);
  sn_train_watch watch = {.args = w->args,
                          .apart = self,
                          .unit = sn_report_unit(w->net->values[0].dtype == SN_I64),
                          .samples = w->net->batch,
                          .n_strategies = sn_calibrate_plans(options.backend, w->args->teams, w->args->n_teams)};
  options.iterations = options.iterations < 2 ? 2 : options.iterations;
  sn_train_attach(&watch, &options);
  sn_calibration *c = sn_calibrate(sn_train_device_name(w->args), w->args->net, w->net, &options, &wish, err);
  sn_err unkept = SN_ERR_INIT; /* what was measured is shown all the same */
  if (c) keep(w->args, c, &unkept), print(w->args, c, err);
  if (err->code == SN_OK) *err = unkept;
  sn_calibration_free(c);
}

sn_status sn_cli_calibrate(const sn_args *args, sn_err *err) {
  if (!args->net || !args->batch)
    return sn_fail(err, SN_BAD_USAGE, "%s is missing; for instance: snsim calibrate --net resnet50 --batch 4",
                   args->net ? "--batch" : "--net");
  if (check_name(args, err) != SN_OK || check_teams(args, err) != SN_OK || sn_stored_check(args, err) != SN_OK)
    return err->code;
  sn_net *net = sn_question_net(args, err);
  if (!net) return err->code;
  sn_train_prepare();
  work w = {.args = args, .net = net};
  if (args->backend == SN_EXEC_CUDA) time_algorithms(&w, err);
  if (err->code == SN_OK && !sn_train_interrupted()) sn_apart_run(calibrate_apart, &w, err);
  sn_arena_free(w.shared);
  sn_net_free(net);
  sn_train_end(err);
  return err->code;
}
