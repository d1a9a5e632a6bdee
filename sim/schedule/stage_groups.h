/* Groups of stages: neighbours among the stages of a network (sim/schedule/stages.h), run as one, so that recurrences
 * over long chains have a bounded number of rows. A group of one stage is that stage. */
#ifndef SN_SIM_SCHEDULE_STAGE_GROUPS_H
#define SN_SIM_SCHEDULE_STAGE_GROUPS_H

#include "sim/schedule/stages.h"

/* Stages first .. end - 1 of all. */
typedef struct sn_group {
  uint32_t first, end;
  int64_t forward_ns, backward_ns;
  uint64_t output_bytes, gradient_bytes;
  bool reads_output, reads_input, needs_input; /* as of a stage */
  uint64_t drop_load, pass_load, keep_load;
  sn_keeping keeping[SN_KEEPINGS];
  uint32_t n_keepings;
} sn_group;

/* Every stage by itself; of more than `most` neighbours together, those of least bytes first. NULL: out of memory;
 * else to be freed with free(). */
sn_group *sn__stage_groups(const sn_stages *stages, uint32_t most, uint32_t *count, sn_err *err);

#endif
