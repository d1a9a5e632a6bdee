/* Fake CUDA: a GPU in software, for tests where there is none. The module of exec/cuda/ is compiled against its headers
 * (include/) into a shared object that the program loads as it would load the real one.
 *
 *   - Streams are queues. Nothing runs when it is started: a scheduler that a seed drives runs queued work later, in an
 *     order of its own that keeps only what CUDA promises: each stream's order and the events waited for. So a missing
 *     fence gives wrong results for some seed.
 *   - Device memory is host memory that starts as NaN. Every pointer of every kernel and copy must lie in one live
 *     allocation; else the device fails as a real one does, with an illegal address.
 *   - Kernels compute, in plain loops (math.c), and leave NaN in their workspace. Kernels that cuDNN does not promise
 * to stand in place refuse it; algorithms that add with atomics give other last bits each time.
 *   - Any call can be made to fail, and the device to be lost. What was created and not destroyed is counted.
 *
 *   fake_cuda *fake = dlsym(dlopen(module, ...), "fake_cuda_state")();
 *   *fake = (fake_cuda)FAKE_CUDA_INIT;
 *
 * A program that loads it is told by FAKE_CUDA_CRASHING_ALGO=N that forward convolutions by algorithm N crash, by
 * FAKE_CUDA_DEADLY_ALGO=N that they take the process with them.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

typedef enum fake_fault {
  FAKE_FAILS,   /* the call returns an error; where it allocates, "out of memory" */
  FAKE_CRASHES, /* work that is queued fails when it runs; every later call reports it */
  FAKE_LOST,    /* the device is gone from this call on */
  FAKE_DIES,    /* with broken_algo: the process is gone */
} fake_fault;

typedef struct fake_cuda {
  /* set by the test */
  uint64_t seed;
  uint64_t device_bytes, pinned_bytes; /* that there are */
  int driver;                          /* CUDA version it supports, 0: none installed */
  int devices;
  uint64_t most_elements; /* that a tensor of several images may have; cuDNN's limit holds anyway */
  int broken_algo;  /* forward convolutions by this algorithm fail when they are started, or with FAKE_CRASHES when they
                     * run; 0: none */
  uint64_t fail_at; /* the number of the call that fails, from 1; 0: none */
  fake_fault fault;
  /* kept by the fake */
  uint64_t calls;      /* of any function that may fail */
  uint64_t work;       /* kernels and copies that ran */
  uint64_t live;       /* allocations, streams, events, handles and descriptors */
  uint64_t used_bytes; /* device memory */
  uint64_t peak_bytes;
  uint64_t batches;    /* bit n: a tensor of n images has been described, n < 64 */
  char complaint[200]; /* the first wrong use; "" is none */
} fake_cuda;

#define FAKE_CUDA_INIT                                                                                                 \
  {                                                                                                                    \
    .seed = 1, .device_bytes = UINT64_C(1) << 32, .pinned_bytes = UINT64_C(1) << 32, .driver = 13000, .devices = 1,    \
    .most_elements = INT32_MAX                                                                                         \
  }

/* Set to *fake before a machine is opened; what is counted goes on counting. */
typedef fake_cuda *(*fake_cuda_entry)(void);

#endif
