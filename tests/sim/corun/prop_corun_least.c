/* Property: the shortest co-run schedule there is, found by trying all that can be shortest, against what `path` and
 * `best` find. Operations do not slow each other here and use first slots only; a schedule that is shortest starts
 * each operation at 0 or where another ends, with a number of threads that is faster than all smaller ones. Branch and
 * bound: a partial schedule is dropped where the longest path left, or the work left on all cores, takes it beyond the
 * best known. Teams need not be side by side, so no schedule of ours can be shorter.
 *
 *   SN_SEED        first seed
 *   SN_PROP_NETS   how many graphs (default 300)
 *   SN_MOST_OPS    operations of a graph (default 7, at most 12) */
#include "tests/sim/corun/corun_case.h"

enum { MOST = 12 };

typedef struct search {
  const corun_case *c;
  uint32_t n, cores;
  uint32_t counts[MOST][CASE_CORES], n_counts[MOST]; /* per operation: threads worth having */
  int64_t behind[MOST];                              /* the longest path from its start, each at its fastest */
  int64_t area[MOST];                                /* least threads x time */
  int64_t best;
  uint64_t tried;
} search;

/* What has happened up to `now`; operations that run are those that have started and end later. */
typedef struct moment {
  int64_t now, end[MOST];
  uint32_t threads[MOST], started, ended; /* bits by operation */
  uint32_t idle;
} moment;

static int64_t time_of(const search *s, uint32_t op, uint32_t threads) {
  return s->c->classes[s->c->class_of[op * SN_STEP_PARTS]].ns[threads];
}

static void prepare(search *s) {
  for (uint32_t op = s->n; op-- > 0;) {
    int64_t fastest = INT64_MAX;
    s->area[op] = INT64_MAX;
    for (uint32_t t = 1; t <= s->cores; t++) {
      int64_t ns = time_of(s, op, t);
      if (ns * t < s->area[op]) s->area[op] = ns * t;
      if (ns >= fastest) continue;
      fastest = ns;
      s->counts[op][s->n_counts[op]++] = t;
    }
    s->behind[op] = 0;
    for (uint32_t next = op + 1; next < s->n; next++)
      if (s->c->edge[op][next] && s->behind[next] > s->behind[op]) s->behind[op] = s->behind[next];
    s->behind[op] += fastest;
  }
}

static bool has(uint32_t bits, uint32_t op) {
  return bits >> op & 1;
}

/* No schedule that goes on like this ends earlier. */
static int64_t bound(const search *s, const moment *m) {
  int64_t work = 0, longest = m->now;
  for (uint32_t op = 0; op < s->n; op++) {
    if (has(m->ended, op)) continue;
    bool runs = has(m->started, op);
    int64_t own = m->now + s->behind[op];
    if (runs) { /* what is behind it has to wait for its end */
      own = m->end[op];
      for (uint32_t next = op + 1; next < s->n; next++)
        if (s->c->edge[op][next] && m->end[op] + s->behind[next] > own) own = m->end[op] + s->behind[next];
    }
    if (own > longest) longest = own;
    work += runs ? (m->end[op] - m->now) * m->threads[op] : s->area[op];
  }
  int64_t spread = m->now + (work + s->cores - 1) / s->cores;
  return longest > spread ? longest : spread;
}

static bool is_ready(const search *s, const moment *m, uint32_t op) {
  if (has(m->started, op)) return false;
  for (uint32_t from = 0; from < op; from++)
    if (s->c->edge[from][op] && !has(m->ended, from)) return false;
  return true;
}

/* To the next end; all that end there. */
static moment pass(const search *s, const moment *m) {
  moment next = *m;
  next.now = INT64_MAX;
  for (uint32_t op = 0; op < s->n; op++)
    if (has(m->started, op) && !has(m->ended, op) && m->end[op] < next.now) next.now = m->end[op];
  for (uint32_t op = 0; op < s->n; op++)
    if (has(m->started, op) && !has(m->ended, op) && m->end[op] == next.now) {
      next.ended |= 1u << op;
      next.idle += m->threads[op];
    }
  return next;
}

/* Of those that start at one moment, the serially first starts first. */
static void go_on(search *s, const moment *m, uint32_t from) {
  s->tried++;
  if (m->ended == (1u << s->n) - 1) {
    if (m->now < s->best) s->best = m->now;
    return;
  }
  if (bound(s, m) >= s->best) return;
  for (uint32_t op = from; op < s->n; op++) {
    if (!is_ready(s, m, op)) continue;
    for (uint32_t i = s->n_counts[op]; i-- > 0;) {
      uint32_t threads = s->counts[op][i];
      if (threads > m->idle) continue;
      moment next = *m;
      next.started |= 1u << op;
      next.idle -= threads;
      next.threads[op] = threads;
      next.end[op] = m->now + time_of(s, op, threads);
      go_on(s, &next, op + 1);
    }
  }
  if (m->started == m->ended) return;
  moment next = pass(s, m);
  go_on(s, &next, 0);
}

static int64_t makespan(corun_case *c, const char *policy) {
  sn_timetable *t = case_schedule(c, policy, SN_BUDGET_ANY, NULL);
  int64_t end = t->end_ns;
  sn_timetable_free(t);
  return end;
}

static uint32_t most_ops(void) {
  const char *asked = getenv("SN_MOST_OPS");
  uint64_t n = asked ? strtoull(asked, NULL, 10) : 7;
  return n < MOST ? (uint32_t)n : MOST;
}

typedef struct tally {
  double sum, worst;
  uint32_t exact;
} tally;

static void count(tally *t, int64_t found, int64_t least) {
  double ratio = (double)found / (double)least;
  t->sum += ratio;
  if (ratio > t->worst) t->worst = ratio;
  t->exact += found == least;
}

static void report(const char *policy, const tally *t, uint32_t graphs) {
  print_message("%s: %.4f times the least on average, %.3f at worst, the least for %u of %u graphs\n", policy,
                t->sum / graphs, t->worst, t->exact, graphs);
}

static void least(void **state) {
  (void)state;
  uint64_t first = first_seed(1);
  uint32_t graphs = case_count(300), ops = most_ops();
  tally path = {0}, best = {0}, serial = {0};
  for (uint32_t i = 0; i < graphs; i++) {
    uint64_t seed = first + i;
    corun_case *c = draw_case(&seed, prng_from(&seed, 2, 8), ops);
    c->cores.neighbour = c->cores.resize_ns = 0;
    c->cores.slots = c->cores.tile = 1;
    for (uint32_t a = 0; a < SN_CROWDS; a++) c->cores.crowd[a] = 1e9; /* nothing is won by floating */
    c->times.max_threads = c->cores.count;
    for (uint32_t k = 0; k < c->times.n_classes; k++) {
      memcpy(c->predicted[k], c->ns[k], sizeof c->ns[k]);
      for (uint32_t t = 1; t <= c->times.max_threads; t++) c->share[k][t] = 1024;
      find_best(c, k);
    }
    search s = {.c = c, .n = c->ops.n_ops, .cores = c->cores.count};
    int64_t by_path = makespan(c, "path"), by_serial = makespan(c, "s1");
    s.best = by_path + 1;
    prepare(&s);
    moment start = {.idle = s.cores};
    go_on(&s, &start, 0);

    count(&path, by_path, s.best);
    count(&serial, by_serial, s.best);
    int64_t by_best = makespan(c, "best");
    if (by_path < s.best || by_best < s.best)
      fail_msg("SN_SEED=%llu: shorter than the shortest", (unsigned long long)(first + i));
    count(&best, by_best, s.best);
    free(c);
  }
  assert_true(path.sum / graphs < 1.06 && best.sum <= path.sum && best.worst >= 1);
  report("s1", &serial, graphs);
  report("path", &path, graphs);
  report("best", &best, graphs);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(least)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
