/* Arena: zeroed, aligned and disjoint memory for random sizes, refusal of sizes that overflow, texts, an arena that is
 * shared with a child, memory that it takes over. */
#include "base/arena.h"
#include "tests/support/seed.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECES = 4000 };

/* Small ones mostly, some larger than a block. */
static size_t draw_size(uint64_t *seed) {
  uint32_t range = prng_below(seed, 40);
  if (range == 0) return prng_below(seed, 300000);
  return prng_below(seed, range < 5 ? 30000 : 200);
}

static bool all_are(const unsigned char *bytes, size_t count, unsigned char value) {
  size_t i = 0;
  while (i < count && bytes[i] == value) i++;
  return i == count;
}

/* Each piece comes zeroed and keeps what is written into it while all others are written. */
static void pieces(void **state) {
  (void)state;
  static unsigned char *at[PIECES];
  static size_t size[PIECES];
  uint64_t seed = first_seed(5);
  sn_arena *arena = sn_arena_new();
  assert_non_null(arena);
  for (size_t i = 0; i < PIECES; i++) {
    size[i] = draw_size(&seed);
    at[i] = sn_arena_alloc(arena, size[i], 1);
    assert_non_null(at[i]);
    assert_int_equal((uintptr_t)at[i] % alignof(max_align_t), 0);
    assert_true(all_are(at[i], size[i], 0));
    memset(at[i], (int)(i % 255) + 1, size[i]);
  }
  for (size_t i = 0; i < PIECES; i++) assert_true(all_are(at[i], size[i], (unsigned char)(i % 255 + 1)));
  sn_arena_free(arena);
}

static void nothing_is_something(void **state) {
  (void)state;
  sn_arena *arena = sn_arena_new();
  void *a = sn_arena_alloc(arena, 0, 8), *b = sn_arena_alloc(arena, 8, 0), *c = sn_arena_alloc(arena, 1, 1);
  assert_non_null(a);
  assert_non_null(b);
  assert_ptr_not_equal(a, b);
  assert_ptr_not_equal(b, c);
  sn_arena_free(arena);
  sn_arena_free(NULL);
}

static void overflow(void **state) {
  (void)state;
  static const size_t counts[][2] = {{SIZE_MAX, 2},
                                     {SIZE_MAX / 2 + 1, 2},
                                     {SIZE_MAX, 1},
                                     {(size_t)PTRDIFF_MAX, 1},
                                     {(size_t)PTRDIFF_MAX - 8, 1},
                                     {1, (size_t)PTRDIFF_MAX - 30}};
  sn_arena *arena = sn_arena_new();
  int *before = sn_arena_alloc(arena, 1, sizeof *before);
  *before = 42;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    assert_null(sn_arena_alloc(arena, counts[i][0], counts[i][1]));
  int *after = sn_arena_alloc(arena, 1, sizeof *after);
  assert_non_null(after);
  assert_int_equal(*after, 0);
  assert_int_equal(*before, 42);
  sn_arena_free(arena);
}

static void texts(void **state) {
  (void)state;
  sn_arena *arena = sn_arena_new();
  char own[] = "conv1";
  char *copy = sn_arena_text(arena, own), *empty = sn_arena_text(arena, "");
  own[0] = 'X';
  assert_string_equal(copy, "conv1");
  assert_string_equal(empty, "");
  assert_string_equal(sn_arena_print(arena, "%s_%u%c", "conv", 12u, 'a'), "conv_12a");
  char *wide = sn_arena_print(arena, "%0*d", 200000, 7);
  assert_int_equal(strlen(wide), 200000);
  assert_int_equal(wide[199999], '7');
  sn_arena_free(arena);
}

/* What a child writes is there when it has gone; there is no more than was asked for. */
static void shared(void **state) {
  int status;
  (void)state;
  assert_null(sn_arena_shared(SIZE_MAX - 8));
  sn_arena *arena = sn_arena_shared(100000);
  char **text = sn_arena_alloc(arena, 1, sizeof *text);
  assert_non_null(text);
  pid_t child = fork();
  if (child == 0) {
    *text = sn_arena_text(arena, "from the child");
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_string_equal(*text, "from the child");
  assert_null(sn_arena_alloc(arena, 100000, 1));
  assert_non_null(sn_arena_alloc(arena, 90000, 1));
  sn_arena_free(arena);
}

/* What it takes over is freed with it (AddressSanitizer would find what is not); a shared one takes over nothing. */
static void adopted(void **state) {
  (void)state;
  sn_arena *arena = sn_arena_new(), *apart = sn_arena_shared(1000);
  for (size_t i = 1; i < 4; i++) assert_true(sn_arena_adopt(arena, malloc(i * 100000)));
  void *kept = malloc(1);
  assert_false(sn_arena_adopt(apart, kept));
  free(kept);
  sn_arena_free(arena);
  sn_arena_free(apart);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces),   cmocka_unit_test(nothing_is_something),
      cmocka_unit_test(overflow), cmocka_unit_test(texts),
      cmocka_unit_test(shared),   cmocka_unit_test(adopted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
