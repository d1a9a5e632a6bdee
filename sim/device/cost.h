/* Cost model: how long each step takes on a device, and which convolution algorithms it may choose from.
 *
 *   time of an op = max(flops / attainable rate, bytes / attainable bandwidth) + launches
 *
 * On a device made of cores it is the law's (sim/device/scaling.h) with a thread on each core, of a backward CONV or FC
 * that of FILTER and DATA together; a convolution has one algorithm, without a workspace.
 *
 * Made once per net and device; shared by the planner (which picks algorithms) and the simulated back end (which asks
 * for the time of the algorithms picked), and by all strategies. docs/cost-model.md lists every constant.
 */
#ifndef SN_SIM_DEVICE_COST_H
#define SN_SIM_DEVICE_COST_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/device/conv.h"
#include "sim/device/external.h"
#include "sim/graph/iteration.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/pass.h"
#include "sim/graph/precision.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_costs sn_costs;

/* In fp32, to be changed layer by layer. */
sn_costs *sn_costs_new(const sn_net *net, const sn_device *device, sn_err *err);
/* To be looked at: layers that are alike share what they cost, and nothing but the optimizer can be set. Of `iteration`
 * precision and inference are looked at. In another precision than fp32, which the device has
 * (sn_device_check_precision()), values move in their widths, products run on tensor cores, and copies into another
 * width cost what they move, on the way forward in the step that makes them. */
sn_costs *sn_costs_new_in(const sn_net *net, const sn_device *device, sn_iteration iteration, sn_err *err);
/* Of the same network, to be changed apart, layer by layer. */
sn_costs *sn_costs_copy(const sn_costs *costs, const sn_net *net, sn_err *err);
/* Where each convolution has no algorithm but its fastest, with a workspace of workspaces[layer] bytes. */
sn_costs *sn_costs_copy_fastest(const sn_costs *costs, const sn_net *net, const uint64_t *workspaces, sn_err *err);
void sn_costs_free(sn_costs *costs);

/* Updates cost what this optimizer's do by the formulas; momentum's unless set. Before measured times are. */
void sn_costs_set_optimizer(sn_costs *costs, const sn_net *net, const sn_device *device, sn_optimizer optimizer);
sn_optimizer sn_costs_optimizer(const sn_costs *costs);

/* The algorithms of a CONV or DECONV layer's kernel: fastest first, falling workspace, the last without any. */
const sn_conv_choice *sn_costs_conv(const sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, uint32_t *count);

/* Whether the layer is one. */
bool sn_costs_convolves(const sn_costs *costs, uint32_t layer);

/* The largest workspace of its three kernels, each with its fastest algorithm. */
uint64_t sn_costs_largest_workspace(const sn_costs *costs, uint32_t layer);

/* A back end's own algorithms in place of the formulas': any order, at most SN_CONV_ALGOS, at least one. What is slower
 * and needs no less workspace than another is left out, until a measured time brings it back. Where even the last needs
 * a workspace, so does the layer. */
sn_status sn_costs_set_conv(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, const sn_conv_choice *choices,
                            uint32_t count, sn_err *err);

/* A device whose convolutions have one algorithm, without a workspace. */
void sn_costs_keep_smallest(sn_costs *costs, uint32_t layer);

/* Memory that a back end's kernels need as workspace in any case (oneDNN's scratchpads), whatever the algorithm; 0
 * unless set. The planner gives a step the larger of this and its algorithms' workspace. */
void sn_costs_set_scratch(sn_costs *costs, uint32_t layer, sn_pass pass, uint64_t bytes);
uint64_t sn_costs_scratch(const sn_costs *costs, uint32_t layer, sn_pass pass);

/* How values lie for a back end's kernels, in its words: "nChw16c: 161 values"; at most SN_LAYOUTS_TEXT - 1 bytes are
 * kept. "plain" unless set. Plans say what they were made for (sn_plan), and another back end refuses them. */
enum { SN_LAYOUTS_TEXT = 48 };
void sn_costs_set_layouts(sn_costs *costs, const char *layouts);
const char *sn_costs_layouts(const sn_costs *costs);

/* Measured times (sim/device/calibration.h). The time of a step is that of everything in it but the convolution
 * algorithms, whose time is set one by one, or which are in the step's (`whole`). Scaling multiplies formulas: of the
 * step and its algorithms, where none were measured. */
void sn_costs_scale(sn_costs *costs, uint32_t layer, sn_pass pass, double step, double algorithms);
void sn_costs_set_step(sn_costs *costs, uint32_t layer, sn_pass pass, int64_t ns, bool whole);
void sn_costs_set_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo,
                            uint64_t workspace, int64_t ns);
/* A time for one that was not measured, where the layer has it. */
void sn_costs_guess_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo, int64_t ns);

/* An algorithm that does not run on the device; the only one stays. */
void sn_costs_drop_algorithm(sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo);

/* Arithmetic and memory traffic of a step, as the formulas count them for direct convolution. */
typedef struct sn_work {
  double flops, bytes;
} sn_work;
sn_work sn_costs_work(const sn_net *net, uint32_t layer, sn_pass pass, sn_optimizer optimizer);

/* Time of a layer's step in ns. `algo` as in sn_instr: {forward, -} or {backward data, backward filter}; looked at for
 * CONV and DECONV only. */
int64_t sn_costs_step(const sn_costs *costs, uint32_t layer, sn_pass pass, const uint8_t algo[2]);
/* Time of a step of a route: what its layer's pass takes, or the step's share of that; of a recording what its own bytes
 * and operations do. */
int64_t sn_costs_of(const sn_costs *costs, const sn_route *route, const sn_step *step, const uint8_t algo[2]);
/* How long each transfer of a route takes (sn_step.sum), in ns; copied. 0 unless set. SN_NO_MEMORY. */
sn_status sn_costs_set_transfers(sn_costs *costs, const int64_t *ns, uint32_t count, sn_err *err);
/* How long PyTorch's host is busy with a step, where nothing was measured: sn_device.host_ns for each operation of an eager
 * dialect, and of a recording, whoever plans it, for those that launch something. Updates of all parameters are issued
 * together. */
int64_t sn_costs_host_ns(const sn_costs *costs, const sn_route *route, const sn_step *step);
/* The part of a layer's step that was measured. */
int64_t sn_costs_step_known(const sn_costs *costs, uint32_t layer, sn_pass pass, const uint8_t algo[2]);

/* Time of a kernel where a step is one; those of a layer's pass together take what the pass does. A convolution
 * algorithm's time is its kernel's, what is beside it the bias'; of an FC's backward data and filter take half each (of
 * cores, what each takes), of an update all is its last kernel's, for the first of its parameters. `known`: only what
 * was measured. */
int64_t sn_costs_kernel(const sn_costs *costs, const sn_step *step, const uint8_t algo[2], bool known);

#endif
