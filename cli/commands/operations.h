/* The table of operations for `snsim export --table ops`: a row for each that a strategy of a stored run executes. */
#ifndef SN_CLI_COMMANDS_OPERATIONS_H
#define SN_CLI_COMMANDS_OPERATIONS_H

#include "base/err.h"
#include "cli/frame/fields.h"
#include "cli/options/options.h"
#include "sim/ask/run.h"
#include "sim/play/timeline.h"

#include <stdint.h>
#include <stdio.h>

/* What a bar that computes says. */
sn_operation_row sn__operation_row(const sn_timeline *timeline, const sn_bar *bar, uint32_t operation);

/* Where rows go: `begin` is called before the first, `put` for each. */
typedef struct sn__operation_table {
  FILE *out;
  void (*begin)(FILE *out);
  void (*put)(FILE *out, const sn_run *run, const sn_result *result, const sn_operation_row *row);
} sn__operation_table;

/* The operations of the strategies asked for, else of all that the run has. A measured run is played back, any other
 * simulated again and compared with what is stored (sim/sweep/replay.h); nothing is written where that cannot be done. */
sn_status sn__operations_write(const sn_args *args, const sn_run *run, const sn__operation_table *table, sn_err *err);

#endif
