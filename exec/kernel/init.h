/* What weights are before the first iteration. With f, the inputs of an output of a CONV, DECONV or FC:
 *
 *   small-end  as he, but the last CONV or FC ahead of each SOFTMAX a tenth of it: nothing is more likely than anything
 *              else yet, and the first loss is near ln(classes)
 *   he         mean 0 and variance 2 / f, nearly normal (He et al. 2015); biases 0
 *   pytorch    PyTorch's defaults: weights and biases evenly from -1 / sqrt(f) to 1 / sqrt(f)
 *
 * Everywhere norms have gamma 1 and beta 0, SCALE has 1, slopes of PReLU are 0.25, tables of EMBEDDING, POSITION and
 * TOKEN have deviation 0.02 as GPT-2's, and BN has running mean 0 and running variance 1. Layer i draws from stream i
 * of the seed.
 */
#ifndef SN_EXEC_KERNEL_INIT_H
#define SN_EXEC_KERNEL_INIT_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdint.h>

typedef enum sn_init { SN_INIT_SMALL_END, SN_INIT_HE, SN_INIT_PYTORCH, SN_INITS } sn_init;

/* Parsing an unknown name is SN_BAD_USAGE, with all of them. */
sn_status sn_init_parse(const char *text, sn_init *init, sn_err *err);

/* Writes the parameters of layer `index`, a CONV, DECONV or FC. */
void sn_init_draw(const sn_net *net, uint32_t index, sn_init init, uint64_t seed, float *parameters);

#endif
