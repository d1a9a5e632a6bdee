/* Plans of several GPUs as JSON; see the header. */
#include "sim/plan/transfers.h"

#include <inttypes.h>
#include <string.h>

sn__do sn__do_of(const sn_route *route, uint32_t step) {
  const sn_step *s = &route->steps[step];
  if (s->kernel != SN_TRANSFER) return SN__DO_COMPUTE;
  const sn_transfer *t = &route->transfers[s->sum];
  return t->kind == SN_SEND ? SN__DO_SEND : t->kind == SN_RECEIVE ? SN__DO_RECEIVE : SN__DO_COLLECTIVE;
}

const char *sn__do_name(sn__do what) {
  static const char *const names[SN__DOS] = {"compute", "collective", "send", "receive"};
  return names[what];
}

static bool has_group(const sn_mesh *mesh, sn_mesh_axis axis) {
  return axis != SN_MESH_PP && sn_mesh_size(mesh, axis) > 1;
}

static uint32_t group_of(const sn_mesh *mesh, sn_mesh_axis axis) {
  uint32_t group = 0;
  for (sn_mesh_axis a = 0; a < axis; a++) group += has_group(mesh, a);
  return group;
}

/* What is sent forward comes from the stage before, and goes to the next; stages send round. */
static uint32_t peer_of(const sn_route *route, const sn_step *step) {
  uint32_t stages = sn_mesh_size(route->mesh, SN_MESH_PP);
  bool sends = route->transfers[step->sum].kind == SN_SEND, forward = step->pass == SN_FORWARD;
  return (route->mesh->stage + (sends == forward ? 1 : stages - 1)) % stages;
}

static uint32_t tensor_of(const sn_route *route, const sn_step *step) {
  return route->accesses[step->first_access].tensor;
}

/* ---- writing ---- */

bool sn__transfers_write_head(const sn_route *route, FILE *out) {
  const sn_mesh *mesh = route->mesh;
  if (!mesh) return true;
  bool good = fputs("\"mesh\": {", out) >= 0, first = true;
  for (sn_mesh_axis a = 0; a < SN_MESH_AXES && good; a++)
    good = fprintf(out, "%s\"%s\": %" PRIu32, a ? ", " : "", sn_mesh_word(a), sn_mesh_size(mesh, a)) > 0;
  good = good && fprintf(out, "},\n\"stage\": %" PRIu32 ",\n\"groups\": [", mesh->stage) > 0;
  for (sn_mesh_axis a = 0; a < SN_MESH_AXES && good; a++) {
    if (!has_group(mesh, a)) continue;
    good = fprintf(out, "%s{\"id\": %" PRIu32 ", \"axis\": \"%s\", \"ranks\": %" PRIu32 "}", first ? "" : ", ",
                   group_of(mesh, a), sn_mesh_word(a), sn_mesh_size(mesh, a)) > 0;
    first = false;
  }
  return good && fputs("],\n", out) >= 0;
}

bool sn__transfers_write(const sn_route *route, uint32_t step, FILE *out) {
  const sn_step *s = &route->steps[step];
  const sn_transfer *t = &route->transfers[s->sum];
  if (sn__do_of(route, step) == SN__DO_COLLECTIVE)
    return fprintf(out, ", \"kind\": \"%s\", \"group\": %" PRIu32 ", \"bytes\": %" PRIu64,
                   sn_transfer_kind_name(t->kind), group_of(route->mesh, (sn_mesh_axis)t->axis), t->bytes) > 0;
  return fprintf(out, ", \"peer\": %" PRIu32 ", \"tensor\": %" PRIu32 ", \"micro\": %" PRIu32 ", \"bytes\": %" PRIu64,
                 peer_of(route, s), tensor_of(route, s), t->micro, t->bytes) > 0;
}

/* ---- reading ---- */

static const cJSON *key_of(const sn_json *doc, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(sn_json_root(doc), key);
}

static sn_status read_mesh(const sn_json *doc, const sn_mesh *mesh, sn_err *err) {
  const char *axes[SN_MESH_AXES];
  const cJSON *sizes = key_of(doc, "mesh");
  if (!sizes) return SN_OK;
  if (!cJSON_IsObject(sizes)) return sn_json_fail(doc, sizes, err, "\"mesh\" is to be an object");
  for (sn_mesh_axis a = 0; a < SN_MESH_AXES; a++) axes[a] = sn_mesh_word(a);
  sn_json_only(doc, sizes, axes, SN_MESH_AXES, err);
  for (sn_mesh_axis a = 0; a < SN_MESH_AXES && err->code == SN_OK; a++) {
    uint64_t size = 1;
    if (sn_json_has(sizes, axes[a])) sn_json_count(doc, sizes, axes[a], 1, SN_MESH_MOST, &size, err);
    if (err->code == SN_OK && size != sn_mesh_size(mesh, a))
      sn_json_fail(doc, sizes, err, "%s is %" PRIu64 " here, and %" PRIu32 " in \"parallel\"", axes[a], size,
                   sn_mesh_size(mesh, a));
  }
  return err->code;
}

/* One communicator: the next axis that has others. */
static sn_status read_group(const sn_json *doc, const cJSON *item, const sn_mesh *mesh, uint32_t number,
                            sn_mesh_axis *axis, sn_err *err) {
  static const char *const keys[] = {"id", "axis", "ranks"};
  uint64_t id = 0, ranks = 0;
  while (*axis < SN_MESH_AXES && !has_group(mesh, *axis)) ++*axis;
  if (*axis == SN_MESH_AXES) return sn_json_fail(doc, item, err, "more groups than \"parallel\" has");
  if (!cJSON_IsObject(item)) return sn_json_fail(doc, item, err, "a group is to be an object");
  const char *word = sn_json_text(doc, item, "axis", err);
  sn_json_only(doc, item, keys, 3, err);
  sn_json_count(doc, item, "id", 0, SN_MESH_AXES, &id, err);
  sn_json_count(doc, item, "ranks", 1, SN_MESH_MOST, &ranks, err);
  if (err->code == SN_OK &&
      (id != number || ranks != sn_mesh_size(mesh, *axis) || strcmp(word, sn_mesh_word(*axis)) != 0))
    sn_json_fail(doc, item, err, "group %" PRIu32 " is of %" PRIu32 " ranks along %s", number,
                 sn_mesh_size(mesh, *axis), sn_mesh_word(*axis));
  ++*axis;
  return err->code;
}

static sn_status read_groups(const sn_json *doc, const sn_mesh *mesh, sn_err *err) {
  sn_mesh_axis axis = 0;
  uint32_t number = 0;
  const cJSON *list =
      sn_json_has(sn_json_root(doc), "groups") ? sn_json_array(doc, sn_json_root(doc), "groups", err) : NULL;
  if (!list) return err->code;
  for (const cJSON *item = list->child; item && err->code == SN_OK; item = item->next)
    read_group(doc, item, mesh, number++, &axis, err);
  while (axis < SN_MESH_AXES && !has_group(mesh, axis)) axis++;
  if (err->code == SN_OK && axis < SN_MESH_AXES)
    sn_json_fail(doc, list, err, "the group along %s is missing", sn_mesh_word(axis));
  return err->code;
}

sn_status sn__transfers_read_head(const sn_json *doc, uint64_t format, sn_plan_head *head, sn_err *err) {
  static const char *const keys[] = {"mesh", "stage", "groups"};
  sn_iteration *iteration = &head->options.iteration;
  sn_mesh *mesh = &iteration->mesh;
  uint64_t stage = 0;
  if (sn_mesh_is_one(mesh) && format == SN__PLAN_FORMAT) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      if (sn_json_has(sn_json_root(doc), keys[i]))
        return sn_json_fail(doc, key_of(doc, keys[i]), err, "\"%s\" is of plans of several GPUs, version %d", keys[i],
                            SN__PLAN_FORMAT_GPUS);
    return SN_OK;
  }
  if (format != (sn_mesh_is_one(mesh) ? SN__PLAN_FORMAT : SN__PLAN_FORMAT_GPUS))
    return sn_json_fail(doc, key_of(doc, "snsim_plan"), err,
                        "plans of several GPUs, which \"parallel\" says, are of version %d, and no others are",
                        SN__PLAN_FORMAT_GPUS);
  uint32_t stages = sn_mesh_size(mesh, SN_MESH_PP);
  if (stages > 1 || sn_json_has(sn_json_root(doc), "stage"))
    sn_json_count(doc, sn_json_root(doc), "stage", 0, stages - 1, &stage, err);
  if (err->code != SN_OK || read_mesh(doc, mesh, err) != SN_OK || read_groups(doc, mesh, err) != SN_OK)
    return err->code;
  mesh->stage = (uint32_t)stage;
  if (stages == 1) return SN_OK;
  mesh->micros = sn_iteration_batches(*iteration);
  iteration->accumulate = 1;
  return SN_OK;
}

static sn_status read_number(const sn__reader *r, const cJSON *item, const char *key, uint64_t wanted) {
  uint64_t number = 0;
  if (sn_json_count(r->doc, item, key, 0, MOST_BYTES, &number, r->err) != SN_OK || number == wanted)
    return r->err->code;
  return sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(item, key), r->err,
                      "\"%s\" is %" PRIu64 " here, and %" PRIu64 " of the step", key, number, wanted);
}

static sn_status read_kind(const sn__reader *r, const cJSON *item, const char *wanted) {
  const char *kind = sn_json_text(r->doc, item, "kind", r->err);
  if (!kind || strcmp(kind, wanted) == 0) return r->err->code;
  return sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(item, "kind"), r->err,
                      "\"kind\" is \"%.40s\" here, and \"%s\" of the step", kind, wanted);
}

sn_status sn__transfers_read(const sn__reader *r, const cJSON *item, sn__do what, uint32_t step) {
  const sn_route *route = r->route;
  const sn_step *s = &route->steps[step];
  sn__do is = sn__do_of(route, step);
  if (what != is)
    return sn_json_fail(r->doc, item, r->err, "step %" PRIu32 " is a %s, and no %s", step + 1, sn__do_name(is),
                        sn__do_name(what));
  if (is == SN__DO_COMPUTE) return SN_OK;
  const sn_transfer *t = &route->transfers[s->sum];
  if (is == SN__DO_COLLECTIVE) {
    read_kind(r, item, sn_transfer_kind_name(t->kind));
    read_number(r, item, "group", group_of(route->mesh, (sn_mesh_axis)t->axis));
  } else {
    read_number(r, item, "peer", peer_of(route, s));
    read_number(r, item, "tensor", tensor_of(route, s));
    read_number(r, item, "micro", t->micro);
  }
  return read_number(r, item, "bytes", t->bytes);
}
