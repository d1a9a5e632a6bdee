/* `snsim advise --front`; see the header. */
#include "cli/capacity/advise_front.h"

#include "base/arena.h"
#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/frame/json.h"
#include "cli/options/table.h"
#include "plots/front.h"
#include "sim/ask/optimum.h"

#include <inttypes.h>

/* What another strategy takes in a rule's memory, and how much longer the rule takes, in percent. */
static void compare_cells(sn_table *table, const sn_result *rule, const sn_result *other) {
  if (!other) {
    sn_table_cell(table, "-");
    sn_table_cell(table, "-");
    return;
  }
  sn_table_fine_figure(table, (double)other->iteration_ns / 1e6);
  sn_table_cell(table, "%+.2f", ((double)rule->iteration_ns / (double)other->iteration_ns - 1) * 100);
}

/* ---- table ---- */

static sn_status print_rules(const sn_optimum *o, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "strategy", SN_TABLE_TEXT},        {"device", "MiB", SN_TABLE_NUMBER}, {"host", "MiB", SN_TABLE_NUMBER},
      {"iter", "ms", SN_TABLE_NUMBER},        {"optimum", "ms", SN_TABLE_NUMBER}, {"", "slower %", SN_TABLE_NUMBER},
      {"with copies", "ms", SN_TABLE_NUMBER}, {"", "slower %", SN_TABLE_NUMBER},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < SN_OPTIMUM_RULES; i++) {
    const sn_optimum_rule *rule = &o->rules[i];
    char name[SN_STRATEGY_TEXT];
    sn_table_cell(table, "%s", sn_strategy_name(rule->strategy, name));
    sn_table_cell(table, "%.1f", (double)rule->result->peak_device_bytes / SN_MIB);
    sn_table_cell(table, rule->result->host_bytes ? "%.1f" : "-", (double)rule->result->host_bytes / SN_MIB);
    sn_table_fine_figure(table, (double)rule->result->iteration_ns / 1e6);
    compare_cells(table, rule->result, rule->best);
    compare_cells(table, rule->result, rule->sent);
    if (!rule->result->fits) sn_table_dim(table);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static sn_status print_line(const sn_optimum_line *line, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"device", "MiB", SN_TABLE_NUMBER},
      {"iter", "ms", SN_TABLE_NUMBER},
      {"extra", "fwd", SN_TABLE_NUMBER},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < line->count; i++) {
    sn_table_cell(table, "%.1f", (double)line->points[i]->peak_device_bytes / SN_MIB);
    sn_table_fine_figure(table, (double)line->points[i]->iteration_ns / 1e6);
    sn_table_cell(table, "%" PRIu32, line->points[i]->recomputed_layers);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static sn_status print_tables(const sn_question *q, const sn_optimum *o, const sn_out *out, sn_err *err) {
  sn_capacity_print_net("front of", q->args->net, q->net->name, out->stream);
  sn_capacity_print_batch(q->net, "", out->stream);
  sn_capacity_print_where(q, out->stream);
  fputs("\nrules, without workspaces; the optimum of re-running in the same memory; and with copies, which is\n"
        "--strategy liveness+offload+recompute=optimal --workspace none\n\n",
        out->stream);
  if (print_rules(o, out, err) != SN_OK) return err->code;
  fputs("\noptimum: --strategy liveness+recompute=optimal --workspace none --memory SIZE\n\n", out->stream);
  if (print_line(&o->optimal, out, err) != SN_OK) return err->code;
  fputs("\nDTR: --strategy liveness+recompute=dtr --workspace none --memory SIZE\n\n", out->stream);
  return print_line(&o->dtr, out, err);
}

/* ---- JSON ---- */

static void put_time_of(sn_json_object *o, const char *name, const sn_result *result) {
  if (result)
    sn_json_put_time(o, name, result->iteration_ns);
  else
    sn_json_put_null(o, name);
}

static sn_status write_rule(const sn_optimum_rule *rule, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(&o, "strategy", sn_strategy_name(rule->strategy, name));
  sn_json_put_bool(&o, "fits", rule->result->fits);
  sn_json_put_count(&o, "device_bytes", rule->result->peak_device_bytes);
  sn_json_put_count(&o, "host_bytes", rule->result->host_bytes);
  sn_json_put_time(&o, "iteration_ns", rule->result->iteration_ns);
  put_time_of(&o, "optimal_ns", rule->best);
  put_time_of(&o, "offload_optimal_ns", rule->sent);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_point(const sn_optimum_line *line, uint32_t i, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "memory_bytes", line->budgets[i]);
  sn_json_put_count(&o, "device_bytes", line->points[i]->peak_device_bytes);
  sn_json_put_time(&o, "iteration_ns", line->points[i]->iteration_ns);
  sn_json_put_count(&o, "recomputed_layers", line->points[i]->recomputed_layers);
  return sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
}

static sn_status write_line(const char *name, const sn_optimum_line *line, FILE *out, sn_err *err) {
  fprintf(out, "\n],\"%s\":[", name);
  for (uint32_t i = 0; i < line->count; i++)
    if (write_point(line, i, out, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status write_json(const sn_question *q, const sn_optimum *all, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", q->args->net);
  sn_json_put_count(&o, "batch", q->net->batch);
  sn_capacity_put_where(&o, q);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, ",\"rules\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < SN_OPTIMUM_RULES; i++)
    if (write_rule(&all->rules[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  if (write_line("optimal", &all->optimal, out, err) != SN_OK) return err->code;
  if (write_line("dtr", &all->dtr, out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

/* ---- picture ---- */

static sn_front_point point_of(const sn_result *result) {
  return (sn_front_point){.bytes = result->peak_device_bytes, .ns = result->iteration_ns, .fits = result->fits};
}

/* By falling memory. */
static void list_points(const sn_optimum_line *line, sn_front_point *points) {
  for (uint32_t i = 0; i < line->count; i++) points[i] = point_of(line->points[line->count - 1 - i]);
}

static sn_status draw(const sn_question *q, const sn_optimum *o, sn_err *err) {
  sn_front_point points[SN_OPTIMUM_RULES], optimal[SN_OPTIMUM_POINTS], dtr[SN_OPTIMUM_POINTS];
  char names[SN_OPTIMUM_RULES][SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < SN_OPTIMUM_RULES; i++) {
    points[i] = point_of(o->rules[i].result);
    points[i].name = sn_strategy_name(o->rules[i].strategy, names[i]);
  }
  list_points(&o->optimal, optimal);
  list_points(&o->dtr, dtr);
  sn_front_chart chart = {.device = q->device.name,
                          .limit_bytes = q->device.memory_bytes,
                          .front = points,
                          .n_front = SN_OPTIMUM_RULES,
                          .line = optimal,
                          .n_line = o->optimal.count,
                          .line_name = "recompute=optimal: the least time in so much memory",
                          .beside = dtr,
                          .n_beside = o->dtr.count,
                          .beside_name = "recompute=dtr: what DTR makes of so much memory"};
  chart.title = sn_arena_print(o->arena, "%s, batch %" PRIu32 ", on %s, without workspaces: rules and the optimum",
                               q->args->net, q->net->batch, q->device.name);
  if (!chart.title) return sn_fail_memory(err);
  if (sn_plot_front(&chart, q->args->output, err) == SN_OK) sn_out_say("%s written", q->args->output);
  return err->code;
}

sn_status sn_advise_front(const sn_question *q, sn_err *err) {
  sn_out out;
  sn_out_progress("looking for the optimum ...");
  sn_optimum *o = sn_optimum_new(q->net, &q->device, &q->options, err);
  sn_out_progress(NULL);
  if (o && sn_out_open(&out, NULL, q->args->color, err) == SN_OK) {
    if (q->args->json)
      write_json(q, o, out.stream, err);
    else
      print_tables(q, o, &out, err);
    if (sn_out_close(&out, err) == SN_OK && q->args->output) draw(q, o, err);
  }
  sn_optimum_free(o);
  return err->code;
}
