/* What changed between two runs, as tables and as JSON: what `snsim diff` prints (cli/commands/diff.c, diff_json.c). */
#ifndef SN_CLI_COMMANDS_DIFFERENCE_H
#define SN_CLI_COMMANDS_DIFFERENCE_H

#include "base/err.h"
#include "cli/frame/fields.h"
#include "cli/options/out.h"
#include "sim/ask/run.h"
#include "sim/capacity/compare.h"

typedef struct sn_difference {
  const sn_run *before, *after;
  sn_compare_pair *pairs; /* those that were asked for */
  uint32_t n_pairs;
  sn_arena *arena;
} sn_difference;

/* Whether the runs' questions differ in a field of sn_run_fields. */
bool sn_difference_asked(const sn_difference *difference, const sn_field *field);

/* What people call the field where it is another name: the height of a run of tokens is its "sequence". Else NULL. */
const char *sn_difference_alias(const sn_difference *difference, const sn_field *field);

/* docs/json.md describes it. */
sn_status sn_difference_write_json(const sn_difference *difference, FILE *out, sn_err *err);

#endif
