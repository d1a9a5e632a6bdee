/* Question (internal to sim/ask): what strategies share that are asked about one network, and what is left of it when
 * the same network is asked about on another device.
 *
 *   sn__question q = {.net = net, .device = device, .options = options, .arena = arena, .err = err};
 *   sn__question_open(&q);
 *   const sn_schedule *schedule = sn__question_schedule(&q, strategy);
 *   sn__question_turn(&q, other, others); sn__question_open(&q);
 *   sn__question_close(&q);
 *
 * What depends on what:
 *
 *   network and iteration      routes (but for those whose workspaces are tensors), their schedules, persistent bytes
 *                              their instructions but for algorithms and addresses, as long as nothing is sent out for
 *                              want of room (sim/plan/lower_from_known.h)
 *   algorithms                 plans (sim/make/proved.h) that first fit has room for, or whose bytes nothing has room
 *                              for
 *   blocks and limits alone    packings: of devices with the same algorithms, and of tensors without any workspace
 *   and on the device          costs, graphs whose workspaces are tensors
 *   and on options, too        the floor, what adapting strategies have made before, the least pools found
 *   and on the memory          all other plans: none is kept
 *
 * So a turn keeps the first three and forgets the rest. All of it is made when first asked for.
 */
#ifndef SN_SIM_ASK_QUESTION_H
#define SN_SIM_ASK_QUESTION_H

#include "base/arena.h"
#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/corun_plans.h"
#include "sim/ask/run.h"
#include "sim/cluster/cluster.h"
#include "sim/device/cost.h"
#include "sim/device/device.h"
#include "sim/device/external.h"
#include "sim/graph/pass.h"
#include "sim/make/proved.h"
#include "sim/make/standing.h"
#include "sim/memory/packings.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/* What all strategies of one graph share. */
typedef struct sn__question_graph {
  /* of the network and the iteration */
  sn_route *route;                       /* NULL: nobody has asked for it */
  sn_schedule *schedules[SN_RECOMPUTES]; /* made when first asked for */
  struct sn__some_units *some_units;     /* those of recompute=units:N, each made when first asked for */
  bool resized;                          /* the route is sn_route_resize()'s of the question's like */
  sn_persistent persistent;
  /* of the device and the options, once `is_open` */
  bool is_open;
  bool workspace_free;                 /* every step can do without workspace */
  sn_costs *costs;                     /* PyTorch's own; NULL: the question's */
  sn_standing *standing;               /* of strategies that adapt */
  uint64_t floor;                      /* the pool below which no strategy runs: the largest step with its workspace */
  uint64_t adapting[SN_RECOMPUTES][2]; /* the least pools of strategies that adapt, which take long to find, without and
                                          with offload; 0: unknown */
} sn__question_graph;

/* What all strategies of one question share. */
typedef struct sn__question {
  const sn_net *net;
  struct sn__question *like;  /* about the network that this one's is sn_net_rebatch()'s of, made for it to have routes
                                and schedules to go by; outlives it. NULL: none */
  struct sn__question *stage; /* about another stage of the same pipeline, whose route has what all share; outlives it.
                                 NULL: none */
  const sn_device *device;
  sn_device shared;   /* of several GPUs: that device with what its communicators take */
  sn_cluster cluster; /* on which those are */
  const sn_options *options;
  sn_costs *model, *costs; /* by the formulas; and as measured, where that is known: else they are the same */
  sn_packings packings;
  sn_proved proved;
  sn_corun_plans corun;
  sn__question_graph graphs[SN_STRATEGY_GRAPHS];
  uint64_t memory_bytes;      /* of the device */
  uint64_t least_of_interest; /* of the strategy that is asked: sn_options.least_of_interest */
  bool once;                  /* it is not going to be turned, so that no plan is worth keeping for another device */
  sn_arena *arena;            /* of the run; NULL where only a plan is wanted */
  sn_err *err;
} sn__question;

/* Makes the costs; errors are those of sn_costs_new(). */
sn_status sn__question_open(sn__question *q);
/* Asks of another device, or with other options of the same iteration; to be opened anew. */
void sn__question_turn(sn__question *q, const sn_device *device, const sn_options *options);
void sn__question_close(sn__question *q);

/* Makes the graph of a strategy, if nobody has. SN_BAD_INPUT where it refuses the iteration. */
sn_status sn__question_open_graph(sn__question *q, sn_strategy strategy);
/* NULL after an error. */
const sn_schedule *sn__question_schedule(sn__question *q, sn_strategy strategy);

static inline sn__question_graph *sn__question_graph_of(sn__question *q, sn_strategy strategy) {
  return &q->graphs[sn_strategy_graph(strategy)];
}
/* The strategy that is asked next, one of so many. */
static inline void sn__question_begin(sn__question *q, uint32_t strategy) {
  q->least_of_interest = q->options->least_of_interest ? q->options->least_of_interest[strategy] : 0;
}
/* Plans of the strategy's graph that were made before; NULL where none are kept. */
sn_proved *sn__question_proved(sn__question *q, sn_strategy strategy);
const sn_costs *sn__question_costs(const sn__question *q, sn_strategy strategy);
/* PyTorch's graphs have PyTorch's allocator unless another one is asked for; others if it is. */
bool sn__question_has_caching(const sn__question *q, sn_strategy strategy);
/* Bytes of the context, and all that stays on the device. */
uint64_t sn__question_context(const sn__question *q, sn_strategy strategy);
uint64_t sn__question_resident(const sn__question *q, sn_strategy strategy);
/* Which algorithms cuDNN takes is not for the plan to say where PyTorch or SINGA call it: what they need, they have. */
sn_workspace sn__question_workspace(const sn__question *q, sn_strategy strategy);

/* A question kept open (sim/ask/simulate.h). */
struct sn_planner {
  sn__question q;
};

#endif
