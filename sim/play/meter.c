/* The meter; see the header. O(1) an instruction. */
#include "sim/play/meter.h"

#include "base/checked.h"
#include "sim/graph/route.h"

#include <stdlib.h>
#include <string.h>

static sn_status reserve(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn_meter *m = self;
  sn_step_use *use = realloc(m->use, plan->route->n_steps * sizeof *use);
  if (!use) return sn_fail_memory(err);
  m->use = use;
  m->plan = plan;
  return m->inner.ops->reserve(m->inner.self, plan, trace, err);
}

static sn_status begin(void *self, uint64_t iteration, sn_err *err) {
  sn_meter *m = self;
  memset(m->use, 0, m->plan->route->n_steps * sizeof *m->use);
  memset(m->copied_bytes, 0, sizeof m->copied_bytes);
  m->touched_bytes = m->live_bytes = 0;
  m->live_tensors = 0;
  m->step = SN_NONE;
  return m->inner.ops->begin ? m->inner.ops->begin(m->inner.self, iteration, err) : SN_OK;
}

static void note(sn_meter *m) {
  sn_step_use *use = &m->use[m->step];
  use->tensor_bytes = sn_max(use->tensor_bytes, m->live_bytes);
  if (m->live_tensors > use->live_tensors) use->live_tensors = m->live_tensors;
}

/* The instruction, after noting what its step begins with. */
static const sn_instr *at(sn_meter *m, uint32_t index) {
  const sn_instr *i = &m->plan->instrs[index];
  if (i->step != m->step) {
    m->step = i->step;
    note(m);
  }
  return i;
}

static sn_status alloc(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  const sn_instr *i = at(m, index);
  m->live_bytes += m->plan->route->tensors[i->id].bytes;
  m->live_tensors++;
  m->touched_bytes = sn_max(m->touched_bytes, i->offset + i->bytes);
  note(m);
  return m->inner.ops->alloc(m->inner.self, index, err);
}

static sn_status release(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  const sn_instr *i = at(m, index);
  m->live_bytes -= m->plan->route->tensors[i->id].bytes;
  m->live_tensors--;
  return m->inner.ops->release(m->inner.self, index, err);
}

static sn_status compute(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  const sn_instr *i = at(m, index);
  uint64_t *workspace = &m->use[i->step].workspace_bytes;
  *workspace = sn_max(*workspace, sn_ceil_div(i->bytes, SN_POOL_BLOCK) * SN_POOL_BLOCK);
  if (i->bytes > 0) m->touched_bytes = sn_max(m->touched_bytes, i->offset + i->bytes);
  return m->inner.ops->compute(m->inner.self, index, err);
}

static sn_status copy(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  const sn_instr *i = at(m, index);
  m->copied_bytes[i->lane] += i->bytes;
  return m->inner.ops->copy(m->inner.self, index, err);
}

static sn_status signal_fence(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  at(m, index);
  return m->inner.ops->signal(m->inner.self, index, err);
}

static sn_status wait_fence(void *self, uint32_t index, sn_err *err) {
  sn_meter *m = self;
  at(m, index);
  return m->inner.ops->wait(m->inner.self, index, err);
}

static sn_status sync_all(void *self, sn_err *err) {
  sn_meter *m = self;
  return m->inner.ops->sync(m->inner.self, err);
}

static void close_inner(void *self) {
  sn_meter *m = self;
  m->inner.ops->close(m->inner.self);
}

static const sn_backend_ops meter_ops = {
    .name = "meter",
    .reserve = reserve,
    .begin = begin,
    .alloc = alloc,
    .release = release,
    .compute = compute,
    .copy = copy,
    .signal = signal_fence,
    .wait = wait_fence,
    .sync = sync_all,
    .close = close_inner,
};

sn_backend sn_meter_backend(sn_meter *meter) {
  return (sn_backend){.self = meter, .ops = &meter_ops};
}

void sn_meter_clear(sn_meter *meter) {
  free(meter->use);
  meter->use = NULL;
}
