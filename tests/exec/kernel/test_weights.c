/* Weights in files: what is saved comes back to the bit, in the form that others read; files that are cut short, lie
 * about themselves or belong to another net are refused, each with words that say why. */
#include "tests/support/image_files.h"

#include "exec/data/tensor_file.h"
#include "exec/kernel/state.h"
#include "exec/kernel/weights.h"

#include <math.h>

enum { KINDS = 143, ROOM = 8192 }; /* numbers in a file of the net below; bytes that are enough for any file here */

/* CONV in groups, BN, FC: every kind of tensor. */
static sn_net *make_net(void) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("kinds", 2, 2, 4, 5, &err);
  sn_conv conv = {.channels = 4, .kernel = 3, .kernel_wide = 2, .groups = 2};
  uint32_t last = sn_build_bn(b, sn_build_conv(b, SN_DATA_LAYER, conv, "in/conv\"1\""), "bn");
  sn_build_softmax(b, sn_build_fc(b, last, 3, "fc"), "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static sn_state *make_state(const sn_net *net, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_state *state = sn_state_new(net, &(sn_hyper){.seed = seed}, &err);
  if (!state) fail_msg("%s", err.text);
  return state;
}

static void save(place *p, const char *name, sn_save what, const sn_state *state) {
  sn_err err = SN_ERR_INIT;
  if (sn_weights_save(path_of(p, name), what, state, &err) != SN_OK) fail_msg("%s", err.text);
}

static size_t read_file(place *p, const char *name, uint8_t bytes[ROOM]) {
  FILE *in = fopen(path_of(p, name), "rb");
  assert_non_null(in);
  size_t count = fread(bytes, 1, ROOM, in);
  assert_int_equal(fclose(in), 0);
  return count;
}

static void refuse_weights(place *p, const char *name, const sn_net *net, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_weights_open(path_of(p, name), net, &err));
  assert_error(&err, SN_BAD_INPUT, words);
  assert_error(&err, SN_BAD_INPUT, p->folder);
}

static void load(place *p, const char *name, sn_state *state) {
  sn_err err = SN_ERR_INIT;
  sn_weights *w = sn_weights_open(path_of(p, name), state->net, &err);
  if (!w || sn_weights_read(w, state, &err) != SN_OK) fail_msg("%s", err.text);
  sn_weights_close(w);
}

static void same_floats(const float *a, const float *b, uint64_t count) {
  assert_memory_equal(a, b, count * sizeof *a);
}

static void come_back(void **state) {
  sn_net *net = make_net();
  sn_state *one = make_state(net, 1), *other = make_state(net, 2);
  one->statistics[0] = 0.25f; /* what is saved of them, and what is not */
  one->statistics[4] = 3;
  one->statistics[8] = 7;
  assert_memory_not_equal(one->parameters, other->parameters, net->parameters * sizeof(float));
  save(*state, "w", SN_SAVE_WEIGHTS, one);
  load(*state, "w", other);
  same_floats(one->parameters, other->parameters, net->parameters);
  same_floats(one->statistics, other->statistics, 8);
  assert_true(other->statistics[8] == 0);
  save(*state, "w", SN_SAVE_WEIGHTS, other); /* over itself */
  load(*state, "w", one);
  same_floats(one->parameters, other->parameters, net->parameters);
  sn_state_free(one);
  sn_state_free(other);
  sn_net_free(net);
}

/* The form as its description has it, read by other means than ours. */
static void form(void **state) {
  static const struct {
    const char *name;
    int n_sizes, sizes[4];
  } want[] = {{"in/conv\"1\".weight", 4, {4, 1, 3, 2}},
              {"in/conv\"1\".bias", 1, {4}},
              {"bn.weight", 1, {4}},
              {"bn.bias", 1, {4}},
              {"bn.running_mean", 1, {4}},
              {"bn.running_var", 1, {4}},
              {"fc.weight", 2, {3, 32}},
              {"fc.bias", 1, {3}}};
  sn_net *net = make_net();
  sn_state *s = make_state(net, 1);
  uint8_t bytes[ROOM];
  save(*state, "w", SN_SAVE_WEIGHTS, s);
  size_t count = read_file(*state, "w", bytes), header = bytes[0] + 256u * bytes[1];
  assert_int_equal(header % 8, 0);
  assert_int_equal(count, 8 + header + KINDS * sizeof(float));
  cJSON *root = cJSON_ParseWithLength((const char *)bytes + 8, header);
  assert_non_null(root);
  assert_int_equal(cJSON_GetArraySize(root), 1 + sizeof want / sizeof want[0]);
  double end = 0;
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, want[i].name);
    const cJSON *shape = cJSON_GetObjectItem(item, "shape"), *ends = cJSON_GetObjectItem(item, "data_offsets");
    assert_string_equal(cJSON_GetObjectItem(item, "dtype")->valuestring, "F32");
    assert_int_equal(cJSON_GetArraySize(shape), want[i].n_sizes);
    double numbers = 1;
    for (int k = 0; k < want[i].n_sizes; k++) {
      assert_int_equal(cJSON_GetArrayItem(shape, k)->valueint, want[i].sizes[k]);
      numbers *= want[i].sizes[k];
    }
    assert_true(cJSON_GetArrayItem(ends, 0)->valuedouble == end);
    end += 4 * numbers;
    assert_true(cJSON_GetArrayItem(ends, 1)->valuedouble == end);
  }
  assert_memory_equal(bytes + 8 + header, s->parameters, 28 * sizeof(float)); /* weights, then bias of the CONV */
  cJSON_Delete(root);
  sn_state_free(s);
  sn_net_free(net);
}

/* PyTorch's transposed convolution has its inputs first. */
static void form_of_deconv(void **state) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("up", 2, 6, 4, 5, &err);
  sn_conv conv = {.channels = 4, .kernel = 3, .kernel_wide = 2, .groups = 2};
  sn_build_softmax(b, sn_build_fc(b, sn_build_deconv(b, SN_DATA_LAYER, conv, "up"), 3, "fc"), "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  sn_state *s = make_state(net, 1), *again = make_state(net, 2);
  uint8_t bytes[ROOM];
  save(*state, "u", SN_SAVE_WEIGHTS, s);
  size_t header = 0;
  read_file(*state, "u", bytes);
  header = bytes[0] + 256u * bytes[1];
  bytes[8 + header] = 0;
  assert_non_null(strstr((const char *)bytes + 8, "\"up.weight\":{\"dtype\":\"F32\",\"shape\":[6,2,3,2]"));
  load(*state, "u", again);
  same_floats(s->parameters, again->parameters, net->parameters);
  sn_state_free(s);
  sn_state_free(again);
  sn_net_free(net);
}

static void gradients(void **state) {
  sn_net *net = make_net();
  sn_state *s = make_state(net, 1);
  uint8_t bytes[ROOM];
  for (uint64_t i = 0; i < net->parameters; i++) s->gradients[i] = (float)i;
  save(*state, "g", SN_SAVE_GRADIENTS, s);
  size_t count = read_file(*state, "g", bytes);
  assert_memory_equal(bytes + count - net->parameters * sizeof(float), s->gradients, net->parameters * sizeof(float));
  refuse_weights(*state, "g", net, "holds gradients; snsim run --save-weights writes weights");
  sn_state_free(s);
  sn_net_free(net);
}

/* Whatever the length it is cut to, and with something behind it. */
static void wrong_lengths(void **state) {
  sn_net *net = make_net();
  sn_state *s = make_state(net, 1);
  uint8_t bytes[ROOM];
  save(*state, "w", SN_SAVE_WEIGHTS, s);
  size_t count = read_file(*state, "w", bytes), header = 8u + bytes[0] + 256u * bytes[1];
  for (size_t n = 0; n < count; n++) {
    write_file(*state, "a", bytes, n);
    refuse_weights(*state, "a", net,
                   n < 9        ? "is no safetensors file: it has only"
                   : n < header ? "is cut short, or no safetensors file"
                                : "the file is cut short");
  }
  bytes[count] = 0;
  write_file(*state, "a", bytes, count + 1);
  refuse_weights(*state, "a", net, "has 1 bytes behind the last tensor");
  sn_state_free(s);
  sn_net_free(net);
}

/* ---- headers ---- */

static void write_header(place *p, const char *name, uint64_t length, const char *header, size_t data) {
  uint8_t bytes[ROOM] = {0};
  size_t text = strlen(header);
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(length >> 8 * i);
  memcpy(bytes + 8, header, text);
  write_file(p, name, bytes, 8 + text + data);
}

/* FC alone: fc.weight of 2x4 and fc.bias of 2, 40 bytes. */
static sn_net *small_net(void) {
  return image_net((sn_shape){1, 1, 2, 2}, 2);
}

#define WEIGHT(offsets) "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[" offsets "]}"
#define BIAS(offsets)   "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" offsets "]}"

static void lying_headers(void **state) {
  static const struct {
    const char *header, *words;
  } cases[] = {
      {"{" WEIGHT("0,32") "," BIAS("32,40") "}", NULL},
      {"{" BIAS("0,8") "," WEIGHT("8,40") "}", NULL}, /* any order */
      {"{\"__metadata__\":{\"format\":\"pt\"}," WEIGHT("0,32") "," BIAS("32,40") "}   ", NULL},
      {"[]", "no JSON object follows its first 8 bytes"},
      {"{}", "has 40 bytes behind the last tensor"},
      {"{} x", "header:1: not valid JSON"},
      {"{\"fc.weight\":7}", "header:1: expected an object"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4]}}", "\"data_offsets\" is missing"},
      {"{\"fc.weight\":{\"shape\":[2,4],\"data_offsets\":[0,32]}}", "\"dtype\" is missing"},
      {"{\"fc.weight\":{\"dtype\":1,\"shape\":[2,4],\"data_offsets\":[0,32]}}", "\"dtype\" must be a text"},
      {"{\"fc.weight\":{\"dtype\":\"BF16\",\"shape\":[2,4],\"data_offsets\":[0,16]}}",
       "tensor \"fc.weight\" is of type BF16; read is F32 alone"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,-4],\"data_offsets\":[0,32]}}", "must be a whole number from 0"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,0.5],\"data_offsets\":[0,32]}}", "must be a whole number"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,1e300],\"data_offsets\":[0,32]}}", "must be a whole number"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
       "has a shape of more numbers than any file"}, /* 2^64 wraps to 0 */
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}",
       "has more than 8 dimensions"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32,32]}}", "needs two \"data_offsets\""},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,\"32\"]}}", "must be a whole number"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32],\"more\":1}}",
       "unknown key \"more\""},
      {"{" WEIGHT("0,31") "," BIAS("32,40") "}", "has bytes 0 to 31, which are not the 2x4 of its shape"},
      {"{" WEIGHT("0,36") "," BIAS("32,40") "}", "which are not the 2x4 of its shape"},
      {"{" WEIGHT("32,0") "," BIAS("32,40") "}", "has bytes 32 to 0"},
      {"{" WEIGHT("0,32") "," BIAS("32,9007199254740993") "}", "must be a whole number"},
      {"{" WEIGHT("0,32") "," BIAS("36,44") "}", "ends at byte 44 of the data, of which there are 40"},
      {"{" WEIGHT("0,32") "," BIAS("0,8") "}", "begins at byte 0 of the data, 8 bytes before another one ends"},
      {"{" WEIGHT("8,40") "," BIAS("4,12") "}", "begins at byte 4 of the data, 4 bytes behind the one before it"},
      {"{" WEIGHT("0,32") "}", "has 8 bytes behind the last tensor"},
      {"{" WEIGHT("0,32") "," BIAS(
           "32,40") ",\"x\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[40,40]}}",
       "tensor \"x?[2J\" is none of small"}, /* safe for a terminal */
      {"{" WEIGHT("0,32") ",\"fc.bais\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}",
       "has no tensor \"fc.bias\" (2), which small needs; snsim run --save-weights writes a file with all names"},
      {"{" WEIGHT("0,32") "," BIAS("32,40") ",\"fc.bais\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[40,40]}}",
       "tensor \"fc.bais\" is none of small (did you mean \"fc.bias\"?)"},
      {"{" WEIGHT("0,32") "," BIAS("32,40") ",\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[40,40]}}",
       "tensor \"fc.bias\" stands twice"},
      {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}," BIAS("32,40") "}",
       "tensor \"fc.weight\" is 4x2, small needs 2x4"},
      {"{\"__metadata__\":[]," WEIGHT("0,32") "," BIAS("32,40") "}", "\"__metadata__\" must be an object"},
      {"{\"__metadata__\":{\"a\":1}," WEIGHT("0,32") "," BIAS("32,40") "}", "metadata are texts in quotes"},
      {"{\"__metadata__\":{},\"__metadata__\":{}," WEIGHT("0,32") "," BIAS("32,40") "}", "stands twice"},
  };
  sn_net *net = small_net();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    write_header(*state, "a", strlen(cases[i].header), cases[i].header, 40);
    if (cases[i].words) {
      refuse_weights(*state, "a", net, cases[i].words);
      continue;
    }
    sn_weights *w = sn_weights_open(path_of(*state, "a"), net, &err);
    if (!w) fail_msg("%s", err.text);
    sn_weights_close(w);
  }
  sn_net_free(net);
}

/* Lengths of headers that are not there, and a header that is nothing but brackets. */
static void hostile_headers(void **state) {
  static const uint64_t lengths[] = {57, 1u << 27, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
  sn_net *net = small_net();
  char deep[4000];
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    write_header(*state, "a", lengths[i], "{\"fc.weight\":", 40);
    refuse_weights(*state, "a", net, "its header should have");
  }
  write_header(*state, "a", 0, "{}", 40);
  refuse_weights(*state, "a", net, "the file is empty");
  snprintf(deep, sizeof deep, "{\"a\":%03000d}", 0);
  for (char *c = strchr(deep, '0'); *c == '0'; c++) *c = '[';
  write_header(*state, "a", strlen(deep), deep, 0);
  refuse_weights(*state, "a", net, "nested");
  write_header(*state, "a", 4, "{\"\xff\"", 0);
  refuse_weights(*state, "a", net, "not valid UTF-8");
  sn_net_free(net);
}

/* ---- what happens to files ---- */

static void not_finite(void **state) {
  sn_net *net = make_net();
  sn_state *s = make_state(net, 1);
  sn_err err = SN_ERR_INIT;
  s->parameters[s->parameter_offset[3] + 5] = INFINITY; /* of the FC, the third layer behind DATA */
  save(*state, "w", SN_SAVE_WEIGHTS, s);
  sn_weights *w = sn_weights_open(path_of(*state, "w"), net, &err);
  if (!w) fail_msg("%s", err.text);
  assert_int_equal(sn_weights_read(w, s, &err), SN_BAD_INPUT);
  assert_error(&err, SN_BAD_INPUT, "tensor \"fc.weight\" has a number that is not finite, at place 5");
  sn_weights_close(w);
  sn_state_free(s);
  sn_net_free(net);
}

static void changed(void **state) {
  sn_net *net = small_net();
  sn_state *s = make_state(net, 1);
  sn_err err = SN_ERR_INIT;
  place *p = *state;
  char path[PATH_ROOM];
  save(p, "w", SN_SAVE_WEIGHTS, s);
  snprintf(path, sizeof path, "%s", path_of(p, "w"));
  sn_weights *w = sn_weights_open(path, net, &err);
  assert_non_null(w);
  save(p, "w", SN_SAVE_WEIGHTS, s); /* replaced: what was opened is still whole */
  assert_int_equal(sn_weights_read(w, s, &err), SN_OK);
  sn_weights_close(w);
  w = sn_weights_open(path, net, &err);
  assert_non_null(w);
  write_file(p, "w", "x", 1);
  assert_int_equal(sn_weights_read(w, s, &err), SN_BAD_FILE);
  assert_error(&err, SN_BAD_FILE, "was changed");
  sn_weights_close(w);
  sn_state_free(s);
  sn_net_free(net);
}

static void not_written(void **state) {
  sn_net *net = small_net();
  sn_state *s = make_state(net, 1);
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_weights_save("/dev/full", SN_SAVE_WEIGHTS, s, &err), SN_BAD_FILE);
  assert_error(&err, SN_BAD_FILE, "/dev/full: cannot be written: No space left");
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_weights_save(path_of(*state, "no/w"), SN_SAVE_WEIGHTS, s, &err), SN_BAD_FILE);
  assert_error(&err, SN_BAD_FILE, "No such file");
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_weights_open(path_of(*state, "w"), net, &err));
  assert_error(&err, SN_BAD_FILE, "No such file");
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_weights_open(((place *)*state)->folder, net, &err));
  assert_error(&err, SN_BAD_FILE, "is no regular file");
  sn_state_free(s);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST_IN_PLACE(come_back),       TEST_IN_PLACE(form),          TEST_IN_PLACE(form_of_deconv),
      TEST_IN_PLACE(gradients),       TEST_IN_PLACE(wrong_lengths), TEST_IN_PLACE(lying_headers),
      TEST_IN_PLACE(hostile_headers), TEST_IN_PLACE(not_finite),    TEST_IN_PLACE(changed),
      TEST_IN_PLACE(not_written),
  };
  return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
