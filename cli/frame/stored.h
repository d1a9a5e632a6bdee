/* A stored run for commands that make something of it: snsim trace, snsim report. */
#ifndef SN_CLI_FRAME_STORED_H
#define SN_CLI_FRAME_STORED_H

#include "base/err.h"
#include "cli/options/options.h"
#include "db/store.h"
#include "sim/ask/run.h"
#include "sim/device/calibration.h"

/* Reads the run that the operand names from the database; NULL on an error. */
sn_run *sn_stored_run(const sn_args *args, sn_err *err);
/* The number of the run that operand `index` names, by number, "last" (0) or name; SN_BAD_USAGE where there is none of
 * that name. */
sn_status sn_stored_number(const sn_args *args, sn_store *store, uint32_t index, int64_t *id, sn_err *err);
/* Reads a run by number (0: the newest) from a store that is open, as every command that writes to --output does: it
 * must not be the network that the run was made from. */
sn_run *sn_stored_take(const sn_args *args, sn_store *store, int64_t id, sn_err *err);

/* The calibration that a run of measured costs was simulated with; NULL, without an error, for other runs. */
sn_calibration *sn_stored_calibration(const sn_args *args, const sn_run *run, sn_err *err);

/* Whether nothing was ever stored at `path`: there is no file, or an empty one. */
bool sn_stored_is_nothing(const char *path);

/* The stored measurements of a device for --costs: the newest of the name, or with hardware and libraries exactly
 * those. NULL where there are none or none are wanted. Where the store cannot be read `unread` says why: an error where
 * measured costs were asked for, else something to say, since the answer may be another than it would be. */
sn_calibration *sn_stored_costs(const sn_args *args, const char *name, const char *hardware, const char *libraries,
                                sn_err *unread);
void sn_stored_say_unread(const sn_err *unread);

/* Whether the database can be written, before long work whose result goes there. SN_BAD_FILE, SN_BAD_INPUT. */
sn_status sn_stored_check(const sn_args *args, sn_err *err);

/* Stores something in the database of the command line; `path` is where. Shows on a terminal that it waits for other
 * programs. */
enum { SN_STORED_PATH = 4096 + 64 };
typedef sn_status sn_stored_put(sn_store *store, void *what, sn_err *err);
sn_status sn_stored_write(const sn_args *args, sn_stored_put *put, void *what, char path[SN_STORED_PATH], sn_err *err);

/* For what took long to measure, where that failed: stores it in a new database beside the one that was meant, or in
 * the current folder. False where that failed too. */
bool sn_stored_rescue(const sn_args *args, sn_stored_put *put, void *what, char path[SN_STORED_PATH]);

/* The run's answer for a strategy; SN_BAD_USAGE, with the nearest one, and NULL where it has none. */
const sn_result *sn_stored_result(const sn_args *args, const sn_run *run, sn_strategy strategy, sn_err *err);

/* The result for the one strategy asked for, else the one that the run's verdict is of, else the fastest that fits,
 * else the one that needs the least. NULL on an error. */
const sn_result *sn_stored_choice(const sn_args *args, const sn_run *run, sn_err *err);

#endif
