/* Caching script; see the header. */
#include "sim/play/caching_script.h"

#include "base/checked.h"

#include <stdlib.h>

#define MOST_INSTRS ((1u << 29) - 1) /* of sn__caching_request.instr */

static void add_request(sn__caching_script *s, sn__caching_kind kind, uint32_t id, const sn_instr *instr,
                        sn_caching_size size) {
  bool gradient = kind == SN__GIVE && sn__caching_is_gradient(s, id);
  s->requests[s->n_requests++] =
      (sn__caching_request){(unsigned)kind & 3u, gradient, (uint32_t)(instr - s->plan->instrs) & MOST_INSTRS, id, size};
  if (kind == SN__TAKE || kind == SN__PASS) s->n_until_taken = s->n_requests;
}

_Static_assert((int)SN_STREAMS <= (int)SN_CACHING_STREAMS, "an allocator has as many streams as a GPU");

static sn_caching_size size_of(const sn_route *route, const sn_tensor *tensor) {
  return sn_caching_size_on(tensor->bytes, route->mesh ? sn_tensor_stream(tensor) : SN_STREAM_COMPUTE);
}

static bool needs_workspace(const sn_caching_load *load, const sn_instr *i) {
  return i->kind == SN_COMPUTE && i->bytes > 0 && load->workspaces != SN_CACHING_LEFT_OUT;
}

static size_t count_requests(const sn_plan *plan, const sn_caching_load *load) {
  size_t n = load->n_made;
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++)
    n += i->kind == SN_ALLOC || i->kind == SN_RELEASE || needs_workspace(load, i);
  return n;
}

/* What is made in a step comes in front of all that the plan lists for it. */
static void write_requests(sn__caching_script *s) {
  const sn_caching_load *load = s->load;
  const sn_plan *plan = s->plan;
  uint32_t made = 0, n_taken = 0, n_given = 0;
  for (const sn_instr *i = plan->instrs; i < plan->instrs + plan->n_instrs; i++) {
    for (; made < load->n_made && load->made[made].step == i->step; made++)
      add_request(s, SN__MAKE, made, i, sn_caching_size_of(load->made[made].bytes));
    if (needs_workspace(load, i))
      add_request(s, SN__PASS, (uint32_t)(i - plan->instrs), i, sn_caching_size_of(i->bytes));
    if (i->kind != SN_ALLOC && i->kind != SN_RELEASE) continue;
    bool takes = i->kind == SN_ALLOC;
    add_request(s, takes ? SN__TAKE : SN__GIVE, i->id, i, size_of(plan->route, &plan->route->tensors[i->id]));
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
  if (plan->n_instrs <= MOST_INSTRS) s->requests = malloc((count_requests(plan, load) + 1) * sizeof *s->requests);
  if (!s->requests) return sn_fail_memory(err);
  write_requests(s);
  return sn__caching_rounds_find(s, err);
}

void sn__caching_script_clear(sn__caching_script *s) {
  free(s->requests);
  free(s->rounds.to);
}

/* What rounds that come again leave behind. */
static uint64_t extra_bytes(const sn__caching_script *s) {
  uint64_t bytes = 0;
  for (uint32_t i = s->rounds.first; i < s->rounds.end && s->rounds.n_kept > 0; i++)
    if (s->requests[i].kind == SN__TAKE) bytes += s->requests[i].size.bytes;
  for (uint32_t i = s->rounds.first; i < s->rounds.end && s->rounds.n_kept > 0; i++)
    if (s->requests[i].kind == SN__GIVE) bytes -= s->requests[i].size.bytes;
  return s->rounds.again * bytes;
}

uint64_t sn__caching_least_allocated(const sn__caching_script *s) {
  uint64_t live = 0, most = 0, extra = extra_bytes(s);
  for (uint32_t i = 0; i < s->load->n_before; i++) most = live += sn_caching_size_of(s->load->before[i]).bytes;
  for (const sn__caching_request *q = s->requests; q < s->requests + s->n_requests; q++) {
    if (extra > 0 && q == s->requests + s->rounds.end) live += extra;
    if (extra > 0 && q == s->requests + s->rounds.given) live -= extra;
    most = sn_max(most, live + (q->kind == SN__GIVE ? 0 : q->size.bytes));
    if (q->kind == SN__TAKE || q->kind == SN__MAKE) live += q->size.bytes;
    if (q->kind == SN__GIVE) live -= q->size.bytes;
  }
  return most;
}
