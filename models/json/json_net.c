/* Networks from JSON files. The schema is docs/networks.md; base/json.h reads and points at lines, models/json/json_list.h
 * writes out repeats and resolves names, models/json/json_attr.h reads attributes, the builder checks the network itself.
 *
 *   text -> document -> list of layers -> attributes and inputs of each -> builder -> net
 *                  \--------------\------------ mistakes ------------/
 *
 * A layer with a mistake is declared all the same, but broken, so that those around it are looked at: all that can be
 * found is reported together. Whatever the file holds, the cost is O(n log n) in its length and in the layers and
 * inputs written out, both limited by models/net/net.h. Left out: weights. Only shapes matter here. */
#include "models/zoo/zoo.h"

#include "models/build/build_internal.h"
#include "models/json/json_attr.h"
#include "models/json/json_list.h"
#include "models/zoo/zoo_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  sn__mistakes *m;
  sn__json_list list;
  sn_builder *b;
  uint32_t *inputs; /* of the layer at hand */
  uint32_t room;
} reader;

/* -- inputs ------------------------------------------------------------------------------------------------------ */

/* The layer that is named; SN_NONE: there is none. */
static uint32_t resolve(reader *r, uint32_t layer, const cJSON *item) {
  char hint[260];
  if (!cJSON_IsString(item)) {
    MISTAKE(r->m, item, "an input must be the name of a layer");
    return SN_NONE;
  }
  uint32_t found = sn__json_list_find(&r->list, layer, item->valuestring);
  if (found != SN_NONE) return found;
  sn__json_list_suggest(&r->list, item->valuestring, hint, sizeof hint);
  MISTAKE(r->m, item, "input \"%.80s\" is not defined%s", item->valuestring, hint);
  return SN_NONE;
}

/* The layer whose parameters it takes; whether a bias is among them is for that layer to say. */
static void read_owner(reader *r, uint32_t layer, sn_attr *a) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->list.layers[layer].item, "weights_of");
  uint32_t owner = item ? resolve(r, layer, item) : SN_NONE;
  if (owner == SN_DATA_LAYER) MISTAKE(r->m, item, "\"weights_of\" is a layer with parameters, not the batch");
  if (owner == SN_NONE) return;
  a->weights_of = owner;
  bool known = owner < layer && !sn_json_has(r->list.layers[layer].item, "bias");
  if (known && r->b->err.code == SN_OK) a->bias = r->b->layers[owner].attr->bias;
}

static bool reserve_inputs(reader *r, uint32_t count) {
  if (count <= r->room) return true;
  uint32_t *wider = realloc(r->inputs, 2 * (size_t)count * sizeof *wider);
  if (!wider) {
    sn_fail_memory(&r->m->at);
    return false;
  }
  r->inputs = wider;
  r->room = 2 * count;
  return true;
}

/* How many of them are layers; what is not is lost. */
static uint32_t resolve_list(reader *r, uint32_t layer, const cJSON *list) {
  uint32_t count = 0;
  for (const cJSON *item = list->child; item && sn__mistakes_go_on(r->m); item = item->next) {
    if (count >= SN_MAX_INPUTS) {
      MISTAKE(r->m, item, "a layer with more than %u inputs", SN_MAX_INPUTS);
      break;
    }
    if (!reserve_inputs(r, count + 1)) break;
    r->inputs[count] = resolve(r, layer, item);
    count += r->inputs[count] != SN_NONE;
  }
  return count;
}

static uint32_t read_inputs(reader *r, uint32_t layer) {
  const cJSON *object = r->list.layers[layer].item;
  bool one = sn_json_has(object, "input"), many = sn_json_has(object, "inputs");
  if (!reserve_inputs(r, 1)) return 0;
  if (one && many) MISTAKE(r->m, object, "\"input\" and \"inputs\" are both given; keep one");
  if (many) {
    const cJSON *list = sn_json_array(r->m->doc, object, "inputs", &r->m->at);
    sn__mistakes_note(r->m, object);
    return list ? resolve_list(r, layer, list) : 0;
  }
  r->inputs[0] = one ? resolve(r, layer, cJSON_GetObjectItemCaseSensitive(object, "input"))
                     : sn__json_list_before(&r->list, layer);
  if (r->inputs[0] == SN_NONE && !one) MISTAKE(r->m, object, "the input of the block that it begins is not defined");
  return r->inputs[0] != SN_NONE;
}

/* -- the document ------------------------------------------------------------------------------------------------ */

static bool check_document(sn__mistakes *m) {
  static const char *const keys[] = {"snsim_net", "name", "input", "tokens", "layers", "blocks"};
  const cJSON *root = sn_json_root(m->doc);
  uint64_t version, seen = 0;
  if (sn_json_has(root, "model_type") && !sn_json_has(root, keys[0])) {
    MISTAKE(m, root,
            "a config of transformers and not a network: snsim record --config %s --sequence 128 "
            "-o mine.rec records its model, and --net mine.rec asks about that",
            sn_json_name(m->doc));
    return false;
  }
  if (!cJSON_IsObject(root) || !sn_json_has(root, keys[0])) {
    MISTAKE(m, root, "not a network: an object with \"snsim_net\": 1 is expected");
    return false;
  }
  bool other = sn_json_count(m->doc, root, keys[0], 1, 1, &version, &m->at) != SN_OK;
  sn__mistakes_note(m, root);
  for (const cJSON *key = root->child; key && !other; key = key->next)
    if (sn_json_known(m->doc, key, keys, sizeof keys / sizeof keys[0], &seen, &m->at)) sn__mistakes_note(m, key);
  return !other;
}

static const char *read_name(sn__mistakes *m) {
  const cJSON *root = sn_json_root(m->doc);
  const char *name = sn_json_text(m->doc, root, "name", &m->at);
  sn__mistakes_note(m, root);
  if (name && *name && strlen(name) < SN_NET_NAME) return name;
  if (name) MISTAKE(m, cJSON_GetObjectItemCaseSensitive(root, "name"), "the network's name must have 1 to 200 bytes");
  return "unnamed";
}

enum { CHANNELS, DEPTH, HEIGHT, WIDTH, INPUT_SIDES };

/* Channels, depth, height and width, depth 0 where the file gives none; `image` in place of the last two, 0: the
 * file's. False: they are wrong. */
static bool read_sides(sn__mistakes *m, uint32_t image, uint64_t side[INPUT_SIDES]) {
  const cJSON *root = sn_json_root(m->doc), *input = cJSON_GetObjectItemCaseSensitive(root, "input");
  m->failed = false;
  if (!input) {
    MISTAKE(m, root, "\"input\" is missing: [channels, height, width] of an image; of sequences give \"tokens\"");
    return false;
  }
  if (!cJSON_IsArray(input)) {
    MISTAKE(m, input, "\"input\" must be a list: [channels, height, width]");
    return false;
  }
  const int count = cJSON_GetArraySize(input);
  const cJSON *at = input->child;
  for (int i = 0; i < INPUT_SIDES && at; i++, at = at->next) {
    if (i == DEPTH && count != INPUT_SIDES) i++;
    if (sn_json_item_count(m->doc, at, "input", 1, SN_MAX_DIM, &side[i], &m->at)) sn__mistakes_note(m, at);
  }
  if (count != 3 && count != INPUT_SIDES)
    MISTAKE(m, input,
            "\"input\" must be three numbers: [channels, height, width]; of volumes four: [channels, depth, height, "
            "width]");
  if (!m->failed && image && !sn_image_is_oblong(image) && side[HEIGHT] != side[WIDTH])
    MISTAKE(m, input, "its images of %ux%u are not square; give both sides, as --image HxW", (unsigned)side[HEIGHT],
            (unsigned)side[WIDTH]);
  if (image) side[HEIGHT] = sn_image_height(image);
  if (image) side[WIDTH] = sn_image_width(image);
  return !m->failed;
}

/* A batch of token sequences; `length` in place of the file's, 0: the file's. */
static bool read_tokens(sn__mistakes *m, uint32_t length, uint64_t *tokens) {
  const cJSON *root = sn_json_root(m->doc);
  m->failed = false;
  if (sn_json_has(root, "input")) MISTAKE(m, root, "\"input\" and \"tokens\" are both given; keep one");
  if (sn_json_count(m->doc, root, "tokens", 1, SN_MAX_DIM, tokens, &m->at)) sn__mistakes_note(m, root);
  if (sn_image_is_oblong(length)) MISTAKE(m, root, "it reads sequences of tokens; give --sequence, not --image");
  if (length) *tokens = length;
  return !m->failed;
}

static bool tell(void *context, uint32_t layer, const char *text) {
  reader *r = context;
  const cJSON *item = NULL;
  bool again = layer < r->list.n_layers && r->list.layers[layer].again;
  if (layer == SN_DATA_LAYER) item = cJSON_GetObjectItemCaseSensitive(sn_json_root(r->m->doc), "input");
  if (layer != SN_DATA_LAYER && layer < r->list.n_layers) item = r->list.layers[layer].item;
  if (!again || !sn__mistakes_have(r->m, item)) MISTAKE(r->m, item, "%s", text); /* of a repeat once */
  return sn__mistakes_go_on(r->m);
}

static sn_builder *new_builder(const char *name, uint32_t batch, const uint64_t side[INPUT_SIDES], sn_err *err) {
  const uint32_t channels = (uint32_t)side[CHANNELS], planes = (uint32_t)side[DEPTH], height = (uint32_t)side[HEIGHT],
                 width = (uint32_t)side[WIDTH];
  return planes > 0 ? sn_builder_new_volumes(name, batch, channels, planes, height, width, err)
                    : sn_builder_new(name, batch, channels, height, width, err);
}

/* The builder with its batch, which is broken where the file does not say what it is. */
static bool begin(reader *r, uint32_t batch, uint32_t image) {
  const char *name = read_name(r->m);
  uint64_t side[INPUT_SIDES] = {[CHANNELS] = 1, [HEIGHT] = 1, [WIDTH] = 1}, tokens = 1;
  bool sequences = sn_json_has(sn_json_root(r->m->doc), "tokens");
  bool known = sequences ? read_tokens(r->m, image, &tokens) : read_sides(r->m, image, side);
  r->b = sequences ? sn_builder_new_tokens(name, batch, (uint32_t)tokens, &r->m->at)
                   : new_builder(name, batch, side, &r->m->at);
  r->list.volumes = side[DEPTH] > 0;
  if (!r->b) return false;
  r->b->mistaken = tell;
  r->b->context = r;
  if (!known) sn__builder_break(r->b, SN_DATA_LAYER);
  return true;
}

static bool declare(reader *r, uint32_t layer) {
  const sn__json_layer *l = &r->list.layers[layer];
  sn__mistakes *m = r->m;
  sn_attr attr = {0};
  sn_op op = SN_ACT;
  m->n = layer;
  m->layer = l->bad ? NULL : l->name;
  sn__mistakes_read(m, l->again);
  m->failed = false;
  bool known = cJSON_IsObject(l->item) && sn__json_op(m, l->item, &op);
  if (known) sn__json_attributes(&r->list, layer, op, &attr);
  bool broken = m->failed || l->bad;
  m->failed = !known;
  if (known) read_owner(r, layer, &attr);
  uint32_t n_inputs = cJSON_IsObject(l->item) ? read_inputs(r, layer) : 0;
  r->b->unconnected = r->b->unconnected || m->failed;
  uint32_t made = sn_build_layer(r->b, op, &attr, r->inputs, n_inputs, l->name);
  if (broken || m->failed) sn__builder_break(r->b, layer);
  m->n = 0;
  return made != SN_NONE && sn__mistakes_go_on(m);
}

/* An error that is none of a layer's, and those that stuck in the builder. */
static sn_net *finish(reader *r) {
  sn_err reason = SN_ERR_INIT;
  sn_net *net = sn_builder_finish(r->b, NULL, &reason);
  r->b = NULL;
  if (reason.code == SN_BAD_INPUT)
    MISTAKE(r->m, NULL, "%s", reason.text);
  else if (reason.code != SN_OK)
    sn_fail(&r->m->at, reason.code, "%s", reason.text);
  if (r->m->count == 0) return net;
  sn_net_free(net);
  return NULL;
}

static sn_net *read_net(reader *r, uint32_t batch, uint32_t image) {
  if (!check_document(r->m) || !begin(r, batch, image) || !sn__json_list_read(&r->list)) return NULL;
  r->b->unconnected = r->list.incomplete;
  for (uint32_t i = 1; i < r->list.n_layers; i++)
    if (!declare(r, i)) break;
  sn__mistakes_read(r->m, false);
  return sn__mistakes_go_on(r->m) ? finish(r) : NULL;
}

/* Without a net there are mistakes, or the error says why. */
static sn_net *read_and_free(sn_json *doc, const char *file, uint32_t depth, uint32_t batch, uint32_t image,
                             sn__mistakes *m, sn_err *err) {
  if (!doc) return NULL;
  m->doc = doc;
  m->file = file;
  reader r = {.m = m, .list = {.depth = depth, .mistakes = m}};
  sn_net *net = read_net(&r, batch, image);
  sn__builder_free(r.b); /* after an error before finish() */
  free(r.inputs);
  sn__json_list_free(&r.list);
  sn_json_free(doc);
  if (m->at.code != SN_OK) sn_fail(err, m->at.code, "%s", m->at.text);
  return net;
}

static sn_net *read_or_fail(sn_json *doc, const char *file, uint32_t depth, uint32_t batch, uint32_t image,
                            sn_err *err) {
  sn__mistakes m = {.count = 0};
  char text[sizeof err->text];
  sn_net *net = read_and_free(doc, file, depth, batch, image, &m, err);
  if (!net && doc) sn_fail(err, SN_BAD_INPUT, "%s", sn__mistakes_print(&m, text, sizeof text));
  return net;
}

sn_net *sn_net_from_json(const char *file, const char *text, uint64_t bytes, uint32_t batch, sn_err *err) {
  return read_or_fail(sn_json_parse(file, text, bytes, err), file, 0, batch, 0, err);
}

sn_net *sn_net_from_file(const char *path, uint32_t batch, sn_err *err) {
  return sn__net_from_file(path, 0, batch, 0, err);
}

sn_net *sn__net_from_file(const char *path, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  return read_or_fail(sn_json_load(path, err), path, depth, batch, image, err);
}

const char *sn_net_mistakes(const char *spec, uint32_t batch, uint32_t image, const sn_err *err, char *out,
                            size_t room) {
  sn_err reason = SN_ERR_INIT;
  sn__mistakes m = {.count = 0};
  bool json = sn_net_is_file(spec) && !sn_net_is_onnx(spec), several = strchr(err->text, '\n') != NULL;
  if (json && several) sn_net_free(read_and_free(sn_json_load(spec, &reason), spec, 0, batch, image, &m, &reason));
  sn__mistakes_print(&m, out, room);
  /* Under the same heading, which may have a prefix, it is the same list. */
  size_t heading = strcspn(out, "\n"), ahead = strcspn(err->text, "\n");
  bool same = m.count > 1 && heading <= ahead && strncmp(err->text + ahead - heading, out, heading) == 0;
  if (!same) snprintf(out, room, "%s", err->text);
  return out;
}
