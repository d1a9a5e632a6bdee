/* Fake CUDA runtime: the declarations that exec/cuda/ uses, for a build without CUDA. tests/fake_cuda/gpu.c is behind
 * it. Values that matter to nobody but the two sides are not NVIDIA's. */
#ifndef FAKE_CUDA_RUNTIME_API_H
#define FAKE_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;

typedef enum cudaError {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorStubLibrary,
  cudaErrorInsufficientDriver,
  cudaErrorDevicesUnavailable,
  cudaErrorNoDevice,
  cudaErrorInvalidResourceHandle,
  cudaErrorNotReady,
  cudaErrorIllegalAddress,
  cudaErrorUnknown
} cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

#define cudaStreamNonBlocking  1u
#define cudaEventDefault       0u
#define cudaEventDisableTiming 2u

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major;
};

#include "cuda_functions.h"

#endif
