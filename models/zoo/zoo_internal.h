/* What the families of the zoo share with its table, models/zoo/zoo.c; nothing outside the zoo includes this.
 *
 * A family is one function of the type sn_zoo_entry.build. `image` is the size to build for (never 0), `parameters`
 * what stands behind "name:" or NULL. A family without parameters begins with sn__zoo_begin(), which refuses them.
 *
 * Names of layers: what the layer does, then where it stands ("conv2_1a", "relu3_4c", "pool5"); inside a block of
 * Inception or DenseNet the block first ("inception_a1/b3_conv2", "dense1_6/concat"). Each family's head lists its own.
 */
#ifndef SN_MODELS_ZOO_ZOO_INTERNAL_H
#define SN_MODELS_ZOO_ZOO_INTERNAL_H

#include "models/build/build.h"
#include "models/zoo/zoo.h"

#include <stddef.h>

/* Units per stage and the kind of unit: the configuration of a ResNet. */
typedef struct sn__resnet {
  uint32_t units[4];
  bool basic; /* two 3x3 convolutions a unit instead of the bottleneck's three */
  /* tv_resnet only, of the bottleneck's first two convolutions */
  uint32_t groups;      /* of the 3x3; 0: 1 */
  uint32_t group_width; /* channels a group in the first stage, doubled in each later one; 0: 64 */
} sn__resnet;

struct sn__squeezed_row; /* models/zoo/tv_squeezed.c */

typedef struct sn__mobilenet_v3 {
  const struct sn__squeezed_row *rows;
  uint32_t n_rows, last; /* channels of the first FC */
} sn__mobilenet_v3;
extern const sn__mobilenet_v3 sn__mobilenet_v3_large, sn__mobilenet_v3_small;

typedef struct sn__efficientnet {
  uint32_t width, depth; /* in tenths of B0's */
  double dropout;
} sn__efficientnet;

typedef struct sn__convnext {
  uint32_t units[4], channels; /* channels of the first stage, doubled in each later one */
  double drop;                 /* share of images that skip the last unit */
} sn__convnext;

/* What a convolution of a video network sees. */
typedef enum sn__video_window {
  SN__VIDEO_CUBE,  /* 3x3x3 */
  SN__VIDEO_PLANE, /* 1x3x3, one frame at a time */
  SN__VIDEO_SPLIT  /* 1x3x3, then 3x1x1 */
} sn__video_window;

typedef struct sn__video {
  sn__video_window first, others; /* of the first stage, and of the other three */
} sn__video;

typedef struct sn__transformer {
  uint32_t layers, hidden, heads; /* unless parameters say others */
} sn__transformer;

/* Llama and its like: models/zoo/llama.c. */
enum {
  SN__DECODER_LAYERS,
  SN__DECODER_HIDDEN,
  SN__DECODER_HEADS,
  SN__DECODER_KV_HEADS,
  SN__DECODER_FFN,
  SN__DECODER_VOCABULARY,
  SN__DECODER_HEAD, /* features of a head; 0: hidden / heads */
  SN__DECODER_KEYS
};

typedef struct sn__decoder_size {
  const char *name; /* "7b" */
  uint32_t of[SN__DECODER_KEYS];
  bool tied; /* the last layer's weights are the embedding's table */
} sn__decoder_size;

typedef struct sn__decoder {
  const sn__decoder_size *sizes; /* the first one stands where none is named */
  uint32_t n_sizes;
  bool bias;   /* of queries, keys and values */
  bool joined; /* one FC makes queries, keys and values, and one both halves of what the gate multiplies */
  bool gemma;  /* a norm behind each half of a block too, scores and logits capped, attention by simple operations */
  uint32_t experts; /* in place of the FCs of a gate, of which a token goes through two; 0: none */
} sn__decoder;
extern const sn__decoder sn__llama, sn__llama3, sn__mistral, sn__qwen25, sn__phi3, sn__gemma2, sn__mixtral;

typedef struct sn__swin {
  uint32_t units[4], channels; /* channels of the first stage, doubled in each later one */
  double drop;                 /* share of images that skip the last unit */
} sn__swin;

/* What may stand behind "name:": whole numbers from 1 to `high`. */
typedef struct sn__zoo_keys {
  const char *const *names;
  uint32_t count; /* at most 32 */
  uint32_t high;
  sn_loss *loss; /* what "loss=cross_entropy" or "loss=cross_entropy_fp32" sets; NULL: it is no parameter */
} sn__zoo_keys;

/* Reads "key=value,key=value" (or NULL) into `values`, one per key, which keep what they hold where a key is not given.
 * SN_BAD_USAGE, with the allowed keys, for an unknown or repeated key and a bad value. */
sn_status sn__zoo_parameters(const sn_zoo_entry *entry, const char *parameters, const sn__zoo_keys *keys,
                             uint32_t *values, sn_err *err);

/* sn_net_from_file() with its repeat of the depth written out `depth` times and square images of side `image`; 0: as
 * the file says. */
sn_net *sn__net_from_file(const char *path, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err);

/* The same from an ONNX file, or from its bytes, `path` standing in errors; weights are not read. */
/* Of a recording: models/record/. `units`: globs of the modules that are blocks, the outermost that match; NULL: those
 * that a list has several of. */
sn_net *sn__net_from_recording(const char *path, const char *units, uint32_t batch, sn_err *err);
/* The same of what stands in memory, not packed. */
sn_net *sn__net_from_recorded(const char *name, const char *bytes, size_t size, uint32_t batch, sn_err *err);
sn_net *sn__net_from_onnx_file(const char *path, sn_loss loss, uint32_t batch, uint32_t image, sn_err *err);
sn_net *sn__net_from_onnx(const char *path, const void *bytes, size_t size, sn_loss loss, uint32_t batch,
                          uint32_t image, sn_err *err);

/* A builder for square images, named after the entry; NULL and SN_BAD_USAGE where there are parameters. A family need
 * not look: a builder that is NULL is accepted everywhere, and sn_builder_finish() keeps the error. */
sn_builder *sn__zoo_begin(const sn_zoo_entry *entry, uint32_t batch, uint32_t channels, uint32_t image,
                          const char *parameters, sn_err *err);

/* "name:parameters" into name[SN_NET_NAME], which is returned. */
const char *sn__zoo_full_name(const sn_zoo_entry *entry, const char *parameters, char *name);
/* "h.0.add1", the sum of x and y. Its storage is new: frameworks' authors write x = y + x. */
uint32_t sn__transformer_add(sn_builder *b, uint32_t x, uint32_t y, const char *prefix, unsigned block, unsigned n);

#define SN__FAMILY(name)                                                                                               \
  sn_net *sn__zoo_##name(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err)
SN__FAMILY(lenet);
SN__FAMILY(alexnet);
SN__FAMILY(vgg);          /* config: uint32_t[5], convolutions per stage */
SN__FAMILY(resnet);       /* config: sn__resnet */
SN__FAMILY(resnet_any);   /* config: sn__resnet, the defaults of the parameters n1, n2, n3, n4 */
SN__FAMILY(resnet_cifar); /* config: uint32_t, the default of the parameter n */
SN__FAMILY(dcgan);
SN__FAMILY(inception_v3);
SN__FAMILY(inception_v4);
SN__FAMILY(densenet); /* config: uint32_t[4], layers per dense block */
SN__FAMILY(inception_bn);
SN__FAMILY(tv_alexnet);
SN__FAMILY(tv_vgg);    /* config: uint32_t[5], convolutions per stage */
SN__FAMILY(tv_resnet); /* config: sn__resnet */
SN__FAMILY(tv_inception_v3);
SN__FAMILY(tv_densenet); /* config: uint32_t[4], layers per dense block */
SN__FAMILY(tv_mobilenet_v2);
SN__FAMILY(tv_squeezenet);
SN__FAMILY(tv_video);     /* config: sn__video */
SN__FAMILY(mobilenet_v3); /* config: sn__mobilenet_v3 */
SN__FAMILY(efficientnet); /* config: sn__efficientnet */
SN__FAMILY(convnext);     /* config: sn__convnext */
SN__FAMILY(gpt2);         /* config: sn__transformer */
SN__FAMILY(megatron);     /* config: sn__transformer */
SN__FAMILY(bert);         /* config: sn__transformer */
SN__FAMILY(vit);          /* config: sn__transformer */
SN__FAMILY(swin);         /* config: sn__swin */
SN__FAMILY(t5);           /* config: sn__transformer, of which both halves have as many layers */
SN__FAMILY(llama);        /* config: sn__decoder */
SN__FAMILY(titan);
SN__FAMILY(unet);

#endif
