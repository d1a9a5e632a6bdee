/* Runtime: in whose training loop a question is asked, `--for` on the command line. It says which strategies are tried
 * where none is named, and whose verdict an answer is: a verdict of one runtime never comes from strategies of another.
 */
#ifndef SN_SIM_POLICY_RUNTIME_H
#define SN_SIM_POLICY_RUNTIME_H

#include "base/err.h"
#include "sim/graph/iteration.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

typedef enum sn_runtime {
  SN_RUNTIME_DEFAULT, /* nobody said: PyTorch's verdict, and SuperNeurons' rows where they can be asked for */
  SN_RUNTIME_PYTORCH,
  SN_RUNTIME_SUPERNEURONS,
  SN_RUNTIME_MXNET, /* the graph explicit */
  SN_RUNTIME_SINGA,
  SN_RUNTIME_ALL, /* PyTorch's verdict, and the rows of all */
  SN_RUNTIMES
} sn_runtime;

/* "pytorch", ..; "" for the default. Parsing an unknown name is SN_BAD_USAGE, with all of them. */
const char *sn_runtime_name(sn_runtime runtime);
sn_status sn_runtime_parse(const char *text, sn_runtime *runtime, sn_err *err);

/* As people write it: "PyTorch". */
const char *sn_runtime_title(sn_runtime runtime);

/* Whose strategy it is: one of the four in the middle. Published systems are SuperNeurons' comparisons, and its. */
sn_runtime sn_runtime_of(sn_strategy strategy);
/* Of all of them; SN_RUNTIME_ALL where they are of several. */
sn_runtime sn_runtime_of_all(const sn_strategy *strategies, uint32_t count);

/* The strategies that a runtime is asked about where none is named, without those that refuse the iteration; into
 * `strategies` of SN_RUNTIME_STRATEGIES. Returns how many. */
enum { SN_RUNTIME_STRATEGIES = 32 };
uint32_t sn_runtime_strategies(sn_runtime runtime, sn_iteration iteration, sn_strategy *strategies);

#endif
