/* Little-endian numbers in files, on any machine. Internal to exec/. */
#ifndef SN_EXEC_DATA_LITTLE_H
#define SN_EXEC_DATA_LITTLE_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sn__little(const uint8_t *b) {
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static inline uint64_t sn__little_64(const uint8_t *b) {
  return (uint64_t)sn__little(b + 4) << 32 | sn__little(b);
}
static inline float sn__little_float(const uint8_t *b) {
  uint32_t bits = sn__little(b);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline void sn__put_little(uint8_t *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}
static inline void sn__put_little_64(uint8_t *to, uint64_t value) {
  sn__put_little(to, (uint32_t)value);
  sn__put_little(to + 4, (uint32_t)(value >> 32));
}
static inline void sn__put_little_float(uint8_t *to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  sn__put_little(to, bits);
}

#endif
