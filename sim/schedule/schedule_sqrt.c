/* recompute=sqrt; see the header. */
#include "sim/schedule/schedule_sqrt.h"

#include "base/checked.h"
#include "sim/schedule/stages.h"

#include <math.h>
#include <stdlib.h>

enum { GUESSES = 3, STEPS = 6 };

/* What a threshold leads to. */
typedef struct segments {
  uint64_t kept, largest; /* bytes: of kept outputs, between two of them */
  uint32_t *first;        /* segment i begins at stage first[i]; count + 1 entries */
  uint32_t count;
} segments;

/* The last stage's segment is never dropped, as backward begins there. */
static void cut_segments(const sn_stages *all, uint64_t threshold, segments *s) {
  uint64_t since = 0;
  s->kept = s->largest = 0;
  s->first[0] = 0;
  s->count = 1;
  for (uint32_t i = 0; i < all->count; i++) {
    const sn_stage *stage = &all->stages[i];
    since += stage->keeping[SN_KEEPS_ALL].bytes;
    s->largest = sn_max(s->largest, since);
    if (since <= threshold || i + 1 == all->count) continue;
    s->kept += stage->output_bytes;
    s->first[s->count++] = i + 1;
    since = 0;
  }
  s->first[s->count] = all->count;
}

static sn_schedule *schedule_of(const sn_stages *all, const segments *s, sn_err *err) {
  sn_run_list *list = sn_run_list_new(all, err);
  if (!list) return NULL;
  for (uint32_t i = 0; i < all->count; i++) sn_run_list_add(list, i, SN_RUN_FORWARD);
  for (uint32_t g = s->count; g-- > 0;) {
    bool last = g + 1 == s->count; /* all of it is there still */
    uint32_t end = s->first[g + 1];
    for (uint32_t i = s->first[g]; !last && i + 1 < end; i++) sn_run_list_add(list, i, SN_RUN_AGAIN);
    sn_run_list_add(list, end - 1, last ? SN_RUN_BACKWARD : SN_RUN_REMAKE);
    for (uint32_t i = end - 1; i-- > s->first[g];) sn_run_list_add(list, i, SN_RUN_BACKWARD);
  }
  return sn_run_list_end(list, err);
}

/* The schedule with the least load so far. */
typedef struct best {
  sn_schedule *schedule;
  uint64_t load;
} best;

static sn_status try_threshold(const sn_stages *all, uint64_t threshold, segments *s, best *b, sn_err *err) {
  cut_segments(all, threshold, s);
  sn_schedule *schedule = schedule_of(all, s, err);
  if (!schedule) return err->code;
  uint64_t load = sn_schedule_load(schedule);
  if (b->schedule && load >= b->load) {
    sn_schedule_free(schedule);
    return SN_OK;
  }
  sn_schedule_free(b->schedule);
  *b = (best){schedule, load};
  return SN_OK;
}

static sn_status search(const sn_stages *all, segments *s, best *b, sn_err *err) {
  uint64_t threshold = 0, least = UINT64_MAX;
  sn_status status = SN_OK;
  for (int i = 0; i < GUESSES && status == SN_OK; i++) {
    status = try_threshold(all, threshold, s, b, err);
    least = sn_min(least, s->largest);
    threshold = (uint64_t)floor(sqrt((double)s->kept * (double)s->largest / 2));
  }
  double most = (double)threshold * sqrt(2);
  uint64_t step = most > (double)least ? (uint64_t)((most - (double)least) / STEPS) : 0;
  for (uint64_t i = 1; i <= STEPS && step > 0 && status == SN_OK; i++)
    status = try_threshold(all, least + i * step, s, b, err);
  return status;
}

sn_schedule *sn_schedule_sqrt(const sn_route *route, sn_err *err) {
  sn_stages *all = sn_stages_new(route, NULL, false, err);
  segments s = {.first = all ? calloc((size_t)all->count + 2, sizeof *s.first) : NULL};
  best b = {0};
  if (all && !s.first) sn_fail_memory(err);
  sn_status status = all && s.first ? search(all, &s, &b, err) : err->code;
  free(s.first);
  sn_stages_free(all);
  if (status == SN_OK) return b.schedule;
  sn_schedule_free(b.schedule);
  return NULL;
}
