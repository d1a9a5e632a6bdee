/* Schedule: the route with re-run forwards put in, and for every access whether it is the tensor's last.
 *
 * Recomputation is nothing but more executions: where a backward step reads a tensor that has been dropped, the forward
 * steps of its chain stand again in front of it, marked `rerun`. Liveness then is one backward scan over executions and
 * knows nothing of recomputation: a tensor dies at its last access, or at the last one before it is made anew. That one
 * rule drops forward outputs after their last forward use, frees an intermediate as soon as the next layer of the chain
 * has read it, and keeps what a later step still needs. O(executions + accesses).
 *
 *   speed-centric   a re-run tensor stays available until its last use: each layer is re-run at most once
 *   memory-centric  after each backward step only what that step read stays available
 *   cost-aware      memory-centric for segments that would need more than l_peak, else speed-centric ([SN] 3.4)
 *   layers          speed-centric for ACT, LRN and POOL only; BN and DROPOUT outputs stay (docs/baselines.md, mxnet)
 *   units           where backward enters a unit (sim/schedule/units.h), all of its forward that backward needs runs
 *                   again, as torch.utils.checkpoint does
 *   selective       the same, but for operations whose results stay (units.h)
 *   attention       attention in parts runs again where its backward reads scores, all else stays
 *   sqrt            some outputs of stages stay, what lies between two runs again once (schedule_sqrt.h)
 *   optimal         depends on the memory there is (schedule_optimal.h, sim/make/optimal.h); here it re-runs nothing
 *   dtr             so too (schedule_dtr.h)
 */
#ifndef SN_SIM_SCHEDULE_SCHEDULE_H
#define SN_SIM_SCHEDULE_SCHEDULE_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/graph/pass.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More executions than this are refused: memory-centric recomputation is quadratic in the length of a segment. */
#define SN_MAX_EXECUTIONS 16777216u

typedef struct sn_execution {
  uint32_t step;           /* what runs: index into route->steps */
  uint32_t at_step;        /* the step of the route in which it runs: itself, or the one that waits for it */
  uint32_t first_last_use; /* schedule->last_use[first_last_use + i] is about access i of the step */
  bool rerun;
} sn_execution;

/* A tensor that leaves the device and comes back. */
typedef struct sn_swap {
  uint32_t tensor;
  uint32_t release_step; /* released before this step begins, which waits for the copy */
  uint32_t fetch_step;   /* a later one; copied in when it begins */
} sn_swap;

typedef struct sn_schedule {
  const sn_route *route; /* looked at; must outlive the schedule */
  uint32_t n_executions;
  const sn_execution *executions;
  const bool *last_use;
  uint32_t reruns;
  uint32_t n_swaps;
  const sn_swap *swaps; /* of SN_OFFLOAD_PLANNED (sim/schedule/send.h); NULL: none */
} sn_schedule;

/* The route that a strategy plans: of its dialect, in its order, permits used, and what is carried over. `costs` are
 * looked at where workspaces are tensors of the graph; NULL: there are none. */
sn_route *sn_schedule_route(const sn_net *net, sn_strategy strategy, sn_iteration iteration, const sn_costs *costs,
                            sn_err *err);

sn_schedule *sn_schedule_new(const sn_route *route, sn_recompute recompute, sn_err *err);
void sn_schedule_free(sn_schedule *schedule);

/* How many accesses its executions have, all together. */
size_t sn_schedule_accesses(const sn_schedule *schedule);

/* Whether bytes have no say in it, so that it is the same for routes that differ in nothing else. */
bool sn_schedule_is_sizeless(sn_recompute recompute);
/* The same for such a route (sim/graph/route_resize.h). SN_NO_MEMORY. */
sn_schedule *sn_schedule_copy(const sn_schedule *schedule, const sn_route *route, sn_err *err);

/* Of executions in order, from malloc(), which it takes over also where it fails; first_last_use is not looked at. */
sn_schedule *sn_schedule_of(const sn_route *route, sn_execution *executions, uint32_t count, sn_err *err);

/* Of recompute=units: the first `count` units run again, all of them where there are no more. */
sn_schedule *sn_schedule_first_units(const sn_route *route, uint32_t count, sn_err *err);

/* Of regions of torch.utils.checkpoint: those of `again` run again as units do, the others stay. */
sn_schedule *sn_schedule_checkpoints(const sn_route *route, const sn_units *regions, const bool *again, sn_err *err);

/* The backward step of a forward step's layer reads something that forward has made. */
bool sn_schedule_needs_forward(const sn_route *route, uint32_t forward);
/* It saves something that it makes: dropout its mask; a product saves nothing but what it reads. */
bool sn_schedule_saves_own(const sn_route *route, uint32_t forward);
/* Where a unit of forward steps first .. end - 1 stops that runs again: as soon as all is there that its backward needs.
 * The last step that saves is one that saves what it reads, and PyTorch stops ahead of it; or what it makes, and runs. */
uint32_t sn_schedule_rerun_end(const sn_route *route, uint32_t first, uint32_t end);

/* The largest sum of tensors, each in whole blocks of the pool, that are there at one time. 0 where memory is out. */
uint64_t sn_schedule_load(const sn_schedule *schedule);

/* Whether two schedules of one route are the same. O(executions + accesses). */
bool sn_schedule_same(const sn_schedule *a, const sn_schedule *b);

/* l_peak: the largest sum of functional tensors that a single backward step touches ([SN] 3.4). */
uint64_t sn_schedule_layer_peak(const sn_route *route);

#endif
