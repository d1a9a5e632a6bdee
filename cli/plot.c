/* `snsim plot`: a picture of a stored run, in a file or in the terminal. */
#include "plots/plot.h"

#include "cli/options.h"
#include "db/store.h"

enum { PATH_ROOM = 4096 };

/* Into a file, or as text on standard output, as large as the terminal there. */
static sn_status draw(const sn_args *args, sn_store *store, int64_t id, sn_plot_options *options, sn_err *err) {
  sn_out out;
  if (options->path) {
    if (sn_plot_steps(store, id, options, err) == SN_OK) sn_out_say("%s written", options->path);
    return err->code;
  }
  if (sn_out_open(&out, NULL, args->color, err) != SN_OK) return err->code;
  options->terminal = out.stream;
  if (sn_out_size(out.stream, &options->columns, &options->rows) && options->rows > 1)
    options->rows--; /* the prompt's line */
  sn_plot_steps(store, id, options, err);
  return sn_out_close(&out, err);
}

sn_status sn_cli_plot(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM], texts[SN_ARGS_STRATEGIES][SN_STRATEGY_TEXT];
  const char *names[SN_ARGS_STRATEGIES];
  int64_t id;
  for (uint32_t i = 0; i < args->n_strategies; i++) names[i] = sn_strategy_name(args->strategies[i], texts[i]);
  sn_plot_options options = {
      .path = args->output, .strategies = args->n_strategies ? names : NULL, .n_strategies = args->n_strategies};
  if (sn_args_run(args, &id, err) != SN_OK || sn_args_database(args, path, sizeof path, err) != SN_OK) return err->code;
  sn_store *store = sn_store_open_read(path, err);
  if (!store) return err->code;
  draw(args, store, id, &options, err);
  sn_store_close(store);
  return err->code;
}
