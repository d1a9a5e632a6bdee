/* Parts of a pipeline; see the header. */
#include "sim/parallel/stage_parts.h"

#include "models/op/op.h"

#include <stdlib.h>
#include <string.h>

typedef struct finder {
  const sn_route *whole;
  sn__parts *parts;
  uint32_t *maker; /* per tensor: the part that has made it; SN_NONE: none yet */
  sn_err *err;
} finder;

static bool push(sn__list *l, uint32_t number, size_t most) {
  if (!l->all) l->all = calloc(most + 1, sizeof *l->all);
  if (!l->all) return false;
  if (l->n == 0 || l->all[l->n - 1] != number) l->all[l->n++] = number;
  return true;
}

static bool has(const sn__list *l, uint32_t number) {
  for (uint32_t i = 0; i < l->n; i++)
    if (l->all[i] == number) return true;
  return false;
}

/* What adds gradients belongs to those who made them. */
static void find_parts_of_steps(finder *f) {
  const sn_route *w = f->whole;
  uint32_t before = f->parts->n - 1;
  for (uint32_t s = 0; s < w->n_steps; s++) {
    const sn_step *step = &w->steps[s];
    bool follows = step->pass == SN_BACKWARD && sn_step_follows(step) && step->kernel != SN_CAST;
    before = f->parts->of_step[s] = follows ? before : f->parts->of_layer[step->layer];
  }
}

/* A tensor of part `from` that part `to` uses. */
static sn_status cross(finder *f, uint32_t tensor, uint32_t from, uint32_t to, size_t most) {
  const sn_tensor *t = &f->whole->tensors[tensor];
  bool forward = from < to;
  if (from + 1 != to && to + 1 != from)
    return sn_fail(f->err, SN_BAD_INPUT,
                   "%s is used %u parts of the pipeline away from where it is made, and stages send to the next alone; "
                   "ask for fewer stages, or for fsdp",
                   f->whole->layers[t->layer].name, from < to ? to - from : from - to);
  sn__list *handed = forward ? &f->parts->all[from].handed : &f->parts->all[from].handed_gradients;
  sn__list *given = forward ? &f->parts->all[to].given : &f->parts->all[to].given_gradients;
  if (has(handed, tensor)) return SN_OK;
  return push(handed, tensor, most) && push(given, tensor, most) ? SN_OK : sn_fail_memory(f->err);
}

/* What is received is a leaf that requires a gradient. */
static sn_status fail_in_place(const finder *f, uint32_t step) {
  return sn_fail(f->err, SN_BAD_INPUT,
                 "%s works in place on what its stage of the pipeline receives, which PyTorch refuses; ask for another "
                 "number of stages",
                 f->whole->layers[f->whole->steps[step].layer].name);
}

static sn_status find_crossings(finder *f) {
  const sn_route *w = f->whole;
  for (uint32_t s = 0; s < w->first_update && f->err->code == SN_OK; s++) {
    uint32_t p = f->parts->of_step[s];
    sn__list *steps = s < w->first_backward ? &f->parts->all[p].forward : &f->parts->all[p].backward;
    if (!push(steps, s, w->n_steps)) return sn_fail_memory(f->err);
    for (uint32_t i = 0; i < w->steps[s].n_accesses; i++) {
      sn_access access = w->accesses[w->steps[s].first_access + i];
      uint32_t *made_by = &f->maker[access.tensor];
      if (sn_tensor_is_weight_cast(&w->tensors[access.tensor])) continue; /* who has the weights */
      if (access.mode == SN_WRITE && *made_by == SN_NONE) *made_by = p;
      if (*made_by == p || *made_by == SN_NONE || access.held) continue;
      if (s < w->first_backward && access.mode == SN_MODIFY) return fail_in_place(f, s);
      cross(f, access.tensor, *made_by, p, w->n_tensors);
      if (s >= w->first_backward && w->tensors[access.tensor].role == SN_GRADIENT) *made_by = p; /* and hands it on */
    }
  }
  return f->err->code;
}

/* Tied weights would be on two GPUs. */
static sn_status check_ties(const finder *f) {
  const sn_route *w = f->whole;
  for (uint32_t l = 0; l < w->n_layers; l++) {
    uint32_t owner = w->layers[l].attr->weights_of;
    if (owner == 0 || f->parts->of_layer[owner] == f->parts->of_layer[l]) continue;
    return sn_fail(
        f->err, SN_BAD_INPUT,
        "%s takes the weights of %s, which another stage of the pipeline has; ask for fsdp, or for a network "
        "whose head has weights of its own",
        w->layers[l].name, w->layers[owner].name);
  }
  return SN_OK;
}

/* The last part's outputs, which losses are made of. */
static sn_status find_outputs(finder *f) {
  const sn_route *w = f->whole;
  for (uint32_t s = 0; s < w->first_backward; s++) {
    const sn_step *step = &w->steps[s];
    if (w->layers[step->layer].op != SN_SOFTMAX || f->parts->of_step[s] + 1 < f->parts->n) continue;
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = w->accesses[step->first_access + i];
      if (sn_tensor_is_weight_cast(&w->tensors[access.tensor])) continue;
      if (access.mode == SN_READ && !push(&f->parts->all[f->parts->n - 1].outputs, access.tensor, w->n_tensors))
        return sn_fail_memory(f->err);
    }
  }
  return SN_OK;
}

static sn_status find(finder *f, const sn_mesh *mesh) {
  const sn_route *w = f->whole;
  sn__parts *parts = f->parts;
  size_t makers = ((size_t)w->n_tensors + 1) * sizeof *f->maker;
  parts->of_layer = calloc((size_t)w->n_layers + 1, sizeof *parts->of_layer);
  parts->of_step = calloc((size_t)w->n_steps + 1, sizeof *parts->of_step);
  parts->all = calloc(parts->n, sizeof *parts->all);
  f->maker = malloc(makers);
  if (!parts->of_layer || !parts->of_step || !parts->all || !f->maker) return sn_fail_memory(f->err);
  memset(f->maker, 0xff, makers);
  if (sn_mesh_check_parts(w->net, mesh, f->err) != SN_OK) return f->err->code;
  sn_mesh_parts cut = sn_mesh_parts_of(w->net, mesh);
  for (uint32_t l = 0; l < w->n_layers; l++) parts->of_layer[l] = sn_mesh_part_next(&cut);
  if (check_ties(f) != SN_OK) return f->err->code;
  find_parts_of_steps(f);
  if (find_crossings(f) != SN_OK) return f->err->code;
  return find_outputs(f);
}

sn_status sn__parts_find(const sn_route *whole, const sn_mesh *mesh, sn__parts *parts, sn_err *err) {
  *parts = (sn__parts){.n = sn_mesh_size(mesh, SN_MESH_PP) * sn_mesh_chunks(mesh)};
  finder f = {.whole = whole, .parts = parts, .err = err};
  sn_status status = find(&f, mesh);
  free(f.maker);
  return status;
}

void sn__parts_clear(sn__parts *parts) {
  for (uint32_t p = 0; parts->all && p < parts->n; p++) {
    const sn__part *at = &parts->all[p];
    const sn__list *lists[] = {&at->forward, &at->backward,         &at->given,  &at->given_gradients,
                               &at->handed,  &at->handed_gradients, &at->outputs};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) free(lists[i]->all);
  }
  free(parts->of_layer);
  free(parts->of_step);
  free(parts->all);
  *parts = (sn__parts){0};
}

uint64_t sn__parts_updated(const sn__parts *parts, const sn_route *w, const sn_mesh *mesh, uint64_t *all) {
  sn_cut cuts[SN_PARAMETER_TENSORS];
  uint64_t own = 0;
  *all = 0;
  for (uint32_t l = 0; l < w->n_layers; l++) {
    if (w->weight_gradient[l] == SN_NONE || sn_mesh_updates_apart(mesh, w->net, &w->layers[l])) continue;
    uint32_t count = sn_cuts_of(w->net, &w->layers[l], sn_mesh_size(mesh, SN_MESH_TP), cuts);
    for (uint32_t n = 0; n < count; n++) {
      uint64_t elements = cuts[n].rows * cuts[n].each; /* of parameters, which were counted */
      *all += elements;
      own += parts->of_layer[l] % sn_mesh_size(mesh, SN_MESH_PP) == mesh->stage ? elements : 0;
    }
  }
  return own;
}
