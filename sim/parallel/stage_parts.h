/* Parts of a pipeline (internal to sim/parallel/): which layers and steps of a route each has, part c p + r being chunk c of
 * stage r, and which tensors cross from one to the next.
 *
 *   part 0                         part 1
 *   forward   tok .. add2  --handed, given-->  attention_norm ..
 *   backward               <--given_gradients, handed_gradients--
 */
#ifndef SN_SIM_PARALLEL_STAGE_PARTS_H
#define SN_SIM_PARALLEL_STAGE_PARTS_H

#include "base/err.h"
#include "sim/graph/mesh.h"
#include "sim/graph/route.h"

/* Numbers, ascending. */
typedef struct sn__list {
  uint32_t *all, n;
} sn__list;

/* Its steps, and the tensors that cross its ends. */
typedef struct sn__part {
  sn__list forward, backward;
  sn__list given, given_gradients; /* made by others: values of the part before, gradients of the part behind */
  sn__list handed, handed_gradients;
  sn__list outputs; /* of the last one: what losses are made of */
} sn__part;

typedef struct sn__parts {
  uint32_t n;
  uint32_t *of_layer, *of_step;
  sn__part *all;
} sn__parts;

/* To be cleared in any case. SN_BAD_INPUT where parts that are not next to each other would have to send, or share weights. */
sn_status sn__parts_find(const sn_route *whole, const sn_mesh *mesh, sn__parts *parts, sn_err *err);
void sn__parts_clear(sn__parts *parts);
/* Elements of a rank's parameters that are updated: returns those of the mesh's stage; *all: those of all stages. */
uint64_t sn__parts_updated(const sn__parts *parts, const sn_route *whole, const sn_mesh *mesh, uint64_t *all);

#endif
