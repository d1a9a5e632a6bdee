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

static void print_units(const sn_route *route, const sn_units *units, FILE *out) {
  fprintf(out, "  wrap each in torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False):\n");
  for (uint32_t u = 0; u < units->count; u++) {
    fputs("    ", out);
    print_layer(route, units->first[u], out);
    fputs(" .. ", out);
    print_layer(route, units->first[u + 1] - 1, out);
    fputs("\n", out);
  }
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

sn_status sn_advise_print_calls(const sn_net *net, const sn_combination *best, FILE *out, sn_err *err) {
  bool units = !best || best->strategy.recompute == SN_RECOMPUTE_UNITS;
  bool offload = !best || best->strategy.offload == SN_OFFLOAD_SAVED;
  sn_status status = SN_OK;
  if (best && !units && !offload) {
    fputs("\nin PyTorch: nothing to change\n", out);
    return SN_OK;
  }
  fputs(best ? "\nin PyTorch:\n" : "\nin PyTorch, what takes less memory:\n", out);
  if (offload) fputs("  with torch.autograd.graph.save_on_cpu(pin_memory=True): around the forward pass\n", out);
  if (units) status = print_checkpoints(net, out, err);
  return status;
}
