/* Live bytes; see the header. */
#include "cli/frame/live.h"

#include "base/units.h"

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
