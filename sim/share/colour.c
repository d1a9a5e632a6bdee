/* Paths and ancestors in a route; see the header. */
#include "sim/share/colour.h"

#include "sim/graph/route.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

struct sn_colouring {
  const sn_route *route;
  uint32_t n_steps, words;
  uint32_t *writer;    /* per tensor: the step that makes it */
  uint32_t *colour;    /* per step */
  uint64_t *ancestors; /* `words` per step, a bit for each step; NULL with colours */
};

/* The step that makes what `access` reads; SN_NONE where it makes it itself. */
static uint32_t maker_of(const sn_colouring *c, sn_access access) {
  return access.mode == SN_WRITE ? SN_NONE : c->writer[access.tensor];
}

static void find_writers(sn_colouring *c) {
  for (uint32_t s = 0; s < c->n_steps; s++) {
    const sn_step *step = &c->route->steps[s];
    for (uint32_t i = step->first_access; i < step->first_access + step->n_accesses; i++)
      if (c->route->accesses[i].mode == SN_WRITE) c->writer[c->route->accesses[i].tensor] = s;
  }
}

/* ---- colours ---- */

/* Scratch of the search: per step, of the path that begins there. */
typedef struct path {
  uint32_t length; /* steps without a colour on it */
  uint32_t next;   /* the step behind this one; SN_NONE: it ends here */
} path;

/* The first step of the path with the most steps without a colour. Backwards over the steps, only what is strictly
 * longer replaces what was found. SN_NONE where all have one. */
static uint32_t longest_path(const sn_colouring *c, path *paths) {
  uint32_t first = SN_NONE, longest = 0;
  for (uint32_t s = 0; s < c->n_steps; s++) paths[s] = (path){0, SN_NONE};
  for (uint32_t s = c->n_steps; s-- > 0;) {
    const sn_step *step = &c->route->steps[s];
    paths[s].length += c->colour[s] == SN_NONE;
    if (paths[s].length > longest) longest = paths[s].length, first = s;
    for (uint32_t i = step->first_access; i < step->first_access + step->n_accesses; i++) {
      uint32_t maker = maker_of(c, c->route->accesses[i]);
      if (maker != SN_NONE && paths[s].length > paths[maker].length) paths[maker] = (path){paths[s].length, s};
    }
  }
  return first;
}

static void colour_steps(sn_colouring *c, uint32_t colours, path *paths) {
  uint32_t colour = 0;
  for (uint32_t s = 0; s < c->n_steps; s++) c->colour[s] = SN_NONE;
  for (; colour + 1 < colours; colour++) {
    uint32_t first = longest_path(c, paths);
    if (first == SN_NONE) break;
    for (uint32_t s = first; s != SN_NONE; s = paths[s].next)
      if (c->colour[s] == SN_NONE) c->colour[s] = colour;
  }
  for (uint32_t s = 0; s < c->n_steps; s++)
    if (c->colour[s] == SN_NONE) c->colour[s] = colour;
}

static sn_status make_colours(sn_colouring *c, uint32_t colours, sn_err *err) {
  path *paths = calloc((size_t)c->n_steps + 1, sizeof *paths);
  if (!paths) return sn_fail_memory(err);
  colour_steps(c, colours, paths);
  free(paths);
  return SN_OK;
}

/* ---- ancestors ---- */

static uint64_t *row_of(const sn_colouring *c, uint32_t step) {
  return c->ancestors + (size_t)step * c->words;
}

static void add_ancestors(sn_colouring *c, uint32_t step, uint32_t parent) {
  uint64_t *mine = row_of(c, step);
  const uint64_t *theirs = row_of(c, parent);
  for (uint32_t w = 0; w <= parent / WORD_BITS; w++) mine[w] |= theirs[w];
  mine[parent / WORD_BITS] |= UINT64_C(1) << parent % WORD_BITS;
}

static sn_status find_ancestors(sn_colouring *c, sn_err *err) {
  if (c->n_steps > SN_COLOURS_MOST_STEPS)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s has %u steps, ancestors are known for up to %d; choose a number of colours instead",
                   c->route->name, c->n_steps, SN_COLOURS_MOST_STEPS);
  c->words = c->n_steps / WORD_BITS + 1;
  c->ancestors = calloc((size_t)c->n_steps * c->words + 1, sizeof *c->ancestors);
  if (!c->ancestors) return sn_fail_memory(err);
  for (uint32_t s = 0; s < c->n_steps; s++) {
    const sn_step *step = &c->route->steps[s];
    for (uint32_t i = step->first_access; i < step->first_access + step->n_accesses; i++) {
      uint32_t maker = maker_of(c, c->route->accesses[i]);
      if (maker != SN_NONE) add_ancestors(c, s, maker);
    }
  }
  return SN_OK;
}

/* ---- the colouring ---- */

static sn_status fill(sn_colouring *c, uint32_t colours, sn_err *err) {
  c->writer = calloc((size_t)c->route->n_tensors + 1, sizeof *c->writer);
  c->colour = calloc((size_t)c->n_steps + 1, sizeof *c->colour);
  if (!c->writer || !c->colour) return sn_fail_memory(err);
  find_writers(c);
  return colours == SN_COLOURS_ANCESTORS ? find_ancestors(c, err) : make_colours(c, colours, err);
}

sn_colouring *sn_colouring_new(const sn_route *route, uint32_t n_steps, uint32_t colours, sn_err *err) {
  sn_colouring *c = calloc(1, sizeof *c);
  if (!c) {
    sn_fail_memory(err);
    return NULL;
  }
  c->route = route;
  c->n_steps = n_steps;
  if (fill(c, colours, err) == SN_OK) return c;
  sn_colouring_free(c);
  return NULL;
}

void sn_colouring_free(sn_colouring *c) {
  if (!c) return;
  free(c->writer);
  free(c->colour);
  free(c->ancestors);
  free(c);
}

bool sn_colouring_allows(const sn_colouring *c, uint32_t giver, uint32_t taker) {
  if (!c->ancestors) return c->colour[giver] == c->colour[taker];
  return row_of(c, taker)[giver / WORD_BITS] >> giver % WORD_BITS & 1;
}

uint32_t sn_colouring_of(const sn_colouring *c, uint32_t step) {
  return c->colour[step];
}
