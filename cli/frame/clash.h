/* One file for two purposes would be read and then overwritten, or written twice. */
#ifndef SN_CLI_FRAME_CLASH_H
#define SN_CLI_FRAME_CLASH_H

#include "cli/frame/options.h"

/* SN_BAD_USAGE where two of --net, --gpu, --data, the database, --plan and --output are the same regular file, by
 * whatever name, or would be if it were made. */
sn_status sn_clash_check(const sn_args *args, sn_err *err);

#endif
