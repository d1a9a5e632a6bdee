/* FNV-1a, Fowler, Noll and Vo's hash of 64 bits: of texts that are looked up, and as a digest of what is compared.
 *
 *   uint64_t h = SN_FNV_START;
 *   h = sn_fnv_add(h, byte);                 for each byte, or word
 */
#ifndef SN_BASE_FNV_H
#define SN_BASE_FNV_H

#include <stdint.h>

#define SN_FNV_START UINT64_C(14695981039346656037)

static inline uint64_t sn_fnv_add(uint64_t hash, uint64_t next) {
  return (hash ^ next) * UINT64_C(1099511628211);
}

static inline uint64_t sn_fnv_text(const char *text) {
  uint64_t hash = SN_FNV_START;
  for (; *text; text++) hash = sn_fnv_add(hash, (unsigned char)*text);
  return hash;
}

#endif
