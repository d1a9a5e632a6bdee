/* What a plan needs where PyTorch's caching allocator serves it (sim/play/caching_replay.h): beside what the plan
 * lists, every parameter, gradient, buffer and optimizer state that stays is a block of its own, as in the framework
 * (but for Adam's counters, which it keeps on the host), and cuBLAS gets its workspace with its first product.
 *
 *     device = context, with the libraries' kernels + segments reserved in two iterations
 *
 * Also the costs of a graph whose convolutions are cuDNN's as PyTorch calls it: the fastest algorithm, and the
 * workspace by a rule (frameworks, section 5), since which one cuDNN takes cannot be computed without it.
 */
#ifndef SN_SIM_ASK_CACHING_NEED_H
#define SN_SIM_ASK_CACHING_NEED_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/device/external.h"
#include "sim/plan/plan.h"
#include "sim/play/caching_replay.h"
#include "sim/play/timeline.h"
#include "sim/policy/options.h"

#include <stdint.h>

typedef struct sn_caching_need {
  bool fits;                                /* in the memory that was asked for, workspaces of convolutions left out */
  uint64_t context_bytes;                   /* with libraries in use */
  uint64_t allocated_bytes, reserved_bytes; /* peaks of both iterations */
  uint64_t device_bytes; /* context and reserved, workspaces too as far as there is room for them: no more than the
                          * memory where it fits; with room for all it asks for, where it does not */
  double fragmentation;  /* 1 - allocated / reserved */
  uint32_t segments;
  uint64_t retries;     /* times that free segments went back to the driver */
  uint32_t failed_step; /* index; SN_NONE: it fits */
} sn_caching_need;

/* Of options the iteration and the allocator are looked at. `memory_bytes` of the device. Where it does not fit, the
 * figures are those of a device with enough memory. `least_bytes`: as below, but no more than `memory_bytes` if and
 * only if it fits in that; cheaper together; or NULL. */
sn_status sn_caching_need_of(const sn_plan *plan, const sn_device *device, const sn_options *options,
                             uint64_t memory_bytes, sn_caching_need *need, uint64_t *least_bytes, sn_err *err);

/* Where the allocator has what is in the plan's timeline, in so much memory, or where that does not do in all that it
 * asks for: fills timeline->served. */
sn_status sn_caching_need_show(const sn_plan *plan, const sn_device *device, const sn_options *options,
                               uint64_t memory_bytes, sn_timeline *timeline, sn_err *err);

/* What a plan needs, for one that is chosen by it (sn_plan_wish): `server` is an sn_caching_server. */
typedef struct sn_caching_server {
  const sn_device *device;
  const sn_options *options;
  uint64_t memory_bytes;
  sn_err *err;
} sn_caching_server;

sn_status sn_caching_serve(void *server, const sn_plan *plan, bool *fits, uint64_t *least_bytes);

/* A memory in which the replay succeeds while with 1 KiB less it does not (sn_caching_least()). */
sn_status sn_caching_need_least(const sn_plan *plan, const sn_device *device, const sn_options *options,
                                uint64_t *memory_bytes, sn_err *err);

/* Costs of a graph of PyTorch's, from those by the formulas; with SN_WORKSPACE_NONE convolutions have the fastest
 * algorithm that needs none. NULL after an error. */
sn_costs *sn_caching_costs(const sn_net *net, const sn_costs *model, sn_precision precision, sn_workspace workspace,
                           sn_err *err);

#endif
