/* Plan files: a plan from elsewhere - another planner's, one written by hand, one of our own - checked, and played on
 * the model of a device (sim/plan/read.h; docs/plan-format.md).
 *
 *   sn_plan_file *file = sn_plan_file_load("plan.json", &err);
 *   sn_plan_file_check(file, NULL, &device, &err);        proved safe, or SN_BAD_INPUT with line and rule
 *   sn_run *run = sn_plan_file_play(file, &device, &timeline, &err);
 *   sn_plan_file_free(file);
 */
#ifndef SN_SIM_ASK_PLAN_FILE_H
#define SN_SIM_ASK_PLAN_FILE_H

#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"
#include "sim/plan/read.h"
#include "sim/play/timeline.h"

typedef struct sn_plan_file {
  sn_json_lists *text;
  sn_plan_head head;
  sn_net *net; /* from here on NULL until it is checked */
  sn_costs *costs;
  sn_route *route;
  sn_plan *plan;
  sn_check_report report;
} sn_plan_file;

/* Reads the file and what it says it is a plan of. */
sn_plan_file *sn_plan_file_load(const char *path, sn_err *err);
/* The same of text in memory; `name` stands where the path would in errors. */
sn_plan_file *sn_plan_file_parse(const char *name, const char *text, size_t bytes, sn_err *err);
void sn_plan_file_free(sn_plan_file *file);

/* Reads the instructions for `net`, a name or a file of a network (NULL: what the plan names, which must be one of
 * snsim's own then); once. `device` gives the costs, which but for SINGA's graph change nothing. */
sn_status sn_plan_file_read(sn_plan_file *file, const char *net, const sn_device *device, sn_err *err);
/* Proves what was read. After an error file->report says which rule is broken, if one is. */
sn_status sn_plan_file_prove(sn_plan_file *file, sn_err *err);
/* Both. */
sn_status sn_plan_file_check(sn_plan_file *file, const char *net, const sn_device *device, sn_err *err);

/* Plays the checked plan on the device, which must be the one that it was checked with. The run has one result, whose
 * strategy is the plan's; a convolution runs the algorithm that the plan names, or where the device has it not or needs
 * more workspace than the plan gives, the fastest for which that is enough. *timeline is the caller's. SN_BAD_USAGE
 * of a plan of operations side by side where the device has not the cores for them. */
sn_run *sn_plan_file_play(sn_plan_file *file, const sn_device *device, sn_timeline **timeline, sn_err *err);

#endif
