/* State: what a training keeps outside the pool for its whole length: parameters, their gradients, what the
 * optimizer keeps, batch-norm statistics. In host memory, float32.
 *
 * Everything starts from a seed (exec/kernel/init.h): two states of the same net, seed and init are equal to the bit.
 */
#ifndef SN_EXEC_KERNEL_STATE_H
#define SN_EXEC_KERNEL_STATE_H

#include "base/err.h"
#include "base/fnv.h"
#include "exec/kernel/call.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn_state {
  const sn_net *net;                  /* looked at; must outlive the state */
  float *parameters, *gradients;      /* net->parameters each */
  float *states[SN_OPTIMIZER_STATES]; /* the same; NULL where the optimizer keeps fewer */
  float *statistics;
  const uint64_t *parameter_offset, *statistics_offset; /* per layer, in floats */
  uint64_t n_statistics;                                /* floats */
  const char *freeze; /* layers that are not trained (sim/graph/freeze.h), set by whoever trains; NULL: none */
  bool fresh;         /* gradients and states are still all 0, so that nobody has to carry them anywhere */
  struct sn_arena *arena;
} sn_state;

/* Of `hyper` are looked at: seed, init, optimizer. */
sn_state *sn_state_new(const sn_net *net, const sn_hyper *hyper, sn_err *err);
void sn_state_free(sn_state *state);

/* FNV-1a over 64-bit words (the last one filled up with zeros), to compare results to the bit. Start with
 * SN_DIGEST_START. */
#define SN_DIGEST_START SN_FNV_START
uint64_t sn_digest(uint64_t digest, const void *bytes, size_t count);

/* The largest difference of two arrays, relative to the largest of the first. */
double sn_relative_difference(const float *a, const float *b, uint64_t count);

#endif
