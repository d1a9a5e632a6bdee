/* The answer (sim/capacity/answer.h): verdict, largest batch and changes agree with what the simulator says of each, and
 * JSON keeps all of it. */
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/capacity/answer.h"
#include "sim/capacity/fit.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct question {
  const char *spec;
  uint32_t batch;
  sn_net *net;
  sn_device device;
  sn_options options;
  sn_answer *answer;
} question;

static void ask(question *q, const char *gpu) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategies[SN_RUNTIME_STRATEGIES];
  assert_int_equal(sn_device_load(gpu, &q->device, &err), SN_OK);
  q->net = sn_net_load(q->spec, q->batch, 0, &err);
  assert_non_null(q->net);
  uint32_t count = sn_answer_strategies(SN_RUNTIME_PYTORCH, q->options.iteration, strategies);
  assert_int_equal(count, 1);
  const sn_answer_wish wish = {.asked = {.spec = q->spec,
                                         .net = q->net,
                                         .device = &q->device,
                                         .options = &q->options,
                                         .strategies = strategies,
                                         .n_strategies = count},
                               .runtime = SN_RUNTIME_PYTORCH,
                               .host_bytes = UINT64_C(64) << 30};
  q->answer = sn_answer_find(&wish, &err);
  if (!q->answer) fail_msg("%s, batch %" PRIu32 ": %s", q->spec, q->batch, err.text);
}

static void drop(question *q) {
  sn_answer_free(q->answer);
  sn_net_free(q->net);
}

/* Simulates a change by itself: it must come out as the answer says. */
static void check_change(const question *q, const sn_answer_change *c) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy;
  sn_options options = q->options;
  options.iteration.accumulate = c->accumulate;
  assert_int_equal(sn_strategy_parse(c->strategy, &strategy, &err), SN_OK);
  assert_int_equal(sn_precision_parse(c->precision, &options.iteration.precision, &err), SN_OK);
  assert_int_equal(sn_optimizer_parse(c->optimizer, &options.iteration.optimizer, &err), SN_OK);
  sn_net *net = sn_net_load(q->spec, c->batch, 0, &err);
  assert_non_null(net);
  sn_run *run = sn_simulate(q->spec, net, &q->device, &strategy, 1, &options, &err);
  assert_non_null(run);
  assert_true(run->results[0].fits);
  assert_true(run->results[0].peak_device_bytes == c->device_bytes);
  assert_true(run->results[0].iteration_ns == c->iteration_ns);
  assert_true(run->results[0].host_bytes == c->host_bytes);
  sn_run_free(run);
  sn_net_free(net);
}

static void check_json(const sn_answer *a) {
  sn_err err = SN_ERR_INIT;
  char *text = sn_answer_write(a, &err);
  assert_non_null(text);
  sn_answer *read = sn_answer_read(text, &err);
  if (!read) fail_msg("%s", err.text);
  char *again = sn_answer_write(read, &err);
  assert_string_equal(text, again);
  sn_answer_free(read);
  free(again);
  free(text);
}

static void check_all(const question *q) {
  const sn_answer *a = q->answer;
  assert_true(a->verdict == sn_answer_verdict(a->needed_bytes, a->usable_bytes));
  assert_true((a->verdict != SN_VERDICT_NO) == (a->largest_batch >= q->batch));
  if (a->verdict == SN_VERDICT_YES) assert_int_equal(a->changes[0].kind, SN_CHANGE_NONE);
  for (uint32_t i = 0; i < a->n_changes; i++) check_change(q, &a->changes[i]);
  for (uint32_t i = 1; i < a->n_changes && a->verdict == SN_VERDICT_NO; i++)
    assert_true(a->changes[i].images_per_second <= a->changes[i - 1].images_per_second);
  check_json(a);
}

static void test_questions(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "tv_resnet18", "tv_vgg16", "tv_mobilenet_v2"};
  static const char *const gpus[] = {"k40c", "rtx3090", "t4"};
  static const sn_optimizer optimizers[] = {SN_OPTIMIZER_MOMENTUM, SN_OPTIMIZER_ADAM, SN_OPTIMIZER_ADAMW};
  uint64_t random = first_seed(25);
  uint32_t cases = case_count(24);
  for (uint32_t i = 0; i < cases; i++) {
    question q = {.spec = nets[prng_below(&random, 5)], .options = SN_OPTIONS_INIT};
    q.batch = 1u << prng_below(&random, 12);
    q.options.iteration.optimizer = optimizers[prng_below(&random, 3)];
    ask(&q, gpus[prng_below(&random, 3)]);
    check_all(&q);
    drop(&q);
  }
}

static void test_words(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_answer_verdict(0, 100), SN_VERDICT_NO);
  assert_int_equal(sn_answer_verdict(101, 100), SN_VERDICT_NO);
  assert_int_equal(sn_answer_verdict(99, 100), SN_VERDICT_TIGHT);
  assert_int_equal(sn_answer_verdict(97, 100), SN_VERDICT_YES);
  assert_null(sn_answer_read("{\"runtime\":\"pytorch\"}", &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_answer_read("no JSON", &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_questions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
