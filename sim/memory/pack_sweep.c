/* Pack by a sweep over time; see the header. Offsets and sizes are in the unit of the capacity, as 16 bits. */
#include "sim/memory/pack_sweep.h"

#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  NARROWEST = 64,
  WIDEST = 8192,
  CHOICES = 20,   /* an arrangement, on average */
  AHEAD = 12,     /* sections that are looked at, */
  CHECKS = 6,     /* of which the fullest are looked into */
  WEIGHTS = 3,    /* kinds of them */
  BUCKETS = 4096, /* that choices are sorted into */
  DIGESTS = 1 << 15,
  WORDS = SN__SWEEP_LEVELS / 64 + 1
};

typedef struct arrangement {
  uint16_t block[SN__SWEEP_LIVE], offset[SN__SWEEP_LIVE]; /* of what lives, by offset */
  uint32_t count, last;                                   /* what was placed last, in the history */
  double tension;
} arrangement;

/* A block that was placed, and what was before it. */
typedef struct placed {
  uint32_t before;
  uint16_t block, offset;
} placed;

/* An arrangement with a block more, ahead of its number `at`. */
typedef struct choice {
  double tension, key;
  uint32_t from;
  uint16_t at, offset;
} choice;

/* A section ahead of a block's, and to every gap the most that blocks to come fill of it. */
typedef struct check {
  uint32_t section;
  uint16_t *fill;
} check;

/* One way that time runs. */
typedef struct run {
  uint16_t *begin, *end, *order; /* per block; its place in time */
  check *checks;                 /* CHECKS a place, */
  uint8_t *n_checks;             /* of which so many are there */
  uint16_t *fills;
  uint64_t *room; /* per section, at `capacity` */
  uint64_t capacity;
} run;

struct sn__sweep {
  const sn__life *lives;
  uint32_t count, n_sections, most_live, tries;
  run runs[2];
  arrangement *now, *next;
  choice *choices;
  uint32_t *sorted, n_now, n_choices, n_placed;
  placed *history;
  double *weight; /* per distance */
  uint64_t digests[DIGESTS], draw;
  /* of this try */
  const run *run;
  uint16_t capacity;
  uint32_t width;
  double chance;
};

#define NOTHING UINT32_MAX

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

/* From 0 to before 1. */
static double draw(sn__sweep *s) {
  s->draw ^= s->draw << 13;
  s->draw ^= s->draw >> 7;
  s->draw ^= s->draw << 17;
  return (double)(s->draw >> 11) / 9007199254740992.0;
}

/* ---- an arrangement ---- */

static uint16_t size_of(const sn__sweep *s, uint32_t block) {
  return (uint16_t)s->lives[block].bytes;
}

/* Where what lies at number `i` begins and ends; the outside lies behind the last. */
static uint16_t low_of(const sn__sweep *s, const arrangement *a, uint32_t i) {
  return i < a->count ? a->offset[i] : s->capacity;
}

static uint32_t end_of(const sn__sweep *s, const arrangement *a, uint32_t i) {
  return i < a->count ? s->run->end[a->block[i]] : s->n_sections;
}

static uint16_t high_of(const sn__sweep *s, const arrangement *a, uint32_t i) {
  return (uint16_t)(a->offset[i] + size_of(s, a->block[i]));
}

static double between(const sn__sweep *s, uint32_t end, uint32_t other) {
  return s->weight[end > other ? end - other : other - end];
}

static double tension_of(const sn__sweep *s, const arrangement *a, uint32_t section) {
  uint32_t below = s->n_sections;
  uint16_t at = 0;
  double tension = 0;
  for (uint32_t i = 0; i <= a->count; i++) {
    uint32_t above = end_of(s, a, i);
    bool gap = low_of(s, a, i) > at;
    tension += gap ? between(s, below, section) + between(s, above, section) : between(s, below, above);
    below = above;
    if (i < a->count) at = high_of(s, a, i);
  }
  return tension;
}

static void drop_ended(const sn__sweep *s, arrangement *a, uint32_t section) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    if (s->run->end[a->block[i]] <= section) continue;
    a->block[kept] = a->block[i];
    a->offset[kept++] = a->offset[i];
  }
  a->count = kept;
  a->tension = tension_of(s, a, section);
}

/* Whether the gaps of a section ahead can be filled but for its room. */
static bool fills(const sn__sweep *s, const arrangement *a, const check *c) {
  uint64_t waste = 0;
  uint16_t at = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    if (s->run->end[a->block[i]] <= c->section) continue;
    uint16_t gap = (uint16_t)(a->offset[i] - at);
    waste += (uint64_t)(gap - c->fill[gap]);
    at = high_of(s, a, i);
  }
  uint16_t gap = (uint16_t)(s->capacity - at);
  return waste + (uint64_t)(gap - c->fill[gap]) <= s->run->room[c->section];
}

static bool is_hopeful(const sn__sweep *s, const arrangement *a, uint32_t place) {
  for (uint32_t i = 0; i < s->run->n_checks[place]; i++)
    if (!fills(s, a, &s->run->checks[(size_t)place * CHECKS + i])) return false;
  return true;
}

/* The same for all that have the same ends at the same offsets, or upside down. */
static uint64_t digest_of(const sn__sweep *s, const arrangement *a) {
  uint64_t up = 0, down = 0;
  for (uint32_t i = 0, next; i < a->count; i = next) {
    uint16_t low = a->offset[i], high = high_of(s, a, i);
    uint32_t end = end_of(s, a, i);
    for (next = i + 1; next < a->count && a->offset[next] == high && end_of(s, a, next) == end; next++)
      high = high_of(s, a, next);
    up += mix((uint64_t)low << 40 | (uint64_t)high << 20 | end);
    down += mix((uint64_t)(s->capacity - high) << 40 | (uint64_t)(s->capacity - low) << 20 | end);
  }
  return sn_min(up, down) | 1;
}

static bool is_new(sn__sweep *s, const arrangement *a) {
  uint64_t digest = digest_of(s, a);
  uint32_t at = (uint32_t)(digest >> 20) % DIGESTS;
  for (uint32_t i = 0; i < 16; i++, at = (at + 1) % DIGESTS) {
    if (s->digests[at] == digest) return false;
    if (s->digests[at] != 0) continue;
    s->digests[at] = digest;
    return true;
  }
  return true; /* too many to remember */
}

/* ---- one block more ---- */

static void add_choice(sn__sweep *s, uint32_t from, uint32_t at, uint16_t offset, double tension) {
  if (s->n_choices == s->width * CHOICES) return;
  s->choices[s->n_choices++] =
      (choice){tension, s->chance > 0 ? tension + s->chance * draw(s) : tension, from, (uint16_t)at, offset};
}

/* At either side of each gap that takes it. */
static void add_choices(sn__sweep *s, uint32_t from, uint32_t block, uint32_t section) {
  const arrangement *a = &s->now[from];
  const uint32_t end = s->run->end[block];
  const uint16_t size = size_of(s, block);
  uint32_t below = s->n_sections;
  uint16_t at = 0;
  if (a->count == SN__SWEEP_LIVE) return;
  for (uint32_t i = 0; i <= a->count; i++) {
    const uint32_t above = end_of(s, a, i);
    const uint16_t gap = (uint16_t)(low_of(s, a, i) - at);
    const double rest = a->tension - between(s, below, section) - between(s, above, section),
                 open = s->weight[end - section];
    if (gap == size) add_choice(s, from, i, at, rest + between(s, below, end) + between(s, end, above));
    if (gap > size) {
      add_choice(s, from, i, at, rest + between(s, below, end) + open + between(s, above, section));
      add_choice(s, from, i, (uint16_t)(at + gap - size),
                 rest + between(s, below, section) + open + between(s, end, above));
    }
    below = above;
    if (i < a->count) at = high_of(s, a, i);
  }
}

/* By key, as near as buckets tell them apart. */
static void sort_choices(sn__sweep *s) {
  uint32_t first[BUCKETS + 1] = {0};
  double low = s->choices[0].key, high = low;
  for (uint32_t i = 1; i < s->n_choices; i++) {
    if (s->choices[i].key < low) low = s->choices[i].key;
    if (s->choices[i].key > high) high = s->choices[i].key;
  }
  const double scale = (BUCKETS - 1) / (high - low + 1e-9);
  for (uint32_t i = 0; i < s->n_choices; i++) first[(uint32_t)((s->choices[i].key - low) * scale) + 1]++;
  for (uint32_t b = 0; b < BUCKETS; b++) first[b + 1] += first[b];
  for (uint32_t i = 0; i < s->n_choices; i++) s->sorted[first[(uint32_t)((s->choices[i].key - low) * scale)]++] = i;
}

static void take(const sn__sweep *s, const choice *c, uint16_t block, arrangement *to) {
  const arrangement *a = &s->now[c->from];
  const uint32_t at = c->at, behind = a->count - at;
  memcpy(to->block, a->block, at * sizeof *a->block);
  memcpy(to->offset, a->offset, at * sizeof *a->offset);
  memcpy(to->block + at + 1, a->block + at, behind * sizeof *a->block);
  memcpy(to->offset + at + 1, a->offset + at, behind * sizeof *a->offset);
  to->block[at] = block;
  to->offset[at] = c->offset;
  to->count = a->count + 1;
  to->tension = c->tension;
}

/* False: no arrangement takes the block, or nobody may look. */
static bool go_on(sn__sweep *s, uint32_t place, bool (*may_look)(void *), void *context) {
  const uint16_t block = s->run->order[place];
  uint32_t kept = 0;
  s->n_choices = 0;
  for (uint32_t i = 0; i < s->n_now; i++) add_choices(s, i, block, s->run->begin[block]);
  if (s->n_choices == 0) return false;
  sort_choices(s);
  memset(s->digests, 0, sizeof s->digests);
  for (uint32_t i = 0; i < s->n_choices && kept < s->width; i++) {
    const choice *c = &s->choices[s->sorted[i]];
    arrangement *to = &s->next[kept];
    take(s, c, block, to);
    if (!is_new(s, to) || !is_hopeful(s, to, place)) continue;
    if (kept % SN__SWEEP_LOOKS == 0 && !may_look(context)) return false;
    s->history[s->n_placed] = (placed){s->now[c->from].last, block, c->offset};
    to->last = s->n_placed++;
    kept++;
  }
  arrangement *before = s->now;
  s->now = s->next;
  s->next = before;
  s->n_now = kept;
  return kept > 0;
}

/* ---- a way that time runs ---- */

static uint64_t *shift_in(uint64_t *sums, uint32_t size) {
  const uint32_t words = size / 64, bits = size % 64;
  for (uint32_t w = WORDS; w-- > words;) {
    sums[w] |= sums[w - words] << bits;
    if (bits > 0 && w > words) sums[w] |= sums[w - words - 1] >> (64 - bits);
  }
  return sums;
}

/* Of blocks behind `place` that live in a section: to each gap the most that sizes of them add up to. */
static void fill_check(const sn__sweep *s, const run *r, uint32_t place, check *c, uint32_t capacity) {
  uint64_t sums[WORDS] = {1};
  uint16_t most = 0;
  for (uint32_t p = place + 1; p < s->count && r->begin[r->order[p]] <= c->section; p++)
    if (r->end[r->order[p]] > c->section) shift_in(sums, size_of(s, r->order[p]));
  for (uint32_t gap = 0; gap <= capacity; gap++) {
    if (sums[gap / 64] >> gap % 64 & 1) most = (uint16_t)gap;
    c->fill[gap] = most;
  }
}

/* The sections from a place on with the least room, of those that have next to none. */
static void choose_checks(const sn__sweep *s, const run *r, uint32_t place, uint32_t capacity) {
  check *checks = &r->checks[(size_t)place * CHECKS];
  uint32_t section = r->begin[r->order[place]], n = 0;
  for (uint32_t t = section; t < s->n_sections && t <= section + AHEAD; t++) {
    uint32_t at = n;
    if (r->room[t] > capacity / 16) continue;
    while (at > 0 && r->room[checks[at - 1].section] > r->room[t]) at--;
    if (at == CHECKS) continue;
    n = n < CHECKS ? n + 1 : n;
    for (uint32_t i = n - 1; i > at; i--) checks[i].section = checks[i - 1].section;
    checks[at].section = t;
  }
  r->n_checks[place] = (uint8_t)n;
  for (uint32_t i = 0; i < n; i++) {
    checks[i].fill = r->fills + ((size_t)place * CHECKS + i) * (capacity + 1);
    fill_check(s, r, place, &checks[i], capacity);
  }
}

static void set_capacity(const sn__sweep *s, run *r, uint32_t capacity) {
  if (r->capacity == capacity) return;
  r->capacity = capacity;
  for (uint32_t t = 0; t < s->n_sections; t++) r->room[t] = capacity;
  for (uint32_t b = 0; b < s->count; b++)
    for (uint32_t t = r->begin[b]; t < r->end[b]; t++) r->room[t] -= s->lives[b].bytes;
  for (uint32_t p = 0; p < s->count; p++) choose_checks(s, r, p, capacity);
}

/* By begin, of one the longest, then the largest. */
static bool comes_before(const sn__sweep *s, const run *r, uint16_t a, uint16_t b) {
  if (r->begin[a] != r->begin[b]) return r->begin[a] < r->begin[b];
  if (r->end[a] != r->end[b]) return r->end[a] > r->end[b];
  if (s->lives[a].bytes != s->lives[b].bytes) return s->lives[a].bytes > s->lives[b].bytes;
  return a < b;
}

static bool make_run(const sn__sweep *s, run *r, bool backwards) {
  r->begin = calloc(s->count, sizeof *r->begin);
  r->end = calloc(s->count, sizeof *r->end);
  r->order = calloc(s->count, sizeof *r->order);
  r->checks = calloc((size_t)s->count * CHECKS, sizeof *r->checks);
  r->n_checks = calloc(s->count, sizeof *r->n_checks);
  r->room = calloc(s->n_sections, sizeof *r->room);
  r->fills =
      calloc((size_t)s->count * CHECKS * (SN__SWEEP_LEVELS + 1), sizeof *r->fills); /* touched as far as needed */
  if (!r->begin || !r->end || !r->order || !r->checks || !r->n_checks || !r->room || !r->fills) return false;
  for (uint32_t b = 0; b < s->count; b++) {
    r->begin[b] = (uint16_t)(backwards ? s->n_sections - s->lives[b].upper : s->lives[b].lower);
    r->end[b] = (uint16_t)(backwards ? s->n_sections - s->lives[b].lower : s->lives[b].upper);
    uint32_t at = b;
    for (; at > 0 && comes_before(s, r, (uint16_t)b, r->order[at - 1]); at--) r->order[at] = r->order[at - 1];
    r->order[at] = (uint16_t)b;
  }
  return true;
}

/* ---- tries ---- */

static double weight_of(uint32_t kind, uint32_t distance) {
  const double fourth = sqrt(sqrt((double)distance));
  if (distance == 0) return 0;
  return kind == 0 ? fourth * sqrt(fourth) : kind == 1 ? 1 : fourth;
}

/* Both ways of time by each weight, then all of them again twice as wide. */
static void draw_try(sn__sweep *s) {
  static const double chances[] = {0.5, 0.2, 2, 1};
  const uint32_t round = s->tries / (2 * WEIGHTS), kind = s->tries / 2 % WEIGHTS;
  s->run = &s->runs[s->tries % 2];
  s->width = NARROWEST;
  for (uint32_t i = 0; i < round && s->width < WIDEST; i++) s->width *= 2;
  for (uint32_t d = 0; d <= s->n_sections; d++) s->weight[d] = weight_of(kind, d);
  s->chance = round > 0 ? chances[s->tries % 4] * weight_of(kind, 10) : 0;
  s->tries++;
}

static bool make_room(sn__sweep *s) {
  s->now = calloc(WIDEST, sizeof *s->now);
  s->next = calloc(WIDEST, sizeof *s->next);
  s->choices = calloc((size_t)WIDEST * CHOICES, sizeof *s->choices);
  s->sorted = calloc((size_t)WIDEST * CHOICES, sizeof *s->sorted);
  s->history = calloc((size_t)WIDEST * s->count, sizeof *s->history);
  s->weight = calloc((size_t)s->n_sections + 1, sizeof *s->weight);
  return s->now && s->next && s->choices && s->sorted && s->history && s->weight;
}

static void count_live(sn__sweep *s) {
  for (uint32_t t = 0; t < s->n_sections; t++) {
    uint32_t live = 0;
    for (uint32_t b = 0; b < s->count; b++) live += s->lives[b].lower <= t && t < s->lives[b].upper;
    s->most_live = live > s->most_live ? live : s->most_live;
  }
}

sn__sweep *sn__sweep_new(const sn__life *lives, uint32_t count, uint32_t n_sections) {
  assert(count > 0 && count <= SN__SWEEP_MOST && n_sections > 0);
  sn__sweep *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->lives = lives;
  s->count = count;
  s->n_sections = n_sections;
  s->draw = UINT64_C(88172645463325252);
  count_live(s);
  if (make_room(s) && make_run(s, &s->runs[0], false) && make_run(s, &s->runs[1], true)) return s;
  sn__sweep_free(s);
  return NULL;
}

bool sn__sweep_suits(const sn__sweep *s, uint64_t capacity) {
  return capacity <= SN__SWEEP_LEVELS && s->most_live <= SN__SWEEP_LIVE;
}

bool sn__sweep_try(sn__sweep *s, uint64_t capacity, bool (*may_look)(void *context), void *context, uint64_t *offsets) {
  uint32_t section = NOTHING;
  assert(sn__sweep_suits(s, capacity));
  draw_try(s);
  set_capacity(s, &s->runs[s->run - s->runs], (uint32_t)capacity);
  s->capacity = (uint16_t)capacity;
  s->now[0] = (arrangement){.last = NOTHING};
  s->n_now = 1;
  s->n_placed = 0;
  for (uint32_t place = 0; place < s->count; place++) {
    const uint32_t begin = s->run->begin[s->run->order[place]];
    for (uint32_t i = 0; i < s->n_now && begin != section; i++) drop_ended(s, &s->now[i], begin);
    section = begin;
    if (!go_on(s, place, may_look, context)) return false;
  }
  for (uint32_t h = s->now[0].last; h != NOTHING; h = s->history[h].before)
    offsets[s->history[h].block] = s->history[h].offset;
  return true;
}

static void clear_run(run *r) {
  void *const parts[] = {r->begin, r->end, r->order, r->checks, r->n_checks, r->fills, r->room};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

void sn__sweep_free(sn__sweep *s) {
  if (!s) return;
  void *const parts[] = {s->now, s->next, s->choices, s->sorted, s->history, s->weight};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  clear_run(&s->runs[0]);
  clear_run(&s->runs[1]);
  free(s);
}
