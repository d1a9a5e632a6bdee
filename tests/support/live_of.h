/* Live bytes at the peak of PyTorch's, as a question is answered; the GPU is as large as any, and
 * of no known cluster, whose nodes a mesh would have to fill. */
#ifndef SN_TESTS_LIVE_OF_H
#define SN_TESTS_LIVE_OF_H

#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"

/* `spec`: as in errors. */
static inline sn_live live_of(const char *spec, const sn_net *net, const char *strategy, sn_iteration iteration) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  snprintf(gpu.name, sizeof gpu.name, "any");
  sn_strategy s = parse_strategy(strategy);
  sn_options options = SN_OPTIONS_INIT;
  options.iteration = iteration;
  sn_run *run = sn_simulate(spec, net, &gpu, &s, 1, &options, &err);
  must(&err);
  assert_int_equal(run->n_results, 1);
  assert_string_equal(run->conditions.freeze, iteration.freeze ? iteration.freeze : "");
  sn_live live = run->results[0].live;
  sn_run_free(run);
  return live;
}

/* All but buffers, which are not modelled. */
static inline void check_live(const sn_live *live, const sn_live *want) {
  assert_int_equal(live->parameters, want->parameters);
  assert_int_equal(live->gradients, want->gradients);
  assert_int_equal(live->optimizer, want->optimizer);
  assert_int_equal(live->activations, want->activations);
  assert_int_equal(live->temporary, want->temporary);
}

#endif
