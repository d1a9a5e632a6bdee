/* Image files that are refused, each with words that say why: damaged headers, sizes that do not add up, labels that
 * are no class, images that cannot be combined with the net, things that are no regular file. */
#include "tests/support/image_files.h"

#include <sys/stat.h>

static const sn_shape small = {5, 1, 2, 3};
enum { CLASSES = 4, COUNT = 9 };

typedef struct change {
  size_t at;
  uint32_t value;
  const char *words;
} change;

/* Each change of one 32-bit number of snsim's form is an error of its own. */
static void own_headers(void **state) {
  static const change changes[] = {
      {0, 0x494e5388, "is no image set"},
      {4, 0x0a0a1a0a, "is no image set"}, /* as text that went through another system */
      {8, 0, "is of version 0; this snsim reads version 1"},
      {8, 2, "is of version 2"},
      {12, 0, "pixel type is 0"},
      {12, 3, "pixel type is 3"},
      {16, 0, "holds no images (0 of 1x2x3)"},
      {16, 10, "is cut short: it has 130 bytes, by its header it needs 140"},
      {16, 8, "has 10 bytes more than its header says"},
      {20, 1, "is cut short"},
      {20, 0x40000000, "4611686018427387913 images are too many"},
      {20, UINT32_MAX, "are too many"},
      {24, 0, "holds no images (9 of 0x2x3)"},
      {24, 2, "is cut short"},
      {24, 16777217, "9 images of 16777217x2x3 are too many"},
      {28, 0, "holds no images"},
      {28, UINT32_MAX, "are too many"},
      {32, 0, "holds no images"},
      {32, 2, "has 18 bytes more than its header says"},
      {36, 0, "says it has 0 classes; it must be 1 to 16777216"},
      {36, 16777217, "16777217 classes"},
      {36, 3, "image 3 (from 0) has label 3, the file has 3 classes"},
      {OWN_LABELS + 4 * 8, UINT32_MAX, "image 8 (from 0) has label 4294967295, the file has 4 classes"},
  };
  sn_net *net = image_net(small, CLASSES);
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    image_file f = own_file(OWN_U8, COUNT, small, CLASSES);
    put_little(f.bytes + changes[i].at, changes[i].value);
    write_and_free(*state, "a.sni", f);
    refuse(*state, "a.sni", net, SN_BAD_INPUT, changes[i].words);
  }
  sn_net_free(net);
}

/* Sizes whose product wraps around to something small. */
static void sizes_do_not_wrap(void **state) {
  sn_net *net = image_net(small, CLASSES);
  image_file f = own_file(OWN_U8, COUNT, small, CLASSES);
  for (size_t at = 24; at <= 32; at += 4) put_little(f.bytes + at, 1 << 24);
  write_and_free(*state, "a.sni", f);
  refuse(*state, "a.sni", net, SN_BAD_INPUT, "are too many");
  f = own_file(OWN_U8, COUNT, small, CLASSES);
  put_little(f.bytes + 16, 0);
  put_little(f.bytes + 20, 1 << 24); /* 2^56 images of 2^8 bytes */
  put_little(f.bytes + 28, 16);
  put_little(f.bytes + 32, 16);
  write_and_free(*state, "a.sni", f);
  refuse(*state, "a.sni", net, SN_BAD_INPUT, "72057594037927936 images of 1x16x16 are too many");
  sn_net_free(net);
}

/* Whatever the length it is cut to. */
static void short_files(void **state) {
  sn_net *net = image_net(small, CLASSES);
  image_file own = own_file(OWN_U8, COUNT, small, CLASSES), images = idx_images(COUNT, small),
             labels = idx_labels(COUNT, CLASSES);
  for (size_t n = 0; n < own.count; n++) {
    write_file(*state, "a.sni", own.bytes, n);
    refuse(*state, "a.sni", net, SN_BAD_INPUT, n < 8 ? "is no image set" : "is cut short");
  }
  write_file(*state, "a-labels", labels.bytes, labels.count);
  for (size_t n = 0; n < images.count; n++) {
    write_file(*state, "a-images", images.bytes, n);
    refuse(*state, "a-images", net, SN_BAD_INPUT, n < 4 ? "is no image set" : n < 16 ? "" : "is cut short");
  }
  write_file(*state, "a-images", images.bytes, images.count);
  for (size_t n = 0; n < labels.count; n++) {
    write_file(*state, "a-labels", labels.bytes, n);
    refuse(*state, "a-images", net, SN_BAD_INPUT, "a-labels: ");
  }
  write_file(*state, "a-labels", labels.bytes, labels.count + 1);
  refuse(*state, "a-images", net, SN_BAD_INPUT, "a-labels: has 1 bytes more than its header says");
  write_file(*state, "a-images", images.bytes, images.count + 1);
  refuse(*state, "a-images", net, SN_BAD_INPUT, "a-images: has 1 bytes more than its header says");
  free(own.bytes);
  free(images.bytes);
  free(labels.bytes);
  sn_net_free(net);
}

static void idx_headers(void **state) {
  static const change changes[] = {
      {0, 0x00000d03, "holds numbers of type 0x0d in 3 dimensions"},
      {0, 0x00000802, "holds numbers of type 0x08 in 2 dimensions"},
      {0, 0x00000805, "in 5 dimensions"},
      {0, 0x00000801, "holds labels; give the file of the images"},
      {0, 0x00010803, "is no image set"},
      {0, 0x00000800, "is no image set"},
      {4, 8, "has 6 bytes more than its header says"},
      {4, 0, "holds no images (0 of 1x2x3)"},
      {4, UINT32_MAX, "is cut short"},
      {8, 0, "holds no images"},
      {12, UINT32_MAX, "are too many"},
  };
  sn_net *net = image_net(small, CLASSES);
  write_idx(*state, COUNT, small, CLASSES);
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    image_file f = idx_images(COUNT, small);
    put_big(f.bytes + changes[i].at, changes[i].value);
    write_and_free(*state, "a-images.idx", f);
    refuse(*state, "a-images.idx", net, SN_BAD_INPUT, changes[i].words);
  }
  sn_net_free(net);
}

static void idx_labels_that_do_not_go_with_the_images(void **state) {
  sn_net *net = image_net(small, CLASSES);
  write_idx(*state, COUNT, small, CLASSES);
  write_and_free(*state, "a-labels.idx", idx_labels(COUNT + 1, CLASSES));
  refuse(*state, "a-images.idx", net, SN_BAD_INPUT, "a-labels.idx: has 10 labels for 9 images");
  write_and_free(*state, "a-labels.idx", idx_images(COUNT, small));
  refuse(*state, "a-images.idx", net, SN_BAD_INPUT, "a-labels.idx: is no IDX file of labels");
  remove(path_of(*state, "a-labels.idx"));
  refuse(*state, "a-images.idx", net, SN_BAD_FILE, "a-labels.idx: No such file");
  refuse(*state, "a-images.idx", net, SN_BAD_FILE, "the labels: ");
  write_and_free(*state, "a.idx", idx_images(COUNT, small));
  refuse(*state, "a.idx", net, SN_BAD_INPUT, "which this name does not hold; rename both");
  sn_net_free(net);
}

static void images_that_do_not_go_with_the_net(void **state) {
  static const sn_shape square = {5, 1, 3, 3};
  sn_net *net = image_net(small, CLASSES), *fewer = image_net(small, 3), *big = image_net((sn_shape){10, 1, 2, 3}, 4),
         *colour = image_net((sn_shape){5, 3, 3, 3}, CLASSES);
  write_and_free(*state, "a.sni", own_file(OWN_U8, COUNT, small, CLASSES));
  refuse(*state, "a.sni", fewer, SN_BAD_INPUT, "image 3 (from 0) has label 3, small has classes 0 to 2");
  refuse(*state, "a.sni", big, SN_BAD_INPUT, "holds 9 images, fewer than one batch of 10");
  write_and_free(*state, "b.sni", own_file(OWN_U8, COUNT, square, CLASSES));
  refuse(*state, "b.sni", net, SN_BAD_INPUT,
         "images are 1x3x3 (channels, height, width), small takes 1x2x3; --image 3");
  refuse(*state, "b.sni", colour, SN_BAD_INPUT, "small takes 3x3x3; no option changes that");
  refuse(*state, "a.sni", colour, SN_BAD_INPUT, "no option changes that");
  sn_net_free(net);
  sn_net_free(fewer);
  sn_net_free(big);
  sn_net_free(colour);
}

static void floats_are_finite(void **state) {
  static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
  sn_net *net = image_net(small, CLASSES);
  for (size_t i = 0; i < 4; i++) {
    image_file f = own_file(OWN_F32, COUNT, small, CLASSES);
    put_little(f.bytes + OWN_LABELS + 4 * COUNT + 4 * (6 * 7 + 2), bits[i]);
    write_and_free(*state, "a.sni", f);
    refuse(*state, "a.sni", net, SN_BAD_INPUT, "pixel 2 of image 7 (from 0) is not finite");
  }
  sn_net_free(net);
}

static void things_that_are_no_image_file(void **state) {
  sn_net *net = image_net(small, CLASSES);
  refuse(*state, "nowhere", net, SN_BAD_FILE, "nowhere: No such file");
  refuse(*state, ".", net, SN_BAD_FILE, "is no regular file");
  assert_int_equal(mkfifo(path_of(*state, "pipe"), 0600), 0);
  refuse(*state, "pipe", net, SN_BAD_FILE, "is no regular file");
  write_file(*state, "a-images.gz", "\x1f\x8b\x08\0\0\0\0\0\0\0\0", 11);
  refuse(*state, "a-images.gz", net, SN_BAD_INPUT, "gunzip --keep");
  write_file(*state, "a.txt", "image,label\n1,2\n", 16);
  refuse(*state, "a.txt", net, SN_BAD_INPUT, "is no image set");
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST_IN_PLACE(own_headers),
      TEST_IN_PLACE(sizes_do_not_wrap),
      TEST_IN_PLACE(short_files),
      TEST_IN_PLACE(idx_headers),
      TEST_IN_PLACE(idx_labels_that_do_not_go_with_the_images),
      TEST_IN_PLACE(images_that_do_not_go_with_the_net),
      TEST_IN_PLACE(floats_are_finite),
      TEST_IN_PLACE(things_that_are_no_image_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
