/* `snsim plot`: a picture of a stored run or sweep, in a file or in the terminal. */
#include "plots/plot.h"

#include "cli/options.h"
#include "db/store.h"

#include <string.h>

enum { PATH_ROOM = 4096 };

/* Only a sweep has several to choose from. */
static sn_status check_choice(const sn_args *args, sn_err *err) {
  bool chosen = args->net || strcmp(args->gpu, "k40c") != 0 || args->workspace != SN_WORKSPACE_DYNAMIC ||
                args->external != SN_EXTERNAL_HOST || args->allocator != SN_ALLOCATOR_POOL || args->pool.given;
  if (!chosen || sn_args_is_sweep(args)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--net, --gpu and the like choose points of a sweep: snsim plot sweep:last --net NAME");
}

static sn_status draw_it(const sn_args *args, sn_store *store, int64_t id, const sn_plot_options *options,
                         sn_err *err) {
  const sn_sweep_plot plot = {.options = *options,
                              .net = args->net,
                              .gpu = args->gpu,
                              .workspace = sn_workspace_name(args->workspace),
                              .external = sn_external_name(args->external),
                              .allocator = sn_allocator_name(args->allocator),
                              .pool_limit_bytes = args->pool.bytes};
  return sn_args_is_sweep(args) ? sn_plot_sweep(store, id, &plot, err) : sn_plot_steps(store, id, options, err);
}

/* Into a file, or as text on standard output, as large as the terminal there. */
static sn_status draw(const sn_args *args, sn_store *store, int64_t id, sn_plot_options *options, sn_err *err) {
  sn_out out;
  if (options->path) {
    if (draw_it(args, store, id, options, err) == SN_OK) sn_out_say("%s written", options->path);
    return err->code;
  }
  if (sn_out_open(&out, NULL, args->color, err) != SN_OK) return err->code;
  options->terminal = out.stream;
  if (sn_out_size(out.stream, &options->columns, &options->rows) && options->rows > 1)
    options->rows--; /* the prompt's line */
  draw_it(args, store, id, options, err);
  return sn_out_close(&out, err);
}

sn_status sn_cli_plot(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM], texts[SN_ARGS_STRATEGIES][SN_STRATEGY_TEXT];
  const char *names[SN_ARGS_STRATEGIES];
  int64_t id;
  for (uint32_t i = 0; i < args->n_strategies; i++) names[i] = sn_strategy_name(args->strategies[i], texts[i]);
  sn_plot_options options = {
      .path = args->output, .strategies = args->n_strategies ? names : NULL, .n_strategies = args->n_strategies};
  sn_status understood = sn_args_is_sweep(args) ? sn_args_sweep(args, &id, err) : sn_args_run(args, &id, err);
  if (understood != SN_OK || check_choice(args, err) != SN_OK ||
      sn_args_database(args, path, sizeof path, err) != SN_OK)
    return err->code;
  sn_store *store = sn_store_open_read(path, err);
  if (!store) return err->code;
  draw(args, store, id, &options, err);
  sn_store_close(store);
  return err->code;
}
