/* What `snsim fit --min gpus` and `snsim advise --gpus` print alike: what one of several GPUs takes, and how fast all are. */
#ifndef SN_CLI_CAPACITY_GPUS_H
#define SN_CLI_CAPACITY_GPUS_H

#include "base/err.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/options/table.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns of sn_gpus_cells(). */
#define SN_GPUS_COLUMNS(q)                                                                                             \
  {"device", "GiB", SN_TABLE_NUMBER | SN_TABLE_GAP}, {"iter", "ms", SN_TABLE_NUMBER},                                  \
      {"exposed", "ms", SN_TABLE_NUMBER}, {sn_gpus_unit(q), "/s in all", SN_TABLE_NUMBER | SN_TABLE_GAP},              \
      {"/s", "a GPU", SN_TABLE_NUMBER}, {                                                                              \
    "MFU", "%", SN_TABLE_NUMBER                                                                                        \
  }

/* "tokens", "images" */
const char *sn_gpus_unit(const sn_question *q);

/* Of a plan: device memory, time, exposed transfers, tokens/s (images/s) of all and of each, MFU; result NULL: none was
 * made. */
void sn_gpus_cells(sn_table *table, const sn_question *q, const sn_mesh *mesh, const sn_result *result);
/* The same as members: parallel, device_bytes, iteration_ns, exposed_ns, images_per_second, tokens_per_s, mfu; null
 * without a plan. */
void sn_gpus_put(sn_json_object *o, const sn_question *q, const sn_mesh *mesh, const sn_result *result);

/* The strategies that are named, which must be PyTorch's, else to keep all, and to run blocks again. Room for
 * SN_ARGS_STRATEGIES. SN_BAD_USAGE. */
sn_status sn_gpus_strategies(const sn_question *q, sn_strategy *strategies, uint32_t *count, sn_err *err);

/* The lines of Python that share an iteration so; nothing of one GPU. `net` has the batch that is asked about. */
sn_status sn_gpus_print_calls(const sn_question *q, const sn_net *net, const sn_mesh *mesh, sn_strategy strategy,
                              uint32_t accumulate, FILE *out, sn_err *err);

/* What the columns are, and how far they are from what was measured. */
void sn_gpus_print_notes(const sn_net *net, const sn_mesh *mesh, FILE *out);

#endif
