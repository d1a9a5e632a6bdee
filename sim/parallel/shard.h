/* Shard: what one GPU of a mesh does of an iteration: the route with what is gathered, reduced and sent put in.
 *
 *   whole      conv1 fwd | bn1 fwd | .. | bn1 bwd | conv1 bwd | update
 *   fsdp=8     gather conv1+bn1, unpack | conv1 fwd | bn1 fwd | ..
 *              | gather, unpack | bn1 bwd | conv1 bwd | pack, reduce | update of the shards
 *
 * A collective is a step that reads and writes tensors, and so are the copies beside it; parameters that come and go
 * are tensors, those that stay are resident (sim/graph/resident.h), as parts of their sizes. Behind the route nobody
 * learns anything: schedules, plans, checker, player and store see steps and tensors. A tensor that is made once more,
 * as a parameter that is gathered again, is the same tensor.
 *
 * The rules are PyTorch 2.15's as its memory tracker sees them (parallel.md, sections 2 and 3): torch/distributed/fsdp/
 * _fully_shard/_fsdp_param_group.py, and torch/nn/parallel/distributed.py.
 */
#ifndef SN_SIM_PARALLEL_SHARD_H
#define SN_SIM_PARALLEL_SHARD_H

#include "base/err.h"
#include "models/record/checkpoint.h"
#include "sim/graph/iteration.h"
#include "sim/graph/route.h"

/* The route of the fullest rank of iteration.mesh; takes `whole` over, also where it fails, and is `whole` itself where
 * there is one GPU. SN_BAD_INPUT: what cannot be shared, with the nearest that can. O(steps + accesses + parameters). */
sn_route *sn_shard(sn_route *whole, sn_iteration iteration, sn_err *err);

/* The same of another stage of the pipeline that `known` is a stage of: what they share is made once, and is that one's,
 * which is to outlive it. */
sn_route *sn_shard_stage(const sn_route *known, sn_iteration iteration, sn_err *err);

/* sn_route_under() of a route, also of one that sn_shard() has made: then the rank's route of that. */
const sn_route *sn_shard_under(const sn_route *route, const sn_record_span *spans, uint32_t n_spans, sn_err *err);

/* Why an iteration's mesh cannot be asked about, whatever network and strategy (sn_strategy_refuses()), with what can;
 * without a full stop. NULL: it can. */
const char *sn_shard_refuses(sn_iteration iteration);

#endif
