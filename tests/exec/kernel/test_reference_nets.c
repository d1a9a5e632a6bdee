/* Reference kernels in small whole nets: the gradient of the loss by every parameter and by the data against
 * differences (tests/exec/kernel/difference.h), and that training lowers it. Allowed is 1e-3 of the largest gradient. Elements
 * are tested with smaller h where a step turns a ReLU or moves a maximum, and 8 units of float32 over h more are
 * allowed; they are passed over where the smallest h still does: at most half of them, for one activation near a kink
 * is near it for all elements before it. */
#include "tests/exec/kernel/difference.h"
#include "tests/exec/kernel/op_net.h"
#include "tests/support/seed.h"

#include <stdio.h>

/* A chain of everything: convolution in groups, both pools, LRN, dropout. */
static sn_net *chain(void) {
  sn_builder *b = begin_net((sn_shape){2, 2, 9, 8});
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 4, .kernel = 3, .pad = 1}, "conv1");
  x = sn_build_lrn(b, sn_build_relu(b, x, "relu1"), 3, "lrn1");
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .ceil = true}, "pool1");
  x = sn_build_conv(b, x, (sn_conv){.channels = 6, .kernel = 3, .groups = 2, .no_bias = true}, "conv2");
  x = sn_build_relu(b, sn_build_bn(b, x, "bn2"), "relu2");
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 2, .average = true}, "pool2");
  x = sn_build_dropout(b, sn_build_relu(b, sn_build_fc(b, x, 7, "fc1"), "relu3"), 0.3, "drop");
  sn_build_softmax(b, sn_build_fc(b, x, 4, "fc2"), "softmax");
  return finish_net(b);
}

/* A generator and a critic in one: images are made, looked at, and told apart. */
static sn_net *transposed(void) {
  sn_builder *b = begin_net((sn_shape){3, 5, 1, 1});
  uint32_t x = sn_build_relu(b, sn_build_bn(b, sn_build_fc(b, SN_DATA_LAYER, 6, "fc1"), "bn1"), "relu1");
  x = sn_build_deconv(b, x, (sn_conv){.channels = 4, .kernel = 3}, "deconv1");
  x = sn_build_act(b, sn_build_bn(b, x, "bn2"), (sn_act){.mode = SN_ACT_TANH}, "tanh");
  x = sn_build_deconv(b, x, (sn_conv){.channels = 2, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}, "deconv2");
  x = sn_build_act(b, x, (sn_act){.mode = SN_ACT_SIGMOID}, "sigmoid");
  x = sn_build_conv(b, x, (sn_conv){.channels = 3, .kernel = 3, .stride = 2, .pad = 1}, "conv1");
  x = sn_build_act(b, x, (sn_act){SN_ACT_LEAKY, 0.2}, "leaky");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc2"), "softmax");
  return finish_net(b);
}

/* A residual unit, an inception block and two ends. */
static sn_net *branches(void) {
  sn_builder *b = begin_net((sn_shape){3, 3, 6, 6});
  const sn_conv one = {.channels = 4, .kernel = 1}, three = {.channels = 4, .kernel = 3, .pad = 1};
  uint32_t stem = sn_build_conv(b, SN_DATA_LAYER, three, "stem");
  uint32_t x = sn_build_relu(b, sn_build_bn(b, stem, "bn1"), "relu1");
  x = sn_build_bn(b, sn_build_conv(b, x, three, "conv1"), "bn2");
  uint32_t sum = sn_build_join(b, (const uint32_t[]){x, stem}, 2, "join");
  uint32_t parts[3] = {sn_build_conv(b, sum, one, "b1"), sn_build_relu(b, sn_build_conv(b, sum, three, "b2"), "relu2"),
                       sn_build_pool(b, sum, (sn_pooling){.kernel = 3, .pad = 1, .average = true}, "b3")};
  uint32_t all = sn_build_concat(b, parts, 3, "concat");
  uint32_t pooled = sn_build_pool(b, all, (sn_pooling){.average = true, .global = true}, "global");
  sn_build_softmax(b, sn_build_fc(b, pooled, 5, "fc1"), "softmax1");
  sn_build_softmax(b, sn_build_fc(b, sum, 3, "fc2"), "softmax2");
  return finish_net(b);
}

/* Position of the largest element of a POOL's window, whose first row and column may lie in the padding. */
static int64_t top_of(const sn_attr *a, sn_shape in, const float *plane, int64_t row, int64_t column) {
  int64_t best = -1;
  for (int64_t y = row; y < row + a->kernel_h; y++)
    for (int64_t x = column; x < column + a->kernel_w; x++)
      if (y >= 0 && y < in.h && x >= 0 && x < in.w && (best < 0 || plane[y * in.w + x] > plane[best]))
        best = y * in.w + x;
  return best;
}

/* Sums up which way a layer's kinks go, after its forward. */
static uint64_t kinks_of(const net_runner *r, const sn_layer *layer, uint64_t sum) {
  sn_shape in = sn_layer_input_shape(r->net, layer, 0), out = layer->out;
  const float *x = r->output[r->net->inputs[layer->first_input]];
  const sn_attr *a = layer->attr;
  uint64_t count = net_value_count(r, layer->first_output), plane = (uint64_t)out.h * out.w;
  for (uint64_t i = 0; i < count && layer->op == SN_ACT; i++) sum = sum * 31 + (x[i] > 0);
  for (uint64_t i = 0; i < count && layer->op == SN_POOL && a->pool == SN_POOL_MAX; i++) {
    int64_t row = (int64_t)(i % plane / out.w) * a->stride_h - a->pad_h;
    int64_t column = (int64_t)(i % out.w) * a->stride_w - a->pad_w;
    sum = sum * 31 + (uint64_t)top_of(a, in, x + i / plane * in.h * in.w, row, column);
  }
  return sum;
}

typedef struct subject {
  net_runner r;
  uint64_t kinks; /* of the point where the gradient was taken */
  bool moved;     /* one of the points since then has others */
  uint32_t checked, passed_over;
} subject;

static double net_value(void *self) {
  subject *s = self;
  uint64_t kinks = 0;
  net_runner_forward(&s->r);
  for (uint32_t i = 1; i < s->r.net->n_layers; i++) kinks = kinks_of(&s->r, &s->r.net->layers[i], kinks);
  s->moved |= kinks != s->kinks;
  s->kinks = s->checked ? s->kinks : kinks;
  return s->r.loss;
}

static void check_net_element(subject *s, const char *name, float *x, double gradient, double allowed) {
  double slope = 0, h = 1.0 / 16;
  s->checked++;
  s->moved = true;
  for (int i = 0; i < 4 && s->moved; i++) {
    s->moved = false;
    h /= 4;
    slope = derivative(x, h, net_value, s);
  }
  s->passed_over += s->moved;
  allowed += 8 * 0x1p-24 / h;
  if (!s->moved && !(fabs(slope - gradient) <= allowed))
    fail_msg("%s: gradient %.7g, differences say %.7g with h = %g, allowed is %g", name, gradient, slope, h, allowed);
}

static void check_net_elements(subject *s, const char *name, float *x, const float *gradient, uint64_t count) {
  double allowed = 1e-3 * fmax(0.3, largest_of(gradient, count));
  for (uint64_t i = 0; i < count; i++) check_net_element(s, name, x + i, gradient[i], allowed);
}

/* The gradient of the loss by every parameter and by the data. */
static void check_net(sn_net *net, uint64_t seed) {
  subject s = {.r = net_runner_open(net, reference_kernels, seed)};
  net_value(&s);
  net_runner_backward(&s.r);
  uint64_t count = net_value_count(&s.r, 0);
  float *gradient = net_calloc(count, sizeof *gradient); /* it may lie where an output is */
  memcpy(gradient, s.r.gradient[0], count * sizeof *gradient);
  check_net_elements(&s, "data", s.r.output[0], gradient, count);
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].parameters)
      check_net_elements(&s, net->layers[i].name, s.r.layers[i].parameters, s.r.layers[i].gradients,
                         net->layers[i].parameters);
  print_message("%u elements, %u passed over\n", s.checked, s.passed_over);
  assert_true(s.checked > 300 && s.passed_over <= s.checked / 2);
  free(gradient);
  net_runner_close(&s.r);
  sn_net_free(net);
}

static void gradients_of_nets(void **state) {
  (void)state;
  uint64_t seed = first_seed(16);
  check_net(chain(), seed);
  check_net(branches(), seed);
  check_net(transposed(), seed);
}

static void training_lowers_the_loss(void **state) {
  (void)state;
  sn_net *net = branches();
  net_runner r = net_runner_open(net, reference_kernels, 17);
  net_runner_iterate(&r);
  double first = r.loss;
  for (int i = 0; i < 20; i++) net_runner_iterate(&r);
  assert_true(r.loss < first / 2);
  net_runner_close(&r);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_of_nets),
      cmocka_unit_test(training_lowers_the_loss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
