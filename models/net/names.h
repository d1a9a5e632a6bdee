/* Names of layers, to find them by text; internal to models/. Add all, sort once, then look up.
 *
 * A sorted list in buckets, not a hash table: no choice of names makes it slower than O(n log n), whoever wrote the
 * file. The texts are looked at, never copied, and must outlive the list. */
#ifndef SN_MODELS_NET_NAMES_H
#define SN_MODELS_NET_NAMES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__name {
  uint64_t key; /* hash of the text: most comparisons end here */
  const char *text;
  uint32_t index;
} sn__name;

typedef struct sn__names {
  sn__name *items;
  uint32_t count;
  sn__name *sorted; /* room to sort them in; NULL: they are */
  uint32_t *first;  /* per bucket, and behind the last: its first item */
  uint32_t shift;   /* of a key, which leaves its bucket */
} sn__names;

/* Room for `room` names; sn__names_free() frees it and is fine on a zeroed list. */
sn_status sn__names_init(sn__names *names, uint32_t room, sn_err *err);
void sn__names_free(sn__names *names);

void sn__names_add(sn__names *names, const char *text, uint32_t index);
void sn__names_sort(sn__names *names);

/* After sorting. The index of a name, the lowest where it stands twice; SN_NONE where it is unknown. */
uint32_t sn__names_find(const sn__names *names, const char *text);
/* Whether the i-th item has the name of the one before it, which has the lower index; not for the first. */
bool sn__names_repeated(const sn__names *names, uint32_t i);

#endif
