/* Page: a run or a sweep as one HTML file that holds everything - figures, timelines, style, script - and opens from
 * disk without a network. The page's text, style and script are the files of plots/report/, which the build embeds;
 * what it shows is JSON inside it, so that nothing of the user's is ever markup or script.
 *
 * A curve, lane or map in the page has every step, bar and rectangle there is: nothing is thinned out. What that takes
 * grows with the run; SN_PAGE_MOST_ROWS is where browsers stop being quick.
 */
#ifndef SN_PLOTS_PAGE_PAGE_H
#define SN_PLOTS_PAGE_PAGE_H

#include "base/err.h"
#include "db/sweep.h"
#include "sim/ask/run.h"
#include "sim/play/timeline.h"

#include <stdint.h>
#include <stdio.h>

/* Bars and rectangles of all strategies together; with all that comes with them, each is about 50 bytes of the file. */
#define SN_PAGE_MOST_ROWS 1000000u

typedef struct sn_page_entry {
  const sn_result *result;
  const sn_timeline *timeline; /* of that result */
} sn_page_entry;

/* At least one entry; `remedy` says what would fit where none of them does (sim/capacity/remedy.h), else NULL. SN_BAD_INPUT
 * where there are more rows than the page can show, SN_BAD_FILE where writing fails.
 */
sn_status sn_page_write(const sn_run *run, const sn_page_entry *entries, uint32_t n_entries, const char *remedy,
                        FILE *out, sn_err *err);

/* A point is about 80 bytes of the file. */
#define SN_PAGE_MOST_POINTS 200000u

/* SN_BAD_INPUT for a sweep without a computed point, or with more than the page can show. */
sn_status sn_page_write_sweep(const sn_sweep *sweep, FILE *out, sn_err *err);

#endif
