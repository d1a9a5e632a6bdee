/* Residency: which tensors have memory for the whole iteration, whatever liveness knows, and which gradients take over
 * an output's memory. The static policies of Caffe and Torch are nothing but this (docs/baselines.md); everything else
 * in a plan is the same for all strategies.
 *
 *                       outputs                      gradients on chains               gradients at branches
 *   none (baseline)     held                         held                              held
 *   full                first to last use            first to last use                 first to last use
 *   take over (caffe)   held until taken over        take over the layer's own output  held
 *                                                    if it is dead and large enough,
 *                                                    else held
 *   gradients (torch7)  held                         first to last use                 held
 *   carried (singa)     what backward reads stays    first to last use                 first to last use
 *
 * Carried: what stays has memory from its first use to the end of the next iteration's forward. A plan is one iteration
 * of many: what the one before has left (SN_CARRIED) is there before the first step. Scratch, which the next forward
 * uses again, is held.
 *
 * A tensor is at a branch where a layer of several inputs or outputs, or a CONCAT, reads or makes it. O(accesses).
 */
#ifndef SN_SIM_POLICY_RESIDENCY_H
#define SN_SIM_POLICY_RESIDENCY_H

#include "base/err.h"
#include "sim/graph/pass.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_residency {
  bool *held;      /* per tensor: allocated before the first step and not released at its last use */
  bool *stays;     /* per tensor: not released at its last use */
  uint32_t *takes; /* per tensor: the held output that is released when this one is made; SN_NONE: none */
} sn_residency;

/* Free with sn_residency_clear(). */
sn_status sn_residency_make(const sn_route *route, sn_liveness liveness, sn_residency *residency, sn_err *err);
void sn_residency_clear(sn_residency *residency);

#endif
