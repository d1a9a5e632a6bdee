/* Caching map; see the header. */
#include "sim/play/caching_map.h"

#include "base/checked.h"

#include <stdlib.h>

typedef struct maker {
  sn_caching_map *map;
  uint32_t iteration;
  bool no_memory;
} maker;

static void add(maker *m, sn_extents *extents, sn_extent extent) {
  if (!extents->all || extents->n == extents->room) {
    uint32_t room = 2 * extents->room + 64;
    sn_extent *grown = realloc(extents->all, room * sizeof *grown);
    m->no_memory = m->no_memory || !grown;
    if (!grown) return;
    extents->all = grown;
    extents->room = room;
  }
  extents->all[extents->n++] = extent;
}

static void add_used(void *user, sn_extent block, bool used, bool first) {
  maker *m = user;
  (void)first;
  if (used) add(m, &m->map->stays, block);
}

/* A segment's first block, or one that lies behind what is mapped of it before. */
static void add_mapped(void *user, sn_extent block, bool used, bool first) {
  maker *m = user;
  sn_extents *segments = &m->map->segments;
  sn_extent *last = segments->n > 0 ? &segments->all[segments->n - 1] : NULL;
  (void)used;
  if (!first && last && last->offset + last->bytes == block.offset)
    last->bytes += block.bytes;
  else
    add(m, segments, block);
}

static int compare_extents(const void *a, const void *b) {
  const sn_extent *x = a, *y = b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

static void sort(sn_extents *extents) {
  if (extents->n > 0) qsort(extents->all, extents->n, sizeof *extents->all, compare_extents);
}

static void begins(void *user, const sn_caching *caching, uint32_t iteration) {
  maker *m = user;
  m->iteration = iteration;
  if (iteration == SN_CACHING_ITERATIONS) sn_caching_each(caching, add_used, m);
  if (iteration <= SN_CACHING_ITERATIONS) return;
  sn_caching_each(caching, add_mapped, m);
  sort(&m->map->segments);
}

static void takes(void *user, uint32_t instr, sn_extent block) {
  maker *m = user;
  if (m->iteration == SN_CACHING_ITERATIONS) m->map->taken[instr] = block;
}

static void stays(void *user, sn_extent block) {
  maker *m = user;
  if (m->iteration == SN_CACHING_ITERATIONS) add(m, &m->map->stays, block);
}

/* ---- addresses without gaps ---- */

/* A run of addresses that something lies in, and how much nothing lies in below it. */
typedef struct run {
  uint64_t begin, end, gaps;
} run;

static uint32_t find_runs(const sn_extent *extents, uint32_t n, run *runs) {
  uint32_t n_runs = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t begin = extents[i].offset, end = begin + extents[i].bytes;
    run *last = n_runs > 0 ? &runs[n_runs - 1] : NULL;
    if (last && begin <= last->end)
      last->end = sn_max(last->end, end);
    else
      runs[n_runs++] = (run){begin, end, last ? last->gaps + (begin - last->end) : begin};
  }
  return n_runs;
}

static void move_down(sn_extent *extents, uint32_t n, const run *runs, uint32_t n_runs) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t low = 0, high = n_runs; /* of the runs from `high` on none begins so low */
    if (extents[i].bytes == 0) continue;
    while (high - low > 1) {
      uint32_t middle = low + (high - low) / 2;
      *(runs[middle].begin <= extents[i].offset ? &low : &high) = middle;
    }
    extents[i].offset -= runs[low].gaps;
  }
}

static sn_status close_gaps(sn_caching_map *map, uint32_t n_instrs, sn_err *err) {
  size_t most = (size_t)n_instrs + map->stays.n + map->segments.n + 1;
  sn_extents all = {.all = calloc(most, sizeof *all.all)};
  run *runs = calloc(most, sizeof *runs);
  if (all.all && runs) {
    for (uint32_t i = 0; i < n_instrs; i++)
      if (map->taken[i].bytes > 0) all.all[all.n++] = map->taken[i];
    for (uint32_t i = 0; i < map->stays.n; i++) all.all[all.n++] = map->stays.all[i];
    for (uint32_t i = 0; i < map->segments.n; i++) all.all[all.n++] = map->segments.all[i];
    sort(&all);
    uint32_t n_runs = find_runs(all.all, all.n, runs);
    move_down(map->taken, n_instrs, runs, n_runs);
    move_down(map->stays.all, map->stays.n, runs, n_runs);
    move_down(map->segments.all, map->segments.n, runs, n_runs);
    map->end_bytes = n_runs > 0 ? runs[n_runs - 1].end - runs[n_runs - 1].gaps : 0;
  } else {
    sn_fail_memory(err);
  }
  free(all.all);
  free(runs);
  return err->code;
}

sn_status sn_caching_map_make(const sn_plan *plan, const sn_caching_load *load, sn_caching_map *map, sn_err *err) {
  maker m = {.map = map};
  const sn_caching_observer observer = {begins, takes, stays, &m};
  sn_caching_load watched = *load;
  watched.observer = &observer;
  *map = (sn_caching_map){.taken = calloc((size_t)plan->n_instrs + 1, sizeof *map->taken)};
  if (!map->taken) return sn_fail_memory(err);
  sn_status status = sn_caching_replay(plan, &watched, &map->replayed, err);
  sort(&map->stays);
  if (status == SN_OK && m.no_memory) status = sn_fail_memory(err);
  return status == SN_OK ? close_gaps(map, plan->n_instrs, err) : status;
}

void sn_caching_map_clear(sn_caching_map *map) {
  free(map->taken);
  free(map->stays.all);
  free(map->segments.all);
  *map = (sn_caching_map){0};
}
