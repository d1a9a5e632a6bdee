/* A run in words and tables: what `snsim --net ..` and `snsim show RUN` print, from nothing but the run, so that both
 * print the same bytes where the GPU was named. */
#ifndef SN_CLI_FRAME_REPORT_H
#define SN_CLI_FRAME_REPORT_H

#include "base/err.h"
#include "cli/frame/epoch.h"
#include "cli/options/out.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"

typedef struct sn_report_wish {
  bool steps, explain;              /* the rows of every step, the tensors of every peak: the run must hold them */
  uint64_t margin_bytes;            /* beside the run's memory, which nobody planned with */
  sn_epoch epoch;                   /* what to tell of one, which is not stored either */
  const struct sn_cluster *cluster; /* on which several GPUs are; NULL: it is looked up */
  const char *gpu_why; /* why it is this GPU, which the heading says: "by default"; NULL or "" where it was named */
} sn_report_wish;

/* Heading, one row per strategy, and what is wished for. */
sn_status sn_report_run(const sn_run *run, sn_report_wish wish, const sn_out *out, sn_err *err);

/* A line for each strategy that has no result, with the reason: "baseline: not trained: .."; `what` is the word. */
void sn_report_failures(const sn_run *run, const char *what, FILE *out);

/* The result whose strategy needs the least device memory, fitting or not, the fastest of equals; NULL where the run
 * has none. */
const sn_result *sn_report_smallest(const sn_run *run);

/* Behind "disk", what times go by: " of 2 GB/s"; nothing where it is 0. */
void sn_report_disk(double bandwidth, FILE *out);

/* What a batch is made of: "images", "sequences". */
const char *sn_report_unit(bool sequences);
/* Of tokens: their number is the height of its image. */
bool sn_report_is_of_sequences(const sn_run *run);
const char *sn_report_run_unit(const sn_run *run);

/* "; 116 MiB to 522 MiB seen", where other people's contexts in PyTorch on such a GPU are known. */
void sn_report_seen(const sn_device *device, FILE *out);

#endif
