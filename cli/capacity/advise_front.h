/* `snsim advise --front`: the rules beside the optimum (sim/ask/optimum.h). */
#ifndef SN_CLI_CAPACITY_ADVISE_FRONT_H
#define SN_CLI_CAPACITY_ADVISE_FRONT_H

#include "cli/frame/question.h"

/* Prints the table, or with --json the object, and with -o draws the picture. */
sn_status sn_advise_front(const sn_question *question, sn_err *err);

#endif
