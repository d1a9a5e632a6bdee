/* The GPU of this machine, by the driver's library (NVML, loaded where it is there). A second or so on a machine with a
 * sleeping driver, microseconds on one without. */
#ifndef SN_EXEC_MACHINE_GPU_HERE_H
#define SN_EXEC_MACHINE_GPU_HERE_H

#include <stdbool.h>

/* What the driver calls its first GPU: "NVIDIA GeForce RTX 4090". False: there is none, or no driver.
 * $SNSIM_NVML names another library; "none" is none. */
bool sn_gpu_here(char *name, unsigned room);

#endif
