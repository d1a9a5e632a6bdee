/* The search of sim/capacity/fit.h alone, over any function that says what a value needs.
 *
 *   1. bracket    secant steps on the slack find `edge`, the last value whose tensors alone fit: 4 or 5 plans where
 *                 slack falls evenly. A step that does not shrink the bracket by half is followed by one that does.
 *   2. boundary   down from the edge with doubling strides to a value that fits, then bisection: most often the edge
 *                 itself fits and nothing is to do.
 *   3. scan       every value above the boundary up to the edge and SPARE beyond it, one where that says all, and SPARE
 *                 below the boundary, unless it is the end of the range. What fits above it becomes the answer.
 *
 * Every value is measured once. Cost: about 5 + 2 SPARE plans, and one for each value between boundary and edge. */
#include "sim/capacity/fit.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>

enum { SPARE = 4 };

typedef struct measured {
  uint32_t value;
  sn_need need;
} measured;

typedef struct search {
  uint32_t low, high, spare;
  sn_fit_measure *measure;
  void *user;
  sn_err *err;
  measured *seen;
  uint32_t n_seen, room;
} search;

static const measured *look_up(const search *s, uint32_t value) {
  for (uint32_t i = s->n_seen; i > 0; i--)
    if (s->seen[i - 1].value == value) return &s->seen[i - 1];
  return NULL;
}

static sn_status measure(search *s, uint32_t value, sn_need *need) {
  const measured *known = look_up(s, value);
  if (known) {
    *need = known->need;
    return SN_OK;
  }
  if (s->n_seen == s->room) {
    uint32_t room = s->room ? 2 * s->room : 32;
    measured *wider = realloc(s->seen, room * sizeof *wider);
    if (!wider) return sn_fail_memory(s->err);
    s->seen = wider;
    s->room = room;
  }
  if (s->measure(s->user, value, need, s->err) != SN_OK) return s->err->code;
  s->seen[s->n_seen++] = (measured){value, *need};
  return SN_OK;
}

/* ---- 1. bracket ---- */

/* Where the line through two measurements has no slack left; `otherwise` where it does not fall. */
static double secant(const measured *a, const measured *b, double otherwise) {
  double fall = (double)a->need.slack_bytes - (double)b->need.slack_bytes;
  double run = (double)b->value - (double)a->value;
  return fall * run > 0 ? (double)b->value + (double)b->need.slack_bytes * run / fall : otherwise;
}

/* The last value whose tensors alone fit; low - 1 where not even those of the lowest do. */
static sn_status find_edge(search *s, uint32_t *edge) {
  uint32_t good = s->low - 1, bad = s->high + 1;
  measured last = {0}, now = {.value = s->low};
  bool slow = false;
  for (;;) {
    uint32_t gap = bad - good, from = good;
    if (measure(s, now.value, &now.need) != SN_OK) return s->err->code;
    *(now.need.slack_bytes >= 0 ? &good : &bad) = now.value;
    *edge = good;
    if (bad - good <= 1) return SN_OK;
    bool ended = bad <= s->high; /* else there is no bracket yet, and doubling takes the place of halving */
    slow = !slow && (ended ? bad - good > gap / 2 : good / 2 < from);
    double sure = ended ? good + (double)(bad - good) / 2 : 2.0 * good;
    double next = slow || !last.value ? sure : floor(secant(&last, &now, sure));
    last = now;
    now.value = next <= good ? good + 1 : next >= bad ? bad - 1 : (uint32_t)next;
  }
}

/* ---- 2. boundary ---- */

/* From an edge that does not fit down to a value that fits while the next does not; low - 1 where none was met. */
static sn_status find_boundary(search *s, uint32_t edge, uint32_t *boundary) {
  uint32_t good = s->low - 1, bad = edge + 1;
  sn_need need;
  for (uint32_t stride = 0; bad > s->low && good < s->low; stride = stride ? 2 * stride : 1) {
    uint32_t value = edge - s->low > stride ? edge - stride : s->low;
    if (measure(s, value, &need) != SN_OK) return s->err->code;
    *(need.fits ? &good : &bad) = value;
  }
  while (bad - good > 1) {
    uint32_t middle = good + (bad - good) / 2;
    if (measure(s, middle, &need) != SN_OK) return s->err->code;
    *(need.fits ? &good : &bad) = middle;
  }
  *boundary = good;
  return SN_OK;
}

/* ---- 3. scan ---- */

static sn_status scan_up(search *s, uint32_t edge, uint32_t most, sn_fit_search *found) {
  uint32_t beyond = s->high - edge < s->spare ? s->high : edge + s->spare;
  for (uint32_t v = found->value < s->low ? s->low : found->value + 1; v <= beyond; v++) {
    sn_need need;
    if (v > found->value && v - found->value > most && v <= edge) return SN_OK; /* not proved */
    if (measure(s, v, &need) != SN_OK) return s->err->code;
    found->tried_to = v;
    if (need.fits) found->value = v;
  }
  found->proved = true;
  return SN_OK;
}

/* At the end of the range nothing is in doubt. */
static sn_status scan_down(search *s, sn_fit_search *found) {
  found->tried_from = found->value;
  while (found->value < s->high && found->tried_from > s->low && found->value - found->tried_from < SPARE) {
    sn_need need;
    if (measure(s, found->tried_from - 1, &need) != SN_OK) return s->err->code;
    found->tried_from--;
  }
  return SN_OK;
}

static void count_misfits(const search *s, sn_fit_search *found) {
  for (uint32_t i = 0; i < s->n_seen; i++) {
    if (s->seen[i].need.fits || s->seen[i].value >= found->value) continue;
    found->misfits++;
    if (s->seen[i].value > found->misfit) found->misfit = s->seen[i].value;
  }
}

static sn_status run(search *s, uint32_t most, sn_fit_search *found) {
  uint32_t edge = 0, boundary = 0;
  if (find_edge(s, &edge) != SN_OK || find_boundary(s, edge, &boundary) != SN_OK) return s->err->code;
  *found = (sn_fit_search){.value = boundary < s->low ? 0 : boundary, .tried_to = boundary};
  if (scan_up(s, edge, most, found) != SN_OK) return s->err->code;
  if (found->value == 0)
    found->tried_from = s->low;
  else if (scan_down(s, found) != SN_OK)
    return s->err->code;
  count_misfits(s, found);
  found->plans = s->n_seen;
  return SN_OK;
}

sn_status sn_fit_find(const sn_fit_range *range, sn_fit_measure *measure_value, void *user, sn_fit_search *found,
                      sn_err *err) {
  search s = {.low = range->low, .high = range->high, .measure = measure_value, .user = user, .err = err};
  s.spare = range->falls ? 1 : SPARE;
  run(&s, range->most_tried, found);
  free(s.seen);
  return err->code;
}
