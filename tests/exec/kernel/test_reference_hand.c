/* Reference kernels, operator by operator, against what can be worked out by hand or another program says. */
#include "tests/exec/kernel/probe.h"

/* By PyTorch, in float64: one head of two channels, three positions, causal. */
static void attention_by_hand(void **state) {
  (void)state;
  const sn_attr causal = {.heads = 1, .kv_heads = 1, .causal = true};
  sn_net *net = attention_net(causal, 1, 3, 2, true);
  const float x[] = {1, 0, -1, 0.5f, 2, 1, 0, 1, 2, 1, -1, 0.5f, 1, 2, 3, -1, 0, 4};
  const float y[] = {1, 1.0558072f, 1.3574349f, -1, -0.94419278f, -0.24573693f}, dx[] = {0,
                                                                                         0.074518835f,
                                                                                         1.1598466f,
                                                                                         0,
                                                                                         -0.14903767f,
                                                                                         -0.39206f,
                                                                                         0.60909426f,
                                                                                         -0.058341912f,
                                                                                         -0.55075235f,
                                                                                         -0.75813193f,
                                                                                         0.20737958f,
                                                                                         0.55075235f,
                                                                                         2.719034f,
                                                                                         0.14868995f,
                                                                                         0.13227607f,
                                                                                         2.719034f,
                                                                                         0.14868995f,
                                                                                         0.13227607f};
  probe p = probe_open(net, SN_ATTENTION, 1);
  const sn_layer *layer = &net->layers[p.layer];
  memcpy(p.r.output[net->inputs[layer->first_input]], x, sizeof x);
  for (int i = 0; i < 6; i++) p.weights[i] = 1;
  run_backward(&p);
  expect(p.r.output[layer->first_output], y, 6, 1e-6);
  expect(p.r.gradient[net->inputs[layer->first_input]], dx, 18, 1e-6);
  probe_close(&p);
  sn_net_free(net);
}

/* 2 groups of one channel, kernel 2x2, stride 2, padding 1: of a 3x3 image of ones, only what is real counts. */
static void conv_by_hand(void **state) {
  (void)state;
  sn_net *net = op_net(SN_CONV, conv_attr(2, 2, 2, 2, 1, 2), (sn_shape){1, 2, 3, 3}, 1);
  const float x[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const float w[] = {1, 10, 100, 1000, 1, 2, 3, 4, 0.5f, -0.5f};
  const float y[] = {1000.5f, 1100.5f, 1010.5f, 1111.5f, 3.5f, 17.5f, 35.5f, 76.5f};
  probe p = forward_of(net, SN_CONV, x, 18);
  memcpy(p.r.layers[p.layer].parameters, w, sizeof w);
  run_forward(&p);
  expect(p.r.output[net->layers[p.layer].first_output], y, 8, 0);
  probe_close(&p);
  sn_net_free(net);
}

/* Dilated by 2 and 1: rows 0 and 2. */
static void dilated_by_hand(void **state) {
  (void)state;
  sn_attr a = dilated(conv_attr(1, 2, 2, 1, 0, 1), 2, 1);
  sn_net *net = op_net(SN_CONV, a, (sn_shape){1, 1, 3, 3}, 1);
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000}, y[] = {8721, 9832};
  probe p = forward_of(net, SN_CONV, x, 9);
  memcpy(p.r.layers[p.layer].parameters, w, sizeof w);
  run_forward(&p);
  expect(p.r.output[net->layers[p.layer].first_output], y, 2, 0);
  probe_close(&p);
  sn_net_free(net);
}

static void check_forward(sn_op op, sn_attr attr, sn_shape data, const float *x, const float *y, uint64_t outputs) {
  sn_net *net = op_net(op, attr, data, 1);
  probe p = forward_of(net, op, x, (uint64_t)data.n * data.c * data.h * data.w);
  assert_int_equal(output_count(&p), outputs);
  for (uint64_t i = 0; i < net->layers[p.layer].parameters; i++)
    p.r.layers[p.layer].parameters[i] = i < data.c ? 2 : (float)(i - data.c);
  run_forward(&p);
  expect(p.r.output[net->layers[p.layer].first_output], y, outputs, 2e-5); /* of norms, eps */
  probe_close(&p);
  sn_net_free(net);
}

/* RESIZE as interpolate() of PyTorch; norms of groups with gamma 2 and beta the channel. */
static void sizes_by_hand(void **state) {
  (void)state;
  const float row[] = {1, 2, 3, 4, 5}, twice[] = {1, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4.25f, 4.75f, 5},
              three[] = {1, 2, 4}, mean_of[] = {1.3333333f, 3, 4.6666667f};
  const float square[] = {1, 2, 3, 4}, around[] = {0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0},
              behind[] = {1, 2, 0, 3, 4, 0};
  const float channels[] = {1, 3, 2, 6}, normed[] = {-2, 3, 0, 5}, even[] = {0.25f, 0.75f, 0.5f, 0.5f},
              of[] = {0, 1.0986123f, 7, 7};
  check_forward(SN_RESIZE, resize_attr(true, 1, 10), (sn_shape){1, 1, 1, 5}, row, twice, 10);
  check_forward(SN_RESIZE, resize_attr(true, 1, 3), (sn_shape){1, 1, 1, 5}, row, mean_of, 3);
  check_forward(SN_RESIZE, resize_attr(false, 1, 3), (sn_shape){1, 1, 1, 5}, row, three, 3);
  check_forward(SN_PAD, pad_attr(1, 1, 0, 0), (sn_shape){1, 1, 2, 2}, square, around, 16);
  check_forward(SN_PAD, pad_attr(0, 0, 0, 1), (sn_shape){1, 1, 2, 2}, square, behind, 6);
  check_forward(SN_GROUP_NORM, (sn_attr){.groups = 2}, (sn_shape){1, 4, 1, 1}, channels, normed, 4);
  check_forward(SN_PROBABILITIES, (sn_attr){.axis = SN_SIDE_WIDTH}, (sn_shape){1, 1, 2, 2}, of, even, 4);
}

/* The definition: every input puts its multiple of the window into the output, a stride apart; what falls into the
 * padding is lost. */
static void scatter(const sn_attr *a, sn_shape in, sn_shape out, const float *x, const float *w, const float *bias,
                    double *y) {
  uint32_t inputs = in.c / a->groups, outputs = out.c / a->groups;
  uint64_t count = (uint64_t)out.c * out.h * out.w, plane = (uint64_t)out.h * out.w;
  for (uint64_t i = 0; i < count; i++) y[i] = bias ? bias[i / plane] : 0;
  for (uint32_t c = 0; c < in.c; c++)
    for (uint32_t i = 0; i < in.h * in.w; i++)
      for (uint32_t o = 0; o < outputs; o++)
        for (uint32_t k = 0; k < a->kernel_h * a->kernel_w; k++) {
          uint32_t down = a->dilation_h ? a->dilation_h : 1, right = a->dilation_w ? a->dilation_w : 1;
          int64_t row = (int64_t)(i / in.w) * a->stride_h + k / a->kernel_w * down - a->pad_h;
          int64_t column = (int64_t)(i % in.w) * a->stride_w + k % a->kernel_w * right - a->pad_w;
          if (row < 0 || row >= out.h || column < 0 || column >= out.w) continue;
          uint32_t channel = c / inputs * outputs + o;
          y[(channel * out.h + (uint64_t)row) * out.w + (uint64_t)column] +=
              (double)x[c * in.h * in.w + i] * w[(c * outputs + o) * a->kernel_h * a->kernel_w + k];
        }
}

static void deconv_scatters(void **state) {
  (void)state;
  const sn_attr attrs[] = {deconv_attr(2, 2, 2, 2, 1, 0, 2), deconv_attr(6, 5, 5, 2, 2, 1, 1),
                           deconv_attr(4, 3, 2, 3, 1, 2, 2), deconv_attr(3, 7, 7, 1, 0, 0, 1),
                           deconv_attr(8, 1, 1, 2, 0, 1, 4), dilated(deconv_attr(4, 3, 2, 2, 1, 1, 2), 2, 3)};
  for (size_t n = 0; n < sizeof attrs / sizeof attrs[0]; n++) {
    const sn_shape in = {1, attrs[n].groups * 2, 3, 4};
    sn_net *net = op_net(SN_DECONV, attrs[n], in, 1);
    probe p = probe_open(net, SN_DECONV, 7 + n);
    const sn_layer *layer = &net->layers[p.layer];
    const float *w = p.r.layers[p.layer].parameters, *made;
    uint64_t count = output_count(&p), biases = layer->attr->bias ? layer->out.c : 0;
    double *y = net_calloc(count, sizeof *y);
    run_forward(&p);
    made = p.r.output[layer->first_output];
    scatter(&attrs[n], in, layer->out, p.r.output[0], w, biases ? w + layer->parameters - biases : NULL, y);
    for (uint64_t i = 0; i < count; i++)
      if (!(fabs(made[i] - y[i]) <= 1e-6))
        fail_msg("case %zu, element %llu: %g, expected %g", n, (unsigned long long)i, (double)made[i], y[i]);
    free(y);
    probe_close(&p);
    sn_net_free(net);
  }
}

/* Outputs and gradients by tables of tanh and exp; from ELU on PyTorch's, in float64. */
static void acts_by_hand(void **state) {
  (void)state;
  static const struct {
    sn_act_mode mode;
    float y[4], dx[4];
  } cases[] = {
      {SN_ACT_LEAKY, {-0.4f, -0.1f, 0.5f, 2}, {0.2f, 0.2f, 1, 1}},
      {SN_ACT_TANH,
       {-0.96402758f, -0.46211716f, 0.46211716f, 0.96402758f},
       {0.07065082f, 0.78644773f, 0.78644773f, 0.07065082f}},
      {SN_ACT_SIGMOID,
       {0.11920292f, 0.37754067f, 0.62245933f, 0.88079708f},
       {0.10499359f, 0.23500371f, 0.23500371f, 0.10499359f}},
      {SN_ACT_ELU, {-0.864664717f, -0.39346934f, 0.5f, 2}, {0.135335283f, 0.60653066f, 1, 1}},
      {SN_ACT_GELU,
       {-0.0455002639f, -0.154268769f, 0.345731231f, 1.95449974f},
       {-0.0852318011f, 0.132504875f, 0.867495125f, 1.0852318f}},
      {SN_ACT_SILU,
       {-0.238405844f, -0.188770334f, 0.311229666f, 1.76159416f},
       {-0.0907842488f, 0.260038813f, 0.739961187f, 1.09078425f}},
      {SN_ACT_HARDSWISH,
       {-0.333333333f, -0.208333333f, 0.291666667f, 1.66666667f},
       {-0.166666667f, 0.333333333f, 0.666666667f, 1.16666667f}},
      {SN_ACT_HARDSIGMOID,
       {0.166666667f, 0.416666667f, 0.583333333f, 0.833333333f},
       {0.166666672f, 0.166666672f, 0.166666672f, 0.166666672f}},
      {SN_ACT_SOFTPLUS,
       {0.126928011f, 0.474076984f, 0.974076984f, 2.12692801f},
       {0.119202922f, 0.377540669f, 0.622459331f, 0.880797078f}},
      {SN_ACT_MISH,
       {-0.252501483f, -0.220743775f, 0.375245211f, 1.94395896f},
       {-0.108355092f, 0.289510678f, 0.886424375f, 1.06931793f}},
      {SN_ACT_GELU_NEW,
       {-0.0454023059f, -0.15428599f, 0.34571401f, 1.95459769f},
       {-0.0860992566f, 0.132630096f, 0.867369904f, 1.08609926f}},
      {SN_ACT_TIMES, {3, 0.75f, -0.75f, -3}, {-1.5f, -1.5f, -1.5f, -1.5f}},
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    sn_net *net = op_net(SN_ACT, act_attr(cases[n].mode), (sn_shape){1, 4, 1, 1}, 1);
    const float x[] = {-2, -0.5f, 0.5f, 2}, ones[] = {1, 1, 1, 1};
    probe p = forward_of(net, SN_ACT, x, 4);
    memcpy(p.weights, ones, sizeof ones);
    run_backward(&p);
    expect(p.r.output[net->layers[p.layer].first_output], cases[n].y, 4, 1e-7);
    expect(p.r.gradient[0], cases[n].dx, 4, 1e-7);
    probe_close(&p);
    sn_net_free(net);
  }
}

static void pool_by_hand(void **state) {
  (void)state;
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const float top[] = {1, 3, 7, 9}, mean[] = {1, 2.5f, 5.5f, 7}, ceil_mean[] = {3, 4.5f, 7.5f, 9},
              mean_of_two[] = {3, 4, 6, 7}; /* adaptive: two windows of 2x2 a side, which overlap */
  sn_net *nets[] = {op_net(SN_POOL, pool_attr(SN_POOL_MAX, 2, 2, 1, false), (sn_shape){1, 1, 3, 3}, 1),
                    op_net(SN_POOL, pool_attr(SN_POOL_AVERAGE, 2, 2, 1, false), (sn_shape){1, 1, 3, 3}, 1),
                    op_net(SN_POOL, pool_attr(SN_POOL_AVERAGE, 2, 2, 0, true), (sn_shape){1, 1, 3, 3}, 1),
                    op_net(SN_POOL, adaptive_attr(SN_POOL_AVERAGE, 2, 2), (sn_shape){1, 1, 3, 3}, 1)};
  const float *expected[] = {top, mean, ceil_mean, mean_of_two};
  for (int i = 0; i < 4; i++) {
    probe p = forward_of(nets[i], SN_POOL, x, 9);
    run_forward(&p);
    expect(p.r.output[nets[i]->layers[p.layer].first_output], expected[i], 4, 0);
    probe_close(&p);
    sn_net_free(nets[i]);
  }
}

/* Of equal maxima the first, row by row, gets the whole gradient. */
static void first_maximum_takes_all(void **state) {
  (void)state;
  sn_net *net = op_net(SN_POOL, pool_attr(SN_POOL_MAX, 2, 1, 0, false), (sn_shape){1, 1, 3, 3}, 1);
  const float x[] = {0, 5, 0, 5, 5, 0, 0, 0, 0}, dy[] = {1, 10, 100, 1000}, dx[] = {0, 11, 0, 100, 1000, 0, 0, 0, 0};
  probe p = forward_of(net, SN_POOL, x, 9);
  memcpy(p.weights, dy, sizeof dy);
  run_backward(&p);
  expect(p.r.gradient[0], dx, 9, 0);
  probe_close(&p);
  sn_net_free(net);
}

static void norm_by_hand(void **state) {
  (void)state;
  sn_net *lrn = op_net(SN_LRN, lrn_attr(3, 3, 0.5, 4), (sn_shape){1, 4, 1, 1}, 1);
  const float x[] = {1, -2, 4, 0}; /* k + squares of the neighbours: 9, 25, 24, 20 */
  const float y[] = {1.0f / 3, -2.0f / 5, 0.8164966f, 0};
  probe p = forward_of(lrn, SN_LRN, x, 4);
  run_forward(&p);
  expect(p.r.output[lrn->layers[p.layer].first_output], y, 4, 1e-7);
  probe_close(&p);
  sn_net_free(lrn);
}

/* Mean 3, variance 5 of four numbers, 20/3 unbiased; a re-run leaves the running statistics alone. */
static void bn_by_hand(void **state) {
  (void)state;
  sn_net *net = op_net(SN_BN, (sn_attr){0}, (sn_shape){2, 1, 1, 2}, 1);
  const float x[] = {0, 2, 4, 6}, parameters[] = {2, 1};
  const float y[] = {-1.6832816f, 0.1055728f, 1.8944272f, 3.6832816f};
  const float statistics[] = {0.3f, 0.9f + 0.1f * 20 / 3, 3, 0.4472136f};
  probe p = forward_of(net, SN_BN, x, 4);
  net_state *s = &p.r.layers[p.layer];
  memcpy(s->parameters, parameters, sizeof parameters);
  for (int pass = 0; pass < 3; pass++) {
    sn_call call = net_runner_call(&p.r, p.r.route->forward_step[p.layer]);
    call.rerun = pass > 0;
    net_runner_run(&p.r, &call);
    expect(p.r.output[net->layers[p.layer].first_output], y, 4, 1e-5);
    expect(s->statistics, statistics, 4, 1e-6);
  }
  probe_close(&p);
  sn_net_free(net);
}

static void bn_of_one_element(void **state) {
  (void)state;
  sn_net *net = op_net(SN_BN, (sn_attr){0}, (sn_shape){1, 1, 1, 1}, 1);
  const float x[] = {7}, statistics[] = {0.7f, 0.9f, 7, 316.22777f};
  probe p = forward_of(net, SN_BN, x, 1);
  run_backward(&p);
  const net_state *s = &p.r.layers[p.layer];
  expect(s->statistics, statistics, 4, 1e-4);
  expect(p.r.output[net->layers[p.layer].first_output], s->parameters + 1, 1, 0);
  assert_true(p.r.gradient[0][0] == 0);
  probe_close(&p);
  sn_net_free(net);
}

/* Probabilities 1/4 and 3/4; and a logit so low that its probability is 0 in float32, whose loss is still finite. */
static void softmax_by_hand(void **state) {
  (void)state;
  sn_net *net = op_net(SN_SOFTMAX, (sn_attr){0}, (sn_shape){2, 2, 1, 1}, 1);
  const float x[] = {1, 2.0986123f, 0, -200}, y[] = {0.25f, 0.75f, 1, 0}, dx[] = {-0.375f, 0.375f, 0.5f, -0.5f};
  probe p = forward_of(net, SN_SOFTMAX, x, 4);
  p.r.labels[0] = 0;
  p.r.labels[1] = 1;
  assert_true(fabs(run_forward(&p) - (log(4) + 200) / 2) < 1e-6);
  expect(p.r.output[1], y, 4, 1e-7);
  run_backward(&p);
  expect(p.r.gradient[0], dx, 4, 1e-7);
  probe_close(&p);
  sn_net_free(net);
}

/* Differences 1, -2, 0 and 3 from the targets: a mean square of 14 / 4. */
static void squares_by_hand(void **state) {
  (void)state;
  sn_net *net = op_net(SN_SOFTMAX, (sn_attr){.loss = SN_LOSS_MSE}, (sn_shape){2, 1, 2, 1}, 1);
  const float x[] = {1.5f, -1, 0.25f, 5}, targets[] = {0.5f, 1, 0.25f, 2}, dx[] = {0.5f, -1, 0, 1.5f};
  probe p = forward_of(net, SN_SOFTMAX, x, 4);
  memcpy(p.r.labels, targets, sizeof targets);
  assert_true(fabs(run_forward(&p) - 3.5) < 1e-12);
  run_backward(&p);
  expect(p.r.gradient[0], dx, 4, 0);
  probe_close(&p);
  sn_net_free(net);
}

/* Two parameters, the second iteration. Adam's are worked out with 40 digits. */
static void updates_by_hand(void **state) {
  (void)state;
  static const struct {
    float parameters[2], states[SN_OPTIMIZER_STATES][2];
  } after[] = {
      [SN_OPTIMIZER_MOMENTUM] = {{0.125f, -7.75f}, {{3.75f, 7.5f}, {4, 9}}}, /* v = 10/4 + 1 + 2/8, 20/4 + 3 - 4/8 */
      [SN_OPTIMIZER_SGD] = {{1.375f, -5.25f}, {{10, 20}, {4, 9}}},
      [SN_OPTIMIZER_ADAM] = {{1.46302008f, -4.71586442f}, {{9.125f, 18.25f}, {3.9975625f, 8.99725f}}},
      [SN_OPTIMIZER_ADAMW] = {{1.33945358f, -4.46771601f}, {{9.1f, 18.3f}, {3.997f, 9}}},
  };
  sn_net *net = op_net(SN_FC, (sn_attr){.channels = 1, .bias = true}, (sn_shape){1, 1, 1, 1}, 1);
  probe p = probe_open(net, SN_FC, 1);
  for (sn_optimizer o = 0; o <= SN_OPTIMIZER_ADAMW; o++) {
    float parameters[] = {2, -4}, gradients[] = {1, 3}, states[SN_OPTIMIZER_STATES][2] = {{10, 20}, {4, 9}};
    double allowed = o < SN_OPTIMIZER_ADAM ? 0 : 1e-6;
    const sn_hyper hyper = {.learning_rate = 0.5f, .momentum = 0.25f, .weight_decay = 0.125f, .optimizer = o};
    sn_call call = net_runner_call(&p.r, p.r.route->forward_step[p.layer]);
    call.pass = SN_UPDATE;
    call.iteration = 1;
    call.hyper = &hyper;
    call.parameters = parameters;
    call.gradients = gradients;
    for (uint32_t k = 0; k < SN_OPTIMIZER_STATES; k++) call.states[k] = k < sn_optimizer_states(o) ? states[k] : NULL;
    net_runner_run(&p.r, &call);
    expect(parameters, after[o].parameters, 2, allowed);
    for (int k = 0; k < SN_OPTIMIZER_STATES; k++) expect(states[k], after[o].states[k], 2, allowed);
  }
  probe_close(&p);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention_by_hand), cmocka_unit_test(conv_by_hand),
      cmocka_unit_test(dilated_by_hand),   cmocka_unit_test(sizes_by_hand),
      cmocka_unit_test(deconv_scatters),   cmocka_unit_test(acts_by_hand),
      cmocka_unit_test(pool_by_hand),      cmocka_unit_test(first_maximum_takes_all),
      cmocka_unit_test(norm_by_hand),      cmocka_unit_test(bn_by_hand),
      cmocka_unit_test(bn_of_one_element), cmocka_unit_test(softmax_by_hand),
      cmocka_unit_test(squares_by_hand),   cmocka_unit_test(updates_by_hand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
