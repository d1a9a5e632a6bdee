/* Recordings with something wrong: lines left out, doubled or swapped, numbers changed. Each is refused with a reason,
 * or it is a recording all the same, whose plans are proved. */
#include "models/record/record_net.h"
#include "models/zoo/zoo_internal.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include "sim/ask/simulate.h"

#include <ctype.h>
#include <stdio.h>
#include <zlib.h>

#define DATA SNSIM_SOURCE_DIR "/tests/record/data/"

enum { ROOM = 1 << 20 };

typedef struct text {
  char *bytes;
  size_t size;
} text;

static text read_file(const char *name) {
  char path[256];
  snprintf(path, sizeof path, DATA "%s", name);
  gzFile file = gzopen(path, "rb");
  text t = {malloc(ROOM + 64), 0};
  assert_true(file && t.bytes);
  int got = gzread(file, t.bytes, ROOM);
  assert_true(got > 0 && got < ROOM);
  gzclose(file);
  t.size = (size_t)got;
  return t;
}

/* Where line number `line` begins. */
static size_t line_at(const text *t, uint32_t line) {
  size_t at = 0;
  for (uint32_t i = 0; i < line && at < t->size; i++) {
    while (at < t->size && t->bytes[at] != '\n') at++;
    at += at < t->size;
  }
  return at;
}

static uint32_t count_lines(const text *t) {
  uint32_t lines = 0;
  for (size_t i = 0; i < t->size; i++) lines += t->bytes[i] == '\n';
  return lines;
}

static void leave_out(text *t, uint32_t line) {
  size_t from = line_at(t, line), to = line_at(t, line + 1);
  memmove(t->bytes + from, t->bytes + to, t->size - to);
  t->size -= to - from;
}

/* With the one behind it. */
static void swap(text *t, uint32_t line) {
  size_t a = line_at(t, line), b = line_at(t, line + 1), c = line_at(t, line + 2);
  char *kept = malloc(b - a + 1);
  assert_non_null(kept);
  memcpy(kept, t->bytes + a, b - a);
  memmove(t->bytes + a, t->bytes + b, c - b);
  memcpy(t->bytes + a + (c - b), kept, b - a);
  free(kept);
}

/* A digit somewhere. */
static void change_digit(text *t, uint64_t *dice) {
  size_t at = prng_below(dice, (uint32_t)t->size);
  for (size_t i = 0; i < t->size; i++, at = (at + 1) % t->size) {
    if (!isdigit((unsigned char)t->bytes[at])) continue;
    t->bytes[at] = (char)('0' + prng_below(dice, 10));
    return;
  }
}

static void damage(text *t, uint64_t *dice) {
  uint32_t lines = count_lines(t), line = prng_from(dice, 6, lines > 9 ? lines - 3 : 6);
  switch (prng_below(dice, 4)) {
  case 0:
    leave_out(t, line);
    break;
  case 1:
    swap(t, line);
    break;
  default:
    change_digit(t, dice);
  }
}

static void plan(const sn_net *net, const char *name, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("k40c");
  sn_strategy strategy = parse_strategy(name);
  sn_options options = SN_OPTIONS_INIT;
  sn_run *run = sn_simulate("damaged.rec", net, &gpu, &strategy, 1, &options, &err);
  if (err.code == SN_BUG) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, name, err.text);
  sn_run_free(run);
}

static void damaged_recordings_are_refused_or_planned(void **state) {
  (void)state;
  static const char *const files[] = {"small_cnn.rec.gz", "transformer.rec.gz", "gan.rec.gz", "residual_cnn.rec.gz",
                                      "dense.rec.gz"};
  static const char *const names[] = {
      "pytorch",      "pytorch+recompute=units",  "pytorch+recompute=optimal", "pytorch+offload",
      "superneurons", "liveness+recompute=memory"};
  uint64_t first = first_seed(1);
  uint32_t planned = 0, cases = case_count(2000);
  for (uint32_t i = 0; i < cases; i++) {
    uint64_t dice = first + i;
    sn_err err = SN_ERR_INIT;
    text t = read_file(files[i % 5]);
    for (uint32_t n = prng_from(&dice, 1, 3); n > 0; n--) damage(&t, &dice);
    sn_net *net = sn__net_from_recorded("damaged.rec", t.bytes, t.size, 2, &err);
    if (!net && *err.text == '\0') fail_msg("seed %llu: refused without a reason", (unsigned long long)(first + i));
    if (net) plan(net, names[prng_below(&dice, 6)], first + i);
    planned += net != NULL;
    sn_net_free(net);
    free(t.bytes);
  }
  print_message("%u of %u were planned\n", planned, cases);
  assert_true(planned > cases / 20 && planned < cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_recordings_are_refused_or_planned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
