/* What `snsim dtr` and `snsim plot --kind dtr` have in common: which logs are replayed, and how. */
#ifndef SN_CLI_COMMANDS_DTR_H
#define SN_CLI_COMMANDS_DTR_H

#include "cli/options/options.h"
#include "models/zoo/zoo.h"
#include "sim/dtr/dtr_replay.h"

typedef struct sn_dtr_asked {
  sn_dtr_heuristic heuristics[SN_DTR_HEURISTICS];
  sn_dtr_budget budgets[SN_ARGS_LISTS];
  uint32_t n_heuristics, n_budgets;
} sn_dtr_asked;

/* What the command line asks for; all heuristics and the usual budgets where it does not say. SN_BAD_USAGE. */
sn_status sn_dtr_asked_of(const sn_args *args, sn_dtr_asked *asked, sn_err *err);

/* Replays operand `index`. Of a recording the name of what was recorded goes into `name` of SN_NET_NAME bytes, where
 * that is not NULL; of logs it is left alone. */
sn_dtr_replay *sn_dtr_asked_replay(const sn_args *args, const sn_dtr_asked *asked, uint32_t index, char *name,
                                   sn_err *err);

/* A log's name without its folder. */
const char *sn_dtr_log_name(const char *path);

/* `snsim plot --kind dtr LOG..`: overhead over the budget (cli/commands/dtr_plot.c). */
sn_status sn_cli_plot_dtr(const sn_args *args, sn_err *err);

#endif
