/* Failing back ends: whichever call fails, sn_play() returns that error, calls nothing more but close(), and that once.
 * And what a back end that works is called with. */
#include "tests/support/pipeline.h"

#include "sim/play/backend.h"

#include <stdio.h>

typedef enum call { RESERVE, ALLOC, RELEASE, COMPUTE, COPY, SIGNAL, WAIT, SYNC, CALLS } call;

/* A back end that only notes. */
typedef struct fake {
  const sn_plan *plan;
  uint32_t calls, fail_at; /* calls but for close(); fail_at counts from 1, 0: never */
  uint32_t of[CALLS];
  uint32_t next; /* instruction due */
  uint32_t closed;
  bool wrong; /* called out of turn */
} fake;

static sn_status note(fake *f, call what, sn_err *err) {
  if (f->closed > 0) f->wrong = true;
  f->of[what]++;
  if (++f->calls == f->fail_at) return sn_fail(err, SN_BAD_DEVICE, "call %u failed", f->calls);
  if (f->fail_at > 0 && f->calls > f->fail_at) f->wrong = true;
  return SN_OK;
}

static sn_status note_instr(void *self, call what, uint32_t index, sn_err *err) {
  static const call expected[SN_INSTR_KINDS] = {ALLOC, RELEASE, COMPUTE, COPY, COPY, SIGNAL, WAIT};
  fake *f = self;
  if (index != f->next++ || expected[f->plan->instrs[index].kind] != what) f->wrong = true;
  return note(f, what, err);
}

static sn_status reserve(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  fake *f = self;
  f->plan = plan;
  if (trace->n_spans != plan->n_instrs || f->calls > 0) f->wrong = true;
  return note(f, RESERVE, err);
}

static sn_status alloc(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, ALLOC, index, err);
}

static sn_status release(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, RELEASE, index, err);
}

static sn_status compute(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, COMPUTE, index, err);
}

static sn_status copy(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, COPY, index, err);
}

static sn_status signal_fence(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, SIGNAL, index, err);
}

static sn_status wait_fence(void *self, uint32_t index, sn_err *err) {
  return note_instr(self, WAIT, index, err);
}

static sn_status sync_all(void *self, sn_err *err) {
  fake *f = self;
  if (f->next != f->plan->n_instrs) f->wrong = true;
  return note(f, SYNC, err);
}

static void close_fake(void *self) {
  fake *f = self;
  f->closed++;
}

static const sn_backend_ops ops = {
    .name = "fake",
    .reserve = reserve,
    .alloc = alloc,
    .release = release,
    .compute = compute,
    .copy = copy,
    .signal = signal_fence,
    .wait = wait_fence,
    .sync = sync_all,
    .close = close_fake,
};

static sn_status play(const sn_plan *plan, fake *f, sn_err *err) {
  sn_trace trace;
  sn_trace_init(&trace, plan, err);
  must(err);
  sn_status status = sn_play(plan, (sn_backend){.self = f, .ops = &ops}, &trace, err);
  sn_trace_clear(&trace);
  return status;
}

/* A plan with every kind of instruction. */
static pipeline open_plan(void) {
  pipeline p = pipeline_open("lenet", 4);
  pipeline_plan(&p, "liveness+offload+recompute=memory", SN_WORKSPACE_DYNAMIC, UINT64_MAX);
  return p;
}

static void every_call_in_turn(void **state) {
  (void)state;
  pipeline p = open_plan();
  fake f = {0};
  sn_err err = SN_ERR_INIT;
  assert_int_equal(play(p.plan, &f, &err), SN_OK);
  assert_int_equal(err.code, SN_OK);
  assert_false(f.wrong);
  assert_int_equal(f.closed, 1);
  assert_int_equal(f.calls, p.plan->n_instrs + 2);
  assert_int_equal(f.of[RESERVE], 1);
  assert_int_equal(f.of[SYNC], 1);
  uint32_t kinds[SN_INSTR_KINDS] = {0};
  for (uint32_t i = 0; i < p.plan->n_instrs; i++) kinds[p.plan->instrs[i].kind]++;
  assert_int_equal(f.of[COPY], kinds[SN_COPY_OUT] + kinds[SN_COPY_IN]);
  assert_int_equal(f.of[COMPUTE], kinds[SN_COMPUTE]);
  for (int k = 0; k < SN_INSTR_KINDS; k++) assert_true(kinds[k] > 0);
  pipeline_close(&p);
}

static void every_call_fails_once(void **state) {
  (void)state;
  pipeline p = open_plan();
  uint32_t count = p.plan->n_instrs + 2;
  for (uint32_t at = 1; at <= count; at++) {
    fake f = {.fail_at = at};
    sn_err err = SN_ERR_INIT;
    char text[40];
    snprintf(text, sizeof text, "call %u failed", at);
    assert_int_equal(play(p.plan, &f, &err), SN_BAD_DEVICE);
    assert_string_equal(err.text, text);
    assert_int_equal(f.calls, at);
    assert_int_equal(f.closed, 1);
    assert_false(f.wrong);
  }
  pipeline_close(&p);
}

/* An instruction of no known kind ends the play, too. */
static void unknown_kind(void **state) {
  (void)state;
  pipeline p = open_plan();
  fake f = {0};
  sn_err err = SN_ERR_INIT;
  p.plan->instrs[7].kind = SN_INSTR_KINDS;
  assert_int_equal(play(p.plan, &f, &err), SN_BUG);
  assert_string_equal(err.text, "plan instruction 7 is of no known kind");
  assert_int_equal(f.closed, 1);
  assert_int_equal(f.of[SYNC], 0);
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call_in_turn),
      cmocka_unit_test(every_call_fails_once),
      cmocka_unit_test(unknown_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
