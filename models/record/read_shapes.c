/* Shapes of convolutions and products in recordings, which their times go by; see read_internal.h.
 *
 *   [[input, weight, ..], stride, padding, dilation, groups, transposed, gradients]          forward
 *   [[gradient, input, weight], ..]                                                          backward: gradients > 0
 *   [[.., first, second]]                                                                    product */
#include "models/net/net.h"
#include "models/record/read_internal.h"

enum { ITEMS = 7, MOST_SIDES = 4 };

/* Sizes of an operand; 0 sides where one of them cannot be had. */
typedef struct sizes {
  uint32_t count;
  sn_record_size side[MOST_SIDES];
} sizes;

/* *out stays as it is where there is no such list. */
static sn_status read_sizes(const sn__reader *r, const cJSON *list, sizes *out) {
  *out = (sizes){0};
  int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  if (count < 1 || count > MOST_SIDES) return SN_OK;
  for (const cJSON *item = list->child; item; item = item->next)
    if (sn__read_size(r, item, "shapes", &out->side[out->count++]) != SN_OK) return r->err->code;
  return SN_OK;
}

/* A side that does not grow with the batch; 0: it does, or is none. */
static uint32_t fixed(sn_record_size side) {
  return side.b == 0 && side.a > 0 && side.a <= SN_MAX_DIM ? (uint32_t)side.a : 0;
}

/* Of rows and columns, of which rows alone may be given. */
static void take_pair(const sizes *s, uint32_t pair[2], uint32_t usual) {
  pair[0] = s->count == 2 ? (uint32_t)s->side[0].a : usual;
  pair[1] = s->count > 0 ? (uint32_t)s->side[s->count - 1].a : usual;
}

/* Images of channels, rows and columns; of three sides there is one row. */
static bool take_shapes(const sizes *input, const sizes *weight, sn_record_conv *c) {
  bool rows = input->count == 4;
  if ((input->count != 3 && !rows) || weight->count != input->count) return false;
  c->n = input->side[0];
  c->c = fixed(input->side[1]);
  c->h = rows ? fixed(input->side[2]) : 1;
  c->w = fixed(input->side[input->count - 1]);
  c->kernel_h = rows ? fixed(weight->side[2]) : 1;
  c->kernel_w = fixed(weight->side[weight->count - 1]);
  c->out = fixed(weight->side[c->transposed ? 1 : 0]);
  if (c->transposed && c->out <= SN_MAX_DIM / c->groups) c->out *= c->groups;
  return c->c && c->h && c->w && c->kernel_h && c->kernel_w && c->out && c->c % c->groups == 0;
}

static bool are_small(const sizes *s, int64_t least) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->side[i].b != 0 || s->side[i].a < least || s->side[i].a > SN_MAX_DIM) return false;
  return s->count <= 2;
}

sn_status sn__read_conv(const sn__reader *r, const cJSON *shapes, sn_record_conv *c, bool *known) {
  const cJSON *at[ITEMS], *item = shapes->child;
  sizes stride, pad, dilation, input, weight;
  uint64_t groups, transposed, gradients;
  *known = false;
  for (int i = 0; i < ITEMS; i++, item = item->next) {
    if (!item) return sn__read_fail(r, "shapes: those of a convolution have %d items", ITEMS);
    at[i] = item;
  }
  if (sn__read_count(r, at[4], "shapes: groups", 1, SN_MAX_DIM, &groups) != SN_OK ||
      sn__read_count(r, at[5], "shapes: transposed", 0, 1, &transposed) != SN_OK ||
      sn__read_count(r, at[6], "shapes: gradients", 0, 7, &gradients) != SN_OK)
    return r->err->code;
  const cJSON *operand = cJSON_IsArray(at[0]) ? at[0]->child : NULL;
  if (operand && gradients > 0) operand = operand->next;
  if (!operand || !operand->next) return sn__read_fail(r, "shapes: a convolution has an input and a weight");
  if (read_sizes(r, operand, &input) != SN_OK || read_sizes(r, operand->next, &weight) != SN_OK ||
      read_sizes(r, at[1], &stride) != SN_OK || read_sizes(r, at[2], &pad) != SN_OK ||
      read_sizes(r, at[3], &dilation) != SN_OK)
    return r->err->code;
  c->groups = (uint32_t)groups;
  c->transposed = transposed == 1;
  c->gradients = (uint8_t)gradients;
  *known = are_small(&stride, 1) && are_small(&pad, 0) && are_small(&dilation, 1) && take_shapes(&input, &weight, c);
  take_pair(&stride, c->stride, 1);
  take_pair(&pad, c->pad, 0);
  take_pair(&dilation, c->dilation, 1);
  return SN_OK;
}

sn_status sn__read_product(const sn__reader *r, const cJSON *shapes, sn_record_product *p, bool *known) {
  const cJSON *operand = cJSON_IsArray(shapes->child) ? shapes->child->child : NULL;
  sizes first, second;
  *known = false;
  if (!operand || !operand->next) return SN_OK;
  while (operand->next->next) operand = operand->next;
  if (read_sizes(r, operand, &first) != SN_OK || read_sizes(r, operand->next, &second) != SN_OK) return r->err->code;
  *known = first.count == second.count && (first.count == 2 || first.count == 3);
  if (!*known) return SN_OK;
  const sn_record_size *a = &first.side[first.count - 2], *b = &second.side[second.count - 2];
  const sn_record_size one = {.a = 1};
  *p = (sn_record_product){.rows = a[0], .terms = a[1], .columns = b[1], .count = first.count == 3 ? a[-1] : one};
  return SN_OK;
}
