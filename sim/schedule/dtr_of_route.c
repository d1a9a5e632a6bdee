/* A route as DTR's logs have a training step; see the header. */
#include "sim/schedule/dtr_of_route.h"

#include "sim/graph/route.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
  const sn_route *route;
  const sn_costs *costs;
  sn_dtr_program *program;
  uint32_t *current; /* per tensor of the route: the program's that holds its value now */
  uint32_t *last;    /* the last step that touches it */
  uint32_t *args;    /* of one step */
  sn_dtr_output *results;
  uint32_t *result_of; /* the route's tensor that each is */
  sn_err *err;
} writer;

static void act(writer *w, sn_dtr_kind kind, uint32_t tensor) {
  if (w->err->code == SN_OK) sn_dtr_program_act(w->program, kind, tensor, w->err);
}

/* What is there before the step, and costs nothing. */
static void pin(writer *w, uint64_t bytes) {
  const sn_dtr_output all = {.bytes = bytes, .view_of = SN_DTR_OWN};
  if (bytes > 0 && sn_dtr_program_run(w->program, 0, NULL, 0, &all, 1, w->err) == SN_OK) act(w, SN_DTR_PIN, 0);
}

/* Where a step makes something, what it changes beside that is only read. */
static void list_step(writer *w, const sn_step *step, uint32_t *n_args, uint32_t *n_results) {
  const sn_access *accesses = &w->route->accesses[step->first_access];
  bool makes = false;
  *n_args = *n_results = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++) makes = makes || accesses[i].mode == SN_WRITE;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = accesses[i].tensor;
    if (accesses[i].mode != SN_WRITE && !accesses[i].held) w->args[(*n_args)++] = w->current[tensor];
    if (accesses[i].mode != (makes ? SN_WRITE : SN_MODIFY)) continue;
    w->result_of[*n_results] = tensor;
    w->results[(*n_results)++] = (sn_dtr_output){w->route->tensors[tensor].bytes, SN_DTR_OWN};
  }
}

static void write_step(writer *w, uint32_t s) {
  const sn_step *step = &w->route->steps[s];
  const uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
  uint32_t n_args, n_results, first = w->program->n_tensors;
  list_step(w, step, &n_args, &n_results);
  uint64_t ns = (uint64_t)sn_costs_of(w->costs, w->route, step, algo);
  if (n_results > 0) sn_dtr_program_run(w->program, ns, w->args, n_args, w->results, n_results, w->err);
  for (uint32_t i = 0; i < n_results && w->err->code == SN_OK; i++) {
    uint32_t *now = &w->current[w->result_of[i]];
    if (*now != SN_NONE) act(w, SN_DTR_RELEASE, *now);
    *now = first + i;
  }
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = w->route->accesses[step->first_access + i].tensor;
    if (w->last[tensor] == s) act(w, SN_DTR_RELEASE, w->current[tensor]);
  }
}

static bool make_room(writer *w) {
  size_t tensors = (size_t)w->route->n_tensors + 1, accesses = 1;
  for (uint32_t s = 0; s < w->route->n_steps; s++)
    if (w->route->steps[s].n_accesses > accesses) accesses = w->route->steps[s].n_accesses;
  w->current = malloc(tensors * sizeof *w->current);
  w->last = calloc(tensors, sizeof *w->last);
  w->args = calloc(accesses, sizeof *w->args);
  w->results = calloc(accesses, sizeof *w->results);
  w->result_of = calloc(accesses, sizeof *w->result_of);
  if (!w->current || !w->last || !w->args || !w->results || !w->result_of) return false;
  memset(w->current, 0xff, tensors * sizeof *w->current);
  for (uint32_t s = 0; s < w->route->n_steps; s++)
    for (uint32_t i = 0; i < w->route->steps[s].n_accesses; i++)
      w->last[w->route->accesses[w->route->steps[s].first_access + i].tensor] = s;
  return true;
}

sn_dtr_program *sn_dtr_program_of_route(const sn_route *route, uint64_t resident_bytes, const sn_costs *costs,
                                        sn_err *err) {
  writer w = {.route = route, .costs = costs, .program = sn_dtr_program_new(err), .err = err};
  if (!w.program) return NULL;
  if (!make_room(&w)) sn_fail_memory(err);
  if (err->code == SN_OK) pin(&w, resident_bytes);
  for (uint32_t s = 0; s < route->n_steps && err->code == SN_OK; s++) write_step(&w, s);
  if (err->code == SN_OK) sn_dtr_program_close(w.program, err);
  free(w.current);
  free(w.last);
  free(w.args);
  free(w.results);
  free(w.result_of);
  if (err->code == SN_OK) return w.program;
  sn_dtr_program_free(w.program);
  return NULL;
}
