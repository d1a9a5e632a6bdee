/* What PyTorch's tools say of a row: allocated, reserved, of what the live bytes consist, and what stays. */
#ifndef SN_CLI_FRAME_LIVE_H
#define SN_CLI_FRAME_LIVE_H

#include "sim/ask/run.h"

#include <stdio.h>

/* A line for each result that has such figures, behind an empty one. */
void sn_live_print(const sn_run *run, FILE *out);
/* ", parameters 3.14 GiB"; nothing of 0 bytes. */
void sn_live_print_size(FILE *out, const char *name, uint64_t bytes);
void sn_live_print_parts(const sn_live *live, FILE *out);

/* A line of what is there for the whole training; of all results, once for every graph among them. */
void sn_live_print_resident(const sn_run *run, const sn_result *result, FILE *out);
void sn_live_print_residents(const sn_run *run, FILE *out);

#endif
