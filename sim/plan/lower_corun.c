/* Lowering of timetables; see the header. */
#include "sim/plan/lower_corun.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/plan/check.h"
#include "sim/plan/lanes.h"
#include "sim/plan/lower.h"
#include "sim/plan/place.h"
#include "sim/plan/regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each lane, the last instruction that touched and that wrote a tensor, or an object; 0: none. */
typedef struct clocks {
  uint32_t of[SN_LANES];
} clocks;

typedef struct resource {
  clocks touched, wrote;
  uint32_t claim; /* of the pool, while it has bytes there */
} resource;

typedef struct lowering {
  const sn_corun_wish *wish;
  const sn_timetable *table;
  const sn_ops *ops;
  const sn_route *route;
  sn_err *err;
  sn_plan *plan;
  sn__lanes lanes;
  resource *resources;  /* tensors, then objects */
  sn_block *blocks;     /* of lives, then of workspaces, one an operation; in events */
  uint64_t *offsets;    /* of blocks */
  uint32_t *users_left; /* per life */
  uint32_t *clock;      /* per operation: its compute's, on its lane; 0: not yet */
  sn__regions pool, cores;
  uint32_t last_ended; /* operation; SN_NONE */
  uint32_t step;
} lowering;

static sn_lane lane_of(const lowering *l, uint32_t op) {
  uint8_t number = l->table->starts[op].lane;
  return number == 0 ? SN_LANE_COMPUTE : (sn_lane)(SN_LANE_COMPUTE2 + number - 1);
}

/* ---- addresses ---- */

static sn_status find_workspace(const lowering *l, uint32_t op, uint64_t *bytes) {
  const sn_corun_scratch *scratch = &l->wish->scratch;
  const sn_op_node *node = &l->ops->nodes[op];
  if (!scratch->find)
    *bytes = sn_lower_workspace(l->route, SN_WORKSPACE_NONE, l->wish->costs, node->step);
  else if (scratch->find(scratch->user, node->step, node->part, l->table->starts[op].team.count, bytes, l->err))
    return l->err->code;
  *bytes = sn_pool_round(*bytes);
  return SN_OK;
}

/* Sizes and times of all blocks; a workspace lives as long as its operation runs. */
static sn_status find_blocks(lowering *l) {
  const sn_ops *ops = l->ops;
  for (uint32_t life = 0; life < ops->n_lives; life++) l->blocks[life].bytes = sn_pool_round(sn_life_bytes(ops, life));
  for (uint32_t at = 0; at < 2 * ops->n_ops; at++) {
    sn_event event = l->table->events[at];
    const sn_op_node *node = &ops->nodes[event.op];
    sn_block *workspace = &l->blocks[ops->n_lives + event.op];
    *(event.is_end ? &workspace->upper : &workspace->lower) = at;
    if (!event.is_end && find_workspace(l, event.op, &workspace->bytes) != SN_OK) return l->err->code;
    for (uint32_t u = 0; u < node->n_uses; u++) {
      uint32_t life = ops->uses[node->first_use + u];
      if (event.is_end)
        l->blocks[life].upper = at; /* the last of its users' is the latest */
      else if (ops->lives[life].made_by == event.op)
        l->blocks[life].lower = at;
    }
  }
  return SN_OK;
}

/* Takes the blocks that begin with an operation, in the order in which it uses them, or gives back those that end; its
 * workspace, which is the last, only where it is not `bare`. */
static sn_status fit_event(lowering *l, sn_pool *pool, uint32_t at, bool bare) {
  const sn_op_node *node = &l->ops->nodes[l->table->events[at].op];
  for (uint32_t u = 0; u < node->n_uses + !bare; u++) {
    uint32_t b = u < node->n_uses ? l->ops->uses[node->first_use + u] : l->ops->n_lives + l->table->events[at].op;
    const sn_block *block = &l->blocks[b];
    if (block->bytes == 0) continue;
    bool good = true;
    if (block->lower == at)
      good = sn_pool_take(pool, block->bytes, UINT64_MAX, &l->offsets[b]);
    else if (block->upper == at)
      good = sn_pool_give(pool, l->offsets[b], block->bytes) == SN_OK;
    if (!good) return sn_fail_memory(l->err);
  }
  return SN_OK;
}

/* The offsets of first fit; *high_water: the pool that it takes. */
static sn_status fit_first(lowering *l, bool bare, uint64_t *high_water) {
  sn_pool pool = {0};
  sn_status status = SN_OK;
  for (uint32_t at = 0; at < 2 * l->ops->n_ops && status == SN_OK; at++) status = fit_event(l, &pool, at, bare);
  *high_water = pool.high_water;
  l->plan->reserved_peak = pool.reserved_peak;
  sn_pool_clear(&pool);
  return status;
}

static sn_status place_first_fit(lowering *l) {
  sn_status status = fit_first(l, true, &l->plan->bare_bytes);
  return status == SN_OK ? fit_first(l, false, &l->plan->pool_bytes) : status;
}

static sn_status place_packed(lowering *l) {
  uint32_t n = l->ops->n_lives + l->ops->n_ops;
  if (n > SN_PACK_MOST) return SN_OK;
  l->plan->placement = SN_PLACEMENT_PACKED;
  const sn_pack_limits limits = sn_place_limits(n, l->plan->pool_bytes, l->plan->reserved_peak, (sn_place_goal){0});
  if (l->plan->pool_bytes <= limits.enough) return SN_OK;
  uint64_t *packed = calloc((size_t)n + 1, sizeof *packed);
  if (!packed) return sn_fail_memory(l->err);
  sn_packing packing;
  sn_status status = sn_pack_again(l->wish->packings, l->blocks, n, &limits, packed, &packing, l->err);
  if (status == SN_OK && packing.bytes < l->plan->pool_bytes) {
    memcpy(l->offsets, packed, n * sizeof *packed);
    l->plan->pool_bytes = packing.bytes;
  }
  free(packed);
  return status;
}

static sn_status place(lowering *l) {
  sn_status status = find_blocks(l);
  if (status == SN_OK) status = place_first_fit(l);
  if (l->wish->reuse == SN_REUSE_FREE) {
    l->plan->pool_bytes = 0; /* addresses come as it is written */
    return status;
  }
  return status == SN_OK && l->wish->placement == SN_PLACEMENT_PACKED ? place_packed(l) : status;
}

/* ---- instructions ---- */

static sn_status add(lowering *l, sn_instr instr) {
  instr.step = l->step;
  return sn__lanes_add(&l->lanes, instr);
}

static void raise(clocks *to, const clocks *from) {
  for (uint32_t lane = 0; lane < SN_LANES; lane++)
    if (from->of[lane] > to->of[lane]) to->of[lane] = from->of[lane];
}

static void raise_for_access(lowering *l, clocks *to, uint32_t number, sn_access_mode mode) {
  raise(to, mode == SN_READ ? &l->resources[number].wrote : &l->resources[number].touched);
}

static void note_access(lowering *l, uint32_t number, sn_access_mode mode, const sn__moment *now) {
  l->resources[number].touched.of[now->lane] = now->clock;
  if (mode != SN_READ) l->resources[number].wrote.of[now->lane] = now->clock;
}

typedef void (*each_access)(lowering *l, uint32_t number, sn_access_mode mode, void *context);

static void for_each_access(lowering *l, uint32_t op, each_access call, void *context) {
  const sn_op_node *node = &l->ops->nodes[op];
  const sn_step *step = &l->route->steps[node->step];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = l->route->accesses[step->first_access + i];
    if (sn_step_part_has(l->route, node->step, node->part, i)) call(l, access.tensor, access.mode, context);
  }
  sn_object_access objects[SN_OBJECT_KINDS];
  uint32_t n = sn_step_part_objects(l->route, node->step, node->part, objects);
  for (uint32_t i = 0; i < n; i++) call(l, l->route->n_tensors + objects[i].object, objects[i].mode, context);
}

static void order_access(lowering *l, uint32_t number, sn_access_mode mode, void *context) {
  raise_for_access(l, context, number, mode);
}

static void record_access(lowering *l, uint32_t number, sn_access_mode mode, void *context) {
  note_access(l, number, mode, context);
}

static uint64_t first_thread(const lowering *l, const sn_team *team) {
  return (uint64_t)team->slot * l->wish->cores->count + team->first;
}

/* Waits for results, cores and the end before it. */
static sn_status await_turn(lowering *l, uint32_t op) {
  const sn_team *team = &l->table->starts[op].team;
  clocks behind = {{0}};
  for_each_access(l, op, order_access, &behind);
  if (team->slot != SN_SLOT_ANY)
    sn__regions_last(&l->cores, first_thread(l, team), first_thread(l, team) + team->count, behind.of);
  if (l->last_ended != SN_NONE) {
    clocks ended = {{0}};
    ended.of[lane_of(l, l->last_ended)] = l->clock[l->last_ended];
    raise(&behind, &ended);
  }
  return sn__lanes_order_all(&l->lanes, lane_of(l, op), behind.of, l->step);
}

/* Waits for whoever had these bytes; what waits it takes for that alone is counted. */
static sn_status await_bytes(lowering *l, sn_lane lane, const clocks *behind) {
  uint32_t before = l->plan->n_instrs, fences = l->plan->n_fences;
  sn_status status = sn__lanes_order_all(&l->lanes, lane, behind->of, l->step);
  l->plan->added_waits += l->plan->n_instrs - before - (l->plan->n_fences - fences);
  return status;
}

/* Finds the block's place where that is still open, and makes it the lane's. `owner`: a tensor, SN_NONE: a workspace,
 * which the next instruction of the lane uses and nobody after it. *which: the number of the claim. */
static sn_status claim(lowering *l, uint32_t b, sn_lane lane, uint32_t owner, uint32_t *which) {
  uint64_t bytes = l->blocks[b].bytes, *offset = &l->offsets[b];
  const sn__lane_state *state = &l->lanes.of[lane];
  clocks behind = {{0}};
  if (l->wish->reuse == SN_REUSE_FREE) *offset = sn__regions_find(&l->pool, bytes, state->known);
  sn__regions_last(&l->pool, *offset, *offset + bytes, behind.of);
  sn_status status = await_bytes(l, lane, &behind);
  if (status != SN_OK) return status;
  const sn__moment touched = {state->clock + 1, (uint8_t)lane};
  l->plan->pool_bytes = sn_max(l->plan->pool_bytes, *offset + bytes);
  switch (sn__regions_claim(&l->pool, *offset, *offset + bytes, owner, state->known, touched, which)) {
  case SN__CLAIM_GOOD:
    return SN_OK;
  case SN__CLAIM_MEMORY:
    return sn_fail_memory(l->err);
  case SN__CLAIM_LIVE:
  case SN__CLAIM_UNORDERED:
    break;
  }
  return sn_fail(l->err, SN_BUG, "co-run plan: a block of operation %u has no place", b);
}

static sn_status allocate(lowering *l, uint32_t life, sn_lane lane) {
  uint32_t tensor = l->ops->lives[life].tensor;
  resource fresh = {.claim = 0};
  sn_status status = claim(l, life, lane, tensor, &fresh.claim);
  if (status != SN_OK) return status;
  l->resources[tensor] = fresh;
  return add(l, (sn_instr){.kind = SN_ALLOC,
                           .lane = (uint8_t)lane,
                           .id = tensor,
                           .offset = l->offsets[life],
                           .bytes = l->blocks[life].bytes});
}

static sn_status release(lowering *l, uint32_t life, sn_lane lane) {
  uint32_t tensor = l->ops->lives[life].tensor;
  sn_status status = await_bytes(l, lane, &l->resources[tensor].touched);
  if (status != SN_OK) return status;
  const sn__moment touched = {l->lanes.of[lane].clock + 1, (uint8_t)lane};
  sn__regions_release(&l->pool, l->resources[tensor].claim, touched);
  return add(l, (sn_instr){.kind = SN_RELEASE,
                           .lane = (uint8_t)lane,
                           .id = tensor,
                           .offset = l->offsets[life],
                           .bytes = l->blocks[life].bytes});
}

/* The number of a team among the plan's. */
static sn_status find_team(lowering *l, const sn_team *team, uint16_t *number) {
  sn_plan *plan = l->plan;
  for (uint32_t t = 0; t < plan->n_teams; t++) {
    const sn_team *known = &plan->teams[t];
    *number = (uint16_t)t;
    if (known->first == team->first && known->count == team->count && known->slot == team->slot) return SN_OK;
  }
  if (plan->n_teams == UINT16_MAX)
    return sn_fail(l->err, SN_BAD_INPUT, "a co-run plan of more than %d teams", UINT16_MAX);
  if ((plan->n_teams & (plan->n_teams - 1)) == 0) { /* full: double it */
    size_t room = plan->n_teams ? 2 * (size_t)plan->n_teams : 1;
    sn_team *more = realloc(plan->teams, room * sizeof *more);
    if (!more) return sn_fail_memory(l->err);
    plan->teams = more;
  }
  *number = (uint16_t)plan->n_teams;
  plan->teams[plan->n_teams++] = *team;
  return SN_OK;
}

/* Its smallest algorithms. */
static void pick_algos(const lowering *l, const sn_op_node *node, uint8_t algo[2]) {
  static const sn_conv_kernel kernels[SN_STEP_PARTS] = {SN_CONV_FORWARD, SN_CONV_BACKWARD_FILTER,
                                                        SN_CONV_BACKWARD_DATA};
  const sn_step *step = &l->route->steps[node->step];
  algo[0] = algo[1] = SN_NO_ALGO;
  if (!sn_op_of(&l->route->layers[step->layer])->convolves || step->pass == SN_UPDATE) return;
  uint32_t n;
  const sn_conv_choice *choices = sn_costs_conv(l->wish->costs, step->layer, kernels[node->part], &n);
  algo[node->part == SN_STEP_FILTER] = (uint8_t)choices[n - 1].algo;
}

static sn_status compute(lowering *l, uint32_t op) {
  const sn_op_node *node = &l->ops->nodes[op];
  const sn_team *team = &l->table->starts[op].team;
  uint32_t block = l->ops->n_lives + op;
  sn_lane lane = lane_of(l, op);
  sn_instr instr = {.kind = SN_COMPUTE,
                    .lane = (uint8_t)lane,
                    .rerun = l->ops->schedule->executions[node->execution].rerun,
                    .part = (uint8_t)node->part,
                    .id = node->step,
                    .bytes = l->blocks[block].bytes};
  uint32_t which;
  sn_status status = instr.bytes > 0 ? claim(l, block, lane, SN_NONE, &which) : SN_OK;
  if (status == SN_OK) status = find_team(l, team, &instr.team);
  if (status != SN_OK) return status;
  instr.offset = instr.bytes > 0 ? l->offsets[block] : 0;
  pick_algos(l, node, instr.algo);
  l->plan->counts.recomputed_layers += instr.rerun;
  status = add(l, instr);
  l->clock[op] = l->lanes.of[lane].clock;
  sn__moment now = {l->clock[op], (uint8_t)lane};
  for_each_access(l, op, record_access, &now);
  return status;
}

static sn_status claim_cores(lowering *l, uint32_t op) {
  const sn_team *team = &l->table->starts[op].team;
  sn_lane lane = lane_of(l, op);
  const sn__moment touched = {l->clock[op], (uint8_t)lane};
  uint32_t which;
  if (team->slot == SN_SLOT_ANY) return SN_OK;
  uint64_t first = first_thread(l, team);
  sn__claim claimed =
      sn__regions_claim(&l->cores, first, first + team->count, SN_NONE, l->lanes.of[lane].known, touched, &which);
  if (claimed == SN__CLAIM_GOOD) return SN_OK;
  if (claimed == SN__CLAIM_MEMORY) return sn_fail_memory(l->err);
  return sn_fail(l->err, SN_BUG, "co-run plan: operation %u has no cores", op);
}

static sn_status start(lowering *l, uint32_t op) {
  const sn_op_node *node = &l->ops->nodes[op];
  sn_status status = await_turn(l, op);
  for (uint32_t u = 0; u < node->n_uses && status == SN_OK; u++) {
    uint32_t life = l->ops->uses[node->first_use + u];
    if (l->ops->lives[life].made_by == op) status = allocate(l, life, lane_of(l, op));
  }
  if (status == SN_OK) status = compute(l, op);
  return status == SN_OK ? claim_cores(l, op) : status;
}

static sn_status end(lowering *l, uint32_t op) {
  const sn_op_node *node = &l->ops->nodes[op];
  sn_status status = SN_OK;
  for (uint32_t u = 0; u < node->n_uses && status == SN_OK; u++) {
    uint32_t life = l->ops->uses[node->first_use + u];
    if (--l->users_left[life] == 0) status = release(l, life, lane_of(l, op));
  }
  l->last_ended = op;
  return status == SN_OK ? sn__lanes_signal(&l->lanes, lane_of(l, op), l->step) : status;
}

static sn_status write(lowering *l) {
  sn_status status = SN_OK;
  for (uint32_t at = 0; at < 2 * l->ops->n_ops && status == SN_OK; at++) {
    sn_event event = l->table->events[at];
    l->step = l->ops->schedule->executions[l->ops->nodes[event.op].execution].at_step;
    status = event.is_end ? end(l, event.op) : start(l, event.op);
  }
  return status;
}

/* Leaves out fences that nobody waits for. */
static sn_status drop_fences(lowering *l) {
  sn_plan *plan = l->plan;
  uint32_t *number = calloc((size_t)plan->n_fences + 1, sizeof *number), kept = 0;
  if (!number) return sn_fail_memory(l->err);
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    if (plan->instrs[i].kind == SN_WAIT) number[plan->instrs[i].id] = 1;
  for (uint32_t f = plan->n_fences; f-- > 0;) number[f] = number[f] ? 1 : SN_NONE;
  plan->n_fences = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    sn_instr instr = plan->instrs[i];
    if (instr.kind == SN_SIGNAL && number[instr.id] == SN_NONE) continue;
    if (instr.kind == SN_SIGNAL) number[instr.id] = plan->n_fences++;
    if (instr.kind == SN_SIGNAL || instr.kind == SN_WAIT) instr.id = number[instr.id];
    plan->instrs[kept++] = instr;
  }
  plan->n_instrs = kept;
  free(number);
  return SN_OK;
}

static sn_status allocate_all(lowering *l) {
  size_t blocks = (size_t)l->ops->n_lives + l->ops->n_ops;
  l->plan = calloc(1, sizeof *l->plan);
  l->resources =
      calloc((size_t)l->route->n_tensors + (size_t)SN_OBJECT_KINDS * l->route->n_layers, sizeof *l->resources);
  l->blocks = calloc(blocks + 1, sizeof *l->blocks);
  l->offsets = calloc(blocks + 1, sizeof *l->offsets);
  l->users_left = calloc((size_t)l->ops->n_lives + 1, sizeof *l->users_left);
  l->clock = calloc((size_t)l->ops->n_ops + 1, sizeof *l->clock);
  if (!l->plan || !l->resources || !l->blocks || !l->offsets || !l->users_left || !l->clock)
    return sn_fail_memory(l->err);
  *l->plan = (sn_plan){.route = l->route,
                       .placement = SN_PLACEMENT_FIRST_FIT,
                       .pool_limit = l->wish->pool_bytes,
                       .cores = (uint16_t)l->wish->cores->count,
                       .slots = (uint16_t)l->wish->cores->slots};
  snprintf(l->plan->layouts, sizeof l->plan->layouts, "%s", sn_costs_layouts(l->wish->costs));
  l->lanes = (sn__lanes){.plan = l->plan, .n_lanes = SN_CORUN_LANES, .err = l->err};
  for (uint32_t life = 0; life < l->ops->n_lives; life++) l->users_left[life] = l->ops->lives[life].n_users;
  l->plan->use = calloc(l->route->n_steps, sizeof *l->plan->use);
  return l->plan->use ? SN_OK : sn_fail_memory(l->err);
}

static void clear(lowering *l) {
  sn__lanes_clear(&l->lanes);
  sn__regions_clear(&l->pool);
  sn__regions_clear(&l->cores);
  free(l->resources);
  free(l->blocks);
  free(l->offsets);
  free(l->users_left);
  free(l->clock);
}

sn_plan *sn_lower_corun(const sn_corun_wish *wish, sn_err *err) {
  lowering l = {.wish = wish,
                .table = wish->timetable,
                .ops = wish->timetable->ops,
                .route = wish->timetable->ops->schedule->route,
                .err = err,
                .last_ended = SN_NONE};
  sn_status status = allocate_all(&l);
  if (status == SN_OK) status = place(&l);
  if (status == SN_OK) status = write(&l);
  if (status == SN_OK) status = drop_fences(&l);
  if (status == SN_OK)
    l.plan->largest_hole =
        sn_place_largest_hole(l.blocks, l.offsets, l.ops->n_lives + l.ops->n_ops, l.plan->pool_bytes);
  clear(&l);
  sn_check_report report = {.use = status == SN_OK ? l.plan->use : NULL};
  if (status == SN_OK) status = sn_check(l.plan, &report, err);
  if (status == SN_OK) return l.plan;
  sn_plan_free(l.plan);
  return NULL;
}
