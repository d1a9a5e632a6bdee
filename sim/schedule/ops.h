/* Ops: the operations of a schedule as a graph, for running them side by side (sim/corun/).
 *
 * A node is a part of an execution (sim/policy/part.h), reruns too; nodes stand in serial order. An edge leads from u
 * to v where u is the earlier, both touch one tensor or object, and not both only read it; edges that follow from
 * others are partly left out, which changes no path.
 *
 * A life is one stay of a tensor on the device, from the operation that makes it to the last of those that use it; a
 * tensor that is dropped and made anew has several. What the memory of any order of operations is follows from lives:
 * bytes are taken where `made_by` starts and given back where the last of its users ends.
 *
 * O(accesses); what it costs in memory is in proportion to that.
 */
#ifndef SN_SIM_SCHEDULE_OPS_H
#define SN_SIM_SCHEDULE_OPS_H

#include "base/err.h"
#include "sim/graph/route.h"
#include "sim/policy/part.h"
#include "sim/schedule/schedule.h"

#include <stdint.h>

typedef struct sn_op_node {
  uint32_t execution; /* schedule->executions[execution] */
  uint32_t step;      /* of the route: what it runs */
  sn_step_part part;
  uint32_t first_predecessor, n_predecessors; /* ops->predecessors[first_predecessor ..], ascending */
  uint32_t first_successor, n_successors;
  uint32_t first_use, n_uses; /* ops->uses[first_use ..]: the lives it touches, what it makes included; each once */
} sn_op_node;

typedef struct sn_life {
  uint32_t tensor;
  uint32_t made_by; /* node; of those that use it the first in serial order */
  uint32_t n_users; /* nodes, made_by included */
} sn_life;

typedef struct sn_ops {
  const sn_schedule *schedule; /* looked at; must outlive the graph, and so must its route */
  uint32_t n_ops, n_edges, n_lives, n_uses;
  const sn_op_node *nodes;
  const uint32_t *predecessors, *successors; /* n_edges each */
  const uint32_t *uses;                      /* n_uses: lives */
  const sn_life *lives;
  uint32_t chain_ops; /* on the longest path */
  struct sn_arena *arena;
} sn_ops;

sn_ops *sn_ops_new(const sn_schedule *schedule, sn_err *err);
void sn_ops_free(sn_ops *ops);

/* Bytes of a life. */
static inline uint64_t sn_life_bytes(const sn_ops *ops, uint32_t life) {
  return ops->schedule->route->tensors[ops->lives[life].tensor].bytes;
}

#endif
