/* Least pool; see the header. */
#include "sim/ask/least_pool.h"

#include "base/checked.h"
#include "sim/make/fullest.h"
#include "sim/memory/pool.h"
#include "sim/plan/lower.h"

/* Places between the floor and the first pool that is enough, and steps down from the best of them. */
enum { LOOKS = 16, DOWN = 64 };

typedef struct search {
  const sn_least_pool_wish *wish;
  uint64_t bound, most; /* what no plan needs less than, and what nobody asks beyond */
  uint64_t least;       /* that was enough so far */
  sn_err *err;
} search;

static sn_status look(const search *s, uint64_t pool_bytes, bool only_fits, uint64_t *needed) {
  const sn_least_pool_wish *w = s->wish;
  return sn_lower_need(w->schedule, w->strategy, w->workspace, w->costs, pool_bytes, only_fits, needed, s->err);
}

/* From the floor up to what each plan says it needs, until that is enough. */
static sn_status climb(search *s) {
  uint64_t pool = 0;
  s->least = s->wish->floor;
  do {
    pool = s->least;
    if (look(s, pool, false, &s->least) != SN_OK) return s->err->code;
  } while (s->least > pool);
  return SN_OK;
}

/* Whether less is enough: takes what that needs. */
static sn_status take_less(search *s, uint64_t pool_bytes, bool *taken) {
  uint64_t needed = UINT64_MAX;
  sn_status status = pool_bytes < s->bound ? SN_OK : look(s, pool_bytes, true, &needed);
  *taken = needed <= pool_bytes;
  if (*taken) s->least = needed;
  return status;
}

/* Between the floor and what is enough; then downwards from the best. */
static sn_status look_around(search *s) {
  uint64_t floor = s->wish->floor, gap = (s->least - sn_min(floor, s->least)) / LOOKS;
  bool taken = false;
  for (uint64_t i = 1; gap > 0 && i < LOOKS && !taken && floor + i * gap <= s->most; i++)
    if (take_less(s, floor + i * gap, &taken) != SN_OK) return s->err->code;
  taken = s->least <= s->most;
  for (int i = 0; i < DOWN && taken && s->least > floor; i++)
    if (take_less(s, s->least - SN_POOL_BLOCK, &taken) != SN_OK) return s->err->code;
  return SN_OK;
}

sn_status sn_least_pool_find(const sn_least_pool_wish *w, uint64_t most, uint64_t *least, sn_err *err) {
  const sn_fullest_wish wish = {
      .schedule = w->schedule, .strategy = w->strategy, .costs = w->costs, .workspace = w->workspace};
  sn_fullest fullest;
  if (sn_fullest_find(&wish, &fullest, err) != SN_OK) return err->code;
  search s = {.wish = w, .bound = fullest.pool_bytes, .most = most, .least = fullest.pool_bytes, .err = err};
  if (s.bound <= most && climb(&s) == SN_OK) look_around(&s);
  *least = s.least;
  return err->code;
}
