/* Stages of a pipeline: bytes that PyTorch's MemTracker counts of each (bench/parallel/pipelines.py and
 * docs/measured/parallel.md), what they keep in flight, gather and wait for. */
#include "sim/stages/stages.h"
#include "tests/support/asked.h"
#include "tests/support/live_of.h"

#include <string.h>

static sn_run *run_in(sn_precision precision, const char *net, uint32_t batch, uint32_t size, const char *mesh,
                      uint32_t micros) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *n = load(net, batch, size);
  options.iteration = asked(mesh, "adamw", micros);
  options.iteration.precision = precision;
  options.iteration.master = precision == SN_BF16;
  sn_run *run = sn_stages_simulate(net, n, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  sn_net_free(n);
  return run;
}

static sn_run *run_stages(const char *net, uint32_t batch, uint32_t size, const char *mesh, uint32_t micros) {
  return run_in(SN_FP32, net, batch, size, mesh, micros);
}

static uint64_t stage_bytes(const sn_run *run, uint32_t stage) {
  return total(&run->stages[stage]->results[0].live);
}

/* Of stages that nobody asks for their least it is not looked for; what is told of all is as if it were. */
static void the_least_is_that_of_all_stages(void **state) {
  enum { MICROS = 8, STAGES = 6 };
  static const char net[] = "llm:12,256,4,4,704,100";
  (void)state;
  sn_run *all = run_stages(net, 2, 64, "pp=6", MICROS);
  sn_net *n = load(net, 2, 64);
  sn_device gpu = load_gpu("h200");
  sn_strategy pytorch = parse_strategy("pytorch");
  uint64_t most = 0, told = 0, searched = 0;
  for (uint32_t s = 0; s < STAGES; s++) {
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    options.iteration = asked("pp=6", "adamw", 1);
    options.iteration.mesh.stage = s;
    options.iteration.mesh.micros = MICROS;
    sn_run *alone = sn_simulate(net, n, &gpu, &pytorch, 1, &options, &err);
    must(&err);
    const sn_result *own = &alone->results[0], *in_all = &all->stages[s]->results[0];
    assert_int_equal(own->peak_device_bytes, in_all->peak_device_bytes);
    assert_true(own->least_device_bytes <= in_all->least_device_bytes);
    assert_true(in_all->least_device_bytes <= in_all->peak_device_bytes);
    searched += own->least_device_bytes < own->peak_device_bytes;
    most = own->least_device_bytes > most ? own->least_device_bytes : most;
    told = in_all->least_device_bytes > told ? in_all->least_device_bytes : told;
    sn_run_free(alone);
  }
  assert_true(searched > 1); /* looking for it makes a difference */
  assert_int_equal(told, most);
  assert_int_equal(all->results[0].least_device_bytes, most);
  sn_net_free(n);
  sn_run_free(all);
}

/* Stage by stage what MemTracker counts under PyTorch's schedules (bench/parallel/pipelines.py); of
 * the last one the sums of weights of losses are held here as long as they are. */
static void stages_are_pytorchs(void **state) {
  (void)state;
  enum { STAGES = 4 };
  static const struct {
    const char *net, *mesh;
    uint32_t tokens, micros;
    uint64_t bytes[STAGES], beside;
  } rows[] = {
      {"llm:8,128,4,4,352,256", "pp=4", 64, 8, {18423884, 15198280, 12439624, 10969716}, 28},
      {"llm:8,128,4,4,352,256", "pp=4,schedule=gpipe", 64, 8, {27899980, 27498568, 27498568, 31379088}, 0},
      {"llm:8,256,8,4,704,2048", "pp=4", 64, 6, {55277644, 41498696, 35983432, 43029100}, 20},
      {"llm:8,128,4,4,352,256", "pp=2", 64, 3, {24849556, 19826344}, 8},
      {"llm:8,128,4,4,352,256", "pp=4,fsdp=4", 64, 8, {16250444, 13188680, 10430024, 8631284}, 28},
      {"llm:8,128,4,4,352,256", "pp=4,fsdp=4,reshard=no", 64, 8, {16250444, 13188680, 10430024, 8795636}, 28},
      {"llm:8,128,4,4,352,256", "pp=4,fsdp=4,schedule=gpipe", 64, 8, {25726540, 25488968, 25488968, 29205008}, 0},
      {"llm:8,256,8,4,704,2048", "pp=4,fsdp=4", 8, 6, {27396300, 20955336, 20265928, 25543916}, 20},
      {"llm:8,256,8,4,704,2048", "pp=4,fsdp=8", 64, 6, {42278476, 31907400, 26392136, 27570156}, 20},
      {"llm:8,128,4,4,352,256", "pp=2,fsdp=4,schedule=interleaved:2", 64, 4, {23590036, 18762284}, 12},
      {"llm:8,256,8,4,704,2048", "pp=2,fsdp=4,schedule=interleaved:2,reshard=no", 64, 4, {67940500, 60943788}, 12},
      {"llm:16,128,4,4,352,256", "pp=2,fsdp=4,schedule=interleaved:4", 64, 4, {42383652, 36933296}, 8},
      {"llm:8,256,8,4,704,2048", "pp=2,fsdp=4,schedule=interleaved:4", 8, 2, {25083540, 26185252}, 4},
      {"llm:8,128,4,4,352,256", "pp=4,schedule=zb-h1", 64, 8, {18686028, 21659720, 23363656, 27177080}, 24},
      {"llm:8,256,8,4,704,2048", "pp=4,schedule=zb-h1", 64, 4, {50153548, 48193608, 51339336, 67897440}, 16},
      {"llm:8,128,4,4,352,256", "pp=2,schedule=zb-h1", 64, 4, {24981652, 32554160}, 8},
      {"llm:4,256,8,8,704,512", "pp=2,tp=2,loss=whole", 64, 4, {20953164, 18511204}, 12},
      {"llm:4,256,8,8,704,512", "pp=2,tp=2", 64, 4, {20953164, 18122216}, 12},
      {"llm:4,256,8,8,704,512", "pp=2,tp=2,schedule=zb-h1", 64, 4, {21084236, 25528936}, 8},
      {"llm:4,256,8,8,704,512", "pp=2,tp=2,schedule=interleaved:2", 64, 4, {22921804, 20090856}, 12},
      {"llm:8,128,8,4,352,256", "pp=4,tp=2", 64, 6, {9619532, 7806024, 6293576, 5400048}, 20},
      {"llm:4,256,8,8,704,512", "pp=2,fsdp=2,tp=2", 64, 4, {19214412, 16329316}, 12},
      {"llm:4,256,8,4,704,2048", "pp=2,fsdp=2,tp=4,reshard=no", 64, 4, {12620364, 10432872}, 12},
      {"llm:8,128,4,4,352,256", "pp=2,schedule=interleaved:2", 64, 4, {28067988, 23110316}, 12},
      {"llm:16,128,4,4,352,256", "pp=4,schedule=interleaved:2", 64, 8, {45148308, 39164048, 33646736, 29483708}, 28},
      {"llm:12,128,4,4,352,256", "pp=2,schedule=interleaved:3", 64, 6, {40607964, 35846908}, 20},
      {"llm:12,128,4,4,352,256", "pp=4,schedule=interleaved:3", 64, 4, {25576560, 25179244, 24423532, 22752904}, 12},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_run *run = run_stages(rows[i].net, 2, rows[i].tokens, rows[i].mesh, rows[i].micros);
    for (uint32_t s = 0; s < run->n_stages; s++) {
      uint64_t want = rows[i].bytes[s] + (s + 1 == run->n_stages ? rows[i].beside : 0);
      if (stage_bytes(run, s) != want)
        fail_msg("%s, %s, stage %u: %" PRIu64 " bytes, not %" PRIu64, rows[i].net, rows[i].mesh, s, stage_bytes(run, s),
                 want);
    }
    sn_run_free(run);
  }
}

/* Under autocast, what MemTracker counts on fakes of a GPU, but for Adam's counters, seeds and a norm's roots: a micro-batch
 * but the first casts gradients of weights at the end of its backward, a stage casts the gradient that it receives itself,
 * and that stays beside the sum that the last norm's backward makes of it. */
static void autocasts_stages_are_pytorchs(void **state) {
  (void)state;
  enum { STAGES = 4, NEAR = 1536 };
  static const struct {
    const char *net, *mesh;
    uint32_t micros;
    uint64_t bytes[STAGES];
  } rows[] = {
      {"llm:4,256,8,8,704,512", "pp=2", 4, {39263840, 36735044}},
      {"llm:4,256,8,8,704,512", "pp=2,schedule=gpipe", 4, {42944144, 45801648}},
      {"llm:4,256,8,8,704,512", "pp=4", 4, {22964808, 20994632, 19154480, 20436012}},
      {"llm:4,256,8,8,704,512,gpu=1", "pp=4,schedule=gpipe", 4, {22173744, 20334640, 20334640, 24380520}},
      {"llm:8,128,4,4,352,256", "pp=4,schedule=gpipe", 8, {21313920, 20912512, 20912512, 24432576}},
      {"llm:8,128,4,4,352,256", "pp=4,schedule=interleaved:2", 8, {19211528, 16903384, 15062184, 14567072}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_run *run = run_in(SN_AMP_BF16, rows[i].net, 2, 64, rows[i].mesh, rows[i].micros);
    for (uint32_t s = 0; s < run->n_stages; s++)
      if (stage_bytes(run, s) > rows[i].bytes[s] + NEAR || stage_bytes(run, s) + NEAR < rows[i].bytes[s])
        fail_msg("%s, %s, stage %u: %" PRIu64 " bytes, not %" PRIu64, rows[i].net, rows[i].mesh, s, stage_bytes(run, s),
                 rows[i].bytes[s]);
    sn_run_free(run);
  }
}

/* In bf16-master a table's first gradient is made wide while what it is made of is there. */
static void a_table_is_made_wide(void **state) {
  (void)state;
  sn_run *run = run_in(SN_BF16, "llm:8,256,8,4,704,2048", 2, 16, "pp=2,fsdp=8,dp=2", 2);
  assert_int_equal(stage_bytes(run, 0), 28660372);
  assert_int_equal(stage_bytes(run, 1), 28118814 + 2); /* a loss's sum of weights */
  sn_run_free(run);
}

/* A stage keeps one micro-batch less than the one before it, and of gpipe all (parallel.md, section 6). */
static void stages_keep_what_is_in_flight(void **state) {
  (void)state;
  enum { BATCH = 2, TOKENS = 64, D = 128, MICROS = 8 };
  sn_run *one = run_stages("llm:12,128,4,4,352,100", BATCH, TOKENS, "pp=6", MICROS);
  sn_run *all = run_stages("llm:12,128,4,4,352,100", BATCH, TOKENS, "pp=6,schedule=gpipe", MICROS);
  assert_int_equal(one->n_stages, 6);
  uint64_t each = stage_bytes(one, 1) - stage_bytes(one, 2); /* of equal stages */
  for (uint32_t s = 1; s < 4; s++) {
    assert_int_equal(stage_bytes(one, s) - stage_bytes(one, s + 1), each);
    assert_int_equal(stage_bytes(all, s), stage_bytes(all, s + 1));
    assert_true(stage_bytes(all, s) - stage_bytes(one, s) <= (MICROS - 6 + s) * each);
    assert_true(stage_bytes(all, s) - stage_bytes(one, s) > (MICROS - 7 + s) * each);
  }
  /* two blocks of what a block keeps: x, x-hat and roots of two norms, q, k, v, the attention's output and sums, the
   * sum behind it, both FCs' outputs, SiLU's and the product, and the block's own output */
  uint64_t tokens = BATCH * TOKENS, heads = 4, ffn = 352, floats = tokens * (4 * D + 4 * D + heads + 2 + 4 * ffn) + 0;
  assert_true(each > 2 * 4 * (floats - tokens * 4 * D) && each < 2 * 4 * (floats + tokens * 4 * D));
  sn_run_free(one);
  sn_run_free(all);
}

/* Shards of stages: each forward gathers what no backward before it has left, with reshard=no each group once, and each is
 * reduced once an update. Gradients of all micro-batches are added in the width in which they are reduced. */
static void stages_gather_what_is_not_there(void **state) {
  (void)state;
  enum { M = 8 };
  static const char net[] = "llm:8,128,4,4,352,100";
  static const struct {
    const char *mesh;
    uint64_t times; /* a block of stage 0 is gathered: by each forward, or the backward ahead of it, and one more */
  } rows[] = {{"pp=4,fsdp=4", M + 1}, {"pp=4,fsdp=4,reshard=no", 1}, {"pp=4,fsdp=4,schedule=gpipe", M + 1}};
  sn_run *whole = run_stages(net, 2, 64, "pp=4", M);
  uint64_t stage = whole->stages[0]->results[0].live.parameters, blocks = whole->stages[1]->results[0].live.parameters;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_run *run = run_stages(net, 2, 64, rows[i].mesh, M);
    const sn_shared_row *first = &run->stages[0]->results[0].shared;
    assert_int_equal(first->scattered_bytes, stage);
    assert_int_equal(first->gathered_bytes, stage + (rows[i].times - 1) * blocks);
    assert_int_equal(run->stages[0]->results[0].live.parameters, stage / 4);
    assert_true(run->results[0].iteration_ns > 0);
    sn_run_free(run);
  }
  sn_run_free(whole);
}

/* (p - 1) / m of equal stages, interleaved's a chunk's part of it. */
static void bubbles_are_the_schedules(void **state) {
  (void)state;
  sn_run *one = run_stages("llm:16,256,4,4,704,100", 1, 64, "pp=4", 16);
  sn_run *two = run_stages("llm:16,256,4,4,704,100", 1, 64, "pp=4,schedule=interleaved:2", 16);
  const sn_result *a = &one->results[0], *b = &two->results[0];
  double first = (double)a->shared.bubble_ns / (double)(a->iteration_ns - a->shared.bubble_ns);
  double second = (double)b->shared.bubble_ns / (double)(b->iteration_ns - b->shared.bubble_ns);
  assert_true(first > 0.10 && first < 3.0 / 16 + 0.01); /* ends have the embedding and the head beside */
  assert_true(second < first);
  sn_run_free(one);
  sn_run_free(two);
}

/* Backward in two halves does what it did in one, and what is put off fills gaps: (p - 1) / 3m of equal parts. A stage keeps
 * as many micro-batches as the first one, all that they have saved, gradients of outputs and what it has handed on. */
static void halves_fill_bubbles(void **state) {
  (void)state;
  enum { P = 4, M = 16 };
  static const char net[] = "llm:8,2048,16,16,5632,100";
  sn_run *whole = run_stages(net, 2, 1024, "pp=4", M), *halves = run_stages(net, 2, 1024, "pp=4,schedule=zb-h1", M);
  for (uint32_t s = 0; s < P; s++) {
    const sn_shared_row *a = &whole->stages[s]->results[0].shared, *b = &halves->stages[s]->results[0].shared;
    assert_int_equal(a->weights_ns, 0);
    assert_true(b->weights_ns > 0);
    assert_int_equal(b->backward_ns == 0, s == 0); /* which has nobody to hand gradients to */
    double one = (double)(a->forward_ns + a->backward_ns);
    double two = (double)(b->forward_ns + b->backward_ns + b->weights_ns);
    assert_true(two > 0.99 * one && two < 1.01 * one);
    assert_true(stage_bytes(halves, s) >= stage_bytes(whole, s));
  }
  uint64_t first = stage_bytes(whole, 0), last = stage_bytes(halves, P - 2);
  assert_true(last > first && last < first * 3 / 2);
  assert_true(halves->results[0].shared.bubble_ns < whole->results[0].shared.bubble_ns * 2 / 3);
  assert_true(halves->results[0].iteration_ns < whole->results[0].iteration_ns);
  sn_run_free(whole);
  sn_run_free(halves);
}

/* Each stage has the blocks that are said: of equal ones nothing changes, a block more is a block's parameters more. */
static void stages_have_their_units(void **state) {
  enum { MICROS = 4 };
  static const char net[] = "llm:8,128,4,4,352,100";
  (void)state;
  sn_run *equal = run_stages(net, 1, 16, "pp=4", MICROS), *said = run_stages(net, 1, 16, "pp=4,stages=2,2,2,2", MICROS);
  sn_run *other = run_stages(net, 1, 16, "pp=4,stages=1,4,2,1", MICROS);
  const uint64_t block = equal->stages[1]->results[0].live.parameters / 2;
  static const int more[] = {-1, 2, 0, -1};
  for (uint32_t s = 0; s < 4; s++) {
    const sn_result *a = &equal->stages[s]->results[0], *b = &said->stages[s]->results[0],
                    *c = &other->stages[s]->results[0];
    assert_int_equal(a->peak_device_bytes, b->peak_device_bytes);
    assert_int_equal(a->shared.backward_ns, b->shared.backward_ns);
    assert_int_equal(c->live.parameters - a->live.parameters, more[s] * (int64_t)block);
  }
  sn_run_free(equal);
  sn_run_free(said);
  sn_run_free(other);
}

static void bad_pipelines_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *net, *mesh, *why;
    uint32_t micros;
  } bad[] = {{"llm:8,128,4,4,352,100", "pp=16", "8 can be asked for", 4},
             {"llm:8,128,4,4,352,100", "pp=4,schedule=interleaved:2", "multiple of 4", 7},
             {"gpt2", "pp=4", "takes the weights of wte", 4},
             {"llm:8,128,4,4,352,100", "pp=4,stages=1,3,3,2", "are 9 blocks", 4},
             {"llm:8,128,4,4,352,100", "pp=3,stages=1,3,3", "has 8; stages=3,3,2 is as many in each", 4},
             {"unet", "pp=4", "stages send to the next alone", 4}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device gpu = load_gpu("h200");
    sn_strategy pytorch = parse_strategy("pytorch");
    sn_options options = SN_OPTIONS_INIT;
    sn_net *net = load(bad[i].net, 1, 0);
    options.iteration = asked(bad[i].mesh, "adamw", bad[i].micros);
    sn_run *run = sn_stages_simulate(bad[i].net, net, &gpu, &pytorch, 1, &options, &err);
    assert_null(run);
    if (!strstr(err.text, bad[i].why)) fail_msg("%s, %s: %s", bad[i].net, bad[i].mesh, err.text);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_least_is_that_of_all_stages), cmocka_unit_test(stages_are_pytorchs),
      cmocka_unit_test(autocasts_stages_are_pytorchs),   cmocka_unit_test(a_table_is_made_wide),
      cmocka_unit_test(stages_keep_what_is_in_flight),   cmocka_unit_test(stages_gather_what_is_not_there),
      cmocka_unit_test(bubbles_are_the_schedules),       cmocka_unit_test(halves_fill_bubbles),
      cmocka_unit_test(stages_have_their_units),         cmocka_unit_test(bad_pipelines_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
