/* Store: runs in SQLite. One file, one writer at a time, readers any time (WAL). A run is written in one transaction:
 * killed at any moment, the file opens again and holds every finished run and no part of another.
 *
 * Tables (STRICT, foreign keys on): devices, runs, results, route, steps, peaks, tensors; sweeps, points (db/sweep.h);
 * views for people who query by hand (docs/store.md). The schema version is SQLite's user_version; a file of another
 * one is refused. Errors: SN_BAD_FILE, with the path and what to do (--db FILE,
 * --no-db); SN_BAD_INPUT for a corrupt file, another schema, another program's database, an unknown run. An open store
 * is for one thread at a time.
 */
#ifndef SN_DB_STORE_H
#define SN_DB_STORE_H

#include "base/err.h"
#include "sim/ask/run.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sn_store sn_store;

/* The default file: $XDG_DATA_HOME/snsim/runs.db, else $HOME/.local/share/snsim/runs.db. Missing folders of it are
 * made when it is opened. SN_BAD_FILE where neither variable is set. */
sn_status sn_store_default_path(char *path, size_t room, sn_err *err);

/* Opens or creates. `path` is a file, or ":memory:" for tests. */
sn_store *sn_store_open(const char *path, sn_err *err);
/* Opens for reading; a file that does not exist is SN_BAD_FILE ("no runs yet"). Needs no right to write, and without it
 * makes no file: reading then fails (SN_BAD_FILE) where another program's writing was cut short, or ends meanwhile. */
sn_store *sn_store_open_read(const char *path, sn_err *err);
void sn_store_close(sn_store *store);

/* While another program writes, `waits` is told, many times a second, for how long this one has waited; false gives up.
 * Without it, and with it, writing gives up after a minute (SN_BAD_FILE). */
void sn_store_set_wait(sn_store *store, bool (*waits)(void *user, int64_t ms), void *user);

/* Whether the file is still where it was opened. Who has deleted or replaced it has what was stored; every put that
 * ends after that is SN_BAD_FILE, as sn_store_fail_gone() says it. */
bool sn_store_is_there(const sn_store *store);
sn_status sn_store_fail_gone(const sn_store *store, sn_err *err);

/* Writes a run with all its results, steps and tensors; sets *id. All or nothing. */
sn_status sn_store_put(sn_store *store, const sn_run *run, int64_t *id, sn_err *err);

/* Reads run `id` back: equal to what was put, plus id and created. id 0 means the newest. */
sn_run *sn_store_get(sn_store *store, int64_t id, sn_err *err);

/* The number of the newest run of that name; 0 where there is none. */
sn_status sn_store_find(sn_store *store, const char *name, int64_t *id, sn_err *err);

/* Deletes a run and all its rows; 0 means the newest, and *id is set to its number. SN_BAD_INPUT where there is none.
 */
sn_status sn_store_delete(sn_store *store, int64_t *id, sn_err *err);

typedef struct sn_store_line {
  int64_t id;
  const char *name, *created, *net, *gpu;
  const char *parallel; /* how several GPUs share it; "": there is one */
  uint32_t batch;
  uint32_t n_results, n_fit;
} sn_store_line;

typedef struct sn_store_list {
  uint32_t count;
  const sn_store_line *lines; /* newest first */
  struct sn_arena *arena;
} sn_store_list;

/* Which runs are listed; NULL: any. Of name and net a part is enough; a strategy by its full name. */
typedef struct sn_store_filter {
  const char *name, *net, *gpu, *strategy;
} sn_store_filter;

/* At most `most` of the runs that pass the filter (NULL: all do). */
sn_store_list *sn_store_runs(sn_store *store, const sn_store_filter *filter, uint32_t most, sn_err *err);
void sn_store_list_free(sn_store_list *list);

#endif
