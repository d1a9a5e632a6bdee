/* Capacity against brute force: the largest batch, depth and image of many networks on devices made so small that the
 * boundary lies within a small range, found by asking the simulator about every value; and the least memory, to the
 * block. */
#include "sim/capacity/fit.h"
#include "tests/support/pipeline.h"

#include "sim/plan/plan.h"

#include <stdio.h>

enum { MOST = 16 };

static const char *const names[] = {"baseline",         "liveness",
                                    "liveness+offload", "liveness+offload=checkpoints+recompute=memory",
                                    "liveness+cache",   "superneurons"};
enum { STRATEGIES = sizeof names / sizeof names[0] };

static const char unaligned[] =
    "{\"snsim_net\":1,\"name\":\"unaligned\",\"input\":[1,9,9],\"layers\":["
    "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\"kernel\":3},{\"name\":\"b\",\"op\":\"ACT\"},"
    "{\"repeat\":4,\"layers\":["
    "{\"name\":\"c\",\"op\":\"CONV\",\"channels\":5,\"kernel\":3,\"pad\":1},{\"name\":\"d\",\"op\":\"BN\"},"
    "{\"name\":\"e\",\"op\":\"ACT\"},{\"name\":\"f\",\"op\":\"DROPOUT\"},{\"name\":\"g\",\"op\":\"LRN\"}]},"
    "{\"name\":\"p\",\"op\":\"POOL\",\"kernel\":2,\"stride\":2},{\"name\":\"h\",\"op\":\"FC\",\"channels\":10},"
    "{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}";

static sn_device small_device(void) {
  sn_device d = load_gpu("k40c");
  d.context_bytes = 1000;
  return d;
}

static sn_result ask(const sn_net *net, const sn_device *device, sn_strategy strategy, const sn_options *options) {
  sn_err err = SN_ERR_INIT;
  sn_run *run = sn_simulate("net", net, device, &strategy, 1, options, &err);
  must(&err);
  sn_result result = run->results[0];
  sn_run_free(run);
  return result;
}

/* ---- any knob ---- */

typedef struct seen {
  uint32_t answers, inside, unsteady;
} seen;

/* The largest that fits from low to high, asked one by one; *unsteady where a smaller one does not. */
static uint32_t brute(const sn_knob *knob, const sn_device *device, sn_strategy strategy, const sn_options *options,
                      bool *unsteady) {
  uint32_t best = 0, bad = 0;
  for (uint32_t v = knob->low; v <= knob->high; v = sn_knob_next(knob, v)) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = knob->make(knob->user, v, &err);
    must(&err);
    bool fits = ask(net, device, strategy, options).fits;
    if (fits) best = v;
    if (fits && bad) *unsteady = true;
    if (!fits) bad = v;
    sn_net_free(net);
  }
  return best;
}

static void check_answer(const sn_knob *knob, const sn_device *device, const sn_fit_answer *a,
                         const sn_options *options, seen *s) {
  bool unsteady = false;
  uint32_t best = brute(knob, device, a->strategy, options, &unsteady);
  assert_int_equal(a->search.value, best);
  assert_true(a->verified);
  assert_true(a->search.proved);
  assert_int_equal(a->has_next, best < knob->high);
  if (a->has_next) {
    assert_true(a->binding.n_tensors > 0 && a->binding.layer && a->binding.pass);
    assert_true(options->pool_bytes || a->next_device_bytes > device->memory_bytes);
  } else {
    assert_non_null(a->end);
  }
  if (best) {
    assert_true(a->result->fits);
    assert_true(a->result->peak_device_bytes <= device->memory_bytes);
    assert_true(a->result->images_per_second > 0);
  } else {
    assert_null(a->result);
  }
  s->answers++;
  s->inside += best > knob->low && best < knob->high;
  s->unsteady += unsteady;
}

/* On a device that holds exactly the network of value `middle` under one of the strategies, or lacks a byte for it. */
static void check_knob(const sn_knob *knob, uint32_t middle, sn_workspace workspace, seen *s) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategies[STRATEGIES];
  for (int i = 0; i < STRATEGIES; i++) strategies[i] = parse_strategy(names[i]);
  sn_device device = small_device();
  sn_options options = SN_OPTIONS_INIT;
  options.workspace = workspace;
  for (int holder = 0; holder < STRATEGIES; holder += 2) {
    sn_net *net = knob->make(knob->user, middle, &err);
    must(&err);
    sn_memory *memory = sn_fit_memory(net, &device, &strategies[holder], 1, &options, &err);
    must(&err);
    device.memory_bytes = memory->answers[0].memory_bytes - (holder ? 1 : 0);
    sn_memory_free(memory);
    sn_net_free(net);
    sn_fit *fit = sn_fit_largest(knob, &device, strategies, STRATEGIES, &options, &err);
    must(&err);
    assert_int_equal(fit->n_answers, STRATEGIES);
    for (uint32_t i = 0; i < fit->n_answers; i++) check_answer(knob, &device, &fit->answers[i], &options, s);
    sn_fit_free(fit);
  }
}

/* ---- batch ---- */

typedef struct small {
  const char *net;
  uint32_t image;
} small;

static sn_net *make_small(const void *user, uint32_t batch, sn_err *err) {
  const small *s = user;
  if (*s->net == '{') return sn_net_from_json("test", s->net, strlen(s->net), batch, err);
  return sn_net_load(s->net, batch, s->image, err);
}

static void largest_batch_is_that_of_asking_all(void **state) {
  (void)state;
  static const small nets[] = {{"lenet", 0},        {"alexnet", 67},
                               {"vgg16", 32},       {"resnet18", 32},
                               {"resnet50", 32},    {"resnet:n1=1,n2=1,n3=1,n4=1", 33},
                               {"densenet121", 32}, {"inception_v3", 75},
                               {unaligned, 0},      {SNSIM_SOURCE_DIR "/models/examples/small_resnet.json", 0}};
  seen s = {0};
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    const sn_knob knob = {.low = 1, .high = MOST, .make = make_small, .user = &nets[i]};
    check_knob(&knob, 5, SN_WORKSPACE_DYNAMIC, &s);
    check_knob(&knob, 9, i % 2 ? SN_WORKSPACE_NONE : SN_WORKSPACE_MAX, &s);
  }
  print_message("%u answers, %u of them inside the range, %u not monotone\n", s.answers, s.inside, s.unsteady);
  assert_true(s.inside > s.answers / 4);
}

/* A case from life: VGG16 at 39x39 needs less for 16 images than for 15, whose sizes in blocks leave other holes. */
static void larger_fits_where_smaller_does_not(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const small vgg = {"vgg16", 39};
  const sn_knob knob = {.low = 1, .high = 40, .make = make_small, .user = &vgg};
  const sn_strategy strategy = parse_strategy("liveness+offload+recompute=memory");
  const sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .placement = SN_PLACEMENT_FIRST_FIT};
  sn_device device = small_device();
  sn_net *net = make_small(&vgg, 16, &err);
  must(&err);
  sn_memory *memory = sn_fit_memory(net, &device, &strategy, 1, &options, &err);
  must(&err);
  device.memory_bytes = memory->answers[0].memory_bytes;
  sn_fit *fit = sn_fit_largest(&knob, &device, &strategy, 1, &options, &err);
  must(&err);
  seen s = {0};
  check_answer(&knob, &device, &fit->answers[0], &options, &s);
  assert_int_equal(s.unsteady, 1);
  assert_int_equal(fit->answers[0].search.value, 16);
  assert_int_equal(fit->answers[0].search.misfits, 1);
  assert_int_equal(fit->answers[0].search.misfit, 15);
  sn_fit_free(fit);
  sn_memory_free(memory);
  sn_net_free(net);
}

static void pool_of_a_given_size_bounds_it(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const small lenet = {"lenet", 0};
  const sn_knob knob = {.low = 1, .high = MOST, .make = make_small, .user = &lenet};
  sn_device device = load_gpu("k40c");
  sn_options options = SN_OPTIONS_INIT;
  options.pool_bytes = 900 * 1024;
  seen s = {0};
  sn_strategy strategies[2] = {parse_strategy("liveness"), parse_strategy("superneurons")};
  sn_fit *fit = sn_fit_largest(&knob, &device, strategies, 2, &options, &err);
  must(&err);
  for (uint32_t i = 0; i < 2; i++) check_answer(&knob, &device, &fit->answers[i], &options, &s);
  assert_int_equal(s.inside, 2);
  sn_fit_free(fit);
}

/* ---- depth, image and sequence ---- */

static void check_spec(const sn_knob_spec *spec, uint32_t high, uint32_t middle, seen *s) {
  sn_err err = SN_ERR_INIT;
  sn_knob knob;
  sn_knob_open(spec, &knob, &err);
  must(&err);
  knob.high = high;
  check_knob(&knob, middle, SN_WORKSPACE_DYNAMIC, s);
}

static void largest_depth_is_that_of_asking_all(void **state) {
  (void)state;
  seen s = {0};
  const sn_knob_spec zoo = {SN_KNOB_DEPTH, "resnet:n1=1,n2=2,n3=50,n4=1", 2, 32, NULL};
  const sn_knob_spec json = {SN_KNOB_DEPTH, SNSIM_SOURCE_DIR "/models/examples/small_resnet.json", 4, 0, NULL};
  check_spec(&zoo, 16, 6, &s);
  check_spec(&json, 16, 5, &s);
  assert_true(s.inside > s.answers / 4);
}

static void largest_image_is_that_of_asking_all(void **state) {
  (void)state;
  seen s = {0};
  const sn_knob_spec resnet = {SN_KNOB_IMAGE, "resnet18", 2, 0, NULL}, alexnet = {SN_KNOB_IMAGE, "alexnet", 3, 0, NULL};
  check_spec(&resnet, 60, 37, &s);
  check_spec(&alexnet, 110, 90, &s);
  assert_true(s.inside > s.answers / 4);
}

/* Patches fill an image, halves a U-Net's: between their sizes there is no network, and none is asked for. */
static void sizes_are_looked_at_in_their_steps(void **state) {
  (void)state;
  static const struct {
    sn_knob_spec spec;
    uint32_t low, step, high, middle;
  } cases[] = {
      {{SN_KNOB_IMAGE, "unet", 1, 0, NULL}, 16, 16, 144, 96},
      {{SN_KNOB_IMAGE, "vit_b_16", 1, 0, NULL}, 16, 16, 112, 64},
      {{SN_KNOB_IMAGE, "swin_t", 1, 0, NULL}, 224, 224, 448, 224},
      {{SN_KNOB_SEQUENCE, "llama:layers=1,hidden=64,heads=4,ffn=96,vocabulary=512", 2, 0, NULL}, 1, 1, 40, 23}};
  seen s = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_knob knob;
    sn_knob_open(&cases[i].spec, &knob, &err);
    must(&err);
    assert_int_equal(knob.low, cases[i].low);
    assert_int_equal(knob.step, cases[i].step);
    knob.high = cases[i].high;
    check_knob(&knob, cases[i].middle, SN_WORKSPACE_DYNAMIC, &s);
  }
  assert_true(s.inside > s.answers / 4);
}

/* The least image is the smallest that can be built. */
static void images_begin_where_windows_fit(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT, reason = SN_ERR_INIT;
  const sn_knob_spec spec = {SN_KNOB_IMAGE, "alexnet", 1, 0, NULL};
  sn_knob knob;
  sn_knob_open(&spec, &knob, &err);
  must(&err);
  sn_net_free(sn_net_load("alexnet", 1, knob.low, &err));
  must(&err);
  assert_true(knob.low > 1);
  assert_null(sn_net_load("alexnet", 1, knob.low - 1, &reason));
}

/* A file's images may be turned as well; here one larger needs a window more in each layer. */
static void images_of_files(void **state) {
  (void)state;
  const sn_knob_spec spec = {SN_KNOB_IMAGE, SNSIM_SOURCE_DIR "/tests/nets/small_alexnet.json", 1, 0, NULL};
  sn_err err = SN_ERR_INIT, reason = SN_ERR_INIT;
  sn_knob knob;
  sn_knob_open(&spec, &knob, &err);
  must(&err);
  assert_in_range(knob.low, 2, 35);
  sn_net *least = knob.make(knob.user, knob.low, &err);
  must(&err);
  assert_int_equal(least->layers[0].out.h, knob.low);
  assert_int_equal(least->layers[0].out.w, knob.low);
  sn_net_free(least);
  assert_null(knob.make(knob.user, knob.low - 1, &reason));
}

static void refuses_knobs_that_are_not_there(void **state) {
  (void)state;
  static const sn_knob_spec bad[] = {{SN_KNOB_DEPTH, "alexnet", 1, 0, NULL},
                                     {SN_KNOB_BATCH, "alexnt", 0, 0, NULL},
                                     {SN_KNOB_DEPTH, "resnet:n5=3", 1, 0, NULL},
                                     {SN_KNOB_SEQUENCE, "alexnet", 1, 0, NULL},
                                     {SN_KNOB_IMAGE, "gpt2", 1, 0, NULL}};
  static const char *const said[] = {"fixed depth", "did you mean \"alexnet\"", "n5", "--max image", "--max sequence"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_knob knob;
    sn_status status = sn_knob_open(&bad[i], &knob, &err);
    if (!strstr(err.text, said[i])) fail_msg("%zu: %s", i, err.text);
    assert_int_equal(status, SN_BAD_USAGE);
  }
}

/* A knob that ends is no error: the answer says that nothing larger was tried, and why. */
static sn_net *make_until_9(const void *user, uint32_t value, sn_err *err) {
  if (value <= 9) return make_small(user, value, err);
  sn_fail(err, SN_BAD_INPUT, "there are only nine");
  return NULL;
}

static void says_why_there_is_no_next(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const small lenet = {"lenet", 0};
  const sn_knob knob = {.low = 1, .high = 1000, .make = make_until_9, .user = &lenet};
  const sn_device device = load_gpu("k40c");
  const sn_options options = SN_OPTIONS_INIT;
  const sn_strategy strategy = parse_strategy("liveness");
  sn_fit *fit = sn_fit_largest(&knob, &device, &strategy, 1, &options, &err);
  must(&err);
  assert_int_equal(fit->answers[0].search.value, 9);
  assert_false(fit->answers[0].has_next);
  assert_true(fit->answers[0].verified);
  assert_string_equal(fit->answers[0].end, "there are only nine");
  assert_false(fit->answers[0].search.proved);
  assert_int_equal(fit->answers[0].search.tried_to, 9);
  assert_ptr_equal(sn_fit_best(fit), &fit->answers[0]);
  sn_fit_free(fit);
}

static sn_net *make_deep(const void *user, uint32_t value, sn_err *err) {
  const char *spec = user;
  return sn_net_load_depth(spec, value, 1, 0, err);
}

static void count_plan(void *watcher) {
  ++*(uint32_t *)watcher;
}

/* Where memory is no limit the size of networks is: the search goes there at once. */
static void depth_without_end_takes_few_plans(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  uint32_t plans = 0;
  const sn_knob knob = {
      .low = 1, .high = SN_MAX_DIM, .grows = true, .make = make_deep, .user = "resnet:n1=1,n2=1,n4=1"};
  sn_device device = load_gpu("k40c");
  device.memory_bytes = UINT64_C(1) << 52;
  sn_options options = SN_OPTIONS_INIT;
  options.planned = count_plan;
  options.watcher = &plans;
  const sn_strategy strategies[] = {parse_strategy("baseline"), parse_strategy("liveness")};
  sn_fit *fit = sn_fit_largest(&knob, &device, strategies, 2, &options, &err);
  must(&err);
  for (int i = 0; i < 2; i++) {
    const sn_fit_answer *a = &fit->answers[i];
    sn_net *last = make_deep(knob.user, a->search.value, &err), *next = make_deep(knob.user, a->search.value + 1, &err);
    must(&err);
    assert_true(last->n_layers <= SN_FIT_MOST_LAYERS && next->n_layers > SN_FIT_MOST_LAYERS);
    char said[80];
    snprintf(said, sizeof said, "%u layers: more than %u are not tried", next->n_layers, SN_FIT_MOST_LAYERS);
    assert_string_equal(a->end, said);
    assert_true(a->verified && !a->search.proved);
    sn_net_free(last);
    sn_net_free(next);
  }
  assert_true(plans <= 2 * 5);
  sn_fit_free(fit);
}

/* Of a recording whose chains are of one operation recomputation for speed, memory and cost runs the same again: they
 * are planned once. Asked together they say what each says alone, of a network where they differ too. */
static void alike_are_planned_once(void **state) {
  (void)state;
  static const struct {
    const char *net;
    bool alike;
  } rows[] = {{SNSIM_SOURCE_DIR "/tests/record/data/resnet18.rec.gz", true}, {"inception_v4", false}};
  const sn_strategy strategies[] = {parse_strategy("liveness+recompute=speed"),
                                    parse_strategy("liveness+recompute=memory"),
                                    parse_strategy("liveness+recompute=cost")};
  const sn_device device = load_gpu("k40c");
  for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
    sn_err err = SN_ERR_INIT;
    const sn_knob_spec spec = {SN_KNOB_BATCH, rows[row].net, 0, 0, NULL};
    sn_knob knob;
    uint32_t together = 0, alone[3] = {0};
    sn_options options = SN_OPTIONS_INIT;
    options.planned = count_plan;
    options.watcher = &together;
    sn_knob_open(&spec, &knob, &err);
    sn_fit *all = sn_fit_largest(&knob, &device, strategies, 3, &options, &err);
    must(&err);
    for (int i = 0; i < 3; i++) {
      options.watcher = &alone[i];
      sn_fit *one = sn_fit_largest(&knob, &device, &strategies[i], 1, &options, &err);
      must(&err);
      const sn_fit_answer *a = &all->answers[i], *b = one->answers;
      assert_int_equal(a->search.value, b->search.value);
      assert_int_equal(a->search.tried_from, b->search.tried_from);
      assert_int_equal(a->search.tried_to, b->search.tried_to);
      assert_int_equal(a->search.plans, b->search.plans);
      assert_true(a->search.proved == b->search.proved && a->search.misfits == b->search.misfits);
      assert_string_equal(a->result->strategy, b->result->strategy);
      assert_true(a->result->iteration_ns == b->result->iteration_ns && a->result->pool_bytes == b->result->pool_bytes);
      assert_true(a->next_device_bytes == b->next_device_bytes && a->verified == b->verified);
      assert_string_equal(a->binding.layer, b->binding.layer);
      sn_fit_free(one);
    }
    assert_true(alone[0] > 0);
    assert_int_equal(together, rows[row].alike ? alone[0] : alone[0] + alone[1] + alone[2]);
    sn_fit_free(all);
  }
}

/* ---- memory ---- */

static void least_memory_is_exact_to_the_block(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "resnet18", "inception_v3"};
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++)
    for (sn_workspace w = 0; w < SN_WORKSPACE_COUNT; w++) {
      sn_err err = SN_ERR_INIT;
      sn_net *net = load_net(nets[n], 3);
      sn_device device = load_gpu("k40c");
      sn_options options = SN_OPTIONS_INIT;
      options.workspace = w;
      sn_memory *memory = sn_fit_memory(net, &device, strategies, SN_STRATEGY_DEFAULTS, &options, &err);
      must(&err);
      for (uint32_t i = 0; i < memory->n_answers; i++) {
        const sn_memory_answer *a = &memory->answers[i];
        device.memory_bytes = a->memory_bytes;
        assert_true(ask(net, &device, a->strategy, &options).fits);
        for (uint32_t blocks = 1; blocks < 2000; blocks += 1 + blocks / 2) {
          device.memory_bytes = a->memory_bytes - (blocks == 1 ? 1 : blocks * SN_POOL_BLOCK);
          assert_false(ask(net, &device, a->strategy, &options).fits);
        }
        assert_true(a->verified);
        assert_int_equal(a->result->peak_device_bytes, a->memory_bytes);
        assert_true(a->memory_bytes >= sn_memory_best(memory)->memory_bytes);
      }
      sn_memory_free(memory);
      sn_net_free(net);
    }
}

/* ---- what binds ---- */

static void names_what_binds(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const small alexnet = {"alexnet", 0};
  const sn_knob knob = {.low = 1, .high = 10000, .make = make_small, .user = &alexnet};
  sn_device device = load_gpu("k40c");
  const sn_options options = SN_OPTIONS_INIT;
  const sn_strategy strategy = parse_strategy("liveness+recompute=speed");
  sn_fit *fit = sn_fit_largest(&knob, &device, &strategy, 1, &options, &err);
  must(&err);
  const sn_binding *b = &fit->answers[0].binding; /* the reference, section 2: step 43, 6 tensors */
  assert_string_equal(b->layer, "pool1");
  assert_string_equal(b->pass, "backward");
  assert_int_equal(b->step, 43);
  assert_int_equal(b->cause, SN_CAUSE_TENSORS);
  assert_int_equal(b->n_tensors, 6);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < b->n_tensors; i++) bytes += b->tensors[i].bytes;
  assert_int_equal(bytes, b->tensor_bytes);
  sn_fit_free(fit);
  device.memory_bytes = 500u << 20; /* less than the parameters */
  fit = sn_fit_largest(&knob, &device, &strategy, 1, &options, &err);
  must(&err);
  assert_int_equal(fit->answers[0].search.value, 0);
  assert_int_equal(fit->answers[0].binding.cause, SN_CAUSE_RESIDENT);
  assert_null(sn_fit_best(fit));
  sn_fit_free(fit);
}

/* A cache that may send few tensors away plans differently with another pool, so that what a plan asks for need not be
 * enough: the answer is what does run. */
static void least_memory_of_a_narrow_cache_is_enough(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const sn_strategy strategy = parse_strategy("superneurons-paper");
  sn_options options = SN_OPTIONS_INIT;
  sn_device device = load_gpu("k40c");
  sn_net *net = load_net("inception_v3", 16);
  sn_memory *memory = sn_fit_memory(net, &device, &strategy, 1, &options, &err);
  must(&err);
  device.memory_bytes = memory->answers[0].memory_bytes;
  sn_run *run = sn_simulate("inception_v3", net, &device, &strategy, 1, &options, &err);
  must(&err);
  assert_true(run->results[0].fits);
  assert_true(memory->answers[0].verified);
  sn_run_free(run);
  sn_memory_free(memory);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(largest_batch_is_that_of_asking_all),
      cmocka_unit_test(larger_fits_where_smaller_does_not),
      cmocka_unit_test(pool_of_a_given_size_bounds_it),
      cmocka_unit_test(largest_depth_is_that_of_asking_all),
      cmocka_unit_test(largest_image_is_that_of_asking_all),
      cmocka_unit_test(sizes_are_looked_at_in_their_steps),
      cmocka_unit_test(images_begin_where_windows_fit),
      cmocka_unit_test(images_of_files),
      cmocka_unit_test(refuses_knobs_that_are_not_there),
      cmocka_unit_test(says_why_there_is_no_next),
      cmocka_unit_test(depth_without_end_takes_few_plans),
      cmocka_unit_test(least_memory_of_a_narrow_cache_is_enough),
      cmocka_unit_test(least_memory_is_exact_to_the_block),
      cmocka_unit_test(names_what_binds),
      cmocka_unit_test(alike_are_planned_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
