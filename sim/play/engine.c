/* Event engine; see the header. */
#include "sim/play/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { UNITS_PER_NS = 840 };

typedef enum task_kind { RUN, COPY, RUN_TEAM, SIGNAL, WAIT } task_kind; /* up to RUN_TEAM they take time */

/* Of lanes that slow each other there is one for every instruction of a plan but those of memory, so it is no more than
 * its tag and, in the lowest bits, its kind. What else is to be known of it stands in its span until that ends, in the
 * place of the end: nanoseconds of RUN and COPY, of RUN_TEAM which of `teams`, the fence of the others. */
typedef uint32_t task;
enum { KIND_BITS = 3 };

typedef struct team_task {
  sn_running running;
  int64_t ns;
} team_task;

typedef struct lane {
  task *tasks;
  uint32_t head, count, room;
  bool busy, waiting;
  bool copies;        /* its task is a copy */
  bool shares;        /* its task is slowed by what else runs: a copy on the shared link, any where there are speeds */
  bool paced;         /* its task has a team: `pace` knows its end */
  int64_t end_ns;     /* of the task that runs and shares nothing; with a team, as find_team_end() has it; of lanes
                         apart, of all that is settled */
  int64_t left_units; /* of the task that runs and shares */
  int64_t busy_ns, stall_ns;
} lane;

struct sn_engine {
  uint32_t n_lanes;
  lane lanes[SN_ENGINE_LANES];
  int64_t *passed; /* per fence, 1 + when it did; 0: not yet */
  sn_pace pace;
  team_task *teams;
  uint32_t n_teams, teams_room;
  bool apart; /* lanes do not slow each other */
  bool shared_link, has_speeds;
  int64_t run_units, copy_units; /* of 1 ns, done in a ns while the others go on */
  sn_span *spans;
  int64_t now;
  int64_t queued_ns; /* all work so far: a bound of the clock */
  uint64_t events;
};

sn_engine *sn_engine_new(uint32_t n_lanes, uint32_t n_fences, bool shared_link, sn_span *spans, sn_err *err) {
  sn_engine *e = n_lanes <= SN_ENGINE_LANES ? calloc(1, sizeof *e) : NULL;
  if (e) e->passed = calloc((size_t)n_fences + 1, sizeof *e->passed);
  if (!e || !e->passed) {
    free(e);
    sn_fail_memory(err);
    return NULL;
  }
  e->n_lanes = n_lanes;
  e->shared_link = shared_link;
  e->apart = !shared_link;
  e->spans = spans;
  return e;
}

static int64_t units_of(double speed) {
  return llround(fmin(fmax(speed, SN_ENGINE_LEAST_SPEED), 1) * UNITS_PER_NS);
}

void sn_engine_set_speeds(sn_engine *e, double run, double copy) {
  e->has_speeds = true;
  e->apart = false;
  e->run_units = units_of(run);
  e->copy_units = units_of(copy);
}

void sn_engine_free(sn_engine *e) {
  if (!e) return;
  for (uint32_t l = 0; l < e->n_lanes; l++) free(e->lanes[l].tasks);
  free(e->passed);
  free(e->teams);
  free(e);
}

static sn_status count_work(sn_engine *e, int64_t ns, sn_err *err) {
  if (ns < 0) return sn_fail(err, SN_BUG, "engine: work of %" PRId64 " ns", ns);
  if (ns > SN_ENGINE_MAX_NS - e->queued_ns)
    return sn_fail(err, SN_BAD_INPUT,
                   "the simulated iteration takes more than %" PRId64 " days; choose a smaller batch",
                   SN_ENGINE_MAX_NS / (INT64_C(86400) * 1000000000));
  e->queued_ns += ns;
  return SN_OK;
}

static task_kind kind_of(task t) {
  return t % (1u << KIND_BITS);
}

static sn_span *span_of(const sn_engine *e, task t) {
  return &e->spans[t >> KIND_BITS];
}

static sn_status queue(sn_engine *e, lane *l, task_kind kind, int64_t about, uint32_t tag, sn_err *err) {
  if (tag >> (32 - KIND_BITS)) return sn_fail(err, SN_BAD_INPUT, "%" PRIu32 " instructions are too many to play", tag);
  if (l->count == l->room) {
    uint32_t room = l->room ? 2 * l->room : 64;
    task *more = room > l->room ? realloc(l->tasks, (size_t)room * sizeof *more) : NULL;
    if (!more) return sn_fail_memory(err);
    l->tasks = more;
    l->room = room;
  }
  e->spans[tag].end_ns = about;
  l->tasks[l->count++] = tag << KIND_BITS | kind;
  return SN_OK;
}

/* When the next task of a lane apart begins. */
static int64_t ready_ns(const sn_engine *e, const lane *l) {
  return l->end_ns > e->now ? l->end_ns : e->now;
}

/* Work of a lane apart. */
static void settle_work(sn_engine *e, lane *l, int64_t ns, sn_span *span) {
  span->begin_ns = ready_ns(e, l);
  span->end_ns = l->end_ns = span->begin_ns + ns;
  l->busy_ns += ns;
  e->events++;
}

/* A signal or a wait of a lane apart. False: its fence has not passed. */
static bool settle_fence(sn_engine *e, lane *l, task_kind kind, int64_t fence, sn_span *span) {
  int64_t begin = ready_ns(e, l), *passed = &e->passed[fence];
  if (kind == SIGNAL) *passed = begin + 1;
  if (*passed == 0) return false;
  *span = (sn_span){begin, *passed - 1 > begin ? *passed - 1 : begin};
  l->stall_ns += span->end_ns - begin;
  l->end_ns = span->end_ns;
  e->events++;
  return true;
}

static bool is_held(const lane *l) {
  return l->head < l->count;
}

static sn_status work(sn_engine *e, uint32_t lane_number, task_kind kind, int64_t ns, uint32_t tag, sn_err *err) {
  lane *l = &e->lanes[lane_number];
  if (count_work(e, ns, err) != SN_OK) return err->code;
  if (!e->apart || is_held(l)) return queue(e, l, kind, ns, tag, err);
  settle_work(e, l, ns, &e->spans[tag]);
  return SN_OK;
}

static sn_status meet(sn_engine *e, uint32_t lane_number, task_kind kind, uint32_t fence, uint32_t tag, sn_err *err) {
  lane *l = &e->lanes[lane_number];
  bool settled = e->apart && !is_held(l) && settle_fence(e, l, kind, fence, &e->spans[tag]);
  return settled ? SN_OK : queue(e, l, kind, fence, tag, err);
}

sn_status sn_engine_run(sn_engine *e, uint32_t lane_number, int64_t ns, uint32_t tag, sn_err *err) {
  return work(e, lane_number, RUN, ns, tag, err);
}

sn_status sn_engine_copy(sn_engine *e, uint32_t lane_number, int64_t ns, uint32_t tag, sn_err *err) {
  return work(e, lane_number, COPY, ns, tag, err);
}

void sn_engine_set_cores(sn_engine *e, const sn_cores *cores) {
  e->pace.cores = cores;
  e->apart = false;
}

sn_status sn_engine_run_team(sn_engine *e, uint32_t lane_number, int64_t ns, sn_running running, uint32_t tag,
                             sn_err *err) {
  if (e->n_teams == e->teams_room) {
    uint32_t room = e->teams_room ? 2 * e->teams_room : 64;
    team_task *more = room > e->teams_room ? realloc(e->teams, (size_t)room * sizeof *more) : NULL;
    if (!more) return sn_fail_memory(err);
    e->teams = more;
    e->teams_room = room;
  }
  e->teams[e->n_teams] = (team_task){running, ns};
  if (count_work(e, ns, err) != SN_OK) return err->code;
  return queue(e, &e->lanes[lane_number], RUN_TEAM, e->n_teams++, tag, err);
}

sn_status sn_engine_signal(sn_engine *e, uint32_t lane_number, uint32_t fence, uint32_t tag, sn_err *err) {
  return meet(e, lane_number, SIGNAL, fence, tag, err);
}

sn_status sn_engine_wait(sn_engine *e, uint32_t lane_number, uint32_t fence, uint32_t tag, sn_err *err) {
  return meet(e, lane_number, WAIT, fence, tag, err);
}

static void start(sn_engine *e, lane *l, task t) {
  sn_span *span = span_of(e, t);
  const team_task *team = kind_of(t) == RUN_TEAM ? &e->teams[span->end_ns] : NULL;
  int64_t ns = team ? team->ns : span->end_ns;
  l->busy = true;
  l->copies = kind_of(t) == COPY;
  l->paced = team != NULL;
  l->shares = l->copies ? e->shared_link || e->has_speeds : e->has_speeds && !l->paced;
  l->end_ns = e->now + ns;
  l->left_units = ns * UNITS_PER_NS;
  span->begin_ns = e->now;
  if (!team) return;
  e->pace.now = e->now; /* it stands still while no team works */
  sn_pace_start(&e->pace, (uint32_t)(l - e->lanes), team->running, ns);
}

static void begin_waiting(sn_engine *e, lane *l, sn_span *span) {
  if (l->waiting) return;
  l->waiting = true;
  span->begin_ns = e->now;
}

static void end_waiting(sn_engine *e, lane *l, sn_span *span) {
  if (!l->waiting) span->begin_ns = e->now;
  l->waiting = false;
  span->end_ns = e->now;
  l->stall_ns += e->now - span->begin_ns;
}

/* Takes tasks from a lane until it is busy, held at a fence or empty. True where a fence passed. */
static bool advance(sn_engine *e, lane *l) {
  bool signalled = false;
  while (!l->busy && l->head < l->count) {
    task t = l->tasks[l->head];
    if (kind_of(t) <= RUN_TEAM) {
      start(e, l, t);
      break;
    }
    sn_span *span = span_of(e, t);
    int64_t *passed = &e->passed[span->end_ns];
    if (kind_of(t) == WAIT && *passed == 0) {
      begin_waiting(e, l, span);
      break;
    }
    if (kind_of(t) == WAIT) {
      end_waiting(e, l, span);
    } else {
      signalled = true;
      *passed = e->now + 1;
      *span = (sn_span){e->now, e->now};
    }
    l->head++;
    e->events++;
  }
  return signalled;
}

static void advance_all(sn_engine *e) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t l = 0; l < e->n_lanes; l++) again |= advance(e, &e->lanes[l]);
  }
}

/* A task of the lane has ended: the others stand where they stood, unless it passes a fence. */
static void advance_from(sn_engine *e, lane *first) {
  if (!advance(e, first)) return;
  for (lane *l = first + 1; l < e->lanes + e->n_lanes; l++) advance(e, l);
  advance_all(e);
}

/* How many tasks run that share, copies and others. */
typedef struct load {
  uint32_t copies, runs;
} load;

static load load_of(const sn_engine *e) {
  load now = {0, 0};
  for (uint32_t i = 0; i < e->n_lanes; i++) {
    const lane *l = &e->lanes[i];
    now.copies += l->busy && l->shares && l->copies;
    now.runs += l->busy && l->shares && !l->copies;
  }
  return now;
}

/* Units that a task which shares gets done in a ns. */
static int64_t rate_of(const sn_engine *e, const lane *l, load now) {
  if (!l->copies) return now.copies > 0 ? e->run_units : UNITS_PER_NS;
  int64_t rate = now.runs > 0 ? e->copy_units : UNITS_PER_NS;
  return e->shared_link && now.copies > 1 ? rate / now.copies : rate;
}

static int64_t end_of(const sn_engine *e, const lane *l, load now) {
  if (!l->shares) return l->end_ns;
  int64_t rate = rate_of(e, l, now);
  return e->now + (l->left_units + rate - 1) / rate;
}

static void finish(sn_engine *e, lane *l) {
  sn_span *span = span_of(e, l->tasks[l->head++]);
  l->busy = false;
  span->end_ns = e->now;
  l->busy_ns += e->now - span->begin_ns;
  e->events++;
}

/* The next end of those with teams; the others of them end later. */
static void find_team_end(sn_engine *e) {
  uint32_t next = 0;
  int64_t end_ns = 0;
  sn_pace_next(&e->pace, &next, &end_ns);
  for (uint32_t i = 0; i < e->n_lanes; i++)
    if (e->lanes[i].paced) e->lanes[i].end_ns = i == next ? end_ns : INT64_MAX;
}

static void pass_on_teams(sn_engine *e, lane *first) {
  sn_pace_advance(&e->pace, e->now);
  if (first->paced) sn_pace_end(&e->pace, (uint32_t)(first - e->lanes));
  first->paced = false;
}

/* Moves the clock to the next end of a task, and says of which lane; NULL where nothing runs. */
static lane *next_event(sn_engine *e) {
  load now = e->shared_link || e->has_speeds ? load_of(e) : (load){0, 0};
  bool teams = e->pace.n_running > 0;
  lane *first = NULL;
  int64_t end = 0;
  if (teams) find_team_end(e);
  for (uint32_t i = 0; i < e->n_lanes; i++) {
    lane *l = &e->lanes[i];
    if (!l->busy) continue;
    int64_t its_end = end_of(e, l, now);
    if (first && its_end >= end) continue;
    first = l;
    end = its_end;
  }
  if (!first) return NULL;
  for (uint32_t i = 0; i < e->n_lanes && now.copies + now.runs > 0; i++)
    if (e->lanes[i].busy && e->lanes[i].shares)
      e->lanes[i].left_units -= (end - e->now) * rate_of(e, &e->lanes[i], now);
  e->now = end;
  if (teams) pass_on_teams(e, first);
  finish(e, first);
  return first;
}

/* Tasks that lanes apart were held with. True where one was settled. */
static bool settle_queued(sn_engine *e, lane *l) {
  uint32_t head = l->head;
  for (bool goes_on = true; goes_on && is_held(l); l->head += goes_on) {
    task t = l->tasks[l->head];
    sn_span *span = span_of(e, t);
    if (kind_of(t) == SIGNAL || kind_of(t) == WAIT)
      goes_on = settle_fence(e, l, kind_of(t), span->end_ns, span);
    else
      settle_work(e, l, span->end_ns, span);
  }
  return l->head > head;
}

static void drain_apart(sn_engine *e) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t l = 0; l < e->n_lanes; l++) again |= settle_queued(e, &e->lanes[l]);
  }
  for (uint32_t l = 0; l < e->n_lanes; l++) e->now = ready_ns(e, &e->lanes[l]);
}

static void drain_events(sn_engine *e) {
  advance_all(e);
  for (lane *first; (first = next_event(e));) advance_from(e, first);
}

sn_status sn_engine_drain(sn_engine *e, sn_err *err) {
  if (e->apart)
    drain_apart(e);
  else
    drain_events(e);
  for (uint32_t l = 0; l < e->n_lanes; l++) {
    if (is_held(&e->lanes[l]))
      return sn_fail(err, SN_BUG, "simulation: lane %u waits for a fence that is never signalled", l);
    e->lanes[l].head = e->lanes[l].count = 0;
  }
  e->n_teams = 0;
  return SN_OK;
}

int64_t sn_engine_now(const sn_engine *e) {
  return e->now;
}

sn_status sn_engine_pass(sn_engine *e, int64_t ns, sn_err *err) {
  sn_status status = count_work(e, ns, err);
  if (status != SN_OK) return status;
  e->now += ns;
  return SN_OK;
}

int64_t sn_engine_busy(const sn_engine *e, uint32_t lane_number) {
  return e->lanes[lane_number].busy_ns;
}

int64_t sn_engine_stalled(const sn_engine *e, uint32_t lane_number) {
  return e->lanes[lane_number].stall_ns;
}

uint64_t sn_engine_events(const sn_engine *e) {
  return e->events;
}
