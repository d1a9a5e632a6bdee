/* Split: a batch cut into equal parts that run one after the other, their gradients added up and one update behind the
 * last of them (--accumulate): what each such way takes of the device, and of time.
 *
 *   batch 256    | forward backward                      update |
 *   4 parts      | f b | f b | f b | f b                 update |      a quarter of the tensors, every gradient
 *
 * The images of a part see each other alone, which a batch norm notices. Numbers of parts are the batch's divisors, the
 * smallest first: of each strategy the first SN_SPLITS_EACH that fit. Cost: a network, and a plan and a simulation for
 * each strategy, of SN_SPLITS_TRIED divisors at most. Nothing is looked for in networks of more layers than
 * SN_SPLITS_LAYERS.
 */
#ifndef SN_SIM_CAPACITY_SPLIT_H
#define SN_SIM_CAPACITY_SPLIT_H

#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/capacity/remedy.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

enum { SN_SPLITS_EACH = 3, SN_SPLITS_TRIED = 16, SN_SPLITS_LAYERS = 20000 };

typedef struct sn_split {
  sn_strategy strategy;
  uint32_t parts, batch;   /* at least 2 parts, of so many images each */
  const sn_result *result; /* of a whole update, all parts of it */
} sn_split;

typedef struct sn_splits {
  uint32_t count;
  const sn_split *all; /* all fit; from the fastest to the leanest, none beaten in both */
  struct sn_arena *arena;
} sn_splits;

/* What is asked for may accumulate already: a part is then one of several batches. Strategies that cannot be combined with that
 * are left out; inference and batches of one image have no splits. */
sn_splits *sn_splits_find(const sn_asked *asked, sn_err *err);
void sn_splits_free(sn_splits *splits);

#endif
