/* JSON output; see the header. cJSON makes the text of one line; the lines are strung together here, so that memory
 * does not grow with the number of steps. */
#include "cli/frame/json.h"

#include "base/units.h"
#include "cli/frame/answer.h"
#include "cli/frame/epoch.h"
#include "cli/frame/report.h"
#include "cli/options/table.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

sn_json_object sn_json_begin(void) {
  sn_json_object object = {.json = cJSON_CreateObject()};
  object.lost = !object.json;
  return object;
}

/* JSON must be UTF-8; names from a stranger's file need not be. */
void sn_json_put_text(sn_json_object *object, const char *key, const char *text) {
  char *copy = strdup(text);
  if (!copy || !cJSON_AddStringToObject(object->json, key, sn_table_clean(copy))) object->lost = true;
  free(copy);
}

/* cJSON's own numbers are doubles: large ones come out as 1e+15, no whole number to many readers, and others a bit off.
 */
static void put_raw(sn_json_object *object, const char *key, const char *digits) {
  if (!cJSON_AddRawToObject(object->json, key, digits)) object->lost = true;
}

void sn_json_put_count(sn_json_object *object, const char *key, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRIu64, value);
  put_raw(object, key, digits);
}

void sn_json_put_time(sn_json_object *object, const char *key, int64_t ns) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, ns);
  put_raw(object, key, digits);
}

/* JSON knows no infinity. */
void sn_json_put_real(sn_json_object *object, const char *key, double value) {
  char digits[SN_UNIT_TEXT];
  put_raw(object, key, sn_print_real(value, digits));
}

void sn_json_put_null(sn_json_object *object, const char *key) {
  put_raw(object, key, "null");
}

void sn_json_put_bool(sn_json_object *object, const char *key, bool value) {
  if (!cJSON_AddBoolToObject(object->json, key, value)) object->lost = true;
}

sn_status sn_json_end(sn_json_object *object, const char *before, bool open, const char *after, FILE *out,
                      sn_err *err) {
  char *text = object->lost ? NULL : cJSON_PrintUnformatted(object->json);
  cJSON_Delete(object->json);
  object->json = NULL;
  if (!text) return sn_fail_memory(err);
  if (open) text[strlen(text) - 1] = '\0';
  fprintf(out, "%s%s%s", before, text, after);
  cJSON_free(text);
  return SN_OK;
}

static sn_status write_step(const sn_step_row *row, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "step", row->step);
  sn_json_put_text(&o, "layer", row->layer);
  sn_json_put_text(&o, "op", row->op);
  sn_json_put_text(&o, "pass", row->pass);
  sn_json_put_count(&o, "tensor_bytes", row->tensor_bytes);
  sn_json_put_count(&o, "live_tensors", row->live_tensors);
  sn_json_put_count(&o, "workspace_bytes", row->workspace_bytes);
  sn_json_put_count(&o, "device_bytes", row->device_bytes);
  sn_json_put_time(&o, "begin_ns", row->begin_ns);
  sn_json_put_time(&o, "end_ns", row->end_ns);
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_peak_row(const sn_peak_row *row, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "tensor", row->tensor);
  sn_json_put_text(&o, "producer", row->producer);
  sn_json_put_count(&o, "bytes", row->bytes);
  sn_json_put_count(&o, "since_step", row->since_step);
  sn_json_put_count(&o, "next_step", row->next_step);
  sn_json_put_text(&o, "advice", row->advice);
  return sn_json_end(&o, before, false, "", out, err);
}

sn_status sn_json_write_peak(const sn_peak_row *rows, uint32_t count, FILE *out, sn_err *err) {
  fputs("[", out);
  for (uint32_t i = 0; i < count; i++)
    if (write_peak_row(&rows[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]", out);
  return SN_OK;
}

/* The fields that issue and README promise; "persistent" and what follows it are extra. */
static void put_memory(sn_json_object *o, const sn_result *r) {
  sn_json_put_text(o, "strategy", r->strategy);
  sn_json_put_bool(o, "fits", r->fits);
  sn_json_put_count(o, "tensor_count", r->tensor_count);
  sn_json_put_count(o, "peak_tensor_bytes", r->peak_tensor_bytes);
  sn_json_put_count(o, "peak_step", r->peak_step);
  sn_json_put_text(o, "peak_layer", r->peak_layer);
  sn_json_put_text(o, "peak_pass", r->peak_pass);
  sn_json_put_count(o, "peak_fork_bytes", r->peak_fork_bytes);
  sn_json_put_count(o, "live_tensors_at_peak", r->live_tensors_at_peak);
  sn_json_put_count(o, "max_live_tensors", r->max_live_tensors);
  sn_json_put_count(o, "peak_device_bytes", r->peak_device_bytes);
  if (r->least_device_bytes)
    sn_json_put_count(o, "least_device_bytes", r->least_device_bytes);
  else
    sn_json_put_null(o, "least_device_bytes");
  sn_json_put_count(o, "persistent_bytes", sn_persistent_total(&r->persistent));
  sn_json_put_count(o, "workspace_peak_bytes", r->workspace_peak_bytes);
  sn_json_put_real(o, "pool_fragmentation", r->pool_fragmentation);
}

static void put_speed(sn_json_object *o, const sn_result *r) {
  sn_json_put_count(o, "offload_bytes", r->offload_bytes);
  sn_json_put_count(o, "prefetch_bytes", r->prefetch_bytes);
  sn_json_put_count(o, "cache_hits", r->cache_hits);
  sn_json_put_count(o, "cache_misses", r->cache_misses);
  sn_json_put_count(o, "evictions", r->evictions);
  sn_json_put_count(o, "recomputed_layers", r->recomputed_layers);
  sn_json_put_time(o, "iteration_ns", r->iteration_ns);
  sn_json_put_time(o, "stall_ns", r->stall_ns);
  sn_json_put_real(o, "images_per_second", r->images_per_second);
}

static void put_persistent(sn_json_object *o, const sn_persistent *p) {
  sn_json_object inner = {.json = cJSON_AddObjectToObject(o->json, "persistent")};
  inner.lost = !inner.json;
  sn_json_put_count(&inner, "parameters", p->parameters);
  sn_json_put_count(&inner, "parameter_gradients", p->parameter_gradients);
  sn_json_put_count(&inner, "optimizer_state", p->optimizer_state);
  sn_json_put_count(&inner, "auxiliary", p->auxiliary);
  sn_json_put_count(&inner, "input_batch", p->input_batch);
  sn_json_put_count(&inner, "labels", p->labels);
  o->lost = o->lost || inner.lost;
}

void sn_json_put_plan(sn_json_object *o, sn_strategy strategy, const sn_result *r) {
  sn_json_put_text(o, "dialect", sn_dialect_of(strategy.dialect)->name);
  if (r) {
    sn_json_put_text(o, "placement", r->placement);
    sn_json_put_count(o, "pool_bytes", r->pool_bytes);
    sn_json_put_count(o, "largest_load_bytes", r->largest_load_bytes);
    return;
  }
  static const char *const of_a_plan[] = {"placement", "pool_bytes", "largest_load_bytes"};
  for (size_t i = 0; i < sizeof of_a_plan / sizeof of_a_plan[0]; i++) sn_json_put_null(o, of_a_plan[i]);
}

static void put_pool(sn_json_object *o, const sn_result *r) {
  sn_json_put_text(o, "placement", r->placement);
  sn_json_put_count(o, "pool_bytes", r->pool_bytes);
  sn_json_put_count(o, "largest_load_bytes", r->largest_load_bytes);
  sn_json_put_count(o, "pool_step", r->pool_step);
  sn_json_put_text(o, "pool_layer", r->pool_layer);
  sn_json_put_text(o, "pool_pass", r->pool_pass);
  sn_json_put_text(o, "pool_cause", r->pool_cause);
  sn_json_put_count(o, "pool_tensor_bytes", r->pool_tensor_bytes);
  sn_json_put_count(o, "pool_workspace_bytes", r->pool_workspace_bytes);
  sn_json_put_count(o, "pool_hole_bytes", r->pool_hole_bytes);
  sn_json_put_count(o, "pool_bare_bytes", r->pool_bare_bytes);
  sn_json_put_count(o, "pool_largest_hole_bytes", r->pool_largest_hole);
}

/* What of the parts above one of several GPUs shares. */
static void put_live_shared(sn_json_object *o, const sn_live *live, const sn_shared_row *s) {
  sn_json_put_count(o, "sharded_parameters", live->parameters);
  sn_json_put_count(o, "unsharded_parameters", s->unsharded_parameters);
  sn_json_put_count(o, "sharded_gradients", s->sharded_gradients);
  sn_json_put_count(o, "unsharded_gradients", s->unsharded_gradients);
  sn_json_put_count(o, "all_gather", s->gather_buffers);
  sn_json_put_count(o, "buckets", s->buckets);
}

/* What PyTorch's tools say of the same peak. */
static void put_live(sn_json_object *o, const sn_live *live, const sn_shared_row *shared) {
  if (sn_live_total(live) == 0) return;
  sn_json_put_count(o, "live_peak_bytes", sn_live_total(live));
  sn_json_object inner = {.json = cJSON_AddObjectToObject(o->json, "live_at_peak")};
  inner.lost = !inner.json;
  sn_json_put_count(&inner, "parameters", live->parameters);
  sn_json_put_count(&inner, "buffers", live->buffers);
  sn_json_put_count(&inner, "gradients", live->gradients);
  sn_json_put_count(&inner, "optimizer", live->optimizer);
  sn_json_put_count(&inner, "activations", live->activations);
  sn_json_put_count(&inner, "temporary", live->temporary);
  if (shared->world > 0) put_live_shared(&inner, live, shared);
  o->lost = o->lost || inner.lost;
}

/* Of one of several GPUs. */
static void put_shared(sn_json_object *o, const sn_shared_row *s) {
  if (s->world == 0) return;
  sn_json_put_count(o, "world", s->world);
  sn_json_put_count(o, "groups", s->groups);
  sn_json_object inner = {.json = cJSON_AddObjectToObject(o->json, "traffic")};
  inner.lost = !inner.json;
  sn_json_put_count(&inner, "all_gather_bytes", s->gathered_bytes);
  sn_json_put_count(&inner, "reduce_scatter_bytes", s->scattered_bytes);
  sn_json_put_count(&inner, "all_reduce_bytes", s->reduced_bytes);
  sn_json_put_count(&inner, "send_bytes", s->sent_bytes);
  o->lost = o->lost || inner.lost;
  sn_json_put_count(o, "communicator_bytes", s->communicator_bytes);
  sn_json_put_time(o, "bubble_ns", s->bubble_ns);
  sn_json_put_time(o, "transfer_ns", s->transfer_ns);
  sn_json_put_time(o, "exposed_ns", s->exposed_ns);
  sn_json_put_real(o, "mfu", s->flops_share);
}

/* Null where operations run one after another. */
static void put_corun(sn_json_object *o, const sn_result *r) {
  const sn_corun_row *c = &r->corun;
  if (sn_corun_row_is_empty(c)) {
    sn_json_put_null(o, "corun");
    return;
  }
  sn_json_object inner = {.json = cJSON_AddObjectToObject(o->json, "corun")};
  inner.lost = !inner.json;
  sn_json_put_text(&inner, "policy", c->policy);
  sn_json_put_text(&inner, "interval", c->interval);
  sn_json_put_text(&inner, "sharing", c->sharing);
  if (c->budget_bytes)
    sn_json_put_count(&inner, "budget_bytes", c->budget_bytes);
  else
    sn_json_put_null(&inner, "budget_bytes");
  sn_json_put_count(&inner, "cores", c->cores);
  sn_json_put_count(&inner, "slots", c->slots);
  sn_json_put_count(&inner, "ops", c->ops);
  sn_json_put_count(&inner, "chain_ops", c->chain_ops);
  sn_json_put_time(&inner, "serial_ns", c->serial_ns);
  sn_json_put_real(&inner, "speedup", r->iteration_ns ? (double)c->serial_ns / (double)r->iteration_ns : 0);
  sn_json_put_real(&inner, "average_corun", c->average_corun);
  sn_json_put_count(&inner, "max_corun", c->max_corun);
  sn_json_put_time(&inner, "chain_ns", c->chain_ns);
  sn_json_put_time(&inner, "area_ns", c->area_ns);
  sn_json_put_time(&inner, "bound_ns", sn_corun_row_bound(c));
  sn_json_put_count(&inner, "added_waits", c->added_waits);
  sn_json_put_count(&inner, "profile_steps", c->profile_steps);
  sn_json_put_count(&inner, "measured_ops", c->measured_ops);
  o->lost = o->lost || inner.lost;
}

static void put_extra(sn_json_object *o, const sn_result *r) {
  sn_json_put_text(o, "dialect", r->dialect);
  put_live(o, &r->live, &r->shared);
  put_shared(o, &r->shared);
  if (r->reserved_bytes > 0) {
    sn_json_put_count(o, "allocated_bytes", r->allocated_bytes);
    sn_json_put_count(o, "reserved_bytes", r->reserved_bytes);
  }
  put_persistent(o, &r->persistent);
  sn_json_put_count(o, "context_bytes", r->context_bytes);
  put_pool(o, r);
  put_corun(o, r);
  sn_json_put_count(o, "external_bytes", r->external_bytes);
  sn_json_put_count(o, "host_bytes", r->host_bytes);
  sn_json_put_time(o, "compute_ns", r->compute_ns);
  sn_json_put_time(o, "allocation_ns", r->allocation_ns);
  sn_json_put_time(o, "measured_cost_ns", r->known_ns);
  sn_json_put_count(o, "instructions", r->instructions);
  sn_json_put_count(o, "events", r->events);
}

sn_status sn_json_write_result(const sn_run *run, const sn_result *r, bool steps, bool explain, const char *before,
                               FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  put_memory(&o, r);
  put_speed(&o, r);
  put_extra(&o, r);
  bool several = run && r->shared.world > 0;
  if (several && sn_report_is_of_sequences(run))
    sn_json_put_real(&o, "tokens_per_s", r->images_per_second * run->image_height);
  if (sn_json_end(&o, before, true, "", out, err) != SN_OK) return err->code;
  if (explain) fputs(",\"peak\":", out);
  if (explain && sn_json_write_peak(r->peak, r->n_peak, out, err) != SN_OK) return err->code;
  if (steps) fputs(",\"steps_table\":[", out);
  for (uint32_t i = 0; steps && i < r->n_steps; i++)
    if (write_step(&r->steps[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs(steps ? "\n]}" : "}", out);
  return SN_OK;
}

void sn_json_put_condition(sn_json_object *o, const sn_condition *condition, const sn_conditions *conditions) {
  const void *value = sn_condition_of(condition, conditions);
  switch (condition->kind) {
  case SN_CONDITION_WORD:
    sn_json_put_text(o, condition->name, *(const char *const *)value);
    break;
  case SN_CONDITION_FLAG:
    sn_json_put_bool(o, condition->name, *(const bool *)value);
    break;
  case SN_CONDITION_COUNT:
    sn_json_put_count(o, condition->name, *(const uint32_t *)value);
    break;
  case SN_CONDITION_BYTES:
    sn_json_put_count(o, condition->name, *(const uint64_t *)value);
    break;
  }
}

/* A disk's bandwidth stands behind what names it. */
static void put_conditions(sn_json_object *o, const sn_run *run) {
  for (const sn_condition *c = sn_condition_table; c < sn_condition_table + SN_CONDITION_ROWS; c++) {
    if (c->told || !sn_condition_is_usual(c, &run->conditions)) sn_json_put_condition(o, c, &run->conditions);
    if (strcmp(c->name, "external") == 0 && run->disk_bandwidth > 0)
      sn_json_put_real(o, "disk_bandwidth", run->disk_bandwidth);
  }
}

void sn_json_put_run(sn_json_object *o, const sn_run *run) {
  sn_json_put_text(o, "net", run->net);
  if (*run->net_name) sn_json_put_text(o, "net_name", run->net_name);
  sn_json_put_count(o, "batch", run->batch);
  sn_json_put_count(o, "image_height", run->image_height);
  sn_json_put_count(o, "image_width", run->image_width);
  if (run->image_depth) sn_json_put_count(o, "image_depth", run->image_depth);
  if (sn_report_is_of_sequences(run)) sn_json_put_count(o, "sequence", run->image_height);
  sn_json_put_text(o, "gpu", run->gpu);
  sn_json_put_count(o, "layers", run->layers);
  sn_json_put_count(o, "steps", run->n_steps);
  sn_json_put_count(o, "parameters", run->parameters);
  sn_json_put_count(o, "multiply_adds", run->macs);
  sn_json_put_count(o, "memory_bytes", run->memory_bytes);
  sn_json_put_bool(o, "memory_nominal", run->memory_nominal);
  sn_json_put_count(o, "host_memory_bytes", run->host_memory_bytes);
  put_conditions(o, run);
  sn_json_put_text(o, "costs", run->costs);
  sn_json_put_text(o, "version", run->version);
}

sn_status sn_json_write_failures(const sn_run *run, FILE *out, sn_err *err) {
  if (run->n_failures > 0) fputs(",\"failures\":[", out);
  for (uint32_t i = 0; i < run->n_failures && err->code == SN_OK; i++) {
    sn_json_object o = sn_json_begin();
    sn_json_put_text(&o, "strategy", run->failures[i].strategy);
    sn_json_put_text(&o, "reason", run->failures[i].reason);
    sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
  }
  if (run->n_failures > 0) fputs("\n]", out);
  return err->code;
}

/* Read and written again: a store may be of a stranger's. */
static sn_status write_answer(const sn_run *run, const sn_epoch *epoch, FILE *out, sn_err *err) {
  sn_answer *answer = *run->answer ? sn_answer_read(run->answer, err) : NULL;
  if (answer) sn_answer_put(answer, out, err);
  if (epoch && err->code == SN_OK)
    sn_epoch_write(epoch, run->gpu, sn_answer_pace(answer, run, sn_run_world(run)), out, err);
  sn_answer_free(answer);
  return err->code;
}

/* Of a pipeline: what each stage's GPU takes by each strategy. */
static sn_status write_stages(const sn_run *run, FILE *out, sn_err *err) {
  if (run->n_stages > 0) fputs(",\"stages\":[", out);
  for (uint32_t s = 0; s < run->n_stages && err->code == SN_OK; s++)
    for (uint32_t i = 0; i < run->stages[s]->n_results && err->code == SN_OK; i++) {
      const sn_result *r = &run->stages[s]->results[i];
      sn_json_object o = sn_json_begin();
      sn_json_put_count(&o, "stage", s);
      sn_json_put_text(&o, "strategy", r->strategy);
      sn_json_put_bool(&o, "fits", r->fits);
      sn_json_put_count(&o, "units", r->shared.blocks);
      sn_json_put_count(&o, "inflight", r->shared.in_flight);
      sn_json_put_count(&o, "peak_device_bytes", r->peak_device_bytes);
      sn_json_put_count(&o, "communicator_bytes", r->shared.communicator_bytes);
      sn_json_put_count(&o, "reserved_bytes", r->reserved_bytes);
      put_live(&o, &r->live, &r->shared);
      sn_json_put_time(&o, "forward_ns", r->shared.forward_ns);
      sn_json_put_time(&o, "backward_ns", r->shared.backward_ns);
      sn_json_put_time(&o, "update_ns", r->shared.update_ns);
      sn_json_end(&o, s + i ? ",\n" : "\n", false, "", out, err);
    }
  if (run->n_stages > 0) fputs("\n]", out);
  return err->code;
}

sn_status sn_json_write_run(const sn_run *run, bool steps, bool explain, FILE *out, sn_err *err) {
  return sn_json_write_run_with(run, steps, explain, NULL, out, err);
}

sn_status sn_json_write_run_with(const sn_run *run, bool steps, bool explain, const sn_epoch *epoch, FILE *out,
                                 sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_run(&o, run);
  if (sn_json_end(&o, "", true, "", out, err) != SN_OK) return err->code;
  if (write_answer(run, epoch, out, err) != SN_OK) return err->code;
  fputs(",\"results\":[", out);
  for (uint32_t i = 0; i < run->n_results; i++)
    if (sn_json_write_result(run, &run->results[i], steps, explain, i ? ",\n" : "\n", out, err) != SN_OK)
      return err->code;
  fputs("\n]", out);
  sn_json_write_failures(run, out, err);
  write_stages(run, out, err);
  fputs("}\n", out);
  return err->code;
}

static sn_status write_line(const sn_store_line *line, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_time(&o, "run", line->id);
  sn_json_put_text(&o, "created", line->created);
  sn_json_put_text(&o, "net", line->net);
  sn_json_put_count(&o, "batch", line->batch);
  sn_json_put_text(&o, "gpu", line->gpu);
  sn_json_put_count(&o, "strategies", line->n_results);
  sn_json_put_count(&o, "fit", line->n_fit);
  if (line->name[0]) sn_json_put_text(&o, "name", line->name);
  if (*line->parallel) sn_json_put_text(&o, "parallel", line->parallel);
  return sn_json_end(&o, before, false, "", out, err);
}

sn_status sn_json_write_list(const sn_store_list *list, FILE *out, sn_err *err) {
  fputs("{\"runs\":[", out);
  for (uint32_t i = 0; i < list->count; i++)
    if (write_line(&list->lines[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}
