/* A rank other than 0 of a sweep: gets the grid, computes the groups it is handed, sends their points back. It neither
 * reads nor writes the store. Its main thread talks, others compute, so that it can be heard of while a group takes
 * long. */
#include "cli/sweep/sweep.h"

#include "sim/sweep/workers.h"

#include <string.h>
#include <time.h>

enum { GIVES_UP_MS = 3 * SN_SWEEP_LOST_MS };

typedef struct server {
  sn_ranks *ranks;
  uint32_t jobs;
  sn_grid *grid;
  sn_workers *workers; /* NULL until the grid is here, and where it is of no use */
  bool ends;
  int64_t heard, told; /* of rank 0, to rank 0; ms */
} server;

static void fetch_grid(server *s, const sn_message *message, sn_err *err) {
  s->grid = sn_grid_parse("the grid from rank 0", message->bytes, message->count, err);
  if (s->grid && sn_grid_finish(s->grid, err) == SN_OK) s->workers = sn_workers_new(s->grid, s->jobs, err);
}

/* What keeps this rank from taking part is rank 0's to tell: it goes on without. */
static void begin(server *s, const sn_message *message) {
  sn_err why = SN_ERR_INIT;
  sn_sweep_hello hello = {s->jobs, sizeof(sn_point)};
  fetch_grid(s, message, &why);
  if (s->workers)
    sn_ranks_send(s->ranks, 0, SN_SWEEP_READY, &hello, sizeof hello);
  else
    sn_ranks_send(s->ranks, 0, SN_SWEEP_SORRY, why.text, strlen(why.text) + 1);
}

static void take_work(server *s, const sn_message *message) {
  uint32_t group;
  if (!s->workers || message->count != sizeof group) return;
  memcpy(&group, message->bytes, sizeof group);
  if (group < s->grid->n_groups) sn_workers_give(s->workers, group);
}

static void listen(server *s) {
  sn_message message;
  while (!s->ends && sn_ranks_poll(s->ranks, &message)) {
    s->heard = sn_sweep_now();
    if (message.tag == SN_SWEEP_GRID && !s->grid) begin(s, &message);
    if (message.tag == SN_SWEEP_WORK) take_work(s, &message);
    s->ends = message.tag == SN_SWEEP_STOP;
    if (s->ends && message.count == 1 && *(const unsigned char *)message.bytes == 0)
      sn_ranks_lose(s->ranks, sn_ranks_own(s->ranks));
  }
}

static void pause_for(uint32_t ms) {
  struct timespec pause = {0, (long)ms * 1000000};
  nanosleep(&pause, NULL);
}

static void answer(server *s) {
  sn_sweep_answer a;
  if (!s->workers) {
    pause_for(SN_SWEEP_POLL_MS);
    return;
  }
  uint32_t wait = SN_SWEEP_POLL_MS;
  for (a.n_points = s->grid->n[SN_AXIS_STRATEGIES]; sn_workers_take(s->workers, wait, &a.group, a.points); wait = 0)
    sn_ranks_send(s->ranks, 0, SN_SWEEP_RESULT, &a,
                  offsetof(sn_sweep_answer, points) + a.n_points * sizeof a.points[0]);
}

static void beat(server *s) {
  int64_t now = sn_sweep_now();
  if (now - s->told < SN_SWEEP_BEAT_MS) return;
  s->told = now;
  sn_ranks_send(s->ranks, 0, SN_SWEEP_ALIVE, NULL, 0);
}

sn_status sn_sweep_serve(sn_ranks *ranks, uint32_t jobs, sn_err *err) {
  server s = {.ranks = ranks, .jobs = jobs, .heard = sn_sweep_now()};
  while (!s.ends && sn_sweep_signal() == 0 && err->code == SN_OK) {
    listen(&s);
    answer(&s);
    beat(&s);
    if (sn_sweep_now() - s.heard <= GIVES_UP_MS) continue;
    sn_ranks_lose(ranks, 0);
    sn_fail(err, SN_BAD_DEVICE, "rank %u has not heard of rank 0 for %d s and gives up", sn_ranks_own(ranks),
            GIVES_UP_MS / 1000);
  }
  sn_workers_free(s.workers);
  sn_grid_free(s.grid);
  return err->code;
}
