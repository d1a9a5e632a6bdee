/* CPU module, internal: the kernels by operator and what they share; kernels.c chooses.
 *
 * A primitive is a oneDNN kernel made once, with a memory object per argument. A run points these at the call's
 * tensors, in the order of the arguments it was made with. Where a tensor lies otherwise than the kernel wants it, the
 * primitive has a turn: a copy in the kernel's layout, in scratch behind the kernel's own.
 *
 * Layouts (layout.c). A value of the net, and its gradient, lies plain, (n, c, h, w), or blocked, (n, c / B, h, w, B):
 * then B channels of a pixel stand together, as many as a vector register holds. B divides the channels, so both take
 * the same bytes, and channels k B to l B of an image lie at the same place. Of a volume h counts the rows of all
 * planes, so that only windows mind them. Weights last for a whole training as forward and their gradient both want
 * them, where that takes no more bytes.
 */
#ifndef SN_EXEC_CPU_CPU_H
#define SN_EXEC_CPU_CPU_H

#include "exec/kernel/kernel_internal.h"
#include "exec/machine/cpu_module.h"
#include "sim/device/cost.h"

#include <oneapi/dnnl/dnnl.h>

enum { SN__MAX_ARGS = 8 };

/* Of an argument: the tensor as it lies, its copy at `at` of the workspace, and the reorder between them. */
typedef struct sn__turn {
  dnnl_primitive_t reorder; /* NULL: there is none */
  dnnl_memory_t given, wanted;
  uint64_t at;
  bool result; /* the kernel writes it: the copy is made behind the kernel */
} sn__turn;

typedef struct sn__primitive {
  dnnl_primitive_t handle;
  int n_args;                         /* without the scratchpad, which comes after them */
  uint64_t scratchpad_bytes;          /* 0: it has none */
  uint64_t scratch_bytes;             /* with the copies of turns */
  dnnl_exec_arg_t args[SN__MAX_ARGS]; /* as the kernel wants them */
  sn__turn turns[SN__MAX_ARGS];
} sn__primitive;

/* Of a CONV, DECONV or FC all three (the first layer's has no backward), of others the first two or none. */
typedef struct sn__cpu_layer {
  sn__primitive forward, backward, weights;
  dnnl_memory_desc_t plain, lasting; /* how weights lie before and after they are turned; of no dimensions: alike */
  bool made;
} sn__cpu_layer;

struct sn__cpu {
  const sn_net *net;
  int threads;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  sn__cpu_layer *layers; /* one per layer of the net */
  bool lasting;          /* weights were turned */
  bool shares;           /* layers, layouts and engine are those of others */
  uint32_t block;        /* channels of a block on this processor */
  uint32_t *layouts;     /* per value of the net: 1 where it lies plain, else `block` */
  int64_t *positions;    /* POOL backward over its own input: of one block of the largest output of a maximum */
  char version[64], named[SN_LAYOUTS_TEXT]; /* named: all layouts in short */
};

/* `descriptor` is what oneDNN's ..._desc_init() has filled; `forward` is NULL but for a backward. `given`: how the
 * tensors lie, argument by argument; NULL, or a NULL of it: as the kernel wants them. What is made in part is left to
 * sn__primitive_free(). */
sn_status sn__primitive_new(sn__cpu *k, const void *descriptor, const sn__primitive *forward, const int *args,
                            const dnnl_memory_desc_t *const *given, int n_args, sn__primitive *primitive, sn_err *err);
void sn__primitive_free(sn__primitive *primitive);
sn_status sn__primitive_run(const sn__cpu *k, const sn__primitive *primitive, float *const *tensors,
                            const sn_call *call, sn_err *err);

/* See sn_cpu_kernels_turn(). */
sn_status sn__weights_turn(const sn__cpu *k, uint32_t layer, float *weights, bool back, sn_err *err);

/* Records what oneDNN answered; SN_OK where it was content. */
sn_status sn__dnnl_check(dnnl_status_t status, const char *what, sn_err *err);

/* A dense float32 tensor of n_dims dimensions, the last one contiguous. */
sn_status sn__dnnl_tensor(dnnl_memory_desc_t *desc, int n_dims, const dnnl_dims_t dims, sn_err *err);
/* Channels in blocks of so many; 1: plain. `planes` of a volume, which lie one below the other; 0: an image. */
sn_status sn__dnnl_image(dnnl_memory_desc_t *desc, sn_shape shape, uint32_t planes, uint32_t block, sn_err *err);

/* Chooses k->layouts. */
sn_status sn__layouts_choose(sn__cpu *k, sn_err *err);
/* Of a layer's i-th input, and of its outputs. */
uint32_t sn__input_layout(const sn__cpu *k, uint32_t layer, uint32_t i);
uint32_t sn__output_layout(const sn__cpu *k, uint32_t layer);
/* Whether oneDNN has a kernel made for a CONV or DECONV between values of these layouts; else a plain one does its
 * work. */
sn_status sn__conv_is_native(const sn__cpu *k, uint32_t layer, uint32_t x_block, uint32_t y_block, bool *native,
                             sn_err *err);

/* Operators with primitives. POOL has them for averages only. */
sn_status sn__cpu_conv_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_conv_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_conv_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_deconv_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_deconv_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_deconv_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_fc_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_fc_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_fc_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_act_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_act_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_act_backward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_pool_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_pool_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_pool_backward(sn__cpu *k, const sn_call *call, sn_err *err);

/* Operators in loops of ours. Threads share them so that no result depends on which thread did what. `block`:
 * how the values lie; JOIN, FORK and CONCAT do the same with blocked ones, SOFTMAX has none. */
void sn__cpu_bn_forward(const sn_call *call, uint32_t block);
void sn__cpu_bn_backward(const sn_call *call, uint32_t block);
void sn__cpu_prelu_forward(const sn_call *call, uint32_t block); /* an ACT with parameters */
void sn__cpu_prelu_backward(const sn_call *call, uint32_t block);
void sn__cpu_lrn_forward(const sn_call *call, uint32_t block);
void sn__cpu_lrn_backward(const sn_call *call, uint32_t block);
uint64_t sn__cpu_lrn_scratch(const sn_layer *layer, bool backward, int threads);
void sn__cpu_dropout_forward(const sn_call *call, uint32_t block);
void sn__cpu_dropout_backward(const sn_call *call, uint32_t block);
void sn__cpu_softmax_forward(const sn_call *call, uint32_t block);
void sn__cpu_softmax_backward(const sn_call *call, uint32_t block);
void sn__cpu_join_forward(const sn_call *call, uint32_t block);
void sn__cpu_join_backward(const sn_call *call, uint32_t block);
void sn__cpu_fork_forward(const sn_call *call, uint32_t block);
void sn__cpu_fork_backward(const sn_call *call, uint32_t block);
void sn__cpu_concat_forward(const sn_call *call, uint32_t block);
void sn__cpu_concat_backward(const sn_call *call, uint32_t block);
void sn__cpu_mul_forward(const sn_call *call, uint32_t block);
void sn__cpu_mul_backward(const sn_call *call, uint32_t block);
void sn__cpu_scale_forward(const sn_call *call, uint32_t block);
void sn__cpu_scale_backward(const sn_call *call, uint32_t block);
void sn__cpu_row_norm_forward(const sn_call *call, uint32_t block); /* LAYER_NORM and RMS_NORM; plain */
void sn__cpu_row_norm_backward(const sn_call *call, uint32_t block);
void sn__cpu_attention_forward(const sn_call *call, uint32_t block); /* this and what follows: plain */
void sn__cpu_attention_backward(const sn_call *call, uint32_t block);
uint64_t sn__cpu_attention_scratch(const sn_layer *layer, int threads);
void sn__cpu_rotary_forward(const sn_call *call, uint32_t block);
void sn__cpu_rotary_backward(const sn_call *call, uint32_t block);
void sn__cpu_embedding_forward(const sn_call *call, uint32_t block);
void sn__cpu_embedding_backward(const sn_call *call, uint32_t block);
void sn__cpu_position_forward(const sn_call *call, uint32_t block);
void sn__cpu_position_backward(const sn_call *call, uint32_t block);
void sn__cpu_token_forward(const sn_call *call, uint32_t block);
void sn__cpu_token_backward(const sn_call *call, uint32_t block);
void sn__cpu_take_forward(const sn_call *call, uint32_t block);
void sn__cpu_take_backward(const sn_call *call, uint32_t block);
void sn__cpu_arrange_forward(const sn_call *call, uint32_t block); /* RESHAPE, TRANSPOSE, SLICE */
void sn__cpu_arrange_backward(const sn_call *call, uint32_t block);
void sn__cpu_pad_forward(const sn_call *call, uint32_t block);
void sn__cpu_pad_backward(const sn_call *call, uint32_t block);
void sn__cpu_resize_forward(const sn_call *call, uint32_t block);
void sn__cpu_resize_backward(const sn_call *call, uint32_t block);
void sn__cpu_matmul_forward(const sn_call *call, uint32_t block);
void sn__cpu_matmul_backward(const sn_call *call, uint32_t block);
void sn__cpu_probabilities_forward(const sn_call *call, uint32_t block);
void sn__cpu_probabilities_backward(const sn_call *call, uint32_t block);
void sn__cpu_group_norm_forward(const sn_call *call, uint32_t block);
void sn__cpu_group_norm_backward(const sn_call *call, uint32_t block);
void sn__cpu_update(const sn_call *call);

/* Whether so many threads can be started beside the caller's. SN_BAD_DEVICE says how many can. */
sn_status sn__cpu_try_threads(unsigned count, sn_err *err);

/* Below this many elements a second thread costs more than it does. */
enum { SN__WORTH_THREADS = 1 << 15 };

#endif
