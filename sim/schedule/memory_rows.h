/* Rows of a recurrence over memory, and the ways that lead from one to another (sim/schedule/schedule_optimal.h).
 *
 *   row[m] = min over ways   ns + then[m + freed - bytes] + again[m - queue]      with m at least queue + least
 *
 * A row says how long something takes, by units of memory, and holds only what is within a bound, which may rise: what
 * takes long cannot be part of an answer that takes little. What is there of a row stays, and only what it lacks is
 * filled in. */
#ifndef SN_SIM_SCHEDULE_MEMORY_ROWS_H
#define SN_SIM_SCHEDULE_MEMORY_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define SN_ROW_NEVER (INT64_MAX / 4) /* sums of it stay above it */

typedef struct sn_row {
  int64_t *ns;     /* with more memory no longer */
  int64_t best_ns; /* with all memory, where it is not empty */
  uint32_t from;   /* the least memory with which it is within the bound: before that ns says nothing; columns: none */
  uint32_t least;  /* the least with which it is possible at all; columns: none, or not asked for yet */
} sn_row;

/* One way on from a stage. */
typedef struct sn_row_choice {
  uint32_t next;         /* s + 1, or where what is dropped ends */
  uint32_t bytes, freed; /* units: kept from there on, and given back: what it ran from, where nobody reads it again */
  uint32_t least;        /* needed at least */
  int64_t ns;            /* beside the rows */
  int keeping;           /* SN_KEEPINGS: what comes before `next` is dropped; SN_KEEPS_INPUT: t comes back first */
  const sn_row *then;    /* what is behind; `nothing`: that is the end */
  const sn_row *again;   /* what was dropped; `nothing`: it keeps */
  uint32_t level, queue; /* of the copies that there are then, and what is on its way meanwhile */
  bool sends, waits;     /* what it keeps; for a copy, which is all it does */
} sn_row_choice;

/* What all rows of a recurrence have in common. */
typedef struct sn_rows {
  uint32_t columns; /* memory is counted from 0 to columns - 1 units */
  bool only_least;  /* `least` is asked for, and nothing else */
  sn_row nothing;   /* takes no time, whatever the memory */
} sn_rows;

static inline int64_t sn__row_ns(const sn_row *row, uint32_t m) {
  return m < row->from ? SN_ROW_NEVER : row->ns[m];
}

/* The least memory with which there is something; the columns: none. */
static inline uint32_t sn__row_least(const sn_rows *rows, const sn_row *row) {
  return rows->only_least ? row->least : row->from;
}

static inline bool sn__row_is_empty(const sn_rows *rows, const sn_row *row) {
  return sn__row_least(rows, row) >= rows->columns;
}

/* The units that what is behind has. */
uint32_t sn__choice_left(const sn_rows *rows, const sn_row_choice *way, uint32_t m);

/* Fills in what the ways give within the bound, or what they need at least. */
void sn__row_fill(const sn_rows *rows, sn_row *row, const sn_row_choice *ways, uint32_t n_ways, int64_t bound_ns);
/* The row is the lesser of two. */
void sn__row_fill_lesser(const sn_rows *rows, sn_row *row, const sn_row *a, const sn_row *b);

/* The first of the ways that gives row[m], which is within the bound. */
const sn_row_choice *sn__row_way(const sn_rows *rows, const sn_row *row, const sn_row_choice *ways, uint32_t n_ways,
                                 uint32_t m);

#endif
