/* Regions (internal to sim/): who holds or last held every byte range of a pool, and who touched it when.
 *
 *   0         a          b                 c        d
 *   |  free   |  T3 live |  dead: clocks   |  free  |  T9 live ...
 *
 * A range that was given back stays on record as dead with the moment of its last touch, which is ordered behind all
 * others: whoever takes it next must be ordered behind it. Claiming cuts dead ranges. They stand in the order of their
 * addresses in runs of up to 64: a claim or release is O(log n), and one more step for each range cut; one in 32 claims
 * at most divides a run, which is O(n / 64).
 */
#ifndef SN_SIM_PLAN_REGIONS_H
#define SN_SIM_PLAN_REGIONS_H

#include "sim/plan/plan.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* An instruction, as its lane counts them from 1 on; 0: none. */
typedef struct sn__moment {
  uint32_t clock;
  uint8_t lane;
} sn__moment;

/* Whether one that knows so much of each lane is behind it. */
static inline bool sn__moment_is_known(sn__moment moment, const uint32_t known[SN_LANES]) {
  return moment.clock <= known[moment.lane];
}

/* Of one claim, whatever is left of its region. */
typedef struct sn__claimed {
  uint32_t owner; /* tensor; SN_NONE: dead */
  sn__moment touched;
} sn__claimed;

typedef struct sn__region {
  uint64_t begin, end;
  uint32_t claim; /* its number */
} sn__region;

typedef struct sn__region_run sn__region_run;

typedef struct sn__regions {
  sn__region_run **runs; /* none is empty */
  uint32_t n_runs, room;
  sn__claimed *claims; /* by number, as they were made */
  uint32_t n_claims, claims_room;
} sn__regions;

typedef enum sn__claim {
  SN__CLAIM_GOOD,
  SN__CLAIM_LIVE,      /* overlaps a live region: *which is its owner */
  SN__CLAIM_UNORDERED, /* what was there before is not ordered before this */
  SN__CLAIM_MEMORY
} sn__claim;

/* A zeroed struct is an empty pool. */
void sn__regions_clear(sn__regions *r);

/* Makes [begin, end) a region of `owner` (SN_NONE: dead at once, last touched at `touched`), for a lane that is behind
 * `known` of every lane. Where that is good, *which is the claim's number. */
sn__claim sn__regions_claim(sn__regions *r, uint64_t begin, uint64_t end, uint32_t owner,
                            const uint32_t known[SN_LANES], sn__moment touched, uint32_t *which);

/* Raises `clocks` to what one who takes [begin, end) has to be behind: the last touches of what lies there dead. */
void sn__regions_last(const sn__regions *r, uint64_t begin, uint64_t end, uint32_t clocks[SN_LANES]);

/* The lowest address where `bytes` are dead or never had, of which a lane that is behind `known` is behind all last
 * touches. O(regions). */
uint64_t sn__regions_find(const sn__regions *r, uint64_t bytes, const uint32_t known[SN_LANES]);

/* The region of a claim is dead from now on. */
static inline void sn__regions_release(sn__regions *r, uint32_t claim, sn__moment touched) {
  assert(claim < r->n_claims);
  r->claims[claim] = (sn__claimed){SN_NONE, touched};
}

#endif
