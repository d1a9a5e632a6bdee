/* Modules: which module of the PyTorch model a layer of the zoo is, as model.named_modules() names it.
 *
 *   encoder.layers.3.mlp.0   of vit_b_16   encoder.layers.encoder_layer_3.mlp.0
 *   h.3.attn.c_attn          of gpt2       transformer.h.3.attn.c_attn
 *   layer1.0.conv1           of tv_resnet50, the same
 *
 * The zoo names the layers of torchvision's and transformers' models by their modules already, but for a prefix. Layers
 * without a module of their own (a JOIN, "h.3.add1") get the path that their name would have. Of other networks, files
 * and papers', a layer's path is its name, and there is no library.
 */
#ifndef SN_MODELS_NET_MODULES_H
#define SN_MODELS_NET_MODULES_H

#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_library { SN_LIBRARY_NONE, SN_LIBRARY_TORCHVISION, SN_LIBRARY_TRANSFORMERS } sn_library;

/* Whose model it is, by the network's name. */
sn_library sn_module_library(const sn_net *net);

/* Sets a network's modules, by its name and its layers'. Paths are the layers' own names where these are the same, else
 * of the network's arena. SN_NO_MEMORY. */
sn_status sn_module_name_layers(sn_net *net, sn_err *err);

#endif
