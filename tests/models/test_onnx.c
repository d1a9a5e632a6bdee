/* ONNX import: files that PyTorch 2.15 wrote (tests/fuzz/corpus/onnx, opset 17), and messages made here that are wrong.
 */
#include "tests/models/onnx_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORPUS SNSIM_SOURCE_DIR "/tests/fuzz/corpus/onnx/"

static sn_net *load(const char *path, uint32_t batch, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(path, batch, image, &err);
  if (!net) fail_msg("%s: %s", path, err.text);
  return net;
}

/* Exported with a batch of one, asked for with another. */
static void convolutions(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "cnn.onnx", 4, 0);
  const sn_layer *dilated = named(net, "/a/Conv"), *turned = named(net, "/d/ConvTranspose"),
                 *fc = named(net, "/f/Gemm");
  assert_true(dilated->attr->dilation_h == 2 && dilated->attr->pad_w == 2 && !dilated->attr->bias);
  assert_shape(dilated, 4, 4, 8, 8);
  assert_true(named(net, "/b/BatchNormalization")->op == SN_BN);
  assert_int_equal(named(net, "/g/InstanceNormalization")->op, SN_GROUP_NORM);
  assert_shape(named(net, "/ReduceMean"), 4, 4, 1, 1);
  assert_shape(named(net, "/Mul"), 4, 4, 8, 8);
  assert_shape(named(net, "/Concat"), 4, 8, 8, 8);
  assert_true(turned->op == SN_DECONV && turned->parameters == 4 * 2 * 4 + 2);
  assert_shape(turned, 4, 2, 16, 16);
  assert_int_equal(named(net, "/Sigmoid_1")->attr->act,
                   SN_ACT_SILU); /* its product with what it was made of is no layer */
  assert_true(named(net, "/Resize")->attr->bilinear);
  assert_true(fc->parameters == 8 * 5 + 5 && fc->macs == 4 * 8 * 5);
  assert_shape(named(net, "loss"), 4, 5, 1, 1);
  sn_net_free(net);
}

/* Exported of Conv3d, BatchNorm3d, MaxPool3d, AvgPool3d, ConvTranspose3d and AdaptiveAvgPool3d; shapes are PyTorch's.
 */
static void volumes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t planes, c, rows, w;
  } expected[] = {{"data", 6, 2, 8, 8},
                  {"/a/Conv", 3, 4, 8, 8},
                  {"/m/MaxPool", 3, 4, 4, 4},
                  {"/c/Conv", 3, 4, 4, 4},
                  {"/v/AveragePool", 3, 4, 4, 4},
                  {"/Concat", 3, 8, 4, 4},
                  {"/Slice", 3, 4, 4, 4},
                  {"/Mul", 3, 4, 4, 4},
                  {"/u/ConvTranspose", 7, 4, 8, 8},
                  {"/p_1/GlobalAveragePool", 1, 4, 1, 1}};
  sn_net *net = load(CORPUS "volumes.onnx", 2, 0);
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    const sn_layer *layer = named(net, expected[i].name);
    if (layer->planes != expected[i].planes || layer->out.c != expected[i].c ||
        sn_layer_rows(layer) != expected[i].rows || layer->out.w != expected[i].w)
      fail_msg("%s is %ux%ux%ux%u", layer->name, layer->out.c, layer->planes, sn_layer_rows(layer), layer->out.w);
  }
  assert_int_equal(named(net, "/a/Conv")->parameters, 4 * 2 * 9);
  assert_int_equal(named(net, "/u/ConvTranspose")->parameters, 4 * 4 * 8 + 4);
  assert_int_equal(net->parameters, 72 + 8 + (4 * 2 * 27 + 4) + 132 + 15);
  sn_net_free(net);
}

static void check_attention(const char *path, uint32_t batch) {
  sn_net *net = load(path, batch, 0);
  assert_int_equal(net->values[0].dtype, SN_I64);
  assert_int_equal(net->parameters, 11 * 6 + 5 * 6 + 12 + (6 * 18 + 18) + (6 * 6 + 6) + 66);
  assert_shape(named(net, "/MatMul"), batch, 2, 5, 5);
  assert_int_equal(named(net, "/MatMul")->macs, batch * 2 * 5 * 5 * 3);
  assert_int_equal(named(net, "/Softmax")->op, SN_PROBABILITIES);
  assert_shape(named(net, "/MatMul_1"), batch, 2, 5, 3);
  assert_int_equal(named(net, "/Erf")->attr->act, SN_ACT_GELU);
  assert_shape(named(net, "/h/MatMul"), batch, 11, 5, 1);
  assert_true(named(net, "loss")->attr->positions && net->label_bytes == batch * 5 * 4);
  sn_net_free(net);
}

static void attentions(void **state) {
  (void)state;
  check_attention(CORPUS "attend.onnx", 1);
  check_attention(CORPUS "attend.onnx", 3);
  check_attention(CORPUS "attend_any_batch.onnx", 3);
}

/* Exported in evaluation mode; scales and pads are computed of constants in the file. */
static void resized(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "resized.onnx", 4, 0);
  assert_true(named(net, "/b/BatchNormalization")->op == SN_BN && named(net, "/b/BatchNormalization")->parameters == 8);
  assert_shape(named(net, "/Resize"), 4, 4, 12, 12);
  assert_false(named(net, "/Resize")->attr->bilinear);
  assert_shape(named(net, "/Pad"), 4, 4, 3 + 12 + 4, 1 + 12 + 2);
  assert_shape(named(net, "/Resize_1"), 4, 4, 28, 30); /* 19 x 1.5 rounded down, 15 x 2 */
  assert_true(named(net, "/Resize_1")->attr->bilinear);
  sn_net_free(net);
}

/* Tokens, a mask and kinds of tokens; what is made of the last two and of positions alone is no layer. */
static void several_inputs(void **state) {
  (void)state;
  for (uint32_t batch = 1; batch <= 3; batch += 2) {
    sn_net *net = load(CORPUS "masked.onnx", batch, 0);
    assert_int_equal(named(net, "/t/Gather")->op, SN_EMBEDDING);
    assert_true(named(net, "/Add")->op == SN_POSITION && named(net, "/Add")->attr->rows == 2);
    assert_true(named(net, "/Add_1")->op == SN_POSITION && named(net, "/Add_1")->attr->rows == 9);
    assert_int_equal(named(net, "/n/Pow")->op, SN_RMS_NORM);
    assert_true(named(net, "/Pow")->op == SN_ACT && named(net, "/Pow")->attr->act == SN_ACT_GELU_NEW);
    assert_true(named(net, "/Mul_5")->op == SN_DROPOUT && named(net, "/Mul_5")->attr->images);
    assert_true(named(net, "/Mul_5")->attr->ratio == 0.25);
    assert_shape(named(net, "/MatMul"), batch, 2, 5, 5);
    assert_shape(named(net, "loss"), batch, 11, 5, 1); /* of the first output; nothing makes the second */
    assert_int_equal(net->parameters, (11 + 2 + 9) * 6 + 6 + (6 * 18 + 18) + (6 * 12 + 12) + (12 * 6 + 6) + 11 * 6);
    sn_net_free(net);
  }
}

/* Attention as one operator, a split by way of a sequence, constants that are attributes. */
static void fused_attention(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "fused.onnx", 3, 0);
  const sn_layer *attention = named(net, "node_scaled_dot_product_attention");
  assert_true(attention->op == SN_ATTENTION && attention->attr->causal && attention->attr->heads == 2);
  assert_shape(attention, 3, 6, 5, 1);
  assert_int_equal(net->parameters, 11 * 6 + (6 * 18 + 18) + (6 * 11 + 11));
  assert_int_equal(net->n_layers, 1 + 1 + 1 + 1 + 3 + 1 + 1 + 1); /* with a FORK behind the FC */
  sn_net_free(net);
}

/* PReLUs of one slope a channel and of one in all, a maximum with dilation, slices with steps, flip(). */
static void later_forms(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "bent.onnx", 4, 0);
  const sn_layer *each = named(net, "/b/PRelu"), *one = named(net, "/d/PRelu"), *pool = named(net, "/c/MaxPool");
  assert_true(each->op == SN_ACT && each->attr->act == SN_ACT_PRELU && each->parameters == 4);
  assert_true(one->attr->act == SN_ACT_PRELU && one->parameters == 1);
  assert_true(pool->attr->dilation_h == 2 && pool->attr->dilation_w == 3 && pool->attr->pool == SN_POOL_MAX);
  assert_shape(pool, 4, 4, 6, 10);
  const sn_layer *rows = named(net, "/Slice"), *columns = named(net, "/Slice_1"), *turned = named(net, "/Slice_2");
  assert_true(rows->attr->step == 2 && rows->attr->first == 0 && rows->attr->count == 3 && !rows->attr->turned);
  assert_true(columns->attr->step == 3 && columns->attr->first == 1 && columns->attr->count == 3);
  assert_true(turned->attr->step == 0 && turned->attr->count == 3 && turned->attr->turned);
  assert_int_equal(net->parameters, (4 * 27 + 4) + 4 + 1 + (6 * 36 + 6) + (6 * 5 + 5));
  sn_net_free(net);
}

static char *read_file(const char *path, size_t *size) {
  static char bytes[1 << 16];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  *size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return bytes;
}

static void cut_short(void **state) {
  (void)state;
  static const char *const paths[] = {CORPUS "cnn.onnx", CORPUS "attend.onnx", CORPUS "resized.onnx",
                                      CORPUS "masked.onnx", CORPUS "bent.onnx"};
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    size_t size;
    const char *bytes = read_file(paths[i], &size);
    for (size_t cut = 0; cut < size; cut++) {
      sn_err err = SN_ERR_INIT;
      sn_net *net = import(bytes, cut, &err);
      assert_true((net != NULL) == (err.code == SN_OK));
      if (!net && (err.code != SN_BAD_INPUT || strncmp(err.text, "t.onnx: ", 8) != 0))
        fail_msg("cut at %zu: %d, %s", cut, err.code, err.text);
      sn_net_free(net);
    }
  }
}

/* ---- messages ---- */

static void wrong_graphs(void **state) {
  (void)state;
  message graph = {.size = 0};
  refuses(&graph, 17, "its graph has no nodes");
  put_node(&graph, "Relu", "first", "x", "y");
  refuses(&graph, 17, "it has no input");
  put_input(&graph, "x");
  refuses(&graph, 17, "its first output is made by no node");
  refuses(&graph, 3, "its operators are of opset 3, not 6 to 26");
  refuses(&graph, 0, "of opset 0");
  message none = {.size = 0};
  put_node(&none, "Loop", "turns", "x", "w");
  refuses(&none, 17,
          "it has no input; operators that cannot be imported: Loop (1, first \"turns\"); export a model without these "
          "parts (docs/networks.md), or record it: docs/record.md");
  message cycle = graph;
  put_node(&cycle, "Relu", "second", "z", "w");
  put_node(&cycle, "Relu", "third", "w", "z");
  refuses(&cycle, 17,
          "node \"second\" (Relu): its input \"z\" is made by no node before it: the graph is not sorted, or");
  message loose = graph;
  put_node(&loose, "Relu", "second\x1b[2J", "nowhere\n", "w");
  refuses(&loose, 17, "node \"second_[2J\" (Relu): its input \"nowhere_\" is not defined");
  message unknown = graph;
  put_node(&unknown, "NonZero", "a", "y", "z");
  put_node(&unknown, "Loop", "b", "z", "v");
  put_node(&unknown, "NonZero", "c", "v", "w");
  refuses(&unknown, 17, "cannot be imported: NonZero (2, first \"a\"), Loop (1, first \"b\")");
  message foreign = graph, node = {.size = 0};
  put_text(&node, 1, "y");
  put_text(&node, 2, "z");
  put_text(&node, 4, "Relu");
  put_text(&node, 7, "com.example");
  put_message(&foreign, 1, &node);
  refuses(&foreign, 17, "cannot be imported: com.example.Relu (1, first \"\")");
  message weightless = graph;
  put_node(&weightless, "Conv", "c", "y", "z");
  refuses(&weightless, 17, "node \"c\" (Conv): its weights are no constant");
}

/* A graph that slices the 8 rows of x, then adds them up. */
static void slice_graph(message *graph, int64_t start, int64_t end, int64_t step) {
  message node = {.size = 0};
  *graph = (message){.size = 0};
  put_input(graph, "x");
  put_text(&node, 1, "x");
  put_text(&node, 2, "y");
  put_text(&node, 3, "cut");
  put_text(&node, 4, "Slice");
  put_ints(&node, "starts", start);
  put_ints(&node, "ends", end);
  put_ints(&node, "axes", 2);
  put_ints(&node, "steps", step);
  put_message(graph, 1, &node);
  put_node(graph, "GlobalAveragePool", "mean", "y", "z");
  message output = {.size = 0};
  put_text(&output, 1, "z");
  put_message(graph, 12, &output);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* The rows that it takes, one after the other, as ONNX says; returns how many. */
static uint32_t rows_of(int64_t start, int64_t end, int64_t step, int64_t *rows) {
  uint32_t count = 0;
  start = start < 0 && start >= -8 ? start + 8 : start;
  end = end < 0 && end >= -8 ? end + 8 : end;
  if (step > 0)
    for (int64_t i = clamp(start, 0, 8); i < clamp(end, 0, 8); i += step) rows[count++] = i;
  else
    for (int64_t i = clamp(start, 0, 7); i > clamp(end, -1, 7); i += step) rows[count++] = i;
  return count;
}

static void check_slice(int64_t start, int64_t end, int64_t step) {
  static message graph, model;
  message version = {.size = 0};
  sn_err err = SN_ERR_INIT;
  int64_t rows[8];
  const uint32_t count = rows_of(start, end, step, rows);
  slice_graph(&graph, start, end, step);
  if (count == 0) {
    refuses(&graph, 17, "node \"cut\" (Slice): it takes nothing");
    return;
  }
  model.size = 0;
  put_number(&version, 2, 17);
  put_message(&model, 8, &version);
  put_message(&model, 7, &graph);
  sn_net *net = import(model.bytes, model.size, &err);
  if (!net) fail_msg("%lld to %lld by %lld: %s", (long long)start, (long long)end, (long long)step, err.text);
  const bool whole = count == 8 && step > 0;
  const sn_attr *a = named(net, whole ? "mean" : "cut")->attr;
  for (uint32_t i = 0; i < count && !whole; i++) {
    const int64_t taken = a->turned ? a->count - 1 - i : i;
    assert_int_equal(a->first + taken * (a->step ? a->step : 1), rows[i]);
  }
  if (!whole) assert_int_equal(a->count, count);
  sn_net_free(net);
}

static void slices_take_what_onnx_says(void **state) {
  (void)state;
  static const int64_t ends[] = {INT64_MIN, -9, -8, -7, -3, -1, 0, 1, 4, 7, 8, 9, INT64_MAX};
  static const int64_t steps[] = {-9, -3, -2, -1, 1, 2, 3, 7, 8, 1000};
  enum { ENDS = sizeof ends / sizeof ends[0], STEPS = sizeof steps / sizeof steps[0] };
  for (int start = 0; start < ENDS; start++)
    for (int end = 0; end < ENDS; end++)
      for (int step = 0; step < STEPS; step++) check_slice(ends[start], ends[end], steps[step]);
  static message graph;
  static const int64_t wrong[] = {0, INT64_MIN, INT64_MAX};
  for (int i = 0; i < 3; i++) {
    slice_graph(&graph, 0, 8, wrong[i]);
    refuses(&graph, 17, "it takes nothing");
  }
}

/* A list of 64-bit numbers, or weights of those dimensions, whose values are in another file. */
/* Shapes of weights are in the model: their values need not be there. Those of a shape need. */
static void values_elsewhere(void **state) {
  (void)state;
  static const uint64_t dims[] = {5, 3, 3, 3}, two[] = {2};
  message graph = {.size = 0}, model = {.size = 0}, version = {.size = 0};
  put_input(&graph, "x");
  put_elsewhere(&graph, "weights", 1, dims, 4);
  put_pair(&graph, "Conv", "conv", (const char *const[]){"x", "weights"}, "y");
  message shaped = graph;
  put_node(&graph, "GlobalAveragePool", "pool", "y", "z");
  put_output(&graph, "z");
  put_number(&version, 2, 17);
  put_message(&model, 8, &version);
  put_message(&model, 7, &graph);
  sn_err err = SN_ERR_INIT;
  sn_net *net = import(model.bytes, model.size, &err);
  if (!net) fail_msg("%s", err.text);
  assert_int_equal(net->parameters, 5 * 3 * 3 * 3);
  assert_shape(named(net, "conv"), 2, 5, 6, 6);
  sn_net_free(net);
  put_elsewhere(&shaped, "shape", 7, two, 1);
  put_pair(&shaped, "Reshape", "turn", (const char *const[]){"y", "shape"}, "z");
  put_output(&shaped, "z");
  refuses(&shaped, 17, "node \"turn\" (Reshape): its input 2 is in another file");
}

/* Operators without a rule and nodes that their rules refuse stand in one list; what follows from them does not. */
static void all_refusals(void **state) {
  (void)state;
  message graph = {.size = 0};
  put_input(&graph, "x");
  put_node(&graph, "Conv", "first", "x", "a");
  put_node(&graph, "Relu", "follows", "a", "b");
  put_node(&graph, "Conv", "second", "b", "c");
  put_node(&graph, "Conv", "third", "x", "d");
  put_node(&graph, "Loop", "loop", "d", "e");
  put_node(&graph, "Sqrt", "root", "x", "f");
  refuses(
      &graph, 17,
      "operators that cannot be imported: Conv (2, first \"first\": its weights are no constant of as many dimensions "
      "as its input), Loop (1, first \"loop\"), Sqrt (1, first \"root\": it is known of constants only); export a "
      "model");
  for (char op[] = "Loop_A"; op[5] <= 'Z'; op[5]++) put_node(&graph, op, "more", "x", op);
  refuses(&graph, 17, " more nodes; export a model without these parts");
}

static void losses(void **state) {
  (void)state;
  sn_net *net = load(CORPUS "cnn.onnx:loss=mse", 4, 0);
  assert_int_equal(named(net, "loss")->attr->loss, SN_LOSS_MSE);
  assert_true(net->label_bytes == 4 * 5 * 4 && net->wide_label_bytes == 4 * 5 * 4);
  sn_net_free(net);
  net = load(CORPUS "cnn.onnx:loss=cross_entropy", 4, 0);
  assert_int_equal(named(net, "loss")->attr->loss, SN_LOSS_CROSS_ENTROPY);
  assert_true(net->label_bytes == 4 * 4 && net->wide_label_bytes == 4 * 8);
  sn_net_free(net);
  net = load(CORPUS "attend.onnx:loss=mse", 2, 0); /* of all that is there, whatever its dimensions */
  assert_int_equal(net->label_bytes, 2 * 5 * 11 * 4);
  sn_net_free(net);
  static const char *const wrong[] = {"bce", "", "mse ", "mse:loss=mse"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char spec[300];
    sn_err err = SN_ERR_INIT;
    snprintf(spec, sizeof spec, "%scnn.onnx:loss=%s", CORPUS, wrong[i]);
    assert_null(sn_net_load(spec, 4, 0, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
  }
}

/* A node's name with the module that it is of, whatever the list looks like. */
static void named_by_module(void **state) {
  (void)state;
  static const struct {
    const char *scopes, *name;
  } cases[] = {{"['', 'stage', 'stage.1', 'relu_3']", "stage.1/relu_3"},
               {"['', 'relu_3']", "node_relu_3"},
               {"stage", "node_relu_3"},
               {"'''", "node_relu_3"},
               {"", "node_relu_3"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    message node = {.size = 0}, entry = {.size = 0}, graph = {.size = 0}, model = {.size = 0}, version = {.size = 0};
    sn_err err = SN_ERR_INIT;
    put_text(&node, 1, "x");
    put_text(&node, 2, "y");
    put_text(&node, 3, "node_relu_3");
    put_text(&node, 4, "Relu");
    put_text(&entry, 1, "pkg.torch.onnx.name_scopes");
    put_text(&entry, 2, cases[i].scopes);
    put_message(&node, 9, &entry);
    put_input(&graph, "x");
    put_message(&graph, 1, &node);
    put_node(&graph, "GlobalAveragePool", "pool", "y", "z");
    put_output(&graph, "z");
    put_number(&version, 2, 17);
    put_message(&model, 8, &version);
    put_message(&model, 7, &graph);
    sn_net *net = import(model.bytes, model.size, &err);
    if (!net) fail_msg("%s", err.text);
    assert_int_equal(named(net, cases[i].name)->op, SN_ACT);
    sn_net_free(net);
  }
}

/* A power outside RMSNorm and GELU, and what is left out where a constant ought to be. */
static void loose_parts(void **state) {
  (void)state;
  static const uint64_t one[] = {1};
  message graph = {.size = 0}, left_out = {.size = 0};
  put_input(&graph, "x");
  put_elsewhere(&graph, "two", 1, one, 1);
  message power = graph;
  put_pair(&power, "Pow", "power", (const char *const[]){"x", "two"}, "y");
  refuses(&power, 17, "node \"power\" (Pow): only the powers of RMSNorm and GELU are known, 2 and 3");
  put_pair(&left_out, "Concat", "nothing", (const char *const[]){"", ""}, "y");
  message both = graph;
  memcpy(both.bytes + both.size, left_out.bytes, left_out.size);
  both.size += left_out.size;
  put_node(&both, "Relu", "relu", "y", "z");
  refuses(&both, 17, "node \"relu\" (Relu): \"y\" is not made of the model's input \"x\", the batch");
}

static void wrong_bytes(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    const char *text;
  } cases[] = {
      {"", 0, "it holds no ONNX graph"},
      {"\x3a\xff\xff\xff\xff\x07", 6, "byte 0: cut short: a field goes beyond the end"}, /* 2 GiB */
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "cut short"},
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "a field is broken"},
      {"\x3b", 1, "a field is broken"}, /* a group */
      {"PK\x03\x04", 4, "a field is broken"},
      {"\x3a\x00\x3a\x00", 4, "it has two graphs"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = import(cases[i].bytes, cases[i].size, &err);
    if (net || err.code != SN_BAD_INPUT || !strstr(err.text, cases[i].text))
      fail_msg("%zu: \"%s\" is not in \"%s\"", i, cases[i].text, err.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),    cmocka_unit_test(volumes),
      cmocka_unit_test(attentions),      cmocka_unit_test(cut_short),
      cmocka_unit_test(wrong_graphs),    cmocka_unit_test(wrong_bytes),
      cmocka_unit_test(resized),         cmocka_unit_test(values_elsewhere),
      cmocka_unit_test(all_refusals),    cmocka_unit_test(several_inputs),
      cmocka_unit_test(fused_attention), cmocka_unit_test(loose_parts),
      cmocka_unit_test(named_by_module), cmocka_unit_test(losses),
      cmocka_unit_test(later_forms),     cmocka_unit_test(slices_take_what_onnx_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
