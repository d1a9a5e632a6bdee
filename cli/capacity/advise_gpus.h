/* `snsim advise --gpus`: how several GPUs may share an iteration. */
#ifndef SN_CLI_CAPACITY_ADVISE_GPUS_H
#define SN_CLI_CAPACITY_ADVISE_GPUS_H

#include "cli/frame/question.h"

/* What cannot be asked together with --gpus: SN_BAD_USAGE. */
sn_status sn_advise_gpus_check(const sn_args *args, sn_err *err);

/* Prints the table, or with --json the object. SN_NO_FIT where no way fits. */
sn_status sn_advise_gpus(const sn_question *question, sn_err *err);

#endif
