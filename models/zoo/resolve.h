/* What people call networks, and which network of the zoo that is: models/zoo/zoo.h loads what comes out of here.
 *
 *   char spec[SN_NET_SPEC];
 *   sn_net_resolve("ResNet-50", SN_NETS_OF_TORCHVISION, spec, &err);    "tv_resnet50"
 *   sn_net_resolve("resnet50", SN_NETS_OF_PAPERS, spec, &err);          "resnet50"
 *   sn_net_resolve("paper:vgg16+lora=8", SN_NETS_OF_TORCHVISION, ..)    "vgg16+lora=8"
 *   sn_net_resolve("meta-llama/Llama-3.1-8B-Instruct", ..)              "llama3:8b", where there is no such file
 */
#ifndef SN_MODELS_ZOO_RESOLVE_H
#define SN_MODELS_ZOO_RESOLVE_H

#include "models/zoo/zoo.h"

/* Whose network is meant by a name that both have: who trains in PyTorch means torchvision's, who repeats SuperNeurons
 * means that of its paper. "paper:" and "tv:" in front of a name say it whatever is asked. */
typedef enum sn_net_origin { SN_NETS_OF_PAPERS, SN_NETS_OF_TORCHVISION } sn_net_origin;

/* The canonical name of `spec` into text[SN_NET_SPEC]; its parameters, loss and adapters stay. Case, blanks, '-' and
 * '_' do not matter. Paths of files, and what is no name of a network, stay as they are. With SN_NETS_OF_PAPERS a
 * canonical name stays itself. SN_BAD_USAGE for a prefix without such a network, for one that is known to lack
 * operators here, with the nearest that works, and for a spec that is too long. */
sn_status sn_net_resolve(const char *spec, sn_net_origin origin, char *text, sn_err *err);

/* Whether `spec` is a network that sn_net_resolve() knows, or the path of a network file. */
bool sn_net_is_known(const char *spec);

/* Why the file of that name is none that a network is read from, and what to do: programs and weights ("train.py",
 * "model.pt"). NULL: its name does not say so. */
const char *sn_net_foreign(const char *name);

#endif
