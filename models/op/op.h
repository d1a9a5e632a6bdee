/* Operator table: one row per operator, everything the rest of the program needs to know about it (reference, section
 * 1). A new operator is a new row here, a cost in sim/ and a kernel in exec/. */
#ifndef SN_MODELS_OP_OP_H
#define SN_MODELS_OP_OP_H

#include "base/err.h"
#include "models/net/net.h"

#include <stddef.h>

typedef struct sn_op_info {
  const char *name;    /* "CONV": in tables, plans and JSON networks */
  bool checkpoint;     /* never dropped for recomputation */
  bool many_inputs;    /* takes two or more inputs, CONCAT one or more; all others take one (DATA none) */
  bool offload_paper;  /* its output is offloaded: CONV, and as one DECONV */
  bool offload_joints; /* also with offload=checkpoints: JOIN, FORK, CONCAT */
  bool ends_offload;   /* its forward start releases what was offloaded before it: CONV, FC ([SN] 3.3.1), DECONV */
  bool convolves;      /* by convolution algorithms, with workspaces: CONV, DECONV */
  bool shifts;         /* two parameters a channel, the second half added: norms */
  bool volumes;        /* its inputs may be volumes, not only images */
} sn_op_info;

extern const sn_op_info sn_op_table[SN_OP_COUNT];

static inline const sn_op_info *sn_op_of(const sn_layer *layer) {
  return &sn_op_table[layer->op];
}

/* Names of all operators, for "did you mean". */
const char *const *sn_op_names(void);
/* SN_OP_COUNT where the name is unknown (case ignored). */
sn_op sn_op_by_name(const char *name);

/* Names of an ACT's modes in JSON networks, by sn_act_mode. */
const char *const *sn_act_names(void);
/* Of a SOFTMAX's losses, by sn_loss. */
const char *const *sn_loss_names(void);
/* Of the axes of an image, by sn_side. */
const char *const *sn_side_names(void);

/* Ahead of sn_op_shape(): sets the planes of its input among an operator's attributes. `planes` has those of every
 * input, 0 of an image. SN_BAD_INPUT where it takes no volumes, or not these together. */
sn_status sn_op_take_planes(sn_op op, sn_attr *attr, const sn_shape *inputs, const uint32_t *planes, uint32_t n_inputs,
                            sn_err *err);
/* Behind it: planes of the output, 0 of an image. */
uint32_t sn_op_planes(sn_op op, const sn_attr *attr);

/* Output shape of an operator from its attributes and input shapes. SN_BAD_INPUT with the reason ("kernel 11x11 is
 * larger than its padded input 5x5"), without the layer's name: the caller adds it. */
sn_status sn_op_shape(sn_op op, const sn_attr *attr, const sn_shape *inputs, uint32_t n_inputs, sn_shape *out,
                      sn_err *err);

/* Fills parameters, macs, mask_bytes and statistics_bytes of a layer whose op, attr and out are set. Overflow is
 * SN_BAD_INPUT. */
sn_status sn_op_measure(sn_layer *layer, sn_shape input, sn_err *err);

/* Bytes of one tensor of this shape (float32); SN_BAD_INPUT where a dimension or the product is beyond the limits. */
sn_status sn_shape_bytes(sn_shape shape, uint64_t *bytes, sn_err *err);

#endif
