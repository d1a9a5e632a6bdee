/* Builder: the net it makes from a figure with branches, and everything it must refuse, with the layer it names. A
 * property test builds random networks, layers declared in any order, and checks every cross-reference. */
#include "models/build/build.h"
#include "models/op/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sn_builder *begin(void) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("test", 2, 3, 8, 8, &err);
  assert_non_null(b);
  return b;
}

static uint32_t relu(sn_builder *b, uint32_t input, const char *name) {
  return sn_build_relu(b, input, "%s", name);
}

/* data -> a -> b -> join(b, a, a) -> fc -> softmax, and data -> pool -> fc2 -> softmax2 */
static sn_net *branches(void) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = begin();
  uint32_t a = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 4, .kernel = 3, .pad = 1}, "a%d", 1);
  uint32_t x = relu(b, a, "b");
  x = sn_build_join(b, (uint32_t[]){x, a, a}, 3, "join");
  x = sn_build_fc(b, x, 10, "fc");
  sn_build_softmax(b, x, "softmax");
  x = sn_build_pool(b, SN_DATA_LAYER, (sn_pooling){.global = true}, "pool");
  sn_build_softmax(b, x, "softmax2");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static void forks_in_declared_order(void **state) {
  (void)state;
  static const struct {
    const char *name;
    sn_op op;
    const char *inputs; /* producers */
  } expected[] = {
      {"data", SN_DATA, ""},           {"a1", SN_CONV, "data/fork "},
      {"b", SN_ACT, "a1/fork "},       {"join", SN_JOIN, "b a1/fork a1/fork "},
      {"fc", SN_FC, "join "},          {"softmax", SN_SOFTMAX, "fc "},
      {"pool", SN_POOL, "data/fork "}, {"softmax2", SN_SOFTMAX, "pool "},
      {"data/fork", SN_FORK, "data "}, {"a1/fork", SN_FORK, "a1 "},
  };
  sn_net *net = branches();
  assert_int_equal(net->n_layers, sizeof expected / sizeof expected[0]);
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    char inputs[100] = "";
    for (uint32_t k = 0; k < layer->n_inputs; k++) {
      strcat(inputs, net->layers[sn_layer_input(net, layer, k)->producer].name);
      strcat(inputs, " ");
    }
    assert_string_equal(layer->name, expected[i].name);
    assert_int_equal(layer->op, expected[i].op);
    assert_string_equal(inputs, expected[i].inputs);
  }
  const sn_layer *join = &net->layers[3], *fork = &net->layers[9];
  assert_int_equal(fork->n_outputs, 3);
  assert_int_equal(net->inputs[net->layers[2].first_input], fork->first_output);
  assert_int_equal(net->inputs[join->first_input + 1], fork->first_output + 1);
  assert_int_equal(net->inputs[join->first_input + 2], fork->first_output + 2);
  sn_net_free(net);
}

static void totals(void **state) {
  (void)state;
  sn_net *net = branches();
  assert_string_equal(net->name, "test");
  assert_int_equal(net->batch, 2);
  assert_int_equal(net->parameters, (4 * 3 * 9 + 4) + (10 * 256 + 10));
  assert_int_equal(net->macs, 2 * 64 * 4 * 27 + 2 * 2560);
  assert_int_equal(net->data_bytes, 2 * 3 * 64 * 4);
  assert_int_equal(net->label_bytes, 8);
  sn_net_free(net);
}

static void attributes(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_builder *b = begin();
  uint32_t x = sn_build_conv(
      b, 0, (sn_conv){.channels = 4, .kernel = 1, .pad = 2, .kernel_wide = 7, .pad_wide = 3, .no_bias = true}, "wide");
  x = sn_build_conv(b, x, (sn_conv){.channels = 8, .kernel = 3, .stride = 2, .pad = 1, .groups = 4}, "square");
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 2, .average = true, .ceil = true}, "pool");
  x = sn_build_lrn(b, x, 5, "lrn");
  x = sn_build_bn(b, x, "bn");
  x = sn_build_dropout(b, x, 0.5, "drop");
  x = sn_build_concat(b, (uint32_t[]){x, x}, 2, "concat");
  x = sn_build_inplace(b, sn_build_relu6(b, x, "six"), SN_INPLACE_NO);
  x = sn_build_pool(b, x, (sn_pooling){.adaptive = 2}, "adaptive");
  x = sn_build_deconv(b, x, (sn_conv){.channels = 6, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}, "up");
  x = sn_build_act(b, x, (sn_act){SN_ACT_LEAKY, 0.2}, "leaky");
  sn_build_softmax(b, sn_build_fc(b, x, 10, "fc"), "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  assert_non_null(net);
  const sn_attr *wide = net->layers[1].attr, *square = net->layers[2].attr, *pool = net->layers[3].attr;
  assert_true(wide->kernel_h == 1 && wide->kernel_w == 7 && wide->pad_h == 2 && wide->pad_w == 3 && !wide->bias);
  assert_true(wide->stride_h == 1 && wide->stride_w == 1 && wide->groups == 1);
  assert_true(square->kernel_w == 3 && square->pad_w == 1 && square->stride_w == 2 && square->groups == 4 &&
              square->bias);
  assert_true(pool->stride_h == 1 && pool->ceil && pool->pool == SN_POOL_AVERAGE && !pool->global);
  assert_true(net->layers[4].attr->lrn_size == 5 && net->layers[4].attr->lrn_k > 0);
  assert_int_equal(net->layers[7].out.c, 16);
  assert_true(net->layers[8].attr->act == SN_ACT_RELU6 && net->layers[8].attr->inplace == SN_INPLACE_NO);
  assert_true(net->layers[10].op == SN_DECONV && net->layers[10].attr->output_pad_w == 1 && net->layers[10].out.h == 4);
  assert_true(net->layers[11].attr->act == SN_ACT_LEAKY && net->layers[11].attr->slope == 0.2);
  assert_true(net->layers[9].attr->adaptive_w == 2 && net->layers[9].out.h == 2 && net->layers[9].out.c == 16);
  sn_net_free(net);
}

/* What is alike is kept once; what is changed later is changed for one layer alone. */
static void attributes_kept_once(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_builder *b = begin();
  sn_conv same = {.channels = 3, .kernel = 3, .pad = 1}, other = {.channels = 3, .kernel = 5, .pad = 2};
  uint32_t x = sn_build_conv(b, relu(b, sn_build_conv(b, 0, same, "c1"), "r1"), same, "c2");
  x = sn_build_inplace(b, relu(b, x, "r2"), SN_INPLACE_YES);
  x = relu(b, sn_build_conv(b, x, other, "c3"), "r3");
  sn_build_softmax(b, sn_build_fc(b, x, 10, "fc"), "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  assert_non_null(net);
  const sn_layer *c1 = &net->layers[1], *r1 = c1 + 1, *c2 = c1 + 2, *r2 = c1 + 3, *c3 = c1 + 4, *r3 = c1 + 5;
  assert_ptr_equal(c1->attr, c2->attr);
  assert_ptr_equal(r1->attr, r3->attr);
  assert_true(c1->attr->kernel_h == 3 && c3->attr->kernel_h == 5);
  assert_true(r1->attr->inplace == SN_INPLACE_UNSET && r2->attr->inplace == SN_INPLACE_YES);
  sn_net_free(net);
}

/* Networks that must be refused: what is built, the layer named, a part of the message. */
static void twice(sn_builder *b) {
  sn_build_softmax(b, relu(b, relu(b, 0, "a"), "a"), "s");
}
static void named_data(sn_builder *b) {
  sn_build_softmax(b, relu(b, 0, "data"), "s");
}
static void named_fork(sn_builder *b) {
  uint32_t x = relu(b, 0, "a");
  x = sn_build_join(b, (uint32_t[]){x, relu(b, x, "a/fork")}, 2, "j");
  sn_build_softmax(b, x, "s");
}
static void no_softmax(sn_builder *b) {
  relu(b, 0, "a");
}
static void nothing(sn_builder *b) {
  (void)b;
}
static void unused(sn_builder *b) {
  relu(b, 0, "lost");
  sn_build_softmax(b, sn_build_fc(b, 0, 10, "fc"), "s");
}
static void cycle_past_data(sn_builder *b) {
  sn_build_layer(b, SN_ACT, &(sn_attr){0}, (uint32_t[]){2}, 1, "a");
  sn_build_layer(b, SN_ACT, &(sn_attr){0}, (uint32_t[]){1}, 1, "b");
  sn_build_softmax(b, 1, "s");
}
static void undeclared(sn_builder *b) {
  sn_build_softmax(b, 7, "s");
}
static void none(sn_builder *b) {
  sn_build_softmax(b, SN_NONE, "s");
}
static void behind_softmax(sn_builder *b) {
  relu(b, sn_build_softmax(b, sn_build_fc(b, 0, 10, "fc"), "s"), "late");
}
static void itself(sn_builder *b) {
  sn_build_join(b, (uint32_t[]){0, 1}, 2, "j");
  sn_build_softmax(b, 1, "s");
}
static void cycle_of_three(sn_builder *b) {
  sn_build_join(b, (uint32_t[]){0, 3}, 2, "a");
  relu(b, 1, "b");
  relu(b, 2, "c");
  sn_build_softmax(b, 3, "s");
}
static void long_cycle(sn_builder *b) {
  sn_build_join(b, (uint32_t[]){0, 100}, 2, "a1");
  for (uint32_t i = 2; i <= 100; i++) sn_build_relu(b, i - 1, "a%u", i);
  sn_build_softmax(b, 100, "s");
}
static void unequal(sn_builder *b) {
  uint32_t x = sn_build_conv(b, 0, (sn_conv){.channels = 4, .kernel = 3}, "c");
  sn_build_softmax(b, sn_build_join(b, (uint32_t[]){x, 0}, 2, "j"), "s");
}
static void no_inputs(sn_builder *b) {
  uint32_t x = sn_build_join(b, NULL, 0, "j");
  sn_build_softmax(b, sn_build_join(b, (uint32_t[]){x, 0}, 2, "k"), "s");
}
static void blank_name(sn_builder *b) {
  sn_build_softmax(b, relu(b, 0, "a b"), "s");
}
static void empty_name(sn_builder *b) {
  sn_build_softmax(b, relu(b, 0, ""), "s");
}
static void unused_on_a_cycle(sn_builder *b) {
  relu(b, 1, "a");
  sn_build_softmax(b, 0, "s");
}
static void empty_past_data(sn_builder *b) {
  sn_build_softmax(b, sn_build_join(b, NULL, 0, "j"), "s");
}
static void declared_fork(sn_builder *b) {
  sn_build_layer(b, SN_FORK, &(sn_attr){0}, (uint32_t[]){0}, 1, "f");
}
static void first_error_wins(sn_builder *b) {
  assert_int_equal(relu(b, 0, "\x1b[2J"), SN_NONE);
  assert_int_equal(relu(b, 0, "fine"), SN_NONE);
  assert_int_equal(sn_build_layer(b, SN_DATA, &(sn_attr){0}, NULL, 0, "d"), SN_NONE);
}
static void too_many_weights(sn_builder *b) {
  uint32_t x = sn_build_pool(b, 0, (sn_pooling){.global = true}, "pool");
  for (int i = 0; i < 5; i++) x = sn_build_fc(b, x, SN_MAX_DIM, "fc%d", i); /* 2^50 bytes each but the first */
  sn_build_softmax(b, x, "s");
}
static void too_many_outputs(sn_builder *b) {
  sn_build_softmax(b, sn_build_fc(b, 0, SN_MAX_DIM + 1, "fc"), "s");
}

typedef struct refusal {
  void (*build)(sn_builder *);
  uint32_t bad_layer;
  const char *text;
} refusal;

static void refuses(void **state) {
  (void)state;
  static const refusal cases[] = {
      {twice, 2, "layer \"a\": another layer has this name"},
      {named_data, 1, "layer \"data\": another layer has this name"},
      {named_fork, 2, "layer \"a/fork\": this name is needed for a FORK"},
      {no_softmax, SN_NONE, "no SOFTMAX"},
      {nothing, SN_NONE, "no SOFTMAX"},
      {unused, 1, "layer \"lost\": its output is never used"},
      {undeclared, 1, "layer \"s\": one of its inputs was never declared"},
      {none, 1, "layer \"s\": one of its inputs was never declared"},
      {behind_softmax, 3, "layer \"late\": its input is a SOFTMAX"},
      {itself, 1, "layers form a cycle: \"j\" needs \"j\""},
      {cycle_of_three, 1, "layers form a cycle: \"a\" needs \"c\", which needs \"b\", which needs \"a\""},
      {long_cycle, 1, "(100 layers in all)"},
      {unequal, 2, "layer \"j\": JOIN adds tensors of one shape: input 1 is 4x6x6, input 2 is 3x8x8"},
      {no_inputs, 1, "layer \"j\": JOIN takes two or more inputs, not 0"},
      {unused_on_a_cycle, 1, "layers form a cycle: \"a\" needs \"a\""},
      {cycle_past_data, 1, "layers form a cycle: \"a\" needs \"b\", which needs \"a\""},
      {empty_past_data, 1, "layer \"j\": JOIN takes two or more inputs, not 0"},
      {blank_name, 1, "no blanks"},
      {empty_name, 1, "1 to 200 bytes"},
      {declared_fork, 1, "layer 1 \"f\": DATA and FORK are not declared"},
      {first_error_wins, 1, "layer 1: a layer's name"},
      {too_many_weights, SN_NONE, "all tensors and parameters together are larger than 4096 TiB"},
      {too_many_outputs, 1, "layer \"fc\": channels 16777217 is not from 1 to 16777216"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint32_t bad_layer = 12345;
    sn_builder *b = begin();
    cases[i].build(b);
    assert_null(sn_builder_finish(b, &bad_layer, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (!strstr(err.text, cases[i].text)) fail_msg("\"%s\" is not in \"%s\"", cases[i].text, err.text);
    if (bad_layer != cases[i].bad_layer) fail_msg("%s: layer %u", err.text, bad_layer);
  }
}

static void refuses_totals(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("wide", SN_MAX_DIM, 1 << 20, 1, 1, &err);
  uint32_t x = 0;
  for (int i = 0; i < 64; i++) x = sn_build_relu(b, x, "r%d", i);
  sn_build_softmax(b, x, "s");
  assert_null(sn_builder_finish(b, NULL, &err));
  assert_non_null(strstr(err.text, "together are larger than 4096 TiB"));
  sn_err zero = SN_ERR_INIT;
  b = sn_builder_new("none", 0, 3, 8, 8, &zero);
  sn_build_softmax(b, sn_build_fc(b, 0, 10, "fc"), "s");
  assert_null(sn_builder_finish(b, NULL, &zero));
  assert_non_null(strstr(zero.text, "layer \"data\": a tensor of 0x3x8x8"));
}

static void no_builder(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_build_relu(NULL, 0, "a"), SN_NONE);
  assert_int_equal(sn_build_layer(NULL, SN_ACT, &(sn_attr){0}, (uint32_t[]){0}, 1, "a"), SN_NONE);
  assert_null(sn_builder_finish(NULL, NULL, &err));
  assert_int_equal(err.code, SN_NO_MEMORY);
}

static void deep_network(void **state) {
  (void)state;
  enum { DEPTH = 300000 };
  sn_err err = SN_ERR_INIT;
  sn_builder *b = begin();
  uint32_t x = 0;
  for (uint32_t i = 0; i < DEPTH; i++) x = sn_build_relu(b, x, "r%u", i);
  sn_build_softmax(b, sn_build_fc(b, x, 10, "fc"), "s");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  assert_non_null(net);
  assert_int_equal(net->n_layers, DEPTH + 3);
  sn_net_free(net);
}

static uint32_t draw(uint64_t *seed, uint32_t below) { /* xorshift64* */
  *seed ^= *seed >> 12, *seed ^= *seed << 25, *seed ^= *seed >> 27;
  return (uint32_t)((*seed * UINT64_C(2685821657736338717)) >> 33) % below;
}

/* Declares `count` layers of one shape in a random order, each with one to four inputs among those of lower rank; what
 * no layer took goes into a last CONCAT. rank[] is a random order that the builder does not know. */
static sn_net *random_net(uint64_t *seed, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  uint32_t place[64] = {0}, taken[64] = {0}, ends[64], n_ends = 0; /* place: of the layer with this rank */
  for (uint32_t i = 1; i <= count; i++) {
    uint32_t other = 1 + draw(seed, i);
    place[i] = place[other];
    place[other] = i;
  }
  uint32_t inputs[64][4], n_inputs[64] = {0};
  for (uint32_t rank = 1; rank <= count; rank++) {
    uint32_t at = place[rank];
    n_inputs[at] = 1 + draw(seed, 4);
    for (uint32_t k = 0; k < n_inputs[at]; k++) inputs[at][k] = place[k ? draw(seed, rank) : rank - 1];
    for (uint32_t k = 0; k < n_inputs[at]; k++) taken[inputs[at][k]]++;
  }
  sn_builder *b = begin();
  for (uint32_t i = 1; i <= count; i++) {
    char name[16];
    snprintf(name, sizeof name, "l%u", i);
    assert_int_equal(sn_build_layer(b, n_inputs[i] > 1 ? SN_JOIN : SN_ACT, &(sn_attr){0}, inputs[i], n_inputs[i], name),
                     i);
    if (!taken[i]) ends[n_ends++] = i;
  }
  if (n_ends < 2) ends[n_ends++] = 0;
  uint32_t x = sn_build_concat(b, ends, n_ends, "end");
  sn_build_softmax(b, sn_build_fc(b, x, 10, "fc"), "s");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static void check_references(const sn_net *net) {
  uint32_t inputs = 0, values = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    assert_int_equal(layer->first_input, inputs);
    assert_int_equal(layer->first_output, values);
    assert_true(layer->op == SN_FORK ? layer->n_outputs >= 2 : layer->n_outputs == 1);
    for (uint32_t k = 0; k < layer->n_inputs; k++) {
      assert_int_equal(sn_layer_input(net, layer, k)->consumer, i);
      assert_int_equal(sn_layer_input(net, layer, k)->consumer_input, k);
    }
    for (uint32_t k = 0; k < layer->n_outputs; k++) {
      const sn_value *value = &net->values[values + k];
      assert_int_equal(value->producer, i);
      assert_int_equal(value->consumer == SN_NONE, layer->op == SN_SOFTMAX);
      assert_int_equal(value->bytes, (uint64_t)layer->out.n * layer->out.c * layer->out.h * layer->out.w * 4);
    }
    inputs += layer->n_inputs;
    values += layer->n_outputs;
  }
  assert_int_equal(values, net->n_values);
}

static void random_networks(void **state) {
  (void)state;
  uint64_t seed = (uint64_t)time(NULL) | 1;
  const char *fixed = getenv("SNSIM_SEED");
  if (fixed) seed = strtoull(fixed, NULL, 10) | 1;
  print_message("SNSIM_SEED=%llu\n", (unsigned long long)seed);
  for (int i = 0; i < 2000; i++) {
    sn_net *net = random_net(&seed, 1 + draw(&seed, 40));
    check_references(net);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forks_in_declared_order),
      cmocka_unit_test(totals),
      cmocka_unit_test(attributes),
      cmocka_unit_test(attributes_kept_once),
      cmocka_unit_test(refuses),
      cmocka_unit_test(refuses_totals),
      cmocka_unit_test(no_builder),
      cmocka_unit_test(deep_network),
      cmocka_unit_test(random_networks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
