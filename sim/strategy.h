/* Strategy: which memory techniques of [SN] a plan uses, by the name people give it.
 *
 *   baseline | liveness [+offload[=conv|checkpoints] | +cache] [+recompute=speed|memory|cost]
 *
 * "superneurons" is liveness+cache+recompute=cost. Parts may come in any order; printing is always in the order above.
 */
#ifndef SN_SIM_STRATEGY_H
#define SN_SIM_STRATEGY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_offload {
  SN_OFFLOAD_NONE,
  SN_OFFLOAD_CONV,        /* CONV outputs, at fixed places ([SN] 3.3.1) */
  SN_OFFLOAD_CHECKPOINTS, /* JOIN, FORK and CONCAT outputs too */
  SN_OFFLOAD_CACHE        /* any tensor, only when memory is short: LRU ([SN] algorithm 2) */
} sn_offload;

typedef enum sn_recompute {
  SN_RECOMPUTE_NONE,
  SN_RECOMPUTE_SPEED,
  SN_RECOMPUTE_MEMORY,
  SN_RECOMPUTE_COST
} sn_recompute;

typedef struct sn_strategy {
  bool liveness; /* false: baseline, everything allocated at once; the others are off then */
  sn_offload offload;
  sn_recompute recompute;
} sn_strategy;

enum { SN_STRATEGY_TEXT = 64, SN_STRATEGY_DEFAULTS = 13 };

sn_status sn_strategy_parse(const char *text, sn_strategy *strategy, sn_err *err);

/* The canonical name, into `text` of SN_STRATEGY_TEXT bytes; returns it. */
char *sn_strategy_name(sn_strategy strategy, char *text);

/* The 13 combinations of the default table, index < SN_STRATEGY_DEFAULTS, and one line on what each does. */
sn_strategy sn_strategy_default(uint32_t index);
const char *sn_strategy_summary(sn_strategy strategy);

#endif
