/* Reads the object "cores" of a device profile; docs/devices.md has its keys, sim/device/cores.h says what they mean.
 * What a kind of operation does not say of itself, "other" says for it. */
#include "sim/device/device_internal.h"

#include <string.h>

static const char *const law_names[SN_LAW_KINDS] = {
    [SN_LAW_FORWARD] = "forward",
    [SN_LAW_DATA] = "data",
    [SN_LAW_FILTER] = "filter",
    [SN_LAW_FC] = "fc",
    [SN_LAW_BN_FORWARD] = "bn_forward",
    [SN_LAW_BN_BACKWARD] = "bn_backward",
    [SN_LAW_ACT] = "act",
    [SN_LAW_UPDATE] = "update",
    [SN_LAW_OTHER] = "other",
};

static const char *const cores_keys[] = {"count",          "tile",         "slots",         "gb_per_s",
                                         "kernel_us",      "serial_share", "doubled_speed", "neighbour_slowing",
                                         "shared_slowing", "tile_gain",    "resize_us",     "law"};
static const char *const law_keys[] = {"gflop_per_s", "gb_per_s", "thread_us", "kernels"};

static const double most_rate = 1e6, most_us = 1e6, most_slowing = 1000, most_kernels = 10000;

typedef struct reader {
  const sn_json *doc;
  const cJSON *object;
  sn_err *err;
} reader;

/* A number in its key's unit, times `scale`; `fallback` where the key is missing and that is allowed. */
static double number(const reader *r, const char *key, double low, double high, double scale) {
  double value = 0;
  sn_json_number(r->doc, r->object, key, low, high, &value, r->err);
  return value * scale;
}

static double number_or(const reader *r, const char *key, double low, double high, double scale, double fallback) {
  return sn_json_has(r->object, key) ? number(r, key, low, high, scale) : fallback;
}

static uint32_t count_or(const reader *r, const char *key, uint64_t low, uint64_t high, uint32_t fallback) {
  uint64_t value = fallback;
  if (sn_json_has(r->object, key)) sn_json_count(r->doc, r->object, key, low, high, &value, r->err);
  return (uint32_t)value;
}

static void read_counts(const reader *r, sn_cores *cores) {
  uint64_t count = 0;
  if (sn_json_count(r->doc, r->object, "count", SN_MIN_CORES, SN_MAX_CORES, &count, r->err) != SN_OK) return;
  cores->count = (uint32_t)count;
  cores->tile = count_or(r, "tile", 1, count, 1);
  cores->slots = count_or(r, "slots", 1, 2, 1);
  if (r->err->code == SN_OK && cores->count % cores->tile != 0)
    sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(r->object, "tile"), r->err,
                 "%u cores are no whole number of tiles of %u; \"tile\" must divide \"count\"", cores->count,
                 cores->tile);
}

static void read_crowd(const reader *r, sn_cores *cores) {
  const cJSON *array = sn_json_array(r->doc, r->object, "shared_slowing", r->err);
  if (!array) return;
  int n = cJSON_GetArraySize(array);
  for (int i = 0; i < n && i < SN_CROWDS; i++) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    double before = i > 0 ? cores->crowd[i - 1] : 0;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= before && item->valuedouble <= most_slowing)) {
      n = 0;
      break;
    }
    cores->crowd[i] = item->valuedouble;
  }
  if (n != SN_CROWDS)
    sn_json_fail(
        r->doc, array, r->err,
        "\"shared_slowing\" must be %d numbers from 0 to %g, none below the one before: for 2, 4 and 8 threads "
        "a core",
        SN_CROWDS, most_slowing);
}

static void read_law(const reader *cores, const cJSON *object, const sn_law *other, sn_law *law) {
  reader r = {cores->doc, object, cores->err};
  if (sn_json_only(r.doc, object, law_keys, sizeof law_keys / sizeof law_keys[0], r.err) != SN_OK) return;
  *law = other ? *other : (sn_law){.kernels = 1};
  if (!other || sn_json_has(object, "gflop_per_s")) law->flops = number(&r, "gflop_per_s", 0.001, most_rate, 1e9);
  if (!other || sn_json_has(object, "gb_per_s")) law->bandwidth = number(&r, "gb_per_s", 0.001, most_rate, 1e9);
  if (!other || sn_json_has(object, "thread_us")) law->thread_ns = number(&r, "thread_us", 0, most_us, 1e3);
  law->kernels = number_or(&r, "kernels", 1, most_kernels, 1, law->kernels);
}

static void read_laws(const reader *r, sn_cores *cores) {
  const cJSON *laws = cJSON_GetObjectItemCaseSensitive(r->object, "law");
  const sn_law *other = &cores->law[SN_LAW_OTHER];
  if (!laws) {
    sn_json_fail(r->doc, r->object, r->err, "\"law\" is missing: rates and overheads by kind of operation");
    return;
  }
  if (sn_json_only(r->doc, laws, law_names, SN_LAW_KINDS, r->err) != SN_OK) return;
  const cJSON *object = cJSON_GetObjectItemCaseSensitive(laws, law_names[SN_LAW_OTHER]);
  if (!object) {
    sn_json_fail(r->doc, laws, r->err, "\"other\" is missing: what holds for every kind that says nothing else");
    return;
  }
  read_law(r, object, NULL, &cores->law[SN_LAW_OTHER]);
  for (sn_law_kind kind = 0; r->err->code == SN_OK && kind < SN_LAW_OTHER; kind++) {
    object = cJSON_GetObjectItemCaseSensitive(laws, law_names[kind]);
    cores->law[kind] = *other;
    if (object) read_law(r, object, other, &cores->law[kind]);
  }
}

sn_status sn__cores_read(const sn_json *doc, const cJSON *object, sn_cores *cores, sn_err *err) {
  reader r = {doc, object, err};
  if (sn_json_only(doc, object, cores_keys, sizeof cores_keys / sizeof cores_keys[0], err) != SN_OK) return err->code;
  read_counts(&r, cores);
  cores->bandwidth = number(&r, "gb_per_s", 0.001, most_rate, 1e9);
  cores->kernel_ns = number(&r, "kernel_us", 0, most_us, 1e3);
  cores->serial = number(&r, "serial_share", 0, 1, 1);
  cores->doubled = number(&r, "doubled_speed", 0.01, 2, 1);
  cores->neighbour = number(&r, "neighbour_slowing", 0, most_slowing, 1);
  cores->tile_gain = number_or(&r, "tile_gain", 0, 0.9, 1, 0);
  cores->resize_ns = number_or(&r, "resize_us", 0, most_us, 1e3, 0);
  if (err->code == SN_OK) read_crowd(&r, cores);
  if (err->code == SN_OK) read_laws(&r, cores);
  return err->code;
}
