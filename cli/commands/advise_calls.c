/* PyTorch's calls; see the header. Units are those that the strategy re-runs (sim/policy/units.h), by their first and
 * last layers: in torchvision's networks, whose layers have the names of its modules, "layer1.0" and so on can be read
 * off. */
#include "cli/commands/advise_calls.h"

#include "cli/frame/table.h"
#include "sim/policy/units.h"

#include <inttypes.h>

static void print_layer(const sn_route *route, uint32_t step, FILE *out) {
  sn_table_print_clean(out, route->net->layers[route->steps[step].layer].name);
}

static void print_region(const sn_route *route, uint32_t first, uint32_t end, FILE *out) {
  fputs("    ", out);
  print_layer(route, first, out);
  fputs(" .. ", out);
  print_layer(route, end - 1, out);
  fputs("\n", out);
}

static void print_wrap(FILE *out) {
  fprintf(out, "  wrap each in torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False):\n");
}

static void print_units(const sn_route *route, const sn_units *units, FILE *out) {
  print_wrap(out);
  for (uint32_t u = 0; u < units->count; u++) print_region(route, units->first[u], units->first[u + 1], out);
}

static bool is_rerun(const sn_instr *instr) {
  return instr->kind == SN_COMPUTE && instr->rerun;
}

/* The end of the unit of a step. */
static uint32_t end_of(const sn_units *units, uint32_t step) {
  uint32_t u = 0;
  while (u + 1 < units->count && units->first[u + 1] <= step) u++;
  return units->first[u + 1];
}

/* What runs again ahead of one backward step is a region, the last of the network first; they are told from the first
 * on. */
static void print_regions(const sn_plan *plan, const sn_units *units, FILE *out) {
  print_wrap(out);
  for (uint32_t i = plan->n_instrs; i-- > 0;) {
    const sn_instr *last = &plan->instrs[i];
    if (!is_rerun(last)) continue;
    uint32_t first = last->id;
    for (; i > 0 && plan->instrs[i - 1].step == last->step; i--)
      if (is_rerun(&plan->instrs[i - 1])) first = plan->instrs[i - 1].id;
    print_region(plan->route, first, end_of(units, last->id), out);
  }
  fputs("  where that is several modules, a function that calls them in turn\n", out);
}

static sn_status print_chosen(const sn_question *q, const sn_combination *best, FILE *out, sn_err *err) {
  sn_units units = {0};
  sn_planner *planner = sn_planner_new(q->net, &q->device, &q->options, err);
  sn_plan *plan = planner ? sn_planner_plan(planner, best->strategy, best->memory_bytes, false, err) : NULL;
  if (plan && sn_units_find(plan->route, &units, err) == SN_OK) print_regions(plan, &units, out);
  sn_units_clear(&units);
  sn_plan_free(plan);
  sn_planner_free(planner);
  return err->code;
}

static sn_status print_checkpoints(const sn_net *net, FILE *out, sn_err *err) {
  sn_units units = {0};
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, err);
  sn_status status = route ? sn_units_find(route, &units, err) : err->code;
  if (status == SN_OK && units.count > 0) print_units(route, &units, out);
  if (status == SN_OK && units.count == 0) fputs("  this network has no unit to wrap\n", out);
  sn_units_clear(&units);
  sn_route_free(route);
  return status;
}

sn_status sn_advise_print_calls(const sn_question *question, const sn_combination *best, FILE *out, sn_err *err) {
  bool units = !best || best->strategy.recompute == SN_RECOMPUTE_UNITS;
  bool chosen = best && best->strategy.recompute == SN_RECOMPUTE_OPTIMAL;
  bool offload = !best || best->strategy.offload == SN_OFFLOAD_SAVED;
  sn_status status = SN_OK;
  if (best && !units && !offload && !chosen) {
    fputs("\nin PyTorch: nothing to change\n", out);
    return SN_OK;
  }
  fputs(best ? "\nin PyTorch:\n" : "\nin PyTorch, what takes less memory:\n", out);
  if (offload) fputs("  with torch.autograd.graph.save_on_cpu(pin_memory=True): around the forward pass\n", out);
  if (units) status = print_checkpoints(question->net, out, err);
  if (chosen) status = print_chosen(question, best, out, err);
  return status;
}
