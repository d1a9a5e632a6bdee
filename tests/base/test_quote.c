/* Quoting: whatever the text, JSON gives it back, and nothing in it can end a script or a string. */
#include "base/quote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static char *quoted(void (*quote)(const char *text, FILE *out), const char *text) {
  char *made = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&made, &bytes);
  assert_non_null(out);
  quote(text, out);
  assert_int_equal(fclose(out), 0);
  return made;
}

static void assert_json(const char *text, const char *wanted) {
  char *made = quoted(sn_quote_json, text);
  assert_string_equal(made, wanted);
  free(made);
}

static void json_forms(void **state) {
  (void)state;
  assert_json("", "\"\"");
  assert_json("conv1.y", "\"conv1.y\"");
  assert_json("a\"b\\c", "\"a\\u0022b\\u005cc\"");
  assert_json("</script><!-- & -->", "\"\\u003c/script\\u003e\\u003c!-- \\u0026 --\\u003e\"");
  assert_json("\t\n\x1f\x7f", "\"\\u0009\\u000a\\u001f\\u007f\"");
  assert_json("\u2028\u2029", "\"\\u2028\\u2029\"");
  assert_json("\u00e9\u2603", "\"\u00e9\u2603\"");
  assert_json("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
  assert_json("\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""); /* U+E0001, which cannot be seen: a surrogate pair */
  assert_json("a\xff\xc3", "\"a\\ufffd\\ufffd\"");       /* no UTF-8, and cut short */
}

/* Every single character comes back, and is never one of those that end something. */
static void json_comes_back(void **state) {
  (void)state;
  for (int c = 1; c < 256; c++) {
    char text[4] = {'x', (char)c, 'y', 0};
    char *made = quoted(sn_quote_json, text);
    cJSON *item = cJSON_Parse(made);
    assert_true(cJSON_IsString(item));
    assert_string_equal(item->valuestring, c < 128 ? text : "x\ufffdy");
    assert_null(strpbrk(made, "<>&\n\r\t"));
    cJSON_Delete(item);
    free(made);
  }
}

static void html_forms(void **state) {
  (void)state;
  char *made = quoted(sn_quote_html, "<b a=\"1\">R&D\u2028\x07 \u00e9\\ \xff");
  assert_string_equal(made, "&#60;b a=&#34;1&#34;&#62;R&#38;D \u00e9&#92; &#65533;");
  free(made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_forms),
      cmocka_unit_test(json_comes_back),
      cmocka_unit_test(html_forms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
