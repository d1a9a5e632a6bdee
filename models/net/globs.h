/* Globs: lists of patterns over the names of a network's layers, parted by commas: "conv1,bn1,layer?.*". As in a shell, `*`
 * stands for any characters, `?` for one byte, `[0-3]` and `[ac]` for one of a class, `[!0-3]` for one that is not of it; a
 * ']' that comes first is a member, and `[[]` is a bracket. A name stands for itself, whatever it holds. Options write
 * them: --freeze, --lora, --units.
 */
#ifndef SN_MODELS_NET_GLOBS_H
#define SN_MODELS_NET_GLOBS_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdbool.h>

enum { SN_GLOBS_TEXT = 1000 }; /* bytes of a list with its commas, at most */

/* NULL and "" match nothing. Time: the text's length times the name's. */
bool sn_globs_match(const char *globs, const char *name);

/* Globs as they may be written: SN_BAD_USAGE for an empty one, a class that does not end, a range that falls, control
 * characters, and what is no UTF-8; `option` begins the message. */
sn_status sn_globs_check_text(const char *option, const char *globs, sn_err *err);

/* SN_BAD_USAGE where a glob holds for no layer that counts, with the name that is nearest; `kind` is what they are
 * called: "layer". */
sn_status sn_globs_check(const char *option, const char *globs, const sn_net *net, const char *kind,
                         bool (*counts)(const sn_layer *layer), sn_err *err);

#endif
