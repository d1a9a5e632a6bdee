/* The list of layers in a JSON network with its repeats written out; internal to models/json_*.c.
 *
 *   [a, {"repeat": 2, "layers": [b, c]}, d]   is   a  b.1  c.1  b.2  c.2  d
 *
 * Layer 0 is "data", the network's input, as in the builder. A layer without inputs takes the one before it, so the
 * chain flows through the iterations. A name given as input is looked for in the iteration the layer stands in, then in
 * those around it, then at the top: within iteration 2 of {b, c}, "b" is b.2. "@in" is what flows into the iteration.
 */
#ifndef SN_MODELS_JSON_LIST_H
#define SN_MODELS_JSON_LIST_H

#include "base/arena.h"
#include "models/mistakes.h"
#include "models/names.h"

enum { SN__MAX_REPEAT_DEPTH = 8 };

typedef struct sn__json_layer {
  const cJSON *item;
  const char *name; /* with the suffix of its iterations: "conv.2.1" */
  uint32_t scope;
  bool again; /* its item has been written out before */
  bool bad;   /* what is wrong with its name has been said; it has another */
} sn__json_layer;

/* One iteration of a repeat; scope 0 is the top. */
typedef struct sn__json_scope {
  const char *suffix; /* ".2.1": iteration 2 of a repeat in iteration 1 of another */
  uint32_t parent;
  uint32_t in; /* the layer before the iteration: "@in" */
} sn__json_scope;

typedef struct sn__json_list {
  sn__mistakes *mistakes;
  sn_arena *arena; /* names and suffixes */
  sn__json_layer *layers;
  sn__json_scope *scopes;
  uint32_t n_layers, room_layers, n_scopes, room_scopes;
  uint32_t depth;          /* set by the caller: how often the repeat of the depth is written out; 0: as it says */
  const cJSON *depth_item; /* the repeat of the depth: the one marked so, or the only one; NULL: none */
  bool incomplete;         /* items that are neither a layer nor a repeat were left out */
  sn__names names;
} sn__json_list;

/* Reads a list that is zeroed, but for `depth` and `mistakes`, from the array "layers" of the document. Of a layer only
 * the name is looked at. O(n log n) in the layers written out. False: it was given up, or there is no list. */
bool sn__json_list_read(sn__json_list *list);
void sn__json_list_free(sn__json_list *list);

/* The layer that `name` means where layer `at` says it; SN_NONE where it means none. */
uint32_t sn__json_list_find(const sn__json_list *list, uint32_t at, const char *name);
/* ` (did you mean "relu2"?)` or nothing. Looks at the first few thousand names only. */
void sn__json_list_suggest(const sn__json_list *list, const char *name, char *out, size_t room);

#endif
