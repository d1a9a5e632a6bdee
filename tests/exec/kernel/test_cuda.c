/* The CUDA machine on the fake GPU: what it says when something is missing; every operator in many shapes against the
 * reference kernels; algorithms and their times; an iteration that is stopped; what is refused. */
#include "exec/kernel/kernel_internal.h"
#include "tests/exec/kernel/op_net.h"
#include "tests/exec/machine/cuda_fixture.h"

#include "sim/plan/check.h"

/* ---- what is missing ---- */

static sn_status open_lenet(sn_machine *machine, sn_err *err) {
  sn_machine_options options = {.hyper.seed = 1};
  sn_net *net = cuda_net("lenet", 2, 0);
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err);
  *err = (sn_err)SN_ERR_INIT;
  sn_status status = sn_machine_open_cuda(route, &options, machine, err);
  if (status == SN_OK) machine->ops->close(machine->self);
  sn_route_free(route);
  sn_net_free(net);
  return status;
}

static void says(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_machine machine;
  assert_int_equal(open_lenet(&machine, &err), SN_BAD_DEVICE);
  assert_int_equal(sn_status_exit_code(err.code), 4);
  if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static void module_missing(void **state) {
  (void)state;
  setenv("SNSIM_CUDA_MODULE", "/nowhere/mine.so", 1);
  says("/nowhere/mine.so, which SNSIM_CUDA_MODULE names, does not exist");
  setenv("SNSIM_CUDA_MODULE", SNSIM_SOURCE_DIR "/README.md", 1);
  says("cannot be loaded");
  setenv("SNSIM_CUDA_MODULE", SNSIM_NEEDS_MORE, 1);
  says("cannot be loaded: libgone.so: cannot open shared object file");
  setenv("SNSIM_CUDA_MODULE", SNSIM_NO_MODULE, 1);
  says("is not a CUDA module of snsim");
  setenv("SNSIM_CUDA_MODULE", SNSIM_OTHER_BUILD, 1);
  says("of another build than this program");
  unsetenv("SNSIM_CUDA_MODULE"); /* tests lie in a folder of their own, without a module */
  says("there is no CUDA module");
}

static void device_missing(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  fake->driver = 0;
  says("no NVIDIA driver");
  fake->driver = 12040;
  says("supports CUDA 12.4, the CUDA runtime here needs 13.0");
  fake->driver = 13000;
  fake->devices = 0;
  says("no CUDA device");
  fake->devices = 1;
  assert_int_equal(fake->live, 0);
}

static void memory_missing(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  fake->device_bytes = 1 << 20;
  says("cuBLAS's workspace needs 8.1 MiB in one piece, of the device's 1.0 MiB only 1.0 MiB");
  fake->device_bytes = 10 << 20;
  says("what is trained (parameters and the batch) needs 4.9 MiB in one piece, of the device's 10.0 MiB only 1.9 MiB");
  fake->device_bytes = 14 << 20;
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = cuda_lab_open(cuda_net("lenet", 8, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  cuda_lab_start(&lab);
  cuda_lab_feed(&lab);
  assert_int_equal(sn_play(lab.plan, lab.machine.ops->backend(lab.machine.self), &lab.trace, &err), SN_BAD_DEVICE);
  assert_non_null(strstr(err.text, "the plan's pool needs"));
  cuda_lab_close(&lab);
  assert_int_equal(fake->live, 0);
}

static void describes_itself(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  sn_machine machine;
  assert_int_equal(open_lenet(&machine, &err), SN_OK);
  assert_string_equal(machine.info.backend, "cuda");
  assert_string_equal(machine.info.device, "Fake GPU");
  assert_string_equal(machine.info.libraries, "driver for CUDA 13.0, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0");
  assert_int_equal(machine.info.memory_bytes, UINT64_C(1) << 32);
  assert_int_equal(fake->live, 0);
}

/* Times with and without TF32 are times of two machines: calibrations are told apart by the libraries' text. */
static void tf32_is_named(void **state) {
  (void)state;
  cuda_fake();
  sn_err err = SN_ERR_INIT;
  sn_machine machine;
  sn_machine_options options = {.hyper.seed = 1, .tf32 = true};
  sn_net *net = cuda_net("lenet", 2, 0);
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_machine_open_cuda(route, &options, &machine, &err);
  cuda_must(&err);
  assert_non_null(strstr(machine.info.libraries, "cuBLAS 13.1.0, TF32"));
  machine.ops->close(machine.self);
  sn_route_free(route);
  sn_net_free(net);
}

/* Masks and one-hot labels lie on the device for the iteration: no step waits for the link or has a place for them. */
static void masks_are_there(void **state) {
  (void)state;
  cuda_fake();
  cuda_lab lab =
      cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  const sn_net *net = lab.net;
  uint64_t given = 0;
  for (uint32_t i = 1; i < net->n_layers; i++) {
    if (net->layers[i].op != SN_DROPOUT && net->layers[i].op != SN_SOFTMAX) continue;
    sn_shape s = net->layers[i].out;
    given += UINT64_C(4) * s.n * s.c * s.h * s.w;
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) assert_int_equal(sn_costs_scratch(lab.costs, i, pass), 0);
  }
  const sn_persistent *p = &lab.machine.info.persistent;
  assert_true(given > 0 && p->auxiliary >= given && p->labels == 0);
  cuda_lab_close(&lab);
}

/* Without --pool the pool is what the device has left: what needs more is told and left out, the cache evicts, and the
 * strategies after it run. */
static void device_limits_the_pool(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  sn_net *net = cuda_net("/tests/nets/small_alexnet.json", 16, 0);
  sn_session_options options = cuda_options(0);
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  cuda_must(&err);
  uint64_t resident = fake->used_bytes;
  sn_session_close(session);
  fake->device_bytes = (resident + cuda_tight_pool(cuda_net("/tests/nets/small_alexnet.json", 16, 0))) / 15 * 16;
  session = sn_session_open(net->name, net, &options, &err);
  cuda_must(&err);
  assert_int_equal(sn_session_add(session, sn_strategy_default(0), &err), SN_NO_FIT);
  assert_non_null(strstr(err.text, "strategy baseline: it needs a pool of"));
  assert_non_null(strstr(err.text, "and the device has"));
  err = (sn_err)SN_ERR_INIT;
  sn_strategy cache = {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_NONE};
  sn_session_add(session, cache, &err);
  cuda_must(&err);
  sn_run *run = sn_session_take(session);
  sn_session_close(session);
  assert_int_equal(run->n_results, 1);
  assert_true(run->results[0].evictions > 0 && run->results[0].iterations == 3);
  assert_true(run->results[0].peak_device_bytes <= fake->device_bytes);
  sn_run_free(run);
  sn_net_free(net);
  assert_int_equal(fake->live, 0);
}

/* ---- operators ---- */

static void check_operator(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs) {
  static const char *const strategies[] = {"baseline", "liveness+recompute=speed"};
  for (int i = 0; i < 2; i++) {
    fake_cuda *fake = cuda_fake();
    cuda_lab lab = cuda_lab_open(op_net(op, attr, data, inputs), strategies[i],
                                 i == 0 ? SN_WORKSPACE_NONE : SN_WORKSPACE_MAX, UINT64_MAX);
    cuda_agrees(&lab, 2, cuda_elements(2e-5));
    cuda_lab_close(&lab);
    assert_string_equal(fake->complaint, "");
  }
}

static void linear_matches(void **state) {
  (void)state;
  sn_attr oblong = conv_attr(5, 1, 7, 1, 0, 1), uneven = conv_attr(4, 3, 5, 2, 1, 2);
  oblong.pad_w = 3;
  uneven.stride_w = 3;
  check_operator(SN_CONV, oblong, (sn_shape){2, 3, 8, 11}, 1);
  check_operator(SN_CONV, uneven, (sn_shape){3, 6, 9, 14}, 1);
  check_operator(SN_CONV, conv_attr(1, 1, 1, 1, 0, 1), (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_CONV, conv_attr(17, 3, 3, 1, 1, 1), (sn_shape){1, 13, 19, 5}, 1);
  check_operator(SN_CONV, conv_attr(21, 5, 5, 1, 4, 7), (sn_shape){2, 14, 6, 7}, 1);
  check_operator(SN_CONV, conv_attr(16, 3, 3, 1, 1, 16), (sn_shape){3, 16, 10, 10}, 1); /* depthwise */
  check_operator(SN_CONV, conv_attr(3, 4, 4, 7, 3, 1), (sn_shape){2, 2, 5, 30}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 33, .bias = true}, (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 13, .bias = true}, (sn_shape){3, 7, 5, 3}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 1}, (sn_shape){5, 257, 1, 2}, 1);
}

static void pool_matches(void **state) {
  (void)state;
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    sn_attr oblong = pool_attr(mode, 3, 2, 1, false);
    oblong.kernel_w = 2;
    oblong.stride_w = 1;
    check_operator(SN_POOL, oblong, (sn_shape){2, 3, 9, 6}, 1);
    check_operator(SN_POOL, pool_attr(mode, 3, 2, 1, true), (sn_shape){3, 4, 14, 12}, 1);
    check_operator(SN_POOL, pool_attr(mode, 2, 3, 1, true), (sn_shape){2, 2, 8, 6}, 1);
    check_operator(SN_POOL, pool_attr(mode, 7, 1, 3, false), (sn_shape){1, 3, 4, 9}, 1);
    check_operator(SN_POOL, global_attr(mode), (sn_shape){3, 20, 7, 7}, 1);
    check_operator(SN_POOL, adaptive_attr(mode, 2, 3), (sn_shape){3, 4, 8, 9}, 1);
  }
}

static void others_match(void **state) {
  (void)state;
  check_operator(SN_LRN, lrn_attr(5, 1e-4, 0.75, 2), (sn_shape){2, 16, 9, 9}, 1);
  check_operator(SN_LRN, lrn_attr(3, 0.5, 1.3, 0.5), (sn_shape){1, 4, 5, 30}, 1);
  check_operator(SN_LRN, lrn_attr(15, 2, 0.5, 1), (sn_shape){3, 6, 3, 3}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){4, 33, 7, 5}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){64, 5, 1, 1}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){1, 2, 1, 2}, 1);
  check_operator(SN_ACT, (sn_attr){0}, (sn_shape){3, 5, 7, 11}, 1);
  check_operator(SN_ACT, (sn_attr){.act = SN_ACT_RELU6}, (sn_shape){3, 5, 7, 11}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){4, 10, 9, 11}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0}, (sn_shape){1, 3, 2, 2}, 1);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){3, 7, 5, 5}, 2);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){2, 11, 4, 3}, 3);
  check_operator(SN_FORK, (sn_attr){0}, (sn_shape){2, 11, 4, 3}, 1);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){3, 3, 5, 7}, 3);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){3, 3, 5, 7}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){0}, (sn_shape){7, 10, 1, 1}, 1);
}

/* LRN goes backward by a few images at a time: here four and then one. */
static void large_lrn_matches(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(op_net(SN_LRN, lrn_attr(3, 1, 1, 1), (sn_shape){5, 3, 587, 598}, 1), "baseline",
                               SN_WORKSPACE_NONE, UINT64_MAX);
  cuda_agrees(&lab, 1, cuda_elements(2e-5));
  cuda_lab_close(&lab);
  assert_string_equal(fake->complaint, "");
}

/* ---- algorithms ---- */

static void atomics_only_where_allowed(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab =
      cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  uint32_t count;
  for (uint32_t i = 1; i < lab.net->n_layers; i++) {
    if (lab.net->layers[i].op != SN_CONV) continue;
    for (sn_conv_kernel k = SN_CONV_BACKWARD_DATA; k < SN_CONV_KERNELS; k++) {
      const sn_conv_choice *choices = sn_costs_conv(lab.costs, i, k, &count);
      bool no_work = k == SN_CONV_BACKWARD_DATA && sn__reads_batch(lab.net, i);
      assert_true(count > 0);
      assert_true(no_work || choices[count - 1].workspace > 0); /* the one without workspace adds with atomics */
    }
  }
  uint64_t first = cuda_lab_play(&lab, lab.plan);
  for (int i = 0; i < 4; i++) assert_true(cuda_lab_play(&lab, lab.plan) == first);
  for (uint32_t i = 0; i < lab.plan->n_instrs; i++) { /* algorithms that need no more than the plan has */
    sn_instr *instr = &lab.plan->instrs[i];
    if (instr->kind == SN_COMPUTE && instr->algo[1] != SN_NO_ALGO) instr->algo[0] = instr->algo[1] = SN_IMPLICIT_GEMM;
  }
  assert_true(cuda_lab_play(&lab, lab.plan) != cuda_lab_play(&lab, lab.plan));
  cuda_lab_close(&lab);
  assert_int_equal(fake->live, 0);
}

/* A list for a network, and how many of it there are of a kernel. */
static sn_timed_algorithms list_for(const sn_net *net) {
  sn_timed_algorithms timed = {calloc(sn_calibrate_room(net), sizeof *timed.list), 0};
  assert_non_null(timed.list);
  return timed;
}

static uint32_t count_timed(const sn_timed_algorithms *timed, sn_conv_kernel kernel, bool measured) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < timed->count; i++)
    count += timed->list[i].kernel == kernel && timed->list[i].choice.measured == measured;
  return count;
}

static sn_status time_all(const cuda_lab *lab, sn_timed_algorithms *timed, sn_err *err) {
  return lab->machine.ops->time_algorithms(lab->machine.self, timed, NULL, NULL, err);
}

/* Each takes time, but the gradient with respect to the batch, which nobody computes. */
static void check_times(const sn_net *net, const sn_timed_algorithms *timed) {
  uint32_t idle = 0;
  for (uint32_t i = 0; i < timed->count; i++) {
    const sn_timed_algorithm *a = &timed->list[i];
    bool no_work = a->kernel == SN_CONV_BACKWARD_DATA && sn__reads_batch(net, a->layer);
    idle += no_work;
    assert_true(net->layers[a->layer].op == SN_CONV && a->choice.measured);
    assert_true(no_work ? a->choice.ns == 0 && a->choice.workspace == 0 : a->choice.ns > 0);
  }
  assert_int_equal(idle, 1);
}

static void algorithms_are_timed(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  cuda_lab lab =
      cuda_lab_open(cuda_net("/models/examples/small_resnet.json", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  sn_timed_algorithms timed = list_for(lab.net);
  uint64_t before = fake->used_bytes;
  time_all(&lab, &timed, &err);
  assert_string_equal(fake->complaint, "");
  cuda_must(&err);
  uint32_t convs = 0;
  for (uint32_t i = 1; i < lab.net->n_layers; i++) convs += lab.net->layers[i].op == SN_CONV;
  check_times(lab.net, &timed);
  assert_true(count_timed(&timed, SN_CONV_FORWARD, true) >= 3 * convs); /* three of them can do any shape */
  assert_true(count_timed(&timed, SN_CONV_BACKWARD_DATA, true) >= convs);
  assert_true(count_timed(&timed, SN_CONV_BACKWARD_FILTER, true) >= convs);
  free(timed.list);
  assert_int_equal(fake->used_bytes, before);
  assert_true(cuda_lab_play(&lab, lab.plan) != 0); /* and training still works */
  cuda_lab_close(&lab);
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
}

static bool offers(const cuda_lab *lab, sn_conv_algo algo) {
  uint32_t count;
  const sn_conv_choice *choices = sn_costs_conv(lab->costs, op_net_layer(lab->net, SN_CONV), SN_CONV_FORWARD, &count);
  for (uint32_t i = 0; i < count; i++)
    if (choices[i].algo == algo) return true;
  return false;
}

/* cuDNN offers algorithms that fail when they run: those are noted, the others are timed, and plans leave them out. */
static void failing_algorithm_is_noted(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  cuda_lab lab =
      cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  sn_timed_algorithms timed = list_for(lab.net);
  uint32_t convs = 0;
  for (uint32_t i = 1; i < lab.net->n_layers; i++) convs += lab.net->layers[i].op == SN_CONV;
  assert_true(offers(&lab, SN_PRECOMPUTED_GEMM));
  fake->broken_algo = 1;
  time_all(&lab, &timed, &err);
  cuda_must(&err);
  assert_int_equal(count_timed(&timed, SN_CONV_FORWARD, false), convs);
  assert_true(count_timed(&timed, SN_CONV_FORWARD, true) > convs);
  free(timed.list);
  lab.machine.ops->offer(lab.machine.self, lab.costs, &err);
  cuda_must(&err);
  assert_false(offers(&lab, SN_PRECOMPUTED_GEMM));
  cuda_lab_close(&lab);
  assert_int_equal(fake->live, 0);
}

/* A device that does not survive an algorithm is opened anew, as by another process, and the others are timed. */
static void lost_device_goes_on(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_timed_algorithms timed = {0};
  uint32_t tries = 0, convs = 0, before;
  fake->broken_algo = 1;
  fake->fault = FAKE_CRASHES;
  for (sn_status status = SN_BAD_DEVICE; status != SN_OK; tries++) {
    sn_err err = SN_ERR_INIT;
    cuda_lab lab =
        cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
    if (!timed.list) timed = list_for(lab.net);
    for (uint32_t i = convs = 0; i < lab.net->n_layers; i++) convs += lab.net->layers[i].op == SN_CONV;
    before = timed.count;
    status = time_all(&lab, &timed, &err);
    if (status != SN_OK) assert_non_null(strstr(err.text, "algorithm precomputed"));
    assert_true(timed.count > before);
    cuda_lab_close(&lab);
    assert_int_equal(fake->live, 0);
  }
  assert_int_equal(tries, convs + 1);
  assert_int_equal(count_timed(&timed, SN_CONV_FORWARD, false), convs);
  assert_true(count_timed(&timed, SN_CONV_FORWARD, true) > convs);
  free(timed.list);
}

/* A network's few shapes are asked for once, whatever its depth. */
static void shapes_are_queried_once(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  sn_machine_options options = cuda_options(0).machine;
  uint64_t calls[2];
  for (uint32_t deep = 0; deep < 2; deep++) {
    sn_net *net = cuda_net(deep ? "resnet:n1=3,n2=9,n3=3,n4=3" : "resnet:n1=3,n2=3,n3=3,n4=3", 1, 64);
    sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
    sn_machine machine;
    sn_device device;
    sn_device_load("k40c", &device, &err);
    sn_costs *costs = sn_costs_new(net, &device, &err);
    cuda_must(&err);
    sn_machine_open_cuda(route, &options, &machine, &err);
    cuda_must(&err);
    calls[deep] = fake->calls;
    machine.ops->offer(machine.self, costs, &err);
    calls[deep] = fake->calls - calls[deep];
    machine.ops->close(machine.self);
    sn_costs_free(costs);
    sn_route_free(route);
    sn_net_free(net);
  }
  cuda_must(&err);
  assert_int_equal(calls[0], calls[1]);
}

/* ---- times and stops ---- */

static void check_trace(const cuda_lab *lab) {
  int64_t last[SN_LANES] = {0}, busy[SN_LANES] = {0};
  for (uint32_t i = 0; i < lab->plan->n_instrs; i++) {
    const sn_instr *instr = &lab->plan->instrs[i];
    sn_span s = lab->trace.spans[i];
    if (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE) continue;
    assert_true(s.begin_ns >= last[instr->lane] && s.end_ns >= s.begin_ns && s.end_ns <= lab->trace.end_ns);
    if (instr->kind == SN_WAIT || instr->kind == SN_SIGNAL) continue;
    last[instr->lane] = s.end_ns;
    busy[instr->lane] += s.end_ns - s.begin_ns;
  }
  for (int lane = 0; lane < SN_LANES; lane++) {
    assert_int_equal(lab->trace.busy_ns[lane], busy[lane]);
    assert_true(lab->trace.stall_ns[lane] >= 0 && busy[lane] + lab->trace.stall_ns[lane] <= lab->trace.end_ns);
  }
}

static void trace_is_in_order(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "liveness+offload", SN_WORKSPACE_NONE,
                               UINT64_MAX);
  for (uint64_t seed = 0; seed < 9; seed++) {
    fake->seed = seed;
    assert_true(cuda_lab_play(&lab, lab.plan) != 0);
    check_trace(&lab);
  }
  assert_true(lab.trace.busy_ns[SN_LANE_OUT] > 0 && lab.trace.busy_ns[SN_LANE_IN] > 0);
  cuda_lab_close(&lab);
}

static bool stop_later(void *user) {
  int *steps = user;
  return --*steps < 0;
}

static void stopped_iteration(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "liveness+offload", SN_WORKSPACE_NONE,
                               UINT64_MAX);
  uint64_t right = cuda_lab_play(&lab, lab.plan), done = 9;
  sn_outcome whole, now;
  lab.machine.ops->outcome(lab.machine.self, &whole);
  for (int steps = 0; steps < 42; steps += 5) {
    sn_err err = SN_ERR_INIT;
    int left = steps;
    cuda_lab_start(&lab);
    cuda_lab_feed(&lab);
    cuda_lab_feed(&lab); /* another batch, with another loss */
    sn_play_many(lab.plan, lab.machine.ops->backend(lab.machine.self),
                 &(sn_play_options){.iterations = 2, .stop = stop_later, .user = &left}, &lab.trace, &done, &err);
    cuda_must(&err);
    assert_int_equal(done, 0);
    lab.machine.ops->outcome(lab.machine.self, &now);
    assert_true(now.loss == whole.loss); /* that of the last whole iteration */
  }
  assert_true(cuda_lab_play(&lab, lab.plan) == right);
  cuda_lab_close(&lab);
  assert_int_equal(fake->live, 0);
}

/* ---- what is refused ---- */

static void refuses_net(sn_net *net, const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_machine machine;
  sn_machine_options options = {0};
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  assert_int_equal(sn_machine_open_cuda(route, &options, &machine, &err), SN_BAD_DEVICE);
  if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
  sn_route_free(route);
  sn_net_free(net);
}

static void refusals(void **state) {
  (void)state;
  cuda_fake();
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = cuda_lab_open(cuda_net("lenet", 2, 0), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  const sn_batch *good = sn_batches_next(lab.batches, &err);
  sn_batch bad = {.data = good->data, .labels = (const int32_t[]){3, 10}};
  assert_int_equal(sn_play(lab.plan, lab.machine.ops->backend(lab.machine.self), &lab.trace, &err), SN_BUG);
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(lab.machine.ops->feed(lab.machine.self, &bad, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "label 10 of image 1"));
  for (uint32_t i = 0; i < lab.plan->n_instrs; i++)
    if (lab.plan->instrs[i].kind == SN_COMPUTE && lab.plan->instrs[i].algo[1] != SN_NO_ALGO)
      lab.plan->instrs[i].bytes = 0; /* its convolution needs some */
  assert_int_equal(cuda_lab_play(&lab, lab.plan), 0);
  cuda_lab_close(&lab);
  refuses_net(op_net(SN_LRN, lrn_attr(17, 1, 0.75, 1), (sn_shape){1, 20, 3, 3}, 1), /* cuDNN's limit is 16 */
              "layer \"op\": cudnnSetLRNDescriptor failed");
  refuses_net(op_net(SN_POOL, adaptive_attr(SN_POOL_AVERAGE, 7, 7), (sn_shape){1, 2, 8, 8}, 1),
              "layer \"op\": the windows of this adaptive POOL differ in size (8x8 to 7x7)");
  refuses_net(op_net(SN_DECONV, deconv_attr(4, 3, 3, 2, 1, 1, 1), (sn_shape){1, 2, 3, 3}, 1),
              "layer \"op\": the CUDA back end has no kernel for DECONV yet; --backend cpu has one");
  refuses_net(op_net(SN_ACT, act_attr(SN_ACT_LEAKY), (sn_shape){1, 2, 3, 3}, 1),
              "layer \"op\": the CUDA back end has no kernel for an ACT of mode \"leaky\" yet; --backend cpu has one");
  refuses_net(op_net(SN_ACT, prelu_attr(1), (sn_shape){1, 2, 3, 3}, 1),
              "layer \"op\": the CUDA back end has no kernel for an ACT of mode \"prelu\" yet; --backend cpu has one");
  refuses_net(op_net(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 2, 1, 0, false), 2, 2), (sn_shape){1, 2, 5, 5}, 1),
              "layer \"op\": the CUDA back end has no kernel for a dilated POOL yet; --backend cpu has one");
  refuses_net(volumes_net(SN_BN, (sn_attr){0}, (sn_shape){1, 2, 3, 3}, 4, 1),
              "the CUDA back end has no kernel for volumes yet; --backend cpu has one");
}

/* A GPU's values lie plain: a plan for blocked ones is refused before anything is reserved, and the machine goes on. */
static void other_layouts_are_refused(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = cuda_lab_open(cuda_net("lenet", 2, 0), "liveness", SN_WORKSPACE_NONE, UINT64_MAX);
  assert_string_equal(lab.plan->layouts, "plain");
  uint64_t right = cuda_lab_play(&lab, lab.plan), used = fake->used_bytes;
  assert_true(right != 0);
  snprintf(lab.plan->layouts, sizeof lab.plan->layouts, "nChw16c: 2 of 9 values");
  assert_int_equal(sn_play(lab.plan, lab.machine.ops->backend(lab.machine.self), &lab.trace, &err), SN_BAD_DEVICE);
  assert_non_null(strstr(err.text, "\"nChw16c: 2 of 9 values\", and a GPU's lie plain; make one for it"));
  assert_int_equal(fake->used_bytes, used);
  snprintf(lab.plan->layouts, sizeof lab.plan->layouts, "plain");
  assert_true(cuda_lab_play(&lab, lab.plan) == right);
  cuda_lab_close(&lab);
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(module_missing),
      cmocka_unit_test(device_missing),
      cmocka_unit_test(memory_missing),
      cmocka_unit_test(describes_itself),
      cmocka_unit_test(tf32_is_named),
      cmocka_unit_test(masks_are_there),
      cmocka_unit_test(device_limits_the_pool),
      cmocka_unit_test(linear_matches),
      cmocka_unit_test(pool_matches),
      cmocka_unit_test(others_match),
      cmocka_unit_test(large_lrn_matches),
      cmocka_unit_test(atomics_only_where_allowed),
      cmocka_unit_test(algorithms_are_timed),
      cmocka_unit_test(failing_algorithm_is_noted),
      cmocka_unit_test(lost_device_goes_on),
      cmocka_unit_test(shapes_are_queried_once),
      cmocka_unit_test(trace_is_in_order),
      cmocka_unit_test(stopped_iteration),
      cmocka_unit_test(refusals),
      cmocka_unit_test(other_layouts_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
