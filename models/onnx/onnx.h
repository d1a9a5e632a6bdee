/* What an ONNX file says of a network, read without its weights; internal to models/.
 *
 * An ONNX file is a protobuf message (onnx.proto of the ONNX project, https://github.com/onnx/onnx). Protobuf's wire
 * format is a list of fields, each with its number and its length, so that what is not wanted is stepped over: of a
 * mapped file the pages that hold weights are never touched.
 */
#ifndef SN_MODELS_ONNX_ONNX_H
#define SN_MODELS_ONNX_ONNX_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN__ONNX_RANK = 8, SN__ONNX_VALUES = 64 };

typedef enum sn__onnx_type {
  SN__ONNX_FLOAT = 1,
  SN__ONNX_INT32 = 6,
  SN__ONNX_INT64 = 7,
  SN__ONNX_BOOL = 9,
  SN__ONNX_HALF = 10,
  SN__ONNX_DOUBLE = 11,
  SN__ONNX_BFLOAT16 = 16
} sn__onnx_type;

/* Who takes the numbers of a parameter first. */
typedef struct sn__onnx_owner {
  uint32_t layer;                      /* 0: nobody has yet */
  bool shared;                         /* another layer takes them, too */
  const struct sn__onnx_owner *beside; /* of the bias that it has beside them; NULL: none */
} sn__onnx_owner;

/* An initializer, a constant, or an input of the graph. */
typedef struct sn__onnx_tensor {
  const char *name;
  int64_t type;
  uint32_t rank;
  int64_t dims[SN__ONNX_RANK]; /* of an input 0 where it is a name, not a number */
  uint32_t n_values;           /* whole numbers; at most SN__ONNX_VALUES, else 0 */
  const int64_t *values;
  uint32_t n_floats; /* at most SN__ONNX_RANK, else 0 */
  double floats[SN__ONNX_RANK];
  bool elsewhere;        /* its values are in another file */
  bool parameter;        /* of floats in the file, or made of such: it is trained */
  bool shapeless;        /* of dimensions that are not known */
  int64_t rows, columns; /* of the table whose rows it holds; 0: of none */
  sn__onnx_owner *owner; /* of floats in the file; NULL: it is none */
  bool given;            /* comes with the batch, or is made of what does */
  bool random;           /* from 0 to 1, drawn anew in each iteration */
  double keep;           /* share of ones in it, which are random; 0: it is no such mask */
} sn__onnx_tensor;

typedef struct sn__onnx_attribute {
  const char *name, *text;
  double f;
  int64_t i;
  uint32_t n_ints;
  const int64_t *ints;
  const sn__onnx_tensor *tensor;
  uint32_t n_outputs; /* of a branch of an If, whose nodes stand ahead of it among all others */
  const char *const *outputs;
} sn__onnx_attribute;

/* Of nodes in a branch of an If: they are computed where the condition is so. */
typedef struct sn__onnx_guard {
  const char *condition;
  bool wanted;
  const struct sn__onnx_guard *outer; /* of the If itself; NULL: it is in none */
} sn__onnx_guard;

typedef struct sn__onnx_node {
  const char *name, *op, *domain;
  const char *module; /* of PyTorch, "features.1.0", that the node was exported from; "" where that is not known */
  const char
      *call; /* of PyTorch that it is of, "%linear : .. = call_function[target=torch.ops.aten.linear.default](args
                       * = (..), kwargs = {})", the same pointer in nodes that stand one behind the other; "": not known */
  uint32_t n_inputs, n_outputs, n_attributes;
  const char *const *inputs, *const *outputs; /* "": left out */
  const sn__onnx_attribute *attributes;
  const sn__onnx_guard *guard; /* NULL: in no branch */
  bool needed;                 /* for what is trained */
  bool folded;                 /* its exporter says that it folded a batch norm into it */
} sn__onnx_node;

typedef struct sn__onnx_model {
  const char *graph, *producer;
  const char *signature; /* of PyTorch's export: which of the initializers are buffers; "": not known */
  int64_t opset;
  uint32_t n_nodes, n_initializers, n_inputs, n_outputs;
  sn__onnx_node *nodes;
  sn__onnx_tensor *initializers, *inputs, *outputs;
} sn__onnx_model;

/* All of it lies in `arena`. SN_BAD_INPUT with the reason, without the file's name. */
sn_status sn__onnx_read(const uint8_t *bytes, size_t size, sn_arena *arena, sn__onnx_model *model, sn_err *err);

const sn__onnx_attribute *sn__onnx_find(const sn__onnx_node *node, const char *name);

#endif
