/* LeNet as Caffe trains it on MNIST (examples/mnist/lenet_train_test.prototxt), after LeCun et al., "Gradient-based
 * learning applied to document recognition", 1998. 28x28x1 images, 431 080 parameters.
 *
 *   conv 20@5x5 - max pool - conv 50@5x5 - max pool - fc 500 - relu - fc 10
 *
 * Names are Caffe's, with fc1 and fc2 for ip1 and ip2.
 */
#include "models/zoo/zoo_internal.h"

sn_net *sn__zoo_lenet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 1, image, parameters, err);
  const sn_pooling halve = {.kernel = 2, .stride = 2};
  uint32_t x = SN_DATA_LAYER;
  x = sn_build_conv(b, x, (sn_conv){.channels = 20, .kernel = 5}, "conv1");
  x = sn_build_pool(b, x, halve, "pool1");
  x = sn_build_conv(b, x, (sn_conv){.channels = 50, .kernel = 5}, "conv2");
  x = sn_build_pool(b, x, halve, "pool2");
  x = sn_build_fc(b, x, 500, "fc1");
  x = sn_build_relu(b, x, "relu1");
  x = sn_build_fc(b, x, 10, "fc2");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
