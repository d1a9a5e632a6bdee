/* Run: what one call of the simulator found, self-contained: no pointer into nets, plans or devices, so that it can be
 * printed, stored, read back from the store (db/store.h) and printed again to the same bytes.
 *
 * Bytes are uint64_t, time int64_t nanoseconds. Steps count from 1: forward of the i-th layer in route order is step i,
 * its backward step 2N+1-i (N = layers without DATA).
 */
#ifndef SN_SIM_ASK_RUN_H
#define SN_SIM_ASK_RUN_H

#include "base/blob.h"
#include "sim/policy/conditions.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes that stay for the whole training, by kind; they are outside the pool. */
typedef struct sn_persistent {
  uint64_t parameters;
  uint64_t parameter_gradients;
  uint64_t optimizer_state; /* with weights in four bytes beside others (SN_RESIDENT_MASTER) */
  uint64_t auxiliary;       /* dropout masks, batch-norm statistics */
  uint64_t input_batch;
  uint64_t labels;
} sn_persistent;

static inline uint64_t sn_persistent_total(const sn_persistent *p) {
  return p->parameters + p->parameter_gradients + p->optimizer_state + p->auxiliary + p->input_batch + p->labels;
}

/* What all the bytes at the peak are, by the words of PyTorch's memory tracker. */
typedef struct sn_live {
  uint64_t parameters, buffers;
  uint64_t gradients; /* of parameters, made by now */
  uint64_t optimizer;
  uint64_t activations; /* the batch, its labels, what forward has made */
  uint64_t temporary;   /* gradients of values, gradients of parameters that the step is making */
} sn_live;

static inline uint64_t sn_live_total(const sn_live *l) {
  return l->parameters + l->buffers + l->gradients + l->optimizer + l->activations + l->temporary;
}

/* Of one of several GPUs; all 0: there is one. Bytes of transfers are of whole arrays, an iteration. */
typedef struct sn_shared_row {
  uint32_t world;  /* GPUs in all */
  uint32_t groups; /* of parameters that are gathered together, or buckets */
  uint64_t gathered_bytes, scattered_bytes, reduced_bytes, sent_bytes;
  uint64_t communicator_bytes;     /* outside PyTorch's allocator; in context_bytes */
  uint32_t stage;                  /* of a pipeline: the one that needs most, from 0 */
  uint32_t blocks, in_flight;      /* of a stage: how many, and micro-batches of a part of it kept at once, at most */
  int64_t forward_ns, backward_ns; /* of a stage: of all micro-batches, without waiting for its neighbours */
  int64_t update_ns;               /* of a stage: all behind its last backward, reductions too */
  int64_t first_ns;    /* of a stage: what the first of its micro-batches waits for within the stage, in forward */
  int64_t weights_ns;  /* of backward what makes gradients of weights apart (zb-h1) */
  bool uneven;         /* of a stage: rounds of its plan are not alike (sn_rounds_of()) */
  int64_t bubble_ns;   /* of a pipeline: what the slowest stage waits for others if links took no time */
  int64_t transfer_ns; /* all lanes of transfers busy; of a pipeline with what the slowest stage sends and receives */
  int64_t exposed_ns;  /* the iteration without the compute lane's work, and without the bubble: what nothing hides */
  /* of `live`'s parts at the peak: */
  uint64_t sharded_gradients, unsharded_parameters, unsharded_gradients, gather_buffers, buckets;
  double flops_share; /* MFU: multiplications and additions of the model, three times forward's, of the GPU's peak */
} sn_shared_row;

typedef struct sn_step_row {
  uint32_t step;
  const char *layer;        /* "pool5" */
  const char *op;           /* "POOL" */
  const char *pass;         /* "forward", "backward" */
  uint64_t tensor_bytes;    /* functional tensors, the largest at any moment of the step */
  uint32_t live_tensors;    /* the most at any moment of the step */
  uint64_t workspace_bytes; /* convolution workspace of the step */
  uint64_t device_bytes;    /* context + persistent + functional tensors + workspace */
  int64_t begin_ns, end_ns; /* of the step's computing (re-runs included), from the start of the iteration */
} sn_step_row;

/* One of the tensors that make up the peak. */
typedef struct sn_peak_row {
  const char *tensor;   /* "lrn1.y" */
  const char *producer; /* the layer and pass that last wrote it: "lrn1 forward" */
  uint64_t bytes;
  uint32_t since_step; /* resident since */
  uint32_t next_step;  /* the next step that touches it, the peak step itself included */
  const char *advice;  /* the technique that would remove it: "offload", "recompute", ... or "needed by this step" */
} sn_peak_row;

/* Of a co-run strategy (docs/corun.md). */
typedef struct sn_corun_row {
  const char *policy;  /* that made the plan: of manual and best the one that won; "": operations run one after another,
                          and the rest is empty, too */
  const char *sharing; /* "fenced", "free"; "" of a plan from elsewhere, which says nothing of how it was made */
  const char *interval;  /* between the counts of threads that profiling tries: "4", "geometric"; "" as above */
  uint64_t budget_bytes; /* of tensors, that it has kept to; 0: any */
  uint32_t cores, slots;
  uint32_t ops, chain_ops;   /* operations; how many on the longest path */
  int64_t serial_ns;         /* one after another, each on all cores */
  int64_t chain_ns, area_ns; /* no schedule is faster than either */
  double average_corun;      /* operations at once, over all starts and ends */
  uint32_t max_corun;
  uint32_t added_waits;   /* that nothing but the re-use of memory asks for */
  uint32_t profile_steps; /* training steps that finding the numbers of threads takes */
  uint32_t measured_ops;  /* operations of an iteration whose times were measured; the others' are the law's */
} sn_corun_row;

#define SN_CORUN_ROW_NONE                                                                                              \
  { .policy = "", .sharing = "", .interval = "" }
static inline bool sn_corun_row_is_empty(const sn_corun_row *row) {
  return !row->policy || !*row->policy;
}
/* No schedule is faster; 0 for an empty row. */
static inline int64_t sn_corun_row_bound(const sn_corun_row *row) {
  return row->chain_ns > row->area_ns ? row->chain_ns : row->area_ns;
}

typedef struct sn_result {
  const char *strategy;   /* "liveness+offload+recompute=cost" */
  const char *placement;  /* "packed", "first_fit": where the plan's addresses come from */
  const char *dialect;    /* whose route it is: "superneurons", ... (sim/graph/dialect.h) */
  const char *step_order; /* in which its steps stand: "route", ... */
  uint32_t graph;         /* a number of these two: results with the same one have the same steps */
  const char *source;     /* "sim": predicted; "cpu", "cuda": measured by executing the plan there */
  bool fits; /* peak_device_bytes <= the run's memory_bytes, pool_bytes <= its pool_limit_bytes and host_bytes <= its
                host_memory_bytes where there are such */
  uint32_t tensor_count; /* functional tensors of the iteration */
  uint64_t peak_tensor_bytes;
  uint32_t peak_step; /* the first step that reaches the peak */
  const char *peak_layer, *peak_pass;
  uint64_t peak_fork_bytes;      /* of the peak: copies that FORKs make */
  uint32_t live_tensors_at_peak; /* the step row's live_tensors */
  uint32_t max_live_tensors;     /* the most in any step */
  uint64_t peak_device_bytes;    /* context + persistent + pool high water: what this plan takes, fitting or not. By
                                  * PyTorch's allocator with workspaces of convolutions as far as there is room: where it
                                  * fits no more than the memory, else what would be reserved with room for all */
  uint64_t least_device_bytes; /* the least memory with which the strategy runs (sn_planner_least()), of PyTorch's rows
                                * without workspaces, as `fits` is; 0: none is enough, or it is not known */
  uint64_t context_bytes;
  sn_persistent persistent;
  uint64_t pool_bytes;         /* high water of the pool's addresses */
  uint64_t largest_load_bytes; /* most that is reserved at one time, whole blocks: no placement takes less; 0: not
                                  known, the run was made by a snsim that did not say */
  /* What sets it (sim/plan/high_water.h). The plan's also where the result is measured. */
  uint32_t pool_step; /* 0: not known, the run was made by a snsim that did not say */
  const char *pool_layer, *pool_pass;
  const char *pool_cause;                                            /* "tensors", "holes", "workspace" */
  uint64_t pool_tensor_bytes, pool_workspace_bytes, pool_hole_bytes; /* in that step */
  uint64_t pool_bare_bytes;   /* of it, if there were no workspaces; 0: not known */
  uint64_t pool_largest_hole; /* the largest hole below the high water when it was reached */
  /* By PyTorch's allocator (sim/memory/caching.h), peaks of two iterations: sums of blocks and of segments, parameters
   * and all else included. peak_device_bytes is then the context with libraries in use, and the segments. 0: it has
   * another allocator. */
  uint64_t allocated_bytes, reserved_bytes;
  sn_live live;              /* at the step of the peak, where the dialect is eager; else zeroes */
  double pool_fragmentation; /* 1 - largest sum of reserved blocks / pool_bytes; 0 .. 1 */
  uint64_t workspace_peak_bytes;
  uint64_t offload_bytes, prefetch_bytes; /* device to external pool, and back */
  uint64_t external_bytes;                /* external pool needed */
  uint64_t host_bytes;                    /* of it, in the host's memory: all or nothing */
  uint64_t cache_hits, cache_misses, evictions;
  uint32_t recomputed_layers; /* extra forwards */
  /* Traffic, cache, extra forwards and times are of a whole iteration: all its batches and the update. Steps, their
   * times and instructions are those of its last batch, and the update. */
  int64_t iteration_ns;          /* of a device with enough memory, where it does not fit */
  int64_t compute_ns;            /* the compute lane busy; of a co-run plan all of them together */
  int64_t stall_ns;              /* the compute lane waiting for a copy */
  int64_t out_ns, in_ns;         /* copying, each way */
  int64_t allocation_ns;         /* lanes held up by cudaMalloc and cudaFree (allocator "cuda") */
  double images_per_second;      /* of all GPUs together */
  uint64_t instructions, events; /* of the plan, of the simulation */
  sn_corun_row corun;
  sn_shared_row shared;
  int64_t known_ns; /* predicted: the part of compute_ns that measured costs give; the rest is formulas' */
  /* Measured results only. There, peak_device_bytes is what the device really had in use, context_bytes what of it is
   * neither persistent nor pool, pool_bytes the highest byte that was used; times are the median iteration's. */
  uint64_t reserved_pool_bytes;
  uint64_t iterations; /* whole ones; fewer than run->iterations: it was stopped or failed */
  double loss;         /* of the last whole iteration */
  double accuracy;     /* share of the last iterations' images whose most likely class was right; -1: no classes */
  uint64_t digest;   /* of all losses, the last gradients, optimizer state and parameters; 0: predicted, or not whole */
  double difference; /* from the run's first measured result: over the layers, the largest difference of a gradient or
                      * parameter, relative to the layer's largest */
  int64_t fastest_ns, slowest_ns; /* of the iterations that count; iteration_ns is their median */
  sn_blob recording;              /* of the one that took least (sim/play/recording.h) */
  uint32_t n_steps, n_peak;
  const sn_step_row *steps; /* NULL where they were not asked for */
  const sn_peak_row *peak;  /* largest first; NULL where it was not asked for */
} sn_result;

/* The members of a result that are stored and exported, once: X(range, member, name, column). `name` is what exports call
 * it (docs/json.md), `column` the database; of what `range` is the database holds it to: PLAIN as its type says, AMOUNT a
 * real number no less than 0, SHARE one from 0 to 1, WHOLE all 64 bits. */
#define SN_RESULT_FIELDS(X)                                                                                            \
  X(PLAIN, strategy, "strategy", "strategy")                                                                           \
  X(PLAIN, dialect, "dialect", "dialect")                                                                              \
  X(PLAIN, step_order, "step_order", "step_order")                                                                     \
  X(PLAIN, source, "source", "source")                                                                                 \
  X(PLAIN, fits, "fits", "fits")                                                                                       \
  X(PLAIN, tensor_count, "tensor_count", "tensor_count")                                                               \
  X(PLAIN, peak_tensor_bytes, "peak_tensor_bytes", "peak_tensor_bytes")                                                \
  X(PLAIN, peak_step, "peak_step", "peak_step")                                                                        \
  X(PLAIN, peak_layer, "peak_layer", "peak_layer")                                                                     \
  X(PLAIN, peak_pass, "peak_pass", "peak_pass")                                                                        \
  X(PLAIN, peak_fork_bytes, "peak_fork_bytes", "peak_fork_bytes")                                                      \
  X(PLAIN, live_tensors_at_peak, "live_tensors_at_peak", "live_tensors_at_peak")                                       \
  X(PLAIN, max_live_tensors, "max_live_tensors", "max_live_tensors")                                                   \
  X(PLAIN, peak_device_bytes, "peak_device_bytes", "peak_device_bytes")                                                \
  X(PLAIN, least_device_bytes, "least_device_bytes", "least_device_bytes")                                             \
  X(PLAIN, context_bytes, "context_bytes", "context_bytes")                                                            \
  X(PLAIN, allocated_bytes, "allocated_bytes", "allocated_bytes")                                                      \
  X(PLAIN, reserved_bytes, "reserved_bytes", "reserved_bytes")                                                         \
  X(PLAIN, live.parameters, "live_at_peak.parameters", "live_parameter_bytes")                                         \
  X(PLAIN, live.buffers, "live_at_peak.buffers", "live_buffer_bytes")                                                  \
  X(PLAIN, live.gradients, "live_at_peak.gradients", "live_gradient_bytes")                                            \
  X(PLAIN, live.optimizer, "live_at_peak.optimizer", "live_optimizer_bytes")                                           \
  X(PLAIN, live.activations, "live_at_peak.activations", "live_activation_bytes")                                      \
  X(PLAIN, live.temporary, "live_at_peak.temporary", "live_temporary_bytes")                                           \
  X(PLAIN, persistent.parameters, "persistent.parameters", "parameter_bytes")                                          \
  X(PLAIN, persistent.parameter_gradients, "persistent.parameter_gradients", "parameter_gradient_bytes")               \
  X(PLAIN, persistent.optimizer_state, "persistent.optimizer_state", "optimizer_state_bytes")                          \
  X(PLAIN, persistent.auxiliary, "persistent.auxiliary", "auxiliary_bytes")                                            \
  X(PLAIN, persistent.input_batch, "persistent.input_batch", "input_batch_bytes")                                      \
  X(PLAIN, persistent.labels, "persistent.labels", "label_bytes")                                                      \
  X(PLAIN, placement, "placement", "placement")                                                                        \
  X(PLAIN, pool_bytes, "pool_bytes", "pool_bytes")                                                                     \
  X(PLAIN, largest_load_bytes, "largest_load_bytes", "largest_load_bytes")                                             \
  X(PLAIN, pool_step, "pool_step", "pool_step")                                                                        \
  X(PLAIN, pool_layer, "pool_layer", "pool_layer")                                                                     \
  X(PLAIN, pool_pass, "pool_pass", "pool_pass")                                                                        \
  X(PLAIN, pool_cause, "pool_cause", "pool_cause")                                                                     \
  X(PLAIN, pool_tensor_bytes, "pool_tensor_bytes", "pool_tensor_bytes")                                                \
  X(PLAIN, pool_workspace_bytes, "pool_workspace_bytes", "pool_workspace_bytes")                                       \
  X(PLAIN, pool_hole_bytes, "pool_hole_bytes", "pool_hole_bytes")                                                      \
  X(PLAIN, pool_bare_bytes, "pool_bare_bytes", "pool_bare_bytes")                                                      \
  X(PLAIN, pool_largest_hole, "pool_largest_hole_bytes", "pool_largest_hole")                                          \
  X(SHARE, pool_fragmentation, "pool_fragmentation", "pool_fragmentation")                                             \
  X(PLAIN, workspace_peak_bytes, "workspace_peak_bytes", "workspace_peak_bytes")                                       \
  X(PLAIN, offload_bytes, "offload_bytes", "offload_bytes")                                                            \
  X(PLAIN, prefetch_bytes, "prefetch_bytes", "prefetch_bytes")                                                         \
  X(PLAIN, external_bytes, "external_bytes", "external_bytes")                                                         \
  X(PLAIN, host_bytes, "host_bytes", "host_bytes")                                                                     \
  X(PLAIN, cache_hits, "cache_hits", "cache_hits")                                                                     \
  X(PLAIN, cache_misses, "cache_misses", "cache_misses")                                                               \
  X(PLAIN, evictions, "evictions", "evictions")                                                                        \
  X(PLAIN, recomputed_layers, "recomputed_layers", "recomputed_layers")                                                \
  X(PLAIN, iteration_ns, "iteration_ns", "iteration_ns")                                                               \
  X(PLAIN, compute_ns, "compute_ns", "compute_ns")                                                                     \
  X(PLAIN, stall_ns, "stall_ns", "stall_ns")                                                                           \
  X(PLAIN, out_ns, "out_ns", "out_ns")                                                                                 \
  X(PLAIN, in_ns, "in_ns", "in_ns")                                                                                    \
  X(PLAIN, allocation_ns, "allocation_ns", "allocation_ns")                                                            \
  X(AMOUNT, images_per_second, "images_per_second", "images_per_second")                                               \
  X(PLAIN, instructions, "instructions", "instructions")                                                               \
  X(PLAIN, events, "events", "events")                                                                                 \
  X(PLAIN, known_ns, "measured_cost_ns", "known_ns")                                                                   \
  X(PLAIN, shared.world, "world", "world")                                                                             \
  X(PLAIN, shared.groups, "groups", "parameter_groups")                                                                \
  X(PLAIN, shared.gathered_bytes, "traffic.all_gather_bytes", "gathered_bytes")                                        \
  X(PLAIN, shared.scattered_bytes, "traffic.reduce_scatter_bytes", "scattered_bytes")                                  \
  X(PLAIN, shared.reduced_bytes, "traffic.all_reduce_bytes", "reduced_bytes")                                          \
  X(PLAIN, shared.sent_bytes, "traffic.send_bytes", "sent_bytes")                                                      \
  X(PLAIN, shared.communicator_bytes, "communicator_bytes", "communicator_bytes")                                      \
  X(PLAIN, shared.bubble_ns, "bubble_ns", "bubble_ns")                                                                 \
  X(PLAIN, shared.transfer_ns, "transfer_ns", "transfer_ns")                                                           \
  X(PLAIN, shared.exposed_ns, "exposed_ns", "exposed_ns")                                                              \
  X(PLAIN, shared.sharded_gradients, "live_at_peak.sharded_gradients", "live_sharded_gradient_bytes")                  \
  X(PLAIN, shared.unsharded_parameters, "live_at_peak.unsharded_parameters", "live_unsharded_parameter_bytes")         \
  X(PLAIN, shared.unsharded_gradients, "live_at_peak.unsharded_gradients", "live_unsharded_gradient_bytes")            \
  X(PLAIN, shared.gather_buffers, "live_at_peak.all_gather", "live_gather_bytes")                                      \
  X(PLAIN, shared.buckets, "live_at_peak.buckets", "live_bucket_bytes")                                                \
  X(AMOUNT, shared.flops_share, "mfu", "mfu")                                                                          \
  X(PLAIN, corun.policy, "corun.policy", "corun_policy")                                                               \
  X(PLAIN, corun.sharing, "corun.sharing", "corun_sharing")                                                            \
  X(PLAIN, corun.interval, "corun.interval", "corun_interval")                                                         \
  X(PLAIN, corun.budget_bytes, "corun.budget_bytes", "corun_budget_bytes")                                             \
  X(PLAIN, corun.cores, "corun.cores", "corun_cores")                                                                  \
  X(PLAIN, corun.slots, "corun.slots", "corun_slots")                                                                  \
  X(PLAIN, corun.ops, "corun.ops", "corun_ops")                                                                        \
  X(PLAIN, corun.chain_ops, "corun.chain_ops", "corun_chain_ops")                                                      \
  X(PLAIN, corun.serial_ns, "corun.serial_ns", "corun_serial_ns")                                                      \
  X(PLAIN, corun.chain_ns, "corun.chain_ns", "corun_chain_ns")                                                         \
  X(PLAIN, corun.area_ns, "corun.area_ns", "corun_area_ns")                                                            \
  X(AMOUNT, corun.average_corun, "corun.average_corun", "corun_average")                                               \
  X(PLAIN, corun.max_corun, "corun.max_corun", "corun_max")                                                            \
  X(PLAIN, corun.added_waits, "corun.added_waits", "corun_added_waits")                                                \
  X(PLAIN, corun.profile_steps, "corun.profile_steps", "corun_profile_steps")                                          \
  X(PLAIN, corun.measured_ops, "corun.measured_ops", "corun_measured_ops")                                             \
  X(PLAIN, reserved_pool_bytes, "reserved_pool_bytes", "reserved_pool_bytes")                                          \
  X(PLAIN, iterations, "iterations", "iterations")                                                                     \
  X(PLAIN, loss, "loss", "loss")                                                                                       \
  X(SHARE, accuracy, "accuracy", "accuracy")                                                                           \
  X(PLAIN, difference, "largest_relative_difference", "difference")                                                    \
  X(WHOLE, digest, "digest", "digest")

typedef struct sn_tensor_row {
  uint32_t id;
  const char *name;  /* "conv1.y", "pool1.dx" */
  const char *kind;  /* "output", "gradient" */
  const char *layer; /* producer */
  uint64_t bytes;
} sn_tensor_row;

/* A strategy that was asked for and has no result: why not. */
typedef struct sn_failure {
  const char *strategy, *reason;
} sn_failure;

/* A file that the run was made from. */
typedef struct sn_origin {
  const char *what; /* "network", "GPU profile", "data", "labels" */
  const char *path; /* absolute, without links, as it was then */
} sn_origin;

typedef struct sn_run {
  int64_t id;           /* in the store; 0 while it is in none */
  const char *answer;   /* yes or no, and what to change: the text of sn_answer_write(); "": nobody asked for it */
  const char *name;     /* that the user gave it; "": none */
  const char *created;  /* "2026-11-20 09:31:07" UTC, set by the store; "" while it is in none */
  const char *version;  /* of snsim */
  const char *net;      /* as given: "resnet:n3=10", "nets/mine.json" */
  const char *net_name; /* what the network calls itself, a file's "name"; "" where it is not known */
  uint32_t batch;
  uint32_t image_height, image_width; /* of a plane, where it is volumes */
  uint32_t image_depth;               /* planes of a volume; 0: it is images */
  const char *gpu;                    /* "k40c" */
  uint64_t memory_bytes;              /* usable on the device */
  bool memory_nominal;                /* usable memory is not known: the nominal figure stands in */
  uint64_t host_memory_bytes;         /* what the host has for tensors that are sent out; 0: not limited */
  sn_conditions conditions;           /* what else was asked */
  double disk_bandwidth;              /* bytes/s that times go by; 0: it is no disk, or was written to for real */
  const char *costs;                  /* "model", "measured", "auto": where times come from */
  const char *device;  /* what was measured on: "AMD EPYC 7B13, 2 threads; oneDNN 2.6.3, avx2"; "": simulated */
  const char *data;    /* what was trained on: "synthetic", a file; "": simulated */
  uint64_t iterations; /* asked for, of each measured result; 0: simulated */
  uint64_t warmup;     /* how many of them, the first, do not count for times */
  uint32_t processors; /* of the machine that measured; 0: simulated, or not known */
  double load;         /* its load average (of one minute) when measuring began */
  uint32_t layers;     /* FORK and DATA included */
  uint32_t n_steps;    /* 2N */
  uint64_t parameters; /* trainable elements */
  uint64_t macs;       /* multiply-adds of one forward of the batch */
  uint32_t n_results, n_tensors, n_failures, n_origins;
  const sn_result *results;
  const sn_failure *failures;   /* of strategies that are not among the results, in the order asked */
  const sn_origin *origins;     /* in a store; they depend on the folder that snsim was started in */
  const sn_tensor_row *tensors; /* NULL where they were not asked for */
  uint32_t n_stages;
  struct sn_run *const
      *stages;            /* of a pipeline: what each stage's own GPU takes, by the same strategies; NULL: there is
                                 * none. They are the run's */
  struct sn_arena *arena; /* everything above; freed by sn_run_free() */
} sn_run;

void sn_run_free(sn_run *run);

/* The mesh of its GPUs; of one GPU none. And how many they are. */
sn_mesh sn_run_mesh(const sn_run *run);
uint32_t sn_run_world(const sn_run *run);
/* What it is on, into `text`, which is returned: "h100_sxm", "8 h100_sxm with fsdp=8". */
enum { SN_RUN_GPUS = SN_MESH_TEXT + 128 };
char *sn_run_gpus(const sn_run *run, char text[SN_RUN_GPUS]);
/* Whether it is of a pipeline, each stage of which has a plan of its own. Where not, SN_OK; else SN_BAD_INPUT, which
 * says that such a run has nothing of one plan: steps, tensors, instructions. */
sn_status sn_run_check_one_plan(const sn_run *run, sn_err *err);

/* Whether the result is what the run was made for: in a measured run what was measured, not what was predicted. */
bool sn_run_is_answer(const sn_run *run, const sn_result *result);

/* The result that people want to see first: the fastest that fits, of equally fast ones the one that needs least device
 * memory (where all fits baseline, which does nothing, is as fast as liveness). NULL: none fits. */
const sn_result *sn_run_best(const sn_run *run);

#endif
