/* Outside: where a CPU puts what its plans send out: memory of the same machine, or a file on a disk, which leaves the
 * memory to others.
 *
 *   sn_outside *outside = sn_outside_new(plan->external_bytes, sn_outside_folder(), &err);
 *   sn_outside_put(outside, offset, tensor, bytes, &err);
 *   sn_outside_get(outside, offset, tensor, bytes, &err);
 *   sn_outside_free(outside);
 *
 * The file has no name from the moment it is opened, so that nothing of it is left however the process ends. It is
 * written and read by the system's own calls and never mapped: none of it counts among what the process has in memory.
 * The system may keep written pages as long as nobody else wants the memory.
 */
#ifndef SN_EXEC_MACHINE_OUTSIDE_H
#define SN_EXEC_MACHINE_OUTSIDE_H

#include "base/err.h"

#include <stdint.h>

typedef struct sn_outside sn_outside;

/* Where temporary files go that are large: $TMPDIR, or /var/tmp. */
const char *sn_outside_folder(void);

/* Whether a folder takes a file of so many bytes: SN_NO_FIT where its disk has not as many left, SN_BAD_FILE where it
 * cannot be looked at, or lies in memory itself (tmpfs). */
sn_status sn_outside_check(const char *folder, uint64_t bytes, sn_err *err);

/* `bytes` of room, all of which is taken now; in memory where `folder` is NULL. SN_NO_MEMORY, SN_NO_FIT; SN_BAD_FILE
 * where no file can be made or the disk is full. */
sn_outside *sn_outside_new(uint64_t bytes, const char *folder, sn_err *err);
void sn_outside_free(sn_outside *outside);

/* Copies `bytes` to `offset`, or from there. Any thread may, of bytes that no other is at. SN_BAD_FILE where the disk
 * fails. */
sn_status sn_outside_put(sn_outside *outside, uint64_t offset, const void *from, uint64_t bytes, sn_err *err);
sn_status sn_outside_get(const sn_outside *outside, uint64_t offset, void *to, uint64_t bytes, sn_err *err);

#endif
