/* Pack's moves: local search from the orders on, with late acceptance; see pack.h. */
#include "base/checked.h"
#include "sim/memory/pack_internal.h"

#include <string.h>

enum { HISTORY = 4, STALLED = 50, LOOKS_A_MOVE = 60000 };

static bool conflict(const sn__packer *p, uint32_t a, uint32_t b) {
  return p->lower[a] < p->upper[b] && p->lower[b] < p->upper[a];
}

/* A spot of the layout drawn from those that `wanted` asks for; SN_NONE where there is none. */
typedef struct wish {
  uint64_t end;      /* ends there; 0: anywhere */
  uint32_t rival;    /* conflicts with this block; UINT32_MAX: any */
  uint32_t position; /* and is placed before this */
} wish;

static uint32_t draw(sn__packer *p, const sn__layout *l, const wish *w) {
  uint32_t drawn = UINT32_MAX, found = 0, n = 0;
  uint64_t reach;
  for (uint32_t r = 0; r < l->shelf.n_runs; r++) {
    const sn__spot *spots = sn__shelf_run(&l->shelf, r, &n, &reach);
    if (w->end > 0 && spots[0].offset >= w->end) break;
    if (reach < w->end) continue;
    for (uint32_t i = 0; i < n; i++) {
      const sn__spot *s = &spots[i];
      if ((w->end > 0 && s->end != w->end) || l->position[s->block] >= w->position) continue;
      if (w->rival != UINT32_MAX && !conflict(p, s->block, w->rival)) continue;
      if (sn__pack_roll(p, ++found) == 0) drawn = s->block;
    }
  }
  return drawn;
}

/* One of a block that ends at the top, what it rests on, and so on. */
static uint32_t draw_stacked(sn__packer *p, const sn__layout *l) {
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
  return p->stack[sn__pack_roll(p, n)];
}

/* Takes over from p->now what stands before position `from`. */
static void begin_next(sn__packer *p, uint32_t from) {
  uint32_t n = 0;
  uint64_t reach;
  sn__shelf_empty(&p->next.shelf);
  p->next.top = 0;
  p->next.by = SN__NONE;
  memcpy(p->next.order, p->now->order, p->active * sizeof *p->next.order);
  for (uint32_t r = 0; r < p->now->shelf.n_runs; r++) {
    const sn__spot *spots = sn__shelf_run(&p->now->shelf, r, &n, &reach);
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
static bool move(sn__packer *p, uint64_t limit) {
  uint32_t block = draw_stacked(p, p->now), at = p->now->position[block];
  uint32_t other = draw(p, p->now, &(wish){.rival = block, .position = at});
  if (other == UINT32_MAX) return false;
  uint32_t from = p->now->position[other];
  begin_next(p, from);
  uint32_t *order = p->next.order;
  if (sn__pack_roll(p, 2) == 0) {
    order[at] = other;
  } else {
    memmove(&order[from + 1], &order[from], (at - from) * sizeof *order);
  }
  order[from] = block;
  return sn__pack_place(p, &p->next, from, limit);
}

static void swap_layouts(sn__packer *p) {
  sn__layout l = *p->now;
  *p->now = p->next;
  p->next = l;
}

/* Moves on from p->now until nothing has become better for a while. */
static void walk(sn__packer *p, const sn_pack_limits *limits, uint32_t *moves) {
  uint64_t history[HISTORY], best = p->now->top;
  uint32_t stalled = 0;
  for (int i = 0; i < HISTORY; i++) history[i] = best;
  while (stalled < sn_max(STALLED, limits->moves / 20) && *moves < limits->moves && p->best_top > p->enough &&
         sn__pack_looks(p) < p->most_looks) {
    uint64_t *then = &history[*moves % HISTORY];
    ++*moves;
    if (move(p, sn_max(p->now->top, *then))) {
      swap_layouts(p);
      sn__pack_keep_best(p, p->now);
    }
    *then = p->now->top;
    stalled = p->now->top < best ? 0 : stalled + 1;
    best = sn_min(best, p->now->top);
  }
}

bool sn__pack_try_moves(sn__packer *p, int by, const sn_pack_limits *limits, uint32_t *moves) {
  p->most_looks = sn__pack_looks(p) + (uint64_t)limits->moves * LOOKS_A_MOVE;
  if (*moves >= limits->moves || p->best_top <= p->enough) return true;
  if (!sn__layout_init(&p->next, p->count)) return false;
  for (; *moves < limits->moves && p->best_top > p->enough; by = (by + 1) % SN__ORDERS) {
    if (!sn__pack_place_by(p, by, UINT64_MAX)) break;
    walk(p, limits, moves);
  }
  return !p->memory_out;
}
