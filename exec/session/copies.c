/* Copies; see the header.
 *
 *   compute  alloc 0 | alloc 1
 *   out                          copy_out 0, COPIES times
 *   in                           copy_in 1, COPIES times
 *
 * Tensor 0 leaves and tensor 1 comes, both of `bytes`, whatever their real size: nothing is computed with them. Several
 * iterations of each plan, of which the first warms up; the median copy counts. */
#include "exec/session/copies.h"

#include "sim/graph/route.h"

#include <stdlib.h>

enum { COPIES = 5, ITERATIONS = 4, MOST_SPANS = 2 * COPIES * ITERATIONS };

static const uint64_t large = UINT64_C(32) << 20;

typedef struct probe {
  const sn_plan *plan;
  int64_t ns[SN_PLAIN_LANES][MOST_SPANS];
  uint32_t count[SN_PLAIN_LANES];
} probe;

static sn_status note(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err) {
  probe *p = user;
  (void)err;
  for (uint32_t i = 0; iteration > 0 && i < p->plan->n_instrs; i++) {
    const sn_instr *instr = &p->plan->instrs[i];
    if (instr->kind != SN_COPY_OUT && instr->kind != SN_COPY_IN) continue;
    p->ns[instr->lane][p->count[instr->lane]++] = trace->spans[i].end_ns - trace->spans[i].begin_ns;
  }
  return SN_OK;
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int64_t median(probe *p, sn_lane lane) {
  if (p->count[lane] == 0) return 0;
  qsort(p->ns[lane], p->count[lane], sizeof *p->ns[lane], compare);
  int64_t ns = p->ns[lane][p->count[lane] / 2];
  return ns > 0 ? ns : 1;
}

/* Median times of a copy of `bytes` each way; 0 for a direction that is not asked for. */
static sn_status play(const sn_machine *machine, const sn_route *route, uint64_t bytes, bool out, bool in,
                      int64_t ns[SN_PLAIN_LANES], sn_err *err) {
  sn_instr instrs[2 + 2 * COPIES];
  sn_plan plan = {.route = route, .instrs = instrs, .pool_bytes = 2 * bytes, .external_bytes = 2 * bytes};
  for (uint32_t t = 0; t < 2; t++)
    instrs[plan.n_instrs++] =
        (sn_instr){.kind = SN_ALLOC, .lane = SN_LANE_COMPUTE, .id = t, .offset = t * bytes, .bytes = bytes};
  for (int i = 0; i < COPIES; i++) {
    if (out) instrs[plan.n_instrs++] = (sn_instr){.kind = SN_COPY_OUT, .lane = SN_LANE_OUT, .bytes = bytes};
    if (in)
      instrs[plan.n_instrs++] =
          (sn_instr){.kind = SN_COPY_IN, .lane = SN_LANE_IN, .id = 1, .offset = bytes, .bytes = bytes};
  }
  probe p = {.plan = &plan};
  sn_trace trace;
  uint64_t done;
  sn_play_options options = {.iterations = ITERATIONS, .after = note, .user = &p};
  if (sn_trace_init(&trace, &plan, err) != SN_OK) return err->code;
  sn_status status = sn_play_many(&plan, machine->ops->backend(machine->self), &options, &trace, &done, err);
  sn_trace_clear(&trace);
  for (sn_lane lane = 0; lane < SN_PLAIN_LANES; lane++) ns[lane] = median(&p, lane);
  return status;
}

sn_status sn_copies_measure(const sn_machine *machine, const sn_route *route, sn_copy_rates *rates, sn_err *err) {
  int64_t out[SN_PLAIN_LANES], in[SN_PLAIN_LANES], both[SN_PLAIN_LANES], block_out[SN_PLAIN_LANES],
      block_in[SN_PLAIN_LANES];
  double bytes = (double)large;
  if (route->n_tensors < 2) return sn_fail(err, SN_BAD_INPUT, "the network is too small to measure copies with");
  if (play(machine, route, large, true, false, out, err) != SN_OK ||
      play(machine, route, large, false, true, in, err) != SN_OK ||
      play(machine, route, large, true, true, both, err) != SN_OK ||
      play(machine, route, SN_POOL_BLOCK, true, false, block_out, err) != SN_OK ||
      play(machine, route, SN_POOL_BLOCK, false, true, block_in, err) != SN_OK)
    return err->code;
  *rates = (sn_copy_rates){
      .out = bytes / (double)out[SN_LANE_OUT] * 1e9,
      .in = bytes / (double)in[SN_LANE_IN] * 1e9,
      .together = (bytes / (double)both[SN_LANE_OUT] + bytes / (double)both[SN_LANE_IN]) * 1e9,
      .out_latency_ns = block_out[SN_LANE_OUT],
      .in_latency_ns = block_in[SN_LANE_IN],
  };
  return SN_OK;
}
