/* Network: freeing one. A net is made by models/finish.c and lies in its arena, itself included. */
#include "models/net.h"

#include "base/arena.h"

void sn_net_free(sn_net *net) {
  if (net) sn_arena_free(net->arena);
}
