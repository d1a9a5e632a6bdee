/* Fuzz target: DTR's logs. Whatever the bytes, there is a program or an error that says where; a program is played
 * under every heuristic, with little memory, and keeps its promises. */
#include "tests/fuzz/fuzz.h"

#include "sim/dtr/dtr.h"
#include "sim/dtr/dtr_log.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 200 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void play(const sn_dtr_program *p) {
  uint64_t baseline;
  sn_err err = SN_ERR_INIT;
  require(sn_dtr_baseline(p, &baseline, &err) == SN_OK && baseline <= p->bytes + SN_DTR_MOST);
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS; h++) {
    sn_dtr_question q = {.heuristic = h, .budget_bytes = baseline / 2, .remake_limit_ns = p->cost_ns};
    sn_dtr_answer a;
    require(sn_dtr_play(p, &q, &a, &err) == SN_OK);
    require(a.peak_bytes <= q.budget_bytes && a.clock_ns <= 1 + 3 * p->cost_ns);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_dtr_program *p = sn_dtr_log_parse("fuzz.log", (const char *)data, size, &err);
  require((p != NULL) == (err.code == SN_OK));
  require(p || strncmp(err.text, "fuzz.log:", 9) == 0);
  if (p && p->n_ops <= FEW) play(p);
  sn_dtr_program_free(p);
  return 0;
}
