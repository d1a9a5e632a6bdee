/* Operations that are ready, in an order; see the header. */
#include "sim/corun/ranks.h"

#include "models/net.h"

static const sn__bytes absent = {INT64_MAX, INT64_MAX, INT64_MAX};

bool sn__ranks_new(sn__ranks *set, uint32_t n, sn_arena *arena) {
  set->n_leaves = 1;
  while (set->n_leaves < n) set->n_leaves *= 2;
  set->least = sn_arena_alloc(arena, 2 * (size_t)set->n_leaves, sizeof *set->least);
  return set->least != NULL;
}

void sn__ranks_clear(sn__ranks *set) {
  for (uint32_t i = 0; i < 2 * set->n_leaves; i++) set->least[i] = absent;
}

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static bool same(sn__bytes a, sn__bytes b) {
  return a.now == b.now && a.next == b.next && a.soon == b.soon;
}

/* Up to where nothing changes. */
void sn__ranks_put(sn__ranks *set, uint32_t rank, sn__bytes adds) {
  for (uint32_t at = set->n_leaves + rank; !same(set->least[at], adds); at /= 2) {
    set->least[at] = adds;
    if (at == 1) return;
    const sn__bytes *other = &set->least[at ^ 1];
    adds = (sn__bytes){lesser(adds.now, other->now), lesser(adds.next, other->next), lesser(adds.soon, other->soon)};
  }
}

void sn__ranks_remove(sn__ranks *set, uint32_t rank) {
  sn__ranks_put(set, rank, absent);
}

static bool fits(sn__bytes adds, sn__bytes room) {
  return adds.now <= room.now && adds.next <= room.next && adds.soon <= room.soon;
}

/* From left to right, around all stretches in which there is none. */
uint32_t sn__ranks_next(const sn__ranks *set, uint32_t from, sn__bytes room) {
  if (from >= set->n_leaves) return SN_NONE;
  for (uint32_t at = set->n_leaves + from;;) {
    if (fits(set->least[at], room)) {
      if (at >= set->n_leaves) return at - set->n_leaves;
      at *= 2;
      continue;
    }
    while (at % 2 == 1) at /= 2;
    if (at == 0) return SN_NONE; /* the root is 1: there is nothing to its right */
    at++;
  }
}
