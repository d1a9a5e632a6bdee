/* Inside the pictures: what the files of this folder share.
 *
 *   plot.c    which run and strategies         script.c        its step curves as a gnuplot script
 *   sweep.c   which points and strategies      sweep_script.c  their curves over the batch as a gnuplot script
 *   draw.c    a script to a file or the terminal; the file is whole or not there
 *   style.c   what all pictures look like
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

/* ---- style.c ---- */
/* What differs between the forms: the terminal's set-up, the size of the legend's letters and of the curves' marks, how
 * far the passes' names and the title stand above their places, in lines. */
typedef struct sn__look {
  const char *terminal, *key_font, *mark_size, *lift;
} sn__look;

const sn__look *sn__look_of(sn__form form);
void sn__put_terminal(FILE *out, sn__form form, unsigned columns, unsigned rows);

/* Writes the last `most` characters of `text` for use inside single quotes. */
void sn__put_text(FILE *out, const char *text, size_t most);

/* Of a curve, by its number. Where there are more curves than colours, the colours come again in thicker lines. */
const char *sn__colour(unsigned curve);
unsigned sn__width(unsigned curve);
int sn__mark(unsigned curve);

/* ---- draw.c ---- */
typedef struct sn__drawing {
  void (*write)(FILE *out, const void *chart); /* the gnuplot script */
  const void *chart;
  sn__form form;
  const char *created; /* what is drawn */
  unsigned n_curves;
} sn__drawing;

/* The form by the path's ending, text without a path; SN_BAD_USAGE. */
sn_status sn__form_find(const char *path, sn__form *form, sn_err *err);
/* The size of a drawing as text. */
void sn__text_size(const sn_plot_options *options, unsigned *columns, unsigned *rows);
sn_status sn__draw(const sn__drawing *drawing, const sn_plot_options *options, sn_err *err);

/* ---- gnuplot.c, picture.c ---- */
/* Runs gnuplot with `script` (from its start) as input and the file descriptor `picture` as output. SN_BAD_DEVICE where
 * gnuplot is missing or fails, with what it said. */
sn_status sn__gnuplot_run(FILE *script, int picture, sn_err *err);

/* Checks that the picture in `file` is whole and dates it by its run's `created`. */
sn_status sn__picture_finish(int file, sn__form form, const char *created, sn_err *err);

#endif
