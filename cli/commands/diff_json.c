/* `snsim diff --json`; docs/json.md says what its fields mean. */
#include "cli/commands/difference.h"
#include "cli/frame/json.h"

#include <string.h>

static sn_status write_head(const sn_run *run, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_time(&o, "run", run->id);
  sn_json_put_text(&o, "created", run->created);
  sn_json_put_run(&o, run);
  return sn_json_end(&o, before, false, "", out, err);
}

static void write_changed(const sn_difference *d, FILE *out) {
  const char *separator = "";
  for (uint32_t i = 0; i < sn_run_fields.count; i++) {
    const sn_field *field = &sn_run_fields.field[i];
    if (!sn_difference_asked(d, field)) continue;
    const char *alias = sn_difference_alias(d, field);
    fprintf(out, "%s\"%s\"", separator, field->name);
    if (alias) fprintf(out, ",\"%s\"", alias);
    separator = ",";
  }
}

static sn_status write_tensor(const sn_peak_tensor *t, const char *before, FILE *out, sn_err *err) {
  const sn_peak_row *row = t->after ? t->after : t->before;
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "tensor", row->tensor);
  sn_json_put_text(&o, "change", sn_change_name(t->change));
  sn_json_put_text(&o, "producer", row->producer);
  sn_json_put_count(&o, "before_bytes", t->before ? t->before->bytes : 0);
  sn_json_put_count(&o, "after_bytes", t->after ? t->after->bytes : 0);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_peak(const sn_difference *d, const sn_compare_pair *pair, FILE *out, sn_err *err) {
  sn_peak_change change;
  if (!sn_compare_has_peaks(pair)) return fputs(",\"peak\":null", out), SN_OK;
  if (sn_compare_peaks(pair->before, pair->after, d->arena, &change, err) != SN_OK) return err->code;
  sn_json_object o = sn_json_begin();
  for (int i = 0; i < SN_CHANGES; i++) {
    char key[32];
    snprintf(key, sizeof key, "%s_tensors", sn_change_name((sn_change)i));
    sn_json_put_count(&o, key, change.count[i]);
    snprintf(key, sizeof key, "%s_bytes", sn_change_name((sn_change)i));
    sn_json_put_time(&o, key, change.bytes[i]);
  }
  if (sn_json_end(&o, ",\n\"peak\":", true, ",\"tensors\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < change.n_tensors; i++)
    if (write_tensor(&change.tensors[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}", out);
  return SN_OK;
}

static sn_status write_side(const sn_result *r, const char *before, FILE *out, sn_err *err) {
  if (r) return sn_json_write_result(NULL, r, false, false, before, out, err);
  fprintf(out, "%snull", before);
  return SN_OK;
}

static sn_status write_pair(const sn_difference *d, const sn_compare_pair *pair, const char *before, FILE *out,
                            sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "strategy", pair->strategy);
  sn_json_put_text(&o, "source", pair->source);
  sn_json_put_bool(&o, "same", sn_compare_same(pair));
  if (sn_json_end(&o, before, true, "", out, err) != SN_OK ||
      write_side(pair->before, ",\n\"before\":", out, err) != SN_OK ||
      write_side(pair->after, ",\n\"after\":", out, err) != SN_OK || write_peak(d, pair, out, err) != SN_OK)
    return err->code;
  fputs("}", out);
  return SN_OK;
}

sn_status sn_difference_write_json(const sn_difference *d, FILE *out, sn_err *err) {
  if (write_head(d->before, "{\"runs\":[\n", out, err) != SN_OK || write_head(d->after, ",\n", out, err) != SN_OK)
    return err->code;
  fputs("\n],\"changed\":[", out);
  write_changed(d, out);
  fputs("],\"strategies\":[", out);
  for (uint32_t i = 0; i < d->n_pairs; i++)
    if (write_pair(d, &d->pairs[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}
