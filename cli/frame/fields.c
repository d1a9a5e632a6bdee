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

#define OF_RESULT(range, member, name, column) NAMED(name, sn_result, member),
static const sn_field result_fields[] = {SN_RESULT_FIELDS(OF_RESULT)};

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
