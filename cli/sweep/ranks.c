/* Ranks; see the header. */
#include "cli/sweep/ranks.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct sn_ranks {
  const sn_ranks_calls *calls;
  sn__mpi *mpi;
  int own, count;
  bool *lost;  /* per rank */
  void *bytes; /* of the last message */
  size_t room;
};

/* Open MPI, MPICH and Slurm (PMI), anything that speaks PMIx. */
bool sn_ranks_launched(void) {
  return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("PMIX_RANK");
}

/* One process alone needs no MPI; how many there are is not always known before MPI is up. */
static bool is_alone(void) {
  const char *size = getenv("OMPI_COMM_WORLD_SIZE");
  if (!size) size = getenv("PMI_SIZE");
  return size && strcmp(size, "1") == 0;
}

/* Open MPI loads parts of its own, which look for its symbols: hence global. */
static const sn_module mpi_module = {
    .name = "MPI",
    .file = "snsim_mpi.so",
    .table = SN_RANKS_TABLE,
    .absent =
        "several processes were started, and this snsim cannot talk to the others. Run it without mpirun, install the "
        "package snsim-mpi, or build it where CMake finds MPI (Debian: libopenmpi-dev)",
    .needs = "the MPI library that it was built with; or run snsim without mpirun",
    .global = true,
};

sn_ranks *sn_ranks_open(sn_err *err) {
  if (!sn_ranks_launched() || is_alone()) return NULL;
  const sn_ranks_calls *calls = sn_module_load(&mpi_module, err);
  if (!calls) return NULL;
  sn_ranks *ranks = calloc(1, sizeof *ranks);
  if (!ranks) {
    sn_fail_memory(err);
    return NULL;
  }
  ranks->calls = calls;
  ranks->mpi = calls->open(&ranks->own, &ranks->count);
  ranks->lost = ranks->mpi ? calloc((size_t)ranks->count, sizeof *ranks->lost) : NULL;
  if (ranks->lost) return ranks;
  sn_fail(err, SN_BAD_DEVICE, "MPI could not be started; run snsim without mpirun to do without it");
  free(ranks);
  return NULL;
}

/* The module stays loaded: MPI does not always survive being unloaded. */
void sn_ranks_close(sn_ranks *ranks, int status) {
  if (!ranks) return;
  ranks->calls->close(ranks->mpi, status, ranks->lost, ranks->count);
  free(ranks->lost);
  free(ranks->bytes);
  free(ranks);
}

uint32_t sn_ranks_own(const sn_ranks *ranks) {
  return (uint32_t)ranks->own;
}

uint32_t sn_ranks_count(const sn_ranks *ranks) {
  return (uint32_t)ranks->count;
}

void sn_ranks_lose(sn_ranks *ranks, uint32_t number) {
  ranks->lost[number] = true;
}

bool sn_ranks_is_whole(const sn_ranks *ranks) {
  for (int i = 0; i < ranks->count; i++)
    if (ranks->lost[i]) return false;
  return true;
}

bool sn_ranks_send(sn_ranks *ranks, uint32_t to, int tag, const void *bytes, size_t count) {
  return count <= INT_MAX && ranks->calls->send(ranks->mpi, (int)to, tag, bytes, (int)count);
}

bool sn_ranks_poll(sn_ranks *ranks, sn_message *message) {
  int from, tag, count;
  if (!ranks->calls->probe(ranks->mpi, &from, &tag, &count)) return false;
  if ((size_t)count > ranks->room) {
    void *bytes = realloc(ranks->bytes, (size_t)count);
    if (!bytes) return false; /* it waits */
    ranks->bytes = bytes;
    ranks->room = (size_t)count;
  }
  *message = (sn_message){(uint32_t)from, tag, ranks->bytes, (size_t)count};
  return ranks->calls->receive(ranks->mpi, from, tag, ranks->bytes, count);
}
