/* Pipes as files that are read: what is written into one is read, and one that nobody writes to is refused. */
#include "base/path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void make_pipe(char *path) {
  assert_non_null(mkdtemp(path));
  strcat(path, "/pipe");
  assert_int_equal(mkfifo(path, 0600), 0);
}

static void drop_pipe(char *path) {
  unlink(path);
  *strrchr(path, '/') = '\0';
  rmdir(path);
}

static void nobody_writes(void **state) {
  (void)state;
  char path[40] = "pipe.XXXXXX";
  sn_err err = SN_ERR_INIT;
  make_pipe(path);
  assert_null(sn_path_open(path, &err));
  assert_int_equal(err.code, SN_BAD_FILE);
  assert_non_null(strstr(err.text, "nobody writes to this pipe"));
  drop_pipe(path);
}

/* Late and in two parts. */
static void somebody_writes(void **state) {
  (void)state;
  char path[40] = "pipe.XXXXXX", text[20] = "";
  const struct timespec moment = {.tv_nsec = 100000000};
  sn_err err = SN_ERR_INIT;
  make_pipe(path);
  pid_t child = fork();
  if (child == 0) {
    nanosleep(&moment, NULL);
    FILE *out = fopen(path, "w");
    bool good = out && fputs("first ", out) >= 0 && fflush(out) == 0;
    nanosleep(&moment, NULL);
    _exit(good && fputs("second", out) >= 0 && fclose(out) == 0 ? 0 : 1);
  }
  FILE *in = sn_path_open(path, &err);
  assert_non_null(in);
  assert_int_equal(fread(text, 1, sizeof text - 1, in), strlen("first second"));
  assert_string_equal(text, "first second");
  fclose(in);
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  drop_pipe(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_writes), cmocka_unit_test(somebody_writes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
