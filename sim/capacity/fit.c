/* Fit; see the header. The search itself is sim/capacity/fit_find.c; here are the knobs, the networks and planners that the
 * strategies share, and what is found out about an answer: one simulation at it, one look at what stops the next. */
#include "sim/capacity/fit.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/text.h"
#include "models/record/record_net.h"
#include "models/zoo/zoo.h"
#include "sim/device/device.h"
#include "sim/graph/dialect.h"
#include "sim/plan/plan.h"
#include "sim/stages/staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Networks kept, by number and by layers in all (a planner of 10^5 layers has 100 MB). Then what bounds a scan: layers
 * planned and networks for each strategy, and networks where they grow. */
enum { SITES = 64, KEPT_LAYERS = 250000, SCANNED_LAYERS = 500000, MOST_SCANNED = 4096, DEEPER_SCANNED = 64 };

/* ---- knobs ---- */

static const char *const knob_names[SN_KNOB_COUNT] = {"batch", "depth", "image", "sequence"};

const char *sn_knob_name(sn_knob_kind kind) {
  return knob_names[kind];
}

sn_status sn_knob_parse(const char *what, const char *text, sn_knob_kind *kind, sn_err *err) {
  char hint[80];
  for (int i = 0; i < SN_KNOB_COUNT; i++)
    if (strcmp(text, knob_names[i]) == 0) {
      *kind = (sn_knob_kind)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of batch, depth, image, sequence%s", what, text,
                 sn_text_suggest(text, knob_names, SN_KNOB_COUNT, hint, sizeof hint));
}

static sn_net *make_batch(const void *user, uint32_t value, sn_err *err) {
  const sn_knob_spec *spec = user;
  if (spec->like && spec->like->recorded) return sn_net_rebatch(spec->like, value, err);
  return sn_net_load(spec->net, value, spec->image, err);
}

static sn_net *make_depth(const void *user, uint32_t value, sn_err *err) {
  const sn_knob_spec *spec = user;
  return sn_net_load_depth(spec->net, value, spec->batch, spec->image, err);
}

static sn_net *make_size(const void *user, uint32_t value, sn_err *err) {
  const sn_knob_spec *spec = user;
  return sn_net_load(spec->net, spec->batch, value, err);
}

/* Is there a net at all; what stands in the way goes to `reason`. SN_NO_MEMORY and the like are errors. */
static sn_status probe(const sn_knob *knob, uint32_t value, bool *there, sn_err *reason) {
  sn_net *net = knob->make(knob->user, value, reason);
  *there = net;
  sn_net_free(net);
  return net || reason->code == SN_BAD_USAGE || reason->code == SN_BAD_INPUT ? SN_OK : reason->code;
}

static sn_status probe_or_fail(const sn_knob *knob, uint32_t value, bool *there, sn_err *err) {
  sn_err reason = SN_ERR_INIT;
  return probe(knob, value, there, &reason) == SN_OK ? SN_OK : sn_fail(err, reason.code, "%s", reason.text);
}

/* Patches, windows and what is halved again and again have to fill an image: the distance from the network's own size
 * to the nearest other one for which there is a network. Steps that are looked at: the small ones, and the divisors of
 * its size. Without any it has this size alone. */
static sn_status find_step(sn_knob *knob, uint32_t own, sn_err *err) {
  enum { SMALL = 64 };
  bool there = false;
  for (uint32_t step = 1; step <= SN_MAX_DIM && !there && step <= sn_max(own, SMALL); step++) {
    knob->step = step;
    if (step > SMALL && own % step != 0) continue;
    if (step < own && probe_or_fail(knob, own - step, &there, err) != SN_OK) return err->code;
    if (!there && own + step <= SN_MAX_DIM && probe_or_fail(knob, own + step, &there, err) != SN_OK) return err->code;
  }
  if (there) return SN_OK;
  knob->step = 1;
  knob->low = knob->high = own;
  return SN_OK;
}

/* Windows and strides do not fit into images that are too small: bisection between nothing and the network's own size,
 * in steps. */
static sn_status find_least_size(sn_knob *knob, uint32_t own, sn_err *err) {
  uint32_t good = 0, bad = own / knob->step + (own % knob->step > 0); /* steps below its own size */
  while (bad - good > 1) {
    uint32_t middle = good + (bad - good) / 2;
    bool there;
    if (probe_or_fail(knob, own - middle * knob->step, &there, err) != SN_OK) return err->code;
    *(there ? &good : &bad) = middle;
  }
  knob->low = own - good * knob->step;
  return SN_OK;
}

static sn_status open_size(const sn_knob_spec *spec, sn_knob *knob, sn_err *err) {
  sn_net *own = sn_net_load(spec->net, spec->batch, 0, err);
  if (!own) return err->code;
  uint32_t size = sn_layer_rows(&own->layers[0]);
  bool tokens = own->values[0].dtype == SN_I64;
  sn_net_free(own);
  if (tokens != (spec->kind == SN_KNOB_SEQUENCE))
    return sn_fail(err, SN_BAD_USAGE, "%.80s reads %s; ask for the largest with --max %s", spec->net,
                   tokens ? "sequences of tokens" : "images", knob_names[tokens ? SN_KNOB_SEQUENCE : SN_KNOB_IMAGE]);
  own = knob->make(spec, size, err); /* a file's images may not be square */
  sn_net_free(own);
  if (!own || find_step(knob, size, err) != SN_OK) return err->code;
  return knob->high == size ? SN_OK : find_least_size(knob, size, err);
}

/* A recording may be of one batch alone. */
static sn_status open_recorded(const sn_knob_spec *spec, sn_knob *knob, sn_err *err) {
  sn_net *read = spec->like ? NULL : sn_net_load(spec->net, 0, spec->image, err);
  const sn_net *net = spec->like ? spec->like : read;
  uint32_t only = net ? sn_recorded_batch(net) : 0;
  if (only > 0) knob->low = knob->high = only;
  sn_net_free(read);
  return net ? SN_OK : err->code;
}

sn_status sn_knob_open(const sn_knob_spec *spec, sn_knob *knob, sn_err *err) {
  static sn_net *(*const makers[SN_KNOB_COUNT])(const void *user, uint32_t value,
                                                sn_err *err) = {make_batch, make_depth, make_size, make_size};
  *knob = (sn_knob){.low = 1,
                    .high = SN_MAX_DIM,
                    .step = 1,
                    .grows = spec->kind == SN_KNOB_DEPTH,
                    .scales = spec->kind == SN_KNOB_BATCH,
                    .make = makers[spec->kind],
                    .turn = spec->kind == SN_KNOB_BATCH && !sn_net_is_onnx(spec->net) ? sn_net_rebatch : NULL,
                    .user = spec};
  if (spec->kind == SN_KNOB_IMAGE || spec->kind == SN_KNOB_SEQUENCE) return open_size(spec, knob, err);
  if (spec->kind == SN_KNOB_BATCH && sn_net_is_recording(spec->net)) return open_recorded(spec, knob, err);
  sn_net *least = knob->make(spec, knob->low, err);
  sn_net_free(least);
  return least ? SN_OK : err->code;
}

static uint32_t step_of(const sn_knob *knob) {
  return knob->step ? knob->step : 1;
}

void sn_knob_keep_divided(sn_knob *knob, const sn_mesh *mesh) {
  uint32_t ranks = mesh->sequence_whole ? 1 : sn_mesh_size(mesh, SN_MESH_TP), low = knob->low, step = step_of(knob);
  for (uint32_t i = 0; i < ranks && low % ranks != 0 && knob->high - low >= step; i++) low += step;
  if (low % ranks != 0 || step > SN_MAX_DIM / ranks) return;
  knob->low = low;
  knob->step = step;
  while (knob->step % ranks != 0) knob->step += step;
}

sn_status sn_knob_keep_staged(sn_knob *knob, const sn_mesh *mesh, sn_err *err) {
  if (sn_mesh_size(mesh, SN_MESH_PP) <= 1) return SN_OK;
  for (;; knob->low += step_of(knob)) {
    sn_net *net = knob->make(knob->user, knob->low, err);
    if (net) sn_mesh_check_parts(net, mesh, err);
    sn_net_free(net);
    bool deeper = knob->grows && err->code == SN_BAD_INPUT && knob->high - knob->low >= step_of(knob);
    if (!deeper) return err->code;
    *err = (sn_err)SN_ERR_INIT;
  }
}

uint32_t sn_knob_next(const sn_knob *knob, uint32_t value) {
  return value ? value + step_of(knob) : knob->low;
}

/* ---- networks and planners, shared by the strategies ---- */

typedef struct site {
  uint32_t value; /* 0: empty */
  uint32_t layers;
  uint64_t used; /* when last */
  sn_net *net;
  sn_staged *planner;
} site;

/* What a value needs, by a strategy and all that are alike. */
typedef struct known_need {
  uint32_t value, group;
  sn_need need;
} known_need;

typedef struct fitter {
  const sn_knob *knob;
  const sn_device *device;
  sn_options options;
  sn_net *first;   /* the one that others are turned into; NULL: none */
  sn_staged *like; /* of that */
  site sites[SITES];
  uint64_t clock, kept_layers;
  uint32_t missing;          /* the smallest value known to have no network that can be tried; 0: none */
  sn_err reason;             /* why */
  sn_strategy strategy;      /* being fitted */
  const sn_fit_answer *twin; /* of one that is alike (sn_staged_alike()); NULL: there is none */
  uint32_t group;            /* of those that are alike */
  known_need *known;
  uint32_t n_known, known_room;
  uint32_t refused; /* the smallest value for which it is known to have no plan; 0: none */
  sn_err refusal;   /* why */
  sn_arena *arena;
} fitter;

/* Routes of stages have the steps of all micro-batches. */
static uint64_t weight_of(const fitter *f, uint32_t layers) {
  const sn_iteration iteration = f->options.iteration;
  bool staged = sn_mesh_size(&iteration.mesh, SN_MESH_PP) > 1;
  return (uint64_t)layers * (staged ? sn_iteration_batches(iteration) : 1);
}

static void drop(fitter *f, site *s) {
  f->kept_layers -= weight_of(f, s->layers);
  sn_staged_free(s->planner);
  sn_net_free(s->net);
  *s = (site){0};
}

static site *oldest(fitter *f, bool filled) {
  site *best = NULL;
  for (int i = 0; i < SITES; i++) {
    site *s = &f->sites[i];
    if ((!filled || s->value) && (!best || s->used < best->used)) best = s;
  }
  return best;
}

static bool is_refusal(const sn_err *reason) {
  return reason->code == SN_BAD_USAGE || reason->code == SN_BAD_INPUT;
}

/* What is wrong with a value is for `make` to say; *turned: nothing is. */
static sn_net *make_net(fitter *f, uint32_t value, bool *turned, sn_err *err) {
  const sn_knob *knob = f->knob;
  *turned = false;
  if (!knob->turn) return knob->make(knob->user, value, err);
  if (!f->first) f->first = knob->make(knob->user, value, err);
  sn_net *net = f->first ? knob->turn(f->first, value, err) : NULL;
  *turned = net != NULL;
  if (net || !f->first || !is_refusal(err)) return net;
  *err = (sn_err)SN_ERR_INIT;
  return knob->make(knob->user, value, err);
}

static sn_staged *make_planner(fitter *f, const sn_net *net, bool turned, sn_err *err) {
  bool like = turned && sn_mesh_size(&f->options.iteration.mesh, SN_MESH_PP) == 1;
  if (like && !f->like) f->like = sn_staged_new(NULL, f->first, f->device, &f->options, err);
  return like && !f->like ? NULL : sn_staged_new(f->like, net, f->device, &f->options, err);
}

#define TOO_MANY "%u layers: more than %u are not tried"

/* Fills an empty site. What cannot be built, or is too large to try, is `missing` and no error, but for the least. */
static sn_status fill(fitter *f, site *s, uint32_t value, sn_err *err) {
  sn_err reason = SN_ERR_INIT;
  bool turned;
  s->net = make_net(f, value, &turned, &reason);
  if (s->net && s->net->n_layers > SN_FIT_MOST_LAYERS)
    sn_fail(&reason, SN_BAD_USAGE, TOO_MANY, s->net->n_layers, SN_FIT_MOST_LAYERS);
  if (reason.code == SN_OK) s->planner = make_planner(f, s->net, turned, &reason);
  s->value = value;
  s->used = ++f->clock;
  s->layers = s->net ? s->net->n_layers : 0;
  f->kept_layers += weight_of(f, s->layers);
  if (reason.code == SN_OK) return SN_OK;
  drop(f, s);
  if (!is_refusal(&reason) || value == f->knob->low) return sn_fail(err, reason.code, "%s", reason.text);
  f->missing = value;
  f->reason = reason;
  return SN_OK;
}

/* The site of a value; NULL without an error where there is no such network. */
static site *visit(fitter *f, uint32_t value, sn_err *err) {
  if (f->missing && value >= f->missing) return NULL;
  for (int i = 0; i < SITES; i++)
    if (f->sites[i].value == value) {
      f->sites[i].used = ++f->clock;
      return &f->sites[i];
    }
  while (f->kept_layers > KEPT_LAYERS) drop(f, oldest(f, true));
  site *s = oldest(f, false);
  drop(f, s);
  return fill(f, s, value, err) == SN_OK && s->value ? s : NULL;
}

/* What a value needs, and with `binding` why. A network that is not there, and one for which the strategy has no plan
 * (recomputation of a chain that is too long), fit nowhere; *why_not says which. */
static sn_status ask(fitter *f, uint32_t value, sn_need *need, sn_binding *binding, const char **why_not, sn_err *err) {
  sn_err reason = SN_ERR_INIT;
  uint64_t memory = f->device->memory_bytes;
  *need = (sn_need){.slack_bytes = INT64_MIN};
  *why_not = f->refusal.text;
  if (f->refused && value >= f->refused) return SN_OK;
  if (binding && f->twin && f->twin->has_next && sn_knob_next(f->knob, f->twin->search.value) == value) {
    *binding = f->twin->binding;
    *need = binding->need;
    *why_not = NULL;
    return SN_OK;
  }
  const site *s = visit(f, value, err);
  *why_not = s ? NULL : f->reason.text;
  if (!s) return err->code;
  sn_status status = binding ? sn_staged_binding(s->planner, f->strategy, memory, f->arena, binding, &reason)
                             : sn_staged_fits(s->planner, f->strategy, memory, need, &reason);
  if (status == SN_OK && binding) *need = binding->need;
  if (status == SN_OK) return err->code;
  if (!is_refusal(&reason)) return sn_fail(err, reason.code, "%s", reason.text);
  *need = (sn_need){.slack_bytes = INT64_MIN}; /* stages before the one that is refused may fit */
  f->refused = value;
  f->refusal = reason;
  *why_not = f->refusal.text;
  return SN_OK;
}

/* The search counts steps: the values there are, one behind the other, which are the values themselves where every one
 * is. */
static uint32_t first_count(const sn_knob *knob) {
  return (uint32_t)sn_max(knob->low / step_of(knob), 1);
}

static uint32_t value_at(const sn_knob *knob, uint32_t count) {
  int64_t value = (int64_t)knob->low + ((int64_t)count - first_count(knob)) * step_of(knob);
  return value > 0 ? (uint32_t)value : 0; /* 0: ahead of the first */
}

static const sn_need *known_of(const fitter *f, uint32_t value) {
  for (uint32_t i = 0; i < f->n_known; i++)
    if (f->known[i].value == value && f->known[i].group == f->group) return &f->known[i].need;
  return NULL;
}

static sn_status remember(fitter *f, uint32_t value, sn_need need, sn_err *err) {
  if (f->n_known == f->known_room) {
    uint32_t room = f->known_room ? 2 * f->known_room : 64;
    known_need *more = realloc(f->known, room * sizeof *more);
    if (!more) return sn_fail_memory(err);
    f->known = more;
    f->known_room = room;
  }
  f->known[f->n_known++] = (known_need){value, f->group, need};
  return SN_OK;
}

static sn_status measure(void *user, uint32_t count, sn_need *need, sn_err *err) {
  fitter *f = user;
  const char *why_not;
  uint32_t value = value_at(f->knob, count);
  const sn_need *known = f->twin ? known_of(f, value) : NULL;
  if (known) *need = *known;
  if (known) return SN_OK;
  sn_status status = ask(f, value, need, NULL, &why_not, err);
  return status == SN_OK ? remember(f, value, *need, err) : status;
}

/* Whether bytes, times or luck have a say in what a strategy keeps. */
static bool is_weighing(sn_strategy s) {
  bool plain = s.recompute <= SN_RECOMPUTE_MEMORY || s.recompute == SN_RECOMPUTE_LAYERS ||
               s.recompute == SN_RECOMPUTE_UNITS || s.recompute == SN_RECOMPUTE_SELECTIVE ||
               s.recompute == SN_RECOMPUTE_ATTENTION ||
               s.offload == SN_OFFLOAD_CACHE; /* it is asked its largest step */
  return !plain || sn_strategy_is_corun(s) || sn_dialect_of(s.dialect)->by_kernel;
}

static bool is_host_limited(const fitter *f) {
  return f->device->host_memory_bytes > 0 && f->options.external == SN_EXTERNAL_HOST;
}

static sn_status search_values(fitter *f, uint32_t most, sn_fit_search *found, sn_err *err) {
  const sn_knob *knob = f->knob;
  uint32_t high = f->missing ? f->missing - 1 : knob->high, first = first_count(knob);
  const sn_fit_range range = {.low = first,
                              .high = first + (high - knob->low) / step_of(knob),
                              .most_tried = most,
                              .falls = knob->scales && !is_weighing(f->strategy) && !is_host_limited(f)};
  if (sn_fit_find(&range, measure, f, found, err) != SN_OK) return err->code;
  uint32_t *const counts[] = {&found->value, &found->tried_from, &found->tried_to, &found->misfit};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (*counts[i]) *counts[i] = value_at(knob, *counts[i]);
  return SN_OK;
}

/* ---- answers ---- */

static sn_status look_at_value(fitter *f, sn_fit_answer *a, sn_err *err) {
  sn_result *result = sn_arena_alloc(f->arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(err);
  if (f->twin && f->twin->result && f->twin->search.value == a->search.value) {
    char name[SN_STRATEGY_TEXT];
    *result = *f->twin->result;
    result->strategy = sn_arena_text(f->arena, sn_strategy_name(a->strategy, name));
    a->result = result;
    return result->strategy ? SN_OK : sn_fail_memory(err);
  }
  const site *s = visit(f, a->search.value, err);
  if (!s) return sn_fail(err, SN_BUG, "the network of value %u is gone", a->search.value);
  a->result = result;
  return sn_staged_result(s->planner, a->strategy, f->device->memory_bytes, f->arena, result, err);
}

/* What keeps the next value from fitting. */
static sn_status look_at_next(fitter *f, sn_fit_answer *a, sn_need *need, sn_err *err) {
  uint32_t value = sn_knob_next(f->knob, a->search.value);
  const bool alone = f->knob->scales && f->knob->low == f->knob->high;
  const char *why = alone ? "it was recorded at this one alone" : "it is the largest there is";
  if (value <= f->knob->high && ask(f, value, need, &a->binding, &why, err) != SN_OK) return err->code;
  if (why) {
    a->end = sn_arena_text(f->arena, why);
    a->search.tried_to = a->search.value;
    if (value <= f->knob->high) a->search.proved = false;
    return a->end ? SN_OK : sn_fail_memory(err);
  }
  a->has_next = true;
  a->next_device_bytes = need->device_bytes;
  a->next_host_bytes = need->host_bytes;
  if (need->guessed) a->search.proved = false;
  return SN_OK;
}

/* Where networks grow they grow evenly: three small ones tell at which value they become too large to try, so that the
 * search need not plan its way there. */
static sn_status find_end(fitter *f, const site *least, sn_err *err) {
  uint64_t layers[3] = {least->layers, 0, 0};
  for (uint32_t i = 1; i < 3 && f->knob->high - f->knob->low >= i; i++) {
    sn_err reason = SN_ERR_INIT;
    sn_net *net = f->knob->make(f->knob->user, f->knob->low + i, &reason);
    if (net) layers[i] = net->n_layers;
    sn_net_free(net);
    if (!net) return is_refusal(&reason) ? SN_OK : sn_fail(err, reason.code, "%s", reason.text);
  }
  uint64_t more = layers[1] > layers[0] ? layers[1] - layers[0] : 0;
  if (more == 0 || layers[2] != layers[1] + more || layers[0] > SN_FIT_MOST_LAYERS) return SN_OK;
  uint64_t steps = (SN_FIT_MOST_LAYERS - layers[0]) / more + 1;
  if (steps > f->knob->high - f->knob->low) return SN_OK;
  f->missing = f->knob->low + (uint32_t)steps;
  sn_fail(&f->reason, SN_BAD_USAGE, TOO_MANY, (unsigned)(layers[0] + steps * more), SN_FIT_MOST_LAYERS);
  return SN_OK;
}

/* The first of the answers before this one whose strategy is alike: all values that it has asked about are known. */
static sn_status find_twin(fitter *f, const sn_fit_answer *answers, uint32_t number, sn_err *err) {
  f->group = number;
  f->twin = NULL;
  for (uint32_t i = 0; i < number && f->knob->scales; i++) {
    sn_err reason = SN_ERR_INIT;
    bool alike = false;
    const site *least = visit(f, f->knob->low, err);
    if (!least) return err->code;
    sn_status status = sn_staged_alike(least->planner, answers[i].strategy, f->strategy, &alike, &reason);
    if (status != SN_OK && !is_refusal(&reason)) return sn_fail(err, reason.code, "%s", reason.text);
    if (!alike) continue;
    f->group = i;
    f->twin = &answers[i];
    return SN_OK;
  }
  return SN_OK;
}

static sn_status fit_one(fitter *f, const sn_fit_answer *answers, sn_fit_answer *a, uint32_t most, sn_err *err) {
  sn_need next = {.fits = false};
  f->strategy = a->strategy;
  f->refused = 0;
  if (find_twin(f, answers, (uint32_t)(a - answers), err) != SN_OK) return err->code;
  if (search_values(f, most, &a->search, err) != SN_OK) return err->code;
  if (a->search.value && look_at_value(f, a, err) != SN_OK) return err->code;
  if (look_at_next(f, a, &next, err) != SN_OK) return err->code;
  a->verified = (!a->result || a->result->fits) && !next.fits;
  return SN_OK;
}

static sn_status fit_all(fitter *f, const sn_strategy *strategies, sn_fit *fit, sn_err *err) {
  sn_fit_answer *answers = sn_arena_alloc(f->arena, fit->n_answers, sizeof *answers);
  if (!answers) return sn_fail_memory(err);
  const site *least = visit(f, f->knob->low, err);
  if (!least || (f->knob->grows && find_end(f, least, err) != SN_OK)) return err->code;
  uint32_t most = f->knob->grows
                      ? DEEPER_SCANNED
                      : (uint32_t)sn_min(SCANNED_LAYERS / sn_max(weight_of(f, least->layers), 1), MOST_SCANNED);
  for (uint32_t i = 0; i < fit->n_answers && err->code == SN_OK; i++) {
    answers[i].strategy = strategies[i];
    fit_one(f, answers, &answers[i], most, err);
  }
  fit->answers = answers;
  return err->code;
}

sn_fit *sn_fit_largest(const sn_knob *knob, const sn_device *device, const sn_strategy *strategies,
                       uint32_t n_strategies, const sn_options *options, sn_err *err) {
  fitter *f = calloc(1, sizeof *f);
  sn_arena *arena = sn_arena_new();
  sn_fit *fit = arena ? sn_arena_alloc(arena, 1, sizeof *fit) : NULL;
  if (f && fit) {
    *f = (fitter){.knob = knob, .device = device, .options = *options, .arena = arena};
    f->options.want_steps = f->options.want_tensors = f->options.want_peak = false;
    *fit = (sn_fit){.n_answers = n_strategies, .arena = arena};
    fit_all(f, strategies, fit, err);
    for (int i = 0; i < SITES; i++) drop(f, &f->sites[i]);
    free(f->known);
    sn_staged_free(f->like);
    sn_net_free(f->first);
  } else {
    sn_fail_memory(err);
  }
  free(f);
  if (err->code == SN_OK) return fit;
  sn_arena_free(arena);
  return NULL;
}

void sn_fit_free(sn_fit *fit) {
  if (fit) sn_arena_free(fit->arena);
}

const sn_fit_answer *sn_fit_best(const sn_fit *fit) {
  const sn_fit_answer *best = NULL;
  for (uint32_t i = 0; i < fit->n_answers; i++) {
    const sn_fit_answer *a = &fit->answers[i];
    bool better =
        a->result && (!best || a->search.value > best->search.value ||
                      (a->search.value == best->search.value && a->result->iteration_ns < best->result->iteration_ns));
    if (better) best = a;
  }
  return best;
}

/* ---- the least memory ---- */

static sn_status find_least(sn_staged *planner, sn_arena *arena, sn_memory_answer *a, sn_err *err) {
  sn_result *result = sn_arena_alloc(arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(err);
  if (sn_staged_least(planner, a->strategy, &a->memory_bytes, err) != SN_OK) return err->code;
  bool none = a->memory_bytes == 0;
  uint64_t below = none ? SN_MEMORY_ALL : a->memory_bytes - SN_POOL_BLOCK; /* a pool has a block at least */
  if (sn_staged_binding(planner, a->strategy, below, arena, &a->binding, err) != SN_OK ||
      sn_staged_result(planner, a->strategy, none ? SN_MEMORY_ALL : a->memory_bytes, arena, result, err) != SN_OK)
    return err->code;
  a->result = result;
  a->verified = result->fits != none && !a->binding.need.fits;
  return SN_OK;
}

static sn_memory *find_leasts(sn_staged *planner, const sn_strategy *strategies, uint32_t n, sn_arena *arena,
                              sn_err *err) {
  sn_memory *memory = sn_arena_alloc(arena, 1, sizeof *memory);
  sn_memory_answer *answers = sn_arena_alloc(arena, n, sizeof *answers);
  if (!memory || !answers) sn_fail_memory(err);
  for (uint32_t i = 0; i < n && err->code == SN_OK; i++) {
    answers[i].strategy = strategies[i];
    find_least(planner, arena, &answers[i], err);
  }
  if (err->code != SN_OK) return NULL;
  *memory = (sn_memory){.n_answers = n, .answers = answers, .arena = arena};
  return memory;
}

sn_memory *sn_fit_memory(const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                         uint32_t n_strategies, const sn_options *options, sn_err *err) {
  sn_options plain = *options;
  plain.pool_bytes = 0;
  plain.want_steps = plain.want_tensors = plain.want_peak = false;
  sn_arena *arena = sn_arena_new();
  sn_staged *planner = arena ? sn_staged_new(NULL, net, device, &plain, err) : NULL;
  if (!arena) sn_fail_memory(err);
  sn_memory *memory = planner ? find_leasts(planner, strategies, n_strategies, arena, err) : NULL;
  sn_staged_free(planner);
  if (!memory) sn_arena_free(arena);
  return memory;
}

void sn_memory_free(sn_memory *memory) {
  if (memory) sn_arena_free(memory->arena);
}

const sn_memory_answer *sn_memory_best(const sn_memory *memory) {
  const sn_memory_answer *best = memory->answers;
  for (uint32_t i = 1; i < memory->n_answers; i++) {
    const sn_memory_answer *a = &memory->answers[i];
    uint64_t bytes = a->memory_bytes - 1, least = best->memory_bytes - 1; /* what no memory is enough for comes last */
    if (bytes < least || (bytes == least && a->result->iteration_ns < best->result->iteration_ns)) best = a;
  }
  return best;
}
