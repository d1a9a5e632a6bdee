/* The members of a run, its results and their rows as named fields that print exactly, for output whose columns are
 * the same for everything: CSV, comparisons. Names are those of docs/json.md, with their units. */
#ifndef SN_CLI_FRAME_FIELDS_H
#define SN_CLI_FRAME_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sn_field_kind {
  SN_FIELD_TEXT,
  SN_FIELD_BOOL,
  SN_FIELD_U32,
  SN_FIELD_U64,
  SN_FIELD_I64,
  SN_FIELD_REAL
} sn_field_kind;

typedef struct sn_field {
  const char *name;
  sn_field_kind kind;
  size_t offset; /* of the member in its struct */
} sn_field;

typedef struct sn_fields {
  const sn_field *field;
  uint32_t count;
} sn_fields;

/* Of sn_run: what was asked, without id and date; and of the rows that a run holds. */
extern const sn_fields sn_run_fields, sn_result_fields, sn_step_fields, sn_peak_fields, sn_tensor_fields;

/* What a strategy of a run executes: a step, or of a co-run strategy a part of one. */
typedef struct sn_operation_row {
  uint32_t operation; /* from 1, in the order in which they start in the plan */
  uint32_t step;      /* that it computes */
  const char *layer, *op, *pass, *part, *lane;
  uint32_t first_core, cores; /* of a co-run strategy, else 0 */
  const char *slot;           /* of their hardware threads: "0", "1"; "any": `cores` threads that float; "": no cores */
  bool rerun;
  int64_t begin_ns, end_ns;
} sn_operation_row;

extern const sn_fields sn_operation_fields;

enum { SN_FIELD_ROOM = 40 };

/* The field of `row`: a text itself, anything else printed into `room` of SN_FIELD_ROOM bytes. Booleans are true and
 * false, reals have the fewest digits that read back as the same number. */
const char *sn_field_print(const sn_field *field, const void *row, char *room);

#endif
