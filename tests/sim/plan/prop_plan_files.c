/* Plans of random networks, by every kind of strategy, operations side by side too: written, read and written again
 * they are the same, and right; and changed in one place they are another plan or refused, but never read as the same.
 *
 *   SN_SEED        seed of the first net; the others follow
 *   SN_PROP_NETS   how many nets */
#include "sim/ask/simulate.h"
#include "sim/plan/read.h"
#include "tests/support/damage.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NETS = 60 };

static const char *const strategies[] = {"baseline",
                                         "superneurons",
                                         "liveness+offload+recompute=memory",
                                         "pytorch",
                                         "explicit",
                                         "vdnn-conv",
                                         "mxnet",
                                         "liveness+corun=s1234",
                                         "liveness+corun=path",
                                         "liveness+corun=2x3",
                                         "liveness+recompute=speed+corun=s123"};

typedef struct subject {
  sn_net *net;
  sn_device device;
  const char *name;
  sn_strategy strategy;
  sn_route *route;
} subject;

static subject open_subject(uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  char gpu[64];
  subject s = {.name = strategies[prng_below(dice, sizeof strategies / sizeof *strategies)]};
  uint32_t slots = prng_from(dice, 1, 2);
  snprintf(gpu, sizeof gpu, "manycore:cores=%u,slots=%u,tile=1", prng_from(dice, 3, 40), slots);
  s.device = load_gpu(gpu);
  s.strategy = parse_strategy(s.name);
  s.net = random_net_new(dice, &err);
  must(&err);
  s.route = sn_schedule_route(s.net, s.strategy, (sn_iteration){0}, NULL, &err);
  must(&err);
  return s;
}

static void close_subject(subject *s) {
  sn_route_free(s->route);
  sn_net_free(s->net);
}

/* NULL: it is not right, or no plan of the network. */
static sn_plan *read_plan(const subject *s, const char *text, size_t bytes, sn_err *err) {
  sn_plan_head head;
  sn_check_report report;
  sn_json_lists *file = sn_plan_parse("p.json", text, bytes, err);
  sn_plan *plan = NULL;
  if (file && sn_plan_read_head(file, &head, err) == SN_OK) plan = sn_plan_read(file, s->route, err);
  if (plan && sn_plan_check_read(file, plan, &report, err) != SN_OK) {
    sn_plan_free(plan);
    plan = NULL;
  }
  if (plan && !sn_strategy_same(head.strategy, s->strategy)) fail_msg("%s is read as another strategy", s->name);
  sn_json_lists_free(file);
  return plan;
}

static char *write_plan(const subject *s, const sn_plan *plan, size_t *bytes) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  char *text = NULL;
  FILE *out = open_memstream(&text, bytes);
  assert_non_null(out);
  if (plan)
    sn_plan_write(plan, s->name, &s->device, &options, out, &err);
  else
    sn_simulate_write_plan(s->net, &s->device, s->strategy, &options, out, &err);
  fclose(out);
  must(&err);
  return text;
}

/* What the plan itself is: without the question, and how much memory there is. */
static bool same_lines(const char *a, const char *b) {
  static const char *const keys[] = {"\"pool_bytes\"", "\"largest_load_bytes\"", "\"external_bytes\"",
                                     "\"fences\"",     "\"placement\"",          "\"lanes\""};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const char *x = strstr(a, keys[i]), *y = strstr(b, keys[i]);
    size_t length = x ? strcspn(x, "\n") : 0;
    if (!x || !y || strncmp(x, y, length + 1) != 0) return false;
  }
  return strcmp(strstr(a, "\"tensors\""), strstr(b, "\"tensors\"")) == 0;
}

/* Damaged at random: what is still right comes back as damaged. */
static bool damaged_comes_back(const subject *s, const sn_plan *whole, uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  size_t bytes, again_bytes;
  sn_plan changed = damage_copy(whole);
  damage_at_random(&changed, dice);
  char *text = write_plan(s, &changed, &bytes), *again = NULL;
  sn_plan *plan = read_plan(s, text, bytes, &err);
  if (plan) again = write_plan(s, plan, &again_bytes);
  if (!plan) assert_int_equal(err.code, SN_BAD_INPUT);
  if (plan && strcmp(strstr(text, "\"instructions\""), strstr(again, "\"instructions\"")) != 0)
    fail_msg("%s: a damaged plan changes", s->name);
  sn_plan_free(plan);
  free(text);
  free(again);
  free(changed.instrs);
  return again != NULL;
}

static void comes_back(uint64_t seed, uint32_t *corun, uint32_t *right) {
  sn_err err = SN_ERR_INIT;
  uint64_t dice = seed;
  subject s = open_subject(&dice);
  size_t bytes, again_bytes;
  char *text = write_plan(&s, NULL, &bytes);
  sn_plan *plan = read_plan(&s, text, bytes, &err);
  if (!plan) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, s.name, err.text);
  char *again = write_plan(&s, plan, &again_bytes);
  if (!same_lines(text, again)) fail_msg("seed %llu: %s changes", (unsigned long long)seed, s.name);
  *corun += sn_plan_is_corun(plan);
  for (int i = 0; i < 3; i++) *right += damaged_comes_back(&s, plan, &dice);
  free(text);
  free(again);
  sn_plan_free(plan);
  close_subject(&s);
}

static void plans_come_back(void **state) {
  (void)state;
  uint64_t seed = first_seed(1), nets = case_count(NETS);
  uint32_t corun = 0, right = 0;
  for (uint64_t i = 0; i < nets; i++) comes_back(seed + i, &corun, &right);
  print_message("%u plans of operations side by side, %u damaged plans are right\n", corun, right);
  if (nets >= NETS) assert_true(corun > 5 && right > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_come_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
