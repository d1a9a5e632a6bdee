/* Transformers as Hugging Face's transformers has them (models/gpt2, bert; version 5), attention by the fused
 * kernel: GPT-2 (Radford et al., 2019) and BERT (Devlin et al., NAACL 2019); and ViT as torchvision has it
 * (Dosovitskiy et al., ICLR 2021). Llama and its like are in models/zoo/llama.c. `image` is the length of the sequences, of
 * ViT the side of the images.
 *
 *   GPT-2, ViT   x + attention(norm(x)), then x + fc2(gelu(fc1(norm(x))))
 *   BERT         norm(x + attention(x)), then norm(x + fc2(gelu(fc1(x))))
 *
 * GPT-2 is trained to name each next token by the table of its embedding. BERT is the body with its
 * pooler and no head: the loss is over the pooled features. Names are the modules' paths; what has no module there is
 * "h.0.attn.sdpa", "h.0.add1".
 */
#include "models/zoo/zoo_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t sn__transformer_add(sn_builder *b, uint32_t x, uint32_t y, const char *prefix, unsigned block, unsigned n) {
  x = sn_build_join(b, (const uint32_t[]){x, y}, 2, "%s.%u.add%u", prefix, block, n);
  return sn_build_inplace(b, x, SN_INPLACE_NO);
}

/* Sizes behind "name:", by these keys. `entries` are rows of the first table: words, of ViT classes; `places`
 * positions, of ViT the side of a patch. */
typedef struct sizes {
  uint32_t layers, hidden, heads, ffn, entries, places;
} sizes;
enum { SIZES = sizeof(sizes) / sizeof(uint32_t) };

/* Those of the entry, but for what the parameters say; between the two FCs of a block are 4 hidden features unless they
 * say something else. */
static sn_status read_sizes(const sn_zoo_entry *entry, const char *parameters, const char *const names[SIZES],
                            sizes *of, sn_loss *loss, sn_err *err) {
  const sn__transformer *own = entry->config;
  const sn__zoo_keys keys = {.names = names, .count = SIZES, .high = 1000000, .loss = loss};
  uint32_t values[SIZES] = {own->layers, own->hidden, own->heads, 0, of->entries, of->places};
  if (sn__zoo_parameters(entry, parameters, &keys, values, err) != SN_OK) return err->code;
  *of = (sizes){values[0], values[1], values[2], values[3] ? values[3] : 4 * values[1], values[4], values[5]};
  if (of->hidden % of->heads == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: heads must divide hidden, and %" PRIu32 " do not divide %" PRIu32, entry->name,
                 of->heads, of->hidden);
}

const char *sn__zoo_full_name(const sn_zoo_entry *entry, const char *parameters, char *name) {
  snprintf(name, SN_NET_NAME, "%s%s%s", entry->name, parameters ? ":" : "", parameters ? parameters : "");
  return name;
}

/* Of a network that reads tokens, which has a table of positions. */
static sn_builder *begin(const sn_zoo_entry *entry, uint32_t batch, uint32_t tokens, const char *parameters, sizes *of,
                         sn_loss *loss, sn_err *err) {
  static const char *const names[SIZES] = {"layers", "hidden", "heads", "ffn", "vocabulary", "positions"};
  char name[SN_NET_NAME];
  if (read_sizes(entry, parameters, names, of, loss, err) != SN_OK) return NULL;
  if (tokens <= of->places) {
    sn_builder *b = sn_builder_new_tokens(sn__zoo_full_name(entry, parameters, name), batch, tokens, err);
    if (entry->build != sn__zoo_megatron) sn_builder_of_transformers(b);
    return b;
  }
  sn_fail(err, SN_BAD_USAGE,
          "%s has positions for %" PRIu32 " tokens, not %" PRIu32
          "; a longer sequence takes another table, %s:positions=%" PRIu32,
          sn__zoo_full_name(entry, parameters, name), of->places, tokens, entry->name, tokens);
  return NULL;
}

/* -- GPT-2 -------------------------------------------------------------------------------------------------------- */

static uint32_t gpt2_block(sn_builder *b, uint32_t x, const sizes *net, unsigned i) {
  uint32_t y = sn_build_layer_norm(b, x, "h.%u.ln_1", i);
  y = sn_build_fc_positions(b, y, 3 * net->hidden, "h.%u.attn.c_attn", i);
  const sn_attention attention = {.heads = net->heads, .causal = true, .drop = 0.1};
  y = sn_build_attention(b, &y, 1, attention, "h.%u.attn.sdpa", i);
  y = sn_build_fc_positions(b, y, net->hidden, "h.%u.attn.c_proj", i);
  y = sn_build_dropout(b, y, 0.1, "h.%u.attn.resid_dropout", i);
  x = sn__transformer_add(b, y, x, "h", i, 1);
  y = sn_build_layer_norm(b, x, "h.%u.ln_2", i);
  y = sn_build_fc_positions(b, y, net->ffn, "h.%u.mlp.c_fc", i);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU_NEW}, "h.%u.mlp.act", i);
  y = sn_build_fc_positions(b, y, net->hidden, "h.%u.mlp.c_proj", i);
  y = sn_build_dropout(b, y, 0.1, "h.%u.mlp.dropout", i);
  return sn__transformer_add(b, x, y, "h", i, 2);
}

sn_net *sn__zoo_gpt2(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  sizes net = {.entries = 50257, .places = 1024};
  sn_loss loss = SN_LOSS_CROSS_ENTROPY_FP32;
  sn_builder *b = begin(entry, batch, image, parameters, &net, &loss, err);
  uint32_t table = sn_build_embedding(b, net.entries, net.hidden, "wte");
  uint32_t x = sn_build_position(b, table, net.places, "wpe");
  x = sn_build_dropout(b, x, 0.1, "drop");
  for (unsigned i = 0; i < net.layers; i++) x = gpt2_block(b, x, &net, i);
  x = sn_build_layer_norm(b, x, "ln_f");
  x = sn_build_linear(b, x, net.entries, table, "lm_head");
  sn_build_loss_positions(b, x, loss, "softmax");
  return sn_builder_finish(b, NULL, err);
}

/* -- Megatron-LM's GPT ---------------------------------------------------------------------------------------------- */

/* Queries, keys and values are parts of one product. Megatron-LM has each head's side by side, so that a rank of tensor
 * parallel has whole heads; here they lie one behind the other, which takes as much. */
static uint32_t megatron_attention(sn_builder *b, uint32_t x, const sizes *net, unsigned i) {
  uint32_t qkv[3];
  x = sn_build_fc_positions(b, x, 3 * net->hidden, "layers.%u.self_attention.query_key_value", i);
  for (uint32_t n = 0; n < 3; n++) {
    static const char *const names[] = {"query", "key", "value"};
    const sn_attr cut = {.axis = SN_SIDE_CHANNELS, .first = n * net->hidden, .count = net->hidden};
    char text[60];
    snprintf(text, sizeof text, "layers.%u.self_attention.%s", i, names[n]);
    qkv[n] = sn_build_layer(b, SN_SLICE, &cut, &x, 1, text);
  }
  const sn_attention core = {.heads = net->heads, .causal = true, .parts = true, .fused = true, .drop = 0.1};
  x = sn_build_attention(b, qkv, 3, core, "layers.%u.self_attention.core_attention", i);
  return sn_build_fc_positions(b, x, net->hidden, "layers.%u.self_attention.dense", i);
}

static uint32_t megatron_block(sn_builder *b, uint32_t x, const sizes *net, unsigned i) {
  uint32_t y = sn_build_layer_norm(b, x, "layers.%u.input_norm", i);
  y = megatron_attention(b, y, net, i);
  y = sn_build_dropout(b, y, 0.1, "layers.%u.self_attention.dropout", i);
  x = sn__transformer_add(b, x, y, "layers", i, 1);
  y = sn_build_layer_norm(b, x, "layers.%u.post_attention_norm", i);
  y = sn_build_fc_positions(b, y, net->ffn, "layers.%u.mlp.dense_h_to_4h", i);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU}, "layers.%u.mlp.gelu", i);
  y = sn_build_fc_positions(b, y, net->hidden, "layers.%u.mlp.dense_4h_to_h", i);
  y = sn_build_dropout(b, y, 0.1, "layers.%u.mlp.dropout", i);
  return sn__transformer_add(b, x, y, "layers", i, 2);
}

sn_net *sn__zoo_megatron(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                         sn_err *err) {
  sizes net = {.entries = 51200, .places = 2048};
  sn_loss loss = SN_LOSS_CROSS_ENTROPY_FP32;
  sn_builder *b = begin(entry, batch, image, parameters, &net, &loss, err);
  uint32_t x = sn_build_embedding(b, net.entries, net.hidden, "word_embeddings");
  x = sn_build_position(b, x, net.places, "position_embeddings");
  x = sn_build_dropout(b, x, 0.1, "embedding_dropout");
  for (unsigned i = 0; i < net.layers; i++) x = megatron_block(b, x, &net, i);
  x = sn_build_layer_norm(b, x, "final_norm");
  x = sn_build_linear(b, x, net.entries, 0, "output");
  sn_build_loss_positions(b, x, loss, "softmax");
  return sn_builder_finish(b, NULL, err);
}

/* -- BERT --------------------------------------------------------------------------------------------------------- */

static uint32_t bert_block(sn_builder *b, uint32_t x, const sizes *net, unsigned i) {
  uint32_t qkv[3];
  qkv[0] = sn_build_fc_positions(b, x, net->hidden, "encoder.layer.%u.attention.self.query", i);
  qkv[1] = sn_build_fc_positions(b, x, net->hidden, "encoder.layer.%u.attention.self.key", i);
  qkv[2] = sn_build_fc_positions(b, x, net->hidden, "encoder.layer.%u.attention.self.value", i);
  const sn_attention attention = {.heads = net->heads, .drop = 0.1};
  uint32_t y = sn_build_attention(b, qkv, 3, attention, "encoder.layer.%u.attention.self.sdpa", i);
  y = sn_build_fc_positions(b, y, net->hidden, "encoder.layer.%u.attention.output.dense", i);
  y = sn_build_dropout(b, y, 0.1, "encoder.layer.%u.attention.output.dropout", i);
  y = sn__transformer_add(b, y, x, "encoder.layer", i, 1);
  x = sn_build_layer_norm(b, y, "encoder.layer.%u.attention.output.LayerNorm", i);
  y = sn_build_fc_positions(b, x, net->ffn, "encoder.layer.%u.intermediate.dense", i);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU}, "encoder.layer.%u.intermediate.act", i);
  y = sn_build_fc_positions(b, y, net->hidden, "encoder.layer.%u.output.dense", i);
  y = sn_build_dropout(b, y, 0.1, "encoder.layer.%u.output.dropout", i);
  y = sn__transformer_add(b, y, x, "encoder.layer", i, 2);
  return sn_build_layer_norm(b, y, "encoder.layer.%u.output.LayerNorm", i);
}

sn_net *sn__zoo_bert(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  const uint32_t segments = 2;
  sizes net = {.entries = 30522, .places = 512};
  sn_builder *b = begin(entry, batch, image, parameters, &net, NULL, err);
  uint32_t x = sn_build_embedding(b, net.entries, net.hidden, "embeddings.word_embeddings");
  x = sn_build_position(b, x, segments, "embeddings.token_type_embeddings");
  x = sn_build_position(b, x, net.places, "embeddings.position_embeddings");
  x = sn_build_layer_norm(b, x, "embeddings.LayerNorm");
  x = sn_build_dropout(b, x, 0.1, "embeddings.dropout");
  for (unsigned i = 0; i < net.layers; i++) x = bert_block(b, x, &net, i);
  x = sn_build_take(b, x, "pooler.first");
  x = sn_build_fc(b, x, net.hidden, "pooler.dense");
  x = sn_build_act(b, x, (sn_act){.mode = SN_ACT_TANH}, "pooler.activation");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

/* -- ViT ---------------------------------------------------------------------------------------------------------- */

/* nn.MultiheadAttention lays its three projections out one behind the other: a copy. It reads positions ahead of the
 * batch, and so makes its output. */
static uint32_t vit_block(sn_builder *b, uint32_t x, const sizes *net, unsigned i) {
  uint32_t y = sn_build_layer_norm(b, x, "encoder.layers.%u.ln_1", i);
  y = sn_build_fc_positions(b, y, 3 * net->hidden, "encoder.layers.%u.self_attention.in_proj", i);
  y = sn_build_beside_attention(b, y, false);
  y = sn_build_concat(b, &y, 1, "encoder.layers.%u.self_attention.contiguous", i);
  y = sn_build_attention(b, &y, 1, (sn_attention){.heads = net->heads}, "encoder.layers.%u.self_attention.sdpa", i);
  y = sn_build_fc_positions(b, y, net->hidden, "encoder.layers.%u.self_attention.out_proj", i);
  y = sn_build_beside_attention(b, y, true);
  x = sn__transformer_add(b, y, x, "encoder.layers", i, 1);
  y = sn_build_layer_norm(b, x, "encoder.layers.%u.ln_2", i);
  y = sn_build_fc_positions(b, y, net->ffn, "encoder.layers.%u.mlp.0", i);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU}, "encoder.layers.%u.mlp.1", i);
  y = sn_build_fc_positions(b, y, net->hidden, "encoder.layers.%u.mlp.3", i);
  return sn__transformer_add(b, x, y, "encoder.layers", i, 2);
}

sn_net *sn__zoo_vit(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  static const char *const names[SIZES] = {"layers", "hidden", "heads", "ffn", "classes", "patch"};
  sizes net = {.entries = 1000, .places = 16};
  if (read_sizes(entry, parameters, names, &net, NULL, err) != SN_OK) return NULL;
  const uint32_t patch = net.places;
  char name[SN_NET_NAME];
  sn__zoo_full_name(entry, parameters, name);
  if (sn_image_is_oblong(image)) {
    sn_fail(err, SN_BAD_USAGE, "%s is for square images, as its positions are those of a square's patches", name);
    return NULL;
  }
  if (image % patch != 0) {
    sn_fail(err, SN_BAD_USAGE, "%s cuts images into patches of %" PRIu32 "x%" PRIu32 ", which do not fill %" PRIu32,
            name, patch, patch, image);
    return NULL;
  }
  sn_builder *b = sn_builder_new(name, batch, 3, image, image, err);
  const sn_conv patches = {.channels = net.hidden, .kernel = patch, .stride = patch};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, patches, "conv_proj");
  x = sn_build_token(b, x, "class_token");
  x = sn_build_position(b, x, (image / patch) * (image / patch) + 1, "encoder.pos_embedding");
  for (unsigned i = 0; i < net.layers; i++) x = vit_block(b, x, &net, i);
  x = sn_build_layer_norm(b, x, "encoder.ln");
  x = sn_build_take(b, x, "first");
  x = sn_build_fc(b, x, net.entries, "heads.head");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
