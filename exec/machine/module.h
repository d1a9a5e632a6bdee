/* Modules: parts of snsim that need libraries which not everybody has. Each is a shared object of its own, loaded when
 * it is needed, so that everything else works without those libraries:
 *
 *   snsim_cpu.so    the CPU's kernels on oneDNN (exec/cpu/)
 *   snsim_cuda13.so the CUDA machine (exec/cuda/), one for each major version of CUDA
 *   snsim_mpi.so    messages of a sweep's ranks (cli/sweep/mpi_module.c)
 *
 * A module lies in the program's folder, as in the build tree, or in snsim/ of the library folder that it is installed
 * to. It exports one object, its table, which begins with a sn_module_head. It has copies of its own of the layers
 * below it. It stays loaded until the program ends: neither CUDA nor MPI always survive being unloaded.
 *
 *   static const sn_module module = {.name = "CPU", .file = "snsim_cpu.so", .table = "sn_cpu_module", ...};
 *   const sn_cpu_table *table = sn_module_load(&module, &err);
 */
#ifndef SN_EXEC_MACHINE_MODULE_H
#define SN_EXEC_MACHINE_MODULE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Structures of the headers cross the border: program and module must be of one build. */
typedef struct sn_module_head {
  const char *build; /* sn_build_id */
} sn_module_head;

/* Before a module's table, which is all that can be seen of it from outside. */
#define SN_MODULE_TABLE __attribute__((visibility("default")))

typedef struct sn_module {
  const char *name;     /* "CUDA", for errors */
  const char *file;     /* "snsim_cuda13.so" */
  const char *table;    /* the name of the object that it exports */
  const char *variable; /* an environment variable that may name another file; NULL: none */
  const char *absent;   /* what to do where there is no such file: whole sentences, the first begins after a colon */
  const char *needs;    /* what it needs where the loader finds it */
  bool global;          /* what it loads in turn must find its symbols */
} sn_module;

/* The folder of the running program, without a slash at its end; false where the system does not say. */
bool sn_module_program_folder(char *folder, size_t room);

/* Whether there is such a file; it may still not load. */
bool sn_module_is_there(const sn_module *module);

/* The module's table; NULL and SN_BAD_DEVICE where it is missing, cannot be loaded, or is of another build,
 * SN_NO_MEMORY where there is no room for it. */
const void *sn_module_load(const sn_module *module, sn_err *err);

#endif
