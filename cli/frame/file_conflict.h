/* One file for two purposes would be read and then overwritten, or written twice. */
#ifndef SN_CLI_FRAME_FILE_CONFLICT_H
#define SN_CLI_FRAME_FILE_CONFLICT_H

#include "cli/options/options.h"
#include "sim/ask/run.h"

/* SN_BAD_USAGE where two of --net, --gpu, --grid, --data and its labels, the database and the files that SQLite keeps
 * beside it, --plan, --trace and --output are the same regular file, by whatever name, or would be if it were made. */
sn_status sn_file_conflict_check(const sn_args *args, sn_err *err);

/* The same for what a stored question was made from: --output and a file of a run, or of a sweep's grid. */
sn_status sn_file_conflict_check_run(const sn_args *args, const sn_run *run, sn_err *err);
sn_status sn_file_conflict_check_grid(const sn_args *args, const sn_grid *grid, sn_err *err);
/* By the grid's text; one that cannot be read has no files. */
sn_status sn_file_conflict_check_sweep(const sn_args *args, const char *grid, sn_err *err);

#endif
