/* ONNX import: calls of PyTorch put together again, what comes beside the images, and forms of other exporters
 * (tests/fuzz/corpus/onnx/dropped, beside, once, forms); how values lie in memory. */
#include "tests/models/onnx_message.h"

#include <inttypes.h>
#include <math.h>

#define CORPUS SNSIM_SOURCE_DIR "/tests/fuzz/corpus/onnx/"

static sn_net *load(const char *path, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(path, batch, 0, &err);
  if (!net) fail_msg("%s: %s", path, err.text);
  return net;
}

static uint32_t count_of(const sn_net *net, sn_op op) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) count += net->layers[i].op == op;
  return count;
}

/* Seven nodes of one call are one operator; what three FCs read, and what is seen in another order, is copied. A buffer
 * is no parameter. */
static void attention_that_drops(void **state) {
  (void)state;
  for (uint32_t batch = 1; batch <= 3; batch++) {
    sn_net *net = load(CORPUS "dropped.onnx", batch);
    const sn_layer *attention = named(net, "node_scaled_dot_product_attention");
    assert_true(attention->op == SN_ATTENTION && attention->attr->causal && attention->attr->heads == 2);
    assert_true(fabs(attention->attr->ratio - 0.1) < 1e-6 && !attention->attr->parts && attention->attr->keys == 0);
    assert_shape(attention, batch, 8, 16, 1);
    assert_int_equal(count_of(net, SN_MATMUL) + count_of(net, SN_PROBABILITIES) + count_of(net, SN_DROPOUT), 0);
    assert_int_equal(count_of(net, SN_CONCAT), 3 + 1);
    assert_int_equal(net->parameters, (8 * 27 + 8) + 4 * (64 + 8) + (8 * 5 + 5));
    sn_net_free(net);
  }
}

/* Sines of a step's number and text are GIVENs; a number a channel is added to all pixels; keys are not as many as
 * queries. */
static void beside_images(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "beside.onnx:loss=mse", 3);
  assert_shape(named(net, "step/linear/given1"), 3, 6, 1, 1);
  assert_int_equal(named(net, "step/linear")->parameters, 6 * 8 + 8);
  assert_int_equal(named(net, "node_add/wide1")->op, SN_EXPAND);
  assert_shape(named(net, "node_add"), 3, 8, 4, 4);
  assert_int_equal(count_of(net, SN_GIVEN), 2); /* two FCs read the text */
  const sn_layer *attention = named(net, "node_scaled_dot_product_attention");
  assert_true(attention->attr->keys == 5 && attention->macs == UINT64_C(2) * 3 * 16 * 5 * 8);
  assert_shape(named(net, "loss"), 3, 4, 4, 4);
  sn_net_free(net);
}

/* A bias of scores that a network makes of distances is of one image, however many there are; labels that come with
 * images are looked up; two learned tokens, what is sliced to nothing, and rows put around an axis of three. */
static void once_for_all_images(void **state) {
  (void)state;
  for (uint32_t batch = 1; batch <= 5; batch += 2) {
    sn_net *net = load(CORPUS "once.onnx", batch);
    const sn_layer *distances = named(net, "m/linear/given1"), *bias = named(net, "node_GatherND_18");
    assert_true(distances->op == SN_GIVEN && distances->attr->once);
    assert_shape(distances, 1, 2, 1, 9);
    assert_shape(named(net, "n/linear_1"), 1, 2, 9, 1);
    assert_shape(bias, 1, 2, 36, 1);
    assert_shape(named(net, "node_add_1"), batch, 2, 6, 6);
    const sn_layer *label = named(net, "label/embedding");
    assert_true(label->op == SN_EMBEDDING && label->parameters == 4 * 6 && label->out.n == batch);
    assert_int_equal(count_of(net, SN_TOKEN), 2);
    assert_shape(named(net, "node_pad"), batch, 6, 1, 9);
    assert_int_equal(named(net, "node_cat_1")->n_inputs, 1);
    assert_int_equal(net->parameters, (6 * 12 + 6) + 12 + 10 + 12 + 24 + (6 * 18 + 18) + 2 + 49);
    sn_net *other = sn_net_rebatch(net, 7, &(sn_err)SN_ERR_INIT);
    assert_non_null(other);
    assert_shape(named(other, "n/linear_1"), 1, 2, 9, 1);
    assert_shape(named(other, "node_add_1"), 7, 2, 6, 6);
    sn_net_free(other);
    sn_net_free(net);
  }
}

static void forms_of_others(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "forms.onnx", 3);
  assert_shape(named(net, "same/pad1"), 3, 3, 9, 9); /* SAME_UPPER: one row and column behind */
  assert_true(named(net, "same")->parameters == 8 * 27 && named(net, "same")->out.h == 4);
  assert_int_equal(named(net, "exp")->attr->act, SN_ACT_EXP); /* of two branches in each other */
  assert_int_equal(named(net, "sub")->op, SN_JOIN);
  assert_true(named(net, "length")->op == SN_POOL && named(net, "length")->attr->pool == SN_POOL_MAX);
  assert_int_equal(named(net, "div")->op, SN_MUL);
  assert_int_equal(named(net, "sum")->n_inputs, 3);
  assert_true(named(net, "largest")->attr->pool == SN_POOL_MAX && named(net, "all")->attr->pool == SN_POOL_AVERAGE);
  assert_shape(named(net, "all"), 3, 32, 1, 1);
  assert_true(named(net, "sin")->attr->act == SN_ACT_SIN && named(net, "cos")->attr->act == SN_ACT_COS);
  assert_shape(named(net, "norm"), 3, 8, 16, 1);
  assert_true(named(net, "scores")->op == SN_MATMUL && named(net, "scores")->macs == 3 * 16 * 16 * 8);
  assert_true(named(net, "weights")->op == SN_FC && named(net, "weights")->parameters == 8 * 6);
  assert_int_equal(net->parameters, 8 * 27 + 16 + 48 + 48);
  sn_net_free(net);
}

static void put_attribute(message *node, const char *name, uint32_t field, const message *value) {
  message attribute = {.size = 0};
  put_text(&attribute, 1, name);
  put_message(&attribute, field, value);
  put_message(node, 5, &attribute);
}

/* An If whose condition is `condition`, of branches that are the same graph. */
static void put_if(message *graph, const char *condition, const char *out, const message *branch) {
  message node = {.size = 0};
  put_text(&node, 1, condition);
  put_text(&node, 2, out);
  put_text(&node, 3, "either");
  put_text(&node, 4, "If");
  put_attribute(&node, "then_branch", 6, branch);
  put_attribute(&node, "else_branch", 6, branch);
  put_message(graph, 1, &node);
}

static void conditions(void **state) {
  (void)state;
  message branch = {.size = 0}, graph = {.size = 0}, value = {.size = 0};
  put_node(&branch, "Relu", "relu", "x", "y");
  put_text(&value, 1, "y");
  put_message(&branch, 12, &value);
  put_input(&graph, "x");
  put_node(&graph, "GlobalAveragePool", "pool", "x", "c");
  put_if(&graph, "c", "z", &branch);
  refuses(&graph, 17, "node \"either\" (If): its condition is computed by the network; or record it: docs/record.md");
}

/* One branch in the other: deeper than anybody writes. */
static void branches_in_branches(void **state) {
  (void)state;
  message deep = {.size = 0}, graph = {.size = 0};
  put_node(&deep, "Relu", "relu", "x", "y");
  for (int i = 0; i < 10; i++) {
    message node = {.size = 0}, outer = {.size = 0};
    put_text(&node, 1, "x");
    put_text(&node, 2, "y");
    put_text(&node, 4, "If");
    put_attribute(&node, "then_branch", 6, &deep);
    put_message(&outer, 1, &node);
    deep = outer;
  }
  graph = deep;
  put_input(&graph, "x");
  refuses(&graph, 17, "branches stand in branches, more than 8 deep");
}

static void put_einsum(message *graph, const char *equation, const char *first, const char *second) {
  message node = {.size = 0}, attribute = {.size = 0};
  put_text(&node, 1, first);
  if (second) put_text(&node, 1, second);
  put_text(&node, 2, "z");
  put_text(&node, 3, "sum");
  put_text(&node, 4, "Einsum");
  put_text(&attribute, 1, "equation");
  put_text(&attribute, 4, equation);
  put_message(&node, 5, &attribute);
  put_message(graph, 1, &node);
}

static void wrong_einsums(void **state) {
  (void)state;
  static const struct {
    const char *equation, *second, *reason;
  } cases[] = {{"...ij->...ji", NULL, "only letters of one or two values are known"},
               {"nchw", NULL, "only letters"},
               {"nchw->nchw,n", NULL, "only letters"},
               {"nccw->nw", NULL, "only letters"},
               {"nch->nhc", NULL, "only letters"},
               {"nchw->nc", NULL, "it sums one value"},
               {"nchw,nchx->nchwx", NULL, "only letters"},
               {"nchw,nch->nw", "x", "its equation has another number of axes"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    message graph = {.size = 0};
    put_input(&graph, "x");
    put_einsum(&graph, cases[i].equation, "x", cases[i].second);
    put_output(&graph, "z");
    refuses(&graph, 17, cases[i].reason);
  }
}

/* Reductions of images, blocks that do not divide, values that do not go together. */
static void what_is_still_refused(void **state) {
  (void)state;
  message graph = {.size = 0};
  put_input(&graph, "x");
  message all = graph, blocks = graph, unlike = graph;
  put_node(&all, "ReduceSum", "all", "x", "z");
  refuses(&all, 17, "node \"all\" (ReduceSum): it is over all images");
  message node = {.size = 0};
  put_text(&node, 1, "x");
  put_text(&node, 2, "z");
  put_text(&node, 3, "shuffle");
  put_text(&node, 4, "DepthToSpace");
  put_message(&blocks, 1, &node);
  put_node(&blocks, "GlobalAveragePool", "pool", "z", "y");
  put_output(&blocks, "y");
  sn_err err = SN_ERR_INIT;
  message model = {.size = 0}, version = {.size = 0};
  put_number(&version, 2, 17);
  put_message(&model, 8, &version);
  put_message(&model, 7, &blocks);
  sn_net *net = import(model.bytes, model.size, &err); /* blocks of one pixel: a copy */
  if (!net) fail_msg("%s", err.text);
  assert_shape(named(net, "pool"), 2, 3, 1, 1);
  sn_net_free(net);
  put_einsum(&unlike, "nchw->nhwc", "x", NULL);
  put_pair(&unlike, "Sub", "less", (const char *const[]){"x", "z"}, "y");
  refuses(&unlike, 17, "its inputs have dimensions that do not go together");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention_that_drops),  cmocka_unit_test(beside_images),
      cmocka_unit_test(forms_of_others),       cmocka_unit_test(conditions),
      cmocka_unit_test(branches_in_branches),  cmocka_unit_test(wrong_einsums),
      cmocka_unit_test(what_is_still_refused), cmocka_unit_test(once_for_all_images),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
