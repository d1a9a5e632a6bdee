/* Edit (internal to sim/parallel/): writes a route anew, with steps and tensors put in.
 *
 *   sn__edit e;
 *   sn__edit_begin(&e, whole, &err);
 *   sn__edit_step(&e, layer, SN_FORWARD, SN_UNPACK, transfer);      a step of its own
 *   sn__edit_access(&e, gathered, SN_READ);
 *   sn__edit_copy(&e, s);                                           a step of the whole, with its accesses
 *   sn__edit_hold(&e, bucket);                                      which lives until the latest step is over
 *   sn_route *route = sn__edit_end(&e, SN_OK);
 *
 * Tensors and transfers of the whole keep their numbers. What goes wrong is remembered and told at the end. O(what is written).
 */
#ifndef SN_SIM_PARALLEL_EDIT_H
#define SN_SIM_PARALLEL_EDIT_H

#include "base/err.h"
#include "sim/graph/route.h"

typedef struct sn__edit {
  const sn_route *whole;
  sn_route *route;
  sn_err *err;
  sn_step *steps;
  sn_access *accesses;
  sn_tensor *tensors;
  sn_transfer *transfers;
  uint32_t *stamp; /* per tensor: the number, from 1, of the last step that touches it */
  uint32_t *moved; /* per step of the whole: where it is now */
  sn_step_work *work;
  bool mixed; /* forward and backward steps are */
  uint32_t steps_room, accesses_room, tensors_room, stamp_room, transfers_room, work_room;
} sn__edit;

/* In any case sn__edit_end() is to follow. */
sn_status sn__edit_begin(sn__edit *e, const sn_route *whole, sn_err *err);
/* Without the tensors of the whole. */
sn_status sn__edit_begin_bare(sn__edit *e, const sn_route *whole, sn_err *err);
/* Blocks, and what runs again, are moved along. The route, which has an arena of its own; NULL after an error or where `status` is one. Its `whole` is for the caller
 * to set. */
sn_route *sn__edit_end(sn__edit *e, sn_status status);

uint32_t sn__edit_tensor(sn__edit *e, uint32_t layer, uint32_t port, sn_role role, uint64_t bytes);
uint32_t sn__edit_transfer(sn__edit *e, sn_transfer transfer);

void sn__edit_step(sn__edit *e, uint32_t layer, sn_pass pass, sn_kernel kernel, uint32_t transfer);
void sn__edit_copy(sn__edit *e, uint32_t step);
/* A step of the whole without its accesses. */
void sn__edit_copy_bare(sn__edit *e, uint32_t step);
/* The latest step does one part of so many of what it would. */
void sn__edit_share(sn__edit *e, uint32_t parts);
/* By the latest step. A tensor that it touches already stays as it is. */
void sn__edit_access(sn__edit *e, uint32_t tensor, sn_access_mode mode);
void sn__edit_hold(sn__edit *e, uint32_t tensor);
/* Once all steps are there: where this one runs again it does not make a tensor, as all is saved ahead of that, and holds
 * two more. */
void sn__edit_again(sn__edit *e, uint32_t step, uint32_t without, const uint32_t held[2]);
/* One of the whole's. */
void sn__edit_take(sn__edit *e, sn_access access);

#endif
