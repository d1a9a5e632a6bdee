/* Traffic of recorded operations; see the header. */
#include "models/record/traffic.h"

#include <stddef.h>
#include <string.h>

/* A batch norm in training reads its input for its statistics and once more; backward reads input and gradient twice
 * (sums, then the result), as layer norms do. A group norm's statistics are a kernel of their own. What fills does not
 * read. What is named *empty* only takes memory. The backward of a pool looks at no input but at indices or sizes; a
 * slice's fills all of its result, and writes the part again. copy_ does not read what it overwrites. */
static const struct {
  const char *called;
  sn_record_traffic traffic;
} known[] = {
    {"empty", {0, 0, 1, 0}},
    {"new_empty", {0, 0, 1, 0}},
    {"new_empty_strided", {0, 0, 1, 0}},
    {"empty_strided", {0, 0, 1, 0}},
    {"empty_like", {0, 0, 1, 0}},
    {"zero_", {0, 1, 1, 1}},
    {"fill_", {0, 1, 1, 1}},
    {"bernoulli_", {0, 1, 1, 1}},
    {"uniform_", {0, 1, 1, 1}},
    {"zeros_like", {0, 1, 1, 1}},
    {"ones_like", {0, 1, 1, 1}},
    {"new_zeros", {0, 1, 1, 1}},
    {"copy_", {1, 0, 1, 1}},
    {"cudnn_batch_norm", {1, 1, 1.5, 1}},
    {"native_batch_norm", {1, 1, 1.5, 1}},
    {"_native_batch_norm_legit", {1, 1, 1.5, 1}},
    {"native_group_norm", {1.5, 1.5, 1, 1}},
    {"cudnn_batch_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1}},
    {"native_batch_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1}},
    {"native_layer_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1}},
    {"native_group_norm_backward", {5.0 / 3, 5.0 / 3, 1, 1}},
    {"max_pool2d_with_indices_backward", {1, 0, 1, 1}},
    {"avg_pool2d_backward", {1, 0, 1, 1}},
    {"slice_backward", {2, 1, 1, 1}},
    {"select_backward", {2, 1, 1, 1}},
};

sn_record_traffic sn_record_traffic_of(const char *called) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].called, called) == 0) return known[i].traffic;
  return (sn_record_traffic){1, 1, 1, 1};
}
