/* JSON reading: the line of every item, getters with ranges, and files that are broken in every way. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sn_json *parse(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_json *doc = sn_json_parse("t.json", text, strlen(text), &err);
  if (!doc) fail_msg("%s", err.text);
  return doc;
}

static const cJSON *at(const sn_json *doc, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(sn_json_root(doc), key);
}

static void lines(void **state) {
  (void)state;
  sn_json *doc = parse("\xEF\xBB\xBF\n"
                       "{\"a\": 1,\n"
                       " \"b\" :\n"
                       "  \"text: \\\"[{,\\\\\",\r\n"
                       " \"c\": [[],\n"
                       "  {}, {\"x\": [true,\n"
                       "   null]}, -1.5e3\n"
                       "   ], \"d\": {}, \"e\":\n"
                       " \"\"}");
  assert_int_equal(sn_json_line(doc, sn_json_root(doc)), 2);
  assert_int_equal(sn_json_line(doc, at(doc, "a")), 2);
  assert_int_equal(sn_json_line(doc, at(doc, "b")), 4);
  const cJSON *c = at(doc, "c");
  assert_int_equal(sn_json_line(doc, c), 5);
  assert_int_equal(sn_json_line(doc, cJSON_GetArrayItem(c, 0)), 5);
  assert_int_equal(sn_json_line(doc, cJSON_GetArrayItem(c, 1)), 6);
  const cJSON *x = cJSON_GetArrayItem(c, 2)->child;
  assert_int_equal(sn_json_line(doc, x), 6);
  assert_int_equal(sn_json_line(doc, x->child), 6);
  assert_int_equal(sn_json_line(doc, x->child->next), 7);
  assert_int_equal(sn_json_line(doc, cJSON_GetArrayItem(c, 3)), 7);
  assert_int_equal(sn_json_line(doc, at(doc, "d")), 8);
  assert_int_equal(sn_json_line(doc, at(doc, "e")), 9);
  cJSON foreign = {0};
  assert_int_equal(sn_json_line(doc, &foreign), 0);
  assert_int_equal(sn_json_line(doc, NULL), 0);
  sn_json_free(doc);
}

typedef struct broken {
  const char *text;
  size_t bytes; /* 0: up to the NUL */
  const char *message;
} broken;

static void refuses_text(void **state) {
  (void)state;
  static const broken cases[] = {
      {"", 0, "t.json: the file is empty"},
      {" \n\t", 0, "t.json: the file is empty"},
      {"{\"a\": 1", 0, "t.json:1: not valid JSON: the file ends too early"},
      {"{\"a\":\n \"b", 0, "t.json:2: not valid JSON"},
      {"[1,\n2,]", 0, "t.json:2: not valid JSON near `]`"},
      {"{\"a\": 1}\nrest", 0, "t.json:2: not valid JSON near `rest`"},
      {"{a: 1}", 0, "t.json:1: not valid JSON near `a: 1}`"},
      {"[\n\n!\x1b[31m", 0, "t.json:3: not valid JSON near `!?[31m`"},
      {"[1,\n\0]", 6, "t.json:2: a NUL byte"},
      {"\0\0", 2, "t.json:1: a NUL byte"},
      {"[\n\"\\\\ \\u0000\"]", 0, "t.json:2: \"\\u0000\""},
      {"\n\"\xC0\xAF\"", 0, "t.json:2: not valid UTF-8"},
      {"\"\xED\xA0\x80\"", 0, "t.json:1: not valid UTF-8"},
      {"\"\xF4\x90\x80\x80\"", 0, "t.json:1: not valid UTF-8"},
      {"\"\xE2\x82", 0, "t.json:1: not valid UTF-8"},
      {"\"\x80\"", 0, "t.json:1: not valid UTF-8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    size_t bytes = cases[i].bytes ? cases[i].bytes : strlen(cases[i].text);
    assert_null(sn_json_parse("t.json", cases[i].text, bytes, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0)
      fail_msg("wanted \"%s\", got \"%s\"", cases[i].message, err.text);
  }
  sn_json_free(parse("\"\\\\u0000 is a backslash and five letters, \xF0\x9F\x98\x80 \xE2\x82\xAC\""));
}

static char *repeat(const char *text, size_t count) {
  size_t length = strlen(text);
  char *all = malloc(length * count + 1);
  assert_non_null(all);
  for (size_t i = 0; i < count; i++) memcpy(all + i * length, text, length);
  all[length * count] = '\0';
  return all;
}

static void refuses_masses(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t count;
    const char *message;
  } cases[] = {
      {"[", 1000000, "nested 1000 deep"},
      {"{\"a\":", 1000000, "nested 1000 deep"},
      {"[],", 12000001, "more than 12000000 values"},
      {"          ", SN_JSON_MAX_BYTES / 10 + 1, "larger than 64 MiB"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    char *text = repeat(cases[i].text, cases[i].count);
    assert_null(sn_json_parse("t.json", text, strlen(text), &err));
    if (!strstr(err.text, cases[i].message)) fail_msg("wanted \"%s\", got \"%s\"", cases[i].message, err.text);
    free(text);
  }
  char *open = repeat("[", 999), *close = repeat("]", 999), *both = malloc(2000);
  assert_non_null(both);
  snprintf(both, 2000, "%s%s", open, close);
  sn_json *doc = parse(both);
  const cJSON *inner = sn_json_root(doc);
  while (inner->child) inner = inner->child;
  assert_int_equal(sn_json_line(doc, inner), 1);
  sn_json_free(doc);
  free(open), free(close), free(both);
}

static const char members[] = "{\n\"n\": 7,\n\"half\": 0.5,\n\"minus\": -1,\n\"huge\": 1e300,\n\"endless\": 1e999,\n"
                              "\"text\": \"abc\",\n\"yes\": true,\n\"list\": [1, 2]}";

static void getters(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_json *doc = parse(members);
  const cJSON *root = sn_json_root(doc);
  uint64_t n = 0;
  double half = 0;
  bool yes = false;
  assert_int_equal(sn_json_count(doc, root, "n", 7, 7, &n, &err), SN_OK);
  assert_int_equal(n, 7);
  assert_int_equal(sn_json_number(doc, root, "half", 0, 0.5, &half, &err), SN_OK);
  assert_true(half == 0.5);
  assert_int_equal(sn_json_bool(doc, root, "yes", &yes, &err), SN_OK);
  assert_true(yes);
  assert_string_equal(sn_json_text(doc, root, "text", &err), "abc");
  const cJSON *list = sn_json_array(doc, root, "list", &err);
  assert_non_null(list);
  assert_int_equal(sn_json_item_count(doc, list->child->next, "an item", 0, 2, &n, &err), SN_OK);
  assert_int_equal(n, 2);
  assert_true(sn_json_has(root, "n") && !sn_json_has(root, "N"));
  sn_json_free(doc);
}

static void count(const sn_json *doc, const char *key, sn_err *err) {
  uint64_t n = 99;
  assert_int_equal(sn_json_count(doc, sn_json_root(doc), key, 1, 1000, &n, err), SN_BAD_INPUT);
  assert_int_equal(n, 99);
}
static void one(const sn_json *doc, const char *key, sn_err *err) {
  uint64_t n;
  assert_int_equal(sn_json_count(doc, sn_json_root(doc), key, 1, 1, &n, err), SN_BAD_INPUT);
}
static void wide(const sn_json *doc, const char *key, sn_err *err) {
  double x;
  assert_int_equal(sn_json_number(doc, sn_json_root(doc), key, 0.001, 1e9, &x, err), SN_BAD_INPUT);
}
static void number(const sn_json *doc, const char *key, sn_err *err) {
  double x;
  assert_int_equal(sn_json_number(doc, sn_json_root(doc), key, 1, 1000, &x, err), SN_BAD_INPUT);
}
static void flag(const sn_json *doc, const char *key, sn_err *err) {
  bool x;
  assert_int_equal(sn_json_bool(doc, sn_json_root(doc), key, &x, err), SN_BAD_INPUT);
}
static void text(const sn_json *doc, const char *key, sn_err *err) {
  assert_null(sn_json_text(doc, sn_json_root(doc), key, err));
}
static void array(const sn_json *doc, const char *key, sn_err *err) {
  assert_null(sn_json_array(doc, sn_json_root(doc), key, err));
}

static void getters_refuse(void **state) {
  (void)state;
  static const struct {
    void (*get)(const sn_json *, const char *, sn_err *);
    const char *key, *message;
  } cases[] = {
      {count, "none", "t.json:1: \"none\" is missing"},
      {count, "half", "t.json:3: \"half\" must be a whole number from 1 to 1000, not 0.5"},
      {count, "minus", "t.json:4: \"minus\" must be a whole number from 1 to 1000, not -1"},
      {count, "huge", "t.json:5: \"huge\" must be a whole number from 1 to 1000, not 1e+300"},
      {count, "endless", "t.json:6: \"endless\" must be a whole number from 1 to 1000, not inf"},
      {count, "text", "t.json:7: \"text\" must be a whole number from 1 to 1000"},
      {one, "half", "t.json:3: \"half\" must be 1, not 0.5"},
      {one, "text", "t.json:7: \"text\" must be 1"},
      {wide, "minus", "t.json:4: \"minus\" must be from 0.001 to 1000000000, not -1"},
      {number, "half", "t.json:3: \"half\" must be from 1 to 1000, not 0.5"},
      {number, "endless", "t.json:6: \"endless\" must be from 1 to 1000, not inf"},
      {number, "yes", "t.json:8: \"yes\" must be a number"},
      {number, "none", "t.json:1: \"none\" is missing"},
      {flag, "n", "t.json:2: \"n\" must be true or false"},
      {flag, "none", "t.json:1: \"none\" is missing"},
      {text, "list", "t.json:9: \"list\" must be a text in quotes"},
      {text, "none", "t.json:1: \"none\" is missing"},
      {array, "n", "t.json:2: \"n\" must be a list: [...]"},
      {array, "none", "t.json:1: \"none\" is missing"},
  };
  sn_json *doc = parse(members);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    cases[i].get(doc, cases[i].key, &err);
    assert_string_equal(err.text, cases[i].message);
  }
  sn_json_free(doc);
}

static void only_known_keys(void **state) {
  (void)state;
  static const char *const keys[] = {"channels", "kernel", "list"};
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"{\"kernel\": 1,\n\"channels\": 2}", NULL},
      {"{}", NULL},
      {"{\"kernel\": 1,\n\"chanels\": 2}", "t.json:2: unknown key \"chanels\" (did you mean \"channels\"?)"},
      {"{\"kernel\": 1,\n\"zzzzzz\": 2}",
       "t.json:2: unknown key \"zzzzzz\"; there are \"channels\", \"kernel\", \"list\""},
      {"{\"kernel\": 1,\n\"list\": [\n3],\n\"kernel\": 2}", "t.json:4: the key \"kernel\" stands twice"},
      {"\n[1]", "t.json:2: expected an object: {...}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_json *doc = parse(cases[i].text);
    sn_status status = sn_json_only(doc, sn_json_root(doc), keys, 3, &err);
    assert_int_equal(status, cases[i].message ? SN_BAD_INPUT : SN_OK);
    assert_string_equal(err.text, cases[i].message ? cases[i].message : "");
    sn_json_free(doc);
  }
}

static void files(void **state) {
  (void)state;
  sn_err missing = SN_ERR_INIT, folder = SN_ERR_INIT, fine = SN_ERR_INIT, bad = SN_ERR_INIT;
  assert_null(sn_json_load("no/such/file.json", &missing));
  assert_int_equal(missing.code, SN_BAD_FILE);
  assert_non_null(strstr(missing.text, "no/such/file.json: cannot be opened: No such file"));
  assert_null(sn_json_load(".", &folder));
  assert_int_equal(folder.code, SN_BAD_FILE);
  char path[] = "test_json_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *file = fdopen(fd, "wb");
  assert_non_null(file);
  fprintf(file, "[\"%0*d\"]", 10000, 7);
  assert_int_equal(fflush(file), 0);
  sn_json *doc = sn_json_load(path, &fine);
  assert_non_null(doc);
  assert_int_equal(strlen(sn_json_root(doc)->child->valuestring), 10000);
  sn_json_free(doc);
  fprintf(file, "\n]");
  assert_int_equal(fclose(file), 0);
  assert_null(sn_json_load(path, &bad));
  assert_non_null(strstr(bad.text, ":2: not valid JSON near `]`"));
  remove(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines),   cmocka_unit_test(refuses_text),   cmocka_unit_test(refuses_masses),
      cmocka_unit_test(getters), cmocka_unit_test(getters_refuse), cmocka_unit_test(only_known_keys),
      cmocka_unit_test(files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
