/* Nearest names: what is offered for a mistyped name and what is too far off to be. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char *const nets[] = {"lenet", "alexnet", "vgg16", "vgg19", "resnet50", "resnet101", "inception_v4"};
enum { NETS = sizeof nets / sizeof nets[0] };

static void offers(void **state) {
  (void)state;
  static const struct {
    const char *text, *name; /* NULL: none */
  } cases[] = {
      {"alexnet", "alexnet"},  /* itself */
      {"alexnt", "alexnet"},   /* a letter missing */
      {"alexxnet", "alexnet"}, /* one too many */
      {"alxenet", "alexnet"},  /* two swapped: one change, not two */
      {"AlexNet", "alexnet"},  /* case does not count */
      {"resnet-50", "resnet50"},
      {"resnet5", "resnet50"},
      {"vgg17", "vgg16"},  /* the first of equals */
      {"alex", "alexnet"}, /* the name that begins so, though more is missing than is there */
      {"INCEP", "inception_v4"},
      {"r", "resnet50"},       /* the first of them */
      {"vgg", "vgg16"},        /* the first that begins with it */
      {"INC", "inception_v4"}, /* however much is missing */
      {"inceptionv4", "inception_v4"},
      {"101", "resnet101"},      /* a part of it */
      {"my_alexnet", "alexnet"}, /* which is a part */
      {"10", NULL},              /* two letters are a part of too much */
      {"transformer", NULL},
      {"gpt", NULL},
      {"", NULL},
      {"x", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *near = sn_text_nearest(cases[i].text, nets, NETS);
    if (!near != !cases[i].name || (near && strcmp(near, cases[i].name) != 0))
      fail_msg("\"%s\": %s, expected %s", cases[i].text, near ? near : "none", cases[i].name ? cases[i].name : "none");
  }
  assert_null(sn_text_nearest("alexnet", nets, 0));
}

static void sentences(void **state) {
  (void)state;
  char out[40];
  memset(out, '#', sizeof out);
  assert_ptr_equal(sn_text_suggest("vgg61", nets, NETS, out, sizeof out), out);
  assert_string_equal(out, " (did you mean \"vgg16\"?)");
  assert_string_equal(sn_text_suggest("nothing", nets, NETS, out, sizeof out), "");
  assert_string_equal(sn_text_suggest("vgg16", nets, NETS, out, 12), " (did you m");
}

/* Names of any length are safe to compare, and a long one that has nothing in common is not offered. */
static void long_names(void **state) {
  (void)state;
  char text[301], other[101], same[64];
  memset(text, 'a', sizeof text - 1);
  memset(other, 'b', sizeof other - 1);
  memset(same, 'c', sizeof same - 1);
  text[sizeof text - 1] = other[sizeof other - 1] = same[sizeof same - 1] = '\0';
  const char *const names[] = {"vgg16", other, same};
  assert_null(sn_text_nearest(text, names, 3));
  same[5] = 'x';
  char typed[64];
  memcpy(typed, same, sizeof typed);
  typed[9] = 'y';
  assert_ptr_equal(sn_text_nearest(typed, names, 3), same);
}

static void same(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    bool same;
  } cases[] = {{"resnet50", "ResNet-50", true},
               {"vit_b_16", "ViT B-16", true},
               {"", "--", true},
               {"resnet50", "resnet5", false},
               {"resnet5", "resnet50", false},
               {"a", "", false},
               {"gpt2_xl", "gpt2-XL ", true},
               {"3x4", "34", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(sn_text_same(cases[i].a, cases[i].b), cases[i].same);
    assert_int_equal(sn_text_same(cases[i].b, cases[i].a), cases[i].same);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same),
      cmocka_unit_test(offers),
      cmocka_unit_test(sentences),
      cmocka_unit_test(long_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
