/* Processors: those that this process may run on, numbered from 0 as the system lists them. They are the cores of this
 * machine: a processor is what the system counts as one, of two hardware threads of a core each.
 */
#ifndef SN_EXEC_MACHINE_PROCESSORS_H
#define SN_EXEC_MACHINE_PROCESSORS_H

#include <stdint.h>

/* How many there are, at least 1. */
uint32_t sn_processors_count(void);

/* From now on the calling thread, and threads that it starts, run on processors [first, first + count) only; numbers
 * beyond the last begin again at 0. Where the system does not let it, the thread runs where it may. */
void sn_processors_pin(uint32_t first, uint32_t count);

#endif
