/* ResNet for images of 32x32: He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2: three
 * stages of n residual units with two 3x3 convolutions each, of 16, 32 and 64 channels; 6 n + 2 weighted layers.
 *
 *        x --+-- 3x3 -- 3x3 --+-- join -- relu -->      batch normalisation behind every convolution, ReLU behind all
 *            +--- shortcut ---+                         but the last before the join
 *
 * Stages 2 and 3 halve the image in the first convolution of their first unit. There the shortcut is a 1x1 projection
 * (the paper's option B, where its networks for these images pad with zeros instead); elsewhere it is x itself. The
 * shortcut is the join's first input: where a JOIN shares its gradient, the branch gets the copy.
 * "resnet_cifar:n=8" is the ResNet-50 of "Runtime Concurrency Control and Operation Scheduling for High Performance
 * Neural Network Training": 758,554 parameters.
 *
 * Names: conv1 bn1 relu1; unit k of stage s has conv<s>_<k>a, b, each with its bn, relu<s>_<k>a, the projection
 * conv<s>_<k>p with bn<s>_<k>p, then join<s>_<k> and relu<s>_<k>; pool fc softmax.
 */
#include "models/zoo/zoo_internal.h"

#include <stdio.h>

/* Where a unit stands and what it makes. */
typedef struct unit {
  unsigned stage, number;
  uint32_t channels;
  bool shrinks;
} unit;

static uint32_t conv_bn(sn_builder *b, uint32_t x, const unit *u, char part, sn_conv conv) {
  conv.channels = u->channels;
  conv.no_bias = true;
  x = sn_build_conv(b, x, conv, "conv%u_%u%c", u->stage, u->number, part);
  return sn_build_bn(b, x, "bn%u_%u%c", u->stage, u->number, part);
}

static uint32_t add_unit(sn_builder *b, uint32_t x, const unit *u) {
  uint32_t stride = u->shrinks ? 2 : 1, y = x, shortcut = x;
  y = conv_bn(b, y, u, 'a', (sn_conv){.kernel = 3, .stride = stride, .pad = 1});
  y = sn_build_relu(b, y, "relu%u_%ua", u->stage, u->number);
  y = conv_bn(b, y, u, 'b', (sn_conv){.kernel = 3, .pad = 1});
  if (u->shrinks) shortcut = conv_bn(b, x, u, 'p', (sn_conv){.kernel = 1, .stride = stride});
  y = sn_build_join(b, (const uint32_t[]){shortcut, y}, 2, "join%u_%u", u->stage, u->number);
  return sn_build_relu(b, y, "relu%u_%u", u->stage, u->number);
}

static sn_net *build(sn_builder *b, uint32_t n, sn_err *err) {
  uint32_t x =
      sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 16, .kernel = 3, .pad = 1, .no_bias = true}, "conv1");
  x = sn_build_relu(b, sn_build_bn(b, x, "bn1"), "relu1");
  for (unsigned s = 1; s <= 3; s++)
    for (unsigned k = 1; k <= n; k++)
      x = add_unit(b, x, &(unit){.stage = s, .number = k, .channels = 8u << s, .shrinks = s > 1 && k == 1});
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "pool");
  sn_build_softmax(b, sn_build_fc(b, x, 10, "fc"), "softmax");
  return sn_builder_finish(b, NULL, err);
}

sn_net *sn__zoo_resnet_cifar(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  static const char *const names[] = {"n"};
  const sn__zoo_keys keys = {.names = names, .count = 1, .high = 100000};
  uint32_t n = *(const uint32_t *)entry->config;
  if (sn__zoo_parameters(entry, parameters, &keys, &n, err) != SN_OK) return NULL;
  char name[32]; /* the same name whichever way it was asked for */
  snprintf(name, sizeof name, "%s:n=%u", entry->name, n);
  return build(sn_builder_new(name, batch, 3, sn_image_height(image), sn_image_width(image), err), n, err);
}
