/* Replay: a run simulated again from its head comes out as it was, whatever its options; one that would not is refused,
 * with what differs. */
#include "sim/ask/simulate.h"
#include "sim/sweep/replay.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct asked {
  const char *net;
  uint32_t batch, image;
  sn_options options;
  uint64_t memory_bytes, context_bytes; /* 0: the device's own */
} asked;

static const asked plain = {.net = "alexnet", .batch = 16, .options = {.workspace = SN_WORKSPACE_DYNAMIC}};

static sn_run *simulate(asked q) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  sn_device gpu = load_gpu("titan_xp");
  if (q.memory_bytes) gpu.memory_bytes = q.memory_bytes;
  if (q.context_bytes) gpu.context_bytes = q.context_bytes;
  sn_net *net = sn_net_load(q.net, q.batch, q.image, &err);
  must(&err);
  sn_run *run = sn_simulate(q.net, net, &gpu, strategies, SN_STRATEGY_DEFAULTS, &q.options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

static void replay_all(const sn_run *run) {
  sn_err err = SN_ERR_INIT;
  sn_replay *replay = sn_replay_open(run, NULL, NULL, NULL, &err);
  must(&err);
  for (uint32_t i = 0; i < run->n_results; i++) {
    sn_timeline *t = sn_replay_timeline(replay, &run->results[i], &err);
    must(&err);
    assert_true(t->end_ns == run->results[i].iteration_ns && t->pool_bytes == run->results[i].pool_bytes);
    assert_int_equal(t->n_instrs, run->results[i].instructions);
    sn_timeline_free(t);
  }
  sn_replay_free(replay);
}

/* Each option and override once: what the head of a run says is enough to repeat it. */
static void every_option(void **state) {
  (void)state;
  asked all[10];
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) all[i] = plain;
  all[1].options.workspace = SN_WORKSPACE_MAX;
  all[2].options.workspace = SN_WORKSPACE_NONE;
  all[3].options.external = SN_EXTERNAL_REMOTE;
  all[4].options.allocator = SN_ALLOCATOR_CUDA;
  all[5].options.shared_link = true;
  all[6].options.pool_bytes = UINT64_C(120) << 20;
  all[7].memory_bytes = UINT64_C(1200) << 20;
  all[8].memory_bytes = UINT64_C(1200) << 20;
  all[8].context_bytes = UINT64_C(17) << 20;
  all[9].image = 195;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    sn_run *run = simulate(all[i]);
    replay_all(run);
    sn_run_free(run);
  }
}

/* ---- what does not come out as it was ---- */

static void assert_refused(const sn_run *run, const char *net, const char *gpu, const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_replay *replay = sn_replay_open(run, net, gpu, NULL, &err);
  sn_timeline *t = replay ? sn_replay_timeline(replay, &run->results[0], &err) : NULL;
  assert_null(t);
  if (!strstr(err.text, text)) fail_msg("\"%s\" does not say \"%s\"", err.text, text);
  assert_true(err.code == SN_BAD_INPUT || err.code == SN_BAD_FILE);
  sn_replay_free(replay);
}

static void changed_figures(void **state) {
  (void)state;
  sn_run *run = simulate(plain);
  const sn_result good = run->results[0];
  sn_result *r = (sn_result *)&run->results[0]; /* the arena's own, which is not constant */
  r->pool_bytes++;
  assert_refused(run, NULL, NULL, "pool_bytes");
  *r = good;
  r->peak_tensor_bytes--;
  assert_refused(run, NULL, NULL, "peak_tensor_bytes");
  *r = good;
  r->external_bytes++;
  assert_refused(run, NULL, NULL, "external_bytes");
  *r = good;
  r->instructions++;
  assert_refused(run, NULL, NULL, "instructions");
  *r = good;
  r->iteration_ns++;
  assert_refused(run, NULL, NULL, "iteration_ns");
  *r = good;
  r->peak_layer = "another";
  assert_refused(run, NULL, NULL, "layer \"another\"");
  *r = good;
  r->peak_step = 0;
  assert_refused(run, NULL, NULL, "step 0");
  *r = good;
  r->strategy = "magic";
  assert_refused(run, NULL, NULL, "magic");
  *r = good;
  replay_all(run);
  sn_run_free(run);
}

static void changed_head(void **state) {
  (void)state;
  sn_run *run = simulate(plain);
  const sn_run good = *run;
  run->net = "vgg16";
  assert_refused(run, NULL, NULL, "has changed since");
  run->net = "./missing.json";
  assert_refused(run, NULL, NULL, "--net FILE");
  *run = good;
  run->conditions.workspace = "some";
  assert_refused(run, NULL, NULL, "\"some\"");
  *run = good;
  run->parameters++;
  assert_refused(run, NULL, NULL, "has changed since");
  *run = good;
  run->gpu = "mine";
  assert_refused(run, NULL, NULL, "--gpu FILE");
  *run = good;
  assert_refused(run, NULL, "./missing.json", "./missing.json");
  sn_run_free(run);
}

/* The text of the embedded profile, changed in one place. */
static void write_profile(const char *path, const char *name, const char *tflops) {
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(
      out,
      "{\"snsim_gpu\":1,\"name\":\"%s\",\"architecture\":\"pascal\",\"memory_mib\":12196,\"context_gib\":0.3,"
      "\"fp32_tflops\":%s,\"memory_gb_per_s\":547.6,\"host_gb_per_s\":12,\"peer_gb_per_s\":10,\"remote_gb_per_s\":6}",
      name, tflops);
  assert_int_equal(fclose(out), 0);
}

/* A run on a GPU of the user's: its file is to be named, and has to be the one it was. */
static void profile_from_a_file(void **state) {
  (void)state;
  char folder[] = "/tmp/test_replay.XXXXXX", path[64];
  sn_err err = SN_ERR_INIT;
  sn_device gpu;
  sn_strategy strategy = parse_strategy("superneurons");
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/mine.json", folder);
  write_profile(path, "mine", "12.5");
  sn_device_load(path, &gpu, &err);
  sn_net *net = load_net("lenet", 8);
  sn_run *run = sn_simulate("lenet", net, &gpu, &strategy, 1, &plain.options, &err);
  must(&err);
  assert_refused(run, NULL, NULL, "--gpu FILE");
  sn_replay *replay = sn_replay_open(run, NULL, path, NULL, &err);
  sn_timeline *t = replay ? sn_replay_timeline(replay, &run->results[0], &err) : NULL;
  must(&err);
  sn_timeline_free(t);
  sn_replay_free(replay);
  write_profile(path, "mine", "13.5");
  assert_refused(run, NULL, path, "iteration_ns");
  write_profile(path, "other", "12.5");
  assert_refused(run, NULL, path, "is the profile of \"other\"");
  sn_run_free(run);
  sn_net_free(net);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_option),
      cmocka_unit_test(changed_figures),
      cmocka_unit_test(changed_head),
      cmocka_unit_test(profile_from_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
