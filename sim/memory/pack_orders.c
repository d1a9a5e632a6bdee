/* Pack's orders: blocks one after another, each at the lowest offset that is free for its whole life; see pack.h. */
#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKS_FOR_ORDERS = 400000000 };

/* ---- layouts ---- */

bool sn__layout_init(sn__layout *l, uint32_t count) {
  size_t n = (size_t)count + 1;
  *l = (sn__layout){.order = malloc(n * sizeof *l->order),
                    .position = malloc(n * sizeof *l->position),
                    .offset = malloc(n * sizeof *l->offset),
                    .by = SN__NONE,
                    .hints = malloc(SN__HINTS * sizeof *l->hints)};
  return sn__shelf_init(&l->shelf, count) && l->order && l->position && l->offset && l->hints;
}

void sn__layout_clear(sn__layout *l) {
  free(l->order);
  free(l->position);
  free(l->offset);
  free(l->hints);
  sn__shelf_clear(&l->shelf);
}

/* ---- orders ---- */

/* Whole numbers and, beyond 2^53, the bits of doubles compare as the doubles do. */
static uint64_t key_of(double value) {
  uint64_t bits;
  if (value < 0x1p53) return (uint64_t)value;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t block_key(const sn__packer *p, uint32_t block, int by) {
  const sn_block *b = &p->blocks[block];
  double length = (double)(b->upper - b->lower);
  switch (by) {
  case SN__BY_LENGTH:
    return key_of(length);
  case SN__BY_AREA:
    return key_of((double)b->bytes * length);
  case SN__BY_BEGIN:
    return p->lower[block];
  case SN__BY_END:
    return p->upper[block];
  case SN__BY_LOAD:
  case SN__BY_LOAD_LAST:
    return key_of((double)p->most[block]);
  case SN__FIRST_FIT: /* as an allocator that knows no future */
    return UINT32_MAX - p->lower[block];
  case SN__BY_OFFSET:
    return UINT64_MAX - p->best[block];
  default:
    return key_of((double)b->bytes);
  }
}

/* Blocks by falling keys, those with equal ones staying as they are. */
static void sort_few(const uint64_t *keys, uint32_t *order, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    uint32_t block = order[i], at = i;
    for (; at > 0 && keys[order[at - 1]] < keys[block]; at--) order[at] = order[at - 1];
    order[at] = block;
  }
}

enum { DIGIT = 8, VALUES = 1 << DIGIT, DIGITS = 64 / DIGIT };

/* How many blocks have each value of each digit of the keys above `shift`. */
static void count_values(const sn__packer *p, const uint32_t *order, int shift, int digits,
                         uint32_t (*counts)[VALUES]) {
  for (int d = 0; d < digits; d++) memset(counts[d], 0, sizeof *counts);
  for (uint32_t i = 0; i < p->active; i++) {
    uint64_t key = p->keys[order[i]] >> shift;
    for (int d = 0; d < digits; d++, key >>= DIGIT) counts[d][key % VALUES]++;
  }
}

/* Counts become the places where blocks of a value begin, the largest value first. */
static void add_up_values(uint32_t *counts) {
  uint32_t sum = 0;
  for (int value = VALUES; value-- > 0;) {
    uint32_t count = counts[value];
    counts[value] = sum;
    sum += count;
  }
}

/* The same of many: one digit after another, from the lowest bit of those on that they `differ` in. */
static void sort_many(sn__packer *p, uint32_t *order, uint64_t differ) {
  uint32_t n = p->active, *from = order, *to = p->spare, counts[DIGITS][VALUES];
  if (differ == 0) return;
  int shift = __builtin_ctzll(differ), digits = (64 - __builtin_clzll(differ) - shift + DIGIT - 1) / DIGIT;
  count_values(p, order, shift, digits, counts);
  for (int d = 0; d < digits; d++, shift += DIGIT) {
    if ((differ >> shift) % VALUES == 0) continue;
    add_up_values(counts[d]);
    for (uint32_t i = 0; i < n; i++) to[counts[d][(p->keys[from[i]] >> shift) % VALUES]++] = from[i];
    uint32_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != order) memcpy(order, from, n * sizeof *order);
}

static void sort_by(sn__packer *p, uint32_t *order, int by) {
  enum { FEW = 64 };
  uint64_t *keys = p->keys, differ = 0;
  for (uint32_t i = 0; i < p->active; i++) {
    keys[order[i]] = block_key(p, order[i], by);
    differ |= keys[order[i]] ^ keys[order[0]];
  }
  if (p->active <= FEW)
    sort_few(keys, order, p->active);
  else
    sort_many(p, order, differ);
}

static void sort_by_size(sn__packer *p) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < p->count; b++)
    if (sn__pack_is_active(&p->blocks[b])) p->by_size[n++] = b;
  sort_by(p, p->by_size, SN__BY_SIZE);
}

void sn__pack_sort(sn__packer *p, int by) {
  uint32_t *order = p->now->order;
  memcpy(order, p->by_size, p->active * sizeof *order);
  if (by == SN__BY_LOAD) sort_by(p, order, SN__BY_AREA);
  if (by == SN__BY_LOAD_LAST) sort_by(p, order, SN__BY_BEGIN);
  if (by != SN__BY_SIZE) sort_by(p, order, by);
}

bool sn__pack_turn_to(sn__packer *p, int by) {
  sn__layout *l = &p->layouts[p->active > SN__MOST_KEPT ? 0 : by];
  if (!p->memory_out && !l->order) p->memory_out = !sn__layout_init(l, p->count);
  if (p->memory_out) return false;
  l->shelf.looks = p->now ? p->now->shelf.looks : 0;
  p->now = l;
  return true;
}

static void put(sn__packer *p, sn__layout *l, uint32_t position, uint64_t offset) {
  uint32_t b = l->order[position];
  uint64_t end = offset + p->blocks[b].bytes;
  l->top = sn_max(l->top, end);
  l->position[b] = position;
  l->offset[b] = offset;
  l->placed = position + 1;
  sn__shelf_put(&l->shelf, (sn__spot){offset, end, p->lower[b], p->upper[b], b});
}

/* The begin of the last of the blocks whose lives see the largest load. */
static uint32_t find_fullest(const sn__packer *p) {
  uint32_t last = p->by_size[0];
  for (uint32_t i = 1; i < p->active; i++) {
    uint32_t b = p->by_size[i];
    if (p->most[b] > p->most[last] || (p->most[b] == p->most[last] && p->lower[b] > p->lower[last])) last = b;
  }
  return p->lower[last];
}

/* By load, what lives at the fullest moment comes one inside the other, which needs no hints. */
static bool is_hinted(const sn__layout *l) {
  return l->by > SN__BY_LOAD_LAST && l->by < SN__ORDERS;
}

/* No place of a block is below. Blocks of one size find their places one above the other at a time that all of them
 * live: those that live at the fullest moment look for one then first, from where the last of that size has found one
 * on. */
static uint64_t find_hint(const sn__packer *p, sn__layout *l, uint32_t b) {
  uint64_t bytes = p->blocks[b].bytes;
  if (p->lower[b] > p->fullest || p->upper[b] <= p->fullest) return 0;
  sn__hint *h = &l->hints[(bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
  if (h->bytes != bytes) *h = (sn__hint){.bytes = bytes};
  return h->offset = sn__shelf_find(&l->shelf, p->fullest, p->fullest + 1, bytes, h->offset);
}

bool sn__pack_place(sn__packer *p, sn__layout *l, uint32_t from, uint64_t limit) {
  bool hinted = is_hinted(l);
  for (uint32_t i = from; i < p->active; i++) {
    uint32_t b = l->order[i];
    uint64_t bytes = p->blocks[b].bytes, no_less = hinted ? find_hint(p, l, b) : 0,
             offset = sn__shelf_find(&l->shelf, p->lower[b], p->upper[b], bytes, no_less);
    if (offset + bytes > limit || sn__pack_looks(p) > p->most_looks) return false;
    put(p, l, i, offset);
  }
  return true;
}

void sn__pack_keep_best(sn__packer *p, const sn__layout *l) {
  if (l->top >= p->best_top) return;
  p->best_top = l->top;
  for (uint32_t i = 0; i < p->active; i++) p->best[l->order[i]] = l->offset[l->order[i]];
}

void sn__pack_begin(sn__packer *p, int by) {
  sn__pack_sort(p, by);
  sn__shelf_empty(&p->now->shelf);
  p->now->top = 0;
  p->now->placed = 0;
  p->now->by = SN__NONE;
}

/* By begin, as an allocator does that knows no future, or by end, as one that knows no past: what is over by then is
 * taken away, so that all that is left conflicts. That is quick for any number of blocks, and so by begin there is a
 * packing whatever the work that is allowed. False where one would end above `limit`, or the work by end is more. */
static bool sweep(sn__packer *p, int by, uint64_t limit) {
  if (!sn__pack_turn_to(p, by)) return false;
  sn__layout *l = p->now;
  bool back = by == SN__BY_END;
  uint32_t *over = p->stack, n = p->active;
  sn__pack_begin(p, back ? SN__FIRST_FIT : SN__BY_END);
  memcpy(over, l->order, p->active * sizeof *over);
  sn__pack_begin(p, by);
  for (uint32_t i = 0; i < p->active && (!back || sn__pack_looks(p) <= p->most_looks); i++) {
    uint32_t b = l->order[i];
    while (back ? p->lower[over[n - 1]] >= p->upper[b] : p->upper[over[n - 1]] <= p->lower[b])
      sn__shelf_take(&l->shelf, l->offset[over[--n]]);
    uint64_t offset = sn__shelf_fit(&l->shelf, p->blocks[b].bytes);
    if (p->blocks[b].bytes > limit || offset > limit - p->blocks[b].bytes) return false;
    put(p, l, i, offset);
  }
  return !back || sn__pack_looks(p) <= p->most_looks;
}

bool sn__pack_place_by(sn__packer *p, int by, uint64_t limit) {
  if (!sn__pack_turn_to(p, by)) return false;
  if (p->now->by != by) {
    sn__pack_begin(p, by);
    p->now->by = by;
    memset(p->now->hints, 0, SN__HINTS * sizeof *p->now->hints);
  }
  return sn__pack_place(p, p->now, p->now->placed, limit);
}

/* The first order that comes to what is enough; SN__ORDERS: none. What places a block above is left there. */
static int find_enough(sn__packer *p) {
  for (int by = SN__FIRST_FIT + 1; by < SN__BY_END && p->active <= SN__MOST_KEPT; by++)
    if (sn__pack_place_by(p, by, p->enough)) return by;
  return SN__ORDERS;
}

/* By size is the best order of most plans: where it comes to what is not moved about in, no other one needs to come to
 * more. Else UINT64_MAX, and it begins anew where moves may follow, which count the work from where it was given up. */
static uint64_t find_bound(sn__packer *p, const sn_pack_limits *limits) {
  enum { FEW = 200 };
  if (p->active <= FEW || p->active > SN__MOST_KEPT) return UINT64_MAX;
  uint64_t most = limits->moves == 0 ? UINT64_MAX : limits->near;
  if (sn__pack_place_by(p, SN__BY_SIZE, p->best_top - 1) && p->now->top <= most) return p->now->top;
  if (p->best_top > most) p->now->by = SN__NONE;
  return UINT64_MAX;
}

int sn__pack_try_orders(sn__packer *p, const sn_pack_limits *limits) {
  int best = SN__FIRST_FIT;
  sort_by_size(p);
  p->fullest = find_fullest(p);
  if (limits->known > 0)
    p->best_top = limits->known;
  else if (sweep(p, SN__FIRST_FIT, UINT64_MAX))
    sn__pack_keep_best(p, p->now);
  p->most_looks = sn__pack_looks(p) + LOOKS_FOR_ORDERS;
  if (p->best_top <= p->enough) return best;
  int first = find_enough(p);
  uint64_t bound = first == SN__ORDERS ? find_bound(p, limits) : UINT64_MAX;
  for (int by = first < SN__ORDERS ? first : SN__FIRST_FIT + 1; by < SN__ORDERS && p->best_top > p->enough; by++) {
    if (sn__pack_looks(p) > p->most_looks) break; /* before it sorts what it cannot place */
    uint64_t limit = sn_min(p->best_top - 1, bound);
    bool good = by == SN__BY_END ? sweep(p, by, limit) : sn__pack_place_by(p, by, limit);
    if (!good || p->now->top > limit) continue;
    sn__pack_keep_best(p, p->now);
    best = by;
  }
  return best;
}
