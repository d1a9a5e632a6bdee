/* From a played plan to a result; see the header. O(steps + instructions). */
#include "sim/ask/result.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "models/record/record_net.h"
#include "sim/device/device.h"
#include "sim/device/link.h"
#include "sim/graph/freeze.h"
#include "sim/graph/resident.h"
#include "sim/graph/route.h"
#include "sim/parallel/rounds.h"
#include "sim/parallel/times.h"
#include "sim/plan/cursor.h"
#include "sim/plan/high_water.h"
#include "sim/plan/place.h"
#include "sim/play/caching_replay.h"

static void add_resident(void *self, sn_resident_tensor t) {
  uint64_t *sums = self;
  sums[t.role] += t.bytes;
}

/* Step counters are told of PyTorch, wherever they are, as its memory tracker does. */
sn_persistent sn_persistent_of(const sn_net *net, sn_dialect_id dialect, sn_iteration iteration) {
  const sn_dialect *d = sn_dialect_of(dialect);
  uint64_t sums[SN_RESIDENT_ROLES] = {0};
  sn_resident_walk walk = {.net = net, .dialect = d, .iteration = iteration, .visit = add_resident, .self = sums};
  sn_resident_walk_all(&walk);
  return (sn_persistent){.parameters = sums[SN_RESIDENT_PARAMETER],
                         .parameter_gradients = sums[SN_RESIDENT_GRADIENT],
                         .optimizer_state = sums[SN_RESIDENT_MASTER] + sums[SN_RESIDENT_STATE] +
                                            (d->eager ? sums[SN_RESIDENT_COUNTER] : 0),
                         .auxiliary = sums[SN_RESIDENT_BUFFER],
                         .input_batch = sums[SN_RESIDENT_INPUT],
                         .labels = sums[SN_RESIDENT_LABELS]};
}

static uint32_t count_steps(const sn_result_source *s) {
  return sn_route_steps_that_matter(s->plan->route);
}

static const sn_layer *layer_of(const sn_result_source *s, uint32_t step) {
  const sn_route *route = s->plan->route;
  return &route->layers[route->steps[step].layer];
}

uint32_t sn_result_peak(const sn_plan *plan, const sn_step_use *use) {
  uint32_t peak = 0;
  for (uint32_t step = 0; step < sn_route_steps_that_matter(plan->route); step++)
    if (use[step].tensor_bytes > use[peak].tensor_bytes) peak = step;
  return peak;
}

/* Copies that FORKs make, at the step's fullest moment. */
static uint64_t fork_bytes(const sn_plan *plan, uint32_t step) {
  const sn_route *route = plan->route;
  sn_cursor c = {.plan = plan};
  uint64_t copies = 0;
  for (const sn_instr *i; !sn_cursor_is_fullest(&c, step) && (i = sn_cursor_next(&c));) {
    if (!sn_instr_moves(i)) continue;
    const sn_tensor *t = &route->tensors[i->id];
    bool copy = t->role == SN_VALUE && route->layers[t->layer].op == SN_FORK;
    if (copy) copies = i->kind == SN_ALLOC ? copies + t->bytes : copies - t->bytes;
  }
  return copies;
}

/* Does the step make it? */
static bool makes(const sn_route *route, uint32_t step, uint32_t tensor) {
  const sn_step *s = &route->steps[step];
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = route->accesses[s->first_access + i];
    if (access.tensor == tensor) return access.mode == SN_WRITE;
  }
  return false;
}

/* Where a tensor that is live in the step counts. */
static inline uint64_t *part_of(const sn_route *route, uint32_t step, uint32_t tensor, sn_live *live) {
  sn_role role = route->tensors[tensor].role;
  if (role == SN_VALUE || role == SN_SAVED) return &live->activations;
  if (role == SN_SHARD || role == SN_SUMMED) return &live->gradients;
  return role == SN_PARAMETER_GRADIENT && !makes(route, step, tensor) ? &live->gradients : &live->temporary;
}

/* Where a tensor of one of several GPUs counts beside; NULL: nowhere. */
static uint64_t *shared_part_of(sn_role role, sn_shared_row *shared) {
  switch (role) {
  case SN_SHARD:
    return &shared->sharded_gradients;
  case SN_UNSHARDED:
    return &shared->unsharded_parameters;
  case SN_PARAMETER_GRADIENT:
  case SN_SUMMED:
    return &shared->unsharded_gradients;
  case SN_GATHERED:
    return &shared->gather_buffers;
  case SN_BUCKET:
    return &shared->buckets;
  default:
    return NULL;
  }
}

/* At the step's fullest moment. */
static sn_live live_at(const sn_plan *plan, uint32_t step, const sn_persistent *p, sn_shared_row *shared) {
  const sn_route *route = plan->route;
  sn_live live = {.parameters = p->parameters,
                  .buffers = p->auxiliary,
                  .gradients = p->parameter_gradients,
                  .optimizer = p->optimizer_state,
                  .activations = p->input_batch + p->labels};
  sn_cursor c = {.plan = plan};
  for (const sn_instr *i; !sn_cursor_is_fullest(&c, step) && (i = sn_cursor_next(&c));) {
    if (!sn_instr_moves(i)) continue;
    uint64_t *part = part_of(route, step, i->id, &live), size = route->tensors[i->id].bytes;
    *part = i->kind == SN_ALLOC ? *part + size : *part - size;
    part = route->mesh ? shared_part_of(route->tensors[i->id].role, shared) : NULL;
    if (part) *part = i->kind == SN_ALLOC ? *part + size : *part - size;
  }
  return live;
}

/* What rounds that stand for others (sn_rounds_of()) have left beside what a step has, from the last of them on up to the
 * updates. */
typedef struct left {
  uint32_t from, end;
  uint64_t bytes;
  sn_live live; /* the same by kind */
} left;

static left left_by_rounds(const sn_plan *plan) {
  const sn_rounds rounds = sn_rounds_of(plan->route);
  left l = {.from = rounds.first, .end = plan->route->first_update};
  for (uint32_t i = 0; i < plan->n_instrs && rounds.again > 0; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (!sn_instr_moves(instr) || instr->step < rounds.first || instr->step >= rounds.end) continue;
    uint64_t *part = part_of(plan->route, rounds.end, instr->id, &l.live),
             size = rounds.again * plan->route->tensors[instr->id].bytes;
    *part = instr->kind == SN_ALLOC ? *part + size : *part - size;
  }
  l.bytes = sn_live_total(&l.live);
  return l;
}

static void add_live(sn_live *to, const sn_live *more) {
  to->gradients += more->gradients;
  to->activations += more->activations;
  to->temporary += more->temporary;
}

static uint64_t left_in(const left *l, uint32_t step) {
  return step >= l->from && step < l->end ? l->bytes : 0;
}

static uint32_t find_peak(const sn_result_source *s, const left *l) {
  uint32_t peak = sn_result_peak(s->plan, s->use);
  for (uint32_t step = l->from; step < l->end && l->bytes > 0; step++)
    if (s->use[step].tensor_bytes + left_in(l, step) > s->use[peak].tensor_bytes + left_in(l, peak)) peak = step;
  return peak;
}

static bool add_high_water(const sn_result_source *s, sn_arena *arena, sn_result *r) {
  sn_high_water high = sn_plan_high_water(s->plan);
  r->pool_step = high.step + 1;
  r->pool_layer = sn_arena_text(arena, layer_of(s, high.step)->name);
  r->pool_pass = sn_pass_name(s->plan->route->steps[high.step].pass);
  r->pool_cause = sn_cause_name(high.cause);
  r->pool_tensor_bytes = high.tensor_bytes;
  r->pool_workspace_bytes = high.workspace_bytes;
  r->pool_hole_bytes = high.hole_bytes;
  r->pool_bare_bytes = high.bare_bytes;
  return r->pool_layer != NULL;
}

static bool add_use(const sn_result_source *s, sn_arena *arena, sn_result *r) {
  const left l = left_by_rounds(s->plan);
  uint32_t peak = find_peak(s, &l);
  r->peak_tensor_bytes = s->use[peak].tensor_bytes + left_in(&l, peak);
  r->peak_step = peak + 1;
  r->peak_layer = sn_arena_text(arena, layer_of(s, peak)->name);
  r->peak_pass = sn_pass_name(s->plan->route->steps[peak].pass);
  r->peak_fork_bytes = fork_bytes(s->plan, peak);
  if (s->plan->route->dialect->eager) r->live = live_at(s->plan, peak, &s->persistent, &r->shared);
  if (left_in(&l, peak) > 0) add_live(&r->live, &l.live);
  r->live_tensors_at_peak = s->use[peak].live_tensors;
  for (uint32_t step = 0; step < count_steps(s); step++) {
    if (s->use[step].live_tensors > r->max_live_tensors) r->max_live_tensors = s->use[step].live_tensors;
    r->workspace_peak_bytes = sn_max(r->workspace_peak_bytes, s->use[step].workspace_bytes);
  }
  return r->peak_layer != NULL;
}

/* Packed addresses do not say what the pool would be without workspaces: it is placed once more. With the cache, which
 * needs no more than its largest step, that is not worth the time; and where libraries say what workspaces they take,
 * nobody can do without. */
static sn_status find_bare(const sn_result_source *s, sn_strategy strategy, sn_result *r, sn_err *err) {
  const sn_plan *plan = s->plan;
  if (plan->placement != SN_PLACEMENT_PACKED || r->workspace_peak_bytes == 0) return SN_OK;
  r->pool_bare_bytes = 0;
  if (sn_strategy_has_cache(strategy) || plan->route->dialect->declared) return SN_OK;
  return sn_place_bare(plan, s->packings, &r->pool_bare_bytes, err);
}

static void add_memory(const sn_result_source *s, sn_result *r) {
  const sn_plan *plan = s->plan;
  uint32_t batches = sn_iteration_batches(s->iteration);
  r->tensor_count = sn_route_tensors(plan->route);
  r->context_bytes = s->context_bytes;
  r->persistent = s->persistent;
  r->pool_bytes = plan->pool_bytes;
  r->largest_load_bytes = plan->reserved_peak;
  r->pool_largest_hole = plan->largest_hole;
  r->pool_fragmentation = 1 - (double)plan->reserved_peak / (double)plan->pool_bytes;
  r->peak_device_bytes = r->context_bytes + sn_persistent_total(&r->persistent) + plan->pool_bytes;
  r->fits = sn_plan_fits(plan);
  r->offload_bytes = batches * plan->counts.offload_bytes;
  r->prefetch_bytes = batches * plan->counts.prefetch_bytes;
  r->external_bytes = plan->external_bytes;
  r->host_bytes = s->external == SN_EXTERNAL_HOST ? plan->external_bytes : 0;
  r->cache_hits = batches * plan->counts.cache_hits;
  r->cache_misses = batches * plan->counts.cache_misses;
  r->evictions = batches * plan->counts.evictions;
  r->recomputed_layers = (uint32_t)sn_min(UINT64_C(1) * batches * plan->counts.recomputed_layers, UINT32_MAX);
  r->instructions = plan->n_instrs;
}

/* What the instructions of a kind take together. */
typedef struct taken {
  int64_t updates, out, in;
} taken;

static taken add_spans(const sn_plan *plan, const sn_trace *trace) {
  taken t = {0};
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    int64_t ns = trace->spans[i].end_ns - trace->spans[i].begin_ns;
    if (instr->kind == SN_COPY_OUT) t.out += ns;
    if (instr->kind == SN_COPY_IN) t.in += ns;
    if (instr->kind != SN_COMPUTE || plan->route->steps[instr->id].pass != SN_UPDATE) continue;
    t.updates += sn_lane_transfers((sn_lane)instr->lane) ? 0 : ns; /* zero gathers behind them */
  }
  return t;
}

/* Of a batch that another one follows. */
static const sn_trace *before_of(const sn_trace *trace) {
  return trace->before ? trace->before : trace;
}

/* Of all lanes that compute. */
static int64_t busy_computing(const sn_plan *plan, const sn_trace *trace) {
  int64_t busy = trace->busy_ns[SN_LANE_COMPUTE];
  for (uint32_t lane = SN_LANE_COMPUTE2; lane < sn_plan_lanes(plan); lane++)
    if (sn_lane_computes((sn_lane)lane)) busy += trace->busy_ns[lane];
  return busy;
}

/* What rounds take that stand for others (sn_rounds_of()), all that they stand for. */
typedef struct rounds_taken {
  int64_t all, computing, transfers;
} rounds_taken;

/* When a step begins to compute. */
static int64_t begin_of(const sn_result_source *s, uint32_t step) {
  for (uint32_t i = 0; i < s->plan->n_instrs; i++) {
    const sn_instr *instr = &s->plan->instrs[i];
    if (instr->kind == SN_COMPUTE && instr->id == step && !instr->rerun) return s->trace->spans[i].begin_ns;
  }
  return 0;
}

static rounds_taken take_rounds(const sn_result_source *s) {
  const sn_rounds rounds = sn_rounds_of(s->plan->route);
  rounds_taken t = {0};
  if (rounds.again == 0) return t;
  t.all = rounds.again * (begin_of(s, rounds.end) - begin_of(s, rounds.first));
  for (uint32_t i = 0; i < s->plan->n_instrs; i++) {
    const sn_instr *instr = &s->plan->instrs[i];
    if (instr->kind != SN_COMPUTE || instr->step < rounds.first || instr->step >= rounds.end) continue;
    int64_t ns = rounds.again * (s->trace->spans[i].end_ns - s->trace->spans[i].begin_ns);
    *(sn_lane_transfers((sn_lane)instr->lane) ? &t.transfers : &t.computing) += ns;
  }
  return t;
}

/* The last step of a stage's first forward; SN_NONE where its parts take turns. */
static uint32_t find_first_end(const sn_route *route) {
  uint32_t last = SN_NONE;
  for (uint32_t i = 0; i < route->n_runs && sn_mesh_chunks(route->mesh) == 1; i++)
    if (route->steps[route->runs[i]].pass == SN_FORWARD && (last == SN_NONE || route->runs[i] > last))
      last = route->runs[i];
  return last;
}

/* What the compute lane has spent up to some step, waiting ahead of steps with them. */
typedef struct spent {
  int64_t passes[SN_PASSES], put_off;
  int64_t waits, first_waits; /* ahead of steps of forward; of the first micro-batch's */
  int64_t end, beside;        /* of the last step that is a layer's; and what has been spent on others since */
} spent;

static void spend(const sn_result_source *s, uint32_t i, uint32_t first, int64_t times, spent *t) {
  const sn_route *route = s->plan->route;
  const sn_instr *instr = &s->plan->instrs[i];
  const sn_step *step = &route->steps[instr->id];
  const sn_span *span = &s->trace->spans[i];
  const int64_t before = t->end + t->beside;
  const bool forward = !instr->rerun && step->pass == SN_FORWARD;
  t->waits += forward ? times * (span->begin_ns - before) : 0;
  t->first_waits += forward && first != SN_NONE && instr->id <= first ? span->begin_ns - before : 0;
  if (!instr->rerun && sn_step_is_beside(route, step)) {
    t->beside = span->end_ns - t->end;
    return;
  }
  const int64_t ns = times * (span->end_ns - t->end);
  t->passes[instr->rerun ? SN_BACKWARD : step->pass] += ns;
  t->put_off += step->put_off && !instr->rerun ? ns : 0;
  t->end = span->end_ns;
  t->beside = 0;
}

/* What a stage of a pipeline takes up to its last backward's end; what is reduced behind that is the update's. What the
 * first forward waits for beyond what others do, as it gathers, is its own. */
static void add_stage(const sn_result_source *s, sn_shared_row *shared) {
  const sn_route *route = s->plan->route;
  const uint32_t first = find_first_end(route), micros = route->micros + route->mesh->idle;
  const sn_rounds rounds = sn_rounds_of(route);
  spent t = {0};
  for (uint32_t i = 0; i < s->plan->n_instrs; i++) {
    const sn_instr *instr = &s->plan->instrs[i];
    if (instr->kind != SN_COMPUTE || sn_lane_transfers((sn_lane)instr->lane)) continue;
    bool again = instr->step >= rounds.first && instr->step < rounds.end;
    if (route->steps[instr->id].pass != SN_UPDATE) spend(s, i, first, again ? 1 + (int64_t)rounds.again : 1, &t);
  }
  int64_t others = micros > 1 ? (t.waits - t.first_waits) / (micros - 1) : t.first_waits;
  shared->first_ns = t.first_waits > others ? t.first_waits - others : 0;
  shared->forward_ns = t.passes[SN_FORWARD] - shared->first_ns;
  shared->backward_ns = t.passes[SN_BACKWARD] - t.put_off;
  shared->weights_ns = t.put_off;
  shared->update_ns = s->trace->end_ns - t.end;
}

/* Of lanes of transfers, without what follows the updates. */
static int64_t busy_transferring(const sn_plan *plan, const sn_trace *trace) {
  int64_t busy = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    bool moves = instr->kind == SN_COMPUTE && sn_lane_transfers((sn_lane)instr->lane);
    if (moves && plan->route->steps[instr->id].pass != SN_UPDATE)
      busy += trace->spans[i].end_ns - trace->spans[i].begin_ns;
  }
  return busy;
}

/* What crosses links. */
static void add_transfers(const sn_result_source *s, sn_result *r) {
  const sn_route *route = s->plan->route;
  sn_shared_row *shared = &r->shared;
  uint32_t batches = sn_iteration_batches(s->iteration);
  if (!route->mesh) return;
  const sn_traffic_sums sums = sn_traffic_of(route, batches);
  shared->world = sn_mesh_world(route->mesh);
  shared->groups = route->n_groups;
  shared->gathered_bytes = sums.bytes[SN_ALL_GATHER];
  shared->scattered_bytes = sums.bytes[SN_REDUCE_SCATTER];
  shared->reduced_bytes = sums.bytes[SN_ALL_REDUCE];
  shared->sent_bytes = sums.bytes[SN_SEND] + sums.bytes[SN_RECEIVE];
  for (uint32_t lane = SN_CORUN_LANES; lane < SN_LANES; lane++) shared->transfer_ns += s->trace->busy_ns[lane];
  shared->transfer_ns += (batches - 1) * busy_transferring(s->plan, before_of(s->trace));
  const rounds_taken others = take_rounds(s);
  int64_t iteration = r->iteration_ns + others.all, computing = r->compute_ns + others.computing;
  shared->transfer_ns += others.transfers;
  shared->exposed_ns = iteration > computing ? iteration - computing : 0;
  if (route->micros == 0 && shared->exposed_ns > shared->transfer_ns)
    shared->exposed_ns = shared->transfer_ns; /* the rest waits for copies to the host and back */
  shared->uneven = s->trace->uneven || !sn_caching_rounds_alike(s->plan);
  if (route->micros > 0) add_stage(s, shared);
}

/* A batch that another one follows takes the time up to the updates. */
static void add_times(const sn_result_source *s, sn_result *r) {
  const sn_trace *trace = s->trace, *before = before_of(trace);
  int64_t others = sn_iteration_batches(s->iteration) - 1, batches = others + 1;
  taken t = add_spans(s->plan, trace), b = add_spans(s->plan, before);
  int64_t busy = busy_computing(s->plan, trace), known = before->known_ns;
  int64_t computing = busy_computing(s->plan, before) - b.updates;
  r->iteration_ns = trace->end_ns + others * sn_trace_batch_ns(trace, s->plan);
  r->compute_ns = busy + others * computing;
  r->known_ns = trace->known_ns + others * (known < computing ? known : computing);
  r->out_ns = t.out + others * b.out;
  r->in_ns = t.in + others * b.in;
  bool corun = sn_plan_is_corun(s->plan); /* a lane of which waits where it has no work */
  const int64_t idle = sn_trace_batch_ns(trace, s->plan) - computing, stalls = before->stall_ns[SN_LANE_COMPUTE];
  r->stall_ns = corun ? 0
                      : trace->stall_ns[SN_LANE_COMPUTE] +
                            others * (stalls < idle ? stalls : idle); /* zero waits behind updates, too */
  r->allocation_ns = batches * trace->allocation_ns;
  r->events = trace->events;
  r->images_per_second = 0;
  if (r->iteration_ns > 0)
    r->images_per_second =
        (double)batches * s->plan->route->batch * sn_mesh_copies(&s->iteration.mesh) / ((double)r->iteration_ns / 1e9);
}

/* What a recording's own products take at the GPU's peak, each in its type. */
static double recorded_seconds(const sn_net *net, const sn_device *device) {
  const sn_record *record = net->recorded->record;
  double seconds = 0;
  for (uint32_t i = 0; i < net->recorded->n_ops; i++) {
    const sn_record_op *op = &record->ops[net->recorded->first_op + i];
    double flops = sn_record_amount(record->works[op->work].flops, net->batch);
    bool convolves = record->kernels[op->kernel].flags & SN_RECORD_CONVOLUTION;
    sn_precision precision = op->narrow ? SN_BF16 : convolves ? SN_TF32_CONV : SN_FP32;
    if (flops > 0) seconds += flops / sn_device_arithmetic(device, precision, true, op->narrow ? 2 : 4).flops;
  }
  return seconds;
}

/* A product's forward is one of three as large: backward makes its input's gradient and its weight's, of a frozen one the
 * input's alone, and none ahead of the first that is trained. */
static double model_flops(const sn_net *net, sn_iteration i) {
  bool begun = false;
  double flops = 0;
  for (uint32_t l = 0; l < net->n_layers; l++) {
    const sn_layer *layer = &net->layers[l];
    bool trained = sn_freeze_trains_shared(i.freeze, net, layer);
    begun = begun || trained;
    bool weighs = layer->parameters > 0 || layer->attr->weights_of != 0;
    int products = i.inference || !begun ? 1 : trained || !weighs ? 3 : 2;
    flops += 2.0 * products * (double)layer->macs;
  }
  return flops * sn_iteration_batches(i);
}

/* Of a recording all products are known. */
void sn_result_judge_shared(const sn_net *net, const sn_device *device, sn_iteration i, sn_result *r) {
  const sn_arithmetic how = sn_device_arithmetic(device, i.precision, true, sn_precision_parameter_bytes(i.precision));
  double gpus = (double)sn_mesh_size(&i.mesh, SN_MESH_TP) * sn_mesh_size(&i.mesh, SN_MESH_PP);
  double seconds = net->recorded ? recorded_seconds(net, device) : model_flops(net, i) / how.flops;
  r->shared.communicator_bytes = device->communicator_bytes;
  if (r->iteration_ns > 0) r->shared.flops_share = seconds / ((double)r->iteration_ns / 1e9) / gpus;
}

static void add_step_times(const sn_result_source *s, sn_step_row *rows, uint32_t n) {
  for (uint32_t step = 0; step < n; step++) rows[step].begin_ns = -1;
  for (uint32_t i = 0; i < s->plan->n_instrs; i++) {
    const sn_instr *instr = &s->plan->instrs[i];
    if (instr->kind != SN_COMPUTE || instr->step >= n) continue;
    sn_step_row *row = &rows[instr->step];
    if (row->begin_ns < 0) row->begin_ns = s->trace->spans[i].begin_ns;
    if (s->trace->spans[i].end_ns > row->end_ns) row->end_ns = s->trace->spans[i].end_ns;
  }
}

static bool add_steps(const sn_result_source *s, sn_arena *arena, sn_result *r) {
  uint32_t n = count_steps(s);
  uint64_t fixed = r->context_bytes + sn_persistent_total(&r->persistent);
  sn_step_row *rows = sn_arena_alloc(arena, n, sizeof *rows);
  for (uint32_t step = 0; rows && step < n; step++) {
    const sn_step_use *use = &s->use[step];
    rows[step] = (sn_step_row){.step = step + 1,
                               .layer = sn_arena_text(arena, layer_of(s, step)->name),
                               .op = sn_step_layer_op(s->plan->route, &s->plan->route->steps[step]),
                               .pass = sn_pass_name(s->plan->route->steps[step].pass),
                               .tensor_bytes = use->tensor_bytes,
                               .live_tensors = use->live_tensors,
                               .workspace_bytes = use->workspace_bytes,
                               .device_bytes = fixed + use->tensor_bytes + use->workspace_bytes};
    if (!rows[step].layer) return false;
  }
  if (!rows) return false;
  add_step_times(s, rows, n);
  r->steps = rows;
  r->n_steps = n;
  return true;
}

sn_status sn_result_fill(const sn_result_source *source, sn_strategy strategy, sn_arena *arena, sn_result *r,
                         sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  *r = (sn_result){.source = "sim",
                   .placement = sn_placement_name(source->plan->placement),
                   .dialect = source->plan->route->dialect->name,
                   .step_order = sn_order_name(sn_strategy_order(strategy)),
                   .graph = sn_strategy_graph(strategy),
                   .corun = SN_CORUN_ROW_NONE};
  r->strategy = sn_arena_text(arena, sn_strategy_name(strategy, name));
  if (!r->strategy || !add_use(source, arena, r) || !add_high_water(source, arena, r)) return sn_fail_memory(err);
  if (find_bare(source, strategy, r, err) != SN_OK) return err->code;
  add_memory(source, r);
  add_times(source, r);
  add_transfers(source, r);
  return !source->want_steps || add_steps(source, arena, r) ? SN_OK : sn_fail_memory(err);
}

sn_status sn_result_begin_run(const char *spec, const sn_net *net, const sn_route *route, const sn_device *device,
                              const sn_options *options, sn_arena *arena, sn_run *run, sn_err *err) {
  *run = (sn_run){.name = "",
                  .created = "",
                  .version = SNSIM_VERSION,
                  .net = sn_arena_text(arena, spec),
                  .net_name = sn_arena_text(arena, net->name),
                  .batch = net->batch,
                  .image_height = sn_layer_rows(&net->layers[0]),
                  .image_width = net->layers[0].out.w,
                  .image_depth = net->layers[0].planes,
                  .gpu = sn_arena_text(arena, device->name),
                  .memory_bytes = device->memory_bytes,
                  .memory_nominal = device->memory_nominal,
                  .host_memory_bytes = device->host_memory_bytes,
                  .conditions = sn_conditions_of(options, net),
                  .answer = "",
                  .disk_bandwidth = sn_disk_bandwidth_of(device, options->external),
                  .costs = options->calibration ? "measured" : "model",
                  .device = "",
                  .data = "",
                  .layers = net->n_layers,
                  .n_steps = sn_route_steps_that_matter(route),
                  .parameters = net->parameters,
                  .macs = net->macs,
                  .arena = arena};
  run->conditions.freeze = sn_arena_text(arena, run->conditions.freeze);
  run->conditions.parallel = sn_arena_text(arena, run->conditions.parallel);
  run->conditions.cluster = sn_arena_text(arena, run->conditions.cluster);
  return run->net && run->net_name && run->gpu && run->conditions.freeze && run->conditions.parallel
             ? SN_OK
             : sn_fail_memory(err);
}

sn_status sn_result_add_tensors(const sn_route *route, sn_arena *arena, sn_run *run, sn_err *err) {
  sn_tensor_row *rows = sn_arena_alloc(arena, route->n_tensors, sizeof *rows);
  if (!rows) return sn_fail_memory(err);
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    char name[SN_TENSOR_NAME];
    const sn_tensor *tensor = &route->tensors[t];
    rows[t] = (sn_tensor_row){.id = t,
                              .name = sn_arena_text(arena, sn_tensor_name(route, t, name, sizeof name)),
                              .kind = sn_role_name(tensor->role),
                              .layer = sn_arena_text(arena, route->layers[tensor->layer].name),
                              .bytes = tensor->bytes};
    if (!rows[t].name || !rows[t].layer) return sn_fail_memory(err);
  }
  run->tensors = rows;
  run->n_tensors = route->n_tensors;
  return SN_OK;
}

sn_strategy sn_result_head(const sn_strategy *strategies, uint32_t n_strategies) {
  for (uint32_t i = 0; i < n_strategies; i++)
    if (strategies[i].dialect == SN_DIALECT_SUPERNEURONS) return strategies[i];
  return strategies[0];
}
