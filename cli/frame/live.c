/* Live bytes; see the header. */
#include "cli/frame/live.h"

#include "base/units.h"
#include "cli/frame/report.h"
#include "models/zoo/zoo.h"
#include "sim/device/device.h"

#include <string.h>

void sn_live_print_size(FILE *out, const char *name, uint64_t bytes) {
  char text[SN_UNIT_TEXT];
  if (bytes) fprintf(out, ", %s %s", name, sn_print_bytes(bytes, text));
}

/* The peak by the words of PyTorch's memory tracker. */
void sn_live_print_parts(const sn_live *l, FILE *out) {
  char text[SN_UNIT_TEXT];
  fprintf(out, "all that is live then: %s", sn_print_bytes(sn_live_total(l), text));
  sn_live_print_size(out, "parameters", l->parameters);
  sn_live_print_size(out, "their gradients", l->gradients);
  sn_live_print_size(out, "optimizer", l->optimizer);
  sn_live_print_size(out, "buffers", l->buffers);
  sn_live_print_size(out, "activations and the batch", l->activations);
  sn_live_print_size(out, "temporary", l->temporary);
  fputs("\n", out);
}

/* What PyTorch's tools say of the same row. */
void sn_live_print(const sn_run *run, FILE *out) {
  char live[SN_UNIT_TEXT], allocated[SN_UNIT_TEXT], reserved[SN_UNIT_TEXT];
  int told = 0;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (sn_live_total(&r->live) == 0 || r->reserved_bytes == 0) continue;
    fprintf(out, "%s%s: %s live at the peak, %s allocated, %s reserved by its allocator%s, %.0f %% of it unused then",
            told++ ? "" : "\n", r->strategy, sn_print_bytes(sn_live_total(&r->live), live),
            sn_print_bytes(r->allocated_bytes, allocated), sn_print_bytes(r->reserved_bytes, reserved),
            r->fits ? "" : " if it had room", 100 * r->pool_fragmentation);
    if (!r->fits && r->least_device_bytes > 0)
      fprintf(out, "; it runs with %s", sn_print_bytes(r->least_device_bytes, live));
    fputs("\n", out);
  }
}

/* ---- what stays ---- */

static bool keeps_masters(const sn_run *run) {
  sn_iteration iteration = {0};
  sn_err unknown = SN_ERR_INIT;
  return sn_iteration_parse_precision(run->conditions.precision, &iteration, &unknown) == SN_OK &&
         sn_mesh_parse(run->conditions.parallel, &iteration.mesh, &unknown) == SN_OK &&
         sn_iteration_keeps_masters(iteration);
}

/* What a store says may be the word of a newer snsim. */
static const char *state_name(const sn_run *run) {
  if (sn_net_is_recording(run->net)) return "optimizer's states";
  sn_optimizer optimizer;
  sn_err unknown = SN_ERR_INIT;
  return sn_optimizer_parse(run->conditions.optimizer, &optimizer, &unknown) == SN_OK
             ? sn_optimizer_state_name(optimizer)
             : "optimizer state";
}

/* Of a known GPU whose rows count with its own figure, and not with --context's. */
static void print_seen(const sn_run *run, const sn_result *r, FILE *out) {
  sn_device device;
  sn_err unknown = SN_ERR_INIT;
  if (!sn_device_is_known(run->gpu) || sn_device_load(run->gpu, &device, &unknown) != SN_OK) return;
  if (r->context_bytes == device.library_context_bytes) sn_report_seen(&device, out);
}

/* PyTorch makes the gradients of parameters as they come, and has nothing beside the graph but BN's running figures. */
void sn_live_print_resident(const sn_run *run, const sn_result *r, FILE *out) {
  char text[SN_UNIT_TEXT];
  char states[64];
  const sn_persistent *p = &r->persistent;
  const char *state = state_name(run);
  const bool masters = keeps_masters(run);
  bool pytorch = sn_live_total(&r->live) > 0;
  fprintf(out, "%s: context %s", pytorch ? "in PyTorch" : "always resident", sn_print_bytes(r->context_bytes, text));
  if (pytorch && r->reserved_bytes) {
    fputs(" (libraries in use", out);
    print_seen(run, r, out);
    fputs(")", out);
  }
  sn_live_print_size(out, "parameters", p->parameters);
  sn_live_print_size(out, "gradients", p->parameter_gradients);
  snprintf(states, sizeof states, "%s%s%s", masters ? "float32 weights" : "", masters && *state ? " and " : "", state);
  sn_live_print_size(out, states, p->optimizer_state);
  sn_live_print_size(out, pytorch ? "buffers" : "masks and statistics", p->auxiliary);
  sn_live_print_size(out, "input", p->input_batch);
  sn_live_print_size(out, "labels", p->labels);
  fputs("\n", out);
}

void sn_live_print_residents(const sn_run *run, FILE *out) {
  for (uint32_t i = 0; i < run->n_results; i++) {
    bool seen = false;
    for (uint32_t k = 0; k < i; k++) seen |= run->results[k].graph == run->results[i].graph;
    if (!seen) sn_live_print_resident(run, &run->results[i], out);
  }
}
