/* Reading plans back, our own and other people's: the form of docs/plan-format.md, which sn_plan_write() writes.
 *
 *   sn_json *doc = sn_json_load("plan.json", &err);
 *   sn_plan_head head;
 *   sn_plan_read_head(doc, &head, &err);             what it is a plan of
 *   net, costs; route = sn_schedule_route(net, head.strategy, head.iteration, costs, &err);
 *   sn_plan *plan = sn_plan_read(doc, route, &err);
 *   sn_plan_check_read(doc, plan, &report, &err);
 *
 * Tensors and steps are those of the route; where the file lists them they must be these. Keys that the format does not
 * know are refused, so that a misspelt one is not passed over. What the file says of itself (fits, fences, loads) is
 * counted anew, but for the sizes of the pools, which are taken as what the plan asks for.
 *
 * Errors are SN_BAD_INPUT and begin with "file:line: ". Memory is what the document takes (base/json.h bounds it) and
 * 48 bytes an instruction.
 */
#ifndef SN_SIM_PLAN_READ_H
#define SN_SIM_PLAN_READ_H

#include "base/err.h"
#include "base/json.h"
#include "sim/graph/iteration.h"
#include "sim/plan/check.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

/* What a plan is an answer to. Texts are the document's. */
typedef struct sn_plan_head {
  const char *net;            /* its own name */
  const char *gpu;            /* NULL: not said */
  uint32_t batch, image;      /* image 0: the network's own; the height, where it is not square the larger side */
  sn_strategy strategy;       /* whose graph the plan is of; liveness where it is not said */
  sn_options options;         /* workspace, external, allocator, iteration, shared_link, pool_bytes */
  uint64_t memory_bytes;      /* 0: not said */
  uint64_t host_memory_bytes; /* 0: not limited, or not said */
} sn_plan_head;

sn_status sn_plan_read_head(const sn_json *doc, sn_plan_head *head, sn_err *err);

/* The plan that the instructions are, not yet checked. `route` must outlive it. */
sn_plan *sn_plan_read(const sn_json *doc, const sn_route *route, sn_err *err);

/* sn_check() of a plan that was read: what is wrong is the file's fault, SN_BAD_INPUT, with the line of the
 * instruction. */
sn_status sn_plan_check_read(const sn_json *doc, sn_plan *plan, sn_check_report *report, sn_err *err);

#endif
