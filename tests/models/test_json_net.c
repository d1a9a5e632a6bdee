/* JSON networks: the example in the tree, defaults, repeats and names, and a table of bad files with the message and
 * line each must give. */
#include "models/json/mistakes.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A network of 3x8x8 images around the lines given; they begin on line 2 and stand before the end. */
#define NET(layers) "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"layers\":[\n" layers END
#define END         "\n{\"name\":\"end\",\"op\":\"FC\",\"channels\":10},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}"

static void example_loads(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/models/examples/small_resnet.json", 4, 0, &err);
  if (!net) fail_msg("%s", err.text);
  assert_string_equal(net->name, "small_resnet");
  assert_int_equal(net->batch, 4);
  assert_int_equal(net->n_layers, 1 + 3 + 3 * 7 + 3 + 3);
  assert_int_equal(net->parameters, 3 * 16 * 9 + 32 + 3 * 2 * (16 * 16 * 9 + 32) + 170);
  assert_string_equal(source(net, "unit_join.2", 1), "unit_relu2.1");
  assert_string_equal(source(net, "unit_join.1", 1), "relu1");
  sn_net_free(net);
}

static void defaults(void **state) {
  (void)state;
  sn_net *net = load_net(NET("{\"name\":\"c\",\"op\":\"conv\",\"channels\":4,\"kernel\":3},"
                             "{\"name\":\"p\",\"op\":\"Pool\",\"kernel\":2},{\"name\":\"l\",\"op\":\"LRN\"},"
                             "{\"name\":\"d\",\"op\":\"DROPOUT\"},"),
                         2);
  const sn_attr *c = named(net, "c")->attr, *p = named(net, "p")->attr, *l = named(net, "l")->attr;
  assert_true(c->kernel_h == 3 && c->kernel_w == 3 && c->stride_h == 1 && c->stride_w == 1);
  assert_true(c->pad_h == 0 && c->pad_w == 0 && c->groups == 1 && c->bias);
  assert_true(p->pool == SN_POOL_MAX && p->stride_h == 1 && p->stride_w == 1 && !p->ceil && !p->global);
  assert_true(l->lrn_size == 5 && l->lrn_alpha == 1e-4 && l->lrn_beta == 0.75 && l->lrn_k == 2);
  assert_true(named(net, "d")->attr->ratio == 0.5 && named(net, "end")->attr->bias);
  assert_string_equal(source(net, "c", 0), "data");
  assert_string_equal(source(net, "s", 0), "end");
  sn_net_free(net);
}

static void all_keys(void **state) {
  (void)state;
  sn_net *net = load_net(
      NET("{\"name\":\"c\",\"op\":\"CONV\",\"channels\":6,\"kernel\":[3,5],\"stride\":[1,2],\"pad\":[1,2],\"groups\":3,"
          "\"bias\":false,\"input\":\"data\"},"
          "{\"name\":\"p\",\"op\":\"POOL\",\"mode\":\"average\",\"kernel\":3,\"stride\":2,\"pad\":1,\"ceil\":true},"
          "{\"name\":\"l\",\"op\":\"LRN\",\"size\":3,\"alpha\":0.5,\"beta\":1,\"k\":1},"
          "{\"name\":\"d\",\"op\":\"DROPOUT\",\"ratio\":0.25},"
          "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"d\",\"late\",\"d\"]},"
          "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},{\"name\":\"f\",\"op\":\"FC\",\"channels\":5,\"bias\":"
          "false},"
          "{\"name\":\"late\",\"op\":\"ACT\",\"input\":\"l\"},{\"name\":\"f2\",\"op\":\"FC\",\"channels\":2,\"input\":"
          "\"f\"},"),
      2);
  const sn_attr *c = named(net, "c")->attr, *p = named(net, "p")->attr, *l = named(net, "l")->attr;
  assert_true(c->kernel_h == 3 && c->kernel_w == 5 && c->stride_h == 1 && c->stride_w == 2);
  assert_true(c->pad_h == 1 && c->pad_w == 2 && c->groups == 3 && !c->bias);
  assert_true(p->pool == SN_POOL_AVERAGE && p->stride_w == 2 && p->pad_h == 1 && p->ceil);
  assert_true(l->lrn_size == 3 && l->lrn_alpha == 0.5 && l->lrn_beta == 1 && l->lrn_k == 1);
  assert_true(named(net, "d")->attr->ratio == 0.25 && named(net, "g")->attr->global && !named(net, "f")->attr->bias);
  assert_string_equal(source(net, "cat", 1), "late");
  assert_int_equal(named(net, "cat")->out.c, 18);
  sn_net_free(net);
}

static char *written(const sn_net *net, size_t *bytes) {
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  FILE *out = open_memstream(&text, bytes);
  assert_non_null(out);
  assert_int_equal(sn_net_write_json(net, out, &err), SN_OK);
  fclose(out);
  return text;
}

static void survives_a_file(const char *spec) {
  sn_err err = SN_ERR_INIT;
  size_t bytes, again_bytes;
  sn_net *net = sn_net_load(spec, 2, 0, &err);
  if (!net) fail_msg("%s", err.text);
  char *text = written(net, &bytes);
  sn_net *again = sn_net_from_json("written.json", text, bytes, net->batch, &err);
  if (!again) fail_msg("%s: %s", spec, err.text);
  char *again_text = written(again, &again_bytes);
  assert_string_equal(again_text, text);
  assert_int_equal(again->n_layers, net->n_layers);
  assert_memory_equal(again->inputs, net->inputs, (net->n_layers - 1) * sizeof *net->inputs);
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const sn_layer *a = &net->layers[i], *b = &again->layers[i];
    assert_string_equal(a->name, b->name);
    if (a->op != b->op || memcmp(&a->out, &b->out, sizeof a->out) != 0 || a->parameters != b->parameters ||
        a->macs != b->macs)
      fail_msg("%s: layer %s differs", spec, a->name);
  }
  free(text);
  free(again_text);
  sn_net_free(net);
  sn_net_free(again);
}

/* Written as a file and read again, every network of the zoo is the same: connections, shapes, FORKs. */
static void nets_survive_a_file(void **state) {
  (void)state;
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t n = 0; n < count; n++) survives_a_file(entries[n].name);
  survives_a_file(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/pytorch_keys.json");
  survives_a_file(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/every_op.json");
  survives_a_file(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/transposed.json");
  survives_a_file(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/sequence.json");
  survives_a_file(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/arranged.json");
  survives_a_file(SNSIM_SOURCE_DIR "/models/examples/small_resnet.json");
}

/* What PyTorch's networks need: ReLU6, adaptive pools, operators that take their input's storage or do not. */
static void pytorch_keys(void **state) {
  (void)state;
  sn_net *net = load_net(
      NET("{\"name\":\"r\",\"op\":\"ACT\"},{\"name\":\"s6\",\"op\":\"ACT\",\"mode\":\"relu6\",\"inplace\":true},"
          "{\"name\":\"j\",\"op\":\"JOIN\",\"inputs\":[\"r\",\"s6\"],\"inplace\":false},"
          "{\"name\":\"d\",\"op\":\"DROPOUT\",\"inplace\":false},{\"name\":\"c\",\"op\":\"CONCAT\",\"inputs\":[\"d\"]},"
          "{\"name\":\"p\",\"op\":\"POOL\",\"mode\":\"average\",\"adaptive\":[3,2]},"
          "{\"name\":\"q\",\"op\":\"POOL\",\"mode\":\"average\",\"adaptive\":1},"),
      2);
  const sn_layer *p = named(net, "p");
  assert_true(named(net, "r")->attr->act == SN_ACT_RELU && named(net, "r")->attr->inplace == SN_INPLACE_UNSET);
  assert_true(named(net, "s6")->attr->act == SN_ACT_RELU6 && named(net, "s6")->attr->inplace == SN_INPLACE_YES);
  assert_true(named(net, "j")->attr->inplace == SN_INPLACE_NO && named(net, "d")->attr->inplace == SN_INPLACE_NO);
  assert_true(p->attr->pool == SN_POOL_AVERAGE && p->attr->adaptive_h == 3 && p->attr->adaptive_w == 2);
  assert_true(p->out.h == 3 && p->out.w == 2 && !p->attr->global);
  assert_true(named(net, "q")->attr->global && named(net, "q")->attr->adaptive_h == 0);
  sn_net_free(net);
}

/* What today's convolutional networks need. */
static void todays_keys(void **state) {
  (void)state;
  sn_net *net =
      load_net(NET("{\"name\":\"n\",\"op\":\"LAYER_NORM\"},{\"name\":\"g\",\"op\":\"ACT\",\"mode\":\"gelu\"},"
                   "{\"name\":\"f\",\"op\":\"FC\",\"channels\":5,\"positions\":true},"
                   "{\"name\":\"p\",\"op\":\"POOL\",\"mode\":\"average\",\"global\":true},"
                   "{\"name\":\"m\",\"op\":\"MUL\",\"inputs\":[\"f\",\"p\"]},{\"name\":\"c\",\"op\":\"SCALE\"},"
                   "{\"name\":\"d\",\"op\":\"DROPOUT\",\"ratio\":0.1,\"images\":true},"),
               2);
  const sn_layer *n = named(net, "n"), *f = named(net, "f"), *d = named(net, "d");
  assert_true(n->parameters == 6 && n->statistics_bytes == 2 * 2 * 64 * 4);
  assert_true(f->attr->positions && f->attr->bias && f->out.c == 5 && f->out.h == 8 && f->out.w == 8);
  assert_true(f->parameters == 3 * 5 + 5 && f->macs == 2 * 64 * 15);
  assert_true(named(net, "m")->out.h == 8 && named(net, "m")->out.c == 5);
  assert_int_equal(named(net, "c")->parameters, 5);
  assert_true(d->attr->images && d->mask_bytes == 2 * 4);
  assert_true(named(net, "g")->attr->act == SN_ACT_GELU);
  sn_net_free(net);
}

/* A language model of one block, whose head takes its embedding's table. */
static void sequence_keys(void **state) {
  (void)state;
  sn_net *net =
      load_net("{\"snsim_net\":1,\"name\":\"t\",\"tokens\":16,\"layers\":["
               "{\"name\":\"e\",\"op\":\"EMBEDDING\",\"vocabulary\":100,\"channels\":12},"
               "{\"name\":\"p\",\"op\":\"POSITION\",\"rows\":32},{\"name\":\"n\",\"op\":\"RMS_NORM\"},"
               "{\"name\":\"q\",\"op\":\"FC\",\"channels\":24,\"positions\":true},"
               "{\"name\":\"a\",\"op\":\"ATTENTION\",\"heads\":4,\"kv_heads\":2,\"causal\":true,\"ratio\":0.1},"
               "{\"name\":\"r\",\"op\":\"ROTARY\"},{\"name\":\"j\",\"op\":\"JOIN\",\"inputs\":[\"r\",\"p\"]},"
               "{\"name\":\"h\",\"op\":\"FC\",\"channels\":100,\"positions\":true,\"bias\":false,"
               "\"weights_of\":\"e\"},"
               "{\"name\":\"s\",\"op\":\"SOFTMAX\",\"positions\":true}]}",
               2);
  const sn_layer *a = named(net, "a");
  assert_true(a->attr->heads == 4 && a->attr->kv_heads == 2 && a->attr->causal && !a->attr->parts &&
              a->attr->ratio == 0.1);
  assert_true(a->out.c == 12 && a->out.h == 16 && a->out.w == 1);
  assert_true(named(net, "h")->parameters == 0 && named(net, "h")->macs == 2 * 16 * 1200);
  assert_int_equal(net->parameters, 1200 + 32 * 12 + 12 + (12 * 24 + 24));
  assert_true(net->data_bytes == 2 * 16 * 8 && net->values[0].dtype == SN_I64 && net->label_bytes == 2 * 16 * 4);
  sn_net_free(net);
}

static void transposed_keys(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/transposed.json", 2, 0, &err);
  if (!net) fail_msg("%s", err.text);
  const sn_layer *a = named(net, "a"), *b = named(net, "b");
  assert_true(a->op == SN_DECONV && a->attr->output_pad_h == 1 && a->attr->output_pad_w == 2 && a->attr->bias);
  assert_true(a->out.c == 6 && a->out.h == 6 && a->out.w == 16); /* 2 x 2 - 2 + 3 + 1, 4 x 3 - 2 + 4 + 2 */
  assert_int_equal(a->parameters, 4 * 3 * 12 + 6);
  assert_true(b->attr->stride_h == 1 && b->attr->output_pad_w == 0 && b->attr->groups == 1 && !b->attr->bias);
  assert_true(b->out.h == 7 && b->out.w == 17);
  assert_true(named(net, "l")->attr->act == SN_ACT_LEAKY && named(net, "l")->attr->slope == 0.2);
  assert_true(named(net, "m")->attr->act == SN_ACT_LEAKY && named(net, "m")->attr->slope == 0.01);
  assert_true(named(net, "t")->attr->act == SN_ACT_TANH && named(net, "s")->attr->act == SN_ACT_SIGMOID);
  sn_net_free(net);
}

static void repeats(void **state) {
  (void)state;
  /* a  2 x { b  2 x { c  j = c + b + a + @in }  k = j.2 + @in }  z */
  sn_net *net =
      load_net(NET("{\"name\":\"a\",\"op\":\"ACT\"},"
                   "{\"repeat\":2,\"layers\":[{\"name\":\"b\",\"op\":\"ACT\"},"
                   "{\"repeat\":2,\"layers\":[{\"name\":\"c\",\"op\":\"ACT\"},"
                   "{\"name\":\"j\",\"op\":\"JOIN\",\"inputs\":[\"c\",\"b\",\"a\",\"@in\",\"c.1.1\",\"c.1\"]}]},"
                   "{\"name\":\"k\",\"op\":\"JOIN\",\"inputs\":[\"j.2\",\"@in\"]}]},"
                   "{\"name\":\"z\",\"op\":\"JOIN\",\"inputs\":[\"k.2\",\"j.1.2\",\"@in\"]},"),
               2);
  static const struct {
    const char *layer;
    uint32_t input;
    const char *source;
  } expected[] = {
      {"b.1", 0, "a"},       {"c.1.1", 0, "b.1"},   {"j.1.1", 0, "c.1.1"}, {"j.1.1", 1, "b.1"},   {"j.1.1", 2, "a"},
      {"j.1.1", 3, "b.1"},   {"c.2.1", 0, "j.1.1"}, {"j.2.1", 3, "j.1.1"}, {"k.1", 0, "j.2.1"},   {"k.1", 1, "a"},
      {"b.2", 0, "k.1"},     {"j.1.2", 0, "c.1.2"}, {"j.1.2", 1, "b.2"},   {"k.2", 1, "k.1"},     {"k.2", 0, "j.2.2"},
      {"j.2.2", 4, "c.1.1"}, {"j.2.2", 5, "c.1.2"}, {"j.2.1", 5, "c.1.1"}, {"j.2.2", 3, "j.1.2"}, {"z", 0, "k.2"},
      {"z", 1, "j.1.2"},     {"z", 2, "data"},      {"end", 0, "z"},
  };
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
    assert_string_equal(source(net, expected[i].layer, expected[i].input), expected[i].source);
  sn_net_free(net);
}

#define R "{\"repeat\":1,\"layers\":["
static void repeats_eight_deep(void **state) {
  (void)state;
  sn_net *net = load_net(NET(R R R R R R R R "{\"name\":\"a\",\"op\":\"ACT\"}]}]}]}]}]}]}]}]},"), 2);
  assert_string_equal(source(net, "end", 0), "a.1.1.1.1.1.1.1.1");
  sn_net_free(net);
}

static const struct bad_net {
  const char *text, *message;
} bad_nets[] = {
    {"", "t.json: the file is empty"},
    {"[]", "t.json:1: not a network"},
    {"{\"model_type\":\"llama\",\"hidden_size\":8}",
     "t.json:1: a config of transformers and not a network: snsim record --config"},
    {"{\"name\":\"t\"}", "t.json:1: not a network: an object with \"snsim_net\": 1"},
    {"{\n\"snsim_net\":2}", "t.json:2: \"snsim_net\" must be 1, not 2"},
    {"{\"snsim_net\":1,\n\"layer\":[]}", "t.json:2: unknown key \"layer\" (did you mean \"layers\"?)"},
    {"{\"snsim_net\":1}", "t.json:1: \"name\" is missing"},
    {"{\"snsim_net\":1,\n\"name\":\"\",\"input\":[1,1,1]}", "t.json:2: the network's name"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":[1,1]}", "t.json:2: \"input\" must be three numbers"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":[1,1,1,1,1]}", "t.json:2: \"input\" must be three numbers"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":[1,0,1]}", "t.json:2: \"input\" must be a whole number from 1"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":[1,1e9,1]}", "t.json:2: \"input\" must be a whole number from 1"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":\"data\"}",
     "t.json:2: \"input\" must be a list: [channels, height, width]"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[1,1,1]}", "t.json:1: \"layers\" is missing"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"layers\":[]}",
     "t.json:1: \"input\" is missing: [channels, height, width] of an image; of sequences give \"tokens\""},
    {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[1,1,1],\n\"layers\":{}}", "t.json:2: \"layers\" must be a list"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[1,1,1],\"layers\":[]}", "t.json: the network has no SOFTMAX"},
    {"{\"snsim_net\":1,\"name\":\"t\",\n\"input\":[16777216,16777216,16777216],\"layers\":[" END,
     "t.json:2: layer \"data\": a tensor of 2x16777216x16777216x16777216"},
    {NET("7,"), "t.json:2: layer 1: a layer must be an object"},
    {NET("{\"name\":\"a\"},"), "t.json:2: layer \"a\": \"op\" is missing"},
    {NET("{\"op\":\"ACT\"},"), "t.json:2: layer 1: \"name\" is missing"},
    {NET("{\"name\":3,\"op\":\"ACT\"},"), "t.json:2: layer 1: \"name\" must be a text"},
    {NET("{\"name\":\"@a\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},
    {NET("{\"name\":\"\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},
    {NET("{\"name\":\"a\\nb\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},
    {NET("{\"name\":\"a\\u202eb\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},     /* right to left */
    {NET("{\"name\":\"a\xE2\x81\xA6\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"}, /* U+2066 */
    {NET("{\"name\":\"a\\u00a0\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},
    {NET("{\"name\":\"a\\u009b2J\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"}, /* C1: ESC [ */
    {NET("{\"name\":\"a\\u3000\",\"op\":\"ACT\"},"), "t.json:2: layer 1: a layer's name"},
    {NET("{\"name\":\"a\",\"op\":\"A\\u202e\\u009b\"},"), "t.json:2: layer \"a\": unknown op \"A?????\""},
    {NET("{\"name\":\"a\",\"op\":\"DENSE\"},"), "t.json:2: layer \"a\": unknown op \"DENSE\" (did you mean \"FC\"?)"},
    {NET("{\"name\":\"a\",\n\"op\":\"ReLU6\"},"),
     "t.json:3: layer \"a\": unknown op \"ReLU6\" (did you mean \"ACT\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"MaxPool2d\"},"), "(did you mean \"POOL\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"GELU\"},"), "unknown op \"GELU\" (did you mean \"ACT\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"FORK\"},{\"name\":\"b\",\"op\":\"FC\"},"), "layer \"b\": \"channels\" is missing"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"slope\":\"x\",\"inplace\":3},"), "an ACT of mode \"relu\" has no \"slope\""},
    {NET("{\"name\":\"a\",\"op\":\"WAVELET\"},"), "unknown op \"WAVELET\"; there are CONV, FC, POOL, ACT, LRN, BN"},
    {NET("{\"name\":\"a\",\"op\":\"MUL\",\"inputs\":[\"data\",\"data\",\"data\"]},"),
     "layer \"a\": MUL takes two inputs, not 3"},
    {NET("{\"name\":\"p\",\"op\":\"POOL\",\"kernel\":2,\"stride\":2},"
         "{\"name\":\"a\",\"op\":\"MUL\",\"inputs\":[\"data\",\"p\"]},"),
     "layer \"a\": MUL multiplies by a tensor of the same shape, or with sides of 1: input 1 is 3x8x8, input 2 is "
     "3x4x4"},
    {NET("{\"name\":\"a\",\"op\":\"EMBEDDING\",\"vocabulary\":9,\"channels\":3},"),
     "layer \"a\": EMBEDDING looks tokens up, but its input has 3 channels"},
    {NET("{\"name\":\"a\",\"op\":\"FC\",\"channels\":3,\"bias\":false,\"weights_of\":\"end\"},"),
     "layer \"a\": the weights that it takes must be another layer's own"},
    {NET("{\"name\":\"a\",\"op\":\"FC\",\"channels\":3,\"weights_of\":\"data\"},"),
     "\"weights_of\" is a layer with parameters, not the batch"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"tokens\":0,\"layers\":[]}",
     "t.json:1: \"tokens\" must be a whole number from 1"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"tokens\":8,\"input\":[1,1,1],\"layers\":[]}",
     "\"input\" and \"tokens\" are both given"},
    {"{\"snsim_net\":1,\"name\":\"t\",\"tokens\":8,\"layers\":[\n{\"name\":\"a\",\"op\":\"ACT\"}," END,
     "t.json:2: layer \"a\": the batch is tokens, which only an EMBEDDING can read"},
    {NET("{\"name\":\"a\",\"op\":\"RESIZE\"},"), "a RESIZE has either \"size\" or \"scale\""},
    {NET("{\"name\":\"a\",\"op\":\"RESIZE\",\"scale\":2,\"mode\":\"cubic\"},"),
     "\"mode\" is \"nearest\" or \"bilinear\", not \"cubic\""},
    {NET("{\"name\":\"a\",\"op\":\"SLICE\",\"axis\":\"hight\",\"count\":1},"), "(did you mean \"height\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"RESHAPE\",\"shape\":[1,2]},"), "\"shape\" has three items"},
    {NET("{\"name\":\"a\",\"op\":\"RESHAPE\",\"shape\":[1,2,-1]},"), "\"shape\" must be a whole number from 0"},
    {NET("{\"name\":\"a\",\"op\":\"TRANSPOSE\",\"axes\":[\"width\",2,\"height\"]},"), "\"axes\" are \"channels\""},
    {NET("{\"name\":\"a\",\"op\":\"permute\"},"), "unknown op \"permute\" (did you mean \"TRANSPOSE\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"LayerNorm\"},"), "unknown op \"LayerNorm\" (did you mean \"LAYER_NORM\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"FC\",\"out_channels\":3},"),
     "unknown key \"out_channels\" (did you mean \"channels\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"FC\",\"units\":3},"),
     "unknown key \"units\"; there are \"name\", \"op\", \"input\", \"inputs\", \"channels\", \"bias\", \"positions\", "
     "\"router\", \"turned\", \"apart\", \"weights_of\""},
    {NET("{\"name\":\"a\",\"op\":\"SOFTMX\"},"),
     "t.json:2: layer \"a\": unknown op \"SOFTMX\" (did you mean \"SOFTMAX\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"FORK\"},"), "t.json:2: layer \"a\": unknown op \"FORK\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\n\"kernel\":3},"), "t.json:3: layer \"a\": unknown key \"kernel\""},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\n\"chanels\":3},"),
     "t.json:3: layer \"a\": unknown key \"chanels\" (did you mean \"channels\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\n\"name\":\"b\"},"), "t.json:3: layer \"a\": the key \"name\" stands twice"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"kernel\":3},"), "t.json:2: layer \"a\": \"channels\" is missing"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3},"), "t.json:2: layer \"a\": \"kernel\" is missing"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":-3,\"kernel\":1},"), "\"channels\" must be a whole number"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\n\"kernel\":[1,2,3]},"),
     "t.json:3: layer \"a\": \"kernel\" must be one number or two"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\n\"kernel\":[1,\n2.5]},"),
     "t.json:4: layer \"a\": \"kernel\" must be a whole number from 1 to 16777216, not 2.5"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\"kernel\":1,\n\"stride\":0},"),
     "t.json:3: layer \"a\": \"stride\" must be a whole number from 1"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\"kernel\":1,\"bias\":\"no\"},"),
     "t.json:2: layer \"a\": \"bias\" must be true or false"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"groups\":2},"),
     "t.json:2: layer \"a\": groups 2 does not divide its 3 input"},
    {NET("\n{\"name\":\"a\",\"op\":\"CONV\",\"channels\":4,\"kernel\":9},"),
     "t.json:3: layer \"a\": kernel 9x9 is larger than its padded input 8x8"},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"mode\":\"mean\",\"kernel\":2},"), "\"mode\" is \"max\" or \"average\""},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"global\":true,\"kernel\":2},"), "a global POOL has no \"kernel\""},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"global\":true,\"adaptive\":2},"), "a global POOL has no \"adaptive\""},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"adaptive\":2,\"stride\":2},"), "an adaptive POOL has no \"stride\""},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"adaptive\":0},"), "\"adaptive\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"snake\"},"),
     "\"mode\" is \"relu\", \"relu6\", \"leaky\", \"tanh\", \"sigmoid\", \"elu\", \"gelu\", \"silu\", \"hardswish\", "
     "\"hardsigmoid\", \"softplus\", \"mish\", \"gelu_new\", \"times\", \"exp\", \"sin\", \"cos\" or \"prelu\", not "
     "\"snake\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"sigmoyd\"},"), "not \"sigmoyd\" (did you mean \"sigmoid\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"tanh\",\"slope\":1},"),
     "an ACT of mode \"tanh\" has no \"slope\"; \"leaky\" and \"times\" have"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"tanh\",\"slopes\":1},"),
     "an ACT of mode \"tanh\" has no \"slopes\"; \"prelu\" has"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"prelu\",\"slope\":1},"),
     "an ACT of mode \"prelu\" has no \"slope\""},
    {NET("{\"name\":\"a\",\"op\":\"POOL\",\"global\":true,\"dilation\":2},"), "a global POOL has no \"dilation\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"leaky\",\"slope\":-1},"), "slope -1 is not 0 or more"},
    {NET("{\"name\":\"a\",\"op\":\"DECONV\",\"channels\":4,\"kernel\":3,\"output_pad\":1},"),
     "t.json:2: layer \"a\": output_pad 1 is not smaller than stride 1"},
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"output_pad\":1},"),
     "t.json:2: layer \"a\": unknown key \"output_pad\""},
    {NET("{\"name\":\"a\",\"op\":\"ConvTranspose2d\"},"), "(did you mean \"DECONV\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"inplace\":1},"), "\"inplace\""},
    {NET("{\"name\":\"a\",\"op\":\"BN\",\"inplace\":true},"), "\"inplace\""},
    {NET("{\"name\":\"a\",\"op\":\"DROPOUT\",\"ratio\":1.5},"),
     "t.json:2: layer \"a\": ratio 1.5 is not from 0 to below 1"},
    {NET("{\"name\":\"a\",\"op\":\"DROPOUT\",\"ratio\":1},"),
     "t.json:2: layer \"a\": ratio 1 is not from 0 to below 1"},
    {NET("{\"name\":\"a\",\"op\":\"DROPOUT\",\"ratio\":1e999},"), "ratio inf is not from 0 to below 1"},
    {NET("{\"name\":\"a\",\"op\":\"LRN\",\"beta\":-1},"), "t.json:2: layer \"a\": alpha 0.0001, beta -1, k 2: alpha"},
    {NET("{\"name\":\"a\",\"op\":\"LRN\",\"size\":2},"), "t.json:2: layer \"a\": size 2 is even"},
    {NET("{\"name\":\"relu2\",\"op\":\"ACT\"},\n{\"name\":\"conv3\",\"op\":\"ACT\",\"input\":\n\"relu9\"},"),
     "t.json:4: layer \"conv3\": input \"relu9\" is not defined (did you mean \"relu2\"?)"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"input\":[\"data\"]},"), "t.json:2: layer \"a\": an input must be the name"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"inputs\":\"data\"},"), "t.json:2: layer \"a\": \"inputs\" must be a list"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"input\":\"data\",\"inputs\":[]},"), "both given"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"inputs\":[]},{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"data\"},"
         "{\"name\":\"j\",\"op\":\"JOIN\",\"inputs\":[\"a\",\"b\"]},"),
     "layer \"a\": ACT takes one input, not 0"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"inputs\":[]},"), "t.json:2: layer \"a\": ACT takes one input, not 0"},
    {NET("\n{\"name\":\"a\",\"op\":\"JOIN\"},"), "t.json:3: layer \"a\": JOIN takes two or more inputs, not 1"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"a\",\"op\":\"ACT\"},"),
     "t.json:3: layer \"a\": another layer has this name"},
    {NET("{\"name\":\"data\",\"op\":\"ACT\"},"), "t.json:2: layer \"data\": another layer has this name"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"data\"},"),
     "t.json:2: layer \"a\": its output is never used"},
    {NET("{\"name\":\"a\",\"op\":\"JOIN\",\"inputs\":[\"data\",\"b\"]},\n{\"name\":\"b\",\"op\":\"ACT\"},"),
     "layers form a cycle: \"a\" needs \"b\", which needs \"a\""},
    {NET("\n{\"name\":\"a\",\"op\":\"ACT\",\"input\":\"a\"},"), "t.json:3: layers form a cycle: \"a\" needs \"a\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"input\":\"b\"},\n{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"a\"},"),
     "t.json:2: layers form a cycle: \"a\" needs \"b\", which needs \"a\""},
    {NET("{\"name\":\"a\",\"op\":\"ACT\",\"input\":\"s\"},"), "t.json:2: layer \"a\": its input is a SOFTMAX"},
    {NET("{\"name\":\"a\",\"op\":\"SOFTMAX\"},"), "layer \"end\": its input is a SOFTMAX"},
    {NET("{\"repeat\":0,\"layers\":[{\"name\":\"a\",\"op\":\"ACT\"}]},"), "\"repeat\" must be a whole number from 1"},
    {NET("{\"repeat\":2},"), "t.json:2: \"layers\" is missing"},
    {NET("{\"repeat\":2,\"layers\":[]},"), "t.json:2: a repeat without layers"},
    {NET("{\"repeat\":2,\"layers\":[7]},"), "t.json:2: layer 1: a layer must be an object"},
    {NET("{\"repeat\":2,\"name\":\"r\",\"layers\":[]},"), "t.json:2: unknown key \"name\""},
    {NET("{\"repeat\":1048576,\"layers\":[{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"b\",\"op\":\"ACT\"}]},"),
     "more than 1250000 layers, repeats written out"},
    {NET(R R R R R R R R "\n" R "{\"name\":\"a\",\"op\":\"ACT\"}]}]}]}]}]}]}]}]}]},"),
     "t.json:3: repeats are nested more than 8 deep"},
    {NET("{\"repeat\":2,\"layers\":[\n{\"name\":\"a\",\"op\":\"CONV\",\"channels\":1,\"kernel\":5}]},"),
     "t.json:3: layer \"a.2\": kernel 5x5 is larger than its padded input 4x4"},
};

static void refuses(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_nets / sizeof bad_nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_from_json("t.json", bad_nets[i].text, strlen(bad_nets[i].text), 2, &err);
    if (net) fail_msg("loads, but wanted \"%s\"", bad_nets[i].message);
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (!strstr(err.text, bad_nets[i].message)) fail_msg("wanted \"%s\", got \"%s\"", bad_nets[i].message, err.text);
    if (strncmp(err.text, "t.json:", 7) != 0) fail_msg("no place: %s", err.text);
  }
}

/* Everything that is wrong, in the order of lines, and what stands behind it is looked at too. */
static const struct bad_net all_at_once[] = {
    {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":3,\"kernel_size\":3,\"padding\":1,\"bias\":0},\n"
         "{\"name\":\"b\",\"op\":\"RELU\"},\n{\"name\":\"c\",\"op\":\"ACT\",\"input\":\"data\",\"mode\":\"tan\"},\n"
         "{\"name\":\"d\",\"op\":\"CONV\",\"channels\":0,\"kernel\":[1,0],\"input\":\"data\"},\n"
         "{\"name\":\"e\",\"op\":\"CONV\",\"channels\":1,\"kernel\":9,\"input\":\"data\"},\n7,\n"
         "{\"name\":\"f\",\"op\":\"JOIN\",\"inputs\":[\"x\",\"y\",3]},"),
     "t.json: 12 mistakes:\n"
     "  t.json:2: layer \"a\": unknown key \"kernel_size\" (did you mean \"kernel\"?)\n"
     "  t.json:2: layer \"a\": unknown key \"padding\" (did you mean \"pad\"?)\n"
     "  t.json:2: layer \"a\": \"bias\" must be true or false\n"
     "  t.json:3: layer \"b\": unknown op \"RELU\" (did you mean \"ACT\"?)\n"
     "  t.json:4: layer \"c\": \"mode\" is "},
    /* each item of a repeat once */
    {NET("{\"repeat\":9,\"layers\":[{\"name\":\"a\",\"op\":\"ACT\",\"slop\":1},\n{\"name\":\"b\",\"op\":\"ACT\","
         "\"input\":\"z\"}]},"),
     "t.json: 2 mistakes:\n"
     "  t.json:2: layer \"a.1\": unknown key \"slop\" (did you mean \"slope\"?)\n"
     "  t.json:3: layer \"b.1\": input \"z\" is not defined"},
    /* what a repeat gets wrong only later is said as well, once */
    {NET("{\"repeat\":9,\"layers\":[{\"name\":\"a\",\"op\":\"POOL\",\"kernel\":2,\"stride\":2}]},\n"
         "{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"data\",\"slope\":1},"),
     "t.json: 2 mistakes:\n"
     "  t.json:2: layer \"a.4\": kernel 2x2 is larger than its padded input 1x1\n"
     "  t.json:3: layer \"b\": an ACT of mode \"relu\" has no \"slope\"; \"leaky\" and \"times\" have"},
    /* ends are looked at where no layer and no input is lost */
    {NET("{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"b\",\"op\":\"ACT\",\"input\":\"data\"},\n"
         "{\"name\":\"c\",\"op\":\"ACT\",\"input\":\"data\",\"inplace\":1},"),
     "t.json: 3 mistakes:\n  t.json:2: layer \"a\": its output is never used; give it to a layer or remove it\n"
     "  t.json:3: layer \"b\": its output is never used; give it to a layer or remove it\n"
     "  t.json:4: layer \"c\": \"inplace\" must be true or false"},
    {NET("{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"a\",\"op\":\"ACT\"},\n{\"name\":\"a\",\"op\":\"ACT\"},"),
     "t.json: 2 mistakes:\n  t.json:3: layer \"a\": another layer has this name already; rename one of them\n"
     "  t.json:4: layer \"a\": another layer has this name already; rename one of them"},
    {"{\"snsim_net\":1,\"nam\":\"t\",\n\"input\":[1,0],\"layers\":[{\"name\":\"a\",\"op\":\"CONV\",\"channels\":1,"
     "\"kernel\":9},\n"
     "{\"repeat\":0,\"layer\":[]}," END,
     "t.json: 7 mistakes:\n  t.json:1: unknown key \"nam\" (did you mean \"name\"?)\n  t.json:1: \"name\" is missing\n"
     "  t.json:2: \"input\" must be a whole number from 1 to 16777216, not 0\n"},
};

static void lists_all_mistakes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all_at_once / sizeof all_at_once[0]; i++) {
    const struct bad_net *bad = &all_at_once[i];
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_from_json("t.json", bad->text, strlen(bad->text), 2, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (strncmp(err.text, bad->message, strlen(bad->message)) != 0)
      fail_msg("wanted \"%s\", got \"%s\"", bad->message, err.text);
  }
}

/* Twenty are shown where there is room, the others counted, up to a thousand; each in time, whatever they are. */
static void many_mistakes(void **state) {
  (void)state;
  enum { LAYERS = 50000, ROOM = LAYERS * 80 + 1000 };
  char path[] = "many_mistakes.json", list[SN_MISTAKES_TEXT], *text = malloc(ROOM);
  assert_non_null(text);
  for (int layers = 30; layers <= LAYERS; layers += LAYERS - 30) {
    int used = snprintf(text, ROOM, "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"layers\":[\n");
    for (int i = 0; i < layers; i++)
      used +=
          snprintf(text + used, (size_t)(ROOM - used), "{\"name\":\"r%d\",\"op\":\"ACT\",\"input\":\"q%d\"},\n", i, i);
    snprintf(text + used, (size_t)(ROOM - used), "%s", END);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load("./many_mistakes.json", 2, 0, &err));
    sn_net_mistakes("./many_mistakes.json", 2, 0, &err, list, sizeof list);
    const char *heading =
        layers == 30 ? "./many_mistakes.json: 30 mistakes:\n" : "./many_mistakes.json: at least 1000 mistakes:\n";
    const char *end = layers == 30 ? "\n  and 10 more" : "\n  and at least 980 more";
    assert_memory_equal(err.text, heading, strlen(heading));
    assert_memory_equal(list, heading, strlen(heading));
    assert_true(strlen(err.text) < sizeof err.text && strstr(err.text, " more"));
    assert_non_null(strstr(list, ":21: layer \"r19\": input \"q19\" is not defined"));
    assert_string_equal(list + strlen(list) - strlen(end), end);
  }
  assert_int_equal(remove(path), 0);
  free(text);
}

/* Two hundred thousand iterations with a mistake, and no time for any but the first. */
static void mistakes_of_long_repeats(void **state) {
  (void)state;
  static const char text[] =
      NET("{\"repeat\":200000,\"layers\":[{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"x\",\"input\":\"y\"}]},");
  sn_err err = SN_ERR_INIT;
  assert_null(sn_net_from_json("t.json", text, strlen(text), 2, &err));
  assert_memory_equal(err.text, "t.json: 2 mistakes:\n", 20);
}

/* What is no list of mistakes stays as it is. */
static void other_errors_stay(void **state) {
  (void)state;
  char list[SN_MISTAKES_TEXT];
  sn_err err = SN_ERR_INIT;
  sn_fail(&err, SN_BAD_INPUT, "other.json: 2 mistakes:\n  one\n  two");
  const char *net = SNSIM_SOURCE_DIR "/models/examples/small_resnet.json";
  assert_string_equal(sn_net_mistakes(net, 2, 0, &err, list, sizeof list), err.text);
  assert_string_equal(sn_net_mistakes("lenet", 2, 0, &err, list, sizeof list), err.text);
  assert_string_equal(sn_net_mistakes("no/such.json", 2, 0, &err, list, sizeof list), err.text);
}

/* However a file is cut short, there is an error and not a network. */
static void refuses_truncated(void **state) {
  (void)state;
  static const char text[] = NET("{\"name\":\"c\",\"op\":\"CONV\",\"channels\":4,\"kernel\":[3,3]},");
  for (size_t bytes = 0; bytes < sizeof text - 1; bytes++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_from_json("t.json", text, bytes, 2, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
  }
  sn_net_free(load_net(text, 2));
}

static void refuses_missing_file(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_null(sn_net_load("no/such/net.json", 2, 0, &err));
  assert_int_equal(err.code, SN_BAD_FILE);
}

/* Many layers in the text and many by a repeat: not superlinear, so it is over at once, even with sanitizers. */
static void many_layers(void **state) {
  (void)state;
  enum { LAYERS = 200000, ROOM = LAYERS * 40 + 1000 };
  char *text = malloc(ROOM);
  assert_non_null(text);
  int used = snprintf(text, ROOM, "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,8],\"layers\":[\n");
  for (int i = 0; i < LAYERS; i++)
    used += snprintf(text + used, (size_t)(ROOM - used), "{\"name\":\"r%d\",\"op\":\"ACT\"},\n", i);
  snprintf(text + used, (size_t)(ROOM - used), "%s", END);
  sn_net *net = load_net(text, 2);
  assert_int_equal(net->n_layers, LAYERS + 3);
  sn_net_free(net);
  free(text);
  net = load_net(NET("{\"repeat\":400000,\"layers\":[{\"name\":\"x\",\"op\":\"ACT\"}]},"), 2);
  assert_int_equal(net->n_layers, 400003);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(example_loads),
      cmocka_unit_test(defaults),
      cmocka_unit_test(all_keys),
      cmocka_unit_test(pytorch_keys),
      cmocka_unit_test(todays_keys),
      cmocka_unit_test(sequence_keys),
      cmocka_unit_test(transposed_keys),
      cmocka_unit_test(nets_survive_a_file),
      cmocka_unit_test(repeats),
      cmocka_unit_test(refuses),
      cmocka_unit_test(lists_all_mistakes),
      cmocka_unit_test(many_mistakes),
      cmocka_unit_test(mistakes_of_long_repeats),
      cmocka_unit_test(other_errors_stay),
      cmocka_unit_test(refuses_truncated),
      cmocka_unit_test(repeats_eight_deep),
      cmocka_unit_test(refuses_missing_file),
      cmocka_unit_test(many_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
