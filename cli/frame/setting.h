/* What heads say of a question behind network, batch and precision. */
#ifndef SN_CLI_FRAME_SETTING_H
#define SN_CLI_FRAME_SETTING_H

#include "sim/ask/run.h"

#include <stdio.h>

/* ", frozen: conv*, host 40 us, run and not trained, on rtx4090" */
void sn_print_setting(const sn_run *run, FILE *f);

#endif
