/* The CUDA machine's table of functions (exec/machine/machine.h), and the table of the module
 * (exec/machine/cuda_module.h). */
#include "exec/cuda/cuda.h"

#include "base/build_id.h"
#include "exec/machine/cuda_module.h"
#include "sim/graph/route.h"

#include <stdlib.h>

static sn_status offer(void *self, sn_costs *costs, sn_err *err) {
  const sn__cuda *m = self;
  const sn_net *net = m->route->net;
  sn_status status = SN_OK;
  for (uint32_t layer = 1; layer < net->n_layers && status == SN_OK; layer++) {
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      sn_costs_set_scratch(costs, layer, pass, sn__kernel_scratch(m, layer, pass));
    if (net->layers[layer].op == SN_CONV) status = sn__conv_offer(m, layer, costs, err);
  }
  return status;
}

static sn_status start(void *self, sn_state *state, sn_err *err) {
  sn__cuda *m = self;
  m->state = state;
  return sn__store_upload(m, err);
}

static sn_status feed(void *self, const sn_batch *batch, sn_err *err) {
  return sn__store_feed(self, batch, err);
}

static sn_backend backend(void *self) {
  return sn__cuda_backend(self);
}

static void outcome(const void *self, sn_outcome *result) {
  *result = ((const sn__cuda *)self)->outcome;
}

static sn_status fetch(void *self, sn_err *err) {
  return sn__store_download(self, err);
}

static sn_status used_bytes(void *self, uint64_t *bytes, sn_err *err) {
  return sn__gpu_used(&((const sn__cuda *)self)->gpu, bytes, err);
}

static sn_status room(void *self, uint64_t *bytes, sn_err *err) {
  (void)self;
  return sn__gpu_room(bytes, err);
}

static sn_status time_algorithms(void *self, sn_timed_algorithms *timed, bool (*stop)(void *user), void *user,
                                 sn_err *err) {
  return sn__conv_time_all(self, timed, stop, user, err);
}

static void close_machine(void *self) {
  sn__cuda *m = self;
  cudaDeviceSynchronize(); /* frees nothing that is in use; what it finds has been reported or concerns nobody */
  sn__store_close(m);
  sn__layers_close(m);
  sn__gpu_close(&m->gpu);
  cudaGetLastError();
  free(m);
}

static const sn_machine_ops machine_ops = {
    .offer = offer,
    .start = start,
    .feed = feed,
    .backend = backend,
    .outcome = outcome,
    .fetch = fetch,
    .used_bytes = used_bytes,
    .room = room,
    .time_algorithms = time_algorithms,
    .close = close_machine,
};

/* An update is a few calls of cuDNN and cuBLAS, and neither divides one array by another. */
static sn_status check_optimizer(sn_optimizer optimizer, sn_err *err) {
  if (sn_optimizer_states(optimizer) <= 1) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--optimizer %s does not train on a GPU: cuDNN and cuBLAS cannot divide by the root of its moments; "
                 "sgd and momentum do, and --backend cpu trains by all",
                 sn_optimizer_name(optimizer));
}

static sn_status open_machine(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                              sn_err *err) {
  if (check_optimizer(options->hyper.optimizer, err) != SN_OK) return err->code;
  sn__cuda *m = calloc(1, sizeof *m);
  if (!m) return sn_fail_memory(err);
  m->route = route;
  m->options = *options;
  *machine = (sn_machine){.self = m, .ops = &machine_ops};
  if (sn__gpu_open(&m->gpu, options->tf32, &machine->info, err) == SN_OK && sn__layers_open(m, err) == SN_OK &&
      sn__store_open(m, &machine->info.persistent, err) == SN_OK)
    return SN_OK;
  close_machine(m);
  *machine = (sn_machine){0};
  return err->code;
}

extern SN_MODULE_TABLE const sn_cuda_table sn_cuda_module;
const sn_cuda_table sn_cuda_module = {{sn_build_id}, sn__gpu_find, open_machine};
