/* Operators where values begin, part, meet and end: what is joined has one height and width. */
#include "base/err.h"
#include "models/op/family.h"

#include <inttypes.h>
#include <stdio.h>

enum { PLACES_TEXT = 40 }; /* room for "16777216x16777216x16777216" */

/* "28x28", of a volume "16x28x28". */
static const char *places_text(sn_shape shape, uint32_t planes, char *text, size_t room) {
  if (planes > 1)
    snprintf(text, room, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, planes, shape.h / planes, shape.w);
  else
    snprintf(text, room, "%" PRIu32 "x%" PRIu32, shape.h, shape.w);
  return text;
}

/* What two inputs have that does not go together: input 0 and input i. */
static sn_status fail_unequal(const char *what, const sn_attr *a, const sn_shape *inputs, uint32_t i, sn_err *err) {
  char first[PLACES_TEXT], odd[PLACES_TEXT];
  uint32_t planes = inputs[i].h == 1 ? 0 : a->planes; /* a MUL's second input may be an image */
  return sn_fail(err, SN_BAD_INPUT,
                 "%s: input 1 is %" PRIu32 "x%s, input %" PRIu32 " is %" PRIu32 "x%s (channels x %sheight x width)",
                 what, inputs[0].c, places_text(inputs[0], a->planes, first, sizeof first), i + 1, inputs[i].c,
                 places_text(inputs[i], planes, odd, sizeof odd), a->planes > 1 ? "depth x " : "");
}

const sn_op_def sn__op_DATA = {.name = "DATA", .inner = true, .checkpoint = true, .volumes = true};

/* ---- RECORDED: PyTorch's own ---- */

const sn_op_def sn__op_RECORDED = {.name = "RECORDED", .inner = true, .checkpoint = true};

const sn_op_def sn__op_RECORDED_HEAVY = {
    .name = "RECORDED_HEAVY",
    .inner = true,
    .checkpoint = true,
    .offload_paper = true,
    .ends_offload = true,
};

const sn_op_def sn__op_RECORDED_CHEAP = {.name = "RECORDED_CHEAP", .inner = true};

const sn_op_def sn__op_RECORDED_MASKED = {.name = "RECORDED_MASKED", .inner = true};

/* ---- GIVEN: made of nothing but the batch's coming; it looks at no number of its input ---- */

static sn_status given_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  static const char *const sides[] = {"channels", "height", "width"};
  (void)count;
  for (int i = 0; i < SN_SIDES; i++)
    if (sn__check_range(sides[i], a->shape[i], 1, err)) return err->code;
  *out = (sn_shape){a->once ? 1 : inputs[0].n, a->shape[0], a->shape[1], a->shape[2]};
  return SN_OK;
}

static uint32_t given_planes(const sn_attr *a) {
  (void)a;
  return 0;
}

static sn_traffic given_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)x, (void)weight;
  return (sn_traffic){.bytes = {y, 0}, .launches = {1, 0}};
}

static const char *given_simulated_only(const sn_attr *a) {
  (void)a;
  return "whose numbers the network does not say";
}

const sn_op_def sn__op_GIVEN = {.name = "GIVEN",
                                .called = (const char *const[]){"input", NULL},
                                .checkpoint = true,
                                .volumes = true,
                                .simulated_only = given_simulated_only,
                                .keys = {{"shape", SN_KEY_SIDES, SN_AT(shape), .required = true, .always = true},
                                         {"once", SN_KEY_FLAG, SN_AT(once)}},
                                .shape = given_shape,
                                .planes = given_planes,
                                .traffic = given_traffic};

/* ---- FORK: a copy per branch; backward adds each branch but the first to the first ---- */

static sn_traffic fork_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)y, (void)weight;
  const double out = layer->n_outputs;
  return (sn_traffic){.bytes = {2 * out * x, 3 * (out - 1) * x}, .launches = {out, out - 1}};
}

const sn_op_def sn__op_FORK = {.name = "FORK",
                               .inner = true,
                               .checkpoint = true,
                               .offload_joints = true,
                               .volumes = true,
                               .traffic = fork_traffic};

/* ---- JOIN ---- */

/* The first input that differs from input 0 in height, width or, where they are added, in channels; count where none
 * does. What is added may be the same for all images. */
static uint32_t odd_one(const sn_shape *inputs, uint32_t count, bool added) {
  uint32_t i = 1;
  while (i < count && (inputs[i].n == inputs[0].n || (added && inputs[i].n == 1)) && inputs[i].h == inputs[0].h &&
         inputs[i].w == inputs[0].w && (!added || inputs[i].c == inputs[0].c))
    i++;
  return i;
}

static sn_status join_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  uint32_t odd = odd_one(inputs, count, true);
  return odd == count ? SN_OK : fail_unequal("JOIN adds tensors of one shape", a, inputs, odd, err);
}

/* Backward copies dy for every input but the first. */
static sn_traffic join_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)weight;
  const double in = layer->n_inputs;
  return (sn_traffic){.bytes = {in * x + y, 2 * (in - 1) * x}, .launches = {1, in - 1}};
}

const sn_op_def sn__op_JOIN = {.name = "JOIN",
                               .called = (const char *const[]){"add", "sum", "eltwise", NULL},
                               .checkpoint = true,
                               .many_inputs = true,
                               .offload_joints = true,
                               .volumes = true,
                               .autocast = SN_AUTOCAST_PROMOTES,
                               .keys = {{"inplace", SN_KEY_CHOICE, SN_AT(inplace)}},
                               .shape = join_shape,
                               .traffic = join_traffic};

/* ---- CONCAT ---- */

static sn_status concat_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  uint32_t odd = odd_one(inputs, count, false);
  if (odd != count) return fail_unequal("CONCAT needs one height and width", a, inputs, odd, err);
  for (uint32_t i = 1; i < count; i++) {
    if (inputs[i].c > SN_MAX_DIM - out->c)
      return sn_fail(err, SN_BAD_INPUT, "CONCAT has more than %u channels", SN_MAX_DIM);
    out->c += inputs[i].c;
  }
  return SN_OK;
}

static sn_traffic concat_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)x, (void)weight;
  const double in = layer->n_inputs;
  return (sn_traffic){.bytes = {2 * y, 2 * y}, .launches = {in, in}};
}

const sn_op_def sn__op_CONCAT = {.name = "CONCAT",
                                 .checkpoint = true,
                                 .many_inputs = true,
                                 .one_will_do = true,
                                 .offload_joints = true,
                                 .volumes = true,
                                 .autocast = SN_AUTOCAST_WIDEST,
                                 .shape = concat_shape,
                                 .traffic = concat_traffic};

/* ---- MUL ---- */

static bool broadcasts(uint32_t factor, uint32_t side) {
  return factor == side || factor == 1;
}

static sn_status mul_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  if (count > 2) return sn_fail(err, SN_BAD_INPUT, "MUL takes two inputs, not %" PRIu32, count);
  sn_shape x = inputs[0], factor = inputs[1];
  if (broadcasts(factor.c, x.c) && broadcasts(factor.h, x.h) && broadcasts(factor.w, x.w)) return SN_OK;
  return fail_unequal("MUL multiplies by a tensor of the same shape, or with sides of 1", a, inputs, 1, err);
}

/* Backward makes a product for either factor. */
static sn_traffic mul_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {2 * x + y, 5 * x}, .launches = {1, 2}};
}

const sn_op_def sn__op_MUL = {.name = "MUL",
                              .called = (const char *const[]){"multiply", NULL},
                              .checkpoint = true,
                              .many_inputs = true,
                              .offload_joints = true,
                              .volumes = true,
                              .autocast = SN_AUTOCAST_PROMOTES,
                              .shape = mul_shape,
                              .traffic = mul_traffic};

/* ---- SOFTMAX, with a loss ---- */

const char *const *sn_loss_names(void) {
  static const char *const losses[SN_LOSSES + 1] = {[SN_LOSS_CROSS_ENTROPY] = "cross_entropy",
                                                    [SN_LOSS_MSE] = "mse",
                                                    [SN_LOSS_CROSS_ENTROPY_FP32] = "cross_entropy_fp32"};
  return losses;
}

static void softmax_settle(sn_attr *a, const sn_described *d) {
  if (a->loss == SN_LOSS_MSE && sn_is_given(d, "positions"))
    sn_say_wrong(d, "a SOFTMAX of loss \"mse\" has no \"positions\": it is of every number");
}

static sn_status softmax_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  *out = inputs[0];
  if ((out->h == 1 && out->w == 1) || a->positions || a->loss == SN_LOSS_MSE) return SN_OK;
  char places[PLACES_TEXT];
  return sn_fail(err, SN_BAD_INPUT,
                 "SOFTMAX classifies whole images, but its input is %s pixels; put an FC or a global POOL before it",
                 places_text(*out, a->planes, places, sizeof places));
}

static sn_traffic softmax_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, x + y}, .launches = {2, 1}};
}

const sn_op_def sn__op_SOFTMAX = {
    .name = "SOFTMAX",
    .called = (const char *const[]){"loss", NULL},
    .checkpoint = true,
    .volumes = true,
    .autocast = SN_AUTOCAST_WIDE,
    .keys = {{"positions", SN_KEY_FLAG, SN_AT(positions)}, {"loss", SN_KEY_WORD, SN_AT(loss), .words = sn_loss_names}},
    .settle = softmax_settle,
    .shape = softmax_shape,
    .traffic = softmax_traffic};
