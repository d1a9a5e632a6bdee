/* Lives: from when to when each storage of a recording has memory, in operations of the iteration that is planned
 * (models/record/record_net.h). A storage lives while Python, a handle or a ghost has it; here these are two spans with
 * one beginning, as a checkpoint drops what handles and ghosts have and leaves what Python has.
 *
 * What happens between two operations is put to the earlier one, but for a birth and what follows it there, which are
 * put to the later: so the bytes that are alive at each operation are those of the recording.
 */
#ifndef SN_MODELS_RECORD_LIVES_H
#define SN_MODELS_RECORD_LIVES_H

#include "base/arena.h"
#include "base/err.h"
#include "models/record/record_net.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_record_stay {
  SN_RECORD_ELSEWHERE, /* it is gone before the iteration, or its bytes are another's: `same` */
  SN_RECORD_RESIDENT,  /* there before it and behind it */
  SN_RECORD_CARRIED,   /* left over by the iteration before, and let go in this one */
  SN_RECORD_MADE       /* in this iteration; it may be there at its end */
} sn_record_stay;

typedef struct sn_record_life {
  uint32_t stay : 2;  /* sn_record_stay */
  uint32_t phase : 2; /* sn_record_phase in which it was born */
  bool at_end : 1;    /* Python has it when the iteration ends */
  uint32_t made : 27; /* operation of the iteration; of what was there before it 0 */
  uint32_t same;      /* the storage whose bytes it has: itself, unless it is a sum in place */
  uint32_t held;      /* the last one at which Python has it */
  uint32_t first_use; /* the first operation that reads or changes it */
  uint32_t kept;      /* the last one at which a handle or a ghost has it; SN_NONE: none does in this iteration */
} sn_record_life;

/* Of all storages, in the arena. `in_place`: sums of gradients as PyTorch adds them, over their first summand. NULL
 * where memory is out. O(events). */
const sn_record_life *sn_record_lives_find(const struct sn_recorded *recorded, bool in_place, sn_arena *arena);

#endif
