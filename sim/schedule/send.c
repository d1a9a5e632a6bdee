/* When tensors leave and come back; see the header. */
#include "sim/schedule/send.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/schedule/stages.h"

#include <stdlib.h>

/* Executions, of a tensor that is to leave. */
typedef struct gap {
  uint32_t made, from, to; /* by whom, last use in forward, first use in backward; `to` SN_NONE: it stays */
  uint32_t release, fetch; /* before which it goes, and comes back */
  int64_t done_ns;         /* when its copy has ended */
} gap;

typedef struct sender {
  const sn_schedule *schedule;
  const sn_route *route;
  const sn_sending *how;
  gap *gaps;         /* per tensor */
  uint64_t *load;    /* per execution: of what is there, without what is on its way */
  bool *there;       /* per tensor */
  uint32_t *waiting; /* tensors on their way */
  uint32_t n_waiting;
  uint64_t waiting_bytes;
  int64_t clock_ns, lane_ns;
} sender;

static const sn_step *step_of(const sender *s, uint32_t e) {
  return sn_route_run(s->route, s->schedule->executions[e].step, s->schedule->executions[e].rerun);
}

static uint32_t tensor_at(const sender *s, uint32_t e, uint32_t i) {
  return s->route->accesses[step_of(s, e)->first_access + i].tensor;
}

static uint64_t bytes_of(const sender *s, uint32_t tensor) {
  return sn_pool_round(s->route->tensors[tensor].bytes);
}

static bool is_forward(const sender *s, uint32_t e) {
  return s->schedule->executions[e].at_step < s->route->first_backward;
}

/* ---- gaps and loads ---- */

static bool may_leave(const sender *s, const bool *leaves, uint32_t tensor) {
  sn_role role = s->route->tensors[tensor].role;
  return (!leaves || leaves[tensor]) && (role == SN_VALUE || role == SN_SAVED);
}

/* The first touch after forward decides: a read wants the value back, a write makes it again. */
static void find_gaps(sender *s, const bool *leaves) {
  for (uint32_t t = 0; t < s->route->n_tensors; t++) s->gaps[t] = (gap){SN_NONE, SN_NONE, SN_NONE, 0, 0, 0};
  for (uint32_t e = 0; e < s->schedule->n_executions; e++)
    for (uint32_t i = 0; i < step_of(s, e)->n_accesses; i++) {
      uint32_t t = tensor_at(s, e, i);
      gap *g = &s->gaps[t];
      bool writes = s->route->accesses[step_of(s, e)->first_access + i].mode == SN_WRITE;
      if (is_forward(s, e)) {
        if (g->made == SN_NONE) g->made = e;
        g->from = e;
      } else if (!s->there[t]) { /* "touched since" */
        s->there[t] = true;
        if (g->made != SN_NONE && !writes && may_leave(s, leaves, t)) g->to = e;
      }
    }
  for (uint32_t t = 0; t < s->route->n_tensors; t++) s->there[t] = false;
}

static void find_loads(sender *s) {
  uint64_t load = 0;
  for (uint32_t e = 0; e < s->schedule->n_executions; e++) {
    uint32_t n = step_of(s, e)->n_accesses;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t t = tensor_at(s, e, i);
      if (!s->there[t]) load += bytes_of(s, t);
      s->there[t] = true;
    }
    s->load[e] = load;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t t = tensor_at(s, e, i);
      bool last = s->schedule->last_use[s->schedule->executions[e].first_last_use + i];
      bool goes = s->gaps[t].to != SN_NONE && s->gaps[t].from == e;
      if ((last || goes) && s->there[t]) {
        s->there[t] = false;
        load -= bytes_of(s, t);
      }
    }
  }
}

/* It is there from one execution to before another. */
static void add_load(sender *s, uint32_t tensor, uint32_t from, uint32_t end) {
  for (uint32_t e = from; e < end; e++) s->load[e] += bytes_of(s, tensor);
}

/* ---- what is on its way ---- */

static void start_copy(sender *s, uint32_t tensor) {
  int64_t begin = s->lane_ns > s->clock_ns ? s->lane_ns : s->clock_ns;
  s->lane_ns = begin + sn_link_ns(s->how->link, s->route->tensors[tensor].bytes);
  s->gaps[tensor].done_ns = s->lane_ns;
}

static void wait_for(sender *s, uint32_t tensor) {
  s->waiting[s->n_waiting++] = tensor;
  s->waiting_bytes += bytes_of(s, tensor);
}

static uint32_t remove_at(sender *s, uint32_t place) {
  uint32_t tensor = s->waiting[place];
  s->waiting[place] = s->waiting[--s->n_waiting];
  s->waiting_bytes -= bytes_of(s, tensor);
  return tensor;
}

/* One whose copy has ended; where there is too little room for an execution, the next to end, which then is waited for.
 * SN_NONE: none has to go. */
static uint32_t next_done(sender *s, uint32_t e) {
  uint32_t first = 0;
  for (uint32_t i = 1; i < s->n_waiting; i++)
    if (s->gaps[s->waiting[i]].done_ns < s->gaps[s->waiting[first]].done_ns) first = i;
  if (s->n_waiting == 0) return SN_NONE;
  int64_t done = s->gaps[s->waiting[first]].done_ns;
  if (done > s->clock_ns && s->load[e] + s->waiting_bytes <= s->how->bytes) return SN_NONE;
  if (done > s->clock_ns) s->clock_ns = done;
  return remove_at(s, first);
}

static void run(sender *s, uint32_t e) {
  s->clock_ns += sn_stages_step_ns(s->route, s->how->costs, s->how->workspace, s->schedule->executions[e].step);
}

/* What is used again, or has not gone, stays. */
static void keep(sender *s, uint32_t tensor) {
  gap *g = &s->gaps[tensor];
  add_load(s, tensor, g->from + 1, g->to);
  g->to = SN_NONE;
}

static void go_forward(sender *s) {
  for (uint32_t e = 0; e < s->schedule->n_executions; e++) {
    for (uint32_t i = s->n_waiting; i-- > 0;)
      if (s->gaps[s->waiting[i]].to == e) keep(s, remove_at(s, i));
    for (uint32_t t; (t = next_done(s, e)) != SN_NONE;) {
      s->gaps[t].release = e;
      add_load(s, t, s->gaps[t].from + 1, e);
    }
    run(s, e);
    for (uint32_t i = 0; i < step_of(s, e)->n_accesses; i++) {
      uint32_t t = tensor_at(s, e, i);
      if (s->gaps[t].to == SN_NONE) continue;
      if (s->gaps[t].made == e) start_copy(s, t);
      if (s->gaps[t].from == e) wait_for(s, t);
    }
  }
}

static void go_backward(sender *s) {
  s->clock_ns = s->lane_ns = 0;
  for (uint32_t e = s->schedule->n_executions; e-- > 0;) {
    for (uint32_t i = s->n_waiting; i-- > 0;) {
      gap *g = &s->gaps[s->waiting[i]];
      if (e >= g->release) continue;
      uint32_t tensor = remove_at(s, i);
      add_load(s, tensor, g->release, g->to);
      g->to = SN_NONE;
    }
    for (uint32_t t; (t = next_done(s, e)) != SN_NONE;) {
      s->gaps[t].fetch = e + 1;
      add_load(s, t, e + 1, s->gaps[t].to);
    }
    run(s, e);
    for (uint32_t i = 0; i < step_of(s, e)->n_accesses; i++) {
      uint32_t t = tensor_at(s, e, i);
      if (s->gaps[t].to != e) continue;
      start_copy(s, t);
      wait_for(s, t);
    }
  }
}

/* ---- swaps ---- */

/* The step with which it is fetched. What runs for one step is not divided: it comes ahead of all of that where there
 * is room, else behind it, but for its own. */
static uint32_t fetch_step(sender *s, uint32_t tensor) {
  const sn_execution *all = s->schedule->executions;
  const gap *g = &s->gaps[tensor];
  uint32_t first = g->fetch, next = g->fetch;
  bool room = true;
  while (first > g->release && all[first - 1].at_step == all[g->fetch].at_step) {
    first--;
    room = room && s->load[first] + bytes_of(s, tensor) <= s->how->bytes;
  }
  if (room) add_load(s, tensor, first, g->fetch);
  if (room) return all[first].at_step;
  while (next < g->to && all[next].at_step == all[g->fetch].at_step) next++;
  return all[next].at_step;
}

static sn_status set_swaps(sender *s, sn_schedule *schedule, sn_err *err) {
  sn_swap *swaps = calloc((size_t)s->route->n_tensors + 1, sizeof *swaps);
  if (!swaps) return sn_fail_memory(err);
  free((void *)schedule->swaps);
  schedule->swaps = swaps;
  schedule->n_swaps = 0;
  for (uint32_t t = 0; t < s->route->n_tensors; t++) {
    const gap *g = &s->gaps[t];
    if (g->to == SN_NONE) continue;
    sn_swap swap = {t, schedule->executions[g->release].at_step, fetch_step(s, t)};
    if (swap.fetch_step > swap.release_step) swaps[schedule->n_swaps++] = swap;
  }
  return SN_OK;
}

sn_status sn_schedule_send(sn_schedule *schedule, const bool *leaves, const sn_sending *how, sn_err *err) {
  size_t tensors = (size_t)schedule->route->n_tensors + 1, executions = (size_t)schedule->n_executions + 1;
  sender s = {.schedule = schedule,
              .route = schedule->route,
              .how = how,
              .gaps = calloc(tensors, sizeof *s.gaps),
              .load = calloc(executions, sizeof *s.load),
              .there = calloc(tensors, sizeof *s.there),
              .waiting = calloc(tensors, sizeof *s.waiting)};
  sn_status status = s.gaps && s.load && s.there && s.waiting ? SN_OK : sn_fail_memory(err);
  if (status == SN_OK) {
    find_gaps(&s, leaves);
    find_loads(&s);
    go_forward(&s);
    go_backward(&s);
    status = set_swaps(&s, schedule, err);
  }
  free(s.gaps);
  free(s.load);
  free(s.there);
  free(s.waiting);
  return status;
}

sn_status sn_schedule_send_stages(sn_schedule *schedule, const sn_stages *stages, const bool *away,
                                  const sn_sending *how, sn_err *err) {
  uint32_t n = stages->route->n_tensors, steps = stages->route->first_backward;
  bool *leaves = calloc((size_t)n + 1, sizeof *leaves), *sent = calloc((size_t)steps + 1, sizeof *sent);
  sn_status status = leaves && sent ? SN_OK : sn_fail_memory(err);
  for (uint32_t i = 0; i < stages->count && status == SN_OK; i++)
    for (uint32_t k = stages->stages[i].first; k < stages->stages[i].end; k++) sent[k] = away[i];
  for (uint32_t t = 0; t < n && status == SN_OK; t++)
    leaves[t] = stages->producer[t] != SN_NONE && sent[stages->producer[t]];
  if (status == SN_OK) status = sn_schedule_send(schedule, leaves, how, err);
  free(leaves);
  free(sent);
  return status;
}
