/* Traffic of recorded operations; see the header. */
#include "models/record/traffic.h"

#include <stddef.h>
#include <string.h>

/* A batch norm in training reads its input for its statistics and once more; backward reads input and gradient twice
 * (sums, then the result), as layer norms do. A group norm's statistics are a kernel of their own. What fills does not
 * read. What is named *empty* only takes memory. The backward of a pool looks at no input but at indices or sizes; a
 * slice's fills all of its result, and writes the part again. copy_ does not read what it overwrites. An unfold is a kernel an
 * image (ATen/native/cuda/Im2Col.cu). */
static const struct {
  const char *called;
  sn_record_traffic traffic;
} known[] = {
    {"empty", {0, 0, 1, 0, SN_RECORD_PLAIN}},
    {"new_empty", {0, 0, 1, 0, SN_RECORD_PLAIN}},
    {"new_empty_strided", {0, 0, 1, 0, SN_RECORD_PLAIN}},
    {"empty_strided", {0, 0, 1, 0, SN_RECORD_PLAIN}},
    {"empty_like", {0, 0, 1, 0, SN_RECORD_PLAIN}},
    {"zero_", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"fill_", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"bernoulli_", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"uniform_", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"zeros_like", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"ones_like", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"new_zeros", {0, 1, 1, 1, SN_RECORD_PLAIN}},
    {"copy_", {1, 0, 1, 1, SN_RECORD_PLAIN}},
    {"im2col", {1, 1, 1, 1, SN_RECORD_BY_IMAGE}},
    {"cudnn_batch_norm", {1, 1, 1.5, 1, SN_RECORD_BATCH_NORM}},
    {"native_batch_norm", {1, 1, 1.5, 1, SN_RECORD_BATCH_NORM}},
    {"_native_batch_norm_legit", {1, 1, 1.5, 1, SN_RECORD_BATCH_NORM}},
    {"native_group_norm", {1.5, 1.5, 1, 1, SN_RECORD_PLAIN}},
    {"cudnn_batch_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1, SN_RECORD_BATCH_NORM}},
    {"native_batch_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1, SN_RECORD_BATCH_NORM}},
    {"native_layer_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1, SN_RECORD_BY_COLUMNS}},
    {"native_group_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1, SN_RECORD_PLAIN}},
    {"max_pool2d_with_indices_backward", {1, 0, 1, 1, SN_RECORD_PLAIN}},
    {"avg_pool2d_backward", {1, 0, 1, 1, SN_RECORD_PLAIN}},
    {"slice_backward", {2, 1, 1, 1, SN_RECORD_PLAIN}},
    {"select_backward", {2, 1, 1, 1, SN_RECORD_PLAIN}},
};

sn_record_traffic sn_record_traffic_of(const char *called) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].called, called) == 0) return known[i].traffic;
  return (sn_record_traffic){1, 1, 1, 1, SN_RECORD_PLAIN};
}
