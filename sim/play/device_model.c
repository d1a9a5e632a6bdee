/* Simulated device; see the header. */
#include "sim/play/device_model.h"

#include "sim/device/device.h"
#include "sim/device/link.h"
#include "sim/graph/route.h"
#include "sim/parallel/times.h"
#include "sim/play/engine.h"

#include <stdlib.h>
#include <string.h>

static sn_status reserve(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn_device_model *m = self;
  m->plan = plan;
  m->trace = trace;
  trace->known_ns = m->issued_ns = m->done_ns = m->waited_ns = 0;
  trace->uneven = false;
  m->rounds = sn_rounds_of(plan->route);
  m->done_before_ns = -1;
  memset(m->threads, 0, sizeof m->threads);
  trace->workspace_alloc_ns = m->allocator == SN_ALLOCATOR_CUDA ? m->device->malloc_ns : 0;
  trace->workspace_free_ns = m->allocator == SN_ALLOCATOR_CUDA ? m->device->free_ns : 0;
  m->engine = sn_engine_new(sn_plan_lanes(plan), plan->n_fences, m->shared_link, trace->spans, err);
  if (m->engine && m->device->compute_speed > 0)
    sn_engine_set_speeds(m->engine, m->device->compute_speed, m->device->copy_speed);
  if (m->engine && sn_plan_is_corun(plan)) sn_engine_set_cores(m->engine, &m->device->cores);
  return m->engine ? SN_OK : err->code;
}

/* cudaMalloc or cudaFree: the device runs dry, then the host is busy. */
static sn_status hold_up(sn_device_model *m, int64_t ns, sn_err *err) {
  sn_status status = sn_engine_drain(m->engine, err);
  if (status == SN_OK) status = sn_engine_pass(m->engine, ns, err);
  m->trace->allocation_ns += ns;
  return status;
}

static sn_status memory(sn_device_model *m, uint32_t index, int64_t ns, sn_err *err) {
  if (m->allocator != SN_ALLOCATOR_CUDA) {
    m->trace->spans[index] = (sn_span){-1, -1};
    return SN_OK;
  }
  sn_status status = hold_up(m, ns, err);
  int64_t now = sn_engine_now(m->engine);
  m->trace->spans[index] = (sn_span){now - ns, now};
  return status;
}

static sn_status alloc(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  return memory(m, index, m->device->malloc_ns, err);
}

static sn_status release(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  return memory(m, index, m->device->free_ns, err);
}

/* *known: the measured part of it. */
static int64_t compute_ns(const sn_device_model *m, const sn_instr *i, int64_t *known) {
  const sn_route *route = m->plan->route;
  const sn_step *step = &route->steps[i->id];
  bool half = m->device->cores.count > 0 && step->kernel == SN_FILTER_GRADIENT;
  bool part = step->kernel == SN_CAST || step->kernel == SN_DATA_GRADIENT || step->kernel == SN_SUM;
  if (!route->work && (route->dialect->by_kernel || half || part)) {
    *known = sn_costs_kernel(m->costs, step, i->algo, true);
    return sn_costs_kernel(m->costs, step, i->algo, false);
  }
  *known = sn_step_moves(step) || step->kernel == SN_SHARED_SUM
               ? 0
               : sn_costs_step_known(m->costs, step->layer, step->pass, i->algo);
  return sn_costs_of(m->costs, route, step, i->algo);
}

/* How far the host is ahead behind all rounds that one stands for: as far as before each, or further by as much with each
 * of them where the device never waits. */
static void skip_rounds(sn_device_model *m) {
  int64_t issued = m->issued_ns - m->issued_before_ns, done = m->done_ns - m->done_before_ns;
  bool waits = m->waited_ns > m->waited_before_ns;
  m->trace->uneven = waits ? done != issued : done < issued;
  m->issued_ns += m->rounds.again * issued;
  m->done_ns += m->rounds.again * done;
  m->rounds.again = 0;
}

static void note_round(sn_device_model *m, uint32_t step) {
  if (m->rounds.again == 0 || step < m->rounds.first) return;
  if (step >= m->rounds.end) {
    skip_rounds(m);
  } else if (m->done_before_ns < 0) {
    m->issued_before_ns = m->issued_ns;
    m->done_before_ns = m->done_ns;
    m->waited_before_ns = m->waited_ns;
  }
}

/* The host issues one operation after another, ahead of the device where those of the device take longer; one that is
 * not issued yet is waited for. Copies that the device waits for are left out: they would only put the host further
 * ahead. */
static int64_t wait_for_host(sn_device_model *m, const sn_instr *i, int64_t ns) {
  const sn_route *route = m->plan->route;
  const sn_step *step = &route->steps[i->id];
  if (!route->dialect->eager && !route->work) return 0; /* has no host */
  if (step->kernel == SN_TRANSFER) return 0;            /* on a lane of its own */
  note_round(m, i->step);
  m->issued_ns += sn_costs_host_ns(m->costs, route, step);
  int64_t wait = m->issued_ns > m->done_ns ? m->issued_ns - m->done_ns : 0;
  m->done_ns += wait + ns;
  m->waited_ns += wait;
  return wait;
}

/* An operation on its team. */
static sn_status run_team(sn_device_model *m, uint32_t index, sn_err *err) {
  const sn_instr *i = &m->plan->instrs[index];
  const sn_team *team = &m->plan->teams[i->team];
  const sn_time_class *c = &m->times->classes[m->times->class_of[i->id * SN_STEP_PARTS + i->part]];
  sn_running running = {.team = *team, .share = c->share[team->count]};
  int64_t resize_ns = sn_pace_resize_ns(&m->device->cores, m->threads[i->lane], team->count);
  m->threads[i->lane] = team->count;
  if (c->measured) m->trace->known_ns += c->ns[team->count];
  return sn_engine_run_team(m->engine, i->lane, c->ns[team->count] + resize_ns, running, index, err);
}

static sn_status compute(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  const sn_instr *i = &m->plan->instrs[index];
  if (sn_plan_is_corun(m->plan)) return run_team(m, index, err);
  if (m->reduces_later && sn_step_reduces_once(m->plan->route, i->id))
    return sn_engine_run(m->engine, i->lane, 0, index, err);
  bool allocates = m->allocator == SN_ALLOCATOR_CUDA && i->bytes > 0;
  sn_status status = allocates ? hold_up(m, m->trace->workspace_alloc_ns, err) : SN_OK;
  int64_t known, ns = compute_ns(m, i, &known);
  m->trace->known_ns += known;
  ns += wait_for_host(m, i, ns);
  if (status == SN_OK) status = sn_engine_run(m->engine, i->lane, ns, index, err);
  if (status == SN_OK && allocates) status = hold_up(m, m->trace->workspace_free_ns, err);
  return status;
}

static sn_status copy(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  const sn_instr *i = &m->plan->instrs[index];
  sn_link link = sn_link_of(m->device, m->external);
  if (m->pageable && m->external == SN_EXTERNAL_HOST) link.bytes_per_s *= SN_PAGEABLE_SHARE;
  return sn_engine_copy(m->engine, i->lane, sn_link_ns(link, i->bytes), index, err);
}

static sn_status signal_fence(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  const sn_instr *i = &m->plan->instrs[index];
  return sn_engine_signal(m->engine, i->lane, i->id, index, err);
}

static sn_status wait_fence(void *self, uint32_t index, sn_err *err) {
  sn_device_model *m = self;
  const sn_instr *i = &m->plan->instrs[index];
  return sn_engine_wait(m->engine, i->lane, i->id, index, err);
}

static sn_status sync_all(void *self, sn_err *err) {
  sn_device_model *m = self;
  sn_status status = sn_engine_drain(m->engine, err);
  m->trace->end_ns = sn_engine_now(m->engine);
  m->trace->events = sn_engine_events(m->engine);
  for (uint32_t lane = 0; lane < sn_plan_lanes(m->plan); lane++) {
    m->trace->busy_ns[lane] = sn_engine_busy(m->engine, lane);
    m->trace->stall_ns[lane] = sn_engine_stalled(m->engine, lane);
  }
  return status;
}

static void close_model(void *self) {
  sn_device_model *m = self;
  sn_engine_free(m->engine);
  m->engine = NULL;
}

static const sn_backend_ops model_ops = {
    .name = "sim",
    .reserve = reserve,
    .alloc = alloc,
    .release = release,
    .compute = compute,
    .copy = copy,
    .signal = signal_fence,
    .wait = wait_fence,
    .sync = sync_all,
    .close = close_model,
};

sn_backend sn_device_model_backend(sn_device_model *model) {
  return (sn_backend){.self = model, .ops = &model_ops};
}

static bool has_reduced_once(const sn_route *route) {
  for (uint32_t s = 0; s < route->n_steps; s++)
    if (sn_step_reduces_once(route, s)) return true;
  return false;
}

static sn_status play_before(sn_device_model *model, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  trace->before = calloc(1, sizeof *trace->before);
  if (!trace->before) return sn_fail_memory(err);
  model->reduces_later = true;
  sn_status status = sn_trace_init(trace->before, plan, err);
  if (status == SN_OK) status = sn_play(plan, sn_device_model_backend(model), trace->before, err);
  model->reduces_later = false;
  return status;
}

sn_status sn_device_model_play(sn_device_model *model, const sn_plan *plan, uint32_t batches, sn_trace *trace,
                               sn_err *err) {
  sn_status status = sn_trace_init(trace, plan, err);
  if (status == SN_OK) status = sn_play(plan, sn_device_model_backend(model), trace, err);
  bool differs = status == SN_OK && batches > 1 && plan->route->mesh && has_reduced_once(plan->route);
  return differs ? play_before(model, plan, trace, err) : status;
}
