/* Attributes of layers, internal to models/: those that are alike are kept once.
 *
 * Networks repeat their blocks, and attributes are several times as large as what else a layer has. Only the latest of
 * each class of a hash is remembered, so that no choice of attributes makes this slow: what is forgotten is kept again.
 */
#ifndef SN_MODELS_BUILD_ATTRS_H
#define SN_MODELS_BUILD_ATTRS_H

#include "models/net/net.h"

enum { SN__ATTRS_CLASSES = 1024 };

/* Zeroed there are none. */
typedef struct sn__attrs {
  const sn_attr *latest[SN__ATTRS_CLASSES];
} sn__attrs;

/* The same attributes in the arena, which is the same one in every call. NULL: out of memory. */
const sn_attr *sn__attrs_keep(sn__attrs *attrs, struct sn_arena *arena, const sn_attr *attr);

#endif
