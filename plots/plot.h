/* Pictures of stored runs, drawn by gnuplot, or as text for a terminal.
 *
 *   steps      functional-tensor memory over the steps; where it is asked for live tensors on a second axis, the form
 *              of figure 10 of [SN]; several runs in one picture, e.g. of two batch sizes or two GPUs
 *   live       live tensors over the steps; several runs too
 *   device     everything on the device over one strategy's steps, as a stack against the memory it has
 *   breakdown  time of an iteration and memory at the peak by type of layer, a bar per strategy
 *   timeline   the lanes and the memory over the time of one strategy's iteration
 *   pool       the addresses of one strategy's pool over the steps, a rectangle per tensor
 *   cores      of a co-run strategy: which operation is on which cores when
 *   corun      of co-run strategies: how many operations run at once
 *
 *   map        of a sweep only: what fits and how fast, by batch and strategy
 *   dtr        of DTR's logs, which are no runs: overhead over the budget (plots/dtr.h)
 *
 * Drawn from what the store holds; device, timeline, pool, cores and corun from a timeline, for which a run is
 * simulated again (sim/sweep/replay.h).
 *
 * Written to a temporary name beside `path` and renamed when whole: an error leaves no file and an older picture as it
 * was. gnuplot missing: SN_BAD_DEVICE with how to install it; text of all but steps and live does without.
 */
#ifndef SN_PLOTS_PLOT_H
#define SN_PLOTS_PLOT_H

#include "base/err.h"
#include "db/store.h"
#include "sim/ask/run.h"
#include "sim/play/timeline.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum sn_plot_kind {
  SN_PLOT_STEPS,
  SN_PLOT_LIVE,
  SN_PLOT_DEVICE,
  SN_PLOT_BREAKDOWN,
  SN_PLOT_TIMELINE,
  SN_PLOT_POOL,
  SN_PLOT_CORES,
  SN_PLOT_CORUN,
  SN_PLOT_MAP,
  SN_PLOT_DTR,
  SN_PLOT_KINDS
} sn_plot_kind;

/* "steps", ..; parsing an unknown name is SN_BAD_USAGE. */
const char *sn_plot_kind_name(sn_plot_kind kind);
sn_status sn_plot_kind_parse(const char *text, sn_plot_kind *kind, sn_err *err);
/* Whether a kind needs a timeline: sn_plot_timeline() draws it, or sn_plot_corun(). */
bool sn_plot_kind_is_played(sn_plot_kind kind);
/* Whether it is of co-run strategies only. */
bool sn_plot_kind_is_corun(sn_plot_kind kind);

typedef struct sn_plot_options {
  sn_plot_kind kind;
  bool with_live;                /* steps of one run in a file: live tensors too */
  const char *path;              /* .png, .svg, .pdf by ending; NULL draws as text into `terminal` */
  FILE *terminal;                /* where text goes */
  unsigned columns, rows;        /* size of the text drawing, at least 60 x 20; 0: 100 x 30 */
  const char *const *strategies; /* which of the runs' strategies; NULL: breakdown: all; several runs: baseline and
                                    liveness+offload+recompute=cost; else these, liveness, liveness+offload and the
                                    fastest that fits; those of them that a run has, else all it has */
  unsigned n_strategies;
  /* breakdown: when what runs side by side in a co-run result ran, so that its time can be split; NULL, without an
   * error, where that is not known. The function may be NULL as well. */
  sn_timeline *(*play)(void *player, const sn_result *result, sn_err *err);
  void *player;
  const sn_timeline *beside; /* pool, in a file: drawn beside it, the same strategy by first fit; NULL: nothing */
} sn_plot_options;

/* Steps and live of one or several runs, breakdown of one. SN_BAD_USAGE for an unknown ending or strategy and for more
 * than 6 curves as text, SN_BAD_INPUT for a run that was stored without step rows, or for breakdown without peaks. */
sn_status sn_plot_runs(const sn_run *const *runs, unsigned n_runs, const sn_plot_options *options, sn_err *err);

/* Device, timeline, pool and cores of one result of a run; the options' strategies do not count. SN_BAD_USAGE for cores
 * of a result that is not co-run. */
sn_status sn_plot_timeline(const sn_run *run, const sn_result *result, const sn_timeline *timeline,
                           const sn_plot_options *options, sn_err *err);

/* Corun, of at most SN_PLOT_CORUNS co-run results of a run, each with its timeline. SN_BAD_USAGE for others. */
enum { SN_PLOT_CORUNS = 6 };
sn_status sn_plot_corun(const sn_run *run, const sn_result *const *results, const sn_timeline *const *timelines,
                        unsigned count, const sn_plot_options *options, sn_err *err);

/* What a sweep is drawn over. */
typedef enum sn_plot_x {
  SN_PLOT_X_AUTO, /* of several meshes, none of them chosen, the last; else the first of these that has several values
                     and none of them chosen; else batch */
  SN_PLOT_X_BATCH,
  SN_PLOT_X_POOL,
  SN_PLOT_X_MEMORY,
  SN_PLOT_X_IMAGE,
  SN_PLOT_X_GPU,
  SN_PLOT_X_WORLD, /* of several meshes: how many GPUs; the curves are schemes, of one strategy */
  SN_PLOT_XS
} sn_plot_x;

/* "batch", ..; unknown: SN_BAD_USAGE. */
sn_status sn_plot_x_parse(const char *text, sn_plot_x *x, sn_err *err);

/* A sweep: memory and images per second over one axis, or the map, for one value of each other axis but the strategy.
 * Of those with several values the wanted one is drawn; where that is none of them (NULL never is, nor is a batch or
 * memory of 0), SN_BAD_USAGE lists them. Memory is the device's, or with limits of the pool the pool's. */
typedef struct sn_sweep_plot {
  sn_plot_options options; /* strategies NULL: the usual ones and superneurons, those of them that it has, else all */
  const char *net, *gpu;   /* NULL: rtx4090, where it has that */
  sn_conditions conditions;
  sn_plot_x x;
  uint32_t batch, image; /* 0: none chosen; the networks' own */
  uint64_t memory_bytes; /* 0: none chosen */
  uint32_t accumulate;   /* batches an update; 0: none chosen, which is 1 where it has that */
} sn_sweep_plot;

/* Draws sweep `id` (0: the newest). SN_BAD_INPUT for a sweep without a computed point. */
sn_status sn_plot_sweep(sn_store *store, int64_t id, const sn_sweep_plot *plot, sn_err *err);

/* SN_BAD_USAGE where a path's ending names no form of picture. */
sn_status sn_plot_check_path(const char *path, sn_err *err);

#endif
