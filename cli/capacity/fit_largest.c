/* `snsim fit --max batch|depth|image|sequence`: the largest that fits, strategy by strategy, and what stops the next.
 */
#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/capacity/fit.h"
#include "cli/frame/answer.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/capacity/fit.h"
#include "sim/capacity/remedy.h"

#include <inttypes.h>
#include <string.h>

typedef struct asked {
  const sn_args *args;
  sn_question question;
  sn_knob_spec spec;
  sn_knob knob;
  sn_net *recorded; /* what was read of a recording, of which the networks of all batches are; NULL: it is none */
  sn_fit *fit;
  char name[SN_NET_NAME]; /* what a file calls its network */
  sn_answer *answer;      /* of the largest batch; NULL: another knob is turned */
} asked;

static const char *knob_name(const asked *a) {
  return sn_knob_name(a->spec.kind);
}

/* ---- table ---- */

static void print_heading(const asked *a, FILE *out) {
  const char *depth = a->spec.kind == SN_KNOB_DEPTH ? sn_net_depth_name(a->args->net) : NULL;
  char what[40];
  snprintf(what, sizeof what, "largest %s%s%s%s of", knob_name(a), depth ? " (" : "", depth ? depth : "",
           depth ? ")" : "");
  sn_capacity_print_net(what, a->args->net, a->name, out);
  if (a->spec.kind != SN_KNOB_BATCH) fprintf(out, ", batch %" PRIu32, a->args->batch);
  if (a->knob.step > 1) fprintf(out, ", in steps of %" PRIu32, a->knob.step);
  if (a->args->sequence)
    fprintf(out, ", sequences of %" PRIu32 " tokens", a->args->sequence);
  else if (a->args->image)
    fprintf(out, ", images of %" PRIu32 "x%" PRIu32, sn_image_height(a->args->image), sn_image_width(a->args->image));
  sn_capacity_print_where(&a->question, out);
  fprintf(out, ", workspace %s\n\n", sn_workspace_name(a->args->options.workspace));
}

static void result_cells(sn_table *table, const sn_fit_answer *x) {
  sn_table_cell(table, x->result ? "%" PRIu32 : "-", x->search.value);
  sn_table_cell(table, x->result ? "%.1f" : "-", x->result ? (double)x->result->peak_device_bytes / SN_MIB : 0);
  sn_table_cell(table, x->has_next ? "%.1f" : "-", (double)x->next_device_bytes / SN_MIB);
  sn_table_cell(table, x->result && x->result->host_bytes ? "%.1f" : "-",
                x->result ? (double)x->result->host_bytes / SN_MIB : 0);
  sn_table_figure(table, x->result != NULL, x->result ? x->result->images_per_second : 0);
}

static bool uses_host(const sn_fit *fit) {
  bool any = false;
  for (uint32_t i = 0; i < fit->n_answers; i++)
    any = any || (fit->answers[i].result && fit->answers[i].result->host_bytes);
  return any;
}

static sn_status print_table(const asked *a, const sn_out *out, sn_err *err) {
  enum { STRATEGY, VALUE, DEVICE, NEXT, HOST, IMAGES, STOPS, COLUMNS };
  const sn_table_column columns[COLUMNS] = {
      [STRATEGY] = {"", "strategy", SN_TABLE_TEXT},
      [VALUE] = {"largest", knob_name(a), SN_TABLE_NUMBER | SN_TABLE_GAP},
      [DEVICE] = {"device", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
      [NEXT] = {"the next", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(1)},
      [HOST] = {"host", "MiB", SN_TABLE_NUMBER},
      [IMAGES] = {sn_capacity_unit(&a->question), "/s", SN_TABLE_NUMBER},
      [STOPS] = {"what stops", "the next", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
  };
  sn_table *table = sn_table_new(columns, COLUMNS);
  for (uint32_t i = 0; i < a->fit->n_answers; i++) {
    const sn_fit_answer *x = &a->fit->answers[i];
    char name[SN_STRATEGY_TEXT], binding[300];
    sn_table_cell(table, "%s", sn_strategy_name(x->strategy, name));
    result_cells(table, x);
    sn_table_cell(table, "%s", x->has_next ? sn_capacity_binding(&x->binding, binding, sizeof binding) : "see below");
    if (!x->result) sn_table_dim(table);
  }
  if (!uses_host(a->fit)) sn_table_hide(table, HOST);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* ---- what is said below it ---- */

static void print_doubts(const sn_fit_answer *x, const char *knob, FILE *out) {
  char name[SN_STRATEGY_TEXT];
  const sn_fit_search *s = &x->search;
  sn_strategy_name(x->strategy, name);
  if (!s->proved && !x->end)
    fprintf(out, "%s: above %s %" PRIu32 " not every value was tried%s\n", name, knob, s->tried_to,
            x->binding.cause == SN_CAUSE_HOST ? "; what a cache sends to the host need not grow evenly"
                                              : ", though the tensors alone would fit");
  if (s->misfits == 1)
    fprintf(out, "%s: not monotone: the smaller %s %" PRIu32 " does not fit\n", name, knob, s->misfit);
  else if (s->misfits)
    fprintf(out, "%s: not monotone: %" PRIu32 " smaller values of those tried do not fit, %s %" PRIu32 " the largest\n",
            name, s->misfits, knob, s->misfit);
  if (x->end) fprintf(out, "%s: no %s beyond %" PRIu32 " was tried: %s\n", name, knob, s->value, x->end);
}

static void print_proof(const asked *a, FILE *out) {
  uint32_t proved = 0, count = a->fit->n_answers;
  bool host = false;
  for (uint32_t i = 0; i < count; i++) {
    const sn_fit_answer *x = &a->fit->answers[i];
    proved += x->search.proved;
    host = host || (x->has_next && x->binding.cause == SN_CAUSE_HOST);
  }
  fputs("\n", out);
  if (proved)
    fprintf(out, "%s: every value above was looked at, up to one whose tensors alone do not fit%s\n",
            !sn_fit_best(a->fit) ? "nothing fits"
            : proved == count    ? "each is the largest"
                                 : "each is the largest, but for what is named below",
            host ? ", or that sends out more than the host has" : "");
  for (uint32_t i = 0; i < a->fit->n_answers; i++) print_doubts(&a->fit->answers[i], knob_name(a), out);
}

static sn_status print_stop(const asked *a, const sn_fit_answer *x, const sn_out *out, sn_err *err) {
  char name[SN_STRATEGY_TEXT], binding[300], tensors[SN_UNIT_TEXT];
  if (!x->has_next) return SN_OK;
  uint32_t next = sn_knob_next(&a->knob, x->result ? x->search.value : 0);
  fprintf(out->stream, "\n%s: %s %" PRIu32 " is stopped at step %" PRIu32 ", %s: %" PRIu32 " tensor%s, %s\n",
          sn_strategy_name(x->strategy, name), knob_name(a), next, x->binding.step,
          sn_table_clean(sn_capacity_binding(&x->binding, binding, sizeof binding)), x->binding.n_tensors,
          x->binding.n_tensors == 1 ? "" : "s", sn_print_bytes(x->binding.tensor_bytes, tensors));
  return sn_capacity_print_tensors(&x->binding, out, err);
}

static const sn_fit_answer *find_row(const asked *a, const char *strategy) {
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < a->fit->n_answers; i++)
    if (strcmp(sn_strategy_name(a->fit->answers[i].strategy, name), strategy) == 0) return &a->fit->answers[i];
  return NULL;
}

/* The batch of PyTorch's loop as it stands, and what training with it looks like. */
static sn_status print_answer(const asked *a, const sn_out *out, sn_err *err) {
  fprintf(out->stream, "\nbatch %" PRIu32 " with %s:\n\n", a->question.net->batch, a->answer->strategy);
  return sn_answer_print(a->answer, sn_capacity_unit(&a->question), "", out, err);
}

static void print_best(const asked *a, const sn_fit_answer *best, FILE *out) {
  char name[SN_STRATEGY_TEXT], host[SN_UNIT_TEXT], speed[SN_UNIT_TEXT];
  fprintf(out, "\nlargest: %s, %s %" PRIu32 ", %s %s/s", sn_strategy_name(best->strategy, name), knob_name(a),
          best->search.value, sn_print_digits(best->result->images_per_second, 3, speed),
          sn_capacity_unit(&a->question));
  if (best->result->host_bytes)
    fprintf(out, ", with %s of host memory%s", sn_print_bytes(best->result->host_bytes, host),
            best->result->shared.world > 1 ? " a GPU" : "");
  fputs("\n", out);
}

static sn_status print_all(const asked *a, const sn_out *out, sn_err *err) {
  const sn_fit_answer *best = sn_fit_best(a->fit);
  print_heading(a, out->stream);
  if (print_table(a, out, err) != SN_OK) return err->code;
  sn_capacity_print_times(&a->question, out->stream);
  print_proof(a, out->stream);
  bool one = a->answer && a->args->n_strategies == 0 && a->answer->runtime == SN_RUNTIME_PYTORCH;
  if (one && print_answer(a, out, err) != SN_OK) return err->code;
  if (one && best) best = find_row(a, a->answer->strategy);
  if (best && a->fit->n_answers > 1 && !one) print_best(a, best, out->stream);
  for (uint32_t i = 0; i < a->fit->n_answers; i++)
    if ((a->args->explain || (best && best == &a->fit->answers[i]) || a->fit->n_answers == 1) &&
        print_stop(a, &a->fit->answers[i], out, err) != SN_OK)
      return err->code;
  return SN_OK;
}

/* ---- JSON ---- */

static void put_result(sn_json_object *o, const sn_fit_answer *x) {
  sn_json_put_count(o, "answer", x->search.value);
  if (x->result)
    sn_json_put_count(o, "device_bytes", x->result->peak_device_bytes);
  else
    sn_json_put_null(o, "device_bytes");
  if (x->result)
    sn_json_put_count(o, "host_bytes", x->result->host_bytes);
  else
    sn_json_put_null(o, "host_bytes");
  if (x->has_next)
    sn_json_put_count(o, "next_device_bytes", x->next_device_bytes);
  else
    sn_json_put_null(o, "next_device_bytes");
  if (x->has_next)
    sn_json_put_count(o, "next_host_bytes", x->next_host_bytes);
  else
    sn_json_put_null(o, "next_host_bytes");
  sn_capacity_put_binding(o, x->has_next ? &x->binding : NULL);
  if (x->result)
    sn_json_put_real(o, "images_per_second", x->result->images_per_second);
  else
    sn_json_put_null(o, "images_per_second");
  sn_json_put_bool(o, "verified", x->verified);
}

static sn_status write_answer(const sn_fit_answer *x, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(&o, "strategy", sn_strategy_name(x->strategy, name));
  sn_json_put_plan(&o, x->strategy, x->result);
  put_result(&o, x);
  sn_json_put_bool(&o, "proved", x->search.proved);
  sn_json_put_count(&o, "tried_from", x->search.tried_from);
  sn_json_put_count(&o, "tried_to", x->search.tried_to);
  sn_json_put_count(&o, "misfits", x->search.misfits);
  if (x->search.misfits)
    sn_json_put_count(&o, "misfit", x->search.misfit);
  else
    sn_json_put_null(&o, "misfit");
  sn_json_put_count(&o, "plans", x->search.plans);
  if (x->end)
    sn_json_put_text(&o, "end", x->end);
  else
    sn_json_put_null(&o, "end");
  if (sn_json_end(&o, before, true, ",\"binding_tensors\":", out, err) != SN_OK ||
      sn_json_write_peak(x->binding.tensors, x->binding.n_tensors, out, err) != SN_OK)
    return err->code;
  fputs("}", out);
  return SN_OK;
}

static sn_status write_json(const asked *a, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", a->args->net);
  sn_capacity_put_where(&o, &a->question);
  sn_json_put_text(&o, "workspace", sn_workspace_name(a->args->options.workspace));
  sn_json_put_text(&o, "maximize", knob_name(a));
  sn_json_put_count(&o, "step", a->knob.step);
  if (a->spec.kind != SN_KNOB_BATCH) sn_json_put_count(&o, "batch", a->args->batch);
  if (sn_image_is_oblong(a->args->image)) {
    sn_json_put_count(&o, "image_height", sn_image_height(a->args->image));
    sn_json_put_count(&o, "image_width", sn_image_width(a->args->image));
  } else if (a->args->image) {
    sn_json_put_count(&o, "image", a->args->image);
  }
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, "", out, err) != SN_OK) return err->code;
  if (a->answer && sn_answer_put(a->answer, out, err) != SN_OK) return err->code;
  fputs(",\"results\":[", out);
  for (uint32_t i = 0; i < a->fit->n_answers; i++)
    if (write_answer(&a->fit->answers[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

/* ---- where nothing fits ---- */

/* "--strategy NAME (batch 3), ", the strategy that reaches furthest of those to try instead, or "". */
static sn_status try_strategies(const asked *a, char *text, size_t room, sn_err *err) {
  const sn_question *q = &a->question;
  sn_strategy others[SN_STRATEGY_DEFAULTS];
  char name[SN_STRATEGY_TEXT];
  *text = '\0';
  if (!a->args->n_strategies) return SN_OK;
  uint32_t count = sn_remedy_others(q->strategies, q->n_strategies, q->options.iteration, others);
  if (count == 0) return SN_OK;
  sn_fit *fit = sn_fit_largest(&a->knob, &q->device, others, count, &q->options, err);
  const sn_fit_answer *best = fit ? sn_fit_best(fit) : NULL;
  if (best)
    snprintf(text, room, "--strategy %s (%s %" PRIu32 "), ", sn_strategy_name(best->strategy, name), knob_name(a),
             best->search.value);
  sn_fit_free(fit);
  return err->code;
}

static sn_net *make_smaller(const void *user, uint32_t batch, sn_err *err) {
  const asked *a = user;
  const sn_args *args = a->args;
  if (a->spec.kind == SN_KNOB_DEPTH) return sn_net_load_depth(args->net, a->knob.low, batch, args->image, err);
  return sn_net_load(args->net, batch, a->knob.low, err);
}

/* "--batch N, ": the largest batch with which at least the least depth or image fits; or "". */
static sn_status try_batch(const asked *a, char *text, size_t room, sn_err *err) {
  const sn_knob knob = {.low = 1, .high = a->args->batch - 1, .make = make_smaller, .user = a};
  *text = '\0';
  if (a->spec.kind == SN_KNOB_BATCH || a->args->batch == 1) return SN_OK;
  sn_fit *fit = sn_fit_largest(&knob, &a->question.device, a->question.strategies, a->question.n_strategies,
                               &a->question.options, err);
  const sn_fit_answer *best = fit ? sn_fit_best(fit) : NULL;
  if (best) snprintf(text, room, "--batch %" PRIu32 ", ", best->search.value);
  sn_fit_free(fit);
  return err->code;
}

static sn_status fail_no_fit(const asked *a, sn_err *err) {
  char strategies[160], batch[40], name[SN_STRATEGY_TEXT];
  sn_net *net = a->knob.make(a->knob.user, a->knob.low, err);
  sn_memory *memory = net ? sn_fit_memory(net, &a->question.device, a->question.strategies, a->question.n_strategies,
                                          &a->question.options, err)
                          : NULL;
  if (memory && try_strategies(a, strategies, sizeof strategies, err) == SN_OK &&
      try_batch(a, batch, sizeof batch, err) == SN_OK) {
    const sn_memory_answer *least = sn_memory_best(memory);
    uint64_t bytes = sn_margin_around(a->question.args->margin, least->memory_bytes);
    if (least->memory_bytes == 0)
      sn_capacity_fail_host(&a->question, least->strategy, least->result->host_bytes, err);
    else if (least->memory_bytes <= a->question.device.memory_bytes)
      sn_fail(err, SN_NO_FIT, "not even %s %" PRIu32 " fits into the pool of --pool; try %s%s%sa larger one",
              knob_name(a), a->knob.low, strategies, batch, *strategies || *batch ? "or " : "");
    else
      sn_fail(err, SN_NO_FIT,
              "not even %s %" PRIu32
              ": %.3f MiB needed with %s, at %s %s, and %.3f MiB to plan with on %s; try %s%s%s--memory %" PRIu64 "MiB",
              knob_name(a), a->knob.low, (double)least->memory_bytes / SN_MIB, sn_strategy_name(least->strategy, name),
              least->binding.layer, least->binding.pass, (double)a->question.device.memory_bytes / SN_MIB,
              a->question.device.name, strategies, batch, *strategies || *batch ? "or " : "",
              bytes / 1048576 + (bytes % 1048576 > 0));
  }
  sn_memory_free(memory);
  sn_net_free(net);
  return err->code;
}

/* ---- the command ---- */

/* Says where the network of the largest image is another one than that of its own image. */
static void tell_image(const asked *a) {
  sn_err reason = SN_ERR_INIT; /* it was built once */
  const sn_fit_answer *best = sn_fit_best(a->fit);
  sn_args largest = *a->args;
  if (a->spec.kind != SN_KNOB_IMAGE || !best) return;
  largest.image = best->search.value;
  sn_net_free(sn_question_net(&largest, &reason));
}

/* A network is made for every value that is tried: large ones take seconds, and the search shows where it is. */
static sn_net *make_and_tell(const void *user, uint32_t value, sn_err *err) {
  const asked *a = user;
  char line[60];
  snprintf(line, sizeof line, "planning %s %" PRIu32 " ...", knob_name(a), value);
  sn_out_progress(line);
  sn_net *net = a->knob.make(a->knob.user, value, err);
  if (!net || sn_freeze_check(a->args->freeze, net, err) == SN_OK) return net;
  sn_net_free(net);
  return NULL;
}

/* The answer of simulate at the largest batch of the strategies whose verdict that is; of a batch of 1 where there is
 * none. */
static sn_status find_answer(asked *a, sn_err *err) {
  uint32_t largest = 0;
  sn_question *q = &a->question;
  if (a->spec.kind != SN_KNOB_BATCH || a->fit->n_answers == 0) return SN_OK;
  sn_strategy judged[SN_ARGS_STRATEGIES];
  uint32_t count = sn_question_judged(q, judged);
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < count; i++) {
    const sn_fit_answer *row = find_row(a, sn_strategy_name(judged[i], name));
    if (row && row->search.value > largest) largest = row->search.value;
  }
  q->net = a->knob.make(a->knob.user, largest ? largest : a->knob.low, err);
  if (q->net) a->answer = sn_question_answer(q, err);
  return err->code;
}

static sn_status answer(asked *a, sn_err *err) {
  sn_out out;
  sn_knob knob = a->knob;
  knob.make = make_and_tell;
  knob.user = a;
  a->fit = sn_fit_largest(&knob, &a->question.device, a->question.strategies, a->question.n_strategies,
                          &a->question.options, err);
  if (a->fit) find_answer(a, err);
  sn_out_progress(NULL);
  if (!a->fit || err->code != SN_OK || sn_out_open(&out, a->args->output, a->args->color, err) != SN_OK)
    return err->code;
  if (a->args->json) {
    write_json(a, out.stream, err);
  } else {
    sn_prose prose;
    print_all(a, sn_prose_open(&prose, &out), err);
    sn_prose_close(&prose);
  }
  if (sn_out_close(&out, err) != SN_OK) return err->code;
  tell_image(a);
  return sn_fit_best(a->fit) ? SN_OK : fail_no_fit(a, err);
}

static sn_status read_name(asked *a, sn_err *err) {
  sn_net *net = a->knob.make(a->knob.user, a->knob.low, err);
  if (net && sn_net_is_file(a->args->net)) snprintf(a->name, sizeof a->name, "%s", net->name);
  if (net) sn_question_settle_precision(&a->question, net);
  if (net) sn_question_drop_alike(&a->question, net);
  sn_net_free(net);
  return err->code;
}

/* A recording is read here, once. */
static sn_status open_knob(asked *a, sn_err *err) {
  const sn_args *args = a->args;
  if (a->spec.kind == SN_KNOB_BATCH && sn_net_is_recording(args->net)) {
    a->recorded = sn_net_load(args->net, 0, args->image, err);
    if (!a->recorded) return err->code;
    a->spec.like = a->recorded;
  }
  if (sn_knob_open(&a->spec, &a->knob, err) != SN_OK) return err->code;
  const sn_mesh *mesh = &a->question.options.iteration.mesh;
  if (a->spec.kind == SN_KNOB_SEQUENCE) sn_knob_keep_divided(&a->knob, mesh);
  return sn_knob_keep_staged(&a->knob, mesh, err);
}

sn_status sn_cli_fit_largest(const sn_args *args, sn_err *err) {
  asked a = {.args = args, .spec = {.net = args->net, .batch = args->batch, .image = args->image}};
  if (sn_knob_parse("--max", args->max, &a.spec.kind, err) != SN_OK ||
      sn_question_open(args, &a.question, err) != SN_OK)
    return err->code;
  if (open_knob(&a, err) == SN_OK && read_name(&a, err) == SN_OK) answer(&a, err);
  sn_answer_free(a.answer);
  sn_fit_free(a.fit);
  sn_question_free(&a.question);
  sn_net_free(a.recorded);
  return err->code;
}
