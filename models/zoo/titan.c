/* Llama as torchtitan writes it: llm:LAYERS,D,HEADS,KV,FFN,WORDS, "llm:4,512,8,8,1408,1024". `image` is the length of
 * the sequences.
 *
 *   x + attention(norm(x)), then x + w2(silu(w1(x)) w3(x)); at the end norm and output, which has a table of its own
 *
 * It is the network of measurements with several GPUs, with all sizes in its name. Two things are different from `llama`,
 * which is transformers': queries and keys are not rotated, and where several heads of queries read one of keys, keys and
 * values are copied for each (repeat_interleave) before the fused kernel reads them. Norms are of simple operations, as
 * nn.RMSNorm is on a CPU, and attention has no seeds; with "gpu=1" both are as a GPU's kernels have them, and with
 * "gpu=1,simple_norms=1" attention alone, as where norms are written as transformers does. Names are the modules' paths; what has no module there is "layers.0.attention.sdpa",
 * "layers.0.add1".
 */
#include "models/zoo/zoo_internal.h"

#include "base/checked.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HIGH = 1000000, ITEM = 40 };

/* Their order is the name's. */
typedef struct sizes {
  uint32_t layers, hidden, heads, kv_heads, ffn, words;
  /* no part of the six numbers: */
  bool gpu;          /* kernels of a GPU, */
  bool simple_norms; /* but for norms */
} sizes;
enum { SIZES = 6 };
static const char *const size_names[SIZES] = {"LAYERS", "D", "HEADS", "KV", "FFN", "WORDS"};
#define EXAMPLE "llm:LAYERS,D,HEADS,KV,FFN,WORDS, as llm:4,512,8,8,1408,1024"

/* Whether numbers stand first, and not "layers=8". */
static bool has_sizes(const char *parameters) {
  return parameters && !memchr(parameters, '=', strcspn(parameters, ","));
}

/* The six numbers. Returns what follows them, or NULL. */
static const char *take_sizes(const char *parameters, uint32_t values[SIZES], sn_err *err) {
  const char *at = parameters;
  for (uint32_t i = 0; i < SIZES; i++) {
    char item[ITEM];
    uint64_t number;
    if (!at || memchr(at, '=', strcspn(at, ","))) {
      sn_fail(err, SN_BAD_USAGE, "network \"llm:%.80s\": %s is missing; write " EXAMPLE, parameters, size_names[i]);
      return NULL;
    }
    const size_t length = strcspn(at, ",");
    snprintf(item, sizeof item, "%.*s", (int)sn_min(length, sizeof item), at);
    sn_err reason = SN_ERR_INIT; /* replaced by a message that names the whole network */
    if (sn_parse_count(item, size_names[i], 1, HIGH, &number, &reason) != SN_OK) {
      sn_fail(err, SN_BAD_USAGE, "network \"llm:%.80s\": \"%s\" is no %s, a whole number from 1 to %d; write " EXAMPLE,
              parameters, item, size_names[i], HIGH);
      return NULL;
    }
    values[i] = (uint32_t)number;
    at = at[length] ? at + length + 1 : NULL;
  }
  if (has_sizes(at))
    sn_fail(err, SN_BAD_USAGE, "network \"llm:%.80s\": there are more than %d numbers; write " EXAMPLE, parameters,
            SIZES);
  return at;
}

/* Of what divides `whole`, the nearest to `wanted`, the smaller one of two. */
static uint32_t nearest_divisor(uint32_t whole, uint32_t wanted) {
  uint32_t below = wanted < whole ? wanted : whole, above = wanted;
  while (whole % below != 0) below--;
  while (above < whole && whole % above != 0) above++;
  return above <= whole && above - wanted < wanted - below ? above : below;
}

static sn_status must_divide(const char *part, uint32_t count, const char *whole, uint32_t of, sn_err *err) {
  if (of % count == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "llm: %s must divide %s, and %" PRIu32 " does not divide %" PRIu32 "; %" PRIu32 " does", part, whole,
                 count, of, nearest_divisor(of, count));
}

/* "4,512,8,8,1408,1024", then perhaps "layers=8", "gpu=1", "simple_norms=1" or "loss=cross_entropy_fp32"; NULL: what `of` holds. */
static sn_status read(const sn_zoo_entry *entry, const char *parameters, sizes *of, sn_loss *loss, sn_err *err) {
  static const char *const names[] = {"layers", "gpu", "simple_norms"};
  const sn__zoo_keys keys = {.names = names, .count = 3, .high = HIGH, .loss = loss};
  uint32_t values[SIZES] = {of->layers, of->hidden, of->heads, of->kv_heads, of->ffn, of->words};
  const char *others = has_sizes(parameters) ? take_sizes(parameters, values, err) : parameters;
  uint32_t named[] = {values[0], 0, 0};
  if (err->code != SN_OK) return err->code;
  if (sn__zoo_parameters(entry, others, &keys, named, err) != SN_OK) return err->code;
  for (uint32_t i = 1; i < keys.count; i++)
    if (named[i] > 1)
      return sn_fail(err, SN_BAD_USAGE, "llm: %s=%" PRIu32 " is not known; write %s=1, or leave it out", names[i],
                     named[i], names[i]);
  *of = (sizes){named[0],
                values[1],
                values[2],
                values[3],
                values[4],
                values[5],
                .gpu = named[1] == 1,
                .simple_norms = named[2] == 1};
  if (must_divide("HEADS", of->heads, "D", of->hidden, err) != SN_OK) return err->code;
  return must_divide("KV", of->kv_heads, "HEADS", of->heads, err);
}

/* Each head of keys or values once for every head of queries that reads it: a copy, where that is not once. */
static uint32_t repeat(sn_builder *b, uint32_t x, const sizes *of, uint32_t tokens, unsigned i, char which) {
  if (of->heads == of->kv_heads) return x;
  const sn_attr attr = {.shape = {0, of->heads, of->hidden / of->heads * tokens}};
  char name[ITEM + 24];
  snprintf(name, sizeof name, "layers.%u.attention.%c_repeated", i, which);
  x = sn_build_reshape(b, x, 1, of->kv_heads, 0, "layers.%u.attention.%c_heads", i, which);
  x = sn_build_layer(b, SN_RESIZE, &attr, &x, 1, name);
  return sn_build_reshape(b, x, of->hidden, tokens, 1, "layers.%u.attention.%c_all", i, which);
}

static uint32_t attention(sn_builder *b, uint32_t x, const sizes *of, uint32_t tokens, unsigned i) {
  const uint32_t kv = of->hidden / of->heads * of->kv_heads;
  uint32_t qkv[3];
  qkv[0] = sn_build_linear(b, x, of->hidden, 0, "layers.%u.attention.wq", i);
  qkv[1] = sn_build_linear(b, x, kv, 0, "layers.%u.attention.wk", i);
  qkv[2] = sn_build_linear(b, x, kv, 0, "layers.%u.attention.wv", i);
  qkv[1] = repeat(b, qkv[1], of, tokens, i, 'k');
  qkv[2] = repeat(b, qkv[2], of, tokens, i, 'v');
  x = sn_build_attention(b, qkv, 3, (sn_attention){.heads = of->heads, .causal = true, .seedless = !of->gpu},
                         "layers.%u.attention.sdpa", i);
  return sn_build_linear(b, x, of->hidden, 0, "layers.%u.attention.wo", i);
}

static uint32_t feed_forward(sn_builder *b, uint32_t x, const sizes *of, unsigned i) {
  uint32_t gate = sn_build_linear(b, x, of->ffn, 0, "layers.%u.feed_forward.w1", i);
  gate = sn_build_act(b, gate, (sn_act){.mode = SN_ACT_SILU}, "layers.%u.feed_forward.silu", i);
  uint32_t up = sn_build_linear(b, x, of->ffn, 0, "layers.%u.feed_forward.w3", i);
  x = sn_build_mul(b, gate, up, "layers.%u.feed_forward.mul", i);
  return sn_build_linear(b, x, of->hidden, 0, "layers.%u.feed_forward.w2", i);
}

static uint32_t norm(sn_builder *b, uint32_t x, const sizes *of, const char *name, unsigned i) {
  char text[ITEM];
  snprintf(text, sizeof text, name, i);
  return sn_build_layer(b, SN_RMS_NORM, &(sn_attr){.fused = of->gpu && !of->simple_norms}, &x, 1, text);
}

static uint32_t block(sn_builder *b, uint32_t x, const sizes *of, uint32_t tokens, unsigned i) {
  uint32_t y = norm(b, x, of, "layers.%u.attention_norm", i);
  y = attention(b, y, of, tokens, i);
  x = sn__transformer_add(b, x, y, "layers", i, 1);
  y = norm(b, x, of, "layers.%u.ffn_norm", i);
  y = feed_forward(b, y, of, i);
  return sn__transformer_add(b, x, y, "layers", i, 2);
}

sn_net *sn__zoo_titan(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  sizes of = {32, 4096, 32, 8, 14336, 128256, false, false}; /* Llama 3 8B */
  sn_loss loss = SN_LOSS_CROSS_ENTROPY;
  char name[SN_NET_NAME];
  if (read(entry, parameters, &of, &loss, err) != SN_OK) return NULL;
  sn_builder *b = sn_builder_new_tokens(sn__zoo_full_name(entry, parameters, name), batch, image, err);
  uint32_t x = sn_build_embedding(b, of.words, of.hidden, "tok_embeddings");
  for (unsigned i = 0; i < of.layers; i++) x = block(b, x, &of, image, i);
  x = norm(b, x, &of, "norm", 0);
  x = sn_build_linear(b, x, of.words, 0, "output");
  sn_build_loss_positions(b, x, loss, "softmax");
  return sn_builder_finish(b, NULL, err);
}
