/* What questions about several GPUs are of. */
#ifndef SN_TESTS_ASKED_H
#define SN_TESTS_ASKED_H

#include "sim/graph/iteration.h"
#include "tests/support/pipeline.h"

static inline sn_iteration asked(const char *mesh, const char *optimizer, uint32_t accumulate) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {.accumulate = accumulate};
  sn_mesh_parse(mesh, &iteration.mesh, &err);
  sn_optimizer_parse(optimizer, &iteration.optimizer, &err);
  must(&err);
  return iteration;
}

static inline sn_net *load(const char *spec, uint32_t batch, uint32_t size) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, size, &err);
  must(&err);
  return net;
}

/* Bytes of a rank that PyTorch's trackers count. */
static inline uint64_t total(const sn_live *l) {
  return l->parameters + l->buffers + l->gradients + l->optimizer + l->activations + l->temporary;
}

#endif
