/* Builder: how a network family or an importer states a network. Errors stick: after the first one every call does
 * nothing and returns SN_NONE, and sn_builder_finish() reports it, so a family reads like the figure in its paper.
 *
 *   sn_builder *b = sn_builder_new("lenet", batch, 1, 28, 28, err);
 *   uint32_t x = SN_DATA_LAYER;
 *   x = sn_build_conv(b, x, (sn_conv){.channels = 20, .kernel = 5}, "conv1");
 *   x = sn_build_pool(b, x, (sn_pooling){.kernel = 2, .stride = 2}, "pool1");
 *   ...
 *   sn_build_softmax(b, x, "softmax");
 *   return sn_builder_finish(b, NULL, err);
 *
 * Layers are named printf style. An output may be given to any number of layers; finish() puts a FORK named
 * "<layer>/fork" behind it, its branches in the order in which the consumers were declared.
 */
#ifndef SN_MODELS_BUILD_BUILD_H
#define SN_MODELS_BUILD_BUILD_H

#include "base/err.h"
#include "models/net/net.h"

#define SN_DATA_LAYER 0u

typedef struct sn_builder sn_builder;

/* Square window unless `wide` is set: kernel x wide means height x width, with padding pad x pad_wide. It sees one
 * plane of a volume at a time unless `deep` is set, which is along the planes what kernel, stride and pad are along
 * rows. */
typedef struct sn_conv {
  uint32_t channels, kernel, stride, pad; /* stride 0 means 1 */
  uint32_t kernel_wide, pad_wide;         /* width of a 1x7 or 7x1 window; kernel_wide 0: square, pad on all sides */
  uint32_t kernel_deep, stride_deep, pad_deep;
  uint32_t groups;     /* 0 means 1 */
  uint32_t output_pad; /* of sn_build_deconv() */
  bool no_bias;
} sn_conv;

typedef struct sn_act {
  sn_act_mode mode;
  double slope; /* of SN_ACT_LEAKY and SN_ACT_TIMES */
} sn_act;

typedef struct sn_pooling {
  uint32_t kernel, stride, pad; /* stride 0 means 1 */
  uint32_t adaptive;            /* height and width of the output; then no kernel, stride, pad, ceil. 0: not adaptive */
  bool average, ceil, global;
} sn_pooling;

/* NULL only when out of memory; a batch or size of zero or beyond the limits is a sticky error. */
sn_builder *sn_builder_new(const char *net_name, uint32_t batch, uint32_t channels, uint32_t height, uint32_t width,
                           sn_err *err);

/* The same for a batch of volumes, each of `planes` images of that height and width. */
sn_builder *sn_builder_new_volumes(const char *net_name, uint32_t batch, uint32_t channels, uint32_t planes,
                                   uint32_t height, uint32_t width, sn_err *err);

/* The same for a batch of token sequences. */
sn_builder *sn_builder_new_tokens(const char *net_name, uint32_t batch, uint32_t tokens, sn_err *err);

/* What is built is a module of Hugging Face's transformers. */
void sn_builder_of_transformers(sn_builder *b);

typedef struct sn_attention {
  uint32_t heads, kv_heads; /* kv_heads 0: as many */
  bool causal, parts;
  bool fused;                   /* as in sn_attr, of parts */
  bool seedless;                /* as in sn_attr */
  double drop;                  /* share of probabilities */
  double cap;                   /* of scores, as in sn_attr */
  uint32_t rows, window, shift; /* as in sn_attr */
} sn_attention;

#define SN_NAMED(n) __attribute__((format(printf, n, n + 1)))
uint32_t sn_build_conv(sn_builder *b, uint32_t input, sn_conv conv, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_deconv(sn_builder *b, uint32_t input, sn_conv conv, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_fc(sn_builder *b, uint32_t input, uint32_t channels, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_pool(sn_builder *b, uint32_t input, sn_pooling pool, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_relu(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_relu6(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_act(sn_builder *b, uint32_t input, sn_act act, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_lrn(sn_builder *b, uint32_t input, uint32_t size, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_bn(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_dropout(sn_builder *b, uint32_t input, double ratio, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_drop_images(sn_builder *b, uint32_t input, double ratio, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_fc_positions(sn_builder *b, uint32_t input, uint32_t channels, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_layer_norm(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_scale(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_mul(sn_builder *b, uint32_t input, uint32_t factor, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_rms_norm(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_embedding(sn_builder *b, uint32_t rows, uint32_t channels, const char *name, ...) SN_NAMED(4);
/* By the table of another. */
uint32_t sn_build_embedding_of(sn_builder *b, uint32_t table, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_reshape(sn_builder *b, uint32_t input, uint32_t channels, uint32_t height, uint32_t width,
                          const char *name, ...) SN_NAMED(6);
uint32_t sn_build_position(sn_builder *b, uint32_t input, uint32_t rows, const char *name, ...) SN_NAMED(4);
/* Named, as in sn_attr. */
uint32_t sn_build_token(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_take(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
/* By heads of so many, which divides the channels. */
uint32_t sn_build_rotary(sn_builder *b, uint32_t input, uint32_t heads, const char *name, ...) SN_NAMED(4);
/* `inputs`: queries, keys and values, or one that holds all three. */
uint32_t sn_build_attention(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, sn_attention attention,
                            const char *name, ...) SN_NAMED(5);
/* Of each position, without bias; `weights_of`: by another layer's table, 0: by its own. */
uint32_t sn_build_linear(sn_builder *b, uint32_t input, uint32_t channels, uint32_t weights_of, const char *name, ...)
    SN_NAMED(5);
/* Of each position, of classes. */
uint32_t sn_build_loss_positions(sn_builder *b, uint32_t input, sn_loss loss, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_softmax(sn_builder *b, uint32_t input, const char *name, ...) SN_NAMED(3);
uint32_t sn_build_join(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, const char *name, ...) SN_NAMED(4);
uint32_t sn_build_concat(sn_builder *b, const uint32_t *inputs, uint32_t n_inputs, const char *name, ...) SN_NAMED(4);

/* Sets the flag of a declared ACT, JOIN or DROPOUT; returns `layer`. SN_NONE is accepted: an error has been kept. */
uint32_t sn_build_inplace(sn_builder *b, uint32_t layer, sn_inplace inplace);

/* The same of a declared FC's `turned`, of one behind an attention, or else `apart`, of one ahead of it. */
uint32_t sn_build_beside_attention(sn_builder *b, uint32_t layer, bool turned);

/* The general form, for importers: inputs may name layers that are declared later (forward references). */
uint32_t sn_build_layer(sn_builder *b, sn_op op, const sn_attr *attr, const uint32_t *inputs, uint32_t n_inputs,
                        const char *name);

/* Inserts FORKs, infers shapes, measures every layer. NULL and SN_BAD_INPUT where a name stands twice, an input is
 * missing, layers form a cycle, shapes do not match, an output is never used, there is no SOFTMAX, or a limit of
 * models/net/net.h is passed. Frees the builder in every case. `bad_layer`, if not NULL, gets the index of the declared
 * layer the error is about (SN_NONE where it is about none), so that an importer can name its line. */
sn_net *sn_builder_finish(sn_builder *b, uint32_t *bad_layer, sn_err *err);

#endif
