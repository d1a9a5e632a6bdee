/* Emitter and lowering: fences that only some orders of events need, the cache's choice of victims, what happens where
 * nothing is left to evict, workspaces that fit to the block. */
#include "sim/plan/emit.h"
#include "tests/sim/plan/lru.h"
#include "tests/support/pipeline.h"

/* A chain of ReLUs on a value of one block; "a".."d" are tensors 0..3. */
static const char chain[] = "{\"snsim_net\":1,\"name\":\"chain\",\"input\":[256,1,1],\"layers\":["
                            "{\"name\":\"a\",\"op\":\"ACT\"},{\"name\":\"b\",\"op\":\"ACT\"},"
                            "{\"name\":\"c\",\"op\":\"ACT\"},{\"name\":\"d\",\"op\":\"ACT\"},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
enum { A, B, C, D, BLOCK = 1024 };
static const uint8_t no_algo[2] = {SN_NO_ALGO, SN_NO_ALGO};

typedef struct bench {
  sn_err err;
  sn_net *net;
  sn_route *route;
  sn__emit emit;
} bench;

static void open_bench(bench *b, uint64_t blocks, bool cache) {
  *b = (bench){.err = SN_ERR_INIT, .net = load_net(chain, 1)};
  b->route = sn_route_new(b->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &b->err);
  sn__emit_begin(&b->emit, b->route, blocks * BLOCK, cache, &b->err);
  must(&b->err);
}

static void close_bench(bench *b) {
  sn_plan_free(sn__emit_end(&b->emit, SN_OK));
  sn_route_free(b->route);
  sn_net_free(b->net);
}

static bool resident(const bench *b, uint32_t tensor) {
  return b->emit.places[tensor].resident;
}

/* Books a change and writes it. */
static void now(bench *b, uint32_t tensor, sn__change_kind kind) {
  sn__emit_change(&b->emit, tensor, kind);
  sn__emit_settle(&b->emit);
}

/* Forward of layer `step` as the lowering does it. */
static void forward(bench *b, uint32_t step) {
  sn__emit_step(&b->emit, step);
  sn__emit_lock(&b->emit, &b->route->steps[step]);
  if (step > 0 && b->emit.cache) sn__emit_hit(&b->emit, step - 1);
  now(b, step, SN__ALLOC);
  sn__emit_compute(&b->emit, &(sn_execution){.step = step}, &b->route->steps[step], no_algo, 0, 0);
  must(&b->err);
}

/* The last instruction on `lane` that waits, if it stands behind instruction `from`; else SN_NONE. */
static uint32_t find_wait(const sn_plan *plan, sn_lane lane, uint32_t from) {
  for (uint32_t i = plan->n_instrs; i-- > from;)
    if (plan->instrs[i].kind == SN_WAIT && plan->instrs[i].lane == lane) return i;
  return SN_NONE;
}

/* A workspace is nobody's tensor: nothing is released behind it. What comes in to where it was must still wait for it.
 */
static void fetch_behind_a_workspace(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 10, false);
  forward(&b, A);
  sn__emit_copy_out(&b.emit, A);
  now(&b, A, SN__RELEASE);
  now(&b, C, SN__FETCH); /* lane in is now behind that release */
  now(&b, C, SN__RELEASE);
  now(&b, A, SN__FETCH);
  forward(&b, B);
  now(&b, C, SN__FETCH); /* and behind all releases so far */
  uint32_t from = b.emit.plan->n_instrs;
  uint64_t offset;
  sn__emit_workspace(&b.emit, 2 * BLOCK, &offset);
  sn__emit_compute(&b.emit, &(sn_execution){.step = B, .rerun = true}, &b.route->steps[B], no_algo, offset, 2 * BLOCK);
  assert_true(offset == 3 * BLOCK);
  now(&b, D, SN__FETCH);
  must(&b.err);
  assert_true(b.emit.places[D].offset == 3 * BLOCK);
  uint32_t wait = find_wait(b.emit.plan, SN_LANE_IN, from);
  assert_int_not_equal(wait, SN_NONE);
  close_bench(&b);
}

/* The same for a release; a lane that knows of it already waits no second time. */
static void waits_only_where_needed(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 10, false);
  forward(&b, A);
  forward(&b, B);
  now(&b, B, SN__RELEASE);
  uint32_t from = b.emit.plan->n_instrs;
  now(&b, C, SN__FETCH);
  assert_int_not_equal(find_wait(b.emit.plan, SN_LANE_IN, from), SN_NONE);
  from = b.emit.plan->n_instrs;
  now(&b, D, SN__FETCH);
  now(&b, B, SN__ALLOC);
  must(&b.err);
  assert_int_equal(b.emit.plan->n_instrs, from + 4); /* alloc, copy_in, signal; alloc */
  close_bench(&b);
}

/* Least recently used first, but never what the step at hand touches. */
static void victims(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, true);
  forward(&b, A);
  forward(&b, B);
  forward(&b, C);                             /* order now: a, b, c */
  sn__emit_lock(&b.emit, &b.route->steps[B]); /* b's forward again touches a and b */
  now(&b, D, SN__ALLOC);
  must(&b.err);
  assert_true(resident(&b, A) && resident(&b, B) && resident(&b, D));
  assert_false(resident(&b, C));
  sn__emit_hit(&b.emit, A);                   /* order now: b, d, a */
  sn__emit_lock(&b.emit, &b.route->steps[D]); /* c and d */
  now(&b, C, SN__FETCH);
  must(&b.err);
  assert_true(resident(&b, A) && resident(&b, C) && resident(&b, D));
  assert_false(resident(&b, B));
  assert_int_equal(b.emit.plan->counts.evictions, 2);
  assert_true(b.emit.plan->counts.offload_bytes == 2 * BLOCK);
  close_bench(&b);
}

/* What the host has unchanged leaves without another copy; what was changed in place since is copied again. */
static void clean_copies(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 2, true);
  forward(&b, A);
  sn__emit_copy_out(&b.emit, A);
  forward(&b, B);
  sn__emit_lock(&b.emit, &b.route->steps[D]);
  now(&b, D, SN__ALLOC); /* a leaves, clean */
  must(&b.err);
  assert_false(resident(&b, A));
  assert_int_equal(b.emit.plan->counts.evictions, 1);
  assert_true(b.emit.plan->counts.offload_bytes == BLOCK);
  b.emit.places[B].version++; /* as if changed in place */
  sn__emit_lock(&b.emit, &b.route->steps[A]);
  now(&b, A, SN__FETCH); /* b leaves, by a copy */
  must(&b.err);
  assert_true(b.emit.plan->counts.offload_bytes == 2 * BLOCK);
  close_bench(&b);
}

/* Where what is locked does not fit, nothing grows until the device has been emptied; what it has grown by then is used
 * from then on: no tensor leaves for the sake of a limit that is passed already. */
static void growing(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 1, true);
  forward(&b, A);
  sn__emit_step(&b.emit, B);
  sn__emit_lock(&b.emit, &b.route->steps[B]); /* a and b */
  assert_int_equal(sn__emit_change(&b.emit, B, SN__ALLOC), SN_NO_FIT);
  must(&b.err); /* none is recorded */
  assert_true(resident(&b, A) && b.emit.pool.high_water == BLOCK);
  assert_int_equal(sn__emit_pack(&b.emit), SN_OK);
  assert_false(resident(&b, A));
  now(&b, A, SN__FETCH);
  now(&b, B, SN__ALLOC);
  sn__emit_compute(&b.emit, &(sn_execution){.step = B}, &b.route->steps[B], no_algo, 0, 0);
  must(&b.err);
  assert_true(b.emit.pool.high_water == 2 * BLOCK);
  sn__emit_lock(&b.emit, &b.route->steps[D]);
  now(&b, A, SN__RELEASE);
  now(&b, C, SN__ALLOC); /* into a's place */
  assert_true(resident(&b, B) && resident(&b, C));
  assert_int_equal(b.emit.plan->counts.evictions, 1);
  assert_true(b.emit.pool.high_water == 2 * BLOCK);
  close_bench(&b);
}

/* A cache plan needs no more of a pool than its largest step: whatever is on offer, the plan fits where that does. */
static void needs_no_more_than_its_largest_step(void **state) {
  (void)state;
  pipeline p = pipeline_open("lenet", 4);
  uint64_t most = 0; /* tensors of a step side by side, in whole blocks */
  for (uint32_t s = 0; s < p.route->n_steps; s++) {
    const sn_step *step = &p.route->steps[s];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < step->n_accesses; i++)
      sum += sn_pool_round(p.route->tensors[p.route->accesses[step->first_access + i].tensor].bytes);
    if (sum > most) most = sum;
  }
  assert_true(most == 450 * BLOCK); /* pool1's backward: 2 x 180 and 2 x 45 KiB */
  for (uint64_t offered = 1; offered <= 460; offered += 3) {
    pipeline_plan(&p, "superneurons", SN_WORKSPACE_DYNAMIC, offered * BLOCK);
    assert_int_equal(p.plan->pool_bytes <= offered * BLOCK, offered * BLOCK >= most);
    assert_true(p.plan->pool_bytes <= most || offered * BLOCK >= most);
  }
  pipeline_close(&p);
}

/* The plan at the least pool, and with a little more, where the device has to be emptied now and then: whoever is
 * brought in is read. */
static void nothing_comes_in_unread(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch;
  } nets[] = {{"alexnet", 64}, {"resnet50", 40}, {"densenet121", 8}, {"inception_v4", 8}};
  static const char *const strategies[] = {"superneurons", "liveness+cache", "superneurons-paper"};
  uint64_t emptied = 0;
  for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++) {
    pipeline p = pipeline_open(nets[n].net, nets[n].batch);
    for (int s = 0; s < 3; s++) {
      pipeline_plan(&p, strategies[s], SN_WORKSPACE_DYNAMIC, 0);
      uint64_t least = p.plan->pool_bytes;
      for (uint64_t share = 0; share <= 32; share += 4) {
        pipeline_plan(&p, strategies[s], SN_WORKSPACE_DYNAMIC, least + least * share / 32);
        assert_int_equal(lru_unread(p.plan), 0);
        emptied += p.plan->counts.evictions > 0;
      }
    }
    pipeline_close(&p);
  }
  assert_true(emptied > 50);
}

/* One tensor that came in at step 16, left for another and came in again to where it had been. */
static void packs_before_it_fetches(void **state) {
  (void)state;
  pipeline p = pipeline_open("resnet50", 40);
  pipeline_plan(&p, "superneurons", SN_WORKSPACE_DYNAMIC, 385351680);
  assert_true(p.plan->pool_bytes == 385351680);
  assert_int_equal(lru_unread(p.plan), 0);
  uint32_t copies = 0;
  for (uint32_t i = 0; i < p.plan->n_instrs; i++) copies += p.plan->instrs[i].kind == SN_COPY_IN;
  assert_int_equal(copies, 90);
  assert_int_equal(p.plan->counts.cache_misses, 90);
  pipeline_close(&p);
}

/* ---- workspaces ---- */

static const sn_instr *find_compute(const sn_plan *plan, uint32_t step) {
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    if (plan->instrs[i].kind == SN_COMPUTE && plan->instrs[i].id == step) return &plan->instrs[i];
  fail_msg("step %u does not run", step + 1);
  return NULL;
}

/* AlexNet's conv2 at batch 16: under liveness everything before it is packed from 0 on, so what is left is what the
 * pool has beyond conv2's own output. Exactly the FFT's workspace is enough for it, a block less is not. */
static void workspace_to_the_block(void **state) {
  (void)state;
  static const char *const before[] = {"conv1.y", "relu1.y", "lrn1.y", "pool1.y", "conv2.y"};
  pipeline p = pipeline_open("alexnet", 16);
  uint64_t used = 0;
  for (int i = 0; i < 5; i++) used += sn_pool_round(p.route->tensors[find_tensor(p.route, before[i])].bytes);
  uint32_t layer = find_layer(p.net, "conv2"), step = p.route->forward_step[layer], count;
  const sn_conv_choice *fastest = sn_costs_conv(p.costs, layer, SN_CONV_FORWARD, &count);
  assert_true(fastest->workspace > 0 && fastest->workspace % BLOCK == 0);
  pipeline_plan(&p, "liveness", SN_WORKSPACE_DYNAMIC, used + fastest->workspace);
  const sn_instr *compute = find_compute(p.plan, step);
  assert_int_equal(compute->algo[0], fastest->algo);
  assert_true(compute->offset == used && compute->bytes == fastest->workspace);
  pipeline_plan(&p, "liveness", SN_WORKSPACE_DYNAMIC, used + fastest->workspace - 1);
  compute = find_compute(p.plan, step);
  assert_int_not_equal(compute->algo[0], fastest->algo);
  assert_true(compute->offset + compute->bytes <= used + fastest->workspace - BLOCK);
  pipeline_plan(&p, "liveness", SN_WORKSPACE_NONE, UINT64_MAX);
  assert_true(find_compute(p.plan, step)->bytes == 0);
  pipeline_plan(&p, "liveness", SN_WORKSPACE_MAX, 0); /* whatever it needs */
  assert_int_equal(find_compute(p.plan, step)->algo[0], fastest->algo);
  pipeline_close(&p);
}

/* The two kernels of a backward step run one after the other and share one workspace, the larger. */
static void workspace_of_backward(void **state) {
  (void)state;
  pipeline p = pipeline_open("alexnet", 16);
  uint32_t layer = find_layer(p.net, "conv3"), n;
  pipeline_plan(&p, "liveness", SN_WORKSPACE_MAX, 0);
  const sn_instr *compute = find_compute(p.plan, p.route->backward_step[layer]);
  const sn_conv_choice *data = sn_costs_conv(p.costs, layer, SN_CONV_BACKWARD_DATA, &n);
  const sn_conv_choice *filter = sn_costs_conv(p.costs, layer, SN_CONV_BACKWARD_FILTER, &n);
  uint64_t most = data->workspace > filter->workspace ? data->workspace : filter->workspace;
  assert_int_equal(compute->algo[0], data->algo);
  assert_int_equal(compute->algo[1], filter->algo);
  assert_true(compute->bytes == sn_pool_round(most));
  pipeline_close(&p);
}

/* Workspace is never paid for by tensors: no strategy needs more of a pool because of it, as long as the pool is large
 * enough without. */
static void workspace_is_free(void **state) {
  (void)state;
  pipeline p = pipeline_open("resnet18", 4);
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    char name[SN_STRATEGY_TEXT];
    sn_strategy_name(sn_strategy_default(i), name);
    pipeline_plan(&p, name, SN_WORKSPACE_NONE, UINT64_MAX);
    uint64_t needed = p.plan->pool_bytes;
    pipeline_plan(&p, name, SN_WORKSPACE_DYNAMIC, needed);
    assert_true(p.plan->pool_bytes == needed);
    pipeline_plan(&p, name, SN_WORKSPACE_MAX, needed);
    assert_true(p.plan->pool_bytes >= needed);
  }
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fetch_behind_a_workspace),
      cmocka_unit_test(waits_only_where_needed),
      cmocka_unit_test(victims),
      cmocka_unit_test(clean_copies),
      cmocka_unit_test(growing),
      cmocka_unit_test(needs_no_more_than_its_largest_step),
      cmocka_unit_test(nothing_comes_in_unread),
      cmocka_unit_test(packs_before_it_fetches),
      cmocka_unit_test(workspace_to_the_block),
      cmocka_unit_test(workspace_of_backward),
      cmocka_unit_test(workspace_is_free),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
