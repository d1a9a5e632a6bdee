/* Inside `snsim reproduce`: tables and figures of papers, and SINGA's, beside what the simulator finds.
 *
 *   reproduce.c           the command: which experiment, then print, write as JSON, draw
 *   reproduce_paper.c     the experiments and every number the paper prints, in one table
 *   reproduce_measure.c   asks the simulator for what such a number is about
 *   reproduce_figures.c   figures of which the paper prints no numbers: shares by layer type, workspaces
 *   reproduce_fit.c       the largest size that fits
 *   reproduce_singa.c     SINGA's memory of ResNet-50
 *   reproduce_corun_ops.c, reproduce_corun_nets.c   operations side by side: single ones, and whole networks
 */
#ifndef SN_CLI_REPRODUCE_REPRODUCE_H
#define SN_CLI_REPRODUCE_REPRODUCE_H

#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* What a number is about. */
typedef enum sn_quantity {
  SN_PEAK_MIB,       /* functional tensors at the peak */
  SN_LIVE_TENSORS,   /* how many of them there are at that step */
  SN_EXTRA_FORWARDS, /* of an iteration */
  SN_IMAGES_PER_S,
  SN_TRAFFIC_GB,    /* out and in together, an iteration; 10^9 bytes */
  SN_TENSORS_GIB,   /* all functional tensors */
  SN_NET_GIB,       /* the same and the fastest algorithm's workspace of every CONV */
  SN_RATIO,         /* of the two numbers before: the second to the first */
  SN_LARGEST_BATCH, /* that fits */
  SN_DEEPEST,       /* convolutions and FC of the deepest ResNet that fits */
  SN_SHARE_PERCENT,
  SN_WORKSPACE_MIB,
  SN_DEVICE_MIB, /* of the GPU in all, */
  SN_PART_MIB,   /* and a part of it; */
  SN_LISTED_MIB, /* printed, and not simulated */
  SN_MS,
  SN_THREADS,
  SN_ACCURACY_PERCENT,
  SN_STEPS, /* of training, for profiling */
  SN_OPS_AT_ONCE,
  SN_TIMES_OFF, /* from the paper's: max(ours / paper, paper / ours) */
  SN_QUANTITIES
} sn_quantity;

/* How it is measured, beyond the defaults. */
enum {
  SN_HOW_CUDA = 1,         /* cudaMalloc and cudaFree instead of the pool */
  SN_HOW_NO_WORKSPACE = 2, /* workspace none */
  SN_HOW_MOST = 4,         /* workspace max */
  SN_HOW_ENDLESS = 8,      /* a device with memory enough for anything */
  SN_HOW_3GIB = 16,        /* 3 GiB and no context */
  SN_HOW_NOT = 32          /* not at all: the paper does not say enough */
};

#define SN_PAPER_CARD   "k40c"
#define SN_SINGA_CARD   "rtx2080ti"
#define SN_CORUN_DEVICE "knl7250"
#define SN_NO_NUMBER    (-1.0) /* the paper prints none */

/* A number that the paper prints, or would. */
typedef struct sn_paper_cell {
  const char *experiment, *net;
  uint32_t batch; /* 0 where the batch is what is asked for */
  const char *series, *strategy;
  sn_quantity quantity;
  unsigned how;
  double paper;
} sn_paper_cell;

const sn_paper_cell *sn_paper_cells(uint32_t *count);

enum { SN_PAPER_TEXT = 64 };

/* A line of the answer. */
typedef struct sn_paper_row {
  char subject[SN_PAPER_TEXT]; /* "alexnet, batch 256" */
  char series[SN_PAPER_TEXT];  /* "caffe" */
  sn_quantity quantity;
  double paper, ours; /* NAN: none */
} sn_paper_row;

typedef struct sn_paper_rows {
  sn_paper_row *rows;
  uint32_t count, room;
} sn_paper_rows;

/* Adds a line; free() the rows. */
sn_status sn_paper_add(sn_paper_rows *rows, const sn_paper_row *row, sn_err *err);
/* The same of its parts; texts are cut where they are too long, and nothing is added behind an error. */
void sn_paper_put(sn_paper_rows *rows, const char *subject, const char *series, sn_quantity quantity, double paper,
                  double ours, sn_err *err);

typedef struct sn_experiment {
  const char *name, *section, *title, *notes;
  const char *paper, *gpu; /* NULL: that of SuperNeurons, and its card */
  sn_status (*measure)(const struct sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
  const char *axis;  /* of the picture; NULL: as the quantity says */
  sn_quantity drawn; /* the rows of this quantity's unit are drawn; */
  bool step_curves;  /* or the steps of AlexNet at batch 200 */
  bool log_scale, stacked;
} sn_experiment;

const sn_experiment *sn_experiments(uint32_t *count);

/* Measures the cells of the experiment, in their order. */
sn_status sn_cells_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_singa_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
/* Tables of the paper on co-running (docs/corun.md). */
sn_status sn_corun_table1(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_table2(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_table3(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_table5(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_table6(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_figure3(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_corun_figure4(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
/* Figures 8, 12 and 13. */
sn_status sn_shares_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_workspaces_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);
sn_status sn_models_measure(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err);

/* Simulates a cell's question on the paper's card, with steps; NULL after an error. */
sn_run *sn_cell_run(const sn_paper_cell *cell, sn_err *err);

#endif
