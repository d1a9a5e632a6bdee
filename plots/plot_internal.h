/* Inside the pictures: what the files of this folder share.
 *
 *   plot.c    which strategies, which form, where to; the file is whole or not there
 *   script.c  the picture as a gnuplot script
 *   gnuplot.c runs gnuplot on a script
 *   picture.c looks whether the file is whole
 */
#ifndef SN_PLOTS_PLOT_INTERNAL_H
#define SN_PLOTS_PLOT_INTERNAL_H

#include "base/err.h"
#include "db/store.h"

#include <stdio.h>

typedef enum sn__form { SN__FORM_PNG, SN__FORM_SVG, SN__FORM_PDF, SN__FORM_TEXT } sn__form;

typedef struct sn__chart {
  const sn_run *run;
  const sn_result *const *results; /* the curves, all with step rows */
  unsigned n_results;
  sn__form form;
  unsigned columns, rows; /* of SN__FORM_TEXT */
} sn__chart;

/* The most points of one curve; where there are more steps, a point is the largest of several steps. */
enum { SN__CURVE_POINTS = 4000 };

/* Writes a script that draws the chart to gnuplot's standard output. Errors stay in the stream (ferror). */
void sn__script_write(FILE *out, const sn__chart *chart);

/* Runs gnuplot with `script` (from its start) as input and the file descriptor `picture` as output. SN_BAD_DEVICE where
 * gnuplot is missing or fails, with what it said. */
sn_status sn__gnuplot_run(FILE *script, int picture, sn_err *err);

/* Checks that the picture in `file` is whole and dates it by its run's `created`. */
sn_status sn__picture_finish(int file, sn__form form, const char *created, sn_err *err);

#endif
