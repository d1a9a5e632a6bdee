/* What weights are drawn as: mean and spread of each rule, biases, which layers are ends, what batch norms begin with.
 */
#include "exec/kernel/state.h"
#include "models/build/build.h"
#include "models/build/lora.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

/* CONV, BN, DECONV, FC, then a branch of its own end for each of two SOFTMAX layers: FC, and CONV with POOL and ACT
 * behind. */
static sn_net *make_net(void) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("ends", 1, 16, 8, 8, &err);
  uint32_t last = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 64, .kernel = 3, .groups = 2}, "conv");
  last = sn_build_bn(b, last, "bn");
  last = sn_build_deconv(b, last, (sn_conv){.channels = 30, .kernel = 5, .stride = 2, .groups = 2}, "deconv");
  last = sn_build_pool(b, last, (sn_pooling){.average = true, .adaptive = 4}, "small");
  last = sn_build_fc(b, last, 300, "fc");
  uint32_t end = sn_build_fc(b, last, 70, "fc_end");
  sn_build_softmax(b, end, "softmax1");
  end = sn_build_conv(b, last, (sn_conv){.channels = 80, .kernel = 1}, "conv_end");
  end = sn_build_pool(b, sn_build_relu(b, end, "relu"), (sn_pooling){.average = true, .global = true}, "pool");
  sn_build_softmax(b, sn_build_dropout(b, end, 0.5, "drop"), "softmax2");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static uint32_t find(const sn_net *net, const char *name) {
  uint32_t i = 0;
  while (i < net->n_layers && strcmp(net->layers[i].name, name) != 0) i++;
  assert_true(i < net->n_layers);
  return i;
}

typedef struct moments {
  double mean, deviation, largest;
} moments;

static moments measure(const float *p, uint64_t count) {
  moments m = {0};
  double squares = 0;
  for (uint64_t i = 0; i < count; i++) {
    m.mean += p[i] / (double)count;
    squares += (double)p[i] * p[i];
    m.largest = fmax(m.largest, fabs((double)p[i]));
  }
  m.deviation = sqrt(squares / (double)count - m.mean * m.mean);
  return m;
}

/* Weights of a layer deviate by `deviation`, biases by `bias`; both lie around 0. */
static void check_layer(const sn_state *s, const char *name, double deviation, double bias, double limit) {
  uint32_t index = find(s->net, name);
  const sn_layer *layer = &s->net->layers[index];
  const float *p = s->parameters + s->parameter_offset[index];
  uint64_t biases = layer->attr->channels, weights = layer->parameters - biases;
  moments w = measure(p, weights), b = measure(p + weights, biases);
  assert_true(fabs(w.deviation - deviation) <= 0.03 * deviation);
  assert_true(fabs(w.mean) <= 4 * deviation / sqrt((double)weights));
  assert_true(fabs(b.deviation - bias) <= 0.25 * bias);
  assert_true(w.largest <= limit && b.largest <= limit);
  assert_true(w.largest > limit * 0.6);
}

/* An output of the DECONV is the sum of 32 x 25 / 4 products; PyTorch takes 15 x 25. */
static void check_all(sn_init init, const double deviations[5], double bias) {
  static const char *const names[5] = {"conv", "deconv", "fc", "fc_end", "conv_end"};
  const double fans[5] = {72, init == SN_INIT_PYTORCH ? 375 : 200, 480, 300, 300};
  sn_err err = SN_ERR_INIT;
  sn_net *net = make_net();
  sn_state *s = sn_state_new(net, &(sn_hyper){.seed = 3, .init = init}, &err);
  assert_non_null(s);
  for (int i = 0; i < 5; i++) {
    double unit = 1 / sqrt(fans[i]),
           farthest = init == SN_INIT_PYTORCH ? 1 : 3.5 * deviations[i]; /* four 16-bit numbers */
    check_layer(s, names[i], deviations[i] * unit, bias * unit, farthest * unit * (1 + 1e-6));
  }
  sn_state_free(s);
  sn_net_free(net);
}

static const double root = 1.4142135623730951;

static void he(void **state) {
  (void)state;
  check_all(SN_INIT_HE, (const double[]){root, root, root, root, root}, 0);
}

static void small_end(void **state) {
  (void)state;
  check_all(SN_INIT_SMALL_END, (const double[]){root, root, root, 0.1 * root, 0.1 * root}, 0);
}

static void pytorch(void **state) {
  (void)state;
  const double even = 1 / sqrt(3);
  check_all(SN_INIT_PYTORCH, (const double[]){even, even, even, even, even}, even);
}

/* As peft has them, whatever the rule of all others: the first evenly by its inputs, the second 0. */
static void adapters(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *plain = make_net(), *net = sn_lora_apply(plain, &(sn_lora){.rank = 8, .globs = ""}, &err);
  assert_non_null(net);
  for (sn_init init = 0; init < SN_INITS; init++) {
    sn_state *s = sn_state_new(net, &(sn_hyper){.seed = 3, .init = init}, &err);
    assert_non_null(s);
    const uint32_t a = find(net, "fc.lora_A"), b = find(net, "fc.lora_B");
    const moments first = measure(s->parameters + s->parameter_offset[a], net->layers[a].parameters),
                  second = measure(s->parameters + s->parameter_offset[b], net->layers[b].parameters);
    const double limit = 1 / sqrt(480);
    assert_int_equal(net->layers[a].parameters, 8 * 480);
    assert_true(fabs(first.deviation - limit / sqrt(3)) <= 0.03 * limit && first.largest <= limit * (1 + 1e-6));
    assert_true(first.largest > 0.9 * limit && second.largest == 0);
    sn_state_free(s);
  }
  sn_net_free(net);
  sn_net_free(plain);
}

static void batch_norm(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = make_net();
  sn_state *s = sn_state_new(net, &(sn_hyper){.seed = 3, .init = SN_INIT_PYTORCH}, &err);
  assert_non_null(s);
  uint32_t bn = find(net, "bn");
  for (uint32_t c = 0; c < 64; c++) {
    const float *p = s->parameters + s->parameter_offset[bn] + c, *r = s->statistics + s->statistics_offset[bn] + c;
    assert_true(p[0] == 1 && p[64] == 0 && r[0] == 0 && r[64] == 1);
  }
  sn_state_free(s);
  sn_net_free(net);
}

static void names(void **state) {
  (void)state;
  sn_init init = SN_INITS;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_init_parse("pytorch", &init, &err), SN_OK);
  assert_int_equal(init, SN_INIT_PYTORCH);
  assert_int_equal(sn_init_parse("xavier", &init, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "small-end, he, pytorch"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(he),         cmocka_unit_test(small_end),
                                     cmocka_unit_test(pytorch),    cmocka_unit_test(adapters),
                                     cmocka_unit_test(batch_norm), cmocka_unit_test(names)};
  return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
