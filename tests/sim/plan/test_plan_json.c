/* The plan as JSON: what another program can read back. Parsed with cJSON and verified again by a small verifier that
 * knows nothing but docs/plan-format.md: in listed order every read finds its value, live bytes do not overlap, nothing
 * lies outside the pools, fences are signalled before they are waited for, and every step runs. */
#include "tests/support/pipeline.h"

#include "sim/ask/simulate.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char branching[] = "{\"snsim_net\":1,\"name\":\"branching\",\"input\":[3,16,16],\"layers\":["
                                "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"a1\",\"op\":\"ACT\"},"
                                "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"b2\",\"op\":\"BN\"},"
                                "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"b2\",\"a1\",\"a1\"]},"
                                "{\"name\":\"a2\",\"op\":\"ACT\"},"
                                "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"a2\",\"c1\"]},"
                                "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                                "{\"name\":\"d\",\"op\":\"DROPOUT\"},"
                                "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":5},"
                                "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

static char *write_plan(const sn_net *net, const char *strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("k40c");
  sn_options options = SN_OPTIONS_INIT;
  options.pool_bytes = pool_bytes;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  sn_simulate_write_plan(net, &gpu, parse_strategy(strategy), &options, out, &err);
  fclose(out);
  must(&err);
  return text;
}

/* ---- the verifier ---- */

static uint64_t number(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsNumber(item)) fail_msg("no number \"%s\"", key);
  return (uint64_t)item->valuedouble;
}

static const char *text_of(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsString(item)) fail_msg("no text \"%s\"", key);
  return item->valuestring;
}

static const cJSON *list_of(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!cJSON_IsArray(item)) fail_msg("no list \"%s\"", key);
  return item;
}

typedef struct tensor {
  uint64_t bytes, offset, size, host_offset;
  int version, host_version; /* 0: no value; one more with each change in place */
  bool here, host;
} tensor;

typedef struct verifier {
  uint64_t pool, external, block, high;
  tensor *tensors;
  const cJSON **steps; /* by number */
  uint64_t n_tensors, n_steps, n_fences, next_step, next_fence;
  int *needed; /* version of each tensor that the route has made when the next step is due */
  bool *signalled;
} verifier;

static void check_free(const verifier *v, uint64_t offset, uint64_t bytes) {
  assert_true(bytes > 0 && offset % v->block == 0 && bytes % v->block == 0);
  assert_true(offset <= v->pool && bytes <= v->pool - offset);
  for (uint64_t t = 0; t < v->n_tensors; t++) {
    const tensor *other = &v->tensors[t];
    if (other->here) assert_true(offset + bytes <= other->offset || other->offset + other->size <= offset);
  }
}

static tensor *tensor_of(const verifier *v, const cJSON *instr) {
  uint64_t id = number(instr, "tensor");
  assert_true(id < v->n_tensors);
  return &v->tensors[id];
}

static void verify_alloc(verifier *v, const cJSON *instr) {
  tensor *t = tensor_of(v, instr);
  assert_false(t->here);
  t->offset = number(instr, "offset");
  t->size = number(instr, "bytes");
  assert_true(t->size >= t->bytes);
  check_free(v, t->offset, t->size);
  if (t->offset + t->size > v->high) v->high = t->offset + t->size;
  t->here = true;
  t->version = 0;
}

static void verify_release(verifier *v, const cJSON *instr) {
  tensor *t = tensor_of(v, instr);
  assert_true(t->here);
  assert_true(number(instr, "offset") == t->offset && number(instr, "bytes") == t->size);
  t->here = false;
}

static bool contains(const cJSON *list, double id) {
  for (const cJSON *item = list->child; item; item = item->next)
    if (item->valuedouble == id) return true;
  return false;
}

/* What the step reads has the version that the route gives it; what it writes gets the next one. */
static void verify_accesses(verifier *v, const cJSON *step, bool again) {
  const cJSON *reads = list_of(step, "reads"), *writes = list_of(step, "writes");
  for (const cJSON *item = reads->child; item; item = item->next) {
    const tensor *t = &v->tensors[(uint64_t)item->valuedouble];
    assert_true(t->here && t->version > 0);
    if (!again) assert_int_equal(t->version, v->needed[(uint64_t)item->valuedouble]);
  }
  for (const cJSON *item = writes->child; item; item = item->next) {
    tensor *t = &v->tensors[(uint64_t)item->valuedouble];
    assert_true(t->here);
    t->version = contains(reads, item->valuedouble) ? t->version + 1 : 1;
    if (!again) v->needed[(uint64_t)item->valuedouble] = t->version;
  }
}

static void verify_compute(verifier *v, const cJSON *instr) {
  uint64_t number_of_step = number(instr, "step");
  const cJSON *again = cJSON_GetObjectItemCaseSensitive(instr, "recompute");
  assert_true(cJSON_IsBool(again) && number_of_step >= 1 && number_of_step <= v->n_steps);
  const cJSON *step = v->steps[number_of_step];
  bool conv = strcmp(text_of(step, "op"), "CONV") == 0;
  if (cJSON_IsTrue(again)) {
    assert_true(number_of_step < v->next_step);
    assert_string_equal(text_of(step, "pass"), "forward");
  } else {
    assert_int_equal(number_of_step, v->next_step++);
  }
  verify_accesses(v, step, cJSON_IsTrue(again));
  assert_int_equal(cJSON_HasObjectItem(instr, "forward"), conv && strcmp(text_of(step, "pass"), "forward") == 0);
  bool backward = conv && strcmp(text_of(step, "pass"), "backward") == 0;
  assert_int_equal(cJSON_HasObjectItem(instr, "backward_data"), backward);
  assert_int_equal(cJSON_HasObjectItem(instr, "backward_filter"), backward);
  const cJSON *workspace = cJSON_GetObjectItemCaseSensitive(instr, "workspace");
  if (!workspace) return;
  assert_true(conv);
  check_free(v, number(workspace, "offset"), number(workspace, "bytes"));
  uint64_t end = number(workspace, "offset") + number(workspace, "bytes");
  if (end > v->high) v->high = end;
}

static void verify_copy(verifier *v, const cJSON *instr, bool out) {
  tensor *t = tensor_of(v, instr);
  uint64_t offset = number(instr, "external_offset");
  assert_string_equal(text_of(instr, "lane"), out ? "out" : "in");
  assert_true(t->here && number(instr, "bytes") == t->bytes);
  assert_true(offset % v->block == 0 && offset <= v->external && t->bytes <= v->external - offset);
  if (out) {
    assert_true(t->version > 0);
    for (uint64_t i = 0; i < v->n_tensors; i++) {
      const tensor *other = &v->tensors[i];
      if (!other->host || other == t) continue;
      assert_true(offset + t->bytes <= other->host_offset || other->host_offset + other->bytes <= offset);
    }
    t->host = true;
    t->host_offset = offset;
    t->host_version = t->version;
  } else {
    assert_true(t->host && t->host_offset == offset);
    t->version = t->host_version;
  }
}

/* What a lane may do. */
static void verify_lane(const char *what, const char *lane) {
  bool fences = strcmp(what, "signal") == 0 || strcmp(what, "wait") == 0;
  if (strcmp(lane, "out") == 0)
    assert_true(fences || strcmp(what, "copy_out") == 0);
  else if (strcmp(lane, "in") == 0)
    assert_true(fences || strcmp(what, "copy_in") == 0 || strcmp(what, "alloc") == 0);
  else
    assert_true(strcmp(lane, "compute") == 0 && strncmp(what, "copy", 4) != 0);
}

static void verify_instr(verifier *v, const cJSON *instr) {
  const char *what = text_of(instr, "do");
  verify_lane(what, text_of(instr, "lane"));
  assert_in_range(number(instr, "at_step"), 1, v->n_steps);
  if (strcmp(what, "alloc") == 0) {
    verify_alloc(v, instr);
  } else if (strcmp(what, "release") == 0) {
    verify_release(v, instr);
  } else if (strcmp(what, "compute") == 0) {
    verify_compute(v, instr);
  } else if (strcmp(what, "copy_out") == 0 || strcmp(what, "copy_in") == 0) {
    verify_copy(v, instr, what[5] == 'o');
  } else {
    uint64_t fence = number(instr, "fence");
    bool waits = strcmp(what, "wait") == 0;
    if (!waits) assert_string_equal(what, "signal");
    assert_true(fence < v->n_fences);
    if (!waits) assert_int_equal(fence, v->next_fence++);
    assert_int_equal(v->signalled[fence], waits);
    v->signalled[fence] = true;
  }
}

static void read_lists(verifier *v, const cJSON *root) {
  const cJSON *tensors = list_of(root, "tensors"), *steps = list_of(root, "steps");
  uint64_t n = 0;
  v->n_tensors = (uint64_t)cJSON_GetArraySize(tensors);
  v->n_steps = (uint64_t)cJSON_GetArraySize(steps);
  v->tensors = calloc(v->n_tensors, sizeof *v->tensors);
  v->needed = calloc(v->n_tensors, sizeof *v->needed);
  v->steps = calloc(v->n_steps + 1, sizeof *v->steps);
  v->signalled = calloc(v->n_fences + 1, sizeof *v->signalled);
  for (const cJSON *item = tensors->child; item; item = item->next) {
    assert_int_equal(number(item, "id"), n);
    const char *kind = text_of(item, "kind");
    assert_true(strcmp(kind, "output") == 0 || strcmp(kind, "gradient") == 0);
    v->tensors[n++].bytes = number(item, "bytes");
  }
  n = 1;
  for (const cJSON *item = steps->child; item; item = item->next, n++) {
    assert_int_equal(number(item, "id"), n);
    v->steps[n] = item;
  }
}

static void verify(const char *text) {
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithOpts(text, &end, 1);
  assert_non_null(root);
  assert_int_equal(number(root, "snsim_plan"), 1);
  verifier v = {.pool = number(root, "pool_bytes"),
                .external = number(root, "external_bytes"),
                .block = number(root, "block_bytes"),
                .n_fences = number(root, "fences"),
                .next_step = 1};
  assert_int_equal(v.block, 1024);
  read_lists(&v, root);
  for (const cJSON *item = list_of(root, "instructions")->child; item; item = item->next) verify_instr(&v, item);
  assert_int_equal(v.next_step, v.n_steps + 1);
  assert_true(v.high == v.pool);
  for (uint64_t f = 0; f < v.n_fences; f++) assert_true(v.signalled[f]);
  free(v.tensors), free(v.needed), free(v.signalled);
  free(v.steps);
  cJSON_Delete(root);
}

/* ---- the tests ---- */

/* With all of the device, and with so little that the cache has to evict. */
static void plans_verify_again(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch;
    uint64_t pool;
  } cases[] = {{"lenet", 4, 0},
               {"lenet", 4, 400 * 1024},
               {branching, 3, 0},
               {branching, 3, 130 * 1024},
               {"alexnet", 8, UINT64_C(40) << 20},
               {"resnet18", 2, UINT64_C(25) << 20}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    sn_net *net = load_net(cases[k].net, cases[k].batch);
    for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT];
      char *text = write_plan(net, sn_strategy_name(sn_strategy_default(i), name), cases[k].pool);
      verify(text);
      free(text);
    }
    char *text = write_plan(net, "liveness+offload=checkpoints+recompute=memory", cases[k].pool);
    verify(text);
    free(text);
    sn_net_free(net);
  }
}

static void head_of_lenet(void **state) {
  (void)state;
  static const char head[] =
      "{\n\"snsim_plan\": 1,\n\"net\": \"lenet\",\n\"batch\": 4,\n\"image_height\": 28,\n"
      "\"image_width\": 28,\n\"strategy\": \"liveness+cache+recompute=cost\",\n"
      "\"gpu\": \"k40c\",\n\"memory_bytes\": 11994660864,\n\"host_memory_bytes\": 0,\n\"pool_limit_bytes\": 0,\n"
      "\"workspace\": \"dynamic\",\n\"external\": \"host\",\n\"allocator\": \"pool\",\n\"optimizer\": "
      "\"momentum\",\n\"accumulate\": 1,\n\"inference\": false,\n"
      "\"shared_link\": false,\n\"costs\": \"model\",\n"
      "\"lanes\": [\"compute\", \"out\", \"in\"],\n\"fits\": true,\n";
  sn_net *net = load_net("lenet", 4);
  char *text = write_plan(net, "superneurons", 0), *again = write_plan(net, "superneurons", 0);
  assert_string_equal(text, again);
  assert_memory_equal(text, head, strlen(head));
  assert_non_null(strstr(text, "\n{\"id\": 0, \"name\": \"conv1.y\", \"kind\": \"output\", \"bytes\": 184320},\n"));
  assert_non_null(strstr(text, "\n{\"id\": 2, \"layer\": \"pool1\", \"op\": \"POOL\", \"pass\": \"forward\", "
                               "\"reads\": [0], \"writes\": [1]},\n"));
  assert_non_null(strstr(text, "\n{\"do\": \"alloc\", \"lane\": \"compute\", \"at_step\": 1, \"tensor\": 0, "
                               "\"offset\": 0, \"bytes\": 184320},\n"));
  free(text);
  free(again);
  sn_net_free(net);
}

/* A plan says which question it answers, by the names and with the values of a run's JSON. */
static void names_its_question(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("v100_32");
  sn_options options = {.workspace = SN_WORKSPACE_NONE,
                        .external = SN_EXTERNAL_REMOTE,
                        .allocator = SN_ALLOCATOR_CUDA,
                        .shared_link = true,
                        .pool_bytes = 12345678};
  sn_net *net = sn_net_load("resnet18", 2, 96, &err);
  gpu.memory_bytes = UINT64_C(3) << 30;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  sn_strategy strategy = parse_strategy("liveness");
  sn_run *run = sn_simulate("resnet18", net, &gpu, &strategy, 1, &options, &err);
  sn_simulate_write_plan(net, &gpu, strategy, &options, out, &err);
  fclose(out);
  must(&err);
  cJSON *plan = cJSON_Parse(text);
  assert_string_equal(text_of(plan, "net"), run->net);
  assert_string_equal(text_of(plan, "gpu"), run->gpu);
  assert_string_equal(text_of(plan, "workspace"), run->conditions.workspace);
  assert_string_equal(text_of(plan, "external"), run->conditions.external);
  assert_string_equal(text_of(plan, "allocator"), run->conditions.allocator);
  assert_string_equal(text_of(plan, "costs"), run->costs);
  assert_true(number(plan, "image_height") == 96 && run->image_height == 96 && number(plan, "image_width") == 96);
  assert_true(number(plan, "memory_bytes") == run->memory_bytes && run->memory_bytes == UINT64_C(3) << 30);
  assert_true(number(plan, "pool_limit_bytes") == run->conditions.pool_limit_bytes &&
              run->conditions.pool_limit_bytes == 12345678);
  assert_true(number(plan, "pool_offered_bytes") == 12345678);
  assert_true(number(plan, "pool_bytes") == run->results[0].pool_bytes);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(plan, "shared_link")) && run->conditions.shared_link);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(plan, "fits")) == run->results[0].fits);
  cJSON_Delete(plan);
  sn_run_free(run);
  sn_net_free(net);
  free(text);
}

/* Names may hold quotes, backslashes and any UTF-8. */
static void names_are_escaped(void **state) {
  (void)state;
  static const char quoted[] =
      "{\"snsim_net\":1,\"name\":\"a \\\"net\\\" \\\\ \xc3\xa9\",\"input\":[2,2,2],\"layers\":["
      "{\"name\":\"f\\\"c\\\\\xe2\x82\xac\",\"op\":\"FC\",\"channels\":5},"
      "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  sn_net *net = load_net(quoted, 2);
  char *text = write_plan(net, "liveness", 0);
  verify(text);
  cJSON *root = cJSON_Parse(text);
  assert_string_equal(text_of(root, "net"), "a \"net\" \\ \xc3\xa9");
  assert_string_equal(text_of(cJSON_GetArrayItem(list_of(root, "steps"), 0), "layer"), "f\"c\\\xe2\x82\xac");
  assert_string_equal(text_of(cJSON_GetArrayItem(list_of(root, "tensors"), 0), "name"), "f\"c\\\xe2\x82\xac.y");
  cJSON_Delete(root);
  free(text);
  sn_net_free(net);
}

static void full_disk(void **state) {
  (void)state;
  FILE *out = fopen("/dev/full", "w");
  if (!out) skip();
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("k40c");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *net = load_net("alexnet", 4);
  assert_int_equal(sn_simulate_write_plan(net, &gpu, parse_strategy("liveness"), &options, out, &err), SN_BAD_FILE);
  assert_string_equal(err.text, "the plan cannot be written: No space left on device");
  fclose(out);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_verify_again), cmocka_unit_test(head_of_lenet), cmocka_unit_test(names_its_question),
      cmocka_unit_test(names_are_escaped),  cmocka_unit_test(full_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
