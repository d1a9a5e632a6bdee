/* Lanes of a plan while it is written; see the header. */
#include "sim/plan/lanes.h"

#include <stdlib.h>
#include <string.h>

sn_status sn__grow(void **items, uint32_t *room, size_t size, sn_err *err) {
  uint32_t more = *room ? 2 * *room : 256;
  void *fresh = more > *room ? realloc(*items, (size_t)more * size) : NULL;
  if (!fresh) return sn_fail_memory(err);
  *items = fresh;
  *room = more;
  return SN_OK;
}

void sn__lanes_clear(sn__lanes *l) {
  for (sn_lane lane = 0; lane < SN_LANES; lane++) {
    free(l->of[lane].fences);
    free(l->of[lane].fence_clocks);
  }
}

sn_status sn__lanes_expect(sn__lanes *l, uint64_t instrs) {
  if (instrs == 0 || instrs > UINT32_MAX) return SN_OK;
  l->plan->instrs = malloc(instrs * sizeof *l->plan->instrs);
  if (!l->plan->instrs) return sn_fail_memory(l->err);
  l->room = (uint32_t)instrs;
  return SN_OK;
}

sn_status sn__lanes_grow(sn__lanes *l) {
  return sn__grow((void **)&l->plan->instrs, &l->room, sizeof *l->plan->instrs, l->err);
}

sn_status sn__lanes_signal(sn__lanes *l, sn_lane on, uint32_t step) {
  sn__lane_state *lane = &l->of[on];
  size_t words = 1 + l->n_lanes;
  if (lane->n_fences == lane->fences_room &&
      (sn__grow((void **)&lane->fences, &lane->fences_room, words * sizeof *lane->fences, l->err) != SN_OK ||
       sn__grow((void **)&lane->fence_clocks, &lane->clocks_room, sizeof *lane->fence_clocks, l->err) != SN_OK))
    return l->err->code;
  uint32_t *fence = &lane->fences[lane->n_fences * words], id = l->plan->n_fences++;
  fence[0] = id;
  memcpy(fence + 1, lane->known, l->n_lanes * sizeof *fence);
  lane->fence_clocks[lane->n_fences++] = lane->clock;
  return sn__lanes_add(l, (sn_instr){.kind = SN_SIGNAL, .lane = (uint8_t)on, .id = id, .step = step});
}

/* The earliest fence of a lane that passes after its instruction number `clock`; the next one where none does. */
static uint32_t fence_after(const sn__lane_state *lane, uint32_t clock) {
  uint32_t low = 0, high = lane->n_fences;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (lane->fence_clocks[middle] >= clock)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

sn_status sn__lanes_wait(sn__lanes *l, sn_lane lane, sn_lane other, uint32_t clock, uint32_t step) {
  sn__lane_state *after = &l->of[lane];
  uint32_t passes = fence_after(&l->of[other], clock);
  if (passes == l->of[other].n_fences && sn__lanes_signal(l, other, step) != SN_OK) return l->err->code;
  const uint32_t *fence = &l->of[other].fences[passes * (size_t)(1 + l->n_lanes)], *known = fence + 1;
  for (uint32_t i = 0; i < l->n_lanes; i++)
    if (i != lane && known[i] > after->known[i]) after->known[i] = known[i];
  return sn__lanes_add(l, (sn_instr){.kind = SN_WAIT, .lane = (uint8_t)lane, .id = fence[0], .step = step});
}

sn_status sn__lanes_order_all(sn__lanes *l, sn_lane lane, const uint32_t clocks[SN_LANES], uint32_t step) {
  sn_status status = SN_OK;
  for (sn_lane other = 0; other < SN_LANES && status == SN_OK; other++)
    status = sn__lanes_order(l, lane, other, clocks[other], step);
  return status;
}
