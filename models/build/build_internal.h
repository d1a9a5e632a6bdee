/* What models/build/build.c collects and models/build/finish.c turns into a net; internal to models/. */
#ifndef SN_MODELS_BUILD_BUILD_INTERNAL_H
#define SN_MODELS_BUILD_BUILD_INTERNAL_H

#include "models/build/attrs.h"
#include "models/build/build.h"

enum { SN__MAX_NAME = 200 }; /* bytes of a declared layer's name */

/* Is told what is wrong with a declared layer, or with the net (SN_NONE); says whether it wants to hear more. */
typedef bool sn__mistaken(void *context, uint32_t layer, const char *text);

struct sn_builder {
  sn_err err;         /* the first error; everything after it does nothing */
  uint32_t bad_layer; /* the declared layer it is about, or SN_NONE */
  const char *name;
  bool tokens;       /* the batch is numbers of tokens */
  bool transformers; /* sn_net's */
  sn_shape data;
  uint32_t planes;  /* of the batch's volumes; 0: it is images */
  sn_layer *layers; /* declared layers; their first_input points into inputs */
  uint32_t *inputs; /* declared layers, not yet values */
  uint32_t n_layers, room_layers;
  uint32_t n_inputs, room_inputs;
  struct sn_arena *arena; /* names and attributes now, the whole net later */
  sn__attrs attrs;
  /* NULL: the first mistake ends it. Else it is told of all that can be found, and there is no net where there is one,
   * with or without an error. */
  sn__mistaken *mistaken;
  void *context;
  bool broken;      /* sn__builder_break() was called: there will be no net */
  bool unconnected; /* with `mistaken`: layers or inputs are missing, so that ends are not looked at */
};

/* Whether a layer may be called so. */
bool sn__is_good_name(const char *name);

/* With `mistaken`: somebody has said already what is wrong with a layer, so there is no shape behind it. */
void sn__builder_break(sn_builder *b, uint32_t layer);

/* Gives a declared layer other attributes. */
void sn__builder_change(sn_builder *b, uint32_t layer, const sn_attr *attr);

/* Gives a builder up; sn_builder_finish() does so itself. NULL is fine. */
void sn__builder_free(sn_builder *b);

/* Of a network with a recording, which is not built: sn_net_rebatch() for it. */
sn_net *sn__record_rebatch(const sn_net *net, uint32_t batch, sn_err *err);

#endif
