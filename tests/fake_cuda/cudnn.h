/* Fake cuDNN, internal: its descriptors, and how its kernels are started. */
#ifndef FAKE_CUDNN_INTERNAL_H
#define FAKE_CUDNN_INTERNAL_H

#include "tests/fake_cuda/gpu.h"
#include "tests/fake_cuda/math.h"

#include "tests/fake_cuda/include/cudnn.h"

struct fake_cudnn {
  cudaStream_t stream;
};
struct fake_tensor {
  shape s;
};
struct fake_filter {
  shape s;
};
struct fake_convolution {
  window v;
};
struct fake_pooling {
  window v;
  int average;
};
struct fake_activation {
  double top; /* nothing is above; 0: not set yet */
};
struct fake_lrn {
  lrn l;
};
struct fake_op_tensor {
  cudnnOpTensorOp_t op;
};

/* Starts run(args); the argument's type is the function's. */
cudnnStatus_t cudnn_start(cudnnHandle_t handle, void (*run)(const void *), const void *args, size_t size);

static inline scales scales_of(const void *alpha, const void *beta) {
  return (scales){(double)*(const float *)alpha, (double)*(const float *)beta};
}

/* For kernels when they run: whether a tensor lies in device memory, and aligned as cuDNN wants it. */
bool cudnn_sees(const void *at, shape s);
/* Whether two tensors share no byte: else the kernel complains. */
bool cudnn_apart(const void *a, shape as, const void *b, shape bs);

#endif
