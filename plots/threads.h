/* Time of operations over their threads, a curve each, on logarithmic axes; where profiling thinks best is marked.
 * Written as sn_plot_runs() writes: whole or not at all, the same bytes for the same chart. */
#ifndef SN_PLOTS_THREADS_H
#define SN_PLOTS_THREADS_H

#include "base/err.h"

#include <stdint.h>

typedef struct sn_threads_curve {
  const char *name;
  const int64_t *ns; /* [1 .. threads] */
  uint32_t best;     /* threads */
} sn_threads_curve;

typedef struct sn_threads_chart {
  const char *title;
  uint32_t cores, threads; /* a line stands at `cores`; curves go to `threads` */
  const sn_threads_curve *curves;
  unsigned n_curves;
} sn_threads_chart;

sn_status sn_plot_threads(const sn_threads_chart *chart, const char *path, sn_err *err);

#endif
