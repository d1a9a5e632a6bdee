/* Front: memory against time of many ways to train the same network, the Pareto front among them as a line.
 *
 * Points on the front are numbered and named in the legend; the others are grey, hollow where they do not fit. The
 * device's limit is a line. Written as sn_plot_steps() writes: whole or not at all, the same bytes for the same chart.
 */
#ifndef SN_PLOTS_FRONT_H
#define SN_PLOTS_FRONT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_front_point {
  uint64_t bytes;
  int64_t ns;
  const char *name; /* of points on the front */
  bool fits, best;
} sn_front_point;

typedef struct sn_front_chart {
  const char *title, *device;
  uint64_t limit_bytes;        /* what there is to plan with */
  const sn_front_point *front; /* in the order of the numbers, rising or falling in memory */
  const sn_front_point *others;
  uint32_t n_front, n_others;
  /* A line of its own, by falling memory, in place of the one through the front's points; NULL: that one. */
  const sn_front_point *line;
  uint32_t n_line;
  const char *line_name;
  /* Another one beside that, thinner; NULL: none. */
  const sn_front_point *beside;
  uint32_t n_beside;
  const char *beside_name;
} sn_front_chart;

sn_status sn_plot_front(const sn_front_chart *chart, const char *path, sn_err *err);

#endif
