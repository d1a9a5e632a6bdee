/* Stages of a pipeline; see the header. */
#include "sim/stages/stages.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/parallel/rounds.h"
#include "sim/stages/together.h"

#include <assert.h>
#include <stdlib.h>

typedef struct maker {
  const char *spec;
  const sn_strategy *strategies;
  uint32_t n_strategies;
  bool brief, only_fits; /* sn_stages_brief() */
  sn__together all;
  sn_planner *first; /* of stage 0: what all stages share is made once */
  sn_options first_options;
  sn_run *run, **of;  /* of: one a stage */
  bool *in_full;      /* per stage: its plans have all micro-batches */
  sn_strategy *asked; /* of a stage, n_asked of all; and per one of them sn_options.least_of_interest */
  uint64_t *leasts;
  uint32_t n_asked;
  sn_err *err;
} maker;

static sn_status note_route(maker *m, sn_planner *planner, uint32_t stage) {
  const sn_route *route = sn_planner_route(planner, m->strategies[0], m->err);
  return route ? sn__together_add(&m->all, stage, route, m->err) : m->err->code;
}

/* What the least of a stage is not looked for below: the least with which those so far run by the strategy, as a
 * pipeline's is its most. Of what runs nobody asks a brief answer for it. */
static uint64_t least_of_interest(const maker *m, uint32_t stage, uint32_t strategy) {
  if (m->only_fits) return UINT64_MAX;
  uint64_t most = m->brief ? m->all.device->memory_bytes : 0;
  for (uint32_t s = 0; s < stage; s++) {
    assert(m->of[s]);
    most = sn_max(most, m->of[s]->results[strategy].least_device_bytes);
  }
  return most;
}

static bool runs_so_far(const maker *m, uint32_t stages, uint32_t strategy) {
  bool fits = true;
  for (uint32_t s = 0; s < stages && fits; s++) {
    assert(m->of[s]);
    fits = m->of[s]->results[strategy].fits;
  }
  return fits;
}

/* Where nothing but what fits is asked, a strategy by which an earlier stage does not is asked no more. */
static bool is_asked(const maker *m, uint32_t stage, uint32_t strategy) {
  return !m->only_fits || runs_so_far(m, stage, strategy);
}

static void choose_asked(maker *m, uint32_t stage) {
  m->n_asked = 0;
  for (uint32_t i = 0; i < m->n_strategies; i++) {
    if (!is_asked(m, stage, i)) continue;
    m->leasts[m->n_asked] = least_of_interest(m, stage, i);
    m->asked[m->n_asked++] = m->strategies[i];
  }
}

/* Those asked each in the place of its strategy; others are zeroed, as what does not fit. */
static sn_status spread(maker *m, uint32_t stage, sn_run *run) {
  if (m->n_asked == m->n_strategies) return SN_OK;
  sn_result *all = sn_arena_alloc(run->arena, m->n_strategies, sizeof *all);
  if (!all) return sn_fail_memory(m->err);
  for (uint32_t i = 0, next = 0; i < m->n_strategies; i++)
    if (is_asked(m, stage, i)) all[i] = run->results[next++];
  run->results = all;
  run->n_results = m->n_strategies;
  return SN_OK;
}

sn_options sn_stages_options(const sn_options *options, uint32_t stage) {
  sn_options own = *options;
  own.iteration.accumulate = 1;
  own.iteration.mesh.stage = stage;
  own.iteration.mesh.micros = sn_iteration_batches(options->iteration);
  return own;
}

static bool is_uneven(const sn_run *run) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (run->results[i].shared.uneven) return true;
  return false;
}

/* The stage's own question, of an update of which so many micro-batches run. */
static sn_run *ask_running(maker *m, uint32_t stage, uint32_t micros) {
  sn_options own, *options = m->first ? &own : &m->first_options;
  *options = sn_stages_options(m->all.options, stage);
  options->iteration.mesh.micros = micros;
  options->iteration.mesh.idle = m->all.micros - micros;
  choose_asked(m, stage);
  options->least_of_interest = m->leasts;
  sn_planner *planner = sn_planner_new_stage(m->first, m->all.net, m->all.device, options, m->err);
  sn_run *run = planner ? sn_planner_run(planner, m->spec, m->asked, m->n_asked, m->err) : NULL;
  if (run && !is_uneven(run)) note_route(m, planner, stage);
  if (!m->first)
    m->first = planner;
  else
    sn_planner_free(planner);
  if (run && run->n_results == m->n_asked && spread(m, stage, run) == SN_OK) return run;
  if (run && m->err->code == SN_OK) sn_fail(m->err, SN_BAD_INPUT, "stage %u: %s", stage, run->failures[0].reason);
  sn_run_free(run);
  return NULL;
}

/* With one round for many, where they are alike; but the first, whose steps the run tells of. */
static sn_run *ask(maker *m, uint32_t stage) {
  sn_mesh mesh = m->all.options->iteration.mesh;
  mesh.stage = stage;
  uint32_t micros = !m->brief && stage == 0 ? m->all.micros : sn_rounds_running(&mesh, m->all.micros);
  m->in_full[stage] = micros == m->all.micros;
  sn_run *run = ask_running(m, stage, micros);
  if (!run || !is_uneven(run)) return run;
  sn_run_free(run);
  m->in_full[stage] = true;
  return ask_running(m, stage, m->all.micros);
}

/* By no strategy do all of the stages so far run. */
static bool is_hopeless(const maker *m, uint32_t stages) {
  for (uint32_t i = 0; i < m->n_strategies; i++)
    if (runs_so_far(m, stages, i)) return false;
  return true;
}

/* What its plan is of. */
static void describe(const maker *m, uint32_t stage) {
  sn_result *results = (sn_result *)m->of[stage]->results;
  uint32_t blocks = sn_mesh_stage_blocks(m->all.net, &m->all.options->iteration.mesh, stage);
  uint32_t in_flight = sn_pipeline_in_flight(m->all.pipeline, stage);
  for (uint32_t i = 0; i < m->n_strategies; i++)
    results[i].shared.blocks = blocks, results[i].shared.in_flight = in_flight;
}

/* A stage that needs most by some strategy, all of whose figures are the pipeline's, in full. */
static sn_status ask_fullest(maker *m) {
  for (uint32_t i = 0; i < m->n_strategies && m->err->code == SN_OK; i++) {
    uint32_t fullest = 0;
    uint64_t most = 0;
    for (uint32_t s = 0; s < m->all.stages; s++) {
      assert(m->of[s]);
      const uint64_t peak = m->of[s]->results[i].peak_device_bytes;
      if (peak > most) most = peak, fullest = s;
    }
    if (m->in_full[fullest]) continue;
    sn_run_free(m->of[fullest]);
    m->of[fullest] = ask_running(m, fullest, m->all.micros);
    m->in_full[fullest] = true;
    if (m->of[fullest]) describe(m, fullest);
  }
  return m->err->code;
}

/* ---- together ---- */

static sn_status join(const maker *m, uint32_t strategy, sn_result *result) {
  const sn_result **own = calloc((size_t)m->all.stages + 1, sizeof(const sn_result *));
  if (!own) return sn_fail_memory(m->err);
  for (uint32_t s = 0; s < m->all.stages; s++) {
    assert(m->of[s]);
    own[s] = &m->of[s]->results[strategy];
  }
  sn__together_join(&m->all, own, result, m->err);
  free(own);
  return m->err->code;
}

static sn_status make(maker *m) {
  sn_arena *arena = sn_arena_new();
  m->run = arena ? sn_arena_alloc(arena, 1, sizeof *m->run) : NULL;
  m->of = m->run ? sn_arena_alloc(arena, m->all.stages, sizeof(sn_run *)) : NULL;
  m->in_full = m->of ? sn_arena_alloc(arena, m->all.stages, sizeof *m->in_full) : NULL;
  m->leasts = m->in_full ? sn_arena_alloc(arena, m->n_strategies, sizeof *m->leasts) : NULL;
  m->asked = m->leasts ? sn_arena_alloc(arena, m->n_strategies, sizeof *m->asked) : NULL;
  sn_result *results = m->asked ? sn_arena_alloc(arena, m->n_strategies, sizeof *results) : NULL;
  if (!results) {
    if (arena) sn_arena_free(arena);
    m->run = NULL;
    return sn_fail_memory(m->err);
  }
  uint32_t asked = 0;
  bool hopeless = false;
  for (; asked < m->all.stages && m->err->code == SN_OK && !hopeless; asked++) {
    m->of[asked] = ask(m, asked);
    if (m->of[asked]) describe(m, asked);
    hopeless = m->only_fits && m->of[asked] && is_hopeless(m, asked + 1);
  }
  if (m->err->code == SN_OK) sn__together_judge(&m->all, m->err);
  if (m->err->code == SN_OK && !m->brief) ask_fullest(m);
  if (m->of[0]) *m->run = *m->of[0];
  m->run->arena = arena;
  m->run->results = results;
  m->run->stages = m->of;
  m->run->n_stages = asked;
  m->run->conditions.accumulate = m->all.micros;
  for (uint32_t i = 0; i < m->n_strategies && m->err->code == SN_OK; i++)
    if (is_asked(m, asked, i)) join(m, i, &results[i]);
  return m->err->code;
}

static sn_run *simulate(maker *m, const sn_net *net, const sn_device *device, const sn_options *options) {
  if (sn_mesh_size(&options->iteration.mesh, SN_MESH_PP) <= 1)
    return sn_simulate(m->spec, net, device, m->strategies, m->n_strategies, options, m->err);
  if (sn__together_open(&m->all, net, device, options, !m->brief, m->err) == SN_OK) make(m);
  sn_planner_free(m->first);
  sn__together_close(&m->all);
  if (m->err->code == SN_OK) return m->run;
  sn_run_free(m->run);
  return NULL;
}

sn_run *sn_stages_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                           uint32_t n_strategies, const sn_options *options, sn_err *err) {
  maker m = {spec, strategies, n_strategies, .err = err};
  return simulate(&m, net, device, options);
}

sn_run *sn_stages_brief(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                        uint32_t n_strategies, const sn_options *options, bool only_fits, sn_err *err) {
  maker m = {spec, strategies, n_strategies, .brief = true, .only_fits = only_fits, .err = err};
  return simulate(&m, net, device, options);
}
