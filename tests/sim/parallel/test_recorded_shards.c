/* Recordings on several GPUs: live bytes of a rank are those of PyTorch's trackers on fakes of a GPU, of fully_shard and
 * of DDP (tests/record/data/expected_sharded.csv, by tests/record/golden.py), with blocks under checkpoints too; what
 * DDP adds; what is refused, with a reason. */
#include "tests/support/live_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA SNSIM_SOURCE_DIR "/tests/record/data/"

static sn_iteration on(const char *parallel) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {0};
  sn_mesh_parse(parallel, &iteration.mesh, &err);
  must(&err);
  return iteration;
}

static uint64_t total(sn_live l) {
  return l.parameters + l.buffers + l.gradients + l.optimizer + l.activations + l.temporary;
}

static sn_live live(const char *path, uint32_t batch, const char *strategy, const char *parallel) {
  sn_net *net = load_net(path, batch);
  sn_live found = live_of(path, net, strategy, on(parallel));
  sn_net_free(net);
  return found;
}

typedef struct expected {
  char file[64], mesh[32], globs[64];
  unsigned long apart, units; /* units: 0 where there are no blocks */
  uint32_t batch;
} expected;

/* A field ends at a comma, or stands in quotation marks; returns where the next one begins. */
static const char *read_field(const char *at, char *text, size_t room) {
  bool quoted = *at == '"';
  size_t length = strcspn(at + quoted, quoted ? "\"" : ",\n");
  assert_true(length < room);
  memcpy(text, at + quoted, length);
  text[length] = '\0';
  at += length + (quoted ? 2 : 0);
  return *at == ',' ? at + 1 : at;
}

/* "file,batch,mesh,globs,apart,units" */
static expected read_row(const char *line) {
  expected e = {0};
  char number[32];
  line = read_field(line, e.file, sizeof e.file);
  line = read_field(line, number, sizeof number);
  e.batch = (uint32_t)strtoul(number, NULL, 10);
  line = read_field(line, e.mesh, sizeof e.mesh);
  line = read_field(line, e.globs, sizeof e.globs);
  assert_true(sscanf(line, "%lu,%lu", &e.apart, &e.units) >= 1);
  return e;
}

static void live_bytes_are_those_of_pytorch(void **state) {
  (void)state;
  FILE *in = fopen(DATA "expected_sharded.csv", "r");
  char line[256], path[256];
  unsigned rows = 0;
  assert_true(in && fgets(line, sizeof line, in));
  for (; fgets(line, sizeof line, in); rows++) {
    const expected e = read_row(line);
    snprintf(path, sizeof path, *e.globs ? DATA "%s:units=%s" : DATA "%s", e.file, e.globs);
    assert_int_equal(total(live(path, e.batch, "pytorch-1.7", e.mesh)), e.apart);
    assert_true(total(live(path, e.batch, "pytorch", e.mesh)) <= e.apart); /* sums of gradients in place */
    if (e.units) assert_int_equal(total(live(path, e.batch, "pytorch-1.7+recompute=units", e.mesh)), e.units);
  }
  fclose(in);
  assert_true(rows == 19);
}

/* Buckets are as large as all gradients, and there all the time; where they are the gradients, as much again goes. */
static void ddp_has_buckets(void **state) {
  (void)state;
  static const char path[] = DATA "resnet18.rec.gz";
  const uint64_t bytes = UINT64_C(4) * 11689512;
  sn_live one = live(path, 8, "pytorch", "dp=1"), two = live(path, 8, "pytorch", "dp=2"),
          viewed = live(path, 8, "pytorch", "dp=2,view=yes");
  assert_int_equal(total(two), total(one) + bytes);
  assert_true(total(viewed) < total(two));
  assert_int_equal(two.parameters, bytes);
  assert_int_equal(live(path, 8, "pytorch", "fsdp=2").parameters, bytes / 2);
  assert_int_equal(live(path, 8, "pytorch", "fsdp=2").optimizer, bytes / 2);
}

static const struct {
  const char *file, *parallel, *why;
} refused[] = {
    {DATA "gan.rec.gz", "fsdp=4", "goes backward"},
    {DATA "accumulated.rec.gz", "dp=4", "goes backward"},
    {DATA "lstm.rec.gz", "fsdp=4", "shares a storage"},
    {SNSIM_SOURCE_DIR "/tests/fuzz/corpus/record/without_rows.rec", "fsdp=4", "record it again"},
    {SNSIM_SOURCE_DIR "/tests/fuzz/corpus/record/without_rows.rec", "dp=4", "record it again"},
};

static void what_cannot_be_shared_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_net(refused[i].file, 8);
    sn_device gpu = load_gpu("h200");
    sn_strategy s = parse_strategy("pytorch");
    sn_options options = SN_OPTIONS_INIT;
    options.iteration = on(refused[i].parallel);
    sn_run *run = sn_simulate(refused[i].file, net, &gpu, &s, 1, &options, &err);
    assert_null(run);
    assert_int_equal(err.code, SN_BAD_INPUT);
    assert_non_null(strstr(err.text, refused[i].why));
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(live_bytes_are_those_of_pytorch),
      cmocka_unit_test(ddp_has_buckets),
      cmocka_unit_test(what_cannot_be_shared_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
