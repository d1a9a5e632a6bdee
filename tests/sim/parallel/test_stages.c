/* What the stages of a pipeline take together: times of what they send each other. */
#include "sim/cluster/collective.h"
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"

enum { BATCH = 2, TOKENS = 64, WIDTH = 128 };

static sn_run *run_on(const char *cluster, const char *mesh, uint32_t micros) {
  static const char spec[] = "llm:6,128,4,4,352,100";
  sn_err err = SN_ERR_INIT;
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.accumulate = micros;
  sn_cluster_load(cluster, &options.cluster, &err);
  must(&err);
  sn_device gpu = load_gpu(options.cluster.gpu);
  sn_mesh_parse(mesh, &options.iteration.mesh, &err);
  sn_net *net = sn_net_load(spec, BATCH, TOKENS, &err);
  must(&err);
  sn_run *run = sn_stages_simulate(spec, net, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

/* Of a micro-batch, to a neighbour on the same node. */
static int64_t hop_on(const char *cluster) {
  sn_err err = SN_ERR_INIT;
  sn_cluster c;
  sn_cluster_load(cluster, &c, &err);
  must(&err);
  return sn_collective_ns(&c, SN_COLLECTIVE_SEND, (uint64_t)BATCH * TOKENS * WIDTH * 4, (sn_group){2, 1});
}

static int64_t work_of(const sn_run *run, uint32_t stage) {
  const sn_shared_row *s = &run->stages[stage]->results[0].shared;
  return s->forward_ns + s->backward_ns;
}

/* One micro-batch: every stage waits for every hop, there and back. */
static void nothing_hides_hops_of_one_batch(void **state) {
  (void)state;
  static const char *const clusters[] = {"h100x8", "rtx4090x8"};
  for (int i = 0; i < 2; i++) {
    sn_run *run = run_on(clusters[i], "pp=3", 1);
    const sn_result *r = &run->results[0];
    int64_t hop = hop_on(clusters[i]), work = 0, most = 0, update = 0;
    for (uint32_t s = 0; s < 3; s++) {
      work += work_of(run, s);
      most = work_of(run, s) > most ? work_of(run, s) : most;
      int64_t own = run->stages[s]->results[0].shared.update_ns;
      update = own > update ? own : update;
    }
    assert_int_equal(r->shared.exposed_ns, 4 * hop);
    assert_int_equal(r->shared.bubble_ns, work - most);
    assert_int_equal(r->iteration_ns, work + 4 * hop + update);
    sn_run_free(run);
  }
}

/* What the slowest stage sends and receives; more micro-batches hide more of it, but never what fills the pipeline. */
static void transfers_are_the_slowest_stages(void **state) {
  (void)state;
  enum { MICROS = 12 };
  sn_run *run = run_on("h100x8", "pp=3", MICROS);
  const sn_result *r = &run->results[0];
  uint32_t slowest = 0;
  for (uint32_t s = 1; s < 3; s++)
    if (work_of(run, s) > work_of(run, slowest)) slowest = s;
  int64_t hop = hop_on("h100x8");
  assert_int_equal(r->shared.transfer_ns, (slowest == 1 ? 4 : 2) * MICROS * hop);
  assert_in_range(r->shared.exposed_ns, 1, r->shared.transfer_ns);
  sn_run_free(run);
}

/* With tensor parallel beside: what stages have of it alone, and the hops. */
static void collectives_are_beside(void **state) {
  (void)state;
  sn_run *run = run_on("h100x8", "tp=2,pp=2", 1);
  const sn_result *r = &run->results[0];
  uint32_t slowest = work_of(run, 1) > work_of(run, 0);
  const sn_shared_row *own = &run->stages[slowest]->results[0].shared;
  int64_t hop = (r->shared.transfer_ns - own->transfer_ns) / 2;
  assert_true(own->transfer_ns > 0 && hop > 0);
  assert_int_equal(r->shared.exposed_ns, own->exposed_ns + 2 * hop);
  sn_run_free(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_hides_hops_of_one_batch),
      cmocka_unit_test(transfers_are_the_slowest_stages),
      cmocka_unit_test(collectives_are_beside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
