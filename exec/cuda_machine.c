/* The CUDA machine: finds the module (exec/cuda_module.h), loads it and opens the machine in it, so that the same
 * program runs with and without CUDA.
 *
 * The module is $SNSIM_CUDA_MODULE where that is set; else snsim_cuda.so in the program's folder, else in snsim/ of
 * the library folder that it is installed beside. It is never unloaded: the CUDA runtime does not survive that. */
#include "exec/cuda_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif
/* From the program's folder to that of the installed module. */
#ifndef SN_CUDA_MODULE_DIR
#define SN_CUDA_MODULE_DIR "../lib/snsim"
#endif

#define MODULE_NAME "snsim_cuda.so"

enum { PATH_ROOM = PATH_MAX + sizeof SN_CUDA_MODULE_DIR + sizeof MODULE_NAME };

/* The folder of the running program, without a slash at its end; false where the system does not say. */
static bool find_program_folder(char *folder, size_t room) {
  ssize_t length = readlink("/proc/self/exe", folder, room - 1);
  if (length <= 0) return false;
  folder[length] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash) *slash = '\0';
  return slash != NULL;
}

static sn_status find_module(char *path, sn_err *err) {
  char folder[PATH_MAX];
  const char *asked = getenv("SNSIM_CUDA_MODULE");
  if (asked) {
    snprintf(path, PATH_ROOM, "%s", asked);
    if (access(path, F_OK) == 0) return SN_OK;
    return sn_fail(err, SN_BAD_DEVICE, "the CUDA module %.200s, which SNSIM_CUDA_MODULE names, does not exist", asked);
  }
  if (find_program_folder(folder, sizeof folder)) {
    snprintf(path, PATH_ROOM, "%s/" MODULE_NAME, folder);
    if (access(path, F_OK) == 0) return SN_OK;
    snprintf(path, PATH_ROOM, "%s/" SN_CUDA_MODULE_DIR "/" MODULE_NAME, folder);
    if (access(path, F_OK) == 0) return SN_OK;
  }
  return sn_fail(err, SN_BAD_DEVICE,
                 "there is no CUDA module (" MODULE_NAME "): this build was made without CUDA, or the module was not "
                 "installed. Build where the CUDA toolkit and cuDNN 9 are (docs/cuda.md), or use --backend cpu");
}

static sn_status load(const char *path, const sn_cuda_module **module, sn_err *err) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return sn_fail(err, SN_BAD_DEVICE,
                   "the CUDA module cannot be loaded: %.300s. It needs the CUDA runtime, cuDNN 9 and cuBLAS where the "
                   "loader finds them (ldconfig, LD_LIBRARY_PATH)",
                   why ? why : path);
  }
  void *symbol = dlsym(library, SN_CUDA_ENTRY);
  sn_cuda_entry entry;
  memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast between data and functions */
  if (!entry) return sn_fail(err, SN_BAD_DEVICE, "%.200s is not a CUDA module of snsim", path);
  *module = entry();
  if ((*module)->abi == SN_CUDA_ABI && strcmp((*module)->version, SNSIM_VERSION) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_DEVICE,
                 "the CUDA module %.200s is of another build than this program; install both from one build", path);
}

sn_status sn_machine_open_cuda(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                               sn_err *err) {
  char path[PATH_ROOM];
  const sn_cuda_module *module = NULL;
  if (find_module(path, err) != SN_OK || load(path, &module, err) != SN_OK) return err->code;
  return module->open(route, options, machine, err);
}
