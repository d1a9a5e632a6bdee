/* Cutting the forward pass into units; see the header. */
#include "sim/schedule/units.h"

#include "models/record/record_net.h"
#include "sim/graph/route.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static sn_op op_at(const sn_route *route, uint32_t step) {
  return route->layers[route->steps[step].layer].op;
}

/* Values meet there, and not an adapter's and those of its own product. */
static bool joins(const sn_route *route, uint32_t step) {
  sn_op op = op_at(route, step);
  return op == SN_CONCAT ||
         (op == SN_JOIN && !sn_layer_adds_adapter(route->net, &route->layers[route->steps[step].layer]));
}

/* A block ends behind a POOL, and behind a JOIN or CONCAT where neither BN nor ACT follows. */
static bool ends_block(const sn_route *route, uint32_t step, uint32_t *joined) {
  sn_op op = op_at(route, step);
  bool follows = op == SN_BN || op == SN_ACT;
  if (joins(route, step))
    *joined = step;
  else if (!follows)
    *joined = SN_NONE;
  if (op == SN_POOL) return true;
  if (*joined == SN_NONE) return false;
  sn_op next = op_at(route, step + 1);
  return next != SN_BN && next != SN_ACT;
}

/* Per tensor: the last forward step that touches it, and the last that changes it. Per step: how many POOLs, JOINs and
 * CONCATs are ahead of it. */
typedef struct uses {
  uint32_t *last, *changed, *ends;
} uses;

static void find_uses(const sn_route *route, uses *u) {
  for (uint32_t s = 0; s < route->first_backward; s++) {
    u->ends[s + 1] = u->ends[s] + (op_at(route, s) == SN_POOL || joins(route, s));
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
      sn_access access = route->accesses[route->steps[s].first_access + i];
      u->last[access.tensor] = s;
      if (access.mode != SN_READ) u->changed[access.tensor] = s;
    }
  }
}

/* A value that waits while blocks end, as U-Net's and what T5's decoder reads of its encoder. More than one, for within
 * a block a value may wait for a branch with a POOL or CONCAT of its own. */
static bool skips_blocks(const uses *u, uint32_t tensor) {
  return u->ends[u->last[tensor]] > u->ends[u->changed[tensor] + 1] + 1;
}

/* A block ends behind a value that skips others: no cut could be behind it otherwise, as long as it waits. */
static bool makes_skip(const sn_route *route, const uses *u, uint32_t s) {
  const sn_step *step = &route->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = route->accesses[step->first_access + i];
    if (access.mode != SN_READ && u->changed[access.tensor] == s && skips_blocks(u, access.tensor)) return true;
  }
  return false;
}

/* Behind which steps one tensor alone goes on: `open` counts those made and still to be read by a forward step, but for
 * the input batch, which nobody re-makes, copies of weights, which whoever is run again makes again, and what skips
 * blocks and was made ahead of this one; `changing` those that will still be changed in place, by which what the next
 * unit has kept as its input would be lost. */
typedef struct going {
  uint32_t open, changing;
} going;

/* What goes on behind a step; `since`: where this unit begins. */
static void go_on(const sn_route *route, const uses *u, uint32_t s, uint32_t since, going *g) {
  const sn_step *step = &route->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = route->accesses[step->first_access + i];
    bool writes = access.mode == SN_WRITE;
    if (sn_tensor_is_weight_cast(&route->tensors[access.tensor])) continue;
    g->open += writes && u->last[access.tensor] > s;
    bool skipped = skips_blocks(u, access.tensor) && u->changed[access.tensor] < since;
    g->open -= !writes && !skipped && u->last[access.tensor] == s;
    g->changing += writes && u->changed[access.tensor] > s;
    g->changing -= access.mode == SN_MODIFY && u->changed[access.tensor] == s;
  }
}

static void find_cuts(const sn_route *route, const uses *u, sn_units *units) {
  uint32_t n = route->first_backward, joined = SN_NONE;
  going g = {0};
  for (uint32_t s = 0; s + 1 < n; s++) {
    go_on(route, u, s, units->first[units->count], &g);
    bool alone = g.open == 1 && g.changing == 0, longer = s > units->first[units->count];
    bool skip = makes_skip(route, u, s), ends = ends_block(route, s, &joined) || skip;
    if (!ends || !alone || !longer) continue;
    units->first[++units->count] = s + 1;
    if (skip) g.open = 0;
  }
}

/* ---- chains ---- */

/* The members of a chain, as those of an nn.Sequential: member i is the forward steps first[i] .. first[i + 1] - 1. Per
 * member and for all ahead of it together: what it keeps for backward; per member what it hands on. */
typedef struct chain {
  uint32_t count, *first;
  uint64_t *kept, *out;
} chain;

/* A member ends where one value goes on that nobody changes any more; where several do, it is no chain. */
static bool find_members(const sn_route *route, const uses *u, chain *c) {
  uint32_t n = route->first_backward;
  going g = {0};
  for (uint32_t s = 0; s + 1 < n; s++) {
    go_on(route, u, s, n, &g);
    if (g.changing > 0) continue;
    if (g.open != 1) return false;
    c->first[++c->count] = s + 1;
  }
  return c->count > 0;
}

static void add_kept(const sn_route *route, const uses *u, chain *c, const bool *wanted) {
  for (uint32_t i = 0; i < c->count; i++) {
    c->kept[i + 1] = c->kept[i];
    for (uint32_t s = c->first[i]; s < c->first[i + 1]; s++)
      for (uint32_t k = 0; k < route->steps[s].n_accesses; k++) {
        sn_access access = route->accesses[route->steps[s].first_access + k];
        uint64_t bytes = route->tensors[access.tensor].bytes;
        if (access.mode != SN_WRITE || sn_tensor_is_weight_cast(&route->tensors[access.tensor])) continue;
        if (u->last[access.tensor] >= c->first[i + 1]) c->out[i] = bytes;
        if (wanted[access.tensor]) c->kept[i + 1] += bytes;
      }
  }
}

/* Bytes kept at the fullest moment where it is cut into k segments as torch.utils.checkpoint.checkpoint_sequential()
 * does: each of count / k members but the last, which has the rest and is not run again. */
static uint64_t fullest(const chain *c, uint32_t k) {
  uint32_t size = c->count / k;
  uint64_t inputs = 0, most = 0;
  for (uint32_t i = 0; i < k; i++) {
    uint32_t end = i + 1 < k ? (i + 1) * size : c->count;
    uint64_t now = inputs + c->kept[end] - c->kept[(size_t)i * size];
    if (now > most) most = now;
    inputs += c->out[end - 1];
  }
  return most;
}

/* The best k, the smaller of two. More than 4 roots of the members are never better by enough to look at them all. */
static void cut_chain(const chain *c, sn_units *units) {
  uint32_t best = 1;
  for (uint32_t k = 2; k <= c->count / 2 && (uint64_t)k * k <= UINT64_C(16) * c->count; k++)
    if (fullest(c, k) < fullest(c, best)) best = k;
  if (best == 1) return;
  units->count = 0;
  units->segments = best;
  for (uint32_t i = 1; i < best; i++) units->first[++units->count] = c->first[(size_t)i * (c->count / best)];
}

static bool cut_sequential(const sn_route *route, const uses *u, sn_units *units) {
  size_t steps = (size_t)route->first_backward + 1;
  chain c = {.first = calloc(steps, sizeof *c.first),
             .kept = calloc(steps, sizeof *c.kept),
             .out = calloc(steps, sizeof *c.out)};
  bool *wanted = calloc((size_t)route->n_tensors + 1, sizeof *wanted);
  bool good = c.first && c.kept && c.out && wanted;
  for (uint32_t s = route->first_backward; good && s < route->first_update; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++)
      wanted[route->accesses[route->steps[s].first_access + i].tensor] = true;
  if (good && find_members(route, u, &c)) {
    add_kept(route, u, &c, wanted);
    cut_chain(&c, units);
  }
  free(c.first);
  free(c.kept);
  free(c.out);
  free(wanted);
  return good;
}

/* The modules of a recording, and what lies between them. */
static sn_status take_regions(const sn_route *route, sn_units *units, sn_err *err) {
  size_t most = 2 * (size_t)route->n_regions + 2;
  uint32_t n = 0, at = 0;
  *units = (sn_units){.first = calloc(most, sizeof *units->first), .stays = calloc(most, sizeof *units->stays)};
  if (!units->first || !units->stays) return sn_fail_memory(err);
  for (uint32_t r = 0; r < route->n_regions; r++) {
    if (route->regions[r].first > at) {
      units->stays[n] = true;
      units->first[n++] = at;
    }
    units->first[n++] = route->regions[r].first;
    at = route->regions[r].end;
  }
  units->first[n] = at;
  units->count = n;
  return SN_OK;
}

/* Of the model's modules, and what lies between them. */
static sn_status take_blocks(const sn_route *route, sn_units *units, sn_err *err) {
  size_t most = (size_t)route->first_backward + 1;
  const char *latest = NULL;
  *units = (sn_units){.first = calloc(most, sizeof *units->first), .stays = calloc(most, sizeof *units->stays)};
  if (!units->first || !units->stays) return sn_fail_memory(err);
  for (uint32_t s = 0; s < route->first_backward; s++) {
    const char *block = sn_route_block(route, route->steps[s].layer);
    bool same = block && latest ? strcmp(block, latest) == 0 : block == latest;
    if (s > 0 && same) continue;
    units->stays[units->count] = !block;
    units->first[units->count++] = s;
    latest = block;
  }
  units->first[units->count] = route->first_backward;
  return SN_OK;
}

/* Attention in parts alone; all else stays. */
static sn_status take_attention(const sn_route *route, sn_units *units, sn_err *err) {
  size_t most = (size_t)route->first_backward + 1;
  *units = (sn_units){.first = calloc(most, sizeof *units->first), .stays = calloc(most, sizeof *units->stays)};
  if (!units->first || !units->stays) return sn_fail_memory(err);
  for (uint32_t s = 0; s < route->first_backward; s++) {
    bool runs = sn_route_is_in_parts(route, route->steps[s].layer);
    if (s > 0 && !runs && units->stays[units->count - 1]) continue;
    units->stays[units->count] = !runs;
    units->first[units->count++] = s;
  }
  units->first[units->count] = route->first_backward;
  return SN_OK;
}

static bool has_blocks(const sn_route *route) {
  uint32_t l = 1;
  while (l < route->n_layers && !sn_route_block(route, l)) l++;
  return l < route->n_layers;
}

/* Cuts: steps behind which one value alone lives on. */
static sn_status find_by_cuts(const sn_route *route, sn_units *units, sn_err *err) {
  size_t tensors = (size_t)route->n_tensors + 1;
  uses u = {calloc(tensors, sizeof *u.last), calloc(tensors, sizeof *u.changed),
            calloc((size_t)route->first_backward + 1, sizeof *u.ends)};
  *units = (sn_units){.first = calloc((size_t)route->first_backward + 1, sizeof *units->first)};
  bool good = u.last && u.changed && u.ends && units->first;
  if (good) {
    find_uses(route, &u);
    find_cuts(route, &u, units);
    if (units->count <= 1) good = cut_sequential(route, &u, units);
  }
  free(u.last);
  free(u.changed);
  free(u.ends);
  return good ? SN_OK : sn_fail_memory(err);
}

/* A cut lies in a block, where nobody can wrap what is on one side of it. */
static bool cuts_blocks(const sn_route *route, const sn_units *units) {
  for (uint32_t u = 1; u < units->count; u++) {
    const char *before = sn_route_block(route, route->steps[units->first[u] - 1].layer);
    const char *behind = sn_route_block(route, route->steps[units->first[u]].layer);
    if (before && behind && strcmp(before, behind) == 0) return true;
  }
  return false;
}

static sn_status find_modules(const sn_route *route, sn_units *units, sn_err *err) {
  if (find_by_cuts(route, units, err) != SN_OK || !route->dialect->eager || !cuts_blocks(route, units))
    return err->code;
  sn_units_clear(units);
  return take_blocks(route, units, err);
}

/* Those of the whole, a part of which the route is; of a pipeline's stage in steps of the whole. */
static sn_status find(const sn_route *route, sn_unit_kind kind, sn_units *units, sn_err *err) {
  if (!route->whole && route->regions) return take_regions(route, units, err);
  if (!route->whole && kind == SN_UNITS_ATTENTION) return take_attention(route, units, err);
  if (!route->whole && kind == SN_UNITS_BLOCKS && has_blocks(route)) return take_blocks(route, units, err);
  if (!route->whole && kind == SN_UNITS_MODULES) return find_modules(route, units, err);
  if (!route->whole) return find_by_cuts(route, units, err);
  sn_status status = find(route->whole, kind, units, err);
  if (status != SN_OK || route->micros > 0) return status;
  for (uint32_t u = 0; u <= units->count && units->first; u++) {
    uint32_t s = units->first[u];
    units->first[u] = s < route->whole->first_backward ? route->moved[s] : route->first_backward;
  }
  return status;
}

sn_status sn_units_find_kind(const sn_route *route, sn_unit_kind kind, sn_units *units, sn_err *err) {
  sn_status status = find(route, kind, units, err);
  if (status != SN_OK) sn_units_clear(units);
  return status;
}

sn_status sn_units_find(const sn_route *route, sn_units *units, sn_err *err) {
  return sn_units_find_kind(route, SN_UNITS_MODULES, units, err);
}

uint32_t sn_units_modules(const sn_units *units) {
  uint32_t modules = 0;
  for (uint32_t u = 0; u < units->count; u++) modules += !sn_units_stays(units, u);
  return modules;
}

void sn_units_clear(sn_units *units) {
  free(units->first);
  free(units->stays);
  *units = (sn_units){0};
}

uint32_t sn_units_of(const sn_units *units, const sn_route *route, uint32_t step) {
  uint32_t forward = route->forward_step[route->steps[step].layer], low = 0, high = units->count;
  if (forward == SN_NONE || forward >= units->first[units->count]) return units->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(units->first[middle] <= forward ? &low : &high) = middle;
  }
  return low;
}

/* ---- selective checkpoints ---- */

/* Whether a policy keeps what a forward step makes; `products`: how many the unit has had. */
static bool is_kept(const sn_route *route, const sn_step *step, uint32_t *products) {
  const sn_layer *layer = &route->layers[step->layer];
  if (step->kernel != SN_WHOLE) return false;
  if (layer->op == SN_ATTENTION) return !sn_route_is_in_parts(route, step->layer);
  bool product = layer->op == SN_FC && (!layer->attr->bias || layer->attr->apart); /* else it is aten.addmm */
  return product && ++*products % 2 == 1;
}

bool *sn_selective_find(const sn_route *route, const sn_units *units) {
  bool *kept = calloc((size_t)route->first_backward + 1, sizeof *kept);
  for (uint32_t u = 0; kept && u < units->count; u++) {
    uint32_t products = 0;
    for (uint32_t s = units->first[u]; s < units->first[u + 1]; s++)
      kept[s] = is_kept(route, &route->steps[s], &products);
  }
  return kept;
}

static bool touches(const sn_route *route, uint32_t step, uint32_t tensor) {
  const sn_step *at = &route->steps[step];
  for (uint32_t i = 0; i < at->n_accesses; i++)
    if (route->accesses[at->first_access + i].tensor == tensor) return true;
  return false;
}

/* The last step of a unit's operations to go backward. */
static uint32_t last_backward(const sn_route *route, const sn_units *units, uint32_t unit) {
  uint32_t last = 0;
  for (uint32_t s = units->first[unit]; s < units->first[unit + 1]; s++) {
    if (sn_step_is_beside(route, &route->steps[s]) || !sn_schedule_needs_forward(route, s)) continue;
    uint32_t backward = route->backward_step[route->steps[s].layer];
    if (backward > last) last = backward;
  }
  return last;
}

static uint32_t add_holds(const sn_route *route, uint32_t step, uint32_t until, sn_hold *holds, uint32_t n) {
  const sn_step *at = &route->steps[step];
  for (uint32_t i = 0; i < at->n_accesses; i++) {
    sn_access access = route->accesses[at->first_access + i];
    if (access.mode == SN_WRITE && !touches(route, until, access.tensor)) holds[n++] = (sn_hold){until, access.tensor};
  }
  return n;
}

/* What is kept would not be what was made. */
static sn_status check_unchanged(const sn_route *route, const bool *kept, sn_err *err) {
  uint32_t *maker = calloc((size_t)route->n_tensors + 1, sizeof *maker); /* and 1 */
  if (!maker) return sn_fail_memory(err);
  for (uint32_t s = 0; s < route->first_backward && err->code == SN_OK; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
      sn_access access = route->accesses[route->steps[s].first_access + i];
      if (access.mode == SN_WRITE && kept[s]) maker[access.tensor] = s + 1;
      if (access.mode != SN_MODIFY || maker[access.tensor] == 0) continue;
      sn_fail(err, SN_BAD_INPUT,
              "recompute=selective keeps what %s makes, and %s changes that in place, which PyTorch refuses",
              route->layers[route->steps[maker[access.tensor] - 1].layer].name,
              route->layers[route->steps[s].layer].name);
    }
  free(maker);
  return err->code;
}

const sn_route *sn_selective_hold(const sn_route *route, const sn_units *units, const bool *kept, sn_err *err) {
  sn_hold *holds = malloc(((size_t)route->n_accesses + 1) * sizeof *holds);
  uint32_t n = 0;
  if (!holds) return sn_fail_memory(err), NULL;
  if (check_unchanged(route, kept, err) != SN_OK) return free(holds), NULL;
  for (uint32_t u = units->count; u-- > 0;) {
    uint32_t until = last_backward(route, units, u), end = units->first[u + 1];
    for (uint32_t s = sn_schedule_rerun_end(route, units->first[u], end); s < end; s++)
      if (kept[s]) n = add_holds(route, s, until, holds, n);
  }
  const sn_route *held = n > 0 ? sn_route_hold(route, holds, n, err) : route;
  free(holds);
  return held;
}

const sn_route *sn_selective_route(const sn_route *route, sn_err *err) {
  sn_units units;
  if (route->regions) return route;
  if (sn_units_find_kind(route, SN_UNITS_BLOCKS, &units, err) != SN_OK) return NULL;
  bool *kept = sn_selective_find(route, &units);
  const sn_route *held = kept ? sn_selective_hold(route, &units, kept, err) : NULL;
  if (!kept) sn_fail_memory(err);
  free(kept);
  sn_units_clear(&units);
  return held;
}
