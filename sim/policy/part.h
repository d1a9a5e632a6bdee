/* Part of a step: what may run on its own, beside other operations (co-run plans; sim/schedule/ops.h).
 *
 * The backward step of a CONV, DECONV or FC is two operations: FILTER reads x and dy and makes the gradients of the
 * parameters, the bias' too; DATA reads dy and makes dx, and x may be gone by then. Every other step is WHOLE. Steps
 * and their numbers stay as they are: a part is one of its step's, with some of its accesses.
 *
 * Beside tensors a layer has objects that lie outside the pool but order operations as tensors do: its parameters,
 * their gradients, and state (what BN and DROPOUT keep from forward to backward).
 *
 *                parameters   gradients   state
 *   forward      read                     write
 *   DATA         read
 *   FILTER                    write
 *   backward BN  read         write       read
 *   update       modify       read
 *
 * For routes of dialects that make neither gradients nor state a tensor: superneurons.
 */
#ifndef SN_SIM_POLICY_PART_H
#define SN_SIM_POLICY_PART_H

#include "sim/graph/pass.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_step_part { SN_STEP_WHOLE, SN_STEP_FILTER, SN_STEP_DATA, SN_STEP_PARTS } sn_step_part;

/* "whole", "filter", "data" */
const char *sn_step_part_name(sn_step_part part);

/* What a step's kernel would be that did only this. */
sn_kernel sn_step_part_kernel(sn_step_part part);

/* The parts of a step (an index into route->steps) in serial order: one or two. */
uint32_t sn_step_parts(const sn_route *route, uint32_t step, sn_step_part parts[2]);

/* Whether a part of a step has its access number `access`, from 0. */
bool sn_step_part_has(const sn_route *route, uint32_t step, sn_step_part part, uint32_t access);

typedef enum sn_object_kind {
  SN_OBJECT_PARAMETERS,
  SN_OBJECT_GRADIENTS,
  SN_OBJECT_STATE,
  SN_OBJECT_KINDS
} sn_object_kind;

/* "parameters", "gradients", "state" */
const char *sn_object_kind_name(sn_object_kind kind);

typedef struct sn_object_access {
  uint32_t object; /* SN_OBJECT_KINDS x layer + sn_object_kind */
  sn_access_mode mode;
} sn_object_access;

/* The objects that a part touches; how many, up to SN_OBJECT_KINDS. */
uint32_t sn_step_part_objects(const sn_route *route, uint32_t step, sn_step_part part,
                              sn_object_access objects[SN_OBJECT_KINDS]);

#endif
