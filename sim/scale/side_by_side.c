/* Side by side; see the header. */
#include "sim/scale/side_by_side.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct crew {
  uint32_t n;
  atomic_uint next;
  void (*task)(void *user, uint32_t number);
  void *user;
} crew;

static void *work(void *self) {
  crew *c = self;
  for (uint32_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;) c->task(c->user, i);
  return NULL;
}

void sn_side_by_side(uint32_t n, uint32_t threads, void (*task)(void *user, uint32_t number), void *user) {
  pthread_t others[SN_SIDE_BY_SIDE_MOST];
  crew c = {.n = n, .task = task, .user = user};
  uint32_t most = threads < n ? threads : n, started = 0;
  if (most > SN_SIDE_BY_SIDE_MOST) most = SN_SIDE_BY_SIDE_MOST;
  atomic_init(&c.next, 0);
  while (started + 1 < most && pthread_create(&others[started], NULL, work, &c) == 0) started++;
  work(&c);
  for (uint32_t i = 0; i < started; i++) pthread_join(others[i], NULL);
}
