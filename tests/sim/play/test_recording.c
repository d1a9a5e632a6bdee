/* Recordings: what is read back is what was written, for plans of all kinds; bytes that are cut off or changed are
 * refused, or are a plan that the checker proves. */
#include "sim/play/recording.h"
#include "tests/support/pipeline.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <stdlib.h>

typedef struct recorded {
  pipeline p;
  sn_trace trace;
  sn_arena *arena;
  sn_blob recording;
} recorded;

static recorded record(const char *net, const char *strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  recorded r = {.p = pipeline_open(net, 4), .arena = sn_arena_new()};
  pipeline_plan(&r.p, strategy, SN_WORKSPACE_DYNAMIC, pool_bytes);
  r.trace = pipeline_play(&r.p, false);
  r.recording = sn_recording_write(r.p.plan, &r.trace, r.arena, &err);
  must(&err);
  return r;
}

static void drop(recorded *r) {
  sn_arena_free(r->arena);
  sn_trace_clear(&r->trace);
  pipeline_close(&r->p);
}

static void assert_same(const sn_timeline *a, const sn_timeline *b) {
  assert_int_equal(a->n_instrs, b->n_instrs);
  assert_int_equal(a->n_bars, b->n_bars);
  assert_int_equal(a->n_rects, b->n_rects);
  assert_int_equal(a->n_arrows, b->n_arrows);
  assert_int_equal(a->n_levels, b->n_levels);
  assert_true(a->pool_bytes == b->pool_bytes && a->pool_limit == b->pool_limit && a->end_ns == b->end_ns);
  assert_true(a->external_bytes == b->external_bytes);
  assert_memory_equal(a->busy_ns, b->busy_ns, sizeof a->busy_ns);
  assert_memory_equal(a->stall_ns, b->stall_ns, sizeof a->stall_ns);
  assert_memory_equal(a->rects, b->rects, a->n_rects * sizeof *a->rects);
  assert_memory_equal(a->levels, b->levels, a->n_levels * sizeof *a->levels);
  for (uint32_t i = 0; i < a->n_bars; i++) {
    const sn_bar *x = &a->bars[i], *y = &b->bars[i];
    assert_true(x->kind == y->kind && x->lane == y->lane && x->rerun == y->rerun && x->what == y->what);
    assert_true(x->begin_ns == y->begin_ns && x->end_ns == y->end_ns && x->bytes == y->bytes && x->step == y->step);
    assert_string_equal(x->name, y->name);
  }
  for (uint32_t s = 0; s < a->n_steps; s++) {
    assert_int_equal(a->steps[s].tensor_bytes, b->steps[s].tensor_bytes);
    assert_int_equal(a->steps[s].live_tensors, b->steps[s].live_tensors);
    assert_int_equal(a->steps[s].workspace_bytes, b->steps[s].workspace_bytes);
  }
}

static void what_is_written_is_read_back(void **state) {
  static const char *const strategies[] = {"baseline", "liveness+offload", "superneurons", "liveness+recompute=memory",
                                           "vdnn-conv"};
  (void)state;
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
    sn_err err = SN_ERR_INIT;
    recorded r = record("resnet:n1=1,n2=1,n3=1,n4=1", strategies[i], UINT64_C(200) << 20);
    sn_timeline *made = sn_timeline_new(r.p.plan, &r.trace, &err);
    must(&err);
    sn_timeline *read = sn_recording_timeline(r.p.route, r.recording, &err);
    must(&err);
    assert_same(made, read);
    assert_in_range(r.recording.n_bytes, 1, 24 * r.p.plan->n_instrs);
    sn_timeline_free(made);
    sn_timeline_free(read);
    drop(&r);
  }
}

static void assert_refused(const sn_route *route, sn_blob bytes) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_recording_timeline(route, bytes, &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "damaged, or of another network"));
}

static void what_is_cut_off_is_refused(void **state) {
  recorded r = record("lenet", "liveness+offload", UINT64_C(8) << 20);
  (void)state;
  for (size_t n = 0; n < r.recording.n_bytes; n++) assert_refused(r.p.route, (sn_blob){r.recording.bytes, n});
  assert_refused(r.p.route, (sn_blob){NULL, 0});
  drop(&r);
}

static void another_network_is_refused(void **state) {
  recorded r = record("lenet", "liveness", UINT64_C(8) << 20);
  pipeline other = pipeline_open("alexnet", 4);
  (void)state;
  assert_refused(other.route, r.recording);
  pipeline_close(&other);
  drop(&r);
}

/* One to three bytes changed: times may come out otherwise, a wrong plan never. */
static void damage_is_refused_or_harmless(void **state) {
  recorded r = record("lenet", "superneurons", UINT64_C(1300) << 10);
  uint64_t seed = first_seed(1);
  unsigned refused = 0;
  unsigned char *bytes = malloc(r.recording.n_bytes);
  (void)state;
  for (int round = 0; round < 3000; round++) {
    sn_err err = SN_ERR_INIT;
    memcpy(bytes, r.recording.bytes, r.recording.n_bytes);
    for (uint64_t n = prng_below(&seed, 3) + 1; n > 0; n--) {
      uint32_t at = prng_below(&seed, (uint32_t)r.recording.n_bytes);
      bytes[at] ^= (unsigned char)(1 + prng_below(&seed, 255));
    }
    sn_timeline *t = sn_recording_timeline(r.p.route, (sn_blob){bytes, r.recording.n_bytes}, &err);
    if (!t) assert_int_equal(err.code, SN_BAD_INPUT);
    refused += !t;
    sn_timeline_free(t);
  }
  assert_in_range(refused, 1500, 3000);
  free(bytes);
  drop(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(what_is_cut_off_is_refused),
      cmocka_unit_test(another_network_is_refused),
      cmocka_unit_test(damage_is_refused_or_harmless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
