/* What the kernels behind a recorded operation read and write: a recording has the bytes of its operands and results,
 * each once. */
#ifndef SN_MODELS_RECORD_TRAFFIC_H
#define SN_MODELS_RECORD_TRAFFIC_H

#include <stdint.h>

/* Kernels that have a time of their own. */
typedef enum sn_record_kernel_kind {
  SN_RECORD_PLAIN,
  SN_RECORD_BATCH_NORM, /* sn_device.norm_efficiency */
  SN_RECORD_BY_IMAGE,   /* launched for each image of the batch */
  SN_RECORD_BY_COLUMNS  /* the backward of a layer norm, a block of which has some columns: sn_columns_seconds() */
} sn_record_kernel_kind;

/* How often what is read and what is written goes through memory; `keeping`: so much oftener where the operation makes
 * more than its result, as a batch norm in training keeps statistics. Kernels that PyTorch launches for it, 0 or 1; of
 * SN_RECORD_BY_IMAGE for an image. */
typedef struct sn_record_traffic {
  double read, written, keeping;
  int launches;
  uint8_t kernel; /* sn_record_kernel_kind */
} sn_record_traffic;

/* Of a kernel by its short name, "cudnn_batch_norm"; once each unless PyTorch's own kernels (ATen/native/cuda)
 * do otherwise. */
sn_record_traffic sn_record_traffic_of(const char *called);

#endif
