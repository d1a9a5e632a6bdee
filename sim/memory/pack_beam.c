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
 * How much each weighs no one knows before: every try draws that anew, and is over where no way is left within the
 * capacity. Most fail early. A try is O(blocks x WIDTH x (blocks that live at once)). */
#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16, MOST_LOOKS = 30000000 };

/* A block that lives, or one of the two walls. */
typedef struct segment {
  uint64_t offset, end;
  uint32_t block, upper;
  double rest; /* of its life, 0 .. 1, as it weighs: who has ended has none */
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
  uint32_t from; /* the way */
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
  choice *trail;     /* per block in order, WIDTH of them */
  uint64_t looks;
} beam;

static double saturate(double value, double half) {
  return value / (value + half);
}

static double pick(sn__packer *p, double a, double b, double c) {
  uint64_t side = sn__pack_roll(p, 3);
  return side == 0 ? a : side == 1 ? b : c;
}

static weights draw_weights(sn__packer *p) {
  weights w;
  w.hole = pick(p, 0.5, 1, 2);
  w.life = pick(p, 0, 0.1, 0.3);
  w.match = pick(p, 0.125, 0.25, 0.5);
  w.wall = pick(p, 0, 0.3, 0.6);
  w.fade = pick(p, 0.9, 0.95, 0.99);
  w.half = pick(p, 20, 60, 180);
  return w;
}

static uint64_t digest_of(uint64_t offset, uint32_t block) {
  uint64_t d = (offset ^ ((uint64_t)block << 32)) * UINT64_C(0x9e3779b97f4a7c15);
  return (d ^ (d >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static double hole_score(const beam *b, uint64_t bytes) {
  return b->w.hole * sqrt((double)bytes / (double)b->capacity);
}

/* Of two neighbours with so many bytes between them. */
static double seam_score(const beam *b, double below, double above, uint64_t hole) {
  return hole > 0 ? below + above + hole_score(b, hole) : fabs(below - above);
}

/* How badly a block goes with the one it is put against. */
static double mismatch(const beam *b, const segment *against, uint32_t upper) {
  if (against->block == UINT32_MAX) return b->w.match * b->w.wall;
  double apart = against->upper > upper ? against->upper - upper : upper - against->upper;
  return b->w.match * saturate(apart, b->w.half);
}

/* Takes those away that have ended by `now`. The first and the last are walls. */
static void grow_older(beam *b, way *y, uint32_t now) {
  segment *s = y->segments;
  uint32_t n = 1;
  b->looks += y->n;
  y->score = 0;
  y->digest = 0;
  for (uint32_t i = 1; i < y->n; i++) {
    if (s[i].block != UINT32_MAX && s[i].upper <= now) continue;
    if (s[i].block != UINT32_MAX) {
      s[i].rest = b->w.life * saturate(s[i].upper - now, b->w.half);
      y->digest += digest_of(s[i].offset, s[i].block);
    }
    s[n] = s[i];
    y->score += seam_score(b, s[n - 1].rest, s[n].rest, s[n].offset - s[n - 1].end);
    n++;
  }
  y->n = n;
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

static void offer_at(beam *b, const way *y, uint32_t block, uint64_t offset, double score, double matched) {
  double all = y->matched + matched;
  offer(b, (choice){score + all, all, offset, y->digest + digest_of(offset, block), y->number});
}

/* Both ends of every hole that is large enough. */
static void offer_holes(beam *b, const way *y, uint32_t block, uint32_t now) {
  uint64_t bytes = b->packer->blocks[block].bytes;
  uint32_t upper = b->packer->upper[block];
  double rest = b->w.life * saturate(upper - now, b->w.half);
  for (uint32_t i = 1; i < y->n; i++) {
    const segment *low = &y->segments[i - 1], *high = &y->segments[i];
    uint64_t hole = high->offset - low->end;
    if (hole < bytes) continue;
    double others = y->score - seam_score(b, low->rest, high->rest, hole), below = mismatch(b, low, upper),
           above = mismatch(b, high, upper);
    uint64_t left = hole - bytes;
    double put_low = seam_score(b, low->rest, rest, 0) + seam_score(b, rest, high->rest, left);
    double put_high = seam_score(b, low->rest, rest, left) + seam_score(b, rest, high->rest, 0);
    if (left == 0) below += above - b->w.match / 2;
    offer_at(b, y, block, low->end, others + put_low, below);
    if (left > 0) offer_at(b, y, block, high->offset - bytes, others + put_high, above);
  }
}

/* One way with the block that the choice puts. */
static void follow(const beam *b, const way *from, way *to, const choice *c, uint32_t block) {
  uint32_t at = 1;
  while (from->segments[at].offset < c->offset) at++;
  memcpy(to->segments, from->segments, at * sizeof *to->segments);
  memcpy(to->segments + at + 1, from->segments + at, (from->n - at) * sizeof *to->segments);
  to->segments[at] =
      (segment){c->offset, c->offset + b->packer->blocks[block].bytes, block, b->packer->upper[block], 0};
  to->n = from->n + 1;
  to->matched = c->matched * b->w.fade;
}

/* One way with nothing between the walls. */
static void begin_ways(beam *b) {
  double wall = b->w.life * b->w.wall;
  way *first = &b->ways[0][0];
  first->segments[0] = (segment){0, 0, UINT32_MAX, UINT32_MAX, wall};
  first->segments[1] = (segment){b->capacity, b->capacity, UINT32_MAX, UINT32_MAX, wall};
  first->n = 2;
  first->matched = 0;
  b->n_ways = 1;
}

/* Puts the blocks of an order one after another; false where one finds no room in any way. */
static bool follow_all(beam *b, const uint32_t *order) {
  begin_ways(b);
  for (uint32_t i = 0; i < b->packer->active; i++) {
    uint32_t block = order[i], now = b->packer->lower[block];
    way *ways = b->ways[i % 2], *next = b->ways[(i + 1) % 2];
    b->n_choices = 0;
    for (uint32_t y = 0; y < b->n_ways; y++) {
      grow_older(b, &ways[y], now);
      offer_holes(b, &ways[y], block, now);
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
  for (uint32_t y = 0; b->segments && y < 2 * WIDTH; y++)
    b->ways[y / WIDTH][y % WIDTH] = (way){.segments = b->segments + (size_t)y * room, .number = y % WIDTH};
  return b->segments && b->trail;
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

static bool try_beam(beam *b, const uint32_t *order, uint32_t most_tries, uint32_t *tries) {
  if (!beam_init(b, order)) return false;
  b->capacity -= b->capacity % find_grain(b->packer, order);
  while (*tries < most_tries && b->looks < MOST_LOOKS) {
    ++*tries;
    b->w = draw_weights(b->packer);
    if (!follow_all(b, order)) continue;
    keep(b, order);
    break;
  }
  return true;
}

/* A try stays near the largest load, whatever is enough: to ask for less than the best there is changes when the search
 * ends, not what it finds. */
bool sn__pack_try_beam(sn__packer *p, const sn_pack_limits *limits, uint64_t bound, uint32_t *tries) {
  beam b = {.packer = p, .capacity = bound + bound / SN_PACK_NEAR};
  bool done = p->best_top <= sn_max(p->enough, b.capacity);
  if (limits->tries == 0 || done || p->active > SN__MOST_KEPT) return true;
  if (!sn__pack_turn_to(p, SN__FIRST_FIT)) return false;
  sn__pack_sort(p, SN__BY_END);
  memcpy(p->stack, p->now->order, p->active * sizeof *p->stack);
  sn__pack_sort(p, SN__FIRST_FIT);
  bool good = try_beam(&b, p->now->order, limits->tries, tries);
  free(b.segments);
  free(b.trail);
  return good;
}
