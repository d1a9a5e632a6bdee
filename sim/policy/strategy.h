/* Strategy: whose graph is planned (sim/graph/dialect.h) and which memory techniques a plan uses, by the name people
 * give it.
 *
 *   baseline | liveness [+offload[=conv|checkpoints] | +cache] [+recompute=speed|memory|cost] [+corun=POLICY]
 *   liveness+recompute=sqrt | liveness [+offload] +recompute=optimal | liveness+recompute=dtr
 *   caffe | torch7 | mxnet | tensorflow | vdnn-all | vdnn-conv | superneurons-paper
 *   pytorch [+offload] [+recompute=units[:N]] | pytorch+recompute=selective|attention | pytorch-1.7 ... | explicit [+dynamic]
 *   singa-layer | singa-serial | singa-bfs
 *
 * "superneurons" is liveness+cache+recompute=cost. Parts may come in any order; printing is always in the order above.
 * The second line are published systems: those that [SN]
 * and vDNN compare themselves with, and [SN]'s own as it was measured; docs/baselines.md states the rules and where
 * they come from. Those of the third line have graphs of their own: today's PyTorch (docs/pytorch.md) and MXNet 1.2.1
 * with everything its note on memory does, placed ahead of time or, dynamic, as it comes (docs/dialects.md). Those of
 * the fourth are Apache SINGA's, without its graph and with it, in two orders (docs/dialects.md); they are simulated
 * only.
 */
#ifndef SN_SIM_POLICY_STRATEGY_H
#define SN_SIM_POLICY_STRATEGY_H

#include "base/err.h"
#include "sim/graph/dialect.h"
#include "sim/graph/iteration.h"
#include "sim/graph/pass.h"
#include "sim/policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

/* How long tensors keep their memory (sim/policy/residency.h). */
typedef enum sn_liveness {
  SN_LIVENESS_NONE,      /* the whole iteration, all of them */
  SN_LIVENESS_FULL,      /* from the first use to the last ([SN] 3.2) */
  SN_LIVENESS_TAKE_OVER, /* caffe: the whole iteration, but gradients take over the memory of dead outputs */
  SN_LIVENESS_GRADIENTS, /* torch7: outputs the whole iteration, gradients from the first use to the last */
  SN_LIVENESS_CARRIED /* singa-layer: as full, but what backward reads until the next forward has ended; scratch always
                       */
} sn_liveness;

typedef enum sn_offload {
  SN_OFFLOAD_NONE,
  SN_OFFLOAD_CONV,         /* CONV outputs, at fixed places ([SN] 3.3.1) */
  SN_OFFLOAD_CHECKPOINTS,  /* JOIN, FORK and CONCAT outputs too */
  SN_OFFLOAD_CACHE,        /* any tensor, only when memory is short: LRU ([SN] algorithm 2) */
  SN_OFFLOAD_INPUTS,       /* vdnn-all: inputs of all layers before the classifier */
  SN_OFFLOAD_CONV_INPUTS,  /* vdnn-conv: inputs of CONVs only */
  SN_OFFLOAD_NARROW_CACHE, /* superneurons-paper: the cache, but only CONV and FORK outputs leave */
  SN_OFFLOAD_LONG_LIVED,   /* tensorflow: outputs unused for 3/4 of the iteration, to pageable memory */
  SN_OFFLOAD_SAVED,        /* pytorch+offload: all that is kept for backward (torch.autograd.graph.save_on_cpu) */
  SN_OFFLOAD_PLANNED,      /* offload with recompute=optimal: what its schedule says (sim/schedule/send.h) */
  SN_OFFLOADS
} sn_offload;

typedef enum sn_recompute {
  SN_RECOMPUTE_NONE,
  SN_RECOMPUTE_SPEED,
  SN_RECOMPUTE_MEMORY,
  SN_RECOMPUTE_COST,
  SN_RECOMPUTE_LAYERS,    /* mxnet: ACT, LRN and POOL outputs, layer by layer, each once */
  SN_RECOMPUTE_UNITS,     /* pytorch: torch.utils.checkpoint around each unit of the net (sim/schedule/units.h) */
  SN_RECOMPUTE_SQRT,      /* some outputs of stages stay, any layer runs again once (sim/schedule/schedule_sqrt.h) */
  SN_RECOMPUTE_OPTIMAL,   /* least time for the memory there is (sim/schedule/schedule_optimal.h) */
  SN_RECOMPUTE_DTR,       /* what DTR does in the memory there is (sim/schedule/schedule_dtr.h) */
  SN_RECOMPUTE_SELECTIVE, /* pytorch: units, but for some operations' results (sim/schedule/units.h) */
  SN_RECOMPUTE_ATTENTION, /* pytorch: attention in parts, as Megatron-LM's selective recomputation */
  SN_RECOMPUTES
} sn_recompute;

typedef struct sn_strategy {
  sn_liveness liveness; /* offload and recompute are off unless it is SN_LIVENESS_FULL */
  sn_offload offload;
  sn_recompute recompute;
  uint32_t units; /* of recompute=units: so many, the first of the network; 0: all */
  sn_dialect_id dialect;
  sn_order order;  /* singa: SN_ORDER_SERIAL or SN_ORDER_BFS; others have one of their own, sn_strategy_order() */
  bool dynamic;    /* explicit: memory is given as it is asked for, first fit, instead of planned ahead */
  sn_policy corun; /* operations run side by side, on devices with cores; none: one after another */
} sn_strategy;

enum { SN_STRATEGY_TEXT = 64, SN_STRATEGY_DEFAULTS = 13, SN_STRATEGY_SYSTEMS = 7 };

sn_status sn_strategy_parse(const char *text, sn_strategy *strategy, sn_err *err);

/* The canonical name, into `text` of SN_STRATEGY_TEXT bytes; returns it. */
char *sn_strategy_name(sn_strategy strategy, char *text);

bool sn_strategy_same(sn_strategy a, sn_strategy b);

/* The order of its route: MXNet's for explicit. */
sn_order sn_strategy_order(sn_strategy strategy);

/* A number of its route, below SN_STRATEGY_GRAPHS: strategies with the same number have the same route. That of [SN]'s
 * is 0. */
enum { SN_STRATEGY_GRAPHS = SN_DIALECTS + 2 };
uint32_t sn_strategy_graph(sn_strategy strategy);

/* Why it cannot be asked about an iteration, without a full stop; NULL: it can. Without a backward pass there is
 * nothing to offload or recompute for; SINGA updates before it could accumulate, and its rows are of training; autocast
 * and frozen layers are PyTorch's; published systems and SINGA train in four bytes. */
const char *sn_strategy_refuses(sn_strategy strategy, sn_iteration iteration);

/* It is simulated only: no back end executes its graph. */
bool sn_strategy_is_simulated(sn_strategy strategy);

/* Those with graphs of their own, index < SN_STRATEGY_FRAMEWORKS; the first SN_STRATEGY_PYTORCH are what PyTorch
 * offers, the first SN_STRATEGY_EXECUTED can be executed, SINGA's behind them are simulated only. */
enum { SN_STRATEGY_PYTORCH = 4, SN_STRATEGY_EXECUTED = 7, SN_STRATEGY_FRAMEWORKS = 10 };
sn_strategy sn_strategy_framework(uint32_t index);

/* What is shown where nobody asks for any: PyTorch's row, then the 13; index < SN_STRATEGY_SHOWN. */
enum { SN_STRATEGY_SHOWN = SN_STRATEGY_DEFAULTS + 1 };
sn_strategy sn_strategy_shown(uint32_t index);

/* The 13 combinations of the default table, index < SN_STRATEGY_DEFAULTS; the published systems, index <
 * SN_STRATEGY_SYSTEMS; and one line on what each does. */
sn_strategy sn_strategy_default(uint32_t index);
sn_strategy sn_strategy_system(uint32_t index);
const char *sn_strategy_summary(sn_strategy strategy);

/* What it does in a sentence for people who do not know the names, without its full stop: "frees each tensor after its
 * last use, and ..". Into `text` of SN_STRATEGY_SENTENCE bytes; returns it. */
enum { SN_STRATEGY_SENTENCE = 320 };
char *sn_strategy_sentence(sn_strategy strategy, char *text);

/* Its copies go to and come from pageable host memory (SN_PAGEABLE_SHARE in sim/device/device.h). */
bool sn_strategy_is_pageable(sn_strategy strategy);

/* It is a published system, not one of [SN]'s combinations. */
bool sn_strategy_is_system(sn_strategy strategy);

/* Its operations run side by side. */
static inline bool sn_strategy_is_corun(sn_strategy strategy) {
  return strategy.corun.kind != SN_POLICY_NONE;
}

/* What it runs again depends on the memory there is. */
static inline bool sn_strategy_adapts(sn_strategy strategy) {
  return strategy.recompute == SN_RECOMPUTE_OPTIMAL || strategy.recompute == SN_RECOMPUTE_DTR;
}

/* It moves tensors only when memory is short. */
bool sn_strategy_has_cache(sn_strategy strategy);

#endif
