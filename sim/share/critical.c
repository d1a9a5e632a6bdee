/* The longest path through the steps; see the header. Times end to end stay below SN_MAX_OP_SECONDS, by which
 * sn_costs_new() limits the sum of all steps. */
#include "sim/share/critical.h"

#include "models/op/op.h"
#include "sim/graph/route.h"

#include <stdlib.h>

typedef struct schedule {
  const sn_sharing *sharing;
  const sn_costs *costs;
  bool ordered;
  int64_t *made; /* per tensor: when it is there */
  int64_t *used; /* per region: when all of its uses so far are over */
} schedule;

static uint8_t fastest(const sn_costs *costs, uint32_t layer, sn_conv_kernel kernel) {
  uint32_t count;
  const sn_conv_choice *choices = sn_costs_conv(costs, layer, kernel, &count);
  return count ? (uint8_t)choices[0].algo : 0;
}

static int64_t time_of(const schedule *x, const sn_step *step) {
  const sn_costs *costs = x->costs;
  if (step->kernel == SN_FLATTEN) return 0;
  uint8_t algo[2] = {0, 0};
  if (sn_op_of(&x->sharing->route->layers[step->layer])->convolves) {
    bool forward = step->pass == SN_FORWARD;
    algo[0] = fastest(costs, step->layer, forward ? SN_CONV_FORWARD : SN_CONV_BACKWARD_DATA);
    algo[1] = fastest(costs, step->layer, SN_CONV_BACKWARD_FILTER);
  }
  return sn_costs_of(costs, x->sharing->route, step, algo);
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* What is flattened in place changes nothing, and waits for no other reader. */
static bool changes_nothing(const schedule *x, const sn_step *step) {
  const sn_access *accesses = &x->sharing->route->accesses[step->first_access];
  const uint32_t *region = x->sharing->region;
  return step->kernel == SN_FLATTEN && region[accesses[0].tensor] == region[accesses[1].tensor];
}

static int64_t run_step(schedule *x, const sn_step *step) {
  const sn_access *accesses = &x->sharing->route->accesses[step->first_access];
  const uint32_t *region = x->sharing->region;
  bool waits = x->ordered && !changes_nothing(x, step);
  int64_t begin = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    if (accesses[i].mode != SN_WRITE) begin = later(begin, x->made[accesses[i].tensor]);
    if (waits && accesses[i].mode == SN_WRITE) begin = later(begin, x->used[region[accesses[i].tensor]]);
  }
  int64_t end = begin + time_of(x, step);
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    int64_t *used = &x->used[region[accesses[i].tensor]];
    if (accesses[i].mode == SN_WRITE) x->made[accesses[i].tensor] = end;
    *used = later(*used, end);
  }
  return end;
}

sn_status sn_critical_path(const sn_sharing *sharing, const sn_costs *costs, bool ordered, int64_t *ns, sn_err *err) {
  schedule x = {.sharing = sharing, .costs = costs, .ordered = ordered};
  x.made = calloc((size_t)sharing->route->n_tensors + 1, sizeof *x.made);
  x.used = calloc((size_t)sharing->n_regions + 1, sizeof *x.used);
  *ns = 0;
  for (uint32_t s = 0; x.made && x.used && s < sharing->n_steps; s++)
    *ns = later(*ns, run_step(&x, &sharing->route->steps[s]));
  if (!x.made || !x.used) sn_fail_memory(err);
  free(x.made);
  free(x.used);
  return err->code;
}
