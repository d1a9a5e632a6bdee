/* Lanes; see the header. */
#include "exec/machine/lanes.h"

#include "exec/machine/processors.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_TEAM = 2, WORKERS = FIRST_TEAM + SN_LANES_TEAMS }; /* workers of copies: SN_LANE_OUT's, SN_LANE_IN's */

typedef enum task_kind { RUN, SIGNAL, WAIT } task_kind;

typedef struct task {
  task_kind kind;
  uint32_t fence, worker;
  sn_status (*run)(void *job, sn_err *err);
  void *job;
  sn_span *span;
} task;

typedef struct queue {
  task *tasks;
  size_t head, count, room;
  bool busy;  /* a worker is at what stood at its head */
  bool waits; /* the wait at its head has begun */
} queue;

typedef struct worker {
  sn_lanes *lanes;
  pthread_t thread;
  pthread_cond_t wake;
  bool started, idle;
  uint32_t number;
  uint32_t first, count; /* processors; count 0: any */
  uint64_t random;
} worker;

struct sn_lanes {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a fence passed, or all lanes are idle: for the thread that feeds */
  bool quit;
  sn_err failed; /* of the first work that did */
  bool *passed;
  uint32_t jitter_us, n_fences, n_workers;
  struct timespec origin;
  queue queues[SN_LANES];
  worker workers[WORKERS];
};

int64_t sn_lanes_now(const sn_lanes *l) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)(t.tv_sec - l->origin.tv_sec) * 1000000000 + (t.tv_nsec - l->origin.tv_nsec);
}

/* ---- with the lock held ---- */

static bool is_over(const sn_lanes *l) {
  return l->quit || l->failed.code != SN_OK;
}

static bool is_idle(const sn_lanes *l) {
  for (int lane = 0; lane < SN_LANES; lane++)
    if (l->queues[lane].busy || l->queues[lane].head < l->queues[lane].count) return false;
  return true;
}

static void pass(sn_lanes *l, uint32_t fence, sn_span *span) {
  l->passed[fence] = true;
  span->begin_ns = span->end_ns = sn_lanes_now(l);
  pthread_cond_broadcast(&l->changed);
}

/* The fence at the head of a lane; false: it has not passed yet. */
static bool try_fence(sn_lanes *l, queue *q, const task *t) {
  if (t->kind == SIGNAL) {
    pass(l, t->fence, t->span);
    return true;
  }
  if (!q->waits) t->span->begin_ns = sn_lanes_now(l);
  q->waits = !l->passed[t->fence];
  if (!q->waits) t->span->end_ns = sn_lanes_now(l);
  return !q->waits;
}

/* Takes fences from the head of a lane; whether one was signalled. */
static bool take_fences(sn_lanes *l, queue *q) {
  bool signalled = false;
  while (!q->busy && q->head < q->count) {
    const task *t = &q->tasks[q->head];
    if (t->kind == RUN || !try_fence(l, q, t)) break;
    signalled |= t->kind == SIGNAL;
    q->head++;
  }
  return signalled;
}

static void call_worker(sn_lanes *l, const queue *q) {
  if (q->busy || q->head == q->count) return;
  const task *t = &q->tasks[q->head];
  if (t->kind != RUN) return;
  if (l->workers[t->worker].idle) pthread_cond_signal(&l->workers[t->worker].wake);
}

/* What can go on goes on. */
static void advance(sn_lanes *l) {
  for (bool again = true; again;) {
    again = false;
    for (int lane = 0; lane < SN_LANES; lane++) again |= take_fences(l, &l->queues[lane]);
  }
  for (int lane = 0; lane < SN_LANES; lane++) {
    queue *q = &l->queues[lane];
    if (is_over(l) || q->head == q->count) q->head = q->count = 0;
    call_worker(l, q);
  }
  if (is_idle(l)) pthread_cond_broadcast(&l->changed);
}

/* A lane whose head waits for the worker; NULL: none. */
static queue *find_work(sn_lanes *l, uint32_t number) {
  for (int lane = 0; lane < SN_LANES; lane++) {
    queue *q = &l->queues[lane];
    if (q->busy || q->head == q->count) continue;
    const task *t = &q->tasks[q->head];
    if (t->kind == RUN && t->worker == number) return q;
  }
  return NULL;
}

/* ---- workers ---- */

static void dawdle(worker *w) {
  if (w->lanes->jitter_us == 0) return;
  w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  struct timespec t = {.tv_nsec = (long)((w->random >> 33) % w->lanes->jitter_us) * 1000};
  nanosleep(&t, NULL);
}

static void execute(worker *w, const task *t, sn_err *err) {
  sn_span unused;
  sn_span *span = t->span ? t->span : &unused;
  dawdle(w);
  span->begin_ns = sn_lanes_now(w->lanes);
  t->run(t->job, err);
  span->end_ns = sn_lanes_now(w->lanes);
}

/* Called with the lock held, which it gives up while it works. */
static void work(worker *w, queue *q) {
  sn_lanes *l = w->lanes;
  task t = q->tasks[q->head++];
  sn_err err = SN_ERR_INIT;
  q->busy = true;
  pthread_mutex_unlock(&l->lock);
  execute(w, &t, &err);
  pthread_mutex_lock(&l->lock);
  q->busy = false;
  if (err.code != SN_OK && l->failed.code == SN_OK) l->failed = err;
  advance(l);
}

static void *run_worker(void *self) {
  worker *w = self;
  sn_lanes *l = w->lanes;
  if (w->count > 0) sn_processors_pin(w->first, w->count);
  pthread_mutex_lock(&l->lock);
  while (!l->quit) {
    queue *q = find_work(l, w->number);
    if (q) {
      work(w, q);
      continue;
    }
    w->idle = true;
    pthread_cond_wait(&w->wake, &l->lock);
    w->idle = false;
  }
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

static bool start(sn_lanes *l, uint32_t number, sn_team team) {
  worker *w = &l->workers[number];
  *w =
      (worker){.lanes = l, .number = number, .first = team.first, .count = team.count, .random = (uint64_t)number * 77};
  pthread_cond_init(&w->wake, NULL);
  l->n_workers = number + 1;
  w->started = pthread_create(&w->thread, NULL, run_worker, w) == 0;
  return w->started;
}

static bool start_all(sn_lanes *l, const sn_lanes_options *o) {
  for (uint32_t i = 0; i < FIRST_TEAM; i++)
    if (!start(l, i, (sn_team){0})) return false;
  for (uint32_t i = 0; i < o->n_teams; i++)
    if (!start(l, FIRST_TEAM + i, o->teams[i])) return false;
  return true;
}

/* ---- for the thread that feeds ---- */

sn_lanes *sn_lanes_new(const sn_lanes_options *options, sn_err *err) {
  if (options->n_teams > SN_LANES_TEAMS) {
    sn_fail(err, SN_BUG, "%u teams for %d workers", options->n_teams, SN_LANES_TEAMS);
    return NULL;
  }
  sn_lanes *l = calloc(1, sizeof *l);
  if (l) l->passed = calloc((size_t)options->n_fences + 1, sizeof *l->passed);
  if (!l || !l->passed) {
    free(l);
    sn_fail_memory(err);
    return NULL;
  }
  l->n_fences = options->n_fences;
  l->jitter_us = options->jitter_us;
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  sn_lanes_begin(l);
  if (start_all(l, options)) return l;
  sn_lanes_free(l);
  sn_fail(err, SN_NO_MEMORY, "the threads of the lanes cannot be started");
  return NULL;
}

void sn_lanes_free(sn_lanes *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->quit = true;
  for (uint32_t i = 0; i < l->n_workers; i++) pthread_cond_signal(&l->workers[i].wake);
  pthread_mutex_unlock(&l->lock);
  for (uint32_t i = 0; i < l->n_workers; i++) {
    if (l->workers[i].started) pthread_join(l->workers[i].thread, NULL);
    pthread_cond_destroy(&l->workers[i].wake);
  }
  for (int lane = 0; lane < SN_LANES; lane++) free(l->queues[lane].tasks);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  free(l->passed);
  free(l);
}

void sn_lanes_begin(sn_lanes *l) {
  memset(l->passed, 0, l->n_fences);
  clock_gettime(CLOCK_MONOTONIC, &l->origin);
}

/* The caller's thread is the lane. */
static bool is_callers(const sn_lanes *l, sn_lane lane) {
  return lane == SN_LANE_COMPUTE && l->n_workers == FIRST_TEAM;
}

static bool has_room(queue *q) {
  if (q->count < q->room) return true;
  size_t room = q->room ? 2 * q->room : 64;
  task *more = realloc(q->tasks, room * sizeof *more);
  if (!more) return false;
  q->tasks = more;
  q->room = room;
  return true;
}

static sn_status add(sn_lanes *l, sn_lane lane, task t, sn_err *err) {
  queue *q = &l->queues[lane];
  pthread_mutex_lock(&l->lock);
  bool good = has_room(q);
  if (good) {
    q->tasks[q->count++] = t;
    advance(l);
  }
  pthread_mutex_unlock(&l->lock);
  return good ? SN_OK : sn_fail_memory(err);
}

static uint32_t worker_of(sn_lane lane, uint32_t team) {
  return lane == SN_LANE_OUT ? 0 : lane == SN_LANE_IN ? 1 : FIRST_TEAM + team;
}

sn_status sn_lanes_run(sn_lanes *l, sn_lane lane, uint32_t team, sn_status (*run)(void *job, sn_err *err), void *job,
                       sn_span *span, sn_err *err) {
  return add(l, lane, (task){.kind = RUN, .worker = worker_of(lane, team), .run = run, .job = job, .span = span}, err);
}

sn_status sn_lanes_signal(sn_lanes *l, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err) {
  if (!is_callers(l, lane)) return add(l, lane, (task){.kind = SIGNAL, .fence = fence, .span = span}, err);
  pthread_mutex_lock(&l->lock);
  pass(l, fence, span);
  advance(l);
  pthread_mutex_unlock(&l->lock);
  return SN_OK;
}

sn_status sn_lanes_wait(sn_lanes *l, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err) {
  if (!is_callers(l, lane)) return add(l, lane, (task){.kind = WAIT, .fence = fence, .span = span}, err);
  pthread_mutex_lock(&l->lock);
  span->begin_ns = sn_lanes_now(l);
  while (!l->passed[fence] && !is_over(l)) pthread_cond_wait(&l->changed, &l->lock);
  span->end_ns = sn_lanes_now(l);
  if (l->failed.code != SN_OK) *err = l->failed;
  pthread_mutex_unlock(&l->lock);
  return err->code;
}

sn_status sn_lanes_drain(sn_lanes *l, sn_err *err) {
  pthread_mutex_lock(&l->lock);
  while (!is_idle(l)) pthread_cond_wait(&l->changed, &l->lock);
  if (l->failed.code != SN_OK) *err = l->failed;
  pthread_mutex_unlock(&l->lock);
  return err->code;
}
