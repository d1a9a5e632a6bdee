/* The GPU that is meant where nobody names one; see the header. */
#include "cli/options/gpu.h"

#include "exec/machine/gpu_here.h"
#include "sim/device/device.h"

#include <stdlib.h>

sn_gpu_meant sn_gpu_unnamed(void) {
  char here[SN_DEVICE_NAME + 32];
  const char *named = getenv("SNSIM_GPU"), *known;
  if (named && *named) {
    known = sn_device_is_file(named) ? NULL : sn_device_called(named);
    return (sn_gpu_meant){known ? known : named, "from $SNSIM_GPU"};
  }
  known = sn_gpu_here(here, sizeof here) ? sn_device_called(here) : NULL;
  return known ? (sn_gpu_meant){known, "this machine's"} : (sn_gpu_meant){"rtx4090", "by default"};
}
