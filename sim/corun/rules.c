/* What each co-run policy does; see the header. */
#include "sim/corun/rules.h"

#define LOOKS_AT(order) (1u << (order))

static bool put(const sn__moment *f, uint32_t op, uint32_t threads, sn__pick *pick) {
  *pick = (sn__pick){op, sn__moment_place(f, threads)};
  return true;
}

/* ---- one after another ---- */

static bool next_serial_best(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  (void)rule;
  uint32_t op = sn__budget_first(f->budget);
  return f->n_running == 0 && op != SN_NONE && put(f, op, sn__class(f->problem, op)->best, pick);
}

static bool next_serial_kind(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  (void)rule;
  uint32_t op = sn__budget_first(f->budget);
  return f->n_running == 0 && op != SN_NONE && put(f, op, sn__kind_threads(f->problem, op), pick);
}

sn__rule sn__rule_serial_best(void) {
  return (sn__rule){.next = next_serial_best};
}

sn__rule sn__rule_serial_kind(void) {
  return (sn__rule){.next = next_serial_kind};
}

static bool next_mixed(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  uint32_t op = sn__budget_first(f->budget);
  return f->n_running == 0 && op != SN_NONE && put(f, op, sn_mix_threads(rule->mix, op), pick);
}

sn__rule sn__rule_mixed(const sn_mix *mix) {
  return (sn__rule){.next = next_mixed, .mix = mix};
}

/* ---- workers ---- */

/* Worker w works on lane w: an operation takes the lowest that is free. */
static uint32_t free_lane(const sn__moment *f) {
  uint32_t lane = 0;
  while (f->seats[lane].runs) lane++;
  return lane;
}

static bool next_of_workers(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  if (f->n_running == rule->workers) return false;
  uint32_t all = rule->workers * rule->threads;
  pick->op = sn__moment_first_allowed(f, SN__OLDEST);
  if (all <= f->problem->cores->count)
    pick->team = (sn_team){(uint16_t)(free_lane(f) * rule->threads), (uint16_t)rule->threads, SN_SLOT_FIRST};
  else
    pick->team = (sn_team){(uint16_t)all, (uint16_t)rule->threads, SN_SLOT_ANY};
  return pick->op != SN_NONE;
}

sn__rule sn__rule_workers(uint32_t workers, uint32_t threads) {
  return (sn__rule){.next = next_of_workers, .orders = LOOKS_AT(SN__OLDEST), .workers = workers, .threads = threads};
}

/* ---- idle cores and second slots ---- */

/* The fewest threads with which an operation fits in; 0: it does not. */
static uint32_t smallest_fit(const sn__problem *p, uint32_t op, uint32_t idle, int64_t left_ns) {
  const sn__choice *choice = &p->choices[p->class_of[op]];
  for (uint32_t i = 0; i < choice->n && choice->threads[i] <= idle; i++)
    if (sn__class(p, op)->predicted[choice->threads[i]] <= left_ns) return choice->threads[i];
  return 0;
}

static bool next_on_idle(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  (void)rule;
  uint32_t idle = sn__moment_idle(f);
  if (idle == 0) return false;
  int64_t left_ns = sn__moment_left_ns(f);
  uint32_t op = SN_NONE;
  while ((op = sn__moment_next_small(f, op, idle, left_ns)) != SN_NONE) {
    uint32_t threads = smallest_fit(f->problem, op, idle, left_ns);
    if (threads > 0 && sn__moment_allows(f, op)) return put(f, op, threads, pick);
  }
  op = sn__moment_first_allowed(f, SN__LARGEST);
  return op != SN_NONE && sn__kind_threads(f->problem, op) <= idle &&
         put(f, op, sn__kind_threads(f->problem, op), pick);
}

static bool next_on_idle_and_second(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  if (sn__moment_idle(f) > 0) return next_on_idle(f, rule, pick);
  if (f->n_second > 0 || f->problem->cores->slots < 2) return false;
  uint32_t op = sn__moment_first_allowed(f, SN__SMALLEST);
  if (op == SN_NONE) return false;
  uint32_t threads = sn__kind_threads(f->problem, op);
  *pick = (sn__pick){op, {.first = 0, .count = (uint16_t)threads, .slot = SN_SLOT_SECOND}};
  return true;
}

sn__rule sn__rule_idle(void) {
  return (sn__rule){.next = next_on_idle, .orders = LOOKS_AT(SN__OLDEST) | LOOKS_AT(SN__LARGEST)};
}

sn__rule sn__rule_idle_and_second(void) {
  return (sn__rule){.next = next_on_idle_and_second,
                    .orders = LOOKS_AT(SN__OLDEST) | LOOKS_AT(SN__LARGEST) | LOOKS_AT(SN__SMALLEST)};
}

/* ---- longest path ---- */

/* Not above the limits of the clock times 100: predicted times are at most 1e15 ns. */
static uint32_t shrink(const sn_time_class *c, uint32_t threads, uint32_t stretch) {
  int64_t limit = c->predicted[c->best] * stretch;
  while (threads > 1 && c->predicted[threads - 1] * 100 <= limit) threads--;
  return threads;
}

static bool next_of_path(sn__moment *f, const sn__rule *rule, sn__pick *pick) {
  uint32_t idle = sn__moment_idle(f);
  if (idle == 0) return false;
  uint32_t op = sn__moment_first_allowed(f, SN__FARTHEST);
  if (op == SN_NONE) return false;
  const sn_time_class *c = sn__class(f->problem, op);
  uint32_t threads = c->best < idle ? c->best : idle;
  if (sn__moment_next_allowed(f, SN__FARTHEST, op) != SN_NONE) threads = shrink(c, threads, rule->stretch);
  bool waits = f->n_running > 0 && c->predicted[threads] > sn__moment_left_ns(f) + c->predicted[c->best];
  return !waits && put(f, op, threads, pick);
}

sn__rule sn__rule_path(uint32_t stretch) {
  return (sn__rule){.next = next_of_path, .orders = LOOKS_AT(SN__FARTHEST), .stretch = stretch};
}
