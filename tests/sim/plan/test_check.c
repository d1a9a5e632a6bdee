/* Checker: a plan by hand that is right, and every rule of sim/plan/check.h broken once in it, with the message.
 *
 * The net is FC and SOFTMAX at batch 4: fc.y (tensor 0), softmax.y (1), fc.dx (2), less than a block each. Steps: 1 fc,
 * 2 softmax, 3 softmax backward (reads fc.y, changes softmax.y), 4 fc backward (reads softmax.y, makes fc.dx), 5 update
 * of fc. fc.y goes to the external pool and comes back into the same bytes of the device. */
#include "tests/support/pipeline.h"

#include "sim/device/conv.h"
#include "sim/plan/check.h"

static const char net_text[] = "{\"snsim_net\":1,\"name\":\"tiny\",\"input\":[1,2,2],\"layers\":["
                               "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":10},"
                               "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

enum { COMPUTE = SN_LANE_COMPUTE, OUT = SN_LANE_OUT, IN = SN_LANE_IN };
enum { Y = 0, S = 1, DX = 2, TENSORS = 3, Y_BYTES = 160 };

/* Numbers of the instructions that cases speak of. */
enum {
  ALLOC_Y,
  FC,
  SIGNAL_0,
  WAIT_0,
  OUT_Y,
  SIGNAL_1,
  ALLOC_S,
  SOFTMAX,
  WAIT_1,
  RELEASE_Y,
  SIGNAL_2,
  WAIT_2,
  AGAIN_Y,
  IN_Y,
  SIGNAL_3,
  WAIT_3,
  SOFTMAX_BACK,
  GONE_Y,
  ALLOC_DX,
  FC_BACK,
  GONE_DX,
  GONE_S,
  UPDATE,
  INSTRS,
  ROOM = INSTRS + 8
};

#define INSTR(k, l, i, s, o, b)                                                                                        \
  {                                                                                                                    \
    .kind = k, .lane = l, .id = i, .step = (s)-1, .offset = o, .bytes = b, .algo = { SN_NO_ALGO, SN_NO_ALGO }          \
  }

static const sn_instr good[INSTRS] = {
    [ALLOC_Y] = INSTR(SN_ALLOC, COMPUTE, Y, 1, 0, 1024),
    [FC] = INSTR(SN_COMPUTE, COMPUTE, 0, 1, 0, 0),
    [SIGNAL_0] = INSTR(SN_SIGNAL, COMPUTE, 0, 1, 0, 0),
    [WAIT_0] = INSTR(SN_WAIT, OUT, 0, 1, 0, 0),
    [OUT_Y] = INSTR(SN_COPY_OUT, OUT, Y, 1, 0, Y_BYTES),
    [SIGNAL_1] = INSTR(SN_SIGNAL, OUT, 1, 1, 0, 0),
    [ALLOC_S] = INSTR(SN_ALLOC, COMPUTE, S, 2, 1024, 1024),
    [SOFTMAX] = INSTR(SN_COMPUTE, COMPUTE, 1, 2, 0, 0),
    [WAIT_1] = INSTR(SN_WAIT, COMPUTE, 1, 2, 0, 0),
    [RELEASE_Y] = INSTR(SN_RELEASE, COMPUTE, Y, 2, 0, 1024),
    [SIGNAL_2] = INSTR(SN_SIGNAL, COMPUTE, 2, 2, 0, 0),
    [WAIT_2] = INSTR(SN_WAIT, IN, 2, 3, 0, 0),
    [AGAIN_Y] = INSTR(SN_ALLOC, IN, Y, 3, 0, 1024),
    [IN_Y] = INSTR(SN_COPY_IN, IN, Y, 3, 0, Y_BYTES),
    [SIGNAL_3] = INSTR(SN_SIGNAL, IN, 3, 3, 0, 0),
    [WAIT_3] = INSTR(SN_WAIT, COMPUTE, 3, 3, 0, 0),
    [SOFTMAX_BACK] = INSTR(SN_COMPUTE, COMPUTE, 2, 3, 0, 0),
    [GONE_Y] = INSTR(SN_RELEASE, COMPUTE, Y, 3, 0, 1024),
    [ALLOC_DX] = INSTR(SN_ALLOC, COMPUTE, DX, 4, 2048, 1024),
    [FC_BACK] = INSTR(SN_COMPUTE, COMPUTE, 3, 4, 0, 0),
    [GONE_DX] = INSTR(SN_RELEASE, COMPUTE, DX, 4, 2048, 1024),
    [GONE_S] = INSTR(SN_RELEASE, COMPUTE, S, 4, 1024, 1024),
    [UPDATE] = INSTR(SN_COMPUTE, COMPUTE, 4, 5, 0, 0),
};

typedef struct bench {
  sn_net *net;
  sn_route *route;
  sn_instr instrs[ROOM];
  sn_plan plan;
} bench;

static int open_bench(void **state) {
  static bench b;
  sn_err err = SN_ERR_INIT;
  b.net = load_net(net_text, 4);
  b.route = sn_route_new(b.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  *state = &b;
  return 0;
}

static int close_bench(void **state) {
  bench *b = *state;
  sn_route_free(b->route);
  sn_net_free(b->net);
  return 0;
}

static void reset(bench *b) {
  memcpy(b->instrs, good, sizeof good);
  b->plan = (sn_plan){.route = b->route,
                      .n_fences = 4,
                      .n_instrs = INSTRS,
                      .instrs = b->instrs,
                      .pool_bytes = 3072,
                      .external_bytes = 1024};
}

static void cut(bench *b, uint32_t at) {
  memmove(&b->instrs[at], &b->instrs[at + 1], (--b->plan.n_instrs - at) * sizeof *b->instrs);
}

static void put(bench *b, uint32_t at, sn_instr instr) {
  memmove(&b->instrs[at + 1], &b->instrs[at], (b->plan.n_instrs++ - at) * sizeof *b->instrs);
  b->instrs[at] = instr;
}

/* Releases name what their tensors' allocations, which a test may have changed, took. */
static void follow_allocations(bench *b) {
  const sn_instr *last[TENSORS] = {NULL};
  for (uint32_t i = 0; i < b->plan.n_instrs; i++) {
    sn_instr *instr = &b->instrs[i];
    if (instr->kind == SN_ALLOC && instr->id < TENSORS) last[instr->id] = instr;
    if (instr->kind != SN_RELEASE || instr->id >= TENSORS || !last[instr->id]) continue;
    instr->offset = last[instr->id]->offset;
    instr->bytes = last[instr->id]->bytes;
  }
}

static void rejected_as_it_stands(bench *b, const char *said) {
  sn_err err = SN_ERR_INIT;
  sn_status status = sn_check(&b->plan, NULL, &err);
  if (status != SN_BUG || strncmp(err.text, "plan check: ", 12) != 0 || !strstr(err.text, said))
    fail_msg("%s: %s; expected: %s", sn_status_name(status), err.text, said);
  reset(b);
}

/* The plan as it is now is rejected, with this text; then it is good again. */
static void rejected(bench *b, const char *said) {
  follow_allocations(b);
  rejected_as_it_stands(b, said);
}

static void accepted(bench *b) {
  sn_err err = SN_ERR_INIT;
  follow_allocations(b);
  if (sn_check(&b->plan, NULL, &err) != SN_OK) fail_msg("%s", err.text);
  reset(b);
}

static void good_plan(void **state) {
  bench *b = *state;
  reset(b);
  sn_err err = SN_ERR_INIT;
  sn_step_use use[5];
  sn_check_report report = {.use = use};
  if (sn_check(&b->plan, &report, &err) != SN_OK) fail_msg("%s", err.text);
  assert_int_equal(report.high_water, 3072);
  assert_int_equal(report.peak_tensor_bytes, 2 * Y_BYTES); /* fc.y and softmax.y; fc.dx is 64 bytes */
  assert_int_equal(report.max_live_tensors, 2);
  static const uint64_t bytes[] = {Y_BYTES, 2 * Y_BYTES, 2 * Y_BYTES, Y_BYTES + 64, 0};
  static const uint32_t live[] = {1, 2, 2, 2, 0};
  for (int s = 0; s < 5; s++) {
    assert_int_equal(use[s].tensor_bytes, bytes[s]);
    assert_int_equal(use[s].live_tensors, live[s]);
    assert_int_equal(use[s].workspace_bytes, 0);
  }
}

/* ---- order ---- */

static void order_of_steps(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[FC].id = 1;
  rejected(b, "instruction 1 (compute on lane compute): step 2 runs where step 1 is due");
  put(b, FC, good[FC]);
  rejected(b, "instruction 2 (compute on lane compute): step 1 runs where step 2 is due");
  cut(b, UPDATE);
  rejected(b, "step 5 never runs");
  b->instrs[UPDATE].id = 0;
  rejected(b, "step 1 runs where step 5 is due");
  b->plan.n_instrs = 0;
  rejected(b, "step 1 never runs");
}

static void reruns(void **state) {
  bench *b = *state;
  reset(b);
  put(b, FC + 1, good[FC]);
  b->instrs[FC + 1].rerun = true;
  accepted(b); /* a forward step may run again */
  b->instrs[FC].rerun = true;
  rejected(b, "step 1 cannot be run again here"); /* it has not run yet */
  put(b, SOFTMAX_BACK + 1, good[SOFTMAX_BACK]);
  b->instrs[SOFTMAX_BACK + 1].rerun = true;
  rejected(b, "step 3 cannot be run again here"); /* backward */
}

/* ---- values ---- */

static void residency(void **state) {
  bench *b = *state;
  reset(b);
  cut(b, ALLOC_Y);
  rejected(b, "instruction 0 (compute on lane compute): fc.y is not on the device");
  put(b, SOFTMAX, good[RELEASE_Y]);
  rejected(b, "fc.y is released while another lane may still use it");
  put(b, ALLOC_S, good[ALLOC_Y]);
  b->instrs[ALLOC_S].step = 1;
  b->instrs[ALLOC_S].offset = 2048;
  rejected(b, "instruction 6 (alloc on lane compute): fc.y is allocated already");
  put(b, GONE_Y, good[GONE_Y]);
  rejected(b, "(release on lane compute): fc.y is not allocated");
  cut(b, AGAIN_Y);
  rejected(b, "(copy_in on lane in): fc.y is not on the device");
  cut(b, ALLOC_DX);
  rejected(b, "fc.dx is not on the device");
}

static void versions(void **state) {
  bench *b = *state;
  reset(b);
  cut(b, IN_Y); /* allocated, but what came back never arrives */
  rejected(b, "needs version 1 of fc.y, finds 0 (0: no value)");
  put(b, SOFTMAX_BACK, good[SOFTMAX]); /* softmax.y made anew ... */
  b->instrs[SOFTMAX_BACK].rerun = true;
  b->instrs[SOFTMAX_BACK].step = 2;
  accepted(b);
  put(b, FC_BACK, good[SOFTMAX]); /* ... which undoes the gradient in it; fc.y is gone by then: */
  b->instrs[FC_BACK].rerun = true;
  b->instrs[FC_BACK].step = 3;
  cut(b, GONE_Y);
  rejected(b, "needs version 2 of softmax.y, finds 1");
  put(b, ALLOC_DX, (sn_instr)INSTR(SN_RELEASE, COMPUTE, S, 4, 1024, 1024));
  put(b, ALLOC_DX + 1, (sn_instr)INSTR(SN_ALLOC, COMPUTE, S, 4, 1024, 1024));
  rejected(b, "needs version 2 of softmax.y, finds 0");
}

/* ---- fences ---- */

/* Each wait of the plan is needed. */
static void missing_waits(void **state) {
  bench *b = *state;
  reset(b);
  cut(b, WAIT_0);
  rejected(b, "(copy_out on lane out): fc.y is read without a fence behind another lane's use of it");
  cut(b, WAIT_1);
  rejected(b, "(release on lane compute): fc.y is released while another lane may still use it");
  cut(b, WAIT_2);
  rejected(b, "(alloc on lane in): its bytes are re-used without a fence behind their last use");
  cut(b, WAIT_3);
  rejected(b, "(compute on lane compute): fc.y is read without a fence behind another lane's use of it");
}

/* A write may not overtake a read: fc again while fc.y is being copied out. */
static void overtaking_write(void **state) {
  bench *b = *state;
  reset(b);
  put(b, ALLOC_S, good[FC]);
  b->instrs[ALLOC_S].rerun = true;
  rejected(b, "fc.y is written without a fence behind another lane's use of it");
}

static void fence_rules(void **state) {
  bench *b = *state;
  reset(b);
  cut(b, SIGNAL_0);
  rejected(b, "instruction 2 (wait on lane out): fence 0 has not been signalled before");
  put(b, SIGNAL_1, good[SIGNAL_0]);
  rejected(b, "fence 0 is signalled twice");
  b->instrs[WAIT_0] = good[SIGNAL_0];
  b->instrs[SIGNAL_0] = good[WAIT_0];
  rejected(b, "fence 0 has not been signalled before");
  b->instrs[SIGNAL_0] = good[FC]; /* signalled before what it stands for has run */
  b->instrs[FC] = good[SIGNAL_0];
  rejected(b, "fc.y is read without a fence");
}

/* ---- memory ---- */

static void sizes(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[ALLOC_S].offset = 1000;
  rejected(
      b,
      "softmax.y needs whole blocks for 160 bytes: an offset that is a multiple of 1024, not 1000, and 1024 bytes or a "
      "larger multiple, not 1024");
  b->instrs[ALLOC_S].bytes = 1000;
  rejected(b, "softmax.y needs whole blocks");
  b->instrs[ALLOC_S].bytes = 0;
  rejected(b, "softmax.y needs whole blocks");
  b->instrs[ALLOC_S].bytes = 2048;
  b->instrs[ALLOC_DX].offset = 0;
  accepted(b); /* more than needed is a waste, not wrong */
}

static void releases_name_what_lies_there(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[RELEASE_Y].offset = 1024;
  rejected_as_it_stands(b, "(release on lane compute): fc.y is not what lies there");
  b->instrs[RELEASE_Y].bytes = 2048;
  rejected_as_it_stands(b, "(release on lane compute): fc.y is not what lies there");
  b->instrs[SOFTMAX].offset = 2048; /* a workspace */
  b->instrs[SOFTMAX].bytes = 1000;
  rejected_as_it_stands(b, "its workspace is not whole blocks");
}

static void outside_the_pool(void **state) {
  bench *b = *state;
  reset(b);
  b->plan.pool_bytes = 2048;
  rejected(b, "(alloc on lane compute): [2048, +1024) is outside the pool of 2048 bytes");
  b->instrs[ALLOC_S].offset = 3072;
  rejected(b, "[3072, +1024) is outside the pool of 3072 bytes");
  b->instrs[ALLOC_S].offset = UINT64_MAX - 1023;
  rejected(b, "is outside the pool");
  b->instrs[ALLOC_S].bytes = UINT64_MAX - 1023;
  rejected(b, "is outside the pool");
  b->plan.external_bytes = 100;
  rejected(b, "(copy_out on lane out): [0, +160) is outside the pool of 100 bytes");
  b->instrs[FC].bytes = 4096;
  rejected(b, "(compute on lane compute): [0, +4096) is outside the pool of 3072 bytes");
}

static void overlaps(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[ALLOC_S].offset = 0;
  rejected(b, "(alloc on lane compute): its bytes overlap fc.y, which is live");
  b->instrs[ALLOC_DX].offset = 0;
  b->instrs[ALLOC_DX].bytes = 2048;
  rejected(b, "its bytes overlap softmax.y, which is live");
  b->instrs[SOFTMAX].offset = 0; /* a workspace */
  b->instrs[SOFTMAX].bytes = 1024;
  rejected(b, "(compute on lane compute): its bytes overlap fc.y, which is live");
}

/* Workspaces live as long as their step: at once re-used by the same lane, by others behind a fence only. */
static void workspaces(void **state) {
  bench *b = *state;
  sn_err err = SN_ERR_INIT;
  sn_step_use use[5];
  sn_check_report report = {.use = use};
  reset(b);
  b->instrs[SOFTMAX].offset = 2048;
  b->instrs[SOFTMAX].bytes = 1024;
  assert_int_equal(sn_check(&b->plan, &report, &err), SN_OK);
  assert_int_equal(use[1].workspace_bytes, 1024);
  assert_int_equal(use[0].workspace_bytes + use[2].workspace_bytes, 0);
  b->instrs[ALLOC_DX].offset = 0;
  b->instrs[AGAIN_Y].offset = 2048; /* in is behind fence 2, which is behind softmax */
  accepted(b);
  cut(b, SIGNAL_2); /* fence 2 in front of softmax covers less than its workspace needs */
  put(b, SOFTMAX, good[SIGNAL_2]);
  b->instrs[SOFTMAX + 1].offset = 2048;
  b->instrs[SOFTMAX + 1].bytes = 1024;
  b->instrs[AGAIN_Y].offset = 2048;
  rejected(b, "(alloc on lane in): its bytes are re-used without a fence behind their last use");
}

/* Bytes of a dead region that are re-used in part: the rest stays on record, in front and behind. */
static void parts_of_dead_regions(void **state) {
  bench *b = *state;
  for (uint64_t part = 2048; part <= 3072; part += 1024) {
    reset(b);
    b->plan.pool_bytes = 4096;
    cut(b, ALLOC_DX);
    cut(b, SIGNAL_2); /* in front of softmax, whose workspace is [2048, 4096) */
    put(b, SOFTMAX, good[SIGNAL_2]);
    b->instrs[SOFTMAX + 1].offset = b->instrs[SOFTMAX + 1].bytes = 2048;
    put(b, SOFTMAX + 2, good[ALLOC_DX]);
    b->instrs[SOFTMAX + 2].step = 1;
    b->instrs[SOFTMAX + 2].offset = part;
    b->instrs[AGAIN_Y + 1].offset = 2048 + 3072 - part; /* the other part */
    rejected(b, "(alloc on lane in): its bytes are re-used without a fence behind their last use");
  }
}

/* ---- copies ---- */

static void copies(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[OUT_Y].bytes = 1024;
  rejected(b, "(copy_out on lane out): copies 1024 bytes of a tensor of 160");
  b->instrs[IN_Y].bytes = 159;
  rejected(b, "(copy_in on lane in): copies 159 bytes of a tensor of 160");
  b->instrs[IN_Y].offset = 512;
  rejected(b, "fc.y has no external copy there");
  cut(b, OUT_Y);
  rejected(b, "fc.y has no external copy there");
  b->instrs[OUT_Y].id = S; /* not allocated yet */
  rejected(b, "softmax.y is not on the device");
}

static void copying_nothing(void **state) {
  bench *b = *state;
  reset(b);
  put(b, SOFTMAX, (sn_instr)INSTR(SN_SIGNAL, COMPUTE, 4, 2, 0, 0));
  put(b, SOFTMAX + 1, (sn_instr)INSTR(SN_WAIT, OUT, 4, 2, 0, 0));
  put(b, SOFTMAX + 2, (sn_instr)INSTR(SN_COPY_OUT, OUT, S, 2, 512, Y_BYTES)); /* softmax has not run */
  b->plan.n_fences = 5;
  rejected(b, "softmax.y holds no value");
}

static void external_copies(void **state) {
  bench *b = *state;
  reset(b);
  put(b, SIGNAL_1, (sn_instr)INSTR(SN_COPY_OUT, OUT, Y, 1, 512, Y_BYTES));
  rejected(b, "the external copy of fc.y moves");
  put(b, SIGNAL_1, good[OUT_Y]);
  accepted(b); /* once more to the same place */
  /* softmax.y to where fc.y's copy lies */
  put(b, WAIT_1, (sn_instr)INSTR(SN_SIGNAL, COMPUTE, 4, 2, 0, 0));
  put(b, WAIT_1 + 1, (sn_instr)INSTR(SN_WAIT, OUT, 4, 2, 0, 0));
  put(b, WAIT_1 + 2, (sn_instr)INSTR(SN_COPY_OUT, OUT, S, 2, 100, Y_BYTES));
  b->plan.n_fences = 5;
  rejected(b, "(copy_out on lane out): its bytes overlap fc.y, which is live");
}

/* The copy in reads the external pool: it must be behind the copy out ... */
static void read_before_written(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[SIGNAL_1] = good[OUT_Y]; /* fence 1 in front of the copy covers nothing */
  b->instrs[OUT_Y] = good[SIGNAL_1];
  cut(b, RELEASE_Y);
  cut(b, AGAIN_Y - 1); /* fc.y stays, so that only the external copy matters */
  rejected(b, "the external copy of fc.y is read without a fence behind its copy-out");
}

/* ... and a later copy out behind the copy in. Lane out knows nothing of lane in where it makes fc.y itself. */
static void written_before_read(void **state) {
  bench *b = *state;
  reset(b);
  put(b, GONE_Y + 1, (sn_instr)INSTR(SN_ALLOC, OUT, Y, 3, 2048, 1024));
  put(b, GONE_Y + 2, (sn_instr)INSTR(SN_COMPUTE, OUT, 0, 3, 0, 0));
  b->instrs[GONE_Y + 2].rerun = true;
  put(b, GONE_Y + 3, (sn_instr)INSTR(SN_COPY_OUT, OUT, Y, 3, 0, Y_BYTES));
  rejected(b, "the external copy of fc.y is overwritten while it may be read");
  put(b, WAIT_3 + 1, (sn_instr)INSTR(SN_WAIT, OUT, 3, 3, 0, 0));
  put(b, WAIT_3 + 2, good[OUT_Y]);
  b->instrs[WAIT_3 + 2].step = 2;
  put(b, WAIT_3 + 3, (sn_instr)INSTR(SN_SIGNAL, OUT, 4, 3, 0, 0));
  put(b, WAIT_3 + 4, (sn_instr)INSTR(SN_WAIT, COMPUTE, 4, 3, 0, 0));
  b->plan.n_fences = 5;
  accepted(b); /* behind fence 3, which is behind the copy in */
}

/* ---- form ---- */

static void malformed(void **state) {
  bench *b = *state;
  reset(b);
  b->instrs[FC].kind = SN_INSTR_KINDS;
  rejected(b, "instruction 1 is malformed");
  b->instrs[FC].lane = SN_LANES;
  rejected(b, "instruction 1 is malformed");
  b->instrs[FC].id = 5;
  rejected(b, "instruction 1 is malformed");
  b->instrs[ALLOC_Y].id = 3;
  rejected(b, "instruction 0 is malformed");
  b->instrs[SIGNAL_0].id = 4;
  rejected(b, "instruction 2 is malformed");
  b->instrs[WAIT_0].id = UINT32_MAX;
  rejected(b, "instruction 3 is malformed");
  b->instrs[SOFTMAX].step = 0; /* steps do not go back */
  rejected(b, "\"at_step\" is 1 behind an instruction of");
  b->instrs[UPDATE].step = 5;
  rejected(b, "instruction 22 is malformed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_plan),
      cmocka_unit_test(order_of_steps),
      cmocka_unit_test(reruns),
      cmocka_unit_test(residency),
      cmocka_unit_test(versions),
      cmocka_unit_test(missing_waits),
      cmocka_unit_test(overtaking_write),
      cmocka_unit_test(fence_rules),
      cmocka_unit_test(sizes),
      cmocka_unit_test(outside_the_pool),
      cmocka_unit_test(overlaps),
      cmocka_unit_test(releases_name_what_lies_there),
      cmocka_unit_test(workspaces),
      cmocka_unit_test(parts_of_dead_regions),
      cmocka_unit_test(copies),
      cmocka_unit_test(copying_nothing),
      cmocka_unit_test(external_copies),
      cmocka_unit_test(read_before_written),
      cmocka_unit_test(written_before_read),
      cmocka_unit_test(malformed),
  };
  return cmocka_run_group_tests(tests, open_bench, close_bench);
}
