/* Brief answers about pipelines (sim/stages/stages.h), whose plans have one round for many, are those about all
 * micro-batches, to the byte and the nanosecond: random networks, meshes, micro-batches and memories. */
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { OWN_CASES = 200 };

typedef struct question {
  const char *net;
  uint32_t batch, n_strategies;
  sn_strategy strategies[2];
  sn_device device;
  sn_options options;
  uint64_t seed;
} question;

/* More than a round more than are run: some of them idle. */
static void throw(question * q, uint64_t *dice, sn_err *err) {
  static const struct {
    const char *net;
    uint32_t batch;
    bool divides;
  } nets[] = {{"llm:8,64,4,4,160,100", 1, true},
              {"llm:8,512,8,2,1408,3000", 2, true},
              {"llm:9,320,4,4,800,40000", 1, true},
              {"tv_resnet18", 2, false},
              {"vit_b_16", 1, false},
              {"bert_base", 1, false}};
  static const char *const optimizers[] = {"adamw", "sgd", "momentum"};
  uint32_t n = prng_below(dice, sizeof nets / sizeof *nets), stages = prng_from(dice, 2, 8);
  bool doubles = stages % 2 == 0 && stages != 6; /* whole nodes of 8 */
  char mesh[80];
  snprintf(mesh, sizeof mesh, "pp=%u%s%s", stages, doubles && prng_chance(dice, 50) ? ",dp=2" : "",
           doubles && nets[n].divides && prng_chance(dice, 50) ? ",tp=2" : "");
  q->net = nets[n].net;
  q->batch = nets[n].batch;
  q->n_strategies = 2;
  q->options = (sn_options)SN_OPTIONS_INIT;
  q->options.iteration.accumulate = prng_from(dice, stages, 6 * stages + 20);
  static const sn_precision precisions[] = {SN_BF16, SN_FP32, SN_AMP_BF16};
  q->options.iteration.precision = precisions[prng_below(dice, sizeof precisions / sizeof *precisions)];
  sn_optimizer_parse(optimizers[prng_below(dice, 3)], &q->options.iteration.optimizer, err);
  sn_mesh_parse(mesh, &q->options.iteration.mesh, err);
  q->strategies[0] = parse_strategy("pytorch");
  q->strategies[1] = parse_strategy("pytorch+recompute=units");
  q->device = load_gpu("h100_sxm");
}

static void fail_question(const question *q, const char *what, uint64_t found, uint64_t expected) {
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, batch %u, --parallel %s, accumulate %u: %s is %" PRIu64
           ", not %" PRIu64,
           q->seed, q->net, q->batch, q->options.iteration.mesh.text, q->options.iteration.accumulate, what, found,
           expected);
}

static void must_be(const question *q, const char *what, uint64_t found, uint64_t expected) {
  if (found != expected) fail_question(q, what, found, expected);
}

static void compare(const question *q, const sn_result *found, const sn_result *all) {
  const sn_shared_row *a = &found->shared, *b = &all->shared;
  must_be(q, "fits", found->fits, all->fits);
  must_be(q, "peak_device_bytes", found->peak_device_bytes, all->peak_device_bytes);
  if (!all->fits) must_be(q, "least_device_bytes", found->least_device_bytes, all->least_device_bytes);
  must_be(q, "iteration_ns", (uint64_t)found->iteration_ns, (uint64_t)all->iteration_ns);
  must_be(q, "exposed_ns", (uint64_t)a->exposed_ns, (uint64_t)b->exposed_ns);
  must_be(q, "bubble_ns", (uint64_t)a->bubble_ns, (uint64_t)b->bubble_ns);
  if (found->images_per_second != all->images_per_second || a->flops_share != b->flops_share)
    fail_question(q, "images/s, rounded,", (uint64_t)found->images_per_second, (uint64_t)all->images_per_second);
}

/* Plans of a brief answer are of fewer micro-batches; how many of them. */
static uint32_t count_shorter(const sn_run *brief, const sn_run *all) {
  uint32_t shorter = 0;
  for (uint32_t s = 0; s < all->n_stages; s++)
    shorter += brief->stages[s]->results[0].instructions < all->stages[s]->results[0].instructions;
  return shorter;
}

/* With all memory, and with little more or less than is needed. */
static uint32_t compare_all(question *q, const sn_net *net, uint64_t memory, uint64_t *needed) {
  sn_err err = SN_ERR_INIT;
  q->device.memory_bytes = memory;
  sn_run *all = sn_stages_simulate(q->net, net, &q->device, q->strategies, q->n_strategies, &q->options, &err);
  sn_run *brief =
      all ? sn_stages_brief(q->net, net, &q->device, q->strategies, q->n_strategies, &q->options, false, &err) : NULL;
  uint32_t shorter = 0;
  if (err.code == SN_BAD_INPUT) return 0; /* fewer blocks than stages */
  must(&err);
  for (uint32_t i = 0; i < q->n_strategies; i++) compare(q, &brief->results[i], &all->results[i]);
  shorter = count_shorter(brief, all);
  *needed = all->results[0].peak_device_bytes;
  sn_run_free(brief);
  brief = sn_stages_brief(q->net, net, &q->device, q->strategies, q->n_strategies, &q->options, true, &err);
  must(&err);
  for (uint32_t i = 0; i < q->n_strategies; i++) must_be(q, "fits alone", brief->results[i].fits, all->results[i].fits);
  sn_run_free(brief);
  sn_run_free(all);
  return shorter;
}

static void brief_answers_are_those_of_all(void **state) {
  (void)state;
  uint64_t seed = first_seed(2901), needed = 0;
  uint32_t cases = case_count(OWN_CASES), shorter = 0;
  for (uint32_t i = 0; i < cases; i++) {
    sn_err err = SN_ERR_INIT;
    question q = {.seed = seed + i};
    uint64_t dice = q.seed;
    throw(&q, &dice, &err);
    must(&err);
    sn_net *net = sn_net_load(q.net, q.batch, strncmp(q.net, "llm", 3) == 0 ? 128 : 0, &err);
    must(&err);
    uint32_t more = compare_all(&q, net, UINT64_C(1) << 40, &needed);
    shorter += more;
    if (more > 0) compare_all(&q, net, needed / 100 * prng_from(&dice, 85, 101), &needed);
    sn_net_free(net);
  }
  assert_true(shorter >= cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(brief_answers_are_those_of_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
