/* Builder: collects layers as they are declared. models/build/finish.c checks them and makes the net.
 *
 * Two growing arrays, layers and their inputs, so declaring a layer takes amortized constant time. A builder that is
 * NULL (out of memory) is accepted everywhere and reported by sn_builder_finish(), so families need not check. */
#include "models/build/build_internal.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "models/op/op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sn__builder_free(sn_builder *b) {
  if (!b) return;
  free(b->layers);
  free(b->inputs);
  sn_arena_free(b->arena);
  free(b);
}

void sn__builder_break(sn_builder *b, uint32_t layer) {
  if (!b || layer >= b->n_layers) return;
  b->layers[layer].first_output = SN_NONE;
  b->broken = true;
}

/* `name` NULL: not fit to be printed. */
static uint32_t fail(sn_builder *b, const char *name, const char *reason) {
  b->bad_layer = b->n_layers;
  sn_fail(&b->err, SN_BAD_INPUT, "layer %" PRIu32 "%s%s%s: %s", b->n_layers, name ? " \"" : "", name ? name : "",
          name ? "\"" : "", reason);
  return SN_NONE;
}

static uint32_t fail_memory(sn_builder *b) {
  b->bad_layer = SN_NONE;
  sn_fail_memory(&b->err);
  return SN_NONE;
}

void sn__builder_change(sn_builder *b, uint32_t layer, const sn_attr *attr) {
  const sn_attr *kept = b->err.code == SN_OK ? sn__attrs_keep(&b->attrs, b->arena, attr) : b->layers[layer].attr;
  if (kept)
    b->layers[layer].attr = kept;
  else
    fail_memory(b);
}

/* `items` with room for `need` items of `size` bytes, doubled when it grows; NULL leaves it as it was. */
static void *with_room(void *items, uint32_t *room, uint32_t need, size_t size) {
  if (need <= *room) return items;
  uint32_t wider = need < 16 ? 32 : 2 * need;
  void *moved = realloc(items, wider * size);
  if (moved) *room = wider;
  return moved;
}

static bool reserve(sn_builder *b, uint32_t n_inputs) {
  sn_layer *layers = with_room(b->layers, &b->room_layers, b->n_layers + 1, sizeof *layers);
  if (layers) b->layers = layers;
  uint32_t *inputs = with_room(b->inputs, &b->room_inputs, b->n_inputs + n_inputs + 1, sizeof *inputs);
  if (inputs) b->inputs = inputs;
  return layers && inputs;
}

/* Names stand in tables, plans and error messages: no blanks, no control characters, not endless. */
bool sn__is_good_name(const char *name) {
  const char *at = name;
  uint32_t point;
  for (size_t bytes; *at; at += bytes) {
    bytes = sn_utf8_next(at, &point);
    if (bytes == 0 || sn_utf8_is_blank(point) || sn_utf8_is_control(point)) return false;
  }
  return at > name && at - name <= SN__MAX_NAME;
}

/* `name` lies in the builder's arena; NULL: it could not be made. */
static uint32_t add(sn_builder *b, sn_op op, const sn_attr *attr, const uint32_t *inputs, uint32_t n_inputs,
                    const char *name) {
  if (!b || b->err.code != SN_OK) return SN_NONE;
  if (!name) return fail_memory(b);
  if (!sn__is_good_name(name))
    return fail(b, NULL, "a layer's name has 1 to 200 bytes of UTF-8, no blanks and no control characters");
  if (b->n_layers >= SN_MAX_LAYERS || n_inputs > SN_MAX_INPUTS - b->n_inputs)
    return fail(b, name, "the network has more than 2 million layers or 4 million inputs");
  if (!reserve(b, n_inputs)) return fail_memory(b);
  if (n_inputs) memcpy(b->inputs + b->n_inputs, inputs, n_inputs * sizeof *inputs);
  const sn_attr *kept = sn__attrs_keep(&b->attrs, b->arena, attr);
  if (!kept) return fail_memory(b);
  b->layers[b->n_layers] =
      (sn_layer){.name = name, .op = op, .attr = kept, .first_input = b->n_inputs, .n_inputs = n_inputs};
  b->n_inputs += n_inputs;
  return b->n_layers++;
}

sn_builder *sn_builder_new(const char *net_name, uint32_t batch, uint32_t channels, uint32_t height, uint32_t width,
                           sn_err *err) {
  sn_builder *b = calloc(1, sizeof *b);
  if (b) b->arena = sn_arena_new();
  if (b && b->arena) b->name = sn_arena_text(b->arena, net_name);
  if (!b || !b->name) {
    sn_fail_memory(err);
    sn__builder_free(b);
    return NULL;
  }
  b->bad_layer = SN_NONE;
  b->data = (sn_shape){batch, channels, height, width};
  add(b, SN_DATA, &(sn_attr){0}, NULL, 0, "data");
  return b;
}

sn_builder *sn_builder_new_volumes(const char *net_name, uint32_t batch, uint32_t channels, uint32_t planes,
                                   uint32_t height, uint32_t width, sn_err *err) {
  const uint64_t rows = (uint64_t)planes * height;
  sn_builder *b = sn_builder_new(net_name, batch, channels, (uint32_t)rows, width, err);
  if (!b) return NULL;
  b->planes = planes;
  if (rows <= SN_MAX_DIM) return b;
  b->bad_layer = SN_DATA_LAYER;
  sn_fail(&b->err, SN_BAD_INPUT, "volumes of %" PRIu32 " planes of %" PRIu32 " rows have more than %u rows together",
          planes, height, SN_MAX_DIM);
  return b;
}

void sn_builder_of_transformers(sn_builder *b) {
  if (b) b->transformers = true;
}

sn_builder *sn_builder_new_tokens(const char *net_name, uint32_t batch, uint32_t tokens, sn_err *err) {
  sn_builder *b = sn_builder_new(net_name, batch, 1, tokens, 1, err);
  if (b) b->tokens = true;
  return b;
}

uint32_t sn_build_layer(sn_builder *b, sn_op op, const sn_attr *attr, const uint32_t *inputs, uint32_t n_inputs,
                        const char *name) {
  if (!b || b->err.code != SN_OK) return SN_NONE;
  if (op == SN_DATA || op == SN_FORK)
    return fail(b, name, "DATA and FORK are not declared: DATA is the input, FORKs are put in where needed");
  return add(b, op, attr, inputs, n_inputs, sn_arena_text(b->arena, name));
}

/* The printed name of the layer at hand, in the builder's arena. */
#define PRINT_NAME(text)                                                                                               \
  const char *text = NULL;                                                                                             \
  if (b) {                                                                                                             \
    va_list args;                                                                                                      \
    va_start(args, name);                                                                                              \
    text = sn_arena_vprint(b->arena, name, args);                                                                      \
    va_end(args);                                                                                                      \
  }

static sn_attr attr_of(sn_conv conv) {
  return (sn_attr){.channels = conv.channels,
                   .kernel_h = conv.kernel,
                   .kernel_w = conv.kernel_wide ? conv.kernel_wide : conv.kernel,
                   .stride_h = conv.stride ? conv.stride : 1,
                   .stride_w = conv.stride ? conv.stride : 1,
                   .pad_h = conv.pad,
                   .pad_w = conv.kernel_wide ? conv.pad_wide : conv.pad,
                   .kernel_d = conv.kernel_deep,
                   .stride_d = conv.stride_deep,
                   .pad_d = conv.pad_deep,
                   .output_pad_h = conv.output_pad,
                   .output_pad_w = conv.output_pad,
                   .groups = conv.groups ? conv.groups : 1,
                   .bias = !conv.no_bias};
}

uint32_t sn_build_conv(sn_builder *b, uint32_t input, sn_conv conv, const char *name, ...) {
  PRINT_NAME(text)
  sn_attr attr = attr_of(conv);
  return add(b, SN_CONV, &attr, &input, 1, text);
}

uint32_t sn_build_deconv(sn_builder *b, uint32_t input, sn_conv conv, const char *name, ...) {
  PRINT_NAME(text)
  sn_attr attr = attr_of(conv);
  return add(b, SN_DECONV, &attr, &input, 1, text);
}

uint32_t sn_build_fc(sn_builder *b, uint32_t input, uint32_t channels, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_FC, &(sn_attr){.channels = channels, .bias = true}, &input, 1, text);
}

uint32_t sn_build_pool(sn_builder *b, uint32_t input, sn_pooling pool, const char *name, ...) {
  PRINT_NAME(text)
  uint32_t stride = pool.stride ? pool.stride : 1;
  sn_attr attr = {.kernel_h = pool.kernel,
                  .kernel_w = pool.kernel,
                  .stride_h = stride,
                  .stride_w = stride,
                  .pad_h = pool.pad,
                  .pad_w = pool.pad,
                  .pool = pool.average ? SN_POOL_AVERAGE : SN_POOL_MAX,
                  .ceil = pool.ceil,
                  .global = pool.global,
                  .adaptive_h = pool.adaptive,
                  .adaptive_w = pool.adaptive};
  return add(b, SN_POOL, &attr, &input, 1, text);
}

uint32_t sn_build_relu(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_ACT, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_relu6(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_ACT, &(sn_attr){.act = SN_ACT_RELU6}, &input, 1, text);
}

uint32_t sn_build_act(sn_builder *b, uint32_t input, sn_act act, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_ACT, &(sn_attr){.act = act.mode, .slope = act.slope}, &input, 1, text);
}

uint32_t sn_build_inplace(sn_builder *b, uint32_t layer, sn_inplace inplace) {
  if (!b || layer >= b->n_layers) return layer;
  sn_attr attr = *b->layers[layer].attr;
  attr.inplace = inplace;
  sn__builder_change(b, layer, &attr);
  return layer;
}

uint32_t sn_build_beside_attention(sn_builder *b, uint32_t layer, bool turned) {
  if (!b || layer >= b->n_layers) return layer;
  sn_attr attr = *b->layers[layer].attr;
  attr.turned = turned;
  attr.apart = !turned;
  sn__builder_change(b, layer, &attr);
  return layer;
}

uint32_t sn_build_lrn(sn_builder *b, uint32_t input, uint32_t size, const char *name, ...) {
  PRINT_NAME(text)
  sn_attr attr = {.lrn_size = size, .lrn_alpha = 1e-4, .lrn_beta = 0.75, .lrn_k = 2};
  return add(b, SN_LRN, &attr, &input, 1, text);
}

uint32_t sn_build_bn(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_BN, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_dropout(sn_builder *b, uint32_t input, double ratio, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_DROPOUT, &(sn_attr){.ratio = ratio}, &input, 1, text);
}

uint32_t sn_build_softmax(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_SOFTMAX, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_join(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_JOIN, &(sn_attr){0}, inputs, n_inputs, text);
}

uint32_t sn_build_concat(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_CONCAT, &(sn_attr){0}, inputs, n_inputs, text);
}

uint32_t sn_build_drop_images(sn_builder *b, uint32_t input, double ratio, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_DROPOUT, &(sn_attr){.ratio = ratio, .images = true}, &input, 1, text);
}

uint32_t sn_build_fc_positions(sn_builder *b, uint32_t input, uint32_t channels, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_FC, &(sn_attr){.channels = channels, .bias = true, .positions = true}, &input, 1, text);
}

uint32_t sn_build_layer_norm(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_LAYER_NORM, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_scale(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_SCALE, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_mul(sn_builder *b, uint32_t input, uint32_t factor, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_MUL, &(sn_attr){0}, (const uint32_t[]){input, factor}, 2, text);
}

uint32_t sn_build_rms_norm(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_RMS_NORM, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_token(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_TOKEN, &(sn_attr){.named = true}, &input, 1, text);
}

uint32_t sn_build_take(sn_builder *b, uint32_t input, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_TAKE, &(sn_attr){0}, &input, 1, text);
}

uint32_t sn_build_rotary(sn_builder *b, uint32_t input, uint32_t heads, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_ROTARY, &(sn_attr){.heads = heads}, &input, 1, text);
}

uint32_t sn_build_embedding(sn_builder *b, uint32_t rows, uint32_t channels, const char *name, ...) {
  PRINT_NAME(text)
  const uint32_t tokens = SN_DATA_LAYER;
  return add(b, SN_EMBEDDING, &(sn_attr){.rows = rows, .channels = channels}, &tokens, 1, text);
}

uint32_t sn_build_embedding_of(sn_builder *b, uint32_t table, const char *name, ...) {
  PRINT_NAME(text)
  const uint32_t tokens = SN_DATA_LAYER;
  sn_attr attr = {.weights_of = table};
  if (b && table < b->n_layers) {
    attr.rows = b->layers[table].attr->rows;
    attr.channels = b->layers[table].attr->channels;
  }
  return add(b, SN_EMBEDDING, &attr, &tokens, 1, text);
}

uint32_t sn_build_reshape(sn_builder *b, uint32_t input, uint32_t channels, uint32_t height, uint32_t width,
                          const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_RESHAPE, &(sn_attr){.shape = {channels, height, width}}, &input, 1, text);
}

uint32_t sn_build_position(sn_builder *b, uint32_t input, uint32_t rows, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_POSITION, &(sn_attr){.rows = rows}, &input, 1, text);
}

uint32_t sn_build_attention(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, sn_attention attention,
                            const char *name, ...) {
  PRINT_NAME(text)
  sn_attr attr = {.heads = attention.heads,
                  .kv_heads = attention.kv_heads ? attention.kv_heads : attention.heads,
                  .causal = attention.causal,
                  .parts = attention.parts,
                  .seedless = attention.seedless,
                  .fused = attention.fused,
                  .ratio = attention.drop,
                  .cap = attention.cap,
                  .rows = attention.rows,
                  .window = attention.window,
                  .shift = attention.shift};
  return add(b, SN_ATTENTION, &attr, inputs, n_inputs, text);
}

uint32_t sn_build_linear(sn_builder *b, uint32_t input, uint32_t channels, uint32_t weights_of, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_FC, &(sn_attr){.channels = channels, .positions = true, .weights_of = weights_of}, &input, 1, text);
}

uint32_t sn_build_loss_positions(sn_builder *b, uint32_t input, sn_loss loss, const char *name, ...) {
  PRINT_NAME(text)
  return add(b, SN_SOFTMAX, &(sn_attr){.positions = true, .loss = loss}, &input, 1, text);
}
