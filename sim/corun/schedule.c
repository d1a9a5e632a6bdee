/* Co-run schedules; see the header. */
#include "sim/corun/schedule.h"

#include "base/units.h"
#include "sim/corun/rules.h"
#include "sim/corun/workers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_NS INT64_C(1000000000000000) /* as of the event engine: 11.6 days of work */

/* The fastest schedule so far, and room for the next. */
typedef struct maker {
  sn__problem *problem;
  sn__budget *budget;
  sn__moment *floor;
  uint64_t budget_bytes;
  const sn_mix *mix; /* in place of a policy; NULL: by the policy */
  sn_timetable *best, *next;
  sn_policy policy; /* of `best` */
  uint32_t stretch;
  bool found;
  bool keeps_serial;  /* `best`, if it is 1xC, unless another is faster by more than times are known */
  sn__workers bounds; /* of manual's */
} maker;

/* Another schedule must end before that. */
static int64_t cutoff_ns(const maker *m) {
  if (!m->found) return INT64_MAX;
  bool is_serial =
      m->policy.kind == SN_POLICY_WORKERS && m->policy.workers == 1 && m->policy.threads == m->problem->cores->count;
  return m->best->end_ns - (m->keeps_serial && is_serial ? m->best->end_ns / SN_CORUN_GAIN : 0);
}

/* Whether the schedule, if this starts now, is known not to be the fastest. */
static bool is_hopeless(maker *m, const sn__rule *rule, uint32_t op) {
  return rule->bounded && sn__workers_start(&m->bounds, op, m->floor->pace.now) >= cutoff_ns(m);
}

static sn_status rank_all(sn__problem *p, uint32_t orders, sn_err *err) {
  for (sn__order o = 0; o < SN__ORDERS; o++)
    if (orders >> o & 1 && !sn__problem_rank(p, o)) return sn_fail_memory(err);
  return SN_OK;
}

/* Runs a rule; keeps the schedule if it is the fastest so far. */
static sn_status try_rule(maker *m, sn__rule rule, sn_policy policy, sn_err *err) {
  sn__moment *f = m->floor;
  sn__pick pick;
  if (rank_all(m->problem, rule.orders, err) != SN_OK) return err->code;
  sn__moment_begin(f, rule.orders, m->budget_bytes, m->next);
  do
    while (f->n_running < SN_COMPUTE_LANES && rule.next(f, &rule, &pick)) {
      if (is_hopeless(m, &rule, pick.op)) return SN_OK;
      sn__moment_start(f, pick.op, pick.team);
    }
  while (sn__moment_end_next(f, cutoff_ns(m)));
  if (f->n_running > 0) return SN_OK; /* dropped */
  if (f->n_events < 2 * f->problem->ops->n_ops)
    return sn_fail(err, SN_BUG, "co-run schedule: nothing runs, and %" PRIu32 " operations wait",
                   f->problem->ops->n_ops - f->n_events / 2);
  m->next->end_ns = f->pace.now;
  if (m->next->end_ns >= cutoff_ns(m)) return SN_OK; /* there is nothing to run */
  m->next->peak_bytes = sn__budget_peak(m->budget);
  sn_timetable *other = m->best;
  m->best = m->next;
  m->next = other;
  m->policy = policy;
  m->stretch = rule.stretch;
  m->found = true;
  return SN_OK;
}

/* ---- workers ---- */

/* So many threads as workers may have; what the times are known for. */
static sn_status check_threads(const maker *m, sn_policy policy, sn_err *err) {
  uint32_t most = m->problem->times->max_threads;
  if (policy.threads <= most) return SN_OK;
  char name[SN_POLICY_NAME];
  return sn_fail(err, SN_BAD_USAGE, "co-run policy %s: with %" PRIu32 " cores a worker has at most %" PRIu32 " threads",
                 sn_policy_name(policy, name), m->problem->cores->count, most);
}

static sn_status try_workers(maker *m, sn_policy policy, bool bounded, sn_err *err) {
  if (check_threads(m, policy, err) != SN_OK) return err->code;
  sn__rule rule = sn__rule_workers(policy.workers, policy.threads);
  rule.bounded = bounded;
  return try_rule(m, rule, policy, err);
}

typedef struct candidate {
  int64_t bound_ns;
  bool knows_path; /* or that of the work alone */
  uint32_t order;  /* as listed */
  sn_policy policy;
} candidate;

static int compare(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->bound_ns != y->bound_ns) return x->bound_ns < y->bound_ns ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* 2, 4, .. C threads, and 1.5 C and 2 C; all of which there are times for. Workers that are executed, maybe on two
 * cores, may have one. Returns how many. */
static uint32_t list_threads(const sn__problem *p, uint32_t threads[SN_MAX_CORES]) {
  uint32_t c = p->cores->count, n = 0;
  if (p->cores->pinned) threads[n++] = 1;
  for (uint32_t t = 2; t < c; t += 2) threads[n++] = t;
  threads[n++] = c;
  if (3 * c / 2 > c && 3 * c / 2 <= p->times->max_threads) threads[n++] = 3 * c / 2;
  if (2 * c <= p->times->max_threads) threads[n++] = 2 * c;
  return n;
}

/* The first, of which the work is known, by its path, too: it goes behind those that are now before it. */
static void add_path(sn__workers *bounds, candidate *first, uint32_t n) {
  candidate c = *first;
  sn__workers_work(bounds, c.policy.workers, c.policy.threads);
  int64_t path_ns = sn__workers_path(bounds);
  if (path_ns > c.bound_ns) c.bound_ns = path_ns;
  c.knows_path = true;
  uint32_t at = 0;
  for (; at + 1 < n && compare(&first[at + 1], &c) < 0; at++) first[at] = first[at + 1];
  first[at] = c;
}

static sn_status try_manual(maker *m, sn_err *err) {
  static const uint32_t workers[] = {1, 2, 4};
  uint32_t threads[SN_MAX_CORES], n = 0, n_threads = list_threads(m->problem, threads);
  candidate all[sizeof workers / sizeof *workers * SN_MAX_CORES];
  for (uint32_t w = 0; w < sizeof workers / sizeof *workers; w++)
    for (uint32_t t = 0; t < n_threads; t++) {
      if (m->problem->cores->pinned && workers[w] * threads[t] > m->problem->cores->count) continue;
      sn_policy policy = {SN_POLICY_WORKERS, workers[w], threads[t]};
      all[n] = (candidate){sn__workers_work(&m->bounds, workers[w], threads[t]), false, n, policy};
      n++;
    }
  qsort(all, n, sizeof *all, compare);
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < n && status == SN_OK && all[i].bound_ns < cutoff_ns(m);) {
    if (!all[i].knows_path) {
      add_path(&m->bounds, &all[i], n - i);
      continue;
    }
    sn__workers_work(&m->bounds, all[i].policy.workers, all[i].policy.threads);
    sn__workers_path(&m->bounds);
    status = try_workers(m, all[i++].policy, true, err);
  }
  return status;
}

/* ---- the others ---- */

static sn_status try_path(maker *m, sn_err *err) {
  static const uint32_t stretches[] = {100, 105, 115, 130, 150};
  sn_status status = SN_OK;
  m->keeps_serial = m->problem->times->measured_ops > 0;
  if (m->keeps_serial) status = try_workers(m, (sn_policy){SN_POLICY_WORKERS, 1, m->problem->cores->count}, false, err);
  for (uint32_t i = 0; i < sizeof stretches / sizeof *stretches && status == SN_OK; i++)
    status = try_rule(m, sn__rule_path(stretches[i]), (sn_policy){.kind = SN_POLICY_PATH}, err);
  return status;
}

static sn_status try_best(maker *m, sn_err *err);

static sn_status try_policy(maker *m, sn_policy policy, sn_err *err) {
  if (m->mix) return try_rule(m, sn__rule_mixed(m->mix), policy, err);
  switch (policy.kind) {
  case SN_POLICY_WORKERS:
    return try_workers(m, policy, false, err);
  case SN_POLICY_MANUAL:
    return try_manual(m, err);
  case SN_POLICY_S1:
    return try_rule(m, sn__rule_serial_best(), policy, err);
  case SN_POLICY_S12:
    return try_rule(m, sn__rule_serial_kind(), policy, err);
  case SN_POLICY_S123:
    return try_rule(m, sn__rule_idle(), policy, err);
  case SN_POLICY_S1234:
    return try_rule(m, sn__rule_idle_and_second(), policy, err);
  case SN_POLICY_PATH:
    return try_path(m, err);
  case SN_POLICY_BEST:
    return try_best(m, err);
  default:
    return sn_fail(err, SN_BUG, "co-run schedule: policy %d", (int)policy.kind);
  }
}

/* The quickest to find first; manual's workers may float, so it comes last. */
static sn_status try_best(maker *m, sn_err *err) {
  static const sn_policy_kind kinds[] = {SN_POLICY_PATH, SN_POLICY_S1234, SN_POLICY_S123,
                                         SN_POLICY_S12,  SN_POLICY_S1,    SN_POLICY_MANUAL};
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds && status == SN_OK; i++)
    status = try_policy(m, (sn_policy){.kind = kinds[i]}, err);
  return status;
}

/* ---- what is known of it ---- */

/* No schedule of the policy has more threads at once than slots, or than its workers where they float. */
static int64_t area_bound(const sn__problem *p, sn_policy policy) {
  uint32_t slots = p->cores->count * p->cores->slots, floating = policy.workers * policy.threads;
  int64_t threads = slots > floating ? slots : floating;
  assert(threads > 0);
  return p->area_ns / threads + (p->area_ns % threads != 0);
}

static void count_corun(const sn_timetable *t, sn_corun_facts *facts) {
  uint64_t running = 0, sum = 0;
  for (uint32_t i = 0; i < 2 * t->ops->n_ops; i++) {
    if (!t->events[i].is_end) running++;
    sum += running;
    if (running > facts->max_corun) facts->max_corun = (uint32_t)running;
    if (t->events[i].is_end) running--;
  }
  facts->average_corun = t->ops->n_ops > 0 ? (double)sum / (2.0 * t->ops->n_ops) : 0;
}

static void fill(const maker *m, sn_corun_facts *facts) {
  const sn__problem *p = m->problem;
  *facts = (sn_corun_facts){
      .policy = m->policy,
      .stretch = m->stretch,
      .serial_peak_bytes = sn__budget_serial_peak(m->budget),
      .budget_bytes = m->budget_bytes,
      .chain_ns = p->chain_ns,
      .area_ns = area_bound(p, m->policy),
  };
  facts->bound_ns = facts->chain_ns > facts->area_ns ? facts->chain_ns : facts->area_ns;
  for (uint32_t op = 0; op < p->ops->n_ops; op++) facts->serial_ns += sn__class(p, op)->ns[p->cores->count];
  count_corun(m->best, facts);
}

static sn_status check_budget(maker *m, sn_err *err) {
  uint64_t serial = sn__budget_serial_peak(m->budget);
  if (m->budget_bytes == SN_BUDGET_SERIAL) m->budget_bytes = serial;
  if (m->budget_bytes >= serial) return SN_OK;
  char asked[SN_UNIT_TEXT], needed[SN_UNIT_TEXT];
  return sn_fail(err, SN_NO_FIT,
                 "a budget of %s is less than the %s of tensors that the operations need one after another; give that "
                 "much, or a strategy that needs less",
                 sn_print_bytes(m->budget_bytes, asked), sn_print_bytes(serial, needed));
}

/* One after another at their slowest: what the clock has, and 1024 times that where they slow each other. */
static sn_status check_times(const sn__problem *p, sn_err *err) {
  if (p->slowest_ns <= MAX_NS) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "the operations of an iteration take more than 11 days one after another; choose a smaller batch");
}

static bool open_maker(maker *m, const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_err *err) {
  m->problem = sn__problem_new(ops, times, cores, err);
  m->budget = m->problem ? sn__budget_new(ops, err) : NULL;
  m->floor = m->budget ? sn__moment_new(m->problem, m->budget, err) : NULL;
  m->best = m->floor ? sn_timetable_new(ops, err) : NULL;
  m->next = m->best ? sn_timetable_new(ops, err) : NULL;
  if (!m->next) return false;
  bool good = sn__workers_init(&m->bounds, m->problem);
  if (!good) sn_fail_memory(err);
  return good;
}

static sn_timetable *make(maker *m, const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_policy policy,
                          sn_corun_facts *facts, sn_err *err) {
  bool good = open_maker(m, ops, times, cores, err) && check_budget(m, err) == SN_OK &&
              check_times(m->problem, err) == SN_OK && try_policy(m, policy, err) == SN_OK;
  if (good) {
    m->best->profile_steps = times->profile_steps;
    if (facts) fill(m, facts);
  } else {
    sn_timetable_free(m->best);
    m->best = NULL;
  }
  sn_timetable_free(m->next);
  sn__workers_clear(&m->bounds);
  sn__moment_free(m->floor);
  sn__budget_free(m->budget);
  sn__problem_free(m->problem);
  return m->best;
}

sn_timetable *sn_corun_schedule(const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_policy policy,
                                uint64_t budget_bytes, sn_corun_facts *facts, sn_err *err) {
  maker m = {.budget_bytes = budget_bytes};
  return make(&m, ops, times, cores, policy, facts, err);
}

sn_timetable *sn_corun_schedule_mix(const sn_ops *ops, const sn_times *times, const sn_cores *cores, const sn_mix *mix,
                                    uint64_t budget_bytes, sn_corun_facts *facts, sn_err *err) {
  maker m = {.budget_bytes = budget_bytes, .mix = mix};
  return make(&m, ops, times, cores, (sn_policy){0}, facts, err);
}
