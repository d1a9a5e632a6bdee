/* Schedules of pipelines: known lists, how long they take and how much they keep by the rules of their papers, for all
 * pipelines of up to 16 stages, 64 micro-batches and 4 chunks; uneven stages; lists that never end. */
#include "sim/parallel/pipeline_actions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES = 16, MICROS = 64, CHUNKS = 4, PARTS = 64 * CHUNKS };

static sn_pipeline *made(sn_pipeline_kind kind, uint32_t stages, uint32_t micros, uint32_t chunks) {
  sn_err err = SN_ERR_INIT;
  sn_pipeline *pipeline = sn_pipeline_new(kind, stages, micros, chunks, &err);
  if (!pipeline) fail_msg("%s", err.text);
  return pipeline;
}

/* All parts take as long. */
typedef struct evenly {
  int64_t forward_ns, backward_ns, weights_ns, hop_ns;
} evenly;

static int64_t play_evenly(const sn_pipeline *pipeline, evenly of) {
  int64_t forward[PARTS], backward[PARTS], weights[PARTS], hops[PARTS], busy[PARTS], idle[PARTS];
  assert_true(pipeline->stages * pipeline->chunks <= PARTS);
  for (uint32_t i = 0; i < pipeline->stages * pipeline->chunks; i++) {
    forward[i] = of.forward_ns;
    backward[i] = of.backward_ns;
    weights[i] = of.weights_ns;
    hops[i] = of.hop_ns;
  }
  const sn_pipeline_times times = {.forward_ns = forward,
                                   .backward_ns = backward,
                                   .weights_ns = pipeline->split ? weights : NULL,
                                   .forward_hop_ns = hops,
                                   .backward_hop_ns = hops};
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle};
  sn_err err = SN_ERR_INIT;
  if (sn_pipeline_play(pipeline, &times, &played, &err) != SN_OK) fail_msg("%s", err.text);
  const int64_t each = of.forward_ns + of.backward_ns + (pipeline->split ? of.weights_ns : 0);
  for (uint32_t stage = 0; stage < pipeline->stages; stage++) {
    assert_int_equal(busy[stage], each * pipeline->micros * pipeline->chunks);
    assert_int_equal(idle[stage], played.time_ns - busy[stage]);
  }
  return played.time_ns;
}

/* Each pass of each micro-batch and chunk stands in the list once, forward before backward before weights. */
static void check_complete(const sn_pipeline *pipeline, uint32_t stage) {
  static uint8_t next[MICROS * CHUNKS];
  memset(next, SN_PIPELINE_FORWARD, sizeof next);
  const sn_pipeline_entry *list = sn_pipeline_list(pipeline, stage);
  for (uint32_t i = 0; i < pipeline->n_entries; i++) {
    assert_true(list[i].micro < pipeline->micros && list[i].chunk < pipeline->chunks);
    assert_int_equal(next[list[i].micro * pipeline->chunks + list[i].chunk]++, list[i].pass);
  }
  assert_int_equal(pipeline->n_entries, pipeline->micros * pipeline->chunks * (pipeline->split ? 3 : 2));
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The rule of what stage r of p keeps, of m micro-batches and v chunks. */
static int64_t kept_by_rule(sn_pipeline_kind kind, int64_t r, int64_t p, int64_t m, int64_t v) {
  switch (kind) {
  case SN_PIPELINE_GPIPE:
    return m;
  case SN_PIPELINE_1F1B:
    return least(m, p - r);
  case SN_PIPELINE_INTERLEAVED:
    return least(least(2 * (p - r - 1) + (v - 1) * p, m * v) + 1, m * v);
  case SN_PIPELINE_ZB_H1:
  case SN_PIPELINE_KINDS:
    break;
  }
  return least(m, p);
}

static void check_rules(sn_pipeline_kind kind, uint32_t p, uint32_t m, uint32_t v) {
  sn_pipeline *pipeline = made(kind, p, m, v);
  for (uint32_t stage = 0; stage < p; stage++) {
    check_complete(pipeline, stage);
    assert_int_equal(sn_pipeline_in_flight(pipeline, stage), kept_by_rule(kind, stage, p, m, v));
  }
  if (kind != SN_PIPELINE_ZB_H1) { /* the bubble is (p - 1) / (v m) of the time without one, v m (F + B) */
    const evenly of = {.forward_ns = 1000, .backward_ns = 2000};
    assert_int_equal(play_evenly(pipeline, of), 3000 * ((int64_t)v * m + p - 1));
  } else { /* (p - 1) / (3 m); no schedule takes less than the second, which is more where m < p: down, up and the last W */
    const evenly of = {.forward_ns = 1000, .backward_ns = 1000, .weights_ns = 1000};
    assert_int_equal(play_evenly(pipeline, of), 1000 * most(3 * (int64_t)m + p - 1, 2 * (int64_t)(p + m) - 1));
  }
  sn_pipeline_free(pipeline);
}

static void rules_of_papers(void **state) {
  (void)state;
  for (uint32_t p = 1; p <= STAGES; p++)
    for (uint32_t m = 1; m <= MICROS; m++) {
      check_rules(SN_PIPELINE_GPIPE, p, m, 1);
      check_rules(SN_PIPELINE_1F1B, p, m, 1);
      check_rules(SN_PIPELINE_ZB_H1, p, m, 1);
      for (uint32_t v = 1; v <= CHUNKS && m % p == 0; v++) check_rules(SN_PIPELINE_INTERLEAVED, p, m, v);
    }
}

/* p (1 + (p - 1) / (p v)) of what a stage has, in chunks. */
static void first_stage_of_interleaved(void **state) {
  (void)state;
  sn_pipeline *pipeline = made(SN_PIPELINE_INTERLEAVED, 8, 64, 3);
  assert_int_equal(sn_pipeline_in_flight(pipeline, 0), 8 * 3 + 7);
  sn_pipeline_free(pipeline);
}

static char *as_text(const sn_pipeline *pipeline, uint32_t stage) {
  const sn_pipeline_entry *list = sn_pipeline_list(pipeline, stage);
  char *text = calloc(pipeline->n_entries, 16);
  assert_non_null(text);
  for (uint32_t i = 0; i < pipeline->n_entries; i++) {
    char *end = text + strlen(text);
    end += snprintf(end, 16, "%s%c%u", i ? " " : "", "FBW"[list[i].pass], list[i].micro);
    if (list[i].chunk > 0) snprintf(end, 8, ".%u", list[i].chunk);
  }
  return text;
}

typedef struct listed {
  sn_pipeline_kind kind;
  uint32_t stages, micros, chunks, stage;
  const char *list;
} listed;

static void check_lists(const listed *cases, size_t n, char *(*told)(const sn_pipeline *pipeline, uint32_t stage)) {
  for (size_t i = 0; i < n; i++) {
    sn_pipeline *pipeline = made(cases[i].kind, cases[i].stages, cases[i].micros, cases[i].chunks);
    char *text = told(pipeline, cases[i].stage);
    assert_string_equal(text, cases[i].list);
    free(text);
    sn_pipeline_free(pipeline);
  }
}

static void lists(void **state) {
  (void)state;
  static const listed cases[] = {
      {SN_PIPELINE_GPIPE, 2, 3, 1, 0, "F0 F1 F2 B0 B1 B2"},
      {SN_PIPELINE_1F1B, 3, 4, 1, 0, "F0 F1 F2 B0 F3 B1 B2 B3"},
      {SN_PIPELINE_1F1B, 3, 4, 1, 2, "F0 B0 F1 B1 F2 B2 F3 B3"},
      {SN_PIPELINE_1F1B, 4, 2, 1, 0, "F0 F1 B0 B1"},
      {SN_PIPELINE_INTERLEAVED, 2, 4, 2, 0, "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3"},
      {SN_PIPELINE_INTERLEAVED, 2, 4, 2, 1, "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3"},
      {SN_PIPELINE_ZB_H1, 3, 4, 1, 0, "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3"},
      {SN_PIPELINE_ZB_H1, 3, 4, 1, 1, "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3"},
      {SN_PIPELINE_ZB_H1, 3, 4, 1, 2, "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3"},
  };
  check_lists(cases, sizeof cases / sizeof cases[0], as_text);
}

/* ?: asked for; + and -: gathered and let go; R and A: reduced and waited for. */
static void describe(const sn__action *action, char *text, size_t room) {
  const char *kind = (const char *const[]){"", "?", "+", "-", "R", "A"}[action->kind];
  const sn_pipeline_entry *e = &action->entry;
  size_t used = (size_t)snprintf(text, room, "%s", kind);
  if (action->kind <= SN__ASK) used += (size_t)snprintf(text + used, room - used, "%c%u", "FBW"[e->pass], e -> micro);
  if (action->kind > SN__ASK || e->chunk > 0) snprintf(text + used, room - used, ".%u", e->chunk);
}

static char *actions_as_text(const sn_pipeline *pipeline, uint32_t stage) {
  sn_err err = SN_ERR_INIT;
  sn__actions actions;
  if (sn__actions_of(pipeline, stage, &actions, &err) != SN_OK) fail_msg("%s", err.text);
  char *text = calloc(actions.n, 16);
  assert_non_null(text);
  for (size_t i = 0; i < actions.n; i++) {
    if (i > 0) strcat(text, " ");
    describe(&actions.all[i], text + strlen(text), 15);
  }
  free(actions.all);
  return text;
}

/* As PyTorch 2.15 lowers them (_add_unshard_reshard, _add_reduce_grad, _add_send_recv). */
static void actions(void **state) {
  (void)state;
  static const listed cases[] = {
      {SN_PIPELINE_INTERLEAVED, 2, 4, 2, 0,
       "+.0 +.1 F0 ?F0.1 F1 ?F1.1 F0.1 F1.1 ?B0.1 F2 B0.1 ?B1.1 F3 ?F2.1 B1.1 ?B0 F2.1 ?F3.1 B0 ?B1 F3.1 B1 ?B2.1 B2.1 "
       "?B3.1 B3.1 R.1 A.1 -.1 ?B2 B2 ?B3 B3 R.0 A.0 -.0"},
      {SN_PIPELINE_INTERLEAVED, 2, 4, 2, 1,
       "+.0 +.1 ?F0 F0 ?F1 F1 ?F0.1 F0.1 ?F1.1 B0.1 ?F2 F1.1 ?B0 B1.1 ?F3 F2 ?B1 B0 ?F2.1 F3 B1 ?F3.1 F2.1 B2.1 ?B2 "
       "F3.1 B3.1 ?B3 R.1 A.1 -.1 B2 B3 R.0 A.0 -.0"},
      {SN_PIPELINE_INTERLEAVED, 3, 3, 2, 1,
       "+.0 +.1 ?F0 F0 ?F1 F1 ?F2 F2 ?F0.1 F0.1 ?F1.1 F1.1 ?B0.1 ?F2.1 F2.1 B0.1 ?B1.1 B1.1 ?B2.1 B2.1 R.1 A.1 -.1 ?B0 "
       "B0 ?B1 B1 ?B2 B2 R.0 A.0 -.0"},
      {SN_PIPELINE_INTERLEAVED, 2, 2, 4, 1,
       "+.0 +.1 +.2 ?F0 F0 ?F1 F1 -.0 +.3 ?F0.1 F0.1 ?F1.1 F1.1 ?F0.2 F0.2 ?F1.2 F1.2 ?F0.3 F0.3 ?F1.3 B0.3 ?B0.2 F1.3 "
       "B1.3 ?B1.2 R.3 A.3 -.3 +.0 B0.2 ?B0.1 B1.2 ?B1.1 R.2 A.2 -.2 B0.1 ?B0 B1.1 ?B1 R.1 A.1 -.1 B0 B1 R.0 A.0 -.0"},
      {SN_PIPELINE_ZB_H1, 3, 4, 1, 1,
       "+.0 ?F0 F0 ?F1 F1 ?B0 ?F2 B0 F2 ?B1 B1 ?F3 W0 ?B2 F3 B2 W1 ?B3 B3 W2 W3 R.0 A.0 -.0"},
  };
  check_lists(cases, sizeof cases / sizeof cases[0], actions_as_text);
}

/* With what is sent on its way, found by a player of its own in Python. */
static void times_with_hops(void **state) {
  (void)state;
  static const struct {
    sn_pipeline_kind kind;
    uint32_t stages, micros, chunks;
    evenly of;
    int64_t time_ns;
  } cases[] = {
      {SN_PIPELINE_1F1B, 3, 4, 1, {100, 200, 0, 7}, 1856},
      {SN_PIPELINE_GPIPE, 4, 6, 1, {100, 200, 0, 7}, 2742},
      {SN_PIPELINE_INTERLEAVED, 4, 8, 2, {100, 200, 0, 7}, 5798},
      {SN_PIPELINE_ZB_H1, 4, 8, 1, {100, 110, 90, 7}, 2844},
      {SN_PIPELINE_ZB_H1, 4, 8, 1, {100, 130, 70, 0}, 2880},
      {SN_PIPELINE_ZB_H1, 8, 20, 1, {100, 120, 60, 13}, 7084},
      {SN_PIPELINE_1F1B, 35, 280, 1, {100, 200, 0, 3}, 96030},
      {SN_PIPELINE_INTERLEAVED, 8, 64, 3, {100, 200, 0, 11}, 60206},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_pipeline *pipeline = made(cases[i].kind, cases[i].stages, cases[i].micros, cases[i].chunks);
    assert_int_equal(play_evenly(pipeline, cases[i].of), cases[i].time_ns);
    sn_pipeline_free(pipeline);
  }
}

/* The slow stage never waits once it has begun, and the others wait for it. One stage sends nothing. */
static void uneven_stages(void **state) {
  (void)state;
  const int64_t forward[] = {10, 50, 10}, backward[] = {20, 100, 20};
  const sn_pipeline_times times = {.forward_ns = forward, .backward_ns = backward};
  int64_t busy[3], idle[3];
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle};
  sn_err err = SN_ERR_INIT;
  sn_pipeline *pipeline = made(SN_PIPELINE_GPIPE, 3, 5, 1), *alone = made(SN_PIPELINE_INTERLEAVED, 1, 6, 2);
  assert_int_equal(sn_pipeline_play(pipeline, &times, &played, &err), SN_OK);
  assert_int_equal(played.time_ns, 10 + 5 * 50 + 10 + 20 + 5 * 100 + 20);
  assert_true(busy[0] == 150 && busy[1] == 750 && busy[2] == 150 && idle[1] == 60);
  assert_int_equal(play_evenly(alone, (evenly){.forward_ns = 3, .backward_ns = 5, .hop_ns = 1000}), 6 * 2 * 8);
  sn_pipeline_free(pipeline);
  sn_pipeline_free(alone);
}

/* Each boundary has a time of its own, there and back. Of one micro-batch all hops are on the way; of several that the slow
 * link delays alike they are, too, and the last stage is the one that is waited for. */
static void own_hops(void **state) {
  (void)state;
  const int64_t each[] = {10, 10, 10}, forth[] = {1, 100, 0}, back[] = {0, 2, 30};
  const sn_pipeline_times times = {
      .forward_ns = each, .backward_ns = each, .forward_hop_ns = forth, .backward_hop_ns = back};
  int64_t busy[3], idle[3], end[3];
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle, .end_ns = end};
  for (uint32_t micros = 1; micros < 6; micros++) {
    sn_err err = SN_ERR_INIT;
    sn_pipeline *pipeline = made(SN_PIPELINE_GPIPE, 3, micros, 1);
    assert_int_equal(sn_pipeline_play(pipeline, &times, &played, &err), SN_OK);
    assert_int_equal(end[2], 10 + 1 + 10 + 100 + 2 * 10 * micros);
    assert_int_equal(end[1], end[2] + 30 + 10);
    assert_int_equal(end[0], end[1] + 2 + 10);
    sn_pipeline_free(pipeline);
  }
}

/* What is gathered ahead of the first micro-batch is on each stage's way to it, once; stages end one after the other. */
static void first_micro_batch_gathers(void **state) {
  (void)state;
  enum { P = 3, M = 4, F = 10, B = 20, G = 7 };
  const int64_t forward[P] = {F, F, F}, backward[P] = {B, B, B}, gathers[P] = {G, G, G};
  const sn_pipeline_times times = {.forward_ns = forward, .backward_ns = backward, .first_ns = gathers};
  int64_t busy[P], idle[P], end[P];
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle, .end_ns = end};
  sn_err err = SN_ERR_INIT;
  sn_pipeline *pipeline = made(SN_PIPELINE_1F1B, P, M, 1);
  assert_int_equal(sn_pipeline_play(pipeline, &times, &played, &err), SN_OK);
  assert_int_equal(played.time_ns, P * G + (M + P - 1) * (F + B));
  for (uint32_t s = 0; s < P; s++) {
    assert_int_equal(busy[s], G + M * (F + B));
    assert_int_equal(end[s], played.time_ns - s * B);
  }
  sn_pipeline_free(pipeline);
}

/* The last stage wants the second micro-batch first, the first one sends it after the first's backward. */
static void never_ends(void **state) {
  (void)state;
  sn_pipeline *pipeline = made(SN_PIPELINE_1F1B, 2, 2, 1);
  const sn_pipeline_entry first[] = {{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1}},
                          last[] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 0}, {0, 0, 1}};
  memcpy(pipeline->entries, first, sizeof first);
  memcpy(pipeline->entries + 4, last, sizeof last);
  const int64_t each[] = {1, 1};
  const sn_pipeline_times times = {.forward_ns = each, .backward_ns = each};
  int64_t busy[2], idle[2];
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle};
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_pipeline_play(pipeline, &times, &played, &err), SN_BUG);
  assert_non_null(strstr(err.text, "stage 0 waits for ever at B0 of chunk 0"));
  sn_pipeline_free(pipeline);
}

static void too_long(void **state) {
  (void)state;
  sn_pipeline *pipeline = made(SN_PIPELINE_1F1B, 2, 2, 1);
  const int64_t forward[] = {1, INT64_MAX / 2}, backward[] = {INT64_MAX / 2, 1};
  const sn_pipeline_times times = {.forward_ns = forward, .backward_ns = backward};
  int64_t busy[2], idle[2];
  sn_pipeline_played played = {.busy_ns = busy, .idle_ns = idle};
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_pipeline_play(pipeline, &times, &played, &err), SN_BAD_USAGE);
  sn_pipeline_free(pipeline);
}

static void bad_input(void **state) {
  (void)state;
  static const struct {
    sn_pipeline_kind kind;
    uint32_t stages, micros, chunks;
    const char *says;
  } cases[] = {
      {SN_PIPELINE_1F1B, 0, 4, 1, "from 1 to 4096 stages, and 0 are asked for; 1 would do"},
      {SN_PIPELINE_1F1B, 5000, 4, 1, "5000 are asked for; 4096 would do"},
      {SN_PIPELINE_GPIPE, 4, 0, 1, "micro-batches, and 0 are asked for"},
      {SN_PIPELINE_INTERLEAVED, 4, 8, 0, "chunks a stage, and 0"},
      {SN_PIPELINE_INTERLEAVED, 4, 9, 2, "9 are no multiple of 4; the nearest number that is one is 8"},
      {SN_PIPELINE_INTERLEAVED, 4, 11, 2, "the nearest number that is one is 12"},
      {SN_PIPELINE_INTERLEAVED, 8, 2, 2, "the nearest number that is one is 8"},
      {SN_PIPELINE_ZB_H1, 4, 8, 2, "zb-h1 has one chunk a stage, and 2 are asked for; interleaved:2"},
      {SN_PIPELINE_1F1B, 4096, 4096, 1, "steps; up to 2048 micro-batches are not"},
      {SN_PIPELINE_INTERLEAVED, 4096, 1 << 24, 1024, "more than 16777216 steps; fewer stages or chunks are not"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_pipeline_new(cases[i].kind, cases[i].stages, cases[i].micros, cases[i].chunks, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    if (!strstr(err.text, cases[i].says)) fail_msg("%s", err.text);
  }
  assert_string_equal(sn_pipeline_kind_name(SN_PIPELINE_ZB_H1), "zb-h1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_of_papers),
      cmocka_unit_test(first_stage_of_interleaved),
      cmocka_unit_test(lists),
      cmocka_unit_test(actions),
      cmocka_unit_test(times_with_hops),
      cmocka_unit_test(uneven_stages),
      cmocka_unit_test(own_hops),
      cmocka_unit_test(never_ends),
      cmocka_unit_test(first_micro_batch_gathers),
      cmocka_unit_test(too_long),
      cmocka_unit_test(bad_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
