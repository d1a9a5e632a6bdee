/* Fuzz target: plans from elsewhere. Whatever the bytes, there is a plan that the checker proves, or an error that says
 * where; a proved plan can be played, and takes what its addresses say. */
#include "tests/fuzz/fuzz.h"

#include "sim/ask/plan_file.h"
#include "sim/device/device.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 64, MOST_IMAGE = 64 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

/* Networks are read by a target of their own; here one is enough. */
static bool is_small(const sn_plan_head *head) {
  return strcmp(head->net, "lenet") == 0 && head->batch <= MOST_BATCH && head->image_height <= MOST_IMAGE;
}

static void play(sn_plan_file *file, const sn_device *device) {
  sn_err err = SN_ERR_INIT;
  sn_timeline *timeline;
  sn_run *run = sn_plan_file_play(file, device, &timeline, &err);
  require((run != NULL) == (err.code == SN_OK) && err.code != SN_BUG);
  if (run) require(run->results[0].pool_bytes == file->plan->pool_bytes && run->results[0].iteration_ns > 0);
  sn_timeline_free(timeline);
  sn_run_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  require(sn_device_load("k40c", &device, &err) == SN_OK);
  sn_plan_file *file = sn_plan_file_parse("fuzz.json", (const char *)data, size, &err);
  require((file != NULL) == (err.code == SN_OK));
  if (file && is_small(&file->head) && sn_plan_file_check(file, NULL, &device, &err) == SN_OK) {
    require(file->report.high_water <= file->plan->pool_bytes && file->report.rule == SN_RULE_NONE);
    play(file, &device);
  }
  require(err.code == SN_OK || strncmp(err.text, "fuzz.json:", 10) == 0);
  sn_plan_file_free(file);
  return 0;
}
