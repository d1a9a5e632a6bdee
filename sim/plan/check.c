/* Checker; see the header. Lane clocks count instructions from 1, so that 0 means "never". */
#include "sim/plan/check.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/lower_from_known.h"
#include "sim/plan/regions.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lane_clocks {
  uint32_t of[SN_LANES];
} lane_clocks;

/* Every write is ordered behind all uses before it, so that of writes the last is enough to remember: who is behind it
 * is behind them all. Reads are ordered with writes alone, so they are remembered lane by lane. */
typedef struct state {
  uint64_t offset, reserved;
  uint64_t host_offset;
  uint32_t claim;                 /* of the pool, while it is resident */
  uint32_t version, host_version; /* 0: no value */
  uint32_t due_version;           /* as the route has it behind all steps that have run in its order */
  sn__moment wrote, host_wrote;
  bool resident, host_held;
} state;

/* Where uses of a tensor are remembered: on the device and in its external copy. */
typedef enum copy_kind { DEVICE, HOST, COPIES } copy_kind;

/* Of a co-run plan: what lies outside the pool. Its version is 0 until it has been written. */
typedef struct object_state {
  lane_clocks touched;
  sn__moment wrote;
  uint32_t version;
} object_state;

typedef struct checker {
  const sn_plan *plan;
  uint32_t n_lanes;        /* that have instructions */
  uint8_t lanes[SN_LANES]; /* which of these a lane is */
  uint8_t lane;            /* the instruction's */
  bool corun;
  const sn_route *route;
  sn_err *err;
  uint32_t id_limit[SN_INSTR_KINDS];
  uint32_t at; /* instruction */
  lane_clocks known[SN_LANES];
  uint32_t *fences; /* per fence and lane: what its lane was behind when it signalled */
  bool *signalled;
  state *states;
  uint32_t *touched; /* per tensor, copy and lane: the last use */
  uint32_t n_uses;   /* of a tensor there; of a plan that copies nothing out on the device alone */
  uint32_t *needs;   /* per access of the route: the version it needs, from when its step is first due */
  sn__regions pool, external;
  uint32_t next_step, next_again; /* again: of those that the route says */
  /* of a co-run plan, else NULL and empty */
  object_state *objects;
  bool *done;        /* by step and part */
  sn__regions cores; /* hardware threads: first those of slot 0, one a core, then those of slot 1 */
  uint32_t step;
  uint64_t live_bytes;
  uint32_t live_tensors;
  sn_check_report report;
} checker;

static sn_status reject(checker *c, sn_rule rule, const char *format, ...) __attribute__((format(printf, 3, 4)));

static sn_status reject(checker *c, sn_rule rule, const char *format, ...) {
  char what[300];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const sn_instr *i = &c->plan->instrs[c->at];
  c->report.rule = rule;
  c->report.instruction = c->at;
  return sn_fail(c->err, SN_BUG, "plan check: instruction %u (%s on lane %s): %s", c->at, sn_instr_kind_name(i->kind),
                 sn_lane_name(i->lane), what);
}

static const char *name(const checker *c, uint32_t tensor, char *text) {
  return sn_tensor_name(c->route, tensor, text, SN_TENSOR_NAME);
}

/* One a lane. */
static uint32_t *touched_of(const checker *c, copy_kind copy, uint32_t tensor) {
  return &c->touched[(size_t)tensor * c->n_uses + (size_t)copy * c->n_lanes];
}

/* What the lane of the instruction is behind, of each lane. */
static const uint32_t *known(const checker *c) {
  return c->known[c->lane].of;
}

static bool behind(const checker *c, const uint32_t *clocks) {
  for (uint32_t l = 0, n = c->n_lanes; l < n; l++)
    if (clocks[l] > known(c)[l]) return false;
  return true;
}

static bool behind_moment(const checker *c, sn__moment moment) {
  return sn__moment_is_known(moment, known(c));
}

/* This instruction. */
static sn__moment now(const checker *c) {
  return (sn__moment){known(c)[c->lane], c->lane};
}

static void note(const checker *c, uint32_t *clocks) {
  clocks[c->lane] = known(c)[c->lane];
}

/* The version an access of `t` needs, from the route alone: 1 as made, one more with each change in place. To be called
 * once for each, in the route's order. */
static inline void find_need(checker *c, uint32_t index, sn_access_mode mode, state *t) {
  c->needs[index] = mode == SN_WRITE ? 0 : t->due_version;
  if (mode != SN_READ) t->due_version = c->needs[index] + 1;
}

/* Of a co-run plan, whose steps run in any order, and none of which the route runs again, ahead of it all. */
static void find_needs(checker *c) {
  for (uint32_t s = 0; s < c->route->n_steps; s++)
    for (uint32_t i = 0; i < c->route->steps[s].n_accesses; i++) {
      uint32_t index = c->route->steps[s].first_access + i;
      find_need(c, index, c->route->accesses[index].mode, &c->states[c->route->accesses[index].tensor]);
    }
}

static void meter(checker *c) {
  c->report.peak_tensor_bytes = sn_max(c->report.peak_tensor_bytes, c->live_bytes);
  if (c->live_tensors > c->report.max_live_tensors) c->report.max_live_tensors = c->live_tensors;
  if (!c->report.use) return;
  sn_step_use *use = &c->report.use[c->step];
  use->tensor_bytes = sn_max(use->tensor_bytes, c->live_bytes);
  if (c->live_tensors > use->live_tensors) use->live_tensors = c->live_tensors;
}

/* *which: the number of the claim. */
static sn_status claim(checker *c, sn__regions *regions, const sn_instr *i, uint32_t owner, uint32_t *which) {
  uint64_t size = regions == &c->pool ? c->plan->pool_bytes : c->plan->external_bytes;
  char text[SN_TENSOR_NAME];
  if (i->bytes == 0 || i->bytes > size || i->offset > size - i->bytes)
    return reject(c, SN_RULE_MEMORY, "[%" PRIu64 ", +%" PRIu64 ") is outside the pool of %" PRIu64 " bytes", i->offset,
                  i->bytes, size);
  switch (sn__regions_claim(regions, i->offset, i->offset + i->bytes, owner, known(c), now(c), which)) {
  case SN__CLAIM_GOOD:
    break;
  case SN__CLAIM_LIVE:
    return reject(c, SN_RULE_MEMORY, "its bytes overlap %s, which is live", name(c, *which, text));
  case SN__CLAIM_UNORDERED:
    return reject(c, SN_RULE_MEMORY, "its bytes are re-used without a fence behind their last use");
  case SN__CLAIM_MEMORY:
    return sn_fail_memory(c->err);
  }
  if (regions == &c->pool) c->report.high_water = sn_max(c->report.high_water, i->offset + i->bytes);
  return SN_OK;
}

/* Of whole blocks, inside the pool, in no one's way. */
static sn_status check_place(checker *c, const sn_instr *i) {
  state *t = &c->states[i->id];
  uint64_t bytes = c->route->tensors[i->id].bytes;
  char text[SN_TENSOR_NAME];
  if (i->offset % SN_POOL_BLOCK || i->bytes < bytes || i->bytes % SN_POOL_BLOCK)
    return reject(c, SN_RULE_MEMORY,
                  "%s needs whole blocks for %" PRIu64 " bytes: an offset that is a multiple of %" PRIu64
                  ", not %" PRIu64 ", and %" PRIu64 " bytes or a larger multiple, not %" PRIu64,
                  name(c, i->id, text), bytes, SN_POOL_BLOCK, i->offset, sn_pool_round(bytes), i->bytes);
  t->offset = i->offset;
  t->reserved = i->bytes;
  t->resident = true;
  return claim(c, &c->pool, i, i->id, &t->claim);
}

static sn_status check_alloc(checker *c, const sn_instr *i) {
  state *t = &c->states[i->id];
  char text[SN_TENSOR_NAME];
  if (t->resident) return reject(c, SN_RULE_MEMORY, "%s is allocated already", name(c, i->id, text));
  if ((c->corun || c->plan->transfers) && !behind(c, touched_of(c, DEVICE, i->id)))
    return reject(c, SN_RULE_FENCES, "%s is allocated again while another lane may still use it", name(c, i->id, text));
  sn_status status = check_place(c, i);
  if (status != SN_OK) return status;
  t->version = 0;
  t->wrote = now(c);
  uint32_t *touched = touched_of(c, DEVICE, i->id);
  for (uint32_t l = 0, n = c->n_lanes; l < n; l++) touched[l] = 0;
  note(c, touched);
  c->live_bytes += c->route->tensors[i->id].bytes;
  c->live_tensors++;
  meter(c);
  return SN_OK;
}

static sn_status check_lies_there(checker *c, const sn_instr *i) {
  const state *t = &c->states[i->id];
  char text[SN_TENSOR_NAME];
  if (!t->resident) return reject(c, SN_RULE_MEMORY, "%s is not allocated", name(c, i->id, text));
  if (i->offset == t->offset && i->bytes == t->reserved) return SN_OK;
  return reject(c, SN_RULE_MEMORY, "%s is not what lies there", name(c, i->id, text));
}

static sn_status check_release(checker *c, const sn_instr *i) {
  state *t = &c->states[i->id];
  char text[SN_TENSOR_NAME];
  if (check_lies_there(c, i) != SN_OK) return c->err->code;
  uint32_t *touched = touched_of(c, DEVICE, i->id);
  if (!behind(c, touched))
    return reject(c, SN_RULE_FENCES, "%s is released while another lane may still use it", name(c, i->id, text));
  note(c, touched);
  sn__regions_release(&c->pool, t->claim, now(c));
  t->resident = false;
  c->live_bytes -= c->route->tensors[i->id].bytes;
  c->live_tensors--;
  return SN_OK;
}

/* One access of the device copy by this instruction's lane. */
static sn_status touch(checker *c, uint32_t tensor, bool writes) {
  state *t = &c->states[tensor];
  char text[SN_TENSOR_NAME];
  if (!t->resident) return reject(c, SN_RULE_VALUES, "%s is not on the device", name(c, tensor, text));
  uint32_t *touched = touched_of(c, DEVICE, tensor);
  if (writes ? !behind(c, touched) : !behind_moment(c, t->wrote))
    return reject(c, SN_RULE_FENCES, "%s is %s without a fence behind another lane's use of it", name(c, tensor, text),
                  writes ? "written" : "read");
  note(c, touched);
  if (writes) t->wrote = now(c);
  return SN_OK;
}

/* `due`: of a step that runs as the route has it; what runs again needs what it needed then. */
static sn_status check_access(checker *c, uint32_t index, bool due) {
  sn_access access = c->route->accesses[index];
  state *t = &c->states[access.tensor];
  char text[SN_TENSOR_NAME];
  if (due) find_need(c, index, access.mode, t);
  sn_status status = touch(c, access.tensor, access.mode != SN_READ);
  if (status != SN_OK) return status;
  if (access.mode != SN_WRITE && t->version != c->needs[index])
    return reject(c, SN_RULE_VALUES, "needs version %u of %s, finds %u (0: no value)", c->needs[index],
                  name(c, access.tensor, text), t->version);
  if (access.mode != SN_READ) t->version = c->needs[index] + 1;
  return SN_OK;
}

/* Whether the step is due, or may run again. */
static sn_status check_turn(checker *c, const sn_instr *i) {
  const sn_step *step = &c->route->steps[i->id];
  if (c->plan->transfers && i->lane != sn_step_lane(c->route, step))
    return reject(c, SN_RULE_ORDER, "step %u is of lane %s", i->id + 1, sn_lane_name(sn_step_lane(c->route, step)));
  if (!i->rerun && i->id != c->next_step)
    return reject(c, SN_RULE_ORDER, "step %u runs where step %u is due", i->id + 1, c->next_step + 1);
  const sn_again *again = c->next_again < c->route->n_again ? &c->route->again[c->next_again] : NULL;
  if (!i->rerun && again && again->at_step <= i->id)
    return reject(c, SN_RULE_ORDER, "step %u runs before step %u has run again", i->id + 1, again->step + 1);
  bool due = c->route->n_again == 0 || (again && again->step == i->id && again->at_step == c->next_step);
  if (i->rerun && (step->pass != SN_FORWARD || i->id >= c->next_step || !due))
    return reject(c, SN_RULE_ORDER, "step %u cannot be run again here", i->id + 1);
  c->next_again += i->rerun && again;
  c->next_step += !i->rerun;
  return SN_OK;
}

/* The same in a co-run plan: what it needs decides when; here, that it is a part of the step and runs once. */
static sn_status check_part(checker *c, const sn_instr *i) {
  const char *part = i->part < SN_STEP_PARTS ? sn_step_part_name((sn_step_part)i->part) : "?";
  sn_step_part parts[2];
  uint32_t n = sn_step_parts(c->route, i->id, parts);
  if (i->part != parts[0] && (n == 1 || i->part != parts[1]))
    return reject(c, SN_RULE_ORDER, "step %u has no part \"%s\"", i->id + 1, part);
  bool *done = &c->done[i->id * SN_STEP_PARTS + i->part];
  if (i->rerun && (c->route->steps[i->id].pass != SN_FORWARD || !*done))
    return reject(c, SN_RULE_ORDER, "step %u cannot be run again here", i->id + 1);
  if (!i->rerun && *done) return reject(c, SN_RULE_ORDER, "part \"%s\" of step %u runs twice", part, i->id + 1);
  *done = true;
  return SN_OK;
}

/* Parameters are read before the update alone, once it has run they are done with; the rest is made, then read. */
static sn_status check_objects(checker *c, const sn_instr *i) {
  sn_object_access accesses[SN_OBJECT_KINDS];
  uint32_t n = sn_step_part_objects(c->route, i->id, (sn_step_part)i->part, accesses);
  for (uint32_t a = 0; a < n; a++) {
    object_state *o = &c->objects[accesses[a].object];
    bool writes = accesses[a].mode != SN_READ;
    const char *layer = c->route->layers[accesses[a].object / SN_OBJECT_KINDS].name;
    const char *what = sn_object_kind_name((sn_object_kind)(accesses[a].object % SN_OBJECT_KINDS));
    if (writes ? !behind(c, o->touched.of) : !behind_moment(c, o->wrote))
      return reject(c, SN_RULE_FENCES, "the %s of %s are %s without a fence behind another lane's use", what, layer,
                    writes ? "written" : "read");
    uint32_t needs = accesses[a].object % SN_OBJECT_KINDS == SN_OBJECT_PARAMETERS ? 0 : 1;
    if (accesses[a].mode != SN_WRITE && o->version != needs)
      return reject(c, SN_RULE_VALUES, "needs the %s of %s as they are %s", what, layer,
                    needs ? "once made" : "before the update");
    if (writes) o->version = 1;
    note(c, o->touched.of);
    if (writes) o->wrote = now(c);
  }
  return SN_OK;
}

static sn_status check_cores(checker *c, const sn_instr *i) {
  if (i->team >= c->plan->n_teams) return reject(c, SN_RULE_CORES, "it has no team");
  const sn_team *team = &c->plan->teams[i->team];
  if (team->slot == SN_SLOT_ANY) {
    if (team->count > 0 && team->count <= team->first && team->count <= 2u * c->plan->cores) return SN_OK;
    return reject(c, SN_RULE_CORES, "its team, %u threads of %u that float, is not of a device of %u cores",
                  team->count, team->first, c->plan->cores);
  }
  if (team->count == 0 || team->slot >= c->plan->slots || team->first >= c->plan->cores ||
      team->count > c->plan->cores - team->first)
    return reject(c, SN_RULE_CORES,
                  "its team, %u from core %u on, slot %u, is not of a device of %u cores and %u slots", team->count,
                  team->first, team->slot, c->plan->cores, c->plan->slots);
  uint32_t which;
  uint64_t first = (uint64_t)team->slot * c->plan->cores + team->first;
  switch (sn__regions_claim(&c->cores, first, first + team->count, SN_NONE, known(c), now(c), &which)) {
  case SN__CLAIM_GOOD:
    return SN_OK;
  case SN__CLAIM_MEMORY:
    return sn_fail_memory(c->err);
  case SN__CLAIM_LIVE:
  case SN__CLAIM_UNORDERED:
    break;
  }
  return reject(c, SN_RULE_CORES, "its cores are taken without a fence behind who has them");
}

static sn_status check_corun(checker *c, const sn_instr *i) {
  if (!sn_lane_computes((sn_lane)i->lane)) return reject(c, SN_RULE_ORDER, "this lane does not compute");
  sn_status status = check_part(c, i);
  if (status == SN_OK) status = check_objects(c, i);
  return status == SN_OK ? check_cores(c, i) : status;
}

static sn_status check_workspace(checker *c, const sn_instr *i) {
  if (i->bytes == 0) return SN_OK;
  if (i->offset % SN_POOL_BLOCK || i->bytes % SN_POOL_BLOCK)
    return reject(c, SN_RULE_MEMORY, "its workspace is not whole blocks");
  uint32_t which;
  return claim(c, &c->pool, i, SN_NONE, &which);
}

static sn_status check_compute(checker *c, const sn_instr *i) {
  const sn_step *step = sn_route_run(c->route, i->id, i->rerun);
  sn_status status = c->corun ? check_corun(c, i) : check_turn(c, i);
  bool other = i->rerun && step->first_access != c->route->steps[i->id].first_access;
  bool due = !c->corun && (!i->rerun || other);
  for (uint32_t a = 0; a < step->n_accesses && status == SN_OK; a++)
    if (!c->corun || sn_step_part_has(c->route, i->id, (sn_step_part)i->part, a))
      status = check_access(c, step->first_access + a, due);
  if (status != SN_OK) return status;
  if (c->report.use) c->report.use[c->step].workspace_bytes = sn_max(c->report.use[c->step].workspace_bytes, i->bytes);
  return check_workspace(c, i);
}

static sn_status check_copy_size(checker *c, const sn_instr *i) {
  uint64_t bytes = c->route->tensors[i->id].bytes;
  if (i->bytes == bytes) return SN_OK;
  return reject(c, SN_RULE_VALUES, "copies %" PRIu64 " bytes of a tensor of %" PRIu64, i->bytes, bytes);
}

static sn_status check_copy_out(checker *c, const sn_instr *i) {
  state *t = &c->states[i->id];
  char text[SN_TENSOR_NAME];
  sn_status status = check_copy_size(c, i);
  if (status == SN_OK) status = touch(c, i->id, false);
  if (status != SN_OK) return status;
  if (t->version == 0) return reject(c, SN_RULE_VALUES, "%s holds no value", name(c, i->id, text));
  if (!behind(c, touched_of(c, HOST, i->id)))
    return reject(c, SN_RULE_FENCES, "the external copy of %s is overwritten while it may be read",
                  name(c, i->id, text));
  if (!t->host_held) {
    uint32_t which;
    status = claim(c, &c->external, i, i->id, &which);
    if (status != SN_OK) return status;
  } else if (t->host_offset != i->offset) {
    return reject(c, SN_RULE_MEMORY, "the external copy of %s moves", name(c, i->id, text));
  }
  t->host_held = true;
  t->host_offset = i->offset;
  t->host_version = t->version;
  t->host_wrote = now(c);
  note(c, touched_of(c, HOST, i->id));
  return SN_OK;
}

static sn_status check_copy_in(checker *c, const sn_instr *i) {
  state *t = &c->states[i->id];
  char text[SN_TENSOR_NAME];
  sn_status status = check_copy_size(c, i);
  if (status != SN_OK) return status;
  if (!t->host_held || t->host_offset != i->offset)
    return reject(c, SN_RULE_VALUES, "%s has no external copy there", name(c, i->id, text));
  if (!behind_moment(c, t->host_wrote))
    return reject(c, SN_RULE_FENCES, "the external copy of %s is read without a fence behind its copy-out",
                  name(c, i->id, text));
  status = touch(c, i->id, true);
  t->version = t->host_version;
  note(c, touched_of(c, HOST, i->id));
  return status;
}

static sn_status check_signal(checker *c, const sn_instr *i) {
  if (c->signalled[i->id]) return reject(c, SN_RULE_FENCES, "fence %u is signalled twice", i->id);
  c->signalled[i->id] = true;
  memcpy(&c->fences[(size_t)i->id * c->n_lanes], known(c), c->n_lanes * sizeof(uint32_t));
  return SN_OK;
}

static sn_status check_wait(checker *c, const sn_instr *i) {
  if (!c->signalled[i->id]) return reject(c, SN_RULE_FENCES, "fence %u has not been signalled before", i->id);
  const uint32_t *fence = &c->fences[(size_t)i->id * c->n_lanes];
  uint32_t *own = c->known[c->lane].of;
  for (uint32_t l = 0; l < c->n_lanes; l++)
    if (fence[l] > own[l]) own[l] = fence[l];
  return SN_OK;
}

static void find_id_limits(checker *c) {
  for (sn_instr_kind kind = 0; kind < SN_INSTR_KINDS; kind++) c->id_limit[kind] = c->route->n_tensors;
  c->id_limit[SN_COMPUTE] = c->route->n_steps;
  c->id_limit[SN_SIGNAL] = c->id_limit[SN_WAIT] = c->plan->n_fences;
}

/* Which of the two is wrong is not known: the one before may stand too high. */
static sn_status reject_step(checker *c, const sn_instr *i) {
  return reject(c, SN_RULE_ORDER,
                "\"at_step\" is %" PRIu32 " behind an instruction of %" PRIu32 ", and it must not fall: %" PRIu32
                " to %" PRIu32 " is expected here, or at most %" PRIu32 " before",
                i->step + 1, c->step + 1, c->step + 1, c->route->n_steps, i->step + 1);
}

static sn_status check_instr(checker *c, const sn_instr *i) {
  if (i->kind >= SN_INSTR_KINDS || i->lane >= sn_plan_lanes(c->plan) || i->id >= c->id_limit[i->kind] ||
      i->step >= c->route->n_steps) {
    c->report.rule = SN_RULE_ORDER;
    c->report.instruction = c->at;
    return sn_fail(c->err, SN_BUG, "plan check: instruction %u is malformed", c->at);
  }
  if (i->step < c->step && !c->corun) return reject_step(c, i);
  if (i->step != c->step) {
    c->step = i->step;
    meter(c);
  }
  c->lane = c->lanes[i->lane];
  c->known[c->lane].of[c->lane]++;
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
    return check_alloc(c, i);
  case SN_RELEASE:
    return check_release(c, i);
  case SN_COMPUTE:
    return check_compute(c, i);
  case SN_COPY_OUT:
    return check_copy_out(c, i);
  case SN_COPY_IN:
    return check_copy_in(c, i);
  case SN_SIGNAL:
    return check_signal(c, i);
  case SN_WAIT:
    return check_wait(c, i);
  case SN_INSTR_KINDS:
    break;
  }
  return SN_OK;
}

/* The first step that a co-run plan has left out. */
static void find_next_step(checker *c) {
  bool whole = true;
  for (c->next_step = 0; c->next_step < c->route->n_steps; c->next_step += whole) {
    sn_step_part parts[2];
    uint32_t n = sn_step_parts(c->route, c->next_step, parts);
    for (uint32_t p = 0; p < n; p++) whole &= c->done[c->next_step * SN_STEP_PARTS + parts[p]];
    if (!whole) return;
  }
}

static bool make_room(checker *c) {
  const sn_route *route = c->route;
  size_t fences = (size_t)c->plan->n_fences + 1;
  c->fences = calloc(fences * c->n_lanes + 1, sizeof *c->fences);
  c->signalled = calloc(fences, sizeof *c->signalled);
  c->states = calloc(route->n_tensors, sizeof *c->states);
  c->needs = malloc(((size_t)route->n_accesses + 1) * sizeof *c->needs);
  c->n_uses = (sn_plan_copies_out(c->plan) ? COPIES : DEVICE + 1) * c->n_lanes;
  c->touched = calloc((size_t)route->n_tensors * c->n_uses + 1, sizeof *c->touched);
  bool good = c->fences && c->signalled && c->states && c->needs && c->touched;
  if (!good || !c->corun) return good;
  c->objects = calloc((size_t)route->n_layers * SN_OBJECT_KINDS, sizeof *c->objects);
  c->done = calloc((size_t)route->n_steps * SN_STEP_PARTS, sizeof *c->done);
  return c->objects && c->done;
}

static void clear(checker *c) {
  sn__regions_clear(&c->pool);
  sn__regions_clear(&c->external);
  sn__regions_clear(&c->cores);
  free(c->fences);
  free(c->signalled);
  free(c->states);
  free(c->needs);
  free(c->touched);
  free(c->objects);
  free(c->done);
}

static sn_status check_all(checker *c) {
  c->n_lanes = sn_plan_used_lanes(c->plan, c->lanes);
  find_id_limits(c);
  sn_status status = make_room(c) ? SN_OK : sn_fail_memory(c->err);
  if (status == SN_OK && c->corun) find_needs(c);
  for (c->at = 0; c->at < c->plan->n_instrs && status == SN_OK; c->at++)
    status = check_instr(c, &c->plan->instrs[c->at]);
  if (status == SN_OK && c->corun) find_next_step(c);
  bool all = c->next_step == c->route->n_steps;
  if (status != SN_OK || (all && c->next_again == c->route->n_again)) return status;
  c->report.rule = SN_RULE_ORDER;
  c->report.instruction = c->plan->n_instrs;
  if (all)
    return sn_fail(c->err, SN_BUG, "plan check: step %u never runs again", c->route->again[c->next_again].step + 1);
  return sn_fail(c->err, SN_BUG, "plan check: step %u never runs", c->next_step + 1);
}

const char *sn_rule_name(sn_rule rule) {
  static const char *const names[SN_RULES] = {"", "order", "values", "fences", "memory", "cores", "match"};
  return names[rule];
}

sn_status sn_check(const sn_plan *plan, sn_check_report *report, sn_err *err) {
  checker c = {.plan = plan, .corun = sn_plan_is_corun(plan), .route = plan->route, .err = err};
  if (report) c.report.use = report->use;
  if (c.report.use) memset(c.report.use, 0, plan->route->n_steps * sizeof *c.report.use);
  sn_status status = check_all(&c);
  if (report) *report = c.report;
  clear(&c);
  return status;
}

/* ---- where the rest has been proved of another plan ---- */

/* Known to be released behind every use, so that who is ordered behind the release is behind those, too. */
static sn_status check_leaves(checker *c, const sn_instr *i) {
  if (check_lies_there(c, i) != SN_OK) return c->err->code;
  sn__regions_release(&c->pool, c->states[i->id].claim, now(c));
  c->states[i->id].resident = false;
  return SN_OK;
}

static sn_status check_memory_of(checker *c, const sn_instr *i) {
  c->lane = c->lanes[i->lane];
  c->known[c->lane].of[c->lane]++;
  switch ((sn_instr_kind)i->kind) {
  case SN_ALLOC:
    return check_place(c, i);
  case SN_RELEASE:
    return check_leaves(c, i);
  case SN_COMPUTE:
    return check_workspace(c, i);
  case SN_SIGNAL:
    return check_signal(c, i);
  case SN_WAIT:
    return check_wait(c, i);
  case SN_COPY_OUT:
  case SN_COPY_IN:
  case SN_INSTR_KINDS:
    break;
  }
  return SN_OK;
}

static sn_status check_memory(checker *c) {
  c->n_lanes = sn_plan_used_lanes(c->plan, c->lanes);
  size_t fences = (size_t)c->plan->n_fences + 1;
  c->fences = calloc(fences * c->n_lanes + 1, sizeof *c->fences);
  c->signalled = calloc(fences, sizeof *c->signalled);
  c->states = calloc(c->route->n_tensors, sizeof *c->states);
  if (!c->fences || !c->signalled || !c->states) return sn_fail_memory(c->err);
  sn_status status = SN_OK;
  for (c->at = 0; c->at < c->plan->n_instrs && status == SN_OK; c->at++)
    status = check_memory_of(c, &c->plan->instrs[c->at]);
  return status;
}

sn_status sn_check_like(const sn_plan *plan, const sn_plan *proved, sn_err *err) {
  if (!proved || sn_plan_is_corun(plan) || !sn_lower_is_known(plan, proved)) return sn_check(plan, NULL, err);
  checker c = {.plan = plan, .route = plan->route, .err = err};
  sn_status status = check_memory(&c);
  clear(&c);
  return status;
}
