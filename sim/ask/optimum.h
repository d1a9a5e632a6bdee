/* Optimum: how far the rules that drop and send out tensors are from recompute=optimal, which takes the least time
 * there is for re-running within a memory, and from liveness+offload+recompute=optimal, which also sends out.
 *
 *   time |o                  o  a rule: what it needs, and its time
 *        | \     o
 *        |  \_    o          the line: the optimum with so much memory
 *        |    \____ o
 *        +------------ memory
 *
 * Without workspaces of convolutions, so that memory is that of tensors and every rule has one point. The optimum's
 * line has SN_OPTIMUM_BUDGETS points, evenly from the least memory with which it runs to what re-running nothing takes;
 * and one more for the memory of each rule, to compare with. recompute=dtr, which depends on the memory too, has such a
 * line of its own, and the optimum a point more for the memory of each of its points. All are plans, checked and
 * played.
 */
#ifndef SN_SIM_ASK_OPTIMUM_H
#define SN_SIM_ASK_OPTIMUM_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_OPTIMUM_BUDGETS = 20, SN_OPTIMUM_POINTS = 2 * SN_OPTIMUM_BUDGETS, SN_OPTIMUM_RULES = 10 };

typedef struct sn_optimum_rule {
  sn_strategy strategy;
  const sn_result *result;
  const sn_result *best; /* the optimum with what the rule takes of the device; NULL: it does not run with that */
  const sn_result *sent; /* the same of what may send tensors out too; never NULL where `best` is not */
} sn_optimum_rule;

typedef struct sn_optimum_line {
  const sn_result *points[SN_OPTIMUM_POINTS]; /* rising memory, each faster than the one before */
  uint64_t budgets[SN_OPTIMUM_POINTS];        /* memory of the device that each was given */
  uint32_t count;
} sn_optimum_line;

typedef struct sn_optimum {
  sn_optimum_rule rules[SN_OPTIMUM_RULES];
  sn_optimum_line optimal, dtr;
  struct sn_arena *arena;
} sn_optimum;

/* Of the options workspace and want_.. are not looked at. */
sn_optimum *sn_optimum_new(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err);
void sn_optimum_free(sn_optimum *optimum);

#endif
