/* What an iteration is for: batches whose gradients are added up, and networks that are only run. What PyTorch itself
 * says of both is in golden_pytorch.c. */
#include "sim/ask/result.h"
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct question {
  sn_net *net;
  sn_device gpu;
} question;

static question open_question(const char *spec, uint32_t batch) {
  return (question){load_net(spec, batch), load_gpu("v100_16")};
}

static sn_run *ask(const question *q, const char *strategy, sn_iteration iteration, sn_err *err) {
  sn_options options = SN_OPTIONS_INIT;
  options.iteration = iteration;
  sn_strategy s = parse_strategy(strategy);
  return sn_simulate("net", q->net, &q->gpu, &s, 1, &options, err);
}

static sn_result result_of(const question *q, const char *strategy, sn_iteration iteration) {
  sn_err err = SN_ERR_INIT;
  sn_run *run = ask(q, strategy, iteration, &err);
  must(&err);
  assert_int_equal(run->n_results, 1);
  assert_int_equal(run->conditions.accumulate, sn_iteration_batches(iteration));
  assert_int_equal(run->conditions.inference, iteration.inference);
  sn_result r = run->results[0];
  r.strategy = r.peak_layer = r.pool_layer = NULL; /* the run's */
  sn_run_free(run);
  return r;
}

/* K batches take K times as long as one without its update, which the difference of two and three tells. */
/* Of adding gradients each layer has a mean over all batches, in whole ns. */
enum { ROUNDED = 500 };

static void times_and_traffic(void **state) {
  (void)state;
  static const char *const strategies[] = {
      "liveness", "liveness+offload+recompute=cost", "pytorch+offload", "pytorch+recompute=units", "explicit", "caffe"};
  question q = open_question("tv_resnet18", 8);
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
    sn_result r[6];
    for (uint32_t k = 1; k < 6; k++) r[k] = result_of(&q, strategies[i], (sn_iteration){.accumulate = k});
    int64_t batch = r[3].iteration_ns - r[2].iteration_ns, update = r[2].iteration_ns - 2 * batch;
    assert_true(batch > 0 && update > 0);
    for (uint32_t k = 1; k < 6; k++) {
      assert_true(r[k].compute_ns <= r[k].iteration_ns && r[k].known_ns <= r[k].compute_ns);
      if (k > 1) assert_true(llabs(r[k].iteration_ns - k * batch - update) <= ROUNDED);
      assert_true(fabs(r[k].images_per_second - 8.0 * k / ((double)r[k].iteration_ns / 1e9)) < 1e-6);
      assert_int_equal(r[k].offload_bytes, k * r[1].offload_bytes);
      assert_int_equal(r[k].prefetch_bytes, k * r[1].prefetch_bytes);
      assert_int_equal(r[k].recomputed_layers, k * r[1].recomputed_layers);
      assert_int_equal(r[k].peak_device_bytes, r[k > 1 ? 2 : 1].peak_device_bytes);
    }
    assert_true(llabs(r[1].iteration_ns - batch - update) <= ROUNDED);
  }
  sn_net_free(q.net);
}

static sn_result of_mesh(const question *q, const char *mesh, uint32_t batches) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {.accumulate = batches};
  sn_mesh_parse(mesh, &iteration.mesh, &err);
  must(&err);
  return result_of(q, "pytorch", iteration);
}

/* Under no_sync() a batch that another one follows reduces nothing, and copies nothing into buckets; shards of parameters
 * are gathered by each. */
static void ranks_reduce_once(void **state) {
  (void)state;
  static const char *const meshes[] = {"dp=4", "dp=4,view=yes", "fsdp=4", "dp=2,fsdp=2", "dp=4,zero=1"};
  question q = open_question("tv_resnet18", 2);
  for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
    const sn_result one = of_mesh(&q, meshes[i], 1), two = of_mesh(&q, meshes[i], 2), eight = of_mesh(&q, meshes[i], 8);
    const bool gathers = strstr(meshes[i], "fsdp") != NULL;
    assert_true(one.shared.exposed_ns > 0);
    assert_true(eight.shared.exposed_ns <= eight.shared.transfer_ns);
    assert_true(eight.stall_ns <= eight.shared.exposed_ns);
    assert_int_equal(eight.shared.reduced_bytes, one.shared.reduced_bytes);
    assert_int_equal(eight.shared.scattered_bytes, one.shared.scattered_bytes);
    assert_int_equal(eight.shared.gathered_bytes, (gathers ? 8 : 1) * one.shared.gathered_bytes);
    assert_int_equal(eight.shared.transfer_ns > two.shared.transfer_ns, gathers);
    if (!gathers) assert_true(llabs(eight.shared.exposed_ns - two.shared.exposed_ns) < two.shared.exposed_ns / 50);
    assert_true(eight.iteration_ns < 4 * two.iteration_ns);
  }
  const sn_result one = of_mesh(&q, "dp=2,fsdp=2,sync=each", 1), each = of_mesh(&q, "dp=2,fsdp=2,sync=each", 8);
  assert_int_equal(each.shared.reduced_bytes, 8 * one.shared.reduced_bytes);
  assert_int_equal(each.shared.scattered_bytes, 8 * one.shared.scattered_bytes);
  assert_true(each.iteration_ns > of_mesh(&q, "dp=2,fsdp=2", 8).iteration_ns);
  sn_net_free(q.net);
}

/* Gradients that lie beside the graph are added to where they lie; PyTorch's come to lie there. */
static void memory(void **state) {
  (void)state;
  question q = open_question("tv_resnet18", 8);
  const sn_iteration one = {.optimizer = SN_OPTIMIZER_ADAM}, two = {.optimizer = SN_OPTIMIZER_ADAM, .accumulate = 2};
  static const char *const same[] = {"baseline", "liveness", "superneurons", "explicit", "torch7", "tensorflow"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    sn_result a = result_of(&q, same[i], one), b = result_of(&q, same[i], two);
    assert_int_equal(a.pool_bytes, b.pool_bytes);
    assert_int_equal(a.peak_device_bytes, b.peak_device_bytes);
    assert_int_equal(a.least_device_bytes, b.least_device_bytes);
    assert_int_equal(b.persistent.parameter_gradients, 4 * q.net->parameters);
  }
  sn_result a = result_of(&q, "pytorch", one), b = result_of(&q, "pytorch", two);
  assert_int_equal(a.persistent.parameter_gradients, 0);
  assert_int_equal(b.persistent.parameter_gradients, 4 * q.net->parameters);
  assert_int_equal(b.live.gradients, 4 * q.net->parameters);
  assert_true(b.allocated_bytes > a.allocated_bytes && b.peak_tensor_bytes < a.peak_tensor_bytes);
  sn_net_free(q.net);
}

static void refused(const question *q, const char *strategy, sn_iteration iteration, const char *words) {
  sn_err err = SN_ERR_INIT;
  sn_run *run = ask(q, strategy, iteration, &err);
  assert_null(run);
  assert_int_equal(err.code, SN_BAD_INPUT);
  if (!strstr(err.text, words)) fail_msg("%s: %s", strategy, err.text);
}

static void what_cannot_be_asked(void **state) {
  (void)state;
  question q = open_question("lenet", 2);
  const sn_iteration two = {.accumulate = 2}, runs = {.inference = true};
  refused(&q, "singa-layer", two, "no gradients are accumulated");
  refused(&q, "singa-bfs", runs, "the graph that trains");
  refused(&q, "liveness+offload", runs, "offloaded");
  refused(&q, "vdnn-all", runs, "offloaded");
  refused(&q, "pytorch+offload", runs, "offloaded");
  refused(&q, "liveness+recompute=speed", runs, "recomputed");
  refused(&q, "pytorch+recompute=units", runs, "recomputed");
  refused(&q, "mxnet", runs, "recomputed");
  sn_net_free(q.net);
}

/* Forward alone: parameters, running means and variances, the batch, and the values that are still to be read. */
static void inference(void **state) {
  (void)state;
  static const char *const strategies[] = {"baseline", "liveness", "liveness+cache", "caffe",
                                           "torch7",   "explicit", "pytorch"};
  static const char *const nets[] = {"tv_resnet18", "alexnet", "inception_v4"};
  for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
    question q = open_question(nets[n], 4);
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
      const sn_iteration runs = {.inference = true, .optimizer = SN_OPTIMIZER_ADAM, .accumulate = 3};
      sn_result run = result_of(&q, strategies[i], runs), trained = result_of(&q, strategies[i], (sn_iteration){0});
      assert_int_equal(run.persistent.parameters, trained.persistent.parameters);
      assert_int_equal(run.persistent.parameter_gradients + run.persistent.optimizer_state + run.persistent.labels, 0);
      assert_true(run.persistent.auxiliary <= trained.persistent.auxiliary);
      assert_true(run.peak_device_bytes < trained.peak_device_bytes);
      assert_true(run.least_device_bytes <= run.peak_device_bytes);
      assert_true(run.iteration_ns < trained.iteration_ns);
      assert_string_equal(run.peak_pass, "forward");
    }
    sn_net_free(q.net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_and_traffic),    cmocka_unit_test(ranks_reduce_once), cmocka_unit_test(memory),
      cmocka_unit_test(what_cannot_be_asked), cmocka_unit_test(inference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
