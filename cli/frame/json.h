/* A run for machines: one JSON object, one result, step and tensor a line (docs/json.md). Numbers are written
 * exactly; the same run gives the same bytes, whether it was just made or read back from the store. */
#ifndef SN_CLI_FRAME_JSON_H
#define SN_CLI_FRAME_JSON_H

#include "base/err.h"
#include "db/store.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* With `steps` every result has its "steps_table", with `explain` its "peak"; the run must hold them. */
sn_status sn_json_write_run(const sn_run *run, bool steps, bool explain, FILE *out, sn_err *err);
/* The same with what an epoch takes, where that is asked about (cli/frame/times.h). */
struct sn_epoch;
sn_status sn_json_write_run_with(const sn_run *run, bool steps, bool explain, const struct sn_epoch *epoch, FILE *out,
                                 sn_err *err);
/* Strategies without a result as a further member, ",\"failures\":[..]"; nothing where there are none. */
sn_status sn_json_write_failures(const sn_run *run, FILE *out, sn_err *err);
/* The rows of a peak as an array, one a line. */
sn_status sn_json_write_peak(const sn_peak_row *rows, uint32_t count, FILE *out, sn_err *err);
/* One of its results, as it stands there, behind `before`. run NULL: without what the run says of it. */
sn_status sn_json_write_result(const sn_run *run, const sn_result *result, bool steps, bool explain, const char *before,
                               FILE *out, sn_err *err);
/* The list of stored runs, {"runs":[..]}. */
sn_status sn_json_write_list(const sn_store_list *list, FILE *out, sn_err *err);

/* Objects one at a time, for lists whose rows are made on the way. */
typedef struct sn_json_object {
  struct cJSON *json;
  bool lost; /* a member did not find memory */
} sn_json_object;

sn_json_object sn_json_begin(void);
void sn_json_put_text(sn_json_object *object, const char *key, const char *text);
void sn_json_put_count(sn_json_object *object, const char *key, uint64_t value);
void sn_json_put_time(sn_json_object *object, const char *key, int64_t value); /* or anything that may be negative */
void sn_json_put_real(sn_json_object *object, const char *key, double value);
void sn_json_put_null(sn_json_object *object, const char *key);
void sn_json_put_bool(sn_json_object *object, const char *key, bool value);
/* What every result says of its plan: dialect, placement, pool_bytes, largest_load_bytes. `result` may be NULL, which
 * has no plan: then only whose graph the strategy plans is known, and the rest is null. */
void sn_json_put_plan(sn_json_object *object, sn_strategy strategy, const sn_result *result);
/* What `--json` says of a run besides its results. */
void sn_json_put_run(sn_json_object *object, const sn_run *run);
/* A condition under its name. */
void sn_json_put_condition(sn_json_object *object, const sn_condition *condition, const sn_conditions *conditions);
/* Writes `before`, the object and `after`, and frees the object. `open` leaves out the closing brace. */
sn_status sn_json_end(sn_json_object *object, const char *before, bool open, const char *after, FILE *out, sn_err *err);

#endif
