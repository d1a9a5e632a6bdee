/* The dialects' tables; see the header. */
#include "sim/graph/dialect.h"

#include <stdio.h>
#include <string.h>

/* Reference, section 1. SOFTMAX reads only y, but the paper holds its x as well. */
static const sn_dialect superneurons = {
    .name = "superneurons",
    .summary = "SuperNeurons' runtime of 2018: forks copy, no storage is shared",
    .fork_copies = true,
    .data_gradient = true,
    .rules =
        {
            [SN_DATA] = {.gradient = SN_GRAD_NONE},
            [SN_CONV] = {{SN_X, SN_DY}, SN_GRAD_NEW, 0, 0},
            [SN_FC] = {{SN_X, SN_DY}, SN_GRAD_NEW, 0, 0},
            [SN_POOL] = {{SN_X, SN_Y, SN_DY}, SN_GRAD_NEW, 0, 0},
            [SN_ACT] = {{SN_X, SN_Y, SN_DY}, SN_GRAD_IN_PLACE, 0, 0},
            [SN_LRN] = {{SN_X, SN_Y, SN_DY}, SN_GRAD_IN_PLACE, 0, 0},
            [SN_BN] = {{SN_X, SN_DY}, SN_GRAD_NEW, 0, 0},
            [SN_DROPOUT] = {{SN_DY}, SN_GRAD_NEW, 0, 0},
            [SN_SOFTMAX] = {{SN_X, SN_Y}, SN_GRAD_ON_OUTPUT, 0, 0},
            [SN_JOIN] = {{SN_DY}, SN_GRAD_SHARE, 0, 0},
            [SN_FORK] = {{SN_DY}, SN_GRAD_ACCUMULATE, 0, 0},
            [SN_CONCAT] = {{SN_DY}, SN_GRAD_NEW, 0, 0},
        },
};

/* Planning, part C: MXNet 1.2.1. */
static const sn_dialect explicit_graph = {
    .name = "explicit",
    .summary = "MXNet's graph: values have many readers, gradients are summed, memory is taken over where permitted",
    .flattens = true,
    .rules =
        {
            [SN_DATA] = {.gradient = SN_GRAD_NONE},
            [SN_CONV] = {{SN_DY, SN_X}, SN_GRAD_NEW, 0, 0},
            [SN_FC] = {{SN_DY, SN_X}, SN_GRAD_NEW, 0, SN_DX_TAKES_X},
            [SN_POOL] = {{SN_DY, SN_X, SN_Y}, SN_GRAD_NEW, 0, SN_DX_TAKES_X},
            [SN_ACT] = {{SN_DY, SN_Y}, SN_GRAD_NEW, 0, SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_LRN] = {{SN_DY, SN_X, SN_KEPT}, SN_GRAD_NEW, SN_SAVES_AS_OUTPUT, 0},
            [SN_BN] = {{SN_DY, SN_KEPT, SN_X}, SN_GRAD_NEW, SN_SAVES_CHANNELS, 0},
            [SN_DROPOUT] = {{SN_DY, SN_KEPT}, SN_GRAD_NEW, SN_SAVES_AS_OUTPUT, SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_SOFTMAX] = {{SN_Y}, SN_GRAD_NEW, 0, SN_Y_TAKES_X | SN_DX_TAKES_Y},
            [SN_JOIN] = {{SN_DY}, SN_GRAD_NEW, 0, SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_FORK] = {{SN_DY}, SN_GRAD_SUM, 0, SN_DX_TAKES_DY},
            [SN_CONCAT] = {{SN_DY}, SN_GRAD_NEW, 0, 0},
        },
};

static const sn_dialect *const dialects[SN_DIALECTS] = {&superneurons, &explicit_graph};

const sn_dialect *sn_dialect_of(sn_dialect_id id) {
  return dialects[id];
}

sn_status sn_dialect_parse(const char *text, sn_dialect_id *id, sn_err *err) {
  char all[100] = "";
  for (*id = 0; *id < SN_DIALECTS; ++*id) {
    if (strcmp(text, dialects[*id]->name) == 0) return SN_OK;
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", dialects[*id]->name);
  }
  return sn_fail(err, SN_BAD_USAGE, "--dialect: \"%.40s\" is none of: %s", text, all);
}

uint32_t sn_saving_count(sn_saving saving) {
  static const uint32_t counts[] = {[SN_SAVES_NOTHING] = 0, [SN_SAVES_CHANNELS] = 2, [SN_SAVES_AS_OUTPUT] = 1};
  return counts[saving];
}

uint64_t sn_saving_bytes(sn_saving saving, const sn_layer *layer, uint64_t output_bytes) {
  switch (saving) {
  case SN_SAVES_NOTHING:
    return 0;
  case SN_SAVES_CHANNELS:
    return (uint64_t)layer->out.c * sizeof(float);
  case SN_SAVES_AS_OUTPUT:
    break;
  }
  return output_bytes;
}
