/* Lanes; see the header. */
#include "exec/lanes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum task_kind { COPY, SIGNAL, WAIT } task_kind;

typedef struct task {
  task_kind kind;
  uint32_t fence;
  void *to;
  const void *from;
  size_t bytes;
  sn_span *span;
} task;

typedef struct copy_lane {
  sn_lanes *lanes;
  pthread_t thread;
  bool started, idle;
  task *tasks;
  size_t head, count, room;
  uint64_t random;
} copy_lane;

struct sn_lanes {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a task was queued, a fence passed, a lane went idle */
  bool quit;
  bool *passed;
  uint32_t n_fences, jitter_us;
  struct timespec origin;
  copy_lane copies[SN_PLAIN_LANES]; /* SN_LANE_COMPUTE's stays unused */
};

int64_t sn_lanes_now(const sn_lanes *l) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)(t.tv_sec - l->origin.tv_sec) * 1000000000 + (t.tv_nsec - l->origin.tv_nsec);
}

static void dawdle(copy_lane *c) {
  if (c->lanes->jitter_us == 0) return;
  c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  struct timespec t = {.tv_nsec = (long)((c->random >> 33) % c->lanes->jitter_us) * 1000};
  nanosleep(&t, NULL);
}

/* Called with the lock held. */
static void pass(sn_lanes *l, uint32_t fence, sn_span *span) {
  l->passed[fence] = true;
  span->begin_ns = span->end_ns = sn_lanes_now(l);
  pthread_cond_broadcast(&l->changed);
}

static void await(sn_lanes *l, uint32_t fence, sn_span *span) {
  span->begin_ns = sn_lanes_now(l);
  while (!l->passed[fence] && !l->quit) pthread_cond_wait(&l->changed, &l->lock);
  span->end_ns = sn_lanes_now(l);
}

/* Called with the lock held; a copy runs without it. */
static void run(copy_lane *c, task t) {
  sn_lanes *l = c->lanes;
  if (t.kind == SIGNAL) {
    pass(l, t.fence, t.span);
  } else if (t.kind == WAIT) {
    await(l, t.fence, t.span);
  } else {
    pthread_mutex_unlock(&l->lock);
    dawdle(c);
    t.span->begin_ns = sn_lanes_now(l);
    memcpy(t.to, t.from, t.bytes);
    t.span->end_ns = sn_lanes_now(l);
    pthread_mutex_lock(&l->lock);
  }
}

static void *run_lane(void *self) {
  copy_lane *c = self;
  sn_lanes *l = c->lanes;
  pthread_mutex_lock(&l->lock);
  while (!l->quit) {
    if (c->head < c->count) {
      run(c, c->tasks[c->head++]);
      continue;
    }
    c->head = c->count = 0;
    c->idle = true;
    pthread_cond_broadcast(&l->changed);
    while (c->count == 0 && !l->quit) pthread_cond_wait(&l->changed, &l->lock);
    c->idle = false;
  }
  c->idle = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

static bool start(sn_lanes *l, sn_lane lane) {
  copy_lane *c = &l->copies[lane];
  c->lanes = l;
  c->random = (uint64_t)lane * 77;
  c->started = pthread_create(&c->thread, NULL, run_lane, c) == 0;
  return c->started;
}

sn_lanes *sn_lanes_new(uint32_t n_fences, uint32_t jitter_us, sn_err *err) {
  sn_lanes *l = calloc(1, sizeof *l);
  if (l) l->passed = calloc((size_t)n_fences + 1, sizeof *l->passed);
  if (!l || !l->passed) {
    free(l);
    sn_fail_memory(err);
    return NULL;
  }
  l->n_fences = n_fences;
  l->jitter_us = jitter_us;
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  sn_lanes_begin(l);
  if (start(l, SN_LANE_OUT) && start(l, SN_LANE_IN)) return l;
  sn_lanes_free(l);
  sn_fail(err, SN_NO_MEMORY, "the copy threads cannot be started");
  return NULL;
}

void sn_lanes_free(sn_lanes *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->quit = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  for (sn_lane lane = 0; lane < SN_PLAIN_LANES; lane++) {
    if (l->copies[lane].started) pthread_join(l->copies[lane].thread, NULL);
    free(l->copies[lane].tasks);
  }
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  free(l->passed);
  free(l);
}

void sn_lanes_begin(sn_lanes *l) {
  memset(l->passed, 0, l->n_fences);
  clock_gettime(CLOCK_MONOTONIC, &l->origin);
}

static sn_status queue(sn_lanes *l, sn_lane lane, task t, sn_err *err) {
  copy_lane *c = &l->copies[lane];
  pthread_mutex_lock(&l->lock);
  if (c->count == c->room) {
    size_t room = c->room ? 2 * c->room : 64;
    task *more = realloc(c->tasks, room * sizeof *more);
    if (more) {
      c->tasks = more;
      c->room = room;
    }
  }
  bool good = c->count < c->room;
  if (good) c->tasks[c->count++] = t;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  return good ? SN_OK : sn_fail_memory(err);
}

sn_status sn_lanes_copy(sn_lanes *l, sn_lane lane, void *to, const void *from, size_t bytes, sn_span *span,
                        sn_err *err) {
  return queue(l, lane, (task){.kind = COPY, .to = to, .from = from, .bytes = bytes, .span = span}, err);
}

sn_status sn_lanes_signal(sn_lanes *l, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err) {
  if (lane != SN_LANE_COMPUTE) return queue(l, lane, (task){.kind = SIGNAL, .fence = fence, .span = span}, err);
  pthread_mutex_lock(&l->lock);
  pass(l, fence, span);
  pthread_mutex_unlock(&l->lock);
  return SN_OK;
}

sn_status sn_lanes_wait(sn_lanes *l, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err) {
  if (lane != SN_LANE_COMPUTE) return queue(l, lane, (task){.kind = WAIT, .fence = fence, .span = span}, err);
  pthread_mutex_lock(&l->lock);
  await(l, fence, span);
  pthread_mutex_unlock(&l->lock);
  return SN_OK;
}

static bool is_idle(const copy_lane *c) {
  return !c->started || (c->idle && c->count == 0);
}

void sn_lanes_drain(sn_lanes *l) {
  pthread_mutex_lock(&l->lock);
  while (!is_idle(&l->copies[SN_LANE_OUT]) || !is_idle(&l->copies[SN_LANE_IN]))
    pthread_cond_wait(&l->changed, &l->lock);
  pthread_mutex_unlock(&l->lock);
}
