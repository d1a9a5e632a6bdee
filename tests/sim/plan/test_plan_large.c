/* A plan file larger than any other kind of file may be: checked and played in memory of a few times its size, and what
 * is wrong far behind has its line. */
#include "models/zoo/zoo.h"
#include "sim/ask/plan_file.h"
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char path[] = "test_plan_large.json";

static long write_plan(const sn_device *device) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  sn_net *net = sn_net_load("resnet:n1=6,n2=32,n3=4000,n4=6", 1, 0, &err);
  FILE *out = fopen(path, "w");
  must(&err);
  assert_non_null(out);
  sn_simulate_write_plan(net, device, parse_strategy("superneurons"), &options, out, &err);
  must(&err);
  long bytes = ftell(out);
  assert_int_equal(fclose(out), 0);
  sn_net_free(net);
  return bytes;
}

static void is_checked_and_played(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device device = load_gpu("k40c");
  sn_timeline *timeline;
  long bytes = write_plan(&device);
  assert_true(bytes > SN_JSON_MAX_BYTES);
  sn_plan_file *file = sn_plan_file_load(path, &err);
  must(&err);
  sn_plan_file_check(file, NULL, &device, &err);
  must(&err);
  assert_true(file->plan->n_instrs > 500000);
  sn_run *run = sn_plan_file_play(file, &device, &timeline, &err);
  must(&err);
  assert_true(run->results[0].iteration_ns > 0);
  struct rusage use;
  assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
  print_message("%ld MiB of plan, %ld MiB of memory\n", bytes >> 20, use.ru_maxrss >> 10);
  if (!SANITIZED) assert_true(use.ru_maxrss < 4 * (bytes >> 10)); /* the tree of its values alone takes 8 */
  sn_timeline_free(timeline);
  sn_run_free(run);
  sn_plan_file_free(file);
}

/* The last but one line of instructions is no instruction any more. */
static unsigned damage_end(void) {
  char line[400];
  unsigned lines = 0;
  long at = 0, last = 0;
  FILE *f = fopen(path, "r+");
  assert_non_null(f);
  for (unsigned n = 1; fgets(line, sizeof line, f); n++, at = ftell(f))
    if (strncmp(line, "{\"do\": \"compute\"", 16) == 0) last = at, lines = n;
  assert_int_equal(fseek(f, last + 8, SEEK_SET), 0);
  assert_int_equal(fputc('k', f), 'k');
  assert_int_equal(fclose(f), 0);
  return lines;
}

static void what_is_wrong_has_its_line(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  char wanted[100];
  sn_device device = load_gpu("k40c");
  snprintf(wanted, sizeof wanted, "%s:%u: unknown \"do\" \"kompute\"", path, damage_end());
  sn_plan_file *file = sn_plan_file_load(path, &err);
  must(&err);
  assert_int_equal(sn_plan_file_check(file, NULL, &device, &err), SN_BAD_INPUT);
  if (strncmp(err.text, wanted, strlen(wanted)) != 0) fail_msg("wanted \"%s\", got \"%s\"", wanted, err.text);
  sn_plan_file_free(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_checked_and_played),
                                     cmocka_unit_test(what_is_wrong_has_its_line)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
