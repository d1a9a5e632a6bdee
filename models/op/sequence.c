/* Operators on sequences: shapes and counts. An attention of one input holds queries, keys and values one behind the
 * other in its channels; of three, queries and keys have as many channels a head, keys and values as many positions.
 *
 *   fused      saves the logarithm of each row's sum, 4 bytes a query and head, and two seeds of 8 bytes
 *   in parts   saves the probabilities and, where some are dropped, what is left of them and which, a byte each; where
 *              scores are capped, the hyperbolic tangents of these
 *
 * As many keys as queries are counted, those of a query's window, or `keys`. */
#include "models/op/family.h"

#include <inttypes.h>

static sn_status embedding_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = (sn_shape){in.n, a->channels, in.h, in.w};
  if (in.c != 1)
    return sn_fail(err, SN_BAD_INPUT, "EMBEDDING looks tokens up, but its input has %" PRIu32 " channels", in.c);
  return sn__check_range("vocabulary", a->rows, 1, err) ? err->code : sn__check_range("channels", a->channels, 1, err);
}

static sn_status position_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = in;
  return sn__check_range("rows", a->rows, 1, err);
}

static sn_status token_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)a, (void)count;
  const sn_shape in = inputs[0];
  uint64_t positions = (uint64_t)in.h * in.w + 1;
  if (positions > SN_MAX_DIM)
    return sn_fail(err, SN_BAD_INPUT, "TOKEN has %" PRIu64 " positions, more than %u", positions, SN_MAX_DIM);
  *out = (sn_shape){in.n, in.c, (uint32_t)positions, 1};
  return SN_OK;
}

static sn_status rotary_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  const uint64_t heads = a->heads > 0 ? a->heads : 1;
  *out = in;
  if (in.c % (2 * heads) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "ROTARY turns pairs of channels of each head: %" PRIu32 " channels cannot be pairs in %" PRIu64
                 " heads",
                 in.c, heads);
}

static sn_status check_heads(const sn_attr *a, sn_err *err) {
  if (sn__check_range("heads", a->heads, 1, err) || sn__check_range("kv_heads", a->kv_heads, 1, err)) return err->code;
  if (!(a->ratio >= 0 && a->ratio < 1))
    return sn_fail(err, SN_BAD_INPUT, "ratio %g is not from 0 to below 1", a->ratio);
  if (!(a->cap >= 0 && a->cap <= 1e6))
    return sn_fail(err, SN_BAD_INPUT, "cap %g is not from 0, which caps nothing, to 1e6", a->cap);
  if (a->cap > 0 && (!a->parts || a->ratio > 0))
    return sn_fail(err, SN_BAD_INPUT,
                   "scores are capped in an ATTENTION of \"parts\": true that drops no probabilities");
  if (a->fused && (!a->parts || a->cap > 0 || a->rows > 0))
    return sn_fail(err, SN_BAD_INPUT,
                   "\"fused\" is an ATTENTION of \"parts\": true whose scores have neither a cap nor a table");
  if (a->seedless && (a->parts || a->ratio > 0))
    return sn_fail(err, SN_BAD_INPUT, "\"seedless\" is an ATTENTION of \"parts\": false that drops no probabilities");
  if (a->heads % a->kv_heads == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "kv_heads %" PRIu32 " does not divide heads %" PRIu32, a->kv_heads, a->heads);
}

static sn_status fail_heads(uint32_t channels, uint64_t heads, sn_err *err) {
  return sn_fail(err, SN_BAD_INPUT, "%" PRIu32 " channels cannot be shared by %" PRIu64 " heads", channels, heads);
}

static sn_status packed_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  uint64_t heads = (uint64_t)a->heads + 2 * (uint64_t)a->kv_heads;
  *out = in;
  if (in.c % heads != 0) return fail_heads(in.c, heads, err);
  out->c = (uint32_t)(in.c / heads * a->heads);
  return SN_OK;
}

static sn_status check_table(const sn_attr *a, sn_shape in, sn_err *err) {
  if (sn__check_range("rows", a->rows, 0, err) || sn__check_range("window", a->window, 0, err)) return err->code;
  const uint64_t distances = 2 * (uint64_t)a->window - 1;
  if (a->shift > 0 && a->shift >= a->window)
    return sn_fail(err, SN_BAD_INPUT, "a shift of %" PRIu32 " is not smaller than windows of %" PRIu32 "x%" PRIu32,
                   a->shift, a->window, a->window);
  if (a->window > 0 && a->rows > 0 && a->rows != distances * distances)
    return sn_fail(err, SN_BAD_INPUT,
                   "a table of %" PRIu32 " rows, but windows of %" PRIu32 "x%" PRIu32 " have %" PRIu64 " distances",
                   a->rows, a->window, a->window, distances * distances);
  if (a->window == 0 || (in.h % a->window == 0 && in.w % a->window == 0)) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "windows of %" PRIu32 "x%" PRIu32 " do not fill %" PRIu32 "x%" PRIu32 " positions; pad them first",
                 a->window, a->window, in.h, in.w);
}

/* Keys that are not as many as queries have no order among these. */
static sn_status check_keys(const sn_attr *a, uint32_t count, sn_err *err) {
  if (a->keys == 0 || (count == 3 && !a->causal && a->window == 0 && a->rows == 0)) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "an ATTENTION with \"keys\" has three inputs, is not causal, and has no windows or table");
}

static sn_status attention_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  if (check_keys(a, count, err) || check_heads(a, err) || check_table(a, inputs[0], err)) return err->code;
  if (count == 1) return packed_shape(a, inputs[0], out, err);
  if (count != 3)
    return sn_fail(err, SN_BAD_INPUT,
                   "ATTENTION takes queries, keys and values, or one input that holds all three, not %" PRIu32, count);
  sn_shape q = inputs[0], k = inputs[1], v = inputs[2];
  *out = q;
  if (q.c % a->heads != 0) return fail_heads(q.c, a->heads, err);
  uint64_t wanted = (uint64_t)q.c / a->heads * a->kv_heads;
  bool same = k.h == q.h && k.w == q.w;
  if (a->keys > 0) same = (uint64_t)k.h * k.w == a->keys;
  if (k.c == wanted && v.c == wanted && k.n == q.n && same && v.n == q.n && v.h == k.h && v.w == k.w) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "keys are %" PRIu32 "x%" PRIu32 "x%" PRIu32 " and values %" PRIu32 "x%" PRIu32 "x%" PRIu32
                 ", but queries of %" PRIu32 "x%" PRIu32 "x%" PRIu32 " want %" PRIu64
                 " channels and as many positions (channels x height x width)",
                 k.c, k.h, k.w, v.c, v.h, v.w, q.c, q.h, q.w, wanted);
}

static uint64_t keys_seen(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  return a->keys > 0     ? a->keys
         : a->window > 0 ? (uint64_t)a->window * a->window
                         : (uint64_t)layer->out.h * layer->out.w;
}

uint64_t sn_attention_scores(const sn_layer *layer) {
  return layer->out.n * ((uint64_t)layer->out.h * layer->out.w) * keys_seen(layer) * layer->attr->heads;
}

static sn_status attention_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input;
  const sn_attr *a = layer->attr;
  uint64_t positions = (uint64_t)layer->out.h * layer->out.w, seen = keys_seen(layer), probabilities;
  const uint64_t work[] = {2, layer->out.n, positions, seen, layer->out.c};
  const uint64_t scores[] = {layer->out.n, positions, seen, a->heads};
  if (!sn__product_within(work, 5, SN_MAX_NET_MACS, &layer->macs))
    return sn__fail_too_large("it has multiply-adds", err);
  if (!sn__product_within(scores, 4, SN_MAX_NET_BYTES / 16, &probabilities))
    return sn__fail_too_large("it has probabilities", err);
  layer->parameters = (uint64_t)a->rows * a->heads;
  if (!a->parts)
    layer->statistics_bytes = probabilities / seen * sizeof(float) + 2 * sizeof(uint64_t);
  else
    layer->statistics_bytes = probabilities * ((a->ratio > 0 || a->cap > 0 ? 2 : 1) * sizeof(float) + (a->ratio > 0));
  return SN_OK;
}

/* ---- definitions ---- */

static sn_status take_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)a, (void)count, (void)err;
  *out = (sn_shape){inputs[0].n, inputs[0].c, 1, 1};
  return SN_OK;
}

static sn_status table_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = (uint64_t)layer->attr->rows * layer->out.c;
  return SN_OK;
}

static void table_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  sides[0] = elements / layer->out.c;
  sides[1] = layer->out.c;
}

static void attention_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  sides[0] = elements / layer->attr->heads;
  sides[1] = layer->attr->heads;
}

/* Backward clears the table's gradient and adds a row for each token. */
static sn_traffic embedding_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)x;
  return (sn_traffic){.bytes = {2 * y, 2 * y + weight * (double)layer->parameters}, .launches = {1, 2}};
}

/* Backward reads y and dy. */
static sn_traffic probabilities_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, 3 * y}, .launches = {1, 1}};
}

/* What attention in parts moves beside its products, in scores of four bytes and in outputs. */
typedef struct sn_beside {
  double scores[2], values[2], launches[2];
} sn_beside;

/* Scores are written, read and written by the softmax, and read: in four bytes, or in their own width where scale, mask
 * and softmax are one kernel (`fused`). Dropping reads and writes them in that, and a mask of a byte. A cap is a division, a hyperbolic tangent and a
 * product more, each of which reads and writes them; so does what is added to them, a table's numbers by distance and,
 * in windows that are moved, the mask; backward sums up the table's gradient. Products want a head's numbers side by
 * side: queries, keys, values and the output are copied, queries scaled, and backward as many, of keys and values
 * together. What windows cut out is padded, copied and copied back, and moved before and behind. */
static sn_beside beside_products(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  sn_beside b = {.scores = {4, 6}, .values = {10, 14}, .launches = {9, 11}};
  if (a->cap > 0) b = (sn_beside){.scores = {10, 13}, .values = {10, 14}, .launches = {12, 14}};
  if (a->rows > 0) b.scores[0] += 2, b.scores[1] += 3, b.launches[0]++, b.launches[1] += 2;
  if (a->window > 0) b.values[0] += 6, b.values[1] += 6, b.launches[0] += 3, b.launches[1] += 3;
  if (a->shift > 0) b.scores[0] += 2, b.values[0] += 4, b.values[1] += 4, b.launches[0] += 3, b.launches[1] += 2;
  return b;
}

static double positions_of(const sn_layer *layer) {
  return (double)layer->out.h * layer->out.w;
}

/* Fused, backward computes the probabilities again: five products for forward's two, and a causal one skips what is
 * masked. */
static sn_traffic attention_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)weight;
  double flops = 2 * (double)layer->macs, in = layer->n_inputs * x;
  if (layer->attr->parts) {
    const sn_beside b = beside_products(layer);
    const double count = (double)sn_attention_scores(layer),
                 width = y / (positions_of(layer) * layer->out.n * layer->out.c);
    const double scores = count * (layer->attr->fused ? width : sizeof(float));
    const double dropped = layer->attr->ratio > 0 ? count * (2 * width + 1) : 0;
    return (sn_traffic){.bytes = {in + y + b.values[0] * y + b.scores[0] * scores + dropped,
                                  2 * (in + y) + b.values[1] * y + b.scores[1] * scores + dropped},
                        .flops = {flops, 2 * flops},
                        .launches = {b.launches[0], b.launches[1]}};
  }
  if (layer->attr->causal) flops /= 2;
  return (sn_traffic){.bytes = {in + y, 2 * (in + y)}, .flops = {flops, 2.5 * flops}, .launches = {1, 2}};
}

static const char *attention_simulated_only(const sn_attr *a) {
  return a->keys > 0 ? "whose keys are not as many as its queries" : NULL;
}

static void attention_settle(sn_attr *a, const sn_described *d) {
  (void)d;
  if (a->kv_heads == 0) a->kv_heads = a->heads;
}

const sn_op_def sn__op_EMBEDDING = {
    .name = "EMBEDDING",
    .called = (const char *const[]){"embed", NULL},
    .checkpoint = true,
    .autocast = SN_AUTOCAST_PROMOTES_WIDE,
    .keys = {{"vocabulary", SN_KEY_SIZE, SN_AT(rows), .least = 1, .required = true, .always = true},
             {"channels", SN_KEY_SIZE, SN_AT(channels), .least = 1, .required = true, .always = true},
             SN_WEIGHTS_OF},
    .shape = embedding_shape,
    .measure = table_measure,
    .sides = table_sides,
    .traffic = embedding_traffic};

const sn_op_def sn__op_POSITION = {
    .name = "POSITION",
    .autocast = SN_AUTOCAST_PROMOTES_WIDE,
    .keys = {{"rows", SN_KEY_SIZE, SN_AT(rows), .least = 1, .required = true, .always = true}, SN_WEIGHTS_OF},
    .shape = position_shape,
    .measure = table_measure,
    .sides = table_sides,
    .traffic = sn__traffic_once};

const sn_op_def sn__op_TOKEN = {.name = "TOKEN",
                                .autocast = SN_AUTOCAST_WIDE,
                                .keys = {{"named", SN_KEY_FLAG, SN_AT(named)}, SN_WEIGHTS_OF},
                                .shape = token_shape,
                                .measure = sn__measure_channels,
                                .sides = table_sides,
                                .traffic = sn__traffic_once};

const sn_op_def sn__op_TAKE = {.name = "TAKE", .shape = take_shape, .traffic = sn__traffic_once};

const sn_op_def sn__op_ATTENTION = {
    .name = "ATTENTION",
    .called = (const char *const[]){"multihead", "scaled_dot", NULL},
    .checkpoint = true,
    .many_inputs = true,
    .one_will_do = true,
    .autocast = SN_AUTOCAST_NARROW,
    .simulated_only = attention_simulated_only,
    .keys = {{"heads", SN_KEY_SIZE, SN_AT(heads), .least = 1, .required = true, .always = true},
             {"kv_heads", SN_KEY_SIZE, SN_AT(kv_heads), .least = 1, .always = true},
             {"keys", SN_KEY_SIZE, SN_AT(keys), .least = 1},
             {"causal", SN_KEY_FLAG, SN_AT(causal), .always = true},
             {"parts", SN_KEY_FLAG, SN_AT(parts), .always = true},
             {"seedless", SN_KEY_FLAG, SN_AT(seedless)},
             {"fused", SN_KEY_FLAG, SN_AT(fused)},
             {"rows", SN_KEY_SIZE, SN_AT(rows), .least = 1},
             {"window", SN_KEY_SIZE, SN_AT(window), .least = 1},
             {"shift", SN_KEY_SIZE, SN_AT(shift)},
             {"ratio", SN_KEY_NUMBER, SN_AT(ratio), .always = true},
             {"cap", SN_KEY_NUMBER, SN_AT(cap)},
             SN_WEIGHTS_OF},
    .settle = attention_settle,
    .shape = attention_shape,
    .measure = attention_measure,
    .sides = attention_sides,
    .traffic = attention_traffic};

const sn_op_def sn__op_ROTARY = {.name = "ROTARY",
                                 .keys = {{"heads", SN_KEY_SIZE, SN_AT(heads), .least = 1}},
                                 .shape = rotary_shape,
                                 .traffic = sn__traffic_once};

const sn_op_def sn__op_PROBABILITIES = {
    .name = "PROBABILITIES",
    .volumes = true,
    .autocast = SN_AUTOCAST_WIDE,
    .keys = {{"axis", SN_KEY_WORD, SN_AT(axis), .words = sn_side_names, .always = true}},
    .traffic = probabilities_traffic};
