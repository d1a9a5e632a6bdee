/* `snsim report` */
#include "cli/options.h"
sn_status sn_cli_report(const sn_args *args, sn_err *err) {
  (void)args;
  return err->code;
}
