/* Simulated device: the back end that obeys a plan in simulated time.
 *
 * Three lanes on the event engine; steps last what the cost model says and begin no sooner than PyTorch's host has
 * issued them, copies last bytes over link bandwidth plus latency, and on a CPU that was measured both longer where they
 * meet.
 * The operations of a co-run plan last as long as their teams take and slow each other (sim/device/pace.h).
 * With the pool, alloc and release cost nothing: the addresses are the plan's. With SN_ALLOCATOR_CUDA every tensor and
 * workspace is a cudaMalloc and a cudaFree: both wait for the device to be idle and then hold the host up, so that no
 * lane has work meanwhile ([SN] table 2).
 */
#ifndef SN_SIM_PLAY_DEVICE_MODEL_H
#define SN_SIM_PLAY_DEVICE_MODEL_H

#include "base/err.h"
#include "sim/corun/times.h"
#include "sim/device/cost.h"
#include "sim/device/external.h"
#include "sim/parallel/rounds.h"
#include "sim/play/backend.h"
#include "sim/policy/options.h"

typedef struct sn_device_model {
  const sn_device *device;
  const sn_costs *costs;
  sn_external external;
  sn_allocator allocator;
  bool shared_link, pageable;
  const sn_times *times; /* of operations by their threads: for co-run plans, else NULL */
  bool reduces_later;    /* a batch that another one follows: what is reduced behind the last alone takes no time */
  /* while playing */
  const sn_plan *plan;
  sn_trace *trace;
  struct sn_engine *engine;
  int64_t issued_ns, done_ns; /* until when the host has issued what was played, and the device would have done it */
  int64_t waited_ns;          /* what the device has waited for it */
  sn_rounds rounds;           /* of the route; then what stood there when the round began */
  int64_t issued_before_ns, done_before_ns, waited_before_ns;
  uint32_t threads[SN_LANES]; /* of the team that had the lane last; 0: none */
} sn_device_model;

/* `model` has the members before `plan` set and must outlive sn_play(). */
sn_backend sn_device_model_backend(sn_device_model *model);

/* Plays a plan on it; where an iteration has several batches, and something is reduced behind the last alone, one of the
 * others too, to trace->before. The trace is to be cleared in every case. */
sn_status sn_device_model_play(sn_device_model *model, const sn_plan *plan, uint32_t batches, sn_trace *trace,
                               sn_err *err);

#endif
