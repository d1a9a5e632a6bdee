/* `snsim fit --min memory`: the least memory of a device with which a network trains, strategy by strategy. */
#include "base/units.h"
#include "cli/capacity/capacity.h"
#include "cli/capacity/fit.h"
#include "cli/options/table.h"
#include "sim/capacity/fit.h"

#include <inttypes.h>

static void print_heading(const sn_question *q, FILE *out) {
  char text[SN_UNIT_TEXT];
  sn_capacity_print_net("least memory of", q->args->net, q->net->name, out);
  sn_capacity_print_batch(q->net, "", out);
  const sn_mesh *mesh = &q->options.iteration.mesh;
  fputs(", at the speed of ", out);
  if (!sn_mesh_is_one(mesh)) fprintf(out, "%" PRIu32 " ", sn_mesh_world(mesh));
  sn_table_print_clean(out, q->device.name);
  if (!sn_mesh_is_one(mesh)) fprintf(out, " with %s", mesh->text);
  fputs("\n", out);
  sn_capacity_print_context(q, out);
  fputs(", ", out);
  if (q->device.host_memory_bytes) fprintf(out, "host memory %s, ", sn_print_bytes(q->device.host_memory_bytes, text));
  sn_capacity_print_switches(q, out);
  fprintf(out, ", workspace %s\n\n", sn_workspace_name(q->options.workspace));
}

enum { HOST = 3 }; /* a column */

static bool uses_host(const sn_memory *memory) {
  bool any = false;
  for (uint32_t i = 0; i < memory->n_answers; i++) any = any || memory->answers[i].result->host_bytes;
  return any;
}

static sn_status print_table(const sn_question *q, const sn_memory *memory, const sn_out *out, sn_err *err) {
  const sn_table_column columns[] = {
      {"", "strategy", SN_TABLE_TEXT},
      {"least", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"of it", "pool MiB", SN_TABLE_NUMBER},
      {"host", "MiB", SN_TABLE_NUMBER},
      {sn_capacity_unit(q), "/s", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "what needs it", SN_TABLE_TEXT | SN_TABLE_GAP},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < memory->n_answers; i++) {
    const sn_memory_answer *a = &memory->answers[i];
    char name[SN_STRATEGY_TEXT], binding[300];
    sn_table_cell(table, "%s", sn_strategy_name(a->strategy, name));
    sn_table_cell(table, a->memory_bytes ? "%.3f" : "none", (double)a->memory_bytes / SN_MIB);
    sn_table_cell(table, a->memory_bytes ? "%.3f" : "-", (double)a->result->pool_bytes / SN_MIB);
    sn_table_cell(table, a->result->host_bytes ? "%.1f" : "-", (double)a->result->host_bytes / SN_MIB);
    sn_table_figure(table, a->memory_bytes > 0, a->result->images_per_second);
    sn_table_cell(table, "%s", sn_capacity_binding(&a->binding, binding, sizeof binding));
  }
  if (!uses_host(memory)) sn_table_hide(table, HOST);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* Of a replay of PyTorch's allocator one edge is known, and that there may be others. */
static void print_edges(const sn_memory *memory, FILE *out) {
  bool any = false;
  for (uint32_t i = 0; i < memory->n_answers; i++) any = any || memory->answers[i].result->reserved_bytes > 0;
  if (any)
    fputs("PyTorch's allocator: still less may do as well, and a little more may not, as cached memory then goes back "
          "at other times\n",
          out);
}

static void print_proof(const sn_memory *memory, FILE *out) {
  char name[SN_STRATEGY_TEXT];
  uint32_t verified = 0;
  fputs("\n", out);
  for (uint32_t i = 0; i < memory->n_answers; i++) {
    const sn_memory_answer *a = &memory->answers[i];
    verified += a->verified;
    if (!a->verified) fprintf(out, "%s: with less it fits as well\n", sn_strategy_name(a->strategy, name));
  }
  if (verified)
    fprintf(out, "to the block: with 1 KiB less %s; speed: with no memory to spare\n",
            verified < memory->n_answers ? "the others do not fit" : "none of them fits");
  print_edges(memory, out);
}

static sn_status print_all(const sn_question *q, const sn_memory *memory, const sn_out *out, sn_err *err) {
  char name[SN_STRATEGY_TEXT], binding[300];
  const sn_memory_answer *best = sn_memory_best(memory);
  print_heading(q, out->stream);
  if (print_table(q, memory, out, err) != SN_OK) return err->code;
  sn_capacity_print_times(q, out->stream);
  print_proof(memory, out->stream);
  if (memory->n_answers > 1 && best->memory_bytes)
    fprintf(out->stream, "least: %s, %" PRIu64 " bytes\n", sn_strategy_name(best->strategy, name), best->memory_bytes);
  for (uint32_t i = 0; i < memory->n_answers; i++) {
    const sn_memory_answer *a = &memory->answers[i];
    if (!a->verified || (!q->args->explain && a != best && memory->n_answers > 1)) continue;
    fprintf(out->stream, "\n%s: %s is too little at step %" PRIu32 ", %s: %" PRIu32 " tensor%s\n",
            sn_strategy_name(a->strategy, name), a->memory_bytes ? "less" : "the host's memory", a->binding.step,
            sn_table_clean(sn_capacity_binding(&a->binding, binding, sizeof binding)), a->binding.n_tensors,
            a->binding.n_tensors == 1 ? "" : "s");
    if (sn_capacity_print_tensors(&a->binding, out, err) != SN_OK) return err->code;
  }
  return SN_OK;
}

static sn_status write_answer(const sn_memory_answer *a, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  char name[SN_STRATEGY_TEXT];
  sn_json_put_text(&o, "strategy", sn_strategy_name(a->strategy, name));
  if (a->memory_bytes)
    sn_json_put_count(&o, "answer", a->memory_bytes);
  else
    sn_json_put_null(&o, "answer");
  sn_json_put_plan(&o, a->strategy, a->result);
  sn_json_put_count(&o, "host_bytes", a->result->host_bytes);
  sn_capacity_put_binding(&o, &a->binding);
  if (a->memory_bytes)
    sn_json_put_real(&o, "images_per_second", a->result->images_per_second);
  else
    sn_json_put_null(&o, "images_per_second");
  sn_json_put_bool(&o, "verified", a->verified);
  if (sn_json_end(&o, before, true, ",\"binding_tensors\":", out, err) != SN_OK ||
      sn_json_write_peak(a->binding.tensors, a->binding.n_tensors, out, err) != SN_OK)
    return err->code;
  fputs("}", out);
  return SN_OK;
}

static sn_status write_json(const sn_question *q, const sn_memory *memory, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", q->args->net);
  sn_capacity_put_where(&o, q);
  sn_json_put_text(&o, "workspace", sn_workspace_name(q->options.workspace));
  sn_json_put_text(&o, "minimize", "memory");
  sn_json_put_count(&o, "batch", q->net->batch);
  sn_json_put_text(&o, "version", SNSIM_VERSION);
  if (sn_json_end(&o, "", true, ",\"results\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < memory->n_answers; i++)
    if (write_answer(&memory->answers[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

static sn_status print(const sn_question *q, const sn_memory *memory, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, q->args->output, q->args->color, err) != SN_OK) return err->code;
  if (q->args->json) {
    write_json(q, memory, out.stream, err);
  } else {
    sn_prose prose;
    print_all(q, memory, sn_prose_open(&prose, &out), err);
    sn_prose_close(&prose);
  }
  return sn_out_close(&out, err);
}

static sn_status judge(const sn_question *q, const sn_memory *memory, sn_err *err) {
  const sn_memory_answer *best = sn_memory_best(memory);
  return best->memory_bytes ? SN_OK : sn_capacity_fail_host(q, best->strategy, best->result->host_bytes, err);
}

sn_status sn_cli_fit_memory(const sn_args *args, sn_err *err) {
  sn_question q;
  if (sn_question_load(args, &q, err) != SN_OK) return err->code;
  sn_out_progress("planning ...");
  sn_memory *memory = sn_fit_memory(q.net, &q.device, q.strategies, q.n_strategies, &q.options, err);
  sn_out_progress(NULL);
  if (memory && print(&q, memory, err) == SN_OK) judge(&q, memory, err);
  sn_memory_free(memory);
  sn_question_free(&q);
  return err->code;
}
