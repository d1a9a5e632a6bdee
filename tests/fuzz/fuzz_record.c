/* Fuzz target: a recording. Whatever the bytes, there is a network or an error; what is read has a peak, and its plans are
 * proved. */
#include "tests/fuzz/fuzz.h"

#include "models/record/record_net.h"
#include "models/zoo/zoo_internal.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"
#include "tests/support/record_peak.h"

#include <stdlib.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

/* Plans are proved: what the checker rejects is an internal error. */
static void plan(const sn_net *net) {
  static const char *const names[] = {"pytorch", "pytorch+recompute=units", "superneurons"};
  for (int i = 0; i < 3; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device gpu;
    sn_strategy strategy;
    sn_options options = SN_OPTIONS_INIT;
    require(sn_device_load("k40c", &gpu, &err) == SN_OK);
    require(sn_strategy_parse(names[i], &strategy, &err) == SN_OK);
    sn_run *run = sn_simulate("fuzz.rec", net, &gpu, &strategy, 1, &options, &err);
    require(err.code != SN_BUG);
    sn_run_free(run);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn__net_from_recorded("fuzz.rec", (const char *)data, size, 2, &err);
  require((net != NULL) == (err.code == SN_OK));
  if (!net) return 0;
  record_peak(net->recorded->record, 2, true);
  if (net->recorded->n_ops < 300) plan(net);
  sn_net_free(net);
  return 0;
}
