/* Recordings with blocks under checkpoints: what is alive at most, counted event by event, is what PyTorch's tracker has
 * seen of torch.utils.checkpoint (tests/record/data/expected.csv, tests/record/golden.py). */
#include "base/arena.h"
#include "models/record/checkpoint.h"
#include "tests/support/pipeline.h"
#include "tests/support/record_peak.h"

#include <stdio.h>
#include <string.h>

#define DATA SNSIM_SOURCE_DIR "/tests/record/data/"

enum { MOST = 64 };

/* The last iteration's, sums apart. */
static uint64_t peak_under(const sn_net *net, const sn_record_span *spans, uint32_t n_spans) {
  sn_arena *arena = sn_arena_new();
  assert_non_null(arena);
  const struct sn_recorded *made = sn_record_checkpoint(net->recorded, spans, n_spans, arena);
  assert_non_null(made);
  uint64_t peak = record_peak_from(made->record, made->first_event, net->batch, false);
  sn_arena_free(arena);
  return peak;
}

static uint64_t peak_under_all(const sn_net *net, bool selective) {
  sn_record_span spans[MOST];
  assert_true(net->recorded->n_regions <= MOST);
  for (uint32_t r = 0; r < net->recorded->n_regions; r++) spans[r] = (sn_record_span){r, r + 1, selective};
  return peak_under(net, spans, net->recorded->n_regions);
}

/* Blocks that nobody told are those of the row: named ones, Sequentials of layers, and those of a model that is a Sequential
 * itself. */
static void check_found(const char *told, unsigned batch, unsigned long units) {
  char spec[256];
  snprintf(spec, sizeof spec, "%.*s", (int)(strstr(told, ":units=") - told), told);
  sn_net *net = load_net(spec, batch);
  assert_int_equal(peak_under_all(net, false), units);
  sn_net_free(net);
}

/* "file,batch,apart,in place,globs,calls,units,selective"; several globs stand in quotation marks. False: it has none. */
static bool read_row(const char *line, char spec[256], unsigned *batch, unsigned long *units,
                     unsigned long *selective) {
  char file[64], globs[64] = "";
  int read = 0;
  assert_int_equal(sscanf(line, "%63[^,],%u,%*u,%*u,%n", file, batch, &read), 2);
  if (sscanf(line + read, "\"%63[^\"]\",%*u,%lu,%lu", globs, units, selective) < 3 &&
      sscanf(line + read, "%63[^,],%*u,%lu,%lu", globs, units, selective) < 3)
    return false;
  snprintf(spec, 256, DATA "%s:units=%s", file, globs);
  return true;
}

static void peaks_are_those_of_pytorch(void **state) {
  (void)state;
  FILE *in = fopen(DATA "expected.csv", "r");
  char line[256], spec[256];
  unsigned batch, rows = 0;
  unsigned long units, selective;
  assert_true(in && fgets(line, sizeof line, in));
  while (fgets(line, sizeof line, in)) {
    if (!read_row(line, spec, &batch, &units, &selective)) continue;
    sn_net *net = load_net(spec, batch);
    assert_int_equal(peak_under_all(net, false), units);
    assert_int_equal(peak_under_all(net, true), selective);
    sn_net_free(net);
    check_found(spec, batch, units);
    rows++;
  }
  fclose(in);
  assert_int_equal(rows, 24);
}

/* Two blocks in one checkpoint: checkpoint(lambda x: second(first(x)), x), measured as those of golden.py. */
static void blocks_side_by_side_are_one_checkpoint(void **state) {
  (void)state;
  static const struct {
    const char *file, *units;
    unsigned batch;
    uint64_t bytes;
  } seen[] = {{"transformer", "blocks.*", 2, 2682880},
              {"transformer", "blocks.*", 16, 6690856},
              {"scaled_cnn", "1,2", 2, 1116864},
              {"scaled_cnn", "1,2", 16, 8514240}};
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
    char spec[256];
    snprintf(spec, sizeof spec, DATA "%s.rec.gz:units=%s", seen[i].file, seen[i].units);
    sn_net *net = load_net(spec, seen[i].batch);
    const sn_record_span both = {0, 2, 0};
    assert_int_equal(net->recorded->n_regions, 2);
    assert_int_equal(peak_under(net, &both, 1), seen[i].bytes);
    sn_net_free(net);
  }
}

/* Without checkpoints it is the iteration as it was. */
static void without_blocks_nothing_changes(void **state) {
  (void)state;
  sn_net *net = load_net(DATA "dense.rec.gz", 16);
  const struct sn_recorded *w = net->recorded;
  assert_int_equal(peak_under(net, NULL, 0), record_peak_from(w->record, w->first_event, 16, false));
  sn_net_free(net);
}

/* Operations stand in order; those that run again know which they are, and the phases end where they did. */
static void operations_run_again_in_backward(void **state) {
  (void)state;
  sn_net *net = load_net(DATA "residual_cnn.rec.gz:units=1,2", 2);
  const struct sn_recorded *w = net->recorded;
  const sn_record_span spans[] = {{0, 1, 0}, {1, 2, 0}};
  sn_arena *arena = sn_arena_new();
  const struct sn_recorded *made = sn_record_checkpoint(w, spans, 2, arena);
  assert_non_null(made);
  assert_true(made->n_again > 0 && made->n_ops == w->n_ops + made->n_again);
  assert_int_equal(made->n_forward, w->n_forward);
  assert_int_equal(made->n_backward, w->n_backward + made->n_again);
  for (uint32_t i = 0, next = 0; i < made->n_ops; i++) {
    bool again = made->again[i] != SN_NONE;
    uint32_t index = again ? made->again[i] : next++;
    const sn_record_op *op = &made->record->ops[made->first_op + i], *old = &w->record->ops[w->first_op + index];
    assert_true(!again || (i >= made->n_forward && index < w->n_forward));
    assert_int_equal(op->kernel, old->kernel);
    assert_int_equal(op->n_makes, old->n_makes);
    assert_int_equal(made->layer[i], w->layer[index]);
  }
  sn_arena_free(arena);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(peaks_are_those_of_pytorch),
      cmocka_unit_test(blocks_side_by_side_are_one_checkpoint),
      cmocka_unit_test(without_blocks_nothing_changes),
      cmocka_unit_test(operations_run_again_in_backward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
