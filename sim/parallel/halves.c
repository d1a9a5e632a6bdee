/* Backward in two; see the header. */
#include "sim/parallel/halves.h"

#include <stdlib.h>

/* What is copied into a parameter's width, or added to its gradient, is of weights, too; so steps are looked at from the
 * last one on. */
static void judge(const sn_route *w, uint32_t s, sn__halves *h) {
  const sn_step *step = &w->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = w->accesses[step->first_access + i];
    sn_role role = w->tensors[access.tensor].role;
    if (role == SN_PARAMETER_GRADIENT) h->of_weights[access.tensor] = true;
    if (access.mode == SN_READ || (role == SN_SCRATCH && !h->of_weights[access.tensor])) continue;
    *(h->of_weights[access.tensor] ? &h->weights[s] : &h->inputs[s]) = true;
  }
  if (!h->weights[s]) h->inputs[s] = true;
  if (h->inputs[s] || !sn_step_follows(step)) return;
  for (uint32_t i = 0; i < step->n_accesses; i++) h->of_weights[w->accesses[step->first_access + i].tensor] = true;
}

sn_status sn__halves_find(const sn_route *w, sn__halves *h, sn_err *err) {
  *h = (sn__halves){.inputs = calloc((size_t)w->n_steps + 1, sizeof(bool)),
                    .weights = calloc((size_t)w->n_steps + 1, sizeof(bool)),
                    .of_weights = calloc((size_t)w->n_tensors + 1, sizeof(bool))};
  if (!h->inputs || !h->weights || !h->of_weights) return sn_fail_memory(err);
  for (uint32_t s = w->first_update; s-- > w->first_backward;) judge(w, s, h);
  return SN_OK;
}

void sn__halves_clear(sn__halves *h) {
  free(h->inputs);
  free(h->weights);
  free(h->of_weights);
  *h = (sn__halves){0};
}

bool sn__halves_touch(const sn__halves *h, sn__half half, uint32_t step, sn_access access) {
  if (half == SN__ALL || !sn__halves_cut(h, step) || access.mode == SN_READ) return true;
  return h->of_weights[access.tensor] == (half == SN__OF_WEIGHTS);
}

bool sn__halves_go_early(const sn_route *w, const sn_step *step, uint32_t tensor) {
  const sn_layer *layer = &w->layers[step->layer];
  const sn_tensor *t = &w->tensors[tensor];
  if (layer->op == SN_RMS_NORM && !layer->attr->fused)
    return t->role == SN_SAVED && t->bytes >= w->tensors[w->output[layer->first_output]].bytes;
  return layer->op == SN_FC || layer->op == SN_CONV || layer->op == SN_DECONV;
}

uint64_t sn__halves_norm_bytes(const sn_route *w, uint32_t step) {
  const sn_step *s = &w->steps[step];
  const sn_layer *layer = &w->layers[s->layer];
  uint64_t all = 0, dx = 0;
  if (layer->op != SN_RMS_NORM || layer->attr->fused || s->kernel == SN_TRANSFER) return 0;
  for (uint32_t i = s->first_access; i < s->first_access + s->n_accesses; i++) {
    const sn_tensor *t = &w->tensors[w->accesses[i].tensor];
    if (w->accesses[i].mode != SN_WRITE || t->role == SN_PARAMETER_GRADIENT) continue;
    if (t->role == SN_GRADIENT) dx = t->bytes;
    all += t->bytes;
  }
  return all < 5 * dx ? 5 * dx - all : 0;
}
