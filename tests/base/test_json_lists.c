/* JSON files with long lists, read element by element: what comes out is what the same text is as a tree, every line is
 * the file's, and texts that are damaged at random are refused exactly where they are refused as a tree. */
#include "base/json_lists.h"

#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {"first", "second"};

static sn_json_lists *parse_bytes(const char *text, size_t bytes, sn_err *err) {
  return sn_json_lists_parse("t.json", text, bytes, keys, 2, err);
}

static sn_json_lists *parse(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_json_lists *file = parse_bytes(text, strlen(text), &err);
  if (!file) fail_msg("%s", err.text);
  return file;
}

/* Reads both lists; how many elements they have. */
static uint32_t read_lists(sn_json_lists *file, sn_err *err) {
  uint32_t count = 0;
  for (size_t i = 0; i < 2 && err->code == SN_OK; i++) {
    sn_json_lists_begin(file, keys[i]);
    while (sn_json_lists_next(file, err)) count++;
  }
  return count;
}

static const char sample[] = "\xEF\xBB\xBF\n"
                             "{\"a\": [1, 2], \"first\": [\n"
                             " {\"x\": \"],}[\\\"\"},\n"
                             "\n"
                             " [[], {}], 3,\n"
                             " \"te\\u0078t\"\n"
                             "], \"b\": {\"first\": [1,\n"
                             " 2]}, \"\\u0073econd\" : [\n"
                             "\n"
                             "], \"c\":\n"
                             " true}\n";

static void comes_out_in_pieces(void **state) {
  static const unsigned lines[] = {3, 5, 5, 6};
  static const char *const texts[] = {"{\"x\":\"],}[\\\"\"}", "[[],{}]", "3", "\"text\""};
  sn_err err = SN_ERR_INIT;
  sn_json_lists *file = parse(sample);
  const sn_json *head = sn_json_lists_head(file);
  char *text = cJSON_PrintUnformatted(sn_json_root(head));
  (void)state;
  assert_string_equal(text, "{\"a\":[1,2],\"first\":[],\"b\":{\"first\":[1,2]},\"second\":[],\"c\":true}");
  cJSON_free(text);
  assert_int_equal(sn_json_line(head, cJSON_GetObjectItem(sn_json_root(head), "first")), 2);
  assert_int_equal(sn_json_line(head, cJSON_GetObjectItem(sn_json_root(head), "b")), 7);
  assert_int_equal(sn_json_line(head, cJSON_GetObjectItem(sn_json_root(head), "second")), 8);
  assert_int_equal(sn_json_line(head, cJSON_GetObjectItem(sn_json_root(head), "c")), 11);
  for (int round = 0; round < 2; round++) {
    sn_json_lists_begin(file, "first");
    for (size_t i = 0; i < 4; i++) {
      const sn_json *element = sn_json_lists_next(file, &err);
      assert_non_null(element);
      text = cJSON_PrintUnformatted(sn_json_root(element));
      assert_string_equal(text, texts[i]);
      assert_int_equal(sn_json_line(element, sn_json_root(element)), lines[i]);
      cJSON_free(text);
    }
    assert_null(sn_json_lists_next(file, &err));
    assert_null(sn_json_lists_next(file, &err));
    sn_json_lists_begin(file, "second");
    assert_null(sn_json_lists_next(file, &err));
  }
  assert_int_equal(err.code, SN_OK);
  sn_json_lists_free(file);
}

static void what_is_no_list_stays(void **state) {
  static const char *const texts[] = {"[{\"first\": [1]}]", "7", "{\"first\": {\"second\": [1]}, \"second\": 2}", "{}"};
  sn_err err = SN_ERR_INIT;
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    sn_json_lists *file = parse(texts[i]);
    cJSON *tree = cJSON_Parse(texts[i]);
    assert_true(cJSON_Compare(tree, sn_json_root(sn_json_lists_head(file)), true));
    assert_int_equal(read_lists(file, &err), 0);
    cJSON_Delete(tree);
    sn_json_lists_free(file);
  }
}

static void errors_have_lines(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "t.json: the file is empty"},
      {"{\"first\": [1,\n2\n", "t.json:3: not valid JSON: the file ends too early"},
      {"{\"first\": [1,\n2,]}", "t.json:2: not valid JSON near `]}`"},
      {"{\"first\": [,\n2]}", "t.json:1: not valid JSON near `,?2]}`"},
      {"{\"first\": [1,\n\n {\"x: 1},\n {\"y\": 2}]\n}", "t.json:4: not valid JSON near `y\": 2}]?}`"},
      {"{\"first\": [1,\n {\"x\": 1,\n {\"y\": 2}],\n \"a\": 1}",
       "t.json:3: not valid JSON near `\"y\": 2}],? \"a\": 1}`"},
      {"{\"first\": [1,\n2}, \"second\": [3]}", "t.json:2: not valid JSON near `}, \"second\": [3]}`"},
      {"{\"first\": [1,\n2], \"a\" 3}", "t.json:2: not valid JSON near `3}`"},
      {"{\"first\": [1],\n\"first\": [2]}", "t.json:2: the key \"first\" stands twice"},
      {"{\"first\": [1],\n\"\\u0066irst\": [2]}", "t.json:2: the key \"first\" stands twice"},
      {"{\"first\": [\n1]}}", "t.json:2: not valid JSON near `}`"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_err err = SN_ERR_INIT;
    sn_json_lists *file = parse_bytes(cases[i].text, strlen(cases[i].text), &err);
    if (file) read_lists(file, &err);
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (strcmp(err.text, cases[i].message) != 0) fail_msg("wanted \"%s\", got \"%s\"", cases[i].message, err.text);
    sn_json_lists_free(file);
  }
}

static void faults_of_elements_have_lines(void **state) {
  static const struct {
    const char *key;
    size_t index;
    const char *message;
  } cases[] = {{"first", 0, "t.json:3: no"},
               {"first", 1, "t.json:5: no"},
               {"first", 3, "t.json:6: no"},
               {"first", 4, "t.json:2: no"},
               {"second", 0, "t.json:8: no"}};
  sn_json_lists *file = parse(sample);
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_err err = SN_ERR_INIT;
    sn_json_lists_fail(file, cases[i].key, cases[i].index, &err, "%s", "no");
    assert_string_equal(err.text, cases[i].message);
  }
  sn_json_lists_free(file);
}

/* ---- at random ---- */

static void damage(char *text, size_t *bytes, uint64_t *dice) {
  static const char any[] = "{}[]\",:0-e\\\n a";
  size_t at = prng_below(dice, (uint32_t)*bytes);
  switch (prng_below(dice, 4)) {
  case 0:
    memmove(text + at, text + at + 1, --*bytes - at);
    break;
  case 1:
    memmove(text + at + 1, text + at, (*bytes)++ - at);
    text[at] = any[prng_below(dice, sizeof any - 1)];
    break;
  case 2:
    text[at] = any[prng_below(dice, sizeof any - 1)];
    break;
  default:
    *bytes = at;
    break;
  }
}

/* The lists' elements as a tree has them. */
static uint32_t count_elements(const cJSON *root) {
  int count = 0;
  for (size_t i = 0; i < 2 && cJSON_IsObject(root); i++) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, keys[i]);
    if (cJSON_IsArray(list)) count += cJSON_GetArraySize(list);
  }
  return (uint32_t)count;
}

static void damaged_texts_are_refused_as_trees_are(void **state) {
  enum { ROUNDS = 20000 };
  uint64_t dice = first_seed(5);
  uint32_t refused = 0;
  (void)state;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    char text[2 * sizeof sample];
    size_t bytes = sizeof sample - 1;
    sn_err whole = SN_ERR_INIT, parts = SN_ERR_INIT;
    memcpy(text, sample, bytes);
    damage(text, &bytes, &dice);
    sn_json *doc = sn_json_parse("t.json", text, bytes, &whole);
    sn_json_lists *file = parse_bytes(text, bytes, &parts);
    uint32_t count = file ? read_lists(file, &parts) : 0;
    if (whole.code != parts.code || (doc && count != count_elements(sn_json_root(doc))) ||
        strcspn(whole.text, "`") != strcspn(parts.text, "`") ||
        strncmp(whole.text, parts.text, strcspn(whole.text, "`")) != 0)
      fail_msg("%.*s\nas a tree: %s\nin pieces: %s, %u elements", (int)bytes, text, whole.text, parts.text, count);
    refused += !doc;
    sn_json_free(doc);
    sn_json_lists_free(file);
  }
  assert_true(refused > ROUNDS / 4 && refused < ROUNDS);
}

/* ---- masses ---- */

static char *masses(const char *begin, const char *middle, size_t count, const char *end) {
  size_t bytes = strlen(middle), first = strlen(begin);
  char *text = malloc(first + bytes * count + strlen(end) + 1);
  assert_non_null(text);
  memcpy(text, begin, first);
  for (size_t i = 0; i < count; i++) memcpy(text + first + i * bytes, middle, bytes);
  memcpy(text + first + bytes * count, end, strlen(end) + 1);
  return text;
}

static void masses_are_refused(void **state) {
  static const struct {
    const char *begin, *middle;
    size_t count;
    const char *end, *message;
  } cases[] = {
      {"{\"first\": [1,\n[0", ",0", 3 << 20, "]]}", "t.json:2: an element of more than 4 MiB"},
      {"{\"first\": [1,\n\"", "ab", 3 << 20, "\"]}", "t.json:2: an element of more than 4 MiB"},
      {"{\"a\": [0", ",0", 3 << 20, "]}", "t.json: more than 4 MiB stand beside the long lists"},
      {"{\"first\": [", "[", 1 << 20, "]}", "t.json:1: nested 1000 deep; nothing needs that"},
      {"{", "\"first\":[],", 1 << 18, "\"a\":1}", "t.json:1: the key \"first\" stands twice"},
      {"{\"first\": [", "]", 1 << 20, "]}", "t.json:1: not valid JSON near `]]]]]]]]]]]]]]]]]]]]`"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_err err = SN_ERR_INIT;
    char *text = masses(cases[i].begin, cases[i].middle, cases[i].count, cases[i].end);
    sn_json_lists *file = parse_bytes(text, strlen(text), &err);
    if (file) read_lists(file, &err);
    if (strcmp(err.text, cases[i].message) != 0) fail_msg("wanted \"%s\", got \"%s\"", cases[i].message, err.text);
    sn_json_lists_free(file);
    free(text);
  }
}

/* More values, and bytes, than a tree may have. */
static void many_elements_are_read(void **state) {
  enum { COUNT = 9 << 20 };
  sn_err err = SN_ERR_INIT;
  char *text = masses("{\"second\": [0", ",\n[1, 22]", COUNT, "]}");
  (void)state;
  assert_true(strlen(text) > SN_JSON_MAX_BYTES);
  sn_json_lists *file = parse(text);
  free(text);
  assert_int_equal(read_lists(file, &err), COUNT + 1);
  sn_json_lists_fail(file, "second", COUNT, &err, "here");
  char wanted[40];
  snprintf(wanted, sizeof wanted, "t.json:%d: here", COUNT + 1);
  assert_string_equal(err.text, wanted);
  sn_json_lists_free(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_out_in_pieces),
      cmocka_unit_test(what_is_no_list_stays),
      cmocka_unit_test(errors_have_lines),
      cmocka_unit_test(faults_of_elements_have_lines),
      cmocka_unit_test(damaged_texts_are_refused_as_trees_are),
      cmocka_unit_test(masses_are_refused),
      cmocka_unit_test(many_elements_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
