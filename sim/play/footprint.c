/* Footprint of a timeline; see the header.
 *
 * Rectangles are taken by the height of their upper end, the highest first; each gives its height to the steps of its
 * life that have none yet. Those that have one are skipped with a list of the next step without (union-find with
 * halving, Tarjan and van Leeuwen 1984), so that every step is visited about once. Then the moment: of the rectangle's
 * moments in the step the one at which most is in use. */
#include "sim/play/footprint.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct work {
  const sn_timeline *timeline;
  sn_footprint *made;
  sn_footprint_step *steps;
  uint64_t *used; /* by moment: bytes of tensors and workspace */
  uint32_t *next; /* by step: the first step from here on that has no height yet */
  const sn_rect **rects;
} work;

static bool is_workspace(const sn_rect *rect) {
  return rect->tensor == UINT32_MAX;
}

/* A rectangle's moments are [first, last]. */
static uint32_t first_of(const sn_rect *rect) {
  return is_workspace(rect) ? rect->from_instr : rect->from_instr + 1;
}
static uint32_t last_of(const sn_rect *rect) {
  return is_workspace(rect) ? rect->from_instr : rect->to_instr;
}

/* A step's last moment is behind its last instruction: the next step's first. */
static uint32_t end_of(const sn_timeline *t, uint32_t step) {
  return t->columns[step].first_instr + t->columns[step].n_instrs;
}

/* The last step that begins at or before an instruction: the one that has it. */
static uint32_t step_of(const sn_timeline *t, uint32_t instr) {
  uint32_t low = 0, high = t->n_columns;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (t->columns[middle].first_instr <= instr)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static int by_height(const void *a, const void *b) {
  const sn_rect *x = *(const sn_rect *const *)a, *y = *(const sn_rect *const *)b;
  uint64_t p = x->offset + x->bytes, q = y->offset + y->bytes;
  if (p != q) return p < q ? 1 : -1;
  return (x > y) - (x < y);
}

static uint32_t find_free(uint32_t *next, uint32_t step) {
  while (next[step] != step) step = next[step] = next[next[step]];
  return step;
}

static void sum_used(work *w) {
  const sn_timeline *t = w->timeline;
  for (uint32_t i = 0; i < t->n_rects; i++) {
    const sn_rect *rect = &t->rects[i];
    w->used[first_of(rect)] += rect->bytes;
    w->used[last_of(rect) + 1] -= rect->bytes;
  }
  for (uint32_t m = 1; m <= t->n_instrs; m++) w->used[m] += w->used[m - 1];
}

/* The fullest of the moments that rectangle and step share. */
static uint32_t fullest(const work *w, const sn_rect *rect, uint32_t step) {
  const sn_timeline *t = w->timeline;
  uint32_t from = first_of(rect), to = last_of(rect), begin = t->columns[step].first_instr, end = end_of(t, step);
  if (from < begin) from = begin;
  if (to > end) to = end;
  uint32_t best = from;
  for (uint32_t m = from; m <= to; m++)
    if (w->used[m] > w->used[best]) best = m;
  return best;
}

/* Of a step at or behind the one that takes the rectangle; a workspace is nowhere else. */
static bool is_there(const sn_timeline *t, const sn_rect *rect, uint32_t step) {
  return is_workspace(rect) ? step == step_of(t, rect->from_instr) : t->columns[step].first_instr <= last_of(rect);
}

static void find_tops(work *w) {
  const sn_timeline *t = w->timeline;
  for (uint32_t i = 0; i < t->n_rects; i++) w->rects[i] = &t->rects[i];
  qsort(w->rects, t->n_rects, sizeof(const sn_rect *), by_height);
  for (uint32_t s = 0; s <= t->n_columns; s++) w->next[s] = s;
  for (uint32_t s = 0; s < t->n_columns; s++) w->steps[s].moment = t->columns[s].first_instr;
  for (uint32_t i = 0; i < t->n_rects; i++) {
    const sn_rect *rect = w->rects[i];
    for (uint32_t s = find_free(w->next, step_of(t, rect->from_instr)); s < t->n_columns && is_there(t, rect, s);
         s = find_free(w->next, s)) {
      w->steps[s].top_bytes = rect->offset + rect->bytes;
      w->steps[s].moment = fullest(w, rect, s);
      w->next[s] = s + 1;
    }
  }
}

/* The first step whose moment is not before `moment`; moments do not fall. */
static uint32_t first_step(const work *w, uint32_t moment) {
  uint32_t low = 0, high = w->timeline->n_columns;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (w->steps[middle].moment < moment)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Sums of tensors by group: differences from step to step first. */
static void sum_groups(work *w, const uint8_t *group, uint64_t *bytes) {
  const sn_timeline *t = w->timeline;
  uint32_t n = w->made->n_groups;
  for (uint32_t i = 0; i < t->n_rects; i++) {
    const sn_rect *rect = &t->rects[i];
    if (is_workspace(rect)) {
      sn_footprint_step *step = &w->steps[step_of(t, rect->from_instr)];
      if (step->moment == rect->from_instr) step->workspace_bytes += rect->bytes;
      continue;
    }
    uint32_t from = first_step(w, first_of(rect)), to = first_step(w, last_of(rect) + 1);
    bytes[(size_t)from * n + group[rect->tensor]] += rect->bytes;
    bytes[(size_t)to * n + group[rect->tensor]] -= rect->bytes;
  }
  for (uint32_t s = 0; s < t->n_columns; s++)
    for (uint32_t g = 0; g < n; g++) {
      uint64_t *here = &bytes[(size_t)s * n + g];
      if (s > 0) *here += *(here - n);
      w->steps[s].tensor_bytes += *here;
    }
}

static sn_status fill(work *w, const uint8_t *group, sn_err *err) {
  const sn_timeline *t = w->timeline;
  sn_footprint *f = w->made;
  uint64_t *bytes = sn_arena_alloc(f->arena, ((size_t)t->n_columns + 1) * f->n_groups, sizeof *bytes);
  w->steps = sn_arena_alloc(f->arena, (size_t)t->n_columns + 1, sizeof *w->steps);
  w->used = calloc((size_t)t->n_instrs + 2, sizeof *w->used);
  w->next = calloc((size_t)t->n_columns + 1, sizeof *w->next);
  w->rects = calloc((size_t)t->n_rects + 1, sizeof(sn_rect *));
  if (!bytes || !w->steps || !w->used || !w->next || !w->rects) return sn_fail_memory(err);
  sum_used(w);
  find_tops(w);
  sum_groups(w, group, bytes);
  for (uint32_t s = 0; s < t->n_columns; s++) {
    sn_footprint_step *step = &w->steps[s];
    step->hole_bytes = step->top_bytes - step->tensor_bytes - step->workspace_bytes;
    if (step->top_bytes > w->steps[f->peak].top_bytes) f->peak = s;
  }
  f->steps = w->steps;
  f->bytes = bytes;
  return SN_OK;
}

sn_footprint *sn_footprint_new(const sn_timeline *timeline, const uint8_t *group, uint32_t n_groups, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_footprint *f = arena ? sn_arena_alloc(arena, 1, sizeof *f) : NULL;
  if (!f) {
    sn_arena_free(arena);
    sn_fail_memory(err);
    return NULL;
  }
  *f = (sn_footprint){.n_steps = timeline->n_columns, .n_groups = n_groups, .arena = arena};
  work w = {.timeline = timeline, .made = f};
  sn_status status = fill(&w, group, err);
  free(w.used);
  free(w.next);
  free(w.rects);
  if (status == SN_OK) return f;
  sn_footprint_free(f);
  return NULL;
}

void sn_footprint_free(sn_footprint *footprint) {
  if (footprint) sn_arena_free(footprint->arena);
}
