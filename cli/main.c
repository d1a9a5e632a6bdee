/* snsim: a discrete-event memory simulator and capacity planner for neural-network training. Reads the command line,
 * runs the command, says what went wrong. Exit codes: 0 done, 1 does not fit, 2 usage, 3 file, 4 device, 5 our bug. */
#include "cli/frame/clash.h"
#include "cli/frame/options.h"
#include "cli/frame/out.h"

#include <signal.h>

/* Whatever takes long, what it is for can be written: looked at before the work. */
static sn_status check_targets(const sn_args *args, sn_err *err) {
  if (sn_out_check(args->output, err) == SN_OK && sn_out_check(args->plan, err) == SN_OK)
    sn_out_check(args->trace, err);
  return err->code;
}

int main(int argc, char **argv) {
  sn_args args;
  sn_err err = SN_ERR_INIT;
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing like a full disk */
  if (sn_args_parse(argc, argv, &args, &err) == SN_OK && sn_clash_check(&args, &err) == SN_OK &&
      check_targets(&args, &err) == SN_OK) {
    if (args.help || args.version)
      sn_cli_help(&args, &err);
    else
      args.command->run(&args, &err);
  }
  if (err.code == SN_OK) return 0;
  sn_out_progress(NULL);
  sn_out_complain(err.code == SN_NO_FIT ? sn_status_name(err.code) : "error", err.text);
  return sn_status_exit_code(err.code);
}
