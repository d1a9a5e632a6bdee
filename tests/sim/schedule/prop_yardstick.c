/* The yardstick: how far strategies are from the best there is on networks so small that it can be found.
 *
 *   prop_yardstick            random networks: the integer program (tests/sim/schedule/keep_program.h) against the
 *                             search through all schedules, and no strategy beyond it
 *   prop_yardstick --table    the tables of docs/measured/optimality.md: 12 networks, every strategy of [SN]'s graph
 *
 *   SN_SEED, SN_PROP_NETS     of the first network, and how many (default: 1, 4)
 */
#include "base/arena.h"

#include "sim/graph/route.h"
#include "tests/sim/schedule/keep_program.h"
#include "tests/support/plan_in.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the networks ---- */

#define NET(name, input, layers)                                                                                       \
  "{\"snsim_net\": 1, \"name\": \"" name "\", \"input\": " input ", \"layers\": [" layers LOSS "]}"
#define L(op, name, more) "{\"op\": \"" op "\", \"name\": \"" name "\"" more "}, "
#define CONV(name, channels, kernel)                                                                                   \
  L("CONV", name, ", \"channels\": " #channels ", \"kernel\": " #kernel ", \"pad\": " PAD_##kernel)
#define PAD_1      "0"
#define PAD_3      "1"
#define PAD_5      "2"
#define POOL(name) L("POOL", name, ", \"kernel\": 2, \"stride\": 2")
#define OF(...)    ", \"inputs\": [" #__VA_ARGS__ "]"
#define LOSS       L("FC", "fc", ", \"channels\": 100") "{\"op\": \"SOFTMAX\", \"name\": \"loss\"}"
#define WIDE_CONV(name, channels, kernel, from)                                                                        \
  L("CONV", name, ", \"channels\": " #channels ", \"kernel\": " #kernel ", \"pad\": " PAD_##kernel from)

typedef struct subject {
  const char *name, *text;
  uint32_t batch;
} subject;

static const subject subjects[] = {
    {"plain",
     NET("plain", "[3, 64, 64]",
         CONV("c1", 32, 3) L("ACT", "r1", "") CONV("c2", 32, 3) L("ACT", "r2", "") CONV("c3", 32, 3)),
     32},
    {"growing",
     NET("growing", "[3, 64, 64]",
         CONV("c1", 16, 3) L("ACT", "r1", "") POOL("p1") CONV("c2", 64, 3) L("ACT", "r2", "") POOL("p2")),
     32},
    {"normed",
     NET("normed", "[3, 64, 64]",
         CONV("c1", 32, 3) L("BN", "b1", "") L("ACT", "r1", "") CONV("c2", 32, 3) L("BN", "b2", "") L("ACT", "r2", "")),
     32},
    {"hourglass",
     NET("hourglass", "[16, 64, 64]", CONV("c1", 64, 1) CONV("c2", 8, 5) CONV("c3", 64, 1) L("ACT", "r", "") POOL("p")),
     32},
    {"classic",
     NET("classic", "[3, 96, 96]",
         CONV("c1", 24, 5) L("ACT", "r1", "") L("LRN", "n1", "") POOL("p1") CONV("c2", 48, 3) L("DROPOUT", "d", "")),
     32},
    {"costly",
     NET("costly", "[64, 32, 32]",
         CONV("c1", 128, 5) L("ACT", "r1", "") CONV("c2", 128, 5) L("ACT", "r2", "") CONV("c3", 128, 5)),
     16},
    {"residual",
     NET("residual", "[3, 64, 64]",
         CONV("c1", 32, 3) L("ACT", "r1", "") CONV("c2", 32, 3) L("JOIN", "j", OF("c2", "r1")) L("ACT", "r2", "")),
     32},
    {"bottleneck",
     NET("bottleneck", "[32, 64, 64]",
         CONV("c0", 64, 1) CONV("c1", 16, 1) CONV("c2", 64, 3) L("JOIN", "j", OF("c2", "c0")) POOL("p")),
     32},
    {"branches",
     NET("branches", "[3, 64, 64]",
         CONV("c0", 32, 3) WIDE_CONV("a", 16, 1, OF("c0")) WIDE_CONV("b", 32, 3, OF("c0"))
             L("CONCAT", "both", OF("a", "b")) POOL("p")),
     32},
    {"dense",
     NET("dense", "[16, 64, 64]",
         CONV("c1", 16, 3) CONV("c2", 16, 3) L("CONCAT", "d", OF("c1", "c2")) CONV("c3", 16, 1) L("ACT", "r", "")),
     32},
    {"towers",
     NET("towers", "[3, 64, 64]",
         CONV("c0", 16, 3) L("POOL", "a", ", \"kernel\": 2, \"stride\": 2" OF("c0"))
             L("CONV", "b", ", \"channels\": 16, \"kernel\": 2, \"stride\": 2" OF("c0")) L("JOIN", "j", OF("a", "b"))
                 L("ACT", "r", "")),
     64},
    {"skip",
     NET("skip", "[3, 64, 64]",
         CONV("c0", 32, 3) L("ACT", "r0", "") CONV("c1", 32, 5) L("CONCAT", "s", OF("c1", "r0")) CONV("c2", 16, 1)),
     32},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* Of 18 and 20 operations. */
static const subject larger[] = {
    {"long",
     NET("long", "[3, 64, 64]",
         CONV("c1", 32, 3) L("ACT", "r1", "") CONV("c2", 32, 3) L("ACT", "r2", "") CONV("c3", 32, 3) L("ACT", "r3", "")
             CONV("c4", 32, 3)),
     32},
    {"skips",
     NET("skips", "[3, 64, 64]",
         CONV("c0", 32, 3) L("ACT", "r0", "") CONV("c1", 32, 5) L("CONCAT", "s", OF("c1", "r0")) CONV("c2", 16, 1)
             L("ACT", "r2", "")),
     32},
    {"residuals",
     NET("residuals", "[3, 64, 64]",
         CONV("c1", 32, 3) L("ACT", "r1", "") CONV("c2", 32, 3) L("JOIN", "j", OF("c2", "r1")) L("ACT", "r2", "")
             CONV("c3", 32, 3) L("ACT", "r3", "")),
     32},
};

/* ---- what a strategy makes of one ---- */

typedef struct outcome {
  uint64_t bytes; /* the largest load */
  int64_t ns;     /* of forward and backward, with waits */
} outcome;

enum { MORE = 4, MOST_RULES = SN_STRATEGY_DEFAULTS + MORE + SN_STRATEGY_SYSTEMS };

static uint32_t list_rules(sn_strategy rules[MOST_RULES]) {
  static const char *const more[MORE] = {"liveness+recompute=sqrt", "liveness+recompute=optimal",
                                         "liveness+recompute=dtr", "liveness+offload+recompute=optimal"};
  uint32_t count = 0;
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) rules[count++] = sn_strategy_default(i);
  for (uint32_t i = 0; i < MORE; i++) rules[count++] = parse_strategy(more[i]);
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++)
    if (sn_strategy_system(i).dialect == SN_DIALECT_SUPERNEURONS) rules[count++] = sn_strategy_system(i);
  return count;
}

static outcome plan_and_play(const pipeline *p, sn_strategy strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  char name[SN_STRATEGY_TEXT];
  sn_plan *plan = plan_in(p, sn_strategy_name(strategy, name), pool_bytes, SN_WORKSPACE_NONE);
  sn_trace trace;
  sn_device_model model = {.device = &p->device, .costs = p->costs, .pageable = sn_strategy_is_pageable(strategy)};
  sn_trace_init(&trace, plan, &err);
  sn_play(plan, sn_device_model_backend(&model), &trace, &err);
  must(&err);
  outcome o = {.bytes = plan->reserved_peak, .ns = trace.end_ns};
  for (uint32_t s = p->route->first_update; s < p->route->n_steps; s++)
    o.ns -= sn_costs_step(p->costs, p->route->steps[s].layer, SN_UPDATE, (uint8_t[2]){0, 0});
  sn_trace_clear(&trace);
  sn_plan_free(plan);
  return o;
}

/* The largest step, below which nothing runs. */
static uint64_t floor_of(const small_graph *g) {
  uint64_t most = 0;
  for (uint32_t s = 0; s < g->n_steps; s++) {
    uint64_t bytes = g->waiting[s] + g->gradients[s] + small_graph_outputs(g, g->reads[s] | g->makes[s]);
    if (bytes > most) most = bytes;
  }
  return most;
}

static int64_t steps_ns(const small_graph *g) {
  int64_t ns = 0;
  for (uint32_t s = 0; s < g->n_steps; s++) ns += g->ns[s];
  return ns;
}

/* ---- random networks ---- */

static uint64_t first;
static uint32_t n_nets;

/* Layers of one shape behind each other, joined here and there with an earlier one. */
static void throw_net(uint64_t *dice, char *text, size_t room) {
  uint32_t layers = prng_from(dice, 2, 5), side = prng_from(dice, 16, 48), channels = prng_from(dice, 4, 32);
  size_t used =
      (size_t)snprintf(text, room, "{\"snsim_net\": 1, \"name\": \"thrown\", \"input\": [%u, %u, %u], \"layers\": [",
                       channels, side, side);
  bool joined = false;
  for (uint32_t i = 0; i < layers; i++) {
    uint32_t kind = prng_below(dice, 6), kernel = 1 + 2 * prng_below(dice, 2), from = prng_below(dice, i + 1);
    char layer[120];
    if (kind < 2)
      snprintf(layer, sizeof layer, "CONV\", \"channels\": %u, \"kernel\": %u, \"pad\": %u", channels, kernel,
               kernel / 2);
    else if (kind == 2 && i > 1 && from + 1 < i && !joined)
      snprintf(layer, sizeof layer, "JOIN\", \"inputs\": [\"l%u\", \"l%u\"]", i - 1, from), joined = true;
    else
      snprintf(layer, sizeof layer, "%s", (const char *const[]){"ACT", "BN", "LRN", "DROPOUT"}[kind % 4]);
    bool plain = strchr(layer, '"') == NULL;
    used += (size_t)snprintf(text + used, room - used, "{\"name\": \"l%u\", \"op\": \"%s%s}, ", i, layer,
                             plain ? "\"" : "");
  }
  snprintf(text + used, room - used, "%s]}", LOSS);
}

static void check_rule(const pipeline *p, const small_graph *g, sn_strategy rule, uint64_t pool_bytes, uint64_t seed) {
  char name[SN_STRATEGY_TEXT];
  outcome o = plan_and_play(p, rule, pool_bytes);
  int64_t best = keep_program_solve(g, o.bytes, true, INT64_MAX);
  if (best == INT64_MAX || (double)o.ns < (double)best * (1 - 2 * KEEP_GAP))
    fail_msg("seed %" PRIu64 ": %s takes %" PRId64 " ns with %" PRIu64 " bytes, the optimum %" PRId64, seed,
             sn_strategy_name(rule, name), o.ns, o.bytes, best);
}

/* Without copies the program finds what the search finds, but where a step must run twice in a slot; copies are never
 * in the way; and no strategy is better than the program. */
static void program_and_search_agree(void **state) {
  (void)state;
  uint32_t asked = 0, equal = 0, copied = 0;
  sn_strategy rules[MOST_RULES];
  uint32_t n_rules = list_rules(rules);
  for (uint64_t k = 0; k < n_nets; k++) {
    char text[2000];
    uint64_t seed = first + k, dice = seed;
    throw_net(&dice, text, sizeof text);
    uint32_t batch = prng_from(&dice, 1, 32);
    pipeline p = pipeline_open(text, batch);
    small_graph g = small_graph_of(p.route, p.costs, &p.device);
    uint64_t low = floor_of(&g), most = plan_and_play(&p, parse_strategy("liveness"), UINT64_C(1) << 40).bytes;
    for (int i = 0; i < 3; i++) {
      uint64_t memory = low + (most - low) * prng_below(&dice, 100) / 100;
      int64_t search = small_graph_search(&g, memory), program = keep_program_solve(&g, memory, false, INT64_MAX);
      if (program < search && (double)program < (double)search * (1 - KEEP_GAP))
        fail_msg("seed %" PRIu64 ": %" PRId64 " ns by the program, %" PRId64 " by the search", seed, program, search);
      asked++;
      equal += program == search || (double)program <= (double)search * (1 + KEEP_GAP);
    }
    int64_t without = keep_program_solve(&g, (low + most) / 2, false, INT64_MAX),
            with = keep_program_solve(&g, (low + most) / 2, true, INT64_MAX);
    if (with > without && (double)with > (double)without * (1 + KEEP_GAP))
      fail_msg("seed %" PRIu64 ": %" PRId64 " ns with copies, %" PRId64 " without", seed, with, without);
    copied += with < without;
    check_rule(&p, &g, rules[prng_below(&dice, n_rules)], (low + most) / 2, seed);
    pipeline_close(&p);
  }
  print_message("%u answers, %.1f %% of them those of the search; copies help in %u of %u networks\n", asked,
                100.0 * equal / asked, copied, n_nets);
  assert_true(equal >= 0.95 * asked && copied > 0);
}

/* The same of larger ones, in memories between the largest step and what liveness takes. */
static void larger_agree(void **state) {
  (void)state;
  sn_strategy rules[MOST_RULES];
  uint32_t n_rules = list_rules(rules);
  for (size_t n = 0; n < sizeof larger / sizeof *larger; n++) {
    pipeline p = pipeline_open(larger[n].text, larger[n].batch);
    small_graph g = small_graph_of(p.route, p.costs, &p.device);
    assert_true(g.n_steps >= 18 && g.n_steps <= 20);
    uint64_t low = floor_of(&g), most = plan_and_play(&p, parse_strategy("liveness"), UINT64_C(1) << 40).bytes;
    for (uint64_t part = 2; part <= 4; part++) {
      uint64_t memory = low + (most - low) * part / 5;
      int64_t search = small_graph_search(&g, memory), program = keep_program_solve(&g, memory, false, INT64_MAX);
      double ratio = (double)program / (double)search;
      if (ratio < 1 - KEEP_GAP || ratio > 1 + KEEP_GAP)
        fail_msg("%s: %" PRId64 " ns by the program, %" PRId64 " by the search", larger[n].name, program, search);
      assert_true((double)keep_program_solve(&g, memory, true, INT64_MAX) <= (double)search * (1 + KEEP_GAP));
    }
    check_rule(&p, &g, rules[n_rules * n / 3], (low + most) / 2, n);
    check_rule(&p, &g, parse_strategy("liveness+offload+recompute=optimal"), (low + most) / 2, n);
    pipeline_close(&p);
  }
}

/* ---- the tables ---- */

enum { GRID = 32, KNOWN = 64 };

typedef struct scale {
  const small_graph *g;
  uint64_t low, most; /* the largest step; what liveness takes */
  uint64_t grid[GRID + 1];
  struct {
    uint64_t bytes;
    int64_t ns;
  } known[KNOWN]; /* least times */
  struct {
    int64_t ns;
    uint64_t bytes;
  } sought[KNOWN]; /* least memories, of the grid's */
  uint32_t n_known, n_sought;
} scale;

/* The least time in so much memory, which is at most `enough`; what is known of less, or of more, often says it. */
static int64_t best_ns(scale *s, uint64_t bytes, int64_t enough) {
  int64_t least = steps_ns(s->g), most = enough;
  if (bytes >= s->most) return least;
  for (uint32_t i = 0; i < s->n_known; i++) {
    if (s->known[i].bytes >= bytes && s->known[i].ns > least) least = s->known[i].ns;
    if (s->known[i].bytes <= bytes && s->known[i].ns < most) most = s->known[i].ns;
  }
  if (least >= most) return most;
  assert_true(s->n_known < KNOWN);
  int64_t ns = keep_program_solve(s->g, bytes, true, most < INT64_MAX ? most + most / 100000 : most);
  s->known[s->n_known].bytes = bytes;
  s->known[s->n_known++].ns = ns;
  return ns;
}

static bool runs(const scale *s, uint64_t bytes, int64_t ns) {
  for (uint32_t i = 0; i < s->n_known; i++) {
    if (s->known[i].bytes <= bytes && s->known[i].ns <= ns) return true;
    if (s->known[i].bytes >= bytes && s->known[i].ns > ns) return false;
  }
  return keep_program_runs(s->g, bytes, ns);
}

/* The least of the grid's memories that does as well, by bisection; the strategy's own where that is less. */
static uint64_t best_bytes(scale *s, outcome o) {
  uint32_t low = 0, high = GRID, i = 0;
  while (i < s->n_sought && s->sought[i].ns != o.ns) i++;
  if (i == s->n_sought) {
    while (low < high) {
      uint32_t middle = (low + high) / 2;
      if (runs(s, s->grid[middle], o.ns))
        high = middle;
      else
        low = middle + 1;
    }
    assert_true(i < KNOWN);
    s->sought[i].ns = o.ns;
    s->sought[s->n_sought++].bytes = s->grid[low];
  }
  return s->sought[i].bytes < o.bytes ? s->sought[i].bytes : o.bytes;
}

/* The least memory in which re-running alone does as well, to the block. */
static uint64_t best_bytes_alone(const scale *s, outcome o) {
  uint64_t low = s->low / SN_POOL_BLOCK, high = o.bytes / SN_POOL_BLOCK;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (small_graph_search(s->g, middle * SN_POOL_BLOCK) <= o.ns)
      high = middle;
    else
      low = middle + 1;
  }
  return low * SN_POOL_BLOCK;
}

typedef struct distance {
  double time, memory;             /* per cent beyond the optimum */
  double time_alone, memory_alone; /* beyond the optimum that copies nothing; of strategies that do not either */
} distance;

static double beyond(double is, double best) {
  return 100 * (is / best - 1);
}

static distance measure(const pipeline *p, scale *s, sn_strategy rule) {
  bool adapts = sn_strategy_has_cache(rule) || sn_strategy_adapts(rule);
  outcome o = plan_and_play(p, rule, adapts ? (s->low + s->most) / 2 : UINT64_C(1) << 40);
  distance d = {.time = beyond((double)o.ns, (double)best_ns(s, o.bytes, o.ns)),
                .memory = beyond((double)o.bytes, (double)best_bytes(s, o))};
  if (rule.offload != SN_OFFLOAD_NONE) return d;
  d.time_alone = beyond((double)o.ns, (double)small_graph_search(s->g, o.bytes));
  d.memory_alone = beyond((double)o.bytes, (double)best_bytes_alone(s, o));
  return d;
}

/* Of all processes. */
typedef struct tables {
  distance distances[MOST_RULES][SUBJECTS];
  char heads[SUBJECTS][200];
} tables;

static void measure_subject(tables *all, uint32_t n, const sn_strategy *rules, uint32_t n_rules) {
  pipeline p = pipeline_open(subjects[n].text, subjects[n].batch);
  small_graph g = small_graph_of(p.route, p.costs, &p.device);
  static scale s;
  s = (scale){.g = &g, .low = floor_of(&g)};
  s.most = plan_and_play(&p, parse_strategy("liveness"), UINT64_C(1) << 40).bytes;
  for (uint64_t i = 0; i <= GRID; i++) s.grid[i] = s.low + (s.most - s.low) * i / GRID;
  for (uint32_t r = 0; r < n_rules; r++) all->distances[r][n] = measure(&p, &s, rules[r]);
  snprintf(all->heads[n], sizeof all->heads[n],
           "| %s | %" PRIu32 " | %" PRIu32 " | %" PRIu32 " | %.2f | %.1f | %.1f |\n", subjects[n].name,
           subjects[n].batch, g.n_steps, g.n_outputs, (double)steps_ns(&g) / 1e6, (double)s.most / 1048576,
           (double)s.low / 1048576);
  pipeline_close(&p);
}

typedef enum figure { TIME_ALONE, MEMORY_ALONE, TIME, MEMORY } figure;

static double figure_of(const distance *d, figure which) {
  return which == TIME_ALONE     ? d->time_alone
         : which == MEMORY_ALONE ? d->memory_alone
         : which == TIME         ? d->time
                                 : d->memory;
}

static void print_table(const tables *all, const char *what, const sn_strategy *rules, uint32_t n_rules, figure which) {
  printf("\n%s\n\n| strategy |", what);
  for (uint32_t n = 0; n < SUBJECTS; n++) printf(" %s |", subjects[n].name);
  printf(" mean |\n|---|");
  for (uint32_t n = 0; n <= SUBJECTS; n++) printf("---|");
  for (uint32_t r = 0; r < n_rules; r++) {
    char name[SN_STRATEGY_TEXT];
    double sum = 0;
    if (rules[r].offload != SN_OFFLOAD_NONE && which <= MEMORY_ALONE) continue;
    printf("\n| `%s` |", sn_strategy_name(rules[r], name));
    for (uint32_t n = 0; n < SUBJECTS; n++) {
      double d = figure_of(&all->distances[r][n], which);
      sum += d;
      printf(" %.1f |", fabs(d) < 0.05 ? 0 : d);
    }
    printf(" %.1f |", sum / SUBJECTS);
  }
  printf("\n");
}

/* Each network in a process of its own, as many at a time as there are processors. */
static void measure_all(tables *all, const sn_strategy *rules, uint32_t n_rules) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
  int status = 0;
  for (uint32_t n = 0; n < SUBJECTS || running > 0;) {
    if (n < SUBJECTS && running < processors) {
      pid_t child = fork();
      assert_true(child >= 0);
      if (child == 0) {
        measure_subject(all, n, rules, n_rules);
        _exit(0);
      }
      running++, n++;
    } else {
      assert_true(wait(&status) > 0 && status == 0);
      running--;
    }
  }
}

static void print_tables(void **state) {
  (void)state;
  sn_strategy rules[MOST_RULES];
  uint32_t n_rules = list_rules(rules);
  sn_arena *arena = sn_arena_shared(sizeof(tables) + 4096);
  tables *all = arena ? sn_arena_alloc(arena, 1, sizeof *all) : NULL;
  assert_non_null(all);
  measure_all(all, rules, n_rules);
  printf("| network | batch | steps | outputs | steps' ms | liveness MiB | largest step MiB |\n"
         "|---|---|---|---|---|---|---|\n");
  for (uint32_t n = 0; n < SUBJECTS; n++) printf("%s", all->heads[n]);
  print_table(all, "Time beyond the optimum that copies nothing, in the same memory, %:", rules, n_rules, TIME_ALONE);
  print_table(all, "Memory beyond what that needs for the same time, %:", rules, n_rules, MEMORY_ALONE);
  print_table(all, "Time beyond the optimum with copies, in the same memory, %, at most:", rules, n_rules, TIME);
  print_table(all, "Memory beyond what that needs for the same time, looked for in 32 steps, %:", rules, n_rules,
              MEMORY);
  sn_arena_free(arena);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(program_and_search_agree), cmocka_unit_test(larger_agree)};
  const struct CMUnitTest table[] = {cmocka_unit_test(print_tables)};
  if (argc > 1 && strcmp(argv[1], "--table") == 0) return cmocka_run_group_tests(table, NULL, NULL);
  n_nets = case_count(4);
  first = first_seed(1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
