/* Fake CUDA, internal: queues, memory and faults (gpu.c), for the fake libraries that start work on it. */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/fake_cuda/include/cuda_runtime_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts a call; what it must return if not cudaSuccess. */
cudaError_t gpu_enter(void);

/* An object that counts as live until gpu_delete(). NULL and a code where it fails. */
void *gpu_new(size_t size, cudaError_t *code);
void gpu_delete(void *object);

/* Queues run(args); args are copied. */
enum { GPU_ARGS = 400 };
void gpu_queue(cudaStream_t stream, void (*run)(const void *args), const void *args, size_t size);

/* For work when it runs: whether [at, at + bytes) is device memory, or pinned. A wrong address breaks the device. */
bool gpu_is_device(const void *at, size_t bytes);
bool gpu_is_pinned(const void *at, size_t bytes);
/* A wrong use: noted, and the device is broken. */
void gpu_complain(const char *what);

/* What was queued last fails when it runs. */
void gpu_crash(void);

/* What the test has set. */
fake_cuda *fake_cuda_state(void);

/* Random bits, from the seed. */
uint64_t gpu_random(void);

#endif
