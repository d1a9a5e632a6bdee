/* Reference kernels, operator by operator: forwards that can be worked out by hand, and every backward against
 * differences of its forward (tests/exec/kernel/difference.h), f being the loss, or a weighted sum of an operator's outputs in
 * float64. Allowed is 1e-4 of the largest gradient; a wrong factor, sign or index is off by far more. Where f has a
 * kink (ReLU, maximum) within 2h, no difference is a derivative: operators are tested at points away from kinks. */
#include "tests/exec/kernel/probe.h"
#include "tests/support/seed.h"

#include <stdio.h>

/* Inputs in any order, but all different, none near 0: no kink within 2h of any. */
static void spread(float *x, uint64_t count, uint64_t *dice) {
  for (uint64_t i = 0; i < count; i++) x[i] = ((float)i - (float)count / 2 + 0.5f) / 8;
  for (uint64_t i = count; i > 1; i--) {
    uint64_t j = prng_below(dice, (uint32_t)i);
    float kept = x[j];
    x[j] = x[i - 1];
    x[i - 1] = kept;
  }
}

static double operator_value(void *self) {
  return run_forward(self);
}

static void check_elements(probe *p, const char *what, float *x, const float *gradient, uint64_t count) {
  const sn_layer *layer = &p->r.net->layers[p->layer];
  double allowed = 1e-4 * fmax(1, largest_of(gradient, count));
  for (uint64_t i = 0; i < count; i++) {
    double slope = derivative(x + i, 1.0 / 64, operator_value, p), error = fabs(slope - gradient[i]);
    if (!(error <= allowed))
      fail_msg("%s: gradient by %s[%llu]: %.7g, differences say %.7g", sn_op_of(layer)->name, what,
               (unsigned long long)i, (double)gradient[i], slope);
  }
}

/* Every element of every input and parameter. Gradients are copied: dx may lie where an output is. */
static void check_operator(probe *p) {
  const sn_layer *layer = &p->r.net->layers[p->layer];
  float *gradients[4];
  run_backward(p);
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = p->r.net->inputs[layer->first_input + i];
    uint64_t count = net_value_count(&p->r, value);
    gradients[i] = net_calloc(count, sizeof(float));
    memcpy(gradients[i], p->r.gradient[value], count * sizeof(float));
  }
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = p->r.net->inputs[layer->first_input + i];
    check_elements(p, "input", p->r.output[value], gradients[i], net_value_count(&p->r, value));
    free(gradients[i]);
  }
  if (layer->parameters)
    check_elements(p, "parameter", p->r.layers[p->layer].parameters, p->r.layers[p->layer].gradients,
                   layer->parameters);
}

static void check_gradients(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs, uint64_t seed) {
  sn_net *net = op_net(op, attr, data, inputs);
  probe p = probe_open(net, op, seed);
  if (op == SN_ACT || op == SN_POOL) spread(p.r.output[0], net_value_count(&p.r, 0), &seed);
  check_operator(&p);
  probe_close(&p);
  sn_net_free(net);
}

static void gradients_conv(void **state) {
  (void)state;
  uint64_t seed = first_seed(11);
  sn_attr oblong = conv_attr(3, 3, 2, 1, 0, 1);
  oblong.stride_w = 3;
  oblong.pad_h = 2;
  check_gradients(SN_CONV, conv_attr(4, 3, 3, 1, 1, 1), (sn_shape){2, 3, 5, 4}, 1, seed);
  check_gradients(SN_CONV, conv_attr(6, 3, 3, 2, 1, 2), (sn_shape){2, 4, 6, 5}, 1, seed);
  check_gradients(SN_CONV, conv_attr(4, 2, 5, 3, 2, 4), (sn_shape){1, 4, 7, 7}, 1, seed);
  check_gradients(SN_CONV, conv_attr(3, 1, 1, 2, 1, 1), (sn_shape){2, 2, 3, 3}, 1, seed);
  check_gradients(SN_CONV, oblong, (sn_shape){2, 2, 4, 8}, 1, seed);
}

static void gradients_deconv(void **state) {
  (void)state;
  uint64_t seed = first_seed(19);
  sn_attr oblong = deconv_attr(3, 3, 2, 1, 0, 0, 1);
  oblong.stride_w = 3;
  oblong.output_pad_w = 2;
  oblong.pad_h = 2;
  check_gradients(SN_DECONV, deconv_attr(4, 3, 3, 1, 1, 0, 1), (sn_shape){2, 3, 5, 4}, 1, seed);
  check_gradients(SN_DECONV, deconv_attr(6, 3, 3, 2, 1, 1, 2), (sn_shape){2, 4, 3, 2}, 1, seed);
  check_gradients(SN_DECONV, deconv_attr(4, 2, 5, 3, 0, 2, 4), (sn_shape){1, 4, 2, 2}, 1, seed);
  check_gradients(SN_DECONV, deconv_attr(3, 1, 1, 2, 0, 0, 1), (sn_shape){2, 2, 2, 3}, 1, seed);
  check_gradients(SN_DECONV, oblong, (sn_shape){2, 2, 4, 3}, 1, seed);
}

static void gradients_fc(void **state) {
  (void)state;
  uint64_t seed = first_seed(12);
  check_gradients(SN_FC, (sn_attr){.channels = 5, .bias = true}, (sn_shape){3, 2, 3, 2}, 1, seed);
  check_gradients(SN_FC, (sn_attr){.channels = 1}, (sn_shape){1, 7, 1, 1}, 1, seed);
}

static void gradients_pool(void **state) {
  (void)state;
  uint64_t seed = first_seed(13);
  for (int mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    check_gradients(SN_POOL, pool_attr((sn_pool_mode)mode, 3, 2, 1, false), (sn_shape){2, 2, 6, 5}, 1, seed);
    check_gradients(SN_POOL, pool_attr((sn_pool_mode)mode, 3, 2, 0, true), (sn_shape){1, 2, 6, 8}, 1, seed);
    check_gradients(SN_POOL, pool_attr((sn_pool_mode)mode, 3, 1, 1, false), (sn_shape){1, 1, 4, 4}, 1, seed);
    check_gradients(SN_POOL, pool_attr((sn_pool_mode)mode, 2, 3, 1, true), (sn_shape){1, 2, 7, 5}, 1, seed);
    check_gradients(SN_POOL, global_attr((sn_pool_mode)mode), (sn_shape){2, 3, 3, 5}, 1, seed);
    check_gradients(SN_POOL, adaptive_attr((sn_pool_mode)mode, 2, 3), (sn_shape){2, 3, 4, 3}, 1, seed);
    check_gradients(SN_POOL, adaptive_attr((sn_pool_mode)mode, 3, 4), (sn_shape){2, 2, 5, 3}, 1, seed);
  }
}

static void gradients_of_dilated_pools(void **state) {
  (void)state;
  uint64_t seed = first_seed(21);
  check_gradients(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 3, 2, 1, false), 2, 3), (sn_shape){2, 2, 7, 9}, 1, seed);
  check_gradients(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 2, 1, 2, true), 3, 4), (sn_shape){1, 2, 5, 6}, 1, seed);
}

static void check_deep_gradients(sn_op op, sn_attr attr, sn_shape data, uint64_t seed) {
  sn_net *net = volumes_net(op, attr, data, 4, 1);
  probe p = probe_open(net, op, seed);
  if (op == SN_POOL) spread(p.r.output[0], net_value_count(&p.r, 0), &seed);
  check_operator(&p);
  probe_close(&p);
  sn_net_free(net);
}

static void gradients_of_volumes(void **state) {
  (void)state;
  uint64_t seed = first_seed(23);
  sn_attr deconv = deep(deconv_attr(4, 2, 3, 2, 1, 1, 2), 3, 2, 1, 1), cut = adaptive_attr(SN_POOL_AVERAGE, 2, 3);
  deconv.output_pad_d = 1;
  cut.adaptive_d = 3;
  check_deep_gradients(SN_CONV, deep(conv_attr(4, 3, 3, 1, 1, 1), 3, 1, 1, 1), (sn_shape){2, 2, 3, 4}, seed);
  check_deep_gradients(SN_CONV, deep(conv_attr(4, 2, 3, 2, 1, 2), 2, 2, 1, 2), (sn_shape){1, 2, 4, 3}, seed);
  check_deep_gradients(SN_DECONV, deconv, (sn_shape){1, 2, 3, 2}, seed);
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++)
    check_deep_gradients(SN_POOL, deep(pool_attr(mode, 3, 2, 1, true), 2, 1, 1, 1), (sn_shape){1, 2, 4, 5}, seed);
  check_deep_gradients(SN_POOL, deep(dilated(pool_attr(SN_POOL_MAX, 2, 1, 0, true), 2, 1), 2, 1, 1, 3),
                       (sn_shape){1, 2, 4, 3}, seed);
  check_deep_gradients(SN_POOL, cut, (sn_shape){1, 2, 3, 4}, seed);
}

static void gradients_norm(void **state) {
  (void)state;
  uint64_t seed = first_seed(14);
  check_gradients(SN_LRN, lrn_attr(3, 0.9, 0.75, 1.5), (sn_shape){2, 5, 2, 3}, 1, seed);
  check_gradients(SN_LRN, lrn_attr(9, 0.9, 1.2, 1.5), (sn_shape){1, 4, 2, 2}, 1, seed);
  check_gradients(SN_BN, (sn_attr){0}, (sn_shape){3, 2, 3, 2}, 1, seed);
  check_gradients(SN_BN, (sn_attr){0}, (sn_shape){5, 3, 1, 1}, 1, seed);
  check_gradients(SN_SOFTMAX, (sn_attr){0}, (sn_shape){3, 6, 1, 1}, 1, seed);
}

static void gradients_of_others(void **state) {
  (void)state;
  uint64_t seed = first_seed(15);
  for (sn_act_mode mode = 0; mode < SN_ACT_PRELU; mode++)
    check_gradients(SN_ACT, act_attr(mode), (sn_shape){2, 3, 5, 4}, 1, seed);
  check_gradients(SN_ACT, prelu_attr(1), (sn_shape){2, 3, 5, 4}, 1, seed);
  check_gradients(SN_ACT, prelu_attr(3), (sn_shape){2, 3, 5, 4}, 1, seed);
  check_gradients(SN_DROPOUT, (sn_attr){.ratio = 0.4}, (sn_shape){2, 3, 4, 2}, 1, seed);
  check_gradients(SN_JOIN, (sn_attr){0}, (sn_shape){2, 3, 2, 2}, 2, seed);
  check_gradients(SN_JOIN, (sn_attr){0}, (sn_shape){1, 2, 2, 2}, 3, seed);
  check_gradients(SN_FORK, (sn_attr){0}, (sn_shape){2, 3, 2, 2}, 1, seed);
  check_gradients(SN_CONCAT, (sn_attr){0}, (sn_shape){2, 2, 3, 2}, 3, seed);
}

static void check_gate(sn_shape data, uint32_t height, uint32_t width, bool one_channel, uint64_t seed) {
  sn_net *net = gate_net(data, 3, height, width, one_channel);
  probe p = probe_open(net, SN_MUL, seed);
  check_operator(&p);
  probe_close(&p);
  sn_net_free(net);
}

static void gradients_of_products(void **state) {
  (void)state;
  uint64_t seed = first_seed(16);
  check_gradients(SN_MUL, (sn_attr){0}, (sn_shape){2, 3, 2, 2}, 2, seed);
  check_gate((sn_shape){2, 2, 4, 3}, 1, 1, false, seed); /* a number a channel */
  check_gate((sn_shape){2, 2, 4, 3}, 4, 3, true, seed);  /* one a pixel */
  check_gate((sn_shape){2, 2, 4, 3}, 4, 1, false, seed);
  check_gate((sn_shape){2, 2, 4, 3}, 1, 3, true, seed);
  check_gradients(SN_SCALE, (sn_attr){0}, (sn_shape){2, 3, 4, 2}, 1, seed);
  check_gradients(SN_DROPOUT, (sn_attr){.ratio = 0.4, .images = true}, (sn_shape){5, 3, 2, 2}, 1, seed);
}

static void gradients_of_positions(void **state) {
  (void)state;
  uint64_t seed = first_seed(17);
  check_gradients(SN_LAYER_NORM, (sn_attr){0}, (sn_shape){2, 5, 3, 2}, 1, seed);
  check_gradients(SN_RMS_NORM, (sn_attr){0}, (sn_shape){2, 5, 3, 2}, 1, seed);
  check_gradients(SN_FC, (sn_attr){.channels = 4, .bias = true, .positions = true}, (sn_shape){2, 3, 4, 2}, 1, seed);
  check_gradients(SN_FC, (sn_attr){.channels = 3, .positions = true}, (sn_shape){2, 5, 3, 1}, 1, seed);
  check_gradients(SN_SOFTMAX, (sn_attr){.positions = true}, (sn_shape){2, 4, 3, 2}, 1, seed);
  check_gradients(SN_SOFTMAX, (sn_attr){.loss = SN_LOSS_MSE}, (sn_shape){2, 4, 3, 2}, 1, seed);
}

static void check_net_operator(sn_net *net, sn_op op, uint64_t seed) {
  probe p = probe_open(net, op, seed);
  check_operator(&p);
  probe_close(&p);
  sn_net_free(net);
}

/* Inputs are not drawn anew: they are tokens. */
static void check_table(uint64_t seed) {
  sn_net *net = tokens_net(2, 5, 4, 3, 5);
  probe p = {.r = net_runner_open(net, reference_kernels, seed), .layer = op_net_layer(net, SN_EMBEDDING)};
  p.weights = net_calloc(output_count(&p), sizeof *p.weights);
  net_fill(p.weights, output_count(&p), 1, &seed);
  run_backward(&p);
  const net_state *s = &p.r.layers[p.layer];
  check_elements(&p, "table", s->parameters, s->gradients, net->layers[p.layer].parameters);
  probe_close(&p);
  sn_net_free(net);
}

static void gradients_of_sequences(void **state) {
  (void)state;
  uint64_t seed = first_seed(18);
  const sn_attr fused = {.heads = 2, .kv_heads = 2}, grouped = {.heads = 4, .kv_heads = 2, .causal = true},
                dropped = {.heads = 2, .kv_heads = 1, .parts = true, .ratio = 0.4},
                capped = {.heads = 4, .kv_heads = 2, .causal = true, .parts = true, .cap = 0.3};
  check_table(seed);
  check_gradients(SN_POSITION, (sn_attr){.rows = 6}, (sn_shape){2, 3, 6, 1}, 1, seed);
  check_gradients(SN_POSITION, (sn_attr){.rows = 2}, (sn_shape){2, 3, 5, 1}, 1, seed);
  check_gradients(SN_POSITION, (sn_attr){.rows = 9}, (sn_shape){1, 3, 4, 1}, 1, seed);
  check_gradients(SN_TOKEN, (sn_attr){0}, (sn_shape){2, 3, 2, 3}, 1, seed);
  check_gradients(SN_TAKE, (sn_attr){0}, (sn_shape){2, 3, 4, 1}, 1, seed);
  check_gradients(SN_ROTARY, (sn_attr){.heads = 2}, (sn_shape){2, 8, 5, 1}, 1, seed);
  check_gradients(SN_ROTARY, (sn_attr){0}, (sn_shape){1, 6, 4, 1}, 1, seed);
  for (int packed = 0; packed < 2; packed++) {
    check_net_operator(attention_net(fused, 2, 5, 3, packed), SN_ATTENTION, seed);
    check_net_operator(attention_net(grouped, 1, 6, 2, packed), SN_ATTENTION, seed);
    check_net_operator(attention_net(dropped, 2, 4, 3, packed), SN_ATTENTION, seed);
    check_net_operator(attention_net(capped, 2, 5, 3, packed), SN_ATTENTION, seed);
  }
}

static void gradients_of_windows(void **state) {
  (void)state;
  uint64_t seed = first_seed(24);
  const sn_shape image = {2, 3, 4, 6};
  const sn_attr moved = {.heads = 2, .kv_heads = 2, .window = 2, .shift = 1, .rows = 9},
                dropped = {.heads = 2, .kv_heads = 1, .window = 2, .ratio = 0.4, .parts = true},
                causal = {.heads = 1, .kv_heads = 1, .window = 2, .shift = 1, .rows = 9, .causal = true},
                near = {.heads = 2, .kv_heads = 2, .rows = 8}, before = {.heads = 4, .kv_heads = 2, .rows = 5};
  for (int packed = 0; packed < 2; packed++) {
    check_net_operator(image_attention_net(moved, image, 2, packed), SN_ATTENTION, seed);
    check_net_operator(image_attention_net(dropped, image, 3, packed), SN_ATTENTION, seed);
    check_net_operator(image_attention_net(causal, image, 2, packed), SN_ATTENTION, seed);
    check_net_operator(attention_net(near, 2, 9, 2, packed), SN_ATTENTION, seed);
    sn_attr late = before;
    late.causal = true;
    check_net_operator(attention_net(late, 1, 11, 2, packed), SN_ATTENTION, seed);
  }
}

static void gradients_of_matrices(void **state) {
  (void)state;
  uint64_t seed = first_seed(20);
  for (int turns = 0; turns < 4; turns++)
    check_net_operator(matmul_net(2, 2, 3, 4, 5, turns & 1, turns & 2), SN_MATMUL, seed);
  for (sn_side axis = SN_SIDE_CHANNELS; axis < SN_SIDES; axis++)
    check_gradients(SN_PROBABILITIES, (sn_attr){.axis = axis}, (sn_shape){2, 3, 4, 5}, 1, seed);
  check_gradients(SN_GROUP_NORM, (sn_attr){.groups = 2}, (sn_shape){2, 6, 3, 2}, 1, seed);
  check_gradients(SN_GROUP_NORM, (sn_attr){.groups = 1}, (sn_shape){3, 2, 2, 3}, 1, seed);
}

static void gradients_of_sizes(void **state) {
  (void)state;
  uint64_t seed = first_seed(21);
  check_gradients(SN_PAD, pad_attr(1, 2, 3, 0), (sn_shape){2, 3, 3, 2}, 1, seed);
  check_gradients(SN_PAD, pad_attr(0, 0, 0, 1), (sn_shape){1, 2, 2, 3}, 1, seed);
  for (int bilinear = 0; bilinear < 2; bilinear++) {
    check_gradients(SN_RESIZE, resize_attr(bilinear, 6, 5), (sn_shape){2, 2, 3, 4}, 1, seed);
    check_gradients(SN_RESIZE, resize_attr(bilinear, 2, 3), (sn_shape){1, 3, 5, 4}, 1, seed);
    check_gradients(SN_RESIZE, (sn_attr){.bilinear = bilinear, .scale = 2}, (sn_shape){2, 2, 3, 1}, 1, seed);
  }
}

static void gradients_of_arrangements(void **state) {
  (void)state;
  uint64_t seed = first_seed(23);
  check_gradients(SN_RESHAPE, (sn_attr){.shape = {4, 0, 1}}, (sn_shape){2, 3, 4, 2}, 1, seed);
  for (int first = 0; first < SN_SIDES; first++)
    for (int turned = 0; turned < 2; turned++) {
      const sn_side second = (sn_side)((first + 1) % SN_SIDES), third = (sn_side)((first + 2) % SN_SIDES);
      const sn_attr order = {.axes = {(sn_side)first, turned ? third : second, turned ? second : third}};
      check_gradients(SN_TRANSPOSE, order, (sn_shape){2, 3, 4, 2}, 1, seed);
      check_gradients(SN_SLICE, (sn_attr){.axis = (sn_side)first, .first = 1, .count = 1u + (uint32_t)turned},
                      (sn_shape){2, 3, 4, 3}, 1, seed);
      check_gradients(SN_SLICE, (sn_attr){.axis = (sn_side)first, .first = 1, .count = 2, .step = 3, .turned = turned},
                      (sn_shape){2, 6, 5, 7}, 1, seed);
    }
}

static void gradients_dilated(void **state) {
  (void)state;
  uint64_t seed = first_seed(22);
  check_gradients(SN_CONV, dilated(conv_attr(4, 3, 3, 1, 2, 2), 2, 2), (sn_shape){2, 4, 6, 5}, 1, seed);
  check_gradients(SN_CONV, dilated(conv_attr(3, 2, 3, 2, 1, 1), 3, 2), (sn_shape){2, 2, 5, 7}, 1, seed);
  check_gradients(SN_DECONV, dilated(deconv_attr(4, 3, 3, 2, 1, 1, 2), 2, 3), (sn_shape){2, 4, 3, 2}, 1, seed);
  check_gradients(SN_DECONV, dilated(deconv_attr(3, 2, 2, 1, 0, 0, 1), 1, 2), (sn_shape){1, 2, 3, 3}, 1, seed);
}

static uint64_t kept(probe *p, uint64_t seed, uint64_t iteration, uint8_t *mask, uint64_t count) {
  p->r.hyper.seed = seed;
  p->r.iteration = iteration;
  sn_call call = net_runner_call(&p->r, p->r.route->forward_step[p->layer]);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) sum += mask[i] = sn_dropout_keeps(&call, i);
  return sum;
}

/* Elements that two masks share. Independent masks of half share half of theirs, give or take 5 deviations. */
static void masks_differ(const uint8_t *a, const uint8_t *b, uint64_t count) {
  uint64_t same = 0;
  for (uint64_t i = 0; i < count; i++) same += a[i] == b[i];
  assert_true(fabs((double)same - (double)count / 2) < 5 * sqrt((double)count) / 2);
}

static void dropout_masks(void **state) {
  (void)state;
  enum { COUNT = 40000 };
  sn_net *net = op_net(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){1, 1, 200, 200}, 1);
  probe p = probe_open(net, SN_DROPOUT, 1);
  uint8_t *masks = net_calloc(5, COUNT);
  const uint64_t keys[5][2] = {{1, 0}, {1, 1}, {2, 0}, {0, 1}, {1, 0}};
  for (int i = 0; i < 5; i++) {
    uint64_t count = kept(&p, keys[i][0], keys[i][1], masks + i * COUNT, COUNT);
    assert_true(fabs((double)count - COUNT / 2.0) < 5 * 100); /* standard deviation sqrt(COUNT) / 2 */
  }
  assert_memory_equal(masks, masks + 4 * COUNT, COUNT);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < i; j++) masks_differ(masks + i * COUNT, masks + j * COUNT, COUNT);
  masks_differ(masks, masks + 1, COUNT - 1); /* neighbours do not go together */
  run_forward(&p);
  for (uint64_t i = 0; i < COUNT; i++)
    assert_true(p.r.output[net->layers[p.layer].first_output][i] == (masks[i] ? 2 * p.r.output[0][i] : 0));
  free(masks);
  probe_close(&p);
  sn_net_free(net);
}

static void dropout_ratio(void **state) {
  (void)state;
  enum { COUNT = 40000 };
  static const double ratios[] = {0, 0.1, 0.9};
  uint8_t *mask = net_calloc(COUNT, 1);
  for (int i = 0; i < 3; i++) {
    sn_net *net = op_net(SN_DROPOUT, (sn_attr){.ratio = ratios[i]}, (sn_shape){1, 1, 200, 200}, 1);
    probe p = probe_open(net, SN_DROPOUT, 1);
    double dropped = COUNT - (double)kept(&p, 3, 0, mask, COUNT), expected = COUNT * ratios[i];
    assert_true(fabs(dropped - expected) <= 5 * sqrt(expected * (1 - ratios[i])));
    probe_close(&p);
    sn_net_free(net);
  }
  free(mask);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_conv),
      cmocka_unit_test(gradients_deconv),
      cmocka_unit_test(gradients_fc),
      cmocka_unit_test(gradients_pool),
      cmocka_unit_test(gradients_of_dilated_pools),
      cmocka_unit_test(gradients_of_volumes),
      cmocka_unit_test(gradients_norm),
      cmocka_unit_test(gradients_of_others),
      cmocka_unit_test(gradients_of_products),
      cmocka_unit_test(gradients_of_positions),
      cmocka_unit_test(gradients_of_sequences),
      cmocka_unit_test(gradients_of_windows),
      cmocka_unit_test(gradients_of_matrices),
      cmocka_unit_test(gradients_of_sizes),
      cmocka_unit_test(gradients_dilated),
      cmocka_unit_test(gradients_of_arrangements),
      cmocka_unit_test(dropout_masks),
      cmocka_unit_test(dropout_ratio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
