/* Plans from files, executed on the CPU: whatever a right plan does, losses, gradients and parameters are baseline's to
 * the bit, bytes are the plan's, and nothing outside it is touched. Written by snsim, changed by hand, and damaged at
 * random where the checker lets it pass. Copies start late, so that fences are needed; released bytes are poisoned.
 * Skipped in a build without CPU kernels. */
#include "exec/session/session.h"

#include "sim/ask/plan_file.h"
#include "sim/ask/simulate.h"
#include "sim/graph/route.h"
#include "tests/support/damage.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, PATH_ROOM = 600, SESSION_PLANS = 50 };

/* A network, a file or a name, and whose plan of it. */
typedef struct subject {
  const char *net, *strategy;
} subject;

typedef struct trainer {
  char path[PATH_ROOM];
  sn_device device;
  sn_net *net;
  sn_session *session;
  sn_run *run;
  uint32_t plans; /* that the session has trained by */
} trainer;

static void find_net(trainer *t, const char *net) {
  snprintf(t->path, sizeof t->path, "%s%s", net[0] == '/' ? SNSIM_SOURCE_DIR : "", net);
  t->device = load_gpu("k40c");
  t->net = load_net(t->path, BATCH);
}

/* A new session, which begins with baseline. */
static void begin(trainer *t) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.check = true;
  options.machine.jitter_us = 200;
  options.predict = true;
  options.want_steps = true;
  sn_session_close(t->session);
  t->plans = 0;
  t->session = sn_session_open(t->path, t->net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  if (t->session) sn_session_add(t->session, parse_strategy("baseline"), &err);
  must(&err);
  t->run = sn_session_run(t->session);
}

static trainer open_trainer(const char *net) {
  trainer t = {0};
  find_net(&t, net);
  begin(&t);
  return t;
}

static void close_trainer(trainer *t) {
  sn_session_close(t->session);
  sn_net_free(t->net);
}

/* ---- plans as text ---- */

static char *own_text(const trainer *t, const char *strategy, size_t *bytes) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  char *text = NULL;
  FILE *out = open_memstream(&text, bytes);
  assert_non_null(out);
  sn_simulate_write_plan(t->net, &t->device, parse_strategy(strategy), &options, out, &err);
  fclose(out);
  must(&err);
  return text;
}

/* NULL: it is not right. */
static sn_plan_file *read_text(const trainer *t, const char *text, size_t bytes) {
  sn_err err = SN_ERR_INIT;
  sn_plan_file *file = sn_plan_file_parse("p.json", text, bytes, &err);
  if (file) sn_plan_file_check(file, t->path, &t->device, &err);
  if (err.code == SN_OK) return file;
  assert_int_equal(err.code, SN_BAD_INPUT);
  sn_plan_file_free(file);
  return NULL;
}

static sn_plan_file *own_plan(const trainer *t, const char *strategy) {
  size_t bytes;
  char *text = own_text(t, strategy, &bytes);
  sn_plan_file *file = read_text(t, text, bytes);
  free(text);
  assert_non_null(file);
  return file;
}

/* The changed plan as it comes out of a file; NULL: it is not right. */
static sn_plan_file *through_file(const trainer *t, const sn_plan *plan, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  size_t bytes;
  char *text = NULL;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  sn_plan_write(plan, strategy, &t->device, &options, out, &err);
  fclose(out);
  must(&err);
  sn_plan_file *file = read_text(t, text, bytes);
  free(text);
  return file;
}

/* ---- training by them ---- */

static void check_steps(const sn_result *planned, const sn_result *m) {
  for (uint32_t i = 0; i < m->n_steps; i++) {
    assert_int_equal(m->steps[i].tensor_bytes, planned->steps[i].tensor_bytes);
    assert_int_equal(m->steps[i].live_tensors, planned->steps[i].live_tensors);
    assert_int_equal(m->steps[i].workspace_bytes, planned->steps[i].workspace_bytes);
  }
}

static const sn_result *train(trainer *t, const sn_plan_file *file, const char *what) {
  sn_err err = SN_ERR_INIT;
  if (t->plans++ == SESSION_PLANS) begin(t);
  sn_session_add_plan(t->session, what, file->head.strategy, file->plan, &err);
  if (err.code != SN_OK) fail_msg("%s: %s", what, err.text);
  t->run = sn_session_run(t->session);
  const sn_result *m = &t->run->results[t->run->n_results - 1], *planned = m - 1, *first = &t->run->results[1];
  assert_string_equal(m->strategy, what);
  assert_string_equal(planned->strategy, what);
  if (m->digest != first->digest || m->digest == 0)
    fail_msg("%s: loss %.9g, baseline %.9g", what, m->loss, first->loss);
  assert_true(m->reserved_pool_bytes == planned->pool_bytes && m->pool_bytes <= planned->pool_bytes);
  assert_true(m->reserved_pool_bytes >= file->plan->pool_bytes);
  assert_int_equal(m->offload_bytes, file->plan->counts.offload_bytes);
  assert_int_equal(m->prefetch_bytes, file->plan->counts.prefetch_bytes);
  assert_int_equal(m->recomputed_layers, file->plan->counts.recomputed_layers);
  check_steps(planned, m);
  return m;
}

/* As snsim writes them for a GPU that has other workspaces. */
static void as_they_are(void **state) {
  static const subject subjects[] = {
      {"lenet", "baseline"},
      {"lenet", "liveness+offload+recompute=memory"},
      {"/tests/nets/small_inception.json", "superneurons"},
      {"/tests/nets/small_inception.json", "liveness+offload"},
      {"/models/examples/small_resnet.json", "liveness+offload+recompute=cost"},
      {"/models/examples/small_resnet.json", "pytorch+offload+recompute=units"},
      {"/tests/nets/small_densenet.json", "explicit"},
      {"/tests/nets/small_gpt.json", "pytorch+recompute=units"},
      {"/tests/nets/small_views.json", "pytorch"},
  };
  (void)state;
  for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
    trainer t = open_trainer(subjects[s].net);
    sn_plan_file *file = own_plan(&t, subjects[s].strategy);
    const sn_result *m = train(&t, file, subjects[s].strategy);
    assert_int_equal(m->pool_bytes, m->reserved_pool_bytes); /* used to the last block */
    sn_plan_file_free(file);
    close_trainer(&t);
  }
}

/* ---- by hand ---- */

/* Instruction of a kind for a tensor, from `from` on; SN_NONE: none. */
static uint32_t find(const sn_plan *plan, uint32_t from, sn_instr_kind kind, uint32_t tensor) {
  for (uint32_t i = from; i < plan->n_instrs; i++)
    if (plan->instrs[i].kind == kind && plan->instrs[i].id == tensor) return i;
  return SN_NONE;
}

/* The last use of a tensor up to the first backward step, and the next one; SN_NONE: there are not both. */
static void find_gap(const sn_plan *plan, uint32_t alloc, uint32_t *last, uint32_t *next) {
  const uint32_t tensor = plan->instrs[alloc].id;
  *last = *next = SN_NONE;
  for (uint32_t i = alloc; i < plan->n_instrs && *next == SN_NONE; i++) {
    if (plan->instrs[i].kind == SN_RELEASE && plan->instrs[i].id == tensor) break;
    if (!damage_uses(plan, &plan->instrs[i], tensor)) continue;
    *(plan->instrs[i].id < plan->route->first_backward ? last : next) = i;
  }
}

static sn_instr fence(sn_instr_kind kind, sn_lane lane, uint32_t id) {
  return (sn_instr){.kind = (uint8_t)kind, .lane = (uint8_t)lane, .id = id, .algo = {SN_NO_ALGO, SN_NO_ALGO}};
}

static sn_instr place(sn_instr_kind kind, sn_lane lane, uint32_t tensor, uint64_t offset, uint64_t bytes) {
  sn_instr instr = fence(kind, lane, tensor);
  instr.offset = offset;
  instr.bytes = bytes;
  return instr;
}

/* Puts several in front of number `at`. */
static void put(sn_plan *plan, uint32_t at, const sn_instr *added, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) damage_insert(plan, at, added[i]);
}

/* From the later use on a tensor lies behind the pool. False: it has no release. */
static bool move_behind(sn_plan *plan, uint32_t from, uint32_t tensor, uint64_t bytes, uint64_t *behind) {
  uint32_t release = find(plan, from, SN_RELEASE, tensor);
  if (release == SN_NONE) return false;
  *behind = plan->pool_bytes;
  plan->instrs[release].offset = *behind;
  plan->pool_bytes += bytes;
  return true;
}

/* A tensor that waits for backward leaves for the host meanwhile. */
static bool send(sn_plan *plan, uint32_t alloc) {
  const sn_instr a = plan->instrs[alloc];
  uint64_t behind, slot = plan->external_bytes, exact = plan->route->tensors[a.id].bytes;
  uint32_t last, next, f = plan->n_fences;
  find_gap(plan, alloc, &last, &next);
  if (last == SN_NONE || next == SN_NONE || !move_behind(plan, next, a.id, a.bytes, &behind)) return false;
  const sn_instr back[] = {fence(SN_SIGNAL, SN_LANE_COMPUTE, f + 2),
                           fence(SN_WAIT, SN_LANE_IN, f + 2),
                           fence(SN_WAIT, SN_LANE_IN, f + 1),
                           place(SN_ALLOC, SN_LANE_IN, a.id, behind, a.bytes),
                           place(SN_COPY_IN, SN_LANE_IN, a.id, slot, exact),
                           fence(SN_SIGNAL, SN_LANE_IN, f + 3),
                           fence(SN_WAIT, SN_LANE_COMPUTE, f + 3)};
  const sn_instr away[] = {fence(SN_SIGNAL, SN_LANE_COMPUTE, f),
                           fence(SN_WAIT, SN_LANE_OUT, f),
                           place(SN_COPY_OUT, SN_LANE_OUT, a.id, slot, exact),
                           fence(SN_SIGNAL, SN_LANE_OUT, f + 1),
                           fence(SN_WAIT, SN_LANE_COMPUTE, f + 1),
                           place(SN_RELEASE, SN_LANE_COMPUTE, a.id, a.offset, a.bytes)};
  put(plan, next, back, sizeof back / sizeof *back);
  put(plan, last + 1, away, sizeof away / sizeof *away);
  plan->n_fences += 4;
  plan->external_bytes += a.bytes;
  return true;
}

/* A tensor that waits for backward is dropped and made again; whether what that reads is there the checker will say. */
static bool make_again(sn_plan *plan, uint32_t alloc) {
  const sn_instr a = plan->instrs[alloc];
  uint32_t last, next, made = damage_find_use(plan, alloc, a.id, true);
  uint64_t behind;
  find_gap(plan, alloc, &last, &next);
  if (last == SN_NONE || next == SN_NONE || !move_behind(plan, next, a.id, a.bytes, &behind)) return false;
  sn_instr again = plan->instrs[made];
  again.rerun = true;
  again.offset = again.bytes = 0; /* the machine gives it what it needs */
  const sn_instr back[] = {place(SN_ALLOC, SN_LANE_COMPUTE, a.id, behind, a.bytes), again};
  const sn_instr away = place(SN_RELEASE, SN_LANE_COMPUTE, a.id, a.offset, a.bytes);
  put(plan, next, back, 2);
  put(plan, last + 1, &away, 1);
  return true;
}

/* A tensor lies behind the pool from the start. */
static bool move_away(sn_plan *plan, uint32_t alloc) {
  const sn_instr a = plan->instrs[alloc];
  uint64_t behind;
  if (!move_behind(plan, alloc, a.id, a.bytes, &behind)) return false;
  plan->instrs[alloc].offset = behind;
  return true;
}

/* It is never released, or not before something else is to lie there. */
static bool keep(sn_plan *plan, uint32_t alloc) {
  uint32_t release = find(plan, alloc, SN_RELEASE, plan->instrs[alloc].id);
  if (release == SN_NONE) return false;
  damage_remove(plan, release);
  return true;
}

/* Behind the pool it lies first, and then another one, which stays to the end: the next iteration begins with that. */
static bool succeed(sn_plan *plan, uint32_t alloc) {
  const sn_instr first = plan->instrs[alloc];
  const uint64_t pool = plan->pool_bytes;
  uint32_t release = find(plan, alloc, SN_RELEASE, first.id), second = release;
  while (second < plan->n_instrs && plan->instrs[second].kind != SN_ALLOC) second++;
  if (second >= plan->n_instrs || !keep(plan, second)) return false;
  plan->instrs[alloc].offset = plan->instrs[release].offset = plan->instrs[second].offset = pool;
  plan->pool_bytes += first.bytes > plan->instrs[second].bytes ? first.bytes : plan->instrs[second].bytes;
  return true;
}

/* All addresses a block further. */
static bool shift(sn_plan *plan, uint32_t alloc) {
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    sn_instr *instr = &plan->instrs[i];
    bool has_place = instr->kind == SN_ALLOC || instr->kind == SN_RELEASE;
    if (has_place || (instr->kind == SN_COMPUTE && instr->bytes > 0)) instr->offset += SN_POOL_BLOCK;
  }
  plan->pool_bytes += SN_POOL_BLOCK;
  return plan->instrs[alloc].id == 0; /* once is enough */
}

static const struct {
  const char *what;
  bool (*change)(sn_plan *plan, uint32_t alloc);
} changes[] = {{"sent by hand", send}, {"made again by hand", make_again}, {"moved by hand", move_away},
               {"kept by hand", keep}, {"succeeded by hand", succeed},     {"shifted by hand", shift}};

/* Each change at each tensor where it is right; how often that was. */
static uint32_t change_all(trainer *t, const sn_plan_file *own, const char *strategy, size_t c) {
  uint32_t right = 0;
  for (uint32_t i = 0; i < own->plan->n_instrs; i++) {
    sn_plan changed = damage_copy(own->plan);
    bool is_changed = changed.instrs[i].kind == SN_ALLOC && changes[c].change(&changed, i);
    sn_plan_file *file = is_changed ? through_file(t, &changed, strategy) : NULL;
    if (file) train(t, file, changes[c].what);
    right += file != NULL;
    sn_plan_file_free(file);
    free(changed.instrs);
  }
  return right;
}

static void changed_by_hand(void **state) {
  static const subject subjects[] = {{"lenet", "liveness"}, {"/tests/nets/tiny.json", "pytorch"}};
  (void)state;
  for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
    trainer t = open_trainer(subjects[s].net);
    sn_plan_file *own = own_plan(&t, subjects[s].strategy);
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
      uint32_t right = change_all(&t, own, subjects[s].strategy, c);
      print_message("%s, %s: %u right plans %s\n", subjects[s].net, subjects[s].strategy, right, changes[c].what);
      assert_true(right > 0);
    }
    sn_plan_file_free(own);
    close_trainer(&t);
  }
}

/* ---- at random ---- */

static void damaged(void **state) {
  static const subject subjects[] = {{"lenet", "liveness+offload+recompute=speed"},
                                     {"/models/examples/small_resnet.json", "pytorch+offload"}};
  enum { ROUNDS = 150 };
  uint64_t dice = first_seed(14);
  (void)state;
  for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
    trainer t = open_trainer(subjects[s].net);
    sn_plan_file *own = own_plan(&t, subjects[s].strategy);
    uint32_t right = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
      sn_plan changed = damage_copy(own->plan);
      damage_at_random(&changed, &dice);
      sn_plan_file *file = through_file(&t, &changed, subjects[s].strategy);
      if (file) train(&t, file, "damaged");
      right += file != NULL;
      sn_plan_file_free(file);
      free(changed.instrs);
    }
    print_message("%s, %s: %u of %d damaged plans are right\n", subjects[s].net, subjects[s].strategy, right, ROUNDS);
    assert_true(right > ROUNDS / 20 && right < ROUNDS);
    sn_plan_file_free(own);
    close_trainer(&t);
  }
}

/* ---- what cannot be trained ---- */

static void refused(void **state) {
  (void)state;
  trainer t = open_trainer("lenet");
  sn_err err = SN_ERR_INIT;
  sn_plan_file *file = own_plan(&t, "pytorch");
  sn_session_add_plan(t.session, "p.json", parse_strategy("liveness"), file->plan, &err);
  assert_int_equal(err.code, SN_BUG);
  assert_non_null(strstr(err.text, "another graph"));
  file->plan->pool_bytes = UINT64_C(1) << 52;
  err = (sn_err)SN_ERR_INIT;
  sn_session_add_plan(t.session, "p.json", file->head.strategy, file->plan, &err);
  assert_int_equal(err.code, SN_NO_FIT);
  assert_non_null(strstr(err.text, "it needs a pool of"));
  t.run = sn_session_run(t.session);
  assert_int_equal(t.run->n_failures, 1);
  assert_string_equal(t.run->failures[0].strategy, "p.json");
  assert_int_equal(t.run->n_results, 2);
  sn_plan_file_free(file);
  close_trainer(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_they_are),
      cmocka_unit_test(changed_by_hand),
      cmocka_unit_test(damaged),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
