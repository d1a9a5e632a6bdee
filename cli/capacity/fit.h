/* The questions of `snsim fit`, each in a file of its own: fit_largest.c, fit_memory.c, fit_gpu.c, fit_gpus.c. */
#ifndef SN_CLI_CAPACITY_FIT_H
#define SN_CLI_CAPACITY_FIT_H

#include "cli/options/options.h"

sn_status sn_cli_fit_largest(const sn_args *args, sn_err *err); /* --max */
sn_status sn_cli_fit_memory(const sn_args *args, sn_err *err);  /* --min memory */
sn_status sn_cli_fit_gpus(const sn_args *args, sn_err *err);    /* --min gpus */
sn_status sn_cli_fit_gpu(const sn_args *args, sn_err *err);     /* --which gpu */

#endif
