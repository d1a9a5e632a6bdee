/* Schedule: see the header for the idea.
 *
 * A dropped tensor is the output of a layer that is no checkpoint; such layers have one input and one output, so a
 * segment (dropped layers between two checkpoints) is a chain:
 *
 *   CONV ===> relu1 ---> lrn1 ---> pool1 ===> CONV        root = CONV's output
 */
#include "sim/schedule/schedule.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "models/record/checkpoint.h"
#include "sim/graph/route.h"
#include "sim/parallel/shard.h"
#include "sim/schedule/schedule_sqrt.h"
#include "sim/schedule/units.h"

#include <stdlib.h>
#include <string.h>

typedef enum drop_mode { KEEP, DROP_RERUN_ONCE, DROP_RERUN_EACH } drop_mode;

typedef struct maker {
  const sn_route *route;
  sn_schedule *schedule;
  sn_execution *executions;
  uint32_t room;
  uint8_t *mode;       /* per tensor: drop_mode */
  bool *available;     /* per tensor: holds its value, or can be waited for */
  uint32_t *temporary; /* memory-centric tensors made available by re-runs of the current step and the one before */
  uint32_t n_temporary;
  uint32_t *chain; /* layers to re-run, last first */
  bool selective;  /* checkpoints are, */
  bool *kept;      /* and keep these forward steps' results; NULL: none */
  sn_err *err;
} maker;

/* The tensors a layer without branches reads and makes; its forward step has exactly these two accesses, or only the
 * output where it reads the input batch. */
static uint32_t output_of(const sn_route *route, uint32_t layer) {
  const sn_step *step = &route->steps[route->forward_step[layer]];
  return route->accesses[step->first_access + step->n_accesses - 1].tensor;
}

static uint32_t input_of(const sn_route *route, uint32_t layer) {
  const sn_step *step = &route->steps[route->forward_step[layer]];
  return step->n_accesses > 1 ? route->accesses[step->first_access].tensor : SN_NONE;
}

static bool is_dropped_layer(const sn_layer *layer) {
  return !sn_op_of(layer)->checkpoint;
}

static uint64_t touched_bytes(const sn_route *route, const sn_step *step) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++)
    sum += route->tensors[route->accesses[step->first_access + i].tensor].bytes;
  return sum;
}

uint64_t sn_schedule_layer_peak(const sn_route *route) {
  uint64_t peak = 0;
  for (uint32_t s = route->first_backward; s < route->first_update; s++)
    peak = sn_max(peak, touched_bytes(route, &route->steps[s]));
  return peak;
}

/* The gradients a layer's backward step reads and writes: all it touches but its x and y. */
static uint64_t gradient_bytes(const sn_route *route, uint32_t layer) {
  const sn_step *step = &route->steps[route->backward_step[layer]];
  uint32_t x = input_of(route, layer), y = output_of(route, layer);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = route->accesses[step->first_access + i].tensor;
    if (tensor != x && tensor != y) sum += route->tensors[tensor].bytes;
  }
  return sum;
}

/* Depth first, who alone reads an output comes next. */
static uint32_t next_in_segment(const sn_route *route, uint32_t layer) {
  uint32_t next = route->forward_step[layer] + 1;
  if (next == route->first_backward) return SN_NONE;
  uint32_t reader = route->steps[next].layer;
  bool follows = input_of(route, reader) == output_of(route, layer);
  return follows && is_dropped_layer(&route->layers[reader]) ? reader : SN_NONE;
}

static bool begins_segment(const sn_route *route, uint32_t layer) {
  uint32_t input = input_of(route, layer);
  return input == SN_NONE || !is_dropped_layer(&route->layers[route->tensors[input].layer]);
}

/* Speed-centric memory of the segment that begins at `head` (reference, section 1). */
static uint64_t segment_memory(const sn_route *route, uint32_t head) {
  uint32_t root = input_of(route, head);
  uint64_t outputs = root == SN_NONE ? 0 : route->tensors[root].bytes, most = 0;
  for (uint32_t layer = head; layer != SN_NONE; layer = next_in_segment(route, layer)) {
    outputs += route->tensors[output_of(route, layer)].bytes;
    most = sn_max(most, outputs + gradient_bytes(route, layer));
  }
  return most;
}

static bool is_norm_or_dropout(sn_op op) {
  return op == SN_BN || op == SN_DROPOUT || op == SN_RECORDED_MASKED;
}

/* MXNet decides layer by layer, and never for batch norm and dropout. */
static void set_layer_modes(maker *m) {
  for (uint32_t i = 1; i < m->route->n_layers; i++) {
    const sn_layer *layer = &m->route->layers[i];
    if (is_dropped_layer(layer) && !is_norm_or_dropout(layer->op)) m->mode[output_of(m->route, i)] = DROP_RERUN_ONCE;
  }
}

/* Modules run again (sim/schedule/units.h). */
static bool has_units(sn_recompute recompute) {
  return recompute == SN_RECOMPUTE_UNITS || recompute == SN_RECOMPUTE_SELECTIVE || recompute == SN_RECOMPUTE_ATTENTION;
}

static void set_modes(maker *m, sn_recompute recompute) {
  const sn_route *route = m->route;
  if (recompute == SN_RECOMPUTE_NONE || has_units(recompute)) return;
  if (recompute == SN_RECOMPUTE_OPTIMAL || recompute == SN_RECOMPUTE_DTR) return;
  if (recompute == SN_RECOMPUTE_LAYERS) {
    set_layer_modes(m);
    return;
  }
  uint64_t layer_peak = recompute == SN_RECOMPUTE_COST ? sn_schedule_layer_peak(route) : 0;
  for (uint32_t head = 1; head < route->n_layers; head++) {
    if (!is_dropped_layer(&route->layers[head]) || !begins_segment(route, head)) continue;
    bool each = recompute == SN_RECOMPUTE_MEMORY ||
                (recompute == SN_RECOMPUTE_COST && segment_memory(route, head) > layer_peak);
    for (uint32_t layer = head; layer != SN_NONE; layer = next_in_segment(route, layer))
      m->mode[output_of(route, layer)] = each ? DROP_RERUN_EACH : DROP_RERUN_ONCE;
  }
}

static sn_status add_execution(maker *m, uint32_t step, uint32_t at_step, bool rerun) {
  sn_schedule *s = m->schedule;
  if (s->n_executions == SN_MAX_EXECUTIONS)
    return sn_fail(
        m->err, SN_BAD_INPUT,
        "network %s: recomputation needs more than %u forwards (a long chain of layers without a checkpoint); "
        "use recompute=speed or none",
        m->route->name, SN_MAX_EXECUTIONS);
  if (s->n_executions == m->room) {
    uint32_t room = 2 * m->room;
    sn_execution *more = realloc(m->executions, (size_t)room * sizeof *more);
    if (!more) return sn_fail_memory(m->err);
    m->executions = more;
    m->room = room;
  }
  m->executions[s->n_executions++] = (sn_execution){.step = step, .at_step = at_step, .rerun = rerun};
  s->reruns += rerun;
  return SN_OK;
}

/* Puts the forwards in that make `tensor` available, from the nearest available tensor of its chain on. */
static sn_status rerun_chain(maker *m, uint32_t tensor, uint32_t at_step) {
  uint32_t n = 0;
  for (uint32_t t = tensor; t != SN_NONE && !m->available[t]; t = input_of(m->route, m->chain[n - 1]))
    m->chain[n++] = m->route->tensors[t].layer;
  while (n-- > 0) {
    uint32_t layer = m->chain[n], made = output_of(m->route, layer);
    sn_status status = add_execution(m, m->route->forward_step[layer], at_step, true);
    if (status != SN_OK) return status;
    m->available[made] = true;
    if (m->mode[made] == DROP_RERUN_EACH) m->temporary[m->n_temporary++] = made;
  }
  return SN_OK;
}

static bool reads(const sn_route *route, const sn_step *step, uint32_t tensor) {
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (route->accesses[step->first_access + i].tensor == tensor) return true;
  return false;
}

/* Memory-centric: what the step did not read is gone again. */
static void forget_temporary(maker *m, const sn_step *step) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->n_temporary; i++) {
    uint32_t tensor = m->temporary[i];
    if (reads(m->route, step, tensor))
      m->temporary[kept++] = tensor;
    else
      m->available[tensor] = false;
  }
  m->n_temporary = kept;
}

static bool is_forward_made(const sn_tensor *tensor) {
  return tensor->role == SN_VALUE || tensor->role == SN_SAVED || tensor->role == SN_SCRATCH;
}

static sn_status add_backward(maker *m, uint32_t s) {
  const sn_step *step = &m->route->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = m->route->accesses[step->first_access + i];
    if (access.mode == SN_WRITE || m->available[access.tensor]) continue;
    sn_status status = rerun_chain(m, access.tensor, s);
    if (status != SN_OK) return status;
  }
  forget_temporary(m, step);
  for (uint32_t i = 0; i < step->n_accesses; i++)
    m->available[m->route->accesses[step->first_access + i].tensor] = true;
  return add_execution(m, s, s, false);
}

static sn_status make_executions(maker *m) {
  const sn_route *route = m->route;
  sn_status status = SN_OK;
  for (uint32_t s = 0; s < route->first_backward && status == SN_OK; s++) status = add_execution(m, s, s, false);
  for (uint32_t t = 0; t < route->n_tensors; t++)
    m->available[t] =
        (is_forward_made(&route->tensors[t]) || sn_role_is_beside(route->tensors[t].role)) && m->mode[t] == KEEP;
  for (uint32_t s = route->first_backward; s < route->first_update && status == SN_OK; s++) status = add_backward(m, s);
  for (uint32_t s = route->first_update; s < route->n_steps && status == SN_OK; s++)
    status = add_execution(m, s, s, false);
  return status;
}

/* ---- units ---- */

/* Does backward read anything that forward has made? */
static bool needs_forward(const sn_route *route, uint32_t backward) {
  const sn_step *step = &route->steps[backward];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = route->accesses[step->first_access + i];
    if (access.mode != SN_WRITE && !access.held && is_forward_made(&route->tensors[access.tensor])) return true;
  }
  return false;
}

bool sn_schedule_needs_forward(const sn_route *route, uint32_t forward) {
  uint32_t backward = route->backward_step[route->steps[forward].layer];
  return backward != SN_NONE && needs_forward(route, backward);
}

/* Of partial sums no backward needs the whole. */
static bool adds_up(const sn_route *route, uint32_t step) {
  const sn_step *s = &route->steps[step];
  if (s->kernel != SN_TRANSFER) return false;
  sn_transfer_kind kind = route->transfers[s->sum].kind;
  return kind == SN_REDUCE_SCATTER || kind == SN_ALL_REDUCE;
}

bool sn_schedule_saves_own(const sn_route *route, uint32_t forward) {
  const sn_step *step = &route->steps[forward];
  uint32_t backward = route->backward_step[step->layer];
  for (uint32_t i = 0; i < step->n_accesses && backward != SN_NONE; i++) {
    sn_access access = route->accesses[step->first_access + i];
    if (access.mode != SN_READ && reads(route, &route->steps[backward], access.tensor)) return true;
  }
  return false;
}

uint32_t sn_schedule_rerun_end(const sn_route *route, uint32_t first, uint32_t end) {
  while (end > first && (sn_step_is_beside(route, &route->steps[end - 1]) || adds_up(route, end - 1) ||
                         !sn_schedule_needs_forward(route, end - 1)))
    end--;
  return end > first && !sn_schedule_saves_own(route, end - 1) ? end - 1 : end;
}

static sn_status rerun_unit(maker *m, const sn_units *units, uint32_t unit, uint32_t at_step) {
  uint32_t end = sn_schedule_rerun_end(m->route, units->first[unit], units->first[unit + 1]);
  sn_status status = SN_OK;
  for (uint32_t s = units->first[unit]; s < end && status == SN_OK; s++) {
    bool kept = m->kept && m->kept[s];
    if (!kept && !sn_step_is_beside(m->route, &m->route->steps[s])) status = add_execution(m, s, at_step, true);
  }
  return status;
}

/* Backward goes through units in turn, the last first. `again` NULL: all run again. */
static sn_status make_unit_executions(maker *m, const sn_units *units, const bool *again) {
  const sn_route *route = m->route;
  uint32_t next = units->count; /* all from here on have run again */
  sn_status status = SN_OK;
  for (uint32_t s = 0; s < route->n_steps && status == SN_OK; s++) {
    bool backward = s >= route->first_backward && s < route->first_update;
    uint32_t unit = backward && needs_forward(route, s) ? sn_units_of(units, route, s) : units->count;
    bool enters = unit < next;
    if (enters) next = unit;
    if (enters && !sn_units_stays(units, unit) && (!again || again[unit])) status = rerun_unit(m, units, unit, s);
    if (status == SN_OK) status = add_execution(m, s, s, false);
  }
  return status;
}

/* Of each step of a pipeline's stage: which of the whole it is, and of which micro-batch. */
typedef struct origin {
  uint32_t step, micro;
} origin;

static origin *find_origins(const sn_route *route, const sn_route *whole) {
  origin *of = malloc(((size_t)route->n_steps + 1) * sizeof *of);
  if (!of) return NULL;
  for (uint32_t s = 0; s < route->n_steps; s++) of[s] = (origin){SN_NONE, 0};
  for (uint32_t micro = 0; micro < route->micros; micro++)
    for (uint32_t s = 0; s < whole->n_steps; s++) {
      uint32_t own = sn_route_run_of(route, micro, s);
      if (own != SN_NONE) of[own] = (origin){s, micro};
    }
  return of;
}

/* A unit that lies on two stages is no module of either. */
static bool is_on_stage(const sn_route *route, const sn_units *units, uint32_t unit) {
  for (uint32_t s = units->first[unit]; s < units->first[unit + 1]; s++)
    if (route->run_numbers[s] == SN_NONE) return false;
  return true;
}

/* The unit of the whole, as the micro-batch ran it. */
static sn_status rerun_staged(maker *m, const sn_route *whole, const sn_units *units, uint32_t unit, uint32_t micro,
                              uint32_t at_step) {
  uint32_t end = sn_schedule_rerun_end(whole, units->first[unit], units->first[unit + 1]);
  sn_status status = SN_OK;
  for (uint32_t s = units->first[unit]; s < end && status == SN_OK; s++) {
    uint32_t own = sn_route_run_of(m->route, micro, s);
    if (own != SN_NONE) status = add_execution(m, own, at_step, true);
  }
  return status;
}

/* A stage's backward steps go through units in turn, micro-batch by micro-batch. */
static sn_status make_staged_executions(maker *m, const sn_units *units, const bool *again) {
  const sn_route *route = m->route, *whole = route;
  while (whole->micros > 0) whole = whole->whole;
  origin *of = find_origins(route, whole);
  uint32_t *next = malloc(((size_t)route->micros + 1) * sizeof *next);
  sn_status status = of && next ? SN_OK : sn_fail_memory(m->err);
  for (uint32_t i = 0; i < route->micros && status == SN_OK; i++) next[i] = units->count;
  for (uint32_t s = 0; s < route->n_steps && status == SN_OK; s++) {
    bool backward = of[s].step != SN_NONE && route->steps[s].pass == SN_BACKWARD && needs_forward(route, s);
    uint32_t unit = backward ? sn_units_of(units, whole, of[s].step) : units->count;
    bool enters = backward && unit < next[of[s].micro];
    if (enters) next[of[s].micro] = unit;
    if (enters && !sn_units_stays(units, unit) && (!again || again[unit]) && is_on_stage(route, units, unit))
      status = rerun_staged(m, whole, units, unit, of[s].micro, s);
    if (status == SN_OK) status = add_execution(m, s, s, false);
  }
  free(of);
  free(next);
  return status;
}

/* The blocks of units of a recording that run again. `spans`: room for one a unit; how many there are. */
static uint32_t find_spans(const sn_route *route, const sn_units *units, const bool *again, bool selective,
                           sn_record_span *spans) {
  uint32_t n = 0, r = 0;
  for (uint32_t u = 0; u < units->count; u++) {
    uint32_t first = r;
    while (r < route->n_regions && route->regions[r].end <= units->first[u + 1]) r++;
    if (r > first && !sn_units_stays(units, u) && (!again || again[u]))
      spans[n++] = (sn_record_span){first, r, selective};
  }
  return n;
}

/* Of a recording it is known what runs again and when: its own route says that. */
static sn_status make_recorded_executions(maker *m, const sn_units *units, const bool *again) {
  sn_record_span *spans = calloc((size_t)units->count + 1, sizeof *spans);
  if (!spans) return sn_fail_memory(m->err);
  uint32_t n = find_spans(m->route, units, again, m->selective, spans), next = 0;
  const sn_route *route = n > 0 ? sn_shard_under(m->route, spans, n, m->err) : m->route;
  free(spans);
  if (!route) return m->err->code;
  m->route = m->schedule->route = route;
  sn_status status = SN_OK;
  for (uint32_t s = 0; s <= route->n_steps && status == SN_OK; s++) {
    uint32_t at = s < route->n_steps ? s : s - 1;
    for (; next < route->n_again && route->again[next].at_step == s && status == SN_OK; next++)
      status = add_execution(m, route->again[next].step, at, true);
    if (s < route->n_steps && status == SN_OK) status = add_execution(m, s, s, false);
  }
  return status;
}

static sn_status execute_units(maker *m, const sn_units *units, const bool *again) {
  if (m->route->micros > 0) return make_staged_executions(m, units, again);
  return m->route->regions ? make_recorded_executions(m, units, again) : make_unit_executions(m, units, again);
}

/* Results that stay where the others of their units are made again. */
static sn_status keep_some(maker *m, const sn_units *units) {
  m->kept = sn_selective_find(m->route, units);
  const sn_route *held = m->kept ? sn_selective_hold(m->route, units, m->kept, m->err) : NULL;
  if (!m->kept) sn_fail_memory(m->err);
  if (held) m->route = m->schedule->route = held;
  return m->err->code;
}

static sn_status make_units(maker *m, sn_unit_kind kind) {
  sn_units units;
  sn_status status = sn_units_find_kind(m->route, kind, &units, m->err);
  if (status == SN_OK && m->selective && !m->route->regions) status = keep_some(m, &units);
  if (status == SN_OK) status = execute_units(m, &units, NULL);
  free(m->kept);
  sn_units_clear(&units);
  return status;
}

/* One backward scan: an access is the last where no later one needs the value. */
static sn_status find_last_uses(maker *m) {
  sn_schedule *s = m->schedule;
  size_t accesses = 0;
  for (uint32_t e = 0; e < s->n_executions; e++) {
    m->executions[e].first_last_use = (uint32_t)accesses;
    accesses += sn_route_run(m->route, m->executions[e].step, m->executions[e].rerun)->n_accesses;
  }
  bool *last_use = calloc(accesses + 1, sizeof *last_use);
  bool *needed = calloc((size_t)m->route->n_tensors + 1, sizeof *needed);
  if (!last_use || !needed) {
    free(last_use);
    free(needed);
    return sn_fail_memory(m->err);
  }
  for (uint32_t e = s->n_executions; e-- > 0;) {
    const sn_step *step = sn_route_run(m->route, m->executions[e].step, m->executions[e].rerun);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = m->route->accesses[step->first_access + i];
      last_use[m->executions[e].first_last_use + i] = !needed[access.tensor];
      needed[access.tensor] = access.mode != SN_WRITE;
    }
  }
  free(needed);
  s->last_use = last_use;
  return SN_OK;
}

static sn_status make(maker *m, sn_recompute recompute) {
  size_t tensors = m->route->n_tensors, layers = m->route->first_backward;
  m->room = 2 * m->route->n_steps;
  m->executions = malloc(m->room * sizeof *m->executions);
  m->mode = calloc(tensors, sizeof *m->mode);
  m->available = calloc(tensors, sizeof *m->available);
  m->temporary = calloc(tensors, sizeof *m->temporary);
  m->chain = calloc(layers, sizeof *m->chain);
  sn_status status =
      m->executions && m->mode && m->available && m->temporary && m->chain ? SN_OK : sn_fail_memory(m->err);
  if (status == SN_OK) {
    set_modes(m, recompute);
    m->selective = recompute == SN_RECOMPUTE_SELECTIVE;
    sn_unit_kind kind = m->selective                          ? SN_UNITS_BLOCKS
                        : recompute == SN_RECOMPUTE_ATTENTION ? SN_UNITS_ATTENTION
                                                              : SN_UNITS_MODULES;
    status = has_units(recompute) ? make_units(m, kind) : make_executions(m);
  }
  if (status == SN_OK) status = find_last_uses(m);
  m->schedule->executions = m->executions;
  free(m->mode);
  free(m->available);
  free(m->temporary);
  free(m->chain);
  return status;
}

/* The fastest algorithms' workspaces; NULL after an error. */
static uint64_t *find_workspaces(const sn_net *net, const sn_costs *costs, sn_err *err) {
  uint64_t *bytes = calloc(net->n_layers, sizeof *bytes);
  if (!bytes) sn_fail_memory(err);
  for (uint32_t i = 0; i < net->n_layers && bytes && costs; i++)
    if (sn_op_of(&net->layers[i])->convolves) bytes[i] = sn_costs_largest_workspace(costs, i);
  return bytes;
}

static sn_route *make_route(const sn_net *net, sn_strategy strategy, sn_iteration iteration, const sn_costs *costs,
                            sn_err *err) {
  sn_order order = sn_strategy_order(strategy);
  if (!sn_dialect_of(strategy.dialect)->by_kernel)
    return sn_route_new_for(net, strategy.dialect, order, iteration, NULL, err);
  uint64_t *workspace = find_workspaces(net, costs, err);
  sn_route *route = workspace ? sn_route_new_for(net, strategy.dialect, order, iteration, workspace, err) : NULL;
  free(workspace);
  return route;
}

sn_route *sn_schedule_route(const sn_net *net, sn_strategy strategy, sn_iteration iteration, const sn_costs *costs,
                            sn_err *err) {
  sn_route *route = make_route(net, strategy, iteration, costs, err);
  sn_status status = route ? SN_OK : err->code;
  if (status == SN_OK && strategy.dialect == SN_DIALECT_EXPLICIT) status = sn_route_take(route, err);
  if (status == SN_OK && strategy.liveness == SN_LIVENESS_CARRIED) status = sn_route_carry(route, err);
  if (status == SN_OK) return sn_shard(route, iteration, err);
  sn_route_free(route);
  return NULL;
}

sn_schedule *sn_schedule_new(const sn_route *route, sn_recompute recompute, sn_err *err) {
  if (recompute == SN_RECOMPUTE_SQRT) return sn_schedule_sqrt(route, err);
  sn_schedule *schedule = calloc(1, sizeof *schedule);
  if (!schedule) {
    sn_fail_memory(err);
    return NULL;
  }
  schedule->route = route;
  maker m = {.route = route, .schedule = schedule, .err = err};
  if (make(&m, recompute) == SN_OK) return schedule;
  sn_schedule_free(schedule);
  return NULL;
}

bool sn_schedule_is_sizeless(sn_recompute recompute) {
  return recompute == SN_RECOMPUTE_NONE || recompute == SN_RECOMPUTE_SPEED || recompute == SN_RECOMPUTE_MEMORY;
}

size_t sn_schedule_accesses(const sn_schedule *schedule) {
  const sn_execution *last = &schedule->executions[schedule->n_executions - 1]; /* there is a step at least */
  return last->first_last_use + sn_route_run(schedule->route, last->step, last->rerun)->n_accesses;
}

sn_schedule *sn_schedule_copy(const sn_schedule *schedule, const sn_route *route, sn_err *err) {
  size_t accesses = sn_schedule_accesses(schedule), n = schedule->n_executions;
  sn_schedule *copy = calloc(1, sizeof *copy);
  sn_execution *executions = malloc(n * sizeof *executions);
  bool *last_use = malloc((accesses + 1) * sizeof *last_use);
  if (!copy || !executions || !last_use) {
    free(copy), free(executions), free(last_use);
    sn_fail_memory(err);
    return NULL;
  }
  memcpy(executions, schedule->executions, n * sizeof *executions);
  memcpy(last_use, schedule->last_use, accesses * sizeof *last_use);
  *copy = (sn_schedule){.route = route,
                        .n_executions = schedule->n_executions,
                        .executions = executions,
                        .last_use = last_use,
                        .reruns = schedule->reruns};
  return copy;
}

sn_schedule *sn_schedule_checkpoints(const sn_route *route, const sn_units *regions, const bool *again, sn_err *err) {
  sn_schedule *schedule = calloc(1, sizeof *schedule);
  maker m = {.route = route, .schedule = schedule, .room = 2 * route->n_steps, .err = err};
  m.executions = malloc(m.room * sizeof *m.executions);
  sn_status status = schedule && m.executions ? SN_OK : sn_fail_memory(err);
  if (schedule) schedule->route = route;
  if (status == SN_OK) status = execute_units(&m, regions, again);
  if (status == SN_OK) status = find_last_uses(&m);
  if (schedule)
    schedule->executions = m.executions;
  else
    free(m.executions);
  if (status == SN_OK) return schedule;
  sn_schedule_free(schedule);
  return NULL;
}

sn_schedule *sn_schedule_first_units(const sn_route *route, uint32_t count, sn_err *err) {
  sn_units units;
  sn_schedule *schedule = NULL;
  if (sn_units_find(route, &units, err) != SN_OK) return NULL;
  bool *again = calloc((size_t)units.count + 1, sizeof *again);
  for (uint32_t u = 0; again && u < units.count; u++) {
    again[u] = !sn_units_stays(&units, u) && count > 0;
    count -= again[u];
  }
  if (again)
    schedule = sn_schedule_checkpoints(route, &units, again, err);
  else
    sn_fail_memory(err);
  free(again);
  sn_units_clear(&units);
  return schedule;
}

sn_schedule *sn_schedule_of(const sn_route *route, sn_execution *executions, uint32_t count, sn_err *err) {
  sn_schedule *schedule = calloc(1, sizeof *schedule);
  maker m = {.route = route, .schedule = schedule, .executions = executions, .err = err};
  if (schedule) *schedule = (sn_schedule){.route = route, .executions = executions, .n_executions = count};
  for (uint32_t e = 0; schedule && e < count; e++) schedule->reruns += executions[e].rerun;
  sn_status status = schedule ? find_last_uses(&m) : sn_fail_memory(err);
  if (status == SN_OK) return schedule;
  if (!schedule) free(executions);
  sn_schedule_free(schedule);
  return NULL;
}

void sn_schedule_free(sn_schedule *schedule) {
  if (!schedule) return;
  free((void *)schedule->executions);
  free((void *)schedule->last_use);
  free((void *)schedule->swaps);
  free(schedule);
}
