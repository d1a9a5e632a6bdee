/* Plans read back: what was written comes out the same, instruction by instruction, and plays the same; what the
 * checker refuses is refused with the line of the instruction. */
#include "models/zoo/zoo.h"
#include "sim/ask/plan_file.h"
#include "sim/ask/simulate.h"
#include "tests/support/damage.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <stdlib.h>
#include <string.h>

static char *text_of(const sn_plan *plan, const char *strategy, const sn_device *device, const sn_options *options,
                     size_t *bytes) {
  char *text = NULL;
  sn_err err = SN_ERR_INIT;
  FILE *out = open_memstream(&text, bytes);
  assert_non_null(out);
  sn_plan_write(plan, strategy, device, options, out, &err);
  fclose(out);
  must(&err);
  return text;
}

static char *written(const char *net_name, const char *strategy, const sn_device *device, size_t *bytes) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  char *text = NULL;
  sn_net *net = sn_net_load(net_name, 8, 0, &err);
  FILE *out = open_memstream(&text, bytes);
  must(&err);
  assert_non_null(out);
  sn_simulate_write_plan(net, device, parse_strategy(strategy), &options, out, &err);
  fclose(out);
  must(&err);
  sn_net_free(net);
  return text;
}

static const char *const strategies[] = {"baseline",    "superneurons", "liveness+offload+recompute=memory",
                                         "pytorch",     "explicit",     "singa-bfs",
                                         "vdnn-conv",   "caffe",        "pytorch+offload+recompute=units",
                                         "singa-layer", "mxnet",        "liveness+recompute=optimal"};

/* Read, and written again: the same bytes. */
static void comes_back(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "tv_resnet18", "densenet121"};
  sn_device device = load_gpu("k40c");
  for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
    size_t bytes, again_bytes;
    sn_err err = SN_ERR_INIT;
    char *text = written(nets[s % 3], strategies[s], &device, &bytes), *again = NULL;
    sn_plan_file *file = sn_plan_file_parse("p.json", text, bytes, &err);
    must(&err);
    sn_plan_file_check(file, NULL, &device, &err);
    must(&err);
    const uint64_t pool = file->plan->pool_bytes, load = file->plan->reserved_peak;
    sn_timeline *timeline;
    sn_run *run = sn_plan_file_play(file, &device, &timeline, &err);
    must(&err);
    assert_int_equal(run->results[0].pool_bytes, pool);
    again = text_of(file->plan, run->results[0].strategy, &device, &file->head.options, &again_bytes);
    if (again_bytes != bytes || memcmp(again, text, bytes) != 0) fail_msg("%s changes", strategies[s]);
    assert_true(load <= pool);
    sn_timeline_free(timeline);
    sn_run_free(run);
    free(again);
    free(text);
    sn_plan_file_free(file);
  }
}

static const char *const coruns[] = {"liveness+corun=path", "liveness+corun=s1234", "liveness+corun=2x136"};

/* Of plans of operations side by side tensors, steps and instructions come back. */
static void corun_comes_back(void **state) {
  sn_device device = load_gpu("knl7250");
  (void)state;
  for (size_t s = 0; s < sizeof coruns / sizeof *coruns; s++) {
    size_t bytes, again_bytes;
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    char *text = written(s == 0 ? "tv_resnet18" : "lenet", coruns[s], &device, &bytes);
    sn_plan_file *file = sn_plan_file_parse("p.json", text, bytes, &err);
    must(&err);
    sn_plan_file_check(file, NULL, &device, &err);
    must(&err);
    assert_true(sn_plan_is_corun(file->plan));
    char *again = text_of(file->plan, coruns[s], &device, &options, &again_bytes);
    assert_string_equal(strstr(text, "\"tensors\""), strstr(again, "\"tensors\""));
    free(again);
    free(text);
    sn_plan_file_free(file);
  }
}

static void check_played(const char *name, const sn_device *device) {
  sn_options options = SN_OPTIONS_INIT;
  size_t bytes;
  sn_err err = SN_ERR_INIT;
  char *text = written("tv_resnet18", name, device, &bytes);
  sn_net *net = sn_net_load("tv_resnet18", 8, 0, &err);
  sn_strategy strategy = parse_strategy(name);
  sn_run *own = sn_simulate("tv_resnet18", net, device, &strategy, 1, &options, &err);
  sn_plan_file *file = sn_plan_file_parse("p.json", text, bytes, &err);
  must(&err);
  sn_timeline *timeline;
  sn_plan_file_check(file, NULL, device, &err);
  must(&err);
  sn_run *run = sn_plan_file_play(file, device, &timeline, &err);
  must(&err);
  const sn_result *a = &own->results[0], *b = &run->results[0];
  assert_string_equal(a->strategy, b->strategy);
  assert_int_equal(a->iteration_ns, b->iteration_ns);
  assert_int_equal(a->stall_ns, b->stall_ns);
  assert_int_equal(a->pool_bytes, b->pool_bytes);
  assert_int_equal(a->peak_device_bytes, b->peak_device_bytes);
  assert_int_equal(a->host_bytes, b->host_bytes);
  assert_int_equal(a->peak_step, b->peak_step);
  assert_int_equal(a->fits, b->fits);
  sn_timeline_free(timeline);
  sn_run_free(run);
  sn_run_free(own);
  sn_plan_file_free(file);
  sn_net_free(net);
  free(text);
}

/* What snsim says of its own plan is what it says of the same plan from a file. */
static void plays_the_same(void **state) {
  (void)state;
  sn_device gpu = load_gpu("v100_16"), cores = load_gpu("knl7250");
  for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) check_played(strategies[s], &gpu);
  for (size_t s = 0; s < sizeof coruns / sizeof *coruns; s++) check_played(coruns[s], &cores);
}

/* A damaged plan is refused where the checker refuses it, with its line; none passes that it would not let pass. */
static void refuse_damage(const char *strategy, const char *gpu) {
  sn_device device = load_gpu(gpu);
  sn_options options = SN_OPTIONS_INIT;
  uint64_t dice = first_seed(7);
  unsigned refused = 0, passed = 0;
  size_t bytes;
  sn_err err = SN_ERR_INIT;
  char *text = written("lenet", strategy, &device, &bytes);
  sn_plan_file *whole = sn_plan_file_parse("p.json", text, bytes, &err);
  sn_plan_file_check(whole, NULL, &device, &err);
  must(&err);
  for (int round = 0; round < 400; round++) {
    sn_plan changed = damage_copy(whole->plan);
    damage_at_random(&changed, &dice);
    sn_err verdict = SN_ERR_INIT, why = SN_ERR_INIT;
    sn_check(&changed, NULL, &verdict);
    size_t damaged_bytes;
    char *damaged = text_of(&changed, strategy, &device, &options, &damaged_bytes);
    sn_plan_file *file = sn_plan_file_parse("p.json", damaged, damaged_bytes, &why);
    if (file) sn_plan_file_check(file, NULL, &device, &why);
    if (verdict.code != SN_OK) {
      assert_int_equal(why.code, SN_BAD_INPUT);
      assert_int_equal(strncmp(why.text, "p.json:", 7), 0);
      refused++;
    }
    passed += why.code == SN_OK;
    sn_plan_file_free(file);
    free(damaged);
    free(changed.instrs);
  }
  assert_true(refused > 100 && passed > 0);
  sn_plan_file_free(whole);
  free(text);
}

static void refuses_damage(void **state) {
  (void)state;
  refuse_damage("liveness+offload+recompute=speed", "k40c");
  refuse_damage("liveness+corun=path", "knl7250");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back),
      cmocka_unit_test(corun_comes_back),
      cmocka_unit_test(plays_the_same),
      cmocka_unit_test(refuses_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
