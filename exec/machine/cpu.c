/* CPU back end; see the header.
 *
 * Addresses are looked up when an instruction is fed, in listed order, as the plan means them; lanes beside the
 * caller's thread get pointers. Of a co-run plan every operation is a job of its own, and so is every release that is
 * watched; what they have found of the loss is added up in listed order, whenever they ran.
 *
 *   |guard|<------------- pool_bytes ------------->|guard|      one region, guards only where `check` asks for them
 */
#include "exec/machine/cpu.h"

#include "base/checked.h"
#include "exec/kernel/rectify.h"
#include "exec/kernel/view.h"
#include "exec/machine/outside.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/plan/cursor.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096 }; /* a page, too */

/* A quiet NaN as a float, and unlikely as anything else. */
static const uint32_t pattern = 0x7fc5a5a5;

/* An instruction that is carried out, by the caller's thread or on a lane. */
typedef struct job {
  sn_cpu *cpu;
  sn_cpu_kernels *kernels;
  const sn_instr *instr;
  sn_call call;
  float **pointers; /* of the call; see sn_call_fill() */
  float *own;   /* gradients that are added to another layer's, which stand in call.gradients then; NULL: none are */
  float *aside; /* for the sum of the layer's gradients; NULL: the graph has tensors for that, or nothing is added */
  double loss;  /* of a SOFTMAX, with */
  uint32_t correct;
  bool scores; /* it is one that counts */
} job;

/* A tensor on its way between the pool and what lies outside. */
typedef struct shipment {
  sn_outside *outside;
  const sn_instr *instr;
  unsigned char *tensor;
} shipment;

typedef struct sn__cpu_play {
  const sn_plan *plan;
  sn_trace *trace;
  sn_lanes *lanes;
  unsigned char *region, *pool;
  sn_outside *outside;
  unsigned char **place; /* per tensor: where it lies, or NULL */
  bool *adds;            /* per layer: sn_call_find_adders() */
  job *jobs;             /* of an iteration; without teams there is one, used again and again */
  float **pointers;      /* of all jobs */
  uint32_t n_jobs, room;
  shipment *shipments; /* of an iteration */
  uint32_t n_shipments;
  sn_cpu_kernels *kernels[SN_LANES_TEAMS]; /* of teams */
  uint16_t last_team[SN_LANES];            /* of a lane's last operation */
  uint64_t iteration;                      /* batches before this one */
  uint32_t batches, batch;                 /* that an update is made of, and of these the one at hand, from 0 */
} play;

static void fill(unsigned char *from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += sizeof pattern) memcpy(from + i, &pattern, sizeof pattern);
}

static bool is_filled(const unsigned char *from, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++)
    if (from[i] != ((const unsigned char *)&pattern)[i % sizeof pattern]) return false;
  return true;
}

/* How many jobs an iteration has. */
static uint32_t count_jobs(const sn_cpu *cpu, const sn_plan *plan) {
  if (!sn_plan_is_corun(plan)) return 1;
  return sn_plan_count(plan, SN_COMPUTE) + (cpu->check ? sn_plan_count(plan, SN_RELEASE) : 0);
}

static bool make_jobs(sn_cpu *cpu, play *p) {
  size_t pointers = (size_t)4 * sn_call_widest(p->plan->route->net);
  p->room = count_jobs(cpu, p->plan);
  p->jobs = calloc((size_t)p->room + 1, sizeof *p->jobs);
  p->pointers = calloc(p->room * pointers + 1, sizeof *p->pointers);
  if (!p->jobs || !p->pointers) return false;
  for (uint32_t i = 0; i < p->room; i++)
    p->jobs[i] = (job){.cpu = cpu, .kernels = cpu->kernels, .pointers = p->pointers + i * pointers};
  return true;
}

/* What is reserved is taken now, as on a GPU: every page of it, whether an operation will fill it or not. */
static void touch(unsigned char *memory, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += GUARD_BYTES) ((volatile unsigned char *)memory)[at] = 0;
}

static uint32_t count_copies(const sn_plan *plan) {
  return sn_plan_count(plan, SN_COPY_OUT) + sn_plan_count(plan, SN_COPY_IN);
}

static bool make_memory(sn_cpu *cpu, play *p) {
  uint64_t guards = cpu->check ? (uint64_t)2 * GUARD_BYTES : 0;
  p->region = aligned_alloc(GUARD_BYTES, sn_ceil_div(p->plan->pool_bytes + guards + 1, GUARD_BYTES) * GUARD_BYTES);
  p->shipments = calloc((size_t)count_copies(p->plan) + 1, sizeof *p->shipments);
  p->place = calloc(p->plan->route->n_tensors, sizeof *p->place);
  p->adds = sn_call_find_adders(p->plan->route);
  if (!p->region || !p->shipments || !p->place || !p->adds || !make_jobs(cpu, p)) return false;
  p->pool = p->region + guards / 2;
  touch(p->region, p->plan->pool_bytes + guards);
  return true;
}

/* The workspace of a plan has room for the copies of its layouts, and of no others. */
static sn_status check_layouts(const sn_cpu *cpu, const sn_plan *plan, sn_err *err) {
  const char *here = sn_cpu_kernels_layouts(cpu->kernels);
  if (!plan->layouts[0] || strcmp(plan->layouts, here) == 0) return SN_OK;
  return sn_fail(
      err, SN_BAD_DEVICE,
      "the plan was made for kernels whose values lie as \"%s\", and those of this machine lie as \"%s\"; make "
      "one for this machine",
      plan->layouts, here);
}

static sn_status reserve(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn_cpu *cpu = self;
  if (check_layouts(cpu, plan, err) != SN_OK) return err->code;
  cpu->play = calloc(1, sizeof *cpu->play);
  if (!cpu->play) return sn_fail_memory(err);
  *cpu->play = (play){.plan = plan, .trace = trace, .batches = cpu->accumulate > 1 ? cpu->accumulate : 1};
  if (!make_memory(cpu, cpu->play))
    return sn_fail(err, SN_NO_MEMORY,
                   "the plan needs %llu MiB for its pool and %llu MiB beside it, which this machine has not; "
                   "choose a smaller batch",
                   (unsigned long long)(plan->pool_bytes >> 20), (unsigned long long)(plan->external_bytes >> 20));
  cpu->play->outside = sn_outside_new(plan->external_bytes, cpu->folder, err);
  if (!cpu->play->outside) return err->code;
  if (sn_plan_is_corun(plan) && sn_cpu_teams_open(cpu->teams, plan, cpu->play->kernels, err) != SN_OK) return err->code;
  const sn_lanes_options options = {
      .n_fences = plan->n_fences, .jitter_us = cpu->jitter_us, .teams = plan->teams, .n_teams = plan->n_teams};
  cpu->play->lanes = sn_lanes_new(&options, err);
  return cpu->play->lanes ? SN_OK : err->code;
}

static sn_status begin(void *self, uint64_t iteration, sn_err *err) {
  sn_cpu *cpu = self;
  play *p = cpu->play;
  (void)err;
  p->iteration = iteration;
  p->batch = (uint32_t)(iteration % p->batches);
  p->n_jobs = p->n_shipments = 0;
  cpu->outcome = (sn_outcome){0};
  if (cpu->check) fill(p->region, p->plan->pool_bytes + (uint64_t)2 * GUARD_BYTES); /* nothing is left of the last */
  for (uint32_t t = 0; t < p->plan->route->n_tensors; t++) p->place[t] = NULL;
  memset(p->trace->busy_ns, 0, sizeof p->trace->busy_ns);
  memset(p->trace->stall_ns, 0, sizeof p->trace->stall_ns);
  sn_lanes_begin(p->lanes);
  return SN_OK;
}

static sn_status broken(const play *p, uint32_t index, const char *what, sn_err *err) {
  const sn_instr *i = &p->plan->instrs[index];
  return sn_fail(err, SN_BUG, "instruction %u (%s, step %u): %s", index, sn_instr_kind_name((sn_instr_kind)i->kind),
                 i->step + 1, what);
}

static sn_status alloc(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn_cpu *)self)->play;
  const sn_instr *i = &p->plan->instrs[index];
  (void)err;
  p->trace->spans[index] = (sn_span){-1, -1};
  p->place[i->id] = p->pool + i->offset;
  return SN_OK;
}

/* A job for an instruction. */
static job *next_job(sn_cpu *cpu, const sn_instr *instr) {
  play *p = cpu->play;
  if (!sn_plan_is_corun(p->plan)) p->n_jobs = 0;
  job *j = &p->jobs[p->n_jobs++];
  j->instr = instr;
  j->scores = false;
  return j;
}

static sn_status look_behind(void *of, sn_err *err) {
  const job *j = of;
  const play *p = j->cpu->play;
  const sn_instr *i = j->instr;
  if (!is_filled(p->pool + i->offset, p->plan->route->tensors[i->id].bytes, i->bytes))
    return broken(p, (uint32_t)(i - p->plan->instrs), "bytes behind the tensor's end were written", err);
  fill(p->pool + i->offset, i->bytes);
  return SN_OK;
}

static sn_status release(void *self, uint32_t index, sn_err *err) {
  sn_cpu *cpu = self;
  play *p = cpu->play;
  const sn_instr *i = &p->plan->instrs[index];
  p->trace->spans[index] = (sn_span){-1, -1};
  p->place[i->id] = NULL;
  if (!cpu->check) return SN_OK;
  job *j = next_job(cpu, i);
  if (!sn_plan_is_corun(p->plan)) return look_behind(j, err);
  return sn_lanes_run(p->lanes, (sn_lane)i->lane, p->last_team[i->lane], look_behind, j, NULL, err);
}

/* A layer's part of what the optimizer keeps. */
static float *state_of(const sn_state *s, uint32_t state, uint64_t offset) {
  return s->states[state] ? s->states[state] + offset : NULL;
}

static sn_call make_call(const sn_cpu *cpu, const sn_instr *i, double *loss) {
  const sn_route *route = cpu->play->plan->route;
  const sn_step *step = &route->steps[i->id];
  const sn_layer *layer = &route->layers[step->layer];
  sn_state *s = cpu->state;
  uint32_t owner = sn_call_owner(route->net, step->layer);
  bool any = route->layers[owner].parameters > 0, trained = sn_call_trains(route, step->layer);
  uint64_t offset = s->parameter_offset[owner];
  return (sn_call){.net = route->net,
                   .layer = step->layer,
                   .pass = step->pass,
                   .part = (sn_step_part)i->part,
                   .rerun = i->rerun,
                   .iteration = cpu->play->iteration / (step->pass == SN_UPDATE ? cpu->play->batches : 1),
                   .hyper = &cpu->hyper,
                   .parameters = any ? s->parameters + offset : NULL,
                   .gradients = trained ? s->gradients + offset : NULL,
                   .states = {trained ? state_of(s, 0, offset) : NULL, trained ? state_of(s, 1, offset) : NULL},
                   .statistics = layer->statistics_bytes > 0 ? s->statistics + s->statistics_offset[step->layer] : NULL,
                   .labels = cpu->batch->labels,
                   .loss = loss,
                   .workspace = i->bytes > 0 ? cpu->play->pool + i->offset : NULL,
                   .workspace_bytes = i->bytes};
}

static sn_op op_of(const sn_call *call) {
  return call->net->layers[call->layer].op;
}

/* Of classes that lie `apart`. */
static uint32_t most_likely(const float *y, uint32_t classes, uint64_t apart) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < classes; c++)
    if (y[c * apart] > y[best * apart]) best = c;
  return best;
}

/* A SOFTMAX has run. */
static void score(job *j) {
  const sn_call *call = &j->call;
  sn_shape s = call->net->layers[call->layer].out;
  uint64_t plane = (uint64_t)s.h * s.w;
  const uint64_t labels = sn_loss_is_of_classes(call->net->layers[call->layer].attr->loss) ? s.n * plane : 0;
  j->scores = true;
  j->correct = 0;
  for (uint64_t i = 0; i < labels; i++) {
    const float *y = call->y[0] + i / plane * s.c * plane + i % plane;
    if (most_likely(y, s.c, plane) == (uint32_t)call->labels[i]) j->correct++;
  }
}

static void add_outcome(sn_cpu *cpu, const job *j) {
  if (!j->scores) return;
  cpu->outcome.loss += j->loss;
  cpu->outcome.correct = j->correct;
}

/* ---- gradients of parameters ---- */

static void put_into_pool(float *gradients, float *pool, uint64_t count, uint32_t batches) {
  (void)batches;
  memcpy(pool, gradients, count * sizeof *pool);
}

static void take_from_pool(float *gradients, float *pool, uint64_t count, uint32_t batches) {
  (void)batches;
  memcpy(gradients, pool, count * sizeof *pool);
}

/* Of the first batch of an update there is no sum yet. */
static void start_sum(float *gradients, float *pool, uint64_t count, uint32_t batches) {
  float share = 1 / (float)batches;
  (void)pool;
  for (uint64_t i = 0; i < count; i++) gradients[i] *= share;
}

static void add_to_sum(float *gradients, float *pool, uint64_t count, uint32_t batches) {
  float share = 1 / (float)batches;
  for (uint64_t i = 0; i < count; i++) gradients[i] = pool[i] + share * gradients[i];
}

typedef void (*carrier)(float *gradients, float *pool, uint64_t count, uint32_t batches);

/* Between where a layer's gradients are for the whole training and where they are in the pool: the tensors that the
 * graph has for them, or the room they are put aside in. */
static void carry_gradients(const job *j, carrier carry) {
  const play *p = j->cpu->play;
  const sn_route *route = p->plan->route;
  const sn_call *call = &j->call;
  uint32_t owner = sn_call_owner(route->net, call->layer);
  float *gradients = call->gradients;
  for (uint32_t t = route->weight_gradient[owner];
       t < route->n_tensors && route->tensors[t].role == SN_PARAMETER_GRADIENT && route->tensors[t].layer == owner;
       t++) {
    uint64_t count = route->tensors[t].bytes / sizeof *gradients;
    carry(gradients, (float *)(void *)p->place[t], count, p->batches);
    gradients += count;
  }
  if (j->aside) carry(gradients, j->aside, route->layers[owner].parameters, p->batches);
}

/* An update takes what backward has left in tensors of the graph; where gradients are added up, it is not there. */
static void before_kernel(const job *j) {
  const play *p = j->cpu->play;
  if (p->batches == 1 && j->call.pass == SN_UPDATE) carry_gradients(j, take_from_pool);
  if (p->batches > 1 && j->call.pass == SN_BACKWARD && p->batch > 0 && !j->own) carry_gradients(j, put_into_pool);
}

/* Adds a layer's own gradients to those of the same parameters by another layer. */
static void add_own(const job *j, float *sum) {
  const play *p = j->cpu->play;
  const sn_net *net = p->plan->route->net;
  float share = 1 / (float)p->batches;
  uint64_t count = net->layers[sn_call_owner(net, j->call.layer)].parameters;
  for (uint64_t i = 0; i < count; i++) sum[i] += share * j->own[i];
}

/* The layer's own step has added what it made; now the graph has the sum. */
static void take_sum(job *j) {
  j->aside = j->own = NULL;
  if (j->cpu->play->batches == 1) carry_gradients(j, put_into_pool);
}

static void after_kernel(const job *j) {
  const play *p = j->cpu->play;
  if (j->call.pass != SN_BACKWARD || j->own) return;
  if (p->batches == 1)
    carry_gradients(j, put_into_pool);
  else
    carry_gradients(j, p->batch == 0 ? start_sum : add_to_sum);
}

/* ---- steps ---- */

/* The last so many bytes of the workspace, which is planned for that (exec/session/session_plan.c). */
static float *take_room(sn_call *call, uint64_t bytes) {
  if (bytes == 0) return NULL;
  call->workspace_bytes = (call->workspace_bytes - bytes) / SN_POOL_BLOCK * SN_POOL_BLOCK;
  return (float *)(void *)((unsigned char *)call->workspace + call->workspace_bytes);
}

/* What is a view is gathered. A gradient that is passed on is there. */
static void gather_views(const sn_route *route, const sn_step *step, sn_call *call) {
  const sn_layer *layer = &route->layers[call->layer];
  bool passes_on = sn_route_rule(route, call->layer)->gradient == SN_GRAD_PASS_ON;
  float *room = take_room(call, sn_call_gathered_bytes(route, step));
  if (passes_on) call->dx[0] = NULL;
  if (room) sn_call_gather(route, layer->first_output, call->dy[0], room);
  if (room) call->dy[0] = room;
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    room = take_room(call, sn_call_gathered_input_bytes(route, step, i));
    if (!room) continue;
    sn_call_gather_input(route, route->net->inputs[layer->first_input + i], call->x[i], room);
    call->x[i] = room;
  }
}

static sn_status run_step(job *j, sn_err *err) {
  const play *p = j->cpu->play;
  sn_call *call = &j->call;
  const sn_step *step = &p->plan->route->steps[j->instr->id];
  if (step->kernel == SN_FLATTEN) return SN_OK; /* the same bytes */
  if (step->kernel == SN_SHARED_SUM) {
    take_sum(j);
    return SN_OK;
  }
  if (step->kernel == SN_SUM) {
    sn_call_sum(p->plan->route, step, p->place);
    return SN_OK;
  }
  if (sn_rectify_spares(p->plan->route, step)) return SN_OK;
  if (step->kernel == SN_DATA_GRADIENT) call->part = SN_STEP_DATA;
  sn_call_hide_unread(call, p->plan->route, step);
  call->ceiling = sn_rectify_ceiling(p->plan->route, step);
  float *gradients = call->gradients;
  j->aside = take_room(call, sn_call_aside_bytes(p->plan->route, step, p->batches, p->adds));
  j->own = take_room(call, sn_call_own_bytes(p->plan->route, step, p->adds));
  gather_views(p->plan->route, step, call);
  before_kernel(j);
  if (j->own) call->gradients = j->own;
  sn_status status = sn_cpu_kernels_run(j->kernels, call, err);
  if (j->own && status == SN_OK) add_own(j, gradients);
  call->gradients = gradients;
  if (status == SN_OK) after_kernel(j);
  return status;
}

static sn_status run_job(void *of, sn_err *err) {
  job *j = of;
  sn_status status = run_step(j, err);
  if (j->call.pass == SN_FORWARD && op_of(&j->call) == SN_SOFTMAX && !j->call.rerun) score(j);
  if (j->cpu->check) fill(j->cpu->play->pool + j->instr->offset, j->instr->bytes);
  return status;
}

/* An update that waits for the last of its batches. */
static bool is_put_off(const play *p, const sn_instr *i) {
  return p->plan->route->steps[i->id].pass == SN_UPDATE && p->batch + 1 < p->batches;
}

static sn_status compute(void *self, uint32_t index, sn_err *err) {
  sn_cpu *cpu = self;
  play *p = cpu->play;
  const sn_instr *i = &p->plan->instrs[index];
  sn_span *span = &p->trace->spans[index];
  if (is_put_off(p, i)) {
    span->begin_ns = span->end_ns = sn_lanes_now(p->lanes);
    return SN_OK;
  }
  job *j = next_job(cpu, i);
  j->call = make_call(cpu, i, &j->loss);
  sn_call_fill(&j->call, p->plan->route, p->place, (float *)cpu->batch->data, j->pointers);
  if (sn_plan_is_corun(p->plan)) {
    j->kernels = p->kernels[i->team];
    p->last_team[i->lane] = i->team;
    return sn_lanes_run(p->lanes, (sn_lane)i->lane, i->team, run_job, j, span, err);
  }
  span->begin_ns = sn_lanes_now(p->lanes);
  sn_status status = run_job(j, err);
  span->end_ns = sn_lanes_now(p->lanes);
  p->trace->busy_ns[SN_LANE_COMPUTE] += span->end_ns - span->begin_ns;
  add_outcome(cpu, j);
  return status;
}

static sn_status ship(void *of, sn_err *err) {
  const shipment *s = of;
  const sn_instr *i = s->instr;
  if (i->kind == SN_COPY_OUT) return sn_outside_put(s->outside, i->offset, s->tensor, i->bytes, err);
  return sn_outside_get(s->outside, i->offset, s->tensor, i->bytes, err);
}

static sn_status copy(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn_cpu *)self)->play;
  const sn_instr *i = &p->plan->instrs[index];
  shipment *s = &p->shipments[p->n_shipments++];
  *s = (shipment){p->outside, i, p->place[i->id]};
  return sn_lanes_run(p->lanes, (sn_lane)i->lane, 0, ship, s, &p->trace->spans[index], err);
}

static sn_status signal_fence(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn_cpu *)self)->play;
  const sn_instr *i = &p->plan->instrs[index];
  return sn_lanes_signal(p->lanes, (sn_lane)i->lane, i->id, &p->trace->spans[index], err);
}

static sn_status wait_fence(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn_cpu *)self)->play;
  const sn_instr *i = &p->plan->instrs[index];
  sn_span *span = &p->trace->spans[index];
  sn_status status = sn_lanes_wait(p->lanes, (sn_lane)i->lane, i->id, span, err);
  if (i->lane == SN_LANE_COMPUTE && !sn_plan_is_corun(p->plan))
    p->trace->stall_ns[SN_LANE_COMPUTE] += span->end_ns - span->begin_ns;
  return status;
}

/* What the lanes of a co-run plan have done. */
static void sum_up(sn_cpu *cpu) {
  play *p = cpu->play;
  for (uint32_t n = 0; n < p->plan->n_instrs; n++) {
    const sn_instr *i = &p->plan->instrs[n];
    int64_t ns = p->trace->spans[n].end_ns - p->trace->spans[n].begin_ns;
    if (i->kind == SN_COMPUTE) p->trace->busy_ns[i->lane] += ns;
    if (i->kind == SN_WAIT) p->trace->stall_ns[i->lane] += ns;
  }
  for (uint32_t n = 0; n < p->n_jobs; n++) add_outcome(cpu, &p->jobs[n]);
}

static sn_status sync_all(void *self, sn_err *err) {
  sn_cpu *cpu = self;
  play *p = cpu->play;
  sn_status status = sn_lanes_drain(p->lanes, err);
  p->trace->end_ns = sn_lanes_now(p->lanes);
  if (status != SN_OK) return status;
  if (sn_plan_is_corun(p->plan)) sum_up(cpu);
  if (!cpu->check) return SN_OK;
  if (is_filled(p->region, 0, GUARD_BYTES) && is_filled(p->pool + p->plan->pool_bytes, 0, GUARD_BYTES)) return SN_OK;
  return sn_fail(err, SN_BUG, "bytes outside the planned pool were written");
}

static void close_play(void *self) {
  sn_cpu *cpu = self;
  if (!cpu->play) return;
  sn_lanes_free(cpu->play->lanes);
  free(cpu->play->region);
  sn_outside_free(cpu->play->outside);
  sn_cpu_teams_close(cpu->play->kernels);
  free(cpu->play->place);
  free(cpu->play->adds);
  free(cpu->play->jobs);
  free(cpu->play->shipments);
  free(cpu->play->pointers);
  free(cpu->play);
  cpu->play = NULL;
}

static const sn_backend_ops cpu_ops = {
    .name = "cpu",
    .reserve = reserve,
    .begin = begin,
    .alloc = alloc,
    .release = release,
    .compute = compute,
    .copy = copy,
    .signal = signal_fence,
    .wait = wait_fence,
    .sync = sync_all,
    .close = close_play,
};

sn_backend sn_cpu_backend(sn_cpu *cpu) {
  return (sn_backend){.self = cpu, .ops = &cpu_ops};
}
