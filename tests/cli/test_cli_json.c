/* JSON output: whatever a run holds, what is written is JSON, holds every promised field, and holds it exactly. */
#include "cli/frame/json.h"

#include "tests/db/sample_run.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { RUNS = 300, ROWS = 40 };

/* The fields of the JSON contract, in README and in `snsim help`. */
static const char *const run_fields[] = {"net", "batch", "gpu", "layers", "steps", "parameters", "results"};
static const char *const result_fields[] = {
    "strategy",           "fits",
    "tensor_count",       "peak_tensor_bytes",
    "peak_step",          "peak_layer",
    "peak_pass",          "live_tensors_at_peak",
    "max_live_tensors",   "peak_device_bytes",
    "persistent_bytes",   "workspace_peak_bytes",
    "pool_fragmentation", "offload_bytes",
    "prefetch_bytes",     "cache_hits",
    "cache_misses",       "evictions",
    "recomputed_layers",  "iteration_ns",
    "least_device_bytes", "stall_ns",
    "images_per_second",
};
static const char *const step_fields[] = {"step",         "layer",        "op",          "pass",
                                          "tensor_bytes", "live_tensors", "device_bytes"};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void expect_fields(const cJSON *object, const char *const *fields, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!cJSON_HasObjectItem(object, fields[i])) fail_msg("no field \"%s\"", fields[i]);
}

static char *written(const sn_run *run, bool steps, bool explain) {
  char *text = NULL;
  size_t bytes;
  sn_err err = SN_ERR_INIT;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  assert_int_equal(sn_json_write_run(run, steps, explain, out, &err), SN_OK);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void expect_result(const cJSON *json, const sn_result *r, bool steps, bool explain) {
  expect_fields(json, result_fields, COUNT(result_fields));
  assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(json, "fits")), r->fits);
  assert_true(cJSON_GetObjectItem(json, "images_per_second")->valuedouble == r->images_per_second);
  const cJSON *table = cJSON_GetObjectItem(json, "steps_table"), *peak = cJSON_GetObjectItem(json, "peak");
  assert_int_equal(cJSON_IsArray(table), steps);
  assert_int_equal(cJSON_IsArray(peak), explain);
  if (steps) assert_int_equal(cJSON_GetArraySize(table), r->n_steps);
  if (explain) assert_int_equal(cJSON_GetArraySize(peak), r->n_peak);
  if (steps && r->n_steps) expect_fields(table->child, step_fields, COUNT(step_fields));
}

/* Details are written only where the run holds them; the commands see to that. */
static bool holds(const sn_run *run, bool steps) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (steps ? run->results[i].n_steps && !run->results[i].steps : run->results[i].n_peak && !run->results[i].peak)
      return false;
  return true;
}

static void any_run_is_written_as_json(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= RUNS; seed++) {
    sn_run *run = sample_run(seed, ROWS);
    bool steps = holds(run, true), explain = holds(run, false);
    char *text = written(run, steps, explain);
    cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
    if (!json) fail_msg("seed %u: no JSON:\n%s", (unsigned)seed, text);
    expect_fields(json, run_fields, COUNT(run_fields));
    const cJSON *results = cJSON_GetObjectItem(json, "results");
    assert_int_equal(cJSON_GetArraySize(results), run->n_results);
    for (uint32_t i = 0; i < run->n_results; i++)
      expect_result(cJSON_GetArrayItem(results, (int)i), &run->results[i], steps, explain);
    cJSON_Delete(json);
    free(text);
    sn_run_free(run);
  }
}

static void whole_numbers_are_exact(void **state) {
  (void)state;
  sn_run *run = sample_run(1, ROWS);
  run->parameters = UINT64_MAX;
  run->memory_bytes = UINT64_C(1000000000000000);
  char *text = written(run, false, false);
  assert_non_null(strstr(text, "\"parameters\":18446744073709551615,"));
  assert_non_null(strstr(text, "\"memory_bytes\":1000000000000000,"));
  free(text);
  sn_run_free(run);
}

static void hostile_names_stay_inside_their_strings(void **state) {
  (void)state;
  sn_run *run = sample_run(2, ROWS);
  run->net = "a\",\"batch\":\xFF\x1B[2J";
  char *text = written(run, false, false);
  assert_non_null(strstr(text, "{\"net\":\"a\\\",\\\"batch\\\":??[2J\","));
  free(text);
  sn_run_free(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_run_is_written_as_json),
      cmocka_unit_test(whole_numbers_are_exact),
      cmocka_unit_test(hostile_names_stay_inside_their_strings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
