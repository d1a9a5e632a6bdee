/* Turning an ONNX graph into a network: values and what the operators' rules (models/onnx/onnx_ops.c) do with them; internal
 * to models/.
 *
 * A value of ONNX has any number of dimensions; ours have images, channels, height and width, or volumes with planes,
 * too. What counts is how many numbers an image has: a rule says as which channels, height and width it wants to see
 * its operand, and where that is another shape than the operand's, a RESHAPE stands between. Transpositions, reshapes
 * and the like of ONNX are no layers then, only other dimensions. An image is never seen as a volume, which no RESHAPE
 * makes.
 */
#ifndef SN_MODELS_ONNX_ONNX_INTERNAL_H
#define SN_MODELS_ONNX_ONNX_INTERNAL_H

#include "models/build/build_internal.h"
#include "models/net/names.h"
#include "models/onnx/onnx.h"

enum { SN__ONNX_REFUSALS = 12 };

/* LOST: made by a node that cannot be imported, or of what one makes. */
typedef enum sn__onnx_kind { SN__ONNX_UNKNOWN, SN__ONNX_CONSTANT, SN__ONNX_LAYER, SN__ONNX_LOST } sn__onnx_kind;

typedef struct sn__onnx_value {
  sn__onnx_kind kind;
  uint32_t layer; /* SN__ONNX_LAYER */
  uint32_t rank;
  int64_t dims[SN__ONNX_RANK];
  int64_t strides[SN__ONNX_RANK];  /* SN__ONNX_LAYER: from one to the next along each axis, in PyTorch's memory */
  const sn__onnx_tensor *constant; /* SN__ONNX_CONSTANT */
  bool needed;                     /* for what is trained; before it is known what it is */
  const sn__onnx_node *sequence;   /* that cuts the layer into parts, of which this is the list; else NULL */
  bool half;                       /* part of an operator made of several nodes (models/onnx/onnx_compose.c) */
  uint32_t given;                  /* of a constant: the GIVEN that an operator reads; 0: none has yet */
} sn__onnx_value;

/* Nodes of one operator that cannot be imported for one reason ("": the operator has no rule). */
typedef struct sn__onnx_refusal {
  const sn__onnx_node *first;
  const char *name, *reason;
  uint32_t count;
} sn__onnx_refusal;

/* What a layer makes. */
typedef struct sn__onnx_made {
  sn_shape shape;
  uint32_t planes;
  sn__onnx_owner *weights; /* whose parameters it has; NULL: not known */
  const char *call;        /* of its node */
  bool once;               /* the same for all images */
  bool awaits;             /* it shares weights whose bias, which its owner has, the next node should add */
} sn__onnx_made;

typedef struct sn__importer {
  sn__onnx_model model;
  sn_arena *arena;
  sn_builder *b;
  sn_err *err;
  uint32_t asked; /* images of the network */
  uint32_t batch; /* of the values here: the file's, which its lists of shapes agree with; `asked` where it is a name */
  bool named;     /* it is a name there */
  const char *batch_name; /* of the model's input that is the batch */
  sn_loss loss;
  bool tokens;     /* the batch is numbers of them */
  sn__names names; /* of values: graph inputs, initializers, outputs of nodes */
  sn__onnx_value *values;
  sn__onnx_made *made;          /* by layers */
  uint32_t room;                /* of made */
  const sn__onnx_node *node;    /* at hand */
  const char *name;             /* of its layer */
  uint32_t extra;               /* layers that it has beside */
  uint32_t refused, n_refusals; /* nodes, and kinds of them; others have no room */
  sn__onnx_refusal refusals[SN__ONNX_REFUSALS];
} sn__importer;

/* Why the node at hand cannot be imported. */
sn_status sn__onnx_fail(sn__importer *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The value of that name; NULL where the graph has none. */
sn__onnx_value *sn__onnx_named(const sn__importer *m, const char *name);
/* The node's n-th input; NULL where it is left out. Whether it is a layer's, or fails. */
const sn__onnx_value *sn__onnx_input(sn__importer *m, uint32_t n);
const sn__onnx_value *sn__onnx_operand(sn__importer *m, uint32_t n);
/* The same of a constant: a GIVEN, as so many channels, rows and columns, makes it, whose numbers are each image's, or
 * `once` those of all. SN_NONE where its dimensions are not known, or it failed. */
uint32_t sn__onnx_given(sn__importer *m, sn__onnx_value *v, uint64_t c, uint64_t h, uint64_t w, bool once);
/* How many images it has: one where it is the same for all. Numbers of one. */
uint64_t sn__onnx_images(const sn__importer *m, const sn__onnx_value *v);
uint64_t sn__onnx_numbers(const sn__importer *m, const sn__onnx_value *v);
int64_t sn__onnx_dim(const sn__onnx_value *v, int64_t axis); /* from the end where below 0; 1 where there is none */

/* A layer of the node; the first has its name, others "name/what". SN_NONE where it failed. */
uint32_t sn__onnx_add(sn__importer *m, const char *what, sn_op op, const sn_attr *attr, const uint32_t *inputs,
                      uint32_t n_inputs);
/* The same of one with parameters, and a bias beside them (NULL: none): where another layer of its kind has them
 * already, they are shared. */
uint32_t sn__onnx_add_weighted(sn__importer *m, sn_op op, const sn_attr *attr, uint32_t x,
                               const sn__onnx_value *weights, const sn__onnx_owner *beside);
/* NULL where it is no parameter. */
sn__onnx_owner *sn__onnx_owner_of(const sn__onnx_value *v);
/* The operand seen as so many channels, rows and columns, one of them 0: what is left. */
uint32_t sn__onnx_as(sn__importer *m, const sn__onnx_value *v, uint64_t c, uint64_t h, uint64_t w);
/* The same with planes, h rows each, and as what another layer makes. */
uint32_t sn__onnx_as_volume(sn__importer *m, const sn__onnx_value *v, uint64_t c, uint64_t planes, uint64_t h,
                            uint64_t w);
/* The value as often as its numbers go into so many: in which order they stand makes no difference. */
uint32_t sn__onnx_spread(sn__importer *m, const sn__onnx_value *v, uint64_t numbers);
uint32_t sn__onnx_as_layer(sn__importer *m, const sn__onnx_value *v, uint32_t layer);
sn_shape sn__onnx_shape(const sn__importer *m, uint32_t layer);
uint32_t sn__onnx_planes(const sn__importer *m, uint32_t layer);         /* 1 of an image */
bool sn__onnx_keep(sn__importer *m, uint32_t layer, sn__onnx_made made); /* of a new one; false: no memory */

/* What the node's n-th output is. */
sn_status sn__onnx_give(sn__importer *m, uint32_t n, uint32_t layer, uint32_t rank, const int64_t *dims);
sn_status sn__onnx_give_constant(sn__importer *m, const sn__onnx_tensor *constant); /* its first */
sn_status sn__onnx_give_constant_as(sn__importer *m, uint32_t n, const sn__onnx_tensor *constant);
/* Of the node's first output, which was given. */
void sn__onnx_mark_half(sn__importer *m, bool half);
void sn__onnx_mark_sequence(sn__importer *m);

/* How values lie (models/onnx/onnx_strides.c): one behind the other; or, of what a layer made of another value, as it
 * does there. A node's output is dense unless it is said how else it lies. */
void sn__onnx_lay_dense(sn__onnx_value *v);
bool sn__onnx_is_dense(const sn__onnx_value *v);
void sn__onnx_lay_like(sn__importer *m, sn__onnx_value *made, const sn__onnx_value *v);
void sn__onnx_lay(sn__importer *m, uint32_t n, const int64_t *strides); /* of the node's n-th output, which was given */
/* Strides of the same numbers in other dimensions; false: they have to be copied. */
bool sn__onnx_view(const sn__onnx_value *v, uint32_t rank, const int64_t *dims, int64_t *strides);
uint32_t sn__onnx_copy(sn__importer *m, const sn__onnx_value *v);
/* The value, or a copy of it, that can be seen with all axes but the last so many as one. */
sn__onnx_value sn__onnx_flat(sn__importer *m, const sn__onnx_value *v, uint32_t kept);

/* Whole numbers from an attribute or, where there is none, from the n-th input; NULL and 0 where neither is there. */
const int64_t *sn__onnx_ints(sn__importer *m, const char *attribute, uint32_t n, uint32_t *count);
int64_t sn__onnx_int(const sn__importer *m, const char *attribute, int64_t otherwise);

/* What rules share (models/onnx/onnx_ops.c): an output of the operand's dimensions, of the layer's, or of the operand's with
 * another side; the operand under another name. */
sn_status sn__onnx_give_same(sn__importer *m, const sn__onnx_value *v, uint32_t layer);
sn_status sn__onnx_give_image(sn__importer *m, const sn__onnx_value *v, uint32_t layer);
sn_status sn__onnx_give_changed(sn__importer *m, const sn__onnx_value *v, int64_t axis, int64_t side, uint32_t layer);
sn_status sn__onnx_alias(sn__importer *m);
/* Channels, rows and columns as they stand, of two to four dimensions, of five with planes; or those along an axis as
 * channels, all else as rows. */
uint32_t sn__onnx_image(sn__importer *m, const sn__onnx_value *v);
uint32_t sn__onnx_positions(sn__importer *m, const sn__onnx_value *v, int64_t axis);
/* A number that sn_attr can hold; 0 where it fails. */
uint32_t sn__onnx_whole(sn__importer *m, int64_t value);
/* Its third operand is floats in the file; zeros that the graph makes are none. */
bool sn__onnx_has_bias(sn__importer *m);
/* A place in a list of `side`, from its end where below 0, as slices have it. */
int64_t sn__onnx_within(int64_t at, int64_t side);

/* A value of the network that cannot be trained further: a constant, or the tokens themselves. */
bool sn__onnx_is_fixed(const sn__importer *m, const sn__onnx_value *v);
/* All of its dimensions are 1. */
bool sn__onnx_is_single(const sn__onnx_value *v);
/* Whether a value keeps its dimensions where a constant is added to it, or multiplied by it. */
bool sn__onnx_takes(const sn__onnx_value *v, const sn__onnx_value *constant);

/* Rules of models/onnx/onnx_pairs.c, models/onnx/onnx_window.c, models/onnx/onnx_arrange.c, models/onnx/onnx_fold.c and models/onnx/onnx_compose.c. */
sn_status sn__onnx_add_two(sn__importer *m);
sn_status sn__onnx_add_all(sn__importer *m);
sn_status sn__onnx_subtract(sn__importer *m);
sn_status sn__onnx_multiply(sn__importer *m);
sn_status sn__onnx_divide(sn__importer *m);
sn_status sn__onnx_conv(sn__importer *m);
sn_status sn__onnx_deconv(sn__importer *m);
sn_status sn__onnx_max_pool(sn__importer *m);
sn_status sn__onnx_average_pool(sn__importer *m);
sn_status sn__onnx_global_max_pool(sn__importer *m);
sn_status sn__onnx_global_average_pool(sn__importer *m);
sn_status sn__onnx_reduce(sn__importer *m);
sn_status sn__onnx_einsum(sn__importer *m);
sn_status sn__onnx_transpose(sn__importer *m);
sn_status sn__onnx_reshape(sn__importer *m);
sn_status sn__onnx_flatten(sn__importer *m);
sn_status sn__onnx_squeeze(sn__importer *m);
sn_status sn__onnx_unsqueeze(sn__importer *m);
sn_status sn__onnx_concat(sn__importer *m);
sn_status sn__onnx_slice(sn__importer *m);
sn_status sn__onnx_split(sn__importer *m);
sn_status sn__onnx_split_later(sn__importer *m);
sn_status sn__onnx_part_of_split(sn__importer *m);
sn_status sn__onnx_gather(sn__importer *m);
sn_status sn__onnx_gather_nd(sn__importer *m);
sn_status sn__onnx_pad(sn__importer *m);
sn_status sn__onnx_move_depth(sn__importer *m);
sn_status sn__onnx_resize(sn__importer *m);
sn_status sn__onnx_shape_rule(sn__importer *m);
sn_status sn__onnx_expand_rule(sn__importer *m);
sn_status sn__onnx_constant_rule(sn__importer *m);
sn_status sn__onnx_branch(sn__importer *m);
/* Of a constant, whose numbers stay known where they are few. */
sn_status sn__onnx_transpose_constant(sn__importer *m, const sn__onnx_tensor *from, const int64_t *dims);
sn_status sn__onnx_reshape_constant(sn__importer *m, const sn__onnx_tensor *from);
/* Whether the operator can be computed ahead, and is where all its inputs are fixed: the output is a constant, whose
 * numbers are known where they are few and whole. */
bool sn__onnx_folds(const sn__onnx_node *node);
/* Dimensions of the node's n-th output, a constant, where they are not simply its inputs'; false: not known
 * (models/onnx/onnx_fold_dims.c). */
bool sn__onnx_fold_dims(sn__importer *m, sn__onnx_tensor *t, uint32_t n);
/* False: not all inputs are fixed. */
bool sn__onnx_fold(sn__importer *m);
/* A constant of which nothing else is known. */
sn_status sn__onnx_give_unknown(sn__importer *m);

sn_status sn__onnx_power(sn__importer *m);
sn_status sn__onnx_compare(sn__importer *m);
sn_status sn__onnx_where(sn__importer *m);
sn_status sn__onnx_random(sn__importer *m);
sn_status sn__onnx_attention(sn__importer *m);
/* Of queries, keys and values of heads: positions and a head's numbers are their last two dimensions. `attr` has what
 * the operands do not say. */
sn_status sn__onnx_attend(sn__importer *m, const sn__onnx_value *const in[3], const sn_attr *attr);
/* Whether an input is part of an operator made of several nodes; then what the node at hand adds to it. */
bool sn__onnx_is_part(sn__importer *m);
sn_status sn__onnx_compose(sn__importer *m);

/* What to say of a file whose batch norms were folded into convolutions; NULL: none were, or no memory
 * (models/onnx/onnx_folded.c). */
const char *sn__onnx_folded(sn__importer *m, const char *path);

typedef sn_status (*sn__onnx_rule)(sn__importer *m);
/* The rule of the call of PyTorch whose nodes begin here, of which `last` is the last one; NULL: nodes are looked at one
 * by one (models/onnx/onnx_calls.c). Then whether the node at hand, of those between, computes a constant. */
sn__onnx_rule sn__onnx_call(const sn__importer *m, uint32_t from, uint32_t *last);
bool sn__onnx_computes_constant(sn__importer *m);
/* What the node at hand becomes. */
sn_status sn__onnx_map(sn__importer *m);
/* NULL: there is none. */
sn__onnx_rule sn__onnx_rule_of(const sn__onnx_node *node);

#endif
