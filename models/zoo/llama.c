/* Llama and what is built as it is, as Hugging Face's transformers has them (version 5), attention by the fused kernel:
 * Llama 2 (Touvron et al., 2023), Llama 3 (2024), Mistral (Jiang et al., 2023), Qwen2.5 (2024), Phi-3 (Abdin et al.,
 * 2024), Gemma 2 (2024) and Mixtral (Jiang et al., 2024). `image` is the length of the sequences; Mistral's, Phi-3's
 * and Gemma's windows are as long as they are, as Mistral's is from its version 0.2 on and that of Phi-3's 128k, and
 * Gemma's keep no less when shorter.
 *
 *   x + attention(norm(x)) with rotated queries and keys, then x + down(silu(gate(x)) up(x))
 *
 * Gemma's attention is of simple operations, as transformers has it where scores are capped: keys and values are copied
 * for every head of queries. Its halves of a block end with a norm, its gate is a GELU and its tokens are multiplied.
 *
 * Of Mixtral's experts two see each token, by grouped products (transformers' experts_implementation "grouped_mm"):
 * each token is copied for either, and what is kept does not depend on who gets which. The router's whole numbers, some
 * 100 bytes a token and layer, are not counted.
 *
 * They are trained to name each next token. Names are the modules' paths; what has no module there is
 * "layers.0.self_attn.sdpa", "layers.0.add1". Parameters are counted as transformers counts them.
 */
#include "models/zoo/zoo_internal.h"

#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(sizes) (sizeof(sizes) / sizeof(sizes)[0])

/* Layers, hidden features, heads, heads of keys and values, features between the FCs, words, and of a head. Table 1 of
 * Llama 2's paper; the others' config.json. */
static const sn__decoder_size llama[] = {{"7b", {32, 4096, 32, 32, 11008, 32000}, false},
                                         {"13b", {40, 5120, 40, 40, 13824, 32000}, false},
                                         {"70b", {80, 8192, 64, 8, 28672, 32000}, false}};
static const sn__decoder_size llama3[] = {{"8b", {32, 4096, 32, 8, 14336, 128256}, false},
                                          {"70b", {80, 8192, 64, 8, 28672, 128256}, false},
                                          {"1b", {16, 2048, 32, 8, 8192, 128256}, true},
                                          {"3b", {28, 3072, 24, 8, 8192, 128256}, true}};
static const sn__decoder_size mistral[] = {{"7b", {32, 4096, 32, 8, 14336, 32768}, false},
                                           {"7b-v0.2", {32, 4096, 32, 8, 14336, 32000}, false}};
static const sn__decoder_size qwen25[] = {
    {"7b", {28, 3584, 28, 4, 18944, 152064}, false},  {"0.5b", {24, 896, 14, 2, 4864, 151936}, true},
    {"1.5b", {28, 1536, 12, 2, 8960, 151936}, true},  {"3b", {36, 2048, 16, 2, 11008, 151936}, true},
    {"14b", {48, 5120, 40, 8, 13824, 152064}, false}, {"32b", {64, 5120, 40, 8, 27648, 152064}, false},
    {"72b", {80, 8192, 64, 8, 29568, 152064}, false}};
static const sn__decoder_size phi3[] = {{"mini", {32, 3072, 32, 32, 8192, 32064}, false},
                                        {"medium", {40, 5120, 40, 10, 17920, 32064}, false}};
static const sn__decoder_size gemma2[] = {{"2b", {26, 2304, 8, 4, 9216, 256000, 256}, true},
                                          {"9b", {42, 3584, 16, 8, 14336, 256000, 256}, true},
                                          {"27b", {46, 4608, 32, 16, 36864, 256000, 128}, true}};
static const sn__decoder_size mixtral[] = {{"8x7b", {32, 4096, 32, 8, 14336, 32000}, false},
                                           {"8x22b", {56, 6144, 48, 8, 16384, 32768}, false}};

const sn__decoder sn__llama = {.sizes = llama, .n_sizes = COUNT(llama)},
                  sn__llama3 = {.sizes = llama3, .n_sizes = COUNT(llama3)},
                  sn__mistral = {.sizes = mistral, .n_sizes = COUNT(mistral)},
                  sn__qwen25 = {.sizes = qwen25, .n_sizes = COUNT(qwen25), .bias = true},
                  sn__phi3 = {.sizes = phi3, .n_sizes = COUNT(phi3), .joined = true},
                  sn__gemma2 = {.sizes = gemma2, .n_sizes = COUNT(gemma2), .gemma = true},
                  sn__mixtral = {.sizes = mixtral, .n_sizes = COUNT(mixtral), .experts = 8};

/* Gemma 2's caps of scores and of logits. */
static const double score_cap = 50, logit_cap = 30;

/* Of a layer's experts, those that a token goes through. */
enum { CHOSEN = 2 };

/* What is being built. */
typedef struct decoder {
  uint32_t of[SN__DECODER_KEYS], tokens, experts;
  bool bias, gemma, tied;
  bool joined; /* queries are put together anew when they are turned, head by head, and so is what the fused kernel
                * makes of them, which the next FC reads position by position */
  sn_loss loss;
} decoder;

/* Some channels of what one FC makes, which are a view of it. */
static uint32_t part(sn_builder *b, uint32_t x, uint32_t first, uint32_t channels, const char *name, unsigned i) {
  char text[40];
  snprintf(text, sizeof text, name, i);
  const sn_attr attr = {.axis = SN_SIDE_CHANNELS, .first = first, .count = channels};
  return sn_build_layer(b, SN_SLICE, &attr, &x, 1, text);
}

static uint32_t project(sn_builder *b, uint32_t x, uint32_t channels, const decoder *net, unsigned i, char which) {
  if (net->bias) return sn_build_fc_positions(b, x, channels, "layers.%u.self_attn.%c_proj", i, which);
  return sn_build_linear(b, x, channels, 0, "layers.%u.self_attn.%c_proj", i, which);
}

/* Queries, keys and values. */
static void build_qkv(sn_builder *b, uint32_t x, const decoder *net, unsigned i, uint32_t qkv[3]) {
  const uint32_t q = net->of[SN__DECODER_HEAD] * net->of[SN__DECODER_HEADS];
  const uint32_t kv = net->of[SN__DECODER_HEAD] * net->of[SN__DECODER_KV_HEADS];
  if (net->joined) {
    x = sn_build_linear(b, x, q + 2 * kv, 0, "layers.%u.self_attn.qkv_proj", i);
    qkv[0] = part(b, x, 0, q, "layers.%u.self_attn.q", i);
    qkv[1] = part(b, x, q, kv, "layers.%u.self_attn.k", i);
    qkv[2] = part(b, x, q + kv, kv, "layers.%u.self_attn.v", i);
    return;
  }
  qkv[0] = project(b, x, q, net, i, 'q');
  qkv[1] = project(b, x, kv, net, i, 'k');
  qkv[2] = project(b, x, kv, net, i, 'v');
}

static uint32_t norm(sn_builder *b, uint32_t x, const decoder *net, const char *name, unsigned i) {
  char text[64];
  snprintf(text, sizeof text, name, i);
  return sn_build_layer(b, SN_RMS_NORM, &(sn_attr){.plus_one = net->gemma}, &x, 1, text);
}

/* Each head of keys or values as often as there are heads of queries that read it: copies, where that is not once. */
static uint32_t repeat(sn_builder *b, uint32_t x, const decoder *net, unsigned i, char which) {
  const uint32_t heads = net->of[SN__DECODER_HEADS], kv_heads = net->of[SN__DECODER_KV_HEADS];
  const uint32_t head = net->of[SN__DECODER_HEAD];
  if (heads == kv_heads) return x;
  char text[64];
  snprintf(text, sizeof text, "layers.%u.self_attn.%c_repeated", i, which);
  x = sn_build_reshape(b, x, 1, kv_heads, 0, "layers.%u.self_attn.%c_heads", i, which);
  x = sn_build_layer(b, SN_RESIZE, &(sn_attr){.shape = {0, heads, head * net->tokens}}, &x, 1, text);
  return sn_build_reshape(b, x, heads * head, net->tokens, 1, "layers.%u.self_attn.%c_all", i, which);
}

/* Scores are capped, which no fused kernel does. */
static uint32_t attend(sn_builder *b, uint32_t qkv[3], const decoder *net, unsigned i) {
  sn_attention attention = {
      .heads = net->of[SN__DECODER_HEADS], .kv_heads = net->of[SN__DECODER_KV_HEADS], .causal = true};
  if (net->gemma) {
    qkv[1] = repeat(b, qkv[1], net, i, 'k');
    qkv[2] = repeat(b, qkv[2], net, i, 'v');
    attention.kv_heads = attention.heads;
    attention.parts = true;
    attention.cap = score_cap;
  }
  return sn_build_attention(b, qkv, 3, attention, "layers.%u.self_attn.sdpa", i);
}

/* act(gate(x)) up(x) */
static uint32_t build_gated(sn_builder *b, uint32_t x, const decoder *net, unsigned i) {
  const uint32_t ffn = net->of[SN__DECODER_FFN];
  const sn_act act = {.mode = net->gemma ? SN_ACT_GELU : SN_ACT_SILU};
  uint32_t gate, up;
  if (net->joined) {
    x = sn_build_linear(b, x, 2 * ffn, 0, "layers.%u.mlp.gate_up_proj", i);
    gate = part(b, x, 0, ffn, "layers.%u.mlp.gate", i);
    up = part(b, x, ffn, ffn, "layers.%u.mlp.up", i);
    gate = sn_build_act(b, gate, act, "layers.%u.mlp.activation_fn", i);
  } else {
    gate = sn_build_linear(b, x, ffn, 0, "layers.%u.mlp.gate_proj", i);
    gate = sn_build_act(b, gate, act, "layers.%u.mlp.act_fn", i);
    up = sn_build_linear(b, x, ffn, 0, "layers.%u.mlp.up_proj", i);
  }
  return sn_build_mul(b, gate, up, "layers.%u.mlp.mul", i);
}

static uint32_t experts(sn_builder *b, uint32_t x, const decoder *net, uint32_t channels, const char *name,
                        unsigned i) {
  char text[64];
  snprintf(text, sizeof text, name, i);
  const sn_attr attr = {.channels = channels, .experts = net->experts, .chosen = CHOSEN};
  return sn_build_layer(b, SN_EXPERTS, &attr, &x, 1, text);
}

/* The weight of each chosen expert, in a row of its own. */
static uint32_t build_router(sn_builder *b, uint32_t x, const decoder *net, unsigned i) {
  char text[64];
  snprintf(text, sizeof text, "layers.%u.mlp.gate", i);
  x = sn_build_layer(b, SN_FC, &(sn_attr){.channels = net->experts, .positions = true, .router = true}, &x, 1, text);
  snprintf(text, sizeof text, "layers.%u.mlp.gate.softmax", i);
  x = sn_build_layer(b, SN_PROBABILITIES, &(sn_attr){.axis = SN_SIDE_CHANNELS}, &x, 1, text);
  x = part(b, x, 0, CHOSEN, "layers.%u.mlp.gate.top", i);
  return sn_build_reshape(b, x, CHOSEN, 1, net->tokens, "layers.%u.mlp.gate.weights", i);
}

/* The sum of what the chosen experts make, weighted: down(silu(gate(x)) up(x)) of each. */
static uint32_t build_experts(sn_builder *b, uint32_t x, const decoder *net, unsigned i) {
  const uint32_t hidden = net->of[SN__DECODER_HIDDEN], ffn = net->of[SN__DECODER_FFN];
  const uint32_t weights = build_router(b, x, net, i);
  uint32_t parts[CHOSEN] = {x, x};
  x = sn_build_concat(b, parts, CHOSEN, "layers.%u.mlp.experts.selected", i);
  x = experts(b, x, net, 2 * ffn, "layers.%u.mlp.experts.gate_up_proj", i);
  uint32_t gate = part(b, x, 0, CHOSEN * ffn, "layers.%u.mlp.experts.gate", i);
  uint32_t up = part(b, x, CHOSEN * ffn, CHOSEN * ffn, "layers.%u.mlp.experts.up", i);
  gate = sn_build_act(b, gate, (sn_act){.mode = SN_ACT_SILU}, "layers.%u.mlp.experts.act_fn", i);
  x = sn_build_mul(b, gate, up, "layers.%u.mlp.experts.mul", i);
  x = experts(b, x, net, hidden, "layers.%u.mlp.experts.down_proj", i);
  x = sn_build_reshape(b, x, CHOSEN, hidden, net->tokens, "layers.%u.mlp.experts.made", i);
  x = sn_build_mul(b, x, weights, "layers.%u.mlp.experts.weighted", i);
  x = sn_build_reshape(b, x, CHOSEN * hidden, net->tokens, 1, "layers.%u.mlp.experts.both", i);
  parts[0] = part(b, x, 0, hidden, "layers.%u.mlp.experts.first", i);
  parts[1] = part(b, x, hidden, hidden, "layers.%u.mlp.experts.second", i);
  x = sn_build_join(b, parts, CHOSEN, "layers.%u.mlp.experts.sum", i);
  return sn_build_inplace(b, x, SN_INPLACE_NO);
}

static uint32_t build_mlp(sn_builder *b, uint32_t x, const decoder *net, unsigned i) {
  if (net->experts > 0) return build_experts(b, x, net, i);
  x = build_gated(b, x, net, i);
  return sn_build_linear(b, x, net->of[SN__DECODER_HIDDEN], 0, "layers.%u.mlp.down_proj", i);
}

static uint32_t block(sn_builder *b, uint32_t x, const decoder *net, unsigned i) {
  const uint32_t hidden = net->of[SN__DECODER_HIDDEN];
  uint32_t y = norm(b, x, net, "layers.%u.input_layernorm", i), qkv[3];
  build_qkv(b, y, net, i, qkv);
  qkv[0] = sn_build_rotary(b, qkv[0], net->of[SN__DECODER_HEADS], "layers.%u.self_attn.q_rotary", i);
  qkv[1] = sn_build_rotary(b, qkv[1], net->of[SN__DECODER_KV_HEADS], "layers.%u.self_attn.k_rotary", i);
  y = attend(b, qkv, net, i);
  if (net->joined) y = sn_build_concat(b, &y, 1, "layers.%u.self_attn.contiguous", i);
  y = sn_build_linear(b, y, hidden, 0, "layers.%u.self_attn.o_proj", i);
  if (net->gemma) y = norm(b, y, net, "layers.%u.post_attention_layernorm", i);
  x = sn__transformer_add(b, x, y, "layers", i, 1);
  y = norm(b, x, net, net->gemma ? "layers.%u.pre_feedforward_layernorm" : "layers.%u.post_attention_layernorm", i);
  y = build_mlp(b, y, net, i);
  if (net->gemma) y = norm(b, y, net, "layers.%u.post_feedforward_layernorm", i);
  return sn__transformer_add(b, x, y, "layers", i, 2);
}

static uint32_t times(sn_builder *b, uint32_t x, double factor, const char *name) {
  return sn_build_act(b, x, (sn_act){.mode = SN_ACT_TIMES, .slope = factor}, "%s", name);
}

/* cap tanh(x / cap) */
static uint32_t cap_logits(sn_builder *b, uint32_t x) {
  x = times(b, x, 1 / logit_cap, "logits.divided");
  x = sn_build_act(b, x, (sn_act){.mode = SN_ACT_TANH}, "logits.tanh");
  return times(b, x, logit_cap, "logits.capped");
}

/* "7b" stands for its parameters, and others may follow: "70b,layers=4". Returns what follows, or NULL. */
static const char *take_size(const sn__decoder *family, const char *parameters, decoder *net) {
  size_t length = parameters ? strcspn(parameters, ",") : 0;
  uint32_t found = 0;
  while (parameters && found < family->n_sizes &&
         (strlen(family->sizes[found].name) != length || strncmp(family->sizes[found].name, parameters, length) != 0))
    found++;
  const sn__decoder_size *size = &family->sizes[parameters && found < family->n_sizes ? found : 0];
  memcpy(net->of, size->of, sizeof net->of);
  net->tied = size->tied;
  net->bias = family->bias;
  net->joined = family->joined;
  net->gemma = family->gemma;
  net->experts = family->experts;
  if (!parameters || found == family->n_sizes) return parameters;
  return parameters[length] ? parameters + length + 1 : NULL;
}

static sn_status fail_size(const sn_zoo_entry *entry, const char *parameters, sn_err *err) {
  const sn__decoder *family = entry->config;
  char sizes[SN_NET_NAME] = "";
  for (uint32_t i = 0, used = 0; i < family->n_sizes && used < sizeof sizes; i++)
    used += (uint32_t)snprintf(sizes + used, sizeof sizes - used, "%s%s", i ? ", " : "", family->sizes[i].name);
  return sn_fail(err, SN_BAD_USAGE, "network \"%s:%.80s\": there is no size \"%.*s\"; there are %s", entry->name,
                 parameters, (int)sn_min(strcspn(parameters, ","), 40), parameters, sizes);
}

/* Of a size's parameters, those that are given in their place; heads share no keys unless they did or it is said. */
static sn_status read(const sn_zoo_entry *entry, const char *parameters, decoder *net, sn_err *err) {
  static const char *const names[SN__DECODER_KEYS] = {"layers", "hidden",     "heads", "kv_heads",
                                                      "ffn",    "vocabulary", "head"};
  const sn__zoo_keys keys = {.names = names, .count = SN__DECODER_KEYS, .high = 1000000, .loss = &net->loss};
  uint32_t *of = net->of, *kv_heads = &of[SN__DECODER_KV_HEADS], *head = &of[SN__DECODER_HEAD];
  const char *others = take_size(entry->config, parameters, net);
  if (others && others == parameters && !memchr(others, '=', strcspn(others, ",")))
    return fail_size(entry, parameters, err);
  if (*kv_heads == of[SN__DECODER_HEADS]) *kv_heads = 0;
  if (sn__zoo_parameters(entry, others, &keys, of, err) != SN_OK) return err->code;
  if (*kv_heads == 0) *kv_heads = of[SN__DECODER_HEADS];
  if (*head == 0 && of[SN__DECODER_HIDDEN] % of[SN__DECODER_HEADS] == 0)
    *head = of[SN__DECODER_HIDDEN] / of[SN__DECODER_HEADS];
  return SN_OK;
}

static sn_status check(const sn_zoo_entry *entry, const uint32_t *of, sn_err *err) {
  if (of[SN__DECODER_HEAD] == 0)
    return sn_fail(err, SN_BAD_USAGE, "%s: heads must divide hidden, and %" PRIu32 " do not divide %" PRIu32,
                   entry->name, of[SN__DECODER_HEADS], of[SN__DECODER_HIDDEN]);
  if (of[SN__DECODER_HEADS] % of[SN__DECODER_KV_HEADS] != 0)
    return sn_fail(err, SN_BAD_USAGE, "%s: kv_heads must divide heads, and %" PRIu32 " do not divide %" PRIu32,
                   entry->name, of[SN__DECODER_KV_HEADS], of[SN__DECODER_HEADS]);
  return SN_OK;
}

sn_net *sn__zoo_llama(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  decoder net = {.tokens = image, .loss = SN_LOSS_CROSS_ENTROPY_FP32};
  if (read(entry, parameters, &net, err) != SN_OK || check(entry, net.of, err) != SN_OK) return NULL;
  char name[SN_NET_NAME];
  sn_builder *b = sn_builder_new_tokens(sn__zoo_full_name(entry, parameters, name), batch, image, err);
  sn_builder_of_transformers(b);
  uint32_t table = sn_build_embedding(b, net.of[SN__DECODER_VOCABULARY], net.of[SN__DECODER_HIDDEN], "embed_tokens");
  uint32_t x = net.gemma ? times(b, table, sqrt(net.of[SN__DECODER_HIDDEN]), "embed_tokens.scaled") : table;
  for (unsigned i = 0; i < net.of[SN__DECODER_LAYERS]; i++) x = block(b, x, &net, i);
  x = norm(b, x, &net, "norm", 0);
  x = sn_build_linear(b, x, net.of[SN__DECODER_VOCABULARY], net.tied ? table : 0, "lm_head");
  if (net.gemma) x = cap_logits(b, x);
  sn_build_loss_positions(b, x, net.loss, "softmax");
  return sn_builder_finish(b, NULL, err);
}
