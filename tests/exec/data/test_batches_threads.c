/* The prefetching thread: whatever the timing, next() gives what the source gives directly, rewind and free work in
 * every state, and sources do not disturb each other. ThreadSanitizer runs this. */
#include "exec/data/batch_source.h"
#include "tests/support/image_files.h"
#include "tests/support/seed.h"

#include <pthread.h>
#include <time.h>

static const sn_shape small = {8, 1, 6, 6};
enum { CLASSES = 4, COUNT = 50, STEPS = 4000, READERS = 4 };

typedef struct subject {
  const sn_net *net;
  sn__source direct;
  sn_batches *batches;
  float *data;
  int32_t *labels;
} subject;

/* Of the file, or synthetic where there is none. */
static subject open_subject(const char *path, const sn_net *net, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  subject s = {.net = net, .data = malloc(net->data_bytes), .labels = malloc(net->label_bytes)};
  if (path)
    sn__source_file(path, net, seed, &s.direct, &err);
  else
    sn__source_synthetic(net, seed, &s.direct, &err);
  s.batches = path ? sn_batches_open(path, net, seed, &err) : sn_batches_synthetic(net, seed, &err);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  return s;
}

static void close_subject(subject *s) {
  sn_batches_free(s->batches);
  sn__source_close(&s->direct);
  free(s->data);
  free(s->labels);
}

/* cmocka's asserts belong to the main thread. */
static bool is_same(subject *s, const sn_batch *got, uint64_t iteration) {
  sn_err err = SN_ERR_INIT;
  return got && s->direct.fill(s->direct.self, iteration, s->data, s->labels, &err) == SN_OK &&
         memcmp(got->data, s->data, s->net->data_bytes) == 0 &&
         memcmp(got->labels, s->labels, s->net->label_bytes) == 0;
}

static void dawdle(uint64_t *dice) {
  struct timespec t = {.tv_nsec = (long)prng_below(dice, 50000)};
  if (prng_chance(dice, 10)) nanosleep(&t, NULL);
}

/* Takes, looks, waits and goes back at random. Returns the step that went wrong, 0 for none. */
static uint32_t walk(subject *s, uint64_t *dice) {
  uint64_t iteration = 0;
  for (uint32_t step = 1; step <= STEPS; step++) {
    sn_err err = SN_ERR_INIT;
    dawdle(dice);
    if (prng_chance(dice, 15)) {
      sn_batches_rewind(s->batches, &err);
      iteration = 0;
      continue;
    }
    const sn_batch *got = sn_batches_next(s->batches, &err);
    dawdle(dice); /* the next one must not be written into this one */
    if (!is_same(s, got, iteration++)) return step;
  }
  return 0;
}

static void random_walks(void **state) {
  uint64_t dice = first_seed(5);
  sn_net *net = image_net(small, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_U8, COUNT, small, CLASSES));
  for (int synthetic = 0; synthetic < 2; synthetic++) {
    subject s = open_subject(synthetic ? NULL : path_of(*state, "a.sni"), net, 3);
    assert_int_equal(walk(&s, &dice), 0);
    close_subject(&s);
  }
  sn_net_free(net);
}

typedef struct reader {
  subject subject;
  uint64_t dice;
  uint32_t wrong;
} reader;

static void *read_all(void *self) {
  reader *r = self;
  r->wrong = walk(&r->subject, &r->dice);
  return NULL;
}

static void several_at_once(void **state) {
  uint64_t dice = first_seed(6);
  sn_net *net = image_net(small, CLASSES);
  reader readers[READERS];
  pthread_t threads[READERS];
  write_and_free(*state, "a.sni", own_file(OWN_F32, COUNT, small, CLASSES));
  for (uint32_t i = 0; i < READERS; i++)
    readers[i] = (reader){open_subject(path_of(*state, "a.sni"), net, i), prng_next(&dice), 0};
  for (uint32_t i = 0; i < READERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
  for (uint32_t i = 0; i < READERS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(readers[i].wrong, 0);
    close_subject(&readers[i].subject);
  }
  sn_net_free(net);
}

/* Opened, brought into a state at random, freed there. */
static void freed_in_every_state(void **state) {
  sn_err err = SN_ERR_INIT;
  uint64_t dice = first_seed(7);
  sn_net *net = image_net(small, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_U8, COUNT, small, CLASSES));
  for (uint32_t i = 0; i < 300; i++) {
    sn_batches *b = i % 2 ? open_batches(*state, "a.sni", net, i) : sn_batches_synthetic(net, i, &err);
    for (uint32_t taken = prng_below(&dice, 4); taken > 0; taken--) next_batch(b);
    if (prng_chance(&dice, 40)) rewind_batches(b);
    dawdle(&dice);
    sn_batches_free(b);
  }
  sn_net_free(net);
}

/* A file that breaks while it is read: the error comes, a mended file works again after a rewind. */
static void errors_of_the_thread(void **state) {
  sn_net *net = image_net(small, CLASSES);
  sn_err err = SN_ERR_INIT;
  write_and_free(*state, "a.sni", own_file(OWN_U8, COUNT, small, CLASSES));
  sn_batches *b = open_batches(*state, "a.sni", net, 1);
  write_and_free(*state, "a.sni", own_file(OWN_U8, COUNT + 1, small, CLASSES));
  for (uint32_t taken = 0; taken < 3 && err.code == SN_OK; taken++) sn_batches_next(b, &err);
  assert_error(&err, SN_BAD_FILE, "changed");
  rewind_batches(b);
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_batches_next(b, &err));
  rewind_batches(b); /* freed while it tries again */
  sn_batches_free(b);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST_IN_PLACE(random_walks),
      TEST_IN_PLACE(several_at_once),
      TEST_IN_PLACE(freed_in_every_state),
      TEST_IN_PLACE(errors_of_the_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
