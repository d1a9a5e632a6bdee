/* Plan: freeing, names, and the JSON form (docs/plan-format.md). */
#include "sim/plan/plan.h"

#include "models/op/op.h"
#include "sim/device/conv.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/plan/transfers.h"
#include "sim/policy/conditions.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void sn_plan_free(sn_plan *plan) {
  if (!plan) return;
  free(plan->instrs);
  free(plan->use);
  free(plan->teams);
  free(plan);
}

/* NULL where there is nothing, and where there is no memory. */
static void *copy_of(const void *from, size_t bytes) {
  void *copy = from ? malloc(bytes) : NULL;
  return copy ? memcpy(copy, from, bytes) : NULL;
}

sn_plan *sn_plan_copy(const sn_plan *plan, sn_err *err) {
  sn_plan *copy = copy_of(plan, sizeof *plan);
  if (!copy) return sn_fail_memory(err), NULL;
  copy->instrs = copy_of(plan->instrs, plan->n_instrs * sizeof *plan->instrs);
  copy->use = copy_of(plan->use, plan->route->n_steps * sizeof *plan->use);
  copy->teams = copy_of(plan->teams, plan->n_teams * sizeof *plan->teams);
  if (copy->instrs && copy->use && (copy->teams || plan->n_teams == 0)) return copy;
  sn_plan_free(copy);
  return sn_fail_memory(err), NULL;
}

uint32_t sn_plan_used_lanes(const sn_plan *plan, uint8_t number[SN_LANES]) {
  bool used[SN_LANES] = {false};
  uint32_t count = 0;
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++)
    if (i->lane < SN_LANES) used[i->lane] = true;
  for (sn_lane lane = 0; lane < SN_LANES; lane++) number[lane] = (uint8_t)(used[lane] ? count++ : 0);
  return count;
}

bool sn_plan_copies_out(const sn_plan *plan) {
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++)
    if (i->kind == SN_COPY_OUT || i->kind == SN_COPY_IN) return true;
  return false;
}

bool sn_plan_fits_outside(const sn_plan *plan) {
  return plan->external_limit == 0 || plan->external_bytes <= plan->external_limit;
}

bool sn_plan_fits(const sn_plan *plan) {
  return plan->pool_bytes <= plan->pool_limit && sn_plan_fits_outside(plan);
}

const char *sn_instr_kind_name(sn_instr_kind kind) {
  static const char *const names[SN_INSTR_KINDS] = {"alloc",   "release", "compute", "copy_out",
                                                    "copy_in", "signal",  "wait"};
  return names[kind];
}

const char *sn_lane_name(sn_lane lane) {
  static const char *const names[SN_LANES] = {"compute",  "out", "in",   "compute2", "compute3", "compute4", "compute5",
                                              "compute6", "tp",  "fsdp", "dp",       "send",     "receive"};
  return names[lane];
}

/* cJSON writes the quotes and escapes of names; everything else is numbers and words of ours. */
static bool write_text(FILE *out, const char *text) {
  cJSON *item = cJSON_CreateStringReference(text);
  char *quoted = item ? cJSON_PrintUnformatted(item) : NULL;
  bool good = quoted && fputs(quoted, out) >= 0;
  cJSON_free(quoted);
  cJSON_Delete(item);
  return good;
}

static bool write_tensors(const sn_route *r, FILE *out) {
  char name[SN_TENSOR_NAME];
  bool good = fputs("\"tensors\": [", out) >= 0;
  for (uint32_t t = 0; t < r->n_tensors && good; t++) {
    good = fprintf(out, "%s\n{\"id\": %u, \"name\": ", t ? "," : "", t) > 0 &&
           write_text(out, sn_tensor_name(r, t, name, sizeof name)) &&
           fprintf(out, ", \"kind\": \"%s\", \"bytes\": %" PRIu64 "}", sn_role_name(r->tensors[t].role),
                   r->tensors[t].bytes) > 0;
  }
  return good && fputs("\n],\n", out) >= 0;
}

/* A tensor changed in place stands in both lists. */
static bool write_accesses(const sn_route *r, const sn_step *step, sn_access_mode not_this, FILE *out) {
  const char *separator = "";
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    if (access.mode == not_this) continue;
    if (fprintf(out, "%s%u", separator, access.tensor) < 0) return false;
    separator = ", ";
  }
  return true;
}

static bool write_steps(const sn_route *r, FILE *out) {
  bool good = fputs("\"steps\": [", out) >= 0;
  for (uint32_t s = 0; s < r->n_steps && good; s++) {
    const sn_step *step = &r->steps[s];
    const sn_layer *layer = &r->layers[step->layer];
    good = fprintf(out, "%s\n{\"id\": %u, \"layer\": ", s ? "," : "", s + 1) > 0 && write_text(out, layer->name) &&
           fprintf(out, ", \"op\": \"%s\", \"pass\": \"%s\", \"reads\": [", sn_step_layer_op(r, step),
                   sn_pass_name(step->pass)) > 0 &&
           write_accesses(r, step, SN_WRITE, out) && fputs("], \"writes\": [", out) >= 0 &&
           write_accesses(r, step, SN_READ, out) && fputs("]}", out) >= 0;
  }
  return good && fputs("\n],\n", out) >= 0;
}

/* Of a co-run plan: which part of the step, and where. */
static bool write_team(const sn_plan *plan, const sn_instr *i, FILE *out) {
  const sn_team *team = &plan->teams[i->team];
  if (fprintf(out, ", \"part\": \"%s\", \"cores\": {", sn_step_part_name((sn_step_part)i->part)) < 0) return false;
  if (team->slot == SN_SLOT_ANY)
    return fprintf(out, "\"count\": %u, \"slot\": \"any\", \"of\": %u}", team->count, team->first) > 0;
  return fprintf(out, "\"first\": %u, \"count\": %u, \"slot\": %u}", team->first, team->count, team->slot) > 0;
}

static bool write_compute(const sn_plan *plan, const sn_instr *i, FILE *out) {
  const sn_step *step = &plan->route->steps[i->id];
  bool good = fprintf(out, ", \"step\": %u, \"recompute\": %s", i->id + 1, i->rerun ? "true" : "false") > 0;
  if (good && step->kernel == SN_TRANSFER) return sn__transfers_write(plan->route, i->id, out);
  if (good && sn_plan_is_corun(plan)) good = write_team(plan, i, out);
  if (good && i->algo[0] != SN_NO_ALGO)
    good = fprintf(out, ", \"%s\": \"%s\"", step->pass == SN_FORWARD ? "forward" : "backward_data",
                   sn_conv_algo_name((sn_conv_algo)i->algo[0])) > 0;
  if (good && i->algo[1] != SN_NO_ALGO)
    good = fprintf(out, ", \"backward_filter\": \"%s\"", sn_conv_algo_name((sn_conv_algo)i->algo[1])) > 0;
  if (good && i->bytes > 0)
    good = fprintf(out, ", \"workspace\": {\"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", i->offset, i->bytes) > 0;
  return good;
}

static bool write_instr(const sn_plan *plan, const sn_instr *i, FILE *out) {
  const char *what =
      i->kind == SN_COMPUTE ? sn__do_name(sn__do_of(plan->route, i->id)) : sn_instr_kind_name((sn_instr_kind)i->kind);
  if (fprintf(out, "{\"do\": \"%s\", \"lane\": \"%s\", \"at_step\": %u", what, sn_lane_name((sn_lane)i->lane),
              i->step + 1) < 0)
    return false;
  bool good = false;
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
  case SN_RELEASE:
    good =
        fprintf(out, ", \"tensor\": %u, \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64, i->id, i->offset, i->bytes) > 0;
    break;
  case SN_COPY_OUT:
  case SN_COPY_IN:
    good = fprintf(out, ", \"tensor\": %u, \"external_offset\": %" PRIu64 ", \"bytes\": %" PRIu64, i->id, i->offset,
                   i->bytes) > 0;
    break;
  case SN_COMPUTE:
    good = write_compute(plan, i, out);
    break;
  case SN_SIGNAL:
  case SN_WAIT:
    good = fprintf(out, ", \"fence\": %u", i->id) > 0;
    break;
  case SN_INSTR_KINDS:
    break;
  }
  return good && fputs("}", out) >= 0;
}

static bool write_instrs(const sn_plan *plan, FILE *out) {
  bool good = fputs("\"instructions\": [", out) >= 0;
  for (uint32_t i = 0; i < plan->n_instrs && good; i++)
    good = fputs(i ? ",\n" : "\n", out) >= 0 && write_instr(plan, &plan->instrs[i], out);
  return good && fputs("\n]\n}\n", out) >= 0;
}

/* What was asked, by the names of docs/json.md. */
static bool write_condition(const sn_condition *c, const sn_conditions *conditions, FILE *out) {
  char room[SN_CONDITION_TEXT];
  const char *text = sn_condition_text(c, conditions, room);
  if (!c->told && sn_condition_is_usual(c, conditions)) return true;
  if (fprintf(out, "\"%s\": ", c->name) < 0) return false;
  return (c->kind == SN_CONDITION_WORD ? write_text(out, text) : fputs(text, out) >= 0) && fputs(",\n", out) >= 0;
}

static bool write_question(const sn_plan *plan, const char *strategy, const sn_device *device, const sn_options *o,
                           FILE *out) {
  const sn_route *route = plan->route;
  const sn_layer *data = &route->layers[0];
  sn_conditions conditions = sn_conditions_of(o, route->net);
  if (route->micros > 0) conditions.accumulate = route->micros; /* all of which a stage's plan holds */
  bool good =
      fprintf(out, "{\n\"snsim_plan\": %d,\n\"net\": ", route->mesh ? SN__PLAN_FORMAT_GPUS : SN__PLAN_FORMAT) > 0 &&
      write_text(out, route->name) &&
      fprintf(out,
              ",\n\"batch\": %u,\n\"image_height\": %u,\n\"image_width\": %u,\n\"strategy\": "
              "\"%s\",\n\"gpu\": ",
              route->batch, sn_layer_rows(data), data->out.w, strategy) > 0 &&
      write_text(out, device->name) &&
      fprintf(out, ",\n\"memory_bytes\": %" PRIu64 ",\n\"host_memory_bytes\": %" PRIu64 ",\n", device->memory_bytes,
              device->host_memory_bytes) > 0;
  for (uint32_t i = 0; i < SN_CONDITION_ROWS && good; i++)
    good = write_condition(&sn_condition_table[i], &conditions, out);
  return good && fprintf(out, "\"costs\": \"%s\",\n", o->calibration ? "measured" : "model") > 0 &&
         sn__transfers_write_head(route, out);
}

/* Of several GPUs those of operations side by side are not there. */
static bool has_lane(const sn_plan *plan, sn_lane lane) {
  return !plan->transfers || lane < SN_PLAIN_LANES || sn_lane_transfers(lane);
}

static bool write_lanes(const sn_plan *plan, FILE *out) {
  bool good = fputs("\"lanes\": [", out) >= 0;
  for (uint32_t lane = 0; lane < sn_plan_lanes(plan) && good; lane++)
    good =
        !has_lane(plan, (sn_lane)lane) || fprintf(out, "%s\"%s\"", lane ? ", " : "", sn_lane_name((sn_lane)lane)) > 0;
  if (good && sn_plan_is_corun(plan))
    good = fprintf(out, "],\n\"cores\": %u,\n\"slots\": %u", plan->cores, plan->slots) > 0;
  else if (good)
    good = fputs("]", out) >= 0;
  return good && fputs(",\n", out) >= 0;
}

static bool write_sizes(const sn_plan *plan, FILE *out) {
  return fprintf(out,
                 "\"fits\": %s,\n\"pool_offered_bytes\": %" PRIu64 ",\n\"placement\": \"%s\",\n\"pool_bytes\": %" PRIu64
                 ",\n\"largest_load_bytes\": %" PRIu64 ",\n\"external_bytes\": %" PRIu64 ",\n\"block_bytes\": %" PRIu64
                 ",\n\"fences\": %u,\n\"layouts\": \"%s\",\n",
                 sn_plan_fits(plan) ? "true" : "false", plan->pool_limit, sn_placement_name(plan->placement),
                 plan->pool_bytes, plan->reserved_peak, plan->external_bytes, SN_POOL_BLOCK, plan->n_fences,
                 plan->layouts) > 0;
}

sn_status sn_plan_write(const sn_plan *plan, const char *strategy, const sn_device *device, const sn_options *options,
                        FILE *out, sn_err *err) {
  errno = 0;
  bool good = write_question(plan, strategy, device, options, out) && write_lanes(plan, out) &&
              write_sizes(plan, out) && write_tensors(plan->route, out) && write_steps(plan->route, out) &&
              write_instrs(plan, out) && fflush(out) == 0;
  if (good) return SN_OK;
  if (errno == ENOMEM) return sn_fail_memory(err);
  return sn_fail(err, SN_BAD_FILE, "the plan cannot be written: %s", strerror(errno));
}
