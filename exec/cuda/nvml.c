/* Device memory in use, by NVML (libnvidia-ml, part of the driver), loaded where it is there. Declared here as its
 * documentation describes it: these functions have not changed since CUDA 5. */
#include "exec/cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory_info {
  unsigned long long total, unused, used;
} memory_info;

typedef struct nvml {
  void *library, *device;
  int (*start)(void);
  int (*stop)(void);
  int (*find)(const char *bus, void **device);
  int (*memory)(void *device, memory_info *info);
  int (*driver)(char *version, unsigned room);
} nvml;

/* ISO C has no cast between data and functions. */
static bool find_symbol(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool start(nvml *n, int device) {
  char bus[32];
  n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!n->library || !find_symbol(n->library, "nvmlInit_v2", &n->start) ||
      !find_symbol(n->library, "nvmlShutdown", &n->stop) ||
      !find_symbol(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &n->find) ||
      !find_symbol(n->library, "nvmlDeviceGetMemoryInfo", &n->memory) ||
      !find_symbol(n->library, "nvmlSystemGetDriverVersion", &n->driver))
    return false;
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess || n->start() != 0) return false;
  if (n->find(bus, &n->device) == 0) return true;
  n->stop();
  return false;
}

void *sn__nvml_open(int device) {
  nvml *n = calloc(1, sizeof *n);
  if (!n || start(n, device)) return n;
  if (n->library) dlclose(n->library);
  free(n);
  return NULL;
}

bool sn__nvml_used(const void *opened, uint64_t *bytes) {
  const nvml *n = opened;
  memory_info info;
  if (!n || n->memory(n->device, &info) != 0) return false;
  *bytes = info.used;
  return true;
}

bool sn__nvml_driver(const void *opened, char *version, unsigned room) {
  const nvml *n = opened;
  return n && n->driver(version, room) == 0;
}

void sn__nvml_close(void *opened) {
  nvml *n = opened;
  if (!n) return;
  n->stop();
  dlclose(n->library);
  free(n);
}
