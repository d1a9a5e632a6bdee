/* Pack along the skyline; see the header. A block that is placed has no lowest offset (PLACED), so that the least of a
 * section's lowest offsets is its skyline; offsets are in `offset` since. */
#include "sim/memory/pack_skyline.h"

#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NARROW = 16, DOUBLINGS = 2, DIGESTS = 4096 };

#define PLACED  UINT64_MAX
#define NO_LIFE UINT32_MAX

/* One way: what is placed, and where the rest can go. Its arrays lie behind it. */
typedef struct way {
  double score;
  uint64_t digest;  /* of what is placed where, and what was raised */
  uint64_t *lowest; /* per block */
  uint64_t *offset; /* per block that is placed */
  uint64_t *height; /* per section: the skyline; where none is to come, the end of what came last */
  uint64_t *left;   /* per section: bytes to come */
} way;

/* A way with one more block placed, or NO_LIFE: with `section` left free where its skyline is. */
typedef struct choice {
  double score;
  uint64_t digest;
  uint32_t from, block, section;
} choice;

struct sn__skyline {
  const sn__life *lives;
  uint32_t count, n_sections;
  uint32_t *first_member, *members;       /* members[first_member[t] ..]: blocks that live in section t */
  uint32_t *first_neighbour, *neighbours; /* blocks that share a section with one */
  uint64_t *load;                         /* per section */
  double *weight, *failed;                /* per section: how much it counts; failures, of late */
  uint64_t *memory;                       /* of all ways */
  way *ways, *next, spare;                /* `width` each */
  choice *choices;                        /* of a step */
  uint32_t width, n_ways, n_choices;
  uint64_t digests[DIGESTS]; /* of the ways that are kept of this step */
  /* of this try */
  uint64_t capacity, draw;
  double softness; /* c of the header, in bytes */
  bool root, by_rest;
  uint32_t tries;
};

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
  x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

static uint64_t draw(sn__skyline *sky) {
  sky->draw ^= sky->draw << 13;
  sky->draw ^= sky->draw >> 7;
  return sky->draw ^= sky->draw << 17;
}

/* ---- a section ---- */

/* What a section that ends at `end` at least adds to a score. */
static double section_score(const sn__skyline *sky, uint32_t t, uint64_t end) {
  double score = (double)(sky->capacity - sky->load[t] + 1) + sky->softness;
  score /= (double)(sky->capacity - end + 1) + sky->softness;
  return sky->weight[t] * (sky->root ? sqrt(sqrt(score)) : score);
}

static bool fail_section(sn__skyline *sky, uint32_t t) {
  sky->failed[t]++;
  return false;
}

static uint64_t skyline(const sn__skyline *sky, const way *w, uint32_t t) {
  uint64_t least = PLACED;
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1]; m++)
    least = sn_min(least, w->lowest[sky->members[m]]);
  return least;
}

/* Do the blocks to come of a section end within the capacity? From the highest of their lowest offsets down, those from
 * there on need the room above it. */
static bool section_fits(const sn__skyline *sky, const way *w, uint32_t t) {
  uint64_t lowest[SN__SKYLINE_MOST], sizes[SN__SKYLINE_MOST], bytes = 0, highest = 0;
  uint32_t n = 0;
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1]; m++)
    if (w->lowest[sky->members[m]] != PLACED) highest = sn_max(highest, w->lowest[sky->members[m]]);
  if (highest <= sky->capacity - w->left[t]) return true;
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1]; m++) {
    uint32_t b = sky->members[m], at = n;
    if (w->lowest[b] == PLACED) continue;
    for (; at > 0 && lowest[at - 1] < w->lowest[b]; at--) {
      lowest[at] = lowest[at - 1];
      sizes[at] = sizes[at - 1];
    }
    lowest[at] = w->lowest[b];
    sizes[at] = sky->lives[b].bytes;
    n++;
  }
  for (uint32_t i = 0; i < n; i++) {
    bytes += sizes[i];
    if (bytes > sky->capacity || lowest[i] > sky->capacity - bytes) return false;
  }
  return true;
}

static bool lives_in(const sn__life *life, uint32_t t) {
  return life->lower <= t && t < life->upper;
}

static bool overlap(const sn__life *a, const sn__life *b) {
  return a->lower < b->upper && b->lower < a->upper;
}

/* ---- a block placed at its lowest offset ---- */

/* The sections from *lower to before *upper in which something changes; false: a block to come would not go above. */
static bool reach(const sn__skyline *sky, const way *w, uint32_t b, uint64_t end, uint32_t *lower, uint32_t *upper) {
  *lower = sky->lives[b].lower;
  *upper = sky->lives[b].upper;
  for (uint32_t m = sky->first_neighbour[b]; m < sky->first_neighbour[b + 1]; m++) {
    uint32_t r = sky->neighbours[m];
    if (w->lowest[r] >= end) continue;
    if (end > sky->capacity - sky->lives[r].bytes) return false;
    if (sky->lives[r].lower < *lower) *lower = sky->lives[r].lower;
    if (sky->lives[r].upper > *upper) *upper = sky->lives[r].upper;
  }
  return true;
}

/* The skyline of section `t` then. */
static uint64_t skyline_above(const sn__skyline *sky, const way *w, uint32_t t, uint32_t b, uint64_t end) {
  const sn__life *life = &sky->lives[b];
  uint64_t floor = lives_in(life, t) ? end : w->height[t], least = PLACED;
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1] && least > floor; m++) {
    uint32_t r = sky->members[m];
    uint64_t lowest = w->lowest[r];
    if (r == b || lowest >= least) continue;
    if (lowest < end && overlap(&sky->lives[r], life)) lowest = end;
    least = sn_min(least, lowest);
  }
  return least;
}

/* The score of a way with block `b` placed; false: it does not fit. */
static bool score_of(sn__skyline *sky, const way *w, uint32_t b, double *score) {
  const sn__life *life = &sky->lives[b];
  uint64_t end = w->lowest[b] + life->bytes;
  uint32_t lower, upper;
  if (!reach(sky, w, b, end, &lower, &upper)) return false;
  *score = w->score;
  for (uint32_t t = lower; t < upper; t++) {
    bool in = lives_in(life, t);
    uint64_t left = w->left[t] - (in ? life->bytes : 0);
    if (left == 0 && !in) continue;
    uint64_t top = left > 0 ? skyline_above(sky, w, t, b, end) + left : end;
    if (top > sky->capacity) return fail_section(sky, t);
    if (top != w->height[t] + w->left[t])
      *score += section_score(sky, t, top) - section_score(sky, t, w->height[t] + w->left[t]);
  }
  return true;
}

static bool put(sn__skyline *sky, way *w, uint32_t b) {
  const sn__life *life = &sky->lives[b];
  uint64_t end = w->lowest[b] + life->bytes;
  uint32_t lower, upper;
  if (!reach(sky, w, b, end, &lower, &upper)) return false;
  w->offset[b] = w->lowest[b];
  w->lowest[b] = PLACED;
  for (uint32_t m = sky->first_neighbour[b]; m < sky->first_neighbour[b + 1]; m++)
    w->lowest[sky->neighbours[m]] = sn_max(w->lowest[sky->neighbours[m]], end);
  for (uint32_t t = life->lower; t < life->upper; t++) {
    w->left[t] -= life->bytes;
    if (w->left[t] == 0) w->height[t] = end;
  }
  for (uint32_t t = lower; t < upper; t++) {
    if (w->left[t] == 0) continue;
    w->height[t] = skyline(sky, w, t);
    if (!section_fits(sky, w, t)) return fail_section(sky, t);
  }
  return true;
}

/* ---- a section left free at its skyline ---- */

/* The least that block `b` can lie at where it does not at the skyline of section `t`: on one to come that does not
 * live there, or lies higher. */
static uint64_t next_lowest(const sn__skyline *sky, const way *w, uint32_t b, uint32_t t) {
  uint64_t least = PLACED;
  for (uint32_t m = sky->first_neighbour[b]; m < sky->first_neighbour[b + 1]; m++) {
    uint32_t r = sky->neighbours[m];
    uint64_t lowest = w->lowest[r];
    if (lowest == PLACED || (lowest == w->height[t] && lives_in(&sky->lives[r], t))) continue;
    if (lowest + sky->lives[r].bytes > w->height[t]) least = sn_min(least, lowest + sky->lives[r].bytes);
  }
  return least;
}

static bool raise(sn__skyline *sky, way *w, uint32_t t) {
  struct {
    uint32_t block;
    uint64_t lowest;
  } raised[SN__SKYLINE_MOST];
  uint32_t n = 0, lower = t, upper = t + 1;
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1]; m++) {
    uint32_t b = sky->members[m];
    if (w->lowest[b] != w->height[t]) continue;
    raised[n].block = b;
    raised[n].lowest = next_lowest(sky, w, b, t);
    if (raised[n++].lowest > sky->capacity - sky->lives[b].bytes) return false;
    if (sky->lives[b].lower < lower) lower = sky->lives[b].lower;
    if (sky->lives[b].upper > upper) upper = sky->lives[b].upper;
  }
  for (uint32_t i = 0; i < n; i++) {
    w->lowest[raised[i].block] = raised[i].lowest;
    w->digest += mix(raised[i].block + sky->count, raised[i].lowest);
  }
  for (uint32_t s = lower; s < upper; s++) {
    if (w->left[s] == 0) continue;
    uint64_t before = w->height[s] + w->left[s], least = skyline(sky, w, s);
    if (least + w->left[s] > sky->capacity || !section_fits(sky, w, s)) return fail_section(sky, s);
    w->score += section_score(sky, s, least + w->left[s]) - section_score(sky, s, before);
    w->height[s] = least;
  }
  return true;
}

/* ---- a step of the beam ---- */

/* Is a neighbouring section lower, beyond those of the same skyline? */
static bool has_lower_neighbour(const sn__skyline *sky, const way *w, uint32_t t) {
  uint32_t before = t, behind = t + 1;
  while (before > 0 && w->left[before - 1] > 0 && w->height[before - 1] == w->height[t]) before--;
  while (behind < sky->n_sections && w->left[behind] > 0 && w->height[behind] == w->height[t]) behind++;
  return (before > 0 && w->left[before - 1] > 0 && w->height[before - 1] < w->height[t]) ||
         (behind < sky->n_sections && w->left[behind] > 0 && w->height[behind] < w->height[t]);
}

/* The section that comes next; n_sections: all is placed. */
static uint32_t lowest_section(const sn__skyline *sky, const way *w) {
  uint32_t best = sky->n_sections;
  double least = INFINITY;
  for (uint32_t t = 0; t < sky->n_sections; t++) {
    if (w->left[t] == 0 || (sky->by_rest && has_lower_neighbour(sky, w, t))) continue;
    double key = (double)w->height[t];
    if (sky->by_rest) key = (double)(sky->capacity - w->height[t] - w->left[t] + 1) / sky->weight[t];
    if (key >= least) continue;
    least = key;
    best = t;
  }
  return best;
}

static void copy_way(const sn__skyline *sky, way *to, const way *from) {
  memcpy(to->lowest, from->lowest, 2 * ((size_t)sky->count + sky->n_sections) * sizeof *to->lowest);
  to->score = from->score;
  to->digest = from->digest;
}

/* All that can come of way number `from` at section `t`. */
static void list_choices(sn__skyline *sky, uint32_t from, uint32_t t) {
  const way *w = &sky->ways[from];
  for (uint32_t m = sky->first_member[t]; m < sky->first_member[t + 1]; m++) {
    uint32_t b = sky->members[m];
    double score;
    if (w->lowest[b] == w->height[t] && score_of(sky, w, b, &score))
      sky->choices[sky->n_choices++] = (choice){score, w->digest + mix(b, w->lowest[b]), from, b, t};
  }
  copy_way(sky, &sky->spare, w);
  if (raise(sky, &sky->spare, t))
    sky->choices[sky->n_choices++] = (choice){sky->spare.score, sky->spare.digest, from, NO_LIFE, t};
}

static int compare_choices(const void *a, const void *b) {
  const choice *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->block < y->block ? -1 : x->block > y->block;
}

/* Was it kept in this step? Two ways of one digest are taken for one. */
static bool is_known(sn__skyline *sky, uint64_t digest) {
  uint32_t at = (uint32_t)(digest >> 20) % DIGESTS;
  for (; sky->digests[at] != 0; at = (at + 1) % DIGESTS)
    if (sky->digests[at] == digest) return true;
  sky->digests[at] = digest;
  return false;
}

/* The best choices become the ways of the next step. */
static void keep_best(sn__skyline *sky) {
  uint32_t n = 0;
  memset(sky->digests, 0, sizeof sky->digests);
  qsort(sky->choices, sky->n_choices, sizeof *sky->choices, compare_choices);
  for (uint32_t i = 0, looks = 0; i < sky->n_choices && n < sky->width && looks < DIGESTS / 2; i++) {
    const choice *c = &sky->choices[i];
    way *w = &sky->next[n];
    if (is_known(sky, c->digest)) continue;
    looks++;
    copy_way(sky, w, &sky->ways[c->from]);
    if (c->block == NO_LIFE ? !raise(sky, w, c->section) : !put(sky, w, c->block)) continue;
    w->score = c->score;
    w->digest = c->digest;
    n++;
  }
  way *before = sky->ways;
  sky->ways = sky->next;
  sky->next = before;
  sky->n_ways = n;
}

/* ---- a try ---- */

/* What the try is like. */
static void draw_try(sn__skyline *sky) {
  static const double shares[] = {0.002, 0.01, 0.03, 0.05};
  uint32_t doublings = 0;
  sky->tries++;
  while (doublings < DOUBLINGS && (sky->tries >> doublings) % 2 == 0) doublings++;
  sky->width = (uint32_t)NARROW << doublings;
  sky->softness = (double)sky->capacity * shares[draw(sky) % 4];
  sky->root = draw(sky) % 2 == 0;
  sky->by_rest = draw(sky) % 2 == 0;
}

static void start(sn__skyline *sky) {
  way *w = &sky->ways[0];
  memset(w->lowest, 0, 2 * ((size_t)sky->count + sky->n_sections) * sizeof *w->lowest);
  memcpy(w->left, sky->load, sky->n_sections * sizeof *w->left);
  w->score = 0;
  w->digest = 1;
  sky->n_ways = 1;
  memset(sky->failed, 0, sky->n_sections * sizeof *sky->failed);
}

/* Sections in which the try ended count more from now on; on average one. */
static void learn(sn__skyline *sky) {
  double failures = 0, weights = 0;
  for (uint32_t t = 0; t < sky->n_sections; t++) failures += sky->failed[t];
  if (failures == 0) return;
  for (uint32_t t = 0; t < sky->n_sections; t++) {
    sky->weight[t] *= 1 + 6 * sky->failed[t] / failures;
    weights += sky->weight[t];
  }
  for (uint32_t t = 0; t < sky->n_sections; t++)
    sky->weight[t] = fmax(sky->weight[t] * sky->n_sections / weights, 0.05);
}

bool sn__skyline_try(sn__skyline *sky, uint64_t capacity, bool (*may_look)(void *context), void *context,
                     uint64_t *offsets) {
  sky->capacity = capacity;
  draw_try(sky);
  start(sky);
  while (sky->n_ways > 0) {
    sky->n_choices = 0;
    for (uint32_t t = 0; t < sky->n_sections; t++) sky->failed[t] *= 0.8;
    for (uint32_t i = 0; i < sky->n_ways; i++) {
      uint32_t t = lowest_section(sky, &sky->ways[i]);
      if (!may_look(context)) return false;
      if (t == sky->n_sections) {
        memcpy(offsets, sky->ways[i].offset, sky->count * sizeof *offsets);
        return true;
      }
      list_choices(sky, i, t);
    }
    keep_best(sky);
  }
  learn(sky);
  return false;
}

/* ---- set up ---- */

static bool list_members(sn__skyline *sky) {
  size_t n = 0;
  for (uint32_t b = 0; b < sky->count; b++) n += sky->lives[b].upper - sky->lives[b].lower;
  sky->members = calloc(n + 1, sizeof *sky->members);
  sky->first_member = calloc((size_t)sky->n_sections + 1, sizeof *sky->first_member);
  sky->load = calloc(sky->n_sections, sizeof *sky->load);
  if (!sky->members || !sky->first_member || !sky->load) return false;
  n = 0;
  for (uint32_t t = 0; t < sky->n_sections; t++) {
    for (uint32_t b = 0; b < sky->count; b++) {
      if (!lives_in(&sky->lives[b], t)) continue;
      sky->members[n++] = b;
      sky->load[t] += sky->lives[b].bytes;
    }
    sky->first_member[t + 1] = (uint32_t)n;
  }
  return true;
}

static bool list_neighbours(sn__skyline *sky) {
  size_t n = 0, most = (size_t)sky->count * sky->count;
  sky->neighbours = calloc(most + 1, sizeof *sky->neighbours);
  sky->first_neighbour = calloc((size_t)sky->count + 1, sizeof *sky->first_neighbour);
  if (!sky->neighbours || !sky->first_neighbour) return false;
  for (uint32_t b = 0; b < sky->count; b++) {
    for (uint32_t r = 0; r < sky->count; r++)
      if (r != b && overlap(&sky->lives[r], &sky->lives[b])) sky->neighbours[n++] = r;
    sky->first_neighbour[b + 1] = (uint32_t)n;
  }
  return true;
}

static bool make_ways(sn__skyline *sky) {
  enum { WIDEST = NARROW << DOUBLINGS };
  size_t a_way = 2 * ((size_t)sky->count + sky->n_sections), most_choices = 2;
  for (uint32_t t = 0; t < sky->n_sections; t++)
    most_choices = sn_max(most_choices, sky->first_member[t + 1] - sky->first_member[t] + 1);
  sky->choices = calloc(WIDEST * most_choices, sizeof *sky->choices);
  sky->memory = calloc((2 * WIDEST + 1) * a_way + 1, sizeof *sky->memory);
  sky->ways = calloc(WIDEST, sizeof *sky->ways);
  sky->next = calloc(WIDEST, sizeof *sky->next);
  if (!sky->choices || !sky->memory || !sky->ways || !sky->next) return false;
  for (uint32_t i = 0; i <= 2 * WIDEST; i++) {
    way *w = i < WIDEST ? &sky->ways[i] : i < 2 * WIDEST ? &sky->next[i - WIDEST] : &sky->spare;
    w->lowest = sky->memory + i * a_way;
    w->offset = w->lowest + sky->count;
    w->height = w->offset + sky->count;
    w->left = w->height + sky->n_sections;
  }
  return true;
}

sn__skyline *sn__skyline_new(const sn__life *lives, uint32_t count, uint32_t n_sections) {
  assert(count > 0 && n_sections > 0);
  sn__skyline *sky = calloc(1, sizeof *sky);
  if (!sky) return NULL;
  sky->lives = lives;
  sky->count = count;
  sky->n_sections = n_sections;
  sky->draw = UINT64_C(88172645463325252);
  sky->weight = calloc(n_sections, sizeof *sky->weight);
  sky->failed = calloc(n_sections, sizeof *sky->failed);
  if (!sky->weight || !sky->failed || !list_members(sky) || !list_neighbours(sky) || !make_ways(sky)) {
    sn__skyline_free(sky);
    return NULL;
  }
  for (uint32_t t = 0; t < n_sections; t++) sky->weight[t] = 1;
  return sky;
}

void sn__skyline_free(sn__skyline *sky) {
  if (!sky) return;
  void *const parts[] = {sky->first_member, sky->members, sky->first_neighbour, sky->neighbours,
                         sky->load,         sky->weight,  sky->failed,          sky->memory,
                         sky->ways,         sky->next,    sky->choices,         sky};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}
