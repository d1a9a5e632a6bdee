/* What a user of PyTorch writes to have what a strategy plans: the call, and the modules to wrap. */
#ifndef SN_CLI_COMMANDS_ADVISE_CALLS_H
#define SN_CLI_COMMANDS_ADVISE_CALLS_H

#include "base/err.h"
#include "cli/frame/question.h"
#include "sim/ask/advise.h"

#include <stdio.h>

/* `best`: what was advised; NULL: nothing fits, and all calls that take less memory are told. */
sn_status sn_advise_print_calls(const sn_question *question, const sn_combination *best, FILE *out, sn_err *err);

#endif
