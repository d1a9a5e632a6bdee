/* Memory shared as MXNet shares it: a network worked out by hand, and for seeded random networks what must hold of
 * every sharing, found out another way: lifetimes of all pairs of tensors in a region, ancestors by walking the graph,
 * the critical path over all pairs of accesses, the box as a list. Prints its seed; SN_SEED and SN_PROP_NETS choose
 * others. */
#include "sim/ask/memcost.h"

#include "sim/graph/route.h"
#include "sim/share/box.h"
#include "sim/share/colour.h"
#include "sim/share/critical.h"
#include "sim/share/sharing.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NO_LIMIT = 1 << 24 };

static const sn_access *accesses_of(const sn_route *r, uint32_t step) {
  return &r->accesses[r->steps[step].first_access];
}

/* ---- by hand ---- */

/* Outputs and gradients of 256 bytes but for the POOL's of 64 and the FC's and SOFTMAX's of 16. */
static const char small[] = "{\"snsim_net\":1,\"name\":\"small\",\"input\":[1,4,4],\"layers\":["
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                            "{\"name\":\"relu\",\"op\":\"ACT\"},"
                            "{\"name\":\"pool\",\"op\":\"POOL\",\"kernel\":2,\"stride\":2},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":4},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

static void check_rows(uint32_t match_range, const uint64_t bytes[SN_MEMCOST_OPTIONS],
                       const uint32_t regions[SN_MEMCOST_OPTIONS]) {
  sn_err err = SN_ERR_INIT;
  sn_memcost m;
  sn_device device = load_gpu("k40c");
  sn_net *net = load_net(small, 1);
  sn_memcost_of(net, &device, SN_FP32, match_range, 1, &m, &err);
  must(&err);
  assert_int_equal(m.forward, 6);
  assert_int_equal(m.backward, 6);
  assert_int_equal(m.sums, 0);
  for (sn_memcost_option o = 0; o < SN_MEMCOST_OPTIONS; o++) {
    if (m.rows[o].bytes != bytes[o] || m.rows[o].regions != regions[o])
      fail_msg("range %u, %s: %" PRIu64 " bytes in %u regions", match_range, sn_memcost_option_name(o), m.rows[o].bytes,
               m.rows[o].regions);
  }
  sn_net_free(net);
}

/* In place: relu.y lies in conv.y; fc.flat in pool.y; softmax.y and .dx in fc.y; fc.dx in fc.dflat; relu.dx in pool.dx.
 * Shared: pool.dx takes the 16 bytes that fc.y left, with range 15 it may not. Without places taken over: pool.y takes
 * conv.y's region, softmax.dx fc.y's, fc.dflat softmax.y's, which pool.dx grows to 256, and so on. */
static void by_hand(void **state) {
  (void)state;
  check_rows(16, (uint64_t[]){1328, 656, 848, 640, 320}, (uint32_t[]){11, 5, 5, 4, 2});
  check_rows(15, (uint64_t[]){1328, 656, 848, 656, 336}, (uint32_t[]){11, 5, 5, 5, 3});
  check_rows(0, (uint64_t[]){1328, 656, 1328, 656, 352}, (uint32_t[]){11, 5, 11, 5, 4});
}

/* Colours of the forward steps, which of several paths of one length takes the first. */
static void check_first_colour(const char *text, const char *const *layers, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(text, 1);
  sn_route *r = sn_route_new(net, SN_DIALECT_EXPLICIT, SN_ORDER_POST, &err);
  must(&err);
  sn_colouring *c = sn_colouring_new(r, r->first_backward, 2, &err);
  must(&err);
  uint32_t found = 0;
  for (uint32_t s = 0; s < r->first_backward; s++) {
    if (sn_colouring_of(c, s) != 0) continue;
    assert_true(found < count);
    assert_string_equal(net->layers[r->steps[s].layer].name, layers[found++]);
  }
  assert_int_equal(found, count);
  sn_colouring_free(c);
  sn_route_free(r);
  sn_net_free(net);
}

/* Of equal branches the one whose steps come later, of equal paths the one that begins later. */
static void ties_of_colours(void **state) {
  (void)state;
  check_first_colour("{\"snsim_net\":1,\"name\":\"branches\",\"input\":[1,1,1],\"layers\":["
                     "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                     "{\"name\":\"a\",\"op\":\"ACT\",\"input\":\"conv\"},"
                     "{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"conv\"},"
                     "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"a\",\"b\"]},"
                     "{\"name\":\"end\",\"op\":\"SOFTMAX\"}]}",
                     (const char *[]){"conv", "b", "join", "end"}, 4);
  check_first_colour("{\"snsim_net\":1,\"name\":\"paths\",\"input\":[1,1,1],\"layers\":["
                     "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                     "{\"name\":\"enda\",\"op\":\"SOFTMAX\"},"
                     "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"input\":\"data\"},"
                     "{\"name\":\"endb\",\"op\":\"SOFTMAX\"}]}",
                     (const char *[]){"b", "endb"}, 2);
}

static void too_many_for_ancestors(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_memcost m;
  sn_device device = load_gpu("k40c");
  sn_net *net = load_net("resnet:n1=6,n2=32,n3=1000,n4=6", 1);
  assert_int_equal(sn_memcost_of(net, &device, SN_FP32, 16, SN_COLOURS_ANCESTORS, &m, &err), SN_BAD_USAGE);
  sn_net_free(net);
}

/* ---- an oracle ---- */

/* When each tensor is made, and read for the last time: when it is made where nobody reads it. */
typedef struct lives {
  uint32_t *first, *last;
} lives;

static void *room_for(size_t count, size_t size) {
  void *room = calloc(count + 1, size);
  assert_non_null(room);
  return room;
}

static lives lives_of(const sn_route *r, uint32_t n_steps) {
  lives l = {room_for(r->n_tensors, sizeof *l.first), room_for(r->n_tensors, sizeof *l.last)};
  for (uint32_t t = 0; t < r->n_tensors; t++) l.first[t] = SN_NONE;
  for (uint32_t s = 0; s < n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) {
      sn_access access = accesses_of(r, s)[i];
      if (access.mode == SN_WRITE) l.first[access.tensor] = s;
      l.last[access.tensor] = s;
    }
  return l;
}

static void free_lives(lives *l) {
  free(l->first);
  free(l->last);
}

static bool is_permitted(const sn_route *r, uint32_t step, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < r->steps[step].n_permits; i++) {
    sn_permit p = r->permits[r->steps[step].first_permit + i];
    if (accesses_of(r, step)[p.from].tensor == from && accesses_of(r, step)[p.to].tensor == to) return true;
  }
  return false;
}

/* May the later of two tensors in one region have been put there? */
static bool may_follow(const sn_route *r, const lives *l, uint32_t earlier, uint32_t later, bool in_place) {
  uint32_t at = l->first[later];
  bool permitted = in_place && is_permitted(r, at, earlier, later);
  if (l->last[earlier] < at) return true;
  return permitted && (l->last[earlier] == at || r->steps[at].kernel == SN_FLATTEN);
}

/* The last step before `step` that touches a region. */
static uint32_t giver_of(const sn_sharing *s, uint32_t region, uint32_t step) {
  while (step-- > 0)
    for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++)
      if (s->region[accesses_of(s->route, step)[i].tensor] == region) return step;
  return SN_NONE;
}

static bool reads_region(const sn_sharing *s, uint32_t step, uint32_t region) {
  for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
    sn_access access = accesses_of(s->route, step)[i];
    if (access.mode != SN_WRITE && s->region[access.tensor] == region) return true;
  }
  return false;
}

/* Per tensor the one whose value it is: two flat forms of a value are the same bytes as itself. */
static uint32_t *values_of(const sn_route *r) {
  uint32_t *value = room_for(r->n_tensors, sizeof *value);
  for (uint32_t t = 0; t < r->n_tensors; t++) value[t] = t;
  for (uint32_t s = 0; s < r->n_steps; s++)
    if (r->steps[s].kernel == SN_FLATTEN) value[accesses_of(r, s)[1].tensor] = value[accesses_of(r, s)[0].tensor];
  return value;
}

static void check_pairs(const sn_sharing *s, const lives *l, bool in_place) {
  const sn_route *r = s->route;
  uint32_t *value = values_of(r);
  for (uint32_t a = 0; a < r->n_tensors; a++)
    for (uint32_t b = 0; b < r->n_tensors; b++) {
      if (a == b || l->first[a] == SN_NONE || s->region[a] != s->region[b]) continue;
      if (in_place && value[a] == value[b]) continue;
      if (l->first[a] > l->first[b] || may_follow(r, l, a, b, in_place)) continue;
      fail_msg("tensors %u, %u: of steps %u..%u and %u..%u, share region %u", a, b, l->first[a] + 1, l->last[a] + 1,
               l->first[b] + 1, l->last[b] + 1, s->region[a]);
    }
  free(value);
}

/* Every region is as large as its largest tensor, which in `bytes` stand once. */
static void check_bytes(const sn_sharing *s, const lives *l) {
  uint64_t *most = room_for(s->n_regions, sizeof *most), sum = 0;
  for (uint32_t t = 0; t < s->route->n_tensors; t++) {
    assert_int_equal(s->region[t] == SN_NONE, l->first[t] == SN_NONE);
    if (s->region[t] == SN_NONE) continue;
    assert_true(s->region[t] < s->n_regions);
    if (s->route->tensors[t].bytes > most[s->region[t]]) most[s->region[t]] = s->route->tensors[t].bytes;
  }
  for (uint32_t i = 0; i < s->n_regions; i++) {
    assert_int_equal(most[i], s->region_bytes[i]);
    sum += most[i];
  }
  assert_int_equal(sum, s->bytes);
  free(most);
}

/* What is taken over without a permit was given back by a step that may give to this one. */
static void check_givers(const sn_sharing *s, const sn_sharing_rules *rules) {
  for (uint32_t step = 0; step < s->n_steps; step++)
    for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
      sn_access access = accesses_of(s->route, step)[i];
      uint32_t region = s->region[access.tensor];
      if (access.mode != SN_WRITE || reads_region(s, step, region)) continue;
      uint32_t giver = giver_of(s, region, step);
      assert_true(giver == SN_NONE || sn_colouring_allows(rules->colouring, giver, step));
      assert_true(giver == SN_NONE || rules->match_range > 0);
    }
}

/* Without any sharing regions are numbered in the order in which they are given: a step's largest tensor first, of
 * equals the last. */
static void check_order(const sn_sharing *s) {
  const sn_route *r = s->route;
  for (uint32_t step = 0; step < s->n_steps; step++)
    for (uint32_t i = 0; i < r->steps[step].n_accesses; i++)
      for (uint32_t j = 0; j < i; j++) {
        sn_access earlier = accesses_of(r, step)[j], later = accesses_of(r, step)[i];
        if (earlier.mode != SN_WRITE || later.mode != SN_WRITE) continue;
        bool larger = r->tensors[earlier.tensor].bytes > r->tensors[later.tensor].bytes;
        assert_int_equal(larger, s->region[earlier.tensor] < s->region[later.tensor]);
      }
}

/* What is flattened stays where it is, whoever else reads it. */
static void check_flatten(const sn_sharing *s) {
  for (uint32_t step = 0; step < s->n_steps; step++) {
    if (s->route->steps[step].kernel != SN_FLATTEN) continue;
    const sn_access *a = accesses_of(s->route, step);
    assert_int_equal(s->region[a[0].tensor], s->region[a[1].tensor]);
  }
}

/* ---- critical path ---- */

static int64_t time_of(const sn_route *r, const sn_costs *costs, uint32_t step) {
  const sn_step *s = &r->steps[step];
  uint8_t algo[2] = {0};
  uint32_t count;
  if (s->kernel == SN_FLATTEN) return 0;
  if (sn_op_of(&r->net->layers[s->layer])->convolves) {
    bool forward = s->pass == SN_FORWARD;
    sn_conv_kernel first = forward ? SN_CONV_FORWARD : SN_CONV_BACKWARD_DATA;
    algo[0] = (uint8_t)sn_costs_conv(costs, s->layer, first, &count)->algo;
    algo[1] = (uint8_t)sn_costs_conv(costs, s->layer, SN_CONV_BACKWARD_FILTER, &count)->algo;
  }
  return sn_costs_step(costs, s->layer, s->pass, algo);
}

/* Does a step wait for an earlier one? For what it reads, and for all that touched the bytes it writes. */
static bool waits(const sn_sharing *s, uint32_t earlier, uint32_t later, bool ordered) {
  const sn_route *r = s->route;
  bool flat =
      r->steps[later].kernel == SN_FLATTEN && reads_region(s, later, s->region[accesses_of(r, later)[1].tensor]);
  for (uint32_t i = 0; i < r->steps[earlier].n_accesses; i++)
    for (uint32_t j = 0; j < r->steps[later].n_accesses; j++) {
      sn_access a = accesses_of(r, earlier)[i], b = accesses_of(r, later)[j];
      if (a.tensor == b.tensor && a.mode == SN_WRITE) return true;
      if (ordered && !flat && b.mode == SN_WRITE && s->region[a.tensor] == s->region[b.tensor]) return true;
    }
  return false;
}

static int64_t longest_path(const sn_sharing *s, const sn_costs *costs, bool ordered) {
  int64_t *end = room_for(s->n_steps, sizeof *end), longest = 0;
  for (uint32_t step = 0; step < s->n_steps; step++) {
    for (uint32_t before = 0; before < step; before++)
      if (end[before] > end[step] && waits(s, before, step, ordered)) end[step] = end[before];
    end[step] += time_of(s->route, costs, step);
    if (end[step] > longest) longest = end[step];
  }
  free(end);
  return longest;
}

static void check_critical(const sn_sharing *s, const sn_costs *costs) {
  sn_err err = SN_ERR_INIT;
  for (int ordered = 0; ordered < 2; ordered++) {
    int64_t ns;
    sn_critical_path(s, costs, ordered, &ns, &err);
    must(&err);
    assert_int_equal(ns, longest_path(s, costs, ordered));
  }
}

/* ---- colours ---- */

/* Does a path of reads lead from one step to another? By asking every step in between. */
static bool is_ancestor(const sn_route *r, const lives *l, uint32_t ancestor, uint32_t step) {
  bool *reached = room_for(step, sizeof *reached);
  reached[ancestor] = true;
  for (uint32_t s = ancestor + 1; s <= step; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses && !reached[s]; i++) {
      sn_access access = accesses_of(r, s)[i];
      if (access.mode != SN_WRITE && l->first[access.tensor] >= ancestor) reached[s] = reached[l->first[access.tensor]];
    }
  bool found = reached[step];
  free(reached);
  return found;
}

static void check_ancestors(const sn_route *r, const lives *l, uint32_t n_steps, uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  sn_colouring *c = sn_colouring_new(r, n_steps, SN_COLOURS_ANCESTORS, &err);
  must(&err);
  for (int i = 0; i < 200; i++) {
    uint32_t a = (uint32_t)prng_below(dice, n_steps), b = (uint32_t)prng_below(dice, n_steps);
    if (a < b) assert_int_equal(sn_colouring_allows(c, a, b), is_ancestor(r, l, a, b));
  }
  sn_colouring_free(c);
}

/* Steps of one colour but the last lie on one path; there are no more colours than asked for, and the first is as long
 * as any path is. */
static void check_colours(const sn_route *r, const lives *l, uint32_t n_steps, uint32_t colours) {
  sn_err err = SN_ERR_INIT;
  sn_colouring *c = sn_colouring_new(r, n_steps, colours, &err);
  uint32_t *before = room_for(colours, sizeof *before), *depth = room_for(n_steps, sizeof *depth), first = 0,
           deepest = 0;
  must(&err);
  for (uint32_t i = 0; i < colours; i++) before[i] = SN_NONE;
  for (uint32_t s = 0; s < n_steps; s++) {
    uint32_t colour = sn_colouring_of(c, s);
    assert_true(colour < colours);
    if (colour + 1 < colours && before[colour] != SN_NONE) assert_true(is_ancestor(r, l, before[colour], s));
    before[colour] = s;
    first += colour == 0;
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) {
      sn_access access = accesses_of(r, s)[i];
      if (access.mode != SN_WRITE && depth[l->first[access.tensor]] > depth[s])
        depth[s] = depth[l->first[access.tensor]];
    }
    if (++depth[s] > deepest) deepest = depth[s];
  }
  assert_int_equal(first, colours == 1 ? n_steps : deepest);
  free(before);
  free(depth);
  sn_colouring_free(c);
}

/* ---- the box ---- */

typedef struct boxed {
  uint32_t region, step;
  uint64_t bytes;
} boxed;

/* The place in the list, oldest first, of what a box would give; `count` for none. */
static uint32_t find_boxed(const boxed *list, uint32_t count, uint64_t bytes, uint32_t range, uint32_t step,
                           const sn_colouring *c) {
  uint32_t best = count;
  for (uint32_t i = 0; i < count && range > 0; i++)
    if (list[i].bytes >= bytes && list[i].bytes <= bytes * range && sn_colouring_allows(c, list[i].step, step) &&
        (best == count || list[i].bytes < list[best].bytes))
      best = i;
  if (best < count || range == 0) return best;
  for (uint32_t i = 0; i < count; i++)
    if (list[i].bytes < bytes && list[i].bytes >= bytes / range && sn_colouring_allows(c, list[i].step, step) &&
        (best == count || list[i].bytes >= list[best].bytes))
      best = i;
  return best;
}

static void check_box(const sn_route *r, uint32_t n_steps, const sn_colouring *c, uint64_t *dice) {
  enum { OPERATIONS = 300 };
  static const uint32_t ranges[] = {0, 1, 2, 16, NO_LIMIT};
  sn_err err = SN_ERR_INIT;
  uint64_t *sizes = room_for(OPERATIONS, sizeof *sizes);
  boxed *list = room_for(OPERATIONS, sizeof *list);
  for (uint32_t i = 0; i < OPERATIONS; i++) sizes[i] = r->tensors[prng_below(dice, r->n_tensors)].bytes;
  sn_box *box = sn_box_new(sizes, OPERATIONS, c, &err);
  must(&err);
  for (uint32_t i = 0, count = 0; i < OPERATIONS; i++) {
    uint32_t step = (uint32_t)prng_below(dice, n_steps), range = ranges[prng_below(dice, 5)];
    if (prng_below(dice, 2)) {
      list[count++] = (boxed){i, step, sizes[i]};
      sn_box_put(box, i, sizes[i], step, &err);
      continue;
    }
    uint32_t at = find_boxed(list, count, sizes[i], range, step, c), found = sn_box_take(box, sizes[i], range, step);
    assert_int_equal(found, at < count ? list[at].region : SN_NONE);
    if (at == count) continue;
    memmove(&list[at], &list[at + 1], (--count - at) * sizeof *list);
  }
  must(&err);
  sn_box_free(box);
  free(sizes);
  free(list);
}

/* ---- random networks ---- */

typedef struct trial {
  const sn_route *route;
  const sn_costs *costs;
  uint32_t n_steps;
  lives lives;
} trial;

/* Bytes of the sharing, which is checked. */
static uint64_t share(const trial *t, bool in_place, uint32_t range, const sn_colouring *c) {
  sn_err err = SN_ERR_INIT;
  sn_sharing_rules rules = {in_place, range, c};
  sn_sharing *s = sn_sharing_new(t->route, t->n_steps, &rules, &err);
  must(&err);
  uint64_t bytes = s->bytes;
  check_pairs(s, &t->lives, in_place);
  check_bytes(s, &t->lives);
  check_givers(s, &rules);
  check_critical(s, t->costs);
  if (in_place) check_flatten(s);
  if (!in_place && range == 0) check_order(s);
  sn_sharing_free(s);
  return bytes;
}

static void check_rules(const trial *t, uint32_t colours, uint64_t *dice) {
  static const uint32_t ranges[] = {1, 2, 16, NO_LIMIT};
  sn_err err = SN_ERR_INIT;
  sn_colouring *c = sn_colouring_new(t->route, t->n_steps, colours, &err);
  must(&err);
  uint32_t range = ranges[prng_below(dice, 4)];
  uint64_t none = share(t, false, 0, c), in_place = share(t, true, 0, c);
  uint64_t sharing = share(t, false, range, c), both = share(t, true, range, c);
  assert_true(both <= in_place && in_place <= none && sharing <= none);
  check_box(t->route, t->n_steps, c, dice);
  sn_colouring_free(c);
}

/* Of all tensors made of one size: regions are as many as tensors live at once. Where places are taken over, as many as
 * regions with a live tensor. */
static void check_equal_sizes(sn_route *r, uint32_t n_steps, const lives *l, bool in_place) {
  sn_err err = SN_ERR_INIT;
  sn_colouring *c = sn_colouring_new(r, n_steps, 1, &err);
  for (uint32_t t = 0; t < r->n_tensors; t++) ((sn_tensor *)r->tensors)[t].bytes = 4096;
  sn_sharing_rules rules = {in_place, NO_LIMIT, c};
  sn_sharing *s = sn_sharing_new(r, n_steps, &rules, &err);
  must(&err);
  uint32_t most = 0, *seen = room_for(s->n_regions, sizeof *seen);
  for (uint32_t step = 0; step < n_steps; step++) {
    uint32_t load = 0;
    for (uint32_t t = 0; t < r->n_tensors; t++) {
      if (l->first[t] > step || l->last[t] < step) continue;
      load += !in_place || seen[s->region[t]] != step + 1;
      seen[s->region[t]] = step + 1;
    }
    if (load > most) most = load;
  }
  assert_int_equal(s->n_regions, most);
  assert_int_equal(s->bytes, UINT64_C(4096) * most);
  free(seen);
  sn_sharing_free(s);
  sn_colouring_free(c);
}

static void check_steps(sn_route *r, const sn_costs *costs, uint32_t n_steps, uint64_t *dice) {
  trial t = {r, costs, n_steps, lives_of(r, n_steps)};
  check_ancestors(r, &t.lives, n_steps, dice);
  check_colours(r, &t.lives, n_steps, 1 + (uint32_t)prng_below(dice, 6));
  check_rules(&t, SN_COLOURS_ANCESTORS, dice);
  check_rules(&t, 1, dice);
  check_rules(&t, 2 + (uint32_t)prng_below(dice, 6), dice);
  free_lives(&t.lives);
}

static void check_net(const sn_net *net, uint64_t *dice, sn_err *err) {
  sn_device device = load_gpu("k40c");
  sn_costs *costs = sn_costs_new(net, &device, err);
  must(err);
  for (sn_order order = 0; order <= SN_ORDER_POST; order++) {
    sn_route *r = sn_route_new(net, SN_DIALECT_EXPLICIT, order, err);
    must(err);
    check_steps(r, costs, r->first_update, dice);
    check_steps(r, costs, r->first_backward, dice);
    lives l = lives_of(r, r->first_update);
    check_equal_sizes(r, r->first_update, &l, false);
    check_equal_sizes(r, r->first_update, &l, true);
    free_lives(&l);
    sn_route_free(r);
  }
  sn_costs_free(costs);
}

static void random_nets(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261123);
  uint32_t nets = case_count(200);
  for (uint32_t n = 0; n < nets; n++, seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_net *net = random_net_new(&dice, &err);
    must(&err);
    check_net(net, &dice, &err);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_hand),
      cmocka_unit_test(ties_of_colours),
      cmocka_unit_test(too_many_for_ancestors),
      cmocka_unit_test(random_nets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
