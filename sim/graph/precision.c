/* Widths of values by precision; see the header. A layer is looked at when its last input is known, with a stack. */
#include "sim/graph/precision.h"
#include "base/text.h"
#include "models/build/lora.h"
#include "models/op/op.h"
#include "sim/graph/iteration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SN_PRECISION_COUNT] = {"fp32", "tf32",     "tf32-conv", "bf16",
                                                      "fp16", "amp-bf16", "amp-fp16"};

/* The words of PyTorch, Lightning and Hugging Face for them. */
static const struct {
  const char *name;
  sn_precision precision;
} others[] = {{"float32", SN_FP32},
              {"float", SN_FP32},
              {"full", SN_FP32},
              {"32", SN_FP32},
              {"32-true", SN_FP32},
              {"torch.float32", SN_FP32},
              {"bfloat16", SN_BF16},
              {"bf16-true", SN_BF16},
              {"torch.bfloat16", SN_BF16},
              {"float16", SN_FP16},
              {"half", SN_FP16},
              {"16-true", SN_FP16},
              {"torch.float16", SN_FP16},
              {"amp", SN_AMP_BF16},
              {"mixed", SN_AMP_BF16},
              {"autocast", SN_AMP_BF16},
              {"bf16-mixed", SN_AMP_BF16},
              {"mixed-bf16", SN_AMP_BF16},
              {"bf16-amp", SN_AMP_BF16},
              {"amp-bfloat16", SN_AMP_BF16},
              {"bfloat16-amp", SN_AMP_BF16},
              {"16", SN_AMP_FP16},
              {"16-mixed", SN_AMP_FP16},
              {"fp16-mixed", SN_AMP_FP16},
              {"mixed-fp16", SN_AMP_FP16},
              {"mixed-float16", SN_AMP_FP16},
              {"fp16-amp", SN_AMP_FP16},
              {"amp-float16", SN_AMP_FP16},
              {"mixed-bfloat16", SN_AMP_BF16},
              {"float16-amp", SN_AMP_FP16}};

const char *sn_precision_name(sn_precision precision) {
  return names[precision];
}

sn_status sn_precision_parse(const char *text, sn_precision *precision, sn_err *err) {
  for (sn_precision p = 0; p < SN_PRECISION_COUNT; p++)
    if (sn_text_same(text, names[p])) {
      *precision = p;
      return SN_OK;
    }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (sn_text_same(text, others[i].name)) {
      *precision = others[i].precision;
      return SN_OK;
    }
  return sn_fail(
      err, SN_BAD_USAGE,
      "--precision: \"%.40s\" is none of: fp32, tf32, tf32-conv, bf16, fp16, amp-bf16, amp-fp16, bf16-master", text);
}

sn_status sn_iteration_parse_precision(const char *text, sn_iteration *iteration, sn_err *err) {
  iteration->master = sn_text_same(text, SN_PRECISION_MASTER);
  iteration->precision = SN_BF16;
  return iteration->master ? SN_OK : sn_precision_parse(text, &iteration->precision, err);
}

uint64_t sn_precision_data_bytes(sn_precision precision, const sn_net *net) {
  return sn_width_bytes(&net->values[net->layers[0].first_output], (uint8_t)sn_precision_parameter_bytes(precision));
}

static uint64_t beside_as_values(const sn_layer *layer) {
  if (layer->op == SN_BN) return layer->statistics_bytes / 2;
  if (layer->op == SN_DROPOUT && layer->attr->images) return layer->mask_bytes;
  if (layer->op != SN_ATTENTION || !layer->attr->parts) return 0;
  return layer->attr->ratio > 0 ? layer->statistics_bytes / 9 * 8 : layer->statistics_bytes; /* but a byte: dropped */
}

uint64_t sn_precision_beside_bytes(sn_precision precision, const sn_layer *layer) {
  uint64_t all = layer->mask_bytes + layer->statistics_bytes, as_values = beside_as_values(layer);
  return all - as_values + sn_precision_of_parameters(precision, as_values);
}

/* An FC's, without its bias. */
static uint64_t weights_of(const sn_layer *layer) {
  return layer->parameters - (layer->attr->bias ? layer->attr->channels : 0);
}

uint32_t sn_precision_parameter_tensors(sn_precision precision, const sn_layer *layer,
                                        uint64_t bytes[SN_PARAMETER_TENSORS]) {
  uint32_t count = sn_parameter_tensors(layer, bytes);
  for (uint32_t i = 0; i < count; i++) bytes[i] = sn_precision_of_parameters(precision, bytes[i]);
  if (layer->nf4) bytes[0] = sn_nf4_bytes(weights_of(layer));
  return count;
}

uint64_t sn_precision_dequantized_bytes(sn_precision precision, const sn_layer *layer) {
  uint32_t width = sn_precision_is_wide(precision) ? 4 : 2;
  return layer->nf4 ? weights_of(layer) * width : 0;
}

bool sn_precision_casts_weights(sn_precision precision, const sn_layer *layer) {
  const sn_op_def *op = sn_op_of(layer);
  return sn_precision_is_amp(precision) && !layer->nf4 &&
         ((op->weighs && op->autocast == SN_AUTOCAST_NARROW) || sn_layer_is_prelu(layer));
}

/* ---- autocast ---- */

static sn_autocast autocast_of(const sn_layer *layer) {
  const sn_act_mode act = layer->op == SN_ACT ? layer->attr->act : SN_ACT_RELU;
  bool powers = act == SN_ACT_SOFTPLUS || act == SN_ACT_GELU_NEW || act == SN_ACT_EXP;
  if (sn_layer_is_prelu(layer)) return SN_AUTOCAST_NARROW;
  return powers ? SN_AUTOCAST_WIDE : sn_op_of(layer)->autocast;
}

typedef struct layer_widths {
  uint8_t taken, gradient, out; /* taken 0: as it was made */
} layer_widths;

/* Gemma's norms give back what they were given. */
static uint8_t made_by_wide(const sn_layer *layer, uint8_t first) {
  return layer->op == SN_RMS_NORM && layer->attr->plus_one ? first : 4;
}

static layer_widths widths_under_amp(const sn_net *net, const sn_layer *layer, uint8_t first, uint8_t widest) {
  switch (autocast_of(layer)) {
  case SN_AUTOCAST_NARROW:
    return (layer_widths){2, 2, 2};
  case SN_AUTOCAST_WIDE:
    return (layer_widths){4, 4, made_by_wide(layer, first)};
  case SN_AUTOCAST_WIDEST:
    return (layer_widths){widest, widest, widest};
  case SN_AUTOCAST_PROMOTES:
    if (layer->op == SN_JOIN && sn_layer_in_place(net, layer)) widest = first;
    return (layer_widths){0, widest, widest};
  case SN_AUTOCAST_PROMOTES_WIDE:
    return (layer_widths){0, 4, 4};
  case SN_AUTOCAST_FOLLOWS:
    break;
  }
  return (layer_widths){0, first, first};
}

static bool is_narrow_loss(const sn_widths *w, const sn_layer *layer) {
  return w->narrow_loss && layer->op == SN_SOFTMAX && layer->attr->loss == SN_LOSS_CROSS_ENTROPY;
}

bool sn_widths_casts_loss(const sn_widths *w, const sn_net *net, const sn_layer *layer) {
  return is_narrow_loss(w, layer) && w->made[net->inputs[layer->first_input]] == 2;
}

static bool is_wide_loss(const sn_widths *w, const sn_layer *layer) {
  return w->wide_loss && layer->op == SN_SOFTMAX && layer->attr->loss == SN_LOSS_CROSS_ENTROPY_FP32;
}

static layer_widths widths_of(const sn_widths *w, const sn_net *net, const sn_layer *layer) {
  uint8_t first = 0, widest = 0;
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint8_t made = w->made[net->inputs[layer->first_input + i]];
    if (i == 0) first = made;
    if (made > widest) widest = made;
  }
  if (is_narrow_loss(w, layer)) return (layer_widths){0, first, first};
  if (is_wide_loss(w, layer)) return (layer_widths){4, 4, 4};
  if (sn_precision_is_amp(w->precision)) return widths_under_amp(net, layer, first, widest);
  return layer->op == SN_RMS_NORM && w->eager && !layer->attr->fused ? (layer_widths){4, 4, 2}
                                                                     : (layer_widths){2, 2, 2};
}

static void set_widths(sn_widths *w, const sn_net *net, const sn_layer *layer) {
  layer_widths found = widths_of(w, net, layer);
  if (layer->op == SN_DATA) found.out = (uint8_t)sn_precision_parameter_bytes(w->precision);
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = net->inputs[layer->first_input + i];
    w->taken[value] = found.taken ? found.taken : w->made[value];
    w->gradient[value] = found.gradient;
  }
  for (uint32_t port = 0; port < layer->n_outputs; port++) w->made[layer->first_output + port] = found.out;
}

static void visit(sn_widths *w, const sn_net *net, uint32_t *arrived, uint32_t *stack) {
  uint32_t depth = 0;
  stack[depth++] = 0;
  while (depth > 0) {
    const sn_layer *layer = &net->layers[stack[--depth]];
    if (layer->n_inputs > 0 && ++arrived[layer - net->layers] < layer->n_inputs) continue;
    set_widths(w, net, layer);
    for (uint32_t port = 0; port < layer->n_outputs; port++) {
      uint32_t consumer = net->values[layer->first_output + port].consumer;
      if (consumer != SN_NONE) stack[depth++] = consumer;
    }
  }
}

static sn_status make(sn_widths *w, const sn_net *net, sn_err *err) {
  if (sn_precision_is_wide(w->precision)) return SN_OK;
  size_t values = (size_t)net->n_values + 1;
  uint32_t *arrived = calloc(net->n_layers, sizeof *arrived), *stack = calloc(values, sizeof *stack);
  w->made = calloc(values, 1);
  w->taken = calloc(values, 1);
  w->gradient = calloc(values, 1);
  bool good = arrived && stack && w->made && w->taken && w->gradient;
  if (good) visit(w, net, arrived, stack);
  free(arrived);
  free(stack);
  return good ? SN_OK : sn_fail_memory(err);
}

sn_status sn_widths_make(sn_widths *w, const sn_net *net, sn_precision precision, bool eager, sn_err *err) {
  *w = (sn_widths){.precision = precision, .eager = eager};
  return make(w, net, err);
}

sn_status sn_widths_make_of(sn_widths *w, const sn_net *net, sn_precision precision, const sn_dialect *dialect,
                            bool inference, sn_err *err) {
  *w = (sn_widths){.precision = precision,
                   .eager = dialect->eager,
                   .wide_loss = dialect->eager && !inference,
                   .narrow_loss = dialect->narrow_loss && !inference && sn_precision_is_amp(precision)};
  return make(w, net, err);
}

void sn_widths_clear(sn_widths *w) {
  free(w->made);
  free(w->taken);
  free(w->gradient);
  *w = (sn_widths){0};
}

/* ---- what backward keeps beside values ---- */

static uint64_t scaled(uint64_t fp32_bytes, uint8_t width) {
  return fp32_bytes / 4 * width;
}

/* Probabilities under AMP, and of capped scores always: the softmax's own in four bytes, and what the product takes in
 * two. */
static uint64_t probability_bytes(const sn_widths *w, sn_saving saving, uint32_t index, uint64_t fp32_bytes) {
  bool amp = sn_precision_is_amp(w->precision);
  if (saving == SN_SAVES_CAPPED) return fp32_bytes / 4 * (index > 0 ? 6 : 2);
  if (saving == SN_SAVES_PROBABILITIES) return fp32_bytes / 4 * (amp ? 6 : 2);
  return index == 2 || (index == 0 && amp) ? fp32_bytes : fp32_bytes / 2;
}

uint64_t sn_widths_saving_bytes(const sn_widths *w, const sn_net *net, uint32_t index_of_layer, sn_saving saving,
                                uint32_t index, uint64_t fp32_bytes) {
  const sn_layer *layer = &net->layers[index_of_layer];
  if (!w->made) return fp32_bytes;
  uint8_t in = w->made[net->inputs[layer->first_input]], out = w->made[layer->first_output];
  switch (saving) {
  case SN_SAVES_AS_OUTPUT:
    return scaled(fp32_bytes, out);
  case SN_SAVES_THREE_OUTPUTS:
  case SN_SAVES_LRN:
    return scaled(fp32_bytes, index == 0 ? in : out);
  case SN_SAVES_RMS:
    return index > 0 ? scaled(fp32_bytes, out) : fp32_bytes;
  case SN_SAVES_LOSS:
    return scaled(fp32_bytes, out);
  case SN_SAVES_MASK:
    return layer->attr->images ? scaled(fp32_bytes, out) : fp32_bytes;
  case SN_SAVES_PROBABILITIES:
  case SN_SAVES_DROPPED:
  case SN_SAVES_CAPPED:
    return probability_bytes(w, saving, index, fp32_bytes);
  case SN_SAVES_PADDED:
    return out < 4 ? sn_saving_bytes(SN_SAVES_ATTENTION, index, layer, 0) : fp32_bytes;
  case SN_SAVES_NOTHING:
  case SN_SAVES_CHANNELS:
  case SN_SAVES_INDICES:
  case SN_SAVES_ROWS:
  case SN_SAVES_ROOTS:
  case SN_SAVES_PLUS_ONE_RMS:
  case SN_SAVES_GROUPS:
  case SN_SAVES_ATTENTION:
  case SN_SAVES_SEEDLESS:
  case SN_SAVES_CAST_LOSS:
    break;
  }
  return fp32_bytes;
}

uint64_t sn_widths_scratch_bytes(const sn_widths *w, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  const sn_value *output = &net->values[layer->first_output];
  if (!w->made) return output->bytes;
  uint8_t out = w->made[layer->first_output], taken = w->taken[net->inputs[layer->first_input]];
  return sn_width_bytes(output, out > taken ? out : taken);
}
