/* Blocks and what runs again of them; see the header. */
#include "sim/capacity/calls_blocks.h"

#include "models/net/modules.h"
#include "sim/graph/route.h"

#include <stdlib.h>
#include <string.h>

/* A unit of which anything runs again is run again: what PyTorch does not need of it, it runs all the same. */
static void find_regions(const sn_plan *plan, sn__blocks *b) {
  for (uint32_t u = 0; u < b->units.count; u++) b->region[u] = SN_NONE;
  for (uint32_t n = 0; plan && n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    if (i->kind != SN_COMPUTE || !i->rerun) continue;
    uint32_t unit = sn_units_of(&b->units, b->route, i->id);
    if (unit < b->units.count && b->region[unit] == SN_NONE) {
      b->region[unit] = i->step;
      b->n_rerun++;
    }
  }
}

/* The block of a forward step, by number. A branch may return to the block ahead of the last. */
static uint32_t find_block(sn__blocks *b, const char *path) {
  enum { BACK = 2 };
  for (uint32_t k = 1; k <= BACK && k <= b->count; k++)
    if (strcmp(b->all[b->count - k].path, path) == 0) return b->count - k;
  b->all[b->count] = (sn__block){.path = path, .region = SN_NONE};
  return b->count++;
}

static void find_blocks(sn__blocks *b, uint32_t *of_step) {
  const sn_route *route = b->route;
  b->count = 0;
  for (uint32_t s = 0; s < route->first_backward; s++) {
    of_step[s] = SN_NONE;
    const char *path = sn_route_block(route, route->steps[s].layer);
    if (!path || sn_step_moves(&route->steps[s])) continue; /* parameters may be gathered while another block runs */
    uint32_t block = of_step[s] = find_block(b, path), unit = sn_units_of(&b->units, route, s);
    b->all[block].steps++;
    if (unit == b->units.count || b->region[unit] == SN_NONE) continue;
    b->all[block].rerun++;
    if (b->all[block].region == SN_NONE) b->all[block].region = b->region[unit];
  }
  for (uint32_t i = 0; i < b->count; i++) b->chosen += sn__block_is_chosen(&b->all[i]);
}

static void find_others(sn__blocks *b, const uint32_t *of_step) {
  for (uint32_t u = 0; u < b->units.count; u++) {
    b->is_other[u] = b->region[u] != SN_NONE;
    for (uint32_t s = b->units.first[u]; s < b->units.first[u + 1]; s++)
      if (of_step[s] != SN_NONE && sn__block_is_chosen(&b->all[of_step[s]])) b->is_other[u] = false;
  }
}

sn_status sn__blocks_find(const sn_route *route, const sn_plan *plan, sn__blocks *b, sn_err *err) {
  *b = (sn__blocks){.route = route};
  if (sn_units_find(route, &b->units, err) != SN_OK) return err->code;
  size_t steps = (size_t)route->first_backward + 1, units = (size_t)b->units.count + 1;
  uint32_t *of_step = calloc(steps, sizeof *of_step);
  b->region = calloc(units, sizeof *b->region);
  b->is_other = calloc(units, sizeof *b->is_other);
  b->all = calloc(steps, sizeof *b->all);
  if (!of_step || !b->region || !b->is_other || !b->all) {
    sn_fail_memory(err);
  } else {
    find_regions(plan, b);
    find_blocks(b, of_step);
    find_others(b, of_step);
  }
  free(of_step);
  return err->code;
}

void sn__blocks_clear(sn__blocks *b) {
  free(b->all);
  free(b->is_other);
  free(b->region);
  sn_units_clear(&b->units);
  *b = (sn__blocks){0};
}
