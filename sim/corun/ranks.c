/* Operations that are ready, in an order; see the header. */
#include "sim/corun/ranks.h"

#include "models/net/net.h"

static const sn__need absent = {{INT64_MAX, INT64_MAX, INT64_MAX}, INT64_MAX, INT64_MAX};

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

static sn__need least_of(const sn__need *a, const sn__need *b) {
  return (sn__need){.bytes = {lesser(a->bytes.now, b->bytes.now), lesser(a->bytes.next, b->bytes.next),
                              lesser(a->bytes.soon, b->bytes.soon)},
                    .ns = lesser(a->ns, b->ns),
                    .threads = lesser(a->threads, b->threads)};
}

static bool same(const sn__need *a, const sn__need *b) {
  return a->bytes.now == b->bytes.now && a->bytes.next == b->bytes.next && a->bytes.soon == b->bytes.soon &&
         a->ns == b->ns && a->threads == b->threads;
}

/* Up to where nothing changes. */
void sn__ranks_put(sn__ranks *set, uint32_t rank, sn__need need) {
  for (uint32_t at = set->n_leaves + rank; !same(&set->least[at], &need); at /= 2) {
    set->least[at] = need;
    if (at == 1) return;
    need = least_of(&need, &set->least[at ^ 1]);
  }
}

void sn__ranks_remove(sn__ranks *set, uint32_t rank) {
  sn__ranks_put(set, rank, absent);
}

static bool fits(const sn__need *need, const sn__need *there) {
  return need->bytes.now <= there->bytes.now && need->bytes.next <= there->bytes.next &&
         need->bytes.soon <= there->bytes.soon && need->ns <= there->ns && need->threads <= there->threads;
}

/* From left to right, around all stretches in which there is none. */
uint32_t sn__ranks_next(const sn__ranks *set, uint32_t from, sn__need there) {
  if (from >= set->n_leaves || !fits(&set->least[1], &there)) return SN_NONE;
  for (uint32_t at = from > 0 ? set->n_leaves + from : 1;;) {
    if (fits(&set->least[at], &there)) {
      if (at >= set->n_leaves) return at - set->n_leaves;
      at *= 2;
      continue;
    }
    while (at % 2 == 1) at /= 2;
    if (at == 0) return SN_NONE; /* the root is 1: there is nothing to its right */
    at++;
  }
}
