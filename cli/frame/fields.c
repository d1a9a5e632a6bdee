/* Fields of runs and their rows; see the header. */
#include "cli/frame/fields.h"

#include "base/units.h"
#include "cli/frame/csv.h"
#include "sim/ask/run.h"

#include <inttypes.h>
#include <stdio.h>

#define KIND(member)                                                                                                   \
  _Generic((member), const char * : SN_FIELD_TEXT, bool : SN_FIELD_BOOL, uint32_t : SN_FIELD_U32, uint64_t             \
           : SN_FIELD_U64, int64_t : SN_FIELD_I64, double : SN_FIELD_REAL)
#define NAMED(name, type, member)                                                                                      \
  { name, KIND(((type *)0)->member), offsetof(type, member) }
#define FIELD(type, member)                                   NAMED(#member, type, member)
#define CONDITION(type, name, usual, told, over, title, axis) NAMED(#name, sn_run, conditions.name),
#define FIELDS(array)                                                                                                  \
  { array, sizeof(array) / sizeof(array)[0] }

static const sn_field run_fields[] = {
    FIELD(sn_run, net),
    FIELD(sn_run, batch),
    FIELD(sn_run, image_height),
    FIELD(sn_run, image_width),
    FIELD(sn_run, image_depth),
    FIELD(sn_run, gpu),
    FIELD(sn_run, memory_bytes),
    FIELD(sn_run, memory_nominal),
    FIELD(sn_run, host_memory_bytes),
    SN_CONDITIONS(CONDITION) FIELD(sn_run, costs),
    FIELD(sn_run, device),
    FIELD(sn_run, data),
    NAMED("iterations_asked", sn_run, iterations),
    FIELD(sn_run, layers),
    NAMED("steps", sn_run, n_steps),
    FIELD(sn_run, parameters),
    NAMED("multiply_adds", sn_run, macs),
    FIELD(sn_run, version),
};

static const sn_field result_fields[] = {
    FIELD(sn_result, strategy),
    FIELD(sn_result, dialect),
    FIELD(sn_result, step_order),
    FIELD(sn_result, source),
    FIELD(sn_result, fits),
    FIELD(sn_result, tensor_count),
    FIELD(sn_result, peak_tensor_bytes),
    FIELD(sn_result, peak_step),
    FIELD(sn_result, peak_layer),
    FIELD(sn_result, peak_pass),
    FIELD(sn_result, peak_fork_bytes),
    FIELD(sn_result, live_tensors_at_peak),
    FIELD(sn_result, max_live_tensors),
    FIELD(sn_result, peak_device_bytes),
    FIELD(sn_result, least_device_bytes),
    FIELD(sn_result, context_bytes),
    FIELD(sn_result, allocated_bytes),
    FIELD(sn_result, reserved_bytes),
    NAMED("live_at_peak.parameters", sn_result, live.parameters),
    NAMED("live_at_peak.buffers", sn_result, live.buffers),
    NAMED("live_at_peak.gradients", sn_result, live.gradients),
    NAMED("live_at_peak.optimizer", sn_result, live.optimizer),
    NAMED("live_at_peak.activations", sn_result, live.activations),
    NAMED("live_at_peak.temporary", sn_result, live.temporary),
    FIELD(sn_result, persistent.parameters),
    FIELD(sn_result, persistent.parameter_gradients),
    FIELD(sn_result, persistent.optimizer_state),
    FIELD(sn_result, persistent.auxiliary),
    FIELD(sn_result, persistent.input_batch),
    FIELD(sn_result, persistent.labels),
    FIELD(sn_result, placement),
    FIELD(sn_result, pool_bytes),
    FIELD(sn_result, largest_load_bytes),
    FIELD(sn_result, pool_step),
    FIELD(sn_result, pool_layer),
    FIELD(sn_result, pool_pass),
    FIELD(sn_result, pool_cause),
    FIELD(sn_result, pool_tensor_bytes),
    FIELD(sn_result, pool_workspace_bytes),
    FIELD(sn_result, pool_hole_bytes),
    FIELD(sn_result, pool_bare_bytes),
    NAMED("pool_largest_hole_bytes", sn_result, pool_largest_hole),
    FIELD(sn_result, pool_fragmentation),
    FIELD(sn_result, workspace_peak_bytes),
    FIELD(sn_result, offload_bytes),
    FIELD(sn_result, prefetch_bytes),
    FIELD(sn_result, external_bytes),
    FIELD(sn_result, host_bytes),
    FIELD(sn_result, cache_hits),
    FIELD(sn_result, cache_misses),
    FIELD(sn_result, evictions),
    FIELD(sn_result, recomputed_layers),
    FIELD(sn_result, iteration_ns),
    FIELD(sn_result, compute_ns),
    FIELD(sn_result, stall_ns),
    FIELD(sn_result, out_ns),
    FIELD(sn_result, in_ns),
    FIELD(sn_result, allocation_ns),
    FIELD(sn_result, images_per_second),
    FIELD(sn_result, instructions),
    FIELD(sn_result, events),
    NAMED("measured_cost_ns", sn_result, known_ns),
    FIELD(sn_result, corun.policy),
    FIELD(sn_result, corun.sharing),
    FIELD(sn_result, corun.interval),
    FIELD(sn_result, corun.budget_bytes),
    FIELD(sn_result, corun.cores),
    FIELD(sn_result, corun.slots),
    FIELD(sn_result, corun.ops),
    FIELD(sn_result, corun.chain_ops),
    FIELD(sn_result, corun.serial_ns),
    FIELD(sn_result, corun.chain_ns),
    FIELD(sn_result, corun.area_ns),
    FIELD(sn_result, corun.average_corun),
    FIELD(sn_result, corun.max_corun),
    FIELD(sn_result, corun.added_waits),
    FIELD(sn_result, corun.profile_steps),
    FIELD(sn_result, corun.measured_ops),
    FIELD(sn_result, reserved_pool_bytes),
    FIELD(sn_result, iterations),
    FIELD(sn_result, loss),
    FIELD(sn_result, accuracy),
    NAMED("largest_relative_difference", sn_result, difference),
    FIELD(sn_result, digest),
};

static const sn_field step_fields[] = {
    FIELD(sn_step_row, step),
    FIELD(sn_step_row, layer),
    FIELD(sn_step_row, op),
    FIELD(sn_step_row, pass),
    FIELD(sn_step_row, tensor_bytes),
    FIELD(sn_step_row, live_tensors),
    FIELD(sn_step_row, workspace_bytes),
    FIELD(sn_step_row, device_bytes),
    FIELD(sn_step_row, begin_ns),
    FIELD(sn_step_row, end_ns),
};

static const sn_field peak_fields[] = {
    FIELD(sn_peak_row, tensor),     FIELD(sn_peak_row, producer),  FIELD(sn_peak_row, bytes),
    FIELD(sn_peak_row, since_step), FIELD(sn_peak_row, next_step), FIELD(sn_peak_row, advice),
};

static const sn_field tensor_fields[] = {
    NAMED("tensor_id", sn_tensor_row, id), NAMED("tensor", sn_tensor_row, name), FIELD(sn_tensor_row, kind),
    FIELD(sn_tensor_row, layer),           FIELD(sn_tensor_row, bytes),
};

static const sn_field operation_fields[] = {
    FIELD(sn_operation_row, operation), FIELD(sn_operation_row, step),       FIELD(sn_operation_row, layer),
    FIELD(sn_operation_row, op),        FIELD(sn_operation_row, pass),       FIELD(sn_operation_row, part),
    FIELD(sn_operation_row, lane),      FIELD(sn_operation_row, first_core), FIELD(sn_operation_row, cores),
    FIELD(sn_operation_row, slot),      FIELD(sn_operation_row, rerun),      FIELD(sn_operation_row, begin_ns),
    FIELD(sn_operation_row, end_ns),
};

const sn_fields sn_run_fields = FIELDS(run_fields), sn_result_fields = FIELDS(result_fields),
                sn_step_fields = FIELDS(step_fields), sn_peak_fields = FIELDS(peak_fields),
                sn_tensor_fields = FIELDS(tensor_fields), sn_operation_fields = FIELDS(operation_fields);

const char *sn_field_print(const sn_field *field, const void *row, char *room) {
  const void *member = (const char *)row + field->offset;
  switch (field->kind) {
  case SN_FIELD_TEXT:
    return *(const char *const *)member;
  case SN_FIELD_BOOL:
    return sn_csv_bool(*(const bool *)member);
  case SN_FIELD_U32:
    snprintf(room, SN_FIELD_ROOM, "%" PRIu32, *(const uint32_t *)member);
    return room;
  case SN_FIELD_U64:
    snprintf(room, SN_FIELD_ROOM, "%" PRIu64, *(const uint64_t *)member);
    return room;
  case SN_FIELD_I64:
    snprintf(room, SN_FIELD_ROOM, "%" PRId64, *(const int64_t *)member);
    return room;
  case SN_FIELD_REAL:
    return sn_print_real(*(const double *)member, room);
  }
  return "";
}
