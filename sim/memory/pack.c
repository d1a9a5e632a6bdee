/* Pack; see the header. */
#include "sim/memory/pack.h"

#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <stdlib.h>
#include <string.h>

static bool packer_init(sn__packer *p) {
  size_t n = (size_t)p->count + 1;
  p->lower = malloc(n * sizeof *p->lower);
  p->upper = malloc(n * sizeof *p->upper);
  p->most = malloc(n * sizeof *p->most);
  p->by_size = malloc(n * sizeof *p->by_size);
  p->keys = malloc(n * sizeof *p->keys);
  p->spare = malloc(n * sizeof *p->spare);
  p->stack = malloc(n * sizeof *p->stack);
  return sn__pack_turn_to(p, SN__FIRST_FIT) && p->lower && p->upper && p->most && p->by_size && p->keys && p->spare &&
         p->stack;
}

static void packer_clear(sn__packer *p) {
  free(p->lower);
  free(p->upper);
  free(p->most);
  free(p->by_size);
  free(p->keys);
  free(p->spare);
  free(p->stack);
  for (int by = 0; by < SN__ORDERS; by++) sn__layout_clear(&p->layouts[by]);
  sn__layout_clear(&p->next);
}

static sn_status count_blocks(sn__packer *p, sn_err *err) {
  uint64_t sum = 0;
  if (p->count > SN_PACK_MOST)
    return sn_fail(err, SN_BAD_INPUT, "%u blocks are more than the %d that can be packed", p->count, SN_PACK_MOST);
  for (uint32_t b = 0; b < p->count; b++) {
    p->active += sn__pack_is_active(&p->blocks[b]);
    if (!sn_add(sum, p->blocks[b].bytes, &sum))
      return sn_fail(err, SN_BAD_INPUT, "the blocks together have more than 2^64 bytes");
  }
  return SN_OK;
}

sn_status sn_pack(const sn_block *blocks, uint32_t count, const sn_pack_limits *limits, uint64_t *offsets,
                  sn_packing *packing, sn_err *err) {
  sn__packer p = {.blocks = blocks, .count = count, .best = offsets, .best_top = UINT64_MAX};
  *packing = (sn_packing){0};
  memset(offsets, 0, count * sizeof *offsets);
  if (count_blocks(&p, err) != SN_OK || p.active == 0) return err->code;
  bool good = packer_init(&p) && sn__pack_measure(&p, &packing->lower_bound);
  if (good) {
    p.enough = sn_max(limits->enough, packing->lower_bound);
    int by = sn__pack_try_orders(&p, limits);
    p.enough = sn_max(limits->near, p.enough);
    good = !p.memory_out && sn__pack_try_moves(&p, by, limits, &packing->moves) &&
           sn__pack_try_beam(&p, limits, packing->lower_bound, &packing->tries);
    packing->bytes = p.best_top;
  }
  packer_clear(&p);
  return good ? SN_OK : sn_fail_memory(err);
}
