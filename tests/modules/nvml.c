/* NVML as sn_gpu_here() asks it, of a machine whose first GPU has the name in $FAKE_GPU_NAME; without it there is none.
 */
#include <stdio.h>
#include <stdlib.h>

#define SEEN __attribute__((visibility("default")))

SEEN int nvmlInit_v2(void);
SEEN int nvmlShutdown(void);
SEEN int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
SEEN int nvmlDeviceGetName(void *device, char *name, unsigned room);

int nvmlInit_v2(void) {
  return getenv("FAKE_GPU_NAME") ? 0 : 9;
}

int nvmlShutdown(void) {
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  static int first;
  *device = &first;
  return index == 0 ? 0 : 2;
}

int nvmlDeviceGetName(void *device, char *name, unsigned room) {
  if (!device) return 2;
  return snprintf(name, room, "%s", getenv("FAKE_GPU_NAME")) < (int)room ? 0 : 7;
}
