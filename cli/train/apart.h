/* Apart: work done in a process of its own. Training calls libraries that end the process where memory or threads end:
 * oneDNN by a signal, OpenMP by exit(). What dies then is the child; this process says so in one sentence and has what
 * was finished before.
 *
 *   static void work(sn_apart *self, void *user, sn_err *err) { ... }
 *   sn_apart_run(work, &user, &err);            err: the work's own error, or how it died
 *
 * The child has copies of everything; what it is to hand back beyond the error it writes into an arena that both share
 * (sn_arena_shared()). Ctrl-C, held back by the caller (sn_train_prepare()), is told the child, which ends when it can;
 * a second one ends it at once.
 */
#ifndef SN_CLI_TRAIN_APART_H
#define SN_CLI_TRAIN_APART_H

#include "base/err.h"

typedef struct sn_apart sn_apart;
typedef void (*sn_apart_work)(sn_apart *self, void *user, sn_err *err);

/* SN_BAD_DEVICE where no process can be started or it died; SN_BUG where an assertion of ours failed. */
sn_status sn_apart_run(sn_apart_work work, void *user, sn_err *err);

/* In the child: shown by this process, as sn_out_progress() and sn_out_say() show it. */
void sn_apart_progress(sn_apart *self, const char *text);
void sn_apart_say(sn_apart *self, const char *text);

#endif
