/* Runtimes; see the header. */
#include "sim/policy/runtime.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *title;
} runtimes[SN_RUNTIMES] = {
    [SN_RUNTIME_DEFAULT] = {"", "PyTorch"},
    [SN_RUNTIME_PYTORCH] = {"pytorch", "PyTorch"},
    [SN_RUNTIME_SUPERNEURONS] = {"superneurons", "SuperNeurons"},
    [SN_RUNTIME_MXNET] = {"mxnet", "MXNet"},
    [SN_RUNTIME_SINGA] = {"singa", "SINGA"},
    [SN_RUNTIME_ALL] = {"all", "PyTorch"},
};

const char *sn_runtime_name(sn_runtime runtime) {
  return runtimes[runtime].name;
}

const char *sn_runtime_title(sn_runtime runtime) {
  return runtimes[runtime].title;
}

sn_status sn_runtime_parse(const char *text, sn_runtime *runtime, sn_err *err) {
  for (int r = SN_RUNTIME_PYTORCH; r < SN_RUNTIMES; r++) {
    if (strcmp(text, runtimes[r].name) != 0) continue;
    *runtime = (sn_runtime)r;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE,
                 "unknown runtime \"%.80s\"; it is one of pytorch, superneurons, mxnet, singa and all", text);
}

sn_runtime sn_runtime_of(sn_strategy strategy) {
  static const sn_runtime of[SN_DIALECTS] = {[SN_DIALECT_SUPERNEURONS] = SN_RUNTIME_SUPERNEURONS,
                                             [SN_DIALECT_EXPLICIT] = SN_RUNTIME_MXNET,
                                             [SN_DIALECT_PYTORCH] = SN_RUNTIME_PYTORCH,
                                             [SN_DIALECT_PYTORCH_1_7] = SN_RUNTIME_PYTORCH,
                                             [SN_DIALECT_SINGA] = SN_RUNTIME_SINGA};
  return of[strategy.dialect];
}

sn_runtime sn_runtime_of_all(const sn_strategy *strategies, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (sn_runtime_of(strategies[i]) != sn_runtime_of(strategies[0])) return SN_RUNTIME_ALL;
  return count > 0 ? sn_runtime_of(strategies[0]) : SN_RUNTIME_ALL;
}

static bool is_of(sn_runtime runtime, sn_strategy strategy) {
  return runtime == SN_RUNTIME_ALL || sn_runtime_of(strategy) == runtime ||
         (runtime == SN_RUNTIME_DEFAULT && strategy.recompute == SN_RECOMPUTE_NONE &&
          strategy.offload == SN_OFFLOAD_NONE && strategy.dialect == SN_DIALECT_PYTORCH);
}

uint32_t sn_runtime_strategies(sn_runtime runtime, sn_iteration iteration, sn_strategy *strategies) {
  const sn_strategy first = sn_strategy_default(0);
  bool both = runtime == SN_RUNTIME_DEFAULT && !sn_strategy_refuses(first, iteration);
  uint32_t count = 0;
  if (runtime == SN_RUNTIME_DEFAULT && !both) runtime = SN_RUNTIME_PYTORCH;
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++) {
    sn_strategy s = sn_strategy_framework(i);
    bool current = s.dialect != SN_DIALECT_PYTORCH_1_7 || runtime == SN_RUNTIME_ALL;
    if (current && is_of(runtime, s) && !sn_strategy_refuses(s, iteration)) strategies[count++] = s;
  }
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    sn_strategy s = sn_strategy_default(i);
    if ((both || is_of(runtime, s)) && !sn_strategy_refuses(s, iteration)) strategies[count++] = s;
  }
  return count;
}
