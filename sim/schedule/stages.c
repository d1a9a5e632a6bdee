/* Stages; see the header. */
#include "sim/schedule/stages.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"

#include <stdlib.h>
#include <string.h>

/* What looking at steps needs, per tensor. */
typedef struct scan {
  const sn_route *route;
  uint32_t *last_forward;   /* forward step that touches it last; SN_NONE: none */
  uint32_t *last_use;       /* step that touches it last */
  const uint32_t *producer; /* as of sn_stages */
  bool *wanted;             /* by what comes behind, while steps are looked at backwards */
  bool *live;
  uint32_t *steps; /* those looked at */
  uint32_t n_steps;
  bool *ends; /* per access of these: the last */
  bool *done; /* per forward step */
} scan;

static sn_access access_at(const sn_route *route, uint32_t step, uint32_t i) {
  return route->accesses[route->steps[step].first_access + i];
}

static uint64_t bytes_of(const scan *s, uint32_t tensor) {
  return sn_pool_round(s->route->tensors[tensor].bytes);
}

/* ---- cuts ---- */

static void find_uses(scan *s, uint32_t *producer) {
  const sn_route *route = s->route;
  for (uint32_t k = 0; k < route->n_steps; k++)
    for (uint32_t i = 0; i < route->steps[k].n_accesses; i++) {
      sn_access access = access_at(route, k, i);
      s->last_use[access.tensor] = k;
      if (k >= route->first_backward) continue;
      s->last_forward[access.tensor] = k;
      if (access.mode != SN_READ) producer[access.tensor] = k;
    }
}

/* The forward step of a backward step's layer; SN_NONE: it has none. */
static uint32_t forward_of(const sn_route *route, uint32_t backward) {
  return route->forward_step[route->steps[backward].layer];
}

/* cut[k]: between forward steps k and k + 1. Not where backward comes back to what lies behind. */
static void forbid_mixed(const sn_route *route, bool *cut) {
  uint32_t low = route->first_backward;
  for (uint32_t k = route->first_backward; k < route->first_update; k++) {
    uint32_t forward = forward_of(route, k);
    if (forward == SN_NONE) continue;
    for (uint32_t c = low; c < forward; c++) cut[c] = false;
    low = forward < low ? forward : low;
  }
}

/* Where one value alone is made and still to be read by a forward step, and none is still to be changed. */
static void find_cuts(const scan *s, const uint32_t *producer, bool *cut) {
  const sn_route *route = s->route;
  uint32_t open = 0, changing = 0;
  for (uint32_t k = 0; k + 1 < route->first_backward; k++) {
    for (uint32_t i = 0; i < route->steps[k].n_accesses; i++) {
      sn_access access = access_at(route, k, i);
      bool writes = access.mode == SN_WRITE;
      open += writes && s->last_forward[access.tensor] > k;
      open -= !writes && s->last_forward[access.tensor] == k;
      changing += writes && producer[access.tensor] > k;
      changing -= access.mode == SN_MODIFY && producer[access.tensor] == k;
    }
    cut[k] = open == 1 && changing == 0;
  }
  forbid_mixed(route, cut);
}

/* What a stage hands on: made in it or before, and read behind it. */
static uint32_t output_of(const scan *s, const sn_stage *stage) {
  for (uint32_t k = stage->end; k-- > stage->first;)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses; i++) {
      uint32_t tensor = access_at(s->route, k, i).tensor;
      if (s->last_forward[tensor] >= stage->end) return tensor;
    }
  return SN_NONE;
}

/* A backward step without a forward one stays with those before it. */
static void find_backward(sn_stages *all) {
  const sn_route *route = all->route;
  uint32_t s = all->count - 1;
  all->stages[s].first_backward = route->first_backward;
  for (uint32_t k = route->first_backward; k < route->first_update; k++) {
    uint32_t forward = forward_of(route, k);
    for (; forward != SN_NONE && forward < all->stages[s].first; s--) {
      all->stages[s].end_backward = k;
      all->stages[s - 1].first_backward = k;
    }
  }
  for (; s > 0; s--) all->stages[s].end_backward = all->stages[s - 1].first_backward = route->first_update;
  all->stages[0].end_backward = route->first_update;
}

/* No backward step reads the output, which then is not worth a cut ahead of a single step: what is kept behind that
 * will do. */
static bool is_idle(const scan *s, const bool *cut, uint32_t step, uint32_t output) {
  uint32_t forward = s->route->first_backward;
  return s->last_use[output] < forward && (step + 2 == forward || cut[step + 1]);
}

static void cut_stages(sn_stages *all, const scan *s, const bool *cut) {
  for (uint32_t k = 0, first = 0; k < all->route->first_backward; k++) {
    if (k + 1 < all->route->first_backward && !cut[k]) continue;
    sn_stage stage = {.first = first, .end = k + 1, .input = SN_NONE, .output = SN_NONE};
    if (all->count > 0) stage.input = all->stages[all->count - 1].output;
    if (k + 1 < all->route->first_backward) {
      stage.output = output_of(s, &stage);
      bool passed = stage.output == SN_NONE || stage.output == stage.input;
      if (passed || is_idle(s, cut, k, stage.output)) continue;
    }
    all->stages[all->count++] = stage;
    first = k + 1;
  }
  if (all->count > 0) find_backward(all);
}

/* ---- loads ---- */

/* The largest load over the steps that are looked at, with what they find and what is `wanted` behind them; `apart` are
 * tensors that are not counted. Nothing is looked at then. */
static uint64_t load_of(scan *s, const uint32_t apart[2]) {
  const sn_route *route = s->route;
  uint64_t load = 0, most = 0;
  size_t a = 0;
  for (uint32_t n = 0; n < s->n_steps; n++) a += route->steps[s->steps[n]].n_accesses;
  for (uint32_t n = s->n_steps; n-- > 0;) /* whatever is wanted at the beginning is there */
    for (uint32_t i = route->steps[s->steps[n]].n_accesses; i-- > 0;) {
      sn_access access = access_at(route, s->steps[n], i);
      s->ends[--a] = !s->wanted[access.tensor];
      s->wanted[access.tensor] = access.mode != SN_WRITE;
    }
  for (int pass = 0; pass < 2; pass++, a = 0) /* the second: as it goes on from there */
    for (uint32_t n = 0; n < s->n_steps; n++) {
      uint32_t first = s->steps[n], accesses = route->steps[first].n_accesses;
      for (uint32_t i = 0; i < accesses; i++) {
        uint32_t t = access_at(route, first, i).tensor;
        if (s->live[t] || t == apart[0] || t == apart[1] || (pass == 0 && !s->wanted[t])) continue;
        s->live[t] = true;
        load += bytes_of(s, t);
      }
      most = sn_max(most, load);
      for (uint32_t i = 0; pass == 1 && i < accesses; i++) {
        uint32_t t = access_at(route, first, i).tensor;
        if (!s->ends[a++] || !s->live[t]) continue;
        s->live[t] = false;
        load -= bytes_of(s, t);
      }
    }
  for (uint32_t n = 0; n < s->n_steps; n++)
    for (uint32_t i = 0; i < route->steps[s->steps[n]].n_accesses; i++) {
      uint32_t t = access_at(route, s->steps[n], i).tensor;
      s->live[t] = s->wanted[t] = false;
    }
  s->n_steps = 0;
  return most;
}

/* Wants what the backward steps of a stage read of what it has made itself; and its output, if it is to be. Returns the
 * bytes of all that. */
static uint64_t want_kept(scan *s, const sn_stage *stage, bool output) {
  uint64_t bytes = 0;
  if (output && stage->output != SN_NONE) {
    s->wanted[stage->output] = true;
    bytes += bytes_of(s, stage->output);
  }
  for (uint32_t k = stage->first_backward; k < stage->end_backward; k++)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses; i++) {
      sn_access access = access_at(s->route, k, i);
      uint32_t t = access.tensor;
      uint32_t maker = s->producer[t];
      bool own = maker != SN_NONE && maker >= stage->first && maker < stage->end;
      if (access.mode == SN_WRITE || !own || t == stage->output) continue;
      if (!s->wanted[t]) bytes += bytes_of(s, t);
      s->wanted[t] = true;
    }
  return bytes;
}

/* Wants what later steps need of what the backward steps of a stage make or pass on. */
static void want_gradients(scan *s, const sn_stage *stage) {
  for (uint32_t k = stage->first_backward; k < stage->end_backward; k++)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses; i++) {
      uint32_t t = access_at(s->route, k, i).tensor;
      bool gradient = s->last_forward[t] == SN_NONE || access_at(s->route, k, i).mode != SN_READ;
      if (s->last_use[t] >= stage->end_backward && gradient) s->wanted[t] = true;
    }
}

static void forget(scan *s, uint32_t first, uint32_t end) {
  for (uint32_t k = first; k < end; k++)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses; i++) s->wanted[access_at(s->route, k, i).tensor] = false;
}

static void forget_wanted(scan *s, const sn_stage *stage) {
  forget(s, stage->first, stage->end);
  forget(s, stage->first_backward, stage->end_backward);
}

/* ---- backward with what it runs again ---- */

/* A step of the list that is made up, and what is done of it. */
typedef struct ordering {
  const sn_stages *all;
  const sn_stage *stage;
  const bool *chosen;
  bool *done;      /* per forward step */
  uint32_t *steps; /* the list from the front, a stack from the end */
  uint32_t n, room;
} ordering;

/* A chosen step that is not done and makes what `step` reads; SN_NONE: there is none. */
static uint32_t find_maker(const ordering *o, uint32_t step) {
  const sn_route *route = o->all->route;
  for (uint32_t i = 0; i < route->steps[step].n_accesses; i++) {
    sn_access access = access_at(route, step, i);
    uint32_t k = access.mode == SN_WRITE ? SN_NONE : o->all->producer[access.tensor];
    if (k != SN_NONE && k >= o->stage->first && k < o->stage->end && o->chosen[k] && !o->done[k] && k != step) return k;
  }
  return SN_NONE;
}

/* Those that make what a backward step reads, each behind those that make what it reads itself. */
static void add_makers(ordering *o, uint32_t backward) {
  uint32_t top = o->room;
  o->steps[--top] = backward;
  while (top < o->room) {
    uint32_t step = o->steps[top], maker = find_maker(o, step);
    if (maker != SN_NONE) {
      o->steps[--top] = maker;
      continue;
    }
    top++;
    if (step == backward) return;
    o->done[step] = true;
    o->steps[o->n++] = step;
  }
}

/* Steps of a stage in the order in which they run: backward, and what is chosen to run again; how many. `steps` has
 * room for twice those of the stage, `done` is false for all. Where tensors are changed in place all that is chosen
 * comes first. */
static uint32_t order_backward(const sn_stages *all, const sn_stage *stage, const bool *chosen, bool *done,
                               uint32_t *steps) {
  bool in_place = all->route->dialect->in_place;
  ordering o = {.all = all, .stage = stage, .chosen = chosen, .done = done, .steps = steps};
  o.room = 2 * (stage->end - stage->first + stage->end_backward - stage->first_backward);
  for (uint32_t k = stage->first; in_place && chosen && k < stage->end; k++)
    if (chosen[k]) steps[o.n++] = k;
  for (uint32_t k = stage->first_backward; k < stage->end_backward; k++) {
    if (chosen && !in_place) add_makers(&o, k);
    steps[o.n++] = k;
  }
  for (uint32_t k = stage->first; k < stage->end; k++) done[k] = false;
  return o.n;
}

/* Of backward and forward steps chosen to run again, from what they find on. */
static uint64_t backward_load(scan *s, const sn_stages *all, const sn_stage *stage, const bool *chosen) {
  const uint32_t apart[2] = {stage->input, SN_NONE};
  want_gradients(s, stage);
  s->n_steps = order_backward(all, stage, chosen, s->done, s->steps);
  uint64_t load = load_of(s, apart);
  forget_wanted(s, stage);
  return load;
}

/* ---- what runs again ---- */

static bool changes_wanted(const scan *s, uint32_t step) {
  for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
    sn_access access = access_at(s->route, step, i);
    if (access.mode != SN_READ && s->wanted[access.tensor]) return true;
  }
  return false;
}

static bool changes(const scan *s, uint32_t step, uint32_t tensor) {
  for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
    sn_access access = access_at(s->route, step, i);
    if (access.mode != SN_READ && access.tensor == tensor) return true;
  }
  return false;
}

static void want_operands(scan *s, const sn_stage *stage, uint32_t step) {
  for (uint32_t i = 0; i < s->route->steps[step].n_accesses; i++) {
    sn_access access = access_at(s->route, step, i);
    if (access.mode == SN_WRITE)
      s->wanted[access.tensor] = false;
    else if (access.tensor != stage->input && access.tensor != stage->output)
      s->wanted[access.tensor] = true;
  }
}

/* The forward steps that make what is wanted, which are all of the stage where they would change its output: that has
 * been passed through in place. `cheap`: only those of layers that are no checkpoints. */
static void choose_remakes(scan *s, const sn_stage *stage, bool cheap, bool *chosen) {
  bool all = false;
  for (uint32_t k = stage->end; k-- > stage->first;) {
    const sn_layer *layer = &s->route->layers[s->route->steps[k].layer];
    bool dear = cheap && sn_op_of(layer)->checkpoint;
    chosen[k] = !dear && changes_wanted(s, k);
    if (dear) continue;
    if (chosen[k] && stage->output != SN_NONE && changes(s, k, stage->output)) all = !cheap;
    if (chosen[k]) want_operands(s, stage, k);
  }
  for (uint32_t k = stage->first; all && k < stage->end; k++) chosen[k] = true;
}

/* Of what backward or the cheap steps read, what none of these makes, and the output. */
static uint64_t dear_bytes(scan *s, const sn_stage *stage, const bool *chosen) {
  uint64_t bytes = stage->output == SN_NONE ? 0 : bytes_of(s, stage->output);
  for (uint32_t k = stage->first; k < stage->end; k++)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses; i++) {
      sn_access access = access_at(s->route, k, i);
      if (chosen[k] || access.mode == SN_READ || !s->wanted[access.tensor] || access.tensor == stage->output) continue;
      bytes += bytes_of(s, access.tensor);
      s->wanted[access.tensor] = false;
    }
  return bytes;
}

/* ---- times ---- */

typedef struct timing {
  const sn_route *route;
  const sn_costs *costs;
  bool workspace;
} timing;

static uint8_t algorithm(const timing *c, uint32_t layer, sn_conv_kernel kernel) {
  uint32_t count;
  const sn_conv_choice *choices = sn_costs_conv(c->costs, layer, kernel, &count);
  return count == 0 ? SN_CONV_ALGOS : (uint8_t)choices[c->workspace ? 0 : count - 1].algo;
}

static int64_t step_ns(const timing *c, uint32_t index) {
  const sn_step *step = &c->route->steps[index];
  bool convolves = sn_op_of(&c->route->layers[step->layer])->convolves;
  uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
  if (!c->costs) return 0;
  if (convolves && step->pass == SN_FORWARD) algo[0] = algorithm(c, step->layer, SN_CONV_FORWARD);
  if (convolves && step->pass == SN_BACKWARD) {
    algo[0] = algorithm(c, step->layer, SN_CONV_BACKWARD_DATA);
    algo[1] = algorithm(c, step->layer, SN_CONV_BACKWARD_FILTER);
  }
  return sn_costs_of(c->costs, c->route, step, algo);
}

int64_t sn_stages_step_ns(const sn_route *route, const sn_costs *costs, bool workspace, uint32_t step) {
  const timing time = {route, costs, workspace};
  return step_ns(&time, step);
}

static int64_t time_of(const timing *c, uint32_t first, uint32_t end, const bool *chosen) {
  int64_t ns = 0;
  for (uint32_t k = first; k < end; k++)
    if (!chosen || chosen[k]) ns += step_ns(c, k);
  return ns;
}

/* ---- gradients that wait ---- */

/* All that are there when the backward steps of a stage begin; those that the stage does not touch wait beside it. */
static void add_gradients(scan *s, sn_stages *all) {
  const sn_route *route = s->route;
  uint64_t load = 0;
  for (uint32_t n = all->count; n-- > 0;) {
    sn_stage *stage = &all->stages[n];
    uint64_t touched = 0;
    stage->gradient_bytes = load;
    for (uint32_t k = stage->first_backward; k < stage->end_backward; k++)
      for (uint32_t i = 0; i < route->steps[k].n_accesses; i++) {
        sn_access access = access_at(route, k, i);
        uint32_t t = access.tensor;
        uint64_t bytes = bytes_of(s, t);
        if (s->live[t] && !s->wanted[t]) touched += bytes;
        if (!s->live[t] && access.mode != SN_READ) s->live[t] = true, load += bytes;
        if (s->live[t]) s->wanted[t] = true; /* it is touched */
        if (s->live[t] && s->last_use[t] == k) s->live[t] = false, load -= bytes;
      }
    forget_wanted(s, stage);
    for (uint32_t k = 0; k < stage->n_keepings; k++) stage->keeping[k].backward_load += stage->gradient_bytes - touched;
  }
}

/* ---- a stage ---- */

/* Whether steps do, or those of them that are chosen. */
static bool reads(const scan *s, uint32_t first, uint32_t end, const bool *chosen, uint32_t tensor) {
  for (uint32_t k = first; k < end; k++)
    for (uint32_t i = 0; i < s->route->steps[k].n_accesses && (!chosen || chosen[k]); i++) {
      sn_access access = access_at(s->route, k, i);
      if (access.tensor == tensor && access.mode != SN_WRITE) return true;
    }
  return false;
}

static bool backward_reads(const scan *s, const sn_stage *stage, uint32_t tensor) {
  return tensor != SN_NONE && reads(s, stage->first_backward, stage->end_backward, NULL, tensor);
}

/* Of all forward steps, with what is wanted behind them, and without `input`. */
static uint64_t forward_load(scan *s, const sn_stage *stage, uint32_t input) {
  const uint32_t apart[2] = {input, SN_NONE};
  for (uint32_t k = stage->first; k < stage->end; k++) s->steps[s->n_steps++] = k;
  uint64_t load = load_of(s, apart);
  forget_wanted(s, stage);
  return load;
}

static void measure_forward(scan *s, sn_stage *stage, const timing *time) {
  stage->forward_ns = time_of(time, stage->first, stage->end, NULL);
  stage->backward_ns = time_of(time, stage->first_backward, stage->end_backward, NULL);
  stage->output_bytes = stage->output == SN_NONE ? 0 : bytes_of(s, stage->output);
  stage->reads_output = backward_reads(s, stage, stage->output);
  stage->reads_input = backward_reads(s, stage, stage->input);
  stage->keeping[SN_KEEPS_ALL].bytes = want_kept(s, stage, true);
  stage->keep_load = forward_load(s, stage, stage->input);
  if (stage->output != SN_NONE) s->wanted[stage->output] = true;
  stage->drop_load = forward_load(s, stage, stage->input);
  if (stage->output != SN_NONE) s->wanted[stage->output] = true;
  stage->pass_load = forward_load(s, stage, SN_NONE);
}

/* What runs again for backward, and the load with it. */
static void measure_backward(scan *s, sn_stages *all, sn_stage *stage, const timing *time) {
  sn_keeping *k = stage->keeping;
  k[SN_KEEPS_ALL].backward_load = backward_load(s, all, stage, NULL);
  want_kept(s, stage, false);
  choose_remakes(s, stage, false, all->remakes);
  forget_wanted(s, stage);
  stage->needs_input = stage->reads_input || reads(s, stage->first, stage->end, all->remakes, stage->input);
  k[SN_KEEPS_INPUT].remake_ns = time_of(time, stage->first, stage->end, all->remakes);
  k[SN_KEEPS_INPUT].backward_load = backward_load(s, all, stage, all->remakes);
  stage->n_keepings = 2;
  if (all->route->dialect->in_place) return;
  want_kept(s, stage, false);
  choose_remakes(s, stage, true, all->remakes_cheap);
  k[SN_KEEPS_DEAR].bytes = dear_bytes(s, stage, all->remakes_cheap);
  forget_wanted(s, stage);
  k[SN_KEEPS_DEAR].remake_ns = time_of(time, stage->first, stage->end, all->remakes_cheap);
  k[SN_KEEPS_DEAR].backward_load = backward_load(s, all, stage, all->remakes_cheap);
  if (k[SN_KEEPS_DEAR].bytes < k[SN_KEEPS_ALL].bytes)
    stage->n_keepings++;
  else
    memset(all->remakes_cheap + stage->first, 0, (stage->end - stage->first) * sizeof *all->remakes_cheap);
}

/* ---- all of them ---- */

static bool scan_init(scan *s, const sn_route *route) {
  size_t tensors = (size_t)route->n_tensors + 1, steps = (size_t)route->n_steps + 1;
  *s = (scan){.route = route,
              .last_forward = malloc(tensors * sizeof *s->last_forward),
              .last_use = calloc(tensors, sizeof *s->last_use),
              .wanted = calloc(tensors, sizeof *s->wanted),
              .live = calloc(tensors, sizeof *s->live),
              .steps = calloc(2 * steps, sizeof *s->steps),
              .ends = calloc(2 * (size_t)route->n_accesses + 1, sizeof *s->ends),
              .done = calloc(steps, sizeof *s->done)};
  if (!s->last_forward || !s->last_use || !s->wanted || !s->live || !s->steps || !s->ends || !s->done) return false;
  memset(s->last_forward, 0xff, tensors * sizeof *s->last_forward);
  return true;
}

static void scan_clear(scan *s) {
  void *const parts[] = {s->last_forward, s->last_use, s->wanted, s->live, s->steps, s->ends, s->done};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

static bool make_room(sn_stages *all) {
  size_t steps = (size_t)all->route->first_backward + 1, tensors = (size_t)all->route->n_tensors + 1;
  all->stages = calloc(steps, sizeof *all->stages);
  all->remakes = calloc(steps, sizeof *all->remakes);
  all->remakes_cheap = calloc(steps, sizeof *all->remakes_cheap);
  all->producer = malloc(tensors * sizeof *all->producer);
  if (!all->stages || !all->remakes || !all->remakes_cheap || !all->producer) return false;
  memset(all->producer, 0xff, tensors * sizeof *all->producer);
  return true;
}

sn_stages *sn_stages_new(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err) {
  sn_stages *all = calloc(1, sizeof *all);
  bool *cut = calloc((size_t)route->first_backward + 1, sizeof *cut);
  const timing time = {route, costs, workspace};
  scan s;
  bool good = scan_init(&s, route) && all && cut;
  if (all) all->route = route;
  if (good && make_room(all)) {
    s.producer = all->producer;
    find_uses(&s, all->producer);
    find_cuts(&s, all->producer, cut);
    cut_stages(all, &s, cut);
    for (uint32_t i = 0; i < all->count; i++) measure_forward(&s, &all->stages[i], &time);
    for (uint32_t i = 0; i < all->count; i++) measure_backward(&s, all, &all->stages[i], &time);
    add_gradients(&s, all);
  } else {
    sn_fail_memory(err);
  }
  scan_clear(&s);
  free(cut);
  if (err->code == SN_OK) return all;
  sn_stages_free(all);
  return NULL;
}

void sn_stages_free(sn_stages *stages) {
  if (!stages) return;
  free(stages->stages);
  free(stages->remakes);
  free(stages->remakes_cheap);
  free(stages->producer);
  free(stages);
}

/* ---- from stages to a schedule ---- */

sn_run_list *sn_run_list_new(const sn_stages *stages, sn_err *err) {
  sn_run_list *l = calloc(1, sizeof *l);
  size_t steps = stages->route->n_steps;
  if (l) {
    *l = (sn_run_list){.stages = stages,
                       .room = 2 * stages->route->n_steps,
                       .executions = malloc(2 * steps * sizeof *l->executions),
                       .steps = calloc(2 * steps + 2, sizeof *l->steps),
                       .done = calloc(steps + 1, sizeof *l->done)};
    if (l->executions && l->steps && l->done) return l;
    free(l->executions);
    free(l->steps);
    free(l->done);
  }
  free(l);
  sn_fail_memory(err);
  return NULL;
}

static void add(sn_run_list *l, uint32_t step, bool rerun) {
  if (l->failed || l->count == SN_MAX_EXECUTIONS) {
    l->failed = true;
    return;
  }
  if (l->count == l->room) {
    sn_execution *more = realloc(l->executions, 2 * (size_t)l->room * sizeof *more);
    if (!more) l->failed = true;
    if (!more) return;
    l->executions = more;
    l->room *= 2;
  }
  l->executions[l->count++] = (sn_execution){.step = step, .rerun = rerun};
}

void sn_run_list_add(sn_run_list *l, uint32_t stage, sn_run run) {
  const sn_stage *s = &l->stages->stages[stage];
  const bool *chosen = run == SN_RUN_REMAKE  ? l->stages->remakes
                       : run == SN_RUN_CHEAP ? l->stages->remakes_cheap
                                             : NULL;
  if (run == SN_RUN_FORWARD || run == SN_RUN_AGAIN) {
    for (uint32_t k = s->first; k < s->end; k++) add(l, k, run == SN_RUN_AGAIN);
    return;
  }
  uint32_t n = order_backward(l->stages, s, chosen, l->done, l->steps);
  for (uint32_t i = 0; i < n; i++) add(l, l->steps[i], l->steps[i] < l->stages->route->first_backward);
}

sn_schedule *sn_run_list_end(sn_run_list *l, sn_err *err) {
  const sn_route *route = l->stages->route;
  sn_schedule *schedule = NULL;
  for (uint32_t k = route->first_update; k < route->n_steps; k++) add(l, k, false);
  for (uint32_t e = l->count, at = SN_NONE; e-- > 0;) {
    if (!l->executions[e].rerun) at = l->executions[e].step;
    l->executions[e].at_step = at;
  }
  if (l->failed)
    sn_fail_memory(err);
  else
    schedule = sn_schedule_of(route, l->executions, l->count, err);
  if (l->failed) free(l->executions);
  free(l->steps);
  free(l->done);
  free(l);
  return schedule;
}
