/* Property: co-run schedules of random graphs, times, devices and budgets. Each is replayed event by event with nothing
 * but the definitions (sums over all lives, all pairs of teams), and by the event engine with a fence for each wait
 * that a timetable means; starts are asked of a budget that adds everything up anew.
 *
 *   SN_SEED        first seed
 *   SN_PROP_NETS   how many graphs (default 4000) */
#include "sim/corun/moment.h"
#include "sim/corun/workers.h"
#include "sim/play/engine.h"
#include "tests/sim/corun/corun_case.h"

#include <inttypes.h>

enum { MOST_OPS = 40 };

static uint64_t dice; /* of the graph being tested */

#define MUST(what)                                                                                                     \
  do {                                                                                                                 \
    if (!(what)) fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, line %d: %s", dice, policy, __LINE__, #what);       \
  } while (0)

/* ---- memory by definition ---- */

/* Bytes of the lives that have been made, with a user that has not ended. */
static uint64_t live_bytes(const corun_case *c, const bool *started, const bool *ended) {
  uint64_t sum = 0;
  for (uint32_t l = 0; l < c->ops.n_lives; l++) {
    bool used = false;
    for (uint32_t op = 0; op < c->ops.n_ops; op++) used |= c->uses[op][l] && !ended[op];
    if (started[c->lives[l].made_by] && used) sum += c->tensors[l].bytes;
  }
  return sum;
}

/* The most bytes when all that has not started runs one after another from here. */
static uint64_t serial_peak(const corun_case *c, const bool *started) {
  bool done[CASE_OPS], running[CASE_OPS];
  uint64_t most = 0;
  memcpy(done, started, sizeof done);
  memcpy(running, started, sizeof running);
  for (uint32_t op = 0; op < c->ops.n_ops; op++) {
    if (started[op]) continue;
    running[op] = true;
    uint64_t live = live_bytes(c, running, done);
    if (live > most) most = live;
    done[op] = true;
  }
  return most;
}

/* ---- a timetable event by event ---- */

typedef struct replay {
  const corun_case *c;
  const sn_timetable *t;
  const char *policy;
  uint64_t budget;
  bool started[CASE_OPS], ended[CASE_OPS];
  uint32_t running[SN_COMPUTE_LANES], n_running; /* per lane: operation + 1 */
  uint64_t peak;
} replay;

static void check_cores(const replay *r, uint32_t op) {
  const char *policy = r->policy;
  const sn_start *s = &r->t->starts[op];
  MUST(s->team.count > 0 && s->team.count <= r->c->times.max_threads);
  MUST(s->team.slot == SN_SLOT_ANY || s->team.first + s->team.count <= r->c->cores.count);
  MUST(s->team.slot != SN_SLOT_SECOND || r->c->cores.slots == 2);
  for (uint32_t l = 0; l < SN_COMPUTE_LANES; l++) {
    if (r->running[l] == 0) continue;
    const sn_team *other = &r->t->starts[r->running[l] - 1].team;
    MUST((other->slot == SN_SLOT_ANY) == (s->team.slot == SN_SLOT_ANY));
    MUST(s->team.slot == SN_SLOT_ANY || other->slot != s->team.slot || other->first >= s->team.first + s->team.count ||
         s->team.first >= other->first + other->count);
  }
}

static void check_start(replay *r, uint32_t op) {
  const char *policy = r->policy;
  const sn_start *s = &r->t->starts[op];
  MUST(!r->started[op] && s->lane < SN_COMPUTE_LANES && r->running[s->lane] == 0);
  for (uint32_t from = 0; from < op; from++) MUST(!r->c->edge[from][op] || r->ended[from]);
  check_cores(r, op);
  r->started[op] = true;
  r->running[s->lane] = op + 1;
  r->n_running++;
  uint64_t live = live_bytes(r->c, r->started, r->ended);
  if (live > r->peak) r->peak = live;
  MUST(live <= r->budget && serial_peak(r->c, r->started) <= r->budget);
}

static void check_end(replay *r, uint32_t op) {
  const char *policy = r->policy;
  const sn_start *s = &r->t->starts[op];
  MUST(r->running[s->lane] == op + 1);
  MUST(s->end_ns >= s->start_ns + r->c->classes[r->c->class_of[op * SN_STEP_PARTS]].ns[s->team.count]);
  r->ended[op] = true;
  r->running[s->lane] = 0;
  r->n_running--;
}

static void check_events(const corun_case *c, const sn_timetable *t, const char *policy, uint64_t budget) {
  replay r = {.c = c, .t = t, .policy = policy, .budget = budget};
  int64_t now = 0;
  uint32_t end_lane = 0; /* of the last end at this time */
  bool first_end = true;
  for (uint32_t i = 0; i < 2 * c->ops.n_ops; i++) {
    sn_event e = t->events[i];
    MUST(e.op < c->ops.n_ops);
    const sn_start *s = &t->starts[e.op];
    int64_t at = e.is_end ? s->end_ns : s->start_ns;
    MUST(at >= now);
    if (at > now) first_end = true;
    now = at;
    if (!e.is_end) {
      check_start(&r, e.op);
      continue;
    }
    /* of those that end at one time the lowest lane's first, but for what started and took no time */
    MUST(first_end || s->lane > end_lane || s->start_ns == now);
    first_end = false;
    end_lane = s->lane;
    check_end(&r, e.op);
  }
  MUST(r.n_running == 0 && now == t->end_ns && r.peak == t->peak_bytes);
}

/* ---- the engine ---- */

/* Each operation waits for those before it in the graph, and for the end that came last before its start: then the
 * engine's times are the timetable's. Fence of an operation: its number, as is the tag; those of fences come after. */
static void check_engine(const corun_case *c, const sn_timetable *t, const char *policy) {
  static sn_span spans[CASE_OPS * (CASE_OPS + 3)];
  sn_err err = SN_ERR_INIT;
  sn_engine *e = sn_engine_new(SN_COMPUTE_LANES, CASE_OPS, false, spans, &err);
  uint32_t tag = CASE_OPS, last_end = SN_NONE, count[SN_COMPUTE_LANES] = {0};
  sn_engine_set_cores(e, &c->cores);
  for (uint32_t i = 0; i < 2 * c->ops.n_ops; i++) {
    uint32_t op = t->events[i].op;
    const sn_start *s = &t->starts[op];
    const sn_time_class *k = &c->classes[c->class_of[op * SN_STEP_PARTS]];
    if (t->events[i].is_end) {
      sn_engine_signal(e, s->lane, op, tag++, &err);
      last_end = op;
      continue;
    }
    if (last_end != SN_NONE) sn_engine_wait(e, s->lane, last_end, tag++, &err);
    for (uint32_t from = 0; from < op; from++)
      if (c->edge[from][op]) sn_engine_wait(e, s->lane, from, tag++, &err);
    int64_t resize = count[s->lane] && count[s->lane] != s->team.count ? (int64_t)c->cores.resize_ns : 0;
    count[s->lane] = s->team.count;
    sn_engine_run_team(e, s->lane, k->ns[s->team.count] + resize, (sn_running){s->team, k->share[s->team.count]}, op,
                       &err);
  }
  MUST(err.code == SN_OK && sn_engine_drain(e, &err) == SN_OK);
  for (uint32_t op = 0; op < c->ops.n_ops; op++)
    MUST(spans[op].begin_ns == t->starts[op].start_ns && spans[op].end_ns == t->starts[op].end_ns);
  sn_engine_free(e);
}

/* ---- one graph ---- */

static void check_same(const corun_case *c, const sn_timetable *a, const sn_timetable *b, const char *policy) {
  for (uint32_t op = 0; op < c->ops.n_ops; op++) {
    const sn_start *x = &a->starts[op], *y = &b->starts[op];
    MUST(x->team.first == y->team.first && x->team.count == y->team.count && x->team.slot == y->team.slot &&
         x->lane == y->lane && x->start_ns == y->start_ns && x->end_ns == y->end_ns);
  }
  for (uint32_t i = 0; i < 2 * c->ops.n_ops; i++)
    MUST(a->events[i].op == b->events[i].op && a->events[i].is_end == b->events[i].is_end);
}

static int64_t check_policy(corun_case *c, const char *policy, uint64_t budget) {
  sn_corun_facts facts, again;
  sn_timetable *t = case_schedule(c, policy, budget, &facts), *same = case_schedule(c, policy, budget, &again);
  check_events(c, t, policy, facts.budget_bytes);
  check_engine(c, t, policy);
  check_same(c, t, same, policy);
  bool none[CASE_OPS] = {false};
  MUST(facts.serial_peak_bytes == serial_peak(c, none));
  MUST(facts.bound_ns <= t->end_ns);
  MUST(facts.max_corun >= 1 && facts.max_corun <= SN_COMPUTE_LANES && facts.average_corun >= 1 &&
       facts.average_corun <= facts.max_corun);
  int64_t end = t->end_ns;
  sn_timetable_free(t);
  sn_timetable_free(same);
  return end;
}

static uint64_t draw_budget(const corun_case *c, uint64_t *seed) {
  uint64_t all = 0;
  bool none[CASE_OPS] = {false};
  for (uint32_t l = 0; l < c->ops.n_lives; l++) all += c->tensors[l].bytes;
  uint64_t serial = serial_peak(c, none);
  switch (prng_below(seed, 3)) {
  case 0:
    return SN_BUDGET_SERIAL;
  case 1:
    return SN_BUDGET_ANY;
  default:
    return serial + prng_below(seed, (uint32_t)(all - serial) + 1) + (serial == 0);
  }
}

static const char *const named[] = {"s1", "s12", "s123", "s1234", "path", "manual"};
enum { NAMED = sizeof named / sizeof *named };

static void random_graphs(void **state) {
  (void)state;
  uint64_t first = first_seed(1), graphs = case_count(4000);
  for (uint64_t i = 0; i < graphs; i++) {
    dice = first + i;
    uint64_t seed = dice;
    corun_case *c = draw_case(&seed, prng_from(&seed, 2, CASE_CORES), MOST_OPS);
    uint64_t budget = draw_budget(c, &seed);
    int64_t fastest = INT64_MAX;
    for (uint32_t p = 0; p < NAMED; p++) {
      int64_t end = check_policy(c, named[p], budget);
      if (end < fastest) fastest = end;
    }
    char workers[SN_POLICY_NAME], *policy = workers;
    uint32_t count = prng_from(&seed, 1, 6), threads = prng_from(&seed, 1, 2 * c->cores.count);
    snprintf(workers, sizeof workers, "%ux%u", count, threads);
    check_policy(c, workers, budget);
    policy = "best";
    MUST(check_policy(c, policy, budget) == fastest);
    free(c);
  }
}

/* ---- workers ---- */

/* No schedule of these workers ends before what is said of it, neither before it begins nor while it goes on. */
static int64_t check_bounds(corun_case *c, uint32_t workers, uint32_t threads, uint64_t budget) {
  char policy[SN_POLICY_NAME];
  sn_err err = SN_ERR_INIT;
  sn_corun_facts facts;
  sn__workers bounds;
  snprintf(policy, sizeof policy, "%ux%u", workers, threads);
  sn_timetable *t = case_schedule(c, policy, budget, &facts);
  sn__problem *p = sn__problem_new(&c->ops, &c->times, &c->cores, &err);
  MUST(p && sn__workers_init(&bounds, p));
  MUST(sn__workers_work(&bounds, workers, threads) <= t->end_ns);
  MUST(sn__workers_path(&bounds) <= t->end_ns);
  for (uint32_t i = 0; i < 2 * c->ops.n_ops; i++) {
    const sn_event *e = &t->events[i];
    if (!e->is_end) MUST(sn__workers_start(&bounds, e->op, t->starts[e->op].start_ns) <= t->end_ns);
  }
  MUST(bounds.left_work_ns == 0 && bounds.left_beside_ns == 0);
  int64_t end = t->end_ns;
  sn__workers_clear(&bounds);
  sn__problem_free(p);
  sn_timetable_free(t);
  return end;
}

/* manual is the fastest of all workers, each scheduled to its end. */
static void bounded_workers(void **state) {
  (void)state;
  const char *policy = "manual";
  uint64_t first = first_seed(9000), graphs = case_count(4000) / 4 + 1;
  for (uint64_t i = 0; i < graphs; i++) {
    dice = first + i;
    uint64_t seed = dice;
    corun_case *c = draw_case(&seed, prng_from(&seed, 2, CASE_CORES), MOST_OPS);
    uint64_t budget = draw_budget(c, &seed);
    uint32_t cores = c->cores.count;
    int64_t fastest = INT64_MAX;
    c->cores.pinned = prng_chance(&seed, 30);
    for (uint32_t k = 1; k <= 4; k *= 2)
      for (uint32_t threads = 1; threads <= 2 * cores; threads++) {
        bool tried = (threads < cores && threads % 2 == 0) || threads == cores || threads == 3 * cores / 2 ||
                     threads == 2 * cores || (threads == 1 && c->cores.pinned);
        if (!tried || (c->cores.pinned && k * threads > cores)) continue;
        int64_t end = check_bounds(c, k, threads, budget);
        if (end < fastest) fastest = end;
      }
    sn_timetable *t = case_schedule(c, policy, budget, NULL);
    MUST(t->end_ns == fastest);
    sn_timetable_free(t);
    free(c);
  }
}

/* ---- what may start ---- */

static bool is_ready(const corun_case *c, const bool *started, const bool *ended, uint32_t op) {
  bool ready = !started[op];
  for (uint32_t from = 0; from < op; from++) ready &= !c->edge[from][op] || ended[from];
  return ready;
}

/* Those that may start by definition; how many. */
static uint32_t list_allowed(const corun_case *c, bool *started, const bool *ended, uint64_t bytes, uint32_t *allowed) {
  uint32_t n = 0;
  for (uint32_t op = 0; op < c->ops.n_ops; op++) {
    if (!is_ready(c, started, ended, op)) continue;
    started[op] = true;
    if (live_bytes(c, started, ended) <= bytes && serial_peak(c, started) <= bytes) allowed[n++] = op;
    started[op] = false;
  }
  return n;
}

/* The floor lists the same, in each of its orders. */
static void check_orders(sn__moment *f, const sn__problem *p, const uint32_t *allowed, uint32_t n) {
  const char *policy = "random order";
  for (sn__order o = 0; o < SN__ORDERS; o++) {
    uint32_t listed = 0, last = 0;
    for (uint32_t op = sn__moment_first_allowed(f, o); op != SN_NONE;
         op = sn__moment_next_allowed(f, o, op), listed++) {
      uint32_t rank = o == SN__OLDEST ? f->age[op] : p->rank[o][op], at = 0;
      while (at < n && allowed[at] != op) at++;
      MUST(at < n && (listed == 0 || rank > last));
      last = rank;
    }
    MUST(listed == n);
  }
}

/* None of those that fit in with so many cores and so much time is left out of the small ones. */
static void check_small(sn__moment *f, const sn__problem *p, const uint32_t *allowed, uint32_t n, uint64_t *seed) {
  const char *policy = "small ones";
  uint32_t idle = prng_from(seed, 1, p->cores->count), fitting = 0, found = 0;
  int64_t left_ns = p->ops->n_ops > 0 ? sn__class(p, prng_below(seed, p->ops->n_ops))->predicted[idle] : 0;
  bool fits[CASE_OPS] = {false};
  for (uint32_t i = 0; i < n; i++) {
    const sn__choice *choice = &p->choices[p->class_of[allowed[i]]];
    for (uint32_t k = 0; k < choice->n; k++)
      fits[allowed[i]] |=
          choice->threads[k] <= idle && sn__class(p, allowed[i])->predicted[choice->threads[k]] <= left_ns;
    fitting += fits[allowed[i]];
  }
  for (uint32_t op = SN_NONE; (op = sn__moment_next_small(f, op, idle, left_ns)) != SN_NONE;) found += fits[op];
  MUST(found == fitting);
}

/* Operations started at random, whatever order that is: those may start that may by definition. */
static void random_orders(void **state) {
  (void)state;
  const char *policy = "random order";
  uint64_t first = first_seed(51000), graphs = case_count(4000) / 4 + 1, yes = 0, no = 0;
  for (uint64_t i = 0; i < graphs; i++) {
    dice = first + i;
    uint64_t seed = dice, bytes = SN_BUDGET_ANY;
    corun_case *c = draw_case(&seed, 4, MOST_OPS);
    bool started[CASE_OPS] = {false}, ended[CASE_OPS] = {false};
    while (bytes == SN_BUDGET_ANY) bytes = draw_budget(c, &seed);
    if (bytes == SN_BUDGET_SERIAL) bytes = serial_peak(c, started);
    sn_err err = SN_ERR_INIT;
    sn_timetable *t = sn_timetable_new(&c->ops, &err);
    sn__problem *p = sn__problem_new(&c->ops, &c->times, &c->cores, &err);
    sn__budget *b = sn__budget_new(&c->ops, &err);
    sn__moment *f = sn__moment_new(p, b, &err);
    for (sn__order o = 0; o < SN__ORDERS; o++) MUST(sn__problem_rank(p, o));
    sn__moment_begin(f, (1u << SN__ORDERS) - 1, bytes, t);
    for (uint32_t events = 0; events < 2 * c->ops.n_ops; events++) {
      uint32_t allowed[CASE_OPS], n = list_allowed(c, started, ended, bytes, allowed), serial = 0, ready = 0;
      while (serial < c->ops.n_ops && started[serial]) serial++;
      MUST(sn__budget_first(b) == (serial < c->ops.n_ops ? serial : SN_NONE));
      check_orders(f, p, allowed, n);
      check_small(f, p, allowed, n, &seed);
      for (uint32_t op = 0; op < c->ops.n_ops; op++) ready += is_ready(c, started, ended, op);
      yes += n;
      no += ready - n;
      MUST(n > 0 || f->n_running > 0);
      if (n > 0 && f->n_running < SN_COMPUTE_LANES && (f->n_running == 0 || prng_chance(&seed, 60))) {
        uint32_t op = allowed[prng_below(&seed, n)];
        started[op] = true;
        sn__moment_start(f, op, (sn_team){.first = 8, .count = 1, .slot = SN_SLOT_ANY});
      } else {
        MUST(sn__moment_end_next(f, INT64_MAX));
        ended[t->events[f->n_events - 1].op] = true;
      }
    }
    MUST(f->n_running == 0);
    sn__moment_free(f);
    sn__budget_free(b);
    sn__problem_free(p);
    sn_timetable_free(t);
    free(c);
  }
  assert_true(no > yes / 100); /* both are tested */
}

/* With one core all policies run one operation after another, and take as long as all of them together. */
static void one_core(void **state) {
  (void)state;
  uint64_t first = first_seed(500), graphs = case_count(4000) / 8 + 1;
  for (uint64_t i = 0; i < graphs; i++) {
    dice = first + i;
    uint64_t seed = dice;
    corun_case *c = draw_case(&seed, 1, MOST_OPS);
    c->cores.slots = 1;
    int64_t all = 0;
    for (uint32_t op = 0; op < c->ops.n_ops; op++) all += c->classes[c->class_of[op * SN_STEP_PARTS]].ns[1];
    static const char *const policies[] = {"1x1", "s1", "s12", "s123", "s1234", "path"};
    for (uint32_t p = 0; p < sizeof policies / sizeof *policies; p++) {
      const char *policy = policies[p];
      MUST(check_policy(c, policy, draw_budget(c, &seed)) == all);
    }
    free(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs), cmocka_unit_test(bounded_workers),
                                     cmocka_unit_test(random_orders), cmocka_unit_test(one_core)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
