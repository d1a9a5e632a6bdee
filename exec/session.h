/* Session: trains a net for some iterations by one strategy's plan on a back end, and says what was measured beside
 * what was planned.
 *
 *   sn_session_options options = {.iterations = 3, .threads = 1};
 *   sn_measurement m;
 *   sn_session_run(net, strategy, &options, &m, &err);
 *
 * Everything starts from the seed, so that two strategies can be compared to the bit: `digest` is over the losses of
 * all iterations and, at the end, all parameters, momenta and the last iteration's parameter gradients. Kernels do not
 * depend on the strategy (no optional workspaces), so equal digests are what a correct plan must give.
 */
#ifndef SN_EXEC_SESSION_H
#define SN_EXEC_SESSION_H

#include "base/err.h"
#include "models/net.h"
#include "sim/strategy.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_session_options {
  uint64_t iterations; /* at least 1 */
  uint64_t seed;
  unsigned threads;    /* of the kernels; 0: all processors */
  uint64_t pool_bytes; /* the pool on offer; 0: as much as the plan likes. Small ones make the cache work */
  bool check;          /* watch every byte; see exec/cpu.h */
  uint32_t jitter_us;  /* see exec/cpu.h */
  float learning_rate, momentum, weight_decay;
  bool (*stop)(void *user); /* see sn_play_options */
  /* After each iteration; NULL: nothing to do. */
  void (*progress)(void *user, uint64_t iteration, double loss, int64_t ns);
  void *user;
} sn_session_options;

#define SN_SESSION_OPTIONS_INIT                                                                                        \
  { .iterations = 3, .seed = 1, .learning_rate = 0.001f, .momentum = 0.9f, .weight_decay = 0.0005f }

typedef struct sn_measurement {
  uint64_t planned_pool_bytes, touched_pool_bytes;
  uint64_t planned_external_bytes;
  uint64_t planned_out_bytes, measured_out_bytes; /* per iteration */
  uint64_t planned_in_bytes, measured_in_bytes;
  uint32_t planned_live_tensors, measured_live_tensors; /* the most at any moment */
  uint32_t recomputed_layers;
  uint64_t iterations;  /* whole ones; fewer than asked for where it was stopped */
  int64_t iteration_ns; /* median over the iterations but the first, which warms up */
  int64_t last_ns;      /* of the last iteration */
  int64_t compute_ns;   /* of the last iteration: inside kernels */
  int64_t stall_ns;     /* of the last iteration: compute lane waiting at fences */
  double loss;          /* of the last iteration */
  double images_per_second;
  uint64_t digest;
  char device[64]; /* "oneDNN 2.6.3, avx2, 2 threads" */
} sn_measurement;

/* Trains on the CPU. SN_BAD_DEVICE where this build has no kernels or one fails; SN_NO_MEMORY; SN_BUG where the plan or
 * its execution is wrong. */
sn_status sn_session_run(const sn_net *net, sn_strategy strategy, const sn_session_options *options,
                         sn_measurement *measured, sn_err *err);

#endif
