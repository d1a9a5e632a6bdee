/* Parts of reading a device profile that sim/device/device.c leaves to others, and of the cost model (cost.c) that others
 * leave to sim/device/work.c. */
#ifndef SN_SIM_DEVICE_DEVICE_INTERNAL_H
#define SN_SIM_DEVICE_DEVICE_INTERNAL_H

#include "base/json.h"
#include "models/op/op.h"
#include "sim/device/device.h"
#include "sim/device/product.h"
#include "sim/graph/optimizer.h"

/* The object "cores" of a profile; SN_BAD_INPUT. */
sn_status sn__cores_read(const sn_json *doc, const cJSON *object, sn_cores *cores, sn_err *err);

/* "manycore" or "manycore:..." */
bool sn__is_manycore(const char *name);
/* A machine of so many cores, by estimates: "manycore:cores=N,slots=S,tile=T". SN_BAD_USAGE. */
sn_status sn__manycore(const char *name, sn_device *device, sn_err *err);

struct sn_step_work;

/* The larger of arithmetic and moved bytes, and the launches. `rate`: FLOP/s that are attainable. */
int64_t sn__roofline_ns(const sn_device *d, double rate, double flops, double bytes, double launches);
/* A kernel that only moves so many. */
int64_t sn__moved_ns(const sn_device *d, double bytes);

/* A pass of a described layer, or of a rank's part of it; of two bytes an element on tensor cores product by product. */
int64_t sn__pass_ns(const sn_device *d, const sn_layer *layer, sn_pass pass, sn_product_part part,
                    const sn_arithmetic *how, const sn_traffic *t);
/* PyTorch's backward of an ACT, which reads the gradient and what was saved of it, and writes one result. */
int64_t sn__eager_act_ns(const sn_device *d, const sn_layer *layer, const sn_traffic *t);
/* PyTorch adds a micro-batch's gradients, a tensor each, to those that are there: reads both, and writes. `masters`: to
 * those in four bytes, which are there from the first one on (sn_iteration_keeps_masters()). */
int64_t sn__adds_ns(const sn_device *d, const sn_layer *layer, sn_precision precision, uint32_t batches, bool masters);
int64_t sn__adds_launch_ns(const sn_device *d, const sn_layer *layer, uint32_t batches, bool masters);
/* The sum of two gradients of a parameter: a step SN_SHARED_SUM. */
int64_t sn__shared_sum_ns(const sn_device *d, const sn_route *route, const sn_step *step);
/* What an update moves, of parameters and states of so many bytes. */
double sn__update_bytes(const sn_layer *layer, sn_optimizer optimizer, uint32_t width, bool masters);

/* What the sums for a layer norm's parameters, which read input and gradient, take beyond the time of their bytes. */
int64_t sn__columns_ns(const sn_device *d, const sn_layer *layer, double x, double width);
/* A batch norm, of elements of `width` bytes. `channels`: in training, where cuDNN's kernel for channels first has a
 * block for each; 0: anything else. Cards whose tensor cores are not modelled have not that either. */
int64_t sn__norm_ns(const sn_device *d, double bytes, double width, double launches, double channels);
/* An operation of a recording. */
int64_t sn__work_ns(const sn_device *d, const struct sn_step_work *work);

#endif
