/* Work in a process of its own; see the header.
 *
 * The child sends messages of one size through a pipe, the last with its error; when the pipe ends without that one,
 * the child died. Its standard error goes to a file without a name: what a library says when it dies becomes a part of
 * the sentence, anything else is passed on. */
#include "cli/train/apart.h"

#include "cli/options/out.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { LOOK_MS = 100, SAID = 240, REPORT = 1000 };

typedef enum topic { PROGRESS, SAY, DONE } topic;

/* Smaller than a pipe's atomic write. */
typedef struct message {
  topic topic;
  sn_err err; /* of PROGRESS and SAY the text alone */
} message;

struct sn_apart {
  int pipe;
};

typedef struct child {
  pid_t pid;
  int pipe;
  FILE *said; /* its standard error; NULL: none was to be had, it is ours */
  int interrupts;
  bool done;
} child;

/* ---- in the child ---- */

static void send_message(const sn_apart *self, topic about, const char *text, sn_status code) {
  message m = {.topic = about, .err = {.code = code}};
  if (text) snprintf(m.err.text, sizeof m.err.text, "%s", text);
  if (write(self->pipe, &m, sizeof m) != sizeof m) exit(1); /* nobody listens any more */
}

void sn_apart_progress(sn_apart *self, const char *text) {
  send_message(self, PROGRESS, text, SN_OK);
}

void sn_apart_say(sn_apart *self, const char *text) {
  send_message(self, SAY, text, SN_OK);
}

/* With its parent it ends: nobody would hear of what it does. */
static void end_with(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) exit(1);
}

static void be_child(const child *c, int pipe, pid_t parent, sn_apart_work work, void *user) {
  sn_apart self = {pipe};
  sn_err err = SN_ERR_INIT;
  end_with(parent);
  if (c->said) dup2(fileno(c->said), STDERR_FILENO);
  work(&self, user, &err);
  fflush(NULL);
  send_message(&self, DONE, err.text, err.code);
  exit(0);
}

/* ---- in the parent ---- */

static sn_status start(child *c, sn_apart_work work, void *user, sn_err *err) {
  int ends[2];
  pid_t parent = getpid();
  if (pipe(ends) != 0) return sn_fail(err, SN_BAD_DEVICE, "no pipe can be made: %s", strerror(errno));
  c->said = tmpfile();
  fflush(NULL); /* what waits to be written would be written twice */
  c->pid = fork();
  int reason = errno;
  if (c->pid == 0) {
    close(ends[0]);
    be_child(c, ends[1], parent, work, user);
  }
  close(ends[1]);
  c->pipe = ends[0];
  if (c->pid > 0) return SN_OK;
  close(ends[0]);
  if (c->said) fclose(c->said);
  return sn_fail(err, SN_BAD_DEVICE,
                 "training needs a process of its own, and none can be started: %s; see the limits of processes and "
                 "memory (ulimit -u, ulimit -v)",
                 strerror(reason));
}

/* False when the pipe has ended. */
static bool take_message(child *c, sn_err *err) {
  message m;
  if (read(c->pipe, &m, sizeof m) != sizeof m) return false;
  if (m.topic == PROGRESS) sn_out_progress(m.err.text);
  if (m.topic != PROGRESS) sn_out_progress(NULL);
  if (m.topic == SAY) sn_out_say("%s", m.err.text);
  if (m.topic == DONE) {
    c->done = true;
    *err = m.err;
  }
  return true;
}

/* Ctrl-C at a terminal reaches the child by itself as well; a signal to this process alone does not. */
static void pass_interrupt(child *c) {
  struct timespec now = {0, 0};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  if (sigtimedwait(&set, NULL, &now) != SIGINT) return;
  kill(c->pid, c->interrupts++ == 0 ? SIGINT : SIGKILL);
}

static void listen(child *c, sn_err *err) {
  struct pollfd look = {.fd = c->pipe, .events = POLLIN};
  for (bool more = true; more;) {
    if (poll(&look, 1, LOOK_MS) > 0) more = take_message(c, err);
    pass_interrupt(c);
  }
  sn_out_progress(NULL);
  close(c->pipe);
}

/* What the child wrote to standard error: short and of one that died, `quote` it; else pass it on. */
static void read_said(const child *c, char quote[SAID]) {
  char text[REPORT + 1];
  quote[0] = '\0';
  if (!c->said || fseek(c->said, 0, SEEK_SET) != 0) return;
  size_t count = fread(text, 1, REPORT + 1, c->said);
  if (c->done || count > REPORT) { /* a sanitizer's report is long */
    for (; count > 0; count = fread(text, 1, REPORT, c->said)) fwrite(text, 1, count, stderr);
    return;
  }
  text[count] = '\0';
  for (char *end = text + strlen(text); end > text && end[-1] == '\n'; *--end = '\0') continue;
  for (char *at = text; (at = strchr(at, '\n')); *at = ' ') continue;
  snprintf(quote, SAID, "%s", text + strspn(text, " "));
}

static sn_status say_death(const child *c, int status, const char *quote, sn_err *err) {
  char how[80], here[60] = "";
  struct rlimit bytes;
  if (WIFSIGNALED(status))
    snprintf(how, sizeof how, "%s", strsignal(WTERMSIG(status)));
  else
    snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
  const char *colon = quote[0] ? ": " : "";
  if (c->interrupts > 1) return sn_fail(err, SN_BAD_DEVICE, "interrupted a second time, so training ended at once");
  if (strstr(quote, "Assertion"))
    return sn_fail(err, SN_BUG, "training died (%s)%s%s; please report it", how, colon, quote);
  if (getrlimit(RLIMIT_AS, &bytes) == 0 && bytes.rlim_cur != RLIM_INFINITY)
    snprintf(here, sizeof here, ", here %llu KiB", (unsigned long long)bytes.rlim_cur / 1024);
  return sn_fail(err, SN_BAD_DEVICE,
                 "training died in a library (%s%s%s), as happens where memory or threads end: raise the limits "
                 "(ulimit -v%s; ulimit -u), or choose a smaller batch or fewer --threads",
                 how, colon, quote, here);
}

sn_status sn_apart_run(sn_apart_work work, void *user, sn_err *err) {
  child c = {0};
  char quote[SAID];
  int status = 0;
  if (start(&c, work, user, err) != SN_OK) return err->code;
  listen(&c, err);
  while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) continue;
  read_said(&c, quote);
  if (c.said) fclose(c.said);
  if (!c.done) say_death(&c, status, quote, err);
  if (c.done && WIFSIGNALED(status)) /* libraries clean up at the end; what was measured stands */
    sn_out_say("training was done; its process then died in a library (%s)", strsignal(WTERMSIG(status)));
  else if (c.done && status != 0)
    sn_fail(err, SN_BUG, "training was done and then died; please report it");
  if (c.interrupts > 0) raise(SIGINT); /* it waits again until it is asked for */
  return err->code;
}
