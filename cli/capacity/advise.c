/* `snsim advise`: which combination of strategy and workspace is the cheapest that fits, what the alternatives are, and
 * what each step towards less memory saves and costs. */
#include "sim/capacity/advise.h"
#include "base/arena.h"
#include "base/units.h"
#include "cli/capacity/advise_front.h"
#include "cli/capacity/advise_gpus.h"
#include "cli/capacity/advise_splits.h"
#include "cli/capacity/capacity.h"
#include "cli/frame/answer.h"
#include "cli/options/table.h"
#include "plots/front.h"
#include "plots/plot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct adviser {
  const sn_args *args;
  bool for_pytorch; /* asked for, or all there is for such training */
  sn_question question;
  sn_advice *advice;
  sn_splits *splits;
  sn_answer *answer;
} adviser;

static void add_pytorch(sn_question *q) {
  for (uint32_t i = 0; i < SN_STRATEGY_PYTORCH; i++) sn_question_add(q, sn_strategy_framework(i));
  sn_question_add(
      q, (sn_strategy){.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_OPTIMAL, .dialect = SN_DIALECT_PYTORCH});
}

/* Those asked for, else all that there are to try. */
static void choose_strategies(adviser *a) {
  sn_question *q = &a->question;
  if (a->args->n_strategies) return;
  q->n_strategies = 0;
  if (a->for_pytorch) {
    add_pytorch(q);
    return;
  }
  sn_strategy all[SN_ADVISE_STRATEGIES + SN_ADVISE_CORUN];
  uint32_t count = sn_advise_all(q->net, &q->device, &q->options, all);
  for (uint32_t i = 0; i < count; i++) sn_question_add(q, all[i]);
}

/* Which algorithms PyTorch has is cuDNN's choice. */
static const char *workspace_name(const sn_combination *c) {
  return sn_dialect_of(c->strategy.dialect)->eager ? "cuDNN's" : sn_workspace_name(c->workspace);
}

static const sn_combination *front(const adviser *a, uint32_t i) {
  return &a->advice->all[a->advice->front[i]];
}

/* A step along the front: what `to` saves against `from`, and what it costs. */
typedef struct step {
  uint64_t saved_bytes;
  int64_t paid_ns;
  double mib_per_ms;
} step;

static step step_between(const sn_combination *from, const sn_combination *to) {
  step s = {.saved_bytes = from->result->peak_device_bytes - to->result->peak_device_bytes,
            .paid_ns = to->result->iteration_ns - from->result->iteration_ns};
  s.mib_per_ms = (double)s.saved_bytes / SN_MIB / ((double)s.paid_ns / 1e6);
  return s;
}

static uint64_t over_bound(const sn_combination *c) {
  return c->result->peak_device_bytes - c->bound_bytes;
}

/* ---- table ---- */

static void print_heading(const adviser *a, FILE *out) {
  sn_capacity_print_net("advice for", a->args->net, a->question.net->name, out);
  sn_capacity_print_batch(a->question.net, "", out);
  sn_capacity_print_where(&a->question, out);
  fputs("\n\n", out);
}

static void print_count(const adviser *a, FILE *out) {
  uint32_t fit = 0;
  for (uint32_t i = 0; i < a->advice->n_all; i++) fit += a->advice->all[i].result->fits;
  fprintf(out,
          "%" PRIu32 " combinations of strategy, workspace and memory: %" PRIu32 " fit, %" PRIu32
          " are on the front\n\n",
          a->advice->n_all, fit, a->advice->n_front);
}

static void step_cells(sn_table *table, const adviser *a, uint32_t i) {
  if (i == 0) {
    for (int empty = 0; empty < 3; empty++) sn_table_cell(table, "-");
    return;
  }
  step s = step_between(front(a, i - 1), front(a, i));
  sn_table_cell(table, "%.1f", (double)s.saved_bytes / SN_MIB);
  sn_table_fine_figure(table, (double)s.paid_ns / 1e6);
  sn_table_fine_figure(table, s.mib_per_ms);
}

enum { GIVEN = 3, HOST = 6 }; /* columns */

static bool any_limited(const adviser *a) {
  for (uint32_t i = 0; i < a->advice->n_front; i++)
    if (front(a, i)->limited) return true;
  return false;
}

static sn_status print_table(const adviser *a, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "", SN_TABLE_TEXT},
      {"", "strategy", SN_TABLE_TEXT},
      {"work-", "space", SN_TABLE_TEXT},
      {"given", "MiB", SN_TABLE_NUMBER},
      {"device", "MiB", SN_TABLE_NUMBER},
      {"over", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(3)},
      {"host", "MiB", SN_TABLE_NUMBER},
      {"iter", "ms", SN_TABLE_NUMBER},
      {"saves", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(2)},
      {"costs", "ms", SN_TABLE_NUMBER | SN_TABLE_SPARE(2)},
      {"MiB", "per ms", SN_TABLE_NUMBER | SN_TABLE_SPARE(1)},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < a->advice->n_front; i++) {
    const sn_combination *c = front(a, i);
    char name[SN_STRATEGY_TEXT];
    sn_table_cell(table, c == a->advice->best && !a->for_pytorch ? "*" : c->result->fits ? "" : "x");
    sn_table_cell(table, "%s", sn_strategy_name(c->strategy, name));
    sn_table_cell(table, "%s", workspace_name(c));
    sn_table_cell(table, c->limited ? "%.1f" : "-", (double)c->memory_bytes / SN_MIB);
    sn_table_cell(table, "%.1f", (double)c->result->peak_device_bytes / SN_MIB);
    sn_table_cell(table, "%.1f", (double)over_bound(c) / SN_MIB);
    sn_table_cell(table, c->result->host_bytes ? "%.1f" : "-", (double)c->result->host_bytes / SN_MIB);
    sn_table_fine_figure(table, (double)c->result->iteration_ns / 1e6);
    step_cells(table, a, i);
    if (!c->result->fits) sn_table_dim(table);
  }
  bool host = false;
  for (uint32_t i = 0; i < a->advice->n_front; i++) host = host || front(a, i)->result->host_bytes;
  if (!host) sn_table_hide(table, HOST);
  if (!any_limited(a)) sn_table_hide(table, GIVEN);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static void print_legend(const adviser *a, FILE *out) {
  char bound[SN_UNIT_TEXT];
  fprintf(out, "\n%s%s%ssaves, costs: against the row above\n",
          a->advice->best && !a->for_pytorch ? "* the cheapest that fits; " : "",
          front(a, 0)->result->fits ? "" : "x too large: its time where there is the memory; ",
          any_limited(a) ? "given: the --memory with which it takes so little, - all there is; " : "");
  fprintf(out, "over: beyond the %s that every plan takes: what is resident, and the tensors of the largest step\n",
          sn_print_bytes(front(a, 0)->bound_bytes, bound));
}

/* " --memory 1965MiB", or in bytes, where it is given less than there is; "" else. */
static const char *memory_option(const sn_combination *c, char *text, size_t room) {
  bool whole = c->memory_bytes % (uint64_t)SN_MIB == 0;
  text[0] = '\0';
  if (c->limited)
    snprintf(text, room, " --memory %" PRIu64 "%s", whole ? c->memory_bytes >> 20 : c->memory_bytes,
             whole ? "MiB" : "B");
  return text;
}

static void print_best(const adviser *a, FILE *out) {
  const sn_combination *best = a->advice->best;
  char name[SN_STRATEGY_TEXT], left[SN_UNIT_TEXT], speed[SN_UNIT_TEXT], memory[40];
  if (!best) return;
  fprintf(out, "\ncheapest that fits: --strategy %s", sn_strategy_name(best->strategy, name));
  if (!sn_dialect_of(best->strategy.dialect)->eager)
    fprintf(out, " --workspace %s%s", sn_workspace_name(best->workspace), memory_option(best, memory, sizeof memory));
  fputs("\n", out);
  fprintf(out, "%s %s/s, %s to spare", sn_print_digits(best->result->images_per_second, 3, speed),
          sn_capacity_unit(&a->question),
          sn_print_bytes(a->question.device.memory_bytes - best->result->peak_device_bytes, left));
  if (a->question.margin_bytes)
    fprintf(out, " beside the margin of %s\n", sn_print_bytes(a->question.margin_bytes, left));
  else
    fputs("; no margin: --margin 5% keeps memory free for what frameworks add\n", out);
}

/* ---- JSON ---- */

static void put_combination(sn_json_object *o, const sn_combination *c) {
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(o, "strategy", sn_strategy_name(c->strategy, name));
  sn_json_put_plan(o, c->strategy, c->result);
  sn_json_put_text(o, "workspace", sn_workspace_name(c->workspace));
  sn_json_put_count(o, "memory_bytes", c->memory_bytes);
  sn_json_put_bool(o, "fits", c->result->fits);
  sn_json_put_count(o, "device_bytes", c->result->peak_device_bytes);
  sn_json_put_count(o, "lower_bound_bytes", c->bound_bytes);
  sn_json_put_count(o, "over_bound_bytes", over_bound(c));
  sn_json_put_count(o, "host_bytes", c->result->host_bytes);
  sn_json_put_time(o, "iteration_ns", c->result->iteration_ns);
  sn_json_put_real(o, "images_per_second", c->result->images_per_second);
}

static sn_status write_front(const adviser *a, uint32_t i, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  put_combination(&o, front(a, i));
  if (i == 0) {
    sn_json_put_null(&o, "saved_bytes");
    sn_json_put_null(&o, "paid_ns");
    sn_json_put_null(&o, "saved_mib_per_ms");
  } else {
    step s = step_between(front(a, i - 1), front(a, i));
    sn_json_put_count(&o, "saved_bytes", s.saved_bytes);
    sn_json_put_time(&o, "paid_ns", s.paid_ns);
    sn_json_put_real(&o, "saved_mib_per_ms", s.mib_per_ms);
  }
  return sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
}

static sn_status write_evaluated(const sn_combination *c, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  put_combination(&o, c);
  sn_json_put_bool(&o, "on_front", c->on_front);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_best(const adviser *a, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  if (!a->advice->best) {
    fputs(",\"advice\":null", out);
    return sn_json_end(&o, "", true, "", stderr, err);
  }
  put_combination(&o, a->advice->best);
  return sn_json_end(&o, ",\"advice\":", false, "", out, err);
}

static sn_pace pace_of(const adviser *a) {
  return sn_answer_pace(a->answer, NULL, sn_mesh_world(&a->question.options.iteration.mesh));
}

static sn_status write_json(const adviser *a, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", a->args->net);
  sn_json_put_count(&o, "batch", a->question.net->batch);
  sn_capacity_put_where(&o, &a->question);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, "", out, err) != SN_OK || sn_answer_put(a->answer, out, err) != SN_OK ||
      sn_epoch_write(&a->question.epoch, a->question.device.name, pace_of(a), out, err) != SN_OK ||
      write_best(a, out, err) != SN_OK)
    return err->code;
  fputs(",\"front\":[", out);
  for (uint32_t i = 0; i < a->advice->n_front; i++)
    if (write_front(a, i, out, err) != SN_OK) return err->code;
  fputs("\n],\"evaluated\":[", out);
  for (uint32_t i = 0; i < a->advice->n_all; i++)
    if (write_evaluated(&a->advice->all[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]", out);
  if (sn_advise_write_splits(a->splits, &a->question, front(a, 0)->result->iteration_ns, out, err) == SN_OK)
    fputs("}\n", out);
  return err->code;
}

/* ---- picture ---- */

static sn_front_point point_of(const adviser *a, const sn_combination *c) {
  return (sn_front_point){.bytes = c->result->peak_device_bytes,
                          .ns = c->result->iteration_ns,
                          .fits = c->result->fits,
                          .best = c == a->advice->best};
}

static const char *name_point(const sn_combination *c, sn_arena *arena) {
  char name[SN_STRATEGY_TEXT], given[40] = "";
  if (c->limited) snprintf(given, sizeof given, ", given %.0f MiB", (double)c->memory_bytes / SN_MIB);
  return sn_arena_print(arena, "%s, %s%s", sn_strategy_name(c->strategy, name), workspace_name(c), given);
}

static sn_status draw(const adviser *a, sn_err *err) {
  sn_front_point *points = sn_arena_alloc(a->advice->arena, a->advice->n_all, sizeof *points);
  sn_front_point *others = sn_arena_alloc(a->advice->arena, a->advice->n_all, sizeof *others);
  if (!points || !others) return sn_fail_memory(err);
  sn_front_chart chart = {.device = a->question.device.name,
                          .limit_bytes = a->question.device.memory_bytes,
                          .front = points,
                          .others = others,
                          .n_front = a->advice->n_front};
  for (uint32_t i = 0; i < a->advice->n_front; i++) {
    points[i] = point_of(a, front(a, i));
    points[i].name = name_point(front(a, i), a->advice->arena);
    if (!points[i].name) return sn_fail_memory(err);
  }
  for (uint32_t i = 0; i < a->advice->n_all; i++)
    if (!a->advice->all[i].on_front) others[chart.n_others++] = point_of(a, &a->advice->all[i]);
  chart.title = sn_arena_print(a->advice->arena, "%s, batch %" PRIu32 ", on %s: memory and time by strategy, workspace",
                               a->args->net, a->question.net->batch, a->question.device.name);
  if (!chart.title) return sn_fail_memory(err);
  if (sn_plot_front(&chart, a->args->output, err) == SN_OK) sn_out_say("%s written", a->args->output);
  return err->code;
}

/* ---- the command ---- */

/* In the words of every command where nothing fits. */
static sn_status fail_no_fit(const adviser *a, sn_err *err) {
  const sn_question *q = &a->question;
  const sn_result *results[SN_ARGS_STRATEGIES];
  uint32_t known = 0;
  for (uint32_t i = 0; i < a->advice->n_all;
       i++) { /* of each strategy there is one with all memory and this workspace */
    const sn_combination *c = &a->advice->all[i];
    if (c->workspace == q->options.workspace && !c->limited) results[known++] = c->result;
  }
  if (sn_question_advise(q, known == q->n_strategies ? results : NULL, err) == SN_NO_FIT)
    sn_err_prefix(err, "none of %" PRIu32 " combinations", a->advice->n_all);
  return err->code;
}

/* The verdict and what to change, as simulate says it. */
static sn_status print_answer(const adviser *a, const sn_out *out, sn_err *err) {
  const sn_question *q = &a->question;
  char epoch[SN_EPOCH_TEXT];
  sn_epoch_line(&q->epoch, q->device.name, pace_of(a), sn_capacity_unit(q), epoch);
  if (sn_answer_print(a->answer, sn_capacity_unit(q), epoch, out, err) == SN_OK) fputs("\n", out->stream);
  return err->code;
}

/* SuperNeurons' runtime does what its best strategy says; in PyTorch the answer above is what to do, and what stands
 * below it shows what else there is. */
static void print_all(const adviser *a, const sn_out *out, sn_err *err) {
  sn_prose prose;
  const sn_out *p = sn_prose_open(&prose, out);
  print_heading(a, p->stream);
  if (a->for_pytorch) print_answer(a, p, err);
  print_count(a, p->stream);
  if (err->code == SN_OK && print_table(a, p, err) == SN_OK) {
    sn_capacity_print_times(&a->question, p->stream);
    print_legend(a, p->stream);
  }
  if (!a->for_pytorch) print_best(a, p->stream);
  if (err->code == SN_OK && !a->for_pytorch)
    sn_advise_print_splits(a->splits, &a->question, front(a, 0)->result->iteration_ns, p, err);
  sn_prose_close(&prose);
}

static sn_status answer(adviser *a, sn_err *err) {
  sn_out out;
  const sn_question *q = &a->question;
  sn_out_progress("trying every combination ...");
  choose_strategies(a);
  a->advice = sn_advise(q->net, &q->device, q->strategies, q->n_strategies, &q->options, err);
  if (a->advice) a->splits = sn_advise_splits(q, err);
  if (a->splits) a->answer = sn_question_answer(q, err);
  sn_out_progress(NULL);
  if (!a->advice || !a->answer || sn_out_open(&out, NULL, a->args->color, err) != SN_OK) return err->code;
  if (a->args->json) {
    write_json(a, out.stream, err);
  } else {
    print_all(a, &out, err);
  }
  if (sn_out_close(&out, err) != SN_OK || (a->args->output && draw(a, err) != SN_OK)) return err->code;
  if (a->for_pytorch) return sn_answer_fail(a->answer, q, err);
  return a->advice->best ? SN_OK : fail_no_fit(a, err);
}

/* What goes together. */
static sn_status check(const sn_args *args, sn_err *err) {
  if (args->gpus > 0) return sn_advise_gpus_check(args, err);
  if (args->global_batch > 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--global-batch is of all GPUs of --gpus N; of one it is --batch and --accumulate");
  if (args->front &&
      (args->runtime == SN_RUNTIME_PYTORCH || args->n_strategies > 0 || args->options.iteration.inference))
    return sn_fail(err, SN_BAD_USAGE,
                   "--front compares rules of training that it chooses; --for, --strategy and --inference "
                   "cannot be combined with it");
  if (args->front && sn_question_is_of_pytorch(args))
    return sn_fail(
        err, SN_BAD_USAGE,
        "--front compares strategies that train every layer, without autocast; without it, advise knows what PyTorch "
        "can do");
  return args->output ? sn_plot_check_path(args->output, err) : SN_OK;
}

sn_status sn_cli_advise_check(const sn_args *args, sn_err *err) {
  return check(args, err) == SN_OK ? sn_question_check_complete(args, err) : err->code;
}

sn_status sn_cli_advise(const sn_args *args, sn_err *err) {
  bool for_pytorch = args->n_strategies > 0
                         ? sn_runtime_of_all(args->strategies, args->n_strategies) == SN_RUNTIME_PYTORCH
                         : !args->front && args->runtime != SN_RUNTIME_SUPERNEURONS;
  adviser a = {.args = args, .for_pytorch = for_pytorch};
  if (check(args, err) != SN_OK || sn_question_load(args, &a.question, err) != SN_OK) return err->code;
  if (args->gpus > 0)
    sn_advise_gpus(&a.question, err);
  else if (args->front)
    sn_advise_front(&a.question, err);
  else
    answer(&a, err);
  sn_answer_free(a.answer);
  sn_splits_free(a.splits);
  sn_advice_free(a.advice);
  sn_question_free(&a.question);
  return err->code;
}
