/* Host: what the system says of the machine this process runs on: memory that can still be taken, what of
 * it this process has, and how busy it is.
 *
 *   sn_host_memory left = sn_host_memory_left();
 *   if (needed > left.bytes) ... "of %s", left.of ...
 *
 * Asked before memory is filled: Linux hands out more than there is and kills whoever uses it.
 */
#ifndef SN_EXEC_MACHINE_HOST_H
#define SN_EXEC_MACHINE_HOST_H

#include "base/err.h"

#include <stdint.h>

typedef struct sn_host_memory {
  uint64_t bytes; /* that can be taken now; UINT64_MAX: not known */
  const char *of; /* what has them: "this machine", "the limit on this process (ulimit -v)", "the container" */
} sn_host_memory;

/* The least of what the system has available, what the limit on the address space leaves and what the control group of
 * the process leaves. What cannot be read sets no limit. */
sn_host_memory sn_host_memory_left(void);

typedef struct sn_resident {
  uint64_t bytes; /* of this process that lie in memory */
  uint64_t own;   /* of these, what no file holds: heap, code made while running, stacks */
} sn_resident;

/* Now, after what the heap holds back has gone. SN_BAD_DEVICE where the system does not say. */
sn_status sn_resident_now(sn_resident *resident, sn_err *err);

typedef struct sn_host_load {
  double average;      /* processes that run or want to, on average over one minute */
  uint32_t processors; /* online; 0 where neither is known */
} sn_host_load;

sn_host_load sn_host_load_now(void);

#endif
