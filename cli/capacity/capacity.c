/* What `snsim fit` and `snsim advise` print alike; see the header. */
#include "cli/capacity/capacity.h"

#include "base/units.h"
#include "cli/frame/report.h"
#include "cli/frame/row_groups.h"
#include "cli/frame/times.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/device/link.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN_TENSORS = 8, MOST_ADVICES = 12 };

void sn_capacity_print_net(const char *what, const char *net, const char *name, FILE *out) {
  char title[512];
  fprintf(out, "%s %s", what, sn_table_clean(sn_net_title(net, name, title, sizeof title)));
}

void sn_capacity_print_batch(const sn_net *net, const char *each, FILE *out) {
  sn_shape in = net->layers[0].out;
  if (net->recorded) {
    fprintf(out, ", batch %" PRIu32 "%s, as recorded", net->batch, each);
    return;
  }
  if (net->values[0].dtype == SN_I64)
    fprintf(out, ", batch %" PRIu32 " of %" PRIu32 " tokens", net->batch, in.h);
  else if (net->layers[0].planes > 0)
    fprintf(out, ", batch %" PRIu32 " of %" PRIu32 "x%" PRIu32 "x%" PRIu32, net->batch, net->layers[0].planes,
            sn_layer_rows(&net->layers[0]), in.w);
  else
    fprintf(out, ", batch %" PRIu32 " of %" PRIu32 "x%" PRIu32, net->batch, in.h, in.w);
  fputs(each, out);
}

void sn_capacity_print_switches(const sn_question *q, FILE *out) {
  fprintf(out, "external memory %s", sn_external_name(q->options.external));
  sn_report_disk(sn_disk_bandwidth_of(&q->device, q->options.external), out);
  fprintf(out, "%s, allocator %s", q->options.shared_link ? " over a shared link" : "",
          sn_allocator_name(q->options.allocator));
  if (q->options.iteration.precision != SN_FP32)
    fprintf(out, ", precision %s", sn_iteration_precision_name(q->options.iteration));
  if (*q->args->freeze) sn_table_printf(out, ", frozen: %s", q->args->freeze);
  if (q->options.iteration.inference)
    fputs(", run and not trained", out);
  else if (q->options.iteration.optimizer != SN_OPTIMIZER_MOMENTUM)
    fprintf(out, ", optimizer %s", sn_optimizer_name(q->options.iteration.optimizer));
  if (sn_iteration_accumulates(q->options.iteration))
    fprintf(out, ", %" PRIu32 " batches an update", sn_iteration_batches(q->options.iteration));
  if (q->options.calibration) fputs(", times measured where they are known", out);
}

const char *sn_capacity_unit(const sn_question *q) {
  if (sn_net_is_recording(q->args->net)) return "samples";
  return sn_report_unit(q->net ? q->net->values[0].dtype == SN_I64 : sn_net_is_sequence(q->args->net));
}

/* Before a network is made of the sizes that are looked for, its name has to say what it reads. */
static sn_timed timed(const sn_question *q, sn_strategy strategy) {
  if (q->net && !sn_question_seeks_mesh(q->args)) return sn_timed_of(q->net, &q->device, &q->options, strategy);
  return (sn_timed){.card = q->device.name,
                    .modelled = q->device.tensor_feed > 0,
                    .strategy = strategy,
                    .precision = q->options.iteration.precision,
                    .inference = q->options.iteration.inference,
                    .tokens = sn_net_is_sequence(q->args->net),
                    .calibrated = q->calibration != NULL,
                    .several = sn_question_seeks_mesh(q->args) || !sn_mesh_is_one(&q->options.iteration.mesh)};
}

void sn_capacity_print_times(const sn_question *q, FILE *out) {
  sn_timed rows[SN_ARGS_STRATEGIES];
  for (uint32_t i = 0; i < q->n_strategies; i++) rows[i] = timed(q, q->strategies[i]);
  sn_times_print(rows, q->n_strategies, out);
}

void sn_capacity_print_context(const sn_question *q, FILE *out) {
  char text[SN_UNIT_TEXT];
  fprintf(out, "context %s", sn_print_bytes(q->device.context_bytes, text));
  if (sn_question_asks_pytorch(q)) {
    fprintf(out, " (in PyTorch %s", sn_print_bytes(sn_device_bare_context(&q->device, true), text));
    sn_report_seen(&q->device, out);
    if (q->device.conv_context_bytes)
      fprintf(out, ", with a CONV %s more", sn_print_bytes(q->device.conv_context_bytes, text));
    fputs(")", out);
  }
  if (q->device.kernel_bytes)
    fprintf(out, " and %s a shape of CONV, DECONV or FC", sn_print_bytes(q->device.kernel_bytes, text));
}

void sn_capacity_print_where(const sn_question *q, FILE *out) {
  char text[SN_UNIT_TEXT];
  const sn_device *d = &q->device;
  const sn_mesh *mesh = &q->options.iteration.mesh;
  bool shared = !sn_mesh_is_one(mesh) && !mesh->sought;
  fputs(", on ", out);
  if (shared) fprintf(out, "%" PRIu32 " ", sn_mesh_world(mesh));
  sn_table_print_clean(out, d->name);
  if (shared) fprintf(out, " with %s", mesh->text);
  if (*q->args->gpu_why) fprintf(out, " (%s)", q->args->gpu_why);
  fprintf(out, ": %s usable%s\n", sn_print_bytes(d->memory_bytes + q->margin_bytes, text),
          d->memory_nominal ? " (of the nominal size: what CUDA reports is not known)" : "");
  if (q->margin_bytes) {
    fprintf(out, "margin: %s of it kept free", sn_print_bytes(q->margin_bytes, text));
    fprintf(out, ", %s to plan with\n", sn_print_bytes(d->memory_bytes, text));
  }
  sn_capacity_print_context(q, out);
  if (d->host_memory_bytes) fprintf(out, ", host memory %s", sn_print_bytes(d->host_memory_bytes, text));
  if (q->options.pool_bytes) fprintf(out, ", pool of at most %s", sn_print_bytes(q->options.pool_bytes, text));
  fputs(", ", out);
  sn_capacity_print_switches(q, out);
}

/* How several GPUs share, where it is not what is looked for. */
static void put_mesh(sn_json_object *o, const sn_options *options) {
  const sn_mesh *mesh = &options->iteration.mesh;
  if (sn_mesh_is_one(mesh) || mesh->sought) return;
  sn_json_put_text(o, "parallel", mesh->text);
  if (!*options->cluster.name) return;
  sn_json_put_text(o, "cluster", options->cluster.name);
  sn_json_put_count(o, "nodes", options->cluster.nodes);
}

void sn_capacity_put_where(sn_json_object *o, const sn_question *q) {
  sn_json_put_text(o, "gpu", q->device.name);
  sn_json_put_count(o, "memory_bytes", q->device.memory_bytes + q->margin_bytes);
  sn_json_put_bool(o, "memory_nominal", q->device.memory_nominal);
  sn_json_put_count(o, "margin_bytes", q->margin_bytes);
  sn_json_put_count(o, "context_bytes", q->device.context_bytes);
  sn_json_put_count(o, "host_memory_bytes", q->device.host_memory_bytes);
  sn_json_put_count(o, "pool_limit_bytes", q->options.pool_bytes);
  sn_json_put_text(o, "external", sn_external_name(q->options.external));
  if (q->options.external == SN_EXTERNAL_DISK)
    sn_json_put_real(o, "disk_bandwidth", sn_disk_bandwidth_of(&q->device, q->options.external));
  sn_json_put_text(o, "allocator", sn_allocator_name(q->options.allocator));
  sn_json_put_text(o, "optimizer", sn_optimizer_name(q->options.iteration.optimizer));
  sn_json_put_count(o, "accumulate", sn_iteration_batches(q->options.iteration));
  sn_json_put_bool(o, "inference", q->options.iteration.inference);
  if (q->options.iteration.precision != SN_FP32)
    sn_json_put_text(o, "precision", sn_iteration_precision_name(q->options.iteration));
  if (*q->args->freeze) sn_json_put_text(o, "freeze", q->args->freeze);
  put_mesh(o, &q->options);
  sn_json_put_bool(o, "shared_link", q->options.shared_link);
  sn_json_put_bool(o, "calibrated", q->options.calibration != NULL);
}

char *sn_capacity_binding(const sn_binding *b, char *text, size_t room) {
  static const char *const notes[SN_CAUSES] = {"", " (holes)", " (workspace)", " (resident)", " (host memory)"};
  int used = snprintf(text, room, "%s %s%s", b->layer, b->pass, notes[b->cause]);
  bool short_of = used < 0 || (size_t)used >= room;
  if (b->stages > 0 && !short_of) snprintf(text + used, room - (size_t)used, ", stage %" PRIu32, b->stage);
  return text;
}

void sn_capacity_put_binding(sn_json_object *o, const sn_binding *b) {
  if (!b) {
    sn_json_put_null(o, "binding_layer");
    sn_json_put_null(o, "binding_pass");
    sn_json_put_null(o, "binding_step");
    sn_json_put_null(o, "binding_cause");
    sn_json_put_null(o, "binding_tensor_bytes");
    sn_json_put_null(o, "resident_bytes");
    return;
  }
  sn_json_put_text(o, "binding_layer", b->layer);
  sn_json_put_text(o, "binding_pass", b->pass);
  sn_json_put_count(o, "binding_step", b->step);
  if (b->stages > 0) sn_json_put_count(o, "binding_stage", b->stage);
  sn_json_put_text(o, "binding_cause", sn_cause_name(b->cause));
  sn_json_put_count(o, "binding_tensor_bytes", b->tensor_bytes);
  sn_json_put_count(o, "resident_bytes", b->resident_bytes);
}

/* ---- tensors ---- */

typedef struct remedy {
  const char *advice;
  uint64_t bytes;
} remedy;

static uint32_t collect(const sn_binding *b, remedy *remedies) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->n_tensors; i++) {
    uint32_t r = 0;
    while (r < count && strcmp(remedies[r].advice, b->tensors[i].advice) != 0) r++;
    if (r == MOST_ADVICES) continue;
    if (r == count) remedies[count++] = (remedy){b->tensors[i].advice, 0};
    remedies[r].bytes += b->tensors[i].bytes;
  }
  return count;
}

static void print_cause(const sn_binding *b, FILE *out) {
  static const char *const texts[SN_CAUSES] = {
      [SN_CAUSE_HOLES] = "its tensors would fit, but the holes between those that are placed do not hold the next one",
      [SN_CAUSE_RESIDENT] = "context, parameters with gradients and momentum, and input leave nothing for tensors"};
  char workspace[SN_UNIT_TEXT];
  if (texts[b->cause]) fprintf(out, "%s\n", texts[b->cause]);
  if (b->cause == SN_CAUSE_WORKSPACE)
    fprintf(out,
            "its tensors would fit, but not the workspace of %s beside them: where it is not PyTorch's, --workspace "
            "dynamic takes what is left\n",
            sn_print_bytes(b->workspace_bytes, workspace));
}

/* "what would move it: recompute, 364.00 MiB; cache, 142.38 MiB. The step itself needs 317.77 MiB." */
static void print_remedies(const sn_binding *b, FILE *out) {
  remedy remedies[MOST_ADVICES];
  char text[SN_UNIT_TEXT];
  uint64_t needed = 0;
  uint32_t count = collect(b, remedies), told = 0;
  fputs("what would move it:", out);
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(remedies[i].advice, "needed by this step") == 0)
      needed = remedies[i].bytes;
    else
      fprintf(out, "%s %s, %s", told++ ? ";" : "", remedies[i].advice, sn_print_bytes(remedies[i].bytes, text));
  }
  if (told == 0) fputs(" only more memory", out);
  fprintf(out, ". The step itself needs %s", sn_print_bytes(needed, text));
  fprintf(out, ", beside %s that are resident.\n", sn_print_bytes(b->resident_bytes, text));
}

/* It would fit on the device: which tensors are there is not what matters. */
static void print_host(const sn_binding *b, FILE *out) {
  char need[SN_UNIT_TEXT], have[SN_UNIT_TEXT];
  fprintf(out, "it would fit on the device, but what is sent out takes %s and the host has %s for it\n",
          sn_print_bytes(b->host_bytes, need), sn_print_bytes(b->host_memory_bytes, have));
  fputs("what would move it: recomputing in place of sending out, or more --host-memory\n", out);
}

sn_status sn_capacity_print_tensors(const sn_binding *b, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "MiB", SN_TABLE_NUMBER},
      {"", "tensor", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "made by", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "what would remove it", SN_TABLE_TEXT | SN_TABLE_GAP},
  };
  if (b->cause == SN_CAUSE_HOST) {
    print_host(b, out->stream);
    return SN_OK;
  }
  sn_row_groups *alike = sn_row_groups_new(b->tensors, b->n_tensors, err);
  if (!alike) return err->code;
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < alike->n_groups && i < SHOWN_TENSORS; i++) {
    sn_table_cell(table, "%.3f", (double)alike->groups[i].bytes / SN_MIB);
    sn_table_cell(table, "%s", alike->groups[i].tensor);
    sn_table_cell(table, "%s", alike->groups[i].producer);
    sn_table_cell(table, "%s", alike->groups[i].first->advice);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  sn_row_groups_print_rest(alike, SHOWN_TENSORS, out->stream);
  sn_row_groups_free(alike);
  print_cause(b, out->stream);
  print_remedies(b, out->stream);
  return status;
}

sn_status sn_capacity_fail_host(const sn_question *q, sn_strategy strategy, uint64_t host_bytes, sn_err *err) {
  char name[SN_STRATEGY_TEXT], need[SN_UNIT_TEXT], have[SN_UNIT_TEXT];
  return sn_fail(
      err, SN_NO_FIT,
      "no device memory is enough: %s sends %s to the host, which has %s for it; try a strategy without offload, or "
      "more --host-memory",
      sn_strategy_name(strategy, name), sn_print_bytes(host_bytes, need),
      sn_print_bytes(sn_device_host_share(&q->device), have));
}
