/* Advise: every combination of memory strategy and convolution workspace for one network on one device, and which of
 * them are worth considering: the Pareto front of memory against time.
 *
 *   time |  o . .
 *        |   \   .       o  on the front: none other is as fast with as little
 *        |    o   .      .  beaten by one of those
 *        |      \___o
 *        +-------------- memory
 *
 * A combination's memory and time are those of its plan on this device: the cache and dynamic workspaces take what
 * there is. What does not fit is a point all the same, with what it needs and its time on a device that has it.
 * Cost: SN_COMBINATIONS plans and simulations.
 */
#ifndef SN_SIM_ASK_ADVISE_H
#define SN_SIM_ASK_ADVISE_H

#include "base/err.h"
#include "models/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"
#include "sim/plan/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* baseline, and liveness with every offload (none, conv, checkpoints, cache) and every recompute (none, speed, memory,
 * cost); each with every workspace. */
enum { SN_ADVISE_STRATEGIES = 1 + 4 * 4, SN_COMBINATIONS = SN_ADVISE_STRATEGIES * SN_WORKSPACE_COUNT };

typedef struct sn_combination {
  sn_strategy strategy;
  sn_workspace workspace;
  const sn_result *result; /* fits, peak_device_bytes, iteration_ns, ... */
  bool on_front;
} sn_combination;

typedef struct sn_advice {
  const sn_combination *all; /* SN_COMBINATIONS; what is simpler stands before what is added to it */
  uint32_t n_front;
  const uint32_t *front;      /* indices into `all`, from the fastest to the leanest; of equals the simplest */
  const sn_combination *best; /* the fastest that fits, of equals the one with less memory; NULL: none fits */
  struct sn_arena *arena;
} sn_advice;

/* The strategies tried, by number below SN_ADVISE_STRATEGIES. */
sn_strategy sn_advise_strategy(uint32_t index);

/* options->workspace and options->want_.. are not looked at. */
sn_advice *sn_advise(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err);
void sn_advice_free(sn_advice *advice);

#endif
