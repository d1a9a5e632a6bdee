/* The player: one small loop that feeds a back end; see sim/play/backend.h. */
#include "sim/play/backend.h"

#include "sim/graph/route.h"

#include <stdbool.h>
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

static bool is_stopped(const sn_play_options *o) {
  return o->stop && o->stop(o->user);
}

static sn_status play_once(const sn_plan *plan, const sn_backend *b, const sn_play_options *o, uint64_t iteration,
                           sn_err *err) {
  sn_status status = b->ops->begin ? b->ops->begin(b->self, iteration, err) : SN_OK;
  for (uint32_t i = 0; i < plan->n_instrs && status == SN_OK; i++) {
    if (plan->instrs[i].kind == SN_COMPUTE && is_stopped(o)) break;
    status = feed(b, (sn_instr_kind)plan->instrs[i].kind, i, err);
  }
  return status == SN_OK ? b->ops->sync(b->self, err) : status;
}

sn_status sn_play_many(const sn_plan *plan, sn_backend backend, const sn_play_options *options, sn_trace *trace,
                       uint64_t *done, sn_err *err) {
  sn_status status = backend.ops->reserve(backend.self, plan, trace, err);
  for (*done = 0; *done < options->iterations && status == SN_OK; ++*done) {
    status = play_once(plan, &backend, options, *done, err);
    if (status != SN_OK || is_stopped(options)) break;
    if (options->after) status = options->after(options->user, *done, trace, err);
  }
  backend.ops->close(backend.self);
  return status;
}

sn_status sn_play(const sn_plan *plan, sn_backend backend, sn_trace *trace, sn_err *err) {
  uint64_t done;
  sn_play_options once = {.iterations = 1};
  return sn_play_many(plan, backend, &once, trace, &done, err);
}

sn_status sn_trace_init(sn_trace *trace, const sn_plan *plan, sn_err *err) {
  *trace = (sn_trace){.n_spans = plan->n_instrs};
  trace->spans = calloc((size_t)plan->n_instrs + 1, sizeof *trace->spans);
  return trace->spans ? SN_OK : sn_fail_memory(err);
}

void sn_trace_clear(sn_trace *trace) {
  if (trace->before) sn_trace_clear(trace->before);
  free(trace->before);
  free(trace->spans);
  *trace = (sn_trace){0};
}

int64_t sn_trace_batch_ns(const sn_trace *trace, const sn_plan *plan) {
  const sn_trace *batch = trace->before ? trace->before : trace;
  int64_t updates = batch->end_ns;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_COMPUTE && plan->route->steps[instr->id].pass == SN_UPDATE &&
        batch->spans[i].begin_ns < updates)
      updates = batch->spans[i].begin_ns;
  }
  return updates;
}
