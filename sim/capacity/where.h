/* Where: what memory holds at the fullest moment of a training iteration, in a few groups that somebody who knows the
 * model can name: blocks of a kind together, never a row for each layer.
 *
 *   33.8 GiB when backward begins (step 147 of 492)
 *     kept by 12 MLPs          15.6  checkpoint
 *     kept by 12 attentions     8.7  checkpoint
 *     residual stream, fp32     6.6
 *     parameters, moments (AdamW)
 *     the rest                  1.9
 *
 * A tensor that forward leaves for backward belongs to the unit (sim/schedule/units.h) of the layer that made it: to an
 * attention, where the unit has one; else to an MLP, where it has no convolution; else to the stage of the layer's
 * block (models/net/modules.h), or to all units that make images of that size. What is added from unit to unit (JOIN) of
 * the first two is the residual stream. Behind the last unit are logits and loss.
 */
#ifndef SN_SIM_CAPACITY_WHERE_H
#define SN_SIM_CAPACITY_WHERE_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/capacity/remedy.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

enum { SN_WHERE_GROUPS = 6 };

typedef struct sn_where_group {
  const char *name; /* "kept by 12 MLPs"; the last one may be "the rest" */
  uint64_t bytes;
  const char
      *advice; /* what makes it smaller: "checkpoint", "8-bit AdamW", "loss in parts"; "": nothing that is known */
} sn_where_group;

typedef struct sn_where {
  uint32_t step, n_steps;       /* the first step that holds the most, counted from 1, of so many */
  const char *moment;           /* "when backward begins", "in forward of layer1.0.conv1" */
  uint64_t total_bytes;         /* of the groups; sn_live_total() of the result's */
  uint32_t n_groups;            /* at most SN_WHERE_GROUPS */
  const sn_where_group *groups; /* largest first, but for the rest */
  sn_arena *arena;
} sn_where;

/* Of an eager strategy (PyTorch's); SN_BAD_USAGE for others. asked->net, device and options are looked at. Time of one
 * plan. */
sn_where *sn_where_find(const sn_asked *asked, sn_strategy strategy, sn_err *err);
void sn_where_free(sn_where *where);

#endif
