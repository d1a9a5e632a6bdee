/* What a screen says of times beside the times themselves: how far they are from what was measured. */
#ifndef SN_CLI_FRAME_TIMES_H
#define SN_CLI_FRAME_TIMES_H

#include "sim/ask/run.h"
#include "sim/capacity/bands.h"
#include "sim/policy/conditions.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A line under a table of so many rows with times, "times within 36 % on 9 of 10 of 20 networks (docs/truth.md)"; nothing
 * where there are none. */
void sn_times_print(const sn_timed *rows, uint32_t count, FILE *out);

/* The same where nobody measured any of them. */
void sn_times_print_unmeasured(FILE *out);

/* What names and conditions of a stored row say of its kind; card, tokens and the like are the caller's. False where they
 * are the words of a newer snsim. */
bool sn_times_read(const char *strategy, const sn_conditions *conditions, sn_timed *timed);

/* Of the rows of a run that fit. Of a recording the run does not know what was recorded: its answer has said it. */
void sn_times_print_run(const sn_run *run, FILE *out);

#endif
