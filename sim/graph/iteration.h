/* Iteration: what one of them is for. It trains, by an optimizer, which makes an update behind one batch or behind
 * several that are run one after the other (micro-batches, whose gradients are added up); or it only runs the network.
 *
 *     zero gradients | forward backward | forward backward | .. | update          accumulate: how many
 *
 * Where gradients of parameters are tensors that backward makes (PyTorch), those of the first micro-batch stay, and
 * each later one is made, added to what is there, and dropped. So the route of such an iteration is that of a later
 * micro-batch with the update: no moment of the first one needs more. Where they have their place beside the graph all
 * along, backward adds into it (as cuDNN and cuBLAS do with beta = 1, Caffe's iter_size and MXNet's grad_req="add"):
 * the route stays as it is, and so does the memory.
 */
#ifndef SN_SIM_GRAPH_ITERATION_H
#define SN_SIM_GRAPH_ITERATION_H

#include "sim/graph/freeze.h"
#include "sim/graph/mesh.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/precision.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_ITERATION_BATCHES = 1024 }; /* the most that an update may be made of */

typedef struct sn_iteration {
  sn_optimizer optimizer;
  uint32_t accumulate; /* micro-batches an update; 0 and 1: one */
  bool inference;      /* forward alone; the two above are not looked at */
  sn_precision precision;
  bool master;  /* with bf16, of several GPUs: shards, their gradients and states have four bytes; without shards, what
                  sn_iteration_keeps_masters() says ("bf16-master") */
  sn_mesh mesh; /* on how many GPUs, and how they share it */
  const char
      *freeze; /* layers that are not trained (sim/graph/freeze.h); NULL or "": none. Must outlive the iteration */
  const char *host_us; /* what PyTorch's host takes for an operation, sn_host_ns(); the same */
} sn_iteration;

/* "" where nothing is frozen. */
static inline const char *sn_iteration_freeze(sn_iteration iteration) {
  return iteration.freeze ? iteration.freeze : "";
}

/* "" where nothing is said. */
static inline const char *sn_iteration_host_us(sn_iteration iteration) {
  return iteration.host_us ? iteration.host_us : "";
}

/* Gradients of parameters outlive the batch that they are of. */
static inline bool sn_iteration_accumulates(sn_iteration iteration) {
  return iteration.accumulate > 1 && !iteration.inference;
}

/* "bf16-master" is a precision to those who ask: bf16 with `master`. Errors of sn_precision_parse(). */
#define SN_PRECISION_MASTER "bf16-master"
static inline const char *sn_iteration_precision_name(sn_iteration iteration) {
  return iteration.master ? SN_PRECISION_MASTER : sn_precision_name(iteration.precision);
}
sn_status sn_iteration_parse_precision(const char *text, sn_iteration *iteration, sn_err *err);

/* Nothing is sharded: beside parameters in two bytes there are weights in four, which the optimizer updates, and
 * gradients in four, to which each micro-batch's are added (Megatron-LM's 18 bytes a parameter). */
static inline bool sn_iteration_keeps_masters(sn_iteration iteration) {
  return iteration.master && sn_mesh_size(&iteration.mesh, SN_MESH_FSDP) == 1 && iteration.mesh.zero == 0;
}

/* Gradients that backward makes are added to others, which lie beside the graph, and go. */
static inline bool sn_iteration_adds_gradients(sn_iteration iteration) {
  return sn_iteration_accumulates(iteration) || (sn_iteration_keeps_masters(iteration) && !iteration.inference);
}

/* Bytes of an element of states, and, but for masters', of parameters where they are kept and sharded gradients. */
static inline uint32_t sn_iteration_kept_bytes(sn_iteration iteration) {
  return iteration.master ? 4 : sn_precision_parameter_bytes(iteration.precision);
}

/* Batches, of as many images each, that an update is made of. */
static inline uint32_t sn_iteration_batches(sn_iteration iteration) {
  return sn_iteration_accumulates(iteration) ? iteration.accumulate : 1;
}

/* The same, of a pipeline's stage those that its mesh has. */
static inline uint32_t sn_iteration_micros(sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  return mesh->micros > 0 ? mesh->micros + mesh->idle : sn_iteration_batches(iteration);
}

#endif
