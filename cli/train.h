/* Training for the commands that do it (run, validate, calibrate): opens a session as the command line asks, trains by
 * one strategy after another with progress on a terminal, and ends after the current step on Ctrl-C. */
#ifndef SN_CLI_TRAIN_H
#define SN_CLI_TRAIN_H

#include "base/err.h"
#include "cli/options.h"
#include "exec/session.h"
#include "sim/run.h"

#include <stdbool.h>

/* Call it first in a command that trains: Ctrl-C is held back from here on, and the program may start itself again with
 * OpenMP's threads told to sleep where they have nothing to do. */
void sn_train_prepare(const sn_args *args);

/* The strategies of the command line, else the 13 default ones. Returns how many. */
uint32_t sn_train_strategies(const sn_args *args, sn_strategy strategies[SN_ARGS_STRATEGIES]);

/* Options of a session by the command line. */
sn_session_options sn_train_options(const sn_args *args);

/* Trains. The run holds what was measured, also where it was stopped or failed: look at `err` as well. NULL: nothing
 * was measured. `options` has no callbacks but `visit`; its `user` is kept for that. */
sn_run *sn_train(const sn_args *args, const sn_net *net, const sn_session_options *options, sn_err *err);

bool sn_train_interrupted(void);

/* Every measured result that is whole equals the first one to the bit; else SN_BUG. */
sn_status sn_train_judge(const sn_run *run, sn_err *err);

#endif
