/* Stages: the forward pass cut wherever one value alone goes on, and what each piece keeps and takes: what is dropped
 * and run again as a whole (sim/schedule/schedule_optimal.h).
 *
 *   conv1 | relu1 | pool1 | ..        a chain: every layer is a stage
 *   .. | fork .. join | relu | ..     a ResNet: every unit
 *
 * Of stage s: what its last step hands on is its output, a_s. The cut is one in the backward pass as well: all backward
 * steps of what lies behind it come before those of what lies before. Nothing behind a cut changes in place what lies
 * before it. The last stage ends with the loss.
 *
 * Loads are the largest sums of tensors, each in whole blocks of the pool, without a_{s-1}; times are of the fastest
 * algorithms, or of those that need no workspace. O(steps + accesses).
 */
#ifndef SN_SIM_SCHEDULE_STAGES_H
#define SN_SIM_SCHEDULE_STAGES_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/graph/pass.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/* What is there when backward comes to a stage, and what it then does. */
typedef struct sn_keeping {
  uint64_t bytes;         /* kept from forward, with a_s */
  int64_t remake_ns;      /* for what is run again */
  uint64_t backward_load; /* of that and the backward steps, with what is kept and the gradient of a_s */
} sn_keeping;

/* All that backward reads; nothing but a_{s-1}, and a_s where it reads that, which are not among the bytes; or what
 * recompute=speed keeps: outputs of layers that are not run again, not where the dialect changes tensors in place. */
typedef enum sn_keeping_kind { SN_KEEPS_ALL, SN_KEEPS_INPUT, SN_KEEPS_DEAR, SN_KEEPINGS } sn_keeping_kind;

typedef struct sn_stage {
  uint32_t first, end;                   /* forward steps */
  uint32_t first_backward, end_backward; /* backward steps */
  uint32_t input, output;                /* a_{s-1}, a_s: tensors; SN_NONE: the batch, the loss */
  uint64_t output_bytes, gradient_bytes; /* a_s; all gradients that are there when its backward begins */
  bool reads_output, reads_input;        /* its backward reads a_s, a_{s-1} */
  bool needs_input;                      /* its backward reads a_{s-1}, or what is made again for it does */
  int64_t forward_ns, backward_ns;
  uint64_t drop_load, keep_load; /* of forward that leaves a_s only, and of one that leaves all that backward reads */
  uint64_t pass_load;            /* of the first with a_{s-1}, while it is read */
  sn_keeping keeping[SN_KEEPINGS];
  uint32_t n_keepings; /* the first so many */
} sn_stage;

typedef struct sn_stages {
  const sn_route *route; /* looked at; must outlive it */
  uint32_t count;
  sn_stage *stages;
  bool *remakes,
      *remakes_cheap; /* per forward step: it runs again where a_{s-1} and a_s are there; where the dear are kept
                       */
  uint32_t *producer; /* per tensor: the forward step that changes it last; SN_NONE: none */
} sn_stages;

/* What a step takes with the fastest algorithms, or without workspace with those that need none. `costs` NULL: 0. */
int64_t sn_stages_step_ns(const sn_route *route, const sn_costs *costs, bool workspace, uint32_t step);

/* NULL: out of memory. `costs` NULL: all times are 0. */
sn_stages *sn_stages_new(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err);
void sn_stages_free(sn_stages *stages);

/* ---- from stages to a schedule ---- */

/* Executions in the order in which they are; at_step is filled in at the end. */
typedef struct sn_run_list {
  const sn_stages *stages;
  sn_execution *executions;
  uint32_t count, room;
  uint32_t *steps; /* of a stage */
  bool *done;
  bool failed; /* nothing more is added */
} sn_run_list;

typedef enum sn_run {
  SN_RUN_FORWARD,  /* for the first time */
  SN_RUN_AGAIN,    /* forward, all of it */
  SN_RUN_BACKWARD, /* all that it reads is there */
  SN_RUN_REMAKE,   /* backward; what it reads is made again from a_{s-1} and a_s, each ahead of who reads it */
  SN_RUN_CHEAP     /* the same from what SN_KEEPS_DEAR keeps */
} sn_run;

sn_run_list *sn_run_list_new(const sn_stages *stages, sn_err *err);
void sn_run_list_add(sn_run_list *list, uint32_t stage, sn_run run);
/* With the updates behind it; frees the list. NULL where something has failed. */
sn_schedule *sn_run_list_end(sn_run_list *list, sn_err *err);

#endif
