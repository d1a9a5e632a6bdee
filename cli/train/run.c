/* `snsim run`: trains a network for real by the plans of one or several strategies and prints what was measured, and
 * whether every strategy gave the same result as the first, to the bit. */
#include "cli/options/options.h"
#include "cli/train/train.h"

sn_status sn_cli_run(const sn_args *args, sn_err *err) {
  sn_session_options options = sn_train_options(args);
  return sn_train_answer(args, &options, err);
}
