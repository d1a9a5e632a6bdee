/* LoRA; see the header. The network is declared anew, with four layers behind each FC that gets an adapter: O(layers).
 */
#include "models/build/lora.h"

#include "base/arena.h"
#include "models/build/build_internal.h"
#include "models/net/globs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDED = 4, ALPHA = 8 };

uint64_t sn_nf4_bytes(uint64_t weights) {
  enum { BLOCK = 64, NESTED = 256, OFFSET = sizeof(float), TABLES = (16 + 256) * sizeof(float) };
  uint64_t scales = weights / BLOCK + (weights % BLOCK > 0), nested = scales / NESTED + (scales % NESTED > 0);
  return weights / 2 + weights % 2 + scales + nested * sizeof(float) + OFFSET + TABLES;
}

/* What stands between rank and names. */
static sn_status take_switches(const char *at, const char *end, sn_lora *lora, sn_err *err) {
  while (at < end) {
    const char *item = ++at;
    char *stop;
    while (at < end && *at != ',' && *at != ';') at++;
    size_t length = (size_t)(at - item);
    if (length == 3 && strncmp(item, "nf4", 3) == 0) {
      lora->nf4 = true;
      continue;
    }
    bool dropout = length > 8 && strncmp(item, "dropout=", 8) == 0;
    lora->dropout = dropout ? strtod(item + 8, &stop) : 0;
    if (!dropout || stop != at || !(lora->dropout >= 0 && lora->dropout < 1))
      return sn_fail(err, SN_BAD_USAGE,
                     "--lora: \"%.*s\" behind the rank is neither nf4 nor dropout=SHARE, from 0 to below 1",
                     (int)length, item);
  }
  return SN_OK;
}

sn_status sn_lora_parse(const char *text, sn_lora *lora, sn_err *err) {
  static const char *const example = "a rank such as 8, or with names of FCs 8:'*q_proj,*v_proj'";
  char *end;
  *lora = (sn_lora){.globs = ""};
  if (strlen(text) > SN_LORA_TEXT)
    return sn_fail(err, SN_BAD_USAGE, "--lora: more than %d bytes; join names by a *, such as '*proj'", SN_LORA_TEXT);
  bool digits = *text >= '0' && *text <= '9';
  unsigned long long rank = digits ? strtoull(text, &end, 10) : 0;
  if (!digits || (*end && !strchr(":,;", *end)))
    return sn_fail(err, SN_BAD_USAGE, "--lora: \"%.60s\" is not %s", text, example);
  if (rank < 1 || rank > SN_MAX_DIM)
    return sn_fail(err, SN_BAD_USAGE, "--lora: a rank of %.*s is not from 1 to %u; 4 to 64 are common",
                   (int)(end - text), text, SN_MAX_DIM);
  lora->rank = (uint32_t)rank;
  const char *colon = end + strcspn(end, ":");
  if (take_switches(end, colon, lora, err) != SN_OK || !*colon) return err->code;
  lora->globs = colon + 1;
  return sn_globs_check_text("--lora", lora->globs, err);
}

char *sn_lora_with_nf4(const char *lora, char *text, size_t room) {
  int rank = (int)strcspn(lora, ":,;");
  snprintf(text, room, "%.*s;nf4%s", rank, lora, lora + rank);
  return text;
}

/* ---- which ---- */

static bool is_fc(const sn_layer *layer) {
  return layer->op == SN_FC && layer->parameters > 0 && !layer->attr->router;
}

/* A network's output is what its loss reads. */
static bool ends(const sn_net *net, const sn_layer *layer) {
  uint32_t reader = net->values[layer->first_output].consumer;
  return reader != SN_NONE && net->layers[reader].op == SN_SOFTMAX;
}

static bool is_chosen(const sn_net *net, const sn_lora *lora, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  if (!is_fc(layer)) return false;
  return *lora->globs ? sn_globs_match(lora->globs, layer->name) : !ends(net, layer);
}

/* What a position, or an image, has. */
static uint64_t inputs_of(const sn_net *net, const sn_layer *layer) {
  sn_shape in = sn_layer_input_shape(net, layer, 0);
  return layer->attr->positions ? in.c : (uint64_t)in.c * in.h * in.w;
}

static sn_status check_rank(const sn_net *net, const sn_lora *lora, const sn_layer *layer, sn_err *err) {
  uint64_t in = inputs_of(net, layer), most = in < layer->out.c ? in : layer->out.c;
  if (lora->rank <= most) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--lora: a rank of %" PRIu32 " is not low for %.80s, which makes %" PRIu32 " numbers of %" PRIu64
                 "; at most %" PRIu64,
                 lora->rank, layer->name, layer->out.c, in, most);
}

bool sn_lora_wants_names(const sn_net *net) {
  bool wants = false;
  for (uint32_t i = 0; i < net->n_layers; i++) wants = wants || net->layers[i].op == SN_EXPERTS;
  return wants;
}

static sn_status check(const sn_net *net, const sn_lora *lora, sn_err *err) {
  bool any = false;
  if (!*lora->globs && sn_lora_wants_names(net))
    return sn_fail(
        err, SN_BAD_USAGE,
        "--lora: %.80s has experts, whose weights peft would make anew, which is not simulated; name the FCs "
        "that get adapters: --lora '%" PRIu32 ":*_proj'",
        net->name, lora->rank);
  if (sn_globs_check("--lora", lora->globs, net, "FC", is_fc, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    if (!is_chosen(net, lora, i)) continue;
    any = true;
    if (check_rank(net, lora, &net->layers[i], err) != SN_OK) return err->code;
  }
  if (any) return SN_OK;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (is_fc(&net->layers[i]))
      return sn_fail(err, SN_BAD_USAGE,
                     "--lora: the only FCs of %.80s are its output; --lora %" PRIu32 ":%.80s names one of them",
                     net->name, lora->rank, net->layers[i].name);
  return sn_fail(err, SN_BAD_USAGE,
                 "--lora: %.80s has no FC with parameters of its own; --freeze trains a part of any network",
                 net->name);
}

/* ---- the network ---- */

typedef struct adapter {
  const sn_net *net;
  const sn_lora *lora;
  sn_builder *b;
  uint32_t *at, *out; /* of a declared layer: its number in the new network, and that of its output */
} adapter;

static uint32_t add(adapter *a, sn_op op, const sn_attr *attr, const uint32_t *inputs, uint32_t n, const sn_layer *of,
                    const char *suffix) {
  char name[SN__MAX_NAME + 20];
  snprintf(name, sizeof name, "%s%s", of->name, suffix);
  return sn_build_layer(a->b, op, attr, inputs, n, name);
}

static void tune(adapter *a, uint32_t layer, sn_tuning tuning) {
  if (layer != SN_NONE) a->b->layers[layer].tuning = tuning;
}

static void add_adapter(adapter *a, const sn_layer *fc, uint32_t x, uint32_t base) {
  sn_attr factor = {.channels = a->lora->rank, .positions = fc->attr->positions};
  const sn_attr dropout = {.ratio = a->lora->dropout, .inplace = SN_INPLACE_NO};
  const sn_attr scale = {.act = SN_ACT_TIMES, .slope = (double)ALPHA / a->lora->rank, .inplace = SN_INPLACE_NO};
  if (a->lora->dropout > 0) x = add(a, SN_DROPOUT, &dropout, &x, 1, fc, ".lora_dropout");
  uint32_t first = add(a, SN_FC, &factor, &x, 1, fc, ".lora_A");
  factor.channels = fc->attr->channels;
  uint32_t second = add(a, SN_FC, &factor, &first, 1, fc, ".lora_B");
  uint32_t scaled = add(a, SN_ACT, &scale, &second, 1, fc, ".lora_scale");
  add(a, SN_JOIN, &(sn_attr){.inplace = SN_INPLACE_NO}, (const uint32_t[]){base, scaled}, 2, fc, ".lora_add");
  tune(a, base, SN_TUNED_NEVER);
  tune(a, first, SN_TUNED_ALWAYS);
  tune(a, second, SN_TUNED_ALWAYS);
}

static void add_layer(adapter *a, uint32_t index, uint32_t *inputs) {
  const sn_layer *layer = &a->net->layers[index];
  sn_attr attr = *layer->attr;
  if (attr.weights_of != 0) attr.weights_of = a->at[attr.weights_of];
  for (uint32_t i = 0; i < layer->n_inputs; i++) inputs[i] = a->out[sn_layer_source(a->net, layer, i)];
  uint32_t made = add(a, layer->op, &attr, inputs, layer->n_inputs, layer, "");
  bool narrow = a->lora->nf4 && is_fc(layer) && !ends(a->net, layer);
  tune(a, made, narrow ? SN_TUNED_NEVER : SN_TUNED_IF_SAID);
  if (narrow && made != SN_NONE) a->b->layers[made].nf4 = true;
  if (a->out[index] != a->at[index]) add_adapter(a, layer, inputs[0], made);
}

/* FORKs stand behind all others and are put in anew. */
static uint32_t number_layers(adapter *a) {
  uint32_t declared = 0, count = 0, added = ADDED + (a->lora->dropout > 0 ? 1 : 0);
  while (declared < a->net->n_layers && a->net->layers[declared].op != SN_FORK) declared++;
  for (uint32_t i = 0; i < declared; i++) {
    a->at[i] = count;
    count += is_chosen(a->net, a->lora, i) ? added + 1 : 1;
    a->out[i] = count - 1;
  }
  return declared;
}

static sn_builder *begin(const sn_net *net, const sn_lora *lora, sn_err *err) {
  sn_shape in = net->layers[0].out;
  char name[SN__MAX_NAME + SN_LORA_TEXT + 80], dropout[40] = "";
  if (lora->dropout > 0) snprintf(dropout, sizeof dropout, ";dropout=%g", lora->dropout);
  snprintf(name, sizeof name, "%.*s+lora=%" PRIu32 "%s%s%s%s", SN__MAX_NAME, net->name, lora->rank,
           lora->nf4 ? ";nf4" : "", dropout, *lora->globs ? ":" : "", lora->globs);
  const uint32_t planes = net->layers[0].planes;
  if (net->values[0].dtype == SN_I64) return sn_builder_new_tokens(name, in.n, in.h, err);
  if (planes > 0) return sn_builder_new_volumes(name, in.n, in.c, planes, sn_layer_rows(&net->layers[0]), in.w, err);
  return sn_builder_new(name, in.n, in.c, in.h, in.w, err);
}

static sn_net *apply(adapter *a, uint32_t *inputs, sn_err *err) {
  uint32_t declared = number_layers(a);
  a->b = begin(a->net, a->lora, err);
  for (uint32_t i = 1; i < declared; i++) add_layer(a, i, inputs);
  sn_net *net = a->b ? sn_builder_finish(a->b, NULL, err) : NULL;
  if (net) net->adapted = true;
  if (net) net->transformers = a->net->transformers;
  if (net && a->net->inference_only) net->inference_only = sn_arena_text(net->arena, a->net->inference_only);
  if (err->code != SN_BAD_INPUT) return net;
  err->code = SN_BAD_USAGE; /* the network itself is right */
  sn_err_prefix(err, "--lora");
  return net;
}

sn_net *sn_lora_apply(const sn_net *net, const sn_lora *lora, sn_err *err) {
  if (check(net, lora, err) != SN_OK) return NULL;
  adapter a = {.net = net, .lora = lora};
  uint32_t *inputs = calloc((size_t)net->n_values + 1, sizeof *inputs);
  a.at = calloc(net->n_layers, sizeof *a.at);
  a.out = calloc(net->n_layers, sizeof *a.out);
  sn_net *made = NULL;
  if (inputs && a.at && a.out)
    made = apply(&a, inputs, err);
  else
    sn_fail_memory(err);
  free(inputs);
  free(a.at);
  free(a.out);
  return made;
}
