/* A plan from a file, for the commands that train by it (run, validate): read, found to be one that can be executed
 * here, and proved, before anything else happens. */
#ifndef SN_CLI_TRAIN_TRAIN_PLAN_H
#define SN_CLI_TRAIN_TRAIN_PLAN_H

#include "base/err.h"
#include "cli/options/options.h"
#include "sim/ask/plan_file.h"

/* The plan that the command's operand names, of which the options take what it says of itself. SN_BAD_FILE,
 * SN_BAD_INPUT; SN_BAD_USAGE where it is right and yet cannot be executed. */
sn_plan_file *sn_train_plan_open(const sn_args *args, sn_session_options *options, sn_err *err);

/* What its row is called: the file without its folders. */
const char *sn_train_plan_name(const sn_args *args);

/* Says how much of the pool that it was executed in is not the plan's own. */
void sn_train_plan_say(const sn_args *args, const sn_plan_file *file, const sn_run *run);

#endif
