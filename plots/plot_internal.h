/* Inside the pictures: what the files of this folder share.
 *
 *   plot.c      which strategies of which runs
 *   draw.c      a script to a file or the terminal; the file is whole or not there
 *   style.c     what all pictures look like
 *   script.c    what the scripts of a run's pictures have in common
 *   curves.c    steps and live       as gnuplot scripts
 *   device.c    all memory by what it is of, over the steps: as a script, and as text
 *   breakdown.c by type of layer     as a script, and as text
 *   parts.c     what memory and time are made of, and its colours
 *   lanes.c     the timeline         as a script, and as text
 *   pool_map.c  the pool             as a script, and as text
 *   cores.c     operations on cores  as a script, and as text
 *   corun.c     operations at once   as a script, and as text
 *   cells.c     rectangles as text
 *   sweep.c     a sweep: which points and strategies; sweep_world.c: which schemes of several GPUs; sweep_script.c: their curves over an axis as a script;
 *               sweep_map.c: what fits and how fast by that axis and strategy, as a script and as text
 *   dtr.c       overhead over budgets (dtr.h) as a script
 *   front.c     memory against time (front.h) as a script
 *   chart.c     bars (chart.h) as a script
 *   gnuplot.c   runs gnuplot on a script
 *   picture.c   looks whether the file is whole
 */
#ifndef SN_PLOTS_PLOT_INTERNAL_H
#define SN_PLOTS_PLOT_INTERNAL_H

#include "base/err.h"
#include "db/sweep.h"
#include "plots/plot.h"
#include "sim/graph/mesh.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum sn__form { SN__FORM_PNG, SN__FORM_SVG, SN__FORM_PDF, SN__FORM_TEXT } sn__form;

/* One strategy of one run. */
typedef struct sn__curve {
  const sn_run *run;
  const sn_result *result;
} sn__curve;

typedef struct sn__chart {
  sn_plot_kind kind;
  sn__form form;
  unsigned columns, rows;  /* of SN__FORM_TEXT */
  bool with_live;          /* of steps: live tensors on a second axis */
  const sn__curve *curves; /* what is drawn, at least one; all with step rows where steps are drawn */
  unsigned n_curves, n_runs;
  const sn_timeline *timeline;         /* of a kind that is played: of curves[0] */
  const sn_timeline *const *timelines; /* of corun: of each curve */
  const sn_timeline *beside;           /* of pool; NULL: nothing */
  const sn_plot_options *options;      /* of breakdown: whom to ask for timelines */
} sn__chart;

/* The most points of one curve; where there are more steps, a point is the largest of several steps. */
enum { SN__CURVE_POINTS = 4000 };

/* A timeline's lanes are drawn in so many columns, each of which is wider than a dot in every form. */
enum { SN__LANE_COLUMNS = 800 };

/* Writes a script that draws the chart to gnuplot's standard output. Errors of writing stay in the stream (ferror). */
sn_status sn__script_write(FILE *out, const sn__chart *chart, sn_err *err);

/* Writes the chart as text without gnuplot; breakdown, timeline and pool. */
sn_status sn__text_write(FILE *out, const sn__chart *chart, sn_err *err);

/* Points of a sweep that differ in strategy and the axis x only. */
enum { SN__SWEEP_CURVES = 32, SN__SWEEP_GPUS = 64, SN__SWEEP_X_TEXT = 64 };
typedef struct sn__sweep_chart {
  sn_plot_x x;                     /* not SN_PLOT_X_AUTO */
  const sn_sweep_row *const *rows; /* by x; at least one */
  uint32_t n_rows;
  const char *curves[SN__SWEEP_CURVES];          /* strategies; not of SN_PLOT_X_WORLD */
  const sn_sweep_row *schemes[SN__SWEEP_CURVES]; /* of SN_PLOT_X_WORLD the curves: a point of each scheme */
  unsigned n_curves;
  const char *gpus[SN__SWEEP_GPUS]; /* of SN_PLOT_X_GPU: from left to right */
  unsigned n_gpus;
  bool of_optimizers, of_accumulates, of_precisions; /* the sweep has several of these, one of which is drawn */
  sn__form form;
  unsigned columns, lines; /* of SN__FORM_TEXT */
} sn__sweep_chart;

/* ---- sweep_world.c ---- */
uint64_t sn__sweep_world(const sn_sweep_row *row);  /* GPUs of its mesh */
uint32_t sn__sweep_copies(const sn_sweep_row *row); /* those of them that see images of their own */
void sn__sweep_add_schemes(sn__sweep_chart *chart, const sn_sweep_row *const *rows, uint32_t n_rows);
const char *sn__sweep_scheme(const sn__sweep_chart *chart, unsigned curve, char text[SN_MESH_TEXT]);
bool sn__sweep_is_of_scheme(const sn__sweep_chart *chart, unsigned curve, const sn_sweep_row *row);

/* Where a point stands on x: images, GPUs, bytes, a number from 1 of a GPU; 0 is the pool of all that there is, and an image
 * of the network's own. In words: "300", "3 GiB", "all", "own", "k40c". */
uint64_t sn__sweep_x(const sn__sweep_chart *chart, const sn_sweep_row *row);
const char *sn__sweep_x_text(const sn__sweep_chart *chart, uint64_t value, char text[SN__SWEEP_X_TEXT]);

/* ", adam, 4 batches an update, amp-bf16", part of a title: what an iteration is, where that is not the plain one or
 * the sweep has others as well. */
void sn__sweep_put_iteration(FILE *out, const sn__sweep_chart *chart);

/* Whether the network reads sequences of tokens, of which `image` is the length. */
bool sn__sweep_is_of_sequences(const sn__sweep_chart *chart);

/* Whether a point is on a curve, and on any. */
bool sn__sweep_is_on(const sn__sweep_chart *chart, unsigned curve, const sn_sweep_row *row);
bool sn__sweep_is_drawn(const sn__sweep_chart *chart, const sn_sweep_row *row);
void sn__sweep_script_write(FILE *out, const sn__sweep_chart *chart);
void sn__sweep_map_write(FILE *out, const sn__sweep_chart *chart); /* as a script; of all its strategies */
void sn__sweep_map_text(FILE *out, const sn__sweep_chart *chart);

/* What tells the points of a sweep apart, but for numbers: as options are called, and where the word is in a point. */
typedef struct sn__axis {
  const char *name;
  size_t offset; /* in sn_sweep_row */
} sn__axis;
extern const sn__axis sn__axis_net, sn__axis_gpu, sn__axis_strategy;
sn__axis sn__axis_of(const sn_condition *condition);

/* All of them: network, GPU, conditions that are words and axes, strategy; how many. */
enum { SN__AXES = SN_CONDITION_ROWS + 3 };
int sn__axes(sn__axis axes[SN__AXES]);

static inline const char *sn__axis_value(const sn__axis *axis, const sn_sweep_row *row) {
  return *(const char *const *)(const void *)((const char *)row + axis->offset);
}

/* ---- style.c ---- */
/* Colours of Okabe and Ito, which colour-blind people can tell apart (Color Universal Design, 2008). */
#define SN__BLACK      "#000000"
#define SN__ORANGE     "#E69F00"
#define SN__SKY_BLUE   "#56B4E9"
#define SN__GREEN      "#009E73"
#define SN__YELLOW     "#F0E442"
#define SN__BLUE       "#0072B2"
#define SN__VERMILLION "#D55E00"
#define SN__PURPLE     "#CC79A7"
#define SN__GREY       "#999999"

/* What differs between the forms: the terminal's set-up, the size of the legend's letters, of names in bars and of the
 * curves' marks, how far the passes' names and the title stand above their places, in lines. */
typedef struct sn__look {
  const char *terminal, *key_font, *small_font, *mark_size, *lift;
} sn__look;

const sn__look *sn__look_of(sn__form form);
void sn__put_terminal(FILE *out, sn__form form, unsigned columns, unsigned rows);

/* The last `most` characters of a text for single quotes, within which gnuplot replaces nothing: names come from users,
 * so quotes are doubled; controls, C1 and bidirectional ones too, and broken UTF-8 are '?'. Of a long path the end says
 * more. */
void sn__put_text(FILE *out, const char *text, size_t most);
/* The same, not for quotes. */
void sn__put_plain(FILE *out, const char *text, size_t most);

enum { SN__COLOURS = 7 };

/* Of a curve, by its number. Where there are more curves than colours, the colours come again in thicker lines. */
const char *sn__colour(unsigned curve);
unsigned sn__width(unsigned curve);
int sn__number_set_has(unsigned curve);

/* ---- parts.c ---- */
/* What memory and time are made of, from the bottom of a stack to its top: what stays, tensors by the operator of their
 * layer, the rest of the pool; and time that is no step's, or of several at once. */
enum {
  SN__PART_CONTEXT,
  SN__PART_PARAMETERS,
  SN__PART_GRADIENTS,
  SN__PART_OPTIMIZER,
  SN__PART_DATA,
  SN__PART_CONV,
  SN__PART_FC,
  SN__PART_BN,
  SN__PART_ACT,
  SN__PART_POOL,
  SN__PART_LRN,
  SN__PART_CONCAT,
  SN__PART_JOIN,
  SN__PART_FORK,
  SN__PART_ATTENTION,
  SN__PART_NORM, /* of positions and groups */
  SN__PART_MUL,
  SN__PART_DROPOUT,
  SN__PART_EMBEDDING,
  SN__PART_SOFTMAX,
  SN__PART_OTHER, /* moves numbers and computes none */
  SN__PART_WORKSPACE,
  SN__PART_HOLES,
  SN__PART_WAITING,
  SN__PART_SIDE_BY_SIDE,
  SN__PARTS
};
typedef struct sn__part {
  const char *op, *name, *colour;
  char letter;
} sn__part;
extern const sn__part sn__parts[SN__PARTS];
/* The part's name in pictures of a run: by momentum or by another optimizer. */
const char *sn__part_name(unsigned part, const sn_run *run);

/* SN__PART_CONV .. SN__PART_OTHER. */
unsigned sn__part_of(const char *op);
/* By name of layer, for looking its operator up. */
typedef struct sn__owner {
  const char *layer, *op;
} sn__owner;
void sn__owners_sort(sn__owner *owners, uint32_t count);
unsigned sn__owner_part(const sn__owner *owners, uint32_t count, const char *layer);
/* The part of each of a timeline's tensors; the caller frees it. NULL: out of memory. */
uint8_t *sn__tensor_parts(const sn_timeline *timeline, sn_err *err);
/* Bytes that stay, of SN__PART_CONTEXT .. SN__PART_DATA; of others 0. */
uint64_t sn__resident_part(const sn_result *result, unsigned part);

/* ---- draw.c ---- */
typedef struct sn__drawing {
  sn_status (*write)(FILE *out, const void *chart, sn_err *err); /* the gnuplot script */
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

/* ---- script.c: parts of scripts ---- */

/* MiB, or GiB where `most` is large. */
typedef struct sn__unit {
  const char *name;
  double bytes;
} sn__unit;

sn__unit sn__unit_for(uint64_t most);

/* "alexnet, batch 200, on k40c", with what all runs of the chart have in common; of a timeline also the strategy, in
 * text on a line of its own. */
void sn__put_subject(FILE *out, const sn__chart *chart, void (*put)(FILE *out, const char *text, size_t most));

/* What the columns of a timeline's axis are (sim/play/timeline.h). */
const char *sn__axis_name(const sn_timeline *timeline);

/* The line between the passes at `divide` of an axis from `low` to `high`, up to `top` (1: the frame's), and their
 * names above the frame, where nothing is drawn. */
void sn__put_passes(FILE *out, const sn__chart *chart, double low, double divide, double high, double top);

/* The line behind which an axis has steps of the update, up to `high`, and their name. */
void sn__put_update(FILE *out, const sn__chart *chart, double low, double high);

/* The legend of a picture of several panels: a panel of its own, as wide as the picture, `top` of it high. Behind this
 * come its entries, the first with the separator "plot", the others with ",". */
void sn__put_key_panel(FILE *out, const sn__chart *chart, double top);
void sn__put_key_entry(FILE *out, const char *separator, const char *colour, const char *name);

/* The legend of a text: an entry behind `at` columns of its line, on the next where it is full. Returns where it ends.
 */
unsigned sn__put_letter(FILE *out, const sn__chart *chart, unsigned at, char letter, const char *name);

/* ---- cells.c: rectangles as text ---- */
typedef struct sn__cells {
  unsigned columns, rows, kinds;
  double *area; /* [row][column][kind], rows upwards: the share of the cell that the kind covers */
} sn__cells;

sn_status sn__cells_init(sn__cells *cells, unsigned columns, unsigned rows, unsigned kinds, sn_err *err);
void sn__cells_clear(sn__cells *cells);
/* Adds a rectangle of a kind, from and to, in cells; what lies outside is cut off. */
void sn__cells_cover(sn__cells *cells, unsigned kind, const double across[2], const double up[2]);
/* The kind that covers most of the cell; `kinds` where half of it is free. */
unsigned sn__cells_kind(const sn__cells *cells, unsigned row, unsigned column);

/* ---- the kinds ---- */
void sn__curves_write(FILE *out, const sn__chart *chart);
sn_status sn__breakdown_write(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__breakdown_text(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__lanes_write(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__lanes_text(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__device_write(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__device_text(FILE *out, const sn__chart *chart, sn_err *err);
void sn__pool_write(FILE *out, const sn__chart *chart);
sn_status sn__cores_write(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__cores_text(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__corun_write(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__corun_text(FILE *out, const sn__chart *chart, sn_err *err);
sn_status sn__pool_text(FILE *out, const sn__chart *chart, sn_err *err);

/* ---- gnuplot.c, picture.c ---- */

/* Runs gnuplot with `script` (from its start) as input and the file descriptor `picture` as output. SN_BAD_DEVICE where
 * gnuplot is missing or fails, with what it said. */
sn_status sn__gnuplot_run(FILE *script, int picture, sn_err *err);

/* Checks that the picture in `file` is whole and dates it by its run's `created`. */
sn_status sn__picture_finish(int file, sn__form form, const char *created, sn_err *err);

#endif
