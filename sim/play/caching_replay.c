/* Caching replay; see the header. */
#include "sim/play/caching_replay.h"

#include <stdlib.h>

typedef struct replay {
  const sn_plan *plan;
  const sn_caching_load *load;
  sn_caching *caching;
  uint32_t *blocks; /* per tensor, those it holds now; 0: none */
  uint32_t *kept;   /* per tensor: the block of an accumulated gradient; 0: none */
  uint32_t next_made;
  uint32_t iteration, micro_batch, step; /* micro-batches from 0 */
  sn_caching_replayed *result;
} replay;

/* A request that does not fit ends the replay: SN_NO_FIT, noted in the result. */
static sn_status take(replay *r, uint64_t bytes, uint32_t *block, sn_err *err) {
  uint64_t peak = sn_caching_look(r->caching)->allocated_peak;
  sn_status status = sn_caching_take(r->caching, bytes, block, err);
  if (status == SN_NO_FIT) {
    r->result->fits = false;
    r->result->failed_iteration = r->iteration;
    r->result->failed_step = r->step;
    r->result->failed_bytes = bytes;
  }
  if (r->iteration > 0 && sn_caching_look(r->caching)->allocated_peak > peak)
    r->result->iterations[r->iteration - 1].step = r->step;
  return status;
}

static sn_status make_before(replay *r, sn_err *err) {
  uint32_t block;
  for (uint32_t i = 0; i < r->load->n_before && err->code == SN_OK; i++) take(r, r->load->before[i], &block, err);
  return err->code;
}

static sn_status make_state(replay *r, sn_err *err) {
  uint32_t block;
  for (; r->next_made < r->load->n_made && r->load->made[r->next_made].step == r->step; r->next_made++)
    if (take(r, r->load->made[r->next_made].bytes, &block, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status give(replay *r, uint32_t *block, sn_err *err) {
  uint32_t given = *block;
  *block = 0;
  return sn_caching_give(r->caching, given, err);
}

/* What the first micro-batch makes of a parameter's gradient is the gradient from then on. */
static sn_status give_tensor(replay *r, uint32_t tensor, sn_err *err) {
  bool gradient = r->plan->route->tensors[tensor].role == SN_PARAMETER_GRADIENT;
  if (!gradient || r->load->accumulate < 2 || r->micro_batch > 0) return give(r, &r->blocks[tensor], err);
  if (r->blocks[tensor]) r->kept[tensor] = r->blocks[tensor];
  r->blocks[tensor] = 0;
  return SN_OK;
}

static sn_status obey(replay *r, const sn_instr *i, sn_err *err) {
  uint32_t workspace;
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
    return take(r, r->plan->route->tensors[i->id].bytes, &r->blocks[i->id], err);
  case SN_RELEASE:
    return give_tensor(r, i->id, err);
  case SN_COMPUTE:
    if (take(r, i->bytes, &workspace, err) != SN_OK) return err->code;
    return sn_caching_give(r->caching, workspace, err);
  default:
    return SN_OK;
  }
}

/* The plan once, without the updates where another micro-batch follows. */
static sn_status obey_all(replay *r, bool last, sn_err *err) {
  uint32_t end = last ? r->plan->route->n_steps : r->plan->route->first_update;
  for (uint32_t n = 0; n < r->plan->n_instrs && err->code == SN_OK; n++) {
    r->step = r->plan->instrs[n].step;
    if (r->step < end && make_state(r, err) == SN_OK) obey(r, &r->plan->instrs[n], err);
  }
  for (uint32_t t = 0; t < r->plan->route->n_tensors && err->code == SN_OK; t++) give_tensor(r, t, err);
  return err->code;
}

static sn_status iterate(replay *r, sn_err *err) {
  sn_caching_peak *peak = &r->result->iterations[r->iteration - 1];
  uint32_t asked = r->load->accumulate ? r->load->accumulate : 1;
  uint32_t count = asked < SN_CACHING_MICRO_BATCHES ? asked : SN_CACHING_MICRO_BATCHES;
  sn_caching_reset_peaks(r->caching);
  for (r->micro_batch = 0; r->micro_batch < count && err->code == SN_OK; r->micro_batch++)
    obey_all(r, r->micro_batch + 1 == count, err);
  for (uint32_t t = 0; t < r->plan->route->n_tensors && err->code == SN_OK; t++) give(r, &r->kept[t], err);
  peak->allocated_bytes = sn_caching_look(r->caching)->allocated_peak;
  peak->reserved_bytes = sn_caching_look(r->caching)->reserved_peak;
  return err->code;
}

/* Peaks of all: those before the first iteration, and of both. */
static void sum_up(replay *r, sn_caching_figures before) {
  sn_caching_replayed *result = r->result;
  sn_caching_figures *f = &result->figures;
  sn_caching_peak steady = result->iterations[SN_CACHING_ITERATIONS - 1];
  *f = *sn_caching_look(r->caching);
  f->allocated_peak = before.allocated_peak;
  f->reserved_peak = before.reserved_peak;
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) {
    const sn_caching_peak *peak = &result->iterations[i];
    if (peak->allocated_bytes > f->allocated_peak) f->allocated_peak = peak->allocated_bytes;
    if (peak->reserved_bytes > f->reserved_peak) f->reserved_peak = peak->reserved_bytes;
  }
  if (!result->fits) steady = (sn_caching_peak){f->allocated_peak, f->reserved_peak, SN_NONE};
  if (steady.reserved_bytes > 0)
    result->fragmentation = 1 - (double)steady.allocated_bytes / (double)steady.reserved_bytes;
  result->largest_split_bytes = sn_caching_largest_split(r->caching);
}

static sn_status play(replay *r, sn_err *err) {
  make_before(r, err);
  sn_caching_figures before = *sn_caching_look(r->caching);
  for (r->iteration = 1; r->iteration <= SN_CACHING_ITERATIONS && err->code == SN_OK; r->iteration++) iterate(r, err);
  sum_up(r, before);
  if (!r->result->fits) *err = (sn_err)SN_ERR_INIT;
  return err->code;
}

sn_status sn_caching_replay(const sn_plan *plan, const sn_caching_load *load, sn_caching_replayed *result,
                            sn_err *err) {
  *result = (sn_caching_replayed){.fits = true, .failed_step = SN_NONE};
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) result->iterations[i].step = SN_NONE;
  replay r = {.plan = plan, .load = load, .step = SN_NONE, .result = result};
  r.caching = sn_caching_new(load->limit_bytes, &load->options, err);
  r.blocks = calloc((size_t)plan->route->n_tensors + 1, sizeof *r.blocks);
  r.kept = calloc((size_t)plan->route->n_tensors + 1, sizeof *r.kept);
  if (!r.blocks || !r.kept)
    sn_fail_memory(err);
  else if (r.caching)
    play(&r, err);
  free(r.blocks);
  free(r.kept);
  sn_caching_free(r.caching);
  return err->code;
}
