/* Device profiles: reading them, and what a GPU architecture's name stands for. The constants of the cost model that
 * are not vendor figures are all in `architectures` below and in sim/device/conv.c; docs/cost-model.md says where each
 * comes from. */
#include "sim/device/device.h"

#include "base/json.h"
#include "base/text.h"
#include "models/op/op.h"
#include "models/record/record_net.h"
#include "sim/device/device_internal.h"
#include "sim/device/embedded.h"
#include "sim/device/same_costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What attainable rates and overheads an architecture has unless the profile says otherwise. */
typedef struct architecture {
  const char *name;
  double gemm_efficiency, conv_efficiency, memory_efficiency;
  double tensor_feed, product_feed; /* TFLOP/s; see sn_device */
  double norm_efficiency;
  bool winograd;
  double launch_us, malloc_us, free_us;
  struct {
    double median, least, most;  /* GiB; least 0: nobody's was seen, and a neighbour's median stands in */
  } lazy;                        /* context in PyTorch where kernels are loaded as they are used */
  double eager[2];               /* GiB; the same where all are loaded at once: without a CONV, and with one */
  uint64_t blas_workspace_bytes; /* PyTorch's for a handle of cuBLAS (frameworks, section 5) */
} architecture;

enum { BLAS = 8519680, BLAS_HOPPER = 33554432 };

/* Where the contexts come from: docs/devices.md. */
static const architecture architectures[] = {
    {"kepler", 0.60, 0.36, 0.55, 0, 0, 0, false, 12, 200, 200, {0.12, 0, 0}, {0.85, 1.07}, BLAS},
    {"maxwell", 0.75, 0.60, 0.75, 0, 0, 0, true, 8, 120, 120, {0.12, 0, 0}, {0.85, 1.07}, BLAS},
    {"pascal", 0.75, 0.62, 0.78, 0, 0, 0, true, 7, 120, 120, {0.12, 0.12, 0.80}, {0.85, 1.07}, BLAS},
    {"volta", 0.80, 0.65, 0.82, 6.5, 20, 0.7, true, 6, 110, 110, {0.42, 0, 0}, {0.85, 1.07}, BLAS},
    {"turing", 0.75, 0.62, 0.80, 6.5, 20, 0.7, true, 6, 110, 110, {0.13, 0.11, 1.10}, {0.85, 1.07}, BLAS},
    {"ampere", 0.75, 0.60, 0.85, 6.5, 20, 0.7, true, 5, 110, 110, {0.42, 0.17, 0.95}, {1.43, 1.79}, BLAS},
    {"ada", 0.70, 0.55, 0.85, 6.5, 20, 0.86, true, 4, 110, 110, {0.44, 0.11, 0.51}, {1.43, 1.79}, BLAS},
    {"hopper", 0.75, 0.60, 0.85, 14, 14, 0.7, true, 4, 110, 110, {0.59, 0.59, 0.59}, {1.43, 1.79}, BLAS_HOPPER},
    {"blackwell", 0.70, 0.55, 0.85, 6.5, 20, 0.7, true, 4, 110, 110, {0.59, 0.58, 0.60}, {1.43, 1.79}, BLAS_HOPPER},
    /* AMD's; assumed throughout */
    {"cdna", 0.60, 0.45, 0.75, 0, 0, 0, false, 6, 110, 110, {0.42, 0, 0}, {1.43, 1.79}, BLAS},
};

/* Cards whose published times were looked at when the constants of their architecture, or of a device of cores its law,
 * were chosen: docs/devices.md has the sources. */
static const struct {
  const char *architecture, *card;
} fitted[] = {{"kepler", "k40c"}, {"ampere", "rtx3090"}, {"ada", "rtx4090"}, {"", "knl7250"}};

/* A device of cores has a law instead. */
static const architecture of_cores = {"", 1, 1, 1, 0, 0, 0, false, 0, 0, 0, {0, 0, 0}, {0, 0}, 0};
static const char *const not_of_cores[] = {
    "architecture",    "library_context_gib", "eager_context_gib", "eager_conv_gib", "gemm_efficiency",
    "conv_efficiency", "memory_efficiency",   "winograd",          "launch_us",      "malloc_us",
    "free_us"};

enum { ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

/* Multiprocessors for each FLOP/s on the lanes, up to the A100 and without GeForce Ampere's and later ones' wider ones. */
static const double multiprocessors_per_flops = 24 / 4.25 / 1e12;

/* TF32 reaches 45 to 50 % of an A100's peak (BERT), where two bytes reach 70 %. */
static const double tf32_share = 0.7;

/* PyTorch's host: 4 to 10 us for a launch, a module's Python beside it. */
static const double host_us = 10;

static const double link_latency_us = 10;

/* What CUDA reports of a nominal size, at least: the rest is the driver's, and of GDDR6 with ECC on the check bits'. */
static const double usable_share = 0.98, usable_share_ecc = 0.92;

static const char *const keys[] = {
    "snsim_gpu",       "name",
    "description",     "architecture",
    "memory_mib",      "nominal_gib",
    "context_gib",     "library_context_gib",
    "fp32_tflops",     "tf32_tflops",
    "bf16_tflops",     "fp16_tflops",
    "memory_gb_per_s", "host_gb_per_s",
    "peer_gb_per_s",   "remote_gb_per_s",
    "link_latency_us", "gemm_efficiency",
    "conv_efficiency", "memory_efficiency",
    "winograd",        "launch_us",
    "host_us",         "malloc_us",
    "free_us",         "host_memory_mib",
    "cores",           "disk_gb_per_s",
    "multiprocessors", "ecc",
    "memory_source",   "eager_context_gib",
    "eager_conv_gib",
};

static const char *const external_names[SN_EXTERNAL_COUNT] = {"host", "peer", "remote", "disk"};

static const cJSON *item_of(const sn_json *doc, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(sn_json_root(doc), key);
}

static sn_status read_text(const sn_json *doc, const char *key, char *out, size_t room, sn_err *err) {
  const char *text = sn_json_text(doc, sn_json_root(doc), key, err);
  if (!text) return err->code;
  int length = snprintf(out, room, "%s", text);
  if (length > 0 && (size_t)length < room) return SN_OK;
  return sn_json_fail(doc, item_of(doc, key), err, "\"%s\" must have 1 to %zu bytes", key, room - 1);
}

static const architecture *read_architecture(const sn_json *doc, sn_err *err) {
  const char *text = sn_json_text(doc, sn_json_root(doc), "architecture", err);
  const char *names[ARCHITECTURES];
  char hint[100], known[16 * ARCHITECTURES] = "";
  if (!text) return NULL;
  for (size_t i = 0; i < ARCHITECTURES; i++) {
    names[i] = architectures[i].name;
    if (strcmp(text, names[i]) == 0) return &architectures[i];
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  sn_json_fail(doc, item_of(doc, "architecture"), err, "unknown architecture \"%.40s\"%s; there are %s", text,
               sn_text_suggest(text, names, ARCHITECTURES, hint, sizeof hint), known);
  return NULL;
}

/* A number in the unit of its key, times `scale`; `fallback` where the key is missing (NAN: it is required). */
static double read_scaled(const sn_json *doc, const char *key, double low, double high, double scale, double fallback,
                          sn_err *err) {
  double value = 0;
  if (!isnan(fallback) && !sn_json_has(sn_json_root(doc), key)) return fallback * scale;
  sn_json_number(doc, sn_json_root(doc), key, low, high, &value, err);
  return value * scale;
}

/* Rates and sizes: something is there. */
static double read_amount(const sn_json *doc, const char *key, double high, double scale, double fallback,
                          sn_err *err) {
  return read_scaled(doc, key, 0.001, high, scale, fallback, err);
}

/* Microseconds in nanoseconds; an overhead may be 0. */
static int64_t read_us(const sn_json *doc, const char *key, double fallback, sn_err *err) {
  return llround(read_scaled(doc, key, 0, 1e6, 1e3, fallback, err));
}

static bool read_flag(const sn_json *doc, const char *key, bool fallback, sn_err *err) {
  bool value = fallback;
  if (sn_json_has(sn_json_root(doc), key)) sn_json_bool(doc, sn_json_root(doc), key, &value, err);
  return value;
}

static sn_status read_memory(const sn_json *doc, sn_device *d, sn_err *err) {
  const cJSON *usable = item_of(doc, "memory_mib"), *nominal = item_of(doc, "nominal_gib");
  if (usable && nominal)
    return sn_json_fail(doc, nominal, err, "\"memory_mib\" and \"nominal_gib\" are both given; keep one");
  if (!usable && !nominal)
    return sn_json_fail(doc, sn_json_root(doc), err,
                        "\"memory_mib\" is missing (\"nominal_gib\" where it is not known)");
  if (item_of(doc, "ecc") && usable)
    return sn_json_fail(doc, item_of(doc, "ecc"), err, "\"ecc\" is of \"nominal_gib\"; leave it out");
  if (item_of(doc, "memory_source") && !sn_json_text(doc, sn_json_root(doc), "memory_source", err)) return err->code;
  d->memory_nominal = !usable;
  if (d->memory_nominal)
    d->memory_bytes = (uint64_t)llround(read_amount(doc, "nominal_gib", 1e6, 0x1p30, NAN, err) *
                                        (read_flag(doc, "ecc", false, err) ? usable_share_ecc : usable_share));
  else
    d->memory_bytes = (uint64_t)llround(read_amount(doc, "memory_mib", 1e9, 0x1p20, NAN, err));
  d->context_bytes = (uint64_t)llround(read_scaled(doc, "context_gib", 0, 1e3, 0x1p30, NAN, err));
  if (sn_json_has(sn_json_root(doc), "host_memory_mib"))
    d->host_memory_bytes = (uint64_t)llround(read_amount(doc, "host_memory_mib", 1e9, 0x1p20, NAN, err));
  return err->code;
}

static sn_status read_links(const sn_json *doc, sn_device *d, sn_err *err) {
  static const char *const link_keys[SN_EXTERNAL_COUNT] = {"host_gb_per_s", "peer_gb_per_s", "remote_gb_per_s",
                                                           "disk_gb_per_s"};
  for (sn_external e = 0; e < SN_EXTERNAL_COUNT; e++)
    d->link_bandwidth[e] =
        read_amount(doc, link_keys[e], 1e6, 1e9, e == SN_EXTERNAL_DISK ? SN_DISK_BANDWIDTH / 1e9 : NAN, err);
  d->link_latency_ns = read_us(doc, "link_latency_us", link_latency_us, err);
  return err->code;
}

static sn_status read_cores(const sn_json *doc, sn_device *d, sn_err *err) {
  for (size_t i = 0; i < sizeof not_of_cores / sizeof not_of_cores[0]; i++) {
    const cJSON *item = item_of(doc, not_of_cores[i]);
    if (item)
      return sn_json_fail(doc, item, err, "\"%s\" is a GPU's: beside \"cores\" it means nothing; leave it out",
                          not_of_cores[i]);
  }
  return sn__cores_read(doc, item_of(doc, "cores"), &d->cores, err);
}

/* Absent: no tensor cores for it. */
static void read_tensor_cores(const sn_json *doc, sn_device *d, sn_err *err) {
  d->tensor_flops[SN_TF32] = d->tensor_flops[SN_TF32_CONV] = read_amount(doc, "tf32_tflops", 1e6, 1e12, 0, err);
  d->tensor_flops[SN_BF16] = d->tensor_flops[SN_AMP_BF16] = read_amount(doc, "bf16_tflops", 1e6, 1e12, 0, err);
  d->tensor_flops[SN_FP16] = d->tensor_flops[SN_AMP_FP16] = read_amount(doc, "fp16_tflops", 1e6, 1e12, 0, err);
}

static uint64_t of_gib(double gib) {
  return (uint64_t)llround(gib * 0x1p30);
}

/* A profile's own figure is of its GPU: what was seen of others is no range of it. */
static void read_library_context(const sn_json *doc, const architecture *a, sn_device *d, sn_err *err) {
  bool own = sn_json_has(sn_json_root(doc), "library_context_gib");
  d->library_context_bytes = of_gib(read_scaled(doc, "library_context_gib", 0, 1e3, 1, a->lazy.median, err));
  d->library_context_seen[0] = own ? 0 : of_gib(a->lazy.least);
  d->library_context_seen[1] = own ? 0 : of_gib(a->lazy.most);
  double eager = read_scaled(doc, "eager_context_gib", 0, 1e3, 1, a->eager[0], err);
  double conv = read_scaled(doc, "eager_conv_gib", 0, 1e3, 1, a->eager[1] - a->eager[0], err);
  d->eager_context_bytes[0] = of_gib(eager);
  d->eager_context_bytes[1] = of_gib(eager + conv);
}

/* A law of cores is one device's: it is not carried over. */
static sn_times_from find_times_from(const architecture *a, const char *name) {
  sn_times_from from = SN_TIMES_DATA_SHEET;
  for (size_t i = 0; i < sizeof fitted / sizeof fitted[0]; i++) {
    if (strcmp(fitted[i].architecture, a->name) != 0) continue;
    if (strcmp(fitted[i].card, name) == 0) return SN_TIMES_FITTED;
    if (*a->name) from = SN_TIMES_CARRIED_OVER;
  }
  return from;
}

const char *sn_times_from_name(sn_times_from from) {
  static const char *const names[SN_TIMES_FROM] = {"data sheet", "carried over", "fitted"};
  return names[from];
}

static sn_status read_rates(const sn_json *doc, sn_device *d, sn_err *err) {
  const architecture *a = d->cores.count > 0 ? &of_cores : read_architecture(doc, err);
  if (!a) return err->code;
  d->times_from = find_times_from(a, d->name);
  d->flops = read_amount(doc, "fp32_tflops", 1e6, 1e12, NAN, err);
  read_tensor_cores(doc, d, err);
  d->multiprocessors = read_scaled(doc, "multiprocessors", 1, 1e6, 1, 0, err);
  d->memory_bandwidth = read_amount(doc, "memory_gb_per_s", 1e6, 1e9, NAN, err);
  read_library_context(doc, a, d, err);
  d->blas_workspace_bytes = a->blas_workspace_bytes;
  d->gemm_efficiency = read_amount(doc, "gemm_efficiency", 1, 1, a->gemm_efficiency, err);
  d->conv_efficiency = read_amount(doc, "conv_efficiency", 1, 1, a->conv_efficiency, err);
  d->memory_efficiency = read_amount(doc, "memory_efficiency", 1, 1, a->memory_efficiency, err);
  bool own = sn_json_has(sn_json_root(doc), "gemm_efficiency") || sn_json_has(sn_json_root(doc), "conv_efficiency");
  d->tensor_feed = own ? 0 : a->tensor_feed * 1e12;
  d->product_feed = own ? 0 : a->product_feed * 1e12;
  d->norm_efficiency = a->norm_efficiency;
  d->launch_ns = read_us(doc, "launch_us", a->launch_us, err);
  d->host_ns = d->cores.count > 0 ? 0 : read_us(doc, "host_us", host_us, err);
  d->malloc_ns = read_us(doc, "malloc_us", a->malloc_us, err);
  d->free_ns = read_us(doc, "free_us", a->free_us, err);
  d->winograd = read_flag(doc, "winograd", a->winograd, err);
  return err->code;
}

static sn_status read_device(const sn_json *doc, sn_device *d, sn_err *err) {
  uint64_t version;
  *d = (sn_device){0};
  if (!cJSON_IsObject(sn_json_root(doc)))
    return sn_json_fail(doc, sn_json_root(doc), err, "a GPU profile is a JSON object; see docs/devices.md");
  if (item_of(doc, "snsim_cluster"))
    return sn_json_fail(doc, item_of(doc, "snsim_cluster"), err,
                        "a cluster of GPUs, where a GPU is wanted; give the file to --cluster");
  if (sn_json_only(doc, sn_json_root(doc), keys, sizeof keys / sizeof keys[0], err) != SN_OK) return err->code;
  if (sn_json_count(doc, sn_json_root(doc), "snsim_gpu", 1, 1, &version, err) != SN_OK) return err->code;
  if (read_text(doc, "name", d->name, sizeof d->name, err) != SN_OK) return err->code;
  if (sn_json_has(sn_json_root(doc), "description") &&
      read_text(doc, "description", d->description, sizeof d->description, err) != SN_OK)
    return err->code;
  if (read_memory(doc, d, err) != SN_OK || read_links(doc, d, err) != SN_OK) return err->code;
  if (item_of(doc, "cores") && read_cores(doc, d, err) != SN_OK) return err->code;
  return read_rates(doc, d, err);
}

static sn_status take_document(sn_json *doc, sn_device *device, sn_err *err) {
  if (!doc) return err->code;
  sn_status status = read_device(doc, device, err);
  sn_json_free(doc);
  return status;
}

sn_status sn_device_parse(const char *name, const char *text, size_t bytes, sn_device *device, sn_err *err) {
  return take_document(sn_json_parse(name, text, bytes, err), device, err);
}

static sn_status load_embedded(const sn_embedded_file *file, sn_device *device, sn_err *err) {
  return sn_device_parse(file->name, file->text, file->bytes, device, err);
}

static sn_status unknown_name(const char *name, sn_err *err) {
  char hint[100];
  return sn_fail(err, SN_BAD_USAGE,
                 "unknown GPU \"%.60s\"%s; snsim list gpus shows them, a path ending in .json is read, snsim calibrate "
                 "measures this machine",
                 name, sn_device_suggest(name, hint, sizeof hint));
}

static const sn_embedded_file *find_embedded(const char *name) {
  for (size_t i = 0; i < sn_embedded_device_count; i++)
    if (strcmp(name, sn_embedded_devices[i].name) == 0) return &sn_embedded_devices[i];
  return NULL;
}

bool sn_device_is_file(const char *name) {
  size_t length = strlen(name);
  return !sn__is_manycore(name) && (strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0));
}

sn_status sn_device_load(const char *name, sn_device *device, sn_err *err) {
  if (sn__is_manycore(name)) return sn__manycore(name, device, err);
  if (sn_device_is_file(name)) return take_document(sn_json_load(name, err), device, err);
  const char *called = sn_device_called(name);
  const sn_embedded_file *known = called ? find_embedded(called) : NULL;
  return known ? load_embedded(known, device, err) : unknown_name(name, err);
}

uint32_t sn_device_count(void) {
  return (uint32_t)sn_embedded_device_count;
}

sn_status sn_device_known(uint32_t index, sn_device *device, sn_err *err) {
  return load_embedded(&sn_embedded_devices[index], device, err);
}

bool sn_device_is_known(const char *name) {
  return find_embedded(name) != NULL;
}

bool sn_device_emulates(const sn_device *d, sn_precision precision) {
  bool two_bytes = precision == SN_BF16 || precision == SN_FP16 || sn_precision_is_amp(precision);
  return two_bytes && d->cores.count == 0 && d->tensor_flops[precision] == 0;
}

sn_status sn_device_check_precision(const sn_device *d, sn_precision precision, sn_err *err) {
  char has[80] = "fp32";
  if (precision == SN_FP32 || precision == SN_TF32_CONV || d->tensor_flops[precision] > 0) return SN_OK;
  if (sn_device_emulates(d, precision)) return SN_OK;
  for (sn_precision p = SN_TF32; p < SN_PRECISION_COUNT; p++) {
    size_t used = strlen(has);
    if (d->tensor_flops[p] > 0) snprintf(has + used, sizeof has - used, ", %s", sn_precision_name(p));
  }
  return sn_fail(err, SN_BAD_USAGE, "--precision %s: %s has no tensor cores for that; it has %s",
                 sn_precision_name(precision), d->name, has);
}

static bool convolves(const sn_net *net) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_op_of(&net->layers[i])->convolves) return true;
  return false;
}

sn_precision sn_device_starts_in(const sn_device *d, const sn_net *net) {
  return d->tensor_flops[SN_TF32_CONV] > 0 && (!net || convolves(net)) ? SN_TF32_CONV : SN_FP32;
}

static double multiprocessors_of(const sn_device *d) {
  return d->multiprocessors > 0 ? d->multiprocessors : d->flops * multiprocessors_per_flops;
}

/* A multiprocessor multiplies no faster than its operands come: it takes 1 / peak + 1 / feed for an operation. Of TF32 they are
 * twice as wide. */
static double tensor_share(const sn_device *d, double feed, bool tf32, double flops) {
  if (feed == 0) return d->gemm_efficiency;
  double each = flops / multiprocessors_of(d) * (tf32 ? 2 : 1);
  return (tf32 ? tf32_share : 1) / (1 + each / feed);
}

sn_arithmetic sn_device_arithmetic(const sn_device *d, sn_precision precision, bool product, double width) {
  double flops = product ? d->tensor_flops[precision] : 0;
  if (flops == 0) return (sn_arithmetic){.flops = d->flops, .share = d->gemm_efficiency, .width = width};
  const bool tf32 = precision == SN_TF32 || precision == SN_TF32_CONV;
  return (sn_arithmetic){.flops = flops,
                         .share = tensor_share(d, tf32 ? d->tensor_feed : d->product_feed, tf32, flops),
                         .conv_share = tensor_share(d, d->tensor_feed, tf32, flops),
                         .width = width,
                         .tensor_cores = true};
}

void sn_device_set_links(sn_device *d, double bandwidth) {
  for (sn_external e = 0; e < SN_EXTERNAL_COUNT; e++)
    d->link_bandwidth[e] = e == SN_EXTERNAL_DISK ? SN_DISK_BANDWIDTH : bandwidth;
}

const char *sn_external_name(sn_external external) {
  return external_names[external];
}

sn_status sn_external_parse(const char *text, sn_external *external, sn_err *err) {
  char hint[100];
  for (sn_external e = 0; e < SN_EXTERNAL_COUNT; e++) {
    if (strcmp(text, external_names[e]) != 0) continue;
    *external = e;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE, "--external: \"%.40s\" is none of: host, peer, remote, disk%s", text,
                 sn_text_suggest(text, external_names, SN_EXTERNAL_COUNT, hint, sizeof hint));
}

uint32_t sn_kernel_shapes(const sn_net *net) {
  sn__same_costs twins = {.divided = false};
  uint32_t shapes = 0;
  for (uint32_t i = 1; i < net->n_layers; i++) {
    sn_op op = net->layers[i].op;
    if (op == SN_CONV || op == SN_DECONV || op == SN_FC) shapes += sn__same_costs_find(&twins, net, i) == 0;
  }
  return shapes;
}

void sn_device_load_eagerly(sn_device *d) {
  if (d->eager_context_bytes[0] == 0) return;
  d->library_context_bytes = d->eager_context_bytes[0];
  d->conv_context_bytes = d->eager_context_bytes[1] - d->eager_context_bytes[0];
  d->library_context_seen[0] = d->library_context_seen[1] = 0;
}

static bool has_convolution(const sn_net *net) {
  for (uint32_t k = 0; net->recorded && k < net->recorded->record->n_kernels; k++)
    if (net->recorded->record->kernels[k].flags & SN_RECORD_CONVOLUTION) return true;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_CONV || net->layers[i].op == SN_DECONV) return true;
  return false;
}

uint64_t sn_device_host_share(const sn_device *device) {
  return device->host_shares > 1 ? device->host_memory_bytes / device->host_shares : device->host_memory_bytes;
}

uint64_t sn_device_context(const sn_device *device, const sn_net *net, bool libraries) {
  uint64_t bare = sn_device_bare_context(device, libraries);
  if (libraries && device->conv_context_bytes > 0 && has_convolution(net)) bare += device->conv_context_bytes;
  bare += device->communicator_bytes;
  return device->kernel_bytes > 0 ? bare + device->kernel_bytes * sn_kernel_shapes(net) : bare;
}
