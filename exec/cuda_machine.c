/* The CUDA machine: finds the module and loads it. */
#include "exec/machine.h"

sn_status sn_machine_open_cuda(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                               sn_err *err) {
  (void)route, (void)options, (void)machine;
  return sn_fail(err, SN_BAD_DEVICE, "this build of snsim has no CUDA module");
}
