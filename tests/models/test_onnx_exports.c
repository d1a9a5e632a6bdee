/* ONNX import: what exporters write in other forms than their models have it. */
#include "tests/models/onnx_message.h"

#include <inttypes.h>

static void finish_model(message *model, const message *graph) {
  message version = {.size = 0};
  put_number(&version, 2, 23);
  put_message(model, 8, &version);
  put_message(model, 7, graph);
}

/* A Constant of a list of floats, packed or one field each. */
static void put_floats(message *graph, const char *out, const float *values, uint32_t n, bool packed) {
  message node = {.size = 0}, attribute = {.size = 0};
  put_text(&node, 2, out);
  put_text(&node, 4, "Constant");
  put_text(&attribute, 1, "value_floats");
  if (packed) put_bytes(&attribute, 7, values, n * sizeof *values);
  for (uint32_t i = 0; !packed && i < n; i++) {
    put_varint(&attribute, 7 << 3 | 5);
    memcpy(attribute.bytes + attribute.size, &values[i], sizeof *values);
    attribute.size += sizeof *values;
  }
  put_number(&attribute, 20, 6);
  put_message(&node, 5, &attribute);
  put_message(graph, 1, &node);
}

static void put_resize(message *graph) {
  message node = {.size = 0};
  put_text(&node, 1, "x");
  put_text(&node, 1, "");
  put_text(&node, 1, "scales");
  put_text(&node, 2, "y");
  put_text(&node, 3, "up");
  put_text(&node, 4, "Resize");
  put_message(graph, 1, &node);
  put_node(graph, "GlobalAveragePool", "mean", "y", "z");
  put_output(graph, "z");
}

/* As PyTorch's newer exporter writes the factors of nn.Upsample. */
static void factors_as_floats(void **state) {
  (void)state;
  static const float factors[] = {1, 1, 2, 1.5F};
  for (int packed = 0; packed < 2; packed++) {
    message graph = {.size = 0}, model = {.size = 0};
    put_input(&graph, "x");
    put_floats(&graph, "scales", factors, 4, packed);
    put_resize(&graph);
    finish_model(&model, &graph);
    sn_err err = SN_ERR_INIT;
    sn_net *net = import(model.bytes, model.size, &err);
    if (!net) fail_msg("%s", err.text);
    assert_shape(named(net, "up"), 2, 3, 16, 12);
    sn_net_free(net);
  }
}

/* More floats than are ever looked at, and constants that are no numbers. */
static void constants_that_are_not_read(void **state) {
  (void)state;
  static const float many[20] = {1};
  static const char *const kinds[] = {"sparse_value", "value_string", "value_strings"};
  message graph = {.size = 0};
  put_input(&graph, "x");
  message long_list = graph;
  put_floats(&long_list, "scales", many, 20, true);
  put_resize(&long_list);
  refuses(&long_list, 23, "(Resize): only sizes of rows and columns are known");
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    message other = graph, node = {.size = 0}, attribute = {.size = 0};
    char expected[80];
    put_text(&node, 2, "scales");
    put_text(&node, 3, "text");
    put_text(&node, 4, "Constant");
    put_text(&attribute, 1, kinds[i]);
    put_message(&node, 5, &attribute);
    put_message(&other, 1, &node);
    put_resize(&other);
    snprintf(expected, sizeof expected, "node \"text\" (Constant): its %s is not known", kinds[i]);
    refuses(&other, 23, expected);
  }
}

/* nn.TransformerEncoderLayer exported with a batch of two, which stands second in its shapes and in a product with the
 * heads: asked for with others it has the same layers. */
static void any_batch_of_heads(void **state) {
  (void)state;
  for (uint32_t batch = 1; batch <= 5; batch += 2) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/onnx/heads.onnx", batch, 0, &err);
    if (!net) fail_msg("%s", err.text);
    assert_shape(named(net, "/e/self_attn/MatMul_1"), batch, 2, 5, 5);
    assert_shape(named(net, "/e/Add"), batch, 6, 5, 1);
    assert_int_equal(net->parameters, 393); /* sum(p.numel() for p in net.parameters()) */
    sn_net_free(net);
  }
}

/* nn.RMSNorm, which the newer exporter writes as one operator. */
static void fused_norm(void **state) {
  (void)state;
  static const uint64_t factors[] = {8};
  message graph = {.size = 0}, model = {.size = 0};
  put_input(&graph, "x");
  put_elsewhere(&graph, "factors", 1, factors, 1);
  put_pair(&graph, "RMSNormalization", "norm", (const char *const[]){"x", "factors"}, "y");
  put_output(&graph, "y");
  finish_model(&model, &graph);
  sn_err err = SN_ERR_INIT;
  sn_net *net = import(model.bytes, model.size, &err);
  if (!net) fail_msg("%s", err.text);
  assert_true(named(net, "norm")->op == SN_RMS_NORM && named(net, "norm")->attr->fused);
  sn_net_free(net);
}

/* A convolution of 3 x 3 with a bias of that name; `rule`: what its exporter says it was rewritten by. */
static void put_conv(message *graph, const char *bias, const char *rule) {
  static const uint64_t weights[] = {4, 3, 3, 3}, of_bias[] = {4};
  message node = {.size = 0}, metadata = {.size = 0};
  put_elsewhere(graph, "w", 1, weights, 4);
  put_elsewhere(graph, bias, 1, of_bias, 1);
  put_text(&node, 1, "x");
  put_text(&node, 1, "w");
  put_text(&node, 1, bias);
  put_text(&node, 2, "y");
  put_text(&node, 3, "c");
  put_text(&node, 4, "Conv");
  put_text(&metadata, 1, "pkg.onnxscript.rewriter.rule_name");
  put_text(&metadata, 2, rule);
  put_message(&node, 9, &metadata);
  put_message(graph, 1, &node);
}

/* Batch norms that were folded into a convolution would be missing in training. */
static void folded_norms(void **state) {
  (void)state;
  static const struct {
    const char *producer, *bias, *rule, *line; /* NULL: it is as the user wrote it */
  } files[] = {
      {"pytorch", "c.bias", "RemoveOptionalBiasFromConv, FuseBatchNormIntoConv", "dynamo=True, optimize=False"},
      {"pytorch", "onnx::Conv_193", "", "dynamo=False, training="},
      {"pytorch", "193", "", "dynamo=False, training="},
      {"", "_v_193", "", "batch norms were folded into 1 layer"},
      {"", "c.weight_ConvBnFusion_BN_B_c.bn.bias", "", "batch norms were folded"},
      {"", "c/FusedBatchNormV3_bias", "", "batch norms were folded"},
      {"pytorch", "c.bias", "RemoveOptionalBiasFromConv", NULL},
      {"tool", "193", "", NULL},
      {"pytorch", "features.0.bias", "", NULL},
  };
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    message graph = {.size = 0}, model = {.size = 0};
    sn_err err = SN_ERR_INIT;
    put_text(&model, 2, files[i].producer);
    put_input(&graph, "x");
    put_conv(&graph, files[i].bias, files[i].rule);
    put_node(&graph, "GlobalAveragePool", "mean", "y", "z");
    put_output(&graph, "z");
    finish_model(&model, &graph);
    sn_net *net = import(model.bytes, model.size, &err), *other = net ? sn_net_rebatch(net, 5, &err) : NULL;
    if (!other) fail_msg("%s", err.text);
    assert_int_equal(sn_net_check_training(other, true, &err), SN_OK);
    assert_int_equal(sn_net_check_training(other, false, &err), files[i].line ? SN_BAD_INPUT : SN_OK);
    if (files[i].line && !strstr(err.text, files[i].line)) fail_msg("%s", err.text);
    sn_net_free(other);
    sn_net_free(net);
  }
}

static void put_inputs(message *graph, const char *op, const char *name, const char *const in[3], const char *out) {
  message node = {.size = 0};
  for (int i = 0; i < 3 && in[i]; i++) put_text(&node, 1, in[i]);
  put_text(&node, 2, out);
  put_text(&node, 3, name);
  put_text(&node, 4, op);
  put_message(graph, 1, &node);
}

static uint64_t parameters_of(const message *graph) {
  message model = {.size = 0}, whole = *graph;
  sn_err err = SN_ERR_INIT;
  put_output(&whole, "y");
  finish_model(&model, &whole);
  sn_net *net = import(model.bytes, model.size, &err);
  if (!net) fail_msg("%s", err.text);
  uint64_t parameters = net->parameters;
  sn_net_free(net);
  return parameters;
}

/* What two nodes read is counted once, whatever the operator. */
static void shared_parameters(void **state) {
  (void)state;
  static const uint64_t square[] = {8, 8}, filter[] = {3, 3, 3, 3}, row[] = {8}, channel[] = {3};
  static const struct {
    const char *op, *first[3], *second[3];
    uint64_t parameters;
  } cases[] = {
      {"MatMul", {"x", "w"}, {"t", "w"}, 64},
      {"MatMul", {"x", "w"}, {"t", "v"}, 128},
      {"Conv", {"x", "f", "c"}, {"t", "f", "c"}, 81 + 3},
      {"Conv", {"x", "f", "c"}, {"t", "f", "d"}, 2 * (81 + 3)}, /* another bias: weights stand twice */
      {"BatchNormalization", {"x", "c", "d"}, {"t", "c", "d"}, 6},
      {"LayerNormalization", {"x", "r", "s"}, {"t", "r", "s"}, 16},
      {"LayerNormalization", {"x", "r", "s"}, {"t", "same", "s"}, 32}, /* equal by chance */
  };
  message given = {.size = 0};
  put_input(&given, "x");
  put_elsewhere(&given, "w", 1, square, 2);
  put_elsewhere(&given, "v", 1, square, 2);
  put_elsewhere(&given, "f", 1, filter, 4);
  put_elsewhere(&given, "c", 1, channel, 1);
  put_elsewhere(&given, "d", 1, channel, 1);
  put_elsewhere(&given, "r", 1, row, 1);
  put_elsewhere(&given, "s", 1, row, 1);
  put_node(&given, "Identity", "copy", "r", "same");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    message graph = given;
    put_inputs(&graph, cases[i].op, "one", cases[i].first, "t");
    put_inputs(&graph, cases[i].op, "two", cases[i].second, "y");
    uint64_t found = parameters_of(&graph);
    if (found != cases[i].parameters) fail_msg("%s, case %zu: %" PRIu64 " parameters", cases[i].op, i, found);
  }
}

/* A layer of three dimensions is a product and a sum: with the same bias it is the same layer, with another not. */
static void shared_products_with_biases(void **state) {
  (void)state;
  static const uint64_t square[] = {8, 8}, row[] = {8};
  for (int same = 0; same < 2; same++) {
    message graph = {.size = 0};
    put_input(&graph, "x");
    put_elsewhere(&graph, "w", 1, square, 2);
    put_elsewhere(&graph, "b", 1, row, 1);
    put_elsewhere(&graph, "c", 1, row, 1);
    put_pair(&graph, "MatMul", "one", (const char *const[]){"x", "w"}, "t");
    put_pair(&graph, "Add", "bias", (const char *const[]){"t", "b"}, "u");
    put_pair(&graph, "MatMul", "two", (const char *const[]){"u", "w"}, "v");
    put_pair(&graph, "Add", "other", (const char *const[]){"v", same ? "b" : "c"}, "y");
    assert_int_equal(parameters_of(&graph), same ? 72 : 144);
  }
}

/* A sum of three, and weights that are made of their shape. */
static void sums_and_filled_weights(void **state) {
  (void)state;
  static const uint64_t dims[] = {4};
  static const int64_t sides[] = {3, 3, 3, 3};
  message graph = {.size = 0}, shape = {.size = 0};
  put_input(&graph, "x");
  put_number(&shape, 1, dims[0]);
  put_number(&shape, 2, 7);
  put_text(&shape, 8, "sides");
  put_bytes(&shape, 9, sides, sizeof sides);
  put_message(&graph, 5, &shape);
  put_node(&graph, "ConstantOfShape", "fill", "sides", "w");
  put_inputs(&graph, "Sum", "three", (const char *const[]){"x", "x", "x"}, "t");
  put_inputs(&graph, "Conv", "conv", (const char *const[]){"t", "w", NULL}, "y");
  assert_int_equal(parameters_of(&graph), 81);
}

static uint8_t *put_length(uint8_t *at, size_t length) {
  for (; length >= 0x80; length >>= 7) *at++ = (uint8_t)(length | 0x80);
  *at++ = (uint8_t)length;
  return at;
}

/* Empty messages of two bytes each would take a hundred times as many: they are refused before room is made for them.
 */
static void empty_messages(void **state) {
  (void)state;
  enum { MESSAGES = 1000000, ALL = 2 * MESSAGES };
  static const uint8_t fields[] = {1, 5, 11, 12}; /* nodes, initializers, inputs, outputs */
  uint8_t *bytes = malloc(ALL + 16);
  assert_non_null(bytes);
  for (size_t i = 0; i < sizeof fields; i++) {
    sn_err err = SN_ERR_INIT;
    uint8_t *at = bytes;
    *at++ = 7 << 3 | 2;
    at = put_length(at, ALL);
    for (int k = 0; k < MESSAGES; k++) *at++ = (uint8_t)(fields[i] << 3 | 2), *at++ = 0;
    assert_null(import(bytes, (size_t)(at - bytes), &err));
    if (!strstr(err.text, "more than 16 times the file's size")) fail_msg("%s", err.text);
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(factors_as_floats),
      cmocka_unit_test(constants_that_are_not_read),
      cmocka_unit_test(any_batch_of_heads),
      cmocka_unit_test(fused_norm),
      cmocka_unit_test(folded_norms),
      cmocka_unit_test(shared_parameters),
      cmocka_unit_test(shared_products_with_biases),
      cmocka_unit_test(empty_messages),
      cmocka_unit_test(sums_and_filled_weights),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
