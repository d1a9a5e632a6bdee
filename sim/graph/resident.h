/* Resident tensors: what lies on the device through all iterations, beside the tensors that the steps of a route make
 * and free.
 *
 *   parameters, gradients where the framework holds them (SuperNeurons' all, PyTorch's while it accumulates), what the
 *   optimizer keeps, buffers (running statistics; where forks copy also masks and saved statistics), the batch
 *
 * One list, of which the sums that are told (sn_persistent_of()) and what PyTorch's allocator is asked for
 * (sim/ask/caching_need.h) are made. Each is a storage of its own, as in the framework.
 */
#ifndef SN_SIM_GRAPH_RESIDENT_H
#define SN_SIM_GRAPH_RESIDENT_H

#include "models/net/net.h"
#include "sim/graph/dialect.h"
#include "sim/graph/iteration.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_resident_role {
  SN_RESIDENT_PARAMETER,
  SN_RESIDENT_GRADIENT, /* of a parameter */
  SN_RESIDENT_MASTER,   /* a parameter once more in four bytes, or a rank of ZeRO's part, which the optimizer updates */
  SN_RESIDENT_STATE,    /* of the optimizer; made by the first update of its layer */
  SN_RESIDENT_COUNTER,  /* of its steps; on the host, but for some optimizers (sn_optimizer_counts_there()) */
  SN_RESIDENT_BUFFER,
  SN_RESIDENT_INPUT,
  SN_RESIDENT_LABELS,
  SN_RESIDENT_ROLES
} sn_resident_role;

typedef struct sn_resident_tensor {
  sn_resident_role role;
  uint32_t layer; /* SN_NONE: the batch; tables that states of 8 bits are read by, which come ahead of the first */
  uint32_t port;  /* of what is a parameter's: 0 weights or gamma, 1 bias or beta */
  uint64_t bytes;
  uint32_t step; /* SN_RESIDENT_STATE of a recording: the first step that uses it; else 0 */
} sn_resident_tensor;

typedef void sn_resident_visit(void *self, sn_resident_tensor tensor);

/* A network trained or run in an iteration, and who is shown each of its tensors: of a layer parameters, gradients,
 * buffers, then what is kept of each parameter; the batch last. Zeroed but for what is set. */
typedef struct sn_resident_walk {
  const sn_net *net;
  const sn_dialect *dialect;
  sn_iteration iteration;
  sn_resident_visit *visit;
  void *self;
  bool tables; /* have been shown */
} sn_resident_walk;

/* O(layers). */
void sn_resident_walk_all(sn_resident_walk *walk);
/* What the optimizer keeps of one parameter of a trained layer. */
void sn_resident_walk_states(sn_resident_walk *walk, uint32_t layer, uint32_t port);

#endif
