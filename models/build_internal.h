/* What models/build.c collects and models/finish.c turns into a net; internal to models/. */
#ifndef SN_MODELS_BUILD_INTERNAL_H
#define SN_MODELS_BUILD_INTERNAL_H

#include "models/build.h"

enum { SN__MAX_NAME = 200 }; /* bytes of a declared layer's name */

struct sn_builder {
  sn_err err;         /* the first error; everything after it does nothing */
  uint32_t bad_layer; /* the declared layer it is about, or SN_NONE */
  const char *name;
  bool tokens; /* the batch is numbers of tokens */
  sn_shape data;
  sn_layer *layers; /* declared layers; their first_input points into inputs */
  uint32_t *inputs; /* declared layers, not yet values */
  uint32_t n_layers, room_layers;
  uint32_t n_inputs, room_inputs;
  struct sn_arena *arena; /* names now, the whole net later */
};

/* Gives a builder up; sn_builder_finish() does so itself. NULL is fine. */
void sn__builder_free(sn_builder *b);

#endif
