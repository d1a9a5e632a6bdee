/* Simulate: the whole pipeline for one question, net -> route -> plan -> check -> play, once per strategy.
 *
 *   sn_options options = SN_OPTIONS_INIT;
 *   sn_device gpu;
 *   sn_device_load("k40c", &gpu, &err);
 *   sn_net *net = sn_net_load("inception_v4", 64, 0, &err);
 *   sn_run *run = sn_simulate("inception_v4", net, &gpu, strategies, n, &options, &err);
 *
 * What does not depend on the strategy (route, costs) is made once. Every plan is checked before it is played. A
 * strategy that does not fit is a result like any other (fits is false, peak_device_bytes says what it needs), not an
 * error.
 */
#ifndef SN_SIM_SIMULATE_H
#define SN_SIM_SIMULATE_H

#include "base/err.h"
#include "models/net.h"
#include "sim/device.h"
#include "sim/run.h"
#include "sim/strategy.h"
#include "sim/timeline.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum sn_workspace {
  SN_WORKSPACE_NONE,
  SN_WORKSPACE_DYNAMIC,
  SN_WORKSPACE_MAX,
  SN_WORKSPACE_COUNT
} sn_workspace;
typedef enum sn_allocator { SN_ALLOCATOR_POOL, SN_ALLOCATOR_CUDA, SN_ALLOCATOR_COUNT } sn_allocator;

typedef struct sn_options {
  sn_workspace workspace; /* [SN] 3.5 */
  sn_external external;
  sn_allocator allocator; /* the pool, or cudaMalloc/cudaFree for every tensor ([SN] table 2) */
  bool shared_link;       /* copies of both directions share the link's bandwidth */
  uint64_t pool_bytes;    /* size of the pool instead of what the device has left; 0: what it has left */
  const struct sn_calibration *calibration; /* measured times of the device, whose profile is its; NULL: formulas */
  bool want_steps;                          /* fill sn_result.steps */
  bool want_peak;                           /* fill sn_result.peak */
  bool want_tensors;                        /* fill sn_run.tensors */
} sn_options;

#define SN_OPTIONS_INIT                                                                                                \
  { .workspace = SN_WORKSPACE_DYNAMIC }

/* `spec` is what the user called the net; it becomes run->net. */
sn_run *sn_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                    uint32_t n_strategies, const sn_options *options, sn_err *err);

/* Plans one strategy, checks the plan and writes it as JSON (docs/plan-format.md). A plan for which the pool on offer
 * is too small is written all the same: pool_bytes says what it needs. */
sn_status sn_simulate_write_plan(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                 const sn_options *options, FILE *out, sn_err *err);

/* Plans one strategy, checks and plays the plan, and makes the timeline of that (sim/timeline.h): what happens when on
 * which lane, and where in the pool every tensor lies. */
sn_timeline *sn_simulate_timeline(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                  const sn_options *options, sn_err *err);

/* "none", "dynamic", "max" and "pool", "cuda"; parsing an unknown name is SN_BAD_USAGE. */
const char *sn_workspace_name(sn_workspace workspace);
sn_status sn_workspace_parse(const char *text, sn_workspace *workspace, sn_err *err);
const char *sn_allocator_name(sn_allocator allocator);
sn_status sn_allocator_parse(const char *text, sn_allocator *allocator, sn_err *err);

#endif
