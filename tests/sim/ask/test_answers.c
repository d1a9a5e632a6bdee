/* Strategies that share an answer: each says what it says alone. */
#include "sim/ask/answers.h"
#include "sim/ask/simulate.h"
#include "tests/db/sample_run.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct question {
  const char *net;
  uint32_t batch;
  uint64_t memory_bytes; /* 0: the GPU's */
  sn_options options;
} question;

static sn_run *simulate(const question *q, const sn_strategy *strategies, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(q->net, q->batch);
  sn_device gpu = load_gpu("k40c");
  if (q->memory_bytes > 0) gpu.memory_bytes = q->memory_bytes;
  sn_run *run = sn_simulate(q->net, net, &gpu, strategies, count, &q->options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

/* The caller frees the text. */
static char *text_of(const sn_result *result) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  dump_result(out, result);
  fclose(out);
  return text;
}

static void compare_with_alone(const question *q) {
  enum { ALL = SN_STRATEGY_SHOWN + SN_STRATEGY_SYSTEMS };
  sn_strategy all[ALL];
  for (uint32_t i = 0; i < ALL; i++)
    all[i] = i < SN_STRATEGY_SHOWN ? sn_strategy_shown(i) : sn_strategy_system(i - SN_STRATEGY_SHOWN);
  sn_run *together = simulate(q, all, ALL);
  assert_int_equal(together->n_results, ALL);
  for (uint32_t i = 0; i < ALL; i++) {
    sn_run *alone = simulate(q, &all[i], 1);
    char *here = text_of(&together->results[i]), *there = text_of(&alone->results[0]);
    assert_string_equal(here, there);
    free(here);
    free(there);
    sn_run_free(alone);
  }
  sn_run_free(together);
}

static void shared_answers_are_those_of_each(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch;
    uint64_t memory_bytes;
  } asked[] = {{"alexnet", 200, 0},    {"alexnet", 64, UINT64_C(2) << 30},  {"resnet50", 16, 0},
               {"inception_v4", 8, 0}, {"resnet50", 48, UINT64_C(3) << 30}, {"densenet121", 8, UINT64_C(1500) << 20}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    question q = {asked[i].net, asked[i].batch, asked[i].memory_bytes, SN_OPTIONS_INIT};
    compare_with_alone(&q);
    q.options.want_steps = q.options.want_peak = true;
    if (i < 2) compare_with_alone(&q);
    q.options = (sn_options)SN_OPTIONS_INIT;
    q.options.placement = SN_PLACEMENT_FIRST_FIT;
    q.options.iteration.accumulate = 3;
    if (i < 3) compare_with_alone(&q);
    q.options.workspace = SN_WORKSPACE_MAX;
    q.options.allocator = SN_ALLOCATOR_PYTORCH;
    if (i < 2) compare_with_alone(&q);
  }
}

/* Which strategies share one: by schedule, and with the cache where there is room. */
static void twins_are_found(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  pipeline p = pipeline_open("inception_v4", 8);
  sn_schedule *speed = sn_schedule_new(p.route, SN_RECOMPUTE_SPEED, &err);
  sn_schedule *cost = sn_schedule_new(p.route, SN_RECOMPUTE_COST, &err);
  sn_schedule *memory = sn_schedule_new(p.route, SN_RECOMPUTE_MEMORY, &err);
  must(&err);
  assert_true(sn_schedule_same(speed, cost) && !sn_schedule_same(speed, memory));
  sn_answers all = {0};
  sn_answer kept = {.strategy = parse_strategy("liveness+recompute=speed"), .schedule = speed};
  sn_answer same = {.strategy = parse_strategy("liveness+recompute=cost"), .schedule = cost};
  sn_answer cached = {.strategy = parse_strategy("liveness+cache+recompute=cost"), .schedule = cost};
  sn_answer offloaded = {.strategy = parse_strategy("liveness+offload+recompute=cost"), .schedule = cost};
  sn_answer other = {.strategy = parse_strategy("liveness+recompute=memory"), .schedule = memory};
  sn_answer published = {.strategy = parse_strategy("mxnet"), .schedule = speed};
  sn_answers_add(&all, &kept);
  assert_non_null(sn_answers_find(&all, &same));
  assert_null(sn_answers_find(&all, &cached));
  assert_null(sn_answers_find(&all, &offloaded));
  assert_null(sn_answers_find(&all, &other));
  assert_null(sn_answers_find(&all, &published)); /* which is placed by first fit */
  all.kept[0].roomy = true;
  assert_ptr_equal(sn_answers_find(&all, &cached), &all.kept[0]);
  assert_null(sn_answers_find(&all, &offloaded));
  sn_schedule_free(speed);
  sn_schedule_free(cost);
  sn_schedule_free(memory);
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_answers_are_those_of_each),
                                     cmocka_unit_test(twins_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
