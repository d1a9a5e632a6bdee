/* Shelf's search among many runs; see shelf_internal.h. */
#include "base/checked.h"
#include "sim/memory/shelf_internal.h"

enum { PATIENCE = 4 }; /* so many have passed a run or group since it changed before one leaves a sight */

/* Who looks for a place, and the lowest offset that is free so far. */
typedef struct search {
  uint64_t bytes, offset, looks;
  uint32_t lower, upper;
} search;

static uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

void sn__forget_groups(sn__shelf *shelf, uint32_t run) {
  for (uint32_t r = run - run % SN__GROUP; r < shelf->n_runs; r += SN__GROUP) sn__forget(sn__group_of(shelf, r));
  for (uint32_t r = 0; shelf->n_runs < SN__GROUP && r < shelf->n_runs; r++) sn__forget_run(shelf, r);
}

static bool meets_the_same(const sn__sight *seen, const search *s) {
  return s->upper <= seen->upper_to && s->upper > seen->upper_from && s->lower < seen->lower_to &&
         s->lower >= seen->lower_from;
}

static bool pass(const sn__sight *seen, search *s) {
  if (!meets_the_same(seen, s) || s->bytes <= seen->gap || s->offset > seen->most) return false;
  if (seen->bottom > s->offset && seen->bottom - s->offset >= s->bytes) return false;
  s->offset = sn_max(s->offset, seen->reach);
  s->looks += seen->looks;
  return true;
}

/* ---- runs ---- */

/* Of a run whose spots were looked at, one after the other: because neither all nor none of it lives, as far as its
 * header knows, which may take it for longer than it is. */
static sn__sight see_spots(const sn__run *run, const sn__spot *spots, const search *s) {
  sn__sight seen = {.upper_from = run->first_lower, .lower_to = run->last_upper, .upper_to = UINT32_MAX};
  seen.most = run->reach - 1;
  seen.looks = 1 + run->n;
  if (s->upper <= run->last_lower)
    seen.upper_to = run->last_lower;
  else
    seen.lower_from = run->first_upper;
  for (const sn__spot *spot = spots; spot < spots + run->n; spot++) {
    if (spot->lower >= s->upper) {
      seen.upper_to = least(seen.upper_to, spot->lower);
    } else if (spot->upper <= s->lower) {
      seen.lower_from = most(seen.lower_from, spot->upper);
    } else {
      seen.upper_from = most(seen.upper_from, spot->lower);
      seen.lower_to = least(seen.lower_to, spot->upper);
      if (seen.reach == 0) seen.bottom = seen.reach = spot->offset;
      if (spot->offset > seen.reach) seen.gap = sn_max(seen.gap, spot->offset - seen.reach);
      seen.reach = sn_max(seen.reach, spot->end);
    }
  }
  if (seen.reach == 0) seen.bottom = run->bottom;
  return seen;
}

/* Of any run, in the order in which a search asks. Of one that all lives but whose gap made this search look, it is what
 * those meet who ask for more. */
static sn__sight see_run(const sn__run *run, const sn__spot *spots, const search *s) {
  sn__sight seen = {.lower_to = UINT32_MAX, .upper_to = UINT32_MAX, .most = UINT64_MAX, .looks = 1};
  seen.bottom = run->bottom;
  if (run->first_lower >= s->upper) {
    seen.upper_to = run->first_lower;
  } else if (s->lower >= run->last_upper) {
    seen.lower_from = run->last_upper;
  } else if (run->last_lower < s->upper && s->lower < run->first_upper) {
    seen.upper_from = run->last_lower;
    seen.lower_to = run->first_upper;
    seen.gap = run->gap;
    seen.reach = run->reach;
  } else {
    seen = see_spots(run, spots, s);
  }
  return seen;
}

/* As over a shelf of this run alone; true where that ends the search. */
static bool find_in_run(const sn__shelf *shelf, uint32_t run, search *s) {
  sn__shelf alone = {.runs = &shelf->runs[run], .pages = shelf->pages, .n_runs = 1};
  s->offset = sn__shelf_find(&alone, s->lower, s->upper, s->bytes, s->offset);
  s->looks += alone.looks;
  return alone.near == 0;
}

/* From one run on to before another; says where it ends. */
static uint32_t find_in_runs(const sn__shelf *shelf, uint32_t first, uint32_t end, search *s) {
  for (uint32_t r = first; r < end; r++) {
    sn__page *page = sn__page_of(shelf, &shelf->runs[r]);
    if (pass(&page->seen, s)) continue;
    if (find_in_run(shelf, r, s)) return r;
    if (++page->seen.missed >= PATIENCE) page->seen = see_run(&shelf->runs[r], page->spots, s);
  }
  return end;
}

/* ---- groups ---- */

/* Adds what is met of the next run. Who has met nothing so far comes to it with the offset that it came with; all
 * others with the same. */
static void join(sn__sight *all, const sn__sight *next) {
  all->lower_from = most(all->lower_from, next->lower_from);
  all->lower_to = least(all->lower_to, next->lower_to);
  all->upper_from = most(all->upper_from, next->upper_from);
  all->upper_to = least(all->upper_to, next->upper_to);
  all->gap = sn_max(all->gap, next->gap);
  all->looks += next->looks;
  if (all->reach == 0) {
    all->bottom = next->bottom;
    all->most = sn_min(all->most, next->reach > 0 ? sn_min(next->most, next->reach) : next->most);
  } else if (next->bottom > all->reach) {
    all->gap = sn_max(all->gap, next->bottom - all->reach);
  }
  all->reach = sn_max(all->reach, next->reach);
}

/* Of a group that was passed; nobody's where a run has no sight for this search. Runs that end below what is met are
 * passed by all with one look. */
static sn__sight see_group(const sn__shelf *shelf, uint32_t first, const search *s) {
  sn__sight all = {.lower_to = UINT32_MAX, .upper_to = UINT32_MAX, .most = UINT64_MAX};
  for (uint32_t r = first; r < first + SN__GROUP; r++) {
    const sn__run *run = &shelf->runs[r];
    const sn__sight *seen = &sn__page_of(shelf, run)->seen;
    if (run->reach <= all.reach)
      all.looks++;
    else if (meets_the_same(seen, s))
      join(&all, seen);
    else
      return (sn__sight){0};
  }
  return all;
}

/* Over one group; says where it ends. */
static uint32_t find_in_group(const sn__shelf *shelf, uint32_t first, search *s) {
  sn__sight *seen = sn__group_of(shelf, first);
  uint32_t end = first + SN__GROUP;
  if (pass(seen, s)) return end;
  uint32_t at = find_in_runs(shelf, first, end, s);
  if (at == end && ++seen->missed >= PATIENCE) *seen = see_group(shelf, first, s);
  return at;
}

uint64_t sn__shelf_find_by_sight(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from) {
  search s = {.bytes = bytes, .offset = from, .lower = lower, .upper = upper};
  uint32_t r = 0, end = 0;
  while (r == end && end + SN__GROUP <= shelf->n_runs) {
    end += SN__GROUP;
    r = find_in_group(shelf, r, &s);
  }
  if (r == end) r = find_in_runs(shelf, r, shelf->n_runs, &s);
  shelf->near = r;
  shelf->looks += s.looks;
  return s.offset;
}
