/* Mix; see the header. */
#include "sim/policy/mix.h"

uint32_t sn_mix_threads(const sn_mix *mix, uint32_t op) {
  uint32_t n = mix->n_counts, round = mix->pass / n;
  uint32_t stride = round > 0 ? 1 + (round - 1) % (n - 1) : 0; /* by which neighbours differ */
  return mix->counts[(mix->pass % n + (uint64_t)op * stride) % n];
}
