/* The module snsim_mpi.so: what cli/sweep/ranks.c needs of MPI, and the only file that knows MPI. Only the thread that
 * opened it makes calls (MPI_THREAD_FUNNELED); errors are returned, so that a lost rank is not the end of the others
 * where the launcher lets them live. */
#include "base/build_id.h"
#include "cli/sweep/ranks.h"

#include <mpi.h>

static bool open_mpi(int *own, int *count) {
  int provided;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) return false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return MPI_Comm_rank(MPI_COMM_WORLD, own) == MPI_SUCCESS && MPI_Comm_size(MPI_COMM_WORLD, count) == MPI_SUCCESS;
}

static void close_mpi(void) {
  MPI_Finalize();
}

static bool send_bytes(int to, int tag, const void *bytes, int count) {
  return MPI_Send(bytes, count, MPI_BYTE, to, tag, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool probe(int *from, int *tag, int *count) {
  int there = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) return false;
  *from = status.MPI_SOURCE;
  *tag = status.MPI_TAG;
  return MPI_Get_count(&status, MPI_BYTE, count) == MPI_SUCCESS;
}

static bool receive(int from, int tag, void *bytes, int count) {
  return MPI_Recv(bytes, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

extern SN_MODULE_TABLE const sn_ranks_calls sn_ranks_module;
const sn_ranks_calls sn_ranks_module = {{sn_build_id}, open_mpi, close_mpi, send_bytes, probe, receive};
