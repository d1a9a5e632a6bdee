/* Attributes; see the header. */
#include "models/build/attrs.h"

#include "base/arena.h"

#include <string.h>

/* Of all bytes, padding too: where that alone differs, attributes are kept twice. */
static uint32_t class_of(const sn_attr *attr) {
  uint64_t words[sizeof *attr / sizeof(uint64_t)], mixed = 0;
  _Static_assert(sizeof words == sizeof *attr, "attributes are whole words");
  memcpy(words, attr, sizeof words);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) mixed = (mixed ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(mixed >> 54);
}

static bool are_same(const void *a, const void *b) {
  return memcmp(a, b, sizeof(sn_attr)) == 0;
}

const sn_attr *sn__attrs_keep(sn__attrs *attrs, struct sn_arena *arena, const sn_attr *attr) {
  const sn_attr **latest = &attrs->latest[class_of(attr)];
  if (*latest && are_same(*latest, attr)) return *latest;
  sn_attr *kept = sn_arena_alloc(arena, 1, sizeof *kept);
  if (!kept) return NULL;
  memcpy(kept, attr, sizeof *kept);
  return *latest = kept;
}
