/* Pack's beam: blocks in the order of their begins, on from the best few ways to lay those before (beam search); see
 * pack.h.
 *
 * A block lies at the bottom or at the top of a hole. Of two ways the better one has
 *
 *   few and large holes        the sum of their roots
 *   few holes later, too       along the addresses, the rest of lives rises and falls little: who lie side by side and
 *                              end together leave one hole, not two
 *   had that when blocks came  of each, how far its end was from that of the block it was put against, which fades
 *
 * How much each weighs no one knows before: every try draws that anew, of three values each, and is over where no way
 * is left within the capacity; what was tried before needs not be tried again. Most fail early. A try is O(blocks x
 * WIDTH x (blocks that live at once)); what a block is worth by the rest of its life is asked once for all ways, as the
 * same blocks live in each, and what a hole costs when it comes to be.
 */
#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16, MOST_LOOKS = 30000000 };

/* Of what is drawn for a try, and how many there are. */
enum { HOLE, LIFE, MATCH, WALL, FADE, HALF, WEIGHTS, DRAWS = 3 * 3 * 3 * 3 * 3 * 3 };

#define ENDED (-1.0)

/* A block that lives, or one of the two walls. */
typedef struct segment {
  uint64_t offset, end;
  double hole;    /* below it: its score; 0: there is none */
  uint32_t block; /* a wall: as many as there are blocks */
} segment;

/* The blocks that live now, by offset. */
typedef struct way {
  segment *segments;
  uint32_t n, number;
  double matched; /* what remains of how blocks were put */
  double score;   /* of its holes and lives */
  uint64_t digest;
} way;

/* To put the block that comes next at `offset`. */
typedef struct choice {
  double score, matched;
  uint64_t offset, digest;
  uint32_t from, above; /* the way, and in it the segment that comes above the block */
} choice;

typedef struct weights {
  double hole, life, match, wall, fade;
  double half; /* a life with so much to come is half as good as one without end */
} weights;

typedef struct beam {
  sn__packer *packer;
  uint64_t capacity;
  weights w;
  way ways[2][WIDTH]; /* in turns */
  uint32_t n_ways;
  choice choices[WIDTH]; /* the best, sorted */
  uint32_t n_choices;
  segment *segments; /* of all ways */
  double *rest;      /* per block that lives, and of the walls: of its life, 0 .. 1, as it weighs; ENDED */
  choice *trail;     /* per block in order, WIDTH of them */
  uint64_t looks;
  uint64_t in_vain[DRAWS]; /* looks of a try with those values that failed; 0: there was none */
} beam;

static double saturate(double value, double half) {
  return value / (value + half);
}

/* Values of 0 .. 2, as one number. Where lives weigh nothing, holes and matches twice as much each are the same. */
static uint32_t draw_values(sn__packer *p, uint32_t values[WEIGHTS]) {
  uint32_t number = 0;
  for (int w = 0; w < WEIGHTS; w++) values[w] = (uint32_t)sn__pack_roll(p, 3);
  uint32_t both = values[HOLE] < values[MATCH] ? values[HOLE] : values[MATCH];
  if (values[LIFE] > 0) both = 0;
  values[HOLE] -= both;
  values[MATCH] -= both;
  for (int w = 0; w < WEIGHTS; w++) number = number * 3 + values[w];
  return number;
}

static weights weights_of(const uint32_t values[WEIGHTS]) {
  static const double given[WEIGHTS][3] = {
      [HOLE] = {0.5, 1, 2},   [LIFE] = {0, 0.1, 0.3},     [MATCH] = {0.125, 0.25, 0.5},
      [WALL] = {0, 0.3, 0.6}, [FADE] = {0.9, 0.95, 0.99}, [HALF] = {20, 60, 180},
  };
  return (weights){given[HOLE][values[HOLE]], given[LIFE][values[LIFE]], given[MATCH][values[MATCH]],
                   given[WALL][values[WALL]], given[FADE][values[FADE]], given[HALF][values[HALF]]};
}

static uint64_t digest_of(uint64_t offset, uint32_t block) {
  uint64_t d = (offset ^ ((uint64_t)block << 32)) * UINT64_C(0x9e3779b97f4a7c15);
  return (d ^ (d >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static double hole_score(const beam *b, uint64_t bytes) {
  return b->w.hole * sqrt((double)bytes / (double)b->capacity);
}

/* Of two neighbours with that hole between them, or none. */
static double seam_score(double below, double above, double hole) {
  return hole > 0 ? below + above + hole : fabs(below - above);
}

/* How badly a block goes with the one it is put against. */
static double mismatch(const beam *b, const segment *against, uint32_t upper) {
  const sn__packer *p = b->packer;
  if (against->block == p->count) return b->w.match * b->w.wall;
  uint32_t other = p->upper[against->block];
  double apart = other > upper ? other - upper : upper - other;
  return b->w.match * saturate(apart, b->w.half);
}

/* What is left of the lives of all blocks by `now`; true where one has ended. The first and the last are walls. */
static bool grow_older(beam *b, const way *y, uint32_t now) {
  bool ended = false;
  for (uint32_t i = 1; i + 1 < y->n; i++) {
    uint32_t block = y->segments[i].block, upper = b->packer->upper[block];
    b->rest[block] = upper > now ? b->w.life * saturate(upper - now, b->w.half) : ENDED;
    ended |= upper <= now;
  }
  return ended;
}

/* Takes those away that have ended, and makes one of the holes around them. */
static void drop_ended(const beam *b, way *y) {
  segment *s = y->segments;
  uint32_t n = 1;
  bool dropped = false;
  for (uint32_t i = 1; i < y->n; i++) {
    if (b->rest[s[i].block] == ENDED) {
      y->digest -= digest_of(s[i].offset, s[i].block);
      dropped = true;
      continue;
    }
    s[n] = s[i];
    if (dropped) s[n].hole = hole_score(b, s[n].offset - s[n - 1].end);
    dropped = false;
    n++;
  }
  y->n = n;
}

static void score(const beam *b, way *y) {
  double below = b->rest[y->segments[0].block];
  y->score = 0;
  for (uint32_t i = 1; i < y->n; i++) {
    double above = b->rest[y->segments[i].block];
    y->score += seam_score(below, above, y->segments[i].hole);
    below = above;
  }
}

/* Among the best, if it is one, and no better one comes to the same; of equal ones the first stays. */
static void offer(beam *b, choice c) {
  uint32_t at = b->n_choices;
  if (at == WIDTH && c.score >= b->choices[WIDTH - 1].score) return;
  for (uint32_t i = 0; i < b->n_choices; i++) {
    if (b->choices[i].digest != c.digest) continue;
    if (b->choices[i].score <= c.score) return;
    memmove(&b->choices[i], &b->choices[i + 1], (--b->n_choices - i) * sizeof c);
    break;
  }
  b->n_choices -= b->n_choices == WIDTH;
  for (at = b->n_choices++; at > 0 && b->choices[at - 1].score > c.score; at--) b->choices[at] = b->choices[at - 1];
  b->choices[at] = c;
}

/* Both ends of a hole that is large enough, below segment `i`. */
static void offer_hole(beam *b, const way *y, uint32_t i, uint32_t block, uint64_t left) {
  const segment *low = &y->segments[i - 1], *high = &y->segments[i];
  uint32_t upper = b->packer->upper[block];
  double rest = b->rest[block], under = b->rest[low->block], over = b->rest[high->block], hole = hole_score(b, left),
         others = y->score - seam_score(under, over, high->hole);
  double below = mismatch(b, low, upper), above = mismatch(b, high, upper);
  if (left == 0) below += above - b->w.match / 2;
  choice c = {.matched = y->matched + below, .offset = low->end, .from = y->number, .above = i};
  c.score = others + (seam_score(under, rest, 0) + seam_score(rest, over, hole)) + c.matched;
  c.digest = y->digest + digest_of(c.offset, block);
  offer(b, c);
  if (left == 0) return;
  c.matched = y->matched + above;
  c.score = others + (seam_score(under, rest, hole) + seam_score(rest, over, 0)) + c.matched;
  c.offset += left;
  c.digest = y->digest + digest_of(c.offset, block);
  offer(b, c);
}

static void offer_holes(beam *b, const way *y, uint32_t block) {
  uint64_t bytes = b->packer->blocks[block].bytes;
  for (uint32_t i = 1; i < y->n; i++) {
    uint64_t hole = y->segments[i].offset - y->segments[i - 1].end;
    if (hole >= bytes) offer_hole(b, y, i, block, hole - bytes);
  }
}

/* One way with the block that the choice puts. */
static void follow(const beam *b, const way *from, way *to, const choice *c, uint32_t block) {
  uint32_t at = c->above;
  segment *s = to->segments;
  memcpy(s, from->segments, at * sizeof *s);
  memcpy(s + at + 1, from->segments + at, (from->n - at) * sizeof *s);
  s[at] = (segment){c->offset, c->offset + b->packer->blocks[block].bytes, 0, block};
  s[at].hole = hole_score(b, s[at].offset - s[at - 1].end);
  s[at + 1].hole = hole_score(b, s[at + 1].offset - s[at].end);
  to->n = from->n + 1;
  to->matched = c->matched * b->w.fade;
  to->digest = c->digest;
}

/* One way with nothing between the walls. */
static void begin_ways(beam *b) {
  uint32_t wall = b->packer->count;
  way *first = &b->ways[0][0];
  b->rest[wall] = b->w.life * b->w.wall;
  first->segments[0] = (segment){0, 0, 0, wall};
  first->segments[1] = (segment){b->capacity, b->capacity, hole_score(b, b->capacity), wall};
  first->n = 2;
  first->matched = 0;
  first->digest = 0;
  b->n_ways = 1;
}

/* Puts the blocks of an order one after another; false where one finds no room in any way. */
static bool follow_all(beam *b, const uint32_t *order) {
  begin_ways(b);
  for (uint32_t i = 0; i < b->packer->active; i++) {
    uint32_t block = order[i], now = b->packer->lower[block];
    way *ways = b->ways[i % 2], *next = b->ways[(i + 1) % 2];
    bool ended = grow_older(b, &ways[0], now);
    b->rest[block] = b->w.life * saturate(b->packer->upper[block] - now, b->w.half);
    b->n_choices = 0;
    for (uint32_t y = 0; y < b->n_ways; y++) {
      b->looks += ways[y].n;
      if (ended) drop_ended(b, &ways[y]);
      score(b, &ways[y]);
      offer_holes(b, &ways[y], block);
    }
    for (uint32_t c = 0; c < b->n_choices; c++) follow(b, &ways[b->choices[c].from], &next[c], &b->choices[c], block);
    memcpy(&b->trail[(size_t)i * WIDTH], b->choices, b->n_choices * sizeof *b->choices);
    b->n_ways = b->n_choices;
    if (b->n_ways == 0) return false;
  }
  return true;
}

/* The best way, from its end to its beginning; then all blocks as low as they lie on others. */
static void keep(const beam *b, const uint32_t *order) {
  sn__packer *p = b->packer;
  for (uint32_t i = p->active, at = 0; i-- > 0;) {
    const choice *c = &b->trail[(size_t)i * WIDTH + at];
    p->best[order[i]] = c->offset;
    at = c->from;
  }
  p->best_top = UINT64_MAX;
  p->most_looks = UINT64_MAX;
  sn__pack_begin(p, SN__BY_OFFSET);
  sn__pack_place(p, p->now, 0, UINT64_MAX);
  sn__pack_keep_best(p, p->now);
}

/* With room for all blocks that live at once, the walls, and one more. */
static bool beam_init(beam *b, const uint32_t *order) {
  const sn__packer *p = b->packer;
  uint32_t live = 0, most = 0, to_end = p->active;
  const uint32_t *ends = p->stack; /* by falling ends */
  for (uint32_t i = 0; i < p->active; i++) {
    while (p->upper[ends[to_end - 1]] <= p->lower[order[i]]) to_end--, live--;
    if (++live > most) most = live;
  }
  uint32_t room = most + 3;
  b->segments = malloc((size_t)room * 2 * WIDTH * sizeof *b->segments);
  b->trail = malloc(((size_t)p->active + 1) * WIDTH * sizeof *b->trail);
  b->rest = malloc(((size_t)p->count + 1) * sizeof *b->rest);
  for (uint32_t y = 0; b->segments && y < 2 * WIDTH; y++)
    b->ways[y / WIDTH][y % WIDTH] = (way){.segments = b->segments + (size_t)y * room, .number = y % WIDTH};
  return b->segments && b->trail && b->rest;
}

/* What divides the bytes of all blocks, and so their offsets where the capacity is whole, too. */
static uint64_t find_grain(const sn__packer *p, const uint32_t *order) {
  uint64_t grain = 0;
  for (uint32_t i = 0; i < p->active && grain != 1; i++)
    for (uint64_t rest = p->blocks[order[i]].bytes; rest > 0;) {
      uint64_t less = grain % rest;
      grain = rest;
      rest = less;
    }
  assert(grain > 0);
  return grain;
}

/* Looks count as if there had been no try like it. */
static bool try_once(beam *b, const uint32_t *order) {
  uint32_t values[WEIGHTS], number = draw_values(b->packer, values);
  uint64_t before = b->looks;
  b->looks += b->in_vain[number];
  if (b->in_vain[number] > 0) return false;
  b->w = weights_of(values);
  if (follow_all(b, order)) return true;
  b->in_vain[number] = b->looks - before;
  return false;
}

static bool try_beam(beam *b, const uint32_t *order, uint32_t most_tries, uint32_t *tries) {
  if (!beam_init(b, order)) return false;
  b->capacity -= b->capacity % find_grain(b->packer, order);
  while (*tries < most_tries && b->looks < MOST_LOOKS) {
    ++*tries;
    if (!try_once(b, order)) continue;
    keep(b, order);
    break;
  }
  return true;
}

/* All that there is of it is some 20 KiB, to be cleared only where it is needed. */
static bool run_beam(sn__packer *p, const sn_pack_limits *limits, uint64_t capacity, uint32_t *tries) {
  beam b = {.packer = p, .capacity = capacity};
  if (!sn__pack_turn_to(p, SN__FIRST_FIT)) return false;
  sn__pack_sort(p, SN__BY_END);
  memcpy(p->stack, p->now->order, p->active * sizeof *p->stack);
  sn__pack_sort(p, SN__FIRST_FIT);
  bool good = try_beam(&b, p->now->order, limits->tries, tries);
  free(b.segments);
  free(b.trail);
  free(b.rest);
  return good;
}

/* A try stays near the largest load, whatever is enough: to ask for less than the best there is changes when the search
 * ends, not what it finds. */
bool sn__pack_try_beam(sn__packer *p, const sn_pack_limits *limits, uint64_t bound, uint32_t *tries) {
  uint64_t capacity = bound + bound / SN_PACK_NEAR;
  bool done = p->best_top <= sn_max(p->enough, capacity);
  if (limits->tries == 0 || done || p->active > SN__MOST_KEPT) return true;
  return run_beam(p, limits, capacity, tries);
}
