/* The walk over the steps; see the header. */
#include "sim/share/sharing.h"

#include "sim/graph/route.h"
#include "sim/share/box.h"

#include <stdlib.h>

typedef struct made {
  uint64_t bytes;
  uint32_t tensor, place; /* among the accesses of its step */
} made;

typedef struct walk {
  sn_sharing *sharing;
  const sn_sharing_rules *rules;
  sn_box *box;
  uint32_t *readers; /* per tensor */
  uint32_t *open;    /* per region: uses still to come */
  made *made;        /* room for what one step makes */
} walk;

static const sn_access *accesses_of(const sn_sharing *s, uint32_t step) {
  return &s->route->accesses[s->route->steps[step].first_access];
}

/* ---- a step ---- */

static bool may_lie_in(const walk *w, const sn_step *step, uint32_t from, uint32_t to) {
  const sn_sharing *s = w->sharing;
  bool last_use = w->open[s->region[from]] == 1 || step->kernel == SN_FLATTEN;
  return s->region[to] == SN_NONE && w->readers[to] > 0 && last_use &&
         s->route->tensors[from].bytes == s->route->tensors[to].bytes;
}

static void use_permits(walk *w, uint32_t at) {
  sn_sharing *s = w->sharing;
  const sn_step *step = &s->route->steps[at];
  for (uint32_t i = 0; i < step->n_permits && w->rules->in_place; i++) {
    sn_permit permit = s->route->permits[step->first_permit + i];
    uint32_t from = accesses_of(s, at)[permit.from].tensor, to = accesses_of(s, at)[permit.to].tensor;
    if (!may_lie_in(w, step, from, to)) continue;
    s->region[to] = s->region[from];
    w->open[s->region[to]] += w->readers[to];
  }
}

/* From the box, or new; either grows to what is needed. */
static void give_region(walk *w, uint32_t at, uint32_t tensor) {
  sn_sharing *s = w->sharing;
  uint64_t bytes = s->route->tensors[tensor].bytes;
  uint32_t region = sn_box_take(w->box, bytes, w->rules->match_range, at);
  if (region == SN_NONE) region = s->n_regions++;
  if (bytes > s->region_bytes[region]) {
    s->bytes += bytes - s->region_bytes[region];
    s->region_bytes[region] = bytes;
  }
  s->region[tensor] = region;
  w->open[region] = w->readers[tensor];
}

/* Largest first; of equals the last. */
static int compare_made(const void *a, const void *b) {
  const made *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->place > y->place ? -1 : x->place < y->place;
}

static void give_regions(walk *w, uint32_t at) {
  const sn_sharing *s = w->sharing;
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->route->steps[at].n_accesses; i++) {
    sn_access access = accesses_of(s, at)[i];
    if (access.mode == SN_WRITE && s->region[access.tensor] == SN_NONE)
      w->made[count++] = (made){s->route->tensors[access.tensor].bytes, access.tensor, i};
  }
  qsort(w->made, count, sizeof *w->made, compare_made);
  for (uint32_t i = 0; i < count; i++) give_region(w, at, w->made[i].tensor);
}

static sn_status put_into_box(walk *w, uint32_t region, uint32_t at, sn_err *err) {
  return sn_box_put(w->box, region, w->sharing->region_bytes[region], at, err);
}

static sn_status end_uses(walk *w, uint32_t at, sn_err *err) {
  const sn_sharing *s = w->sharing;
  uint32_t count = s->route->steps[at].n_accesses;
  for (uint32_t i = 0; i < count; i++) {
    sn_access access = accesses_of(s, at)[i];
    uint32_t region = s->region[access.tensor];
    if (access.mode != SN_WRITE && --w->open[region] == 0) put_into_box(w, region, at, err);
  }
  for (uint32_t i = 0; i < count; i++) {
    sn_access access = accesses_of(s, at)[i];
    if (access.mode == SN_WRITE && w->readers[access.tensor] == 0) put_into_box(w, s->region[access.tensor], at, err);
  }
  return err->code;
}

/* ---- the walk ---- */

static void count_readers(walk *w) {
  const sn_sharing *s = w->sharing;
  for (uint32_t step = 0; step < s->n_steps; step++)
    for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
      sn_access access = accesses_of(s, step)[i];
      w->readers[access.tensor] += access.mode != SN_WRITE;
    }
}

static uint32_t most_accesses(const sn_sharing *s) {
  uint32_t most = 0;
  for (uint32_t step = 0; step < s->n_steps; step++)
    if (s->route->steps[step].n_accesses > most) most = s->route->steps[step].n_accesses;
  return most;
}

/* A region is never larger than a tensor, and given at most once a tensor. */
static sn_box *make_box(const sn_route *route, const sn_sharing_rules *rules, sn_err *err) {
  uint64_t *sizes = calloc((size_t)route->n_tensors + 1, sizeof *sizes);
  if (!sizes) sn_fail_memory(err);
  for (uint32_t t = 0; t < route->n_tensors && sizes; t++) sizes[t] = route->tensors[t].bytes;
  sn_box *box = sizes ? sn_box_new(sizes, route->n_tensors, rules->colouring, err) : NULL;
  free(sizes);
  return box;
}

static sn_status run(walk *w, sn_err *err) {
  sn_sharing *s = w->sharing;
  size_t tensors = (size_t)s->route->n_tensors + 1;
  w->readers = calloc(tensors, sizeof *w->readers);
  w->open = calloc(tensors, sizeof *w->open);
  w->made = calloc((size_t)most_accesses(s) + 1, sizeof *w->made);
  w->box = make_box(s->route, w->rules, err);
  if (!w->readers || !w->open || !w->made || !w->box) return sn_fail_memory(err);
  count_readers(w);
  for (uint32_t step = 0; step < s->n_steps && err->code == SN_OK; step++) {
    use_permits(w, step);
    give_regions(w, step);
    end_uses(w, step, err);
  }
  return err->code;
}

static sn_status fill(sn_sharing *s, const sn_sharing_rules *rules, sn_err *err) {
  walk w = {.sharing = s, .rules = rules};
  size_t tensors = (size_t)s->route->n_tensors + 1;
  s->region = calloc(tensors, sizeof *s->region);
  s->region_bytes = calloc(tensors, sizeof *s->region_bytes);
  if (!s->region || !s->region_bytes) return sn_fail_memory(err);
  for (uint32_t t = 0; t < s->route->n_tensors; t++) s->region[t] = SN_NONE;
  run(&w, err);
  sn_box_free(w.box);
  free(w.readers);
  free(w.open);
  free(w.made);
  return err->code;
}

sn_sharing *sn_sharing_new(const sn_route *route, uint32_t n_steps, const sn_sharing_rules *rules, sn_err *err) {
  sn_sharing *s = calloc(1, sizeof *s);
  if (!s) {
    sn_fail_memory(err);
    return NULL;
  }
  s->route = route;
  s->n_steps = n_steps;
  if (fill(s, rules, err) == SN_OK) return s;
  sn_sharing_free(s);
  return NULL;
}

void sn_sharing_free(sn_sharing *s) {
  if (!s) return;
  free(s->region);
  free(s->region_bytes);
  free(s);
}
