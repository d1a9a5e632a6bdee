/* T5 (Raffel et al., JMLR 2020) as Hugging Face's T5ForConditionalGeneration has it (transformers 5), attention in
 * parts: an encoder and a decoder of as many layers, both of `image` tokens, with one table for both and for the names
 * of the next tokens.
 *
 *   encoder   x + attention(norm(x)), then x + wo(relu(wi(norm(x))))
 *   decoder   the same with a causal attention, and one on what the encoder made between the two
 *
 * Distances of positions choose one of 32 biases a head; the first layer of each half has the table. The batch stands
 * for both halves' tokens. Names are the modules' paths; what has no module there is "encoder.block.0.layer.0.add".
 */
#include "models/zoo/zoo_internal.h"

enum { VOCABULARY = 32128, DISTANCES = 32 };
static const double dropped = 0.1;

static uint32_t add(sn_builder *b, uint32_t x, uint32_t y, const char *half, unsigned i, unsigned k) {
  y = sn_build_dropout(b, y, dropped, "%s.block.%u.layer.%u.dropout", half, i, k);
  x = sn_build_join(b, (const uint32_t[]){x, y}, 2, "%s.block.%u.layer.%u.add", half, i, k);
  return sn_build_inplace(b, x, SN_INPLACE_NO);
}

/* Queries of `x`, keys and values of `from`, or of the same where that is SN_NONE. */
static uint32_t attend(sn_builder *b, uint32_t x, uint32_t from, sn_attention attention, const char *half, unsigned i,
                       unsigned k) {
  const char *kind = from == SN_NONE ? "SelfAttention" : "EncDecAttention";
  uint32_t y = sn_build_rms_norm(b, x, "%s.block.%u.layer.%u.layer_norm", half, i, k), hidden = 64 * attention.heads;
  if (from == SN_NONE) from = y;
  uint32_t qkv[3];
  qkv[0] = sn_build_linear(b, y, hidden, 0, "%s.block.%u.layer.%u.%s.q", half, i, k, kind);
  qkv[1] = sn_build_linear(b, from, hidden, 0, "%s.block.%u.layer.%u.%s.k", half, i, k, kind);
  qkv[2] = sn_build_linear(b, from, hidden, 0, "%s.block.%u.layer.%u.%s.v", half, i, k, kind);
  y = sn_build_attention(b, qkv, 3, attention, "%s.block.%u.layer.%u.%s.sdpa", half, i, k, kind);
  y = sn_build_linear(b, y, hidden, 0, "%s.block.%u.layer.%u.%s.o", half, i, k, kind);
  return add(b, x, y, half, i, k);
}

static uint32_t feed_forward(sn_builder *b, uint32_t x, uint32_t hidden, const char *half, unsigned i, unsigned k) {
  uint32_t y = sn_build_rms_norm(b, x, "%s.block.%u.layer.%u.layer_norm", half, i, k);
  y = sn_build_linear(b, y, 4 * hidden, 0, "%s.block.%u.layer.%u.DenseReluDense.wi", half, i, k);
  y = sn_build_relu(b, y, "%s.block.%u.layer.%u.DenseReluDense.act", half, i, k);
  y = sn_build_inplace(b, y, SN_INPLACE_NO);
  y = sn_build_dropout(b, y, dropped, "%s.block.%u.layer.%u.DenseReluDense.dropout", half, i, k);
  y = sn_build_linear(b, y, hidden, 0, "%s.block.%u.layer.%u.DenseReluDense.wo", half, i, k);
  return add(b, x, y, half, i, k);
}

/* `seen`: what the encoder made; SN_NONE: this is the encoder. */
static uint32_t build_half(sn_builder *b, uint32_t x, uint32_t seen, const sn__transformer *net, const char *half) {
  bool decoder = seen != SN_NONE;
  x = sn_build_dropout(b, x, dropped, "%s.embed_dropout", half);
  for (unsigned i = 0; i < net->layers; i++) {
    sn_attention attention = {.heads = net->heads, .parts = true, .drop = dropped};
    attention.causal = decoder;
    attention.rows = i == 0 ? DISTANCES : 0;
    x = attend(b, x, SN_NONE, attention, half, i, 0);
    attention.causal = false;
    attention.rows = 0;
    if (decoder) x = attend(b, x, seen, attention, half, i, 1);
    x = feed_forward(b, x, net->hidden, half, i, decoder ? 2 : 1);
  }
  x = sn_build_rms_norm(b, x, "%s.final_layer_norm", half);
  return sn_build_dropout(b, x, dropped, "%s.dropout", half);
}

sn_net *sn__zoo_t5(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  const sn__transformer *net = entry->config;
  sn_builder *b = parameters ? sn__zoo_begin(entry, batch, 1, 1, parameters, err)
                             : sn_builder_new_tokens(entry->name, batch, image, err);
  sn_builder_of_transformers(b);
  uint32_t table = sn_build_embedding(b, VOCABULARY, net->hidden, "shared");
  uint32_t seen = build_half(b, table, SN_NONE, net, "encoder");
  uint32_t x = sn_build_embedding_of(b, table, "decoder.embed_tokens");
  x = build_half(b, x, seen, net, "decoder");
  x = sn_build_linear(b, x, VOCABULARY, table, "lm_head");
  sn_build_loss_positions(b, x, SN_LOSS_CROSS_ENTROPY, "softmax");
  return sn_builder_finish(b, NULL, err);
}
