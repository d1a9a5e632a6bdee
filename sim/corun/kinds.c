/* Numbers of threads of kinds; see the header. */
#include "sim/corun/kinds.h"

#include "sim/corun/climb.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ROUNDS = 64 };

/* Sums are of whole nanoseconds: exact, and so lower from round to round, up to 100 days. */
typedef struct chooser {
  const sn_times *times;
  double resize_ns;
  uint16_t counts[SN_MAX_CORES]; /* ascending; the last are all cores */
  uint32_t n_counts, n_kinds;
  double *cost;       /* [kind x n_counts + count]: T of all instances, and doubt */
  uint32_t *together; /* [kind x n_kinds + other]: neighbours of these two kinds */
  uint32_t *choice;   /* per kind: which of the counts */
} chooser;

static double *cost_of(const chooser *c, uint32_t kind) {
  return c->cost + (size_t)kind * c->n_counts;
}

static const uint32_t *neighbours_of(const chooser *c, uint32_t kind) {
  return c->together + (size_t)kind * c->n_kinds;
}

static void add_class(chooser *c, const sn_time_class *class) {
  double *cost = cost_of(c, class->kind);
  for (uint32_t i = 0; i < c->n_counts; i++) {
    uint32_t threads = c->counts[i];
    double doubt = floor((double)class->spread_ns[threads] / 2 + (double)class->spread_ns[c->times->cores] / 2);
    if (threads == c->times->cores)
      doubt = 0;
    else if (!class->measured)
      doubt = INFINITY;
    cost[i] += class->instances * ((double)class->ns[threads] + doubt);
  }
}

static void count_neighbours(chooser *c, const sn_route *route) {
  uint32_t before = SN_NONE;
  for (uint32_t i = 0; i < route->n_steps; i++) {
    sn_step_part parts[2];
    for (uint32_t p = 0, n = sn_step_parts(route, i, parts); p < n; p++) {
      uint32_t kind = sn_times_of(c->times, i, parts[p])->kind;
      if (before != SN_NONE && before != kind) {
        c->together[(size_t)kind * c->n_kinds + before]++;
        c->together[(size_t)before * c->n_kinds + kind]++;
      }
      before = kind;
    }
  }
}

/* Gives a kind the count that is best beside all others'. Whether it is another. */
static bool improve(chooser *c, uint32_t kind) {
  const double *cost = cost_of(c, kind);
  double gained[SN_MAX_CORES] = {0}; /* by neighbours that have this count, too */
  uint32_t best = c->choice[kind];
  for (uint32_t other = 0; other < c->n_kinds; other++)
    gained[c->choice[other]] += c->resize_ns * neighbours_of(c, kind)[other];
  for (uint32_t i = 0; i < c->n_counts; i++)
    if (cost[i] - gained[i] < cost[best] - gained[best]) best = i;
  bool changes = best != c->choice[kind];
  c->choice[kind] = best;
  return changes;
}

static double total(const chooser *c) {
  double sum = 0;
  for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
    sum += cost_of(c, kind)[c->choice[kind]];
    for (uint32_t other = 0; other < kind; other++)
      if (c->choice[kind] != c->choice[other]) sum += c->resize_ns * neighbours_of(c, kind)[other];
  }
  return sum;
}

static void choose(chooser *c, sn_time_kind *kinds) {
  double least = INFINITY;
  for (uint32_t start = c->n_counts; start-- > 0;) {
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) c->choice[kind] = start;
    bool changes = true;
    for (int round = 0; changes && round < MOST_ROUNDS; round++) {
      changes = false;
      for (uint32_t kind = 0; kind < c->n_kinds; kind++) changes |= improve(c, kind);
    }
    double sum = total(c);
    if (sum >= least) continue;
    least = sum;
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) kinds[kind].threads = c->counts[c->choice[kind]];
  }
}

bool sn__kinds_choose(const sn_times *times, const sn_route *route, sn_time_kind *kinds, double resize_ns,
                      uint32_t interval) {
  chooser c = {.times = times, .resize_ns = round(resize_ns), .n_kinds = times->n_kinds};
  c.n_counts = sn_climb_ladder(times->cores, interval, c.counts);
  c.cost = calloc((size_t)c.n_kinds * c.n_counts + 1, sizeof *c.cost);
  c.together = calloc((size_t)c.n_kinds * c.n_kinds + 1, sizeof *c.together);
  c.choice = calloc((size_t)c.n_kinds + 1, sizeof *c.choice);
  bool good = c.cost && c.together && c.choice;
  if (good) {
    for (uint32_t i = 0; i < times->n_classes; i++) add_class(&c, &times->classes[i]);
    count_neighbours(&c, route);
    choose(&c, kinds);
  }
  free(c.cost);
  free(c.together);
  free(c.choice);
  return good;
}
