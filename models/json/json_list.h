/* The list of layers in a JSON network with its repeats and blocks written out; internal to models/json/.
 *
 *   [a, {"repeat": 2, "layers": [b, c]}, d]                        is   a  b.1  c.1  b.2  c.2  d
 *   [a, {"block": "unit", "name": "u"}], "unit" being [b, c]       is   a  b.u  c.u
 *   [a, {"block": "unit", "name": "u", "repeat": 2}]               is   a  b.1.u  c.1.u  b.2.u  c.2.u
 *
 * Layer 0 is "data", the network's input, as in the builder. A layer without inputs takes the one before it, so the
 * chain flows through the iterations. A name given as input is looked for in the iteration the layer stands in, then in
 * those around it, then at the top: within iteration 2 of {b, c}, "b" is b.2. "@in" is what flows into the iteration.
 * The name of a block's use is its last layer.
 */
#ifndef SN_MODELS_JSON_JSON_LIST_H
#define SN_MODELS_JSON_JSON_LIST_H

#include "base/arena.h"
#include "models/json/mistakes.h"
#include "models/net/names.h"

enum { SN__MAX_REPEAT_DEPTH = 8, SN__MAX_BLOCKS = 100 };

typedef struct sn__json_layer {
  const cJSON *item;
  const char *name; /* with the suffix of its iterations: "conv.2.1" */
  uint32_t scope;
  bool again; /* its item has been written out before */
  bool bad;   /* what is wrong with its name has been said; it has another */
} sn__json_layer;

/* One iteration of a repeat, or a use of a block, which its iterations stand in; scope 0 is the top. */
typedef struct sn__json_scope {
  const char *suffix; /* ".2.1": iteration 2 of a repeat in iteration 1 of another */
  uint32_t parent;
  uint32_t in;      /* the layer before it: "@in" */
  uint32_t given;   /* the scope that says what flows in instead; SN_NONE: none */
  const cJSON *use; /* of the block; NULL: a repeat, or the top */
} sn__json_scope;

/* What the name of a block's use means. */
typedef struct sn__json_use {
  const cJSON *item;
  const char *name;
  uint32_t last;
} sn__json_use;

typedef struct sn__json_list {
  sn__mistakes *mistakes;
  sn_arena *arena; /* names and suffixes */
  sn__json_layer *layers;
  sn__json_scope *scopes;
  sn__json_use *uses;
  uint32_t n_layers, room_layers, n_scopes, room_scopes, n_uses, room_uses;
  const cJSON *blocks; /* by name; NULL: there are none */
  bool known[SN__MAX_BLOCKS];
  uint32_t depth;          /* set by the caller: how often the repeat of the depth is written out; 0: as it says */
  const cJSON *depth_item; /* the repeat of the depth: the one marked so, or the only one; NULL: none */
  bool volumes;            /* set by the caller: the batch is volumes, so that sizes have a depth */
  bool incomplete;         /* items that are neither a layer nor a repeat were left out */
  sn__names names;
} sn__json_list;

/* Reads a list that is zeroed, but for `depth`, `volumes` and `mistakes`, from the array "layers" of the document. Of a
 * layer only the name is looked at. O(n log n) in the layers written out. False: it was given up, or there is no list.
 */
bool sn__json_list_read(sn__json_list *list);
void sn__json_list_free(sn__json_list *list);

/* The layer that flows into one that names no input. */
uint32_t sn__json_list_before(const sn__json_list *list, uint32_t at);
/* What an attribute of layer `at` is: `item` itself, or for "$name" what the use of the block gives under "with"; NULL
 * where it gives nothing. */
const cJSON *sn__json_list_value(const sn__json_list *list, uint32_t at, const cJSON *item);
/* The layer that `name` means where layer `at` says it; SN_NONE where it means none. */
uint32_t sn__json_list_find(const sn__json_list *list, uint32_t at, const char *name);
/* ` (did you mean "relu2"?)` or nothing. Looks at the first few thousand names only. */
void sn__json_list_suggest(const sn__json_list *list, const char *name, char *out, size_t room);

#endif
