/* What writes a route of shards (internal to fsdp.c, and to fsdp_stage.c, which has what a pipeline's stage does between its
 * micro-batches). */
#ifndef SN_SIM_PARALLEL_FSDP_MAKER_H
#define SN_SIM_PARALLEL_FSDP_MAKER_H

#include "sim/parallel/edit.h"
#include "sim/parallel/groups.h"

/* A group's tensors; SN_NONE: not there yet. */
typedef struct sn__group_state {
  uint32_t gathered, bucket, shard, reduced;
  uint32_t chunk; /* of a pipeline's stage: whose it is; else 0 */
  bool in_flight; /* gathered, and not unpacked */
  bool whole;     /* its parameters are on the GPU */
  bool small;     /* resharded to a smaller world: backward gathers from copies */
  bool done;      /* its gradients are reduced */
} sn__group_state;

typedef struct sn__fsdp_maker {
  sn__edit e;
  sn__groups g;
  const sn_route *whole;
  sn_iteration iteration;
  const sn_mesh *mesh;
  uint32_t ranks, e_bytes, r_bytes, o_bytes;
  sn__group_state *states;
  uint32_t *unsharded, *summed, *copy; /* per parameter: tensors; SN_NONE */
  uint32_t *group_of;                  /* per parameter */
  uint32_t *widened; /* per tensor the parameter whose gradient it is, which is reduced wider, of a stage; SN_NONE */
  bool staged;
  uint32_t *order, n_order; /* groups as forward has left them */
  uint32_t held, kept;      /* what was gathered, and reduced, last */
  sn_pass pass;
  uint32_t root_begin, root_end; /* steps: the model's first and last forward */
  uint32_t root_backward;        /* the first behind its output's gradient */
  /* of a stage: */
  uint32_t turn, chunk; /* the next of the whole's turns; whose steps are written */
  bool asks;            /* these make room for what is received */
} sn__fsdp_maker;

/* Nothing where that has been done. */
void sn__fsdp_gather(sn__fsdp_maker *m, uint32_t group);
void sn__fsdp_unpack(sn__fsdp_maker *m, uint32_t group);
/* With the latest step its parameters are needed for the last time. */
void sn__fsdp_let_go(sn__fsdp_maker *m, uint32_t group);
/* Parameters go, gradients are reduced. */
void sn__fsdp_behind_backward(sn__fsdp_maker *m, uint32_t group);
/* The model's forward, or backward, is steps first .. end of the whole: where its root begins and ends. */
void sn__fsdp_find_forward(sn__fsdp_maker *m, uint32_t first, uint32_t end);
void sn__fsdp_find_backward(sn__fsdp_maker *m, uint32_t first, uint32_t end);

/* Of a stage: whose each group is. O(steps). */
void sn__fsdp_find_chunks(sn__fsdp_maker *m);
/* What its schedule does ahead of a step of the whole, which is no further than its first update. */
void sn__fsdp_take_turns(sn__fsdp_maker *m, uint32_t step);

#endif
