/* What sim/memory/shelf.c and its part shelf_sights.c share: runs, and what searches met of them.
 *
 * A block that looks for a place mostly meets of a run what the block before it met: in a recording of 100,000 operations
 * 99 times of 100. So who passes a run, or a group of them, leaves a sight there: what it met, and who else meets the
 * same. Those pass at once. They count as many looks as if they had looked, for looks decide when a packing is given up.
 */
#ifndef SN_SIM_MEMORY_SHELF_INTERNAL_H
#define SN_SIM_MEMORY_SHELF_INTERNAL_H

#include "sim/memory/shelf.h"

enum { SN__RUN = 64 };   /* spots in a run */
enum { SN__GROUP = 16 }; /* runs in a group, which begins at a multiple of that */
enum { SN__MANY = 64 };  /* runs: fewer are passed as quickly without sights */

/* The same is met by whose life begins in [lower_from, lower_to) and ends in (upper_from, upper_to], and passed with as
 * many looks by who asks for more than `gap` bytes then and comes with an offset of up to `most` that is above `bottom`
 * or less than the bytes below it. It goes on from `reach`, unless it came from above that. */
typedef struct sn__sight {
  uint32_t lower_from, lower_to, upper_from, upper_to; /* upper_to is 0: nobody */
  uint64_t gap, most, bottom, reach;                   /* reach is 0 where no spot was met */
  uint32_t looks, missed;                              /* missed: who met something else since the last change */
} sn__sight;

/* What is known of a run: all that most searches look at. */
struct sn__run {
  uint64_t bottom, reach; /* lowest offset, highest end */
  uint64_t gap;           /* none between its spots is larger, for who conflicts with all of them */
  uint32_t first_lower, last_lower, first_upper, last_upper; /* of its spots */
  uint32_t n, page;                                          /* how many spots; which page they stand on */
};

struct sn__page {
  sn__spot spots[SN__RUN];
  int32_t lower[SN__RUN], upper[SN__RUN]; /* of the spots, side by side */
  sn__sight seen, group;                  /* of the run; of the group that begins with it */
};

static inline sn__page *sn__page_of(const sn__shelf *shelf, const sn__run *run) {
  return &shelf->pages[run->page];
}

static inline sn__sight *sn__group_of(const sn__shelf *shelf, uint32_t run) {
  return &sn__page_of(shelf, &shelf->runs[run - run % SN__GROUP])->group;
}

static inline void sn__forget(sn__sight *seen) {
  seen->upper_to = 0;
  seen->missed = 0;
}

/* What was met of a run that has changed. */
static inline void sn__forget_run(sn__shelf *shelf, uint32_t run) {
  sn__forget(&sn__page_of(shelf, &shelf->runs[run])->seen);
  sn__forget(sn__group_of(shelf, run));
}

/* What was met of groups, where a run was added or taken away there; and all, where there is no whole group: who puts
 * then forgets nothing. */
void sn__forget_groups(sn__shelf *shelf, uint32_t run);

/* sn__shelf_find() among many runs. */
uint64_t sn__shelf_find_by_sight(sn__shelf *shelf, uint32_t lower, uint32_t upper, uint64_t bytes, uint64_t from);

#endif
