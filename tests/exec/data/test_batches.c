/* Batches: what comes out of synthetic ones and of image files of both forms, in which order, and what is said of files
 * that change. Files that are refused from the start are in test_image_set.c. */
#include "exec/data/batch_source.h"
#include "exec/data/random.h"
#include "tests/support/image_files.h"

#include <math.h>

static const sn_shape small = {5, 1, 2, 3}, two_channels = {5, 2, 2, 3};
enum { CLASSES = 4, PIXELS = 6 };

/* Which image of an f32 file this is; its pixels must all be its own, and its label too. */
static uint32_t identify(const sn_batch *batch, uint32_t k) {
  const float *data = batch->data + (size_t)k * PIXELS;
  uint32_t image = (uint32_t)(data[0] / 1000);
  for (uint32_t j = 0; j < PIXELS; j++) assert_true(data[j] == (float)(1000 * image + j));
  assert_int_equal(batch->labels[k], image % CLASSES);
  return image;
}

/* Takes the batches of one epoch and counts how often each image is in them. */
static void take_epoch(sn_batches *b, uint32_t batch, uint32_t count, uint32_t *times, uint32_t *order) {
  for (uint32_t i = 0; i < count / batch; i++) {
    const sn_batch *got = next_batch(b);
    for (uint32_t k = 0; k < batch; k++) {
      uint32_t image = identify(got, k);
      assert_true(image < count);
      times[image]++;
      order[i * batch + k] = image;
    }
  }
}

static void an_epoch_has_every_image_once(void **state) {
  sn_net *net = image_net(small, CLASSES);
  uint32_t order[2][60], moved = 0;
  write_and_free(*state, "a.sni", own_file(OWN_F32, 60, small, CLASSES));
  sn_batches *b = open_batches(*state, "a.sni", net, 1);
  for (uint32_t epoch = 0; epoch < 20; epoch++) {
    uint32_t times[60] = {0};
    take_epoch(b, small.n, 60, times, order[epoch % 2]);
    for (uint32_t i = 0; i < 60; i++) assert_int_equal(times[i], 1);
    if (epoch > 0) assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    for (uint32_t i = 0; i < 60; i++) moved += order[epoch % 2][i] != i;
  }
  assert_true(moved > 20 * 50);
  sn_batches_free(b);
  sn_net_free(net);
}

/* 13 images in batches of 5: three wait each epoch, not always the same. */
static void what_is_left_over_waits(void **state) {
  sn_net *net = image_net(small, CLASSES);
  uint32_t all[13] = {0}, order[13];
  write_and_free(*state, "a.sni", own_file(OWN_F32, 13, small, CLASSES));
  sn_batches *b = open_batches(*state, "a.sni", net, 3);
  for (uint32_t epoch = 0; epoch < 40; epoch++) {
    uint32_t times[13] = {0};
    take_epoch(b, small.n, 13, times, order);
    for (uint32_t i = 0; i < 13; i++) {
      assert_true(times[i] <= 1);
      all[i] += times[i];
    }
  }
  for (uint32_t i = 0; i < 13; i++) assert_in_range(all[i], 20, 39);
  sn_batches_free(b);
  sn_net_free(net);
}

static void one_batch_may_be_all(void **state) {
  sn_net *net = image_net(small, CLASSES);
  uint32_t times[5] = {0}, order[5];
  write_and_free(*state, "a.sni", own_file(OWN_F32, 5, small, CLASSES));
  sn_batches *b = open_batches(*state, "a.sni", net, 1);
  for (uint32_t epoch = 0; epoch < 8; epoch++) take_epoch(b, 5, 5, times, order);
  for (uint32_t i = 0; i < 5; i++) assert_int_equal(times[i], 8);
  sn_batches_free(b);
  sn_net_free(net);
}

/* By the definition, in double: mean and standard deviation of each channel of the 40 images. */
static void expected_statistics(double *mean, double *deviation) {
  enum { COUNT = 40, PLANE = 6 };
  for (uint32_t c = 0; c < 2; c++) {
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < COUNT * PLANE; i++) sum += pixel_byte(i / PLANE, c * PLANE + i % PLANE);
    mean[c] = sum / (COUNT * PLANE);
    for (uint32_t i = 0; i < COUNT * PLANE; i++)
      squares += pow(pixel_byte(i / PLANE, c * PLANE + i % PLANE) - mean[c], 2);
    deviation[c] = sqrt(squares / (COUNT * PLANE));
  }
}

/* Finds the image in the batch by its first pixel and label, then compares all of it. */
static void check_normalised(const sn_batch *got, uint32_t k, const double *mean, const double *deviation) {
  const float *data = got->data + (size_t)k * 12;
  for (uint32_t image = 0; image < 40; image++) {
    uint32_t j = 0;
    while (j < 12 && fabs((pixel_byte(image, j) - mean[j / 6]) / deviation[j / 6] - (double)data[j]) < 1e-5) j++;
    if (j == 12 && got->labels[k] == (int32_t)(image % CLASSES)) return;
  }
  fail_msg("no image of the file is like this one");
}

static void both_forms_give_the_same_normalised_pixels(void **state) {
  sn_net *net = image_net(two_channels, CLASSES);
  double mean[2], deviation[2];
  expected_statistics(mean, deviation);
  write_and_free(*state, "a.sni", own_file(OWN_U8, 40, two_channels, CLASSES));
  write_idx(*state, 40, two_channels, CLASSES);
  sn_batches *own = open_batches(*state, "a.sni", net, 1), *idx = open_batches(*state, "a-images.idx", net, 1);
  for (uint32_t i = 0; i < 20; i++) {
    const sn_batch *a = next_batch(own), *b = next_batch(idx);
    assert_memory_equal(a->data, b->data, net->data_bytes);
    assert_memory_equal(a->labels, b->labels, net->label_bytes);
    for (uint32_t k = 0; k < two_channels.n; k++) check_normalised(a, k, mean, deviation);
  }
  sn_batches_free(own);
  sn_batches_free(idx);
  sn_net_free(net);
}

static void a_channel_of_one_value_is_0(void **state) {
  sn_net *net = image_net(small, CLASSES);
  image_file f = own_file(OWN_U8, 9, small, CLASSES);
  memset(f.bytes + OWN_LABELS + 4 * 9, 200, 9 * PIXELS);
  write_and_free(*state, "a.sni", f);
  sn_batches *b = open_batches(*state, "a.sni", net, 1);
  const sn_batch *got = next_batch(b);
  for (uint32_t j = 0; j < small.n * PIXELS; j++) assert_true(got->data[j] == 0);
  sn_batches_free(b);
  sn_net_free(net);
}

static void idx_names(void **state) {
  static const char *const pairs[][2] = {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
                                         {"images.idx3", "labels.idx1"},
                                         {"images-images", "images-labels"},
                                         {"my images.bin", "my labels.bin"}};
  sn_net *net = image_net(small, CLASSES);
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    write_and_free(*state, pairs[i][0], idx_images(6, small));
    write_and_free(*state, pairs[i][1], idx_labels(6, CLASSES));
    sn_batches_free(open_batches(*state, pairs[i][0], net, 1));
  }
  sn_net_free(net);
}

static void names_say_what_it_is(void **state) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = image_net(small, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_U8, 9, small, CLASSES));
  write_and_free(*state, "b\n-images", idx_images(9, small));
  write_and_free(*state, "b\n-labels", idx_labels(9, 3));
  sn_batches *own = open_batches(*state, "a.sni", net, 1), *idx = open_batches(*state, "b\n-images", net, 1);
  sn_batches *synthetic = sn_batches_synthetic(net, 1, &err);
  assert_string_equal(sn_batches_name(own), "a.sni (9 images, 4 classes)");
  assert_string_equal(sn_batches_name(idx), "b?-images (9 images, 3 classes)");
  assert_string_equal(sn_batches_name(synthetic), "synthetic");
  sn_batches_free(own);
  sn_batches_free(idx);
  sn_batches_free(synthetic);
  sn_batches_free(NULL);
  sn_net_free(net);
}

static void seeds_change_the_order(void **state) {
  sn_net *net = image_net(small, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_F32, 60, small, CLASSES));
  sn_batches *a = open_batches(*state, "a.sni", net, 1), *same = open_batches(*state, "a.sni", net, 1),
             *other = open_batches(*state, "a.sni", net, 2);
  for (uint32_t i = 0; i < 30; i++) {
    const sn_batch *x = next_batch(a), *y = next_batch(same), *z = next_batch(other);
    assert_memory_equal(x->data, y->data, net->data_bytes);
    assert_memory_not_equal(x->data, z->data, net->data_bytes);
  }
  sn_batches_free(a);
  sn_batches_free(same);
  sn_batches_free(other);
  sn_net_free(net);
}

/* The first numbers of seed 1, which stored losses rest on, and that labels stay within the classes. */
static void synthetic_batches_are_what_they_were(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = image_net(small, CLASSES);
  sn_batches *b = sn_batches_synthetic(net, 1, &err);
  const sn_batch *got = next_batch(b);
  uint64_t pixels = sn__random_key(sn__random_key(1, UINT64_C(1) << 30), 0),
           labels = sn__random_key(sn__random_key(1, (UINT64_C(1) << 30) + 1), 0);
  for (uint32_t i = 0; i < small.n * PIXELS; i++) assert_true(got->data[i] == sn__random_normal(pixels, i));
  for (uint32_t i = 0; i < small.n; i++) assert_int_equal(got->labels[i], sn__random(labels, i) % CLASSES);
  sn_batches_free(b);
  sn_net_free(net);
}

/* What became of a file during the training is reported when a batch is asked for, again and again. */
static void a_changed_file_is_reported(void **state) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = image_net(small, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_F32, 20, small, CLASSES));
  sn_batches *b = open_batches(*state, "a.sni", net, 1);
  next_batch(b);
  assert_int_equal(truncate(path_of(*state, "a.sni"), 100), 0);
  const sn_batch *got = sn_batches_next(b, &err); /* prepared before the change, or not */
  if (got) assert_null(sn_batches_next(b, &err));
  assert_error(&err, SN_BAD_FILE, "changed");
  for (int i = 0; i < 3; i++) {
    err = (sn_err)SN_ERR_INIT;
    assert_null(sn_batches_next(b, &err));
    assert_error(&err, SN_BAD_FILE, "a.sni");
    if (i == 1) rewind_batches(b);
  }
  sn_batches_free(b);
  sn_net_free(net);
}

static void places_are_a_permutation(void **state) {
  (void)state;
  for (uint64_t count = 1; count < 300; count++)
    for (uint64_t key = 0; key < 5; key++) {
      bool seen[300] = {false};
      for (uint64_t i = 0; i < count; i++) {
        uint64_t at = sn__random_place(sn__random_key(key, 0), count, i);
        assert_true(at < count && !seen[at]);
        seen[at] = true;
      }
    }
}

/* Any number is as likely as any other at any place: 10 000 throws, each count within 6 standard deviations of 1000. */
static void places_are_even(void **state) {
  (void)state;
  uint32_t times[10][10] = {{0}};
  for (uint64_t key = 0; key < 10000; key++)
    for (uint64_t i = 0; i < 10; i++) times[i][sn__random_place(sn__random_key(key, 7), 10, i)]++;
  for (uint32_t i = 0; i < 100; i++) assert_in_range(times[i / 10][i % 10], 820, 1180);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST_IN_PLACE(an_epoch_has_every_image_once),
      TEST_IN_PLACE(what_is_left_over_waits),
      TEST_IN_PLACE(one_batch_may_be_all),
      TEST_IN_PLACE(both_forms_give_the_same_normalised_pixels),
      TEST_IN_PLACE(a_channel_of_one_value_is_0),
      TEST_IN_PLACE(idx_names),
      TEST_IN_PLACE(names_say_what_it_is),
      TEST_IN_PLACE(seeds_change_the_order),
      cmocka_unit_test(synthetic_batches_are_what_they_were),
      TEST_IN_PLACE(a_changed_file_is_reported),
      cmocka_unit_test(places_are_a_permutation),
      cmocka_unit_test(places_are_even),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
