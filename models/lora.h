/* LoRA: adapters of low rank beside FCs that are not trained (Hu et al., ICLR 2022), as Hugging Face's peft 0.21 puts
 * them into a network:
 *
 *      x ----> q (frozen) ---------------------------------> q.lora_add ---->       y = q(x) + slope B(A(x))
 *         '--> q.lora_A (rank) --> q.lora_B --> q.lora_scale --^
 *
 * A [rank x inputs] and B [outputs x rank] have no bias; the product is scaled by alpha / rank with peft's alpha of 8,
 * and added into a new value; there is no dropout, peft's default. They have the precision of all parameters (peft's
 * autocast_adapter_dtype=False). All else is frozen, unless --freeze says what is (sim/graph/freeze.h).
 */
#ifndef SN_MODELS_LORA_H
#define SN_MODELS_LORA_H

#include "base/err.h"
#include "models/net.h"

#include <stdint.h>

enum { SN_LORA_TEXT = 120 }; /* bytes of rank and globs as they are written, at most */

typedef struct sn_lora {
  uint32_t rank;     /* from 1 */
  const char *globs; /* names of FCs (models/globs.h); "": every FC but those whose output is the network's */
} sn_lora;

/* "8", "8:*q_proj,*v_proj"; the globs are of `text`. SN_BAD_USAGE. */
sn_status sn_lora_parse(const char *text, sn_lora *lora, sn_err *err);

/* A network with adapters, called "net+lora=8"; `net` stays as it is. SN_BAD_USAGE where there is no such FC, where the
 * rank is beyond the lesser side of one, or where limits are passed. */
sn_net *sn_lora_apply(const sn_net *net, const sn_lora *lora, sn_err *err);

#endif
