/* A run in words and tables: what `snsim --net ..` and `snsim show RUN` print, from nothing but the run, so that both
 * print the same bytes. */
#ifndef SN_CLI_FRAME_REPORT_H
#define SN_CLI_FRAME_REPORT_H

#include "base/err.h"
#include "cli/frame/out.h"
#include "sim/ask/run.h"

/* Heading, one row per strategy and, where asked for, the rows of every step and the tensors of every peak, which the
 * run must hold. */
sn_status sn_report_run(const sn_run *run, bool steps, bool explain, const sn_out *out, sn_err *err);

/* A line for each strategy that has no result, with the reason: "baseline: not trained: .."; `what` is the word. */
void sn_report_failures(const sn_run *run, const char *what, FILE *out);

/* The result whose strategy needs the least device memory, fitting or not, the fastest of equals; NULL where the run
 * has none. */
const sn_result *sn_report_smallest(const sn_run *run);

/* What a batch is made of: "images", "sequences". */
const char *sn_report_unit(bool sequences);

#endif
