/* Reading plans back, our own and other people's: the form of docs/plan-format.md, which sn_plan_write() writes.
 *
 *   sn_json_lists *file = sn_plan_load("plan.json", &err);
 *   sn_plan_head head;
 *   sn_plan_read_head(file, &head, &err);            what it is a plan of
 *   net, costs; route = sn_schedule_route(net, head.strategy, head.iteration, costs, &err);
 *   sn_plan *plan = sn_plan_read(file, route, &err);
 *   sn_plan_check_read(file, plan, &report, &err);
 *
 * Tensors and steps are those of the route; where the file lists them they must be these. Keys that the format does not
 * know are refused, so that a misspelt one is not passed over. What the file says of itself (fits, fences, loads) is
 * counted anew, but for the sizes of the pools, which are taken as what the plan asks for.
 *
 * Errors are SN_BAD_INPUT and begin with "file:line: ". Tensors, steps and instructions are read one after another
 * (base/json_lists.h): memory is the text, of which an instruction takes 130 bytes, and 48 to 96 bytes an instruction.
 */
#ifndef SN_SIM_PLAN_READ_H
#define SN_SIM_PLAN_READ_H

#include "base/err.h"
#include "base/json_lists.h"
#include "sim/graph/iteration.h"
#include "sim/plan/check.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

/* What a plan is an answer to. Texts are the document's. */
typedef struct sn_plan_head {
  const char *net;                           /* its own name */
  const char *gpu;                           /* NULL: not said */
  uint32_t batch, image_height, image_width; /* 0: the network's own; of sequences their length and 1 */
  sn_strategy strategy;                      /* whose graph the plan is of; liveness where it is not said */
  sn_options options;                        /* workspace, external, allocator, iteration, shared_link, pool_bytes */
  uint64_t memory_bytes;                     /* 0: not said */
  uint64_t host_memory_bytes;                /* 0: not limited, or not said */
} sn_plan_head;

/* The file, or text in memory for which `name` stands in errors; sn_json_lists_free() frees it. */
sn_json_lists *sn_plan_load(const char *path, sn_err *err);
sn_json_lists *sn_plan_parse(const char *name, const char *text, size_t bytes, sn_err *err);

sn_status sn_plan_read_head(const sn_json_lists *file, sn_plan_head *head, sn_err *err);

/* The plan that the instructions are, not yet checked. `route` must outlive it. */
sn_plan *sn_plan_read(sn_json_lists *file, const sn_route *route, sn_err *err);

/* sn_check() of a plan that was read: what is wrong is the file's fault, SN_BAD_INPUT, with the line of the
 * instruction. */
sn_status sn_plan_check_read(sn_json_lists *file, sn_plan *plan, sn_check_report *report, sn_err *err);

#endif
