/* The player: one small loop that feeds a back end; see sim/backend.h. */
#include "sim/backend.h"

#include <stdlib.h>

static sn_status feed(const sn_backend *b, sn_instr_kind kind, uint32_t index, sn_err *err) {
  switch (kind) {
  case SN_ALLOC:
    return b->ops->alloc(b->self, index, err);
  case SN_RELEASE:
    return b->ops->release(b->self, index, err);
  case SN_COMPUTE:
    return b->ops->compute(b->self, index, err);
  case SN_COPY_OUT:
  case SN_COPY_IN:
    return b->ops->copy(b->self, index, err);
  case SN_SIGNAL:
    return b->ops->signal(b->self, index, err);
  case SN_WAIT:
    return b->ops->wait(b->self, index, err);
  case SN_INSTR_KINDS:
    break;
  }
  return sn_fail(err, SN_BUG, "plan instruction %u is of no known kind", index);
}

sn_status sn_play(const sn_plan *plan, sn_backend backend, sn_trace *trace, sn_err *err) {
  sn_status status = backend.ops->reserve(backend.self, plan, trace, err);
  for (uint32_t i = 0; i < plan->n_instrs && status == SN_OK; i++)
    status = feed(&backend, (sn_instr_kind)plan->instrs[i].kind, i, err);
  if (status == SN_OK) status = backend.ops->sync(backend.self, err);
  backend.ops->close(backend.self);
  return status;
}

sn_status sn_trace_init(sn_trace *trace, const sn_plan *plan, sn_err *err) {
  *trace = (sn_trace){.n_spans = plan->n_instrs};
  trace->spans = calloc((size_t)plan->n_instrs + 1, sizeof *trace->spans);
  return trace->spans ? SN_OK : sn_fail_memory(err);
}

void sn_trace_clear(sn_trace *trace) {
  free(trace->spans);
  *trace = (sn_trace){0};
}
