/* Halves (internal to sim/parallel/): backward in two, of inputs and of weights, as schedules of pipelines without bubbles
 * have it (Qi et al., ICLR 2024; PyTorch 2.15, torch/distributed/pipelining/_backward.py).
 *
 *   step of the whole                            with inputs        with weights
 *   an activation's, a sum's                     all of it
 *   a product's, of x and dy: dx and dw          makes dx           makes dw
 *   an embedding's, what makes dw alone                             all of it
 *
 * What the second half reads stays until then: x and dy of every product, and with them the graph that they are in. So a
 * sum of gradients is a tensor of its own where one of those it is made of is left for later (sim/parallel/stage.c). */
#ifndef SN_SIM_PARALLEL_HALVES_H
#define SN_SIM_PARALLEL_HALVES_H

#include "base/err.h"
#include "sim/graph/route.h"

typedef enum sn__half { SN__ALL, SN__OF_INPUTS, SN__OF_WEIGHTS } sn__half;

typedef struct sn__halves {
  bool *inputs, *weights; /* per step: it has something to do with that half; both of what is cut */
  bool *of_weights;       /* per tensor: the gradient of a parameter, or what is copied into one */
} sn__halves;

/* To be cleared in any case. O(accesses). */
sn_status sn__halves_find(const sn_route *whole, sn__halves *halves, sn_err *err);
void sn__halves_clear(sn__halves *halves);

static inline bool sn__halves_cut(const sn__halves *h, uint32_t step) {
  return h->inputs[step] && h->weights[step];
}
/* Whether a step takes part, and with an access: what it makes is made by its half, and both read what it reads. */
static inline bool sn__halves_run(const sn__halves *h, sn__half half, uint32_t step) {
  return half == SN__ALL || (half == SN__OF_INPUTS ? h->inputs : h->weights)[step];
}
bool sn__halves_touch(const sn__halves *halves, sn__half half, uint32_t step, sn_access access);
/* What goes with the second half's step that has read it: what products read, and what norms have made of their inputs. */
bool sn__halves_go_early(const sn_route *whole, const sn_step *step, uint32_t tensor);
/* A norm of simple operations has five tensors at once where what it reads stays, its dx among them: with one beside it is
 * at its fullest where some of those are gone. How many bytes a first half's step lacks to those five;
 * tp's collectives of what arrives at a norm lack none. */
uint64_t sn__halves_norm_bytes(const sn_route *whole, uint32_t step);

#endif
