/* The module snsim_mpi.so: what cli/sweep/ranks.c needs of MPI, and the only file that knows MPI. Only the thread that
 * opened it makes calls (MPI_THREAD_FUNNELED); errors are returned, so that a lost rank is not the end of the others
 * where the launcher lets them live.
 *
 * Nothing here waits for another rank, which may be gone: messages are sent from copies, which are kept until they are
 * on their way. MPI_Init() and MPI_Finalize() alone wait for all: where one is known to be lost the latter is left out,
 * and elsewhere an alarm ends the process. */
#include "base/build_id.h"
#include "cli/sweep/ranks.h"

#include <mpi.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SETTLE_MS = 2000, FINALIZE_S = 10 };

typedef struct pending {
  struct pending *next;
  MPI_Request request;
  int to;
  unsigned char bytes[];
} pending;

struct sn__mpi {
  pending *first;
};

/* The exit status, for when MPI does not let go, and what is said then. */
static volatile sig_atomic_t exit_status;
static const char *volatile last_words;

static void leave(int number) {
  const char *text = last_words;
  (void)number;
  if (text && write(STDERR_FILENO, text, strlen(text)) < 0) _exit(exit_status);
  _exit(exit_status);
}

/* Ends the process unless the alarm is set again, or to 0, in time. */
static void leave_after(unsigned seconds, int status, const char *words) {
  struct sigaction end = {.sa_handler = leave};
  exit_status = status;
  last_words = words;
  sigaction(SIGALRM, &end, NULL);
  alarm(seconds);
}

/* What MPI may take to start: a minute, or what SNSIM_MPI_SECONDS says, where there are very many ranks. */
static unsigned start_seconds(void) {
  const char *text = getenv("SNSIM_MPI_SECONDS");
  unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;
  return seconds > 0 && seconds < 86400 ? (unsigned)seconds : 60;
}

static sn__mpi *open_mpi(int *own, int *count) {
  int provided;
  leave_after(
      start_seconds(), 4,
      "snsim: error: MPI did not start in time (SNSIM_MPI_SECONDS, 60 where it is not set); was a rank lost?\n");
  bool up = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS;
  alarm(0);
  if (!up) return NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  bool known = MPI_Comm_rank(MPI_COMM_WORLD, own) == MPI_SUCCESS && MPI_Comm_size(MPI_COMM_WORLD, count) == MPI_SUCCESS;
  return known ? calloc(1, sizeof(sn__mpi)) : NULL;
}

/* Frees what has been sent. A request that fails is one that nobody receives. */
static void look_at_pending(sn__mpi *mpi) {
  for (pending **at = &mpi->first; *at;) {
    pending *p = *at;
    int done = 0;
    if (MPI_Test(&p->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    free(p);
  }
}

static bool send_bytes(sn__mpi *mpi, int to, int tag, const void *bytes, int count) {
  pending *p = malloc(sizeof *p + (size_t)count);
  look_at_pending(mpi);
  if (!p) return false;
  if (count > 0) memcpy(p->bytes, bytes, (size_t)count);
  p->to = to;
  if (MPI_Isend(p->bytes, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &p->request) != MPI_SUCCESS) {
    free(p);
    return false;
  }
  pending **end = &mpi->first; /* the oldest first */
  while (*end) end = &(*end)->next;
  p->next = NULL;
  *end = p;
  return true;
}

static bool probe(sn__mpi *mpi, int *from, int *tag, int *count) {
  int there = 0;
  MPI_Status status;
  look_at_pending(mpi);
  if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) return false;
  *from = status.MPI_SOURCE;
  *tag = status.MPI_TAG;
  return MPI_Get_count(&status, MPI_BYTE, count) == MPI_SUCCESS;
}

static bool receive(sn__mpi *mpi, int from, int tag, void *bytes, int count) {
  (void)mpi;
  return MPI_Recv(bytes, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* Whether all that was sent to ranks that live is on its way, soon. */
static bool settle(sn__mpi *mpi, const bool *lost) {
  const struct timespec pause = {0, 1000000};
  for (int ms = 0; ms < SETTLE_MS; ms++, nanosleep(&pause, NULL)) {
    bool waits = false;
    look_at_pending(mpi);
    for (const pending *p = mpi->first; p; p = p->next) waits = waits || !lost[p->to];
    if (!waits) return true;
  }
  return false;
}

static void finalize(void) {
  leave_after(FINALIZE_S, exit_status, NULL);
  MPI_Finalize();
}

/* At the program's end, so that its last words are not lost with an MPI that hangs. */
static void close_mpi(sn__mpi *mpi, int status, const bool *lost, int count) {
  bool whole = settle(mpi, lost);
  for (int i = 0; i < count; i++) whole = whole && !lost[i];
  exit_status = status;
  if (whole) atexit(finalize);
  if (whole) free(mpi); /* else messages may still be on their way from it */
}

extern SN_MODULE_TABLE const sn_ranks_calls sn_ranks_module;
const sn_ranks_calls sn_ranks_module = {{sn_build_id}, open_mpi, close_mpi, send_bytes, probe, receive};
