/* The best a plan could do for a small graph, with re-runs and copies, as an integer program that CBC solves.
 *
 *   int64_t ns = keep_program_solve(&g, bytes, true, INT64_MAX);   the least time in so much memory
 *   bool runs = keep_program_runs(&g, bytes, ns);                  whether it runs in that memory and that time
 *
 * After Checkmate (Jain et al., MLSys 2020), with copies to the host added. A slot belongs to each step of the route:
 * first forward steps that run again, in the route's order, each at most once (backward only), and waiting for copies;
 * then the step. Events of a slot are what runs again and the step.
 *
 *   again[t][j]      step j runs again in slot t: 0 or 1
 *   there[t][e][o]   output o is on the device while event e of slot t runs
 *   wait[t]          ns of waiting ahead of step t
 *   out, in          [t][h][o]: ns of copying o, ahead of step t (h = 0) and while it runs (1)
 *   gone[t][o]       o has been copied out, so that it may come in
 *   held[t][o]       memory is held for what comes in, ahead of its arrival; still[t][o]: since the slot before
 *   arrives[t][o]    o has come in ahead of step t, or of what runs again there: 0 or 1
 *
 * What is there was there an event ago, or is made, or arrives; what is read or made is there; what is there, held, or
 * a gradient is within the memory. A lane copies no longer than the slot's part takes. What is copied out is there;
 * what comes in has gone out; what arrives has been copied whole. The sum of steps, re-runs and waits is the time.
 *
 * What is copied may give and take its memory piece by piece, which plans cannot: with copies the program is a bound,
 * below the best plan. With whole tensors CBC takes a hundred times as long. Without copies nothing is in pieces. */
#ifndef SN_TESTS_KEEP_PROGRAM_H
#define SN_TESTS_KEEP_PROGRAM_H

#include "tests/sim/schedule/small_graph.h"

#include <coin/Cbc_C_Interface.h>

enum { KEEP_STEP = MOST_STEPS / 2, KEEP_EVENTS, KEEP_ROW = 4096 }; /* the last event of a slot is its step */

typedef struct keep_program {
  const small_graph *g;
  uint64_t memory;
  bool copies;               /* outputs may leave for the host */
  bool any;                  /* a solution is enough, whether the best or not */
  int64_t most_ns, slack_ns; /* of forward and backward; of re-runs and waits */
  Cbc_Model *model;
  double ns_unit, byte_unit; /* so that figures are about 1,000 at most */
  int columns;
  int again[MOST_STEPS][KEEP_STEP], there[MOST_STEPS][KEEP_EVENTS][MOST_OUTPUTS], wait[MOST_STEPS];
  int out[MOST_STEPS][2][MOST_OUTPUTS], in[MOST_STEPS][2][MOST_OUTPUTS], gone[MOST_STEPS][MOST_OUTPUTS];
  int held[MOST_STEPS][MOST_OUTPUTS], still[MOST_STEPS][MOST_OUTPUTS], arrives[MOST_STEPS][MOST_OUTPUTS];
  int n, at[KEEP_ROW]; /* the row at hand */
  double factor[KEEP_ROW];
} keep_program;

#define KEEP_GAP 1e-4 /* how far from the best an answer may be, of what re-runs and waits take */

/* ---- variables; 0 is none: its value is 0 ---- */

static inline int keep_variable(keep_program *p, double low, double high, double cost, bool whole) {
  Cbc_addCol(p->model, "", low, high, cost, whole, 0, NULL, NULL);
  return p->columns++;
}

static inline void keep_add(keep_program *p, double factor, int variable) {
  assert_true(p->n < KEEP_ROW);
  if (variable == 0) return;
  p->at[p->n] = variable;
  p->factor[p->n++] = factor;
}

/* 'L': at most `than`, 'G': at least. */
static inline void keep_row(keep_program *p, char sense, double than) {
  Cbc_addRow(p->model, "", p->n, p->at, p->factor, sense, than);
  p->n = 0;
}

static inline double keep_ns(const keep_program *p, int64_t ns) {
  return (double)ns / p->ns_unit;
}

static inline double keep_bytes(const keep_program *p, uint64_t bytes) {
  return (double)bytes / p->byte_unit;
}

static inline bool keep_is_backward(const keep_program *p, uint32_t t) {
  return t >= p->g->first_backward;
}

/* An output is one in slot t: it is made by then, and no gradient yet. */
static inline bool keep_is_output(const keep_program *p, uint32_t t, uint32_t o) {
  return p->g->maker[o] <= t && (p->g->changed[o] == UINT32_MAX || p->g->changed[o] >= t);
}

static inline void keep_slot_variables(keep_program *p, uint32_t t) {
  const small_graph *g = p->g;
  uint32_t first = keep_is_backward(p, t) ? 0 : KEEP_STEP;
  if (t > 0) p->wait[t] = p->copies ? keep_variable(p, 0, keep_ns(p, p->slack_ns), 1, false) : 0;
  for (uint32_t j = 0; j < g->first_backward && first == 0; j++) {
    bool changed = false;
    for (uint32_t o = 0; o < g->n_outputs; o++) changed |= g->makes[j] & 1u << o && !keep_is_output(p, t, o);
    if (!changed && g->ns[j] <= p->slack_ns) p->again[t][j] = keep_variable(p, 0, 1, keep_ns(p, g->ns[j]), true);
  }
  for (uint32_t o = 0; o < g->n_outputs; o++) {
    if (!keep_is_output(p, t, o)) continue;
    bool touched = (g->reads[t] | g->makes[t]) & 1u << o;
    for (uint32_t e = first; e < KEEP_EVENTS; e++)
      if (e < g->first_backward || e == KEEP_STEP)
        p->there[t][e][o] = keep_variable(p, e == KEEP_STEP && touched, 1, 0, false);
    if (!p->copies || t == g->maker[o]) continue;
    for (int h = 0; h < 2; h++) p->out[t][h][o] = keep_variable(p, 0, keep_ns(p, g->copy_ns[o]), 0, false);
    for (int h = 0; h < 2; h++) p->in[t][h][o] = keep_variable(p, 0, keep_ns(p, g->copy_ns[o]), 0, false);
    p->gone[t][o] = keep_variable(p, 0, 1, 0, false);
    p->held[t][o] = keep_variable(p, 0, 1, 0, false);
    p->still[t][o] = keep_variable(p, 0, 1, 0, false);
    if (keep_is_backward(p, t) || g->reads[t] & 1u << o) p->arrives[t][o] = keep_variable(p, 0, 1, 0, true);
  }
}

/* ---- rules ---- */

static inline int keep_before(const keep_program *p, uint32_t t, uint32_t e, uint32_t o) {
  if (e == KEEP_STEP && keep_is_backward(p, t)) return p->there[t][p->g->first_backward - 1][o];
  if (e > 0 && e < KEEP_STEP) return p->there[t][e - 1][o];
  return t > 0 ? p->there[t - 1][KEEP_STEP][o] : 0;
}

static inline void keep_event(keep_program *p, uint32_t t, uint32_t e) {
  const small_graph *g = p->g;
  bool is_step = e == KEEP_STEP;
  uint32_t step = is_step ? t : e;
  for (uint32_t o = 0; o < g->n_outputs; o++) {
    int there = p->there[t][e][o];
    if (there == 0) continue;
    bool makes = g->makes[step] & 1u << o;
    if (!is_step && p->again[t][e] && (makes || g->reads[step] & 1u << o)) {
      keep_add(p, 1, there);
      keep_add(p, -1, p->again[t][e]);
      keep_row(p, 'G', 0);
    }
    if (is_step && makes) continue;
    keep_add(p, 1, there);
    keep_add(p, -1, keep_before(p, t, e, o));
    keep_add(p, -1, p->arrives[t][o]);
    if (makes) keep_add(p, -1, p->again[t][e]);
    keep_row(p, 'L', 0);
  }
  for (uint32_t o = 0; o < g->n_outputs; o++) {
    keep_add(p, keep_bytes(p, g->bytes[o]), p->there[t][e][o]);
    keep_add(p, keep_bytes(p, g->bytes[o]), is_step ? p->held[t][o] : p->still[t][o]);
  }
  uint64_t gradients = g->waiting[t] + (is_step ? g->gradients[t] : 0);
  keep_row(p, 'L', keep_bytes(p, p->memory) - keep_bytes(p, gradients));
}

/* A lane copies no longer than its part of the slot takes. */
static inline void keep_lanes(keep_program *p, uint32_t t) {
  const small_graph *g = p->g;
  for (int lane = 0; lane < 2; lane++)
    for (int h = 0; h < 2; h++) {
      for (uint32_t o = 0; o < g->n_outputs; o++) keep_add(p, 1, lane ? p->in[t][h][o] : p->out[t][h][o]);
      if (h == 0) keep_add(p, -1, p->wait[t]);
      for (uint32_t j = 0; j < g->first_backward && h == 0; j++) keep_add(p, -keep_ns(p, g->ns[j]), p->again[t][j]);
      keep_row(p, 'L', h == 0 ? 0 : keep_ns(p, g->ns[t]));
    }
}

/* Of copies of o up to slot t's part ahead of the step. */
static inline void keep_copied(keep_program *p, int copies[MOST_STEPS][2][MOST_OUTPUTS], uint32_t t, uint32_t o) {
  for (uint32_t u = 0; u <= t; u++) {
    keep_add(p, 1, copies[u][0][o]);
    if (u < t) keep_add(p, 1, copies[u][1][o]);
  }
}

static inline void keep_copies(keep_program *p, uint32_t t, uint32_t o) {
  double whole = keep_ns(p, p->g->copy_ns[o]);
  if (p->out[t][0][o] == 0) return;
  for (int h = 0; h < 2; h++) {
    keep_add(p, 1, p->out[t][h][o]); /* it is there to be copied */
    keep_add(p, -whole, h == 0 ? p->there[t - 1][KEEP_STEP][o] : p->there[t][KEEP_STEP][o]);
    keep_row(p, 'L', 0);
    keep_add(p, 1, p->in[t][h][o]); /* it has gone out, and has memory to come to */
    keep_add(p, -whole, p->gone[t][o]);
    keep_row(p, 'L', 0);
    keep_add(p, 1, p->in[t][h][o]);
    keep_add(p, -whole, p->held[t][o]);
    if (h == 0) keep_add(p, -whole, p->arrives[t][o]);
    keep_row(p, 'L', 0);
  }
  keep_copied(p, p->out, t, o);
  keep_add(p, -whole, p->gone[t][o]);
  keep_row(p, 'G', 0);
  keep_copied(p, p->in, t, o);
  for (uint32_t u = 0; u <= t; u++) keep_add(p, -whole, p->arrives[u][o]);
  keep_row(p, 'G', 0);
  keep_add(p, 1, p->still[t][o]); /* held a slot ago, and not arrived */
  keep_add(p, -1, p->held[t - 1][o]);
  keep_add(p, 1, p->arrives[t][o]);
  keep_row(p, 'G', 0);
  keep_add(p, 1, p->held[t][o]);
  keep_add(p, -1, p->still[t][o]);
  keep_row(p, 'G', 0);
}

/* ---- the answer ---- */

static inline void keep_time(keep_program *p) {
  for (uint32_t t = 0; t < p->g->n_steps; t++) {
    keep_add(p, 1, p->wait[t]);
    for (uint32_t j = 0; j < p->g->first_backward; j++) keep_add(p, keep_ns(p, p->g->ns[j]), p->again[t][j]);
  }
  keep_row(p, 'L', keep_ns(p, p->slack_ns));
}

/* Re-runs are counted in whole ns; CBC's own figure is of rounded ones. */
static inline int64_t keep_solve(keep_program *p) {
  const small_graph *g = p->g;
  double waits = 0;
  int64_t ns = 0;
  Cbc_setLogLevel(p->model, 0);
  Cbc_setAllowableFractionGap(p->model, KEEP_GAP);
  if (p->any) Cbc_setMaximumSolutions(p->model, 1);
  Cbc_solve(p->model);
  if (Cbc_isProvenInfeasible(p->model)) return INT64_MAX;
  bool found = Cbc_isProvenOptimal(p->model) || (p->any && Cbc_numberSavedSolutions(p->model) > 0);
  if (!found) fail_msg("CBC gives up: status %d", Cbc_status(p->model));
  const double *x = Cbc_getColSolution(p->model);
  for (uint32_t t = 0; t < g->n_steps; t++) {
    ns += g->ns[t];
    if (p->wait[t]) waits += x[p->wait[t]] * p->ns_unit;
    for (uint32_t j = 0; j < g->first_backward; j++)
      if (p->again[t][j] && x[p->again[t][j]] > 0.5) ns += g->ns[j];
  }
  return ns + llround(waits);
}

/* Makes the program and solves it. */
static inline int64_t keep_answer(keep_program *p) {
  const small_graph *g = p->g;
  p->model = Cbc_newModel();
  p->ns_unit = p->byte_unit = 1;
  for (uint32_t t = 0; t < g->n_steps; t++) p->ns_unit += (double)g->ns[t] / 1e3;
  p->byte_unit += (double)small_graph_outputs(g, (1u << g->n_outputs) - 1) / 1e3;
  p->slack_ns = p->most_ns;
  for (uint32_t t = 0; t < g->n_steps && p->most_ns < INT64_MAX; t++) p->slack_ns -= g->ns[t];
  keep_variable(p, 0, 0, 0, false);
  for (uint32_t t = 0; t < g->n_steps; t++) keep_slot_variables(p, t);
  for (uint32_t t = 0; t < g->n_steps; t++) {
    for (uint32_t e = 0; e < g->first_backward && keep_is_backward(p, t); e++) keep_event(p, t, e);
    keep_event(p, t, KEEP_STEP);
    if (p->copies) keep_lanes(p, t);
    for (uint32_t o = 0; o < g->n_outputs && p->copies; o++) keep_copies(p, t, o);
  }
  if (p->most_ns < INT64_MAX) keep_time(p);
  int64_t ns = keep_solve(p);
  Cbc_deleteModel(p->model);
  return ns;
}

/* A time that is known to be enough, else INT64_MAX, saves work. */
static inline int64_t keep_program_solve(const small_graph *g, uint64_t memory, bool copies, int64_t most_ns) {
  keep_program *p = calloc(1, sizeof *p);
  assert_non_null(p);
  *p = (keep_program){.g = g, .memory = memory, .copies = copies, .most_ns = most_ns};
  int64_t ns = keep_answer(p);
  free(p);
  return ns;
}

static inline bool keep_program_runs(const small_graph *g, uint64_t memory, int64_t ns) {
  keep_program *p = calloc(1, sizeof *p);
  assert_non_null(p);
  *p = (keep_program){.g = g, .memory = memory, .copies = true, .any = true, .most_ns = ns};
  bool runs = keep_answer(p) < INT64_MAX;
  free(p);
  return runs;
}

#endif
