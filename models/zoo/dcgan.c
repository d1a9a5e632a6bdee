/* DCGAN for MNIST's images: Radford et al., "Unsupervised representation learning with deep convolutional generative
 * adversarial networks", ICLR 2016, at the sizes of "Runtime Concurrency Control and Operation Scheduling for High
 * Performance Neural Network Training", without the labels' planes. One pass through both networks, from noise to
 * whether the image is a real one: the input is 100 numbers, 10,680,573 parameters. A training step is three such
 * passes.
 *
 *   generator       fc 1024 - deconv 128@7x7 - deconv 128@5x5 /2 - deconv 1@5x5 /2, sigmoid         28x28 images
 *   discriminator   conv 11@5x5 /2 - conv 74@5x5 /2 - fc 1024 - fc 2
 *
 * Batch normalisation behind all but the image, conv 11 and fc 2; then ReLU in the generator, leaky ReLU of slope 0.2
 * in the discriminator. The first deconv's window is the image that it makes of one pixel.
 *
 * Names: g_ and d_ for the two networks.
 */
#include "models/zoo/zoo_internal.h"

static uint32_t bn_relu(sn_builder *b, uint32_t x, const char *name) {
  return sn_build_relu(b, sn_build_bn(b, x, "g_bn%s", name), "g_relu%s", name);
}

static uint32_t leaky(sn_builder *b, uint32_t x, const char *name) {
  return sn_build_act(b, x, (sn_act){SN_ACT_LEAKY, 0.2}, "d_leaky%s", name);
}

static uint32_t generator(sn_builder *b, uint32_t x) {
  const sn_conv twice = {.channels = 128, .kernel = 5, .stride = 2, .pad = 2, .output_pad = 1};
  x = bn_relu(b, sn_build_fc(b, x, 1024, "g_fc"), "1");
  x = bn_relu(b, sn_build_deconv(b, x, (sn_conv){.channels = 128, .kernel = 7}, "g_deconv1"), "2");
  x = bn_relu(b, sn_build_deconv(b, x, twice, "g_deconv2"), "3");
  sn_conv image = twice;
  image.channels = 1;
  x = sn_build_deconv(b, x, image, "g_deconv3");
  return sn_build_act(b, x, (sn_act){.mode = SN_ACT_SIGMOID}, "g_image");
}

static uint32_t discriminator(sn_builder *b, uint32_t x) {
  const sn_conv half = {.channels = 11, .kernel = 5, .stride = 2, .pad = 2};
  sn_conv more = half;
  more.channels = 74;
  x = leaky(b, sn_build_conv(b, x, half, "d_conv1"), "1");
  x = leaky(b, sn_build_bn(b, sn_build_conv(b, x, more, "d_conv2"), "d_bn2"), "2");
  x = leaky(b, sn_build_bn(b, sn_build_fc(b, x, 1024, "d_fc1"), "d_bn3"), "3");
  return sn_build_fc(b, x, 2, "d_fc2");
}

sn_net *sn__zoo_dcgan(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 100, image, parameters, err);
  sn_build_softmax(b, discriminator(b, generator(b, SN_DATA_LAYER)), "softmax");
  return sn_builder_finish(b, NULL, err);
}
