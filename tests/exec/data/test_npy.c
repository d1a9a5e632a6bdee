/* NumPy's arrays as image sets: every way to write the header that NumPy has, the batches that the same images give in
 * snsim's own form, and files that are refused, each with words that say why. */
#include "tests/support/image_files.h"

static const sn_shape small = {5, 1, 2, 3};
enum { CLASSES = 4, COUNT = 9, HEADER_ROOM = 300 };

static void write_npy(place *p, const char *name, const char *header, const void *data, size_t bytes) {
  write_and_free(p, name, npy_file(1, header, data, bytes));
}

/* Pixels and labels of snsim's own form, which are those of a file of the same count. */
static const uint8_t *pixels_of(const image_file *own) {
  return own->bytes + OWN_LABELS + 4 * COUNT;
}

static void write_labels(place *p, const char *type, size_t bytes) {
  char header[HEADER_ROOM];
  uint8_t labels[8 * COUNT] = {0};
  for (uint32_t i = 0; i < COUNT; i++)
    put_little(labels + i * bytes, i % CLASSES); /* the next one's byte comes later */
  snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", type, COUNT);
  write_npy(p, "a-labels.npy", header, labels, COUNT * bytes);
}

static void same_batches(place *p, const sn_net *net) {
  sn_batches *own = open_batches(p, "a.sni", net, 1), *npy = open_batches(p, "a-images.npy", net, 1);
  for (int i = 0; i < 3; i++) {
    const sn_batch *a = next_batch(own), *b = next_batch(npy);
    assert_memory_equal(a->data, b->data, net->data_bytes);
    assert_memory_equal(a->labels, b->labels, net->label_bytes);
  }
  assert_string_equal(sn_batches_name(npy), "a-images.npy (9 images, 4 classes)");
  sn_batches_free(own);
  sn_batches_free(npy);
}

static void same_as_own_form(void **state) {
  static const struct {
    unsigned version;
    const char *header, *labels;
    size_t label_bytes;
  } cases[] = {
      {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (9, 2, 3), }", "|u1", 1},
      {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (9, 1, 2, 3), }", "<i4", 4},
      {2, "{'shape': (9, 1, 2, 3), 'fortran_order': False, 'descr': '|u1'}", "<i8", 8},
      {3, " { \"descr\" : \"|u1\" ,\n\t\"fortran_order\":False,'shape':( 9 ,2,3,) }", "<i8", 8},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 2, 3), }", "<i8", 8},
      {3, "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 1, 2, 3)}", "|u1", 1},
  };
  sn_net *net = image_net(small, CLASSES);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bool floats = strstr(cases[i].header, "<f4") != NULL;
    image_file own = own_file(floats ? OWN_F32 : OWN_U8, COUNT, small, CLASSES);
    size_t bytes = COUNT * 6 * (floats ? 4 : 1);
    write_and_free(*state, "a-images.npy", npy_file(cases[i].version, cases[i].header, pixels_of(&own), bytes));
    write_labels(*state, cases[i].labels, cases[i].label_bytes);
    write_and_free(*state, "a.sni", own);
    same_batches(*state, net);
  }
  sn_net_free(net);
}

#define IMAGES(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': (" shape "), }"

static void images_refused(void **state) {
  static const struct {
    const char *header, *words;
  } cases[] = {
      {IMAGES("<f8", "9, 2, 3"), "holds <f8 in 3 dimensions; images are |u1 (bytes) or <f4 (float32) in 3"},
      {IMAGES(">f4", "9, 2, 3"), "holds >f4 in 3 dimensions"},
      {IMAGES("|u1", "9, 6"), "holds |u1 in 2 dimensions"},
      {IMAGES("|u1", ""), "holds |u1 in 0 dimensions"},
      {IMAGES("|u1", "1, 9, 1, 2, 3"), "holds |u1 in 5 dimensions"},
      {IMAGES("|u1", "0, 2, 3"), "holds no images (0 of 1x2x3)"},
      {IMAGES("|u1", "9, 2, 0"), "holds no images (9 of 1x2x0)"},
      {IMAGES("|u1", "10, 2, 3"), "is cut short"},
      {IMAGES("|u1", "8, 2, 3"), "has 6 bytes more than its header says"},
      {IMAGES("|u1", "4503599627370496, 16777216, 16777216"), "are too many"},
      {IMAGES("|u1", "9, 16777217, 1"), "images of 1x16777217x1 are too large"},
      {IMAGES("|u1", "9, 99999999999999999999, 1"), "its header is not that of one array"},
      {IMAGES("|u1", "9, -2, 3"), "its header is not that of one array"},
      {IMAGES("|u1", "9, 2, 3.5"), "its header is not that of one array"},
      {IMAGES("|u1", "9, , 3"), "its header is not that of one array"},
      {IMAGES("|u1", "1,1,1,1,1,1,1,1,1"), "its header is not that of one array"},
      {IMAGES("a type that is longer than one is", "9, 2, 3"), "its header is not that of one array"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (9,), }", "its header is not that of one array"},
      {"{'descr': '|u1', 'fortran_order': True, 'shape': (9, 2, 3), }", "are in Fortran's order; save numpy.asc"},
      {"{'descr': '|u1', 'fortran_order': Maybe, 'shape': (9, 2, 3), }", "its header is not that of one array"},
      {"{'descr': '|u1', 'shape': (9, 2, 3), }", "its header is not that of one array"},
      {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (9, 2, 3)}", "its header is not"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9, 2, 3), 'more': 1}", "its header is not"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9, 2, 3)} x", "its header is not that of one array"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9, 2, 3)", "its header is not that of one array"},
      {"{'descr: \x1b[2J", "its header is not that of one array of numbers ({'descr: ?[2J"},
      {"", "its header is not that of one array"},
  };
  const uint8_t pixels[6 * COUNT] = {0};
  sn_net *net = image_net(small, CLASSES);
  write_labels(*state, "|u1", 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    write_npy(*state, "a-images.npy", cases[i].header, pixels, sizeof pixels);
    refuse(*state, "a-images.npy", net, SN_BAD_INPUT, cases[i].words);
  }
  sn_net_free(net);
}

static void starts_refused(void **state) {
  static const struct {
    size_t at;
    uint8_t value;
    const char *words;
  } cases[] = {{0, 0x92, "is no image set"},
               {6, 0, "is a .npy file of version 0; read are 1 to 3"},
               {6, 4, "is a .npy file of version 4"},
               {6, 2, "its header should have"}, /* four bytes of length, two of which are text */
               {9, 0xff, "its header should have 65398 bytes; no array needs more than 4096"},
               {9, 0x0f, "is cut short within its header"}};
  const uint8_t pixels[6 * COUNT] = {0};
  sn_net *net = image_net(small, CLASSES);
  write_labels(*state, "|u1", 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    image_file f = npy_file(1, IMAGES("|u1", "9, 2, 3"), pixels, sizeof pixels);
    f.bytes[cases[i].at] = cases[i].value;
    write_and_free(*state, "a-images.npy", f);
    refuse(*state, "a-images.npy", net, SN_BAD_INPUT, cases[i].words);
  }
  image_file f = npy_file(1, IMAGES("|u1", "9, 2, 3"), pixels, sizeof pixels);
  for (size_t n = 0; n < f.count; n++) {
    write_file(*state, "a-images.npy", f.bytes, n);
    refuse(*state, "a-images.npy", net, SN_BAD_INPUT, n < 6 ? "is no image set" : n < 7 ? "version 0" : "");
  }
  free(f.bytes);
  sn_net_free(net);
}

static void labels_refused(void **state) {
  static const struct {
    const char *header;
    uint8_t last; /* highest byte of the last label */
    const char *words;
  } cases[] = {{IMAGES("<i8", "9,"), 0x80, "a-labels.npy: image 8 (from 0) has label -9223372036854775808"},
               {IMAGES("<i8", "9,"), 1, "a-labels.npy: image 8 (from 0) has label 72057594037927936"},
               {IMAGES("<i8", "8,"), 0, "a-labels.npy: has 8 labels for 9 images"},
               {IMAGES("<i8", "9, 1"), 0, "a-labels.npy: holds <i8 in 2 dimensions; labels are |u1, <i4 or <i8 in 1"},
               {IMAGES("<f8", "9,"), 0, "a-labels.npy: holds <f8 in 1 dimensions"},
               {IMAGES("<i4", "9,"), 0, "a-labels.npy: has 36 bytes more than its header says"},
               {"{}", 0, "a-labels.npy: its header is not"}};
  const uint8_t pixels[6 * COUNT] = {0};
  sn_net *net = image_net(small, CLASSES);
  write_npy(*state, "a-images.npy", IMAGES("|u1", "9, 2, 3"), pixels, sizeof pixels);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t labels[8 * COUNT] = {0};
    labels[sizeof labels - 1] = cases[i].last;
    write_npy(*state, "a-labels.npy", cases[i].header, labels, sizeof labels);
    refuse(*state, "a-images.npy", net, SN_BAD_INPUT, cases[i].words);
  }
  remove(path_of(*state, "a-labels.npy"));
  refuse(*state, "a-images.npy", net, SN_BAD_FILE, "the labels: ");
  write_npy(*state, "a.npy", IMAGES("|u1", "9, 2, 3"), pixels, sizeof pixels);
  refuse(*state, "a.npy", net, SN_BAD_INPUT, "its labels are looked for under its name");
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST_IN_PLACE(same_as_own_form), TEST_IN_PLACE(images_refused),
                                     TEST_IN_PLACE(starts_refused), TEST_IN_PLACE(labels_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
