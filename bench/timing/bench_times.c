/* Times of recordings alone, of many questions: what `bench/times.py --constants` asks variants of the
 * cost model.
 *
 *   build/bench/bench_times < QUESTIONS          lines: BATCH GPU FILE.rec.gz
 *
 * Prints for each line an iteration's nanoseconds as PyTorch runs it, all of it in memory - what `snsim --strategy
 * pytorch` says, without plans and what they take - and the network's parameters; or "refused" and why. Questions of a
 * batch that stand one behind the other share the reading.
 */
#include "models/zoo/zoo.h"

#include "sim/device/cost.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 4096, LONGEST_GPU = 63 };

typedef struct asked {
  uint32_t batch;
  char gpu[LONGEST_GPU + 1], path[LONGEST];
} asked;

typedef struct read_net {
  asked of;
  sn_net *net;
  sn_route *route;
} read_net;

static void forget(read_net *known) {
  sn_route_free(known->route);
  sn_net_free(known->net);
  *known = (read_net){.net = NULL};
}

/* What is known is kept where it is of the same. */
static sn_status take_net(read_net *known, const asked *a, sn_err *err) {
  if (known->route && known->of.batch == a->batch && strcmp(known->of.path, a->path) == 0) return SN_OK;
  forget(known);
  known->of = *a;
  known->net = sn_net_load(a->path, a->batch, 0, err);
  if (known->net)
    known->route =
        sn_route_new_for(known->net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){.accumulate = 1}, NULL, err);
  return err->code;
}

/* An operation begins when the one before has ended and the host has issued it. */
static int64_t iteration_ns(const sn_costs *costs, const sn_route *route) {
  static const uint8_t fastest[2] = {0, 0};
  int64_t issued = 0, done = 0;
  for (uint32_t i = 0; i < route->n_steps; i++) {
    const sn_step *step = &route->steps[i];
    issued += sn_costs_host_ns(costs, route, step);
    done = (issued > done ? issued : done) + sn_costs_of(costs, route, step, fastest);
  }
  return done;
}

static sn_status answer(read_net *known, const asked *a, sn_err *err) {
  sn_device device;
  if (sn_device_load(a->gpu, &device, err) != SN_OK || take_net(known, a, err) != SN_OK) return err->code;
  sn_costs *costs = sn_costs_new_in(known->net, &device, (sn_iteration){.accumulate = 1}, err);
  if (!costs) return err->code;
  printf("%" PRId64 " %" PRIu64 "\n", iteration_ns(costs, known->route), known->net->parameters);
  sn_costs_free(costs);
  return SN_OK;
}

int main(void) {
  read_net known = {.net = NULL};
  asked a;
  while (scanf("%" SCNu32 " %63s %4095[^\n]", &a.batch, a.gpu, a.path) == 3) {
    sn_err err = SN_ERR_INIT;
    if (answer(&known, &a, &err) != SN_OK) printf("refused %s\n", err.text);
  }
  forget(&known);
  return 0;
}
