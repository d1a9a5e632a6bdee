/* The GPU that is meant where nobody names one: the one that $SNSIM_GPU names, else that of this machine, where the
 * driver tells and a profile is known, else rtx4090. */
#ifndef SN_CLI_OPTIONS_GPU_H
#define SN_CLI_OPTIONS_GPU_H

typedef struct sn_gpu_meant {
  const char *name; /* as --gpu takes it; of the environment's lifetime */
  const char *why;  /* "from $SNSIM_GPU", "this machine's", "by default" */
} sn_gpu_meant;

sn_gpu_meant sn_gpu_unnamed(void);

#endif
