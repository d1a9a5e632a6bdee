/* Depth as a knob: what sn_net_load_depth() builds is what one would have written out, and what has no depth says so.
 */
#include "models/zoo/zoo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sn_net *load(const char *spec, uint32_t depth) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load_depth(spec, depth, 2, 0, &err);
  if (!net) fail_msg("%s: %s", spec, err.text);
  return net;
}

static void check_same(sn_net *a, sn_net *b) {
  assert_int_equal(a->n_layers, b->n_layers);
  assert_int_equal(a->parameters, b->parameters);
  assert_int_equal(a->macs, b->macs);
  for (uint32_t i = 0; i < a->n_layers; i++) assert_string_equal(a->layers[i].name, b->layers[i].name);
  sn_net_free(a);
  sn_net_free(b);
}

static void resnet_is_deepened_by_n3(void **state) {
  (void)state;
  check_same(load("resnet", 9), load("resnet:n1=3,n2=4,n3=9,n4=3", 0));
  check_same(load("resnet:n3=2,n1=5", 7), load("resnet:n1=5,n3=7", 0));
  check_same(load("resnet:n1=5,n3=2,n4=1", 1), load("resnet:n4=1,n3=1,n1=5", 0));
  check_same(load("resnet", 0), load("resnet50", 0));
  assert_string_equal(sn_net_depth_name("resnet:n1=2"), "n3");
  assert_string_equal(sn_net_depth_name("my/net"), "repeat");
  assert_null(sn_net_depth_name("vgg16"));
}

/* ---- JSON ---- */

#define HEAD         "{\"snsim_net\":1,\"name\":\"n\",\"input\":[1,4,4],\"layers\":["
#define TAIL         ",{\"name\":\"fc\",\"op\":\"FC\",\"channels\":2},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}"
#define LAYERS(name) "\"layers\":[{\"name\":\"" name "\",\"op\":\"ACT\"}]}"

/* Loads the text as a file at a depth; its error's text where it fails. */
static sn_net *load_text(const char *text, uint32_t depth, sn_err *err) {
  char path[] = "./test_depth_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
  close(file);
  sn_net *net = sn_net_load_depth(path, depth, 2, 0, err);
  unlink(path);
  return net;
}

static uint32_t layers_of(const char *text, uint32_t depth) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_text(text, depth, &err);
  if (!net) fail_msg("%s", err.text);
  uint32_t layers = net->n_layers;
  sn_net_free(net);
  return layers;
}

static void the_only_repeat_or_the_marked_one(void **state) {
  (void)state;
  static const char one[] = HEAD "{\"repeat\":3," LAYERS("a") TAIL;
  static const char two[] = HEAD "{\"repeat\":3," LAYERS("a") ",{\"repeat\":2,\"depth\":true," LAYERS("b") TAIL;
  static const char unmarked[] =
      HEAD "{\"repeat\":3,\"depth\":true," LAYERS("a") ",{\"repeat\":2,\"depth\":false," LAYERS("b") TAIL;
  static const char nested[] = HEAD "{\"repeat\":2,\"layers\":[{\"repeat\":3," LAYERS("a") "]}" TAIL;
  assert_int_equal(layers_of(one, 0), 3 + 3);
  assert_int_equal(layers_of(one, 10), 10 + 3);
  assert_int_equal(layers_of(two, 0), 5 + 3);
  assert_int_equal(layers_of(two, 10), 3 + 10 + 3);
  assert_int_equal(layers_of(unmarked, 1), 1 + 2 + 3);
  assert_int_equal(layers_of(nested, 5), 5 * 3 + 3);
}

static void says_what_is_wrong(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t depth;
    const char *said;
  } bad[] = {
      {HEAD "{\"name\":\"a\",\"op\":\"ACT\"}" TAIL, 3, "no repeat"},
      {HEAD "{\"repeat\":3," LAYERS("a") ",{\"repeat\":2," LAYERS("b") TAIL, 3, "several repeats"},
      {HEAD "{\"repeat\":3,\"depth\":true," LAYERS("a") ",{\"repeat\":2,\"depth\":true," LAYERS("b") TAIL, 0,
       "second repeat"},
      {HEAD "{\"repeat\":3,\"depth\":1," LAYERS("a") TAIL, 0, "true or false"},
      {HEAD "{\"repeat\":2,\"layers\":[{\"repeat\":3,\"depth\":true," LAYERS("a") "]}" TAIL, 0, "outer list"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(load_text(bad[i].text, bad[i].depth, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (!strstr(err.text, bad[i].said)) fail_msg("%zu: %s", i, err.text);
  }
}

static void fixed_depths_are_refused(void **state) {
  (void)state;
  static const char *const specs[] = {"vgg16", "resnet50", "nonsense", "resnet:n9=1", "resnet:n1=0"};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load_depth(specs[i], 4, 1, 0, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resnet_is_deepened_by_n3),
      cmocka_unit_test(the_only_repeat_or_the_marked_one),
      cmocka_unit_test(says_what_is_wrong),
      cmocka_unit_test(fixed_depths_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
