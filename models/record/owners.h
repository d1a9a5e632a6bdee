/* Owners: whose a recording's storages are, of its parameters, for those who share them out to several GPUs: a parameter's
 * own storage, its gradients, what an optimizer keeps of it, and what an update makes in its size.
 *
 *   sn_record_owners *o = sn_record_owners_find(recorded, arena);
 *   o->of[storage]       a parameter; SN_NONE: nobody's
 *   o->next[parameter]   the next one in the same storage of parameters, as of recurrent networks
 */
#ifndef SN_MODELS_RECORD_OWNERS_H
#define SN_MODELS_RECORD_OWNERS_H

#include "base/arena.h"
#include "models/record/record_net.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_record_owners {
  const uint32_t *of;    /* per storage; of parameters the first one in it */
  const uint32_t *next;  /* per parameter; SN_NONE: the last */
  const uint32_t *width; /* per parameter: bytes of an element; 0: there is more in its storage than parameters */
} sn_record_owners;

/* Of a recording whose phases are known, in the arena; NULL where memory is out. O(parameters + operands of updates). */
const sn_record_owners *sn_record_owners_find(const struct sn_recorded *w, sn_arena *arena);

/* Whether the file says what is needed for that: of every parameter its rows. */
bool sn_record_has_rows(const sn_record *record);

#endif
