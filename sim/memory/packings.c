/* Packings; see the header. */
#include "sim/memory/packings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void forget(sn_packings_entry *e) {
  free(e->blocks);
  free(e->offsets);
  *e = (sn_packings_entry){0};
}

void sn_packings_clear(sn_packings *packings) {
  for (int i = 0; i < SN_PACKINGS_KEPT; i++) forget(&packings->entries[i]);
}

static uint64_t stir(uint64_t digest, uint64_t value) {
  digest = (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return digest ^ (digest >> 29);
}

static uint64_t digest_of(const sn_block *blocks, uint32_t count, const sn_pack_limits *limits) {
  uint64_t digest = stir(stir(stir(stir(limits->moves, limits->tries), limits->enough), limits->near), limits->known);
  for (uint32_t b = 0; b < count; b++)
    digest = stir(digest, blocks[b].lower * 3 + blocks[b].upper * 5 + blocks[b].bytes * 7);
  return digest;
}

static bool is_same(const sn_packings_entry *e, const sn_block *blocks, uint32_t count, const sn_pack_limits *limits) {
  const sn_pack_limits *own = &e->limits;
  return e->count == count && own->moves == limits->moves && own->tries == limits->tries &&
         own->enough == limits->enough && own->near == limits->near && own->known == limits->known &&
         memcmp(e->blocks, blocks, count * sizeof *blocks) == 0;
}

static const sn_packings_entry *look_up(const sn_packings *packings, uint64_t digest, const sn_block *blocks,
                                        uint32_t count, const sn_pack_limits *limits) {
  for (int i = 0; i < SN_PACKINGS_KEPT; i++) {
    const sn_packings_entry *e = &packings->entries[i];
    if (e->blocks && e->digest == digest && is_same(e, blocks, count, limits)) return e;
  }
  return NULL;
}

/* In the place of the oldest. */
static sn_status remember(sn_packings *packings, sn_packings_entry fresh, const sn_block *blocks,
                          const uint64_t *offsets, sn_err *err) {
  sn_packings_entry *e = &packings->entries[packings->next++ % SN_PACKINGS_KEPT];
  forget(e);
  fresh.blocks = malloc(fresh.count * sizeof *fresh.blocks);
  fresh.offsets = malloc(fresh.count * sizeof *fresh.offsets);
  if (!fresh.blocks || !fresh.offsets) {
    forget(&fresh);
    return sn_fail_memory(err);
  }
  memcpy(fresh.blocks, blocks, fresh.count * sizeof *fresh.blocks);
  memcpy(fresh.offsets, offsets, fresh.count * sizeof *fresh.offsets);
  *e = fresh;
  return SN_OK;
}

sn_status sn_pack_again(sn_packings *packings, const sn_block *blocks, uint32_t count, const sn_pack_limits *limits,
                        uint64_t *offsets, sn_packing *packing, sn_err *err) {
  if (!packings || count == 0 || count > SN_PACKINGS_MOST_BLOCKS)
    return sn_pack(blocks, count, limits, offsets, packing, err);
  uint64_t digest = digest_of(blocks, count, limits);
  const sn_packings_entry *e = look_up(packings, digest, blocks, count, limits);
  if (e) {
    memcpy(offsets, e->offsets, count * sizeof *offsets);
    *packing = e->packing;
    return SN_OK;
  }
  if (sn_pack(blocks, count, limits, offsets, packing, err) != SN_OK) return err->code;
  const sn_packings_entry fresh = {.digest = digest, .count = count, .limits = *limits, .packing = *packing};
  return remember(packings, fresh, blocks, offsets, err);
}
