/* `snsim validate`: predicted beside measured, strategy by strategy and step by step. */
#include "cli/options/options.h"
#include "cli/train/train.h"

sn_status sn_cli_validate(const sn_args *args, sn_err *err) {
  sn_session_options options = sn_train_options(args);
  sn_device profile;
  options.predict = true;
  sn_err unknown = SN_ERR_INIT; /* then the name is that of a calibration */
  if (args->profile && args->backend == SN_EXEC_CUDA && sn_device_load(args->profile, &profile, &unknown) == SN_OK)
    options.profile = &profile; /* a known GPU that may not be calibrated: its formulas */
  return sn_train_answer(args, &options, err);
}
