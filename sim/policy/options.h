/* Options: what a question may ask for beside network, device and strategy. Lowering, the device's model and whoever
 * asks look at the same ones.
 */
#ifndef SN_SIM_POLICY_OPTIONS_H
#define SN_SIM_POLICY_OPTIONS_H

#include "base/err.h"
#include "sim/cluster/cluster.h"
#include "sim/device/external.h"
#include "sim/graph/iteration.h"
#include "sim/policy/interval.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_workspace {
  SN_WORKSPACE_NONE,
  SN_WORKSPACE_DYNAMIC,
  SN_WORKSPACE_MAX,
  SN_WORKSPACE_COUNT
} sn_workspace;
typedef enum sn_placement { SN_PLACEMENT_PACKED, SN_PLACEMENT_FIRST_FIT, SN_PLACEMENT_COUNT } sn_placement;
typedef enum sn_allocator {
  SN_ALLOCATOR_POOL,       /* one preallocated pool; the rows of PyTorch have PyTorch's */
  SN_ALLOCATOR_CUDA,       /* cudaMalloc and cudaFree for every tensor */
  SN_ALLOCATOR_PYTORCH,    /* PyTorch's caching allocator (sim/memory/caching.h) */
  SN_ALLOCATOR_EXPANDABLE, /* the same with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True */
  SN_ALLOCATOR_COUNT
} sn_allocator;

/* How operations that run side by side share memory (sim/plan/lower_corun.h). */
typedef enum sn_reuse { SN_REUSE_FENCED, SN_REUSE_FREE, SN_REUSE_COUNT } sn_reuse;

/* How co-run strategies plan (docs/corun.md). */
typedef struct sn_corun_options {
  uint32_t interval;     /* between the counts of threads that profiling tries (sim/policy/interval.h) */
  uint64_t budget_bytes; /* of tensors; SN_BUDGET_SERIAL: what running one after another takes; SN_BUDGET_ANY */
  sn_reuse reuse;
  const struct sn_mix *mix; /* what is scheduled is one after another with these numbers of threads, whatever the policy
                               (sim/policy/mix.h); NULL: by the policy */
} sn_corun_options;

#define SN_CORUN_INIT                                                                                                  \
  { .interval = SN_INTERVAL_DEFAULT }

/* Budgets that are no number of bytes: what running one after another takes, and all there is. */
#define SN_BUDGET_SERIAL UINT64_C(0)
#define SN_BUDGET_ANY    UINT64_MAX

typedef struct sn_options {
  sn_workspace workspace; /* [SN] 3.5 */
  sn_external external;
  sn_allocator allocator; /* the pool, or cudaMalloc/cudaFree for every tensor ([SN] table 2) */
  sn_placement placement; /* of plans' addresses (sim/make/make.h); published systems have first fit in any case */
  sn_cluster cluster;     /* that its GPUs are of, where there are several; name "": none is said */
  sn_iteration iteration; /* what it is for: how parameters are updated, behind how many batches */
  sn_corun_options corun;
  bool shared_link;    /* copies of both directions share the link's bandwidth */
  uint64_t pool_bytes; /* size of the pool instead of what the device has left; 0: what it has left */
  const struct sn_calibration *calibration; /* measured times of the device, whose profile is its; NULL: formulas */
  bool want_steps;                          /* fill sn_result.steps */
  bool want_peak;                           /* fill sn_result.peak */
  bool want_tensors;                        /* fill sn_run.tensors */
  const uint64_t *least_of_interest; /* per strategy that is asked: of a row with PyTorch's allocator that takes no more
                                        than this the least is not looked for: it is what it takes; 0, NULL: always */
  void (*planned)(void *watcher);    /* called with every plan made, to show that it goes on; NULL: nobody waits */
  void *watcher;
} sn_options;

#define SN_OPTIONS_INIT                                                                                                \
  { .workspace = SN_WORKSPACE_DYNAMIC, .corun = SN_CORUN_INIT }

/* "none", "dynamic", "max" and "pool", "cuda", "pytorch", "pytorch-expandable"; parsing an unknown name is
 * SN_BAD_USAGE. */
const char *sn_workspace_name(sn_workspace workspace);
sn_status sn_workspace_parse(const char *text, sn_workspace *workspace, sn_err *err);
const char *sn_allocator_name(sn_allocator allocator);
sn_status sn_allocator_parse(const char *text, sn_allocator *allocator, sn_err *err);

/* "fenced", "free" */
const char *sn_reuse_name(sn_reuse reuse);
sn_status sn_reuse_parse(const char *text, sn_reuse *reuse, sn_err *err);

/* "packed", "first_fit", as results say it; parsed is what the command line says too, "first-fit". */
const char *sn_placement_name(sn_placement placement);
sn_status sn_placement_parse(const char *text, sn_placement *placement, sn_err *err);

#endif
