/* Pack exactly; see the header.
 *
 * Time is cut where a block begins after one has ended: between two cuts (a section) all blocks that live at all live
 * together at one moment. Blocks stand in the order of their begins, so that those of one problem are neighbours; the
 * ones to come are a linked list, from which a block is taken, and to which it returns, in O(1). */
#include "sim/memory/pack_exact.h"

#include "base/checked.h"
#include "sim/memory/pack_skyline.h"
#include "sim/memory/pack_sweep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 6, NODES_A_TRY = 15000, NODES_A_QUESTION = 64 };

typedef enum answer { FOUND, NONE, STOPPED } answer;

typedef struct item {
  uint64_t bytes;
  uint32_t block;        /* of the caller */
  uint32_t lower, upper; /* sections */
  uint32_t rank[ORDERS]; /* place in each order */
} item;

/* What a placed item has raised, and what it was. */
typedef struct raised {
  uint32_t item;
  uint64_t lowest;
} raised;

typedef struct put_item {
  uint32_t item;
  size_t n_raised; /* when it came */
} put_item;

typedef struct searcher {
  uint32_t count, n_sections;
  item *items;                      /* by begin */
  uint32_t *first_member, *members; /* members[first_member[s] ..]: items that live in section s */
  /* the state of the search */
  uint64_t *offset, *lowest; /* per item: where it lies; the lowest offset it can still have */
  bool *placed;
  uint32_t *next, *previous; /* items to come; number `count` stands before the first and behind the last */
  uint64_t *left;            /* per section: bytes to come */
  put_item *puts;            /* one on the other */
  raised *trail;
  size_t n_trail;
  uint32_t n_puts;
  uint64_t *spare; /* per item: a section's lowest offsets, sorted */
  uint64_t *spare_bytes;
  /* of this try */
  uint64_t capacity, most_nodes;
  int order;
  /* over all of them */
  uint64_t nodes;
  const sn_exact_limits *limits;
  sn_exact *exact; /* what is told of it meanwhile */
  bool stopped;    /* somebody asked for that */
  bool no_memory;
  sn__life *lives; /* of items, by grains; NULL until the skyline is searched */
  sn__skyline *sky;
  sn__sweep *sweep;
  uint64_t grain;      /* what divides the bytes of all items, and so every offset */
  uint64_t *best;      /* per item: offset */
  uint64_t floor, top; /* less is not possible; of the best */
} searcher;

/* Where canonical order goes on from. */
typedef struct place_from {
  uint64_t offset;
  uint32_t rank;
} place_from;

/* ---- state ---- */

static uint32_t list_of(const searcher *s) {
  return s->count;
}

static void take(searcher *s, uint32_t i) {
  s->next[s->previous[i]] = s->next[i];
  s->previous[s->next[i]] = s->previous[i];
  s->placed[i] = true;
  for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++) s->left[t] -= s->items[i].bytes;
}

static void give_back(searcher *s, uint32_t i) {
  s->next[s->previous[i]] = i;
  s->previous[s->next[i]] = i;
  s->placed[i] = false;
  for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++) s->left[t] += s->items[i].bytes;
}

/* Back to when `puts` items were placed. */
static void take_back(searcher *s, uint32_t puts) {
  while (s->n_puts > puts) {
    put_item p = s->puts[--s->n_puts];
    for (; s->n_trail > p.n_raised; s->n_trail--)
      s->lowest[s->trail[s->n_trail - 1].item] = s->trail[s->n_trail - 1].lowest;
    give_back(s, p.item);
  }
}

/* Do the items to come of a section, none below `offset`, end within the capacity? From the highest of their lowest
 * offsets down, those from there on need the room above it. */
static bool section_fits(searcher *s, uint32_t section, uint64_t offset) {
  uint32_t n = 0;
  if (s->left[section] == 0) return true;
  for (uint32_t m = s->first_member[section]; m < s->first_member[section + 1]; m++) {
    uint32_t i = s->members[m], at = n;
    if (s->placed[i]) continue;
    uint64_t lowest = sn_max(s->lowest[i], offset);
    for (; at > 0 && s->spare[at - 1] < lowest; at--) {
      s->spare[at] = s->spare[at - 1];
      s->spare_bytes[at] = s->spare_bytes[at - 1];
    }
    s->spare[at] = lowest;
    s->spare_bytes[at] = s->items[i].bytes;
    n++;
  }
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; i++) {
    bytes += s->spare_bytes[i];
    if (bytes > s->capacity || s->spare[i] > s->capacity - bytes) return false;
  }
  return true;
}

/* Places an item of a problem that begins at item `first`: what overlaps it and is to come goes above. False where
 * something can be placed nowhere then. */
static bool put(searcher *s, uint32_t i, uint32_t first) {
  const item *it = &s->items[i];
  uint64_t offset = s->lowest[i], end = offset + it->bytes;
  uint32_t from = it->lower, to = it->upper;
  s->offset[i] = offset;
  s->puts[s->n_puts++] = (put_item){i, s->n_trail};
  take(s, i);
  for (uint32_t r = first == i ? s->next[i] : first; r != list_of(s) && s->items[r].lower < it->upper; r = s->next[r]) {
    if (s->items[r].upper <= it->lower || s->lowest[r] >= end) continue;
    if (end > s->capacity - s->items[r].bytes) return false;
    s->trail[s->n_trail++] = (raised){r, s->lowest[r]};
    s->lowest[r] = end;
    from = s->items[r].lower < from ? s->items[r].lower : from;
    to = s->items[r].upper > to ? s->items[r].upper : to;
  }
  for (uint32_t t = from; t < to; t++)
    if (!section_fits(s, t, offset)) return false;
  return true;
}

/* ---- search ---- */

/* Does (offset, rank) come behind `from`? */
static bool is_behind(uint64_t offset, uint32_t rank, place_from from) {
  return offset > from.offset || (offset == from.offset && rank > from.rank);
}

/* The next item to try from `first` to before section `end`, behind `tried` and in canonical order behind `from`;
 * list_of() where there is none. */
static uint32_t choose(const searcher *s, uint32_t first, uint32_t end, place_from from, const place_from *tried) {
  uint64_t hole = UINT64_MAX;
  uint32_t best = list_of(s);
  for (uint32_t i = first; i != list_of(s) && s->items[i].lower < end; i = s->next[i]) {
    uint64_t offset = s->lowest[i];
    uint32_t rank = s->items[i].rank[s->order];
    hole = sn_min(hole, offset + s->items[i].bytes);
    if (!is_behind(offset, rank, from) || (tried && !is_behind(offset, rank, *tried))) continue;
    if (best != list_of(s) && !is_behind(s->lowest[best], s->items[best].rank[s->order], (place_from){offset, rank}))
      continue;
    best = i;
  }
  return best != list_of(s) && s->lowest[best] < hole ? best : list_of(s);
}

static uint64_t highest_offset(const searcher *s, uint32_t lower, uint32_t upper) {
  uint64_t most = 0;
  for (uint32_t t = lower; t < upper; t++) most = sn_max(most, s->left[t]);
  return s->capacity - most;
}

/* At one more node? */
static bool may_look(searcher *s) {
  if (s->nodes % NODES_A_QUESTION == 0 && s->limits->stop) {
    s->exact->nodes = s->nodes;
    if (s->limits->stop(s->limits->context)) s->stopped = true;
  }
  if (s->stopped || s->nodes == s->most_nodes) return false;
  s->nodes++;
  return true;
}

static answer solve_all(searcher *s, uint32_t first, uint32_t end, place_from from);

/* Items that hang together, of the sections from the first one's begin to before `end`. */
static answer solve(searcher *s, uint32_t first, uint32_t end, place_from from) {
  place_from tried = {0};
  uint64_t highest = highest_offset(s, s->items[first].lower, end);
  for (bool again = false;; again = true) {
    uint32_t i = choose(s, first, end, from, again ? &tried : NULL);
    if (i == list_of(s) || s->lowest[i] > highest) return NONE;
    if (!may_look(s)) return STOPPED;
    uint32_t puts = s->n_puts, behind = i == first ? s->next[i] : first;
    tried = (place_from){s->lowest[i], s->items[i].rank[s->order]};
    answer a = put(s, i, first) ? solve_all(s, behind, end, tried) : NONE;
    if (a != NONE) return a;
    take_back(s, puts);
  }
}

/* All items from `first` to before section `end`, problem by problem. */
static answer solve_all(searcher *s, uint32_t first, uint32_t end, place_from from) {
  answer a = FOUND;
  while (a == FOUND && first != list_of(s) && s->items[first].lower < end) {
    uint32_t upper = s->items[first].upper, behind = s->next[first];
    for (; behind != list_of(s) && s->items[behind].lower < upper; behind = s->next[behind])
      if (s->items[behind].upper > upper) upper = s->items[behind].upper;
    a = solve(s, first, upper, from);
    first = behind;
  }
  return a;
}

/* What stands in `offset`. */
static void keep(searcher *s) {
  memcpy(s->best, s->offset, s->count * sizeof *s->best);
  s->top = 0;
  for (uint32_t i = 0; i < s->count; i++) s->top = sn_max(s->top, s->offset[i] + s->items[i].bytes);
}

/* One order, at a capacity. */
static answer try_order(searcher *s, int order, uint64_t capacity, uint64_t nodes) {
  s->order = order;
  s->capacity = capacity;
  s->most_nodes = sn_min(s->nodes + nodes, s->exact->most);
  for (uint32_t t = 0; t < s->n_sections; t++)
    if (s->left[t] > capacity) return NONE;
  answer a = solve(s, s->next[list_of(s)], s->n_sections, (place_from){0});
  if (a == FOUND) keep(s);
  take_back(s, 0);
  return a;
}

static bool set_up_lives(searcher *s) {
  if (s->lives) return true;
  s->lives = calloc(s->count, sizeof *s->lives);
  if (!s->lives) return false;
  for (uint32_t i = 0; i < s->count; i++)
    s->lives[i] = (sn__life){s->items[i].bytes / s->grain, s->items[i].lower, s->items[i].upper};
  return true;
}

static bool set_up_skyline(searcher *s) {
  if (!s->sky && set_up_lives(s)) s->sky = sn__skyline_new(s->lives, s->count, s->n_sections);
  return s->sky != NULL;
}

static bool set_up_sweep(searcher *s) {
  if (!s->sweep && set_up_lives(s)) s->sweep = sn__sweep_new(s->lives, s->count, s->n_sections);
  return s->sweep != NULL;
}

static bool may_look_on(void *s) {
  return may_look(s);
}

/* Offsets in grains. */
static answer keep_grains(searcher *s) {
  for (uint32_t i = 0; i < s->count; i++) s->offset[i] *= s->grain;
  keep(s);
  return FOUND;
}

/* Tries of a beam, which prove nothing; */
static answer try_skyline(searcher *s, uint64_t capacity, uint64_t nodes) {
  if (s->count > SN__SKYLINE_MOST || s->no_memory) return STOPPED;
  if (!set_up_skyline(s)) {
    s->no_memory = true;
    return STOPPED;
  }
  s->most_nodes = sn_min(s->nodes + nodes, s->exact->most);
  while (s->nodes < s->most_nodes && !s->stopped) {
    if (sn__skyline_try(s->sky, capacity / s->grain, may_look_on, s, s->offset)) return keep_grains(s);
  }
  return STOPPED;
}

/* and of the other. */
static answer try_sweep(searcher *s, uint64_t capacity, uint64_t nodes) {
  if (s->count > SN__SWEEP_MOST || s->no_memory) return STOPPED;
  if (!set_up_sweep(s)) {
    s->no_memory = true;
    return STOPPED;
  }
  if (!sn__sweep_suits(s->sweep, capacity / s->grain)) return STOPPED;
  s->most_nodes = sn_min(s->nodes + nodes, s->exact->most);
  while (s->nodes < s->most_nodes && !s->stopped)
    if (sn__sweep_try(s->sweep, capacity / s->grain, may_look_on, s, s->offset)) return keep_grains(s);
  return STOPPED;
}

static answer try_capacity(searcher *s, uint64_t capacity, uint64_t nodes) {
  answer a = STOPPED;
  for (int order = 0; order < ORDERS && a == STOPPED; order++) a = try_order(s, order, capacity, nodes);
  if (a == STOPPED) a = try_skyline(s, capacity, 4 * nodes);
  if (a == STOPPED) a = try_sweep(s, capacity, 16 * nodes);
  if (a == NONE) s->floor = capacity - capacity % s->grain + s->grain;
  return a;
}

static bool may_go_on(const searcher *s) {
  return s->nodes < s->exact->most && !s->stopped && !s->no_memory;
}

/* The floor first, then halfway to the best from what could not be decided. */
static void search_least(searcher *s) {
  for (uint64_t nodes = NODES_A_TRY; s->floor < s->top && may_go_on(s); nodes *= 2) {
    uint64_t low = s->floor, capacity = low;
    while (low < s->top && may_go_on(s)) {
      answer a = try_capacity(s, capacity, nodes);
      if (a != FOUND) low = sn_max(s->floor, capacity + s->grain);
      if (low < s->top) capacity = low + (s->top - low) / 2 / s->grain * s->grain;
    }
  }
}

static void search_capacity(searcher *s, uint64_t capacity) {
  for (uint64_t nodes = NODES_A_TRY; s->floor <= capacity && s->top > capacity && may_go_on(s); nodes *= 2)
    try_capacity(s, capacity, nodes);
}

/* ---- from blocks to items ---- */

/* A block among all of the caller's, or an item among all ends. */
typedef struct entry {
  uint64_t time;
  uint32_t number;
} entry;

static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Cuts the time of items by begin into sections; `ends` are theirs, sorted. Returns how many of them overlap, pair by
 * pair. */
static size_t cut_sections(searcher *s, const entry *begins, const entry *ends) {
  uint32_t section = 0, over = 0;
  size_t pairs = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    uint32_t before = over;
    for (; ends[over].time <= begins[i].time; over++) s->items[ends[over].number].upper = section + 1;
    section += over > before;
    s->items[i].lower = section;
    pairs += i - over;
  }
  for (; over < s->count; over++) s->items[ends[over].number].upper = section + 1;
  s->n_sections = section + 1;
  return pairs;
}

static bool list_members(searcher *s) {
  size_t n = 0;
  s->first_member = calloc((size_t)s->n_sections + 2, sizeof *s->first_member);
  s->left = calloc(s->n_sections, sizeof *s->left);
  if (!s->first_member || !s->left) return false;
  uint32_t *first = s->first_member + 1; /* of a section, while the ones before it are filled */
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++, n++) {
      if (t + 1 < s->n_sections) first[t + 1]++;
      s->left[t] += s->items[i].bytes;
    }
  s->members = calloc(n + 1, sizeof *s->members);
  if (!s->members) return false;
  for (uint32_t t = 1; t < s->n_sections; t++) first[t] += first[t - 1];
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++) s->members[first[t]++] = i;
  return true;
}

/* What the orders look at, the first first. */
typedef struct traits {
  double keys[3];
  uint32_t item;
} traits;

static int compare_traits(const void *a, const void *b) {
  const traits *x = a, *y = b;
  for (int k = 0; k < 3; k++)
    if (x->keys[k] != y->keys[k]) return x->keys[k] > y->keys[k] ? -1 : 1;
  return x->item < y->item ? -1 : x->item > y->item;
}

/* Descending: by length of life, size, both, the largest load over it, late ends and early begins. */
static bool rank_items(searcher *s, const sn_block *blocks) {
  enum { WIDTH, AREA, CROWD, SIZE, LATE, EARLY, KEYS };
  static const int keys[ORDERS][3] = {{WIDTH, AREA, CROWD}, {CROWD, AREA, WIDTH}, {CROWD, WIDTH, AREA},
                                      {SIZE, CROWD, AREA},  {CROWD, EARLY, AREA}, {CROWD, LATE, AREA}};
  traits *sorted = calloc(s->count, sizeof *sorted);
  if (!sorted) return false;
  for (int o = 0; o < ORDERS; o++) {
    for (uint32_t i = 0; i < s->count; i++) {
      const sn_block *b = &blocks[s->items[i].block];
      double of[KEYS] = {[WIDTH] = (double)(b->upper - b->lower),
                         [SIZE] = (double)b->bytes,
                         [LATE] = (double)b->upper,
                         [EARLY] = -(double)b->lower};
      of[AREA] = of[WIDTH] * of[SIZE];
      for (uint32_t t = s->items[i].lower; t < s->items[i].upper; t++)
        if ((double)s->left[t] > of[CROWD]) of[CROWD] = (double)s->left[t];
      sorted[i] = (traits){{of[keys[o][0]], of[keys[o][1]], of[keys[o][2]]}, i};
    }
    qsort(sorted, s->count, sizeof *sorted, compare_traits);
    for (uint32_t r = 0; r < s->count; r++) s->items[sorted[r].item].rank[o] = r + 1;
  }
  free(sorted);
  return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b > 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Items are `begins`, in this order; `ends` has room for as many. */
static bool set_up(searcher *s, const sn_block *blocks, const entry *begins, entry *ends) {
  size_t n = (size_t)s->count + 1;
  s->items = calloc(n, sizeof *s->items);
  s->offset = calloc(n, sizeof *s->offset);
  s->lowest = calloc(n, sizeof *s->lowest);
  s->placed = calloc(n, sizeof *s->placed);
  s->next = calloc(n, sizeof *s->next);
  s->previous = calloc(n, sizeof *s->previous);
  s->puts = calloc(n, sizeof *s->puts);
  s->spare = calloc(n, sizeof *s->spare);
  s->spare_bytes = calloc(n, sizeof *s->spare_bytes);
  s->best = calloc(n, sizeof *s->best);
  if (!s->items || !s->offset || !s->lowest || !s->placed || !s->next || !s->previous || !s->puts || !s->spare ||
      !s->spare_bytes || !s->best)
    return false;
  for (uint32_t i = 0; i < s->count; i++) {
    const sn_block *b = &blocks[begins[i].number];
    s->items[i] = (item){.bytes = b->bytes, .block = begins[i].number};
    s->grain = common_divisor(s->grain, b->bytes);
    ends[i] = (entry){b->upper, i};
  }
  for (uint32_t i = 0; i <= s->count; i++) {
    s->next[i] = i < s->count ? i + 1 : 0;
    s->previous[i] = i > 0 ? i - 1 : s->count;
  }
  qsort(ends, s->count, sizeof *ends, compare_entries);
  s->trail = calloc(cut_sections(s, begins, ends) + 1, sizeof *s->trail);
  return s->trail && list_members(s) && rank_items(s, blocks);
}

static void clear(searcher *s) {
  void *const parts[] = {s->items,  s->first_member, s->members,     s->offset,   s->lowest,
                         s->placed, s->next,         s->left,        s->previous, s->puts,
                         s->trail,  s->spare,        s->spare_bytes, s->best,     s->lives};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  sn__skyline_free(s->sky);
  sn__sweep_free(s->sweep);
}

/* ---- problems that share no time ---- */

typedef struct question {
  const sn_block *blocks;
  const sn_exact_limits *limits;
  uint64_t *offsets;
  sn_exact *exact;
  entry *begins, *ends;
  uint64_t enough; /* no problem needs to take less than this */
  uint64_t work;   /* left of SN_EXACT_WORK */
} question;

/* What a node among `n` blocks that hang together takes of it. */
static uint64_t work_of_node(uint32_t n) {
  return sn_max((uint64_t)n * n, SN_EXACT_WORK / SN_EXACT_NODES);
}

/* One problem, of `n` blocks; what it takes then in *top. */
static sn_status search_one(question *q, uint32_t first, uint32_t n, uint64_t *top, sn_err *err) {
  const uint64_t before = q->exact->nodes;
  searcher s = {.count = n, .nodes = q->exact->nodes, .limits = q->limits, .exact = q->exact};
  *top = 0;
  for (uint32_t i = first; i < first + n; i++)
    *top = sn_max(*top, q->offsets[q->begins[i].number] + q->blocks[q->begins[i].number].bytes);
  if (*top <= q->enough) return SN_OK;
  if (n > SN_EXACT_MOST)
    return sn_fail(err, SN_BAD_INPUT, "%u blocks hang together in time, and an exact search takes at most %d", n,
                   SN_EXACT_MOST);
  sn_status status = set_up(&s, q->blocks, q->begins + first, q->ends) ? SN_OK : sn_fail_memory(err);
  if (status == SN_OK) {
    q->exact->most = q->limits->nodes > 0 ? q->limits->nodes : s.nodes + q->work / work_of_node(n);
    s.top = *top;
    if (q->limits->capacity > 0) {
      search_capacity(&s, q->enough);
    } else {
      s.floor = q->enough;
      search_least(&s);
    }
    q->work -= sn_min(q->work, (s.nodes - before) * work_of_node(n));
    q->exact->nodes = s.nodes;
    q->exact->floor = sn_max(q->exact->floor, s.floor);
    for (uint32_t i = 0; s.top < *top && i < n; i++) q->offsets[s.items[i].block] = s.best[i];
    *top = s.top;
    if (q->limits->capacity == 0) q->enough = sn_max(q->enough, *top);
    if (s.no_memory) status = sn_fail_memory(err);
  }
  clear(&s);
  return status;
}

static sn_status search_each(question *q, uint32_t count, sn_packing *packing, sn_err *err) {
  uint64_t top = 0, highest = 0;
  sn_status status = SN_OK;
  for (uint32_t i = 0, n = 0; i < count && status == SN_OK; i += n) {
    uint64_t upper = 0;
    for (n = 0; i + n < count && (n == 0 || q->begins[i + n].time < upper); n++)
      upper = sn_max(upper, q->blocks[q->begins[i + n].number].upper);
    status = search_one(q, i, n, &top, err);
    highest = sn_max(highest, top);
  }
  if (status == SN_OK) packing->bytes = highest;
  return status;
}

sn_status sn_pack_exact(const sn_block *blocks, uint32_t count, const sn_exact_limits *limits, uint64_t *offsets,
                        sn_packing *packing, sn_exact *exact, sn_err *err) {
  bool hopeless = limits->capacity > 0 && limits->capacity < packing->lower_bound;
  *exact = (sn_exact){.floor = packing->lower_bound};
  if (hopeless || packing->bytes <= sn_max(packing->lower_bound, limits->capacity)) return SN_OK;
  question q = {.blocks = blocks,
                .limits = limits,
                .offsets = offsets,
                .exact = exact,
                .work = SN_EXACT_WORK,
                .enough = sn_max(packing->lower_bound, limits->capacity),
                .begins = calloc((size_t)count + 1, sizeof *q.begins),
                .ends = calloc((size_t)count + 1, sizeof *q.ends)};
  uint32_t n = 0;
  for (uint32_t b = 0; q.begins && b < count; b++)
    if (blocks[b].lower < blocks[b].upper && blocks[b].bytes > 0) q.begins[n++] = (entry){blocks[b].lower, b};
  if (q.begins) qsort(q.begins, n, sizeof *q.begins, compare_entries);
  sn_status status = q.begins && q.ends ? search_each(&q, n, packing, err) : sn_fail_memory(err);
  free(q.begins);
  free(q.ends);
  return status;
}
