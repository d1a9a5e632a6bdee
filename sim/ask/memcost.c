/* The five rows; see the header. Rows differ in the rules of one walk, and in how far it goes. */
#include "sim/ask/memcost.h"

#include "sim/device/cost.h"
#include "sim/graph/route.h"
#include "sim/share/colour.h"
#include "sim/share/critical.h"
#include "sim/share/sharing.h"

#include <stdbool.h>

static const struct {
  const char *name;
  bool in_place, shares, backward;
} options[SN_MEMCOST_OPTIONS] = {
    [SN_MEMCOST_NONE] = {"none", false, false, true},
    [SN_MEMCOST_IN_PLACE] = {"inplace", true, false, true},
    [SN_MEMCOST_SHARING] = {"sharing", false, true, true},
    [SN_MEMCOST_BOTH] = {"both", true, true, true},
    [SN_MEMCOST_FORWARD_ONLY] = {"forward_only", true, true, false},
};

const char *sn_memcost_option_name(sn_memcost_option option) {
  return options[option].name;
}

static void count_steps(const sn_route *r, sn_memcost *m) {
  m->forward = r->first_backward;
  m->backward = r->first_update - r->first_backward;
  m->sums = 0;
  for (uint32_t s = r->first_backward; s < r->first_update; s++) m->sums += r->layers[r->steps[s].layer].op == SN_FORK;
  m->backward -= m->sums;
}

static sn_status fill_row(const sn_route *route, const sn_costs *costs, uint32_t n_steps, const sn_sharing_rules *rules,
                          sn_memcost_row *row, sn_err *err) {
  sn_sharing *sharing = sn_sharing_new(route, n_steps, rules, err);
  if (!sharing) return err->code;
  row->bytes = sharing->bytes;
  row->regions = sharing->n_regions;
  if (sn_critical_path(sharing, costs, true, &row->critical_ns, err) == SN_OK)
    sn_critical_path(sharing, costs, false, &row->unshared_ns, err);
  sn_sharing_free(sharing);
  return err->code;
}

/* The rows of the steps with, or without, a backward pass: they have one colouring. */
static sn_status fill_rows(const sn_route *route, const sn_costs *costs, bool backward, uint32_t match_range,
                           uint32_t colours, sn_memcost *memcost, sn_err *err) {
  uint32_t n_steps = backward ? route->first_update : route->first_backward;
  sn_colouring *colouring = sn_colouring_new(route, n_steps, colours, err);
  for (sn_memcost_option o = 0; o < SN_MEMCOST_OPTIONS && err->code == SN_OK; o++) {
    sn_sharing_rules rules = {options[o].in_place, options[o].shares ? match_range : 0, colouring};
    if (options[o].backward == backward) fill_row(route, costs, n_steps, &rules, &memcost->rows[o], err);
  }
  sn_colouring_free(colouring);
  return err->code;
}

sn_status sn_memcost_of(const sn_net *net, const sn_device *device, sn_precision precision, uint32_t match_range,
                        uint32_t colours, sn_memcost *memcost, sn_err *err) {
  const sn_iteration iteration = {.precision = precision};
  sn_route *route = sn_route_new_for(net, SN_DIALECT_EXPLICIT, SN_ORDER_POST, iteration, NULL, err);
  sn_costs *costs = route ? sn_costs_new_in(net, device, iteration, err) : NULL;
  if (costs) {
    count_steps(route, memcost);
    if (fill_rows(route, costs, true, match_range, colours, memcost, err) == SN_OK)
      fill_rows(route, costs, false, match_range, colours, memcost, err);
  }
  sn_costs_free(costs);
  sn_route_free(route);
  return err->code;
}
