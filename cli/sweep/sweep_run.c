/* Hands out the groups of a sweep that are not stored yet and stores what comes back; see cli/sweep/sweep.h.
 *
 * One loop in one thread: give every helper as much as it should have, take what is finished, store it, look for lost
 * ranks and for Ctrl-C. All that was finished meanwhile goes into one transaction, without waiting for the disk
 * (db/sweep.h), so that storing keeps up with groups of a fraction of a millisecond. A helper has a few groups ahead,
 * so that it need not wait for the next; towards the end fewer, so that no one sits on work while others are idle.
 *
 * A rank that is silent for ten seconds is taken for lost: what it had is handed out again. Should it speak after all,
 * it is not listened to: a result counts only from whom the group was given to last. */
#include "cli/sweep/sweep.h"

#include "sim/sweep/workers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFERED = 64, FIRST_WORD_MS = 2000, WAIT_MS = 100, PROGRESS_MS = 200 };

/* Who has a group: a helper's number, or one of these. */
static const uint32_t nobody = UINT32_MAX, finished = UINT32_MAX - 1;

typedef struct helper {
  uint32_t threads; /* 0: takes no part (yet, or any more) */
  uint32_t held;
  uint32_t turn; /* of the group that it was given last; the number of all: it has had none */
  int64_t heard; /* ms */
} helper;

typedef struct run {
  const sn_sweep_job *job;
  uint32_t n_strategies;
  sn_workers *workers;
  helper *helpers;
  uint32_t n_helpers, threads; /* of all helpers */
  uint32_t *holder;            /* per group */
  uint32_t next;               /* turn: no group before it is nobody's */
  uint32_t fresh;              /* turn: the first of the families from it on have been given to nobody */
  uint32_t waiting, left;      /* groups: nobody's; not finished */
  uint32_t computed, total;    /* by this session; there were to do */
  uint32_t buffered;           /* finished groups not stored yet */
  uint32_t groups[BUFFERED];
  sn_point *points;   /* of them */
  sn_sweep_row *rows; /* of them */
  int64_t began, shown, looped;
  int64_t say_at; /* ms after the beginning: when mpirun's log gets its next line */
  sn_err *err;
} run;

int64_t sn_sweep_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- signals ---- */

/* What is ignored stays so (nohup, a shell's background jobs). */
static void fill_signals(sigset_t *set) {
  static const int numbers[] = {SIGINT, SIGTERM};
  sigemptyset(set);
  for (int i = 0; i < 2; i++) {
    struct sigaction now;
    if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(set, numbers[i]);
  }
}

void sn_sweep_hold_signals(void) {
  sigset_t set;
  fill_signals(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static void release_signals(void) {
  sigset_t set;
  fill_signals(&set);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int sn_sweep_signal(void) {
  sigset_t set;
  const struct timespec at_once = {0, 0};
  fill_signals(&set);
  int number = sigtimedwait(&set, NULL, &at_once);
  if (number <= 0) return 0;
  release_signals();
  return number;
}

/* ---- storing ---- */

static void fill_row(const run *r, uint32_t group, uint32_t strategy, const char *name, const sn_point *p,
                     sn_sweep_row *row) {
  const sn_grid *g = r->job->grid;
  uint32_t at[SN_AXES];
  sn_grid_at(g, group, at);
  const sn_options options = sn_grid_options(g, at);
  *row = (sn_sweep_row){.point = group * r->n_strategies + strategy + 1,
                        .net = g->nets[at[SN_AXIS_NETS]],
                        .net_name = p->net_name,
                        .gpu = g->gpus[at[SN_AXIS_GPUS]],
                        .image = (uint32_t)g->images[at[SN_AXIS_IMAGES]],
                        .memory_bytes = sn_grid_device(g, at).memory_bytes,
                        .conditions = sn_conditions_of(&options, NULL),
                        .batch = g->batches[at[SN_AXIS_BATCHES]],
                        .strategy = name,
                        .failure = p->failure,
                        .fits = p->fits,
                        .peak_device_bytes = p->peak_device_bytes,
                        .least_device_bytes = p->least_device_bytes,
                        .peak_tensor_bytes = p->peak_tensor_bytes,
                        .placement = p->failure[0] ? "" : sn_placement_name(p->placement),
                        .pool_bytes = p->pool_bytes,
                        .largest_load_bytes = p->largest_load_bytes,
                        .workspace_peak_bytes = p->workspace_peak_bytes,
                        .offload_bytes = p->offload_bytes,
                        .prefetch_bytes = p->prefetch_bytes,
                        .external_bytes = p->external_bytes,
                        .recomputed_layers = p->recomputed_layers,
                        .iteration_ns = p->iteration_ns,
                        .stall_ns = p->stall_ns,
                        .images_per_second = p->images_per_second};
  bool one = sn_mesh_is_one(&options.iteration.mesh); /* options have room for the words of this function alone */
  row->conditions.parallel = one ? "" : g->conditions[SN_AXIS_PARALLELS][at[SN_AXIS_PARALLELS]];
  row->conditions.cluster = one ? "" : g->where.name;
  row->conditions.nodes = 0; /* as many as the mesh takes */
}

/* Some of a group's points may be stored: whoever deletes failed points by hand has those computed again. */
static sn_status store_finished(run *r) {
  char names[SN_GRID_STRATEGIES][SN_STRATEGY_TEXT];
  uint32_t count = 0;
  if (r->buffered == 0) return r->err->code;
  for (uint32_t s = 0; s < r->n_strategies; s++) sn_strategy_name(r->job->grid->strategies[s], names[s]);
  for (uint32_t i = 0; i < r->buffered; i++)
    for (uint32_t s = 0; s < r->n_strategies; s++)
      if (!r->job->stored[r->groups[i] * r->n_strategies + s])
        fill_row(r, r->groups[i], s, names[s], &r->points[i * r->n_strategies + s], &r->rows[count++]);
  r->buffered = 0;
  return sn_sweep_put(r->job->store, r->job->id, r->job->session, r->rows, count, r->err);
}

/* Points of a group that a helper has finished. */
static sn_status finish(run *r, uint32_t number, uint32_t group, const sn_point *points) {
  if (r->holder[group] != number) return r->err->code;
  r->helpers[number].held--;
  r->holder[group] = finished;
  r->left--;
  r->computed++;
  r->groups[r->buffered] = group;
  memcpy(&r->points[(size_t)r->buffered * r->n_strategies], points, r->n_strategies * sizeof *points);
  return ++r->buffered == BUFFERED ? store_finished(r) : r->err->code;
}

/* ---- handing out ---- */

/* How many groups a helper may have for each of its threads. */
static uint32_t ahead(const run *r) {
  return r->waiting >= 8 * r->threads ? SN_WORKERS_AHEAD : r->waiting >= 2 * r->threads ? 2 : 1;
}

static bool is_nobodys(const run *r, uint32_t turn) {
  return r->holder[sn_grid_group_at(r->job->grid, turn)] == nobody;
}

/* The first turn that is nobody's from there on and before `end`, or `end`. */
static uint32_t find_turn(const run *r, uint32_t turn, uint32_t end) {
  while (turn < end && !is_nobodys(r, turn)) turn++;
  return turn;
}

/* The end of the family that a turn belongs to. */
static uint32_t end_of_family(const run *r, uint32_t turn) {
  uint32_t size = sn_grid_family_size(r->job->grid);
  return (turn / size + 1) * size;
}

/* A helper goes on with the family that it is at, then takes up one that nobody is at, then joins others. */
static uint32_t choose_turn(run *r, const helper *h) {
  uint32_t n_groups = r->job->grid->n_groups, end = h->turn < n_groups ? end_of_family(r, h->turn) : n_groups;
  uint32_t turn = find_turn(r, h->turn, end);
  if (turn < end) return turn;
  turn = find_turn(r, r->fresh, n_groups);
  r->fresh = turn < n_groups ? end_of_family(r, turn) : n_groups;
  return turn < n_groups ? turn : (r->next = find_turn(r, r->next, n_groups));
}

static void give(run *r, uint32_t number) {
  helper *h = &r->helpers[number];
  while (r->waiting > 0 && h->held < h->threads * ahead(r)) {
    h->turn = choose_turn(r, h);
    uint32_t group = sn_grid_group_at(r->job->grid, h->turn);
    r->holder[group] = number;
    r->waiting--;
    h->held++;
    if (number == 0)
      sn_workers_give(r->workers, group);
    else
      sn_ranks_send(r->job->ranks, number, SN_SWEEP_WORK, &group, sizeof group);
  }
}

/* ---- this process ---- */

static void take_own(run *r, uint32_t wait_ms) {
  sn_point points[SN_GRID_STRATEGIES];
  uint32_t group;
  for (; r->err->code == SN_OK && sn_workers_take(r->workers, wait_ms, &group, points); wait_ms = 0)
    finish(r, 0, group, points);
}

/* ---- other ranks ---- */

static void let_in(run *r, const sn_message *message) {
  sn_sweep_hello hello = {0};
  if (message->count == sizeof hello) memcpy(&hello, message->bytes, sizeof hello);
  if (hello.point_bytes != sizeof(sn_point) || hello.threads == 0) {
    sn_out_say("rank %" PRIu32 " runs another snsim and takes no part", message->from);
    return;
  }
  r->helpers[message->from].threads = hello.threads;
  r->threads += hello.threads;
}

static void take_result(run *r, const sn_message *message) {
  sn_sweep_answer a;
  size_t head = offsetof(sn_sweep_answer, points);
  if (message->count < head || message->count > sizeof a) return;
  memcpy(&a, message->bytes, message->count);
  if (a.group < r->job->grid->n_groups && a.n_points == r->n_strategies &&
      message->count == head + a.n_points * sizeof a.points[0])
    finish(r, message->from, a.group, a.points);
}

static void listen(run *r) {
  sn_message message;
  while (r->err->code == SN_OK && sn_ranks_poll(r->job->ranks, &message)) {
    if (message.from == 0 || message.from >= r->n_helpers) continue;
    r->helpers[message.from].heard = sn_sweep_now();
    if (message.tag == SN_SWEEP_READY) let_in(r, &message);
    if (message.tag == SN_SWEEP_RESULT) take_result(r, &message);
    if (message.tag == SN_SWEEP_ALIVE) sn_ranks_send(r->job->ranks, message.from, SN_SWEEP_ALIVE, NULL, 0);
    if (message.tag == SN_SWEEP_SORRY)
      sn_out_say("rank %" PRIu32 " takes no part: %.*s", message.from, (int)message.count, (const char *)message.bytes);
  }
}

static void lose(run *r, uint32_t number) {
  helper *h = &r->helpers[number];
  for (uint32_t g = 0; g < r->job->grid->n_groups && h->held > 0; g++) {
    if (r->holder[g] != number) continue;
    r->holder[g] = nobody;
    r->waiting++;
    h->held--;
  }
  r->next = 0;
  r->threads -= h->threads;
  h->threads = 0;
  sn_ranks_lose(r->job->ranks, number);
  sn_out_say("rank %" PRIu32 " was not heard of for %d s; others compute what it had", number, SN_SWEEP_LOST_MS / 1000);
}

/* Whoever was asleep itself cannot say that others were silent. */
static void look_for_lost(run *r) {
  int64_t now = sn_sweep_now();
  for (uint32_t i = 1; i < r->n_helpers; i++) {
    helper *h = &r->helpers[i];
    if (now - r->looped > SN_SWEEP_BEAT_MS) h->heard = now;
    if (h->threads > 0 && now - h->heard > SN_SWEEP_LOST_MS) lose(r, i);
  }
  r->looped = now;
}

void sn_sweep_dismiss(sn_ranks *ranks) {
  unsigned char whole = sn_ranks_is_whole(ranks);
  for (uint32_t i = 1; i < sn_ranks_count(ranks); i++) sn_ranks_send(ranks, i, SN_SWEEP_STOP, &whole, sizeof whole);
}

/* ---- the loop ---- */

/* Under mpirun no rank has a terminal: a line now and then, ever more rarely, tells a log how far it is. */
static void say_progress(run *r, int64_t now, const char *line) {
  unsigned columns, rows;
  if (!r->job->ranks || now - r->began < r->say_at || sn_out_size(stderr, &columns, &rows)) return;
  sn_out_say("%s", line);
  r->say_at *= 2;
}

static void show_progress(run *r) {
  int64_t now = sn_sweep_now();
  char line[160];
  if (now - r->shown < PROGRESS_MS || r->computed == 0) return;
  r->shown = now;
  double rate = r->computed / ((double)(now - r->began + 1) / 1e3), seconds = r->left / rate;
  uint32_t left = seconds < 360000 ? (uint32_t)(seconds + 0.5) : 359999;
  snprintf(line, sizeof line, "sweep %" PRId64 ": %" PRIu32 " of %" PRIu32 " points, %.0f a second, %u:%02u:%02u left",
           r->job->id, (r->job->grid->n_groups - r->left) * r->n_strategies, r->job->grid->n_points,
           rate * r->n_strategies, left / 3600, left / 60 % 60, left % 60);
  sn_out_progress(line);
  say_progress(r, now, line);
}

static int loop(run *r) {
  int number = 0;
  while (r->left > 0 && r->err->code == SN_OK && (number = sn_sweep_signal()) == 0) {
    for (uint32_t i = 0; i < r->n_helpers; i++) give(r, i);
    take_own(r, r->job->ranks ? SN_SWEEP_POLL_MS : WAIT_MS);
    if (r->job->ranks) {
      listen(r);
      look_for_lost(r);
    }
    store_finished(r);
    show_progress(r);
  }
  return number;
}

/* After a signal: what was begun is kept. */
static void finish_begun(run *r) {
  sn_out_progress(NULL);
  sn_workers_drop(r->workers);
  if (sn_workers_held(r->workers) > 0) sn_out_progress("stopping; what is being computed is kept ...");
  while (r->err->code == SN_OK && sn_workers_held(r->workers) > 0) take_own(r, WAIT_MS);
  store_finished(r);
}

/* ---- beginning and end ---- */

static void mark_groups(run *r) {
  for (uint32_t g = 0; g < r->job->grid->n_groups; g++) {
    bool all = true;
    for (uint32_t s = 0; s < r->n_strategies; s++) all = all && r->job->stored[(size_t)g * r->n_strategies + s];
    r->holder[g] = all ? finished : nobody;
    r->left += !all;
  }
  r->waiting = r->left;
}

static sn_status open_run(run *r) {
  const sn_sweep_job *job = r->job;
  r->n_helpers = job->ranks ? sn_ranks_count(job->ranks) : 1;
  r->helpers = calloc(r->n_helpers, sizeof *r->helpers);
  r->holder = calloc(job->grid->n_groups, sizeof *r->holder);
  r->points = calloc((size_t)BUFFERED * r->n_strategies, sizeof *r->points);
  r->rows = calloc((size_t)BUFFERED * r->n_strategies, sizeof *r->rows);
  if (!r->helpers || !r->holder || !r->points || !r->rows) return sn_fail_memory(r->err);
  for (uint32_t i = 0; i < r->n_helpers; i++) r->helpers[i].turn = job->grid->n_groups;
  r->helpers[0].threads = r->threads = job->jobs;
  r->workers = sn_workers_new(job->grid, job->jobs, r->err);
  if (!r->workers) return r->err->code;
  mark_groups(r);
  for (uint32_t i = 1; r->left > 0 && i < r->n_helpers; i++)
    sn_ranks_send(job->ranks, i, SN_SWEEP_GRID, job->text, strlen(job->text));
  r->began = r->looped = r->shown = sn_sweep_now();
  r->say_at = FIRST_WORD_MS;
  return SN_OK;
}

sn_status sn_sweep_run(const sn_sweep_job *job, int *signal_number, sn_err *err) {
  run r = {.job = job, .n_strategies = job->grid->n[SN_AXIS_STRATEGIES], .err = err};
  *signal_number = 0;
  sn_sweep_hold_signals(); /* from the workers too */
  if (open_run(&r) == SN_OK) *signal_number = loop(&r);
  if (*signal_number != 0) finish_begun(&r);
  sn_out_progress(NULL);
  sn_workers_free(r.workers);
  release_signals();
  free(r.helpers);
  free(r.holder);
  free(r.points);
  free(r.rows);
  return err->code;
}
