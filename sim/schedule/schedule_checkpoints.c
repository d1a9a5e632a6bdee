/* Regions of torch.utils.checkpoint; see the header. */
#include "sim/schedule/schedule_checkpoints.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/schedule/units.h"

#include <stdlib.h>
#include <string.h>

/* A unit, or the rest behind the last. Loads are without what is kept ahead of it and without its input. */
typedef struct piece {
  uint32_t first, end;               /* forward steps */
  uint32_t window;                   /* the first backward step; it ends where the window of the piece ahead begins */
  uint64_t output_bytes;             /* 0: the loss */
  uint64_t held_bytes;               /* made in it and read by backward, without the output */
  bool reads_input, reads_output;    /* its backward does */
  bool stays;                        /* it is no module, so that it is in no region */
  uint64_t keep_load, drop_load;     /* of forward that leaves all that backward reads, and the output alone */
  uint64_t backward_load;            /* with all that was kept, and with gradients */
  uint64_t gradient_bytes;           /* there when its backward begins */
  int64_t again_ns, again_to_end_ns; /* of all its forward; up to where all is saved */
} piece;

struct sn_checkpoints {
  const sn_route *route;
  sn_units units;
  piece *pieces;
  uint32_t count;
};

static sn_access access_at(const sn_route *route, uint32_t step, uint32_t i) {
  return route->accesses[route->steps[step].first_access + i];
}

/* ---- what a unit keeps and takes ---- */

/* Per tensor the steps that touch it; per step how the bytes that are there change ahead of it. */
typedef struct lives {
  uint32_t *made, *last_forward, *last; /* made: by a forward step; SN_NONE: it is not */
  int64_t *kept, *dropped; /* of units: in forward that keeps and in one that drops; backward is in `kept` */
  int64_t *beside;         /* of all else */
} lives;

static bool lives_init(lives *l, const sn_route *route) {
  size_t tensors = (size_t)route->n_tensors + 1, steps = (size_t)route->n_steps + 2;
  *l = (lives){.made = malloc(tensors * sizeof *l->made),
               .last_forward = calloc(tensors, sizeof *l->last_forward),
               .last = calloc(tensors, sizeof *l->last),
               .kept = calloc(steps, sizeof *l->kept),
               .dropped = calloc(steps, sizeof *l->dropped),
               .beside = calloc(steps, sizeof *l->beside)};
  if (!l->made || !l->last_forward || !l->last || !l->kept || !l->dropped || !l->beside) return false;
  memset(l->made, 0xff, tensors * sizeof *l->made);
  return true;
}

static void lives_clear(lives *l) {
  void *const parts[] = {l->made, l->last_forward, l->last, l->kept, l->dropped, l->beside};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

static void add_life(int64_t *change, uint32_t first, uint32_t last, uint64_t bytes) {
  change[first] += (int64_t)bytes;
  change[last + 1] -= (int64_t)bytes;
}

/* The piece that a forward step is in. */
static uint32_t piece_of(const sn_checkpoints *c, uint32_t step) {
  uint32_t low = 0, high = c->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(c->pieces[middle].first <= step ? &low : &high) = middle;
  }
  return low;
}

static void find_windows(sn_checkpoints *c) {
  const sn_route *route = c->route;
  uint32_t p = c->count - 1;
  c->pieces[p].window = route->first_backward;
  for (uint32_t b = route->first_backward; b < route->first_update; b++) {
    uint32_t forward = route->forward_step[route->steps[b].layer];
    for (; forward != SN_NONE && forward < c->pieces[p].first; p--) c->pieces[p - 1].window = b;
  }
  while (p-- > 0) c->pieces[p].window = route->first_update;
}

static void find_lives(const sn_route *route, lives *l) {
  for (uint32_t k = route->n_steps; k-- > 0;)
    for (uint32_t i = 0; i < route->steps[k].n_accesses; i++) {
      uint32_t t = access_at(route, k, i).tensor;
      if (l->last[t] < k) l->last[t] = k;
      if (k >= route->first_backward) continue;
      if (l->last_forward[t] < k) l->last_forward[t] = k;
      l->made[t] = k; /* at last the first */
    }
}

static uint32_t window_end(const sn_checkpoints *c, uint32_t p) {
  return p > 0 ? c->pieces[p - 1].window : c->route->first_update;
}

/* A tensor that a unit makes. */
static void add_own(sn_checkpoints *c, lives *l, uint32_t t) {
  const sn_route *route = c->route;
  uint64_t bytes = sn_pool_round(route->tensors[t].bytes);
  uint32_t p = piece_of(c, l->made[t]), forward_end = l->last_forward[t];
  piece *own = &c->pieces[p];
  bool output = forward_end >= own->end, read = l->last[t] >= own->window;
  if (output) {
    own->output_bytes = bytes;
    own->reads_output = read;
    forward_end = own->end - 1;
  } else if (read) {
    own->held_bytes += bytes;
  }
  add_life(l->kept, l->made[t], read ? own->end - 1 : forward_end, bytes);
  add_life(l->dropped, l->made[t], forward_end, bytes);
  if (read) add_life(l->kept, own->window, l->last[t], bytes);
}

static void find_first_use_beside(const sn_route *route, uint32_t *first) {
  for (uint32_t k = route->n_steps; k-- > 0;)
    for (uint32_t i = 0; i < route->steps[k].n_accesses; i++) first[access_at(route, k, i).tensor] = k;
}

static void find_changes(sn_checkpoints *c, lives *l, const uint32_t *first) {
  for (uint32_t t = 0; t < c->route->n_tensors; t++) {
    if (first[t] == SN_NONE) continue;
    if (l->made[t] != SN_NONE && l->made[t] < c->pieces[c->count - 1].first)
      add_own(c, l, t);
    else
      add_life(l->beside, first[t], l->last[t], sn_pool_round(c->route->tensors[t].bytes));
  }
}

static bool touches(const sn_route *route, uint32_t first, uint32_t end, uint32_t tensor) {
  for (uint32_t k = first; k < end; k++)
    for (uint32_t i = 0; i < route->steps[k].n_accesses; i++)
      if (access_at(route, k, i).tensor == tensor) return true;
  return false;
}

/* Whether a piece's own backward reads the output of the piece ahead. */
static void find_readers_of_inputs(sn_checkpoints *c, const lives *l) {
  for (uint32_t t = 0; t < c->route->n_tensors; t++) {
    if (l->made[t] == SN_NONE || l->made[t] >= c->pieces[c->count - 1].first) continue;
    uint32_t p = piece_of(c, l->made[t]);
    if (l->last_forward[t] >= c->pieces[p].end)
      c->pieces[p + 1].reads_input = touches(c->route, c->pieces[p + 1].window, window_end(c, p + 1), t);
  }
}

/* Of the fastest algorithms, which are what PyTorch is taken to use. */
static uint64_t workspace_of(const sn_route *route, const sn_costs *costs, uint32_t step) {
  static const sn_conv_kernel kernels[] = {SN_CONV_BACKWARD_DATA, SN_CONV_BACKWARD_FILTER, SN_CONV_FORWARD};
  const sn_step *at = &route->steps[step];
  uint64_t bytes = 0;
  if (!costs || !sn_op_of(&route->layers[at->layer])->convolves) return 0;
  for (int i = at->pass == SN_FORWARD ? 2 : 0; i < (at->pass == SN_FORWARD ? 3 : 2); i++) {
    uint32_t count = 0;
    const sn_conv_choice *choices = sn_costs_conv(costs, at->layer, kernels[i], &count);
    if (count > 0) bytes = sn_max(bytes, sn_pool_round(choices[0].workspace));
  }
  return bytes;
}

static void find_loads(sn_checkpoints *c, const lives *l, const sn_costs *costs) {
  int64_t kept = 0, dropped = 0, beside = 0;
  uint32_t p = 0;
  for (uint32_t k = 0; k < c->route->first_update; k++) {
    if (k < c->route->first_backward) {
      p = piece_of(c, k);
    } else {
      while (p > 0 && k >= c->pieces[p - 1].window) p--;
    }
    piece *at = &c->pieces[p];
    if (k == at->window) at->gradient_bytes = (uint64_t)beside; /* those that end there too */
    kept += l->kept[k];
    dropped += l->dropped[k];
    beside += l->beside[k];
    uint64_t more = (uint64_t)beside + workspace_of(c->route, costs, k);
    if (k >= c->route->first_backward) {
      at->backward_load = sn_max(at->backward_load, (uint64_t)kept + more);
    } else {
      at->keep_load = sn_max(at->keep_load, (uint64_t)kept + more);
      at->drop_load = sn_max(at->drop_load, (uint64_t)dropped + more);
    }
  }
}

static int64_t forward_ns(const sn_route *route, const sn_costs *costs, uint32_t step) {
  uint32_t count = 0, layer = route->steps[step].layer;
  uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
  if (!costs) return 0;
  if (sn_op_of(&route->layers[layer])->convolves) {
    const sn_conv_choice *choices = sn_costs_conv(costs, layer, SN_CONV_FORWARD, &count);
    if (count > 0) algo[0] = (uint8_t)choices[0].algo;
  }
  return sn_costs_of(costs, route, &route->steps[step], algo);
}

static void find_times(sn_checkpoints *c, const sn_costs *costs) {
  for (uint32_t p = 0; p < c->count; p++) {
    piece *at = &c->pieces[p];
    for (uint32_t k = at->first; k < at->end; k++) {
      int64_t ahead = at->again_ns;
      at->again_ns += forward_ns(c->route, costs, k);
      if (sn_schedule_needs_forward(c->route, k))
        at->again_to_end_ns = sn_schedule_saves_own(c->route, k) ? at->again_ns : ahead;
    }
  }
}

static sn_status measure(sn_checkpoints *c, const sn_costs *costs, sn_err *err) {
  size_t tensors = (size_t)c->route->n_tensors + 1;
  uint32_t *first = malloc(tensors * sizeof *first);
  lives l;
  bool good = lives_init(&l, c->route) && first;
  if (good) {
    memset(first, 0xff, tensors * sizeof *first);
    find_windows(c);
    find_lives(c->route, &l);
    find_first_use_beside(c->route, first);
    find_changes(c, &l, first);
    find_readers_of_inputs(c, &l);
    find_loads(c, &l, costs);
    find_times(c, costs);
  }
  lives_clear(&l);
  free(first);
  return good ? SN_OK : sn_fail_memory(err);
}

sn_checkpoints *sn_checkpoints_new(const sn_route *route, const sn_costs *costs, sn_err *err) {
  sn_checkpoints *c = calloc(1, sizeof *c);
  if (!c) {
    sn_fail_memory(err);
    return NULL;
  }
  c->route = route;
  sn_status status = sn_units_find(route, &c->units, err);
  if (status == SN_OK) {
    c->count = c->units.count + 1;
    c->pieces = calloc(c->count, sizeof *c->pieces);
    if (!c->pieces) status = sn_fail_memory(err);
  }
  for (uint32_t p = 0; p < c->count && status == SN_OK; p++) {
    c->pieces[p].first = c->units.first[p];
    c->pieces[p].stays = p + 1 == c->count || sn_units_stays(&c->units, p);
    c->pieces[p].end = p + 1 < c->count ? c->units.first[p + 1] : route->first_backward;
  }
  if (status == SN_OK) status = measure(c, costs, err);
  if (status == SN_OK) return c;
  sn_checkpoints_free(c);
  return NULL;
}

void sn_checkpoints_free(sn_checkpoints *c) {
  if (!c) return;
  sn_units_clear(&c->units);
  free(c->pieces);
  free(c);
}

/* ---- the least time ---- */

/* The pieces ahead of one: what they keep, what they lose, and from where. `counted`: the input of the next is among
 * what they keep. */
typedef struct choice {
  uint64_t bytes;
  int64_t ns; /* NEVER: there is none */
  uint32_t from_piece, from_size;
  bool from_counted, again;
} choice;

#define NEVER INT64_MAX

typedef struct search {
  const sn_checkpoints *c;
  uint64_t memory, unit;
  choice *best; /* [piece][counted][size] */
} search;

static choice *choice_at(const search *s, uint32_t p, bool counted, uint32_t size) {
  return &s->best[((size_t)p * 2 + counted) * SN_CHECKPOINT_SIZES + size];
}

static void offer(choice *old, choice made) {
  if (made.ns < old->ns || (made.ns == old->ns && made.bytes < old->bytes)) *old = made;
}

static uint32_t size_of(const search *s, uint64_t bytes) {
  return (uint32_t)(bytes / s->unit);
}

static uint64_t output_ahead(const sn_checkpoints *c, uint32_t p) {
  return p > 0 ? c->pieces[p - 1].output_bytes : 0;
}

static void keep_one(const search *s, uint32_t p, uint64_t input, choice made) {
  const piece *at = &s->c->pieces[p];
  uint64_t kept = made.bytes + (at->reads_input ? input : 0);
  if (sn_max(made.bytes + input + at->keep_load, kept + at->backward_load) > s->memory) return;
  made.bytes = kept + at->held_bytes + (at->reads_output ? at->output_bytes : 0);
  if (made.bytes <= s->memory) offer(choice_at(s, p + 1, at->reads_output, size_of(s, made.bytes)), made);
}

/* A region from a piece on: what it takes while it runs, and again, and what that costs. */
typedef struct region {
  uint64_t load, again_load;
  int64_t again_ns;
} region;

/* Regions from piece p on, of one unit, of two, and so on, and how many. */
static uint32_t find_regions(const sn_checkpoints *c, uint32_t p, region found[SN_CHECKPOINT_UNITS]) {
  uint64_t inside = 0, forward = 0, again = 0, backward = 0;
  int64_t ns = 0;
  uint32_t count = 0;
  for (uint32_t q = p; !c->pieces[q].stays && count < SN_CHECKPOINT_UNITS; q++) {
    const piece *at = &c->pieces[q];
    bool held = q > p && (c->pieces[q - 1].reads_output || at->reads_input);
    uint64_t before = q > p ? output_ahead(c, q) : 0;
    forward = sn_max(forward, before + at->drop_load);
    again = sn_max(again, inside + (held ? 0 : before) + at->keep_load);
    backward = sn_max(backward, inside + at->backward_load);
    found[count++] = (region){sn_max(forward, backward), again + at->gradient_bytes, ns + at->again_to_end_ns};
    ns += at->again_ns;
    bool next = at->reads_output || c->pieces[q + 1].reads_input;
    inside += at->held_bytes + (next ? at->output_bytes : 0);
  }
  return count;
}

/* Piece p and those behind it as one of its regions; what is kept is the same for all. */
static void run_again(const search *s, uint32_t p, const region *regions, uint32_t count, uint64_t input, choice made) {
  const uint64_t room = s->memory - made.bytes;
  const int64_t ns = made.ns;
  if (input > room) return;
  made.again = true;
  made.bytes += input;
  choice *to = choice_at(s, p + 1, false, size_of(s, made.bytes));
  for (uint32_t i = 0; i < count && regions[i].load <= room - input; i++, to += (size_t)2 * SN_CHECKPOINT_SIZES) {
    made.ns = ns + regions[i].again_ns;
    if (regions[i].again_load <= room - input) offer(to, made);
  }
}

static void go_on(const search *s, uint32_t p) {
  region regions[SN_CHECKPOINT_UNITS];
  const uint32_t count = find_regions(s->c, p, regions);
  for (int counted = 0; counted < 2; counted++)
    for (uint32_t size = 0; size < SN_CHECKPOINT_SIZES; size++) {
      const choice *here = choice_at(s, p, counted, size);
      if (here->ns == NEVER) continue;
      uint64_t input = counted ? 0 : output_ahead(s->c, p);
      choice made = {here->bytes, here->ns, p, size, counted, false};
      keep_one(s, p, input, made);
      run_again(s, p, regions, count, input, made);
    }
}

/* The fastest behind the last piece; NULL: there is none. */
static const choice *find_last(const search *s) {
  const choice *best = NULL;
  for (uint32_t i = 0; i < 2 * SN_CHECKPOINT_SIZES; i++) {
    const choice *end = choice_at(s, s->c->count, false, 0) + i;
    if (end->ns < (best ? best->ns : NEVER)) best = end;
  }
  return best;
}

static sn_status search_within(search *s, const sn_checkpoints *c, uint64_t bytes, sn_err *err) {
  size_t count = ((size_t)c->count + 1) * 2 * SN_CHECKPOINT_SIZES;
  *s = (search){.c = c, .memory = bytes, .unit = bytes / SN_CHECKPOINT_SIZES + 1};
  s->best = malloc(count * sizeof *s->best);
  if (!s->best) return sn_fail_memory(err);
  for (size_t i = 0; i < count; i++) s->best[i] = (choice){.ns = NEVER};
  choice_at(s, 0, false, 0)->ns = 0;
  for (uint32_t p = 0; p < c->count; p++) go_on(s, p);
  return SN_OK;
}

static sn_schedule *follow(const search *s, const choice *end, sn_err *err) {
  const sn_checkpoints *c = s->c;
  sn_units regions = {.first = calloc((size_t)c->count + 1, sizeof *regions.first)};
  bool *again = calloc((size_t)c->count + 1, sizeof *again);
  sn_schedule *schedule = NULL;
  uint32_t n = 0;
  if (regions.first && again) {
    for (const choice *at = end; at != choice_at(s, 0, false, 0);
         at = choice_at(s, at->from_piece, at->from_counted, at->from_size)) {
      if (at->from_piece + 1 == c->count) continue; /* the rest */
      again[at->from_piece] = at->again;
      regions.first[at->from_piece] = 1; /* begins here */
    }
    for (uint32_t p = 0; p + 1 < c->count; p++) {
      if (!regions.first[p]) continue;
      again[n] = again[p];
      regions.first[n++] = c->pieces[p].first;
    }
    regions.count = n;
    regions.first[n] = c->pieces[c->count - 1].first;
    schedule = sn_schedule_checkpoints(c->route, &regions, again, err);
  } else {
    sn_fail_memory(err);
  }
  sn_units_clear(&regions);
  free(again);
  return schedule;
}

sn_schedule *sn_checkpoints_schedule(const sn_checkpoints *c, uint64_t bytes, sn_err *err) {
  search s;
  sn_schedule *schedule = NULL;
  if (search_within(&s, c, bytes, err) != SN_OK) return NULL;
  const choice *end = find_last(&s);
  if (end) schedule = follow(&s, end, err);
  free(s.best);
  return schedule;
}

sn_status sn_checkpoints_least(const sn_checkpoints *c, uint64_t most, uint64_t *bytes, sn_err *err) {
  enum { PARTS = 256 };
  uint32_t low = 0, high = PARTS + 1;
  while (high - low > 1) {
    search s;
    uint32_t middle = (low + high) / 2;
    if (search_within(&s, c, most / PARTS * middle, err) != SN_OK) return err->code;
    *(find_last(&s) ? &high : &low) = middle;
    free(s.best);
  }
  *bytes = high > PARTS ? UINT64_MAX : most / PARTS * high;
  return SN_OK;
}
