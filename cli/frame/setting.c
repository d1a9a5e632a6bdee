/* The end of a question's head; see the header. */
#include "cli/frame/setting.h"

#include "cli/options/table.h"

void sn_print_setting(const sn_run *run, FILE *f) {
  if (*run->conditions.freeze) sn_table_printf(f, ", frozen: %s", run->conditions.freeze);
  if (*run->conditions.host_us) sn_table_printf(f, ", host %s us", run->conditions.host_us);
  if (run->conditions.inference) fputs(", run and not trained", f);
  fputs(", on ", f);
  sn_table_print_clean(f, run->gpu);
}
