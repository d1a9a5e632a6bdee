/* Pack; see the header. Times are ranks among all begins and ends here, so that 32 bits are enough. */
#include "sim/memory/pack.h"

#include "base/checked.h"
#include "sim/memory/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Of up to MOST_KEPT blocks the layouts of all orders are kept, some 80 B a block each. */
enum { MOST_KEPT = 4096 };

enum { HISTORY = 4, STALLED = 50, LOOKS_A_MOVE = 60000, LOOKS_FOR_ORDERS = 400000000 };

/* Of a size: at the fullest moment it has no place below. */
typedef struct hint {
  uint64_t bytes, offset;
} hint;

enum { HINTS = 64 };

/* Blocks in the order in which they are placed, and where they end up. Zeroed there is none. */
typedef struct layout {
  uint32_t *order;    /* blocks */
  uint32_t *position; /* per block: in `order` */
  uint64_t *offset;   /* per block */
  uint64_t top;
  uint32_t placed; /* so many of `order` */
  int by;          /* the order; NONE: another one */
  hint *hints;     /* HINTS of them */
  sn__shelf shelf;
} layout;

/* In the order in which they are tried: what most often ends the search comes first. */
enum { FIRST_FIT, BY_LOAD, BY_LOAD_LAST, BY_AREA, BY_SIZE, BY_LENGTH, BY_BEGIN, BY_END, ORDERS, NONE };

typedef struct packer {
  const sn_block *blocks;
  uint32_t count;          /* of them */
  uint32_t active;         /* that have a life and bytes: the others are placed nowhere */
  uint32_t *lower, *upper; /* per active block, as ranks */
  uint64_t *most;          /* per active block: the largest load over its life */
  uint32_t *by_size;       /* active blocks, the largest first: where every order begins */
  uint64_t *keys;          /* per block: what is sorted by */
  uint32_t *spare;         /* room to sort */
  uint32_t *stack;         /* blocks, one resting on the other */
  layout layouts[ORDERS];  /* by the orders, as far as they are tried; of more than MOST_KEPT blocks only the first */
  layout *now, next;
  bool memory_out;
  uint64_t *best; /* offsets */
  uint64_t best_top, enough;
  uint64_t most_looks;
  uint32_t fullest; /* when the load is largest, as a rank */
  uint64_t dice;
} packer;

/* From 0 to below `below`, which is not 0: splitmix64. */
static uint64_t roll(packer *p, uint64_t below) {
  assert(below > 0);
  uint64_t z = p->dice += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (z ^ (z >> 31)) % below;
}

/* ---- times as ranks, and the load ---- */

static bool is_active(const sn_block *block) {
  return block->lower < block->upper && block->bytes > 0;
}

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t rank_of(const uint64_t *times, uint32_t n, uint64_t time) {
  uint32_t low = 0, high = n - 1;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (times[middle] < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Times that lie so close that they can stand for their ranks, as those of plans do; how many, or 0. */
static uint32_t take_times(packer *p) {
  uint64_t last = 0;
  for (uint32_t b = 0; b < p->count; b++)
    if (is_active(&p->blocks[b])) last = sn_max(last, p->blocks[b].upper);
  if (last >= 4 * (uint64_t)p->active) return 0;
  for (uint32_t b = 0; b < p->count; b++) {
    p->lower[b] = (uint32_t)sn_min(p->blocks[b].lower, last);
    p->upper[b] = (uint32_t)sn_min(p->blocks[b].upper, last);
  }
  return (uint32_t)last + 1;
}

/* The number of different times; their ranks in `lower` and `upper`. */
static uint32_t rank_times(packer *p, uint64_t *times) {
  uint32_t n = 0, different = 0;
  for (uint32_t b = 0; b < p->count; b++) {
    if (!is_active(&p->blocks[b])) continue;
    times[n++] = p->blocks[b].lower;
    times[n++] = p->blocks[b].upper;
  }
  qsort(times, n, sizeof *times, compare_times);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || times[i] != times[i - 1]) times[different++] = times[i];
  for (uint32_t b = 0; b < p->count; b++) {
    if (!is_active(&p->blocks[b])) continue;
    p->lower[b] = rank_of(times, different, p->blocks[b].lower);
    p->upper[b] = rank_of(times, different, p->blocks[b].upper);
  }
  return different;
}

/* Largest of load[lower, upper); the tree's leaves are tree[n ..]. */
static uint64_t largest_load(const uint64_t *tree, uint32_t n, uint32_t lower, uint32_t upper) {
  uint64_t most = 0;
  for (uint32_t l = n + lower, u = n + upper; l < u; l /= 2, u /= 2) {
    if (l & 1) most = sn_max(most, tree[l++]);
    if (u & 1) most = sn_max(most, tree[--u]);
  }
  return most;
}

/* `tree` has room for 2n. Sums wrap where a block ends, which takes away what it added. */
static void find_loads(packer *p, uint64_t *tree, uint32_t n) {
  uint64_t *load = tree + n;
  memset(load, 0, n * sizeof *load);
  for (uint32_t b = 0; b < p->count; b++) {
    if (!is_active(&p->blocks[b])) continue;
    load[p->lower[b]] += p->blocks[b].bytes;
    load[p->upper[b]] -= p->blocks[b].bytes;
  }
  for (uint32_t t = 1; t < n; t++) load[t] += load[t - 1];
  for (uint32_t i = n; i-- > 1;) tree[i] = sn_max(tree[2 * (size_t)i], tree[2 * (size_t)i + 1]);
  for (uint32_t b = 0; b < p->count; b++)
    if (is_active(&p->blocks[b])) p->most[b] = largest_load(tree, n, p->lower[b], p->upper[b]);
}

/* Fills lower, upper and most; the lower bound in *bound. False where memory is out. */
static bool measure(packer *p, uint64_t *bound) {
  *bound = 0;
  if (p->active == 0) return true;
  uint32_t n = take_times(p);
  uint64_t *times = n > 0 ? NULL : calloc(2 * (size_t)p->active, sizeof *times);
  if (times) n = rank_times(p, times);
  uint64_t *tree = n > 0 ? malloc(2 * (size_t)n * sizeof *tree) : NULL;
  if (tree) find_loads(p, tree, n);
  for (uint32_t b = 0; tree && b < p->count; b++)
    if (is_active(&p->blocks[b])) *bound = sn_max(*bound, p->most[b]);
  bool good = tree != NULL;
  free(times);
  free(tree);
  return good;
}

/* ---- layouts ---- */

static bool layout_init(layout *l, uint32_t count) {
  size_t n = (size_t)count + 1;
  *l = (layout){.order = malloc(n * sizeof *l->order),
                .position = malloc(n * sizeof *l->position),
                .offset = malloc(n * sizeof *l->offset),
                .by = NONE,
                .hints = malloc(HINTS * sizeof *l->hints)};
  return sn__shelf_init(&l->shelf, count) && l->order && l->position && l->offset && l->hints;
}

static void layout_clear(layout *l) {
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

static uint64_t block_key(const packer *p, uint32_t block, int by) {
  const sn_block *b = &p->blocks[block];
  double length = (double)(b->upper - b->lower);
  switch (by) {
  case BY_LENGTH:
    return key_of(length);
  case BY_AREA:
    return key_of((double)b->bytes * length);
  case BY_BEGIN:
    return p->lower[block];
  case BY_END:
    return p->upper[block];
  case BY_LOAD:
  case BY_LOAD_LAST:
    return key_of((double)p->most[block]);
  case FIRST_FIT: /* as an allocator that knows no future */
    return UINT32_MAX - p->lower[block];
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

/* The same of many: eight bits after another, from the lowest of those on that they `differ` in. */
static void sort_many(packer *p, uint32_t *order, uint64_t differ) {
  enum { DIGITS = 256 };
  uint32_t n = p->active, *from = order, *to = p->spare;
  const uint64_t *keys = p->keys;
  int shift = differ ? __builtin_ctzll(differ) : 64;
  for (; shift < 64 && differ >> shift > 0; shift += 8) {
    uint32_t begin[DIGITS] = {0}, sum = 0;
    if ((differ >> shift) % DIGITS == 0) continue;
    for (uint32_t i = 0; i < n; i++) begin[(keys[from[i]] >> shift) % DIGITS]++;
    for (int digit = DIGITS; digit-- > 0;) {
      uint32_t count = begin[digit];
      begin[digit] = sum;
      sum += count;
    }
    for (uint32_t i = 0; i < n; i++) to[begin[(keys[from[i]] >> shift) % DIGITS]++] = from[i];
    uint32_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != order) memcpy(order, from, n * sizeof *order);
}

static void sort_by(packer *p, uint32_t *order, int by) {
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

static void sort_by_size(packer *p) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < p->count; b++)
    if (is_active(&p->blocks[b])) p->by_size[n++] = b;
  sort_by(p, p->by_size, BY_SIZE);
}

/* Equal keys: by the second key, then the larger first, then the earlier in the list. */
static void sort_blocks(packer *p, int by) {
  uint32_t *order = p->now->order;
  memcpy(order, p->by_size, p->active * sizeof *order);
  if (by == BY_LOAD) sort_by(p, order, BY_AREA);
  if (by == BY_LOAD_LAST) sort_by(p, order, BY_BEGIN);
  if (by != BY_SIZE) sort_by(p, order, by);
}

static uint64_t looks(const packer *p) {
  return p->now->shelf.looks + p->next.shelf.looks;
}

/* Makes the layout of an order the one to work on, which goes on with the count of the work. */
static bool turn_to(packer *p, int by) {
  layout *l = &p->layouts[p->active > MOST_KEPT ? 0 : by];
  if (!p->memory_out && !l->order) p->memory_out = !layout_init(l, p->count);
  if (p->memory_out) return false;
  l->shelf.looks = p->now ? p->now->shelf.looks : 0;
  p->now = l;
  return true;
}

static void put(packer *p, layout *l, uint32_t position, uint64_t offset) {
  uint32_t b = l->order[position];
  uint64_t end = offset + p->blocks[b].bytes;
  l->top = sn_max(l->top, end);
  l->position[b] = position;
  l->offset[b] = offset;
  l->placed = position + 1;
  sn__shelf_put(&l->shelf, (sn__spot){offset, end, p->lower[b], p->upper[b], b});
}

/* The begin of the last of the blocks whose lives see the largest load. */
static uint32_t find_fullest(const packer *p) {
  uint32_t last = p->by_size[0];
  for (uint32_t i = 1; i < p->active; i++) {
    uint32_t b = p->by_size[i];
    if (p->most[b] > p->most[last] || (p->most[b] == p->most[last] && p->lower[b] > p->lower[last])) last = b;
  }
  return p->lower[last];
}

/* By load, what lives at the fullest moment comes one inside the other, which needs no hints. */
static bool is_hinted(const layout *l) {
  return l->by > BY_LOAD_LAST && l->by < ORDERS;
}

/* No place of a block is below. Blocks of one size find their places one above the other at a time that all of them
 * live: those that live at the fullest moment look for one then first, from where the last of that size has found one
 * on. */
static uint64_t find_hint(const packer *p, layout *l, uint32_t b) {
  uint64_t bytes = p->blocks[b].bytes;
  if (p->lower[b] > p->fullest || p->upper[b] <= p->fullest) return 0;
  hint *h = &l->hints[(bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
  if (h->bytes != bytes) *h = (hint){.bytes = bytes};
  return h->offset = sn__shelf_find(&l->shelf, p->fullest, p->fullest + 1, bytes, h->offset);
}

/* Places the blocks of a layout from position `from` on; false where one would end above `limit`, or the work is more
 * than is allowed. */
static bool place(packer *p, layout *l, uint32_t from, uint64_t limit) {
  bool hinted = is_hinted(l);
  for (uint32_t i = from; i < p->active; i++) {
    uint32_t b = l->order[i];
    uint64_t bytes = p->blocks[b].bytes, no_less = hinted ? find_hint(p, l, b) : 0,
             offset = sn__shelf_find(&l->shelf, p->lower[b], p->upper[b], bytes, no_less);
    if (offset + bytes > limit || looks(p) > p->most_looks) return false;
    put(p, l, i, offset);
  }
  return true;
}

static void keep_best(packer *p, const layout *l) {
  if (l->top >= p->best_top) return;
  p->best_top = l->top;
  for (uint32_t i = 0; i < p->active; i++) p->best[l->order[i]] = l->offset[l->order[i]];
}

static void swap_layouts(packer *p) {
  layout l = *p->now;
  *p->now = p->next;
  p->next = l;
}

static void begin(packer *p, int by) {
  sort_blocks(p, by);
  sn__shelf_empty(&p->now->shelf);
  p->now->top = 0;
  p->now->placed = 0;
  p->now->by = NONE;
}

/* By begin, as an allocator does that knows no future, or by end, as one that knows no past: what is over by then is
 * taken away, so that all that is left conflicts. That is quick for any number of blocks, and so by begin there is a
 * packing whatever the work that is allowed. False where one would end above `limit`, or the work by end is more. */
static bool sweep(packer *p, int by, uint64_t limit) {
  if (!turn_to(p, by)) return false;
  layout *l = p->now;
  bool back = by == BY_END;
  uint32_t *over = p->stack, n = p->active;
  begin(p, back ? FIRST_FIT : BY_END);
  memcpy(over, l->order, p->active * sizeof *over);
  begin(p, by);
  for (uint32_t i = 0; i < p->active && (!back || looks(p) <= p->most_looks); i++) {
    uint32_t b = l->order[i];
    while (back ? p->lower[over[n - 1]] >= p->upper[b] : p->upper[over[n - 1]] <= p->lower[b])
      sn__shelf_take(&l->shelf, l->offset[over[--n]]);
    uint64_t offset = sn__shelf_fit(&l->shelf, p->blocks[b].bytes);
    if (p->blocks[b].bytes > limit || offset > limit - p->blocks[b].bytes) return false;
    put(p, l, i, offset);
  }
  return !back || looks(p) <= p->most_looks;
}

/* Places by an order, on from where that was left; false where one would end above `limit`, or the work is more than is
 * allowed. */
static bool place_by(packer *p, int by, uint64_t limit) {
  if (!turn_to(p, by)) return false;
  if (p->now->by != by) {
    begin(p, by);
    p->now->by = by;
    memset(p->now->hints, 0, HINTS * sizeof *p->now->hints);
  }
  return place(p, p->now, p->now->placed, limit);
}

/* The first order that comes to what is enough; ORDERS: none. What places a block above is left there. */
static int find_enough(packer *p) {
  for (int by = FIRST_FIT + 1; by < BY_END && p->active <= MOST_KEPT; by++)
    if (place_by(p, by, p->enough)) return by;
  return ORDERS;
}

/* By size is the best order of most plans: where it comes to what is not moved about in, no other one needs to come to
 * more. Else UINT64_MAX, and it begins anew where moves may follow, which count the work from where it was given up. */
static uint64_t find_bound(packer *p, const sn_pack_limits *limits) {
  enum { FEW = 200 };
  if (p->active <= FEW || p->active > MOST_KEPT) return UINT64_MAX;
  uint64_t most = limits->moves == 0 ? UINT64_MAX : limits->near;
  if (place_by(p, BY_SIZE, p->best_top - 1) && p->now->top <= most) return p->now->top;
  if (p->best_top > most) p->now->by = NONE;
  return UINT64_MAX;
}

/* Returns the best order. */
static int try_orders(packer *p, const sn_pack_limits *limits) {
  int best = FIRST_FIT;
  if (limits->known > 0)
    p->best_top = limits->known;
  else if (sweep(p, FIRST_FIT, UINT64_MAX))
    keep_best(p, p->now);
  p->most_looks = looks(p) + LOOKS_FOR_ORDERS;
  if (p->best_top <= p->enough) return best;
  int first = find_enough(p);
  uint64_t bound = first == ORDERS ? find_bound(p, limits) : UINT64_MAX;
  for (int by = first < ORDERS ? first : FIRST_FIT + 1; by < ORDERS && p->best_top > p->enough; by++) {
    uint64_t limit = sn_min(p->best_top - 1, bound);
    bool good = by == BY_END ? sweep(p, by, limit) : place_by(p, by, limit);
    if (!good || p->now->top > limit) continue;
    keep_best(p, p->now);
    best = by;
  }
  return best;
}

/* ---- moves ---- */

static bool conflict(const packer *p, uint32_t a, uint32_t b) {
  return p->lower[a] < p->upper[b] && p->lower[b] < p->upper[a];
}

/* A spot of the layout drawn from those that `wanted` asks for; SN_NONE where there is none. */
typedef struct wish {
  uint64_t end;      /* ends there; 0: anywhere */
  uint32_t rival;    /* conflicts with this block; UINT32_MAX: any */
  uint32_t position; /* and is placed before this */
} wish;

static uint32_t draw(packer *p, const layout *l, const wish *w) {
  uint32_t drawn = UINT32_MAX, found = 0, n = 0;
  for (uint32_t r = 0; r < l->shelf.n_runs; r++) {
    const sn__spot *spots = sn__shelf_run(&l->shelf, r, &n);
    for (uint32_t i = 0; i < n; i++) {
      const sn__spot *s = &spots[i];
      if ((w->end > 0 && s->end != w->end) || l->position[s->block] >= w->position) continue;
      if (w->rival != UINT32_MAX && !conflict(p, s->block, w->rival)) continue;
      if (roll(p, ++found) == 0) drawn = s->block;
    }
  }
  return drawn;
}

/* One of a block that ends at the top, what it rests on, and so on. */
static uint32_t draw_stacked(packer *p, const layout *l) {
  uint32_t n = 0;
  wish w = {.end = l->top, .rival = UINT32_MAX, .position = UINT32_MAX};
  while (n < p->active) {
    uint32_t block = draw(p, l, &w);
    if (block == UINT32_MAX) break;
    p->stack[n++] = block;
    w.end = l->offset[block];
    w.rival = block;
    if (w.end == 0) break;
  }
  return p->stack[roll(p, n)];
}

/* Takes over from p->now what stands before position `from`. */
static void begin_next(packer *p, uint32_t from) {
  uint32_t n = 0;
  sn__shelf_empty(&p->next.shelf);
  p->next.top = 0;
  p->next.by = NONE;
  memcpy(p->next.order, p->now->order, p->active * sizeof *p->next.order);
  for (uint32_t r = 0; r < p->now->shelf.n_runs; r++) {
    const sn__spot *spots = sn__shelf_run(&p->now->shelf, r, &n);
    for (uint32_t i = 0; i < n; i++) {
      uint32_t block = spots[i].block;
      if (p->now->position[block] >= from) continue;
      p->next.position[block] = p->now->position[block];
      p->next.offset[block] = spots[i].offset;
      p->next.top = sn_max(p->next.top, spots[i].end);
      sn__shelf_put(&p->next.shelf, spots[i]);
    }
  }
}

/* Makes p->next of p->now by one move; false where it ends above `limit`, or there is nothing to move. */
static bool move(packer *p, uint64_t limit) {
  uint32_t block = draw_stacked(p, p->now), at = p->now->position[block];
  uint32_t other = draw(p, p->now, &(wish){.rival = block, .position = at});
  if (other == UINT32_MAX) return false;
  uint32_t from = p->now->position[other];
  begin_next(p, from);
  uint32_t *order = p->next.order;
  if (roll(p, 2) == 0) {
    order[at] = other;
  } else {
    memmove(&order[from + 1], &order[from], (at - from) * sizeof *order);
  }
  order[from] = block;
  return place(p, &p->next, from, limit);
}

/* Moves on from p->now until nothing has become better for a while. */
static void walk(packer *p, const sn_pack_limits *limits, uint32_t *moves) {
  uint64_t history[HISTORY], best = p->now->top;
  uint32_t stalled = 0;
  for (int i = 0; i < HISTORY; i++) history[i] = best;
  while (stalled < sn_max(STALLED, limits->moves / 20) && *moves < limits->moves && p->best_top > p->enough &&
         looks(p) < p->most_looks) {
    uint64_t *then = &history[*moves % HISTORY];
    ++*moves;
    if (move(p, sn_max(p->now->top, *then))) {
      swap_layouts(p);
      keep_best(p, p->now);
    }
    *then = p->now->top;
    stalled = p->now->top < best ? 0 : stalled + 1;
    best = sn_min(best, p->now->top);
  }
}

/* Walks from the best order, then from one after the other; counts the moves. False where memory is out. */
static bool try_moves(packer *p, int by, const sn_pack_limits *limits, uint32_t *moves) {
  p->most_looks = looks(p) + (uint64_t)limits->moves * LOOKS_A_MOVE;
  if (*moves >= limits->moves || p->best_top <= p->enough) return true;
  if (!layout_init(&p->next, p->count)) return false;
  for (; *moves < limits->moves && p->best_top > p->enough; by = (by + 1) % ORDERS) {
    if (!place_by(p, by, UINT64_MAX)) break;
    walk(p, limits, moves);
  }
  return !p->memory_out;
}

/* ---- the whole ---- */

static bool packer_init(packer *p) {
  size_t n = (size_t)p->count + 1;
  p->lower = malloc(n * sizeof *p->lower);
  p->upper = malloc(n * sizeof *p->upper);
  p->most = malloc(n * sizeof *p->most);
  p->by_size = malloc(n * sizeof *p->by_size);
  p->keys = malloc(n * sizeof *p->keys);
  p->spare = malloc(n * sizeof *p->spare);
  p->stack = malloc(n * sizeof *p->stack);
  return turn_to(p, FIRST_FIT) && p->lower && p->upper && p->most && p->by_size && p->keys && p->spare && p->stack;
}

static void packer_clear(packer *p) {
  free(p->lower);
  free(p->upper);
  free(p->most);
  free(p->by_size);
  free(p->keys);
  free(p->spare);
  free(p->stack);
  for (int by = 0; by < ORDERS; by++) layout_clear(&p->layouts[by]);
  layout_clear(&p->next);
}

static sn_status count_blocks(packer *p, sn_err *err) {
  uint64_t sum = 0;
  if (p->count > SN_PACK_MOST)
    return sn_fail(err, SN_BAD_INPUT, "%u blocks are more than the %d that can be packed", p->count, SN_PACK_MOST);
  for (uint32_t b = 0; b < p->count; b++) {
    p->active += is_active(&p->blocks[b]);
    if (!sn_add(sum, p->blocks[b].bytes, &sum))
      return sn_fail(err, SN_BAD_INPUT, "the blocks together have more than 2^64 bytes");
  }
  return SN_OK;
}

sn_status sn_pack(const sn_block *blocks, uint32_t count, const sn_pack_limits *limits, uint64_t *offsets,
                  sn_packing *packing, sn_err *err) {
  packer p = {.blocks = blocks, .count = count, .best = offsets, .best_top = UINT64_MAX};
  *packing = (sn_packing){0};
  memset(offsets, 0, count * sizeof *offsets);
  if (count_blocks(&p, err) != SN_OK || p.active == 0) return err->code;
  bool good = packer_init(&p) && measure(&p, &packing->lower_bound);
  if (good) {
    p.enough = sn_max(limits->enough, packing->lower_bound);
    sort_by_size(&p);
    p.fullest = find_fullest(&p);
    int by = try_orders(&p, limits);
    p.enough = sn_max(limits->near, p.enough);
    good = !p.memory_out && try_moves(&p, by, limits, &packing->moves);
    packing->bytes = p.best_top;
  }
  packer_clear(&p);
  return good ? SN_OK : sn_fail_memory(err);
}
