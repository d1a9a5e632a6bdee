/* Timeline: its bars, rectangles, levels and arrows say what plan and trace say, for every default strategy on nets of
 * all kinds, with enough memory and with little, for a trace that took time for its allocations, for one of real
 * training, and for operations side by side. */
#include "exec/machine/cpu.h"
#include "sim/ask/simulate.h"
#include "sim/play/timeline.h"
#include "tests/support/pipeline.h"

#include <stdlib.h>

typedef struct played {
  pipeline p;
  sn_trace trace;
  sn_timeline *timeline;
} played;

static played play_net(const char *net, const char *strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  played all = {.p = pipeline_open(net, 4)};
  pipeline_plan(&all.p, strategy, SN_WORKSPACE_DYNAMIC, pool_bytes);
  all.trace = pipeline_play(&all.p, false);
  all.timeline = sn_timeline_new(all.p.plan, &all.trace, &err);
  must(&err);
  return all;
}

static void drop(played *all) {
  sn_timeline_free(all->timeline);
  sn_trace_clear(&all->trace);
  pipeline_close(&all->p);
}

/* ---- bars ---- */

/* A lane's bars come one after another, one for each that computes or copies. */
static void check_bars(const played *all) {
  const sn_timeline *t = all->timeline;
  int64_t end[SN_LANES] = {0};
  uint32_t counts[SN_BAR_KINDS] = {0};
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    const sn_instr *i = &all->p.plan->instrs[bar->instr];
    assert_true(bar->begin_ns >= end[bar->lane] && bar->end_ns >= bar->begin_ns && bar->end_ns <= t->end_ns);
    assert_true(b == 0 || bar->instr >= t->bars[b - 1].instr);
    assert_int_equal(bar->lane, i->lane);
    assert_int_equal(bar->step, i->step + 1);
    end[bar->lane] = bar->end_ns;
    counts[bar->kind]++;
    if (bar->kind == SN_BAR_COPY_OUT || bar->kind == SN_BAR_COPY_IN)
      assert_true(bar->bytes == t->tensors[bar->what].bytes && strcmp(bar->name, t->tensors[bar->what].name) == 0);
    if (bar->kind == SN_BAR_COMPUTE) {
      assert_int_equal(bar->what, i->id + 1);
      assert_string_equal(bar->name, t->steps[i->id].layer);
      assert_true(bar->rerun == (bar->what != bar->step));
    }
  }
  for (uint32_t i = 0; i < all->p.plan->n_instrs; i++) {
    uint8_t kind = all->p.plan->instrs[i].kind;
    if (kind == SN_COMPUTE || kind == SN_COPY_OUT || kind == SN_COPY_IN)
      counts[kind == SN_COMPUTE ? SN_BAR_COMPUTE : kind == SN_COPY_OUT ? SN_BAR_COPY_OUT : SN_BAR_COPY_IN]--;
  }
  assert_int_equal(counts[SN_BAR_COMPUTE] + counts[SN_BAR_COPY_OUT] + counts[SN_BAR_COPY_IN], 0);
}

/* The bars make up the lane's busy and stalled time. */
static void check_lane_times(const sn_timeline *t, sn_lane lane) {
  int64_t busy = 0, stall = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (bar->lane == lane) *(bar->kind == SN_BAR_STALL ? &stall : &busy) += bar->end_ns - bar->begin_ns;
  }
  assert_true(busy == t->busy_ns[lane] && stall == t->stall_ns[lane]);
}

/* A stall ends when what it waits for ends, or later where it had to wait for more. */
static void check_stalls(const played *all) {
  const sn_timeline *t = all->timeline;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (bar->kind != SN_BAR_STALL || bar->what == SN_NONE) continue;
    assert_true(bar->what < b && t->bars[bar->what].lane != bar->lane);
    assert_true(t->bars[bar->what].kind != SN_BAR_STALL && t->bars[bar->what].end_ns <= bar->end_ns);
  }
}

/* ---- memory ---- */

/* What is live where a step is fullest is what the planner's meter saw there. */
static void check_steps(const played *all) {
  const sn_timeline *t = all->timeline;
  for (uint32_t s = 0; s < t->n_steps; s++) {
    const sn_timeline_step *step = &t->steps[s];
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < t->n_rects; r++)
      if (t->rects[r].tensor != SN_NONE && sn_rect_is_live(&t->rects[r], step->fullest))
        bytes += t->tensors[t->rects[r].tensor].bytes;
    assert_true(bytes == step->tensor_bytes);
  }
}

/* Columns have all instructions between them. */
static void check_columns(const played *all) {
  const sn_timeline *t = all->timeline;
  uint32_t next = 0;
  for (uint32_t c = 0; c < t->n_columns; c++) {
    assert_int_equal(t->columns[c].first_instr, next);
    next += t->columns[c].n_instrs;
  }
  assert_int_equal(next, t->n_instrs);
}

static bool overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end) {
  return a < b_end && b < a_end;
}

/* No two rectangles overlap, neither in the order of the plan nor in time. */
static void check_rects(const played *all) {
  const sn_timeline *t = all->timeline;
  for (uint32_t r = 0; r < t->n_rects; r++) {
    const sn_rect *a = &t->rects[r];
    assert_true(a->from_instr < a->to_instr && a->to_instr <= t->n_instrs && a->bytes > 0);
    assert_true(a->offset + a->bytes <= t->pool_bytes);
    assert_true(a->from_ns >= 0 && a->from_ns <= a->to_ns && a->to_ns <= t->end_ns);
    assert_true(a->from_step >= 1 && a->from_step <= a->to_step && a->to_step <= t->n_steps);
    for (uint32_t q = 0; q < r; q++) {
      const sn_rect *b = &t->rects[q];
      if (!overlap(a->offset, a->offset + a->bytes, b->offset, b->offset + b->bytes)) continue;
      assert_false(overlap(a->from_instr, a->to_instr, b->from_instr, b->to_instr));
      assert_false(overlap((uint64_t)a->from_ns, (uint64_t)a->to_ns, (uint64_t)b->from_ns, (uint64_t)b->to_ns));
    }
  }
}

static void check_levels(const played *all) {
  const sn_timeline *t = all->timeline;
  uint64_t most = 0, peak = 0;
  for (uint32_t s = 0; s < t->n_steps; s++)
    if (t->steps[s].tensor_bytes > peak) peak = t->steps[s].tensor_bytes;
  for (uint32_t l = 0; l < t->n_levels; l++) {
    uint64_t bytes = 0, workspace = 0;
    uint32_t tensors = 0;
    for (uint32_t r = 0; r < t->n_rects; r++) {
      const sn_rect *rect = &t->rects[r];
      if (rect->from_ns > t->levels[l].ns || rect->to_ns <= t->levels[l].ns) continue;
      if (rect->tensor == SN_NONE) workspace += rect->bytes;
      if (rect->tensor != SN_NONE) bytes += t->tensors[rect->tensor].bytes;
      tensors += rect->tensor != SN_NONE;
    }
    assert_true(t->levels[l].tensor_bytes == bytes && t->levels[l].workspace_bytes == workspace);
    assert_int_equal(t->levels[l].live_tensors, tensors);
    assert_true(l == 0 || t->levels[l].ns > t->levels[l - 1].ns);
    if (bytes > most) most = bytes;
  }
  assert_true(most > 0 && most <= peak);
  assert_true(t->levels[t->n_levels - 1].tensor_bytes == 0);
}

/* ---- arrows ---- */

static void check_arrows(const played *all) {
  const sn_timeline *t = all->timeline;
  uint32_t outs = 0, ins = 0, copies_out = 0;
  for (uint32_t a = 0; a < t->n_arrows; a++) {
    const sn_bar *from = &t->bars[t->arrows[a].from_bar], *to = &t->bars[t->arrows[a].to_bar];
    assert_true(from->end_ns <= to->begin_ns);
    bool out = to->kind == SN_BAR_COPY_OUT;
    assert_int_equal(from->kind, out ? SN_BAR_COMPUTE : SN_BAR_COPY_IN);
    if (!out) assert_int_equal(to->kind, SN_BAR_COMPUTE);
    assert_int_equal((out ? to : from)->what, t->arrows[a].tensor);
    outs += out;
    ins += !out;
  }
  for (uint32_t b = 0; b < t->n_bars; b++) copies_out += t->bars[b].kind == SN_BAR_COPY_OUT;
  assert_int_equal(outs, copies_out); /* whatever leaves was made by somebody */
  assert_true(copies_out == 0 || ins > 0);
}

/* The axis goes on at every column, and within one wherever memory changes hands or something computes. */
static void check_places(const played *all) {
  const sn_timeline *t = all->timeline;
  double last = 0;
  for (uint32_t c = 0; c < t->n_columns; c++)
    for (uint32_t i = t->columns[c].first_instr; i < t->columns[c].first_instr + t->columns[c].n_instrs; i++) {
      double place = sn_timeline_place(t, i);
      assert_true(place >= last && place >= c + 1.0 && place <= c + 2.0);
      if (i == t->columns[c].first_instr) assert_true(place == c + 1.0);
      last = place;
    }
  assert_true(sn_timeline_place(t, t->n_instrs) == t->n_columns + 1.0);
  for (uint32_t r = 0; r < t->n_rects; r++)
    assert_true(sn_timeline_place(t, t->rects[r].from_instr) < sn_timeline_place(t, t->rects[r].to_instr));
}

/* Of a plan that is not co-run a column is a step, and instructions stand in those of their steps. */
static void check_plain(const played *all) {
  const sn_timeline *t = all->timeline;
  sn_lane lanes[SN_LANES];
  assert_true(!sn_timeline_is_corun(t) && t->n_columns == t->n_steps && t->n_shown_columns == t->n_trained);
  assert_true(sn_timeline_divide(t) == t->n_forward + 1.0);
  for (uint32_t c = 0; c < t->n_columns; c++) {
    uint32_t first = t->columns[c].first_instr, fullest = t->steps[c].fullest;
    assert_int_equal(t->columns[c].step, c);
    assert_true(fullest >= first && fullest <= first + t->columns[c].n_instrs);
    for (uint32_t i = 0; i < t->columns[c].n_instrs; i++) assert_int_equal(all->p.plan->instrs[first + i].step, c);
  }
  assert_int_equal(sn_timeline_lanes(t, lanes), SN_PLAIN_LANES);
  for (uint32_t lane = 0; lane < SN_PLAIN_LANES; lane++) assert_int_equal(lanes[lane], lane);
  for (uint32_t b = 0; b < t->n_bars; b++) assert_true(t->bars[b].team.count == 0 && t->bars[b].part == SN_STEP_WHOLE);
}

/* What holds for a trace of any back end. */
static void check_all(const played *all) {
  check_plain(all);
  check_bars(all);
  check_lane_times(all->timeline, SN_LANE_COMPUTE);
  check_stalls(all);
  check_steps(all);
  check_columns(all);
  check_rects(all);
  check_levels(all);
  check_arrows(all);
  check_places(all);
}

static void every_strategy(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "resnet18"};
  static const uint64_t pools[] = {UINT64_C(1) << 40, UINT64_C(8) << 20};
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++)
    for (uint32_t i = 0; i < 2 * SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT];
      played all = play_net(nets[k], sn_strategy_name(sn_strategy_default(i / 2), name), pools[i % 2]);
      check_all(&all);
      for (sn_lane lane = 0; lane < SN_LANES; lane++) check_lane_times(all.timeline, lane);
      drop(&all);
    }
}

/* ---- co-run plans ---- */

static bool share_cores(const sn_bar *a, const sn_bar *b) {
  return a->team.slot == b->team.slot && a->team.slot != SN_SLOT_ANY &&
         overlap(a->team.first, a->team.first + a->team.count, b->team.first, b->team.first + b->team.count);
}

/* Every operation is on cores of the device, a core's hardware thread has one at a time, and a lane too. Returns how
 * many there are at once, at most. */
static uint32_t check_operations(const sn_timeline *t) {
  uint32_t n = 0, most = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *x = &t->bars[b];
    uint32_t beside = 1;
    if (x->kind != SN_BAR_COMPUTE) continue;
    assert_int_equal(x->step, t->columns[n++].step + 1);
    assert_true(x->team.count > 0 && (x->team.slot == SN_SLOT_ANY || x->team.first + x->team.count <= t->cores));
    for (uint32_t q = 0; q < b; q++) {
      const sn_bar *y = &t->bars[q];
      if (y->kind != SN_BAR_COMPUTE || y->end_ns <= x->begin_ns || x->end_ns <= y->begin_ns) continue;
      assert_true(x->lane != y->lane && !share_cores(x, y));
      beside += y->begin_ns <= x->begin_ns;
    }
    if (beside > most) most = beside;
  }
  assert_int_equal(n, t->n_columns);
  return most;
}

/* Only the backward step of a CONV or FC has parts. */
static void check_parts(const sn_timeline *t) {
  uint32_t parts[SN_STEP_PARTS] = {0};
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (bar->kind != SN_BAR_COMPUTE) continue;
    const sn_timeline_step *step = &t->steps[bar->what - 1];
    bool splits = strcmp(step->pass, "backward") == 0 && (strcmp(step->op, "CONV") == 0 || strcmp(step->op, "FC") == 0);
    assert_true(splits == (bar->part != SN_STEP_WHOLE));
    assert_string_equal(sn_bar_part(bar), bar->part == SN_STEP_FILTER ? " filter"
                                          : bar->part == SN_STEP_DATA ? " data"
                                                                      : "");
    parts[bar->part]++;
  }
  assert_true(parts[SN_STEP_FILTER] > 1 && parts[SN_STEP_DATA] > 1 && parts[SN_STEP_DATA] <= parts[SN_STEP_FILTER]);
}

static void check_lanes(const sn_timeline *t, uint32_t most) {
  sn_lane lanes[SN_LANES];
  uint32_t n = sn_timeline_lanes(t, lanes);
  assert_true(n >= most && n <= SN_LANES - 2 && lanes[0] == SN_LANE_COMPUTE);
  for (uint32_t i = 1; i < n; i++) assert_true(lanes[i] == SN_LANE_COMPUTE2 + i - 1);
  for (uint32_t i = 0; i < n; i++) check_lane_times(t, lanes[i]);
  for (uint32_t b = 0; b < t->n_bars; b++)
    assert_true(sn_bar_is_idle(t, &t->bars[b]) == (t->bars[b].kind == SN_BAR_STALL));
}

static uint32_t check_corun(const char *spec, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(spec, 16);
  sn_device device = load_gpu("knl7250");
  sn_options options = SN_OPTIONS_INIT;
  played all = {.timeline = sn_simulate_timeline(net, &device, parse_strategy(strategy), &options, &err)};
  must(&err);
  const sn_timeline *t = all.timeline;
  assert_true(sn_timeline_is_corun(t) && t->cores == 68 && t->slots == 2);
  check_stalls(&all);
  check_steps(&all);
  check_columns(&all);
  check_rects(&all);
  check_levels(&all);
  check_places(&all);
  check_parts(t);
  uint32_t most = check_operations(t);
  check_lanes(t, most);
  sn_timeline_free(all.timeline);
  sn_net_free(net);
  return most;
}

static void side_by_side(void **state) {
  (void)state;
  assert_int_equal(check_corun("resnet18", "liveness+corun=s1"), 1);
  assert_true(check_corun("resnet18", "liveness+corun=s1234") > 1);
  assert_true(check_corun("resnet18", "liveness+recompute=speed+corun=path") > 1);
  assert_true(check_corun("alexnet", "liveness+corun=path") > 1);
  assert_true(check_corun("alexnet", "liveness+corun=4x34") > 1);
}

/* With an allocator that takes time each tensor and workspace has a bar for being made and one for being released:
 * their sum is all the time that allocations take, and with it the compute lane has no gap that nothing explains. */
static void check_slow_allocator(sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 4);
  sn_device gpu = load_gpu("k40c");
  sn_options options = SN_OPTIONS_INIT;
  options.allocator = SN_ALLOCATOR_CUDA;
  options.workspace = workspace;
  sn_timeline *t = sn_simulate_timeline(net, &gpu, parse_strategy("liveness"), &options, &err);
  must(&err);
  int64_t ns = 0, end = 0;
  uint32_t allocs = 0, releases = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    bool is_alloc = t->bars[b].kind == SN_BAR_ALLOC, is_release = t->bars[b].kind == SN_BAR_RELEASE;
    if (is_alloc || is_release) ns += t->bars[b].end_ns - t->bars[b].begin_ns;
    allocs += is_alloc;
    releases += is_release;
    assert_true(t->bars[b].begin_ns == end);
    end = t->bars[b].end_ns;
  }
  assert_true(allocs == t->n_rects && releases > 0 && releases <= allocs);
  assert_true(ns == t->allocation_ns && ns == allocs * gpu.malloc_ns + releases * gpu.free_ns);
  assert_true(end == t->end_ns);
  sn_timeline_free(t);
  sn_net_free(net);
}

static void slow_allocator(void **state) {
  (void)state;
  check_slow_allocator(SN_WORKSPACE_NONE);
  check_slow_allocator(SN_WORKSPACE_MAX);
}

/* Makes the timeline of the last iteration. */
static sn_status keep_timeline(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err) {
  played *all = user;
  (void)iteration;
  sn_timeline_free(all->timeline);
  all->timeline = sn_timeline_new(all->p.plan, trace, err);
  return err->code;
}

/* Kernels for the pipeline's net, and what they need of its plans. */
static sn_cpu_kernels *open_kernels(pipeline *p) {
  sn_err err = SN_ERR_INIT;
  sn_cpu_kernels *kernels = sn_cpu_kernels_new(p->net, 1, false, &err);
  if (!kernels && err.code == SN_BAD_DEVICE) { /* a build without */
    pipeline_close(p);
    skip();
  }
  must(&err);
  for (uint32_t layer = 1; layer < p->net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      sn_costs_set_scratch(p->costs, layer, pass, sn_cpu_kernels_scratch(kernels, layer, pass, SN_STEP_WHOLE));
  return kernels;
}

/* A net that really trains, its copies starting late at random: whatever the timing, nothing overlaps. */
static void real_trace(void **state) {
  (void)state;
  static const char *const strategies[] = {"liveness+offload+recompute=speed", "superneurons"};
  for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
    sn_err err = SN_ERR_INIT;
    played all = {.p = pipeline_open("lenet", 4)};
    sn_cpu_kernels *kernels = open_kernels(&all.p);
    pipeline_plan(&all.p, strategies[k], SN_WORKSPACE_NONE, 300 * 1024);
    sn_state *training = sn_state_new(all.p.net, &(sn_hyper){.seed = 1}, &err);
    sn_batches *batches = sn_batches_synthetic(all.p.net, 1, &err);
    must(&err);
    sn_cpu cpu = {.route = all.p.route,
                  .kernels = kernels,
                  .state = training,
                  .batch = sn_batches_next(batches, &err),
                  .jitter_us = 300};
    sn_play_options options = {.iterations = 3, .after = keep_timeline, .user = &all};
    uint64_t done = 0;
    sn_trace_init(&all.trace, all.p.plan, &err);
    sn_play_many(all.p.plan, sn_cpu_backend(&cpu), &options, &all.trace, &done, &err);
    must(&err);
    assert_int_equal(done, 3);
    check_all(&all);
    assert_true(all.timeline->n_arrows > 0);
    sn_batches_free(batches);
    sn_state_free(training);
    sn_cpu_kernels_free(kernels);
    drop(&all);
  }
}

static void another_trace(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  played all = play_net("lenet", "liveness", UINT64_C(1) << 40);
  all.trace.n_spans--;
  assert_null(sn_timeline_new(all.p.plan, &all.trace, &err));
  assert_int_equal(err.code, SN_BUG);
  all.trace.n_spans++;
  sn_err back = SN_ERR_INIT;
  all.p.plan->instrs[all.p.plan->n_instrs - 1].step = 0;
  assert_null(sn_timeline_new(all.p.plan, &all.trace, &back));
  assert_int_equal(back.code, SN_BUG);
  drop(&all);
}

/* A plan says how values lie for the kernels that it was made for; kernels of other layouts refuse it. */
static void other_layouts_are_refused(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  played all = {.p = pipeline_open("lenet", 4)};
  assert_string_equal(sn_costs_layouts(all.p.costs), "plain");
  sn_costs_set_layouts(all.p.costs, "nChw4c: 2 of 9 values");
  sn_cpu_kernels *kernels = open_kernels(&all.p);
  pipeline_plan(&all.p, "liveness", SN_WORKSPACE_NONE, UINT64_MAX / 2);
  assert_string_equal(all.p.plan->layouts, "nChw4c: 2 of 9 values");
  sn_cpu cpu = {.route = all.p.route, .kernels = kernels};
  uint64_t done = 0;
  sn_trace_init(&all.trace, all.p.plan, &err);
  must(&err);
  sn_play_many(all.p.plan, sn_cpu_backend(&cpu), &(sn_play_options){.iterations = 1}, &all.trace, &done, &err);
  assert_int_equal(err.code, SN_BAD_DEVICE);
  assert_non_null(strstr(err.text, "\"nChw4c: 2 of 9 values\", and those of this machine lie as \"plain\""));
  assert_int_equal(done, 0);
  sn_trace_clear(&all.trace);
  sn_cpu_kernels_free(kernels);
  pipeline_close(&all.p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_strategy),
      cmocka_unit_test(side_by_side),
      cmocka_unit_test(slow_allocator),
      cmocka_unit_test(real_trace),
      cmocka_unit_test(other_layouts_are_refused),
      cmocka_unit_test(another_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
