/* Pictures: step curves of a stored run, drawn by gnuplot.
 *
 * One panel per figure 10 of [SN]: step on the x axis with the forward/backward divide, memory on the left axis, live
 * tensors on the right axis, the chosen strategies overlaid. Reads the store's tables only.
 *
 * Written to a temporary name beside `path` and renamed when whole: an error leaves no file and an older picture as it
 * was. gnuplot missing: SN_BAD_DEVICE with how to install it.
 */
#ifndef SN_PLOTS_PLOT_H
#define SN_PLOTS_PLOT_H

#include "base/err.h"
#include "db/store.h"

#include <stdio.h>

typedef struct sn_plot_options {
  const char *path;              /* .png, .svg, .pdf by ending; NULL draws as text into `terminal` */
  FILE *terminal;                /* where text goes */
  unsigned columns, rows;        /* size of the text drawing, at least 60 x 20; 0: 100 x 30 */
  const char *const *strategies; /* which of the run's strategies; NULL: baseline, liveness, liveness+offload,
                                    liveness+offload+recompute=cost, those of them that the run has, else all */
  unsigned n_strategies;
} sn_plot_options;

/* Draws run `id` (0: the newest). SN_BAD_USAGE for an unknown ending or strategy and for more than 6 strategies as
 * text, SN_BAD_INPUT for a run that was stored without step rows. */
sn_status sn_plot_steps(sn_store *store, int64_t id, const sn_plot_options *options, sn_err *err);

/* SN_BAD_USAGE where a path's ending names no form of picture. */
sn_status sn_plot_check_path(const char *path, sn_err *err);

/* A sweep: device memory and images per second over the batch, for one network, GPU and set of options. Of an axis with
 * several values the wanted one is drawn; where that is none of them (NULL never is), SN_BAD_USAGE lists them. */
typedef struct sn_sweep_plot {
  sn_plot_options options; /* strategies NULL: the usual ones and superneurons, those of them that it has, else all */
  const char *net, *gpu, *workspace, *external, *allocator;
  uint64_t pool_limit_bytes; /* 0: all */
} sn_sweep_plot;

/* Draws sweep `id` (0: the newest). SN_BAD_INPUT for a sweep without a computed point. */
sn_status sn_plot_sweep(sn_store *store, int64_t id, const sn_sweep_plot *plot, sn_err *err);

#endif
