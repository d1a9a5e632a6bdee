/* Fuzz target: a GPU profile, JSON. Whatever the bytes, there is a device or an error that says where; a device has
 * what the cost model divides by, and a small network has costs on it, or takes too long. */
#include "tests/fuzz/fuzz.h"

#include "models/zoo/zoo.h"
#include "sim/device/cost.h"
#include "sim/device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void check_share(double share) {
  require(share > 0 && share <= 1);
}

static void check_device(const sn_device *d) {
  require(d->name[0] != '\0' && memchr(d->name, '\0', sizeof d->name) != NULL);
  require(memchr(d->description, '\0', sizeof d->description) != NULL);
  require(d->memory_bytes > 0);
  require(isfinite(d->flops) && d->flops > 0 && isfinite(d->memory_bandwidth) && d->memory_bandwidth > 0);
  check_share(d->gemm_efficiency);
  check_share(d->conv_efficiency);
  check_share(d->memory_efficiency);
  for (int e = 0; e < SN_EXTERNAL_COUNT; e++) require(isfinite(d->link_bandwidth[e]) && d->link_bandwidth[e] > 0);
  require(d->link_latency_ns >= 0 && d->launch_ns >= 0 && d->malloc_ns >= 0 && d->free_ns >= 0);
}

static void check_costs(const sn_device *device) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("lenet", 2, 0, &err);
  require(net != NULL);
  sn_costs *costs = sn_costs_new(net, device, &err);
  require(costs != NULL || err.code == SN_BAD_INPUT);
  sn_costs_free(costs);
  sn_net_free(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_status status = sn_device_parse("fuzz.json", (const char *)data, size, &device, &err);
  require(status == err.code);
  require(status == SN_OK || strncmp(err.text, "fuzz.json:", 10) == 0);
  if (status != SN_OK) return 0;
  check_device(&device);
  check_costs(&device);
  return 0;
}
