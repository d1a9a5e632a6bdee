/* Groups (internal to sim/parallel/): which parameters are gathered and reduced together, as a user calls
 * fully_shard(): each block of the model (sn_route_block()), and the rest of it as the root. Of models that have no
 * blocks, and of networks whose modules are not known, each layer, of a recording each module, that has parameters.
 *
 *     root   embedding                                    norm, head
 *     0                layers.0
 *     1                          layers.1
 */
#ifndef SN_SIM_PARALLEL_GROUPS_H
#define SN_SIM_PARALLEL_GROUPS_H

#include "base/err.h"
#include "sim/graph/iteration.h"
#include "sim/graph/mesh.h"
#include "sim/graph/route.h"
#include "sim/parallel/edit.h"

typedef struct sn__parameter {
  uint32_t layer, port; /* port: of a recording its number there */
  sn_cut cut;           /* of a recording in bytes */
  uint32_t gradient;    /* tensor; SN_NONE: it is not trained */
} sn__parameter;

/* A group's steps are those of the whole route. */
typedef struct sn__group {
  const char *name;
  uint32_t first_parameter, n_parameters;
  uint32_t forward, forward_end;   /* its first step, and its last */
  uint32_t backward, backward_end; /* SN_NONE: none */
  bool input_trained;              /* its input needs a gradient */
} sn__group;

/* The groups in the order in which forward comes to them, the root last; it may have no parameters. */
typedef struct sn__groups {
  uint32_t count; /* without the root: groups[count] */
  sn__group *groups;
  uint32_t n_parameters;
  sn__parameter *parameters; /* of a group side by side, layers in order */
  uint32_t *of;              /* per layer: its group; of a pipeline's stage SN_NONE: not on it */
  uint32_t *of_step;         /* per forward and backward step of the whole: its group */
  /* of a recording, else NULL */
  uint32_t *gradient_of;        /* per tensor: the group that it is a gradient of; SN_NONE */
  uint32_t *first_read, *reads; /* per step of the whole: it reads parameters reads[first_read[step] ..] */
  uint32_t n_reads;
  uint32_t model, model_end, model_backward; /* steps: the model's first and last, and its first backward */
} sn__groups;

/* To be cleared in any case. O(layers + steps). */
sn_status sn__groups_find(const sn_route *whole, sn_iteration iteration, sn__groups *groups, sn_err *err);
/* Of a pipeline's stage: groups' first and last steps are now those of the micro-batch's forward or backward that is steps
 * first .. end of the whole. What stages send and receive is of no group. O(steps + groups). */
void sn__groups_enter(sn__groups *groups, const sn_route *whole, uint32_t first, uint32_t end);
/* Whether a step sends to another stage, receives from it, or makes room for that. */
bool sn__groups_crosses(const sn_route *whole, uint32_t step);
/* Per parameter the step of the whole in which its gradient is whole; SN_NONE where it is not trained. O(accesses). */
sn_status sn__groups_find_made(const sn__groups *groups, const sn_route *whole, uint32_t *made, sn_err *err);
/* Their names become the route's. */
sn_status sn__groups_hand_over(const sn__groups *groups, const sn_mesh *mesh, sn_route *route, sn_err *err);
/* What the optimizer makes beside, for all parameters at once or for each in its step, becomes as large as their shards;
 * e and o: bytes of an element as it is computed, and as it is kept. */
void sn__groups_shrink_temporaries(const sn__groups *groups, const sn_mesh *mesh, sn__edit *e, uint32_t ranks,
                                   uint32_t e_bytes, uint32_t o_bytes);
/* Of a recording; groups is zeroed. O(events + parameters log parameters). */
sn_status sn__groups_find_recorded(const sn_route *whole, sn__groups *groups, sn_err *err);
void sn__groups_clear(sn__groups *groups);

#endif
