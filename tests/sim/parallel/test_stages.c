/* What the stages of a pipeline take together: times of what they send each other, the largest batch, the least memory
 * and where that is, as if each batch was asked about alone. */
#include "sim/capacity/fit.h"
#include "sim/capacity/where.h"
#include "sim/cluster/collective.h"
#include "sim/stages/staged.h"
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"

enum { BATCH = 2, TOKENS = 64, WIDTH = 128 };

static sn_cluster cluster_of(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_cluster cluster;
  sn_cluster_load(name, &cluster, &err);
  must(&err);
  return cluster;
}

static sn_run *run_in(sn_cluster cluster, const sn_net *net, const char *mesh, uint32_t micros) {
  sn_err err = SN_ERR_INIT;
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.accumulate = micros;
  options.cluster = cluster;
  sn_device gpu = load_gpu(options.cluster.gpu);
  sn_mesh_parse(mesh, &options.iteration.mesh, &err);
  must(&err);
  sn_run *run = sn_stages_simulate(net->name, net, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  return run;
}

static sn_net *decoders(void) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("llm:6,128,4,4,352,100", BATCH, TOKENS, &err);
  must(&err);
  return net;
}

static sn_run *run_on(const char *cluster, const char *mesh, uint32_t micros) {
  sn_net *net = decoders();
  sn_run *run = run_in(cluster_of(cluster), net, mesh, micros);
  sn_net_free(net);
  return run;
}

enum { HANDED = BATCH * TOKENS * WIDTH * 4 };

static int64_t hop_in(const sn_cluster *cluster, uint64_t bytes, uint32_t nodes) {
  return sn_collective_ns(cluster, SN_COLLECTIVE_SEND, bytes, (sn_group){2, nodes});
}

/* Of a micro-batch, to a neighbour on the same node. */
static int64_t hop_on(const char *name) {
  const sn_cluster cluster = cluster_of(name);
  return hop_in(&cluster, HANDED, 1);
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
    int64_t hop = hop_on(clusters[i]), work = 0, most = 0;
    for (uint32_t s = 0; s < 3; s++) {
      work += work_of(run, s);
      most = work_of(run, s) > most ? work_of(run, s) : most;
    }
    int64_t end = work + 4 * hop, over = 0; /* each updates when its backward is over, the first stage's last */
    for (uint32_t s = 0; s < 3; s++) {
      const sn_shared_row *own = &run->stages[s]->results[0].shared;
      over = end + own->update_ns > over ? end + own->update_ns : over;
      end -= own->backward_ns + hop;
    }
    assert_int_equal(r->shared.exposed_ns, 4 * hop);
    assert_int_equal(r->shared.bubble_ns, work - most);
    assert_int_equal(r->iteration_ns, over);
    sn_run_free(run);
  }
}

/* Of four stages on two nodes one hop leaves a node; of two parts a stage, of seven, what goes from the last stage to the first
 * does, too. */
static void hops_cross_their_own_links(void **state) {
  (void)state;
  static const struct {
    const char *mesh;
    uint32_t width, within, between;
  } cases[] = {{"pp=4", 2, 2, 1}, {"pp=4", 4, 3, 0}, {"pp=4", 1, 0, 3}, {"pp=4,schedule=interleaved:2", 2, 4, 3}};
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("llm:8,128,4,4,352,100", BATCH, TOKENS, &err);
  must(&err);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_cluster cluster = cluster_of("h100x8");
    cluster.gpus_per_node = cases[i].width;
    cluster.nodes = 4 / cases[i].width;
    const bool chunks = strchr(cases[i].mesh, ',') != NULL;
    sn_run *run = run_in(cluster, net, cases[i].mesh, chunks ? 4 : 1);
    const int64_t within = hop_in(&cluster, HANDED, 1), between = cases[i].between ? hop_in(&cluster, HANDED, 2) : 0;
    const int64_t all = 2 * (cases[i].within * within + cases[i].between * between);
    const int64_t exposed = run->results[0].shared.exposed_ns;
    if (chunks)
      assert_in_range(exposed, 2 * (2 * within + between), all); /* other micro-batches hide some */
    else
      assert_int_equal(exposed, all);
    sn_run_free(run);
  }
  sn_net_free(net);
}

/* Each hop takes what its own bytes take. */
static void hops_have_their_own_bytes(void **state) {
  (void)state;
  sn_net *net = load_net("{\"snsim_net\": 1, \"name\": \"uneven\", \"input\": [4, 4, 4], \"layers\": ["
                         "{\"name\": \"wide\", \"op\": \"FC\", \"channels\": 65536},"
                         "{\"name\": \"narrow\", \"op\": \"FC\", \"channels\": 16},"
                         "{\"name\": \"last\", \"op\": \"FC\", \"channels\": 10},"
                         "{\"name\": \"softmax\", \"op\": \"SOFTMAX\"}]}",
                         BATCH);
  const sn_cluster cluster = cluster_of("h100x8");
  sn_run *run = run_in(cluster, net, "pp=3", 1);
  const int64_t wide = hop_in(&cluster, BATCH * 65536 * 4, 1), narrow = hop_in(&cluster, BATCH * 16 * 4, 1);
  assert_true(wide > narrow);
  assert_int_equal(run->results[0].shared.exposed_ns, 2 * (wide + narrow));
  sn_run_free(run);
  sn_net_free(net);
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

/* ---- what fits ---- */

typedef struct question {
  const char *net, *mesh, *strategy;
  uint32_t size, micros;
} question;

static const question questions[] = {
    {"llm:6,64,4,4,176,100", "pp=3", "pytorch", 32, 6},
    {"llm:6,64,4,4,176,100", "pp=3", "pytorch+recompute=units", 32, 6},
    {"llm:4,64,4,4,176,5000", "pp=2,schedule=interleaved:2", "pytorch", 16, 4},
    {"llm:6,64,4,4,176,100", "pp=2,dp=2,schedule=zb-h1", "pytorch", 32, 4},
    {"llm:4,64,4,4,176,100", "tp=2,pp=2,schedule=gpipe", "pytorch", 32, 4},
    {"llm:4,64,4,4,176,100", "tp=2,pp=2,sequence=whole,schedule=zb-h1", "pytorch", 31, 4},
    {"resnet18", "pp=4", "pytorch", 32, 4},
};

enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static sn_options options_of(const question *q) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.accumulate = q->micros;
  sn_mesh_parse(q->mesh, &options.iteration.mesh, &err);
  must(&err);
  return options;
}

static sn_run *ask(const question *q, uint32_t batch, const sn_device *gpu, const sn_options *options) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy = parse_strategy(q->strategy);
  sn_net *net = sn_net_load(q->net, batch, q->size, &err);
  must(&err);
  sn_run *run = sn_stages_simulate(q->net, net, gpu, &strategy, 1, options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

enum { KNOWN = 4 }; /* a batch */

/* A GPU that has what the known batch needs. */
static sn_device device_of(const question *q, const sn_options *options) {
  sn_device gpu = load_gpu("h200");
  snprintf(gpu.name, sizeof gpu.name, "any");
  sn_run *run = ask(q, KNOWN, &gpu, options);
  gpu.memory_bytes = run->results[0].least_device_bytes;
  sn_run_free(run);
  return gpu;
}

static void assert_same_result(const sn_result *a, const sn_result *b) {
  assert_int_equal(a->fits, b->fits);
  assert_int_equal(a->peak_device_bytes, b->peak_device_bytes);
  assert_int_equal(a->least_device_bytes, b->least_device_bytes);
  assert_int_equal(a->iteration_ns, b->iteration_ns);
  assert_int_equal(a->shared.exposed_ns, b->shared.exposed_ns);
  assert_int_equal(a->shared.stage, b->shared.stage);
}

/* It fits, and none of the next does; the answer is what the batch's own question says. */
static void the_largest_batch_is_that_of_all_stages(void **state) {
  (void)state;
  for (size_t i = 0; i < QUESTIONS; i++) {
    const question *q = &questions[i];
    sn_err err = SN_ERR_INIT;
    sn_options options = options_of(q);
    sn_device gpu = device_of(q, &options);
    sn_strategy strategy = parse_strategy(q->strategy);
    const sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = q->net, .image = q->size};
    sn_knob knob;
    sn_knob_open(&spec, &knob, &err);
    must(&err);
    sn_fit *fit = sn_fit_largest(&knob, &gpu, &strategy, 1, &options, &err);
    must(&err);
    const sn_fit_answer *a = &fit->answers[0];
    assert_true(a->search.value >= KNOWN && a->verified && a->has_next && a->binding.stages > 1);
    for (uint32_t batch = a->search.value; batch <= a->search.value + 3; batch++) {
      sn_run *run = ask(q, batch, &gpu, &options);
      if (run->results[0].fits != (batch == a->search.value))
        fail_msg("%s, %s: batch %u, largest %u", q->net, q->mesh, batch, a->search.value);
      if (batch == a->search.value) assert_same_result(a->result, &run->results[0]);
      if (batch == a->search.value + 1) assert_false(run->stages[a->binding.stage]->results[0].fits);
      sn_run_free(run);
    }
    sn_fit_free(fit);
  }
}

/* With that it runs, and with a block less some stage does not; it is the most of what stages need. */
static void the_least_memory_is_the_most_of_a_stage(void **state) {
  (void)state;
  for (size_t i = 0; i < QUESTIONS; i++) {
    const question *q = &questions[i];
    sn_err err = SN_ERR_INIT;
    sn_options options = options_of(q);
    sn_device gpu = device_of(q, &options);
    sn_strategy strategy = parse_strategy(q->strategy);
    sn_net *net = sn_net_load(q->net, 2, q->size, &err);
    must(&err);
    sn_memory *memory = sn_fit_memory(net, &gpu, &strategy, 1, &options, &err);
    must(&err);
    const sn_memory_answer *a = &memory->answers[0];
    assert_true(a->verified && a->memory_bytes > 0);
    for (int less = 0; less < 2; less++) {
      gpu.memory_bytes = a->memory_bytes - (less ? SN_POOL_BLOCK : 0);
      sn_run *run = ask(q, 2, &gpu, &options);
      assert_int_equal(run->results[0].fits, !less);
      assert_int_equal(run->results[0].least_device_bytes, a->memory_bytes);
      if (less) assert_false(run->stages[a->binding.stage]->results[0].fits);
      sn_run_free(run);
    }
    sn_memory_free(memory);
    sn_net_free(net);
  }
}

/* Groups add up to what the fullest stage has, and a unit counts once, however many micro-batches are in flight. */
static void memory_is_of_the_fullest_stage(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const question *q = &questions[0];
  sn_options options = options_of(q);
  sn_device gpu = device_of(q, &options);
  sn_strategy strategy = parse_strategy(q->strategy);
  sn_net *net = sn_net_load(q->net, 2, q->size, &err);
  must(&err);
  sn_run *run = ask(q, 2, &gpu, &options);
  sn_options own = sn_stages_options(&options, run->results[0].shared.stage);
  const sn_asked asked = {
      .spec = q->net, .net = net, .device = &gpu, .options = &own, .strategies = &strategy, .n_strategies = 1};
  sn_where *where = sn_where_find(&asked, strategy, &err);
  must(&err);
  uint32_t named = 0;
  assert_int_equal(run->results[0].shared.stage, 0);
  assert_int_equal(where->total_bytes, sn_live_total(&run->stages[0]->results[0].live));
  for (uint32_t i = 0; i < where->n_groups; i++)
    named += strstr(where->groups[i].name, "kept by 2 ") != NULL; /* attentions, MLPs */
  assert_int_equal(named, 2);
  sn_where_free(where);
  sn_run_free(run);
  sn_net_free(net);
}

/* What is said of stages: their blocks, and micro-batches in flight. */
static void stages_say_what_they_have(void **state) {
  (void)state;
  static const struct {
    const char *mesh;
    uint32_t blocks[3], in_flight[3];
  } rows[] = {{"pp=3", {2, 2, 2}, {3, 2, 1}},
              {"pp=3,stages=1,3,2", {1, 3, 2}, {3, 2, 1}},
              {"pp=3,schedule=gpipe", {2, 2, 2}, {6, 6, 6}},
              {"pp=3,schedule=interleaved:2,stages=1,1,1,1,1,1", {2, 2, 2}, {8, 6, 4}}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_run *run = run_on("h100x8", rows[i].mesh, 6);
    for (uint32_t s = 0; s < 3; s++) {
      const sn_shared_row *row = &run->stages[s]->results[0].shared;
      assert_int_equal(row->blocks, rows[i].blocks[s]);
      assert_int_equal(row->in_flight, rows[i].in_flight[s]);
    }
    sn_run_free(run);
  }
}

/* A block that begins in place would change what its stage receives. */
static void what_is_received_is_not_changed(void **state) {
  (void)state;
  static const char text[] = "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"layers\":["
                             "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3},"
                             "{\"name\":\"act\",\"op\":\"ACT\"},"
                             "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3},"
                             "{\"name\":\"f\",\"op\":\"FC\",\"channels\":3},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}";
  static const sn_named_module behind[] = {{"", NULL},       {"m.0.a", "m.0"}, {"m.0.act", "m.0"},
                                           {"m.1.b", "m.1"}, {"f", NULL},      {"s", NULL}};
  static const sn_named_module ahead[] = {{"", NULL},       {"m.0.a", "m.0"}, {"m.1.act", "m.1"},
                                          {"m.1.b", "m.1"}, {"f", NULL},      {"s", NULL}};
  for (int i = 0; i < 2; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device gpu = load_gpu("h200");
    sn_strategy pytorch = parse_strategy("pytorch");
    const question q = {.mesh = "pp=2", .micros = 2};
    sn_options options = options_of(&q);
    sn_net *net = sn_net_from_json("t.json", text, strlen(text), 2, &err);
    must(&err);
    net->modules = i == 0 ? behind : ahead;
    sn_run *run = sn_stages_simulate("t.json", net, &gpu, &pytorch, 1, &options, &err);
    assert_int_equal(err.code, i == 0 ? SN_OK : SN_BAD_INPUT);
    if (i == 1 && !strstr(err.text, "act works in place on what its stage of the pipeline receives"))
      fail_msg("it says: %s", err.text);
    sn_run_free(run);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_hides_hops_of_one_batch),
      cmocka_unit_test(hops_cross_their_own_links),
      cmocka_unit_test(hops_have_their_own_bytes),
      cmocka_unit_test(transfers_are_the_slowest_stages),
      cmocka_unit_test(collectives_are_beside),
      cmocka_unit_test(stages_say_what_they_have),
      cmocka_unit_test(what_is_received_is_not_changed),
      cmocka_unit_test(the_largest_batch_is_that_of_all_stages),
      cmocka_unit_test(the_least_memory_is_the_most_of_a_stage),
      cmocka_unit_test(memory_is_of_the_fullest_stage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
