/* Processors; see the header. Linux's masks; elsewhere the system chooses where threads run. */
#define _GNU_SOURCE /* sched_getaffinity and its sets */
#include "exec/machine/processors.h"

#include <unistd.h>

#ifdef __linux__
#include <sched.h>

static uint32_t count_of(const cpu_set_t *allowed) {
  return (uint32_t)CPU_COUNT(allowed);
}

uint32_t sn_processors_count(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0) return count_of(&allowed);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

/* The set has room for 1,024 processors; where the system has more it cannot be read, and nothing is pinned. */
void sn_processors_pin(uint32_t first, uint32_t count) {
  cpu_set_t allowed, wanted;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0) return;
  uint32_t all = count_of(&allowed), number = 0;
  CPU_ZERO(&wanted);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (count >= all || (number + all - first % all) % all < count) CPU_SET(cpu, &wanted);
    number++;
  }
  sched_setaffinity(0, sizeof wanted, &wanted);
}
#else
uint32_t sn_processors_count(void) {
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

void sn_processors_pin(uint32_t first, uint32_t count) {
  (void)first, (void)count;
}
#endif
