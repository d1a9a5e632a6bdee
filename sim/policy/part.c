/* Parts of steps; see the header. */
#include "sim/policy/part.h"

#include "models/op/op.h"
#include "sim/graph/route.h"

const char *sn_step_part_name(sn_step_part part) {
  static const char *const names[SN_STEP_PARTS] = {"whole", "filter", "data"};
  return names[part];
}

const char *sn_object_kind_name(sn_object_kind kind) {
  static const char *const names[SN_OBJECT_KINDS] = {"parameters", "gradients", "state"};
  return names[kind];
}

static const sn_layer *layer_of(const sn_route *route, const sn_step *step) {
  return &route->layers[step->layer];
}

static bool has_filter(const sn_route *route, const sn_step *step) {
  sn_op op = layer_of(route, step)->op;
  bool all = step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT;
  return step->pass == SN_BACKWARD && all && (sn_op_table[op]->convolves || op == SN_FC);
}

static bool writes(const sn_route *route, const sn_step *step) {
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (route->accesses[step->first_access + i].mode != SN_READ) return true;
  return false;
}

sn_kernel sn_step_part_kernel(sn_step_part part) {
  static const sn_kernel kernels[SN_STEP_PARTS] = {SN_WHOLE, SN_FILTER_GRADIENT, SN_DATA_GRADIENT};
  return kernels[part];
}

uint32_t sn_step_parts(const sn_route *route, uint32_t index, sn_step_part parts[2]) {
  const sn_step *step = &route->steps[index];
  parts[0] = has_filter(route, step) ? SN_STEP_FILTER : SN_STEP_WHOLE;
  parts[1] = SN_STEP_DATA;
  return parts[0] == SN_STEP_FILTER && writes(route, step) ? 2 : 1;
}

bool sn_step_part_has(const sn_route *route, uint32_t index, sn_step_part part, uint32_t number) {
  const sn_step *step = &route->steps[index];
  sn_access access = route->accesses[step->first_access + number];
  if (part == SN_STEP_FILTER) return access.mode == SN_READ;
  return part == SN_STEP_WHOLE || access.tensor != sn_route_first_read(route, route->forward_step[step->layer]);
}

/* What objects a part touches, if its layer has them; NO_ACCESS: not this one. */
enum { NO_ACCESS = -1 };
typedef struct touches {
  int mode[SN_OBJECT_KINDS];
} touches;

static touches touches_of(const sn_step *step, sn_step_part part) {
  if (part == SN_STEP_FILTER) return (touches){{NO_ACCESS, SN_WRITE, NO_ACCESS}};
  if (part == SN_STEP_DATA) return (touches){{SN_READ, NO_ACCESS, NO_ACCESS}};
  switch (step->pass) {
  case SN_FORWARD:
    return (touches){{SN_READ, NO_ACCESS, SN_WRITE}};
  case SN_BACKWARD:
    return (touches){{SN_READ, SN_WRITE, SN_READ}};
  case SN_UPDATE:
  case SN_PASSES:
    break;
  }
  return (touches){{SN_MODIFY, SN_READ, NO_ACCESS}};
}

uint32_t sn_step_part_objects(const sn_route *route, uint32_t index, sn_step_part part,
                              sn_object_access objects[SN_OBJECT_KINDS]) {
  const sn_step *step = &route->steps[index];
  const sn_layer *layer = layer_of(route, step);
  const bool has[SN_OBJECT_KINDS] = {layer->parameters > 0, layer->parameters > 0,
                                     layer->op == SN_BN || layer->op == SN_DROPOUT};
  touches t = touches_of(step, part);
  uint32_t n = 0;
  for (uint32_t kind = 0; kind < SN_OBJECT_KINDS; kind++)
    if (has[kind] && t.mode[kind] != NO_ACCESS)
      objects[n++] = (sn_object_access){SN_OBJECT_KINDS * step->layer + kind, (sn_access_mode)t.mode[kind]};
  return n;
}
