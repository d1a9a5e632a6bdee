/* Advice on a batch in several parts; see the header. */
#include "cli/capacity/advise_splits.h"

#include "cli/capacity/capacity.h"
#include "cli/frame/json.h"
#include "cli/options/table.h"

#include <inttypes.h>

sn_splits *sn_advise_splits(const sn_question *q, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  sn_asked asked = {.spec = q->args->net,
                    .image = q->args->image,
                    .net = q->net,
                    .device = &q->device,
                    .options = &q->options,
                    .strategies = strategies};
  for (uint32_t i = 0; i < q->n_strategies; i++)
    if (q->args->n_strategies > 0 || q->strategies[i].offload == SN_OFFLOAD_NONE)
      strategies[asked.n_strategies++] = q->strategies[i];
  return sn_splits_find(&asked, err);
}

static uint32_t batches_of(const sn_split *split, const sn_question *q) {
  return split->parts * sn_iteration_batches(q->options.iteration);
}

static bool has_batch_norm(const sn_net *net) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_BN) return true;
  return false;
}

/* ---- table ---- */

static sn_status print_table(const sn_splits *splits, const sn_question *q, int64_t whole_ns, const sn_out *out,
                             sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "strategy", SN_TABLE_TEXT},    {"", "batch", SN_TABLE_NUMBER},  {"accu-", "mulate", SN_TABLE_NUMBER},
      {"device", "MiB", SN_TABLE_NUMBER}, {"iter", "ms", SN_TABLE_NUMBER}, {"costs", "ms", SN_TABLE_NUMBER},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < splits->count; i++) {
    const sn_split *s = &splits->all[i];
    char name[SN_STRATEGY_TEXT];
    sn_table_cell(table, "%s", sn_strategy_name(s->strategy, name));
    sn_table_cell(table, "%" PRIu32, s->batch);
    sn_table_cell(table, "%" PRIu32, batches_of(s, q));
    sn_table_cell(table, "%.1f", (double)s->result->peak_device_bytes / SN_MIB);
    sn_table_figure(table, true, (double)s->result->iteration_ns / 1e6);
    sn_table_figure(table, true, (double)(s->result->iteration_ns - whole_ns) / 1e6);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

sn_status sn_advise_print_splits(const sn_splits *splits, const sn_question *q, int64_t whole_ns, const sn_out *out,
                                 sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  if (splits->count == 0) return SN_OK;
  fprintf(out->stream, "\nor in parts, one after the other, and one update behind them:\n\n");
  if (print_table(splits, q, whole_ns, out, err) != SN_OK) return err->code;
  const sn_split *s = &splits->all[0];
  fprintf(out->stream, "\ncosts: against the first row of all, the whole batch in one%s\n",
          has_batch_norm(q->net) ? "; a batch norm sees one part at a time" : "");
  fprintf(out->stream, "\nfastest in parts: --strategy %s --batch %" PRIu32 " --accumulate %" PRIu32 "\n",
          sn_strategy_name(s->strategy, name), s->batch, batches_of(s, q));
  return SN_OK;
}

/* ---- JSON ---- */

static sn_status write_split(const sn_split *s, const sn_question *q, int64_t whole_ns, const char *before, FILE *out,
                             sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(&o, "strategy", sn_strategy_name(s->strategy, name));
  sn_json_put_plan(&o, s->strategy, s->result);
  sn_json_put_count(&o, "batch", s->batch);
  sn_json_put_count(&o, "accumulate", batches_of(s, q));
  sn_json_put_count(&o, "device_bytes", s->result->peak_device_bytes);
  sn_json_put_count(&o, "host_bytes", s->result->host_bytes);
  sn_json_put_time(&o, "iteration_ns", s->result->iteration_ns);
  sn_json_put_real(&o, "images_per_second", s->result->images_per_second);
  sn_json_put_time(&o, "paid_ns", s->result->iteration_ns - whole_ns);
  return sn_json_end(&o, before, false, "", out, err);
}

sn_status sn_advise_write_splits(const sn_splits *splits, const sn_question *q, int64_t whole_ns, FILE *out,
                                 sn_err *err) {
  fputs(",\"splits\":[", out);
  for (uint32_t i = 0; i < splits->count; i++)
    if (write_split(&splits->all[i], q, whole_ns, i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]", out);
  return SN_OK;
}
