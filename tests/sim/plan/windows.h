/* Windows: when tensors were really in use while a plan was played, taken from the trace alone.
 *
 *   residency (alloc .. release)   |------ compute writes ---- copy ---- compute reads ------|
 *   window                               |begin of the first access .. end of the last|
 *
 * A workspace's window is its compute. Windows are open intervals: they may touch. From them follows, with nothing the
 * planner metered, that bytes are never used by two at once, and how many bytes were in use at any time.
 */
#ifndef SN_TESTS_WINDOWS_H
#define SN_TESTS_WINDOWS_H

#include "sim/plan/plan.h"
#include "sim/play/trace.h"

#include <stdlib.h>

typedef struct window {
  int64_t begin_ns, end_ns;
  uint64_t low, high; /* addresses */
  uint64_t bytes;
  uint32_t tensor; /* SN_NONE: a workspace */
} window;

/* Bytes that come into use, or leave it, at a time. */
typedef struct window_edge {
  int64_t at_ns, bytes;
} window_edge;

typedef struct windows {
  window *items; /* ascending begin */
  window_edge *edges;
  uint32_t count;
} windows;

static inline void windows_free(windows *w) {
  free(w->items);
  free(w->edges);
}

static inline void windows_touch(window *w, sn_span span) {
  if (w->end_ns == INT64_MIN || span.begin_ns < w->begin_ns) w->begin_ns = span.begin_ns;
  if (span.end_ns > w->end_ns) w->end_ns = span.end_ns;
}

static inline void windows_note(windows *w, const sn_plan *plan, const sn_trace *trace, uint32_t index,
                                uint32_t *current) {
  const sn_instr *i = &plan->instrs[index];
  const sn_route *route = plan->route;
  window fresh = {.end_ns = INT64_MIN, .low = i->offset, .high = i->offset + i->bytes, .tensor = SN_NONE};
  if (i->kind == SN_ALLOC) {
    fresh.tensor = i->id;
    fresh.bytes = route->tensors[i->id].bytes;
    current[i->id] = w->count;
    w->items[w->count++] = fresh;
  } else if (i->kind == SN_COPY_IN || i->kind == SN_COPY_OUT) {
    windows_touch(&w->items[current[i->id]], trace->spans[index]);
  } else if (i->kind == SN_COMPUTE) {
    const sn_step *step = &route->steps[i->id];
    for (uint32_t a = 0; a < step->n_accesses; a++)
      windows_touch(&w->items[current[route->accesses[step->first_access + a].tensor]], trace->spans[index]);
    if (i->bytes == 0) return;
    fresh.bytes = i->bytes;
    windows_touch(&fresh, trace->spans[index]);
    w->items[w->count++] = fresh;
  }
}

static inline int windows_compare(const void *a, const void *b) {
  const window *x = a, *y = b;
  return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Of one time, those that leave come first. */
static inline int windows_compare_edges(const void *a, const void *b) {
  const window_edge *x = a, *y = b;
  if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Of a correct plan and its trace. */
static inline windows windows_make(const sn_plan *plan, const sn_trace *trace) {
  windows w = {.items = calloc((size_t)plan->n_instrs + 1, sizeof(window)),
               .edges = calloc(2 * (size_t)plan->n_instrs + 1, sizeof(window_edge))};
  uint32_t *current = calloc((size_t)plan->route->n_tensors + 1, sizeof *current);
  if (!w.items || !w.edges || !current) abort();
  for (uint32_t i = 0; i < plan->n_instrs; i++) windows_note(&w, plan, trace, i, current);
  free(current);
  qsort(w.items, w.count, sizeof *w.items, windows_compare);
  return w;
}

/* Two that are open at once and share addresses, as indices into items; false where there are none. */
static inline bool windows_clash(const windows *w, uint32_t *one, uint32_t *other) {
  for (*one = 0; *one < w->count; ++*one) {
    const window *a = &w->items[*one];
    for (*other = *one + 1; *other < w->count && w->items[*other].begin_ns < a->end_ns; ++*other) {
      const window *b = &w->items[*other];
      if (a->begin_ns < b->end_ns && a->low < b->high && b->low < a->high) return true;
    }
  }
  return false;
}

/* Edges of all windows, or of the tensors' alone, in order of time. Returns how many. */
static inline uint32_t windows_sort_edges(windows *w, bool workspaces) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    const window *item = &w->items[i];
    if (item->end_ns <= item->begin_ns || (!workspaces && item->tensor == SN_NONE)) continue;
    w->edges[n++] = (window_edge){item->begin_ns, (int64_t)item->bytes};
    w->edges[n++] = (window_edge){item->end_ns, -(int64_t)item->bytes};
  }
  qsort(w->edges, n, sizeof *w->edges, windows_compare_edges);
  return n;
}

/* The largest sum of open windows. */
static inline uint64_t windows_peak(windows *w, bool workspaces) {
  uint32_t n = windows_sort_edges(w, workspaces);
  int64_t sum = 0, peak = 0;
  for (uint32_t i = 0; i < n; i++) {
    sum += w->edges[i].bytes;
    if (sum > peak) peak = sum;
  }
  return (uint64_t)peak;
}

/* Per step of the route: the largest sum of open tensor windows while one of its computes runs. For plans whose only
 * lane is compute. */
static inline void windows_step_peaks(windows *w, const sn_plan *plan, const sn_trace *trace, uint64_t *peaks) {
  uint32_t n = windows_sort_edges(w, false), next = 0;
  int64_t sum = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    while (next < n && w->edges[next].at_ns <= trace->spans[i].begin_ns) sum += w->edges[next++].bytes;
    if ((uint64_t)sum > peaks[instr->step]) peaks[instr->step] = (uint64_t)sum;
  }
}

#endif
