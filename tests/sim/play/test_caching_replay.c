/* Plans through the caching allocator: a small one by hand, and those of networks. */
#include "base/checked.h"

#include "sim/graph/route.h"
#include "sim/play/caching_replay.h"
#include "tests/support/pipeline.h"

#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)

/* Two steps: y is made, 4 MiB; dy takes 6 MiB beside it and a workspace of 5 MiB; then an update. */
static const sn_tensor tensors[] = {{.bytes = 4 * MIB}, {.bytes = 6 * MIB - 100, .role = SN_GRADIENT}};
static const sn_route route = {.n_steps = 3, .n_tensors = 2, .tensors = tensors};
static sn_instr instrs[] = {
    {.kind = SN_ALLOC, .id = 0, .step = 0, .bytes = 4 * MIB},
    {.kind = SN_COMPUTE, .id = 0, .step = 0},
    {.kind = SN_ALLOC, .id = 1, .step = 1, .bytes = 6 * MIB},
    {.kind = SN_COMPUTE, .id = 1, .step = 1, .bytes = 5 * MIB},
    {.kind = SN_RELEASE, .id = 0, .step = 1, .bytes = 4 * MIB},
    {.kind = SN_COMPUTE, .id = 2, .step = 2},
};
static const sn_plan plan = {.route = &route, .n_instrs = sizeof instrs / sizeof *instrs, .instrs = instrs};

static sn_caching_replayed replay(const sn_plan *p, const sn_caching_load *load) {
  sn_err err = SN_ERR_INIT;
  sn_caching_replayed result;
  sn_caching_replay(p, load, &result, &err);
  must(&err);
  return result;
}

static void by_hand(void **state) {
  (void)state;
  static const uint64_t before[] = {3 * MIB, 1000};
  static const sn_caching_made made[] = {{2, 3 * MIB}, {2, 4}};
  sn_caching_load load = {
      .limit_bytes = SN_CACHING_NO_LIMIT, .before = before, .n_before = 2, .made = made, .n_made = 2};
  sn_caching_replayed r = replay(&plan, &load);
  assert_true(r.fits);
  /* 20 MiB hold 3 + 4 + 6 + 5, what is small lies in a segment of 2 MiB. The state takes the 4 MiB that y leaves, all
   * of them, as 1 MiB is not cut off; so in the second iteration the workspace needs another 20 MiB. */
  assert_int_equal(r.iterations[0].allocated_bytes, 18 * MIB + 1024);
  assert_int_equal(r.iterations[0].reserved_bytes, 22 * MIB);
  assert_int_equal(r.iterations[0].step, 1);
  assert_int_equal(r.iterations[1].allocated_bytes, 22 * MIB + 1024 + 512);
  assert_int_equal(r.iterations[1].reserved_bytes, 42 * MIB);
  assert_int_equal(r.iterations[1].step, 1);
  assert_int_equal(r.figures.allocated_peak, 22 * MIB + 1024 + 512);
  assert_int_equal(r.figures.allocated_bytes, 7 * MIB + 1024 + 512); /* what stays */
  assert_int_equal(r.figures.segments, 3);
  assert_true(r.fragmentation > 0.47 && r.fragmentation < 0.48);
  load.limit_bytes = 41 * MIB;
  r = replay(&plan, &load);
  assert_true(!r.fits && r.failed_iteration == 2 && r.failed_step == 1 && r.failed_bytes == 5 * MIB);
  assert_int_equal(r.figures.retries, 1);
  load.workspaces = SN_CACHING_OPTIONAL; /* the same goes on without */
  r = replay(&plan, &load);
  assert_true(r.fits && r.figures.reserved_peak <= 41 * MIB && r.figures.retries == 1);
  load.workspaces = SN_CACHING_LEFT_OUT;
  r = replay(&plan, &load);
  assert_true(r.fits && r.figures.reserved_peak == 22 * MIB && r.figures.retries == 0);
  load.limit_bytes = 21 * MIB;
  r = replay(&plan, &load);
  assert_true(!r.fits && r.failed_iteration == 0 && r.failed_step == SN_NONE && r.failed_bytes == 1000);
  assert_int_equal(r.figures.reserved_peak, 20 * MIB);
}

/* One micro-batch: y is made, 4 MiB, and in backward dw, 3 MiB, which goes with its step; then an update. */
static const sn_tensor batch_tensors[] = {{.bytes = 4 * MIB}, {.bytes = 3 * MIB, .role = SN_PARAMETER_GRADIENT}};
static const sn_route batch_route = {
    .first_backward = 1, .first_update = 2, .n_steps = 3, .n_tensors = 2, .tensors = batch_tensors};
static sn_instr batch_instrs[] = {
    {.kind = SN_ALLOC, .id = 0, .step = 0},
    {.kind = SN_COMPUTE, .id = 0, .step = 0},
    {.kind = SN_ALLOC, .id = 1, .step = 1},
    {.kind = SN_COMPUTE, .id = 1, .step = 1},
    {.kind = SN_RELEASE, .id = 1, .step = 1},
    {.kind = SN_RELEASE, .id = 0, .step = 1},
    {.kind = SN_COMPUTE, .id = 2, .step = 2, .bytes = 1 * MIB},
};

static void accumulated(void **state) {
  (void)state;
  static const sn_plan batch = {
      .route = &batch_route, .n_instrs = sizeof batch_instrs / sizeof *batch_instrs, .instrs = batch_instrs};
  static const sn_caching_made made[] = {{2, 3 * MIB}};
  /* The first micro-batch's dw stays as the gradient, from the second on another one comes beside it; what the first
   * update makes is there in the second iteration. */
  static const struct {
    uint32_t accumulate;
    uint64_t first, second;
  } cases[] = {{0, 7, 10}, {1, 7, 10}, {2, 10, 13}, {3, 10, 13}, {1000, 10, 13}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const sn_caching_load load = {.limit_bytes = SN_CACHING_NO_LIMIT,
                                  .options = {.expandable_segments = true},
                                  .made = made,
                                  .n_made = 1,
                                  .accumulate = cases[i].accumulate};
    sn_caching_replayed r = replay(&batch, &load);
    assert_true(r.fits);
    assert_int_equal(r.iterations[0].allocated_bytes, cases[i].first * MIB);
    assert_int_equal(r.iterations[1].allocated_bytes, cases[i].second * MIB);
    assert_int_equal(r.iterations[1].step, 1);
    assert_int_equal(r.figures.allocated_bytes, 3 * MIB); /* gradients end with their iteration */
  }
}

/* Gradients of shared parameters are tensors with lives of their own: micro-batches add none. */
static void accumulated_in_shards(void **state) {
  (void)state;
  static const sn_mesh mesh = {.size = {[SN_MESH_FSDP] = 8}}, replicas = {.size = {[SN_MESH_DP] = 8}};
  for (uint32_t accumulate = 0; accumulate < 4; accumulate++) {
    const sn_caching_load load = {
        .limit_bytes = SN_CACHING_NO_LIMIT, .options = {.expandable_segments = true}, .accumulate = accumulate};
    sn_route shared = batch_route;
    shared.mesh = &mesh;
    const sn_plan p = {
        .route = &shared, .n_instrs = sizeof batch_instrs / sizeof *batch_instrs, .instrs = batch_instrs};
    assert_int_equal(replay(&p, &load).figures.allocated_peak, 7 * MIB);
    shared.mesh = &replicas;
    assert_int_equal(replay(&p, &load).figures.allocated_peak, (accumulate > 1 ? 10 : 7) * MIB);
  }
}

static void stream_of_tensors(void **state) {
  (void)state;
  static const struct {
    sn_role role;
    uint32_t port;
    sn_stream stream;
  } rows[] = {
      {SN_VALUE, 0, SN_STREAM_COMPUTE},
      {SN_SCRATCH, 0, SN_STREAM_COMPUTE},
      {SN_SCRATCH, SN_CAST_WEIGHTS, SN_STREAM_COMPUTE},
      {SN_SCRATCH, SN_PORT_GATHER, SN_STREAM_GATHER},
      {SN_SCRATCH, SN_PORT_REDUCE, SN_STREAM_REDUCE},
      {SN_GATHERED, 3, SN_STREAM_GATHER},
      {SN_UNSHARDED, 1, SN_STREAM_COMPUTE},
      {SN_UNSHARDED, SN_PORT_PART, SN_STREAM_COMPUTE},
      {SN_SUMMED, 0, SN_STREAM_COMPUTE},
      {SN_BUCKET, 3, SN_STREAM_COMPUTE},
      {SN_SHARD, 3, SN_STREAM_REDUCE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const sn_tensor tensor = {.role = rows[i].role, .port = rows[i].port};
    assert_int_equal(sn_tensor_stream(&tensor), rows[i].stream);
  }
}

/* One after the other, each gone before the next: of one stream they would be one block. */
static void streams_apart(void **state) {
  static const sn_mesh mesh = {.size = {[SN_MESH_FSDP] = 8}};
  (void)state;
  static const sn_tensor one_stream[] = {{.bytes = 12 * MIB}, {.bytes = 12 * MIB}, {.bytes = 12 * MIB}};
  static const sn_tensor three[] = {{.bytes = 12 * MIB, .role = SN_GATHERED},
                                    {.bytes = 12 * MIB, .role = SN_UNSHARDED},
                                    {.bytes = 12 * MIB, .role = SN_SHARD}};
  static sn_instr lives[] = {
      {.kind = SN_ALLOC, .id = 0},   {.kind = SN_RELEASE, .id = 0}, {.kind = SN_ALLOC, .id = 1},
      {.kind = SN_RELEASE, .id = 1}, {.kind = SN_ALLOC, .id = 2},   {.kind = SN_RELEASE, .id = 2},
  };
  for (int apart = 0; apart < 2; apart++) {
    const sn_route r = {.n_steps = 1, .n_tensors = 3, .tensors = apart ? three : one_stream, .mesh = &mesh};
    const sn_plan p = {.route = &r, .n_instrs = sizeof lives / sizeof *lives, .instrs = lives};
    sn_caching_load load = {.limit_bytes = SN_CACHING_NO_LIMIT};
    sn_caching_replayed got = replay(&p, &load);
    assert_int_equal(got.figures.allocated_peak, 12 * MIB);
    assert_int_equal(got.figures.reserved_peak, (apart ? 36 : 12) * MIB);
    load.limit_bytes = 12 * MIB; /* what the others have free goes back, each time */
    got = replay(&p, &load);
    assert_true(got.fits);
    assert_int_equal(got.figures.reserved_peak, 12 * MIB);
    assert_int_equal(got.figures.retries, apart ? 5 : 0);
  }
}

static void bad_options(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_caching_replayed r;
  sn_caching_load load = {.limit_bytes = MIB, .options = {.max_split_bytes = 1}};
  assert_int_equal(sn_caching_replay(&plan, &load, &r, &err), SN_BAD_USAGE);
}

/* The most that lives at one time, in whole blocks of `unit` bytes: no allocator has less allocated. */
static uint64_t live_peak(const sn_plan *p, uint64_t unit) {
  uint64_t live = 0, peak = 0;
  for (uint32_t i = 0; i < p->n_instrs; i++) {
    const sn_instr *instr = &p->instrs[i];
    bool tensor = instr->kind == SN_ALLOC || instr->kind == SN_RELEASE;
    uint64_t bytes = sn_ceil_div(tensor ? p->route->tensors[instr->id].bytes : instr->bytes, unit) * unit;
    if (instr->kind == SN_ALLOC) live += bytes;
    if (instr->kind == SN_RELEASE) live -= bytes;
    peak = sn_max(peak, live + (instr->kind == SN_COMPUTE ? bytes : 0));
  }
  return peak;
}

/* Of every plan: all that lives is allocated, with at most what is not cut off; the same limit as it reserves is
 * enough, and less than is allocated is not. */
static void check_plan(const sn_plan *p, bool expandable) {
  sn_caching_load load = {.limit_bytes = SN_CACHING_NO_LIMIT, .options = {.expandable_segments = expandable}};
  sn_caching_replayed r = replay(p, &load);
  uint64_t live = live_peak(p, 512);
  assert_true(r.fits && r.figures.retries == 0 && r.figures.allocated_bytes == 0);
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) {
    assert_true(r.iterations[i].allocated_bytes >= live && r.iterations[i].reserved_bytes >= live);
    if (expandable) assert_int_equal(r.iterations[i].allocated_bytes, live); /* all is cut off */
  }
  load.limit_bytes = r.figures.reserved_peak;
  sn_caching_replayed same = replay(p, &load);
  assert_true(same.fits && same.figures.retries == 0 && same.figures.reserved_peak == r.figures.reserved_peak);
  load.limit_bytes = r.figures.reserved_peak - 1;
  assert_true(replay(p, &load).figures.retries > 0);
  load.limit_bytes = live - 1;
  sn_caching_replayed less = replay(p, &load);
  assert_true(!less.fits && less.failed_iteration == 1 && less.failed_step < p->route->n_steps);
  assert_true(less.figures.reserved_peak < live);
}

static void plans_of_networks(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "resnet50", "inception_v4"};
  static const char *const strategies[] = {"baseline", "liveness", "liveness+offload", "superneurons"};
  for (int n = 0; n < 3; n++) {
    pipeline p = pipeline_open(nets[n], 16);
    for (int s = 0; s < 4; s++) {
      pipeline_plan(&p, strategies[s], SN_WORKSPACE_DYNAMIC, UINT64_C(11) << 30);
      for (int expandable = 0; expandable < 2; expandable++) check_plan(p.plan, expandable);
    }
    pipeline_close(&p);
  }
}

/* ---- the least limit ---- */

static bool fits(const sn_plan *p, sn_caching_load load, uint64_t limit) {
  load.limit_bytes = limit;
  return replay(p, &load).fits;
}

/* The same bisection, each probe a replay of its own. */
static uint64_t plain_edge(const sn_plan *p, const sn_caching_load *load, uint64_t *low, uint64_t high, uint64_t step) {
  for (int i = 0; i < 16 && high > *low + step; i++) {
    uint64_t limit = *low + (high - *low) / 2 / step * step;
    *(fits(p, *load, limit) ? &high : low) = limit;
  }
  return high;
}

static uint64_t plain_least(const sn_plan *p, const sn_caching_load *load, uint64_t low, uint64_t high, uint64_t step) {
  uint64_t lowest = low, least = plain_edge(p, load, &low, high, step);
  for (; low <= lowest && low < least && fits(p, *load, low); low -= step) least = low;
  return least;
}

/* With a limit to agree with it is an edge too, on the limit's side. */
static void expect_agrees(const sn_plan *p, const sn_caching_load *load, uint64_t limit, uint64_t step) {
  sn_err err = SN_ERR_INIT;
  sn_caching_load limited = *load;
  sn_caching_replayed first;
  uint64_t least;
  limited.limit_bytes = limit;
  sn_caching_least(p, &limited, step, &first, &least, &err);
  must(&err);
  assert_int_equal(least <= limit, fits(p, *load, limit));
  assert_true(fits(p, *load, least) && !fits(p, *load, least - (load->options.expandable_segments ? 1024 : step)));
}

static void compare_least(const sn_plan *p, const sn_caching_load *load, uint64_t step) {
  sn_err err = SN_ERR_INIT;
  sn_caching_load unlimited = *load;
  unlimited.limit_bytes = SN_CACHING_NO_LIMIT;
  sn_caching_replayed plain = replay(p, &unlimited), first;
  uint64_t least, low = sn_ceil_div(plain.figures.allocated_peak, step) * step, high = plain.figures.reserved_peak;
  sn_caching_least(p, load, step, &first, &least, &err);
  must(&err);
  assert_true(first.fits && first.fragmentation == plain.fragmentation);
  assert_memory_equal(&first.iterations, &plain.iterations, sizeof first.iterations);
  assert_memory_equal(&first.figures, &plain.figures, sizeof first.figures);
  bool pages = load->options.expandable_segments; /* to the block, and more than reserved where that is too little */
  if (!pages) assert_int_equal(least, plain_least(p, load, low, high, step));
  for (uint64_t limit = least - 8 * step; limit <= least + 8 * step; limit += 4 * step)
    expect_agrees(p, load, limit, step);
}

/* No probe does again what another has done, and all of them find the same. */
static void least_limit_is_that_of_replays(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "resnet50", "inception_v4", "densenet121"};
  static const char *const strategies[] = {"baseline", "liveness", "liveness+offload", "superneurons"};
  static const uint64_t before[] = {3 * MIB, 1000, 700 * MIB, 512, 30 * MIB};
  for (int n = 0; n < 4; n++) {
    pipeline p = pipeline_open(nets[n], 16);
    sn_caching_made made[2] = {{p.route->first_backward, 40 * MIB}, {p.route->n_steps - 1, 4}};
    for (int s = 0; s < 4; s++) {
      pipeline_plan(&p, strategies[s], SN_WORKSPACE_DYNAMIC, UINT64_C(11) << 30);
      sn_caching_load load = {.before = before, .n_before = 5, .made = made, .n_made = 2};
      compare_least(p.plan, &load, 2 * MIB);
      compare_least(p.plan, &load, MIB / 8);
      load.accumulate = 3;
      compare_least(p.plan, &load, 2 * MIB);
      load.options.max_split_bytes = 64 * MIB;
      compare_least(p.plan, &load, 2 * MIB);
      load.options = (sn_caching_options){.expandable_segments = true};
      if (n < 2) compare_least(p.plan, &load, 2 * MIB);
    }
    pipeline_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_hand),
      cmocka_unit_test(accumulated),
      cmocka_unit_test(accumulated_in_shards),
      cmocka_unit_test(stream_of_tensors),
      cmocka_unit_test(streams_apart),
      cmocka_unit_test(bad_options),
      cmocka_unit_test(plans_of_networks),
      cmocka_unit_test(least_limit_is_that_of_replays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
