/* Measured runs as JSON: one object, one result a line (docs/json.md). Keys of predicted figures are there where there
 * is a prediction; a predicted time that is not known is left out. */
#include "cli/frame/json.h"
#include "cli/train/measured.h"

#include <string.h>

static void put_predicted(sn_json_object *o, const sn_result *p) {
  sn_json_put_count(o, "planned_pool_bytes", p->pool_bytes);
  sn_json_put_count(o, "predicted_device_bytes", p->peak_device_bytes);
  sn_json_put_count(o, "planned_out_bytes", p->offload_bytes);
  sn_json_put_count(o, "planned_in_bytes", p->prefetch_bytes);
  sn_json_put_count(o, "max_live_tensors_planned", p->max_live_tensors);
  if (p->iteration_ns == 0) return;
  sn_json_put_count(o, "predicted_iteration_ns", (uint64_t)p->iteration_ns);
  sn_json_put_count(o, "predicted_stall_ns", (uint64_t)p->stall_ns);
  sn_json_put_real(o, "measured_cost_share", p->compute_ns > 0 ? (double)p->known_ns / (double)p->compute_ns : 0);
}

static void put_measured(sn_json_object *o, const sn_run *run, const sn_result *m) {
  sn_json_put_count(o, "reserved_pool_bytes", m->reserved_pool_bytes);
  sn_json_put_count(o, "touched_pool_bytes", m->pool_bytes);
  sn_json_put_count(o, "pool_bytes", m->reserved_pool_bytes);
  sn_json_put_count(o, "largest_load_bytes", m->largest_load_bytes);
  sn_json_put_text(o, "placement", m->placement);
  sn_json_put_text(o, "dialect", m->dialect);
  sn_json_put_count(o, "measured_device_bytes", m->peak_device_bytes);
  sn_json_put_count(o, "measured_context_bytes", m->context_bytes);
  sn_json_put_count(o, "external_bytes", m->external_bytes);
  sn_json_put_count(o, "measured_out_bytes", m->offload_bytes);
  sn_json_put_count(o, "measured_in_bytes", m->prefetch_bytes);
  sn_json_put_count(o, "out_ns", (uint64_t)m->out_ns);
  sn_json_put_count(o, "in_ns", (uint64_t)m->in_ns);
  sn_json_put_count(o, "max_live_tensors_measured", m->max_live_tensors);
  sn_json_put_count(o, "recomputed_layers", m->recomputed_layers);
  sn_json_put_count(o, "iterations", m->iterations);
  sn_json_put_count(o, "measured_iteration_ns", (uint64_t)m->iteration_ns);
  sn_json_put_count(o, "fastest_iteration_ns", (uint64_t)m->fastest_ns);
  sn_json_put_count(o, "slowest_iteration_ns", (uint64_t)m->slowest_ns);
  sn_json_put_count(o, "compute_ns", (uint64_t)m->compute_ns);
  sn_json_put_count(o, "stall_ns", (uint64_t)m->stall_ns);
  sn_json_put_real(o, "images_per_second", m->images_per_second);
  sn_json_put_real(o, "loss", m->loss);
  if (m->accuracy >= 0) sn_json_put_real(o, "accuracy", m->accuracy);
  sn_json_put_bool(o, "bit_equal_to_baseline", sn_measured_equal(run, m));
  sn_json_put_real(o, "largest_relative_difference", m->difference);
}

static sn_status write_step(const sn_step_row *p, const sn_step_row *m, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "step", m->step);
  sn_json_put_text(&o, "layer", m->layer);
  sn_json_put_text(&o, "op", m->op);
  sn_json_put_text(&o, "pass", m->pass);
  if (p) sn_json_put_count(&o, "predicted_tensor_bytes", p->tensor_bytes);
  sn_json_put_count(&o, "measured_tensor_bytes", m->tensor_bytes);
  if (p) sn_json_put_count(&o, "live_tensors_planned", p->live_tensors);
  sn_json_put_count(&o, "live_tensors_measured", m->live_tensors);
  sn_json_put_count(&o, "workspace_bytes", m->workspace_bytes);
  if (p && p->end_ns > p->begin_ns) sn_json_put_count(&o, "predicted_ns", (uint64_t)(p->end_ns - p->begin_ns));
  sn_json_put_count(&o, "measured_ns", (uint64_t)(m->end_ns - m->begin_ns));
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_steps(const sn_measured_pair *pair, FILE *out, sn_err *err) {
  const sn_result *p = pair->predicted, *m = pair->measured;
  fputs(",\"steps_table\":[", out);
  for (uint32_t i = 0; i < m->n_steps && err->code == SN_OK; i++)
    write_step(p && p->steps && i < p->n_steps ? &p->steps[i] : NULL, &m->steps[i], i ? ",\n" : "\n", out, err);
  fputs("\n]", out);
  return err->code;
}

static sn_status write_result(const sn_run *run, const sn_measured_pair *pair, bool steps, const char *before,
                              FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "strategy", pair->measured->strategy);
  if (pair->predicted) put_predicted(&o, pair->predicted);
  put_measured(&o, run, pair->measured);
  if (sn_json_end(&o, before, true, "", out, err) != SN_OK) return err->code;
  if (steps && pair->measured->steps) write_steps(pair, out, err);
  fputs("}", out);
  return err->code;
}

sn_status sn_measured_json(const sn_run *run, bool steps, FILE *out, sn_err *err) {
  sn_measured_pair pair;
  uint32_t at = 0;
  bool any = sn_measured_next(run, &at, &pair);
  sn_json_object head = sn_json_begin();
  sn_json_put_text(&head, "net", run->net);
  sn_json_put_count(&head, "batch", run->batch);
  sn_json_put_text(&head, "backend", any ? pair.measured->source : "");
  sn_json_put_text(&head, "device", run->device);
  sn_json_put_count(&head, "memory_bytes", run->memory_bytes);
  sn_json_put_text(&head, "optimizer", run->conditions.optimizer);
  sn_json_put_count(&head, "accumulate", run->conditions.accumulate);
  if (*run->conditions.freeze) sn_json_put_text(&head, "freeze", run->conditions.freeze);
  if (strcmp(run->conditions.external, "disk") == 0) sn_json_put_text(&head, "external", run->conditions.external);
  sn_json_put_text(&head, "data", run->data);
  sn_json_put_text(&head, "costs", run->costs);
  sn_json_put_count(&head, "iterations", run->iterations);
  sn_json_put_count(&head, "warmup", run->warmup);
  sn_json_put_count(&head, "processors", run->processors);
  sn_json_put_real(&head, "load_average", run->load);
  sn_json_end(&head, "", true, ",\"results\":[", out, err);
  const char *before = "\n";
  for (at = 0; err->code == SN_OK && sn_measured_next(run, &at, &pair); before = ",\n")
    write_result(run, &pair, steps, before, out, err);
  fputs("\n]", out);
  if (err->code == SN_OK) sn_json_write_failures(run, out, err);
  fputs("}\n", out);
  return err->code;
}
