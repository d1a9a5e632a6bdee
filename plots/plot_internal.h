/* Inside the pictures: what the files of this folder share.
 *
 *   plot.c    step curves: which strategies, which form, where to
 *   script.c  step curves as a gnuplot script
 *   sweep.c   curves of a sweep over the batch: which points and strategies; sweep_script.c the gnuplot script
 *   chart.c   bars as a gnuplot script
 *   front.c   memory against time as a gnuplot script
 *   file.c    the file is whole or not there
 *   gnuplot.c runs gnuplot on a script
 *   picture.c looks whether the file is whole
 */
#ifndef SN_PLOTS_PLOT_INTERNAL_H
#define SN_PLOTS_PLOT_INTERNAL_H

#include "base/err.h"
#include "db/store.h"
#include "db/sweep.h"
#include "plots/plot.h"

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

/* Points of a sweep that differ in batch and strategy only. */
enum { SN__SWEEP_CURVES = 32 };
typedef struct sn__sweep_chart {
  const sn_sweep_row *const *rows; /* by batch; at least one */
  uint32_t n_rows;
  const char *strategies[SN__SWEEP_CURVES]; /* the curves */
  unsigned n_strategies;
  sn__form form;
  unsigned columns, lines; /* of SN__FORM_TEXT */
} sn__sweep_chart;

void sn__sweep_script_write(FILE *out, const sn__sweep_chart *chart);

/* What differs between the forms of files: the terminal's set-up and the size of a legend's letters. */
void sn__script_terminal(FILE *out, sn__form form);
const char *sn__script_key_font(sn__form form);
/* And the size of a curve's marks. */
const char *sn__script_mark_size(sn__form form);

/* Writes the last `most` characters of `text` for use inside single quotes. */
void sn__script_text(FILE *out, const char *text, size_t most);

/* Colours that colour-blind people can tell apart, the first black. */
enum { SN__COLOURS = 7 };
extern const char *const sn__colours[SN__COLOURS];

/* Writes a script about `what`; errors stay in the stream. */
typedef void (*sn__script_writer)(FILE *out, const void *what);

/* The form that the ending of `path` asks for. SN_BAD_USAGE. */
sn_status sn__form_find(const char *path, sn__form *form, sn_err *err);
/* Draws into the file descriptor `picture`. */
sn_status sn__draw(sn__script_writer write, const void *what, int picture, sn_err *err);
/* Draws into a file, dated `created` ("2026-11-20 09:31:07"); whole, or as it was before. */
sn_status sn__draw_file(sn__script_writer write, const void *what, const char *path, sn__form form, const char *created,
                        sn_err *err);
sn_status sn__fail_temporary(sn_err *err);

/* Draws as text, of the size that the options ask for. SN_BAD_USAGE for more curves than text can tell apart. */
void sn__text_size(const sn_plot_options *options, unsigned *columns, unsigned *rows);
sn_status sn__draw_text(sn__script_writer write, const void *what, unsigned n_curves, const sn_plot_options *options,
                        sn_err *err);

/* Runs gnuplot with `script` (from its start) as input and the file descriptor `picture` as output. SN_BAD_DEVICE where
 * gnuplot is missing or fails, with what it said. */
sn_status sn__gnuplot_run(FILE *script, int picture, sn_err *err);

/* Checks that the picture in `file` is whole and dates it by its run's `created`. */
sn_status sn__picture_finish(int file, sn__form form, const char *created, sn_err *err);

#endif
