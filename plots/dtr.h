/* DTR: the overhead of recomputing over the budget, a panel per log and a curve per heuristic, as figure 2 of DTR's
 * paper. Where a run fails there is no point. Written as sn_plot_runs() writes: whole or not at all, the same bytes for
 * the same chart. */
#ifndef SN_PLOTS_DTR_H
#define SN_PLOTS_DTR_H

#include "base/err.h"
#include "plots/plot.h"

#include <stdint.h>

typedef struct sn_dtr_point {
  double ratio, overhead; /* of the memory without a limit; of the time */
} sn_dtr_point;

typedef struct sn_dtr_curve {
  const char *name;
  const sn_dtr_point *points; /* by ratio */
  uint32_t n_points;
} sn_dtr_curve;

enum { SN_PLOT_DTR_CURVES = 6, SN_PLOT_DTR_PANELS = 8 };

typedef struct sn_dtr_panel {
  const char *name;
  sn_dtr_curve curves[SN_PLOT_DTR_CURVES]; /* the same in all panels, some perhaps without points */
} sn_dtr_panel;

typedef struct sn_dtr_chart {
  sn_dtr_panel panels[SN_PLOT_DTR_PANELS];
  unsigned n_panels, n_curves;
} sn_dtr_chart;

/* Into options->path, or as text into options->terminal, which has room for one panel (SN_BAD_USAGE). */
sn_status sn_plot_dtr(const sn_dtr_chart *chart, const sn_plot_options *options, sn_err *err);

#endif
