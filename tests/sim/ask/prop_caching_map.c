/* What PyTorch's allocator makes of random networks, as pictures show it: blocks that are there at one time do not
 * overlap and lie in what is reserved, and together they are what the run says of the same question.
 *
 *   SN_SEED        seed of the first net; the others follow (default: 1)
 *   SN_PROP_NETS   how many nets (default 60) */
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { NETS = 60 };

static uint64_t end_of(sn_extent e) {
  return e.offset + e.bytes;
}

static bool overlap(sn_extent a, sn_extent b) {
  return a.bytes > 0 && b.bytes > 0 && a.offset < end_of(b) && b.offset < end_of(a);
}

/* A workspace goes before the next instruction. */
static bool live_together(const sn_rect *a, const sn_rect *b) {
  return a->from_instr < b->to_instr && b->from_instr < a->to_instr;
}

static bool is_within_a_segment(const sn_served *s, sn_extent e) {
  for (uint32_t i = 0; i < s->n_segments; i++)
    if (s->segments[i].offset <= e.offset && end_of(e) <= end_of(s->segments[i])) return true;
  return false;
}

static void check_places(const sn_timeline *t) {
  const sn_served *s = &t->served;
  for (uint32_t i = 0; i < t->n_rects; i++) {
    assert_true(s->rects[i].bytes == 0 || s->rects[i].bytes >= t->rects[i].bytes - SN_POOL_BLOCK + 1);
    assert_true(end_of(s->rects[i]) <= s->end_bytes);
    assert_true(s->rects[i].bytes == 0 || is_within_a_segment(s, s->rects[i]));
    for (uint32_t k = 0; k < i; k++)
      assert_false(live_together(&t->rects[i], &t->rects[k]) && overlap(s->rects[i], s->rects[k]));
    for (uint32_t k = 0; k < s->n_stays; k++) assert_false(overlap(s->rects[i], s->stays[k]));
  }
  for (uint32_t k = 1; k < s->n_stays; k++) assert_true(end_of(s->stays[k - 1]) <= s->stays[k].offset);
  for (uint32_t k = 1; k < s->n_segments; k++) assert_true(end_of(s->segments[k - 1]) <= s->segments[k].offset);
  for (uint32_t k = 0; k < s->n_stays; k++) assert_true(is_within_a_segment(s, s->stays[k]));
}

/* The most that is in use at one time. */
static uint64_t most_of(const sn_timeline *t) {
  const sn_served *s = &t->served;
  uint64_t stays = 0, most = 0;
  for (uint32_t k = 0; k < s->n_stays; k++) stays += s->stays[k].bytes;
  for (uint32_t i = 0; i < t->n_rects; i++) {
    uint64_t now = stays;
    for (uint32_t k = 0; k <= i; k++)
      if (k == i || live_together(&t->rects[i], &t->rects[k])) now += s->rects[k].bytes;
    most = now > most ? now : most;
  }
  return most;
}

static bool try_net(uint64_t seed, sn_allocator allocator) {
  uint64_t dice = seed;
  sn_err err = SN_ERR_INIT;
  sn_device gpu;
  sn_strategy pytorch;
  sn_options options = SN_OPTIONS_INIT;
  options.allocator = allocator;
  options.want_steps = true;
  sn_net *net = random_net_new_today(&dice, &err);
  if (err.code == SN_OK) sn_device_load("rtx3090", &gpu, &err);
  if (err.code == SN_OK) sn_strategy_parse(prng_chance(&dice, 30) ? "pytorch+offload" : "pytorch", &pytorch, &err);
  sn_run *run = err.code == SN_OK ? sn_simulate("net", net, &gpu, &pytorch, 1, &options, &err) : NULL;
  sn_timeline *t = run ? sn_simulate_timeline(net, &gpu, pytorch, &options, &err) : NULL;
  if (err.code != SN_OK) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
  const sn_result *r = &run->results[0];
  assert_true(r->fits && t->served.n_segments > 0);
  check_places(t);
  assert_int_equal(t->served.reserved_bytes, r->reserved_bytes);
  assert_true(t->served.reserved_bytes == t->served.end_bytes);
  assert_true(most_of(t) <= r->allocated_bytes && most_of(t) <= t->served.reserved_bytes);
  bool same = most_of(t) == r->allocated_bytes;
  sn_timeline_free(t);
  sn_run_free(run);
  sn_net_free(net);
  return same;
}

static void maps_are_what_the_run_says(void **state) {
  (void)state;
  uint64_t seed = first_seed(1);
  uint32_t nets = case_count(NETS), same = 0;
  for (uint32_t i = 0; i < nets; i++) same += try_net(seed + i, i % 2 ? SN_ALLOCATOR_PYTORCH : SN_ALLOCATOR_EXPANDABLE);
  print_message("%u of %u have the run's peak in the steady iteration\n", same, nets);
  assert_true(same >= nets / 2);
}

/* A plan of our own pool has no allocator. */
static void pools_have_their_own_addresses(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device gpu;
  sn_strategy liveness;
  sn_options options = SN_OPTIONS_INIT;
  sn_net *net = sn_net_load("lenet", 4, 0, &err);
  sn_device_load("k40c", &gpu, &err);
  sn_strategy_parse("liveness", &liveness, &err);
  sn_timeline *t = sn_simulate_timeline(net, &gpu, liveness, &options, &err);
  assert_int_equal(err.code, SN_OK);
  assert_int_equal(t->served.n_segments, 0);
  sn_timeline_free(t);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps_are_what_the_run_says),
      cmocka_unit_test(pools_have_their_own_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
