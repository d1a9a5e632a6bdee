/* `snsim advise --gpus`: how several GPUs may share an iteration (sim/scale/ways.h), fastest first. */
#include "cli/capacity/advise_gpus.h"

#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/capacity/gpus.h"
#include "exec/machine/processors.h"
#include "models/zoo/zoo.h"
#include "sim/capacity/answer.h"
#include "sim/parallel/times.h"
#include "sim/scale/ways.h"

#include <inttypes.h>

enum { SHOWN = 24 /* rows of the table */, ACCUMULATE = 4 /* a column of it */ };

/* Whole nodes, and as many as were said. */
static sn_status check_nodes(const sn_question *q, sn_err *err) {
  uint32_t gpus = q->args->gpus, there = sn_cluster_gpus(&q->options.cluster);
  sn_cluster cluster;
  bool assumed;
  const sn_mesh one = {0};
  if (sn_mesh_cluster(&one, &q->options.cluster, &q->device, &cluster, &assumed, err) != SN_OK) return err->code;
  uint32_t each = cluster.gpus_per_node;
  if (!assumed && gpus > each && gpus % each != 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--gpus %" PRIu32 " do not fill nodes of %" PRIu32 "; %" PRIu32 " or %" PRIu32 " do", gpus, each,
                   gpus / each * each, (gpus / each + 1) * each);
  if (cluster.nodes > 1 && q->args->nodes == 0 && gpus > sn_cluster_gpus(&cluster))
    return sn_fail(err, SN_BAD_USAGE,
                   "--gpus %" PRIu32 ", and the %" PRIu32 " nodes of %s have %" PRIu32 "; add --nodes %" PRIu32
                   " where there are as many",
                   gpus, cluster.nodes, cluster.name, sn_cluster_gpus(&cluster), gpus / each);
  if (q->args->nodes > 0 && there != gpus)
    return sn_fail(err, SN_BAD_USAGE,
                   "--gpus %" PRIu32 ", and --nodes %" PRIu64 " of %s is %" PRIu32 "; leave --nodes out", gpus,
                   q->args->nodes, q->options.cluster.name, there);
  return SN_OK;
}

static sn_ways *find(const sn_question *q, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  sn_ways_wish wish = {.spec = q->args->net,
                       .image = q->args->image,
                       .net = q->net,
                       .device = &q->device,
                       .options = &q->options,
                       .gpus = q->args->gpus,
                       .global_batch = q->args->global_batch,
                       .strategies = strategies,
                       .threads = sn_processors_count()};
  if (check_nodes(q, err) != SN_OK) return NULL;
  if (sn_gpus_strategies(q, strategies, &wish.n_strategies, err) != SN_OK) return NULL;
  sn_out_progress("trying every split ...");
  sn_ways *ways = sn_ways_find(&wish, err);
  sn_out_progress(NULL);
  return ways;
}

/* As of one GPU, by the least with which it runs. */
static sn_verdict verdict_of(const sn_question *q, const sn_way *w) {
  if (!w->fits) return SN_VERDICT_NO;
  return sn_answer_verdict(w->result->least_device_bytes, q->device.memory_bytes);
}

/* The fastest that leaves 3 %; where none does, that fits. */
static const sn_way *best_of(const sn_question *q, const sn_ways *ways) {
  for (uint32_t i = 0; i < ways->n_all; i++)
    if (verdict_of(q, &ways->all[i]) == SN_VERDICT_YES) return &ways->all[i];
  return ways->n_all > 0 && ways->all[0].fits ? &ways->all[0] : NULL;
}

/* ---- table ---- */

static void print_heading(const sn_question *q, FILE *out) {
  sn_capacity_print_net("how to split", q->args->net, q->net->name, out);
  sn_capacity_print_batch(q->net, " a GPU at most", out);
  fprintf(out, ", over %" PRIu32 " GPUs", q->args->gpus);
  if (q->args->global_batch) fprintf(out, ", %" PRIu32 " an update", q->args->global_batch);
  sn_capacity_print_where(q, out);
  fputs("\n\n", out);
}

static void print_count(const sn_ways *ways, FILE *out) {
  uint32_t fit = 0, planned = 0, front = 0;
  for (uint32_t i = 0; i < ways->n_all; i++) {
    fit += ways->all[i].fits;
    planned += ways->all[i].result != NULL;
    front += ways->all[i].on_front;
  }
  fprintf(out,
          "%" PRIu32 " meshes, %" PRIu32 " ways with strategies and batches: %" PRIu32 " planned, %" PRIu32
          " fit, %" PRIu32 " on the front of memory and time\n",
          ways->meshes, ways->n_all, planned, fit, front);
  if (ways->uneven > 0)
    fprintf(out, "%" PRIu32 " mesh%s left out: no batch of %s divides what an update takes\n", ways->uneven,
            ways->uneven > 1 ? "es" : "", ways->uneven > 1 ? "theirs" : "its own");
  fputs("\n", out);
}

static bool is_shown(const sn_way *w) {
  return w->best || w->on_front;
}

static void print_row(const sn_question *q, const sn_way *w, bool best, sn_table *table) {
  static const char *const marks[SN_VERDICTS] = {"x", "t", ""};
  char name[SN_STRATEGY_TEXT];
  sn_table_cell(table, "%s%s", best ? "*" : marks[verdict_of(q, w)], w->on_front ? "o" : "");
  sn_table_cell(table, "%s", *w->mesh.text ? w->mesh.text : "1 GPU");
  sn_table_cell(table, "%s", sn_strategy_name(w->strategy, name));
  sn_table_cell(table, "%" PRIu32, w->batch);
  sn_table_cell(table, "%" PRIu32, w->accumulate);
  if (w->result) {
    sn_gpus_cells(table, q, &w->mesh, w->result);
  } else {
    sn_table_cell(table, "> %.1f", (double)w->device_bytes / (double)(UINT64_C(1) << 30));
    for (int i = 0; i < 5; i++) sn_table_cell(table, "-");
  }
  if (!w->fits) sn_table_dim(table);
}

static sn_status print_table(const sn_question *q, const sn_ways *ways, const sn_out *out, sn_err *err) {
  const sn_table_column columns[] = {{"", "", SN_TABLE_TEXT},
                                     {"", "--parallel", SN_TABLE_TEXT},
                                     {"", "strategy", SN_TABLE_TEXT},
                                     {"batch", "a GPU", SN_TABLE_NUMBER},
                                     {"batches", "an update", SN_TABLE_NUMBER},
                                     SN_GPUS_COLUMNS(q)};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  const sn_way *best = best_of(q, ways);
  uint32_t shown = 0, left = 0;
  for (uint32_t i = 0; i < ways->n_all; i++) {
    if (!is_shown(&ways->all[i])) continue;
    if (shown < SHOWN)
      print_row(q, &ways->all[i], best == &ways->all[i], table), shown++;
    else
      left++;
  }
  if (q->args->global_batch == 0) sn_table_hide(table, ACCUMULATE); /* the same for all */
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  if (left > 0) fprintf(out->stream, "%" PRIu32 " more: --json has all\n", left);
  return status;
}

/* By the least with which it runs, which the table's column is not. */
static void print_left(const sn_question *q, const sn_way *best, bool tight, FILE *out) {
  char left[SN_UNIT_TEXT], least[SN_UNIT_TEXT];
  uint64_t needed = best->result->least_device_bytes;
  sn_print_bytes(q->device.memory_bytes - needed, left);
  fprintf(out, tight ? "TIGHT: only %s a GPU are left, less than 3 %%" : "%s a GPU to spare", left);
  if (needed < best->device_bytes) fprintf(out, ", as %s will do", sn_print_bytes(needed, least));
  fputs("\n", out);
}

static sn_status print_best(const sn_question *q, const sn_ways *ways, FILE *out, sn_err *err) {
  const sn_way *best = best_of(q, ways);
  char name[SN_STRATEGY_TEXT];
  if (!best) return SN_OK;
  bool tight = verdict_of(q, best) == SN_VERDICT_TIGHT;
  fprintf(out, "fastest that fits%s: --parallel %s --strategy %s --batch %" PRIu32, tight ? "" : " and leaves 3 %",
          best->mesh.text, sn_strategy_name(best->strategy, name), best->batch);
  if (q->args->global_batch) fprintf(out, " --accumulate %" PRIu32, best->accumulate);
  fputs("\n", out);
  print_left(q, best, tight, out);
  sn_net *net = sn_net_load(q->args->net, best->batch, q->args->image, err);
  if (net) sn_gpus_print_calls(q, net, &best->mesh, best->strategy, best->accumulate, out, err);
  sn_net_free(net);
  fputs("\n", out);
  return err->code;
}

static void print_all(const sn_question *q, const sn_ways *ways, const sn_out *out, sn_err *err) {
  FILE *f = out->stream;
  print_heading(q, f);
  if (print_best(q, ways, f, err) != SN_OK) return;
  print_count(ways, f);
  if (print_table(q, ways, out, err) != SN_OK) return;
  fputs("\no: no other is as fast with less memory; t: tight, it leaves less than 3 %; x: too large, by its plan, or > "
        "by what no plan "
        "goes below\n"
        "each with its fastest batch; those on the front with that too\n",
        f);
  sn_gpus_print_notes(q->net, &q->options.iteration.mesh, f);
}

/* ---- JSON ---- */

static sn_status write_way(const sn_question *q, const sn_way *w, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(&o, "strategy", sn_strategy_name(w->strategy, name));
  sn_json_put_count(&o, "batch", w->batch);
  sn_json_put_count(&o, "accumulate", w->accumulate);
  sn_json_put_bool(&o, "fits", w->fits);
  sn_json_put_text(&o, "verdict", sn_verdict_name(verdict_of(q, w)));
  sn_json_put_count(&o, "needed_bytes", w->device_bytes);
  sn_json_put_bool(&o, "planned", w->result != NULL);
  sn_json_put_bool(&o, "best_of_mesh", w->best);
  sn_json_put_bool(&o, "on_front", w->on_front);
  sn_gpus_put(&o, q, &w->mesh, w->result);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_json(const sn_question *q, const sn_ways *ways, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", q->args->net);
  sn_json_put_count(&o, "batch", q->net->batch);
  sn_json_put_count(&o, "world", q->args->gpus);
  sn_json_put_text(&o, "cluster", q->options.cluster.name);
  sn_capacity_put_where(&o, q);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, ",\"ways\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < ways->n_all; i++)
    if (write_way(q, &ways->all[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

/* ---- the command ---- */

static sn_status print(const sn_question *q, const sn_ways *ways, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, NULL, q->args->color, err) != SN_OK) return err->code;
  if (q->args->json) {
    write_json(q, ways, out.stream, err);
  } else {
    sn_prose prose;
    print_all(q, ways, sn_prose_open(&prose, &out), err);
    sn_prose_close(&prose);
  }
  return sn_out_close(&out, err);
}

static sn_status judge(const sn_question *q, const sn_ways *ways, sn_err *err) {
  char needed[SN_UNIT_TEXT], usable[SN_UNIT_TEXT], name[SN_STRATEGY_TEXT];
  if (best_of(q, ways) || ways->n_all == 0) return SN_OK;
  const sn_way *least = &ways->all[0];
  return sn_fail(err, SN_NO_FIT,
                 "%s%s needed with --parallel %s and %s, %s on each of %" PRIu32
                 " %s; snsim fit --min gpus looks for how many do, or take GPUs of more memory",
                 least->result ? "" : "more than ", sn_print_bytes(least->device_bytes, needed), least->mesh.text,
                 sn_strategy_name(least->strategy, name), sn_print_bytes(q->device.memory_bytes, usable), q->args->gpus,
                 q->device.name);
}

sn_status sn_advise_gpus_check(const sn_args *args, sn_err *err) {
  const char *option = !sn_mesh_is_one(&args->options.iteration.mesh) || args->options.iteration.mesh.sought
                           ? "--parallel"
                       : args->front         ? "--front"
                       : args->output        ? "--output"
                       : args->samples > 0   ? "--samples"
                       : args->price != NULL ? "--price"
                                             : NULL;
  if (option)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s cannot be combined with --gpus, which looks for how to share; ask it of one split", option);
  if (args->global_batch > 0 && args->options.iteration.accumulate > 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--global-batch says how many batches each way accumulates; leave --accumulate out");
  if (args->options.iteration.inference)
    return sn_fail(err, SN_BAD_USAGE, "--gpus is of training; leave --inference out");
  return SN_OK;
}

sn_status sn_advise_gpus(const sn_question *q, sn_err *err) {
  sn_ways *ways = find(q, err);
  if (ways && print(q, ways, err) == SN_OK) judge(q, ways, err);
  sn_ways_free(ways);
  return err->code;
}
