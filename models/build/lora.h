/* LoRA: adapters of low rank beside FCs that are not trained (Hu et al., ICLR 2022), as Hugging Face's peft 0.21 puts
 * them into a network:
 *
 *      x ----> q (frozen) ---------------------------------> q.lora_add ---->       y = q(x) + slope B(A(x))
 *         '--> q.lora_A (rank) --> q.lora_B --> q.lora_scale --^
 *
 * A [rank x inputs] and B [outputs x rank] have no bias; the product is scaled by alpha / rank with peft's alpha of 8,
 * and added into a new value. With dropout A reads what a DROPOUT of its own leaves of x; peft's default is none. They
 * have the precision of all parameters (peft's autocast_adapter_dtype=False). All else is frozen, unless --freeze says
 * what is (sim/graph/freeze.h).
 *
 * With nf4 (QLoRA, Dettmers et al., NeurIPS 2023, as bitsandbytes has it) the weights of every FC but the adapters' and
 * the network's output have 4 bits, and for each 64 of them a scale of 8 bits, for each 256 of which one of 32, beside
 * a table of 16 numbers: 4.127 bits a weight. Each product that reads one makes it anew in the width it computes in.
 */
#ifndef SN_MODELS_BUILD_LORA_H
#define SN_MODELS_BUILD_LORA_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN_LORA_TEXT = 120 }; /* bytes of rank and globs as they are written, at most */

typedef struct sn_lora {
  uint32_t rank;     /* from 1 */
  double dropout;    /* of what the adapters read; 0: none */
  bool nf4;          /* the weights of FCs that are not trained have 4 bits */
  const char *globs; /* names of FCs (models/net/globs.h); "": every FC but those whose output is the network's */
} sn_lora;

/* Bytes that a layer of so many weights keeps in NF4 with double quantisation, by bitsandbytes 0.50.2 (functional.py,
 * quantize_4bit() and quantize_blockwise()): the weights, a byte of scale for each 64, a float for each 256 of these,
 * their mean, and tables of its own: 16 floats of the weights and 256 of the scales, which are copied for every layer. */
uint64_t sn_nf4_bytes(uint64_t weights);

/* "8", "8:*q_proj,*v_proj", "8,nf4,dropout=0.05:*proj" (a ; may stand for a comma in front of the colon, as lists of
 * networks have commas); the globs are of `text`. SN_BAD_USAGE. */
sn_status sn_lora_parse(const char *text, sn_lora *lora, sn_err *err);

/* What of `lora` is written with 4-bit weights, "16:*proj" as "16;nf4:*proj", into `text`; returns it. */
char *sn_lora_with_nf4(const char *lora, char *text, size_t room);

/* Whether adapters go beside FCs that are named only: a network with EXPERTS, beside which peft's "all-linear" puts
 * some, too, and makes their weights anew for it. */
bool sn_lora_wants_names(const sn_net *net);

/* A network with adapters, called "net+lora=8"; `net` stays as it is. SN_BAD_USAGE where there is no such FC, where the
 * rank is beyond the lesser side of one, or where limits are passed. */
sn_net *sn_lora_apply(const sn_net *net, const sn_lora *lora, sn_err *err);

#endif
