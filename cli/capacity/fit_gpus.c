/* `snsim fit --min gpus`: how few GPUs do, and what the next smaller number lacks. */
#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/capacity/fit.h"
#include "cli/capacity/gpus.h"
#include "cli/options/table.h"
#include "sim/capacity/answer.h"
#include "sim/parallel/times.h"
#include "sim/scale/worlds.h"

#include <inttypes.h>
#include <string.h>

typedef struct asked {
  sn_question q;
  sn_mesh scheme;
  sn_worlds *worlds;
} asked;

/* ---- asking ---- */

/* What --parallel says, fsdp unless it does. */
static sn_status take_scheme(asked *a, sn_err *err) {
  a->scheme = a->q.args->options.iteration.mesh;
  if (a->scheme.sought) return SN_OK;
  if (sn_mesh_is_one(&a->scheme)) return sn_mesh_parse_sought("fsdp", &a->scheme, err);
  return sn_fail(err, SN_BAD_USAGE,
                 "--min gpus looks for the number, and --parallel %s says it; leave one number out: fsdp, or dp=2,fsdp",
                 a->scheme.text);
}

/* How many there are to try: of a cluster whose nodes nobody counted as many as could be. */
static sn_status count_gpus(const asked *a, uint32_t *most, sn_err *err) {
  sn_cluster cluster;
  bool assumed;
  const sn_mesh one = {0};
  if (sn_mesh_cluster(&one, &a->q.options.cluster, &a->q.device, &cluster, &assumed, err) != SN_OK) return err->code;
  bool counted = a->q.args->nodes > 0 || cluster.nodes > 1 || cluster.nics == 0;
  *most = counted ? sn_cluster_gpus(&cluster) : SN_WORLDS_MOST_GPUS;
  if (*most > SN_MESH_MOST) *most = SN_MESH_MOST;
  return SN_OK;
}

static sn_status find(asked *a, sn_err *err) {
  sn_question *q = &a->q;
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  sn_worlds_wish wish = {.spec = q->args->net,
                         .net = q->net,
                         .device = &q->device,
                         .options = &q->options,
                         .scheme = &a->scheme,
                         .strategies = strategies};
  if (take_scheme(a, err) != SN_OK || count_gpus(a, &wish.most, err) != SN_OK ||
      sn_gpus_strategies(q, strategies, &wish.n_strategies, err) != SN_OK)
    return err->code;
  wish.lean = q->args->n_strategies == 0;
  if (wish.lean) wish.n_strategies = 1;
  sn_out_progress("planning ...");
  a->worlds = sn_worlds_find(&wish, err);
  sn_out_progress(NULL);
  return err->code;
}

/* ---- telling ---- */

static void print_heading(const asked *a, FILE *out) {
  const sn_question *q = &a->q;
  sn_capacity_print_net("fewest GPUs for", q->args->net, q->net->name, out);
  sn_capacity_print_batch(q->net, " a GPU", out);
  fprintf(out, ", shared by %s", a->scheme.text);
  sn_capacity_print_where(q, out);
  fputs("\n\n", out);
}

enum { STRATEGY = 1 };

static void print_row(const asked *a, const sn_world *w, sn_table *table) {
  char name[SN_STRATEGY_TEXT];
  sn_table_cell(table, "%" PRIu32, w->world);
  sn_table_cell(table, "%s", sn_strategy_name(w->strategy, name));
  sn_table_cell(table, w == a->worlds->least ? "yes *" : !w->result ? "-" : w->result->fits ? "yes" : "no");
  sn_gpus_cells(table, &a->q, &w->mesh, w->result);
  if (!w->result || !w->result->fits) sn_table_dim(table);
}

/* Why, without what could be asked for instead. */
static void print_refused(const sn_world *w, FILE *out) {
  if (*w->refused)
    fprintf(out, "\n%" PRIu32 " GPU%s: not asked, as %.*s\n", w->world, w->world > 1 ? "s" : "",
            (int)strcspn(w->refused, ";"), w->refused);
}

static sn_status print_table(const asked *a, const sn_out *out, sn_err *err) {
  const sn_table_column columns[] = {{"", "GPUs", SN_TABLE_NUMBER},
                                     {"", "strategy", SN_TABLE_TEXT | SN_TABLE_GAP},
                                     {"", "fits", SN_TABLE_TEXT},
                                     SN_GPUS_COLUMNS(&a->q)};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < a->worlds->n_all; i++) print_row(a, &a->worlds->all[i], table);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  for (uint32_t i = 0; i < a->worlds->n_all; i++) print_refused(&a->worlds->all[i], out->stream);
  return status;
}

static uint64_t need_of(const sn_result *r) {
  return r->least_device_bytes ? r->least_device_bytes : r->peak_device_bytes;
}

/* What stands between the next smaller number and the answer. */
static void print_below(const asked *a, FILE *out) {
  const sn_world *w = a->worlds->below;
  char lacks[SN_UNIT_TEXT], needs[SN_UNIT_TEXT], resident[SN_UNIT_TEXT], binding[300];
  if (!w) return;
  uint64_t need = need_of(w->result), memory = a->q.device.memory_bytes;
  fprintf(out, "%" PRIu32 " lack%s %s: %s a GPU are needed at %s, of which %s stay\n", w->world,
          w->world > 1 ? "" : "s", sn_print_bytes(need > memory ? need - memory : 0, lacks),
          sn_print_bytes(need, needs),
          sn_table_clean(sn_capacity_binding(&a->worlds->binding, binding, sizeof binding)),
          sn_print_bytes(a->worlds->binding.resident_bytes, resident));
}

/* As of one GPU, by the least with which it runs. */
static void print_tight(const asked *a, const sn_world *w, FILE *out) {
  char left[SN_UNIT_TEXT];
  uint64_t need = need_of(w->result), memory = a->q.device.memory_bytes;
  if (sn_answer_verdict(need, memory) == SN_VERDICT_TIGHT)
    fprintf(out, "TIGHT: only %s a GPU are left, less than 3 %%\n", sn_print_bytes(memory - need, left));
}

static void print_option(const asked *a, const char *before, const sn_world *w, bool strategy, FILE *out) {
  char name[SN_STRATEGY_TEXT];
  fprintf(out, "%s%" PRIu32 " GPU%s", before, w->world, w->world > 1 ? "s" : "");
  if (w->nodes > 1) fprintf(out, " on %" PRIu32 " nodes", w->nodes);
  if (*w->mesh.text) fprintf(out, ": --parallel %s", w->mesh.text);
  if (strategy) fprintf(out, "%s --strategy %s", *w->mesh.text ? "" : ":", sn_strategy_name(w->strategy, name));
  fputs("\n", out);
  print_tight(a, w, out);
}

static sn_status print_answer(const asked *a, FILE *out, sn_err *err) {
  const sn_worlds *w = a->worlds;
  if (w->least) print_option(a, "fewest: ", w->least, a->q.args->n_strategies > 1, out);
  if (w->leanest) print_option(a, "fewest where blocks run again: ", w->leanest, true, out);
  if (!w->least) fputs("none of them is enough as it stands\n", out);
  print_below(a, out);
  const sn_world *told = w->least ? w->least : w->leanest;
  return told ? sn_gpus_print_calls(&a->q, a->q.net, &told->mesh, told->strategy, a->q.options.iteration.accumulate,
                                    out, err)
              : SN_OK;
}

static sn_status print_all(const asked *a, const sn_out *out, sn_err *err) {
  print_heading(a, out->stream);
  if (print_answer(a, out->stream, err) != SN_OK) return err->code;
  fputs("\n", out->stream);
  if (print_table(a, out, err) != SN_OK) return err->code;
  fputs("\n", out->stream);
  sn_gpus_print_notes(a->q.net, &a->scheme, out->stream);
  return SN_OK;
}

/* ---- JSON ---- */

static sn_status write_world(const asked *a, const sn_world *w, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_count(&o, "world", w->world);
  sn_json_put_count(&o, "nodes", w->nodes);
  sn_json_put_text(&o, "strategy", sn_strategy_name(w->strategy, name));
  sn_json_put_bool(&o, "fits", w->result && w->result->fits);
  if (*w->refused) sn_json_put_text(&o, "refused", w->refused);
  sn_gpus_put(&o, &a->q, &w->mesh, w->result);
  if (w->result) sn_json_put_count(&o, "least_device_bytes", w->result->least_device_bytes);
  return sn_json_end(&o, before, false, "", out, err);
}

static void put_world(sn_json_object *o, const char *key, const sn_world *w) {
  if (w)
    sn_json_put_count(o, key, w->world);
  else
    sn_json_put_null(o, key);
}

static sn_status write_json(const asked *a, FILE *out, sn_err *err) {
  const sn_worlds *w = a->worlds;
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", a->q.args->net);
  sn_capacity_put_where(&o, &a->q);
  sn_json_put_text(&o, "cluster", a->q.options.cluster.name);
  sn_json_put_text(&o, "minimize", "gpus");
  sn_json_put_text(&o, "parallel", a->scheme.text);
  sn_json_put_count(&o, "batch", a->q.net->batch);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  put_world(&o, "answer", w->least);
  put_world(&o, "leanest", w->leanest);
  put_world(&o, "below", w->below);
  sn_capacity_put_binding(&o, w->below ? &w->binding : NULL);
  if (sn_json_end(&o, "", true, ",\"results\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < w->n_all; i++)
    if (write_world(a, &w->all[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

static sn_status print(const asked *a, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, a->q.args->output, a->q.args->color, err) != SN_OK) return err->code;
  if (a->q.args->json) {
    write_json(a, out.stream, err);
  } else {
    sn_prose prose;
    print_all(a, sn_prose_open(&prose, &out), err);
    sn_prose_close(&prose);
  }
  return sn_out_close(&out, err);
}

/* What may do where no number of GPUs does. */
static void tell_instead(const asked *a, uint32_t world, char *text, size_t room) {
  const sn_mesh *scheme = &a->scheme;
  const bool tp = sn_mesh_size(scheme, SN_MESH_TP) > 1;
  const char *smaller = a->q.net->batch > 1 ? "a smaller --batch, or " : "";
  if (scheme->sought == 1 + SN_MESH_PP && !tp)
    snprintf(text, room, "%s--parallel tp=8,pp, which divides blocks, too", smaller);
  else if (scheme->sought == 1 + SN_MESH_DP)
    snprintf(text, room, "%s--parallel fsdp, which shares states", smaller);
  else
    snprintf(text, room, "%ssnsim advise --gpus %" PRIu32 ", which tries other splits, or GPUs of more memory", smaller,
             world);
}

/* Nothing fits: the largest number that was tried lacks the least. */
static sn_status judge(const asked *a, sn_err *err) {
  const sn_worlds *w = a->worlds;
  char needed[SN_UNIT_TEXT], usable[SN_UNIT_TEXT], instead[120];
  if (w->least || w->leanest || !w->below) return SN_OK;
  tell_instead(a, w->below->world, instead, sizeof instead);
  return sn_fail(err, SN_NO_FIT, "%s needed with %s, %s on each of %" PRIu32 " %s; try %s",
                 sn_print_bytes(need_of(w->below->result), needed), w->below->result->strategy,
                 sn_print_bytes(a->q.device.memory_bytes, usable), w->below->world, a->q.device.name, instead);
}

sn_status sn_cli_fit_gpus(const sn_args *args, sn_err *err) {
  asked a = {.worlds = NULL};
  if (sn_question_load(args, &a.q, err) != SN_OK) return err->code;
  if (find(&a, err) == SN_OK && print(&a, err) == SN_OK) judge(&a, err);
  sn_worlds_free(a.worlds);
  sn_question_free(&a.q);
  return err->code;
}
