/* The GPU of this machine; see the header. NVML's functions are declared as its documentation describes them. */
#include "exec/machine/gpu_here.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvml {
  int (*start)(void);
  int (*stop)(void);
  int (*find)(unsigned index, void **device);
  int (*name)(void *device, char *name, unsigned room);
} nvml;

/* ISO C has no cast between data and functions. */
static bool find_symbol(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool ask(void *library, char *name, unsigned room) {
  nvml n;
  void *device = NULL;
  if (!find_symbol(library, "nvmlInit_v2", &n.start) || !find_symbol(library, "nvmlShutdown", &n.stop) ||
      !find_symbol(library, "nvmlDeviceGetHandleByIndex_v2", &n.find) ||
      !find_symbol(library, "nvmlDeviceGetName", &n.name) || n.start() != 0)
    return false;
  bool known = n.find(0, &device) == 0 && n.name(device, name, room) == 0;
  n.stop();
  return known;
}

bool sn_gpu_here(char *name, unsigned room) {
  const char *file = getenv("SNSIM_NVML");
  if (file && strcmp(file, "none") == 0) return false;
  void *library = dlopen(file && *file ? file : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  bool known = ask(library, name, room);
  dlclose(library);
  return known;
}
