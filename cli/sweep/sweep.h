/* Inside `snsim sweep`: what its files share.
 *
 *   sweep.c        the command: which grid, which sweep, what it came to
 *   sweep_run.c    hands out the missing points, takes results, stores them; the only one that writes
 *   sweep_serve.c  a rank that computes what rank 0 hands it
 *   sweep_report.c a stored sweep in words, as JSON, as CSV
 *
 * Who computes is called a helper: number 0 is the process itself with its threads, number r is rank r with its own.
 */
#ifndef SN_CLI_SWEEP_SWEEP_H
#define SN_CLI_SWEEP_SWEEP_H

#include "cli/options/options.h"
#include "cli/options/out.h"
#include "cli/sweep/ranks.h"
#include "db/sweep.h"
#include "sim/sweep/grid.h"
#include "sim/sweep/point.h"

/* ---- messages between ranks ---- */
enum {
  SN_SWEEP_GRID,   /* 0 -> r: the text of the grid */
  SN_SWEEP_READY,  /* r -> 0: sn_sweep_hello */
  SN_SWEEP_SORRY,  /* r -> 0: cannot take part; text */
  SN_SWEEP_WORK,   /* 0 -> r: uint32_t, a group to compute */
  SN_SWEEP_RESULT, /* r -> 0: sn_sweep_answer, cut behind its last point */
  SN_SWEEP_ALIVE,  /* both ways, once a second, no content: silence means death */
  SN_SWEEP_STOP    /* 0 -> r: go home; a byte, 0 where somebody is lost */
};

typedef struct sn_sweep_hello {
  uint32_t threads, point_bytes;
} sn_sweep_hello;

typedef struct sn_sweep_answer {
  uint32_t group, n_points;
  sn_point points[SN_GRID_STRATEGIES];
} sn_sweep_answer;

enum { SN_SWEEP_BEAT_MS = 1000, SN_SWEEP_LOST_MS = 10000, SN_SWEEP_POLL_MS = 1 };

/* Milliseconds on a clock that nobody sets. */
int64_t sn_sweep_now(void);

/* ---- running ---- */
typedef struct sn_sweep_job {
  const sn_grid *grid;
  const char *text; /* of the grid */
  sn_store *store;
  int64_t id;
  uint32_t session, jobs; /* jobs: threads of this process */
  sn_ranks *ranks;        /* NULL: none */
  const bool *stored;     /* per point */
} sn_sweep_job;

/* Blocks SIGINT and SIGTERM in this thread and those it starts, so that they can be asked for. */
void sn_sweep_hold_signals(void);
/* The signal that came since, or 0. The first one asked for lets the next one end the program as usual. */
int sn_sweep_signal(void);

/* Computes and stores every point that is not stored yet. Holds SIGINT and SIGTERM and returns early where one came,
 * *signal then: points being computed are finished and stored first. Says on standard error what became of ranks; shows
 * progress on a terminal. */
sn_status sn_sweep_run(const sn_sweep_job *job, int *signal, sn_err *err);
/* Lets the other ranks go home. */
void sn_sweep_dismiss(sn_ranks *ranks);
/* What a rank other than 0 does until it may go home. */
sn_status sn_sweep_serve(sn_ranks *ranks, uint32_t jobs, sn_err *err);

/* ---- printing ---- */
/* The sweep as the user wants it (--json, --csv, else a table). */
sn_status sn_sweep_print(const sn_args *args, const sn_sweep *sweep, sn_err *err);

/* For `snsim show`: whether it is asked for sweeps ("sweeps", "sweep:3"), and showing them. */
bool sn_sweep_is_shown(const sn_args *args);
sn_status sn_sweep_show(const sn_args *args, sn_store *store, sn_err *err);

#endif
