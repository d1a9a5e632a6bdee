/* Tensors and steps of a plan that is read, where it lists them: they are the network's, or it is no plan of it. */
#include "sim/plan/read_internal.h"

#include <inttypes.h>
#include <string.h>

bool sn__read_elements(sn__reader *r, const char *key, sn__element_reader *read, uint32_t *count) {
  const sn_json *head = r->doc;
  *count = 0;
  if (!sn_json_array(head, sn_json_root(head), key, r->err)) return false;
  sn_json_lists_begin(r->file, key);
  while (r->err->code == SN_OK && (r->doc = sn_json_lists_next(r->file, r->err)))
    read(r, sn_json_root(r->doc), (*count)++);
  r->doc = head;
  return r->err->code == SN_OK;
}

static bool has_text(const cJSON *item, const char *key, const char *wanted) {
  const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, key);
  return !text || (cJSON_IsString(text) && strcmp(text->valuestring, wanted) == 0);
}

/* What stands in front of every element of a list that says again what the network has: an object of these keys, and
 * not one too many. */
static sn_status check_element(const sn__reader *r, const cJSON *item, const char *const *keys, size_t n_keys,
                               const char *what, uint32_t index, uint32_t count) {
  if (index >= count)
    return sn_json_fail(r->doc, item, r->err, "more %s than the network has under this strategy: %" PRIu32, what,
                        count);
  if (!cJSON_IsObject(item)) return sn_json_fail(r->doc, item, r->err, "this is to be an object");
  return sn_json_only(r->doc, item, keys, n_keys, r->err);
}

static sn_status same_tensor(sn__reader *r, const cJSON *item, uint32_t index) {
  static const char *const keys[] = {"id", "name", "kind", "bytes"};
  char name[SN_TENSOR_NAME];
  uint64_t id = 0, bytes = 0;
  if (check_element(r, item, keys, 4, "tensors", index, r->route->n_tensors) != SN_OK) return r->err->code;
  const sn_tensor *tensor = &r->route->tensors[index];
  sn_json_count(r->doc, item, "id", 0, UINT32_MAX, &id, r->err);
  sn_json_count(r->doc, item, "bytes", 0, MOST_BYTES, &bytes, r->err);
  sn_tensor_name(r->route, index, name, sizeof name);
  if (r->err->code != SN_OK) return r->err->code;
  if (id != index || bytes != tensor->bytes || !has_text(item, "name", name) ||
      !has_text(item, "kind", sn_role_name(tensor->role)))
    return sn_json_fail(r->doc, item, r->err, "tensor %" PRIu32 " of this network is %s, %s of %" PRIu64 " bytes",
                        index, name, sn_role_name(tensor->role), tensor->bytes);
  return SN_OK;
}

/* The list of tensors that a step reads or writes, which `not_this` is not among. */
static bool same_accesses(const sn__reader *r, const sn_step *step, const cJSON *list, sn_access_mode not_this) {
  const cJSON *item = list ? list->child : NULL;
  if (!list) return true;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->route->accesses[step->first_access + i];
    if (access.mode == not_this) continue;
    if (!cJSON_IsNumber(item) || item->valuedouble != access.tensor) return false;
    item = item->next;
  }
  return !item;
}

static sn_status same_step(sn__reader *r, const cJSON *item, uint32_t index) {
  static const char *const keys[] = {"id", "layer", "op", "pass", "reads", "writes"};
  if (check_element(r, item, keys, 6, "steps", index, r->route->n_steps) != SN_OK) return r->err->code;
  const sn_step *step = &r->route->steps[index];
  const sn_layer *layer = &r->route->layers[step->layer];
  uint64_t id = 0;
  if (sn_json_count(r->doc, item, "id", 1, UINT32_MAX, &id, r->err) != SN_OK) return r->err->code;
  if (id != index + 1 || !has_text(item, "layer", layer->name) ||
      !has_text(item, "op", sn_step_layer_op(r->route, step)) || !has_text(item, "pass", sn_pass_name(step->pass)) ||
      !same_accesses(r, step, cJSON_GetObjectItemCaseSensitive(item, "reads"), SN_WRITE) ||
      !same_accesses(r, step, cJSON_GetObjectItemCaseSensitive(item, "writes"), SN_READ))
    return sn_json_fail(r->doc, item, r->err,
                        "step %" PRIu32 " of this network is %s %s, or reads and writes other tensors", index + 1,
                        layer->name, sn_pass_name(step->pass));
  return SN_OK;
}

/* A list that may be left out, and where it is not must be whole. */
static sn_status check_list(sn__reader *r, const char *key, sn__element_reader *same, uint32_t wanted) {
  uint32_t count;
  const cJSON *root = sn_json_root(r->doc);
  if (!sn_json_has(root, key) || !sn__read_elements(r, key, same, &count) || count == wanted) return r->err->code;
  return sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(root, key), r->err,
                      "%" PRIu32 " %s, where the network has %" PRIu32 " under this strategy", count, key, wanted);
}

sn_status sn__read_lists(sn__reader *r) {
  sn_status status = check_list(r, "tensors", same_tensor, r->route->n_tensors);
  return status == SN_OK ? check_list(r, "steps", same_step, r->route->n_steps) : status;
}
