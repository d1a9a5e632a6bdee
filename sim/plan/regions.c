/* Regions; see the header. */
#include "sim/plan/regions.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 64 };

struct sn__region_run {
  uint32_t n;
  sn__region regions[RUN];
};

/* Where a region stands; behind the last one, `run` is the number of runs. */
typedef struct place {
  uint32_t run, index;
} place;

void sn__regions_clear(sn__regions *r) {
  for (uint32_t i = 0; i < r->n_runs; i++) free(r->runs[i]);
  free(r->runs);
  free(r->claims);
  memset(r, 0, sizeof *r);
}

static sn__region *at(const sn__regions *r, place p) {
  return p.run < r->n_runs ? &r->runs[p.run]->regions[p.index] : NULL;
}

static place next(const sn__regions *r, place p) {
  return p.index + 1 < r->runs[p.run]->n ? (place){p.run, p.index + 1} : (place){p.run + 1, 0};
}

/* The last region that begins at or below `begin`; the first of all where none does. */
static place last_from(const sn__regions *r, uint64_t begin) {
  place p = {0};
  for (uint32_t n = r->n_runs, half = n / 2; half > 0; n -= half, half = n / 2)
    p.run += r->runs[p.run + half]->regions[0].begin <= begin ? half : 0;
  if (r->n_runs == 0) return p;
  const sn__region *regions = r->runs[p.run]->regions;
  for (uint32_t n = r->runs[p.run]->n, half = n / 2; half > 0; n -= half, half = n / 2)
    p.index += regions[p.index + half].begin <= begin ? half : 0;
  return p;
}

/* The first region that reaches beyond `begin`. */
static place first_beyond(const sn__regions *r, uint64_t begin) {
  place p = last_from(r, begin);
  const sn__region *region = at(r, p);
  return region && region->end <= begin ? next(r, p) : p;
}

static bool add_run(sn__regions *r, uint32_t index) {
  if (r->n_runs == r->room) {
    uint32_t room = r->room ? 2 * r->room : 16;
    sn__region_run **runs = realloc(r->runs, room * sizeof(sn__region_run *));
    if (!runs) return false;
    r->runs = runs;
    r->room = room;
  }
  sn__region_run *run = malloc(sizeof *run);
  if (!run) return false;
  run->n = 0;
  memmove(&r->runs[index + 1], &r->runs[index], (r->n_runs++ - index) * sizeof(sn__region_run *));
  r->runs[index] = run;
  return true;
}

/* Moves the upper half of a full run to a new one; nothing where `p` is behind all regions, so that runs are full where
 * addresses only rise. */
static bool divide(sn__regions *r, place *p) {
  bool last = p->run + 1 == r->n_runs && p->index == RUN;
  if (!add_run(r, p->run + 1)) return false;
  sn__region_run *low = r->runs[p->run], *high = r->runs[p->run + 1];
  low->n = last ? RUN : RUN / 2;
  high->n = RUN - low->n;
  memcpy(high->regions, low->regions + low->n, high->n * sizeof *high->regions);
  if (last || p->index > low->n) *p = (place){p->run + 1, p->index - low->n};
  return true;
}

/* Puts a region in front of the one at `p`, which is from then on where it stands itself. */
static bool insert(sn__regions *r, place *p, const sn__region *region) {
  if (p->run > 0 && p->index == 0) *p = (place){p->run - 1, r->runs[p->run - 1]->n};
  if (r->n_runs == 0 && !add_run(r, 0)) return false;
  if (r->runs[p->run]->n == RUN && !divide(r, p)) return false;
  sn__region_run *run = r->runs[p->run];
  memmove(&run->regions[p->index + 1], &run->regions[p->index], (run->n++ - p->index) * sizeof *run->regions);
  run->regions[p->index] = *region;
  return true;
}

/* Takes the region at `p` away; where the next one stands. */
static place take(sn__regions *r, place p) {
  sn__region_run *run = r->runs[p.run];
  memmove(&run->regions[p.index], &run->regions[p.index + 1], (--run->n - p.index) * sizeof *run->regions);
  if (p.index < run->n) return p;
  if (run->n > 0) return (place){p.run + 1, 0};
  free(run);
  memmove(&r->runs[p.run], &r->runs[p.run + 1], (--r->n_runs - p.run) * sizeof(sn__region_run *));
  return p;
}

static const sn__claimed *claimed(const sn__regions *r, const sn__region *region) {
  return &r->claims[region->claim];
}

/* Whether all that overlaps, from `p` on, is dead and ordered before. */
static sn__claim look(const sn__regions *r, place p, uint64_t end, const uint32_t known[SN_LANES], uint32_t *which) {
  for (const sn__region *old = at(r, p); old && old->begin < end; p = next(r, p), old = at(r, p)) {
    *which = claimed(r, old)->owner;
    if (*which != SN_NONE) return SN__CLAIM_LIVE;
    if (!sn__moment_is_known(claimed(r, old)->touched, known)) return SN__CLAIM_UNORDERED;
  }
  return SN__CLAIM_GOOD;
}

static bool add_claim(sn__regions *r, sn__claimed claim) {
  if (r->n_claims == r->claims_room) {
    uint32_t room = r->claims_room ? 2 * r->claims_room : 64;
    sn__claimed *claims = room > r->claims_room ? realloc(r->claims, room * sizeof *claims) : NULL;
    if (!claims) return false;
    r->claims = claims;
    r->claims_room = room;
  }
  r->claims[r->n_claims++] = claim;
  return true;
}

/* Writes a region over what overlaps it, from `p` on; what sticks out on either side stays. */
static bool write(sn__regions *r, place p, const sn__region *fresh) {
  sn__region *old = at(r, p);
  bool written = false;
  if (old && old->begin < fresh->begin) {
    sn__region rest = *old;
    old->end = fresh->begin;
    p = next(r, p);
    rest.begin = fresh->end;
    if (rest.end > fresh->end) return insert(r, &p, &rest) && insert(r, &p, fresh);
  }
  while ((old = at(r, p)) && old->begin < fresh->end) {
    if (old->end > fresh->end) {
      old->begin = fresh->end;
    } else if (written) {
      p = take(r, p);
    } else {
      *old = *fresh;
      written = true;
      p = next(r, p);
    }
  }
  return written || insert(r, &p, fresh);
}

sn__claim sn__regions_claim(sn__regions *r, uint64_t begin, uint64_t end, uint32_t owner,
                            const uint32_t known[SN_LANES], sn__moment touched, uint32_t *which) {
  const sn__region fresh = {.begin = begin, .end = end, .claim = r->n_claims};
  place p = first_beyond(r, begin);
  sn__claim claim = look(r, p, end, known, which);
  if (claim != SN__CLAIM_GOOD) return claim;
  *which = fresh.claim;
  return add_claim(r, (sn__claimed){owner, touched}) && write(r, p, &fresh) ? SN__CLAIM_GOOD : SN__CLAIM_MEMORY;
}

void sn__regions_last(const sn__regions *r, uint64_t begin, uint64_t end, uint32_t clocks[SN_LANES]) {
  place p = first_beyond(r, begin);
  for (const sn__region *old = at(r, p); old && old->begin < end; p = next(r, p), old = at(r, p))
    if (claimed(r, old)->owner == SN_NONE && !sn__moment_is_known(claimed(r, old)->touched, clocks))
      clocks[claimed(r, old)->touched.lane] = claimed(r, old)->touched.clock;
}

uint64_t sn__regions_find(const sn__regions *r, uint64_t bytes, const uint32_t known[SN_LANES]) {
  uint64_t from = 0;
  place p = {0};
  for (const sn__region *old = at(r, p); old && old->begin < from + bytes; p = next(r, p), old = at(r, p))
    if (claimed(r, old)->owner != SN_NONE || !sn__moment_is_known(claimed(r, old)->touched, known)) from = old->end;
  return from;
}
