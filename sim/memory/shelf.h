/* Shelf (internal to sim/): placed blocks in the order of their offsets, to find the lowest free place of another one.
 *
 * A list of runs of up to 64 blocks. Of a run it is known when it lives at all, when all of it lives, and how large its
 * largest gap is: so a search passes a run at a time over what is not there, and over what is there without a hole.
 * That makes it O(n / 64) in the usual case, where tensors wait in a stack for their backward step. Of the others it is
 * first found who lives, without a branch, several at a time. Among many runs a search passes what the one before it has
 * met at once, and groups of 16 runs at a time (shelf_internal.h).
 */
#ifndef SN_SIM_MEMORY_SHELF_H
#define SN_SIM_MEMORY_SHELF_H

#include <stdbool.h>
#include <stdint.h>

/* A placed block: [offset, end) in memory, [lower, upper) in time, which is below 2^31. */
typedef struct sn__spot {
  uint64_t offset, end;
  uint32_t lower, upper;
  uint32_t block; /* its number */
} sn__spot;

typedef struct sn__run sn__run;
typedef struct sn__page sn__page;

typedef struct sn__shelf {
  sn__run *runs;   /* by the offset of their first block */
  sn__page *pages; /* their blocks */
  uint32_t n_runs, room;
  uint32_t near;  /* the run where the last search or put ended, or any number */
  uint64_t looks; /* at blocks and runs so far, with those that were passed at once: a measure of the work */
} sn__shelf;

/* Makes room for `blocks` blocks; false where memory is out. Clear in either case. */
bool sn__shelf_init(sn__shelf *shelf, uint32_t blocks);
void sn__shelf_clear(sn__shelf *shelf);

void sn__shelf_empty(sn__shelf *shelf);
/* The lowest offset from `from` on at which `bytes` are free for the whole of [lower, upper). */
uint64_t sn__shelf_find(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from);
/* The same of who conflicts with all that is there, no two of which overlap. */
uint64_t sn__shelf_fit(sn__shelf *shelf, uint64_t bytes);
void sn__shelf_put(sn__shelf *shelf, sn__spot spot);
/* Takes the spot at `offset` away; no two of those that are there may overlap. */
void sn__shelf_take(sn__shelf *shelf, uint64_t offset);

/* All spots by offset: run 0.., and of each its spots and the highest end of them. */
const sn__spot *sn__shelf_run(const sn__shelf *shelf, uint32_t index, uint32_t *count, uint64_t *reach);

#endif
