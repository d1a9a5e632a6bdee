/* Lanes of a plan while it is written; see the header. */
#include "sim/plan/lanes.h"

#include <stdlib.h>

sn_status sn__grow(void **items, uint32_t *room, size_t size, sn_err *err) {
  uint32_t more = *room ? 2 * *room : 256;
  void *fresh = more > *room ? realloc(*items, (size_t)more * size) : NULL;
  if (!fresh) return sn_fail_memory(err);
  *items = fresh;
  *room = more;
  return SN_OK;
}

void sn__lanes_clear(sn__lanes *l) {
  for (sn_lane lane = 0; lane < SN_LANES; lane++) free(l->of[lane].fences);
}

sn_status sn__lanes_grow(sn__lanes *l) {
  return sn__grow((void **)&l->plan->instrs, &l->room, sizeof *l->plan->instrs, l->err);
}

sn_status sn__lanes_signal(sn__lanes *l, sn_lane on, uint32_t step) {
  sn__lane_state *lane = &l->of[on];
  if (lane->n_fences == lane->room &&
      sn__grow((void **)&lane->fences, &lane->room, sizeof *lane->fences, l->err) != SN_OK)
    return l->err->code;
  sn__fence *fence = &lane->fences[lane->n_fences++];
  fence->id = l->plan->n_fences++;
  fence->clock = lane->clock;
  for (sn_lane other = 0; other < SN_LANES; other++) fence->known[other] = lane->known[other];
  return sn__lanes_add(l, (sn_instr){.kind = SN_SIGNAL, .lane = (uint8_t)on, .id = fence->id, .step = step});
}

/* The earliest fence of a lane that passes after its instruction number `clock`. */
static sn__fence *fence_after(sn__lane_state *lane, uint32_t clock) {
  uint32_t low = 0, high = lane->n_fences;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (lane->fences[middle].clock >= clock)
      high = middle;
    else
      low = middle + 1;
  }
  return low < lane->n_fences ? &lane->fences[low] : NULL;
}

sn_status sn__lanes_wait(sn__lanes *l, sn_lane lane, sn_lane other, uint32_t clock, uint32_t step) {
  sn__lane_state *after = &l->of[lane];
  if (!fence_after(&l->of[other], clock)) {
    sn_status status = sn__lanes_signal(l, other, step);
    if (status != SN_OK) return status;
  }
  const sn__fence *fence = fence_after(&l->of[other], clock);
  for (sn_lane known = 0; known < SN_LANES; known++)
    if (known != lane && fence->known[known] > after->known[known]) after->known[known] = fence->known[known];
  return sn__lanes_add(l, (sn_instr){.kind = SN_WAIT, .lane = (uint8_t)lane, .id = fence->id, .step = step});
}

sn_status sn__lanes_order_all(sn__lanes *l, sn_lane lane, const uint32_t clocks[SN_LANES], uint32_t step) {
  sn_status status = SN_OK;
  for (sn_lane other = 0; other < SN_LANES && status == SN_OK; other++)
    status = sn__lanes_order(l, lane, other, clocks[other], step);
  return status;
}
