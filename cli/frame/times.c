/* What a screen says of times; see the header. */
#include "cli/frame/times.h"

#include "cli/frame/report.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/policy/strategy.h"

#include <string.h>

void sn_times_print(const sn_timed *rows, uint32_t count, FILE *out) {
  char text[SN_BANDS_TEXT];
  if (count > 0) sn_table_printf(out, "%s (docs/truth.md)\n", sn_band_of_times(rows, count, text));
}

void sn_times_print_unmeasured(FILE *out) {
  fputs("times: no measurement of this kind (docs/truth.md)\n", out);
}

bool sn_times_read(const char *strategy, const sn_conditions *conditions, sn_timed *timed) {
  sn_err unknown = SN_ERR_INIT;
  *timed = (sn_timed){.inference = conditions->inference, .several = *conditions->parallel != '\0'};
  return sn_strategy_parse(strategy, &timed->strategy, &unknown) == SN_OK &&
         sn_precision_parse(conditions->precision, &timed->precision, &unknown) == SN_OK;
}

void sn_times_print_run(const sn_run *run, FILE *out) {
  sn_timed rows[SN_ARGS_STRATEGIES];
  uint32_t count = 0;
  if (sn_net_is_recording(run->net)) return;
  for (uint32_t i = 0; i < run->n_results && count < SN_ARGS_STRATEGIES; i++) {
    if (!run->results[i].fits || !sn_times_read(run->results[i].strategy, &run->conditions, &rows[count])) continue;
    sn_timed_set_card(&rows[count], run->gpu);
    rows[count].tokens = sn_report_is_of_sequences(run);
    rows[count++].calibrated = strcmp(run->costs, "measured") == 0;
  }
  sn_times_print(rows, count, out);
}
