/* For tests of the store's file: a folder of their own, and making, reading and refusing a store in it. */
#ifndef SN_TESTS_DB_STORE_PLACE_H
#define SN_TESTS_DB_STORE_PLACE_H

#include "db/store_internal.h"
#include "tests/db/sample_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEED = 77 };

typedef struct scratch {
  char folder[32], file[64];
} scratch;

static inline int setup(void **state) {
  scratch *place = calloc(1, sizeof *place);
  *state = place;
  strcpy(place->folder, "/tmp/test_store.XXXXXX");
  if (!mkdtemp(place->folder)) return -1;
  snprintf(place->file, sizeof place->file, "%s/runs.db", place->folder);
  return 0;
}

static inline int teardown(void **state) {
  scratch *place = *state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", place->folder);
  int rc = system(command);
  free(place);
  return rc;
}

static inline void assert_status(sn_status want, const sn_err *err, const char *words) {
  if (err->code != want || !strstr(err->text, words)) print_error("%s: %s\n", sn_status_name(err->code), err->text);
  assert_int_equal(err->code, want);
  assert_non_null(strstr(err->text, words));
}

static inline sn_store *open_good(const char *path) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(path, &err);
  assert_status(SN_OK, &err, "");
  return store;
}

static inline void put_sample(sn_store *store, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  int64_t id;
  sn_run *run = sample_run(seed, 30);
  sn_store_put(store, run, &id, &err);
  assert_status(SN_OK, &err, "");
  sn_run_free(run);
}

static inline void make_file(const char *path, uint64_t runs) {
  sn_store *store = open_good(path);
  for (uint64_t i = 0; i < runs; i++) put_sample(store, SEED + i);
  sn_store_close(store);
}

static inline void refuse_open(const char *path, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_store_open(path, &err));
  assert_status(code, &err, words);
  assert_non_null(strstr(err.text, "--db FILE"));
}

static inline void refuse_read(const char *path, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_store_open_read(path, &err));
  assert_status(code, &err, words);
}

static inline void refuse_both(const char *path, sn_status code, const char *words) {
  refuse_open(path, code, words);
  refuse_read(path, code, words);
}

static inline char *slurp(const char *path, size_t *bytes) {
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  char *text = malloc(1 << 20);
  *bytes = fread(text, 1, 1 << 20, in);
  fclose(in);
  return text;
}

static inline void spill(const char *path, const void *data, size_t bytes) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(data, 1, bytes, out), bytes);
  assert_int_equal(fclose(out), 0);
}

/* The text stored for the sample whose seed the run's net names. */
static inline bool is_sample(const sn_run *got) {
  uint64_t seed = strtoull(got->net + strlen("sample:"), NULL, 10);
  sn_run *want = sample_run(seed, 30);
  char *a = dump_run(want), *b = dump_run(got);
  bool same = strcmp(a, b) == 0;
  free(a);
  free(b);
  sn_run_free(want);
  return same;
}

/* What can be read of a damaged file is what was put; the rest is refused. */
static inline bool reads_or_refuses(const char *path, int64_t runs) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open_read(path, &err);
  bool all = store != NULL;
  for (int64_t id = 1; store && id <= runs; id++) {
    err = (sn_err)SN_ERR_INIT;
    sn_run *run = sn_store_get(store, id, &err);
    if (run && !is_sample(run)) fail_msg("run %d came back changed", (int)id);
    all = all && run;
    sn_run_free(run);
    if (err.code != SN_OK) assert_status(SN_BAD_INPUT, &err, "");
  }
  if (!store) assert_status(SN_BAD_INPUT, &err, "");
  sn_store_close(store);
  return all;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
