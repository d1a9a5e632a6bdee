/* Fuzz target: prices of cards. Whatever the bytes, there are prices or an error that says where; each card that has
 * one has it once, above 0. */
#include "tests/fuzz/fuzz.h"

#include "sim/capacity/prices.h"
#include "sim/device/device.h"

#include <stdlib.h>
#include <string.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void look_up_all(const sn_prices *prices) {
  uint32_t found = sn_prices_of(prices, "my card") > 0;
  sn_device device;
  sn_err err = SN_ERR_INIT;
  for (uint32_t i = 0; i < sn_device_count(); i++) {
    require(sn_device_known(i, &device, &err) == SN_OK);
    found += sn_prices_of(prices, device.name) > 0;
  }
  require(found == prices->count && found > 0 && strlen(prices->currency) >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_prices *prices = sn_prices_parse("fuzz.csv", (const char *)data, size, "my card", &err);
  require((prices != NULL) == (err.code == SN_OK));
  require(prices || strncmp(err.text, "fuzz.csv:", 9) == 0);
  if (prices) look_up_all(prices);
  sn_prices_free(prices);
  return 0;
}
