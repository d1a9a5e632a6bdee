/* Ranks: the processes that one mpirun started, sending each other messages.
 *
 *   sn_ranks *ranks = sn_ranks_open(&err);      NULL and no error: there is but one
 *   sn_ranks_send(ranks, 0, tag, bytes, count);
 *   while (sn_ranks_poll(ranks, &message)) ...
 *   sn_ranks_close(ranks, status);
 *
 * MPI is in a module of its own (cli/sweep/mpi_module.c), which is loaded here and only where a launcher's variables
 * are in the environment: snsim itself neither needs libmpi nor waits for it to start. One thread uses the ranks.
 */
#ifndef SN_CLI_SWEEP_RANKS_H
#define SN_CLI_SWEEP_RANKS_H

#include "base/err.h"
#include "exec/machine/module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn_ranks sn_ranks;

typedef struct sn_message {
  uint32_t from;
  int tag;
  const void *bytes; /* until the next poll */
  size_t count;
} sn_message;

/* Whether a launcher started this process, perhaps as the only one. */
bool sn_ranks_launched(void);

/* SN_BAD_DEVICE where a launcher started several processes and the module is missing or does not come up. */
sn_ranks *sn_ranks_open(sn_err *err);
/* `status` is the program's exit status. Where a rank was lost MPI is left as it is, which would wait for it. */
void sn_ranks_close(sn_ranks *ranks, int status);

/* Rank `number` is not heard of any more; or, by its own number, somebody is known to be lost. */
void sn_ranks_lose(sn_ranks *ranks, uint32_t number);
bool sn_ranks_is_whole(const sn_ranks *ranks); /* nobody is known to be lost */

uint32_t sn_ranks_own(const sn_ranks *ranks);
uint32_t sn_ranks_count(const sn_ranks *ranks);

/* Does not wait: the bytes are copied. False where it is known that they cannot be sent. */
bool sn_ranks_send(sn_ranks *ranks, uint32_t to, int tag, const void *bytes, size_t count);
/* The next message that has come; false: there is none now. */
bool sn_ranks_poll(sn_ranks *ranks, sn_message *message);

/* The module's table (exec/machine/module.h). */
#define SN_RANKS_TABLE "sn_ranks_module"

typedef struct sn__mpi sn__mpi; /* the module's */

typedef struct sn_ranks_calls {
  sn_module_head head;
  sn__mpi *(*open)(int *own, int *count);
  void (*close)(sn__mpi *mpi, int status, const bool *lost, int count);
  bool (*send)(sn__mpi *mpi, int to, int tag, const void *bytes, int count);
  bool (*probe)(sn__mpi *mpi, int *from, int *tag, int *count);
  bool (*receive)(sn__mpi *mpi, int from, int tag, void *bytes, int count);
} sn_ranks_calls;

#endif
