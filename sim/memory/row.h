/* Row (internal to sim/memory/caching.c): numbers in the order of two keys, the second deciding where the first are
 * equal.
 *
 *   runs   [ (512, 0x200) (512, 0x900) .. | (1024, 0x100) .. | .. ]
 *
 * They stand in runs of up to 64: finding is O(log n), putting and pulling move what is behind in the run, and one in
 * 32 divides a run, which is O(n / 64). A row of some hundred is one of few runs.
 */
#ifndef SN_SIM_MEMORY_ROW_H
#define SN_SIM_MEMORY_ROW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__row_item {
  uint64_t first, second;
  uint32_t number;
} sn__row_item;

typedef struct sn__row_run sn__row_run;

/* Zeroed it is empty. */
typedef struct sn__row {
  sn__row_run *runs;
  uint32_t *sorted; /* runs in use by their first item, behind them those that are free */
  uint32_t n_runs, room;
} sn__row;

/* Where an item stands; good until the row changes. */
typedef struct sn__row_place {
  uint32_t run, index;
} sn__row_place;

void sn__row_clear(sn__row *row);

/* Of the first item that is not before the pair, or behind the last. */
sn__row_place sn__row_find(const sn__row *row, uint64_t first, uint64_t second);
/* NULL: behind the last. */
const sn__row_item *sn__row_at(const sn__row *row, sn__row_place place);

/* The pair must not be in the row. False where memory is out. */
bool sn__row_put(sn__row *row, sn__row_item item);
void sn__row_pull(sn__row *row, sn__row_place place);

/* False where memory is out; `copy` is to be cleared in any case, and needs not be before. */
bool sn__row_copy(sn__row *copy, const sn__row *row);

#endif
