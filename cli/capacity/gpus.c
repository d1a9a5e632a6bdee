/* Several GPUs whose number or mesh is looked for; see the header. */
#include "cli/capacity/gpus.h"

#include "cli/capacity/capacity.h"
#include "sim/capacity/bands.h"
#include "sim/capacity/calls.h"
#include "sim/scale/worlds.h"

#include <inttypes.h>

static bool is_of_tokens(const sn_question *q) {
  return q->net->values[0].dtype == SN_I64;
}

const char *sn_gpus_unit(const sn_question *q) {
  return q->net->recorded ? "samples" : is_of_tokens(q) ? "tokens" : "images";
}

/* Of all GPUs. */
static double pace_of(const sn_question *q, const sn_result *result) {
  double each = is_of_tokens(q) ? q->net->layers[0].out.h : 1;
  return result->images_per_second * each;
}

#define GIB 1073741824.0

/* What its plan takes; where that does not fit, the least with which it runs. */
static uint64_t device_of(const sn_result *r) {
  return r->fits || r->least_device_bytes == 0 ? r->peak_device_bytes : r->least_device_bytes;
}

void sn_gpus_cells(sn_table *table, const sn_question *q, const sn_mesh *mesh, const sn_result *r) {
  bool several = r && r->shared.world > 0, fits = r && r->fits;
  double pace = r ? pace_of(q, r) : 0;
  sn_table_cell(table, r ? "%.2f" : "-", r ? (double)device_of(r) / GIB : 0);
  sn_table_figure(table, fits, fits ? (double)r->iteration_ns / 1e6 : 0);
  sn_table_figure(table, fits && several, fits ? (double)r->shared.exposed_ns / 1e6 : 0);
  sn_table_figure(table, fits, pace);
  sn_table_figure(table, fits, pace / sn_mesh_world(mesh));
  sn_table_figure(table, fits && several, several ? 100 * r->shared.flops_share : 0);
}

void sn_gpus_put(sn_json_object *o, const sn_question *q, const sn_mesh *mesh, const sn_result *r) {
  sn_json_put_text(o, "parallel", mesh->text);
  if (!r) {
    static const char *const members[] = {"device_bytes", "iteration_ns", "exposed_ns", "images_per_second", "mfu"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) sn_json_put_null(o, members[i]);
    return;
  }
  sn_json_put_count(o, "device_bytes", r->peak_device_bytes);
  sn_json_put_time(o, "iteration_ns", r->iteration_ns);
  sn_json_put_time(o, "exposed_ns", r->shared.exposed_ns);
  sn_json_put_real(o, "images_per_second", r->images_per_second);
  if (is_of_tokens(q)) sn_json_put_real(o, "tokens_per_s", pace_of(q, r));
  if (r->shared.world > 0)
    sn_json_put_real(o, "mfu", r->shared.flops_share);
  else
    sn_json_put_null(o, "mfu");
}

sn_status sn_gpus_strategies(const sn_question *q, sn_strategy *strategies, uint32_t *count, sn_err *err) {
  const sn_args *args = q->args;
  sn_iteration iteration = q->options.iteration;
  char name[SN_STRATEGY_TEXT];
  const sn_mesh one = {0};
  *count = 0;
  if (sn_mesh_resize(&one, SN_MESH_FSDP, 2, &iteration.mesh, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < args->n_strategies; i++) {
    const char *why = sn_strategy_refuses(args->strategies[i], iteration);
    if (why)
      return sn_fail(err, SN_BAD_USAGE, "--strategy %s: %s; try pytorch or pytorch+recompute=units",
                     sn_strategy_name(args->strategies[i], name), why);
    strategies[(*count)++] = args->strategies[i];
  }
  if (*count > 0) return SN_OK;
  strategies[0] = strategies[1] = (sn_strategy){.liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH};
  strategies[1].recompute = SN_RECOMPUTE_UNITS;
  *count = 2;
  return SN_OK;
}

sn_status sn_gpus_print_calls(const sn_question *q, const sn_net *net, const sn_mesh *mesh, sn_strategy strategy,
                              uint32_t accumulate, FILE *out, sn_err *err) {
  sn_options options = q->options;
  options.iteration.mesh = *mesh;
  options.iteration.accumulate = accumulate;
  if (sn_mesh_is_one(mesh) && !sn_iteration_keeps_masters(options.iteration)) return SN_OK;
  const sn_asked asked = {.spec = q->args->net, .net = net, .device = &q->device, .options = &options};
  const sn_calls_wish wish = {.strategy = strategy, .memory_bytes = q->device.memory_bytes, .mesh = true};
  sn_calls *calls = sn_calls_of(&asked, &wish, err);
  for (uint32_t i = 0; calls && i < calls->count; i++)
    sn_table_printf(out, "%s%s\n", i ? "            " : "in PyTorch: ", calls->lines[i]);
  sn_calls_free(calls);
  return err->code;
}

void sn_gpus_print_notes(const sn_net *net, const sn_mesh *mesh, FILE *out) {
  char text[SN_BAND_TEXT];
  sn_band_of_memory(net, mesh, true, text);
  fputs("exposed: transfers that nothing hides; MFU: of the GPU's peak what the model itself multiplies\n", out);
  fprintf(out, "%s;\n", text);
  fputs("times: no measurement of this kind, of several GPUs (docs/truth.md)\n", out);
}
