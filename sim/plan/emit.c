/* Emitter; see the header. */
#include "sim/plan/emit.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/schedule/offload.h"

#include <stdlib.h>

static sn_status add(sn__emit *e, sn_instr instr) {
  instr.step = e->step;
  return sn__lanes_add(&e->lanes, instr);
}

static sn_status signal_lane(sn__emit *e, sn_lane on) {
  return sn__lanes_signal(&e->lanes, on, e->step);
}

static sn_status order(sn__emit *e, sn_lane lane, sn_lane other, uint32_t clock) {
  return sn__lanes_order(&e->lanes, lane, other, clock, e->step);
}

/* What the compute lane does next comes after these of the out lane and of the in lane. */
static sn_status order_compute(sn__emit *e, uint32_t out, uint32_t in) {
  sn_status status = order(e, SN_LANE_COMPUTE, SN_LANE_OUT, out);
  return status == SN_OK ? order(e, SN_LANE_COMPUTE, SN_LANE_IN, in) : status;
}

static void list_remove(sn__emit *e, uint32_t tensor) {
  sn__place *p = &e->places[tensor];
  *(p->newer == SN_NONE ? &e->newest : &e->places[p->newer].older) = p->older;
  *(p->older == SN_NONE ? &e->oldest : &e->places[p->older].newer) = p->newer;
}

static void list_push(sn__emit *e, uint32_t tensor) {
  sn__place *p = &e->places[tensor];
  p->newer = SN_NONE;
  p->older = e->newest;
  *(e->newest == SN_NONE ? &e->oldest : &e->places[e->newest].newer) = tensor;
  e->newest = tensor;
}

bool sn__emit_listed(const sn__emit *e, uint32_t tensor) {
  return e->cache && (!e->narrow || sn_offload_is_narrow(e->route, tensor));
}

static void meter(sn__emit *e) {
  sn_step_use *use = &e->plan->use[e->step];
  use->tensor_bytes = sn_max(use->tensor_bytes, e->live_bytes);
  if (e->live_tensors > use->live_tensors) use->live_tensors = e->live_tensors;
}

sn_status sn__emit_begin(sn__emit *e, const sn_route *route, uint64_t limit, bool cache, sn_err *err) {
  *e = (sn__emit){.route = route, .limit = limit, .cache = cache, .err = err, .newest = SN_NONE, .oldest = SN_NONE};
  e->plan = calloc(1, sizeof *e->plan);
  e->places = calloc(route->n_tensors, sizeof *e->places);
  if (route->mesh) e->beside = calloc(route->n_tensors, sizeof *e->beside);
  if (!e->plan || !e->places || (route->mesh && !e->beside)) return sn_fail_memory(err);
  e->plan->transfers = route->mesh != NULL;
  e->lanes = (sn__lanes){.plan = e->plan, .n_lanes = sn_plan_lanes(e->plan), .err = err};
  e->plan->route = route;
  e->plan->pool_limit = limit;
  e->plan->placement = SN_PLACEMENT_FIRST_FIT;
  e->plan->use = calloc(route->n_steps, sizeof *e->plan->use);
  return e->plan->use ? SN_OK : sn_fail_memory(err);
}

/* The pool of a tensor. */
static sn_pool *pool_of(sn__emit *e, uint32_t tensor) {
  sn_stream stream = e->beside ? sn_tensor_stream(&e->route->tensors[tensor]) : SN_STREAM_COMPUTE;
  return stream == SN_STREAM_COMPUTE ? &e->pool : &e->streams[stream];
}

/* The streams' pools lie behind compute's, which then is as large as all. */
static void join_streams(sn__emit *e) {
  uint64_t base[SN_STREAMS] = {0}, end = e->pool.high_water;
  for (sn_stream s = SN_STREAM_COMPUTE + 1; s < SN_STREAMS; s++) {
    base[s] = end;
    end += e->streams[s].high_water;
    e->pool.reserved_peak += e->streams[s].reserved_peak;
  }
  for (uint32_t n = 0; n < e->plan->n_instrs; n++) {
    sn_instr *i = &e->plan->instrs[n];
    if (i->kind == SN_ALLOC || i->kind == SN_RELEASE) i->offset += base[sn_tensor_stream(&e->route->tensors[i->id])];
  }
  e->pool.high_water = end;
}

sn_plan *sn__emit_end(sn__emit *e, sn_status status) {
  sn__lanes_clear(&e->lanes);
  if (e->plan && e->beside) join_streams(e);
  for (sn_stream s = SN_STREAM_COMPUTE + 1; s < SN_STREAMS; s++) sn_pool_clear(&e->streams[s]);
  free(e->beside);
  free(e->places);
  free(e->changes);
  if (e->plan) {
    e->plan->pool_bytes = e->plan->first_fit_bytes = e->pool.high_water;
    e->plan->roomy = e->pool.high_water <= e->limit;
    e->plan->largest_hole = e->pool.largest_hole;
    e->plan->reserved_peak = e->pool.reserved_peak;
  }
  sn_pool_clear(&e->pool);
  if (status == SN_OK) return e->plan;
  sn_plan_free(e->plan);
  return NULL;
}

void sn__emit_step(sn__emit *e, uint32_t step) {
  e->step = step;
  meter(e);
}

void sn__emit_lock(sn__emit *e, const sn_step *step) {
  e->lane = sn_step_lane(e->route, step);
  e->execution++;
  e->packed = false;
  e->before = (sn__number_set){e->pool.high_water, e->pool.reserved_peak, e->pool.largest_hole};
  if (!e->cache) return; /* nothing is evicted */
  for (uint32_t i = 0; i < step->n_accesses; i++)
    e->places[e->route->accesses[step->first_access + i].tensor].locked = e->execution;
}

/* ---- the books: who has which bytes, ahead of the plan ---- */

static sn_status note_change(sn__emit *e, uint32_t tensor, sn__change_kind kind) {
  if (e->n_changes == e->changes_room &&
      sn__grow((void **)&e->changes, &e->changes_room, sizeof *e->changes, e->err) != SN_OK)
    return e->err->code;
  e->changes[e->n_changes++] = (sn__change){tensor, kind};
  return SN_OK;
}

static sn_status book_out(sn__emit *e, uint32_t tensor) {
  sn__place *p = &e->places[tensor];
  p->resident = false;
  if (sn__emit_listed(e, tensor)) list_remove(e, tensor);
  sn_status status = sn_pool_give(pool_of(e, tensor), p->offset, e->route->tensors[tensor].bytes);
  return status == SN_OK ? SN_OK : sn_fail_memory(e->err);
}

static sn_status book_eviction(sn__emit *e, uint32_t tensor) {
  sn_status status = book_out(e, tensor);
  return status == SN_OK ? note_change(e, tensor, SN__EVICT) : status;
}

/* Evicts the least recently used unlocked tensor; *found is false where there is none. */
static sn_status evict_one(sn__emit *e, bool *found) {
  uint32_t victim = e->oldest;
  while (victim != SN_NONE && e->places[victim].locked == e->execution) victim = e->places[victim].newer;
  *found = victim != SN_NONE;
  return *found ? book_eviction(e, victim) : SN_OK;
}

typedef bool (*take_bytes)(sn_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *offset);

/* Takes bytes of the pool where there is room for them: all there is without a cache, and once the device is empty. */
static bool take(sn__emit *e, take_bytes take_them, uint64_t bytes, uint64_t *offset) {
  bool limited = e->cache && !e->packed;
  uint64_t limit = limited && !e->counts ? sn_max(e->limit, e->pool.high_water) : UINT64_MAX;
  if (limited && e->counts && e->pool.reserved + sn_pool_round(bytes) > sn_max(e->limit, e->pool.reserved_peak))
    return false;
  return take_them(&e->pool, bytes, limit, offset);
}

static sn_status find_room(sn__emit *e, take_bytes take_them, uint64_t bytes, uint64_t *offset) {
  for (bool more = e->cache; !take(e, take_them, bytes, offset);) {
    if (!more) return SN_NO_FIT;
    sn_status status = evict_one(e, &more);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

sn_status sn__emit_change(sn__emit *e, uint32_t tensor, sn__change_kind kind) {
  sn__place *p = &e->places[tensor];
  sn_status status = SN_OK;
  if (kind == SN__RELEASE || kind == SN__EVICT) {
    status = book_out(e, tensor);
  } else {
    uint64_t bytes = e->route->tensors[tensor].bytes;
    sn_pool *pool = pool_of(e, tensor);
    status = pool == &e->pool                                    ? find_room(e, sn_pool_take, bytes, &p->offset)
             : sn_pool_take(pool, bytes, UINT64_MAX, &p->offset) ? SN_OK
                                                                 : sn_fail_memory(e->err);
    if (status != SN_OK) return status;
    e->plan->bare_bytes = sn_max(e->plan->bare_bytes, p->offset + sn_pool_round(bytes));
    p->resident = true;
    if (sn__emit_listed(e, tensor)) list_push(e, tensor);
  }
  return status == SN_OK ? note_change(e, tensor, kind) : status;
}

sn_status sn__emit_workspace(sn__emit *e, uint64_t bytes, uint64_t *offset) {
  return find_room(e, sn_pool_touch, bytes, offset);
}

/* ---- of one of several GPUs ---- */

/* What a lane does next with a tensor comes behind what others did: all of it where it changes it or gives it back. */
static sn_status order_use(sn__emit *e, uint32_t tensor, sn_lane lane, bool changes) {
  const sn__beside *b = &e->beside[tensor];
  sn_status status = SN_OK;
  if (lane != SN_LANE_COMPUTE)
    status = order(e, lane, SN_LANE_COMPUTE, changes ? b->computed : e->places[tensor].wrote);
  if (status == SN_OK && b->lane != lane && (changes || b->wrote || lane != SN_LANE_COMPUTE))
    status = order(e, lane, (sn_lane)b->lane, b->transferred);
  return status;
}

/* Behind whoever had memory of its stream before. */
static sn_status order_beside(sn__emit *e, uint32_t tensor, sn_lane lane) {
  sn_stream stream = sn_tensor_stream(&e->route->tensors[tensor]);
  e->beside[tensor] = (sn__beside){.lane = (uint8_t)lane, .home = (uint8_t)lane};
  if (stream == SN_STREAM_COMPUTE) return order(e, lane, SN_LANE_COMPUTE, e->freed_at);
  return sn__lanes_order_all(&e->lanes, lane, e->freed[stream], e->step);
}

static sn_status write_release_beside(sn__emit *e, uint32_t tensor) {
  const sn__place *p = &e->places[tensor];
  sn_stream stream = sn_tensor_stream(&e->route->tensors[tensor]);
  sn_lane lane = stream == SN_STREAM_COMPUTE ? SN_LANE_COMPUTE : (sn_lane)e->beside[tensor].home;
  uint64_t bytes = e->route->tensors[tensor].bytes;
  sn_status status = order_use(e, tensor, lane, true);
  if (status == SN_OK) status = order(e, lane, SN_LANE_OUT, p->copied_out);
  if (status == SN_OK) status = order(e, lane, SN_LANE_IN, p->copied_in);
  if (status == SN_OK)
    status = add(e, (sn_instr){.kind = SN_RELEASE,
                               .lane = (uint8_t)lane,
                               .id = tensor,
                               .offset = p->offset,
                               .bytes = sn_pool_round(bytes)});
  uint32_t clock = e->lanes.of[lane].clock;
  *(stream == SN_STREAM_COMPUTE ? &e->freed_at : &e->freed[stream][lane]) = clock;
  e->live_bytes -= bytes;
  e->live_tensors--;
  return status;
}

static sn_status order_accesses_beside(sn__emit *e, const sn_step *step) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < step->n_accesses && status == SN_OK; i++) {
    sn_access access = e->route->accesses[step->first_access + i];
    status = order_use(e, access.tensor, e->lane, access.mode != SN_READ);
    if (status == SN_OK && e->lane != SN_LANE_COMPUTE)
      status = order(e, e->lane, SN_LANE_IN, e->places[access.tensor].copied_in);
  }
  return status;
}

/* A fence behind each step that others wait for, so that nobody waits for what is listed after it. */
static sn_status note_beside(sn__emit *e, const sn_step *step) {
  uint32_t clock = e->lanes.of[e->lane].clock;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = e->route->accesses[step->first_access + i];
    sn__beside *b = &e->beside[access.tensor];
    if (e->lane == SN_LANE_COMPUTE) {
      b->computed = clock;
      continue;
    }
    *b = (sn__beside){b->computed, clock, (uint8_t)e->lane, b->home, b->wrote || access.mode != SN_READ};
  }
  return sn_step_moves(step) ? signal_lane(e, e->lane) : SN_OK;
}

/* ---- and into the plan ---- */

static sn_status write_alloc(sn__emit *e, uint32_t tensor, sn_lane lane) {
  sn__place *p = &e->places[tensor];
  uint64_t bytes = e->route->tensors[tensor].bytes;
  /* Memory is given back on the compute lane only: being behind the last time covers whoever had it before. And whoever
   * may have it when addresses change (sim/plan/place.h), so this is not narrowed to its own bytes. */
  sn_status status = e->beside ? order_beside(e, tensor, lane) : order(e, lane, SN_LANE_COMPUTE, e->freed_at);
  if (status != SN_OK) return status;
  p->wrote = p->copied_out = p->copied_in = p->version = 0;
  e->live_bytes += bytes;
  e->live_tensors++;
  e->blocks++;
  meter(e);
  return add(
      e,
      (sn_instr){
          .kind = SN_ALLOC, .lane = (uint8_t)lane, .id = tensor, .offset = p->offset, .bytes = sn_pool_round(bytes)});
}

static sn_status write_release(sn__emit *e, uint32_t tensor) {
  if (e->beside) return write_release_beside(e, tensor);
  const sn__place *p = &e->places[tensor];
  uint64_t bytes = e->route->tensors[tensor].bytes;
  sn_status status = order_compute(e, p->copied_out, p->copied_in);
  if (status == SN_OK)
    status = add(e, (sn_instr){.kind = SN_RELEASE,
                               .lane = SN_LANE_COMPUTE,
                               .id = tensor,
                               .offset = p->offset,
                               .bytes = sn_pool_round(bytes)});
  if (status != SN_OK) return status;
  e->freed_at = e->lanes.of[SN_LANE_COMPUTE].clock;
  e->live_bytes -= bytes;
  e->live_tensors--;
  return SN_OK;
}

static void take_host_slot(sn__emit *e, uint32_t tensor) {
  sn__place *p = &e->places[tensor];
  if (p->has_host_slot) return;
  p->has_host_slot = true;
  p->host_offset = e->plan->external_bytes;
  e->plan->external_bytes += sn_pool_round(e->route->tensors[tensor].bytes);
}

sn_status sn__emit_copy_out(sn__emit *e, uint32_t tensor) {
  if (e->books) return SN_OK;
  sn__place *p = &e->places[tensor];
  uint64_t bytes = e->route->tensors[tensor].bytes;
  take_host_slot(e, tensor);
  sn_status status = order(e, SN_LANE_OUT, SN_LANE_COMPUTE, p->wrote);
  if (status == SN_OK && e->beside) status = order_use(e, tensor, SN_LANE_OUT, false);
  if (status == SN_OK) status = order(e, SN_LANE_OUT, SN_LANE_IN, p->copied_in);
  if (status == SN_OK) status = order(e, SN_LANE_OUT, SN_LANE_IN, p->host_read);
  if (status == SN_OK)
    status = add(
        e,
        (sn_instr){.kind = SN_COPY_OUT, .lane = SN_LANE_OUT, .id = tensor, .offset = p->host_offset, .bytes = bytes});
  if (status != SN_OK) return status;
  p->copied_out = p->host_wrote = e->lanes.of[SN_LANE_OUT].clock;
  p->host_version = p->version;
  e->plan->counts.offload_bytes += bytes;
  return signal_lane(e, SN_LANE_OUT);
}

static sn_status write_copy_in(sn__emit *e, uint32_t tensor) {
  sn__place *p = &e->places[tensor];
  uint64_t bytes = e->route->tensors[tensor].bytes;
  sn_status status = order(e, SN_LANE_IN, SN_LANE_OUT, p->host_wrote);
  if (status == SN_OK)
    status = add(
        e, (sn_instr){.kind = SN_COPY_IN, .lane = SN_LANE_IN, .id = tensor, .offset = p->host_offset, .bytes = bytes});
  if (status != SN_OK) return status;
  p->copied_in = p->host_read = e->lanes.of[SN_LANE_IN].clock;
  p->version = p->host_version;
  e->plan->counts.prefetch_bytes += bytes;
  return signal_lane(e, SN_LANE_IN);
}

static sn_status write_change(sn__emit *e, sn__change change) {
  const sn__place *p = &e->places[change.tensor];
  sn_status status = SN_OK;
  switch (change.kind) {
  case SN__ALLOC:
    return write_alloc(e, change.tensor, e->lane);
  case SN__FETCH:
    status = write_alloc(e, change.tensor, SN_LANE_IN);
    return status == SN_OK ? write_copy_in(e, change.tensor) : status;
  case SN__EVICT: /* the host may have its value already */
    e->plan->counts.evictions++;
    if (p->host_version != p->version) status = sn__emit_copy_out(e, change.tensor);
    return status == SN_OK ? write_release(e, change.tensor) : status;
  case SN__RELEASE:
    break;
  }
  return write_release(e, change.tensor);
}

sn_status sn__emit_settle_booked(sn__emit *e) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < e->n_changes && status == SN_OK && !e->books; i++) status = write_change(e, e->changes[i]);
  e->n_changes = 0;
  return status;
}

sn_status sn__emit_release(sn__emit *e, uint32_t tensor) {
  sn_status status = book_out(e, tensor);
  return status == SN_OK && !e->books ? write_release(e, tensor) : status;
}

sn_status sn__emit_pack(sn__emit *e) {
  sn_status status = SN_OK;
  uint32_t n = e->n_changes;
  e->n_changes = 0;
  for (uint32_t i = 0; i < n && status == SN_OK; i++) {
    sn__change change = e->changes[i];
    if (change.kind == SN__EVICT)
      e->changes[e->n_changes++] = change;
    else
      status = book_out(e, change.tensor);
  }
  e->pool.high_water = e->before.high_water;
  e->pool.reserved_peak = e->before.reserved_peak;
  e->pool.largest_hole = e->before.largest_hole;
  while (e->oldest != SN_NONE && status == SN_OK) status = book_eviction(e, e->oldest);
  e->packed = true;
  return status == SN_OK ? sn__emit_settle(e) : status;
}

void sn__emit_hit(sn__emit *e, uint32_t tensor) {
  list_remove(e, tensor);
  list_push(e, tensor);
}

/* One wait a lane, on the last that matters: what comes before it on that lane is behind it as well. */
static sn_status order_accesses(sn__emit *e, const sn_step *step) {
  uint32_t out = 0, in = 0;
  if (e->lanes.of[SN_LANE_OUT].clock == 0 && e->lanes.of[SN_LANE_IN].clock == 0) return SN_OK;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = e->route->accesses[step->first_access + i];
    const sn__place *p = &e->places[access.tensor];
    if (p->copied_in > in) in = p->copied_in;
    if (access.mode != SN_READ && p->copied_out > out) out = p->copied_out;
  }
  return order_compute(e, out, in);
}

static void note_accesses(sn__emit *e, const sn_step *step) {
  const bool computes = e->lane == SN_LANE_COMPUTE;
  uint32_t clock = e->lanes.of[SN_LANE_COMPUTE].clock;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = e->route->accesses[step->first_access + i];
    if (access.mode == SN_READ) continue;
    sn__place *p = &e->places[access.tensor];
    if (computes) p->wrote = clock;
    p->version++;
  }
}

sn_status sn__emit_compute(sn__emit *e, const sn_execution *x, const sn_step *step, const uint8_t algo[2],
                           uint64_t offset, uint64_t bytes) {
  if (e->books) return SN_OK;
  sn_step_use *use = &e->plan->use[e->step];
  use->workspace_bytes = sn_max(use->workspace_bytes, sn_pool_round(bytes));
  sn_status status = order_accesses(e, step);
  if (status == SN_OK && e->beside) status = order_accesses_beside(e, step);
  if (status == SN_OK)
    status = add(e, (sn_instr){.kind = SN_COMPUTE,
                               .lane = (uint8_t)e->lane,
                               .id = x->step,
                               .rerun = x->rerun,
                               .algo = {algo[0], algo[1]},
                               .offset = offset,
                               .bytes = sn_pool_round(bytes)});
  if (status != SN_OK) return status;
  note_accesses(e, step);
  if (bytes > 0) e->freed_at = e->lanes.of[SN_LANE_COMPUTE].clock;
  e->blocks += bytes > 0;
  e->plan->counts.recomputed_layers += x->rerun;
  return e->beside ? note_beside(e, step) : SN_OK;
}
