/* CPU teams: the kernels of operations that run side by side, each with a number of threads of its own.
 *
 * Primitives are made once for a layer and a number of threads, when somebody first asks, and stay; teams of one size
 * share them. What a team needs beside them lasts as long as a plan is played.
 */
#ifndef SN_EXEC_MACHINE_CPU_TEAMS_H
#define SN_EXEC_MACHINE_CPU_TEAMS_H

#include "base/err.h"
#include "exec/machine/cpu_kernels.h"
#include "exec/machine/lanes.h"
#include "sim/plan/plan.h"

#include <stdint.h>

typedef struct sn_cpu_teams sn_cpu_teams;

/* The net must outlive them. */
sn_cpu_teams *sn_cpu_teams_new(const sn_net *net, sn_err *err);
void sn_cpu_teams_free(sn_cpu_teams *teams);

/* Scratch bytes that a part of a step needs as workspace with so many threads. SN_BAD_DEVICE, SN_NO_MEMORY. */
sn_status sn_cpu_teams_scratch(sn_cpu_teams *teams, const sn_step *step, sn_step_part part, uint32_t threads,
                               uint64_t *bytes, sn_err *err);

/* The kernels of each team of a co-run plan, ready for all its operations; of[team] is to be freed by
 * sn_cpu_teams_close(). SN_BAD_USAGE for a plan whose threads float, or that has more than SN_LANES_TEAMS teams;
 * SN_BAD_DEVICE where their threads cannot be started. */
sn_status sn_cpu_teams_open(sn_cpu_teams *teams, const sn_plan *plan, sn_cpu_kernels *of[SN_LANES_TEAMS], sn_err *err);
void sn_cpu_teams_close(sn_cpu_kernels *of[SN_LANES_TEAMS]);

#endif
