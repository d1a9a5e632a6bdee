/* Row groups: tensors of blocks that are the same but for their number are one row of a table: "12 x
 * encoder.layers.*.mlp.0.y". Rows are alike whose tensors have as many bytes, the same advice, and names and makers
 * that differ in the first number between two dots alone.
 *
 *   sn_row_groups *alike = sn_row_groups_new(rows, n_rows, &err);
 *   for (uint32_t i = 0; i < alike->n_groups; i++) .. alike->groups[i] ..
 *   sn_row_groups_free(alike);
 */
#ifndef SN_CLI_FRAME_ROW_GROUPS_H
#define SN_CLI_FRAME_ROW_GROUPS_H

#include "base/err.h"
#include "sim/ask/run.h"

#include <stdint.h>
#include <stdio.h>

typedef struct sn_row_groups_group {
  uint32_t count;
  uint64_t bytes;           /* of all of them */
  const char *tensor;       /* "12 x h.*.attn.c_attn.y"; of one its name */
  const char *producer;     /* of several with a * too */
  const sn_peak_row *first; /* of the net */
} sn_row_groups_group;

typedef struct sn_row_groups {
  uint32_t n_groups;
  sn_row_groups_group *groups; /* most bytes first; of as many bytes in the order of their first rows */
  struct sn_arena *arena;
} sn_row_groups;

/* O(n log n). Looks at the rows, which must outlive it. NULL after SN_NO_MEMORY. */
sn_row_groups *sn_row_groups_new(const sn_peak_row *rows, uint32_t n_rows, sn_err *err);
void sn_row_groups_free(sn_row_groups *alike);

/* "and 152 smaller ones, 28.08 GiB in all; --json lists them", of the tensors of groups from `shown` on; nothing where
 * there are none. */
void sn_row_groups_print_rest(const sn_row_groups *alike, uint32_t shown, FILE *out);

#endif
