/* What an operation takes, and a recorded one; see device_internal.h. */
#include "models/record/record.h"
#include "sim/device/conv.h"
#include "sim/device/device_internal.h"
#include "sim/device/product.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdlib.h>

int64_t sn__roofline_ns(const sn_device *d, double rate, double flops, double bytes, double launches) {
  double seconds = fmax(flops / rate, bytes / (d->memory_bandwidth * d->memory_efficiency));
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + llround(launches) * d->launch_ns;
}

int64_t sn__moved_ns(const sn_device *d, double bytes) {
  return sn__roofline_ns(d, 1, 0, bytes, 1);
}

int64_t sn__pass_ns(const sn_device *d, const sn_layer *layer, sn_pass pass, sn_product_part part,
                    const sn_arithmetic *how, const sn_traffic *t) {
  sn_product products[SN_MOST_PRODUCTS];
  double bytes = t->bytes[pass], seconds = 0;
  uint32_t count = how->tensor_cores && how->width < 4 ? sn_products_of(layer, pass, part, &bytes, products) : 0;
  if (count == 0) return sn__roofline_ns(d, how->flops * how->share, t->flops[pass], bytes, t->launches[pass]);
  for (uint32_t i = 0; i < count; i++) seconds += sn_product_seconds(d, how, &products[i], bytes / count);
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) +
         sn__roofline_ns(d, 1, 0, t->bytes[pass] - bytes, t->launches[pass]);
}

/* cuDNN's backward of an ACT reads both its input and its output. That of a PReLU has sums. */
int64_t sn__eager_act_ns(const sn_device *d, const sn_layer *layer, const sn_traffic *t) {
  double bytes = (sn_layer_is_prelu(layer) ? 1 : 0.75) * t->bytes[SN_BACKWARD];
  return sn__roofline_ns(d, 1, 0, bytes, t->launches[SN_BACKWARD]);
}

/* What the first micro-batch leaves is what the others are added to, so that the mean over all has a share of it. */
static double share_that_adds(uint32_t batches, bool masters) {
  return masters ? 1 : (batches - 1.0) / batches;
}

int64_t sn__adds_launch_ns(const sn_device *d, const sn_layer *layer, uint32_t batches, bool masters) {
  sn_parameter parameters[SN_PARAMETER_TENSORS];
  uint32_t launches = sn_parameters_of(layer, parameters);
  return llround(launches * (double)d->launch_ns * share_that_adds(batches, masters));
}

int64_t sn__adds_ns(const sn_device *d, const sn_layer *layer, sn_precision precision, uint32_t batches, bool masters) {
  const double made = sn_precision_parameter_bytes(precision), sum = masters ? sizeof(float) : made;
  sn_parameter parameters[SN_PARAMETER_TENSORS];
  int64_t ns =
      sn__roofline_ns(d, 1, 0, (made + 2 * sum) * (double)layer->parameters, sn_parameters_of(layer, parameters));
  return llround((double)ns * share_that_adds(batches, masters));
}

/* Two are read, one is written. */
int64_t sn__shared_sum_ns(const sn_device *d, const sn_route *route, const sn_step *step) {
  return sn__moved_ns(d, 3 * (double)route->tensors[route->accesses[step->first_access].tensor].bytes);
}

/* Masters are read again to be written in two bytes, and the gradients in four set to zero. */
double sn__update_bytes(const sn_layer *layer, sn_optimizer optimizer, uint32_t width, bool masters) {
  const double beside = masters ? sizeof(float) + 2 + sizeof(float) : 0;
  return (sn_optimizer_moved_bytes(optimizer, width) + beside) * (double)layer->parameters;
}

/* Of the attainable bandwidth, what a batch norm of two bytes an element reaches. */
static double norm_share(const sn_device *d) {
  return d->norm_efficiency > 0 ? d->norm_efficiency : 1;
}

int64_t sn__norm_ns(const sn_device *d, double bytes, double width, double launches, double channels) {
  double share = width < 4 ? norm_share(d) : 1;
  double seconds = bytes / (d->memory_bandwidth * d->memory_efficiency * share);
  if (channels > 0 && d->tensor_feed > 0) seconds = fmax(seconds, sn_blocks_seconds(bytes, channels, width));
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + llround(launches) * d->launch_ns;
}

/* The layer that a recorded convolution would be; false where its output has no size. */
static bool conv_layer(const sn_step_work *work, sn_attr *attr, sn_layer *layer, sn_shape *input) {
  const sn_record_conv *c = work->conv;
  const uint32_t in[2] = {c->h, c->w}, kernel[2] = {c->kernel_h, c->kernel_w};
  const double images = sn_record_amount(c->n, work->batch);
  double out[2];
  if (images < 1 || images > SN_MAX_DIM) return false;
  for (int i = 0; i < 2; i++) {
    double reach = (double)c->dilation[i] * (kernel[i] - 1.0), pads = 2.0 * c->pad[i];
    out[i] = c->transposed ? (in[i] - 1.0) * c->stride[i] - pads + reach + 1
                           : floor((in[i] + pads - reach - 1) / c->stride[i]) + 1;
    if (out[i] < 1 || out[i] > SN_MAX_DIM) return false;
  }
  *attr = (sn_attr){.channels = c->out,
                    .kernel_h = c->kernel_h,
                    .kernel_w = c->kernel_w,
                    .stride_h = c->stride[0],
                    .stride_w = c->stride[1],
                    .pad_h = c->pad[0],
                    .pad_w = c->pad[1],
                    .dilation_h = c->dilation[0],
                    .dilation_w = c->dilation[1],
                    .groups = c->groups};
  *input = (sn_shape){(uint32_t)images, c->c, c->h, c->w};
  *layer = (sn_layer){.op = c->transposed ? SN_DECONV : SN_CONV,
                      .attr = attr,
                      .out = {(uint32_t)images, c->out, (uint32_t)out[0], (uint32_t)out[1]}};
  return true;
}

/* By the fastest algorithms, as described convolutions have them. */
static int64_t conv_ns(const sn_device *d, const sn_step_work *work, const sn_arithmetic *how) {
  sn_attr attr;
  sn_layer layer;
  sn_shape input;
  int64_t ns = 0;
  if (!conv_layer(work, &attr, &layer, &input)) return 0;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) {
    sn_conv_choice choices[SN_CONV_ALGOS];
    bool has = k == SN_CONV_FORWARD ? work->conv->gradients == 0 : work->conv->gradients & k;
    if (has && sn_conv_choices(&layer, input, k, d, how, choices) > 0) ns += choices[0].ns;
  }
  return ns;
}

static int64_t in_ns(const sn_device *d, double seconds) {
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + d->launch_ns;
}

static int64_t product_ns(const sn_device *d, const sn_step_work *work, const sn_arithmetic *how) {
  const sn_record_product *p = work->product;
  const sn_product product = {.rows = sn_record_amount(p->rows, work->batch),
                              .columns = sn_record_amount(p->columns, work->batch),
                              .terms = sn_record_amount(p->terms, work->batch),
                              .count = sn_record_amount(p->count, work->batch),
                              .rows_of_batch = p->rows.b != 0,
                              .terms_of_batch = p->terms.b != 0};
  return in_ns(d, sn_product_seconds(d, how, &product, work->bytes));
}

/* Of what it moves two fifths are input and gradient, which the sums for its parameters read once more. */
static int64_t columns_ns(const sn_device *d, const sn_step_work *work) {
  const double twice = work->bytes * 2 / 5, bandwidth = d->memory_bandwidth * d->memory_efficiency;
  return in_ns(d,
               (work->bytes - twice) / bandwidth + sn_columns_seconds(d, twice, work->columns, work->narrow ? 2 : 4));
}

/* fp32 as PyTorch computes it unless told otherwise: convolutions by TF32 where the device has it, products not. Volta and
 * Turing have tensor cores for float16 alone. */
static sn_precision precision_of(const sn_step_work *work) {
  if (work->narrow) return work->fp16 ? SN_FP16 : SN_BF16;
  return work->conv ? SN_TF32_CONV : SN_FP32;
}

int64_t sn__work_ns(const sn_device *d, const sn_step_work *work) {
  const sn_record_conv *c = work->conv;
  bool product = work->flops > 0 && !(c && sn_conv_is_direct(c->c, c->groups));
  sn_arithmetic how = sn_device_arithmetic(d, precision_of(work), product, work->narrow ? 2 : 4);
  how.channels_last = work->channels_last;
  int64_t ns = c ? conv_ns(d, work, &how) : 0;
  if (ns > 0) return ns;
  if (work->product) return product_ns(d, work, &how);
  if (work->norm) return sn__norm_ns(d, work->bytes, work->narrow ? 2 : 4, work->launches, work->columns);
  if (work->columns > 0) return columns_ns(d, work);
  return sn__roofline_ns(d, how.flops * how.share, work->flops, work->bytes, work->launches);
}

sn_status sn_host_us_check(const char *text, sn_err *err) {
  const double most = 1e6;
  char *end;
  double us = strtod(text, &end);
  if (end > text && *end == '\0' && us >= 0 && us <= most) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--host-us: \"%.40s\" is no number of microseconds from 0 to %.0f", text, most);
}

int64_t sn_host_ns(const sn_device *device, const char *text) {
  return *text ? llround(strtod(text, NULL) * 1e3) : device->host_ns;
}

int64_t sn__columns_ns(const sn_device *d, const sn_layer *layer, double x, double width) {
  double seconds = sn_columns_seconds(d, 2 * x, layer->out.c, width);
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) - sn__roofline_ns(d, 1, 0, 2 * x, 0);
}
