/* Modules of the zoo's models; see the header. One row a family: how its layers' names begin, how its modules' do, and
 * where its blocks are. In a pattern '#' is a number and '*' the rest of one part of a path. */
#include "models/net/modules.h"

#include "base/arena.h"

#include <ctype.h>
#include <string.h>

enum { BLOCKS = 2 };

typedef struct renamed {
  const char *layer, *module; /* how names begin, and paths in their place */
} renamed;

typedef struct family {
  const char *net; /* how the names of its networks begin; the longest that fits is meant */
  sn_library library;
  const char *blocks[BLOCKS];
  const renamed *names; /* up to one without a layer; NULL: they are the modules' */
} family;

static const renamed gpt2[] = {{"h.", "transformer.h."},
                               {"w", "transformer.w"},
                               {"drop", "transformer.drop"},
                               {"ln_f", "transformer.ln_f"},
                               {NULL, NULL}},
                     llama[] = {{"layers.", "model.layers."},
                                {"embed_tokens", "model.embed_tokens"},
                                {"norm", "model.norm"},
                                {NULL, NULL}},
                     vit[] = {{"encoder.layers.", "encoder.layers.encoder_layer_"}, {NULL, NULL}};

static const family families[] = {
    {"gpt2", SN_LIBRARY_TRANSFORMERS, {"h.#"}, gpt2},
    {"bert", SN_LIBRARY_TRANSFORMERS, {"encoder.layer.#"}, NULL},
    {"llama", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"mistral", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"qwen2.5", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"phi3", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"gemma2", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"mixtral", SN_LIBRARY_TRANSFORMERS, {"layers.#"}, llama},
    {"llm", SN_LIBRARY_NONE, {"layers.#"}, NULL},
    {"megatron", SN_LIBRARY_NONE, {"layers.#"}, NULL},
    {"t5", SN_LIBRARY_TRANSFORMERS, {"encoder.block.#", "decoder.block.#"}, NULL},
    {"vit", SN_LIBRARY_TORCHVISION, {"encoder.layers.#"}, vit},
    {"swin", SN_LIBRARY_TORCHVISION, {"features.#.#"}, NULL},
    {"convnext", SN_LIBRARY_TORCHVISION, {"features.#.#"}, NULL},
    {"efficientnet", SN_LIBRARY_TORCHVISION, {"features.#.#"}, NULL},
    {"mobilenet_v3", SN_LIBRARY_TORCHVISION, {"features.#"}, NULL},
    {"resnext", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"wide_resnet", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"tv_", SN_LIBRARY_TORCHVISION, {NULL}, NULL},
    {"tv_resnet", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"tv_r3d", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"tv_mc3", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"tv_r2plus1d", SN_LIBRARY_TORCHVISION, {"layer*.#"}, NULL},
    {"tv_densenet", SN_LIBRARY_TORCHVISION, {"features.denseblock*.denselayer*"}, NULL},
    {"tv_inception", SN_LIBRARY_TORCHVISION, {"Mixed_*"}, NULL},
    {"tv_mobilenet", SN_LIBRARY_TORCHVISION, {"features.#"}, NULL},
    {"tv_squeezenet", SN_LIBRARY_TORCHVISION, {"features.#"}, NULL},
};

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static const family *family_of(const char *net) {
  const family *found = NULL;
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (begins(net, families[i].net) && (!found || strlen(families[i].net) > strlen(found->net))) found = &families[i];
  return found;
}

sn_library sn_module_library(const sn_net *net) {
  const family *f = family_of(net->name);
  return f ? f->library : SN_LIBRARY_NONE;
}

/* The path of a layer, or of so much of its name. */
static const char *path_of(const family *f, const char *layer, size_t length, sn_arena *arena) {
  const renamed *use = NULL;
  for (size_t i = 0; f->names && f->names[i].layer && !use; i++)
    if (begins(layer, f->names[i].layer)) use = &f->names[i];
  size_t skipped = use ? strlen(use->layer) : 0;
  if (!use && layer[length] == '\0') return layer;
  return sn_arena_print(arena, "%s%.*s", use ? use->module : "", (int)(length - skipped), layer + skipped);
}

/* How much of a name a pattern takes: whole parts of it, and not the last one, which is the layer. 0: it does not. */
static size_t match(const char *name, const char *pattern) {
  const char *at = name;
  for (; *pattern; pattern++) {
    if (*pattern == '#' && !isdigit((unsigned char)*at)) return 0;
    if (*pattern == '#')
      while (isdigit((unsigned char)*at)) at++;
    else if (*pattern == '*')
      at += strcspn(at, ".");
    else if (*at++ != *pattern)
      return 0;
  }
  return *at == '.' ? (size_t)(at - name) : 0;
}

static bool name_module(const family *f, const char *layer, sn_named_module *module, sn_arena *arena) {
  size_t length = 0;
  for (size_t i = 0; i < BLOCKS && f->blocks[i] && length == 0; i++) length = match(layer, f->blocks[i]);
  module->path = path_of(f, layer, strlen(layer), arena);
  module->block = length > 0 ? path_of(f, layer, length, arena) : NULL;
  return module->path && (length == 0 || module->block);
}

sn_status sn_module_name_layers(sn_net *net, sn_err *err) {
  const family *f = family_of(net->name);
  sn_named_module *modules = f ? sn_arena_alloc(net->arena, net->n_layers, sizeof *modules) : NULL;
  if (f && !modules) return sn_fail_memory(err);
  for (uint32_t i = 0; f && i < net->n_layers; i++)
    if (!name_module(f, net->layers[i].name, &modules[i], net->arena)) return sn_fail_memory(err);
  net->modules = modules;
  return SN_OK;
}
