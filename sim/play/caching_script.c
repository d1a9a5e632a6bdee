/* Caching script; see the header. */
#include "sim/play/caching_script.h"

#include "base/checked.h"

#include <stdlib.h>

static void add_request(sn__caching_script *s, sn__caching_kind kind, uint32_t id, uint32_t step,
                        sn_caching_size size) {
  bool gradient = kind == SN__GIVE && sn__caching_is_gradient(s, id);
  s->requests[s->n_requests++] = (sn__caching_request){(uint8_t)kind, gradient, id, step, 0, size};
  if (kind == SN__TAKE || kind == SN__PASS) s->n_until_taken = s->n_requests;
}

_Static_assert((int)SN_STREAMS <= (int)SN_CACHING_STREAMS, "an allocator has as many streams as a GPU");

static sn_caching_size size_of(const sn_tensor *tensor) {
  return sn_caching_size_on(tensor->bytes, sn_tensor_stream(tensor));
}

/* What is made in a step comes in front of all that the plan lists for it. */
static void write_requests(sn__caching_script *s) {
  const sn_caching_load *load = s->load;
  const sn_plan *plan = s->plan;
  uint32_t made = 0, n_taken = 0, n_given = 0;
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++) {
    for (; made < load->n_made && load->made[made].step == i->step; made++)
      add_request(s, SN__MAKE, made, i->step, sn_caching_size_of(load->made[made].bytes));
    bool works = i->kind == SN_COMPUTE && i->bytes > 0 && load->workspaces != SN_CACHING_LEFT_OUT;
    if (works) add_request(s, SN__PASS, (uint32_t)(i - plan->instrs), i->step, sn_caching_size_of(i->bytes));
    if (i->kind != SN_ALLOC && i->kind != SN_RELEASE) continue;
    bool takes = i->kind == SN_ALLOC;
    add_request(s, takes ? SN__TAKE : SN__GIVE, i->id, i->step, size_of(&plan->route->tensors[i->id]));
    s->requests[s->n_requests - 1].instr = (uint32_t)(i - plan->instrs);
    n_taken += takes;
    n_given += !takes;
  }
  s->gives_all = n_taken == n_given;
}

/* Where gradients are reduced to shards, those and what the micro-batches before have left are tensors of the route,
 * with lives of their own: it is that of the last micro-batch, and is obeyed once. */
static uint32_t micro_batches(const sn_route *route, const sn_caching_load *load) {
  bool sharded = route->mesh && sn_mesh_size(route->mesh, SN_MESH_FSDP) > 1;
  uint32_t asked = load->accumulate > 0 && !sharded ? load->accumulate : 1;
  return asked < SN_CACHING_MICRO_BATCHES ? asked : SN_CACHING_MICRO_BATCHES;
}

sn_status sn__caching_script_init(sn__caching_script *s, const sn_plan *plan, const sn_caching_load *load,
                                  sn_err *err) {
  *s = (sn__caching_script){
      .load = load, .plan = plan, .route = plan->route, .micro_batches = micro_batches(plan->route, load)};
  s->requests = malloc(((size_t)plan->n_instrs + load->n_made + 1) * sizeof *s->requests);
  if (!s->requests) return sn_fail_memory(err);
  write_requests(s);
  return SN_OK;
}

void sn__caching_script_clear(sn__caching_script *s) {
  free(s->requests);
}
