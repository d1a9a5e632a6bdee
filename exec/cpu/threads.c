/* CPU module: whether the threads that training takes can be had. OpenMP ends the process where it cannot start one, so
 * they are all started once before, and end again at once: some 20 us each. */
#include "exec/cpu/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *pass(void *gate) {
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
  return NULL;
}

sn_status sn__cpu_try_threads(unsigned count, sn_err *err) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_t *threads = malloc((count + 1) * sizeof *threads);
  unsigned started = 0;
  int reason = 0;
  if (!threads) return sn_fail_memory(err);
  pthread_mutex_lock(&gate);
  while (started < count && (reason = pthread_create(&threads[started], NULL, pass, &gate)) == 0) started++;
  pthread_mutex_unlock(&gate);
  for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
  free(threads);
  if (reason == 0) return SN_OK;
  return sn_fail(err, SN_BAD_DEVICE,
                 "training takes %u threads beside the first, and only %u can be started here (%s); give fewer "
                 "--threads, or raise the limits (ulimit -u, ulimit -v)",
                 count, started, strerror(reason));
}
