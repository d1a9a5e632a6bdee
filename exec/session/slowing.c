/* Slowing; see the header.
 *
 *   compute   |--step a--|----step b----|--step c--|
 *   out             |......copy......|
 *
 * Step b takes t, of which copies go on for o; without them it would have taken t0, so in o it came t0 - (t - o)
 * forward.
 *
 * Computation's speed beside copies is that over o, summed over all steps that met any: 1 - sum (t - f t0) / sum o. The
 * factor f is what steps that met none took over what they take otherwise: processors are not equally fast all day. */
#include "exec/session/slowing.h"

#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/play/engine.h"

#include <math.h>
#include <stdlib.h>

typedef struct met {
  uint32_t count;         /* of runs */
  int64_t ns, overlap_ns; /* of all of them */
} met;

struct sn__slowing {
  size_t n_slots;
  met *slots;                                                      /* of layers and passes */
  uint64_t copies[SN_PLAIN_LANES], bytes[SN_PLAIN_LANES], copy_ns; /* copies', over both lanes */
};

sn__slowing *sn__slowing_new(const sn_net *net, sn_err *err) {
  sn__slowing *s = calloc(1, sizeof *s);
  if (s) s->n_slots = (size_t)net->n_layers * SN_PASSES;
  if (s) s->slots = calloc(s->n_slots, sizeof *s->slots);
  if (s && s->slots) return s;
  free(s);
  sn_fail_memory(err);
  return NULL;
}

void sn__slowing_free(sn__slowing *s) {
  if (!s) return;
  free(s->slots);
  free(s);
}

static bool is_copy(const sn_instr *i) {
  return i->kind == SN_COPY_OUT || i->kind == SN_COPY_IN;
}

/* For how long copies go on meanwhile. */
static int64_t overlap_of(const sn_plan *plan, const sn_trace *trace, sn_span span) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (!is_copy(&plan->instrs[i])) continue;
    sn_span other = trace->spans[i];
    int64_t begin = other.begin_ns > span.begin_ns ? other.begin_ns : span.begin_ns;
    int64_t end = other.end_ns < span.end_ns ? other.end_ns : span.end_ns;
    if (end > begin) sum += end - begin;
  }
  return sum < span.end_ns - span.begin_ns ? sum : span.end_ns - span.begin_ns; /* both ways at once */
}

void sn__slowing_visit(sn__slowing *s, const sn_plan *plan, const sn_trace *trace) {
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    sn_span span = trace->spans[i];
    if (is_copy(instr)) {
      s->copies[instr->lane]++;
      s->bytes[instr->lane] += instr->bytes;
      s->copy_ns += (uint64_t)(span.end_ns - span.begin_ns);
    }
    if (instr->kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[instr->id];
    met *m = &s->slots[(size_t)step->layer * SN_PASSES + step->pass];
    m->count++;
    m->ns += span.end_ns - span.begin_ns;
    m->overlap_ns += overlap_of(plan, trace, span);
  }
}

/* Times of steps that met copies, or of those that did not. */
typedef struct sums {
  double ns, alone_ns, overlap_ns;
} sums;

static sums add_up(const sn__slowing *s, const int64_t *step_ns, bool meeting) {
  sums all = {0, 0, 0};
  for (size_t i = 0; i < s->n_slots; i++) {
    const met *m = &s->slots[i];
    if (step_ns[i] == 0 || (m->overlap_ns > 0) != meeting) continue;
    all.ns += (double)m->ns;
    all.alone_ns += (double)step_ns[i] * m->count;
    all.overlap_ns += (double)m->overlap_ns;
  }
  return all;
}

static double within(double speed) {
  return fmin(fmax(speed, SN_ENGINE_LEAST_SPEED), 1);
}

void sn__slowing_speeds(const sn__slowing *s, const int64_t *step_ns, const sn_copy_rates *rates, sn_device *profile) {
  const sums meeting = add_up(s, step_ns, true), others = add_up(s, step_ns, false);
  if (meeting.overlap_ns <= 0) return;
  double factor = others.alone_ns > 0 ? others.ns / others.alone_ns : 1;
  double copies_alone = (double)s->bytes[SN_LANE_OUT] / rates->out + (double)s->bytes[SN_LANE_IN] / rates->in;
  copies_alone = copies_alone * 1e9 + (double)s->copies[SN_LANE_OUT] * (double)rates->out_latency_ns +
                 (double)s->copies[SN_LANE_IN] * (double)rates->in_latency_ns;
  profile->compute_speed = within(1 - (meeting.ns - factor * meeting.alone_ns) / meeting.overlap_ns);
  profile->copy_speed = within(copies_alone / (double)s->copy_ns);
}
