/* Sweeps in the store: one row per finished point of a grid (sim/sweep/grid.h), written as soon as it is finished.
 *
 *   sn_sweep_find(store, text, &id, &err);                    the newest sweep of this grid, 0 where there is none
 *   if (!id) sn_sweep_create(store, text, grid->n_points, &id, &err);
 *   sn_sweep_enter(store, id, &session, &err);                from now on it is ours
 *   sn_sweep_stored(store, id, grid->n_points, marks, &err);  what need not be computed
 *   sn_sweep_put(store, id, session, rows, count, &err);      again and again
 *
 * Killed at any moment the file holds every point whose put returned, and no part of another put. A sweep belongs to
 * the program that entered it last: the put of one that entered before fails and changes nothing. Tables and views:
 * docs/store.md. Errors as in db/store.h.
 */
#ifndef SN_DB_SWEEP_H
#define SN_DB_SWEEP_H

#include "base/err.h"
#include "db/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A point. Bytes and times as in sn_result (sim/ask/run.h). */
typedef struct sn_sweep_row {
  uint32_t point;   /* from 1, in the order of the grid */
  uint32_t session; /* which start of the sweep computed it, from 1; set by sn_sweep_put() */
  const char *net, *gpu;
  const char *net_name;     /* as in sn_run; "" where the network could not be read */
  uint32_t image;           /* height and width of the images; 0: the network's own */
  uint64_t memory_bytes;    /* usable on the device */
  sn_conditions conditions; /* `freeze` is the same at all points, and kept in the grid */
  uint32_t batch;
  const char *strategy;
  const char *failure; /* why it could not be computed; "" where it was. All that follows is 0 then. */
  bool fits;
  uint64_t peak_device_bytes, least_device_bytes, peak_tensor_bytes, pool_bytes, workspace_peak_bytes;
  uint64_t largest_load_bytes; /* 0: of a point that an older snsim stored */
  const char *placement;       /* as in sn_result; "" where it could not be computed */
  uint64_t offload_bytes, prefetch_bytes, external_bytes;
  uint32_t recomputed_layers;
  int64_t iteration_ns, stall_ns;
  double images_per_second;
} sn_sweep_row;

/* Whether the row is to be named before `best` (NULL: none yet), both of which fit: the faster one, of equally fast
 * ones the one that takes less device memory; sn_run_best() for the points of a sweep. */
bool sn_sweep_row_beats(const sn_sweep_row *row, const sn_sweep_row *best);

typedef struct sn_sweep_line {
  int64_t id;
  const char *created, *version, *grid; /* grid: its text, and of it, "": none: */
  const char *freeze, *margin;
  uint32_t n_points, n_stored, n_fit, n_failed;
  uint32_t sessions; /* how often it was begun or gone on with */
} sn_sweep_line;

typedef struct sn_sweep_list {
  uint32_t count;
  const sn_sweep_line *lines; /* newest first */
  struct sn_arena *arena;
} sn_sweep_list;

typedef struct sn_sweep {
  sn_sweep_line head;
  uint32_t n_rows;          /* head.n_stored */
  const sn_sweep_row *rows; /* ascending points */
  struct sn_arena *arena;
} sn_sweep;

/* What its batches are of, "images" where networks differ in that. */
const char *sn_sweep_unit(const sn_sweep *sweep);

sn_status sn_sweep_find(sn_store *store, const char *grid, int64_t *id, sn_err *err);
sn_status sn_sweep_create(sn_store *store, const char *grid, uint32_t n_points, int64_t *id, sn_err *err);
sn_status sn_sweep_enter(sn_store *store, int64_t id, uint32_t *session, sn_err *err);

/* Sets marks[p - 1] for every point p that is stored. */
sn_status sn_sweep_stored(sn_store *store, int64_t id, uint32_t n_points, bool *marks, sn_err *err);
/* Writes points that are not stored yet, all or none. SN_BAD_FILE where another program has entered the sweep since. */
sn_status sn_sweep_put(sn_store *store, int64_t id, uint32_t session, sn_sweep_row *rows, uint32_t count, sn_err *err);

/* Deletes a sweep and its points; 0 means the newest, and *id is set to its number. */
sn_status sn_sweep_delete(sn_store *store, int64_t *id, sn_err *err);

/* A sweep with its rows; id 0 means the newest. SN_BAD_INPUT where there is no such sweep. */
sn_sweep *sn_sweep_get(sn_store *store, int64_t id, sn_err *err);
/* The same without its rows. */
sn_sweep *sn_sweep_get_head(sn_store *store, int64_t id, sn_err *err);
void sn_sweep_free(sn_sweep *sweep);
sn_sweep_list *sn_sweep_all(sn_store *store, sn_err *err);
void sn_sweep_list_free(sn_sweep_list *list);

#endif
