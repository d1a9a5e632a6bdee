/* recompute=dtr; see the header. */
#include "sim/schedule/schedule_dtr.h"

#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/schedule/stages.h"

#include <stdlib.h>

/* ---- the program ---- */

typedef struct writer {
  const sn_route *route;
  sn_dtr_program *program;
  uint32_t *current;      /* per tensor of the route: the program's that holds its value now; SN_NONE: none yet */
  uint32_t *last;         /* the last step that touches it */
  bool *stays;            /* it is not to be evicted */
  uint32_t *args;         /* of one step */
  sn_dtr_output *results; /* of one step, and */
  uint32_t *result_of;    /* the route's tensor that each is */
  sn_err *err;
} writer;

static sn_access access_at(const sn_route *route, uint32_t step, uint32_t i) {
  return route->accesses[route->steps[step].first_access + i];
}

static void find_uses(writer *w) {
  const sn_route *route = w->route;
  for (uint32_t t = 0; t < route->n_tensors; t++) w->current[t] = SN_NONE;
  for (uint32_t s = 0; s < route->n_steps; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
      sn_access access = access_at(route, s, i);
      w->last[access.tensor] = s;
      if (access.mode == SN_MODIFY || (access.mode == SN_WRITE && s >= route->first_backward))
        w->stays[access.tensor] = true;
    }
}

/* What a step changes is a view of what it was. A step that makes nothing has a result of no bytes. */
static void list_step(writer *w, uint32_t s, uint32_t *n_args, uint32_t *n_results) {
  *n_args = *n_results = 0;
  for (uint32_t i = 0; i < w->route->steps[s].n_accesses; i++) {
    sn_access access = access_at(w->route, s, i);
    uint64_t bytes = sn_pool_round(w->route->tensors[access.tensor].bytes);
    if (access.mode != SN_READ) {
      w->result_of[*n_results] = access.tensor;
      w->results[(*n_results)++] =
          access.mode == SN_WRITE ? (sn_dtr_output){bytes, SN_DTR_OWN} : (sn_dtr_output){0, *n_args};
    }
    if (access.mode != SN_WRITE) w->args[(*n_args)++] = w->current[access.tensor];
  }
  if (*n_results > 0) return;
  w->result_of[(*n_results)++] = SN_NONE;
  w->results[0] = (sn_dtr_output){0, SN_DTR_OWN};
}

static void act(writer *w, sn_dtr_kind kind, uint32_t tensor) {
  if (w->err->code == SN_OK) sn_dtr_program_act(w->program, kind, tensor, w->err);
}

static void take_result(writer *w, uint32_t tensor, uint32_t made) {
  if (tensor == SN_NONE) {
    act(w, SN_DTR_RELEASE, made);
    return;
  }
  if (w->current[tensor] != SN_NONE) act(w, SN_DTR_RELEASE, w->current[tensor]);
  w->current[tensor] = made;
  if (w->stays[tensor]) act(w, SN_DTR_KEEP, made);
}

static void write_step(writer *w, uint32_t s, uint64_t cost_ns) {
  uint32_t n_args, n_results, first = w->program->n_tensors;
  list_step(w, s, &n_args, &n_results);
  if (sn_dtr_program_run(w->program, cost_ns, w->args, n_args, w->results, n_results, w->err) != SN_OK) return;
  for (uint32_t i = 0; i < n_results; i++) take_result(w, w->result_of[i], first + i);
  for (uint32_t i = 0; i < w->route->steps[s].n_accesses; i++) {
    uint32_t tensor = access_at(w->route, s, i).tensor;
    if (w->last[tensor] == s) act(w, SN_DTR_RELEASE, w->current[tensor]);
  }
}

static uint32_t most_accesses(const sn_route *route) {
  uint32_t most = 1;
  for (uint32_t s = 0; s < route->n_steps; s++)
    if (route->steps[s].n_accesses > most) most = route->steps[s].n_accesses;
  return most;
}

static bool make_room(writer *w) {
  size_t tensors = (size_t)w->route->n_tensors + 1, accesses = most_accesses(w->route);
  w->current = calloc(tensors, sizeof *w->current);
  w->last = calloc(tensors, sizeof *w->last);
  w->stays = calloc(tensors, sizeof *w->stays);
  w->args = calloc(accesses, sizeof *w->args);
  w->results = calloc(accesses, sizeof *w->results);
  w->result_of = calloc(accesses, sizeof *w->result_of);
  return w->current && w->last && w->stays && w->args && w->results && w->result_of;
}

static void writer_clear(writer *w) {
  free(w->current);
  free(w->last);
  free(w->stays);
  free(w->args);
  free(w->results);
  free(w->result_of);
}

sn_dtr_program *sn_schedule_dtr_program(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err) {
  writer w = {.route = route, .program = sn_dtr_program_new(err), .err = err};
  if (w.program && make_room(&w)) {
    find_uses(&w);
    for (uint32_t s = 0; s < route->n_steps && err->code == SN_OK; s++)
      write_step(&w, s, (uint64_t)sn_stages_step_ns(route, costs, workspace, s));
    if (err->code == SN_OK) sn_dtr_program_close(w.program, err);
  } else if (w.program) {
    sn_fail_memory(err);
  }
  writer_clear(&w);
  if (err->code == SN_OK) return w.program;
  sn_dtr_program_free(w.program);
  return NULL;
}

/* ---- playing it ---- */

typedef struct recorder {
  sn_execution *executions;
  uint32_t count, room;
  uint32_t waiting; /* from this one on, executions run for the step that is on its way */
  bool failed, too_many;
} recorder;

static bool grow(recorder *r) {
  if (r->count < r->room) return true;
  uint32_t room = r->room ? 2 * r->room : 1024;
  sn_execution *more = realloc(r->executions, (size_t)room * sizeof *more);
  if (!more) return false;
  r->executions = more;
  r->room = room;
  return true;
}

static void record(void *who, uint32_t step, bool again) {
  recorder *r = who;
  r->too_many = r->too_many || r->count == SN_MAX_EXECUTIONS;
  if (r->failed || r->too_many) return;
  r->failed = !grow(r);
  if (r->failed) return;
  r->executions[r->count++] = (sn_execution){.step = step, .rerun = again};
  for (; !again && r->waiting < r->count; r->waiting++) r->executions[r->waiting].at_step = step;
}

static sn_dtr_question question_of(const sn_dtr_program *program, uint64_t budget_bytes) {
  return (sn_dtr_question){.heuristic = SN_DTR_EQ, .budget_bytes = budget_bytes, .remake_limit_ns = program->cost_ns};
}

sn_schedule *sn_schedule_dtr(const sn_route *route, const sn_dtr_program *program, uint64_t budget_bytes, sn_err *err) {
  recorder r = {0};
  sn_dtr_question question = question_of(program, budget_bytes);
  sn_dtr_answer answer;
  question.watch = (sn_dtr_watch){.who = &r, .ran = record};
  sn_status status = sn_dtr_play(program, &question, &answer, err);
  if (status == SN_OK && r.failed) status = sn_fail_memory(err);
  if (status == SN_OK && answer.status == SN_DTR_OK && !r.too_many)
    return sn_schedule_of(route, r.executions, r.count, err);
  free(r.executions);
  return NULL;
}

enum { PARTS = 20, HALVINGS = 8 };

static bool gets_through(const sn_dtr_program *program, uint64_t budget_bytes, sn_err *err) {
  sn_dtr_question question = question_of(program, budget_bytes);
  sn_dtr_answer answer;
  return sn_dtr_play(program, &question, &answer, err) == SN_OK && answer.status == SN_DTR_OK;
}

uint64_t sn_schedule_dtr_least(const sn_dtr_program *program, uint64_t enough_bytes, sn_err *err) {
  uint64_t least = enough_bytes, part = enough_bytes / PARTS;
  while (least > part && gets_through(program, least - part, err)) least -= part;
  for (int i = 0; i < HALVINGS && err->code == SN_OK; i++) {
    part /= 2;
    if (gets_through(program, least - part, err)) least -= part;
  }
  return err->code == SN_OK ? least : 0;
}
