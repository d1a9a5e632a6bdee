/* A stored run for commands that make something of it: snsim trace, snsim report. */
#ifndef SN_CLI_FRAME_STORED_H
#define SN_CLI_FRAME_STORED_H

#include "base/err.h"
#include "cli/frame/options.h"
#include "db/store.h"
#include "sim/ask/run.h"
#include "sim/device/calibration.h"

/* Reads the run that the operand names from the database; NULL on an error. */
sn_run *sn_stored_run(const sn_args *args, sn_err *err);
/* Reads a run by number (0: the newest) from a store that is open, as every command that writes to --output does: it
 * must not be the network that the run was made from. */
sn_run *sn_stored_take(const sn_args *args, sn_store *store, int64_t id, sn_err *err);

/* The calibration that a run of measured costs was simulated with; NULL, without an error, for other runs. */
sn_calibration *sn_stored_calibration(const sn_args *args, const sn_run *run, sn_err *err);

/* The run's result for a strategy; SN_BAD_USAGE, with the nearest one, and NULL where it has none. */
const sn_result *sn_stored_result(const sn_args *args, const sn_run *run, sn_strategy strategy, sn_err *err);

/* The result for the one strategy asked for, else the one that the run's table calls the fastest, else the one that
 * needs the least. NULL on an error. */
const sn_result *sn_stored_choice(const sn_args *args, const sn_run *run, sn_err *err);

#endif
