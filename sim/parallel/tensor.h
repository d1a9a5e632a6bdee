/* Tensor parallel (internal to sim/parallel/): what becomes of each layer's values, and whether a network can be divided
 * so. DTensor's column- and row-wise products with sequence parallel (parallel.md, section 5):
 *
 *     embedding      norm        q k v, gate, up     attention, act, mul    o, down      JOIN
 *     by positions   positions   features            features               positions    positions
 *                 ^ reduce    ^ gather                                   ^ reduce
 *
 * On t ranks a value by positions or features is one t-th of it; what is gathered, and what is yet to be summed, is all.
 * With sequence=whole what is by positions there is whole, and sums of all ranks' take the place of reduce and gather.
 */
#ifndef SN_SIM_PARALLEL_TENSOR_H
#define SN_SIM_PARALLEL_TENSOR_H

#include "base/err.h"
#include "sim/graph/iteration.h"
#include "sim/graph/route.h"

/* How a layer's output lies on the ranks. SN__WHOLE: on each of them all of it. */
typedef enum sn__layout { SN__UNKNOWN, SN__TOKENS, SN__BY_POSITIONS, SN__BY_FEATURES, SN__WHOLE } sn__layout;

typedef struct sn__tensor_layer {
  uint8_t split;  /* sn_division, of its parameters */
  uint8_t layout; /* sn__layout; DATA's are tokens */
  bool gathers;   /* a norm whose output products read: it is gathered for them, and its gradient the sum of theirs */
} sn__tensor_layer;

typedef struct sn__tensor_layout {
  sn__tensor_layer *layers;
  uint32_t head; /* the last product that is divided by outputs: it makes logits */
} sn__tensor_layout;

/* SN_BAD_INPUT: a network that is not divided so, or sizes that the ranks do not divide; what, why, and the nearest that
 * does. To be freed by the caller in any case: layout->layers. O(layers + steps). */
sn_status sn__tensor_layout_find(const sn_route *whole, const sn_mesh *mesh, sn__tensor_layout *layout, sn_err *err);

#endif
