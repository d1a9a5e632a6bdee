/* Charts: groups of bars, a colour for each series, with a mark over a bar for the number it is compared with. Drawn by
 * gnuplot into a file, like the pictures of plots/plot.h.
 *
 *     |   _        o       o: the mark, "paper"
 *     |  |o|_     _
 *     |  | | |   |_|_
 *     +------------------
 *        alexnet  vgg16
 */
#ifndef SN_PLOTS_CHART_H
#define SN_PLOTS_CHART_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sn_chart_bar {
  const char *group, *series;
  double value, mark; /* NAN: none */
} sn_chart_bar;

typedef struct sn_chart {
  const char *title, *y_label, *mark_label;
  const char *missing_label; /* written where a value is NAN; NULL: nothing is */
  bool log_scale; /* values and marks above 0 only; dots in place of bars: a bar's length would say nothing */
  bool stacked;   /* bars of a group stand on each other, in the order of their series; no marks */
  const sn_chart_bar *bars;
  unsigned n_bars;
} sn_chart;

/* Groups and series appear in the order in which the bars name them first. Texts are drawn as they are: no quotes, no
 * control characters. SN_BAD_USAGE for an unknown ending, SN_BAD_DEVICE where gnuplot is missing. */
sn_status sn_chart_draw(const sn_chart *chart, const char *path, sn_err *err);

#endif
