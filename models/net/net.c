/* Network: freeing one, and whether it can be trained. A net is made by models/build/finish.c and lies in its arena, itself
 * included. */
#include "models/net/net.h"

#include "base/arena.h"

void sn_net_free(sn_net *net) {
  if (net) sn_arena_free(net->arena);
}

sn_status sn_net_check_training(const sn_net *net, bool inference, sn_err *err) {
  return net->inference_only && !inference ? sn_fail(err, SN_BAD_INPUT, "%s", net->inference_only) : SN_OK;
}
