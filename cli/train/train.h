/* Training for the commands that do it (run, validate, calibrate): opens a session as the command line asks, trains by
 * one strategy after another, in a process of its own (cli/train/apart.h), with progress on a terminal, and ends
 * after the current step on Ctrl-C, or behind the current iteration where its weights are to be written. */
#ifndef SN_CLI_TRAIN_TRAIN_H
#define SN_CLI_TRAIN_TRAIN_H

#include "base/err.h"
#include "cli/options/options.h"
#include "cli/train/apart.h"
#include "exec/session/session.h"
#include "sim/ask/run.h"

#include <stdbool.h>

/* Call it first in a command that trains: Ctrl-C is held back from here on. */
void sn_train_prepare(void);

/* The strategies of the command line, else the 13 default ones. Returns how many. */
uint32_t sn_train_strategies(const sn_args *args, sn_strategy strategies[SN_ARGS_STRATEGIES]);

/* Options of a session by the command line. */
sn_session_options sn_train_options(const sn_args *args);

/* For sessions that others run (exec/session/calibrate.h): sets the callbacks that show progress on a terminal, end at
 * Ctrl-C and find the stored calibration of the machine, called as --gpu says, else as the back end is called. The
 * watch must live as long as the session. */
typedef struct sn_train_watch {
  const sn_args *args;
  sn_apart *apart; /* the process of its own that trains */
  uint32_t n_strategies;
  const char *unit;    /* what a batch is made of: "images" */
  uint64_t samples;    /* of an iteration */
  uint64_t iterations; /* of each strategy */
  uint64_t seen;       /* iterations so far */
  bool within;         /* one has begun: weights and gradients are of no iteration */
} sn_train_watch;
void sn_train_attach(sn_train_watch *watch, sn_session_options *options);

/* What --gpu says, else the name of the back end. */
const char *sn_train_device_name(const sn_args *args);

/* After Ctrl-C, when all is printed and stored: says what `err` holds and ends the program by the signal. */
void sn_train_end(const sn_err *err);

/* The whole of `run` and `validate`: checks the command line, trains as `options` say, prints, stores and judges. */
sn_status sn_train_answer(const sn_args *args, sn_session_options *options, sn_err *err);

/* True where Ctrl-C was pressed. */
bool sn_train_interrupted(void);

/* Stores a run, unless --no-db says not to; says its number. What fails is said, not fatal: the figures are printed. */
sn_status sn_train_keep(const sn_args *args, const sn_run *run, sn_err *err);

/* Every measured result that is whole equals the first one to the bit; else SN_BUG. */
sn_status sn_train_judge(const sn_run *run, sn_err *err);

#endif
