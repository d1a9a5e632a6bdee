/* Advise: every combination of memory strategy and convolution workspace for one network on one device, and which of
 * them are worth considering: the Pareto front of memory against time.
 *
 *   time |  o . .
 *        |   \   .       o  on the front: none other is as fast with as little
 *        |    o   .      .  beaten by one of those
 *        |      \___o
 *        +-------------- memory
 *
 * A combination that adapts to memory, by the cache or by dynamic workspaces, takes what there is. So it is tried with
 * all that the device has and with less, down to the least with which it runs: only then nothing that is on the front
 * can be beaten by giving another combination less. What does not fit is a point all the same, with what it needs and
 * its time on a device that has it. Cost: a plan and a simulation for each combination, SN_ADVISE_LIMITS more and a
 * search for the least for each that adapts.
 */
#ifndef SN_SIM_CAPACITY_ADVISE_H
#define SN_SIM_CAPACITY_ADVISE_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* baseline, and liveness with every offload (none, conv, checkpoints, cache) and every recompute (none, speed, memory,
 * cost); and liveness+offload+recompute=optimal, which takes up to a second a plan for networks of SN_ADVISE_LAYERS,
 * and is not tried for larger ones where no strategy is named. Limits of memory: the least, and others evenly up to
 * what the combination takes of all. */
enum { SN_ADVISE_STRATEGIES = 1 + 4 * 4 + 1, SN_ADVISE_CORUN = 2, SN_ADVISE_LAYERS = 1000, SN_ADVISE_LIMITS = 6 };

typedef struct sn_combination {
  sn_strategy strategy;
  sn_workspace workspace;
  uint64_t memory_bytes;   /* usable memory that it is given, at most the device's */
  uint64_t bound_bytes;    /* which no plan goes below: sn_staged_bound() */
  const sn_result *result; /* fits, peak_device_bytes, iteration_ns, ... */
  bool limited;            /* it is given less than there is */
  bool on_front;
} sn_combination;

typedef struct sn_advice {
  uint32_t n_all;
  sn_combination *all; /* what is simpler stands before what is added to it; each with all memory, then with less */
  uint32_t n_front;
  const uint32_t *front;      /* indices into `all`, from the fastest to the leanest; of equals the simplest */
  const sn_combination *best; /* the fastest that fits, of equals the one with less memory; NULL: none fits */
  struct sn_arena *arena;
} sn_advice;

/* The strategies tried where none are named, by number below sn_advise_count(), on every device. */
sn_strategy sn_advise_strategy(uint32_t index);
/* Of so many for a network; at most SN_ADVISE_STRATEGIES. */
uint32_t sn_advise_count(const sn_net *net);
/* All that are tried on a device, their number: those made of cores have two more where nothing accumulates, which put
 * operations side by side, with all kept and with what recompute=speed drops. Room for SN_ADVISE_STRATEGIES +
 * SN_ADVISE_CORUN. */
uint32_t sn_advise_all(const sn_net *net, const sn_device *device, const sn_options *options, sn_strategy *all);

/* Tries `strategies`, or those where there are none (0), each with every workspace; once, as dynamic, those of PyTorch,
 * where cuDNN takes what it takes, and recompute=optimal, which weighs workspaces against what is kept.
 * options->workspace and options->want_.. are not looked at; a pool of a given size (options->pool_bytes) leaves
 * nothing to adapt to. */
sn_advice *sn_advise(const sn_net *net, const sn_device *device, const sn_strategy *strategies, uint32_t n_strategies,
                     const sn_options *options, sn_err *err);
void sn_advice_free(sn_advice *advice);

#endif
