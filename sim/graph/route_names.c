/* Names of what a route is made of; see sim/graph/route.h. */
#include "models/op/op.h"
#include "models/record/record_net.h"
#include "sim/graph/route.h"

#include <stdio.h>
#include <string.h>

/* In tables of steps, in plans, and in words. */
static const struct {
  const char *op, *name, *words;
} transfers[SN_TRANSFER_KINDS] = {[SN_ALL_GATHER] = {"ALL_GATHER", "all_gather", "all-gather"},
                                  [SN_REDUCE_SCATTER] = {"REDUCE_SCATTER", "reduce_scatter", "reduce-scatter"},
                                  [SN_ALL_REDUCE] = {"ALL_REDUCE", "all_reduce", "all-reduce"},
                                  [SN_SEND] = {"SEND", "send", "send"},
                                  [SN_RECEIVE] = {"RECEIVE", "receive", "receive"}};

/* What is none of a layer's own outputs, inputs, saved tensors or weights; what is saved beside
 * is a loss's copy in another width. */
static const char *other_name(const sn_route *route, const sn_tensor *t) {
  static const char *const others[SN_ROLES] = {"flat", "dflat", "cast_y", "db", "scratch", "before"};
  if (t->role == SN_SAVED && t->port >= SN_PORT_COSINES) return t->port == SN_PORT_COSINES ? "cosines" : "sines";
  return t->role == SN_VALUE && route->dialect->by_kernel ? "product" : others[t->role];
}

/* Copies in another width. */
static const char *cast_name(const sn_tensor *t) {
  static const char *const made[] = {"cast_w", "cast_b", "cast_x"}, *const gradients[] = {"cast_dw", "cast_db",
                                                                                          "cast_dx"};
  uint32_t which = t->port < SN_CAST_INPUT ? t->port - SN_CAST_WEIGHTS : 2;
  return t->role == SN_SAVED ? made[which] : gradients[which];
}

/* Of tensor parallel; NULL: it is not of that. */
static const char *whole_name(const sn_tensor *t) {
  static const char *const wholes[] = {"y whole", "dy whole", "", "dw whole"}, *const parts[] = {"y partial",
                                                                                                 "dy part"};
  if (t->role > SN_SCRATCH || t->port < SN_PORT_WHOLE) return NULL;
  if (t->role == SN_SCRATCH) return t->port == SN_PORT_MOVED ? "moved" : "scratch";
  return t->port == SN_PORT_WHOLE ? wholes[t->role] : parts[t->role];
}

/* Of what several GPUs make beside the network: "layers.0.gathered", "fc1.w", "fc1.b part"; false: it is none. */
static bool print_shared(const sn_route *route, const sn_tensor *t, char *text, size_t room) {
  static const char *const groups[SN_ROLES] = {
      [SN_GATHERED] = "gathered", [SN_BUCKET] = "bucket", [SN_SHARD] = "shard"};
  const char *layer = route->layers[t->layer].name;
  if (whole_name(t))
    snprintf(text, room, "%s.%s", layer, whole_name(t));
  else if (t->role == SN_SCRATCH && t->port >= SN_PORT_GATHER)
    snprintf(text, room, "%s.%s", layer, t->port == SN_PORT_GATHER ? "to_gather" : "reduced");
  else if (t->role == SN_UNSHARDED && route->net->recorded)
    snprintf(text, room, "%s%s", route->net->recorded->record->parameters[t->port % SN_PORT_PART].name,
             t->port >= SN_PORT_PART ? " part" : "");
  else if (t->role == SN_UNSHARDED || t->role == SN_SUMMED)
    snprintf(text, room, "%s.%s%s%s", layer, t->role == SN_SUMMED ? "d" : "", t->port % 2 ? "b" : "w",
             t->role == SN_SUMMED      ? " summed"
             : t->port >= SN_PORT_PART ? " part"
                                       : "");
  else if (groups[t->role] && sn_mesh_size(route->mesh, SN_MESH_FSDP) > 1)
    snprintf(text, room, "%s.%s", route->groups[t->port].name, groups[t->role]);
  else if (groups[t->role])
    snprintf(text, room, "%s %u", groups[t->role], t->port + 1);
  else
    return false;
  return true;
}

char *sn_tensor_name(const sn_route *route, uint32_t tensor, char *text, size_t room) {
  static const char *const suffixes[SN_ROLES] = {"y", "dx", "saved", "dw", "scratch", "before"};
  if (route->mesh && print_shared(route, &route->tensors[tensor], text, room)) return text;
  bool carried = route->tensors[tensor].role == SN_CARRIED;
  const sn_tensor *t = &route->tensors[carried ? route->tensors[tensor].port : tensor];
  const sn_layer *layer = &route->layers[t->layer];
  if (route->work) {
    const char *again = route->tensors_again > 0 && tensor >= route->tensors_again ? " again" : "";
    if (t->port > 0)
      snprintf(text, room, "%s.%s%u%s", layer->name, suffixes[t->role], t->port, again);
    else
      snprintf(text, room, "%s.%s%s", layer->name, suffixes[t->role], again);
    return text;
  }
  const sn_op_rule *rule = sn_route_rule(route, t->layer);
  const uint32_t scratch = rule->scratch; /* a loss' second saved tensor is a copy in another width */
  const uint32_t saved = rule->saves == SN_SAVES_CAST_LOSS ? 1 : sn_saving_count(rule->saves);
  const uint32_t siblings[SN_ROLES] = {layer->n_outputs, layer->n_inputs, saved, 1, scratch, 1};
  if (t->port >= SN_CAST_WEIGHTS)
    snprintf(text, room, "%s.%s", layer->name, cast_name(t));
  else if (t->port >= siblings[t->role])
    snprintf(text, room, "%s.%s", layer->name, other_name(route, t));
  else if (siblings[t->role] > 1)
    snprintf(text, room, "%s.%s%u", layer->name, suffixes[t->role], t->port);
  else
    snprintf(text, room, "%s.%s", layer->name, suffixes[t->role]);
  size_t used = strlen(text);
  if (carried) snprintf(text + used, room - used, " before");
  return text;
}

const char *sn_pass_name(sn_pass pass) {
  static const char *const names[SN_PASSES] = {"forward", "backward", "update"};
  return names[pass];
}

const char *sn_step_layer_op(const sn_route *route, const sn_step *step) {
  return route->work ? route->work[step - route->steps].called : sn_op_of(&route->layers[step->layer])->name;
}

const char *sn_step_op_name(const sn_route *route, const sn_step *step) {
  static const char *const kernels[] = {[SN_FLATTEN] = "FLATTEN",
                                        [SN_CAST] = "CAST",
                                        [SN_SHARED_SUM] = "SUM",
                                        [SN_FILTER_GRADIENT] = "FILTER",
                                        [SN_SUM] = "SUM",
                                        [SN_ADD_ROW] = "ADD_ROW",
                                        [SN_DATA_GRADIENT] = "DATA",
                                        [SN_BIAS_GRADIENT] = "BIAS",
                                        [SN_DECAY_WEIGHT] = "DECAY",
                                        [SN_SCALE_MOMENTUM] = "SCALE",
                                        [SN_ADD_GRADIENT] = "ADD",
                                        [SN_ADD_TO_PARAMETER] = "ADD",
                                        [SN_UNPACK] = "UNPACK",
                                        [SN_PACK] = "PACK"};
  if (step->kernel == SN_TRANSFER) return transfers[route->transfers[step->sum].kind].op;
  if (step->kernel == SN_PACK || step->kernel == SN_UNPACK) return kernels[step->kernel];
  bool beside = step->kernel == SN_FLATTEN || step->kernel == SN_CAST || step->kernel == SN_SHARED_SUM;
  bool own = step->kernel == SN_WHOLE || (!beside && !route->dialect->by_kernel);
  return own ? sn_step_layer_op(route, step) : kernels[step->kernel];
}

const char *sn_role_name(sn_role role) {
  static const char *const names[SN_ROLES] = {"output",          "gradient", "saved",           "parameter gradient",
                                              "scratch",         "carried",  "gathered",        "parameter",
                                              "summed gradient", "bucket",   "sharded gradient"};
  return names[role];
}

const char *sn_transfer_kind_name(sn_transfer_kind kind) {
  return transfers[kind].name;
}

const char *sn_transfer_kind_words(sn_transfer_kind kind) {
  return transfers[kind].words;
}
