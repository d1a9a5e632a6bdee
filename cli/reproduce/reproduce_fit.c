/* The largest size that fits, by the capacity search of sim/capacity/fit.h; see the header. */
#include "cli/reproduce/reproduce_fit.h"

#include "models/zoo/zoo.h"
#include "sim/capacity/fit.h"

#include <inttypes.h>
#include <stdio.h>

static sn_net *load(const void *user, uint32_t size, sn_err *err) {
  const sn_family *family = user;
  char spec[128];
  if (!family->batch) return sn_net_load(family->spec, size, 0, err);
  snprintf(spec, sizeof spec, "%s%" PRIu32, family->spec, size);
  return sn_net_load(spec, family->batch, 0, err);
}

sn_status sn_largest_that_fits(const sn_family *family, const sn_device *device, const sn_strategy *strategies,
                               uint32_t n_strategies, uint32_t *largest, sn_err *err) {
  bool grows = family->batch > 0;
  const sn_knob knob = {.low = 1,
                        .high = SN_MAX_DIM,
                        .grows = grows,
                        .make = load,
                        .turn = grows ? NULL : sn_net_rebatch,
                        .user = family};
  const sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .placement = SN_PLACEMENT_FIRST_FIT};
  sn_fit *fit = sn_fit_largest(&knob, device, strategies, n_strategies, &options, err);
  for (uint32_t i = 0; fit && i < n_strategies; i++) largest[i] = fit->answers[i].search.value;
  sn_fit_free(fit);
  return err->code;
}
