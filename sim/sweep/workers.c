/* Workers: a fixed array of slots under one lock. A slot is free, waits for a thread, is being computed or is done; a
 * group takes a thread milliseconds, so looking at every slot (four a thread) each time costs nothing beside it.
 *
 * A thread goes on with the family it is at, then with one that no thread is at, and only then joins another thread:
 * what a family shares (sim/sweep/point.h) is made in each thread. */
#include "sim/sweep/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum state { FREE, WAITING, RUNNING, DONE } state;

typedef struct slot {
  state state;
  uint32_t group, family;
  bool taken_up; /* waiting: a thread is at its family */
  uint64_t turn; /* of being given */
  sn_point *points;
} slot;

struct sn_workers {
  const sn_grid *grid;
  pthread_mutex_t lock;
  pthread_cond_t given, done;
  bool ends;
  uint64_t turns;
  uint32_t n_slots, n_threads;
  slot *slots;
  sn_point *points;
  pthread_t *threads;
};

/* The slot of this state that was given first. */
static slot *first(const sn_workers *w, state wanted) {
  slot *found = NULL;
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].state == wanted && (!found || w->slots[i].turn < found->turn)) found = &w->slots[i];
  return found;
}

/* The waiting slot that a thread at this family does next, of those that are alike the one given first. */
static slot *next(const sn_workers *w, uint32_t family) {
  slot *found = NULL;
  int best = 0;
  for (uint32_t i = 0; i < w->n_slots; i++) {
    slot *s = &w->slots[i];
    int rank = s->state != WAITING ? 0 : s->family == family ? 3 : !s->taken_up ? 2 : 1;
    if (rank > best || (rank > 0 && rank == best && s->turn < found->turn)) found = s, best = rank;
  }
  return found;
}

static void take_up(sn_workers *w, uint32_t family) {
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].family == family) w->slots[i].taken_up = true;
}

static bool is_taken_up(const sn_workers *w, uint32_t family) {
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].state == RUNNING && w->slots[i].family == family) return true;
  return false;
}

static void *work(void *user) {
  sn_workers *w = user;
  sn_point_kept kept = {0};
  uint32_t family = UINT32_MAX; /* none */
  pthread_mutex_lock(&w->lock);
  while (!w->ends) {
    slot *s = next(w, family);
    if (!s) {
      pthread_cond_wait(&w->given, &w->lock);
      continue;
    }
    s->state = RUNNING;
    take_up(w, family = s->family);
    pthread_mutex_unlock(&w->lock);
    sn_point_compute(w->grid, s->group, &kept, s->points);
    pthread_mutex_lock(&w->lock);
    s->state = DONE;
    pthread_cond_signal(&w->done);
  }
  pthread_mutex_unlock(&w->lock);
  sn_point_forget(&kept);
  return NULL;
}

/* ---- making and ending ---- */

/* Waiting is measured on a clock that nobody sets. */
static bool open_locks(sn_workers *w) {
  pthread_condattr_t clock;
  if (pthread_condattr_init(&clock) != 0) return false;
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->given, NULL);
  pthread_cond_init(&w->done, &clock);
  pthread_condattr_destroy(&clock);
  return true;
}

static bool make_slots(sn_workers *w, uint32_t threads) {
  uint32_t n_points = w->grid->n[SN_AXIS_STRATEGIES];
  w->n_slots = SN_WORKERS_AHEAD * threads;
  w->slots = calloc(w->n_slots, sizeof *w->slots);
  w->points = calloc((size_t)w->n_slots * n_points, sizeof *w->points);
  w->threads = calloc(threads, sizeof *w->threads);
  if (!w->slots || !w->points || !w->threads) return false;
  for (uint32_t i = 0; i < w->n_slots; i++) w->slots[i].points = w->points + (size_t)i * n_points;
  return true;
}

sn_workers *sn_workers_new(const sn_grid *grid, uint32_t threads, sn_err *err) {
  sn_workers *w = calloc(1, sizeof *w);
  if (!w || !open_locks(w)) {
    sn_fail_memory(err);
    free(w);
    return NULL;
  }
  w->grid = grid;
  bool made = make_slots(w, threads);
  while (made && w->n_threads < threads && pthread_create(&w->threads[w->n_threads], NULL, work, w) == 0)
    w->n_threads++;
  if (w->n_threads > 0) return w; /* fewer than asked for do the same work */
  if (made)
    sn_fail(err, SN_NO_MEMORY, "no thread can be started for the sweep");
  else
    sn_fail_memory(err);
  sn_workers_free(w);
  return NULL;
}

void sn_workers_free(sn_workers *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->ends = true;
  pthread_cond_broadcast(&w->given);
  pthread_mutex_unlock(&w->lock);
  for (uint32_t i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
  pthread_cond_destroy(&w->given);
  pthread_cond_destroy(&w->done);
  pthread_mutex_destroy(&w->lock);
  free(w->slots);
  free(w->points);
  free(w->threads);
  free(w);
}

/* ---- for the one who hands out ---- */

uint32_t sn_workers_held(sn_workers *w) {
  uint32_t held = 0;
  pthread_mutex_lock(&w->lock);
  for (uint32_t i = 0; i < w->n_slots; i++) held += w->slots[i].state != FREE;
  pthread_mutex_unlock(&w->lock);
  return held;
}

uint32_t sn_workers_room(sn_workers *w) {
  return w->n_slots - sn_workers_held(w);
}

void sn_workers_give(sn_workers *w, uint32_t group) {
  pthread_mutex_lock(&w->lock);
  slot *s = first(w, FREE);
  if (s) {
    s->state = WAITING;
    s->group = group;
    s->family = sn_grid_family(w->grid, group);
    s->taken_up = is_taken_up(w, s->family);
    s->turn = ++w->turns;
    pthread_cond_signal(&w->given);
  }
  pthread_mutex_unlock(&w->lock);
}

static struct timespec later(uint32_t ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += (long)(ms % 1000) * 1000000;
  if (t.tv_nsec < 1000000000) return t;
  t.tv_sec++;
  t.tv_nsec -= 1000000000;
  return t;
}

bool sn_workers_take(sn_workers *w, uint32_t wait_ms, uint32_t *group, sn_point *points) {
  struct timespec end = later(wait_ms);
  pthread_mutex_lock(&w->lock);
  slot *s = first(w, DONE);
  while (!s && wait_ms > 0 && pthread_cond_timedwait(&w->done, &w->lock, &end) == 0) s = first(w, DONE);
  if (s) {
    *group = s->group;
    memcpy(points, s->points, w->grid->n[SN_AXIS_STRATEGIES] * sizeof *points);
    s->state = FREE;
  }
  pthread_mutex_unlock(&w->lock);
  return s != NULL;
}

void sn_workers_drop(sn_workers *w) {
  pthread_mutex_lock(&w->lock);
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].state == WAITING) w->slots[i].state = FREE;
  pthread_mutex_unlock(&w->lock);
}
