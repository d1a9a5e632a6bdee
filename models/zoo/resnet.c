/* ResNet: He et al., "Deep residual learning for image recognition", CVPR 2016, table 1 and figure 5: four stages of
 * residual units, each with a bottleneck (ResNet-50 and deeper) or two 3x3 convolutions (ResNet-18 and 34).
 *
 *        x --+-- 1x1 -- 3x3 -- 1x1 --+-- join -- relu -->      batch normalisation behind every convolution,
 *            +------- shortcut ------+                         ReLU behind all but the last before the join
 *
 * Stages 3, 4 and 5 halve the image in the FIRST convolution of their first unit, as in the paper; many later programs
 * do it in the bottleneck's 3x3. The shortcut is x itself, or a 1x1 projection where the shape changes (the paper's
 * option B). 224x224x3 images. "resnet:n1=..,n2=..,n3=..,n4=.." takes any number of bottleneck units per stage:
 * 3 (n1 + n2 + n3 + n4) + 2 weighted layers.
 *
 * Names: conv1 bn1 relu1 pool1; unit k of stage s has conv<s>_<k>a, b, c, each with its bn and relu, the projection
 * conv<s>_<k>p with bn<s>_<k>p, then join<s>_<k> and relu<s>_<k>; pool5 fc.
 */
#include "models/zoo/zoo_internal.h"

#include <stdio.h>

/* Where a unit stands and what it makes. */
typedef struct unit {
  unsigned stage, number;
  uint32_t width; /* channels of its 3x3 */
  bool shrinks, projects;
} unit;

static uint32_t conv_bn(sn_builder *b, uint32_t x, const unit *u, char part, sn_conv conv) {
  conv.no_bias = true;
  x = sn_build_conv(b, x, conv, "conv%u_%u%c", u->stage, u->number, part);
  return sn_build_bn(b, x, "bn%u_%u%c", u->stage, u->number, part);
}

static uint32_t conv_bn_relu(sn_builder *b, uint32_t x, const unit *u, char part, sn_conv conv) {
  x = conv_bn(b, x, u, part, conv);
  return sn_build_relu(b, x, "relu%u_%u%c", u->stage, u->number, part);
}

static uint32_t close_unit(sn_builder *b, uint32_t x, uint32_t branch, const unit *u, uint32_t channels) {
  const sn_conv projection = {.channels = channels, .kernel = 1, .stride = u->shrinks ? 2 : 1};
  uint32_t shortcut = u->projects ? conv_bn(b, x, u, 'p', projection) : x;
  uint32_t sum = sn_build_join(b, (const uint32_t[]){branch, shortcut}, 2, "join%u_%u", u->stage, u->number);
  return sn_build_relu(b, sum, "relu%u_%u", u->stage, u->number);
}

static uint32_t bottleneck(sn_builder *b, uint32_t x, const unit *u) {
  uint32_t y = x, stride = u->shrinks ? 2 : 1;
  y = conv_bn_relu(b, y, u, 'a', (sn_conv){.channels = u->width, .kernel = 1, .stride = stride});
  y = conv_bn_relu(b, y, u, 'b', (sn_conv){.channels = u->width, .kernel = 3, .pad = 1});
  y = conv_bn(b, y, u, 'c', (sn_conv){.channels = 4 * u->width, .kernel = 1});
  return close_unit(b, x, y, u, 4 * u->width);
}

static uint32_t basic(sn_builder *b, uint32_t x, const unit *u) {
  uint32_t y = x, stride = u->shrinks ? 2 : 1;
  y = conv_bn_relu(b, y, u, 'a', (sn_conv){.channels = u->width, .kernel = 3, .stride = stride, .pad = 1});
  y = conv_bn(b, y, u, 'b', (sn_conv){.channels = u->width, .kernel = 3, .pad = 1});
  return close_unit(b, x, y, u, u->width);
}

static uint32_t stem(sn_builder *b) {
  const sn_conv conv = {.channels = 64, .kernel = 7, .stride = 2, .pad = 3, .no_bias = true};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, conv, "conv1");
  x = sn_build_bn(b, x, "bn1");
  x = sn_build_relu(b, x, "relu1");
  return sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .pad = 1}, "pool1");
}

static uint32_t stages(sn_builder *b, uint32_t x, const sn__resnet *net) {
  for (unsigned s = 2; s <= 5; s++)
    for (unsigned k = 1; k <= net->units[s - 2]; k++) {
      unit u = {.stage = s, .number = k, .width = 16u << s, .shrinks = s > 2 && k == 1};
      u.projects = k == 1 && (s > 2 || !net->basic); /* a basic stage 2 begins with the stem's 64 channels */
      x = net->basic ? basic(b, x, &u) : bottleneck(b, x, &u);
    }
  return x;
}

static sn_net *build(sn_builder *b, const sn__resnet *net, sn_err *err) {
  uint32_t x = stages(b, stem(b), net);
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "pool5");
  x = sn_build_fc(b, x, 1000, "fc");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

sn_net *sn__zoo_resnet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  return build(sn__zoo_begin(entry, batch, 3, image, parameters, err), entry->config, err);
}

sn_net *sn__zoo_resnet_any(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                           sn_err *err) {
  static const char *const names[] = {"n1", "n2", "n3", "n4"};
  const sn__zoo_keys keys = {.names = names, .count = 4, .high = 100000};
  sn__resnet net = *(const sn__resnet *)entry->config;
  if (sn__zoo_parameters(entry, parameters, &keys, net.units, err) != SN_OK) return NULL;
  char name[64]; /* the same name whichever way it was asked for */
  snprintf(name, sizeof name, "%s:n1=%u,n2=%u,n3=%u,n4=%u", entry->name, net.units[0], net.units[1], net.units[2],
           net.units[3]);
  return build(sn_builder_new(name, batch, 3, sn_image_height(image), sn_image_width(image), err), &net, err);
}
