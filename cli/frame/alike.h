/* Alike: tensors of blocks that are the same but for their number are one row of a table: "12 x
 * encoder.layers.*.mlp.0.y". Rows are alike whose tensors have as many bytes, the same advice, and names and makers
 * that differ in the first number between two dots alone.
 *
 *   sn_alike *alike = sn_alike_new(rows, n_rows, &err);
 *   for (uint32_t i = 0; i < alike->n_groups; i++) .. alike->groups[i] ..
 *   sn_alike_free(alike);
 */
#ifndef SN_CLI_FRAME_ALIKE_H
#define SN_CLI_FRAME_ALIKE_H

#include "base/err.h"
#include "sim/ask/run.h"

#include <stdint.h>
#include <stdio.h>

typedef struct sn_alike_group {
  uint32_t count;
  uint64_t bytes;           /* of all of them */
  const char *tensor;       /* "12 x h.*.attn.c_attn.y"; of one its name */
  const char *producer;     /* of several with a * too */
  const sn_peak_row *first; /* of the net */
} sn_alike_group;

typedef struct sn_alike {
  uint32_t n_groups;
  sn_alike_group *groups; /* most bytes first; of as many bytes in the order of their first rows */
  struct sn_arena *arena;
} sn_alike;

/* O(n log n). Looks at the rows, which must outlive it. NULL after SN_NO_MEMORY. */
sn_alike *sn_alike_new(const sn_peak_row *rows, uint32_t n_rows, sn_err *err);
void sn_alike_free(sn_alike *alike);

/* "and 152 smaller ones, 28.08 GiB in all; --json lists them", of the tensors of groups from `shown` on; nothing where
 * there are none. */
void sn_alike_print_rest(const sn_alike *alike, uint32_t shown, FILE *out);

#endif
