/* Training with operations side by side, as tests of it do: on cores of their choice, with every byte watched, late
 * starts, and each plan compared with itself one operation after another (exec/session/session.h). Without CPU kernels
 * in the build a test is skipped. */
#ifndef SN_TESTS_CORUN_TRAINING_H
#define SN_TESTS_CORUN_TRAINING_H

#include "exec/session/session.h"
#include "models/zoo/zoo.h"
#include "sim/play/recording.h"
#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct seen {
  uint32_t lanes;   /* that compute, of the widest plan */
  uint32_t threads; /* of the largest team */
  uint32_t second;  /* operations on second slots */
  uint32_t parts;   /* operations that are a part of a step */
} seen;

static inline sn_status look(void *visitor, uint64_t iteration, const sn_plan *plan, const sn_trace *trace,
                             sn_err *err) {
  seen *s = visitor;
  uint32_t lanes = 0;
  (void)err;
  for (uint32_t i = 0; i < plan->n_instrs && iteration == 0 && sn_plan_is_corun(plan); i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    const sn_team *team = &plan->teams[instr->team];
    if (trace->spans[i].end_ns < trace->spans[i].begin_ns) fail_msg("instruction %u has no time", i);
    lanes |= 1u << instr->lane;
    if (team->count > s->threads) s->threads = team->count;
    s->second += team->slot == SN_SLOT_SECOND;
    s->parts += instr->part != SN_STEP_WHOLE;
  }
  uint32_t count = (uint32_t)__builtin_popcount(lanes);
  if (count > s->lanes) s->lanes = count;
  return SN_OK;
}

static inline sn_session *open_session(const sn_net *net, const sn_cores *cores, seen *s, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = 2;
  options.machine.threads = 1;
  options.machine.cores = cores;
  options.machine.check = true;
  options.machine.jitter_us = 200;
  options.predict = options.want_steps = true;
  options.visit = look;
  options.visitor = s;
  sn_session *session = sn_session_open(net->name, net, &options, err);
  if (err->code == SN_BAD_DEVICE) skip();
  return session;
}

static inline sn_net *load_net(const char *name, uint32_t batch, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", name[0] == '/' ? SNSIM_SOURCE_DIR : "", name);
  sn_net *net = sn_net_load(path, batch, image, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

/* What was recorded of measured results can be read, and when one to three bytes of it change is refused or proved. */
static inline void check_recordings(const sn_route *route, const sn_run *run) {
  uint64_t seed = 1;
  unsigned char *bytes = malloc(1 << 20);
  for (uint32_t i = 1; bytes && i < run->n_results; i += 2) {
    sn_err err = SN_ERR_INIT;
    sn_blob recording = run->results[i].recording;
    sn_timeline *t = sn_recording_timeline(route, recording, &err);
    if (!t) fail_msg("%s: %s", run->results[i].strategy, err.text);
    sn_timeline_free(t);
    assert_in_range(recording.n_bytes, 1, 1 << 20);
    for (int round = 0; round < 50; round++) {
      memcpy(bytes, recording.bytes, recording.n_bytes);
      for (uint64_t n = prng_below(&seed, 3) + 1; n > 0; n--) {
        uint32_t at = prng_below(&seed, (uint32_t)recording.n_bytes);
        bytes[at] ^= (unsigned char)(1 + prng_below(&seed, 255));
      }
      err = (sn_err)SN_ERR_INIT;
      t = sn_recording_timeline(route, (sn_blob){bytes, recording.n_bytes}, &err);
      if (!t) assert_int_equal(err.code, SN_BAD_INPUT);
      sn_timeline_free(t);
    }
  }
  free(bytes);
}

/* Trains by each strategy in turn, which must end with " ", as "liveness liveness+corun=s12 ". */
static inline sn_run *train(const sn_net *net, const sn_cores *cores, const char *strategies, seen *s) {
  sn_err err = SN_ERR_INIT;
  sn_session *session = open_session(net, cores, s, &err);
  char name[SN_STRATEGY_TEXT];
  int used = 0;
  for (const char *at = strategies; session && err.code == SN_OK && sscanf(at, "%63s%n", name, &used) == 1;
       at += used) {
    sn_strategy strategy;
    if (sn_strategy_parse(name, &strategy, &err) == SN_OK) sn_session_add(session, strategy, &err);
  }
  sn_run *run = session ? sn_session_take(session) : NULL;
  if (err.code != SN_OK) fail_msg("%s", err.text);
  check_recordings(sn_session_route(session), run);
  sn_session_close(session);
  return run;
}

/* Predicted and measured, in turn: what was executed is what was planned. */
static inline void check_run(const sn_run *run) {
  for (uint32_t i = 0; i < run->n_results; i += 2) {
    const sn_result *planned = &run->results[i], *m = planned + 1;
    assert_string_equal(planned->source, "sim");
    assert_string_equal(m->source, "cpu");
    assert_string_equal(planned->corun.policy, m->corun.policy);
    assert_int_equal(m->iterations, 2);
    assert_int_equal(m->pool_bytes, planned->pool_bytes);
    assert_true(m->digest != 0 && m->loss == m->loss);
    for (uint32_t step = 0; step < m->n_steps; step++)
      assert_int_equal(m->steps[step].tensor_bytes, planned->steps[step].tensor_bytes);
  }
}

#endif
