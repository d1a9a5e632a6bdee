/* What the kernels behind a recorded operation read and write: a recording has the bytes of its operands and results,
 * each once. */
#ifndef SN_MODELS_RECORD_TRAFFIC_H
#define SN_MODELS_RECORD_TRAFFIC_H

#include <stdbool.h>

/* How often what is read and what is written goes through memory; `keeping`: so much oftener where the operation makes
 * more than its result, as a batch norm in training keeps statistics. Kernels that PyTorch launches for it, 0 or 1. */
typedef struct sn_record_traffic {
  double read, written, keeping;
  int launches;
  bool norm; /* a batch norm: sn_device.norm_efficiency */
} sn_record_traffic;

/* Of a kernel by its short name, "cudnn_batch_norm"; {1, 1, 1, 1} unless PyTorch's own kernels (ATen/native/cuda)
 * do otherwise. */
sn_record_traffic sn_record_traffic_of(const char *called);

#endif
