/* `--gpu manycore:cores=N,slots=S,tile=T`: a machine of cores that nobody measured. Its constants are estimates for
 * cores of a server of about 2020, the same for any number of them: half the peak of AVX2 at 2.5 GHz, memory that four
 * cores saturate, threads of one core that share it fairly. */
#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"
#include "sim/device/device_internal.h"

#include <stdio.h>
#include <string.h>

static const char family[] = "manycore";
static const char *const keys[] = {"cores", "slots", "tile"};
enum { CORES, SLOTS, TILE, KEYS };

static const double core_flops = 40e9, core_bandwidth = 10e9;
static const double shared_bandwidth = 2.5e9; /* of each core's, where all are at work */
static const double memory_of_core = 4 * 0x1p30;
static const double doubled = 1.1; /* two threads a core do a tenth more than one */

bool sn__is_manycore(const char *name) {
  size_t length = sizeof family - 1;
  return strncmp(name, family, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

static sn_status refuse(const char *name, const char *item, const char *why, sn_err *err) {
  return sn_fail(
      err, SN_BAD_USAGE,
      "GPU \"%.60s\": \"%.40s\" %s; write manycore:cores=N,slots=S,tile=T: N from %d to %d, S 1 or 2, T that "
      "divides N (both 1 unless said)",
      name, item, why, SN_MIN_CORES, SN_MAX_CORES);
}

/* "cores=68" into values[CORES]. */
static sn_status take(const char *name, char *item, uint64_t *values, sn_err *err) {
  static const uint64_t low[KEYS] = {SN_MIN_CORES, 1, 1}, high[KEYS] = {SN_MAX_CORES, 2, SN_MAX_CORES};
  char whole[64], hint[100];
  sn_err reason = SN_ERR_INIT;
  snprintf(whole, sizeof whole, "%s", item);
  char *value = strchr(item, '=');
  if (!value) return refuse(name, whole, "has no value", err);
  *value++ = '\0';
  int i = 0;
  while (i < KEYS && strcmp(item, keys[i]) != 0) i++;
  if (i == KEYS) {
    char why[128];
    snprintf(why, sizeof why, "is not known%s", sn_text_suggest(item, keys, KEYS, hint, sizeof hint));
    return refuse(name, item, why, err);
  }
  if (values[i] > 0) return refuse(name, item, "is given twice", err);
  if (sn_parse_count(value, item, low[i], high[i], &values[i], &reason) != SN_OK)
    return refuse(name, whole, "is out of range", err);
  return SN_OK;
}

static sn_status take_all(const char *name, uint64_t *values, sn_err *err) {
  const char *colon = strchr(name, ':');
  for (const char *at = colon ? colon + 1 : NULL; at;) {
    char item[64];
    size_t length = strcspn(at, ",");
    snprintf(item, sizeof item, "%.*s", (int)sn_min(length, sizeof item), at);
    if (take(name, item, values, err) != SN_OK) return err->code;
    at = at[length] ? at + length + 1 : NULL;
  }
  if (values[CORES] == 0) return refuse(name, "cores", "is missing", err);
  values[SLOTS] = sn_max(values[SLOTS], 1);
  values[TILE] = sn_max(values[TILE], 1);
  if (values[CORES] % values[TILE] != 0) return refuse(name, "tile", "does not divide the cores", err);
  return SN_OK;
}

sn_cores sn_cores_estimate(uint32_t count, uint32_t slots, uint32_t tile) {
  sn_cores cores = {
      .count = count,
      .slots = slots,
      .tile = tile,
      .bandwidth = (double)sn_max(4, count) * shared_bandwidth,
      .kernel_ns = 5e3,
      .serial = 0.01,
      .doubled = doubled,
      .neighbour = 0.2,
      .crowd = {2 / doubled - 1, 3, 7}, /* x threads of equal right: each is slowed by x */
  };
  for (sn_law_kind kind = 0; kind < SN_LAW_KINDS; kind++)
    cores.law[kind] = (sn_law){.flops = core_flops, .bandwidth = core_bandwidth, .thread_ns = 100, .kernels = 1};
  return cores;
}

sn_status sn__manycore(const char *name, sn_device *d, sn_err *err) {
  uint64_t values[KEYS] = {0};
  if (take_all(name, values, err) != SN_OK) return err->code;
  *d = (sn_device){
      .memory_bytes = (uint64_t)((double)values[CORES] * memory_of_core),
      .flops = (double)values[CORES] * core_flops,
      .memory_efficiency = 1,
      .gemm_efficiency = 1,
      .conv_efficiency = 1,
      .cores = sn_cores_estimate((uint32_t)values[CORES], (uint32_t)values[SLOTS], (uint32_t)values[TILE]),
  };
  d->memory_bandwidth = d->cores.bandwidth;
  sn_device_set_links(d, d->memory_bandwidth);
  snprintf(d->name, sizeof d->name, "%s:cores=%u,slots=%u,tile=%u", family, d->cores.count, d->cores.slots,
           d->cores.tile);
  snprintf(d->description, sizeof d->description, "%u cores of a server, %u threads each: estimates, nothing measured",
           d->cores.count, d->cores.slots);
  return SN_OK;
}
