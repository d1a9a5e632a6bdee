/* Blocks of JSON networks: what is written out, names, what flows in, what a use gives, and what is refused. */
#include "models/zoo/zoo.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A network of 3x8x8 images; blocks begin on line 2, layers behind them. */
#define NET(blocks, layers)                                                                                            \
  "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"blocks\":{\n" blocks "},\"layers\":[" layers END
#define END       "{\"name\":\"end\",\"op\":\"FC\",\"channels\":10},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}"
#define ACT(name) "{\"name\":\"" name "\",\"op\":\"ACT\"}"

typedef struct edge {
  const char *layer;
  uint32_t input;
  const char *source;
} edge;

static void check_edges(const sn_net *net, const edge *edges, size_t count) {
  for (size_t i = 0; i < count; i++) assert_string_equal(source(net, edges[i].layer, edges[i].input), edges[i].source);
}

static void example_loads(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/models/examples/stages.json", 4, 0, &err);
  if (!net) fail_msg("%s", err.text);
  static const edge edges[] = {{"conv1.1.stage1", 0, "stem"},          {"join.1.stage1", 1, "stem"},
                               {"join.3.stage1", 1, "relu2.2.stage1"}, {"wider", 0, "relu2.3.stage1"},
                               {"join.1.stage2", 1, "wider"},          {"pool", 0, "relu2.4.stage2"}};
  check_edges(net, edges, sizeof edges / sizeof edges[0]);
  assert_true(named(net, "conv1.3.stage1")->out.c == 16 && named(net, "conv2.4.stage2")->out.c == 32);
  assert_int_equal(net->parameters,
                   3 * 16 * 9 + 3 * 2 * (16 * 16 * 9 + 32) + 16 * 32 * 9 + 4 * 2 * (32 * 32 * 9 + 64) + 330);
  sn_net_free(net);
}

/* Without "repeat" names get no number; a use's name is its last layer, before it too; "input" is what flows in. */
static void uses(void **state) {
  (void)state;
  sn_net *net = load_net(NET("\"two\":[" ACT("a") ",{\"name\":\"j\",\"op\":\"JOIN\",\"inputs\":[\"a\",\"@in\",\"q\"]}]",
                             ACT("q") ",{\"block\":\"two\",\"name\":\"x\",\"input\":\"y\"},"
                                      "{\"block\":\"two\",\"name\":\"y\",\"input\":\"data\",\"repeat\":2},"
                                      "{\"name\":\"k\",\"op\":\"JOIN\",\"inputs\":[\"x\",\"y\",\"j.1.y\"]},"),
                         2);
  static const edge edges[] = {{"a.x", 0, "j.2.y"},   {"j.x", 1, "j.2.y"},   {"a.1.y", 0, "data"}, {"j.1.y", 1, "data"},
                               {"a.2.y", 0, "j.1.y"}, {"j.2.y", 1, "j.1.y"}, {"j.2.y", 2, "q"},    {"k", 0, "j.x"},
                               {"k", 1, "j.2.y"},     {"k", 2, "j.1.y"}};
  check_edges(net, edges, sizeof edges / sizeof edges[0]);
  sn_net_free(net);
}

/* Blocks within blocks and repeats: what flows into the outer one flows into the inner one that begins it, values are
 * handed on, and a name means what stands in the same use. */
static void nested(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/blocks.json", 2, 0, &err);
  if (!net) fail_msg("%s", err.text);
  static const edge edges[] = {{"c.first.1.x", 0, "data"},
                               {"c.again.1.1.x", 0, "a.first.1.x"},
                               {"c.again.2.1.x", 0, "a.again.1.1.x"},
                               {"c.first.2.x", 0, "a.again.2.1.x"},
                               {"c.first.y", 0, "data"},
                               {"c.again.2.y", 0, "a.again.1.y"},
                               {"fx", 0, "a.again.2.2.x"},
                               {"fy", 0, "a.again.2.y"}};
  check_edges(net, edges, sizeof edges / sizeof edges[0]);
  assert_true(named(net, "c.first.2.x")->attr->kernel_w == 3 && named(net, "c.first.y")->attr->kernel_w == 1);
  assert_true(named(net, "c.again.1.1.x")->attr->kernel_w == 2 && named(net, "c.again.2.y")->attr->kernel_h == 1);
  sn_net_free(net);
  net = sn_net_load_depth(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/blocks.json", 5, 2, 0, &err);
  if (!net) fail_msg("%s", err.text);
  assert_string_equal(source(net, "fx", 0), "a.again.2.5.x");
  sn_net_free(net);
}

/* A value can be a size, one of a pair, a flag, a number or a word. */
static void values(void **state) {
  (void)state;
  sn_net *net = load_net(
      NET("\"b\":[{\"name\":\"c\",\"op\":\"CONV\",\"channels\":4,\"kernel\":\"$k\",\"pad\":[\"$p\",2],\"bias\":\"$b\"},"
          "{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"$m\",\"slope\":\"$s\"}]",
          "{\"block\":\"b\",\"name\":\"x\",\"with\":{\"k\":[3,5],\"p\":1,\"b\":false,\"m\":\"leaky\",\"s\":0.5}},"),
      2);
  const sn_attr *c = named(net, "c.x")->attr, *a = named(net, "a.x")->attr;
  assert_true(c->kernel_h == 3 && c->kernel_w == 5 && c->pad_h == 1 && c->pad_w == 2 && !c->bias);
  assert_true(a->act == SN_ACT_LEAKY && a->slope == 0.5);
  sn_net_free(net);
}

#define USE(block, name) "{\"block\":\"" block "\",\"name\":\"" name "\"}"
static const struct {
  const char *text, *message;
} bad_nets[] = {
    {NET("\"unit\":[" ACT("a") "]", USE("unitt", "x") ","),
     "block \"unitt\" is not among \"blocks\" (did you mean \"unit\"?)"},
    {NET("", USE("unit", "x") ","), "block \"unit\" is not among \"blocks\""},
    {NET("\"u\":[" ACT("a") "]", ACT("b") ","), "t.json:2: block \"u\" is never used"},
    {NET("\"u\":[]", USE("u", "x") ","), "t.json:2: a block without layers"},
    {NET("\"u\":{}", USE("u", "x") ","), "t.json:2: block \"u\" must be a list of layers"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\"},"), "t.json:2: \"name\" is missing"},
    {NET("\"u\":[" ACT("a") "]", USE("u", "x y") ","), "the name of a block's use has 1 to 200 bytes"},
    {NET("\"u\":[" ACT("a") "]", USE("u", "@x") ","), "the name of a block's use has 1 to 200 bytes"},
    {NET("\"u\":[" ACT("a") "]", USE("u", "x") "," USE("u", "x") ","), "another layer"},
    {NET("\"u\":[" ACT("a") "]", USE("u", "x") "," ACT("x") ","), "another layer or block has the name \"x\" already"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"input\":\"why\"},"),
     "the input of the block that it begins is not defined"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"input\":7},"),
     "the input of the block that it begins"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"input\":\"x\"},"), "layers form a cycle"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"times\":2},"), "unknown key \"times\""},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"with\":3},"), "\"with\" must be an object"},
    {NET("\"u\":[" ACT("a") "]", "{\"block\":\"u\",\"name\":\"x\",\"depth\":true},"), "can be the depth"},
    {NET("\"u\":[" ACT("a") "],\"u\":[]", USE("u", "x") ","), "t.json:2: the key \"u\" stands twice"},
    {NET("\"u\":[{\"name\":\"c\",\"op\":\"FC\",\"channels\":\"$n\"}]", USE("u", "x") ","),
     "t.json:2: layer \"c.x\": \"$n\" is not given; write \"with\": {\"n\": ...}"},
    {NET("\"u\":[{\"name\":\"c\",\"op\":\"FC\",\"channels\":\"$n\"}]",
         "\n{\"block\":\"u\",\"name\":\"x\",\"with\":{\"n\":0}},"),
     "t.json:3: layer \"c.x\": \"channels\" must be a whole number from 1"},
    {NET("\"u\":[" USE("u", "y") "]", USE("u", "x") ","), "t.json:2: block \"u\" would hold itself"},
    {NET("\"u\":[" USE("v", "y") "],\"v\":[" USE("u", "z") "]", USE("u", "x") ","), "block \"u\" would hold itself"},
    {NET("\"a\":[" USE("b", "n") "],\"b\":[" USE("c", "n") "],\"c\":[" USE("d", "n") "],\"d\":[" USE(
             "e",
             "n") "],\"e\":[" USE("f",
                                  "n") "],\"f\":[" USE("g",
                                                       "n") "],\"g\":[" USE("h",
                                                                            "n") "],\"h\":[" USE("i",
                                                                                                 "n") "],\"i\":"
                                                                                                      "[" ACT("x") "]",
         USE("a", "n") ","),
     "repeats are nested more than 8 deep"},
    {NET("\"u\":[" ACT("a") "," ACT("b") "]", "{\"block\":\"u\",\"name\":\"x\",\"repeat\":1250000},"),
     "more than 1250000 layers, repeats written out"},
};

static void refuses(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_nets / sizeof bad_nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_from_json("t.json", bad_nets[i].text, strlen(bad_nets[i].text), 2, &err);
    if (net) fail_msg("loads, but wanted \"%s\"", bad_nets[i].message);
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (!strstr(err.text, bad_nets[i].message)) fail_msg("wanted \"%s\", got \"%s\"", bad_nets[i].message, err.text);
  }
}

/* Blocks that hold each other twice, as deep as is allowed, each level repeated: given up at the limit, at once. */
static void refuses_growth(void **state) {
  (void)state;
  char text[2000];
  int used = snprintf(text, sizeof text,
                      "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"blocks\":{\"b0\":[" ACT("a") "]");
  for (int i = 1; i < 8; i++)
    used += snprintf(text + used, sizeof text - (size_t)used,
                     ",\"b%d\":[{\"block\":\"b%d\",\"name\":\"x\",\"repeat\":999}]", i, i - 1);
  snprintf(text + used, sizeof text - (size_t)used, "},\"layers\":[" USE("b7", "x") "," END);
  sn_err err = SN_ERR_INIT;
  assert_null(sn_net_from_json("t.json", text, strlen(text), 2, &err));
  assert_non_null(strstr(err.text, "more than 1250000"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(example_loads), cmocka_unit_test(uses),    cmocka_unit_test(nested),
      cmocka_unit_test(values),        cmocka_unit_test(refuses), cmocka_unit_test(refuses_growth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
