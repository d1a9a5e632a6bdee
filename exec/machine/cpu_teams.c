/* CPU teams; see the header. */
#include "exec/machine/cpu_teams.h"

#include "sim/graph/route.h"

#include <stdlib.h>

enum { MOST_THREADS = SN_MAX_CORES };

struct sn_cpu_teams {
  const sn_net *net;
  sn_cpu_kernels *of[MOST_THREADS + 1]; /* by number of threads; NULL: nobody has asked */
};

sn_cpu_teams *sn_cpu_teams_new(const sn_net *net, sn_err *err) {
  sn_cpu_teams *t = calloc(1, sizeof *t);
  if (t)
    t->net = net;
  else
    sn_fail_memory(err);
  return t;
}

void sn_cpu_teams_free(sn_cpu_teams *t) {
  for (uint32_t threads = 0; t && threads <= MOST_THREADS; threads++) sn_cpu_kernels_free(t->of[threads]);
  free(t);
}

/* Kernels for so many threads, with the primitives of a layer; NULL after an error. */
static sn_cpu_kernels *find(sn_cpu_teams *t, uint32_t threads, uint32_t layer, sn_err *err) {
  if (threads == 0 || threads > MOST_THREADS) {
    sn_fail(err, SN_BUG, "a team of %u threads", threads);
    return NULL;
  }
  if (!t->of[threads]) t->of[threads] = sn_cpu_kernels_bare(t->net, threads, true, err);
  sn_cpu_kernels *k = t->of[threads];
  return k && sn_cpu_kernels_prepare(k, layer, err) == SN_OK ? k : NULL;
}

sn_status sn_cpu_teams_scratch(sn_cpu_teams *t, const sn_step *step, sn_step_part part, uint32_t threads,
                               uint64_t *bytes, sn_err *err) {
  const sn_cpu_kernels *k = find(t, threads, step->layer, err);
  if (k) *bytes = sn_cpu_kernels_scratch(k, step->layer, step->pass, part);
  return err->code;
}

static sn_status check_teams(const sn_plan *plan, sn_err *err) {
  for (uint32_t i = 0; i < plan->n_teams; i++)
    if (plan->teams[i].slot == SN_SLOT_ANY)
      return sn_fail(
          err, SN_BAD_USAGE,
          "its workers have %u threads together and the device has %u cores, so they float over all of them; "
          "that is simulated only: choose KxP with at most %u threads, or another policy",
          plan->teams[i].first, plan->cores, plan->cores);
  if (plan->n_teams <= SN_LANES_TEAMS) return SN_OK;
  return sn_fail(
      err, SN_BAD_USAGE,
      "its operations run on %u different ranges of cores, and at most %d teams are executed; choose s12, or "
      "KxP",
      plan->n_teams, SN_LANES_TEAMS);
}

static sn_status make_ready(sn_cpu_teams *t, const sn_plan *plan, sn_err *err) {
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    if (!find(t, plan->teams[instr->team].count, plan->route->steps[instr->id].layer, err)) return err->code;
  }
  return SN_OK;
}

sn_status sn_cpu_teams_open(sn_cpu_teams *t, const sn_plan *plan, sn_cpu_kernels *of[SN_LANES_TEAMS], sn_err *err) {
  unsigned threads = 2; /* of copies */
  if (check_teams(plan, err) != SN_OK || make_ready(t, plan, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < plan->n_teams; i++) {
    of[i] = sn_cpu_kernels_share(t->of[plan->teams[i].count], err);
    if (!of[i]) return err->code;
    threads += plan->teams[i].count;
  }
  return plan->n_teams > 0 ? sn_cpu_kernels_try_threads(of[0], threads, err) : SN_OK;
}

void sn_cpu_teams_close(sn_cpu_kernels *of[SN_LANES_TEAMS]) {
  for (uint32_t i = 0; i < SN_LANES_TEAMS; i++) {
    sn_cpu_kernels_free(of[i]);
    of[i] = NULL;
  }
}
