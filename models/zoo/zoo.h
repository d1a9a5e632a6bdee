/* The network zoo: families by name, and networks from files.
 *
 *   sn_net *net = sn_net_load("resnet:n1=6,n2=32,n3=800,n4=6", 1, 0, &err);
 *   sn_net *mine = sn_net_load("mine.json", 32, 0, &err);
 */
#ifndef SN_MODELS_ZOO_ZOO_H
#define SN_MODELS_ZOO_ZOO_H

#include "base/err.h"
#include "models/net/image.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SN_NET_NAME = 201 }; /* room for the longest name of a network */

typedef struct sn_zoo_entry {
  const char *name;        /* "resnet50"; "resnet" and "resnet_cifar" take parameters */
  const char *description; /* one line: source and what is special */
  uint32_t image;          /* default height and width of the input, or length of its sequences */
  sn_net *(*build)(const struct sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                   sn_err *err); /* parameters: what stands behind "name:", or NULL */
  const void *config;            /* a family's own numbers (units per stage) */
} sn_zoo_entry;

/* All entries in the order in which `snsim list nets` prints them. */
const sn_zoo_entry *sn_zoo_entries(uint32_t *count);

/* Builds `spec` for a batch of images: a zoo name, "family:key=value,...", or the path of a network as JSON or ONNX
 * (it holds a '/' or ends in ".json"; ONNX ends in ".onnx", behind which ":loss=mse" names a loss; docs/networks.md);
 * "+lora=8" or "+lora=8:GLOB,.." behind it gives it adapters (models/build/lora.h). image is the size of its images, or the
 * length of its sequences (models/net/image.h); 0 means the network's own. Errors: SN_BAD_USAGE for an unknown name
 * (nearest offered), a bad parameter or an image the network cannot have, SN_BAD_INPUT with file and line for a bad
 * file. */
sn_net *sn_net_load(const char *spec, uint32_t batch, uint32_t image, sn_err *err);

/* The size that a network like this one is asked for with: of images of so many rows and columns, or of sequences of
 * `rows` tokens. */
uint32_t sn_net_image(const sn_net *net, uint32_t rows, uint32_t columns);

/* The same at another depth: the parameter n3 of "resnet", n of "resnet_cifar", layers of "llama", "gpt2" and their
 * like, or how often the repeat of a JSON network is written out (docs/networks.md says which). depth 0 is
 * sn_net_load(). SN_BAD_USAGE for a network of a fixed depth. */
sn_net *sn_net_load_depth(const char *spec, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err);
/* What a depth is called: "n3", "n", "layers", "repeat"; NULL for a network of the zoo that has none. */
const char *sn_net_depth_name(const char *spec);

/* What people read of a network: `spec` as given, and behind a file the name it gives itself, "mine.json
 * (small_resnet)"; of a recording the model that was recorded, and its file, "train.py:Net (mine.rec)". Where `name` is
 * "" it is not known. Returns text. */
char *sn_net_title(const char *spec, const char *name, char *text, size_t room);
/* The title of a picture: of a recording what was recorded, or where that is not known ("") its file without the folder; of
 * others the spec. Into `text` of `room` bytes; returns it. */
char *sn_net_called(const char *spec, const char *name, char *text, size_t room);

/* Whether `image` is the length of sequences of tokens: of GPT-2, BERT and Llama. */
bool sn_net_is_sequence(const char *spec);

#define SN_NET_ADAPTED "+lora="

/* What stands behind "+lora=" of `spec`; NULL: it has no adapters. */
const char *sn_net_lora(const char *spec);

/* `spec` without its adapters, and with those of `like` where it has none; the caller frees them. NULL: out of memory.
 */
char *sn_net_plain(const char *spec);
char *sn_net_adapt_like(const char *spec, const char *like);

/* Whether sn_net_load() takes `spec` for the path of a file, and of an ONNX file. */
bool sn_net_is_file(const char *spec);
bool sn_net_is_onnx(const char *spec);
/* Of a recording (docs/record.md): it ends in ".rec" or ".rec.gz". */
bool sn_net_is_recording(const char *spec);
/* What a batch is of: "samples" of a recording, "sequences", "images". */
const char *sn_net_unit(const char *spec);
/* Where the path of a file ends in `spec`: behind an ONNX file's may stand its loss, ":loss=mse". */
const char *sn_net_file_end(const char *spec);

enum { SN_NET_SPEC = 4400 }; /* bytes of a network with its loss and adapters, as options give them, and the 0 */

/* `spec` with a loss ("a.onnx:loss=mse", "gpt2:loss=cross_entropy", "llama:7b,loss=cross_entropy") or adapters
 * ("+lora=8") into text[SN_NET_SPEC]. SN_BAD_USAGE, naming the option, where it can have none, has them already, or is
 * too long. */
sn_status sn_net_add_loss(const char *spec, const char *loss, char *text, sn_err *err);
/* The same with the modules of a recording that are to be blocks ("mine.rec:units=layer?.*"). */
sn_status sn_net_add_units(const char *spec, const char *globs, char *text, sn_err *err);
sn_status sn_net_add_lora(const char *spec, const char *lora, char *text, sn_err *err);

/* From JSON text already in memory, `file` standing in errors, or from a file. What sn_net_load() does for a path. */
sn_net *sn_net_from_json(const char *file, const char *text, uint64_t bytes, uint32_t batch, sn_err *err);
sn_net *sn_net_from_file(const char *path, uint32_t batch, sn_err *err);

/* Writes a network as such a file, a layer a line, repeats written out, without a line's end behind it. Read again it
 * is the same network. Out of memory is the only error. */
sn_status sn_net_write_json(const sn_net *net, FILE *out, sn_err *err);

#endif
