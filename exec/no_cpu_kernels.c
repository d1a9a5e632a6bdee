/* What stands in for the CPU kernels in a build without oneDNN: nothing runs, and why is said. */
#include "exec/cpu_kernels.h"

sn_cpu_kernels *sn_cpu_kernels_new(const sn_net *net, unsigned threads, sn_err *err) {
  (void)net;
  (void)threads;
  sn_fail(err, SN_BAD_DEVICE,
          "this build of snsim has no CPU kernels: install libdnnl-dev (oneDNN) and build it with gcc");
  return NULL;
}

void sn_cpu_kernels_free(sn_cpu_kernels *kernels) {
  (void)kernels;
}

uint64_t sn_cpu_kernels_scratch(const sn_cpu_kernels *kernels, uint32_t layer, sn_pass pass) {
  (void)kernels;
  (void)layer;
  (void)pass;
  return 0;
}

sn_status sn_cpu_kernels_run(sn_cpu_kernels *kernels, const sn_call *call, sn_err *err) {
  (void)kernels;
  (void)call;
  return sn_fail(err, SN_BUG, "there are no CPU kernels to run");
}

unsigned sn_cpu_kernels_threads(const sn_cpu_kernels *kernels) {
  (void)kernels;
  return 0;
}

const char *sn_cpu_kernels_version(const sn_cpu_kernels *kernels) {
  (void)kernels;
  return "none";
}
