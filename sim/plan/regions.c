/* Regions; see the header. */
#include "sim/plan/regions.h"

#include <stdlib.h>
#include <string.h>

void sn__regions_clear(sn__regions *r) {
  sn_ordered_clear(&r->map);
  free(r->regions);
  memset(r, 0, sizeof *r);
}

static bool add(sn__regions *r, uint64_t begin, sn__region region) {
  uint32_t node = sn_ordered_insert(&r->map, begin, region.end - begin);
  if (!node) return false;
  if (r->map.room > r->room) {
    sn__region *more = realloc(r->regions, (size_t)r->map.room * sizeof *more);
    if (!more) return false;
    r->regions = more;
    r->room = r->map.room;
  }
  r->regions[node] = region;
  return true;
}

static bool is_ordered(const uint32_t known[SN_LANES], const uint32_t touched[SN_LANES]) {
  for (sn_lane lane = 0; lane < SN_LANES; lane++)
    if (touched[lane] > known[lane]) return false;
  return true;
}

/* The first region that reaches beyond `begin`. */
static uint32_t first_beyond(const sn__regions *r, uint64_t begin) {
  uint32_t node = sn_ordered_floor(&r->map, begin);
  if (node && r->regions[node].end > begin) return node;
  return sn_ordered_ceiling(&r->map, begin);
}

/* Takes [begin, end) out of a dead region that overlaps it; what sticks out on either side stays. */
static bool cut(sn__regions *r, uint32_t node, uint64_t begin, uint64_t end) {
  uint64_t key = r->map.nodes[node].key;
  sn__region old = r->regions[node];
  if (key >= begin && old.end <= end) {
    sn_ordered_remove(&r->map, key);
  } else if (key >= begin) {
    sn_ordered_move(&r->map, key, end, old.end - end);
  } else {
    sn_ordered_weigh(&r->map, key, begin - key);
    r->regions[node].end = begin;
    return old.end <= end || add(r, end, old);
  }
  return true;
}

/* Whether a dead region within [begin, end) is the only one there: then it can become what is claimed. */
static bool is_alone(const sn__regions *r, uint32_t node, uint64_t begin, uint64_t end) {
  if (r->map.nodes[node].key < begin || r->regions[node].end > end) return false;
  uint32_t next = r->regions[node].end < end ? sn_ordered_ceiling(&r->map, r->regions[node].end) : SN_ORDERED_NONE;
  return !next || r->map.nodes[next].key >= end;
}

sn__claim sn__regions_claim(sn__regions *r, uint64_t begin, uint64_t end, uint32_t owner,
                            const uint32_t known[SN_LANES], const uint32_t touched[SN_LANES], uint32_t *other) {
  sn__region fresh = {.end = end, .owner = owner};
  memcpy(fresh.touched, touched, sizeof fresh.touched);
  for (;;) {
    uint32_t node = first_beyond(r, begin);
    if (!node || r->map.nodes[node].key >= end) break;
    *other = r->regions[node].owner;
    if (*other != SN_NONE) return SN__CLAIM_LIVE;
    if (!is_ordered(known, r->regions[node].touched)) return SN__CLAIM_UNORDERED;
    if (is_alone(r, node, begin, end)) {
      sn_ordered_move(&r->map, r->map.nodes[node].key, begin, end - begin);
      r->regions[node] = fresh;
      return SN__CLAIM_GOOD;
    }
    if (!cut(r, node, begin, end)) return SN__CLAIM_MEMORY;
  }
  return add(r, begin, fresh) ? SN__CLAIM_GOOD : SN__CLAIM_MEMORY;
}

void sn__regions_release(sn__regions *r, uint64_t begin, const uint32_t touched[SN_LANES]) {
  uint32_t node = sn_ordered_floor(&r->map, begin);
  if (!node || r->map.nodes[node].key != begin) return;
  r->regions[node].owner = SN_NONE;
  memcpy(r->regions[node].touched, touched, sizeof r->regions[node].touched);
}
