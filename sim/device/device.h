/* Device profile: what the cost model and the capacity check need to know about a GPU.
 *
 * Known profiles are JSON files in sim/device/profiles/, embedded in the binary; a user's own file has the same form
 * (docs/devices.md). Vendor figures come from the reference, section 3; what was fitted instead of looked up is listed
 * in docs/cost-model.md.
 */
#ifndef SN_SIM_DEVICE_DEVICE_H
#define SN_SIM_DEVICE_DEVICE_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/device/cores.h"
#include "sim/device/external.h"
#include "sim/graph/precision.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN_DEVICE_NAME = 64, SN_DEVICE_NOTE = 200 };

/* Bytes/s of a disk of which the profile does not say more, each way: an assumption for one NVMe drive, not a
 * measurement. */
#define SN_DISK_BANDWIDTH 2e9

/* Copies of pageable host memory go through a pinned buffer of the driver's, at about half the speed of pinned memory
 * (reference, section 3; [SN] 2.2 charges TensorFlow with it). An assumption for every GPU, not a measurement. */
#define SN_PAGEABLE_SHARE 0.5

/* Where the constants of a device's times come from, beside the peaks of its data sheet. */
typedef enum sn_times_from {
  SN_TIMES_DATA_SHEET,   /* nowhere: no published time of its architecture was looked at */
  SN_TIMES_CARRIED_OVER, /* they were chosen for another card of its architecture */
  SN_TIMES_FITTED,       /* they were chosen with published times of this card in view (docs/devices.md) */
  SN_TIMES_FROM
} sn_times_from;

/* "data sheet", "carried over", "fitted" */
const char *sn_times_from_name(sn_times_from from);

struct sn_device {
  char name[SN_DEVICE_NAME];
  char description[SN_DEVICE_NOTE];
  uint64_t memory_bytes;            /* usable, as CUDA reports it */
  bool memory_nominal;              /* CUDA's figure is not known: memory_bytes is the nominal size, less a share */
  uint64_t context_bytes;           /* driver and libraries of a runtime of 2018 */
  uint64_t library_context_bytes;   /* the same in PyTorch, which loads kernels as it uses them; 0: not known */
  uint64_t library_context_seen[2]; /* the least and the most that was seen of such GPUs; 0: none was */
  uint64_t eager_context_bytes[2];  /* in PyTorch where all kernels are loaded at once: without a CONV, with one */
  uint64_t conv_context_bytes;      /* what a net with a CONV adds to that in PyTorch: sn_device_load_eagerly() */
  uint64_t kernel_bytes;       /* of a CPU, and more: what the kernels of a shape of CONV, DECONV or FC take, which are
                            made for it; measured (exec/session/calibrate.h). 0: not known, or in the above */
  uint64_t communicator_bytes; /* of one of several GPUs: what NCCL takes there. No profile has it */
  uint64_t blas_workspace_bytes; /* what PyTorch gives a handle of cuBLAS */
  uint64_t host_memory_bytes;    /* what the host has for tensors that are sent out; 0: not limited */
  uint32_t host_shares;          /* how many GPUs of a node have that together; 0: one alone. No profile has it */
  sn_times_from times_from;
  double flops;                            /* fp32 FLOP/s, vendor's boost figure */
  double tensor_flops[SN_PRECISION_COUNT]; /* FLOP/s of products by tensor cores that add up in 32 bits, nothing
                                              sparse, vendor's figure; 0: it has none for that, fp32 is `flops` */
  double multiprocessors;                  /* 0: not known, and `flops` stand for them */
  double memory_bandwidth;                 /* bytes/s, vendor's figure */
  double memory_efficiency;                /* attainable share of it, 0 .. 1 */
  double
      gemm_efficiency; /* attainable share of flops: plain matrix products (FC, the products of an FFT convolution) */
  double conv_efficiency; /* the same: convolution kernels */
  /* FLOP/s of tensor cores for each multiprocessor, of two bytes an element, at which operands come half as fast as they
   * could be multiplied; 0: the shares above hold for tensor cores, too. */
  double tensor_feed;
  double product_feed; /* the same of products of matrices, whose operands lie as they are taken; of two bytes alone */
  double norm_efficiency; /* share of the attainable bandwidth, of batch norms of two bytes; 0: all of it */
  bool winograd;          /* Winograd kernels are worth using (Maxwell and later) */
  double link_bandwidth[SN_EXTERNAL_COUNT]; /* bytes/s, one direction, pinned; of a disk attainable */
  int64_t link_latency_ns;                  /* per copy */
  double compute_speed, copy_speed; /* of a CPU, which copies with the processors that it computes with: computation's
                                       while copies go on, and copies' while computation does, as parts of what they are
                                       alone. Measured (exec/session/calibrate.h); 0: neither slows the other */
  int64_t launch_ns;                /* per kernel */
  int64_t host_ns;                  /* of PyTorch's host for each operation, Python and dispatcher */
  int64_t malloc_ns, free_ns;       /* cudaMalloc, cudaFree: host time beyond the wait for the device */
  sn_cores cores; /* what it is made of, where operations may have cores of their own; count 0: a GPU. Times are then
                     its law's and none of the rates above but the links'. */
};

/* Loads the known profile `name`, the profile file where `name` holds a '/' or ends in ".json", or an estimate of so
 * many cores, "manycore:cores=64,slots=2,tile=2". SN_BAD_USAGE for an unknown name (nearest offered), SN_BAD_INPUT with
 * file and line. */
sn_status sn_device_load(const char *name, sn_device *device, sn_err *err);

/* Whether sn_device_load() takes `name` for the path of a file. */
bool sn_device_is_file(const char *name);

/* Reads the text of a profile file; `name` is what errors call it. SN_BAD_INPUT with name and line, SN_NO_MEMORY. */
sn_status sn_device_parse(const char *name, const char *text, size_t bytes, sn_device *device, sn_err *err);

/* Shapes of CONV, DECONV and FC in a net; one that is alike may be counted again (sim/device/same_costs.h). */
uint32_t sn_kernel_shapes(const sn_net *net);

/* What a context takes without kernels of any net: bare, or with libraries in use, where that is known. */
static inline uint64_t sn_device_bare_context(const sn_device *device, bool libraries) {
  return libraries && device->library_context_bytes > 0 ? device->library_context_bytes : device->context_bytes;
}

/* CUDA_MODULE_LOADING=EAGER in place of LAZY: library_context_bytes becomes what all kernels take, where that is
 * known. */
void sn_device_load_eagerly(sn_device *device);

/* Of the host's memory, what one of the GPUs that share it has; 0: not limited. */
uint64_t sn_device_host_share(const sn_device *device);

/* The same with those of a net. O(layers) where kernels are known, else O(1). */
uint64_t sn_device_context(const sn_device *device, const sn_net *net, bool libraries);

/* Whether a GPU computes in two bytes without tensor cores for them, as bf16 on a T4: PyTorch allows it. Bytes are the
 * type's; nobody knows the times, which are told at the rate of fp32. */
bool sn_device_emulates(const sn_device *device, sn_precision precision);

/* SN_BAD_USAGE, with what it has, where it cannot compute in a precision: TF32 without tensor cores for it, and on a
 * device of cores all but fp32. tf32-conv is fp32 where there are none. */
sn_status sn_device_check_precision(const sn_device *device, sn_precision precision, sn_err *err);

/* The precision of PyTorch as it starts: tf32-conv where the device has tensor cores for it and the network convolves,
 * else fp32. net NULL: some network. */
sn_precision sn_device_starts_in(const sn_device *device, const sn_net *net);

/* Whether a text is microseconds for an operation of PyTorch's host, 0 to a second; SN_BAD_USAGE. */
sn_status sn_host_us_check(const char *text, sn_err *err);
/* Of such a text; of "" the device's. */
int64_t sn_host_ns(const sn_device *device, const char *text);

/* How an operation computes. */
struct sn_arithmetic {
  double flops;       /* FLOP/s at peak */
  double share;       /* of it, what products of matrices reach */
  double conv_share;  /* and convolutions on tensor cores */
  double width;       /* bytes of an element, of what moves most */
  bool channels_last; /* so lie a convolution's operands; else they are turned where a kernel wants that */
  bool tensor_cores;  /* which no FFT and no Winograd convolution uses: of four bytes they are done without */
};

/* Of products of matrices and convolutions, or of anything else. */
sn_arithmetic sn_device_arithmetic(const sn_device *device, sn_precision precision, bool product, double width);

/* Known profiles by number (below sn_device_count()), in alphabetical order of their names. */
uint32_t sn_device_count(void);
sn_status sn_device_known(uint32_t index, sn_device *device, sn_err *err);
bool sn_device_is_known(const char *name);
/* The profile that a name means as people and drivers write it: "4090", "RTX 4090", "NVIDIA A100-SXM4-80GB". Case,
 * blanks and hyphens, the maker's words and how the card is mounted do not matter; of several cards of one name it is
 * the usual one (a100 is a100_80). NULL: none is known. sn_device_load() takes all of these. */
const char *sn_device_called(const char *text);
/* " (did you mean "rtx4090"?)", or "", into `out`, which is returned. */
char *sn_device_suggest(const char *text, char *out, size_t room);

/* All links to memory have this bandwidth, in bytes/s; the disk has what is assumed of one. */
void sn_device_set_links(sn_device *device, double bandwidth);

#endif
