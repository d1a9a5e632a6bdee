/* Bounds of workers; see the header. */
#include "sim/corun/workers.h"

#include <math.h>
#include <stdlib.h>

bool sn__workers_init(sn__workers *w, const sn__problem *problem) {
  *w = (sn__workers){.problem = problem};
  w->tail_ns = calloc((size_t)problem->ops->n_ops + 1, sizeof *w->tail_ns);
  w->work_ns = calloc((size_t)problem->times->n_classes + 1, sizeof *w->work_ns);
  w->beside_ns = calloc((size_t)problem->times->n_classes + 1, sizeof *w->beside_ns);
  w->slowing = calloc((size_t)problem->times->n_classes + 1, sizeof *w->slowing);
  w->n_ops = calloc((size_t)problem->times->n_classes + 1, sizeof *w->n_ops);
  if (!w->tail_ns || !w->work_ns || !w->beside_ns || !w->slowing || !w->n_ops) return false;
  for (uint32_t op = 0; op < problem->ops->n_ops; op++) w->n_ops[problem->class_of[op]]++;
  return true;
}

void sn__workers_clear(sn__workers *w) {
  free(w->tail_ns);
  free(w->work_ns);
  free(w->beside_ns);
  free(w->slowing);
  free(w->n_ops);
  *w = (sn__workers){0};
}

/* h. Rates are at least 1/1024: where the law says less, nothing is said. */
static double hindrance_of(const sn_cores *cores, uint32_t k, uint32_t threads) {
  uint32_t all = k * threads;
  uint16_t first = (uint16_t)all, count = (uint16_t)threads;
  bool floats = all > cores->count;
  sn_team one = {floats ? first : 0, count, floats ? SN_SLOT_ANY : SN_SLOT_FIRST};
  sn_team other = {floats ? first : count, count, floats ? SN_SLOT_ANY : SN_SLOT_FIRST};
  double h = sn_cores_hindrance(cores, one, other);
  return 1 + (k - 1) * h < 1024 ? h : 0;
}

/* Rounded down, by more than the arithmetic may be off; a weight is not below 0. */
static int64_t part_of(int64_t ns, double weight) {
  return (int64_t)(weight * (double)ns * (1 - 1e-12));
}

/* What w is made of: K, and where that is 2, c and X. */
typedef struct weights {
  double k, c, most;
} weights;

static double weight_of(const weights *f, double x) {
  if (f->k != 2) return 1 - (1 - 1 / f->k) / x;
  double weight = (f->c * f->c / 2 + (x - f->c) * (x < f->c ? f->most : f->c)) / x;
  return weight > 0 ? weight : 0;
}

/* Of a few c the one with which all operations have the most to do. */
static weights choose_weights(const sn__workers *w, uint32_t k) {
  enum { TRIES = 3 };
  const sn_times *times = w->problem->times;
  weights f = {.k = k, .c = 1, .most = 1}, best = f;
  if (k != 2) return f;
  for (uint32_t i = 0; i < times->n_classes; i++)
    if (w->slowing[i] > f.most) f.most = w->slowing[i];
  double most_c = f.most > 2 ? f.most - sqrt(f.most * f.most - 2 * f.most) : f.most, most_work = -1;
  for (uint32_t t = 0; t < TRIES; t++) {
    double work = 0;
    f.c = 1 + (most_c - 1) * t / (TRIES - 1);
    for (uint32_t i = 0; i < times->n_classes; i++)
      work += (double)(times->classes[i].ns[w->threads] * w->n_ops[i]) * weight_of(&f, w->slowing[i]);
    if (work <= most_work) continue;
    most_work = work;
    best = f;
  }
  return best;
}

int64_t sn__workers_work(sn__workers *w, uint32_t k, uint32_t threads) {
  const sn_times *times = w->problem->times;
  double h = k > 1 ? hindrance_of(w->problem->cores, k, threads) : 0;
  for (uint32_t i = 0; i < times->n_classes; i++) w->slowing[i] = 1 + h * times->classes[i].share[threads] / 1024;
  w->left_work_ns = w->left_beside_ns = 0;
  w->threads = threads;
  weights f = choose_weights(w, k);
  for (uint32_t i = 0; i < times->n_classes; i++) {
    int64_t ns = times->classes[i].ns[threads];
    w->work_ns[i] = part_of(ns, weight_of(&f, w->slowing[i]));
    w->beside_ns[i] = part_of(ns, 1 - 1 / w->slowing[i]);
    w->left_work_ns += w->work_ns[i] * w->n_ops[i];
    w->left_beside_ns += w->beside_ns[i] * w->n_ops[i];
  }
  return w->left_work_ns;
}

int64_t sn__workers_path(sn__workers *w) {
  const sn_ops *ops = w->problem->ops;
  int64_t longest = 0;
  for (uint32_t op = ops->n_ops; op-- > 0;) {
    const sn_op_node *node = &ops->nodes[op];
    int64_t behind = 0;
    for (uint32_t i = 0; i < node->n_successors; i++) {
      int64_t path = w->tail_ns[ops->successors[node->first_successor + i]];
      if (path > behind) behind = path;
    }
    w->tail_ns[op] = behind + sn__class(w->problem, op)->ns[w->threads] - w->beside_ns[w->problem->class_of[op]];
    if (w->tail_ns[op] > longest) longest = w->tail_ns[op];
  }
  return longest + w->left_beside_ns;
}

int64_t sn__workers_start(sn__workers *w, uint32_t op, int64_t now_ns) {
  int64_t work = w->left_work_ns, path = w->left_beside_ns + w->tail_ns[op];
  uint32_t c = w->problem->class_of[op];
  w->left_work_ns -= w->work_ns[c];
  w->left_beside_ns -= w->beside_ns[c];
  return now_ns + (work > path ? work : path);
}
