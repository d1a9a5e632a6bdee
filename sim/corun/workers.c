/* Bounds of workers; see the header. */
#include "sim/corun/workers.h"

#include <math.h>
#include <stdlib.h>

bool sn__workers_init(sn__workers *w, const sn__problem *problem) {
  *w = (sn__workers){.problem = problem};
  w->tail_ns = calloc((size_t)problem->ops->n_ops + 1, sizeof *w->tail_ns);
  w->work_ns = calloc((size_t)problem->times->n_classes + 1, sizeof *w->work_ns);
  w->beside_ns = calloc((size_t)problem->times->n_classes + 1, sizeof *w->beside_ns);
  w->n_ops = calloc((size_t)problem->times->n_classes + 1, sizeof *w->n_ops);
  if (!w->tail_ns || !w->work_ns || !w->beside_ns || !w->n_ops) return false;
  for (uint32_t op = 0; op < problem->ops->n_ops; op++) w->n_ops[problem->class_of[op]]++;
  return true;
}

void sn__workers_clear(sn__workers *w) {
  free(w->tail_ns);
  free(w->work_ns);
  free(w->beside_ns);
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

/* The longest path of all. */
static int64_t find_tails(sn__workers *w, uint32_t threads) {
  const sn_ops *ops = w->problem->ops;
  int64_t longest = 0;
  for (uint32_t op = ops->n_ops; op-- > 0;) {
    const sn_op_node *node = &ops->nodes[op];
    int64_t behind = 0;
    for (uint32_t i = 0; i < node->n_successors; i++) {
      int64_t path = w->tail_ns[ops->successors[node->first_successor + i]];
      if (path > behind) behind = path;
    }
    w->tail_ns[op] = behind + sn__class(w->problem, op)->ns[threads] - w->beside_ns[w->problem->class_of[op]];
    if (w->tail_ns[op] > longest) longest = w->tail_ns[op];
  }
  return longest;
}

/* Rounded down, by more than the arithmetic may be off. */
static int64_t part_of(int64_t ns, double weight) {
  return (int64_t)floor(weight * (double)ns * (1 - 1e-12));
}

int64_t sn__workers_bound(sn__workers *w, uint32_t k, uint32_t threads) {
  double h = hindrance_of(w->problem->cores, k, threads);
  w->left_work_ns = w->left_beside_ns = 0;
  for (uint32_t i = 0; i < w->problem->times->n_classes; i++) {
    const sn_time_class *c = &w->problem->times->classes[i];
    double b = k > 1 ? h * c->share[threads] / 1024 : 0;
    w->work_ns[i] = part_of(c->ns[threads], 1 - (1 - 1.0 / k) / (1 + b));
    w->beside_ns[i] = part_of(c->ns[threads], b / (1 + b));
    w->left_work_ns += w->work_ns[i] * w->n_ops[i];
    w->left_beside_ns += w->beside_ns[i] * w->n_ops[i];
  }
  int64_t path = find_tails(w, threads) + w->left_beside_ns;
  return path > w->left_work_ns ? path : w->left_work_ns;
}

int64_t sn__workers_start(sn__workers *w, uint32_t op, int64_t now_ns) {
  int64_t work = w->left_work_ns, path = w->left_beside_ns + w->tail_ns[op];
  uint32_t c = w->problem->class_of[op];
  w->left_work_ns -= w->work_ns[c];
  w->left_beside_ns -= w->beside_ns[c];
  return now_ns + (work > path ? work : path);
}
