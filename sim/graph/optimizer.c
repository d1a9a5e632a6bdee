/* The optimizers' table; see the header. */
#include "sim/graph/optimizer.h"

#include "base/checked.h"
#include "base/text.h"
#include "models/op/op.h"
#include "sim/graph/freeze.h"

#include <stdio.h>
#include <string.h>

typedef enum impl { IMPL_USUAL, IMPL_FOREACH, IMPL_FUSED, IMPL_LOOP } impl;

/* `at_once`: temporaries of foreach, in parameters; `made`: of a loop, in tensors as large as the one at hand, of which
 * `held` stay until the next one has its own. */
static const struct {
  const char *name, *state_name;
  uint32_t states;
  impl usual;
  bool narrow, counts, runs, factors;
  uint32_t at_once, made, held;
} kinds[SN_OPTIMIZER_KINDS] = {
    [SN_OPTIMIZER_MOMENTUM] = {"momentum", "momentum (SGD)", 1, IMPL_FOREACH, .runs = true},
    [SN_OPTIMIZER_SGD] = {"sgd", "", 0, IMPL_FOREACH, .runs = true},
    [SN_OPTIMIZER_ADAM] = {"adam", "moments (Adam)", 2, IMPL_FOREACH, .counts = true, .runs = true, .at_once = 1,
                           .made = 2, .held = 1},
    [SN_OPTIMIZER_ADAMW] = {"adamw", "moments (AdamW)", 2, IMPL_FOREACH, .counts = true, .runs = true, .at_once = 1,
                            .made = 2, .held = 1},
    [SN_OPTIMIZER_ADAM8BIT] = {"adam8bit", "moments (8-bit Adam)", 2, IMPL_USUAL, .narrow = true},
    [SN_OPTIMIZER_ADAMW8BIT] = {"adamw8bit", "moments (8-bit AdamW)", 2, IMPL_USUAL, .narrow = true},
    [SN_OPTIMIZER_RMSPROP] = {"rmsprop", "squares (RMSprop)", 1, IMPL_FOREACH, .counts = true, .at_once = 1, .made = 1,
                              .held = 1},
    [SN_OPTIMIZER_ADAGRAD] = {"adagrad", "squares (Adagrad)", 1, IMPL_FOREACH, .counts = true, .at_once = 2, .made = 1,
                              .held = 1},
    [SN_OPTIMIZER_ADAFACTOR] = {"adafactor", "rows and columns (Adafactor)", 1, IMPL_LOOP, .counts = true,
                                .factors = true, .made = 1, .held = 1},
    [SN_OPTIMIZER_LION] = {"lion", "momentum (Lion)", 1, IMPL_LOOP, .made = 2},
};

static const struct {
  const char *name;
  sn_optimizer kind;
  impl impl;
} named[SN_OPTIMIZERS] = {
    [SN_OPTIMIZER_ADAMW_FUSED] = {"adamw:impl=fused", SN_OPTIMIZER_ADAMW, IMPL_FUSED},
    [SN_OPTIMIZER_ADAM_FUSED] = {"adam:impl=fused", SN_OPTIMIZER_ADAM, IMPL_FUSED},
    [SN_OPTIMIZER_ADAMW_FOREACH] = {"adamw:impl=foreach", SN_OPTIMIZER_ADAMW, IMPL_FOREACH},
    [SN_OPTIMIZER_ADAMW_LOOP] = {"adamw:impl=loop", SN_OPTIMIZER_ADAMW, IMPL_LOOP},
    [SN_OPTIMIZER_ADAM_FOREACH] = {"adam:impl=foreach", SN_OPTIMIZER_ADAM, IMPL_FOREACH},
    [SN_OPTIMIZER_ADAM_LOOP] = {"adam:impl=loop", SN_OPTIMIZER_ADAM, IMPL_LOOP},
    [SN_OPTIMIZER_MOMENTUM_FOREACH] = {"momentum:impl=foreach", SN_OPTIMIZER_MOMENTUM, IMPL_FOREACH},
    [SN_OPTIMIZER_MOMENTUM_FUSED] = {"momentum:impl=fused", SN_OPTIMIZER_MOMENTUM, IMPL_FUSED},
    [SN_OPTIMIZER_MOMENTUM_LOOP] = {"momentum:impl=loop", SN_OPTIMIZER_MOMENTUM, IMPL_LOOP},
    [SN_OPTIMIZER_SGD_FOREACH] = {"sgd:impl=foreach", SN_OPTIMIZER_SGD, IMPL_FOREACH},
    [SN_OPTIMIZER_SGD_FUSED] = {"sgd:impl=fused", SN_OPTIMIZER_SGD, IMPL_FUSED},
    [SN_OPTIMIZER_SGD_LOOP] = {"sgd:impl=loop", SN_OPTIMIZER_SGD, IMPL_LOOP},
    [SN_OPTIMIZER_RMSPROP_FOREACH] = {"rmsprop:impl=foreach", SN_OPTIMIZER_RMSPROP, IMPL_FOREACH},
    [SN_OPTIMIZER_RMSPROP_LOOP] = {"rmsprop:impl=loop", SN_OPTIMIZER_RMSPROP, IMPL_LOOP},
    [SN_OPTIMIZER_ADAGRAD_FOREACH] = {"adagrad:impl=foreach", SN_OPTIMIZER_ADAGRAD, IMPL_FOREACH},
    [SN_OPTIMIZER_ADAGRAD_FUSED] = {"adagrad:impl=fused", SN_OPTIMIZER_ADAGRAD, IMPL_FUSED},
    [SN_OPTIMIZER_ADAGRAD_LOOP] = {"adagrad:impl=loop", SN_OPTIMIZER_ADAGRAD, IMPL_LOOP},
    [SN_OPTIMIZER_ADAFACTOR_FOREACH] = {"adafactor:impl=foreach", SN_OPTIMIZER_ADAFACTOR, IMPL_FOREACH},
    [SN_OPTIMIZER_ADAFACTOR_LOOP] = {"adafactor:impl=loop", SN_OPTIMIZER_ADAFACTOR, IMPL_LOOP},
};

enum { BLOCK = 256, LEAST_NARROW = 4096 }; /* elements; bitsandbytes' min_8bit_size */

sn_optimizer sn_optimizer_kind(sn_optimizer optimizer) {
  return optimizer < SN_OPTIMIZER_KINDS ? optimizer : named[optimizer].kind;
}

static impl impl_of(sn_optimizer optimizer) {
  return optimizer < SN_OPTIMIZER_KINDS ? kinds[optimizer].usual : named[optimizer].impl;
}

sn_optimizer sn_optimizer_on(sn_optimizer optimizer, const sn_net *net) {
  if (!net->transformers) return optimizer;
  return optimizer == SN_OPTIMIZER_ADAM    ? SN_OPTIMIZER_ADAM_FUSED
         : optimizer == SN_OPTIMIZER_ADAMW ? SN_OPTIMIZER_ADAMW_FUSED
                                           : optimizer;
}

/* ---- names ---- */

const char *sn_optimizer_name(sn_optimizer optimizer) {
  return optimizer < SN_OPTIMIZER_KINDS ? kinds[optimizer].name : named[optimizer].name;
}

/* With the first comma a colon. */
static void normalize(const char *text, char *out, size_t room) {
  snprintf(out, room, "%s", text);
  char *comma = strchr(out, ',');
  if (comma) *comma = ':';
}

static void list(char *out, size_t room, const char *word) {
  size_t used = strlen(out);
  if (used < room) snprintf(out + used, room - used, "%s%s", used ? ", " : "", word);
}

/* The kind is right, what stands behind it is not. */
static sn_status fail_impl(const char *text, sn_optimizer kind, sn_err *err) {
  char all[100] = "";
  for (sn_optimizer o = SN_OPTIMIZER_KINDS; o < SN_OPTIMIZERS; o++)
    if (named[o].kind == kind) list(all, sizeof all, named[o].name + strlen(kinds[kind].name) + 1);
  if (!*all)
    return sn_fail(err, SN_BAD_USAGE, "--optimizer: %s has one implementation; write \"%s\"", kinds[kind].name,
                   kinds[kind].name);
  return sn_fail(err, SN_BAD_USAGE, "--optimizer: \"%.40s\": behind %s: stands one of: %s", text, kinds[kind].name,
                 all);
}

/* The words of Hugging Face's Trainer and of users for them. What is paged is on the GPU as long as there is room. */
static const struct {
  const char *name;
  sn_optimizer optimizer;
} others[] = {{"adamw_torch", SN_OPTIMIZER_ADAMW},
              {"adamw_hf", SN_OPTIMIZER_ADAMW},
              {"adamw_torch_fused", SN_OPTIMIZER_ADAMW_FUSED},
              {"adamw_fused", SN_OPTIMIZER_ADAMW_FUSED},
              {"paged_adamw", SN_OPTIMIZER_ADAMW_FUSED},
              {"paged_adamw_32bit", SN_OPTIMIZER_ADAMW_FUSED},
              {"adamw_bnb_8bit", SN_OPTIMIZER_ADAMW8BIT},
              {"paged_adamw_8bit", SN_OPTIMIZER_ADAMW8BIT},
              {"8bit_adamw", SN_OPTIMIZER_ADAMW8BIT},
              {"8bit_adam", SN_OPTIMIZER_ADAM8BIT},
              {"sgd_momentum", SN_OPTIMIZER_MOMENTUM},
              {"sgd+momentum", SN_OPTIMIZER_MOMENTUM},
              {"lion_32bit", SN_OPTIMIZER_LION}};

sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err) {
  char word[60], all[120] = "";
  normalize(text, word, sizeof word);
  for (sn_optimizer o = 0; o < SN_OPTIMIZERS; o++)
    if (sn_text_same(word, sn_optimizer_name(o))) {
      *optimizer = o;
      return SN_OK;
    }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (sn_text_same(word, others[i].name)) {
      *optimizer = others[i].optimizer;
      return SN_OK;
    }
  size_t length = strcspn(word, ":");
  for (sn_optimizer o = 0; o < SN_OPTIMIZER_KINDS; o++) {
    list(all, sizeof all, kinds[o].name);
    if (word[length] && strlen(kinds[o].name) == length && strncmp(word, kinds[o].name, length) == 0)
      return fail_impl(text, o, err);
  }
  return sn_fail(err, SN_BAD_USAGE, "--optimizer: \"%.40s\" is none of: %s", text, all);
}

/* ---- what it keeps ---- */

uint32_t sn_optimizer_states(sn_optimizer optimizer) {
  return kinds[sn_optimizer_kind(optimizer)].states;
}

const char *sn_optimizer_state_name(sn_optimizer optimizer) {
  return kinds[sn_optimizer_kind(optimizer)].state_name;
}

bool sn_optimizer_is_8bit(sn_optimizer optimizer) {
  return kinds[sn_optimizer_kind(optimizer)].narrow;
}

bool sn_optimizer_runs(sn_optimizer optimizer) {
  return kinds[sn_optimizer_kind(optimizer)].runs;
}

bool sn_optimizer_is_loop(sn_optimizer optimizer) {
  return impl_of(optimizer) == IMPL_LOOP;
}

bool sn_optimizer_counts(sn_optimizer optimizer) {
  return kinds[sn_optimizer_kind(optimizer)].counts;
}

bool sn_optimizer_counts_there(sn_optimizer optimizer) {
  return sn_optimizer_counts(optimizer) && impl_of(optimizer) == IMPL_FUSED;
}

/* Each state is read and written; so is w; g is read. Adafactor goes over what it makes of g in place of a state. */
uint32_t sn_optimizer_moved_bytes(sn_optimizer optimizer, uint32_t parameter_bytes) {
  sn_optimizer kind = sn_optimizer_kind(optimizer);
  return 3 * parameter_bytes + 2 * kinds[kind].states * (kinds[kind].narrow ? 1 : parameter_bytes);
}

static bool is_narrow(sn_optimizer optimizer, uint64_t elements) {
  return kinds[sn_optimizer_kind(optimizer)].narrow && elements >= LEAST_NARROW;
}

static bool is_factored(sn_optimizer optimizer, const sn_parameter *p) {
  return kinds[sn_optimizer_kind(optimizer)].factors && p->rows > 0;
}

uint32_t sn_optimizer_pieces(sn_optimizer optimizer, const sn_parameter *p, uint32_t parameter_bytes,
                             uint64_t bytes[SN_OPTIMIZER_PIECES]) {
  sn_optimizer kind = sn_optimizer_kind(optimizer);
  uint32_t states = kinds[kind].states;
  bool narrow = is_narrow(kind, p->elements);
  uint64_t width = narrow ? 1 : kinds[kind].narrow ? sizeof(float) : parameter_bytes;
  if (is_factored(kind, p)) {
    bytes[0] = p->elements / p->columns * width;
    bytes[1] = p->elements / p->rows * width;
    return 2;
  }
  for (uint32_t k = 0; k < states; k++) {
    bytes[k] = p->elements * width;
    if (narrow) bytes[states + k] = (p->elements + BLOCK - 1) / BLOCK * sizeof(float);
  }
  return narrow ? 2 * states : states;
}

uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]) {
  uint64_t second = sn_op_of(layer)->shifts ? layer->parameters / 2 : layer->attr->bias ? layer->attr->channels : 0;
  bytes[0] = (layer->parameters - second) * sizeof(float);
  bytes[1] = second * sizeof(float);
  return layer->parameters == 0 ? 0 : second > 0 ? 2 : 1;
}

uint32_t sn_parameters_of(const sn_layer *layer, sn_parameter parameters[SN_PARAMETER_TENSORS]) {
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t count = sn_parameter_tensors(layer, bytes);
  for (uint32_t i = 0; i < count; i++) parameters[i] = (sn_parameter){.elements = bytes[i] / sizeof(float)};
  const sn_op_def *op = sn_op_of(layer);
  uint64_t sides[2] = {0};
  if (count > 0 && op->sides) op->sides(layer, parameters[0].elements, sides);
  if (count > 0) parameters[0].rows = sides[0], parameters[0].columns = sides[1];
  return count;
}

/* ---- what it makes beside ---- */

/* Adafactor's: of all matrices first, which stay while those of vectors are made; a mean a matrix beside the first. */
static uint64_t factored_at_once(const sn_net *net, const char *freeze, uint32_t width) {
  sn_parameter p[SN_PARAMETER_TENSORS];
  uint64_t matrices = 0, means = 0, vectors = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    uint32_t count = sn_freeze_trains(freeze, &net->layers[i]) ? sn_parameters_of(&net->layers[i], p) : 0;
    for (uint32_t n = 0; n < count; n++) {
      *(p[n].rows > 0 ? &matrices : &vectors) += p[n].elements;
      if (p[n].rows > 0) means += p[n].elements / p[n].rows / p[n].columns;
    }
  }
  return (matrices + sn_max(means, vectors)) * width;
}

uint64_t sn_optimizer_at_once_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze,
                                    uint32_t parameter_bytes) {
  sn_optimizer kind = sn_optimizer_kind(optimizer);
  if (impl_of(optimizer) != IMPL_FOREACH) return 0;
  if (kinds[kind].factors) return factored_at_once(net, freeze, parameter_bytes);
  return kinds[kind].at_once * sn_freeze_trained(freeze, net) * parameter_bytes;
}

typedef struct moment {
  uint64_t bytes, each;
  uint32_t made;
  uint64_t held, beside;
} moment;

/* Updating one tensor where variables hold `held` bytes of the one before. */
static moment moment_of(sn_optimizer kind, const sn_parameter *p, uint32_t width, uint64_t held) {
  moment m = {.each = p->elements * width, .made = kinds[kind].made, .held = held};
  if (kinds[kind].factors && p->rows == 0) m.made++; /* squares of a vector, and a copy of their mean */
  if (is_factored(kind, p))
    m.beside = (p->elements / p->columns + p->elements / p->rows + p->elements / p->rows / p->columns) * width;
  m.bytes = m.held + m.made * m.each + m.beside;
  return m;
}

uint32_t sn_optimizer_temporaries(sn_optimizer optimizer, const sn_layer *layer, uint32_t parameter_bytes,
                                  uint64_t *held, uint64_t bytes[SN_OPTIMIZER_TEMPORARIES]) {
  sn_optimizer kind = sn_optimizer_kind(optimizer);
  sn_parameter p[SN_PARAMETER_TENSORS];
  moment fullest = {0};
  uint32_t count = impl_of(optimizer) == IMPL_LOOP ? sn_parameters_of(layer, p) : 0, n = 0;
  for (uint32_t i = 0; i < count; i++) {
    moment m = moment_of(kind, &p[i], parameter_bytes, *held);
    if (m.bytes > fullest.bytes) fullest = m;
    *held = kinds[kind].held * m.each;
  }
  for (uint32_t k = 0; k < fullest.made; k++) bytes[n++] = fullest.each;
  if (fullest.held > 0) bytes[n++] = fullest.held;
  if (fullest.beside > 0) bytes[n++] = fullest.beside;
  return n;
}
