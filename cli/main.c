/* snsim: a discrete-event memory simulator and capacity planner for neural-network training. Reads the command line,
 * runs the command, says what went wrong. Exit codes: 0 done, 1 does not fit, 2 usage, 3 file, 4 device, 5 our bug. */
#include "cli/frame/file_conflict.h"
#include "cli/frame/question.h"
#include "cli/frame/recorder.h"
#include "cli/options/options.h"
#include "cli/options/out.h"
#include "models/json/mistakes.h"

#include <limits.h>
#include <signal.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Whatever takes long, what it is for can be written: looked at before the work. */
static sn_status check_targets(const sn_args *args, sn_err *err) {
  const char *const targets[] = {args->output, args->plan, args->trace, args->files.save, args->files.gradients};
  for (size_t i = 0; i < sizeof targets / sizeof targets[0] && err->code == SN_OK; i++) sn_out_check(targets[i], err);
  return err->code;
}

/* What is planned with comes and goes with every strategy, 10^5 layers some hundred MB at a time: the system need not
 * take it back and clear it anew in between. Not where memory is measured. */
static void keep_memory(const sn_command *command) {
#ifdef __GLIBC__
  if (!(command->bit & (SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP))) return;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 1 << 22);
#else
  (void)command;
#endif
}

/* A network file with more mistakes than an error has room for is listed in full. */
static void complain(const sn_args *args, const sn_err *err) {
  char text[SN_MISTAKES_TEXT];
  bool of_net = err->code == SN_BAD_INPUT && args->net;
  if (of_net) sn_net_mistakes(args->net, args->batch ? args->batch : 1, args->image, err, text, sizeof text);
  sn_out_complain(err->code == SN_NO_FIT ? sn_status_name(err->code) : "error", of_net ? text : err->text);
}

/* Recording takes minutes: what can be wrong without it is said first. */
static sn_status check_early(const sn_args *args, sn_err *err) {
  if (!sn_args_is_source(args)) return SN_OK;
  if (args->command->bit == SN_CMD_FIT) return sn_cli_fit_check(args, err);
  if (args->command->bit == SN_CMD_ADVISE) return sn_cli_advise_check(args, err);
  return sn_question_check_complete(args, err);
}

/* A model in Python is a recording from here on. */
static sn_status take_source(sn_args *args, sn_err *err) {
  if (args->help || args->version) return SN_OK;
  return check_early(args, err) == SN_OK ? sn_recorder_take(args, err) : err->code;
}

int main(int argc, char **argv) {
  sn_args args;
  sn_err err = SN_ERR_INIT;
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing like a full disk */
  if (sn_args_parse(argc, argv, &args, &err) == SN_OK && sn_file_conflict_check(&args, &err) == SN_OK &&
      check_targets(&args, &err) == SN_OK && take_source(&args, &err) == SN_OK) {
    if (args.help || args.version)
      sn_cli_help(&args, &err);
    else {
      keep_memory(args.command);
      args.command->run(&args, &err);
    }
  }
  if (err.code == SN_OK) return 0;
  sn_out_progress(NULL);
  complain(&args, &err);
  return sn_status_exit_code(err.code);
}
