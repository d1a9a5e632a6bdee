/* Runs that were measured, in words and tables and as JSON: what `snsim run`, `snsim validate` and `snsim show RUN`
 * print of them. Where predicted results stand beside the measured ones, both are printed, with what differs. */
#ifndef SN_CLI_TRAIN_MEASURED_H
#define SN_CLI_TRAIN_MEASURED_H

#include "base/err.h"
#include "cli/options/out.h"
#include "sim/ask/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* True where anything of the run was measured. */
bool sn_measured(const sn_run *run);

sn_status sn_measured_print(const sn_run *run, bool steps, const sn_out *out, sn_err *err);
sn_status sn_measured_json(const sn_run *run, bool steps, FILE *out, sn_err *err);

/* A measured result with the predicted one of the same strategy before it. */
typedef struct sn_measured_pair {
  const sn_result *predicted; /* NULL: there is none */
  const sn_result *measured;
} sn_measured_pair;

/* The next pair from result *at on; false after the last. Starts with *at = 0. */
bool sn_measured_next(const sn_run *run, uint32_t *at, sn_measured_pair *pair);

/* Whether the result equals that of the run's first strategy to the bit; false also where either is not whole. */
bool sn_measured_equal(const sn_run *run, const sn_result *measured);

#endif
