/* Gnuplot: one child process per picture, no shell.
 *
 * Script and messages pass through unnamed temporary files, not pipes: neither side can then wait for the other for
 * ever, and a gnuplot that dies early cannot send this program a SIGPIPE. Nothing of the user's is on the command line;
 * -d keeps ~/.gnuplot out, so that every machine draws the same picture. */
#include "plots/plot_internal.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int spawn(int script, int picture, int messages, pid_t *child) {
  char name[] = "gnuplot", defaults[] = "-d", standard_input[] = "-";
  char *const arguments[] = {name, defaults, standard_input, NULL};
  posix_spawn_file_actions_t files;
  int rc = posix_spawn_file_actions_init(&files);
  if (rc != 0) return rc;
  rc = posix_spawn_file_actions_adddup2(&files, script, STDIN_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, picture, STDOUT_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, messages, STDERR_FILENO);
  if (rc == 0) rc = posix_spawnp(child, name, &files, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  return rc;
}

static sn_status fail_start(int rc, sn_err *err) {
  if (rc == ENOENT)
    return sn_fail(
        err, SN_BAD_DEVICE,
        "gnuplot, which draws the pictures, is not installed or not in PATH; install it (Debian, Ubuntu: apt "
        "install gnuplot-nox; Fedora: dnf install gnuplot; macOS: brew install gnuplot)");
  return sn_fail(err, SN_BAD_DEVICE, "gnuplot cannot be started: %s", strerror(rc));
}

/* What gnuplot said, on one line: it draws carets under the script's lines, which are of no use to the user. */
static void read_messages(FILE *messages, char *text, size_t room) {
  size_t used = 0;
  rewind(messages);
  for (int c = getc(messages); c != EOF && used + 2 < room; c = getc(messages)) {
    bool blank = c == '\n' || c == '\t' || c == ' ' || c == '^';
    if (blank && (used == 0 || text[used - 1] == ' ')) continue;
    text[used++] = blank ? ' ' : (char)c;
  }
  text[used] = '\0';
}

static sn_status fail_run(int status, FILE *messages, sn_err *err) {
  char text[400];
  /* POSIX lets posix_spawnp report a missing program this way. */
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return fail_start(ENOENT, err);
  read_messages(messages, text, sizeof text);
  const char *said = text[0] ? text : "it did not say why";
  if (WIFSIGNALED(status))
    return sn_fail(err, SN_BAD_DEVICE, "gnuplot was stopped by signal %d: %s", WTERMSIG(status), said);
  return sn_fail(err, SN_BAD_DEVICE, "gnuplot failed (exit code %d): %s", WEXITSTATUS(status), said);
}

static sn_status wait_for(pid_t child, FILE *messages, sn_err *err) {
  int status;
  pid_t done;
  do done = waitpid(child, &status, 0);
  while (done < 0 && errno == EINTR);
  if (done < 0) return sn_fail(err, SN_BAD_DEVICE, "gnuplot's end was not reported: %s", strerror(errno));
  return status == 0 ? SN_OK : fail_run(status, messages, err);
}

sn_status sn__gnuplot_run(FILE *script, int picture, sn_err *err) {
  FILE *messages = tmpfile();
  pid_t child;
  if (!messages)
    return sn_fail(err, SN_BAD_FILE, "a temporary file cannot be made: %s; make room in /tmp", strerror(errno));
  rewind(script);
  int rc = spawn(fileno(script), picture, fileno(messages), &child);
  if (rc == 0)
    wait_for(child, messages, err);
  else
    fail_start(rc, err);
  fclose(messages);
  return err->code;
}
